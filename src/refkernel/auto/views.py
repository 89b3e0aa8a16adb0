"""Column views: the same table as two sets of numbers, so that neither long tails nor rare extremes decide alone."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["KINDS", "ColumnView"]

CONSTANT = 1e-9
"""A column whose range is below this share of its size (at least 1) is constant."""

CONSTANT_TOLERANCE = 1e-6
"""A value differs from a constant where it is farther away than this share of its size (at least 1)."""

TAIL_WIDTH = 2.0 * np.sqrt(np.pi / 2.0)
"""Mean absolute deviations at which ``arcsinh`` bends: two standard deviations of a normal column."""

KINDS = ("plain", "bent")


class ColumnView(BaseEstimator):
    """Columns standardised as they are ("plain"), or after arcsinh of the deviation from their median ("bent").

    A column that is constant in training is 0, and ± sqrt(n) for a row that differs: n rows agree, and this one does not. A column with
    a unit is divided by it in both kinds.
    """

    def __init__(self, kind: str = "plain", units: np.ndarray | None = None) -> None:
        self.kind = kind
        self.units = units

    def fit(self, X: np.ndarray) -> Self:
        """Learn medians, widths, and which columns are constant."""
        self.median_ = np.median(X, axis=0)
        size = np.maximum(1.0, np.abs(self.median_))
        deviation = _sizes(X - self.median_).mean(axis=0)
        given = np.zeros(X.shape[1], dtype=bool) if self.units is None else ~np.isnan(self.units)
        self.fixed_ = np.ptp(X, axis=0) <= CONSTANT * size
        self.constant_ = self.fixed_ & ~given
        self.tolerance_ = CONSTANT_TOLERANCE * size
        self.jump_ = float(np.sqrt(len(X)))
        self.width_ = np.where(self.constant_ | (deviation == 0), 1.0, TAIL_WIDTH * deviation)
        Z = self._bent(X)
        std = Z.std(axis=0)
        self.mean_, self.std_ = Z.mean(axis=0), np.where(self.constant_ | (std == 0), 1.0, std)
        if self.units is not None:
            self.width_[given], self.mean_[given], self.std_[given] = self.units[given], 0.0, 1.0
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """The rows in this view."""
        Z = self._bent(X)
        Z -= self.mean_
        Z /= self.std_
        if self.constant_.any():
            away = X[:, self.constant_] - self.median_[self.constant_]
            differs = np.abs(away) > self.tolerance_[self.constant_]
            Z[:, self.constant_] = np.where(differs, np.sign(away) * self.jump_, 0.0)
        return Z

    def contradicted(self, X: np.ndarray) -> np.ndarray:
        """True where a cell differs from what all training rows have in its column (n × columns)."""
        fixed = getattr(self, "fixed_", self.constant_)  # files of earlier versions do not have it
        return (np.abs(X - self.median_) > self.tolerance_) & fixed

    def alone(self, X: np.ndarray) -> np.ndarray:
        """True for training rows that contradict all others: without such a row, a column would be constant."""
        alone = np.zeros(len(X), dtype=bool)
        for j in np.flatnonzero(~getattr(self, "fixed_", self.constant_)):
            away = np.abs(X[:, j] - self.median_[j])
            differing = np.flatnonzero(away > CONSTANT / CONSTANT_TOLERANCE * self.tolerance_[j])
            if differing.size == 1 and away[differing[0]] > self.tolerance_[j]:
                alone[differing] = True
        return alone

    def _bent(self, X: np.ndarray) -> np.ndarray:
        away = X - self.median_
        away /= self.width_
        if self.kind != "bent":
            return away
        return np.arcsinh(away, out=away, where=True if self.units is None else np.isnan(self.units))


def _sizes(values: np.ndarray) -> np.ndarray:
    """|values|. Mutates them."""
    return np.abs(values, out=values)
