"""The scoring service of examples/service answers real requests."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import refkernel as rk

FOLDER = Path(__file__).parents[1] / "examples" / "service"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the examples are in a checkout only, not in the wheel")


def ask(url, rows=None):
    data = None if rows is None else json.dumps(rows).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 10**6, 300), unit="s")
    return rk.TableDetector().fit(pd.DataFrame({"when": when, "machine": rng.choice(["saw", "press"], 300), "flow": rng.normal(5, 1, 300)}))


@pytest.fixture(scope="module")
def url(model, tmp_path_factory):
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    path = tmp_path_factory.mktemp("service") / "model.rk"
    model.save(path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(FOLDER), "--port", str(port), "--log-level", "warning", "app:app"]
    with subprocess.Popen(command, env={**os.environ, "MODEL": str(path)}) as service:
        address = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                ask(f"{address}/health")
                break
            except OSError:
                assert service.poll() is None, "the service ended"
                time.sleep(0.2)
        yield address
        service.terminate()


def test_answers_are_those_of_the_model(url, model):
    rows = [
        {"when": "2026-01-05T10:00:00", "machine": "saw", "flow": 5.1},
        {"when": "2026-01-05T10:00:00", "machine": "press", "flow": 50.0},
        {"when": None, "machine": "press", "flow": None},
    ]
    status, found = ask(f"{url}/score", rows)
    frame = pd.DataFrame(rows).assign(when=lambda frame: pd.to_datetime(frame.when))
    assert status == 200
    assert [row["label"] for row in found] == model.predict(frame).tolist()
    assert [row["p_value"] for row in found] == model.p_values(frame).tolist()
    assert found[0]["reasons"] == []
    assert any("flow = 50" in reason for reason in found[1]["reasons"])


def test_health_says_what_is_promised(url):
    assert ask(f"{url}/health")[1]["training_rows"] == 300


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([{"machine": "saw"}], "flow"),
        ([{"when": "?", "machine": "saw", "flow": 1.0}], "?"),
        ([{"when": None, "machine": "saw", "flow": 10**400}], "too large"),
    ],
)
def test_rows_that_cannot_be_scored_are_named(url, rows, names):
    status, found = ask(f"{url}/score", rows)
    assert status == 422
    assert names in found["detail"]


def test_no_rows_are_no_answers(url):
    assert ask(f"{url}/score", []) == (200, [])


def test_requests_at_the_same_time_get_the_answers_of_one(url):
    row = [{"when": "2026-01-05T10:00:00", "machine": "saw", "flow": 6.5}]
    alone = ask(f"{url}/score", row)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == alone for found in pool.map(lambda _: ask(f"{url}/score", row), range(40)))


@pytest.mark.parametrize("make", [lambda frame: rk.TableDetector(rk.SVDD()).fit(frame), lambda frame: rk.AutoDetector().fit(frame)])
def test_a_model_that_cannot_answer_is_refused_at_the_start(make, tmp_path):
    pytest.importorskip("fastapi")
    rk.save(make(pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])), tmp_path / "m.rk")
    run = subprocess.run([sys.executable, str(FOLDER / "app.py")], env={**os.environ, "MODEL": str(tmp_path / "m.rk")}, capture_output=True)
    assert run.returncode == 1
    assert b"is not a TableDetector with p-values" in run.stderr


def dockerfile():
    """Its instructions, in order, each on one line."""
    lines = (FOLDER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    return [line.split(" ", 1) for line in lines if line and not line.startswith("#")]


def test_the_dockerfile_has_the_commands_of_the_guide_and_names_files_and_extras_that_exist():
    root, steps = FOLDER.parents[1], dockerfile()
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    guide = (root / "docs" / "guide" / "deployment.md").read_text(encoding="utf-8")
    commands = [line[2:].split("      (")[0] for line in text.splitlines() if line.startswith("# docker")]
    assert len(commands) == 2
    for command in commands:
        assert f"$ {command}" in guide
        assert (" -f " not in command) or (root / command.split(" -f ")[1].split()[0]).is_file()
    install = next(step for name, step in steps if name == "RUN" and step.startswith("pip"))
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(re.search(r"/source\[(.*?)\]", install)[1].split(",")) <= set(extras)
    assert "/source/examples/service/app.py /app.py" in install
    ignored = (root / ".dockerignore").read_text(encoding="utf-8").split()
    assert not {"src", "examples", "pyproject.toml", "README.md", "LICENSE"} & set(ignored)


@pytest.mark.skipif(os.name != "posix", reason="the image is one of Linux")
def test_the_cache_of_the_image_serves_a_container_that_can_write_in_tmp_alone(tmp_path):
    """The warm-up and the start of the Dockerfile, with its folders moved: the service finds the compiled code and compiles nothing."""
    steps, cache, copy = dockerfile(), tmp_path / "cache", tmp_path / "tmp" / "cache"
    warm = next(step for name, step in steps if name == "RUN" and "python -c" in step).replace("/cache", str(cache))
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(["sh", "-c", warm], env=env, check=True)
    copy.parent.mkdir()
    *_, command = json.loads(next(step for name, step in steps if name == "CMD"))
    assert {"ENV", "NUMBA_CACHE_DIR=/tmp/cache"} <= {part for step in steps for part in step}
    start, serve = command.replace("/cache /tmp/cache", f"{cache} {copy}").split(" && exec ")
    subprocess.run(["sh", "-c", start], env=env, check=True)
    assert serve.startswith("uvicorn ")
    code = """if True:
        import numpy as np, pandas as pd, refkernel as rk
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=list('abc'))
        model = rk.TableDetector().fit(frame); model.p_values(frame); model.reasons(frame)
    """
    before = sorted(path.name for path in copy.rglob("*.nbc"))
    subprocess.run([sys.executable, "-c", code], env=env | {"NUMBA_CACHE_DIR": str(copy)}, check=True)
    assert before == sorted(path.name for path in copy.rglob("*.nbc"))
    assert before
