"""The examples run as they stand, each in a Python of its own, and keep the form of a gallery."""

import ast
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.py"))

EXTRAS = {"plot_deployment_onnx.py": {"skops", "skl2onnx", "onnx", "onnxruntime"}, "plot_mixed_types.py": {"pandas"}}
"""What an example needs besides matplotlib, which all do."""

WARNINGS = (
    "error",
    "ignore::DeprecationWarning",  # of one dependency by another: no fault of the example
    "ignore::PendingDeprecationWarning",
    "error::DeprecationWarning:__main__",
    "ignore:FigureCanvasAgg is non-interactive",  # plt.show() without a screen
    "ignore:Could not find the number of physical cores",  # joblib's, in containers that do not show the processor
)
"""Rules of python -W, of which the last that fits counts."""

RUN_AND_COUNT = """
import runpy, sys
runpy.run_path(sys.argv[1], run_name="__main__")
import matplotlib.pyplot as plt
print(f"figures: {len(plt.get_fignums())}")
"""
"""Runs a script as ``python script`` does, and then tells how many figures it has left open."""

AT_A_TIME = 2
"""Most of an example's time is importing: two together keep two cores busy."""

TIMEOUT = 300
"""Seconds. An example takes some; this ends one that hangs, on a busy machine as well."""

NOT_OURS = {".ses"}
"""onnxruntime leaves this among the temporary files when it is imported."""

LONGEST = 80
"""Lines of an example: what is longer is no example."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """By name, the run of a copy of each example (a future) and the empty folder that it works in."""
    root = tmp_path_factory.mktemp("examples_root")
    shutil.copytree(FOLDER, root / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "docs").mkdir()  # plot_first_steps.py draws its picture into the docs beside its folder
    pool = ThreadPoolExecutor(AT_A_TIME)
    yield {name: _start(pool, root / "examples" / name, tmp_path_factory.mktemp("work")) for name in EXAMPLES if not _missing(name)}
    pool.shutdown(cancel_futures=True)


def _start(pool, script, work):
    environment = {**os.environ, "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(work), "PYTHONIOENCODING": "utf-8"}
    rules = [part for rule in WARNINGS for part in ("-W", rule)]
    command = [sys.executable, *rules, "-c", RUN_AND_COUNT, str(script)]
    run = pool.submit(
        subprocess.run, command, cwd=work, env=environment, capture_output=True, encoding="utf-8", timeout=TIMEOUT, check=False
    )
    return run, work


def _missing(name):
    """The modules of extras that an example needs and that are not here."""
    return sorted(module for module in {"matplotlib"} | EXTRAS.get(name, set()) if find_spec(module) is None)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_without_a_warning_says_something_and_draws(name, runs):
    """Exit code 0 with warnings as errors, something printed, a figure drawn; nothing is left in the folder or among temporary files."""
    if _missing(name):
        pytest.skip(f"{name} needs {', '.join(_missing(name))}")
    run, work = runs[name]
    done = run.result()
    assert done.returncode == 0, done.stderr
    *said, figures = done.stdout.splitlines()
    assert any(line.strip() for line in said)
    assert int(figures.removeprefix("figures: ")) >= 1
    assert {path.name for path in work.iterdir()} <= NOT_OURS


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_the_form_of_a_gallery(name):
    """A title underlined by =, blocks that begin with # %%, and few lines."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    _, title, underline, *_ = ast.get_docstring(ast.parse(text), clean=False).splitlines()
    assert title
    assert underline == "=" * len(title)
    assert "\n# %%\n# " in text
    assert len(text.splitlines()) < LONGEST


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_uses_public_names_only(name):
    """No name, attribute, keyword or module that it uses begins with an underscore, but for _ itself and Python's own."""
    nodes = list(ast.walk(ast.parse((FOLDER / name).read_text(encoding="utf-8"))))
    used = [part for node in nodes for part in _names(node)]
    assert used
    assert [part for part in used if part.startswith("_") and part != "_" and not part.startswith("__")] == []


def _names(node):
    """The names that one node of a syntax tree mentions, in parts."""
    if isinstance(node, ast.ImportFrom):
        return [*(node.module or "").split("."), *(alias.name for alias in node.names)]
    if isinstance(node, ast.Import):
        return [part for alias in node.names for part in alias.name.split(".")]
    return [value for field in ("id", "attr", "arg") if isinstance(value := getattr(node, field, None), str)]
