"""Puts the results of a command into the docs: its page, compressed, and the article's tables in Markdown.

python tools/measured.py article FOLDER     a folder of refkernel reproduce
python tools/measured.py study FOLDER       of refkernel study
python tools/measured.py benchmark FOLDER   of refkernel benchmark
"""

from __future__ import annotations

import gzip
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs" / "measured"
PAGES = {"article": "report.html", "study": "study.html", "benchmark": "benchmark.html"}
"""What the command that measures each calls its page."""


def main() -> None:
    """Copy what the command wrote."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    page = (folder / PAGES[name]).read_bytes()
    (DOCS / "pages" / f"{name}.html.gz").write_bytes(gzip.compress(page, mtime=0))  # no time, so that equal pages are equal files
    for table in (folder / "tables").glob("*.md"):
        shutil.copyfile(table, DOCS / "tables" / table.name)


if __name__ == "__main__":
    main()
