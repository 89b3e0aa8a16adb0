"""Leave out training rows that may be unmarked outliers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._blocks import in_blocks
from .._distances import l1_distances
from .views import ColumnView

__all__ = ["trimmed"]

TRIMMED = 2.0
"""Rows that are left out, as a multiple of the contamination: outliers are not exactly the least normal rows."""

FEWEST_NEIGHBOURS = 20
NEIGHBOURS = 3.0
"""A row is judged by its distance to the k-th nearest row, k = 3 times as many rows as are left out (at least 20): outliers that lie
together must not vouch for each other."""


def trimmed(X: np.ndarray, contamination: float) -> np.ndarray:
    """The numbers of the rows of X without the least normal ones: twice the contamination, and at least 2 rows are left."""
    n = len(X)
    count = min(round(TRIMMED * contamination * n), n - 2)
    if count <= 0:
        return np.arange(n)
    distances = _to_kth_neighbour(ColumnView("bent").fit(X).transform(X), min(max(FEWEST_NEIGHBOURS, int(NEIGHBOURS * count)), n - 1))
    return np.sort(np.argsort(distances, kind="stable")[: n - count])


def _to_kth_neighbour(Z: np.ndarray, k: int) -> np.ndarray:
    """The L1 distance of every row to its k-th nearest other row."""
    columns = np.ascontiguousarray(Z.T)

    def make(rows: int) -> Callable[[Any], np.ndarray]:
        D = np.empty((rows, len(Z)))

        def of_block(block: np.ndarray) -> np.ndarray:
            l1_distances(np.ascontiguousarray(block), columns, D)
            return np.partition(D, k, axis=1)[:, k]  # the row itself is the nearest

        return of_block

    return in_blocks(make, Z, np.empty(len(Z)), len(Z))
