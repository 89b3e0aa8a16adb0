"""The numbers behind the charts of scores and of columns then and now."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._validation import OUTLIER
from ..drift import ColumnDrift
from ..drift.monitor import CategoriesCount
from ..explanations.normal import Normal
from ..tables import TableModel

__all__ = ["column_chart", "score_chart", "short", "trained_scores"]

BINS = 60
LONGEST_TAIL = 4.0
"""Scores further below the normal ones than this many times their range share the first bar."""

COLUMN_BINS = 24
MOST_LEVELS = 20
"""Bars of a column of categories; the others are one bar."""

DIGITS = 5
"""Significant digits of numbers that are only drawn."""


def trained_scores(saved: TableModel) -> np.ndarray:
    """Scores of normal training rows, as near to those of new rows as the model's file has them; empty if it has none."""
    calibration = getattr(saved.detector, "calibration_", None)
    if calibration is not None:
        return np.asarray(calibration)
    percentiles = (saved.about.get("training") or {}).get("decision_percentiles")
    return np.empty(0) if percentiles is None else np.asarray(percentiles) + saved.detector.offset_


def score_chart(trained: np.ndarray, scores: np.ndarray, kinds: np.ndarray | None) -> dict[str, Any]:
    """Shares of rows by score, for left-out training rows, for all rows of the table, and for those labelled as others."""
    sets = {"training": trained, "rows": scores}
    if kinds is not None and (kinds == OUTLIER).any():
        sets = {"training": trained, "normal": scores[kinds != OUTLIER], "others": scores[kinds == OUTLIER]}
    sets = {name: values for name, values in sets.items() if values.size}
    if not sets:
        return {"edges": [], "sets": {}, "below": False}
    together = np.concatenate(list(sets.values()))
    usual = sets.get("training", together)
    high, floor = together.max(), np.quantile(usual, 0.01)
    low = max(together.min(), floor - LONGEST_TAIL * (high - floor))
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    shares = {name: (np.histogram(np.clip(values, low, high), edges)[0] / values.size) for name, values in sets.items()}
    return {"edges": edges.tolist(), "sets": {name: short(values) for name, values in shares.items()}, "below": bool(together.min() < low)}


def column_chart(found: ColumnDrift, normal: Normal) -> dict[str, Any]:
    """Shares of rows by value, in training and now. The first and the last bar are values outside the range of training."""
    count = found.count
    if isinstance(count, CategoriesCount):
        return _levels_chart(count)
    old, knots, now = count.column, count.column.knots, count.rows - count.missing
    if not knots.size:
        return {"labels": ["any value"], "then": [0.0], "now": [float(now > 0)]}
    few = knots.size <= COLUMN_BINS
    edges = knots if few else np.linspace(knots[0], knots[-1], COLUMN_BINS + 1)[1:]
    then = (old.at_most if few else np.interp(edges, knots, old.at_most)) / max(old.present, 1)
    below, above = (outside / max(now, 1) for outside in count.outside)
    labels = [normal.written(edge) if few else f"≤ {normal.written(edge)}" for edge in edges]
    return {
        "labels": ["below", *labels, "above"],
        "then": short([0.0, *np.diff(then, prepend=0.0), 0.0]),
        "now": short([below, *np.maximum(np.diff(count.shares(edges), prepend=below), 0.0), above]),
    }


def _levels_chart(count: CategoriesCount) -> dict[str, Any]:
    levels = sorted(count.column.levels, key=lambda level: -count.column.levels[level])
    shown, others = levels[:MOST_LEVELS], levels[MOST_LEVELS:]
    old, now = max(count.column.present, 1), max(count.rows - count.missing, 1)
    bars = [(level, count.column.levels[level] / old, count.seen[level] / now) for level in shown]
    if others:
        parts = sum(count.column.levels[level] for level in others) / old, sum(count.seen[level] for level in others) / now
        bars.append((f"{len(others):,} others", *parts))
    bars.append(("never seen", 0.0, count.unseen_rows / now))
    labels, then, new = zip(*bars, strict=True)
    return {"labels": list(labels), "then": list(then), "now": list(new)}


def short(values: npt.ArrayLike) -> list[float]:
    """Numbers that are only drawn, with few digits: the page stays small."""
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=np.float64)]
