"""What the documentation shows must run."""

import doctest
import importlib
import inspect
import itertools
import pkgutil
import re
import shlex
import tomllib
import warnings
from pathlib import Path

import pytest

import refkernel

MODULES = [
    "refkernel",
    *(module.name for module in pkgutil.walk_packages(refkernel.__path__, "refkernel.") if "__main__" not in module.name),
]
PUBLIC_MODULES = ["refkernel", *(f"refkernel.{name}" for name in refkernel.__all__ if inspect.ismodule(getattr(refkernel, name)))]
ROOT = Path(__file__).parent.parent
MADE = {"_build", "api", "gallery"}
"""Folders of docs/ that a build makes."""
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not MADE & set(page.parts))]
PYTHON = re.compile(r"^```python\n(.*?)^```(?:\n+```text\n(.*?)^```)?", flags=re.MULTILINE | re.DOTALL)
"""A block of Python, and the block of text below it."""
CONSOLE = re.compile(r"^```console\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
QUICK = {"fit", "score", "inspect", "plot"}
"""Commands that run in tests; of others only the options are checked."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_run_as_printed(name):
    """Every >>> in a docstring gives what stands under it."""
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0


def test_public_classes_have_an_example_each():
    """A class that users import from refkernel shows how it is used."""
    classes = [name for name in refkernel.__all__ if inspect.isclass(getattr(refkernel, name))]
    used = [name for name in classes if not issubclass(getattr(refkernel, name), Exception)]
    assert "SVDD" in used
    assert [name for name in used if ">>>" not in (getattr(refkernel, name).__doc__ or "")] == []


def test_everything_public_exists_and_is_documented():
    """Each name of __all__ can be imported and says what it is."""
    assert [name for name in refkernel.__all__ if not getattr(refkernel, name).__doc__] == []


def _with(pattern):
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES if pattern.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", _with(PYTHON))
def test_code_of_a_page_runs_and_prints_what_stands_below_it(page, tmp_path, monkeypatch, capsys):
    """A page's Python blocks run one after the other, in one namespace and any folder, without a warning."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace = {}
    for block, printed in PYTHON.findall(page.read_text(encoding="utf-8")):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            exec(compile(block, page.name, "exec"), namespace)
        assert capsys.readouterr().out == printed


@pytest.mark.parametrize("page", _with(CONSOLE))
def test_commands_of_a_page_run_and_say_what_stands_below_them(page, tmp_path, monkeypatch):
    """``refkernel fit`` and its like run on a table; the lines shown below a command are among what it says, … aside."""
    runner, app = pytest.importorskip("typer.testing").CliRunner(), importlib.import_module("refkernel.cli").app
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    table = Path(refkernel.datasets.__file__).parent / "data" / "seeds.csv"
    for name in ("seeds.csv", "normal.csv", "today.csv", "tomorrow.csv"):
        Path(name).write_text(table.read_text(encoding="utf-8"), encoding="utf-8")
    for command, shown in _commands(page):
        done = runner.invoke(app, command if command[0] in QUICK else [command[0], "--help"])
        assert done.exit_code == 0, done.output
        if command[0] in QUICK:
            assert [line for line in shown if line not in done.output] == []
        else:
            assert [word for word in command if word.startswith("--") and word not in done.output] == []


def _commands(page):
    """Each ``$ refkernel …`` of a page as words, with the lines below it."""
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *shown = part.rstrip().splitlines()
            words = shlex.split(line, comments=True)
            if words[0] == "refkernel":
                yield words[1:], [text for text in shown if text.strip() not in ("", "…")]


def test_the_readme_is_for_one_minute():
    """Under 500 words, one picture, one table, six lines of Python that matter, three commands."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) < 500
    assert len(re.findall(r"!\[", text)) == 1
    assert len(re.findall(r"^\|---", text, flags=re.MULTILINE)) == 1
    assert len([line for line in PYTHON.search(text).group(1).splitlines() if line.strip()]) <= 6
    assert len(list(_commands(ROOT / "README.md"))) == 3


def test_every_public_name_has_an_example():
    """A class or function that users may import is shown in its docstring, or in the gallery, or is an error or a warning."""
    gallery = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.py"))
    modules = [importlib.import_module(name) for name in PUBLIC_MODULES]
    things = {(name, thing) for module in modules for name in module.__all__ if callable(thing := getattr(module, name))}
    named = {name: thing for name, thing in things if inspect.isclass(thing) or inspect.isfunction(thing)}
    shown = [name for name, thing in named.items() if ">>>" in (thing.__doc__ or "") or re.search(rf"\b{name}\b", gallery)]
    raised = [name for name, thing in named.items() if inspect.isclass(thing) and issubclass(thing, Exception)]
    assert len(shown) > 50
    assert sorted(set(named) - set(shown) - set(raised)) == []


def test_every_test_that_security_md_names_exists():
    """A promise without its test is only a sentence."""
    root = Path(__file__).parents[1]
    named = set(re.findall(r"`(test_\w+)`", (root / "SECURITY.md").read_text(encoding="utf-8")))
    written = {
        name for path in (root / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert named <= written


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_dir_shows_the_public_names_and_nothing_else(name):
    """Completion offers what users may import: to_onnx too, and neither modules of ours nor names of other packages."""
    module = importlib.import_module(name)
    assert sorted(dir(module)) == sorted([*module.__all__, *(["__version__"] if name == "refkernel" else [])])
    assert all(hasattr(module, public) for public in module.__all__)


def test_the_drawing_of_the_rooms_is_the_import_contract():
    """Every room of the contract is drawn, no other is, and none stands above a room that may import it."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]
    layers = [re.findall(r"refkernel\.(\w+)", layer) for layer in contract["layers"]]
    drawing = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    nodes = [label.split(" · ") for label in re.findall(r'^    \w+\["(.*?)(?:<br/>.*)?"\]$', drawing, flags=re.MULTILINE)]
    height = {room: number for number, node in enumerate(nodes) for room in node}
    assert sorted(height) == sorted(room for layer in layers for room in layer)
    for above, below in itertools.pairwise(layers):
        assert max(height[room] for room in above) <= min(height[room] for room in below)
