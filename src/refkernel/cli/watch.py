"""The commands for a model in operation: watch, review and compare."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.files import only_writer
from .._core.text import counted, percent
from .shared import app, clear_errors, say, table_command
from .tables import ModelFile
from .words import print_notes

if TYPE_CHECKING:
    from ..tabular.readers import ReadOptions

ALARM = 3  # the exit code while there is an alarm
ROW, REASONS = "watched_row", ("reason_1", "reason_2")  # columns of the flagged rows: the number by which ``review`` knows one, and why
MOST_REASONS = 10  # rows whose change ``compare`` explains


@table_command
def watch(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file of new rows: each row once, in order of time.")],
    state: Annotated[Path, typer.Option(help="Where what was seen so far is kept, for example plant.state; made by the first run.")],
    out: Annotated[Path, typer.Option(help="CSV or Parquet file for all flagged rows since the last review, with reasons.")],
    level: Annotated[float | None, typer.Option(help="Probability of an alarm, ever, without a change (0.05); for a new state.")] = None,
    window: Annotated[int | None, typer.Option(help="How many of the newest rows are kept for review; for a new state.")] = None,
    *,
    options: "ReadOptions",
) -> None:
    """Score new rows of a model in operation, and say what is new. The exit code is 3 while rows differ from those that calibrated."""
    with clear_errors("Stopped. The state is as it was."):
        from ..export.files import save
        from ..tabular.drawing import times
        from ..tabular.monitor import Monitor, load_state
        from ..tabular.scoring import SavedModel, check_names, load_table_model
        from ..tabular.writing import check_writable, table_writer

        check_writable(state, data, model)
        check_writable(out, data, model, state)
        with _alone(state):
            given: Any = load_table_model(model).model
            if not hasattr(given.encoder_, "kinds_"):
                raise ValueError(f"{model} holds no TableDetector: make it with refkernel fit, or watch it in Python by rk.Monitor.")
            monitor = load_state(state, given) if state.exists() else Monitor(given, 0.05 if level is None else level, window=window)
            asked = [("--level", level, monitor.level), ("--window", window, monitor._begun().window_)]
            table = SavedModel(model, monitor.detector_).open(data, options)
            first, saved, brought, batch = monitor.rows_, SavedModel(model, monitor.detector_, table.marks), list[Any](), ""
            unused = check_names(table, saved, [ROW, "p_value", *REASONS])
            for block in table.blocks():
                rows, when = saved.rows_of(block, table.marks, monitor.rows_ - first), times(block, saved, table.marks)
                update = monitor.update(rows, None if when is None else when[1])
                brought.append(block[unused].set_axis(update.rows)[update.labels == -1])
                batch = batch or monitor.digest_  # of the first block: it tells a second run
            monitor.digest_ = batch or monitor.digest_
            rows, flagged = monitor._flagged_rows(given.time_column or "time", brought)
            why = [[*map(str, mine), "", ""] for mine in saved.reasons(rows, len(REASONS))]
            with table_writer(out, table) as writer:
                writer.write(flagged.assign(**{name: [mine[i] for mine in why] for i, name in enumerate(REASONS)}))
            save(monitor, state)
        ignored = [f"{name} {new} is for a new state: {state} keeps {old}." for name, new, old in asked if new not in (None, old)]
        print_notes([*table.notes, *ignored])
        say(monitor._summary(first, monitor._episodes(first)))
    if monitor.alarm_:
        raise typer.Exit(ALARM)


@app.command()
def review(
    state: Annotated[Path, typer.Argument(help="A state of refkernel watch.")],
    anomalies: Annotated[Path | None, typer.Option(help=f"Table of the rows that were anomalies, by the column {ROW}.")] = None,
    no_anomalies: Annotated[bool, typer.Option("--no-anomalies", help="None of them was.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Go back to before the last review instead.")] = False,
    refit: Annotated[bool, typer.Option("--refit", help="Also learn anew from the reviewed rows that are kept.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the model, as it is now, to this file.")] = None,
) -> None:
    """Say which watched rows were anomalies. All others calibrate from now on, and evidence and alarm begin anew."""
    with clear_errors("Stopped. The state is as it was."):
        from ..export.files import save
        from ..tabular.monitor import load_state
        from ..tabular.readers import ReadOptions, open_table
        from ..tabular.writing import check_writable

        if (anomalies is not None) + no_anomalies + undo != 1 or (undo and refit):
            raise ValueError("Name the rows that were anomalies by --anomalies, or say --no-anomalies; or --undo the last review.")
        check_writable(state, *([anomalies] if anomalies else []))
        if out is not None:
            check_writable(out, state, *([anomalies] if anomalies else []))
        numbers = list[Any]()
        if anomalies is not None:
            if ROW not in (table := open_table(anomalies, ReadOptions())).names:
                raise ValueError(f"{anomalies} has no column {ROW}. Pass the rows of the file of refkernel watch that were anomalies.")
            numbers = [cell for block in table.blocks() for cell in block[ROW]]
        with _alone(state):
            monitor = load_state(state)
            monitor = monitor.undo() if undo else monitor.review(numbers)
            if refit:
                monitor.refit()
            if out is not None:
                save(monitor.detector_, out)
            save(monitor, state)
        told, now = f"The last review is undone: rows {monitor.start_:,} to {monitor.rows_ - 1:,} wait for one.", monitor.detector_
        if not undo:
            began, (until, normal, anomalous) = int(monitor.reviews_[-2:-1, 0].sum()), map(int, monitor.reviews_[-1, :3])
            lost = until - began - normal - anomalous
            gone = f" {counted(lost, 'older row')} had left the window of {monitor.window_:,}: review sooner, or raise --window."
            told = f"{counted(normal, 'normal row')}, {counted(anomalous, 'anomaly', 'anomalies')}.{gone if lost else ''}"
        say(f"{told} {counted(now._calibration_size(), 'row')} calibrate: {percent(now.false_alarm_rate_)} of new normal rows are flagged.")


def _alone(state: Path) -> AbstractContextManager[None]:
    """No other process changes the state meanwhile."""
    return only_writer(state.absolute().parent, f".{state.name}.lock", "Run watch and review of one state one after the other")


@table_command
def compare(
    old: Annotated[Path, typer.Argument(help="The model in use: a file of refkernel fit.")],
    new: Annotated[Path, typer.Argument(help="The model that may replace it.")],
    data: Annotated[Path, typer.Argument(help="Rows that both models take.")],
    out: Annotated[Path | None, typer.Option(help="Write label and p-value of both models for each row, as CSV.")] = None,
    *,
    options: "ReadOptions",
) -> None:
    """Say which rows two models judge differently, and why."""
    import pandas as pd

    from .._core.files import write_text
    from ..tabular.comparison import changes
    from ..tabular.scoring import check_names, load_table_model
    from ..tabular.writing import check_writable

    models = [load_table_model(old), load_table_model(new)]
    table = models[0].open(data, options)
    for saved in models:
        check_names(table, saved)
    if out is not None:
        check_writable(out, data, old, new)
    frame = pd.concat(list(table.blocks()) or [pd.DataFrame(columns=table.names, dtype=object)], ignore_index=True)
    found = changes([saved.model for saved in models], [saved.rows_of(frame, table.marks).frame() for saved in models])
    found.index += 1
    for name, saved, label in (("old", models[0], found.label_old), ("new", models[1], found.label_new)):
        rate = saved.model.card_["false_alarm_rate"]
        promised = "promises no rate" if rate is None else f"promises {100 * rate:.1f} %"
        say(f"{name:8}flags {(label == -1).sum():,} of {counted(len(found), 'row')}; {promised} ({saved.path.name})")
    flagged, accepted = (int((found.change == change).sum()) for change in ("flagged", "accepted"))
    say(f"change  {flagged:,} newly flagged, {accepted:,} newly accepted")
    for row in found[found.change != ""][:MOST_REASONS].itertuples():
        p = [f", p = {value:.3f}" if value == value else "" for value in (row.p_value_old, row.p_value_new)]
        say(f"row {row.Index:,}: newly {row.change}. Old{p[0]}: {row.reason_old or '–'}. New{p[1]}: {row.reason_new or '–'}")
    if out is not None:
        write_text(out, found.to_csv(index_label="row"))
