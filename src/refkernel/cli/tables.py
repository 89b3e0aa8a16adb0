"""The commands for a user's own data: fit, score, inspect and plot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from .shared import app, clear_errors, console, names, progress_bar, shown
from .words import counted, identity, model_notes, notes_for_warnings, print_fit, print_notes, print_pairs, say, score_notes

if TYPE_CHECKING:
    from ..tables import CsvFormat

Delimiter = Annotated[str | None, typer.Option(help="Of a CSV file: one character, or tab. Detected by default.")]
Decimal = Annotated[str, typer.Option(help="Decimal mark of a CSV file: . or ,")]
Encoding = Annotated[str, typer.Option(help="Of a CSV file, such as utf-8, cp1252 or utf-16.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first line of a CSV file names the columns; asked where it holds numbers."),
]
Sheet = Annotated[str | None, typer.Option(help="Of an Excel file; the first by default.")]
ModelFile = Annotated[Path, typer.Argument(help="A file of refkernel fit.")]


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file, one row a sample, with a header.")],
    out: Annotated[Path, typer.Option(help="Where the model goes, for example model.rk.")],
    target_column: Annotated[
        str | None, typer.Option(help="Column that tells targets from others. Without it all rows are targets.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Its value for targets.")] = None,
    outlier: Annotated[
        str | None, typer.Option(help="Its value for known outliers, or 'other'. By default other rows are left out.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Columns to leave out, separated by commas; may be repeated.")] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="Columns of numbers that are categories, separated by commas; may be repeated.")
    ] = None,
    time_column: Annotated[
        str | None, typer.Option(help="Column that says when. It stays out of the model, and plot draws along it.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="auto (nothing to choose), svdd or ocsvm. Default: auto, or svdd with an option of it.")
    ] = None,
    false_alarm_rate: Annotated[float, typer.Option(help="Share of new normal rows that may be flagged; for --model auto.")] = 0.05,
    references: Annotated[
        str,
        typer.Option(help="auto (svdd: case2, or none where that rejects more; ocsvm: training rows), none, subset, case1 … case7, …"),
    ] = "auto",
    nu: Annotated[float | None, typer.Option(help="Share of targets that may be left outside; 0.1 by default.")] = None,
    scale: Annotated[float | None, typer.Option(help="Width of the kernel; by default 10 for svdd with references, else 1.")] = None,
    search: Annotated[
        bool, typer.Option(help="Tune scale and nu, where they are not given: by known outliers, or else by made-up ones.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Decides references and folds.")] = 0,
    impute: Annotated[
        str | None, typer.Option(help="'median' fills missing numbers, now and when scoring; missing categories count as one.")
    ] = None,
    out_report: Annotated[Path | None, typer.Option(help="Also write a page about the model and this table: see refkernel report.")] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    header: Header = None,
    sheet: Sheet = None,
) -> None:
    """Learn what is normal from a table, and save the model."""
    with clear_errors():
        from ..persistence import save
        from ..tables import Recipe, Rows, fit_file
        from ..tables.writing import check_writable

        check_writable(out, data)
        if out_report is not None:
            from ..report import check_page

            check_page(out_report, data, out)
        if model is None:
            model = "svdd" if search or references != "auto" or nu is not None or scale is not None else "auto"
        recipe = Recipe(model, references, nu, scale, search, seed, impute, false_alarm_rate)
        rows = Rows(target_column, target, outlier)
        form = _form(delimiter, decimal, encoding, header, sheet)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with progress_bar(*columns, transient=True) as bar:
            stage = bar.add_task("fit", total=None)
            fitted = fit_file(
                data,
                recipe,
                rows,
                form,
                names(*(drop or ())),
                names(*(categorical or ())),
                time_column,
                progress=lambda text: bar.update(stage, description=text),
            )
            save(fitted.model, out, about=fitted.about)
        print_notes(fitted.notes)
        print_fit(fitted.about, out)
        if out_report is not None:
            write_report(out, data, out_report, form)


@app.command()
def score(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file with the model's columns; others are kept.")],
    out: Annotated[Path, typer.Option(help="CSV (.csv.gz compresses it) or Parquet file for the table with the scores.")],
    proba_like: Annotated[
        bool, typer.Option("--proba-like", help="Add normality: the share of training targets with a lower decision value, 0 to 1.")
    ] = False,
    prefix: Annotated[str, typer.Option(help="Put before the names of the added columns.")] = "",
    false_alarm_rate: Annotated[
        float | None, typer.Option(help="Another threshold for this table: the share of new normal rows that may be flagged.")
    ] = None,
    explain: Annotated[
        int,
        typer.Option(min=0, help="Add this many reasons why each flagged row is flagged: columns, their values, and what is normal."),
    ] = 0,
    worst: Annotated[int, typer.Option(min=0, help="Show this many rows with the lowest scores, the worst first.")] = 0,
    target_column: Annotated[str | None, typer.Option(help="Column that labels the rows; by default that of fit, if it is there.")] = None,
    target: Annotated[str | None, typer.Option(help="Its value for normal rows.")] = None,
    summary_json: Annotated[Path | None, typer.Option(help="Write the summary (labels, drift, columns, worst rows) to this file.")] = None,
    defuse: Annotated[
        bool,
        typer.Option(
            "--defuse-formulas/--keep-formulas",
            help="In CSV files, put an apostrophe before texts that a spreadsheet would run as formulas (=, +, -, @ first), or keep them.",
        ),
    ] = True,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    header: Header = None,
    sheet: Sheet = None,
) -> None:
    """Score a table of any size: adds score, decision (score - threshold) and label (1 target, -1 outlier)."""
    with clear_errors():
        from ..tables import load_table_model, open_table, score_file
        from ..tables.summary import Watch, labels_for
        from ..tables.writing import check_writable
        from .explaining import print_reasons
        from .summary import print_summary, summary_of, write_summary

        saved = load_table_model(model)
        if false_alarm_rate is not None:
            with notes_for_warnings():
                saved = saved.with_false_alarm_rate(false_alarm_rate)
        form = _form(delimiter, decimal, encoding, header, sheet)
        if summary_json is not None:
            check_writable(summary_json, data, out, model)
        watch = Watch(saved, labels_for(saved, open_table(data, form).names, target_column, target), worst)
        with share_bar("score") as progress:
            result = score_file(
                saved,
                data,
                out,
                form=form,
                proba_like=proba_like,
                prefix=prefix,
                defuse=defuse,
                explain=explain,
                progress=progress,
                watch=watch.add,
            )
        print_notes(score_notes(result, saved))
        share = 100.0 * result.outliers / result.rows
        kinds = f"{counted(result.rows - result.outliers, 'target')}, {counted(result.outliers, 'outlier')} ({share:.1f} %)"
        say(f"{counted(result.rows, 'row')}: {kinds}.")
        print_reasons(result)
        summary = summary_of(watch, data)
        print_summary(summary, outside=not result.outside)
        say(f"Scores: {out}")
        if summary_json is not None:
            write_summary(summary_json, summary)
            say(f"Summary: {summary_json}")


@app.command()
def inspect(model: ModelFile) -> None:
    """Say what a model is and what it was trained on."""
    with clear_errors():
        from ..tables import load_table_model
        from ..tables.describing import described

        saved = load_table_model(model)
        print_pairs(identity(saved))
        table = Table("column", "type", "in training", "missing")
        for column in described(saved):
            table.add_row(*map(shown, column))
        console.print(table)
        print_notes(model_notes(saved))


@app.command()
def plot(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file with the model's columns: best the training table.")],
    out: Annotated[Path, typer.Option(help="Picture: .png, .svg, or .html (one file that stands alone).")],
    features: Annotated[str, typer.Option(help="Two numeric features, separated by a comma; principal components by default.")] = "",
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    header: Header = None,
    sheet: Sheet = None,
) -> None:
    """Draw decision values, the decision region, and the spectrum of the references."""
    with clear_errors():
        from ..tables import load_table_model
        from ..tables.drawing import plot_file

        drawn = plot_file(
            load_table_model(model), data, out, features=names(features), form=_form(delimiter, decimal, encoding, header, sheet)
        )
        say(f"{counted(drawn, 'row')} drawn: {out}")


def _form(delimiter: str | None, decimal: str, encoding: str, header: bool | None, sheet: str | None) -> CsvFormat:
    from ..tables import CsvFormat

    return CsvFormat("\t" if delimiter in ("tab", "\\t") else delimiter, decimal, encoding, header, sheet)


def write_report(model: Path, data: Path, out: Path, form: CsvFormat) -> None:
    """The page of a model that was just saved, and of its training table."""
    from ..report import report_file
    from ..tables import load_table_model

    with share_bar("report") as progress:
        report_file(load_table_model(model), data, out, form=form, progress=progress)
    say(f"Page: {out}")


@contextmanager
def share_bar(name: str) -> Iterator[Callable[[float], None]]:
    """A bar that the yielded function moves to a share from 0 to 1; shown only in a terminal."""
    columns = (TextColumn(name), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with progress_bar(*columns, transient=True) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda share: bar.update(task, completed=share)
