"""The page of a model and a table is one file that stands alone, tells the truth, and works by mouse, keyboard and finger."""

import json
import re

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("jinja2")
pytest.importorskip("typer")
pytest.importorskip("skops")

from typer.testing import CliRunner

import refkernel as rk
from exact import read_csv
from refkernel.cli import app
from refkernel.exceptions import TableError
from refkernel.pages.page import MOST_POINTS, MOST_WORST
from refkernel.tabular.scoring import load_table_model

HOSTILE = "</script><script>window.attacked = 1</script>"
NASTY = f"{HOSTILE}<img src=x onerror='window.attacked = 1'>"
LIMIT = 900_000


def table(n, seed, outliers=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"width": rng.normal(10, 1, n), "height": rng.normal(5, 0.5, n), "depth": rng.normal(1, 0.1, n)}).round(5)
    frame["colour"] = rng.choice(["red", "green"], n)
    frame["state"] = "good"
    frame.loc[: outliers - 1, ["width", "depth"]] += 8.0
    frame.loc[: outliers - 1, "state"] = "bad"
    return frame


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """model.rk of 150 rows, new.csv of 60 others and 140 alike, and the page of both."""
    folder = tmp_path_factory.mktemp("page")
    table(150, 0).to_csv(folder / "train.csv", index=False)
    table(200, 1, outliers=60).to_csv(folder / "new.csv", index=False)
    run("fit", folder / "train.csv", "--target-column", "state", "--target", "good", "--out", folder / "model.rk")
    run("report", folder / "model.rk", folder / "new.csv", "--out", folder / "page.html")
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A page whose column names, levels, cells and file names try to run scripts."""
    folder = tmp_path_factory.mktemp("hostile")
    frame = table(80, 2, outliers=10).rename(columns={"width": NASTY, "height": "quote \" and ' & <b>", "state": f"state{HOSTILE}"})
    frame["colour"] = np.where(np.arange(80) % 2, NASTY, "ünïcode 漢字 \u202e")
    frame["extra"] = f"{NASTY} --> ]]> \\u003c/script> ${{window.attacked = 1}} {{{{7*7}}}}"
    frame.to_csv(folder / "a<b>&.csv", index=False)
    run("fit", folder / "a<b>&.csv", "--target-column", f"state{HOSTILE}", "--target", "good", "--drop", "extra", "--out", folder / "m.rk")
    run("report", folder / "m.rk", folder / "a<b>&.csv", "--out", folder / "page.html")
    return folder / "page.html"


def test_steps_of_the_slider_count_what_scoring_flags(folder):
    run("score", folder / "model.rk", folder / "new.csv", "--out", folder / "out.csv")
    out, data = read_csv(folder / "out.csv"), data_of(folder / "page.html")
    steps, own = data["thresholds"]["steps"], data["thresholds"]["own"]
    for step in steps:
        flagged = out["score"].to_numpy() < step["score"]
        good = (out["state"] == "good").to_numpy()
        assert (step["flagged"], step["false_alarms"], step["caught"]) == (flagged.sum(), flagged[good].sum(), flagged[~good].sum())
    detector = load_table_model(folder / "model.rk").model.detector_
    assert steps[own]["score"] == detector.offset_
    assert steps[own]["rate"] == pytest.approx(detector.false_alarm_rate_)
    band = detector.false_alarm_band().at(detector.offset_)
    assert [steps[own]["low"], steps[own]["high"]] == pytest.approx([float(end) for end in band])
    assert [step["rate"] for step in steps] == sorted(step["rate"] for step in steps)


def test_a_step_promises_what_scoring_with_its_rate_promises(folder):
    saved = load_table_model(folder / "model.rk")
    for step in data_of(folder / "page.html")["thresholds"]["steps"][::7]:
        assert saved.model.with_false_alarm_rate(step["rate"] + 1e-9).offset_ == step["score"]


def test_shares_of_the_histogram_add_up_to_one(folder):
    for shares in data_of(folder / "page.html")["scores"]["sets"].values():
        assert sum(shares) == pytest.approx(1.0, abs=1e-3)


def test_the_plane_of_two_columns_shows_their_values_and_the_models_scores(folder, tmp_path):
    run("report", folder / "model.rk", folder / "new.csv", "--features", "width,height", "--out", tmp_path / "page.html")
    plane, frame = data_of(tmp_path / "page.html")["plane"], read_csv(folder / "new.csv")
    np.testing.assert_allclose(plane["points"][0], frame["width"], rtol=1e-4)
    grid, saved, train = plane["grid"], load_table_model(folder / "model.rk"), read_csv(folder / "train.csv")
    corner = pd.DataFrame(
        {"width": [plane["x"][1]], "height": [plane["y"][0]], "depth": [train["depth"].median()], "colour": [train["colour"].mode()[0]]}
    )
    # The page rounds values to 5 digits, of which a score's slope may make a few units of its fourth.
    assert plane["scores"][grid - 1] == pytest.approx(saved.model.score_samples(corner)[0], rel=1e-3)


def test_a_model_alone_has_a_page_and_so_has_one_without_a_promise(folder, tmp_path):
    run("report", folder / "model.rk", "--out", tmp_path / "alone.html")
    text = (tmp_path / "alone.html").read_text()
    assert "What was learnt" in text
    assert 'id="worst"' not in text
    run(
        "fit",
        folder / "train.csv",
        "--drop",
        "state",
        "--model",
        "svdd",
        "--out",
        tmp_path / "svdd.rk",
        "--out-report",
        tmp_path / "svdd.html",
    )
    data = data_of(tmp_path / "svdd.html")
    assert data["thresholds"]["basis"] == "training"
    assert data["thresholds"]["steps"][data["thresholds"]["own"]]["score"] == load_table_model(tmp_path / "svdd.rk").model.offset_


def test_a_folder_a_wrong_ending_and_wrong_features_are_refused_with_a_way_out(folder, tmp_path):
    for arguments, words in (
        ([folder], "reproduce report"),
        ([folder / "model.rk", "--out", tmp_path / "page.pdf"], ".html"),
        ([folder / "model.rk", folder / "new.csv", "--features", "width,colour", "--out", tmp_path / "p.html"], "width, height, depth"),
    ):
        result = CliRunner().invoke(app, ["report", *map(str, arguments)])
        assert result.exit_code == 1
        assert words in " ".join(result.output.split())
    refused = CliRunner().invoke(app, ["fit", str(folder / "new.csv"), "--out", str(tmp_path / "m.rk"), "--out-report", "page.txt"])
    assert refused.exit_code == 1
    assert "page.txt: the name of the page must end in .html" in " ".join(refused.output.split())
    assert list(tmp_path.iterdir()) == []


def test_without_jinja_the_page_names_the_extra(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("refkernel.pages.find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["report", str(folder / "model.rk"), "--out", str(tmp_path / "page.html")])
    assert result.exit_code == 1
    assert 'pip install "refkernel[report]"' in " ".join(result.output.split())


def test_the_page_of_a_long_table_stays_small_and_says_so(folder, tmp_path):
    long = pd.concat([table(5_000, seed) for seed in range(4)], ignore_index=True)
    long.to_csv(tmp_path / "long.csv", index=False)
    run("report", folder / "model.rk", tmp_path / "long.csv", "--out", tmp_path / "page.html")
    text, data = (tmp_path / "page.html").read_text(), data_of(tmp_path / "page.html")
    assert len(text) < LIMIT
    assert len(data["plane"]["rows"]) <= MOST_POINTS
    assert len(data["cells"]["rows"]) == MOST_WORST
    assert "All 20,000 rows were scored" in text


def test_the_licences_of_what_is_embedded_are_in_the_page(folder):
    text = (folder / "page.html").read_text()
    assert text.count("The above copyright notice and this permission notice shall be included") == 2
    assert "Chart.js Contributors" in text
    assert "Jukka Kurkela" in text


def shown_rows(browser, table="worst-table"):
    rows = f"Array.from(document.querySelectorAll('#{table} tbody tr:not([hidden])'))"
    return browser.run(f"{rows}.map(row => row.cells[0].textContent.trim())")


def reading(browser, name):
    return browser.run(f"document.getElementById('out-{name}').textContent")


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark"), (320, "light")])
def test_the_page_opens_without_complaints_fits_its_width_and_asks_for_nothing(folder, browser, width, scheme):
    browser.open(folder / "page.html", width, scheme)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
    assert [address for address in browser.requested() if not address.startswith(("file:", "data:"))] == []
    assert (
        browser.run("['score-chart', 'plane-chart', 'column-chart'].map(id => document.getElementById(id).offsetHeight > 150)")
        == [True] * 3
    )


def test_charts_and_text_follow_the_colour_scheme(folder, browser):
    brightness = "(c => c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0) / 765)"
    seen = {}
    for scheme in ("light", "dark"):
        browser.open(folder / "page.html", 1200, scheme)
        text, page = (browser.run(f"{brightness}(getComputedStyle(document.body).{name})") for name in ("color", "backgroundColor"))
        seen[scheme] = text - page, browser.run("Chart.getChart('score-chart').options.scales.y.ticks.color")
    assert seen["light"][0] < -0.6
    assert seen["dark"][0] > 0.6
    assert seen["light"][1] != seen["dark"][1]


def drag(browser, share):
    """Drag the threshold to a share of the chart's width."""
    box = browser.run("(b => [b.left, b.top, b.width, b.height])(document.getElementById('score-chart').getBoundingClientRect())")
    area = browser.run("(a => [a.left, a.right])(Chart.getChart('score-chart').chartArea)")
    places = [area[0] + (area[1] - area[0]) * part for part in (0.9, (share + 0.9) / 2, share)]
    for kind, place in zip(("mousePressed", "mouseMoved", "mouseReleased"), places, strict=True):
        x, y = box[0] + place, box[1] + box[3] / 2
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        if kind == "mouseMoved":
            browser.call("Input.dispatchMouseEvent", type=kind, x=box[0] + places[2], y=y, button="left", buttons=1)


@pytest.mark.parametrize("width", [1200, 390])
def test_a_dragged_threshold_shows_its_own_rate_and_flagged_rows(folder, browser, width):
    browser.open(folder / "page.html", width)
    steps = data_of(folder / "page.html")["thresholds"]["steps"]
    before = reading(browser, "flagged")
    drag(browser, 0.8)
    chosen = browser.run("Number(document.getElementById('slider').value)")
    number = int(np.argmin([abs(step["score"] - chosen) for step in steps]))
    assert steps[number]["score"] == pytest.approx(chosen)
    assert reading(browser, "flagged").startswith(f"{steps[number]['flagged']} (")
    assert reading(browser, "flagged") != before
    assert float(reading(browser, "rate").split()[0]) == pytest.approx(100 * steps[number]["rate"], rel=0.01)
    assert len(browser.run("Chart.getChart('plane-chart').data.datasets[1].data")) == steps[number]["flagged"]
    browser.run("document.getElementById('reset').click()")
    assert reading(browser, "flagged") == before
    assert browser.complaints() == []


def press(browser, key):
    for kind in ("keyDown", "keyUp"):
        browser.call(
            "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"ArrowRight": 39, "End": 35, "Tab": 9}[key]
        )


def test_the_keyboard_moves_the_threshold_and_reaches_every_control(folder, browser):
    browser.open(folder / "page.html", 1200)
    steps, own = (data_of(folder / "page.html")["thresholds"][name] for name in ("steps", "own"))
    browser.run("document.getElementById('slider').focus()")
    press(browser, "ArrowRight")
    assert reading(browser, "flagged").startswith(f"{steps[own + 1]['flagged']} (")
    press(browser, "End")
    assert reading(browser, "flagged").startswith(f"{steps[-1]['flagged']} (")
    reached = []
    for _ in range(4):
        press(browser, "Tab")
        reached.append(browser.run("document.activeElement.id || document.activeElement.className"))
    assert reached[:3] == ["reset", "filter", "only"]


def test_worst_rows_sort_filter_and_follow_the_threshold(folder, browser):
    browser.open(folder / "page.html", 1200)
    rows = shown_rows(browser)
    browser.run("document.querySelectorAll('#worst-table thead button')[0].click()")
    assert shown_rows(browser) == sorted(rows, key=int)
    browser.run("(f => { f.value = 'BAD'; f.dispatchEvent(new Event('input')); })(document.getElementById('filter'))")
    assert len(shown_rows(browser)) == 60
    browser.run("(f => { f.value = 'no such text'; f.dispatchEvent(new Event('input')); })(document.getElementById('filter'))")
    assert shown_rows(browser) == []
    assert not browser.run("document.getElementById('no-rows').hidden")
    browser.run("(f => { f.value = ''; f.dispatchEvent(new Event('input')); })(document.getElementById('filter'))")
    browser.run("document.getElementById('only').click()")
    flagged = data_of(folder / "page.html")["thresholds"]
    assert len(shown_rows(browser)) == flagged["steps"][flagged["own"]]["flagged"]
    assert browser.complaints() == []


def test_the_cells_of_a_row_are_shown_when_it_is_opened(folder, browser):
    browser.open(folder / "page.html", 1200)
    browser.run("document.querySelector('#worst-table details summary').click()")
    cells = "Array.from(document.querySelectorAll('#worst-table details[open] dd')).map(cell => cell.textContent)"
    for _ in range(50):
        if browser.run(cells):
            break
    row = int(shown_rows(browser)[0])
    assert browser.run(cells) == [str(cell) for cell in read_csv(folder / "new.csv", dtype=str).iloc[row - 1]]


def test_a_column_that_is_chosen_is_drawn_and_drifted_ones_can_be_shown_alone(folder, browser):
    browser.open(folder / "page.html", 1200)
    browser.run("document.querySelector('#drift-table button[data-column=colour]').click()")
    assert browser.run("document.getElementById('column-name').textContent") == "colour, in training and now"
    levels = read_csv(folder / "train.csv")["colour"].value_counts().index.tolist()
    assert browser.run("Chart.getChart('column-chart').data.labels") == [*levels, "never seen"]
    browser.run("document.getElementById('only-drifted').click()")
    assert set(shown_rows(browser, "drift-table")) == {"width", "depth"}


def test_on_paper_the_page_is_light_and_whole_tables_are_printed(folder, browser):
    browser.open(folder / "page.html", 1200, "dark")
    browser.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.querySelector('.scroll')).overflow") == "visible"
    assert browser.run("getComputedStyle(document.querySelector('.control')).display") == "none"
    assert len(browser.call("Page.printToPDF")["data"]) > 10_000


def test_hostile_names_and_cells_are_shown_and_never_run(hostile, browser):
    browser.open(hostile, 1200)
    assert browser.run("window.attacked") is None
    assert browser.run("document.querySelectorAll('main img').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == 4
    assert NASTY in browser.run("document.getElementById('features-table').textContent")
    browser.run("document.querySelectorAll('#drift-table .show').forEach(button => button.click())")
    browser.run("document.querySelectorAll('#worst-table details').forEach(details => { details.open = true; })")
    assert NASTY in browser.run("document.getElementById('worst-table').textContent")
    assert "49" not in browser.run("document.querySelector('#worst-table caption').textContent")
    assert browser.run("window.attacked") is None
    assert browser.complaints() == []


def test_the_policy_of_the_page_stops_scripts_that_are_not_its_own(hostile, tmp_path, browser):
    forged = tmp_path / "forged.html"
    forged.write_text(hostile.read_text().replace("</main>", "<script>window.attacked = 1</script></main>"))
    browser.open(forged, 1200)
    assert browser.run("window.attacked") is None
    assert browser.run("typeof Chart") == "function"


def place_of_knob(browser):
    """Where the middle of the slider's knob and the threshold's line are, from the left."""
    slider = "document.getElementById('slider')"
    left, width, low, high, value = browser.run(
        f"(s => [s.getBoundingClientRect().left, s.offsetWidth, +s.min, +s.max, +s.value])({slider})"
    )
    canvas = browser.run("document.getElementById('score-chart').getBoundingClientRect().left")
    line = browser.run(f"Chart.getChart('score-chart').scales.x.getPixelForValue({value})")
    knob = 16  # Chromium's
    return left + knob / 2 + (width - knob) * (value - low) / (high - low), canvas + line


@pytest.mark.parametrize("width", [1200, 390])
def test_the_knob_of_the_slider_is_below_the_line(folder, browser, width):
    browser.open(folder / "page.html", width)
    for _ in range(2):
        knob, line = place_of_knob(browser)
        assert knob == pytest.approx(line, abs=1.5)
        drag(browser, 0.75)


def test_ticks_of_scores_are_round_numbers_at_their_places(folder, browser):
    browser.open(folder / "page.html", 1200)
    for chart, axis in (("score-chart", "x"), ("plane-chart", "x"), ("plane-chart", "y")):
        ticks = browser.run(f"Chart.getChart('{chart}').scales.{axis}.ticks.map(tick => [tick.value, tick.label])")
        values = np.array([value for value, _ in ticks])
        assert len(ticks) >= 3
        np.testing.assert_allclose(np.diff(values), values[1] - values[0])  # none at an end that is no round number
        for value, label in ticks:
            assert float(label) == pytest.approx(value, abs=1e-9)
            assert not label.startswith("-0") or float(label) != 0.0
            assert len(label) <= 5


BROKEN = """(() => {
  const broken = [], range = document.createRange();
  for (const cell of document.querySelectorAll('main th, main td')) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(/[\\w\\p{L}.,…]+/gu)) {
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      if (range.getClientRects().length > 1) broken.push(word[0]);
    }
  }
  return broken;
})()"""
"""The words in tables that stand on more than one line."""


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    """A page of a table with a time column, an order number, and long German names, as rk.report makes it of data frames."""
    rng = np.random.default_rng(0)

    def rows(n, start):
        time = pd.date_range(start, periods=n, freq="6h")
        names = {"Zeit": time, "Auftrag": [f"A-{1000 + 7 * i}" for i in range(n)], "Kuehlwassertemperatur": rng.normal(80.0, 4.0, n)}
        return pd.DataFrame(names | {"Niederschlagsmenge": rng.exponential(2.0, n), "Linie": rng.choice(["Nord", "Sued"], n)})

    model, new = rk.TableDetector(time_column="Zeit", drop=["Auftrag"]).fit(rows(400, "2025-01-01")), rows(200, "2025-05-01")
    new.loc[50, "Kuehlwassertemperatur"] = 180.0
    return rk.report(model, new), new, tmp_path_factory.mktemp("plant")


@pytest.mark.parametrize("width", [1200, 400, 320])
def test_tables_break_no_word(plant, browser, width):
    page, _, tmp_path = plant
    browser.open(page.save(tmp_path / "page.html"), width)
    assert browser.run(BROKEN) == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []


def test_a_model_with_a_time_column_shows_rows_with_their_time_and_over_time(plant, browser):
    page, new, tmp_path = plant
    path = page.save(tmp_path / "page.html")
    browser.open(path, 1200)
    worst = browser.run("Array.from(document.querySelector('#worst-table tbody tr').cells).map(cell => cell.textContent)")
    assert worst[:3] == ["51", "2025-05-13 12:00:00", new.loc[50, "Auftrag"]]
    found = data_of(path)["time"]
    assert found["rows"] == list(range(1, 201))
    assert found["at"] == [moment.timestamp() * 1000 for moment in new["Zeit"]]
    assert np.argmin(found["scores"]) == 50
    ticks = browser.run("Chart.getChart('time-chart').scales.x.ticks.map(tick => tick.label)")
    assert len(ticks) >= 2
    assert all(re.fullmatch(r"2025-0[56]-\d\d", tick) for tick in ticks)
    flagged = data_of(path)["thresholds"]
    points = browser.run("Chart.getChart('time-chart').data.datasets[1].data.length")
    assert points == flagged["steps"][flagged["own"]]["flagged"]


@pytest.mark.parametrize("written", ["%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M"])
def test_the_command_reads_the_times_of_a_file(written, plant, tmp_path):
    _, new, _ = plant
    new.assign(Zeit=new["Zeit"].dt.strftime(written)).to_csv(tmp_path / "new.csv", index=False)
    run("fit", tmp_path / "new.csv", "--time-column", "Zeit", "--drop", "Auftrag", "--out", tmp_path / "m.rk")
    run("report", tmp_path / "m.rk", tmp_path / "new.csv", "--out", tmp_path / "page.html")
    assert data_of(tmp_path / "page.html")["time"]["at"] == [moment.timestamp() * 1000 for moment in new["Zeit"]]
    new.assign(Zeit="some time").to_csv(tmp_path / "new.csv", index=False)  # no dates, no chart
    run("report", tmp_path / "m.rk", tmp_path / "new.csv", "--out", tmp_path / "page.html")
    assert data_of(tmp_path / "page.html")["time"] is None


def test_a_report_of_a_data_frame_says_what_the_command_says_of_its_file(folder, tmp_path):
    model, new = load_table_model(folder / "model.rk").model, read_csv(folder / "new.csv")
    page = rk.report(model, new).save(tmp_path / "page.html")
    ours, theirs = data_of(page), data_of(folder / "page.html")
    for name in ("thresholds", "scores", "rows", "columns", "normal_rows"):
        assert ours[name] == theirs[name]
    assert 'id="worst"' not in rk.report(model).html


def test_a_report_in_a_notebook_runs_in_a_frame_of_its_own(hostile, browser, tmp_path, monkeypatch):
    frame = read_csv(hostile.parent / "a<b>&.csv", dtype={"extra": str})
    page = rk.report(load_table_model(hostile.parent / "m.rk").model, frame)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!DOCTYPE html><meta charset=utf-8><p>before</p>{page._repr_html_()}<p>after</p>")
    browser.open(notebook, 1000)
    assert browser.run("window.attacked") is None
    assert browser.run("document.querySelectorAll('script').length") == 0
    assert browser.run("Array.from(document.querySelectorAll('p')).map(p => p.textContent)") == ["before", "after"]
    assert browser.run("document.querySelector('iframe').srcdoc") == page.html
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert page.open().read_text(encoding="utf-8") == page.html
    assert opened[0].startswith("file:")


def test_a_report_needs_a_table_detector_and_a_name_that_ends_in_html(folder, tmp_path, monkeypatch):
    model = load_table_model(folder / "model.rk").model
    with pytest.raises(TypeError, match=r"SVDD is not a TableDetector. .*rk.TableDetector"):
        rk.report(rk.SVDD().fit(np.eye(3)), None)
    with pytest.raises(TableError, match=r"page.pdf: the name of the page must end in .html"):
        rk.report(model).save(tmp_path / "page.pdf")
    monkeypatch.setattr("refkernel.pages.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "refkernel\[report\]"'):
        rk.report(model)
