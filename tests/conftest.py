"""What several test modules share; helpers are fixtures, because tests are imported one by one (importlib mode)."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
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


class Browser:
    """Headless Chromium driven over the DevTools protocol's pipe (messages end with a zero byte): no driver, no package."""

    QUIET = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    )

    def __init__(self, program, folder):
        (theirs_in, self.out), (self.inp, theirs_out) = os.pipe(), os.pipe()
        command = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        arguments = [*self.QUIET, f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", command, program, *arguments],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.events, self.rest, self.count, self.session = [], b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params} | ({"sessionId": self.session} if self.session else {})
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while (reply := self.receive()).get("id") != self.count:
            self.events.append(reply)
        assert "error" not in reply, reply
        return reply["result"]

    def receive(self):
        while b"\0" not in self.rest:
            chunk = os.read(self.inp, 1 << 16)
            assert chunk, "Chromium has ended"
            self.rest += chunk
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, width, scheme="light"):
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def run(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def complaints(self):
        bad = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [event for event in self.events if event.get("method") in bad]

    def requested(self):
        return [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]

    def close(self):
        os.write(self.out, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        os.close(self.out)
        os.close(self.inp)

    def screenshot(self, path):
        """A picture of the whole page, for people who look at it."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]))


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; tests that need it are skipped where there is none."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no Chromium (chromium, chromium-browser or google-chrome) on the path")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        chromium = Browser(program, folder)
        yield chromium
        chromium.close()
        time.sleep(0.1)  # its helpers write their last files
