"""The nearest rows by L1 distance, exactly; among many rows, most are passed over by a lower bound on whole numbers.

Values are rounded down to whole multiples of one ``step`` and kept in 16 bits, of which a register holds 32. Rounding moves a column's
difference by less than one step, and cutting off large values only shrinks it, so step · (sum of whole differences - d) is a lower
bound. The few rows whose bound is low enough are measured in full, in the order of a plain search: the answer is the same to the bit.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from ._distances import nearest_l1
from ._jit import njit

__all__ = ["Screen", "nearest_l1_screened"]

FEWEST_ROWS, MOST_COLUMNS = 4096, 256
"""With fewer rows or more columns a plain search is as fast."""

HIGHEST = 65_535
"""The largest number of 16 bits; a sum of d whole differences may not exceed it."""

SPAN = 12.0
"""The range of a standardised column that should fit: six standard deviations to either side."""

FINE = 16.0
"""The bound should be off by at most a typical nearest distance divided by this."""

SAMPLED = 64
"""Rows whose nearest distances say what is typical."""

CHUNK, GROUP = 2048, 32
"""Rows whose sums are computed together, and rows whose least sum decides whether any of them is looked at."""


class Screen(BaseEstimator):
    """Whole numbers that stand for rows, given by their columns (d × m) in standardised units."""

    def __init__(self, columns: np.ndarray) -> None:
        self.columns = columns

    @staticmethod
    def pays(columns: np.ndarray) -> bool:
        """Whether searching by a screen is faster than without."""
        return columns.shape[1] >= FEWEST_ROWS and columns.shape[0] <= MOST_COLUMNS

    def fit(self) -> Self:
        """Choose the step and round all rows."""
        d = len(self.columns)
        self._most = HIGHEST // d
        self._step = SPAN / self._most
        typical = self._typical_distance()
        if typical > 0:
            self._step = min(self._step, typical / (FINE * d))
        self._low = np.median(self.columns, axis=1) - 0.5 * self._most * self._step
        self._whole = np.ascontiguousarray(self._rounded(self.columns.T).T)
        return self

    def _typical_distance(self) -> float:
        rows = np.linspace(0, self.columns.shape[1] - 1, SAMPLED).astype(np.intp)
        D, index = np.empty((SAMPLED, 1)), np.empty((SAMPLED, 1), dtype=np.intp)
        nearest_l1(np.ascontiguousarray(self.columns[:, rows].T), self.columns, rows, D, index)
        return float(np.median(D))

    def _rounded(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            whole = X - self._low
            whole /= self._step
        np.nan_to_num(np.floor(whole, out=whole), copy=False)
        return np.clip(whole, 0, self._most, out=whole).astype(np.uint16)

    def nearest(self, X: np.ndarray, own: np.ndarray, D: np.ndarray, index: np.ndarray) -> None:
        """Fill D and index as ``nearest_l1`` does."""
        nearest_l1_screened(X, self.columns, self._rounded(X), self._whole, self._step, own, D, index)


@njit()
def nearest_l1_screened(
    X: np.ndarray,
    columns: np.ndarray,
    whole_X: np.ndarray,
    whole: np.ndarray,
    step: float,
    own: np.ndarray,
    D: np.ndarray,
    index: np.ndarray,
) -> None:
    """``nearest_l1`` for rows that are also given as whole multiples of step; fills D and index (n × k)."""
    d, m = columns.shape
    k = D.shape[1]
    sums = np.empty(min(CHUNK, m), dtype=np.uint16)
    for i in range(X.shape[0]):
        for c in range(k):
            D[i, c], index[i, c] = np.inf, -1
        limit = HIGHEST
        for begin in range(0, m, CHUNK):
            size = min(CHUNK, m - begin)
            _whole_distances(whole_X[i], whole, begin, sums[:size])
            for first in range(0, size, GROUP):
                last = min(first + GROUP, size)
                if _least(sums[first:last]) > limit:
                    continue
                for t in range(first, last):
                    if sums[t] <= limit and begin + t != own[i]:
                        distance = _l1_distance(X[i], columns, begin + t)
                        if distance < D[i, k - 1]:
                            _insert(distance, begin + t, D[i], index[i])
                            limit = min(D[i, k - 1] / step + d + 1, HIGHEST)  # one more than the bound, for rounding
            if D[i, k - 1] == 0.0:
                break  # no row is nearer


@njit()
def _whole_distances(x: np.ndarray, whole: np.ndarray, begin: int, sums: np.ndarray) -> None:
    """Fill sums with the L1 distances of x to the rows from ``begin`` on. Four columns a pass: sums are written less often."""
    d, size = x.size, sums.size
    for t in range(size):
        sums[t] = 0
    for j in range(0, d - d % 4, 4):
        a, b, c, e = x[j], x[j + 1], x[j + 2], x[j + 3]
        A, B = whole[j, begin : begin + size], whole[j + 1, begin : begin + size]
        C, E = whole[j + 2, begin : begin + size], whole[j + 3, begin : begin + size]
        for t in range(size):
            two = (max(a, A[t]) - min(a, A[t])) + (max(b, B[t]) - min(b, B[t]))
            four = two + (max(c, C[t]) - min(c, C[t])) + (max(e, E[t]) - min(e, E[t]))
            sums[t] = sums[t] + np.uint16(four)
    for j in range(d - d % 4, d):
        a, A = x[j], whole[j, begin : begin + size]
        for t in range(size):
            sums[t] = sums[t] + np.uint16(max(a, A[t]) - min(a, A[t]))


@njit()
def _least(sums: np.ndarray) -> int:
    least = sums[0]
    for t in range(sums.size):
        least = min(least, sums[t])
    return least


@njit()
def _l1_distance(x: np.ndarray, columns: np.ndarray, row: int) -> float:
    distance = 0.0
    for j in range(x.size):
        distance += abs(x[j] - columns[j, row])
    return distance


@njit()
def _insert(distance: float, row: int, D: np.ndarray, index: np.ndarray) -> None:
    """Put a distance that is below the last of D in its place. Mutates D and index."""
    c = D.size - 1
    while c > 0 and distance < D[c - 1]:
        D[c], index[c] = D[c - 1], index[c - 1]
        c -= 1
    D[c], index[c] = distance, row
