"""The commands of the experiments: the benchmark; the article with its tables, report and tasks; and the study that goes on from there."""

import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from .shared import app, clear_errors, console, errors, names, progress_bar, say

RESUMES = "Stopped. What was finished is kept: the same command continues from here."
SHOWN = ("method", "auroc", "auroc_margin", "weighted_precision", "weighted_precision_margin", "wish", "false_alarms")
"""Columns of the table at the end; the page has more."""

BEST = 12  # methods of the study in the table at the end; its page has all
EVERY = 30.0  # without a terminal, a line of progress is printed this often, in seconds
group = typer.Typer(no_args_is_help=False)
app.add_typer(group, name="reproduce")


Splits = StrEnum("Splits", {"embedded": "embedded", "authors": "authors"})
Solver = StrEnum("Solver", {"article": "article", "exact": "exact"})
SplitsOption = Annotated[Splits, typer.Option(help="Our splits of embedded data (10 tasks), or the authors' (14).")]
DataDir = Annotated[Path | None, typer.Option(help="Folder with the authors' .mat files.")]
Tasks = Annotated[str, typer.Option(help="Tasks, separated by commas; all by default.")]
SplitsCount = Annotated[int, typer.Option(help="Splits of each task, 1 to 5.")]
Repeats = Annotated[int, typer.Option(help="Repetitions on each split.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one a core. The results do not depend on it.")]
Seed = Annotated[int, typer.Option(help="Decides folds and references.")]
Out = Annotated[Path, typer.Option(help="Folder for the results; a run that was cut off is continued there.")]
Results = Annotated[Path, typer.Argument(help="Folder of a run.")]


@app.command()
def benchmark(
    data_dir: Annotated[Path | None, typer.Option(help="Folder of tables, .csv or .npz; else ADBench's, by download.")] = None,
    labels: Annotated[str, typer.Option(help="Of .csv tables: COLUMN=VALUE of normal rows; else a column y (1: outlier).")] = "",
    embedded: Annotated[bool, typer.Option("--embedded", help="17 small tables that need no download, in about a minute.")] = False,
    tables: Annotated[str, typer.Option(help="Tables, separated by commas; all by default.")] = "",
    methods: Annotated[str, typer.Option(help="Methods, separated by commas, such as auto,svdd,dte-np; all by default.")] = "",
    seeds: Annotated[int, typer.Option(help="Splits of each table; a fixed split runs once.")] = 3,
    max_train_rows: Annotated[
        int | None, typer.Option(help="At most this many rows train: by default 5,000, or all rows of a fixed split.")
    ] = None,
    max_test_rows: Annotated[
        int | None, typer.Option(help="At most this many normal rows and outliers test: by default 10,000, or all rows of a fixed split.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one a core. The scores do not depend on it, the seconds may.")] = -1,
    out: Out = Path("benchmark"),
) -> None:
    """Compare detectors that learn from normal rows only. Writes rows.csv, summary.csv and benchmark.md."""
    from ..experiments.benchmark.page import HEADINGS, build_page, cell_text, read_rows, summary
    from ..experiments.benchmark.runner import Settings, run

    settings = Settings(names(tables), names(methods), seeds, max_train_rows, max_test_rows, embedded, labels)
    with clear_errors(RESUMES):
        facts = with_progress("benchmark", run, settings, out, jobs=jobs, data_dir=data_dir)
        found = summary(read_rows(out))
        shown = [name for name in SHOWN if name in found]
        table = Table(title="Averages over tables (%) ± standard error")
        for name in shown:
            table.add_column(HEADINGS[name], no_wrap=name == "method")
        for row in found.to_dict("records"):
            table.add_row(*(cell_text(name, row) for name in shown))
        console.print(table)
        for note in facts.get("notes", []):
            say(note)
        say(f"{facts['seconds']:.0f} s.   Rows: {out / 'rows.csv'}   Page: {build_page(out)}")


@group.callback(invoke_without_command=True)
def reproduce(
    context: typer.Context,
    splits: SplitsOption = Splits.embedded,
    data_dir: DataDir = None,
    tasks: Tasks = "",
    variants: Annotated[str, typer.Option(help="base, case1 … case7.")] = "base,case1,case2,case3,case4,case5,case6,case7",
    classifiers: Annotated[str, typer.Option(help="svdd, ocsvm.")] = "svdd,ocsvm",
    routes: Annotated[str, typer.Option(help="kernel, mapping.")] = "kernel,mapping",
    splits_count: SplitsCount = 5,
    repeats: Repeats = 5,
    solver: Annotated[Solver, typer.Option(help="As the article's tools did, or all to the certificate.")] = Solver.article,
    jobs: Jobs = -1,
    seed: Seed = 0,
    out: Out = Path("results"),
    report: Annotated[bool, typer.Option(help="Build report.html at the end.")] = True,
) -> None:
    """Run the article's experiments. Writes rows.csv, tables and the report."""
    if context.invoked_subcommand is not None:
        return
    from ..experiments.article.protocol import Settings, run, variant_name

    chosen: dict[str, Any] = {"variants": names(variants), "classifiers": names(classifiers), "routes": names(routes)}
    chosen |= {"splits_count": splits_count, "repeats": repeats, "solver": solver.value, "seed": seed}
    settings = Settings(splits=splits.value, tasks=names(tasks), **chosen)
    with clear_errors(RESUMES):
        facts = with_progress("reproduce", run, settings, out, jobs=jobs, data_dir=data_dir)
        from ..experiments.article.tables import averages, compare, counts, read_rows, summarise, write_tables

        comparison = compare(summarise(read_rows(out)))
        table = Table("classifier", "route", "variant", "Gmean", "article", "difference", title="Averages over the tasks of this run (%)")
        for row in averages(comparison).itertuples():
            printed = "–" if row.printed_gmean != row.printed_gmean else f"{row.printed_gmean:.1f}"
            difference = "–" if row.difference != row.difference else f"{row.difference:+.1f}"
            table.add_row(row.classifier, row.route, variant_name(row.variant), f"{row.gmean:.1f}", printed, difference)
        console.print(table)
        found, seconds = counts(comparison), max(facts["seconds"], 1e-9)
        say(
            f"{found.within} of {found.cells} cells lie within the printed ±; the {found.columns} column averages differ "
            f"from the printed ones by {found.mean_difference:.2f} on average."
        )
        say(f"{facts['fits']:,} fits in {seconds:.1f} s: {facts['fits'] / seconds:,.0f} fits per second.")
        write_tables(out)
        say(f"Rows: {out / 'rows.csv'}   Tables: {out / 'tables'}")
        if report:
            try:
                from ..experiments.article.report import build_report
            except ImportError as error:
                return say(f"No report: {error}. Install refkernel[report].")
            say(f"Report: {build_report(out)}")


@group.command()
def tables(results: Results = Path("results")) -> None:
    """Write the article's tables of a run, as Markdown and CSV."""
    from ..experiments.article.tables import write_tables

    with clear_errors():
        for path in write_tables(results):
            say(path)


@group.command("report")
def article_report(results: Results = Path("results")) -> None:
    """Write report.html of a run, one file that opens anywhere."""
    from ..experiments.article.report import build_report

    with clear_errors():
        say(build_report(results))


@group.command("tasks")
def list_of_tasks(splits: SplitsOption = Splits.authors) -> None:
    """List the tasks that there are."""
    from ..datasets import list_tasks

    table = Table("task", "data set", "target class", "targets", "outliers", "features", "embedded")
    for task in list_tasks(splits.value):
        sizes = (str(size) for size in (task.n_targets, task.n_outliers, task.n_features))
        table.add_row(task.name, task.dataset, task.target, *sizes, "yes" if task.embedded else "no")
    console.print(table)


@group.command()
def study(
    splits: SplitsOption = Splits.embedded,
    data_dir: DataDir = None,
    tasks: Tasks = "",
    splits_count: SplitsCount = 5,
    repeats: Repeats = 1,
    jobs: Jobs = -1,
    seed: Seed = 0,
    out: Out = Path("study"),
) -> None:
    """Compare strategies and classifiers by the article's protocol. Writes rows.csv and study.md."""
    from ..experiments.article.protocol import Settings
    from ..experiments.study.page import averages, build_page, method_name, read_rows, task_means
    from ..experiments.study.runner import run

    settings = Settings(splits=splits.value, tasks=names(tasks), splits_count=splits_count, repeats=repeats, seed=seed)
    with clear_errors(RESUMES):
        facts = with_progress("study", run, settings, out, jobs=jobs, data_dir=data_dir)
        table = Table("method", "known outliers", "grid", "Gmean", title="The best averages over tasks (%)")
        for row in averages(task_means(read_rows(out))).head(BEST).itertuples():
            table.add_row(method_name(row.classifier, row.references), row.negatives, row.grid, f"{row.gmean:.1f}")
        console.print(table)
        say(f"{facts['seconds']:.0f} s.   Rows: {out / 'rows.csv'}   Page: {build_page(out)}")


def with_progress(name: str, run: Callable[..., dict[str, Any]], *what: Any, **how: Any) -> dict[str, Any]:
    """What a run returns whose ``progress(done, total)`` moves a bar in a terminal, and prints a line now and then elsewhere."""
    start = last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        move(completed=done, total=total)
        now = time.monotonic()
        if not errors.is_terminal and now - last >= EVERY:
            last = now
            say(f"{name}: {done:,} of {total:,} runs, {now - start:.0f} s", to=errors)

    with progress_bar(name) as move:
        return run(*what, **how, progress=progress)
