"""What the documentation shows must run."""

import doctest
import importlib
import inspect
import itertools
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import refkernel

MODULES = [
    "refkernel",
    *(module.name for module in pkgutil.walk_packages(refkernel.__path__, "refkernel.") if "__main__" not in module.name),
]
PUBLIC_MODULES = ["refkernel", *(f"refkernel.{name}" for name in refkernel.__all__ if inspect.ismodule(getattr(refkernel, name)))]
ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "docs" / "promises.md", ROOT / "docs" / "explanations.md"]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """A page's Python blocks run one after the other, in one namespace and any folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert blocks
    namespace = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), namespace)


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
