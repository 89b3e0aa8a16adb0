"""The explorer's solver decides as the library does, and its page works in a browser without a server."""

import itertools
import json
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

import refkernel as rk

FOLDER = Path(__file__).parent.parent / "docs" / "_static" / "explorer"
SETTINGS = 50

DECIDE = """
const solver = require(process.argv[1]);
const tasks = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(tasks.map(({ X, points, ...settings }) => {
  const model = solver.fit(X, settings);
  return { decisions: points.map(model.decide), rank: model.rank, support: model.support.length };
})));
"""


def _task(seed):
    """One random setting of the page, with points to decide on."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    X = rng.normal(size=(n, 2)) * rng.uniform(0.3, 2.0, size=2) + rng.uniform(-1.0, 1.0, size=2)
    R = [None, X, rng.normal(size=(int(rng.integers(3, 30)), 2))][seed % 3]
    method = "svdd" if seed % 2 else "ocsvm"
    center = bool(rng.integers(2)) and not (method == "ocsvm" and seed % 3 == 1)  # centred on its own targets: degenerate
    return {
        "X": X.tolist(),
        "points": rng.uniform(-3, 3, size=(40, 2)).tolist(),
        "method": method,
        "kernel": ("rbf", "laplacian", "rbf", "linear")[(seed // 3) % 4],
        "scale": float(np.exp(rng.uniform(np.log(0.05), np.log(20.0)))),
        "nu": float(rng.uniform(0.05, 0.9)),
        "references": None if R is None else np.asarray(R).tolist(),
        "center": center,
    }


def _model(task):
    kernel = {"rbf": rk.RBF, "laplacian": rk.kernels.Laplacian}.get(task["kernel"], lambda scale: rk.kernels.Linear())(scale=task["scale"])
    if task["references"] is not None:
        kernel = rk.ReferenceKernel(kernel, references=np.array(task["references"]), center=task["center"])
    classifier = rk.SVDD if task["method"] == "svdd" else rk.OneClassSVM
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return classifier(kernel, nu=task["nu"], threshold="training", tol=1e-10).fit(np.array(task["X"]))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_explorer_decides_as_the_library_on_random_settings():
    """Decision values agree to 1e-6 (of the largest, where that is above 1), and so does the rank of the map."""
    tasks = [_task(seed) for seed in range(SETTINGS)]
    run = subprocess.run(
        ["node", "-e", DECIDE, str(FOLDER / "solver.js")],
        input=json.dumps(tasks),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    for seed, (task, found) in enumerate(zip(tasks, json.loads(run.stdout), strict=True)):
        model = _model(task)
        expected = model.decision_function(np.array(task["points"]))
        assert np.abs(expected - found["decisions"]).max() <= 1e-6 * max(1.0, np.abs(expected).max()), seed
        assert found["rank"] == getattr(model.kernel_, "rank_", None), seed


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The explorer alone, as the site shows it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(FOLDER, folder / "_static" / "explorer")
    head = (
        '<!doctype html><html data-theme="light"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>x</title>'
    )
    (folder / "explorer.html").write_text(
        f"{head}<body>{(FOLDER / 'panel.html').read_text(encoding='utf-8')}</body></html>", encoding="utf-8"
    )
    return folder / "explorer.html"


def _drawn(browser):
    """Wait until the page has drawn what it was told, and tell what it says."""
    browser.call(
        "Runtime.evaluate", expression="new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))", awaitPromise=True
    )
    return browser.run("document.getElementById('ex-said').textContent")


def _set(browser, **values):
    for name, value in values.items():
        field = "checked" if isinstance(value, bool) else "value"
        browser.run(
            f"(e => {{ e.{field} = {json.dumps(value)}; e.dispatchEvent(new Event('input')) }})(document.getElementById('ex-{name}'))"
        )
    return _drawn(browser)


def _key(browser, key):
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode={"Tab": 9, "ArrowRight": 39, "Delete": 46}[key])
    _drawn(browser)


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_explorer_opens_without_complaints_and_fits_its_width(browser, page, width, scheme):
    """It draws a region and points, and fetches nothing from elsewhere."""
    browser.open(page, width, scheme)
    assert "40 samples are accepted" in _drawn(browser)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('.point.support').length") > 2
    assert browser.run(
        "(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v > 0))(document.querySelector('canvas'))"
    )
    assert browser.complaints() == []
    assert [address for address in browser.requested() if not address.startswith("file:")] == []


def test_the_explorer_works_by_keyboard(browser, page):
    """Tab reaches a point, an arrow moves it, Delete removes it."""
    browser.open(page, 1200)
    _drawn(browser)
    _key(browser, "Tab")
    focused = "document.activeElement.getAttribute('aria-label')"
    before = browser.run(focused)
    assert before.startswith(("Sample 1 at", "Support vector 1 at"))
    _key(browser, "ArrowRight")
    x_before, x_after = (float(label.partition(" at ")[2].partition(",")[0]) for label in (before, browser.run(focused)))
    assert x_after == pytest.approx(x_before + 0.1, abs=0.051)  # labels are rounded
    _key(browser, "Delete")
    assert " of 39 samples" in _drawn(browser)


def test_points_can_be_dragged_and_added(browser, page):
    """A press on a point takes it along; a tap on an empty place adds a sample there."""
    browser.open(page, 1200)
    _drawn(browser)
    place = "(({x, y, width, height}) => [x + width / 2, y + height / 2])(document.querySelector('.point.sample').getBoundingClientRect())"
    x, y = browser.run(place)
    for kind, dx in (("mousePressed", 0), ("mouseMoved", 60), ("mouseReleased", 60)):
        browser.call(
            "Input.dispatchMouseEvent", type=kind, x=x + dx, y=y, button="left", buttons=0 if kind == "mouseReleased" else 1, clickCount=1
        )
    _drawn(browser)
    assert browser.run(place)[0] == pytest.approx(x + 60, abs=2)
    corner = browser.run("(({x, y}) => [x + 12, y + 12])(document.getElementById('ex-points').getBoundingClientRect())")
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=corner[0], y=corner[1], button="left", clickCount=1)
    assert " of 41 samples" in _drawn(browser)


def test_the_explorer_names_both_traps(browser, page):
    """A degenerate one-class SVM, and references too narrow to see what is far away."""
    browser.open(page, 1200)
    assert "Degenerate" in _set(browser, method="ocsvm", references="samples", center=True)
    assert "far away is accepted" in _set(browser, method="svdd", references="draws", scale="-1.5")
    assert "far away" not in _set(browser, scale="1.3")


def test_the_python_that_the_explorer_shows_runs(browser, page):
    """For every classifier, kernel and kind of references."""
    browser.open(page, 1200)
    rng = np.random.default_rng(0)
    names = {"X": rng.normal(size=(40, 2)), "R": rng.normal(size=(10, 2)), "new": rng.normal(size=(3, 2))}
    for method, kernel, references in itertools.product(
        ("svdd", "ocsvm"), ("rbf", "laplacian", "linear"), ("none", "samples", "half", "draws", "own")
    ):
        _set(browser, method=method, kernel=kernel, references=references)
        shown = browser.run("document.getElementById('ex-python').textContent")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(shown, dict(names))
        assert ("ReferenceKernel" in shown) == (references != "none")
