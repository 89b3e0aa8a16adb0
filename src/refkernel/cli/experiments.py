"""The commands of the article: its experiments, their tables and their report."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from .shared import RESUMES, Splits, app, clear_errors, console, names, with_bar


class Solver(StrEnum):
    article = "article"
    exact = "exact"


@app.command()
def reproduce(
    splits: Annotated[Splits, typer.Option(help="Our splits of embedded data (10 tasks), or the authors' (14).")] = Splits.embedded,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the authors' .mat files.")] = None,
    tasks: Annotated[str, typer.Option(help="Tasks, separated by commas; all by default.")] = "",
    variants: Annotated[str, typer.Option(help="base, case1 … case7.")] = "base,case1,case2,case3,case4,case5,case6,case7",
    classifiers: Annotated[str, typer.Option(help="svdd, ocsvm.")] = "svdd,ocsvm",
    routes: Annotated[str, typer.Option(help="kernel, mapping.")] = "kernel,mapping",
    splits_count: Annotated[int, typer.Option(help="Splits of each task, 1 to 5.")] = 5,
    repeats: Annotated[int, typer.Option(help="Repetitions on each split.")] = 5,
    solver: Annotated[Solver, typer.Option(help="As the article's tools did, or all to the certificate.")] = Solver.article,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one a core. The results do not depend on it.")] = -1,
    seed: Annotated[int, typer.Option(help="Decides folds and references.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the results; a run that was cut off is continued there.")] = Path("results"),
    report: Annotated[bool, typer.Option(help="Build report.html at the end.")] = True,
) -> None:
    """Run the article's experiments; write rows.csv, tables and the report."""
    from ..experiments.article.protocol import Settings
    from ..experiments.article.runner import run

    settings = Settings(
        splits=splits.value,
        tasks=names(tasks),
        variants=names(variants),
        classifiers=names(classifiers),
        routes=names(routes),
        splits_count=splits_count,
        repeats=repeats,
        solver=solver.value,
        seed=seed,
    )
    with clear_errors(RESUMES):
        facts = with_bar("reproduce", lambda progress: run(settings, out, jobs=jobs, data_dir=data_dir, progress=progress))
        _summary(out, facts, report, jobs)


@app.command()
def tables(results: Annotated[Path, typer.Argument(help="Folder of a run.")] = Path("results")) -> None:
    """Write the article's four tables from a run's rows, as CSV, Markdown and LaTeX."""
    from ..experiments.article.tables import write_tables

    with clear_errors():
        for path in write_tables(results):
            console.print(path)


@app.command()
def article_report(
    results: Annotated[Path, typer.Argument(help="Folder of a run.")] = Path("results"),
    compare_with: Annotated[Path | None, typer.Option(help="Another run to set beside it, for example with --solver exact.")] = None,
) -> None:
    """Write report.html of a run of reproduce, one file that opens anywhere."""
    from ..experiments.article.report import build_report

    with clear_errors():
        console.print(build_report(results, compare_with=compare_with))


@app.command()
def tasks(splits: Annotated[Splits, typer.Option()] = Splits.authors) -> None:
    """List the tasks that there are."""
    from ..datasets import list_tasks

    table = Table("task", "data set", "target class", "targets", "outliers", "features", "embedded")
    for task in list_tasks(splits.value):
        sizes = (str(size) for size in (task.n_targets, task.n_outliers, task.n_features))
        table.add_row(task.name, task.dataset, task.target, *sizes, "yes" if task.embedded else "no")
    console.print(table)


def _summary(out: Path, facts: dict[str, Any], with_report: bool, jobs: int) -> None:
    """Averages beside the article's, how many cells agree, how long it took, and where the files are."""
    from ..experiments.article.protocol import variant_name
    from ..experiments.article.tables import averages, compare, counts, read_rows, summarise, write_tables

    comparison = compare(summarise(read_rows(out)))
    table = Table("classifier", "route", "variant", "Gmean", "article", "difference", title="Averages over the tasks of this run (%)")
    for row in averages(comparison).itertuples():
        printed = "–" if row.printed_gmean != row.printed_gmean else f"{row.printed_gmean:.1f}"
        difference = "–" if row.difference != row.difference else f"{row.difference:+.1f}"
        table.add_row(row.classifier, row.route, variant_name(row.variant), f"{row.gmean:.1f}", printed, difference)
    console.print(table)
    found = counts(comparison)
    console.print(
        f"{found.within} of {found.cells} cells lie within the printed ±; the {found.columns} column averages differ "
        f"from the printed ones by {found.mean_difference:.2f} on average."
    )
    seconds = max(facts["seconds"], 1e-9)
    console.print(f"{facts['fits']:,} fits in {seconds:.1f} s: {facts['fits'] / seconds:,.0f} fits per second.", highlight=False)
    write_tables(out)
    console.print(f"Rows: {out / 'rows.csv'}   Tables: {out / 'tables'}", soft_wrap=True)
    if not with_report:
        return
    try:
        from ..experiments.article.report import build_report
    except ImportError as error:
        console.print(f"No report: {error}. Install refkernel[report].")
        return
    console.print(f"Report: {build_report(out, jobs=jobs)}", soft_wrap=True)
