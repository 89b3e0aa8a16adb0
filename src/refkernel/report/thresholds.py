"""Thresholds that a reader can choose between, and what each would mean: expected false alarms, rows flagged, labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._validation import OUTLIER
from ..calibration import Promise
from ..tables import TableModel
from ..tables.fitting import PERCENT

__all__ = ["Threshold", "thresholds"]

MOST_STEPS = 200
"""Positions of the slider."""

HIGHEST_RATE = 0.5
"""Nobody flags more than half of the normal rows."""


@dataclass(frozen=True)
class Threshold:
    """A threshold, and what follows from it. Shares of rows that are not known are None."""

    score: float
    rate: float | None
    """The share of new normal rows to be flagged (of training rows, for a model that promises nothing)."""
    low: float | None = None
    high: float | None = None
    flagged: int | None = None
    false_alarms: int | None = None
    caught: int | None = None


def thresholds(saved: TableModel, scores: np.ndarray, kinds: np.ndarray | None) -> dict[str, Any]:
    """The steps of a slider from few to many flagged rows, and the number of the model's own among them."""
    own = float(saved.detector.offset_)
    calibration = getattr(saved.detector, "calibration_", None)
    percentiles = (saved.about.get("training") or {}).get("decision_percentiles")
    if calibration is not None:
        steps = _promised(np.asarray(calibration), own)
    elif percentiles is not None:
        steps = _of_training(np.asarray(percentiles) + own, own)
    else:
        shares = np.linspace(0.0, HIGHEST_RATE, MOST_STEPS)
        found = np.unique(np.append(np.quantile(scores, shares) if scores.size else [], own))
        steps = [Threshold(float(score), None) for score in found]
    steps = [_with_counts(step, scores, kinds) for step in steps]
    chosen = min(range(len(steps)), key=lambda i: (abs(steps[i].score - own), steps[i].score))
    basis = "new" if calibration is not None else "training" if percentiles is not None else "none"
    return {"steps": [asdict(step) for step in steps], "own": chosen, "basis": basis}


def _promised(calibration: np.ndarray, own: float) -> list[Threshold]:
    """Thresholds at order statistics of left-out training rows: the k-th smallest of n flags k / (n + 1) of new normal rows."""
    n = calibration.size
    most = max(1, int(HIGHEST_RATE * (n + 1)))
    spaced = np.geomspace(1, most, MOST_STEPS).round().astype(int)
    ranks = np.unique([*spaced, np.searchsorted(calibration, own) + 1, *(range(1, most + 1) if most <= MOST_STEPS else ())])
    found = []
    for rank in (int(rank) for rank in ranks if rank <= n):
        low, high = Promise(n, rank, rank / (n + 1)).interval()
        found.append(Threshold(float(calibration[rank - 1]), rank / (n + 1), low, high))
    return found


def _of_training(percentiles: np.ndarray, own: float) -> list[Threshold]:
    """Thresholds at percentiles of the training rows' scores, and the model's own."""
    found = np.unique(np.append(percentiles[PERCENT <= 100 * HIGHEST_RATE], own))
    return [Threshold(float(score), float(np.interp(score, percentiles, PERCENT / 100))) for score in found]


def _with_counts(step: Threshold, scores: np.ndarray, kinds: np.ndarray | None) -> Threshold:
    if not scores.size:
        return step
    flagged = scores < step.score
    counts = {"flagged": int(flagged.sum())}
    if kinds is not None:
        counts |= {"false_alarms": int(flagged[kinds == 1].sum()), "caught": int(flagged[kinds == OUTLIER].sum())}
    return Threshold(**{**asdict(step), **counts})
