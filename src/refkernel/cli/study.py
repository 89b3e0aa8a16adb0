"""The command of the study: which strategy, which classifier, and what one would use instead."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from .shared import RESUMES, Splits, app, clear_errors, console, names, with_bar

SHOWN = 12
"""Methods in the table at the end; the page has all."""


@app.command()
def study(
    splits: Annotated[Splits, typer.Option(help="Our splits of embedded data (10 tasks), or the authors' (14).")] = Splits.embedded,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the authors' .mat files.")] = None,
    tasks: Annotated[str, typer.Option(help="Tasks, separated by commas; all by default.")] = "",
    splits_count: Annotated[int, typer.Option(help="Splits of each task, 1 to 5.")] = 5,
    repeats: Annotated[int, typer.Option(help="Repetitions on each split.")] = 1,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one a core. The results do not depend on it.")] = -1,
    seed: Annotated[int, typer.Option(help="Decides folds and references.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the results; a run that was cut off is continued there.")] = Path("study"),
) -> None:
    """Compare every reference strategy, classifier and baseline by the article's protocol; write rows.csv and study.html."""
    from ..experiments.study import Settings, run

    settings = Settings(splits=splits.value, tasks=names(tasks), splits_count=splits_count, repeats=repeats, seed=seed)
    with clear_errors(RESUMES):
        facts = with_bar("study", lambda progress: run(settings, out, jobs=jobs, data_dir=data_dir, progress=progress))
        _summary(out, facts)


def _summary(out: Path, facts: dict[str, Any]) -> None:
    """The best methods, the time, and where the files are."""
    from ..experiments.study.findings import averages, method_name, read_rows, task_means
    from ..experiments.study.page import build_page

    table = Table("method", "known outliers", "grid", "Gmean", title="The best averages over tasks (%)")
    for row in averages(task_means(read_rows(out))).head(SHOWN).itertuples():
        table.add_row(method_name(row.classifier, row.references), row.negatives, row.grid, f"{row.gmean:.1f}")
    console.print(table)
    console.print(f"{facts['seconds']:.0f} s.   Rows: {out / 'rows.csv'}   Page: {build_page(out)}", soft_wrap=True, highlight=False)
