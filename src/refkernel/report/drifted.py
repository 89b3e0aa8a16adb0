"""Drift as the page shows it: a row for each column, and its values in training and now."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..drift import ColumnDrift, Drift
from ..drift.monitor import NumbersCount
from ..explanations.normal import Normal
from ..explanations.ranges import normal_of
from ..tables import TableModel
from .charts import column_chart
from .words import p_text, percent

__all__ = ["column_charts", "drift_rows"]

MOST_CHARTS = 200
"""Columns with a chart of their own, those that differ most first."""


def drift_rows(saved: TableModel, drift: Drift | None) -> list[dict[str, Any]]:
    """A row of the page's table for each column: those that differ first, by how much they differ."""
    written = _normals(saved)
    return [_drift_row(column, written[column.name], place < MOST_CHARTS) for place, column in enumerate(_ordered(drift))]


def column_charts(saved: TableModel, drift: Drift | None) -> list[dict[str, Any]]:
    """The charts of the first columns in that order."""
    written = _normals(saved)
    return [{"name": column.name, **column_chart(column, written[column.name])} for column in _ordered(drift)[:MOST_CHARTS]]


def _ordered(drift: Drift | None) -> list[ColumnDrift]:
    return [] if drift is None else sorted(drift.columns, key=lambda column: (not column.found, -column.difference))


def _normals(saved: TableModel) -> dict[str, Normal]:
    return {column.name: normal_of(column) or Normal() for column in saved.columns}


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
        return row | {
            "change": "",
            "change_sort": "",
            "outside": f"{count.unseen_rows:,} never seen" if count.unseen_rows else "",
            "outside_sort": count.unseen_rows,
        }
    low, high = count.outside
    median, now_median = count.column.quantile(0.5), count.median()
    change = f"{_shown(normal, median)} → {_shown(normal, now_median)}"
    moved = now_median - median
    texts = [f"{part:,} {side}" for part, side in ((low, "below"), (high, "above")) if part]
    return row | {
        "change": change,
        "change_sort": "" if np.isnan(moved) else moved,
        "outside": ", ".join(texts),
        "outside_sort": low + high,
    }


def _shown(normal: Normal, value: float) -> str:
    return "–" if np.isnan(value) else normal.written(value)
