"""Run the commands of docs/terminal.md again, and put what they print into the page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from refkernel._core.jit import NOTICE

PAGE = Path(__file__).parents[1] / "docs" / "terminal.md"
BLOCK = re.compile(r"^```console\n\$ (?P<command>.*)\n(?P<output>(?:.*\n)*?)```$", re.MULTILINE)
TABLES = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = "from refkernel.cli import main; main()"
WIDTH = "110"


def run(text: str, folder: str) -> str:
    """The page with the outputs of a new run in a folder."""
    environment = {**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONUTF8": "1"}

    def python(*arguments: str) -> str:
        result = subprocess.run(
            [sys.executable, "-c", *arguments],
            cwd=folder,
            env=environment,
            encoding="utf-8",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if result.returncode:
            raise RuntimeError(f"{shlex.join(arguments[1:])} ended with {result.returncode}:\n{result.stdout}")
        return result.stdout

    def again(block: re.Match[str]) -> str:
        output = python(COMMAND, *shlex.split(block["command"])[1:]).replace(f"{NOTICE}\n", "")  # said only where nothing is compiled yet
        return f"```console\n$ {block['command']}\n{output.rstrip()}\n```"

    for code in TABLES.findall(text):
        python(code)
    return BLOCK.sub(again, text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(run(PAGE.read_text(encoding="utf-8"), folder), encoding="utf-8")
