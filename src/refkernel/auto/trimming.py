"""Unmarked outliers among the training rows: leave the most suspicious rows out, and let the rest explain little."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._blocks import in_blocks
from .._distances import l1_distances
from .descriptions import RIDGE
from .views import ColumnView

__all__ = ["robust_ridge", "trimmed"]

TRIMMED = 2.0
"""Rows that are left out, as a multiple of the contamination: outliers are not exactly the least normal rows."""

FEWEST_NEIGHBOURS = 20
NEIGHBOURS = 3.0
"""A row is judged by its distance to the k-th nearest row, k = 3 times as many rows as are left out (at least 20): outliers that lie
together must not vouch for each other."""

MOST_COMPARED = 5000
"""Rows that a row is compared with, drawn at random from more: the time grows with their number times that of all rows."""

RIDGE_SHARE = 0.5
"""The ridge of the residuals, as a share of the outliers expected among the references: those that were not left out explain less of an
outlier like them."""


def robust_ridge(contamination: float, references: int) -> float:
    """A ridge for residuals of so many references, some of them outliers."""
    return max(RIDGE, RIDGE_SHARE * contamination * references)


def trimmed(X: np.ndarray, contamination: float, random_state: np.random.RandomState) -> np.ndarray:
    """The numbers of the rows of X without the least normal ones: twice the contamination, and at least 2 rows are left."""
    n = len(X)
    count = min(round(TRIMMED * contamination * n), n - 2)
    if count <= 0:
        return np.arange(n)
    Z = ColumnView("bent").fit(X).transform(X)
    among = Z if n <= MOST_COMPARED else Z[random_state.permutation(n)[:MOST_COMPARED]]
    k = max(FEWEST_NEIGHBOURS, int(NEIGHBOURS * count * len(among) / n))
    return np.sort(np.argsort(_to_kth(Z, among, min(k, len(among) - 1)), kind="stable")[: n - count])


def _to_kth(Z: np.ndarray, among: np.ndarray, k: int) -> np.ndarray:
    """The L1 distance of every row to its k-th nearest other row among these."""
    columns = np.ascontiguousarray(among.T)

    def make(rows: int) -> Callable[[Any], np.ndarray]:
        D = np.empty((rows, len(among)))

        def of_block(block: np.ndarray) -> np.ndarray:
            l1_distances(np.ascontiguousarray(block), columns, D)
            return np.partition(D, k, axis=1)[:, k]  # the row itself is the nearest

        return of_block

    return in_blocks(make, Z, np.empty(len(Z)), len(among))
