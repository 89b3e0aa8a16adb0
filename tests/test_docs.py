"""What the documentation shows must run."""

import doctest
import gzip
import importlib
import inspect
import itertools
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

import refkernel

MODULES = [
    "refkernel",
    *(module.name for module in pkgutil.walk_packages(refkernel.__path__, "refkernel.") if "__main__" not in module.name),
]
PUBLIC_MODULES = ["refkernel"]
PUBLIC_MODULES += [getattr(refkernel, name).__name__ for name in refkernel.__all__ if inspect.ismodule(getattr(refkernel, name))]
ROOT = Path(__file__).parent.parent
MADE = {"_build", "api", "gallery"}
"""Folders of docs/ that a build makes."""
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not MADE & set(page.parts))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```(?:\n+```text\n(.*?)^```)?", flags=re.MULTILINE | re.DOTALL)
"""A block of Python or of commands, and the block of text below it."""
RUN_ELSEWHERE = {"docs/terminal.md"}
"""Pages with a test of their own."""
TAKEN_FOR_GRANTED = {
    "docs/large_data.md": """
import numpy as np, pandas
table = pandas.DataFrame(np.random.default_rng(0).normal(size=(2000, 3)), columns=["a", "b", "c"])
table.to_parquet("big.parquet"), table.to_csv("big.csv", index=False)
encode, R, batches = pandas.DataFrame.to_numpy, table.to_numpy()[:50], np.split(table.to_numpy(), 4)
""",
}
"""The files and names that a page's reader has, and its test makes up."""
QUICK = {"fit", "score", "inspect", "plot"}
"""Commands that run in tests; of others only the options are checked."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_run_as_printed(name):
    """Every >>> in a docstring gives what stands under it."""
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0


def test_everything_public_exists_and_is_documented():
    """Each name of __all__ can be imported and says what it is."""
    assert [name for name in refkernel.__all__ if not getattr(refkernel, name).__doc__] == []


def _with_blocks():
    names = {str(page.relative_to(ROOT)): page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))}
    return [pytest.param(page, id=name) for name, page in names.items() if name not in RUN_ELSEWHERE]


@pytest.mark.parametrize("page", _with_blocks())
def test_code_and_commands_of_a_page_run_and_say_what_stands_below_them(page, tmp_path, monkeypatch, capsys):
    """A page's blocks run one after the other, in one namespace and an empty folder; what is shown below a block is what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("COLUMNS", "200")
    table = (Path(refkernel.datasets.__file__).parent / "data" / "seeds.csv").read_text(encoding="utf-8")
    for name in ("seeds.csv", "normal.csv", "today.csv", "tomorrow.csv"):
        Path(name).write_text(table, encoding="utf-8")
    namespace = {}
    exec(TAKEN_FOR_GRANTED.get(str(page.relative_to(ROOT)), ""), namespace)
    for kind, block, shown in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "console":
            _run_commands(block)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            warnings.simplefilter("ignore", refkernel.FarSamplesWarning)  # true of some made-up tables
            exec(compile(block, page.name, "exec"), namespace)
        printed = capsys.readouterr().out
        assert not shown or printed == shown


FENCE = re.compile(r"^(:{3,}|`{3,})(\{[\w-]+\}|\w*)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_fence_of_a_page_is_closed(page):
    """Directives of colons are closed from the inside to the outside, each by as many colons; blocks of code hide what they hold."""
    opened = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if not fence or (opened and opened[-1][0].startswith("`") and (fence[1] != opened[-1][0] or fence[2])):
            continue
        if fence[2] or (fence[1].startswith("`") and not (opened and opened[-1][0] == fence[1])):
            opened.append((fence[1], number))
        else:
            fits = opened and opened.pop()[0] == fence[1]
            assert fits, f"line {number} closes another fence, or none"
    assert opened == []


def test_the_module_is_the_command():
    """``python -m refkernel`` answers as ``refkernel``."""
    pytest.importorskip("typer")
    done = subprocess.run([sys.executable, "-m", "refkernel", "--version"], capture_output=True, encoding="utf-8", check=True)
    assert refkernel.__version__ in done.stdout


def _run_commands(block):
    """Run each command that is quick and look for the lines below it, … aside; of others check that they have the options."""
    runner, app = pytest.importorskip("typer.testing").CliRunner(), importlib.import_module("refkernel.cli").app
    for command, shown in _commands(block):
        named = list(itertools.takewhile(lambda word: not word.startswith("-"), command)) if command[0] == "reproduce" else command[:1]
        done = runner.invoke(app, command if command[0] in QUICK else [*named, "--help"])
        assert done.exit_code == 0, done.output
        if command[0] in QUICK:
            assert [line for line in shown if line not in done.output] == []
        else:
            assert [word for word in command if word.startswith("--") and word not in done.output] == []


def _commands(block):
    """Each ``$ refkernel …`` as words, with the lines below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, *shown = part.rstrip().splitlines()
        words = shlex.split(line, comments=True)
        if words[0] == "refkernel":
            yield words[1:], [text for text in shown if text.strip() and "…" not in text]


RESULTS = ROOT / "docs" / "measured"


@pytest.mark.parametrize("page", sorted((RESULTS / "pages").glob("*.html.gz")), ids=lambda page: page.name)
def test_a_report_stands_below_its_command_and_opens_with_the_answer(page):
    """The site shows the page that the command wrote; its first sentences are the answer, and the file is small."""
    name = page.name.removesuffix(".html.gz")
    above, shown, _ = (RESULTS / f"{name}.md").read_text(encoding="utf-8").partition(f"```{{measured}} {name}")
    assert shown
    assert "$ refkernel reproduce" in above
    packed = page.read_bytes()
    assert len(packed) < 400_000  # bytes: kept in the repository for ever
    header, _, _ = gzip.decompress(packed).decode("utf-8").partition("</header>")
    assert re.search(r"</h1>\s*<p><strong>[^<]+", header)


@pytest.mark.parametrize("page", sorted((RESULTS / "pages").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_results_stands_below_its_command_and_opens_with_the_answer(page):
    """The site shows the Markdown that a command wrote, under that command; its first paragraph is the answer."""
    above, shown, _ = (RESULTS / page.name).read_text(encoding="utf-8").partition(f"```{{include}} pages/{page.name}")
    assert shown
    assert "$ refkernel " in above
    assert re.match(r"# .+\n\n\*\*[^*]+\*\*\n", page.read_text(encoding="utf-8"))


def test_the_readme_is_for_one_minute():
    """Under 500 words, one picture, one table, six lines of Python that matter, three commands."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) < 500
    assert len(re.findall(r"!\[", text)) == 1
    assert len(re.findall(r"^\|---", text, flags=re.MULTILINE)) == 1
    blocks = BLOCK.findall(text)
    assert [len([line for line in block.splitlines() if line.strip()]) for kind, block, _ in blocks if kind == "python"] <= [6]
    assert sum(len(list(_commands(block))) for kind, block, _ in blocks if kind == "console") == 3


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
        assert max(height[room] for room in above) < min(height[room] for room in below)
