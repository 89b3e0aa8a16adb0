"""docs/terminal.md shows what the commands print."""

import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("typer")
pytest.importorskip("skops")

TOOL = Path(__file__).parents[1] / "tools" / "terminal.py"
pytestmark = pytest.mark.skipif(not TOOL.is_file(), reason="the tools are part of the repository, not of the package")


def words(text):
    """The page without numbers, which the processor may change a little, and without what follows from them: widths and counts."""
    lines = [line for line in text.splitlines() if not line.startswith("First reason")]
    return [re.sub(r"\s+", " ", re.sub(r"[\d.,]+", "#", re.sub("[━─]+", "-", line))) for line in lines]


def test_the_commands_of_the_page_print_what_it_shows(tmp_path):
    tool = runpy.run_path(str(TOOL))
    text = tool["PAGE"].read_text(encoding="utf-8")
    assert len(tool["BLOCK"].findall(text)) == 4
    assert words(tool["run"](text, str(tmp_path))) == words(text)
