"""What the page says: texts and numbers for the template, and data for its charts."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._core.files import write_text
from .._core.text import counted, named, p_text, percent
from .._core.threads import one_blas_thread
from ..detectors.explain.normal import Normal
from ..exceptions import TableError, _printable
from ..tabular.columns import ColumnProfile
from ..tabular.detector import TableDetector
from ..tabular.drawing import times
from ..tabular.drift import ColumnDrift, Drift, NumbersCount
from ..tabular.frames import check_names as check_frame
from ..tabular.readers import ReadOptions
from ..tabular.readers.values import Marks
from ..tabular.scoring import SavedModel, check_names, decide
from ..tabular.summary import Kept, Watch, labels_for
from . import check_page
from .charts import column_chart, known_scores, plane_chart, score_chart, thresholds, time_chart
from .html import page, source

MOST_WORST = 200  # rows that the page lists, the worst first
MOST_POINTS = 1_500  # rows that the plane shows, spread evenly over the table
MOST_CELLS = 40  # cells of a row that the page shows; more would hide the rows
MOST_BESIDE = 3  # columns beside the model's that the list of the worst rows shows: the time column, and those that fit left out
MOST_TEXT = 200  # characters of a cell
MOST_CHARTS = 200  # columns with a chart of their own, those that differ most first
LICENCES = {"Chart.js": "vendor/chart.js.LICENSE.md", "@kurkle/color": "vendor/kurkle-color.LICENSE.md"}  # of what the page embeds

STYLES = ("style.css", "report.css")
SCRIPTS = ("sorting.js", "vendor/chart.umd.min.js", "report.js")

Cell: TypeAlias = tuple[str, Any]
"""A cell of a table: its text, and what it is sorted by."""


def report_file(
    saved: SavedModel,
    data: Path | None,
    out: Path,
    *,
    options: ReadOptions = ReadOptions(),  # noqa: B008 (frozen)
    features: tuple[str, ...] = (),
    target_column: str | None = None,
    target: str | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> None:
    """Write the page of a model, and of a table if there is one."""
    check_page(out, saved.path, *([data] if data else []))
    watch = Watch(saved, worst=MOST_WORST, spread=MOST_POINTS)
    marks = Marks()
    if data is not None:
        table = saved.open(data, options)
        check_names(table, saved, [])
        watch.labels = labels_for(saved, table.names, target_column, target)
        with one_blas_thread():
            for block in table.blocks():
                rows = saved.rows_of(block, table.marks, watch.rows)
                watch.add(block, rows, decide(saved, rows))
                progress(table.share_read())
        marks = table.marks
    write_text(out, page_of(watch, data.name if data else None, features, marks), "The page")


def report_text(model: TableDetector, X: Any, features: Sequence[str]) -> str:
    """The page of a model, and of a data frame if there is one."""
    watch = Watch(SavedModel(Path("TableDetector"), model), worst=MOST_WORST, spread=MOST_POINTS)
    if X is not None:
        frame = check_frame(X).reset_index(drop=True)
        watch.labels = labels_for(watch.saved, list(frame.columns))
        with one_blas_thread():
            rows = model.read(frame)
            watch.add(frame, rows, decide(watch.saved, rows))
    return page_of(watch, None if X is None else "a data frame", tuple(features), Marks())


def page_of(watch: Watch, table: str | None, features: tuple[str, ...], marks: Marks) -> str:
    """The page; ``table`` is the name of the table that was scored, ``marks`` say how it writes dates and numbers."""
    saved, drift, agreement = watch.saved, watch.drift() if watch.rows else None, watch.agreement()
    steps = thresholds(saved, watch.scores, watch.kinds)
    plane = plane_chart(saved, watch.spread_rows, features) if watch.spread_rows is not None else None
    beside: list[str] = []
    worst: list[dict[str, Any]] = []
    cells: dict[str, Any] = {"names": [], "rows": []}
    when = None
    if watch.worst_rows is not None and watch.spread_rows is not None:
        beside, cells = _beside(watch, watch.worst_rows.cells), _cells(watch.worst_rows)
        worst = _worst_rows(watch, watch.worst_rows, beside)
        shown = watch.worst_rows.and_(watch.spread_rows)
        shown = shown.take(np.unique(shown.rows, return_index=True)[1])
        with suppress(TableError):  # texts that are no dates
            when = time_chart(times(shown.cells, saved, marks), shown)
    normals = {column.name: column.normal for column in saved.columns}
    tested = [] if drift is None else sorted(drift.columns, key=lambda column: (not column.found, -column.difference))
    values = {
        "title": _printable(saved.path.name if table is None else f"{saved.path.name} on {table}"),
        "table": table and _printable(table),
        "trained": percent(watch.trained_share or 0.0) if watch.flatters else None,
        "tiles": _tiles(watch, steps, drift, agreement),
        "learnt": _learnt(saved),
        "group_column": saved.model.group_column,
        "features": [_feature(column) for column in saved.columns],
        "agreement": agreement,
        "worst": worst,
        "explained": any(row["reasons"] for row in worst),
        "beside": beside,
        "cell_names": cells["names"],
        "rows": watch.rows,
        "drift_rows": [_drift_row(column, normals[column.name]) | {"chart": place < MOST_CHARTS} for place, column in enumerate(tested)],
        "drift_words": None if drift is None else _drift_words(drift),
        "plane": plane,
        "points": 0 if plane is None else len(plane["rows"]),
        "when": when,
        "steps": steps,
        "licences": [(name, source(file, __package__)) for name, file in LICENCES.items()],
        "data": {
            "thresholds": steps,
            "scores": score_chart(known_scores(saved)[1], watch.scores, watch.kinds),
            "plane": plane,
            "time": when,
            "cells": cells,
            "columns": [{"name": column.name, **column_chart(column, normals[column.name])} for column in tested[:MOST_CHARTS]],
            "rows": watch.rows,
            "normal_rows": agreement["normal_rows"] if agreement else 0,
            "other_rows": agreement["other_rows"] if agreement else 0,
        },
    }
    return page(str(__package__), "report.html", styles=STYLES, scripts=SCRIPTS, **values)


def _tiles(watch: Watch, steps: dict[str, Any], drift: Drift | None, agreement: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The figures above everything else, and what they mean."""
    step = steps["steps"][steps["own"]]
    tiles = []
    if watch.rows:
        tiles += [(f"{watch.rows:,}", "rows"), (f"{watch.outliers:,}", f"flagged ({percent(watch.outliers / watch.rows)})")]
    if step["low"] is not None:
        low, high = watch.saved.model.false_alarm_interval_
        interval = f"{100 * low:.2g} to {100 * high:.2g} %"
        tiles.append((percent(step["rate"]), f"of new normal rows are flagged, expected (90 % interval {interval})"))
    if agreement and agreement["auroc"] is not None:
        tiles.append((f"{agreement['auroc']:.3f}", f"AUROC, {agreement['column']} = {agreement['target']} against all others"))
    if drift is not None:
        tiles.append((f"{len(drift.drifted):,} of {len(drift.columns):,}", "columns differ from training"))
    return tiles


def _learnt(saved: SavedModel) -> list[tuple[str, str]]:
    """Facts about a model, by name."""
    card = saved.model.card_
    lines = [("kind", card["model"])]
    if card["choice"]:
        caught, auc = card["made_up_caught"], card["made_up_auc"]
        made_up = "not tried" if caught is None else f"{percent(caught)} are caught"
        made_up += "" if auc is None else f", told from left-out training rows with an AUROC of {auc:.3f}"
        lines += [("choice", card["choice"]), ("promise", _promise(card)), ("made-up outliers", made_up)]
    if card["rejected_outliers"] is not None:
        lines.append(("known outliers", f"{percent(card['rejected_outliers'])} of those in the training table are rejected"))
    if card["targets"]:
        rule = "" if card["target_column"] is None else f" with {card['target_column']} = {card['target']}"
        known = f", {counted(card['outliers'], 'known outlier')}" if card["outliers"] else ""
        lines.append(("trained on", f"{card['file'] or 'a data frame'}: {counted(card['targets'], 'normal row')}{rule}{known}"))
    for name, facts in (card["groups"] or {}).items():
        rate = "too few rows: the threshold of all rows" if facts is None else "{:.2g} % expected (90 % interval {:.2g} to {:.2g} %)"
        lines.append((f"{card['group_column']} = {name}", rate.format(*(100 * number for number in facts or ()))))
    if card["dropped"]:
        lines.append(("left out", named(card["dropped"], 20)))
    versions = ", ".join(f"{name} {version}" for name, version in card["versions"].items())
    return [*lines, ("threshold", f"score ≥ {saved.model.offset_:.6g}"), ("made", card["created"]), ("versions", versions)]


def _promise(card: dict[str, Any]) -> str:
    if card["false_alarm_rate"] is None:
        return f"none: {percent(card['accepted_targets'])} of the training rows are accepted, and of new ones probably fewer"
    low, high = card["false_alarm_interval"]
    rate, interval = percent(card["false_alarm_rate"]), f"{100 * low:.2g} and {100 * high:.2g} %"
    if card["held_out_rows"]:
        return f"none. {rate} of {card['held_out_rows']:,} held-out training rows were flagged (90 % interval: between {interval})"
    return (
        f"{rate} of new normal rows are flagged, expected; with a probability of 90 % the rate of this threshold is between {interval}. "
        "It holds as long as new normal rows are like those of training."
    )


def _feature(column: ColumnProfile) -> list[Cell]:
    """A column of the model: its kind, what is normal, all values, the median, the share that is missing."""
    normal, share = column.normal, column.missing_share
    range_, median = str(normal), (normal.written(column.typical), column.typical)
    if normal.low is None:
        range_, median = counted(len(column.levels), "level") if column.levels else "", ("", "")
    missing = (percent(share), share) if column.rows else ("", "")
    return [(column.name, column.name), *((text, text) for text in (column.kind, normal.most, range_)), median, missing]


def _beside(watch: Watch, cells: pd.DataFrame) -> list[str]:
    """Columns that say when and which a row is, although the model does not use them."""
    model, label = watch.saved.model, watch.labels and watch.labels.column
    names = [model.time_column, model.group_column, *(model.card_["dropped"] or [])]
    return [name for name in dict.fromkeys(names) if name in cells.columns and name != label][:MOST_BESIDE]


def _worst_rows(watch: Watch, kept: Kept, beside: list[str]) -> list[dict[str, Any]]:
    """The worst rows, with their reasons."""
    scores = kept.scores.tolist()
    p_values = kept.answers["p_value"].tolist() if "p_value" in kept.answers else [None] * len(scores)
    names = [*beside, *([watch.labels.column] if watch.labels else [])]
    shown = [[_cut(cell) for cell in kept.cells[name]] for name in names]
    columns = (kept.rows, scores, p_values, watch.worst_reasons, _views(watch, kept), *shown)
    return [
        {
            "row": int(row),
            "score": (f"{score:.4g}", score),
            "p": None if p is None else (f"{p:.2g}", p),
            "beside": cells[: len(beside)],
            "label": cells[len(beside) :],
            "reasons": [(reason.column, _cut(reason.value), _cut(reason.why)) for reason in why],
            "views": views,
        }
        for row, score, p, why, views, *cells in zip(*columns, strict=True)
    ]


def _views(watch: Watch, kept: Kept) -> list[str]:
    """What each view of an AutoDetector says against rows, the most first; nothing for detectors of one view."""
    detector = watch.saved.model._final
    if not hasattr(detector, "evidence") or not len(kept.rows):
        return [""] * len(kept.rows)
    names = detector.results_["view"]
    return [
        " · ".join(f"{names[i]} {values[i]:.1f}" for i in np.argsort(-values, kind="stable") if values[i] >= 0.05)
        for values in detector.evidence(kept.X.encoded)
    ]


def _cells(kept: Kept) -> dict[str, Any]:
    """The worst rows as they were read."""
    names = list(kept.cells.columns)[:MOST_CELLS]
    columns = [map(_cut, kept.cells[name].astype(object).where(kept.cells[name].notna(), "")) for name in names]
    return {"names": list(map(str, names)), "rows": [list(row) for row in zip(*columns, strict=True)]}


def _cut(cell: Any) -> str:
    text = "" if cell is None or cell is pd.NaT or cell != cell else str(cell)
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"


def _drift_row(found: ColumnDrift, normal: Normal) -> dict[str, Any]:
    count = found.count
    now, then = count.missing_share, count.column.missing_share
    change, outside = ("", ""), f"{count.unlike:,} never seen" if count.unlike else ""
    if isinstance(count, NumbersCount):
        medians = count.column.typical, float(np.median(count.tested)) if count.tested.size else np.nan
        change = " → ".join("–" if np.isnan(value) else normal.written(value) for value in medians), np.nan_to_num(medians[1] - medians[0])
        outside = ", ".join(f"{part:,} {side}" for part, side in zip(count.outside, ("below", "above"), strict=True) if part)
    return {
        "name": found.name,
        "found": found.found,
        "difference": (f"{100 * found.difference:.1f}", found.difference),
        "p": (p_text(found.corrected), found.corrected),
        "cells": [change, (outside, count.unlike), (f"{percent(then)} → {percent(now)}" if now or then else "", now - then)],
    }


def _drift_words(drift: Drift) -> str:
    """The outcome of the drift tests in a sentence or two."""
    words = f"No column differs from training by more than chance explains {drift.rule}."
    if drift.drifted:
        verb = "differs" if len(drift.drifted) == 1 else "differ"
        words = f"{len(drift.drifted):,} of {counted(len(drift.columns), 'column')} {verb} from training {drift.rule}: "
        words += named(column.name for column in drift.drifted) + "."
    if drift.scores is None:
        return words
    differ = f"differ from those of left-out training rows ({p_text(drift.scores.corrected)})"
    return f"{words} The scores {differ if drift.scores_found else 'are like those in training'}."
