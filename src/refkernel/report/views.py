"""What the page says, made of what is known: texts and numbers for the template, and data for its charts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._pages import source
from ..drift import Drift
from ..tables.explaining import reasons_of
from ..tables.summary import Watch
from .charts import score_chart, trained_scores
from .drifted import column_charts, drift_rows
from .learnt import features_of, learnt_of
from .planes import plane_chart
from .rows import cells_of, worst_rows
from .thresholds import thresholds
from .words import drift_words, percent

__all__ = ["page_values"]

LICENCES = {"Chart.js": "vendor/chart.js.LICENSE.md", "@kurkle/color": "vendor/kurkle-color.LICENSE.md"}
"""Of what the page embeds."""


def page_values(watch: Watch, data: Path | None, features: tuple[str, ...] = ()) -> dict[str, Any]:
    """All values of the template."""
    saved, drift = watch.saved, watch.drift() if watch.rows else None
    steps = thresholds(saved, watch.scores, watch.kinds)
    plane = plane_chart(saved, watch.spread_rows, features) if watch.spread_rows is not None else None
    agreement, cells = watch.agreement(), cells_of(watch)
    reasons = [] if watch.worst_rows is None else reasons_of(saved, watch.worst_rows.X)
    return {
        "title": saved.path.name if data is None else f"{saved.path.name} on {data.name}",
        "table": None if data is None else data.name,
        "trained": percent(watch.trained_share or 0.0) if watch.flatters else None,
        "tiles": _tiles(watch, steps, drift, agreement),
        "learnt": learnt_of(saved),
        "features": features_of(saved),
        "agreement": agreement,
        "worst": worst_rows(watch, reasons),
        "explained": any(reasons),
        "cell_names": cells["names"],
        "rows": watch.rows,
        "drift_rows": drift_rows(saved, drift),
        "drift_words": None if drift is None else drift_words(drift),
        "has_plane": plane is not None,
        "is_slice": plane is not None and plane["slice"],
        "points": 0 if plane is None else len(plane["rows"]),
        "steps": steps,
        "licences": [(name, source(file, (__package__,))) for name, file in LICENCES.items()],
        "data": {
            "thresholds": steps,
            "scores": score_chart(trained_scores(saved), watch.scores, watch.kinds),
            "plane": plane,
            "cells": cells,
            "columns": column_charts(saved, drift),
            "rows": watch.rows,
            "normal_rows": agreement["normal_rows"] if agreement else 0,
            "other_rows": agreement["other_rows"] if agreement else 0,
        },
    }


def _tiles(watch: Watch, steps: dict[str, Any], drift: Drift | None, agreement: dict[str, Any] | None) -> list[tuple[str, str]]:
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
