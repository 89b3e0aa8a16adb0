"""The scoring service of examples/service answers real requests."""

import json
import os
import socket
import subprocess
import sys
import time
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


@pytest.mark.parametrize(("rows", "names"), [([{"machine": "saw"}], "flow"), ([{"when": "?", "machine": "saw", "flow": 1.0}], "?")])
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
