"""Compiled code: cached where it can be, compiled in memory where not, and never older than its source."""

import ast
import errno
import gc
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import refkernel
from refkernel import _jit
from refkernel._jit import cache, compiler, notice

PACKAGE = Path(refkernel.__file__).parent
INNER = "from ._jit import njit\n\n@njit()\ndef inner():\n    return 1\n"
OUTER = "from ._jit import njit\nfrom .inner import inner\n\n@njit()\ndef outer():\n    return 10 * inner()\n"
CALL = """
import warnings
warnings.simplefilter("always")
from small.outer import outer
print(outer(), sum(outer.stats.cache_hits.values()))
"""
DISK_IS_FULL = """
import os, numba.core.caching as caching
def full(self, obj):
    raise OSError(28, "No space left on device")
caching.IndexDataCacheFile._dump = full
"""


def run(code, folder, *before, **environment):
    """What the code prints, and what it says on stderr, in a fresh process that imports from the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHONPATH"))}
    result = subprocess.run(
        [*before, sys.executable, "-B", "-c", code], env=kept | {"PYTHONPATH": str(folder)} | environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split(), result.stderr


@pytest.fixture
def package(tmp_path):
    """A package of two jitted files, one of which calls the other, and the library's own _jit."""
    folder = tmp_path / "small"
    folder.mkdir()
    shutil.copytree(PACKAGE / "_jit", folder / "_jit", ignore=shutil.ignore_patterns("__pycache__"))
    for name, source in (("__init__", ""), ("inner", INNER), ("outer", OUTER)):
        (folder / f"{name}.py").write_text(source)
    return folder


def test_a_change_in_one_jitted_file_reaches_the_functions_of_the_others(package):
    """Code that was compiled with the old callee is not used again; where nothing changed, it is."""
    assert run(CALL, package.parent) == (["10", "0"], "")
    assert run(CALL, package.parent) == (["10", "1"], "")
    (package / "inner.py").write_text(INNER.replace("return 1", "return 2"))
    assert run(CALL, package.parent) == (["20", "0"], "")
    assert run(CALL, package.parent) == (["20", "1"], "")


def test_code_without_bounds_checks_is_not_used_where_they_are_asked_for(package):
    """numba's own key leaves them out, so that a run with the checks might test nothing."""
    run(CALL, package.parent)
    assert run(CALL, package.parent, NUMBA_BOUNDSCHECK="1")[0] == ["10", "0"]
    assert run(CALL, package.parent)[0] == ["10", "1"]


def test_damaged_files_of_the_cache_are_replaced(package):
    """A file that was cut off is compiled anew, and then found."""
    run(CALL, package.parent)
    for file in (package / "__pycache__").glob("outer*.nbc"):
        file.write_bytes(file.read_bytes()[:100])
    assert run(CALL, package.parent) == (["10", "0"], "")
    assert run(CALL, package.parent) == (["10", "1"], "")


def test_a_full_disk_is_told_once_and_stops_nothing(package):
    """Both functions fail to be written; one warning names the reason and the way out."""
    found, said = run(DISK_IS_FULL + CALL, package.parent)
    assert found == ["10", "0"]
    assert said.count("Compiled code cannot be cached") == 1
    assert "No space left on device" in said
    assert "NUMBA_CACHE_DIR" in said


@pytest.fixture
def nobody(tmp_path):
    """The command that runs another as a user who owns nothing, where the superuser runs the tests; else nothing is needed."""
    if not hasattr(os, "geteuid"):
        pytest.skip("folders that cannot be written are made with POSIX permissions")
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("the superuser may write everywhere, and setpriv is not there to become another user")
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):  # pytest's own, up to the system's temporary folder
        folder.chmod(folder.stat().st_mode | 0o055)
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*command, sys.executable, "-c", "import numba"], capture_output=True, check=False).returncode:
        pytest.skip("another user may not run this Python")
    return command


def test_nothing_fails_where_no_folder_can_be_written(package, nobody):
    """Neither the package's folder nor the home: the import is silent, the first compilation says so once, and a given folder is used."""
    package.chmod(0o555)
    found, said = run(CALL, package.parent, *nobody, HOME="/nonexistent")
    assert found == ["10", "0"]
    assert said.count("Compiled code cannot be cached") == 1
    assert "NUMBA_CACHE_DIR" in said
    assert run("import small.outer", package.parent, *nobody, HOME="/nonexistent") == ([], "")
    given = package.parent / "given"
    given.mkdir(mode=0o777)
    given.chmod(0o777)
    for hits in ("0", "1"):
        assert run(CALL, package.parent, *nobody, HOME="/nonexistent", NUMBA_CACHE_DIR=str(given)) == (["10", hits], "")


def test_the_library_compiles_where_nothing_can_be_cached(monkeypatch):
    """Where numba finds no folder, a decorated function works, and warns when it is compiled first."""
    monkeypatch.setattr(cache, "_warned", False)
    monkeypatch.setattr(cache._Files, "_locator_classes", [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double = _jit.njit(nogil=True)(lambda x: 2 * x)
    with pytest.warns(RuntimeWarning, match=r"no locator available.*NUMBA_CACHE_DIR") as record:
        assert (double(2), double(2.5)) == (4, 5.0)
    assert len(record) == 1


def test_a_full_disk_leaves_the_function_compiled(monkeypatch):
    """Inside one process too: the answer is there, the warning comes once."""
    monkeypatch.setattr(cache, "_warned", False)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache.FunctionCache, "save_overload", full)
    triple = _jit.njit()(lambda x: 3 * x)
    with pytest.warns(RuntimeWarning, match=os.strerror(errno.ENOSPC)) as record:
        assert (triple(2), triple(2.5)) == (6, 7.5)
    assert len(record) == 1


@pytest.fixture
def patient(monkeypatch):
    """The library's own patience, which conftest.py takes away, for functions that no earlier run has left in a cache."""
    monkeypatch.setattr(compiler, "patience", 1.0)
    monkeypatch.setattr(compiler, "cache_of", lambda function: cache._InMemory(OSError()))
    monkeypatch.setattr(cache, "_warned", True)


def total(values):
    """A sum that can be compiled and interpreted."""
    found = 0.0
    for t in range(values.size):
        found += values[t]
    return found


def test_small_calls_are_interpreted_and_large_ones_compiled(patient):
    """The number of entries decides; both give the same sum."""
    function = _jit.njit(interpreted=compiler.Interpreted(10, 1e9))(total)
    assert (function(np.ones(10)), function.signatures) == (10.0, [])
    assert type(function(np.ones(10))) is float  # as compiled code returns it
    assert (function(np.ones(11)), len(function.signatures)) == (11.0, 1)


def test_a_function_is_compiled_once_interpreting_it_has_cost_its_seconds(patient):
    """The first call takes more than the limit of nearly nothing, so that the second is compiled."""
    function = _jit.njit(interpreted=compiler.Interpreted(1e9, 1e-12))(total)
    function(np.ones(1000))
    assert function.signatures == []
    function(np.ones(1000))
    assert len(function.signatures) == 1


def test_time_of_functions_called_inside_does_not_count():
    """Not to the outer one: most of the time is spent inside."""
    with compiler._own_time() as outer, compiler._own_time() as inner:
        sum(range(1_000_000))
    assert 0.0 <= outer.seconds < inner.seconds


def test_compiled_code_of_the_cache_is_used_for_small_calls_too(package):
    """Interpreted as long as nothing was compiled; found in the cache afterwards."""
    (package / "outer.py").write_text(OUTER.replace("import njit", "import LOOP, njit").replace("@njit()", "@njit(interpreted=LOOP)"))
    count = "\nprint(len(outer.signatures))"
    assert run(CALL + count, package.parent)[0] == ["10", "0", "0"]
    assert run("import small._jit.compiler as c; c.patience = 0" + CALL + count, package.parent)[0] == ["10", "0", "1"]
    assert run(CALL + count, package.parent)[0] == ["10", "1", "1"]


FITS = """
import json, warnings
import numpy as np
import refkernel as rk
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 3)), np.repeat([1, -1], [50, 10])
models = [
    rk.SVDD(rk.RBF(scale=1.0), nu=0.1).fit(X),
    rk.OneClassSVM(nu=0.3, threshold="loo").fit(X),
    rk.OneClassSVM(rk.RBF(scale=1.0), nu=0.5, stopping="libsvm").fit(X),
    rk.SVDD(rk.RBF(scale=0.5), nu=0.2, negatives="repel").fit(X, y),
    rk.OneClassGridSearch(rk.SVDD(rk.RBF()), {"nu": [0.1, 0.5], "kernel__scale": [0.3, 1.0]}, random_state=0).fit(X, y),
    rk.OneClassGridSearch(
        rk.OneClassSVM(rk.ReferenceKernel(references="case5")), {"nu": [0.1, 0.5], "kernel__kernel__scale": [0.3, 1000.0]}, random_state=0
    ).fit(X, y),
]
found = [model.decision_function(X).tolist() for model in models]
"""
INTERPRETED = (
    "import refkernel._jit.compiler as c; c.patience = 1e9"
    + FITS
    + "from refkernel._dual import solver, whole\nprint(len(whole.solve_whole.signatures), json.dumps(found, separators=(',', ':')))"
)


def test_interpreted_and_compiled_code_find_the_same_models(tmp_path):
    """One process interprets all that it may, with an empty cache; this one compiles."""
    (compiled, answer), _ = run(INTERPRETED, PACKAGE.parent, NUMBA_CACHE_DIR=str(tmp_path))
    assert compiled == "0"
    here = {}
    exec(FITS, here)
    # the functions that are always compiled may fuse other operations where they are inlined
    np.testing.assert_allclose(json.loads(answer), here["found"], rtol=1e-9, atol=1e-9)


LAPACK = """
import numpy as np, refkernel._jit.compiler as c
c.patience = 0
from refkernel._factor.triangular import cholesky
M = np.eye(20) + 1.0
found = cholesky(M, False)
print(found, M[0, 0] ** 2, sum(cholesky.stats.cache_hits.values()), sum(cholesky.stats.cache_misses.values()))
"""


def test_compiled_code_that_calls_lapack_is_cached(tmp_path):
    """The library lies elsewhere in the memory of every process: code from the cache finds it."""
    for hits, misses in (("0", "1"), ("1", "0")):
        (found, diagonal, *counts), _ = run(LAPACK, PACKAGE.parent, NUMBA_CACHE_DIR=str(tmp_path))
        assert (found, counts) == ("True", [hits, misses])
        assert float(diagonal) == pytest.approx(2.0)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def said(monkeypatch):
    """said(stream): what two compilations that take long write to a stderr of this kind."""
    monkeypatch.setattr(notice, "NOTICE_AFTER", 0.0)
    monkeypatch.setattr(notice.compiling, "_said", False)

    def call(stream):
        monkeypatch.setattr(sys, "stderr", stream)
        for _ in range(2):
            with notice.compiling():
                pass
        return stream.getvalue()

    return call


def test_compiling_for_long_is_announced_once_at_a_terminal(said):
    """One line, and nothing where nobody looks."""
    assert said(Terminal()) == notice.NOTICE + "\n"


def test_nothing_is_announced_to_a_file(said):
    """A program's own output stays as it is."""
    assert said(io.StringIO()) == ""


def test_compiling_for_long_is_logged_where_someone_listens(said, caplog):
    """To the logger "refkernel", and not to the terminal too."""
    with caplog.at_level("INFO", logger="refkernel"):
        assert said(Terminal()) == ""
    assert caplog.messages == [notice.NOTICE]


def test_the_line_comes_while_numba_compiles(monkeypatch):
    """Not afterwards: a thread says it as soon as the time is over."""
    heard = threading.Event()
    monkeypatch.setattr(notice, "NOTICE_AFTER", notice.compiling._seconds + 1e-3)
    monkeypatch.setattr(notice.compiling, "_said", False)
    monkeypatch.setattr(notice, "say", lambda message: heard.set())
    with notice.compiling():
        assert heard.wait(60)


def test_the_garbage_collector_is_left_as_it_was():
    """On if it was on, off if it was off."""
    for switch in (gc.disable, gc.enable):
        switch()
        before = gc.isenabled()
        with notice.compiling():
            assert not gc.isenabled()
        assert gc.isenabled() == before


def jitted_files():
    """Those that the cache's key covers."""
    sources = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    return {path for path, source in sources.items() if "njit" in source or "numba" in source}


def decorated(tree):
    """The functions of a module that are decorated with @njit(…)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(decorator) for decorator in node.decorator_list):
            yield node


def imported_names(path, tree):
    """{name: file of the package that it comes from}."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1]
            file = folder.joinpath(*(node.module or "").split("."))
            for alias in node.names:
                yield alias.asname or alias.name, next((f for f in (file.with_suffix(".py"), file / "__init__.py") if f.exists()), folder)


@pytest.mark.parametrize("path", sorted(jitted_files()), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_jitted_functions_use_only_names_of_jitted_files(path):
    """A constant of another file would be compiled in, and its change would not be seen: it belongs into a jitted file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    foreign = {name for name, file in imported_names(path, tree) if file not in jitted_files()}
    used = {f.name: {n.id for n in ast.walk(f) if isinstance(n, ast.Name)} & foreign for f in decorated(tree)}
    assert {name: names for name, names in used.items() if names} == {}


def test_every_jitted_function_goes_through_our_cache():
    """numba's own decorators are imported by _jit alone."""
    importing = {path.parent.name for path in PACKAGE.rglob("*.py") if "numba" in imported_packages(path)}
    assert importing == {"_jit"}


def imported_packages(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {(node.module or "").split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
