"""Which value of a row its worst one does not go with: for rows whose values are all normal by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._distances import negative_squared_distances
from ..auto import AutoDetector
from .ranges import kept_rows

__all__ = ["Combination"]

MOST_KEPT = 500
"""Rows among which the most similar one is searched."""

BLOCK = 4096
"""Rows that are compared at a time."""

ALIKE = 10.0
"""The most similar row is one that agrees in the worst feature first: differences there count this many times."""


class Combination:
    """Finds the normal row that is like x in its worst feature, and the feature in which x differs from it most."""

    def __init__(self, final: Any) -> None:
        self._view = final._views[0].transform if isinstance(final, AutoDetector) else np.asarray
        self._unit = final._unit if isinstance(final, AutoDetector) else 1.0
        rows = kept_rows(final)
        self._rows = self._seen(rows[:: max(1, len(rows) // MOST_KEPT)])

    def partners(self, X: np.ndarray, feature: np.ndarray, count: int, worst: np.ndarray) -> np.ndarray:
        """The other feature of each row, -1 where ``worst`` is; X as the detector takes it, ``feature`` is that of each column."""
        found = np.full(len(X), -1)
        for number in np.unique(worst[worst >= 0]):
            mine = np.flatnonzero(worst == number)
            for start in range(0, len(mine), BLOCK):
                block = mine[start : start + BLOCK]
                found[block] = self._other(self._seen(X[block]), feature, count, number)
        return found

    def _seen(self, X: np.ndarray) -> np.ndarray:
        return np.clip(self._view(X / self._unit), -1e100, 1e100)

    def _other(self, X: np.ndarray, feature: np.ndarray, count: int, number: int) -> np.ndarray:
        weight = np.where(feature == number, ALIKE, 1.0)
        nearest = self._rows[negative_squared_distances(X * weight, self._rows * weight).argmax(axis=1)]
        away = np.zeros((len(X), int(feature.max()) + 1))
        np.add.at(away.T, feature, np.abs(X - nearest).T)
        away[:, number] = -1.0
        return away[:, :count].argmax(axis=1)
