"""Compiled code: cached where it can be, compiled in memory where not, never older than its source, and never read from a damaged file."""

import ast
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import refkernel
import refkernel as rk
from refkernel._core import jit

PACKAGE = Path(refkernel.__file__).parent
INNER = "from .jit import njit\n\n@njit()\ndef inner():\n    return 1\n"
OUTER = "from .jit import entry, njit\nfrom .inner import inner\n\n@entry\n@njit()\ndef outer():\n    return 10 * inner()\n"
CALL = 'import warnings; warnings.simplefilter("always"); from small.outer import outer; print(outer())'


def run(code, folder, *before, **environment):
    """What the code prints, the compilations that numba saved and loaded, and stderr, in a fresh process that imports from the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHONPATH"))}
    settings = {"PYTHONPATH": str(folder), "NUMBA_DEBUG_CACHE": "1"} | environment
    result = subprocess.run([*before, sys.executable, "-B", "-c", code], env=kept | settings, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    saved, loaded = (result.stdout.count(f"[cache] data {word}") for word in ("saved", "loaded"))
    printed = [line for line in result.stdout.splitlines() if not line.startswith("[cache]")]
    return " ".join(printed), saved, loaded, result.stderr


@pytest.fixture
def package(tmp_path):
    """A package of two jitted files, one of which calls the other, with the library's own ``jit``."""
    folder = tmp_path / "small"
    folder.mkdir()
    shutil.copy(PACKAGE / "_core" / "jit.py", folder)
    for name, source in (("__init__", ""), ("inner", INNER), ("outer", OUTER)):
        (folder / f"{name}.py").write_text(source)
    return folder


def test_an_empty_cache_is_filled_once(package):
    """The first process compiles, later ones load; seals stand beside the files."""
    assert run(CALL, package.parent) == ("10", 2, 0, "")
    assert run(CALL, package.parent) == ("10", 0, 1, "")
    files = list((package / "__pycache__").glob("*.nb[ci]"))
    assert len(files) == 4
    assert all(file.with_name(file.name + ".sha256").is_file() for file in files)


LOOSE = """from .jit import entry, njit

@njit()
def rounded(x):
    return (x + 6755399441055744.0) - 6755399441055744.0

@entry
@njit(fastmath=True)
def loose(x):
    return rounded(x)

@entry
@njit()
def exact(x):
    return rounded(x)
"""


@pytest.mark.parametrize("order", ["loose exact", "exact loose"])
def test_a_callee_is_compiled_by_its_own_options_whoever_calls_it_first(package, order):
    """numba gives a callee without the option ``fastmath`` that of the caller which is compiled first; rounding by a sum would be lost."""
    (package / "loose.py").write_text(LOOSE)
    first, second = order.split()
    code = f"from small.loose import {first}, {second}; print({first}(0.3), {second}(0.3), exact(0.7))"
    assert run(code, package.parent)[0] == "0.0 0.0 1.0"


def test_the_first_call_of_an_installation_may_be_a_prediction(tmp_path):
    """A saved model decides with an empty cache as where it was fitted: sums of kernel values are compiled first there."""
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = rk.SVDD(rk.RBF(1.0)).fit(X)
    rk.save(model, tmp_path / "model.rk")
    np.save(tmp_path / "X.npy", X)
    code = "import numpy as np, refkernel as rk; print(*rk.load('model.rk').score_samples(np.load('X.npy')))"
    found = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    np.testing.assert_allclose(np.array(found.stdout.split(), dtype=float), model.score_samples(X), rtol=1e-12)


def test_a_change_in_one_jitted_file_reaches_the_functions_of_the_others(package):
    """Code that was compiled with the old callee is not used again."""
    run(CALL, package.parent)
    (package / "inner.py").write_text(INNER.replace("return 1", "return 2"))
    assert run(CALL, package.parent) == ("20", 2, 0, "")
    assert run(CALL, package.parent) == ("20", 0, 1, "")


def test_code_without_bounds_checks_is_not_used_where_they_are_asked_for(package):
    """numba's own key leaves them out, so that a run with the checks might test nothing."""
    run(CALL, package.parent)
    assert run(CALL, package.parent, NUMBA_BOUNDSCHECK="1") == ("10", 2, 0, "")


def emptied(content):
    return b""


def garbled(content):
    return bytes(reversed(content))


def flipped(content):
    return content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 16]) + content[len(content) // 2 + 1 :]


@pytest.mark.parametrize("damage", [emptied, garbled, flipped])
@pytest.mark.parametrize("kind", ["nbi", "nbc", "sha256"])
def test_a_damaged_cache_costs_one_compilation(package, damage, kind):
    """Indices, compiled code and seals: no traceback, no wrong answer, and the next process finds whole files."""
    run(CALL, package.parent)
    for file in (package / "__pycache__").glob(f"*.{kind}"):
        file.write_bytes(damage(file.read_bytes()))
    answer, saved, loaded, said = run(CALL, package.parent)
    assert (answer, loaded, said) == ("10", 0, "")
    assert saved == 2
    assert run(CALL, package.parent) == ("10", 0, 1, "")


def test_two_processes_may_fill_one_cache_at_once(package):
    """Both answer, and a third finds what they left."""
    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    both = [subprocess.Popen([sys.executable, "-c", CALL], env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["10\n", "10\n"]
    assert [process.returncode for process in both] == [0, 0]
    run(CALL, package.parent)
    assert run(CALL, package.parent) == ("10", 0, 1, "")


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
    """Neither the package's folder nor the home: the import is silent, the first call says what it costs, and a given folder is used."""
    package.chmod(0o555)
    answer, saved, loaded, said = run(CALL, package.parent, *nobody, HOME="/nonexistent")
    assert (answer, saved, loaded) == ("10", 0, 0)
    assert said.count("Compiled code cannot be cached") == 1
    assert "NUMBA_CACHE_DIR" in said
    assert run("import small.outer", package.parent, *nobody, HOME="/nonexistent") == ("", 0, 0, "")
    given = package.parent / "given"
    given.mkdir(mode=0o777)
    given.chmod(0o777)
    for saved in (2, 0):
        assert run(CALL, package.parent, *nobody, HOME="/nonexistent", NUMBA_CACHE_DIR=str(given))[:2] == ("10", saved)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are POSIX's")
def test_a_full_disk_costs_a_warning(package):
    """Functions are compiled and called, though no file can hold their code; one warning says why."""
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); "
    printed, saved, _, said = run(full + CALL, package.parent)
    assert (printed, saved) == ("10", 0)
    assert said.count("Compiled code cannot be cached") == 1


def test_a_cache_that_cannot_be_read_is_compiled_again(package, nobody):
    """Whoever may write the folder, but not read its files, replaces them."""
    run(CALL, package.parent)
    cache = package / "__pycache__"
    cache.chmod(0o777)
    for file in cache.glob("*.nbi"):
        file.chmod(0)
    assert run(CALL, package.parent, *nobody)[::3] == ("10", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "lines"), [(Terminal(), 1), (io.StringIO(), 0)], ids=["terminal", "file"])
def test_compiling_is_announced_once_at_a_terminal(stream, lines, monkeypatch):
    """To a person, and not to a file."""
    monkeypatch.setattr(jit, "_announced", False)
    monkeypatch.setattr(sys, "stderr", stream)
    for _ in range(2):
        jit.entry(jit.njit()(lambda x: x + 1))(1)
    assert stream.getvalue().count(jit.NOTICE) == lines


def test_numba_is_used_by_its_public_names_and_by_the_core_only():
    """No module of ``numba.core``, no private name; jitted functions stand in the core, and are at most 40."""
    jitted = 0
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module and not node.level]
        assert not any(name.startswith(("numba.", "llvmlite")) for name in names), path
        assert "numba" not in names or path == PACKAGE / "_core" / "jit.py"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                jitted += any("njit" in ast.unparse(decorator) for decorator in node.decorator_list)
    assert 0 < jitted <= 40
