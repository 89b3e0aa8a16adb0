"""Texts that tools read: every name in them exists."""

import re
from pathlib import Path

import pytest

import refkernel as rk

ROOT = Path(__file__).parents[1]
TEXTS = ("AGENTS.md", "docs/_extra/llms.txt")

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the texts are in a checkout only, not in the wheel")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_public_name_exists():
    found = {name for text in TEXTS for name in re.findall(r"(?<!\w)rk\.(\w+)", text_of(text))}
    assert len(found) > 10
    assert not [name for name in found if not hasattr(rk, name)]


@pytest.mark.parametrize("method", ["predict", "p_values", "select", "reasons", "explain", "counterfactuals", "drift", "save"])
def test_methods_of_tables_exist(method):
    assert f"`{method}" in text_of("docs/_extra/llms.txt")
    assert hasattr(rk.TableDetector, method)


@pytest.mark.parametrize("name", TEXTS)
def test_every_file_and_page_exists(name):
    text = text_of(name)
    files = [path for path in re.findall(r"`([\w./]+\.(?:py|md|toml))`", text) if not (ROOT / path).exists()]
    pages = [page for page in re.findall(r"\]\(([\w/]+)\.html\)", text) if page != "api/index" and not (ROOT / f"docs/{page}.md").exists()]
    assert not files
    assert not pages


def test_every_target_of_make_exists():
    targets = set(re.findall(r"`make ([\w-]+)`", text_of("AGENTS.md")))
    makefile = text_of("Makefile")
    assert targets
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


def test_every_command_exists():
    from typer.main import get_command

    from refkernel.cli import app

    commands = set(re.findall(r"`refkernel (\w+)", text_of("docs/_extra/llms.txt")))
    assert commands
    assert commands <= set(get_command(app).commands)
