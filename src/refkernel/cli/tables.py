"""The commands for a user's own data: check, fit, score, inspect, plot and report."""

import json
import shlex
import warnings
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from .._core.files import write_text
from .._core.text import counted
from ..exceptions import _printable
from .shared import app, as_output, clear_errors, console, errors, names, progress_bar, say, shown, table_command
from .words import identity, model_notes, operation, print_fit, print_notes, print_pairs, print_score

if TYPE_CHECKING:
    from ..tabular.readers import ReadOptions

AUTO, NONE = "auto", "none"
MODELS = (AUTO, "svdd", "ocsvm")
SEARCHED_SCALES = (0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0, 31.6, 100.0)
SEARCHED_NUS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""The article's grid is coarse: half decades of the width and smaller nu gain one to three points of Gmean."""

ModelFile = Annotated[Path, typer.Argument(help="A file of refkernel fit.")]
LabelColumn = Annotated[str | None, typer.Option(help="Column that labels the rows; by default that of fit, if it is there.")]
Normal = Annotated[str | None, typer.Option(help="Its value for normal rows.")]


@table_command
def check(data: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file.")], *, options: "ReadOptions") -> None:
    """Show what fit would take each column of a table for. Also shows three cells of each, and what is suspicious."""
    from ..tabular.checking import check_file

    found = check_file(data, options)
    table = Table(*found.columns.columns)
    for row in found.columns.itertuples(index=False):
        table.add_row(*map(shown, row))
    console.print(table)
    print_notes(found.notes)
    if found.problems:
        say("\n".join(found.problems), f"[bold red]{counted(len(found.problems), 'problem')}:[/] ", errors)
        raise typer.Exit(1)
    say(f"fit would learn from {counted(found.rows, 'row')}. Type, for example:")
    say(" ".join(["refkernel fit", shlex.quote(str(data)), *found.options, "--out model.rk"]))


@table_command
def fit(
    data: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file, one row a sample, with a header; - is standard input.")],
    out: Annotated[Path, typer.Option(help="Where the model goes, for example model.rk.")],
    target_column: Annotated[str | None, typer.Option(help="Column that tells targets from others; else all rows are targets.")] = None,
    target: Annotated[str | None, typer.Option(help="Its value for targets.")] = None,
    outlier: Annotated[str | None, typer.Option(help="Its value for known outliers, or 'other'; else other rows are left out.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Columns to leave out, separated by commas; may be repeated.")] = None,
    categorical: Annotated[list[str] | None, typer.Option(help="Columns of numbers that are categories; like --drop.")] = None,
    time_column: Annotated[str | None, typer.Option(help="Column that says when. It stays out of the model; plot draws along it.")] = None,
    group_column: Annotated[str | None, typer.Option(help="Column of machines or sites: each keeps the rate by itself.")] = None,
    model: Annotated[str | None, typer.Option(help="auto (the default), svdd (if --nu or the like is given) or ocsvm.")] = None,
    false_alarm_rate: Annotated[float, typer.Option(help="Share of new normal rows that may be flagged; for --model auto.")] = 0.05,
    contamination: Annotated[float, typer.Option(help="Share of the rows that may be faulty; for --model auto.")] = 0.0,
    references: Annotated[str, typer.Option(help="none (the plain kernel), training, subset, case1 to case7, or another strategy.")] = NONE,
    nu: Annotated[float | None, typer.Option(help="Share of targets that may be left outside; 0.1 by default.")] = None,
    scale: Annotated[float | None, typer.Option(help="Width of the kernel; by default as neighbours are, 1 with --references.")] = None,
    search: Annotated[bool, typer.Option("--search", help="Tune scale and nu by known outliers, or else by made-up ones.")] = False,
    seed: Annotated[int, typer.Option(help="Decides references and folds.")] = 0,
    out_report: Annotated[Path | None, typer.Option(help="Also write a page about the model and this table: see refkernel report.")] = None,
    *,
    options: "ReadOptions",
) -> None:
    """Learn what is normal from a table, and save the model."""
    from ..detectors.auto import AutoDetector
    from ..tabular.detector import TableDetector
    from ..tabular.fitting import TrainingLabels, fit_file
    from ..tabular.writing import check_writable

    check_writable(out, data)
    if out_report is not None:
        from ..pages import check_page

        check_page(out_report, data, out)
    detector = _detector(model, references, nu, scale, search, seed)
    if contamination:
        if detector is not None:
            raise ValueError("--contamination is for --model auto.")
        detector = AutoDetector(false_alarm_rate, contamination=contamination, random_state=seed)
    table_model = TableDetector(
        detector,
        false_alarm_rate=false_alarm_rate,
        drop=names(*(drop or ())),
        categorical=names(*(categorical or ())),
        time_column=time_column,
        group_column=group_column,
        random_state=seed,
    )
    with progress_bar("fit") as move:
        labels = TrainingLabels(target_column, target, outlier)
        notes = fit_file(table_model, data, labels, options, progress=lambda stage: move(description=stage))
        table_model.save(out)
    print_notes(notes)
    print_fit(table_model, out)
    if out_report is not None:
        from ..tabular.scoring import SavedModel

        _write_report(SavedModel(out, table_model), data, out_report, options)


def _detector(model: str | None, references: str, nu: float | None, scale: float | None, search: bool, seed: int) -> Any:
    """The detector that the options stand for; None for AutoDetector."""
    from .._core.validation import check_choice, check_nu, check_positive
    from ..classifiers import SVDD, OneClassSVM
    from ..kernels import RBF
    from ..maps import ReferenceKernel
    from ..model_selection import OneClassGridSearch
    from ..references.base import NAMES

    has_options = search or references != NONE or nu is not None or scale is not None
    model = model or ("svdd" if has_options else AUTO)
    check_choice("--model", model, MODELS)
    check_choice("--references", references, [NONE, *sorted(NAMES)])
    if nu is not None:
        check_nu(nu)
    if scale is not None:
        check_positive("--scale", scale)
    if model == AUTO:
        if has_options:
            raise ValueError("--references, --nu, --scale and --search are for --model svdd or ocsvm: name one of them.")
        return None
    kernel: Any = RBF(1.0 if search and scale is None else scale)
    if references != NONE:
        kernel = ReferenceKernel(kernel, references)
    classifier: Any = SVDD if model == "svdd" else OneClassSVM
    detector = classifier(kernel, random_state=seed).set_params(**({} if nu is None else {"nu": nu}))
    if not search:
        return detector
    width = "kernel__scale" if references == NONE else "kernel__kernel__scale"
    grid = {width: SEARCHED_SCALES if scale is None else (scale,), "nu": SEARCHED_NUS if nu is None else (nu,)}
    return OneClassGridSearch(detector, grid, random_state=seed)


@table_command
def score(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file with the model's columns; - is standard input.")],
    out: Annotated[Path, typer.Option(help="CSV, .csv.gz or Parquet file for the table with the scores; - is standard output.")],
    proba_like: Annotated[bool, typer.Option("--proba-like", help="Add normality: the share of targets that scored lower.")] = False,
    prefix: Annotated[str, typer.Option(help="Put before the names of the added columns.")] = "",
    false_alarm_rate: Annotated[float | None, typer.Option(help="Another share of new normal rows that may be flagged.")] = None,
    explain: Annotated[int, typer.Option(min=0, help="Add this many reasons of each flagged row: columns, and what is normal.")] = 0,
    worst: Annotated[int, typer.Option(min=0, help="Show this many rows with the lowest scores, the worst first.")] = 0,
    target_column: LabelColumn = None,
    target: Normal = None,
    summary_json: Annotated[Path | None, typer.Option(help="Write the summary (labels, drift, columns, worst rows) to this file.")] = None,
    backtest: Annotated[bool, typer.Option("--backtest", help="Count the alarms a week that these dated rows would have given.")] = False,
    time_column: Annotated[str | None, typer.Option(help="Column of dates for --backtest; by default the model's.")] = None,
    defuse: Annotated[bool, typer.Option("--defuse-formulas/--keep-formulas", help="Put ' before texts that spreadsheets run.")] = True,
    *,
    options: "ReadOptions",
) -> None:
    """Score a table of any size. Adds score, decision (score - threshold) and label (1 target, -1 outlier)."""
    with as_output(out) as goal:
        from ..tabular.comparison import backtest as past
        from ..tabular.drawing import times
        from ..tabular.readers import read_whole
        from ..tabular.scoring import load_table_model, score_file
        from ..tabular.summary import Watch, labels_for
        from ..tabular.writing import check_writable

        check_writable(goal, data, model)
        if summary_json is not None:
            check_writable(summary_json, data, goal, model)
        saved = load_table_model(model)
        if false_alarm_rate is not None:
            with warnings.catch_warnings(record=True) as caught:  # said as notes, without the place in the code
                warnings.simplefilter("always", UserWarning)
                saved = replace(saved, model=saved.model.with_false_alarm_rate(false_alarm_rate))
            print_notes(dict.fromkeys(str(warning.message) for warning in caught))
        table = saved.open(data, options)
        saved = replace(saved, marks=table.marks)
        watch, alarms = Watch(saved, labels_for(saved, table.names, target_column, target), worst), None
        if backtest:
            when = times(read_whole(saved.open(data, options)), saved, table.marks, time_column)
            if "p_value" not in saved.added:
                raise ValueError(f"--backtest needs p-values, and no rows calibrate {model}. Fit it by --model auto.")
            if when is None or when[1].dtype.kind != "M" or (when[1] != when[1]).any() or when[1].min() == when[1].max():
                raise ValueError("--backtest needs a date in each row, not all the same: in the model's time column, or in --time-column.")
        choices: dict[str, Any] = {"proba_like": proba_like, "prefix": prefix, "defuse": defuse, "explain": explain}
        with progress_bar("score") as move:
            score_file(saved, table, goal, watch=watch, **choices, progress=lambda share: move(completed=share, total=1.0))
        print_score(watch, explained=explain > 0)
        if backtest and when is not None:
            alarms = past(saved.model.p_values_of(watch.scores), when[1], len(saved.model.calibration_))
            say(f"Past alarms, in {alarms[0]['weeks']:.3g} weeks of these rows:")
            for one in alarms:
                text = "{flagged:,} flagged rows ({flagged_a_week:.3g} a week) in {episodes:,} episodes ({episodes_a_week:.3g} a week)"
                say(f"{100 * one['rate']:3g} %  {'too few rows calibrate' if one['flagged'] is None else text.format_map(one)}")
        say(f"Scores: {out}")
        if summary_json is not None:
            with goal.open("rb") as scores:
                about = {"scores": _printable(out.name), "scores_sha256": file_digest(scores, "sha256").hexdigest()}
            text = json.dumps(watch.as_dict(data.name) | about | {"backtest": alarms}, indent=1, allow_nan=False, ensure_ascii=False)
            write_text(summary_json, f"{text}\n", "The summary")
            say(f"Summary: {summary_json}")


@app.command()
def inspect(
    model: Annotated[Path, typer.Argument(help="A file of refkernel fit, or a state of refkernel watch.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print an audit instead, in JSON: see the guide on deployment.")] = False,
) -> None:
    """Say what a model is and what it was trained on. Of a state, say also what happened since."""
    with clear_errors():
        from ..export.files import open_model
        from ..tabular.card import audit
        from ..tabular.scoring import SavedModel, load_table_model

        opened = open_model(model)
        monitor: Any = opened.model if hasattr(opened.model, "kept_") else None
        saved = load_table_model(model, opened) if monitor is None else SavedModel(model, monitor.detector_)
        facts: Any = audit(saved.model, monitor)
        if as_json:
            return typer.echo(json.dumps({"model_file": str(model), **facts}, indent=1, allow_nan=False))
        if monitor is not None:
            print_pairs({"state": f"{model}, of the model below", **operation(facts["operation"])})
        if "holds" not in facts:  # the state of a model without columns
            return None
        print_pairs(identity(saved, facts["holds"]))
        table = Table("column", "type", "in training", "missing")
        for column in saved.columns:
            kind = "constant" if column.is_constant else column.kind
            table.add_row(*map(shown, (column.name, kind, str(column), f"{100 * column.missing_share:.2g} %" if column.rows else "")))
        console.print(table)
        print_notes(model_notes(saved))


@table_command
def plot(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file with the model's columns: best the training table.")],
    out: Annotated[Path, typer.Option(help="Picture: .png, .svg, or .html (one file that stands alone).")],
    features: Annotated[str, typer.Option(help="Two numeric features, separated by a comma; principal components by default.")] = "",
    *,
    options: "ReadOptions",
) -> None:
    """Draw decision values, decision region and spectrum."""
    from ..tabular.drawing import plot_file
    from ..tabular.scoring import load_table_model

    drawn = plot_file(load_table_model(model), data, out, features=names(features), options=options)
    say(f"{counted(drawn, 'row')} drawn: {out}")


@table_command
def report(
    model: Annotated[Path | None, typer.Argument(help="A file of refkernel fit.")] = None,
    data: Annotated[Path | None, typer.Argument(help="CSV, Parquet or Excel file that the model scores for the page.")] = None,
    state: Annotated[Path | None, typer.Option(help="A state of refkernel watch, for a page about the model in operation.")] = None,
    out: Annotated[Path, typer.Option(help="The page: one .html file that opens anywhere.")] = Path("report.html"),
    features: Annotated[str, typer.Option(help="Two numeric columns for the plane, separated by a comma; else principal components.")] = "",
    target_column: LabelColumn = None,
    target: Normal = None,
    *,
    options: "ReadOptions",
) -> None:
    """Write a page about a model and a table. It shows scores, a threshold to drag, the worst rows and why, a plane, drift."""
    if state is not None and model is None:
        from ..pages.operation import operation_page

        return say(f"Page: {operation_page(state, out)}")
    if model is None or state is not None:
        raise ValueError("Name a model file, or the state of a model in operation by --state, and not both.")
    if model.is_dir():
        raise ValueError(f"{model} is a folder; a model file is needed. Of a run: refkernel reproduce report.")
    from ..tabular.scoring import load_table_model

    _write_report(load_table_model(model), data, out, options, features=names(features), target_column=target_column, target=target)


def _write_report(saved: Any, data: Path | None, out: Path, options: "ReadOptions", **choices: Any) -> None:
    """The page of a model and a table."""
    from ..pages.page import report_file

    with progress_bar("report") as move:
        report_file(saved, data, out, options=options, progress=lambda share: move(completed=share, total=1.0), **choices)
    say(f"Page: {out}")
