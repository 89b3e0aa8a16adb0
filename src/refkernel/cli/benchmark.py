"""The command of the benchmark: our detectors and the usual ones on real tables, with normal rows only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from .shared import RESUMES, app, clear_errors, console, names, with_bar


@app.command()
def benchmark(
    data_dir: Annotated[Path | None, typer.Option(help="Folder of .npz tables (X, y; 1: outlier); else ADBench's, by download.")] = None,
    embedded: Annotated[bool, typer.Option("--embedded", help="17 small tables that need no download, in about a minute.")] = False,
    tables: Annotated[str, typer.Option(help="Tables, separated by commas; all by default.")] = "",
    methods: Annotated[str, typer.Option(help="Methods, separated by commas, such as auto,svdd,knn1; all by default.")] = "",
    seeds: Annotated[int, typer.Option(help="Splits of each table.")] = 3,
    most_rows: Annotated[int, typer.Option(help="At most this many rows train.")] = 5_000,
    most_test_rows: Annotated[int, typer.Option(help="At most this many normal rows and outliers test.")] = 10_000,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one a core. The scores do not depend on it, the seconds may.")] = -1,
    beside: Annotated[list[Path] | None, typer.Option(help="Folder of another run on the same tables, to show with it.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results; a run that was cut off is continued there.")] = Path("benchmark"),
) -> None:
    """Compare detectors that learn from normal rows only; write rows.csv, summary.csv, summary.md and benchmark.html."""
    from ..experiments.benchmark import Settings, run

    settings = Settings(names(tables), names(methods), seeds, most_rows, most_test_rows, embedded)
    with clear_errors(RESUMES):
        facts = with_bar("benchmark", lambda progress: run(settings, out, jobs=jobs, data_dir=data_dir, progress=progress))
        _report(out, beside or [], facts)


def _report(out: Path, beside: list[Path], facts: dict[str, Any]) -> None:
    """The averages, what was left out, the time, and where the files are."""
    from ..experiments.benchmark.findings import read_rows, summary
    from ..experiments.benchmark.page import build_page
    from ..experiments.benchmark.texts import cell_text

    shown = {"method": "method", "auroc": "AUROC", "rank": "rank", "gmean": "Gmean", "wish": "to reject", "false_alarms": "rejected"}
    table = Table(*shown.values(), title="Averages over tables (%)")
    for row in summary(read_rows(out, beside)).to_dict("records"):
        table.add_row(*(cell_text(name, row[name]) for name in shown))
    console.print(table)
    for note in facts.get("notes", []):
        console.print(note, soft_wrap=True, highlight=False)
    page = build_page(out, beside)
    console.print(f"{facts['seconds']:.0f} s.   Rows: {out / 'rows.csv'}   Page: {page}", soft_wrap=True, highlight=False)
