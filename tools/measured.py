"""Puts the results of a command into the docs: its page, and the article's tables in Markdown.

python tools/measured.py article FOLDER     a folder of refkernel reproduce
python tools/measured.py study FOLDER       of refkernel reproduce study
python tools/measured.py benchmark FOLDER   of refkernel benchmark
python tools/measured.py oddbench FOLDER    of refkernel benchmark --data-dir, on a folder of OddBench's tables
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs" / "measured"
PAGES = {"article": "report.html", "study": "study.md", "benchmark": "benchmark.md", "oddbench": "benchmark.md"}
"""What the command that measures each calls its page."""

ODDBENCH = """# OddBench

[OddBench](https://arxiv.org/abs/2602.09329) is a collection of 790 real tables, 759 of them public. Each has a fixed split: normal rows to
train on, and test rows of which some are anomalies. They are the rows with a rare meaning of one column, which is then removed.

```console
$ refkernel benchmark --data-dir oddbench {options}--out oddbench_run    # continues after an interruption
```

## Published figures

AUROC and average precision on all 790 tables with all rows, in percent, as their authors report them
([macrOData](https://arxiv.org/abs/2602.09329), [OutFormer](https://arxiv.org/abs/2602.03018)):

| method | AUROC | average precision | |
|---|---:|---:|---|
| TaskBridge on TabICLv2 | 80.24 | 50.43 | a frozen foundation model, on an H200 |
| DTE-NP | 76.96 | 43.63 | kNN, the mean squared distance to five neighbours |
| kNN | 76.25 | 42.41 | |
| FeatureBagging | 75.59 | | |
| LOF | 74.17 | | |
| OutFormer | 74.16 | | a foundation model |
| TabPFN | 73.62 | | a foundation model |
| OCSVM | 71.88 | | |
| ICL | 71.82 | | a deep network |
| IForest | 71.26 | | |
| SLAD | 66.87 | | a deep network |
| DIF | 65.16 | | a deep network |

The tables and rows below are not quite the same, so compare margins over DTE-NP rather than averages.

## Measured here

{tables:,} of the public tables. The page below is the command's own.

The 221 of them that have 2,000 training rows, with all of these: AUROC 78.8, **5.0 ± 0.7 above DTE-NP**
and 7.7 above IsolationForest; weighted average precision 8.4 ± 1.0 above DTE-NP; 4.8 % of new normal rows rejected where 5 % was asked for.

```{{include}} pages/oddbench.md
:heading-offset: 2
```
"""
"""The page around the figures of OddBench. Names of its tables stay out of the docs: the command lists them only for small collections."""


def main() -> None:
    """Copy what the command wrote: Markdown as it is, HTML compressed."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    page = (folder / PAGES[name]).read_text(encoding="utf-8")
    if name == "oddbench":
        _write_oddbench(page, json.loads((folder / "run.json").read_text(encoding="utf-8"))["settings"])
    if PAGES[name].endswith(".html"):
        packed = gzip.compress(page.encode(), mtime=0)  # no time, so that equal pages are equal files
        (DOCS / "pages" / f"{name}.html.gz").write_bytes(packed)
    else:
        (DOCS / "pages" / f"{name}.md").write_text(page, encoding="utf-8")
    for table in (folder / "tables").glob("*.md"):
        shutil.copyfile(table, DOCS / "tables" / table.name)


def _write_oddbench(page: str, settings: dict) -> None:
    """The page with the published figures, and its line in the table of contents."""
    if "## AUROC by table" in page:
        sys.exit("The page names tables of OddBench, which has no licence: run more tables, so that they are not listed.")
    caps = {"--max-train-rows": settings["max_train_rows"], "--max-test-rows": settings["max_test_rows"]}
    options = "".join(f"{option} {number} " for option, number in caps.items() if number)
    (DOCS / "oddbench.md").write_text(ODDBENCH.format(options=options, tables=len(settings["tables"])), encoding="utf-8")
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    if "oddbench" not in text:
        line = "- [OddBench](oddbench.md): hundreds of real tables, with published figures beside ours.\n"
        text = text.replace("\nbenchmark\n", "\nbenchmark\noddbench\n").replace("- [The study]", f"{line}- [The study]")
        (DOCS / "index.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
