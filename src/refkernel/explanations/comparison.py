"""A row compared with the most similar normal row that its model keeps: cheap for every model, and enough to order reasons."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._distances import negative_squared_distances
from .ranges import kept_rows

__all__ = ["Comparison"]

MOST_KEPT = 500
"""Rows among which the most similar one is searched."""

BLOCK = 4096
"""Rows that are compared at a time."""


class Comparison:
    """What each feature of a row x does to the most similar normal row z: score(z with x_g) - score(z).

    It costs one score for each feature, whatever the kernel. Only the features in which x and z differ most are compared; the others get 0.
    """

    def __init__(self, final: Any) -> None:
        self._final = final
        rows = kept_rows(final)
        decisions = final.decision_function(rows)
        normal = np.flatnonzero(decisions >= 0) if (decisions >= 0).any() else decisions.argmax()[None]
        self._normal = rows[normal[:: max(1, normal.size // MOST_KEPT)]]
        self._scores = final.score_samples(self._normal)

    def values(self, X: np.ndarray, feature: np.ndarray, count: int, most: int) -> np.ndarray:
        """The values of rows as the detector takes them (rows × count), for ``most`` features; ``feature`` is that of each column."""
        values = np.zeros((len(X), count))
        for i in range(0, len(X), BLOCK):
            part = slice(i, i + BLOCK)
            self._fill(X[part], feature, most, values[part])
        return values

    def _fill(self, X: np.ndarray, feature: np.ndarray, most: int, values: np.ndarray) -> None:
        nearest = negative_squared_distances(X, self._normal).argmax(axis=1)
        Z, before = self._normal[nearest], self._scores[nearest]
        for compared in _most_different(X, Z, feature, values.shape[1])[:, :most].T:
            changed = np.where(feature == compared[:, None], X, Z)
            values[np.arange(len(X)), compared] = self._final.score_samples(changed) - before


def _most_different(X: np.ndarray, Z: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
    """The numbers of the features in the order of squared differences, the largest first (rows × count)."""
    different = np.zeros((len(X), count))
    np.add.at(different.T, feature, np.square(X - Z).T)
    return np.argsort(-different, axis=1, kind="stable")
