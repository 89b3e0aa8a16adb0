"""What several test modules share; helpers are fixtures, because tests are imported one by one (importlib mode)."""

import os
import threading
import warnings
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 (its BLAS must be loaded to be limited)
from threadpoolctl import threadpool_limits

import refkernel as rk

threadpool_limits(1, user_api="blas")  # the problems are small and the tests run in parallel: threads would only wait for each other

TASKS = ("iris_1", "seeds_2", "sonar_1")


@pytest.fixture(scope="session")
def golden():
    """The outputs of the authors' own code by task, with samples in rows: {task: {name: array}}."""
    if "REFKERNEL_DATA" not in os.environ:
        pytest.skip("the golden vectors are found through REFKERNEL_DATA (the data folder next to golden/), which is not set")
    folder = Path(os.environ["REFKERNEL_DATA"]).parent / "golden"
    vectors = {}
    for task in TASKS:
        with np.load(folder / f"{task}.npz") as arrays:
            named = {name.removeprefix("s1_"): arrays[name] for name in arrays.files}
        vectors[task] = {name: a.T if name in ("Xtrain", "Xneg", "Xtest") or name.endswith("_R") else a for name, a in named.items()}
    return vectors


@pytest.fixture
def samples():
    """samples(n, d, seed): n draws of a correlated normal distribution with one heavy-tailed feature."""

    def draw(n, d, seed, offset=0.0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
        X[:, 0] *= np.exp(0.3 * rng.normal(size=n))
        return X + offset

    return draw


@pytest.fixture
def quiet():
    """quiet(function, *args): the function's result, after asserting that it warned of nothing (but of far samples)."""

    def call(function, *args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", rk.FarSamplesWarning)  # true of many models here, and tested on its own
            return function(*args, **kwargs)

    return call


@pytest.fixture
def warned():
    """warned(function, *args): the function's result and the list of the warnings' classes."""

    def call(function, *args, **kwargs):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            result = function(*args, **kwargs)
        return result, [w.category for w in record if w.category is not rk.FarSamplesWarning]  # tested on its own

    return call


@pytest.fixture
def same_decisions():
    """same_decisions(a, b, X, rtol): assert that two fitted models give equal decision values, relative to their range."""

    def check(a, b, X, rtol):
        expected, got = a.decision_function(X), b.decision_function(X)
        assert np.isfinite(expected).all()
        assert np.ptp(expected) > 0
        np.testing.assert_allclose(got, expected, rtol=0, atol=rtol * np.ptp(expected))

    return check


@pytest.fixture
def little_room():
    """with little_room(n_bytes): no file may grow beyond that; a write takes what fits and then fails, as on a full disk."""
    resource = pytest.importorskip("resource", reason="limits on the size of files are POSIX only")

    @contextmanager
    def limit(n_bytes):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limit


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's ``mood`` says."""

    def do_GET(self):
        self.server.asked.append(self.path)
        content, mood = self.server.content, self.server.mood
        if mood == "404":
            return self.send_error(404)
        if mood == "500":
            return self.send_error(500)
        if mood == "wrong bytes":
            content = content[:-1] + b"?"
        if mood == "empty":
            content = b""
        cut = mood in ("cut", "stalls")
        self.send_response(200)
        if mood != "cut, no length":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut or mood == "cut, no length" else content)
        self.wfile.flush()
        if mood == "stalls":
            self.server.woken.wait(5)

    def log_message(self, *args):
        pass


@pytest.fixture
def local_server(monkeypatch):
    """local_server(content): a server that has one file under any name; ``url``, the paths ``asked`` for, and ``mood``: how it behaves."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.mood, server.asked, server.woken = "good", [], threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def serve(content):
        server.content = content
        return server

    yield serve
    server.woken.set()
    server.shutdown()
    thread.join()
    server.server_close()
