"""Scores of different descriptions on one scale: minus the logarithm of the share of left-out training rows that score as high."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["Evidence"]

TAIL = 0.1
"""The share of the training rows whose excess over the rest measures the tail beyond the highest."""

FARTHEST = 1e300
"""Scores that overflow count as this many units away."""


class Evidence(BaseEstimator):
    """-log((rows that score as high + 1) / (n + 1)) by linear interpolation; beyond the highest row it grows with log(1 + excess)."""

    def __init__(self, held: np.ndarray) -> None:
        self.held = held

    def fit(self) -> Self:
        """Sort the scores of the left-out rows."""
        n = len(self.held)
        self._at = np.unique(self.held)
        rows_as_high = n - np.searchsorted(np.sort(self.held), self._at, side="left")
        self._value = -np.log((rows_as_high + 1.0) / (n + 1.0))
        excess = self._at[-1] - np.quantile(self.held, 1.0 - TAIL)
        self._unit = float(excess) if excess > 0 else float(np.abs(self._at[-1]) or 1.0)
        return self

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The evidence against each sample; at least 0."""
        with np.errstate(over="ignore"):
            excess = np.minimum(np.maximum(scores - self._at[-1], 0.0) / self._unit, FARTHEST)
        return np.interp(scores, self._at, self._value, left=0.0) + np.log1p(excess)
