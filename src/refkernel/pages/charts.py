"""The numbers behind the charts and the slider: scores, thresholds, columns then and now, the plane of the data."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .._core.validation import OUTLIER
from ..detectors.explain.normal import Normal
from ..tabular.card import PERCENT
from ..tabular.drawing import GRID, region_of
from ..tabular.drift import CategoriesCount, ColumnDrift
from ..tabular.scoring import SavedModel
from ..tabular.summary import Kept

BINS = 60
LONGEST_TAIL = 4.0  # scores further below the normal ones than this many times their range share the first bar
MOST_STEPS = 200  # positions of the slider
HIGHEST_RATE = 0.5  # nobody flags more than half of the normal rows
COLUMN_BINS = 24
MOST_LEVELS = 20  # bars of a column of categories; the others are one bar
DIGITS = 5  # significant digits of numbers that are only drawn


def known_scores(saved: SavedModel) -> tuple[str, np.ndarray]:
    """Scores of normal training rows, and what they tell of: "new" rows if they were left out, "training" rows, or "none"."""
    calibration, percentiles = getattr(saved.model, "calibration_", None), saved.model.percentiles_
    if calibration is not None:
        return "new", np.asarray(calibration)
    return ("none", np.empty(0)) if percentiles is None else ("training", percentiles + saved.model.offset_)


def thresholds(saved: SavedModel, scores: np.ndarray, kinds: np.ndarray | None) -> dict[str, Any]:
    """The steps of a slider from few to many flagged rows, and the number of the model's own among them.

    A step is a score, the share of new normal rows (or of training rows) below it with its bounds, and the table's rows that it flags. All
    bounds hold together, so that they still hold for the step that is picked after looking; ``wrong`` bounds the flagged rows' normal ones.
    """
    own, (basis, trained) = float(saved.model.offset_), known_scores(saved)
    wrong = np.empty(0)
    found: list[tuple[Any, ...]]
    if basis == "new":
        n, band = trained.size, saved.model._final.false_alarm_band()
        most = max(1, int(HIGHEST_RATE * (n + 1)))  # the k-th of n left-out rows flags k / (n + 1) of new normal ones
        spaced = np.geomspace(1, most, MOST_STEPS).round().astype(int)
        ranks = np.unique([*spaced, np.searchsorted(trained, own) + 1, *(range(1, most + 1) if most <= MOST_STEPS else ())])
        ranks = ranks[ranks <= n]
        places, wrong = trained[ranks - 1], band.wrong_share(np.sort(scores))
        found = list(zip(places, ranks / (n + 1), *band.at(places), strict=True))
    elif basis == "training":
        places = np.unique(np.append(trained[PERCENT <= 100 * HIGHEST_RATE], own))
        found = [(score, float(np.interp(score, trained, PERCENT / 100)), None, None) for score in places]
    else:
        places = np.quantile(scores, np.linspace(0.0, HIGHEST_RATE, MOST_STEPS)) if scores.size else np.empty(0)
        found = [(score, None, None, None) for score in np.unique(np.append(places, own))]
    steps = []
    for score, rate, low, high in found:
        flagged = scores < score
        rows = {"flagged": flagged, "false_alarms": None, "caught": None}
        if kinds is not None:
            rows |= {"false_alarms": flagged[kinds == 1], "caught": flagged[kinds == OUTLIER]}
        counts = {name: int(chosen.sum()) if scores.size and chosen is not None else None for name, chosen in rows.items()}
        worst = float(wrong[counts["flagged"] - 1]) if wrong.size and counts["flagged"] else None
        steps.append({"score": float(score), "rate": rate, "low": low, "high": high, "wrong": worst, **counts})
    nearest = min(range(len(steps)), key=lambda i: (abs(steps[i]["score"] - own), steps[i]["score"]))
    return {"steps": steps, "own": nearest, "basis": basis}


def score_chart(trained: np.ndarray, scores: np.ndarray, kinds: np.ndarray | None) -> dict[str, Any]:
    """Shares of rows by score, for training rows, for all rows of the table, and for those labelled as others."""
    sets = {"training": trained, "rows": scores}
    if kinds is not None and (kinds == OUTLIER).any():
        sets = {"training": trained, "normal": scores[kinds != OUTLIER], "others": scores[kinds == OUTLIER]}
    sets = {name: values for name, values in sets.items() if values.size}
    if not sets:
        return {"edges": [], "sets": {}, "below": False}
    together = np.concatenate(list(sets.values()))
    high, floor = together.max(), np.quantile(sets.get("training", together), 0.01)
    low = max(together.min(), floor - LONGEST_TAIL * (high - floor))
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    shares = {name: short(np.histogram(np.clip(values, low, high), edges)[0] / values.size) for name, values in sets.items()}
    return {"edges": edges.tolist(), "sets": shares, "below": bool(together.min() < low)}


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
    at_most = np.searchsorted(count.tested, edges, "right") / max(count.tested.size, 1)
    labels = [normal.written(edge) if few else f"≤ {normal.written(edge)}" for edge in edges]
    return {
        "labels": ["below", *labels, "above"],
        "then": short([0.0, *np.diff(then, prepend=0.0), 0.0]),
        "now": short([below, *np.maximum(np.diff(at_most, prepend=below), 0.0), above]),
    }


def _levels_chart(count: CategoriesCount) -> dict[str, Any]:
    levels = list(zip(count.column.levels, count.column.counts, strict=True))
    old, now = max(count.column.present, 1), max(count.rows - count.missing, 1)
    bars = [(level, then / old, count.seen[level] / now) for level, then in levels[:MOST_LEVELS]]
    if others := levels[MOST_LEVELS:]:
        parts = sum(then for _, then in others) / old, sum(count.seen[level] for level, _ in others) / now
        bars.append((f"{len(others):,} others", *parts))
    labels, then, new = zip(*bars, ("never seen", 0.0, count.unlike / now), strict=True)
    return {"labels": list(labels), "then": list(then), "now": list(new)}


def plane_chart(saved: SavedModel, kept: Kept, features: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """Points and a grid of scores on a plane through them; None where the rows do not span one."""
    if (region := region_of(saved, kept.X, features)) is None:
        return None
    on_it = kept.take(region.rows)
    return {
        "labels": region.labels,
        "x": [float(region.x[0]), float(region.x[-1])],
        "y": [float(region.y[0]), float(region.y[-1])],
        "grid": GRID,
        "scores": short(region.scores),
        "points": [short(region.points[:, 0]), short(region.points[:, 1])],
        "of_points": on_it.answers["score"].tolist(),
        "rows": on_it.rows.tolist(),
        "slice": region.is_slice,
    }


def time_chart(when: tuple[str, np.ndarray] | None, kept: Kept) -> dict[str, Any] | None:
    """Scores of some rows over time, in milliseconds since 1970 or in the numbers of the time column; rows without a time are left out."""
    name, moments = when or ("", np.empty(0, dtype=object))
    if moments.dtype.kind not in "Mfiu":
        return None
    dates = moments.dtype.kind == "M"
    at = np.where(np.isnat(moments), np.nan, moments.astype("datetime64[ms]").astype(np.float64)) if dates else moments.astype(np.float64)
    if not (known := ~np.isnan(at)).any():
        return None
    rows, scores = kept.rows[known].tolist(), short(kept.scores[known])
    return {"name": name, "dates": dates, "at": at[known].tolist(), "scores": scores, "rows": rows}


def short(values: npt.ArrayLike) -> list[float]:
    """Numbers that are only drawn, with few digits: the page stays small."""
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=np.float64)]
