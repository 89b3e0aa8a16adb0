"""What the page says, made of what is known: texts and numbers for the template, and data for its charts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..drift import LEVEL, Categories, Column, ColumnDrift, Drift
from ..drift.monitor import NumbersCount
from ..explanations.normal import Normal
from ..tables import TableModel
from ..tables.wording import counted, named
from ..tables.reasons import Reason, normals_of, reasons_of
from ..tables.summary import Watch, training_columns
from .charts import column_chart, score_chart, trained_scores
from .planes import plane_chart
from .thresholds import thresholds

__all__ = ["page_values"]

TAIL = 0.01
"""What is normal in a column of numbers leaves out this share of the training values on each side."""

MOST_CELLS = 40
"""Cells of a row that the page shows; more would hide the rows."""

MOST_TEXT = 200
"""Characters of a cell."""

MOST_CHARTS = 200
"""Columns with a chart of their own, those that differ most first."""


def page_values(watch: Watch, data: Path | None, features: tuple[str, ...] = ()) -> dict[str, Any]:
    """All values of the template."""
    saved, drift = watch.saved, watch.drift() if watch.rows else None
    columns, normals = training_columns(saved), normals_of(saved)
    kinds = [feature.kind for feature in saved.features] if columns else []
    written = dict(zip((column.name for column in columns), normals, strict=True))
    steps = thresholds(saved, watch.scores, watch.kinds)
    plane = plane_chart(saved, watch.spread_rows, features) if watch.spread_rows is not None else None
    by_drift = [] if drift is None else sorted(drift.columns, key=lambda column: (not column.found, -column.difference))
    charted = by_drift[:MOST_CHARTS]
    agreement, cells = watch.agreement(), _cells(watch)
    worst = [] if watch.worst_rows is None else reasons_of(saved, watch.worst_rows.X)
    return {
        "title": saved.path.name if data is None else f"{saved.path.name} on {data.name}",
        "model": saved.path.name,
        "table": None if data is None else data.name,
        "is_training": data is not None and data.name == (saved.about.get("data") or {}).get("file"),
        "tiles": _tiles(watch, steps, drift, agreement),
        "learnt": _learnt(saved),
        "features": [_feature(*item) for item in zip(columns, kinds, normals_of(saved, TAIL), normals, strict=True)] or [_bare(feature) for feature in saved.features],
        "agreement": agreement,
        "worst": _worst(watch, worst),
        "explained": bool(worst) and all(reason.weight is not None for row in worst for reason in row),
        "cell_names": cells["names"],
        "rows": watch.rows,
        "drift": drift,
        "drift_rows": [] if drift is None else [_drift_row(column, written[column.name], place < MOST_CHARTS) for place, column in enumerate(by_drift)],
        "drift_words": None if drift is None else drift_words(drift),
        "has_plane": plane is not None,
        "is_slice": plane is not None and plane["slice"],
        "points": 0 if plane is None else len(plane["rows"]),
        "steps": steps,
        "licences": _licences(),
        "data": {
            "thresholds": steps,
            "scores": score_chart(trained_scores(saved), watch.scores, watch.kinds),
            "plane": plane,
            "cells": cells,
            "columns": [{"name": column.name, **column_chart(column, written[column.name])} for column in charted],
            "rows": watch.rows,
            "normal_rows": agreement["normal_rows"] if agreement else 0,
            "other_rows": agreement["other_rows"] if agreement else 0,
        },
    }


def drift_words(drift: Drift) -> str:
    """The outcome of the drift tests in a sentence or two."""
    tests = len(drift.columns) + (drift.scores is not None)
    rule = f"({100 * LEVEL:g} % level, corrected for {counted(tests, 'test')})"
    if not drift.drifted:
        columns = f"No column differs from training by more than chance explains {rule}."
    else:
        verb = "differs" if len(drift.drifted) == 1 else "differ"
        columns = f"{len(drift.drifted):,} of {counted(len(drift.columns), 'column')} {verb} from training {rule}: "
        columns += named(column.name for column in drift.drifted) + "."
    if drift.scores is None:
        return columns
    scores = f"differ from those of left-out training rows ({p_text(drift.scores[2])})" if drift.scores_found else "are like those in training"
    return f"{columns} The scores {scores}."


def p_text(p: float) -> str:
    """A p-value as text."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def percent(share: float | None) -> str:
    """A share in percent, with as many digits as it can bear."""
    return "–" if share is None else f"{100 * share:.3g} %"


def _tiles(watch, steps, drift, agreement) -> list[tuple[str, str]]:
    step = steps["steps"][steps["own"]]
    tiles = []
    if watch.rows:
        tiles.append((f"{watch.rows:,}", "rows"))
        tiles.append((f"{step['flagged']:,}", f"flagged ({percent(step['flagged'] / watch.rows)})"))
    if step["low"] is not None:
        interval = f"{100 * step['low']:.2g} to {100 * step['high']:.2g} %"
        tiles.append((percent(step["rate"]), f"of new normal rows are flagged, expected (90 % interval {interval})"))
    if agreement and agreement["auroc"] is not None:
        tiles.append((f"{agreement['auroc']:.3f}", f"AUROC, {agreement['column']} = {agreement['target']} against all others"))
    if drift is not None:
        tiles.append((f"{len(drift.drifted):,} of {len(drift.columns):,}", "columns differ from training"))
    return tiles


def _learnt(saved: TableModel) -> list[tuple[str, str]]:
    about, detector = saved.about, saved.detector
    data, training = about.get("data"), about.get("training") or {}
    lines = [("kind", type(detector).__name__)]
    if "choice" in training:
        lines.append(("choice", training["choice"]))
    elif training:
        lines.append(("choice", f"nu = {training['nu']:g}, scale = {training['scale']:g}, references: {about['recipe']['references']}"))
    if training:
        lines += [("promise", _promise(training)), ("made-up outliers", _made_up(training))]
    if training.get("rejected_outliers") is not None:
        lines.append(("known outliers", f"{percent(training['rejected_outliers'])} of those in the training table are rejected"))
    if data:
        rule = "" if data["target_column"] is None else f" with {data['target_column']} = {data['target']}"
        known = f", {counted(data['outliers'], 'known outlier')}" if data["outliers"] else ""
        lines.append(("trained on", f"{data['file']}: {counted(data['targets'], 'normal row')}{rule}{known}"))
        if data["dropped"]:
            lines.append(("left out", named(data["dropped"], 20)))
    lines.append(("threshold", f"score ≥ {detector.offset_:.6g}"))
    versions = ", ".join(f"{name} {version}" for name, version in saved.metadata["versions"].items())
    return [*lines, ("made", saved.metadata["created"]), ("versions", versions)]


def _promise(training: dict[str, Any]) -> str:
    if training.get("false_alarm_rate") is None:
        return f"none: {percent(training['accepted_targets'])} of the training rows are accepted, and of new ones probably fewer"
    low, high = training["false_alarm_interval"]
    rate, interval = percent(training["false_alarm_rate"]), f"{100 * low:.2g} and {100 * high:.2g} %"
    if "choice" not in training:
        return f"none. {rate} of {training['held_out_rows']:,} held-out training rows were flagged (90 % interval: between {interval})"
    return (
        f"{rate} of new normal rows are flagged, expected; with a probability of 90 % the rate of this threshold is between {interval}. "
        "It holds as long as new normal rows are like those of training."
    )


def _made_up(training: dict[str, Any]) -> str:
    caught, auc = training.get("made_up_caught"), training.get("made_up_auc")
    texts = [] if caught is None else [f"{percent(caught)} are caught"]
    texts += [] if auc is None else [f"told from left-out training rows with an AUROC of {auc:.3f}"]
    return ", ".join(texts) or "not tried"


def _feature(column: Column, kind: str, normal: Normal, everything: Normal) -> dict[str, Any]:
    share = column.missing / column.rows if column.rows else 0.0
    base = {"name": column.name, "kind": kind, "missing": percent(share), "missing_sort": share, "normal": str(normal)}
    if isinstance(column, Categories) or normal.typical is None:
        levels = counted(len(column.levels), "level") if isinstance(column, Categories) else ""
        return base | {"range": levels, "median": "", "median_sort": ""}
    return base | {"range": str(everything), "median": normal.written(normal.typical), "median_sort": normal.typical}


def _bare(feature) -> dict[str, Any]:
    normal = "" if feature.categories is None else named(feature.categories)
    unknown = {"range": "", "median": "", "median_sort": "", "missing": "", "missing_sort": ""}
    return {"name": feature.name, "kind": feature.kind, "normal": normal, **unknown}


def _worst(watch: Watch, reasons: list[list[Reason]]) -> list[dict[str, Any]]:
    kept = watch.worst_rows
    if kept is None:
        return []
    p_values = kept.answers["p_value"] if "p_value" in kept.answers else [None] * len(kept.rows)
    label = watch.labels.column if watch.labels else None
    found = []
    for i, row in enumerate(kept.rows):
        found.append(
            {
                "row": int(row),
                "score": float(kept.answers["score"].iloc[i]),
                "score_text": f"{kept.answers['score'].iloc[i]:.4g}",
                "p": None if p_values[i] is None else float(p_values[i]),
                "p_text": "" if p_values[i] is None else f"{p_values[i]:.2g}",
                "label": "" if label is None else _cut(kept.cells[label].iloc[i]),
                "reasons": [(reason.column, _cut(reason.value), reason.normal, reason.outside) for reason in reasons[i]],
            }
        )
    return found


def _cells(watch: Watch) -> dict[str, Any]:
    """The worst rows as they were read."""
    kept = watch.worst_rows
    if kept is None:
        return {"names": [], "rows": []}
    names = list(kept.cells.columns)[:MOST_CELLS]
    columns = [[_cut(cell) for cell in kept.cells[name].astype(object).where(kept.cells[name].notna(), "")] for name in names]
    return {"names": list(map(str, names)), "rows": [list(row) for row in zip(*columns, strict=True)]}


def _cut(cell) -> str:
    text = "" if cell is None or cell != cell else str(cell)
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"


def _drift_row(found: ColumnDrift, normal: Normal, has_chart: bool) -> dict[str, Any]:
    count = found.count
    column = count.column
    now, then = (part.missing / part.rows if part.rows else 0.0 for part in (count, column))
    row = {
        "name": found.name,
        "found": found.found,
        "difference": f"{100 * found.difference:.1f}",
        "difference_sort": found.difference,
        "p": p_text(found.corrected),
        "p_sort": found.corrected,
        "missing": f"{percent(then)} → {percent(now)}" if now or then else "",
        "missing_sort": now - then,
        "chart": has_chart,
    }
    if not isinstance(count, NumbersCount):
        return row | {"change": "", "change_sort": "", "outside": f"{count.unseen_rows:,} never seen" if count.unseen_rows else "", "outside_sort": count.unseen_rows}
    low, high = count.outside
    median, now_median = count.column.quantile(0.5), count.median()
    change = f"{_shown(normal, median)} → {_shown(normal, now_median)}"
    moved = now_median - median
    texts = [f"{part:,} {side}" for part, side in ((low, "below"), (high, "above")) if part]
    return row | {"change": change, "change_sort": "" if np.isnan(moved) else moved, "outside": ", ".join(texts), "outside_sort": low + high}


def _shown(normal: Normal, value: float) -> str:
    return "–" if np.isnan(value) else normal.written(value)


def _licences() -> list[tuple[str, str]]:
    from .._pages import source

    names = {"Chart.js": "vendor/chart.js.LICENSE.md", "@kurkle/color": "vendor/kurkle-color.LICENSE.md"}
    return [(name, source(file, (__package__,)) or "") for name, file in names.items()]
