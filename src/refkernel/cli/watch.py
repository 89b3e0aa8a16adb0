"""The commands for a model in operation: watch, review and compare."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.text import counted, percent
from .shared import app, clear_errors, reads_table, say
from .tables import ModelFile
from .words import print_notes

if TYPE_CHECKING:
    from ..tabular.readers import ReadOptions

ALARM = 3  # the exit code while there is an alarm
ROW = "watched_row"  # the column by which ``review`` knows a row
MOST_REASONS = 10  # rows whose change ``compare`` explains

StateFile = Annotated[Path, typer.Option(help="Where what was seen so far is kept, for example plant.state; made by the first run.")]


@app.command()
@reads_table
def watch(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file of new rows: each row once, in order of time.")],
    state: StateFile,
    out: Annotated[Path, typer.Option(help="CSV or Parquet file for the flagged rows, with p-values and reasons.")],
    level: Annotated[float, typer.Option(help="Probability of an alarm, ever, while nothing changes; for a new state.")] = 0.05,
    window: Annotated[int | None, typer.Option(help="How many of the newest rows are kept for review; for a new state.")] = None,
    *,
    options: ReadOptions,
) -> None:
    """Score new rows of a model in operation, and say what is new. The exit code is 3 while rows differ from those that calibrated."""
    with clear_errors("Stopped. The state is as it was."):
        import pandas as pd

        from ..export.files import save
        from ..tabular.drawing import times
        from ..tabular.monitor import Monitor, load_state
        from ..tabular.scoring import SavedModel, check_names, load_table_model
        from ..tabular.writing import check_writable, table_writer

        for written, others in ((state, (data, model)), (out, (data, model, state))):
            check_writable(written, *others)
        reasons = ("reason_1", "reason_2")
        with _alone(state):
            given: Any = load_table_model(model).model
            monitor = load_state(state, given) if state.exists() else Monitor(given, level, window=window)
            monitor._check()
            table = SavedModel(model, monitor.detector_).open(data, options)
            first, saved, parts = monitor.rows_, SavedModel(model, monitor.detector_, table.marks), []
            check_names(table, saved, [ROW, "p_value", *reasons])
            for block in table.blocks():
                rows, when = saved.rows_of(block, table.marks, monitor.rows_ - first), times(block, saved, table.marks)
                update = monitor.update(rows, None if when is None else when[1])
                flagged = update.labels == -1
                why = [[*map(str, mine), "", ""] for mine in saved.reasons(rows.take(flagged), len(reasons))]
                added = {"p_value": update.p_values[flagged]} | {name: [mine[i] for mine in why] for i, name in enumerate(reasons)}
                found = block[flagged].assign(**added)
                found.insert(0, ROW, update.rows[flagged])
                parts.append(found)
            with table_writer(out, table) as writer:
                writer.write(pd.concat(parts) if parts else pd.DataFrame(columns=[ROW, *table.names, "p_value", *reasons], dtype=object))
            save(monitor, state)
        print_notes(table.notes)
        say(monitor._summary(first, monitor._episodes(first)))
    if monitor.alarm_:
        raise typer.Exit(ALARM)


@app.command()
def review(
    state: Annotated[Path, typer.Argument(help="A state of refkernel watch.")],
    anomalies: Annotated[
        Path | None, typer.Option(help=f"Table of the rows since the last review that were anomalies, by the column {ROW}.")
    ] = None,
    no_anomalies: Annotated[bool, typer.Option("--no-anomalies", help="None of them was.")] = False,
    refit: Annotated[bool, typer.Option("--refit", help="Also learn anew from the reviewed rows that are kept.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the model, as it is now, to this file.")] = None,
) -> None:
    """Say which watched rows were anomalies. All others calibrate from now on, and evidence and alarm begin anew."""
    with clear_errors("Stopped. The state is as it was."):
        from ..export.files import save
        from ..tabular.monitor import load_state
        from ..tabular.readers import ReadOptions, open_table
        from ..tabular.writing import check_writable

        if (anomalies is None) != no_anomalies:
            raise ValueError("Name the rows that were anomalies by --anomalies, or say --no-anomalies.")
        for written in (state, *([out] if out else [])):
            check_writable(written, *([anomalies] if anomalies else []))
        numbers: list[float] = []
        if anomalies is not None:
            table = open_table(anomalies, ReadOptions())
            if ROW not in table.names:
                way_out = "Take the file of refkernel watch, and leave out the rows that were false alarms"
                raise ValueError(f"{anomalies} has no column {ROW}. {way_out}.")
            numbers = [number for block in table.blocks() for number in block[ROW].astype(float)]
        with _alone(state):
            monitor = load_state(state).review(numbers)
            if refit:
                monitor.refit()
            if out is not None:
                save(monitor.detector_, out)
            save(monitor, state)
        normal, anomalous = (int(count) for count in monitor.reviews_[-1, 1:])
        calibrate = f"{counted(monitor.martingale_.seen.size, 'row')} calibrate"
        promised = f"{percent(monitor.detector_.false_alarm_rate_)} of new normal rows will be flagged"
        say(f"{counted(normal, 'normal row')}, {counted(anomalous, 'anomaly', 'anomalies')}. {calibrate} now: {promised}.")


def _alone(state: Path) -> AbstractContextManager[None]:
    """No other process changes the state meanwhile."""
    from ..experiments.units import only_writer

    return only_writer(state.absolute().parent, f".{state.name}.lock", "Run watch and review of one state one after the other")


@app.command()
@reads_table
def compare(
    old: Annotated[Path, typer.Argument(help="The model in use: a file of refkernel fit.")],
    new: Annotated[Path, typer.Argument(help="The model that may replace it.")],
    data: Annotated[Path, typer.Argument(help="Rows that both models take.")],
    out: Annotated[Path | None, typer.Option(help="Write label and p-value of both models for each row, as CSV.")] = None,
    *,
    options: ReadOptions,
) -> None:
    """Say which rows two models judge differently, and why."""
    with clear_errors():
        import numpy as np
        import pandas as pd

        from .._core.files import write_text
        from ..tabular.comparison import compare as compared
        from ..tabular.scoring import check_names, load_table_model
        from ..tabular.writing import check_writable

        models = [load_table_model(old), load_table_model(new)]
        table = models[0].open(data, options)
        for saved in models:
            check_names(table, saved)
        if out is not None:
            check_writable(out, data, old, new)
        parts, reasons = list[Any](), list[str]()
        for block in table.blocks():
            first = sum(len(part) for part in parts)
            rows = [saved.rows_of(block, table.marks, first) for saved in models]
            found = compared(models[0].model, models[1].model, *rows).set_axis(range(first + 1, first + len(block) + 1))
            changed = np.flatnonzero(found.change != "")[: MOST_REASONS - len(reasons)]
            reasons += [_change(found.iloc[i], models, [part.take(np.array([i])) for part in rows]) for i in changed]
            parts.append(found)
        found = pd.concat(parts) if parts else pd.DataFrame({"label_old": [], "label_new": [], "change": []})
        for name, saved, label in (("old", models[0], found.label_old), ("new", models[1], found.label_new)):
            rate = saved.model.card_["false_alarm_rate"]
            promised = "promises no rate" if rate is None else f"promises {100 * rate:.1f} %"
            flags = f"{int((label == -1).sum()):,} of {counted(len(found), 'row')}"
            say(f"{name:8}flags {flags}; {promised} ({saved.path.name})")
        flagged, accepted = (int((found.change == change).sum()) for change in ("flagged", "accepted"))
        say(f"change  {flagged:,} newly flagged, {accepted:,} newly accepted")
        for line in reasons:
            say(line)
        if out is not None:
            write_text(out, found.to_csv(index_label="row"))


def _change(row: Any, models: list[Any], rows: list[Any]) -> str:
    """One changed row in words, with the reasons of the model that flags it."""
    which = 1 if row.change == "flagged" else 0
    why = "; ".join(str(reason) for reason in models[which].reasons(rows[which])[0])
    return f"row {row.name:,}: newly {row.change}, p = {row.p_value_old:.3f} before, {row.p_value_new:.3f} now. {why}"
