"""Descriptions of a set of rows by L1 distances: how far a sample is from them. Each also scores its own rows as if left out.

``D`` are L1 distances. Scores are larger for samples that are less normal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.linalg import lapack
from sklearn.base import BaseEstimator

from .._blocks import in_blocks
from .._distances import l1_distances, mean_l1_distance, nearest_l1, squared_norms
from .._threads import one_blas_thread, share_rows
from ..kernels.base import check_columns

__all__ = ["Neighbours", "Residual"]

NEIGHBOURS = 5
"""Neighbours whose distances are averaged."""

DENSE = 0.1
"""A neighbour's own distances count as at least this share of their median: copies of a row do not make a region infinitely dense."""

RIDGE = 0.03
"""Noise on the kernel's diagonal, as a share of it: only a sample that differs from the references by more than this stands out."""

FEW = 4
"""With fewer queries it does not pay to start threads."""


class Neighbours(BaseEstimator):
    """Two scores by the nearest rows: the distance to the nearest, and the mean over five of d / sqrt(their own mean distance)."""

    names = ("distance to the nearest row", "distance to 5 rows, relative to how close these are to each other")

    def __init__(self, columns: np.ndarray) -> None:
        self.columns = columns

    def fit(self) -> Self:
        """Find the neighbours of every row among the others."""
        self._D, self._index = self._nearest(self.columns.T, np.arange(self.columns.shape[1]), NEIGHBOURS + 1)
        k = self._k
        self._close = self._D[:, :k].mean(axis=1)
        positive = self._close[self._close > 0]
        self._floor = DENSE * float(np.median(positive)) if positive.size else 1.0
        return self

    @property
    def _k(self) -> int:
        return min(NEIGHBOURS, self.columns.shape[1] - 1)

    def left_out(self, rows: np.ndarray) -> np.ndarray:
        """Both scores of some of the rows, each described by all others (2 × rows)."""
        k = self._k
        D, index = self._D[rows, :k], self._index[rows, :k]
        among = self._index[index, :k] == rows[:, None, None]  # whether the row is a neighbour of its neighbours
        following = self._D[index, k] if self._D.shape[1] > k else D.max()
        close = self._close[index] + np.where(among.any(axis=2), following - D, 0.0) / k
        return np.array([D[:, 0], (D / np.sqrt(np.maximum(close, self._floor))).mean(axis=1)])

    def forget(self) -> None:
        """Drop what only ``left_out`` needs."""
        del self._D, self._index

    def score(self, X: np.ndarray) -> np.ndarray:
        """Both scores of new samples (2 × n)."""
        D, index = self._nearest(X, np.full(len(X), -1), self._k)
        return np.array([D[:, 0], (D / np.sqrt(np.maximum(self._close[index], self._floor))).mean(axis=1)])

    def _nearest(self, X: np.ndarray, own: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances and row numbers of the k nearest rows, nearest first; ``own`` is the number of the sample's own row, or -1."""
        check_columns(X, self.columns.T)
        k = min(k, self.columns.shape[1] - int((own >= 0).any()))
        D, index = np.empty((len(X), k)), np.empty((len(X), k), dtype=np.intp)

        def find(start: int, stop: int) -> None:
            nearest_l1(np.ascontiguousarray(X[start:stop]), self.columns, own[start:stop], D[start:stop], index[start:stop])

        share_rows(find, len(X)) if len(X) >= FEW else find(0, len(X))
        return D, index


class Residual(BaseEstimator):
    """What a Laplacian kernel on the references does not explain of a sample: 1 - k'(K + ridge I)^-1 k, k = exp(-D / width).

    It is the squared distance from the references' span in the kernel's space, with a ridge; also a Gaussian process's variance.
    """

    def __init__(self, columns: np.ndarray, scale: float) -> None:
        self.columns = columns
        self.scale = scale

    @property
    def names(self) -> tuple[str]:
        """What each score is."""
        return (f"residual of a Laplacian kernel, scale {self.scale:g}",)

    def fit(self) -> Self:
        """Factorise the kernel matrix of the references."""
        with one_blas_thread():  # one thread is faster than two that wait for each other
            return self._fit()

    def _fit(self) -> Self:
        Z = self.columns.T
        self._width = self.scale * (mean_l1_distance(Z) or 1.0)
        C = np.exp(-self._distances(Z) / self._width)
        C.flat[:: len(C) + 1] = 1.0 + RIDGE
        L, _ = lapack.dpotrf(C.T, lower=1, clean=1, overwrite_a=1)
        inverse, _ = lapack.dtrtri(L, lower=1)
        self._left_out = 1.0 / squared_norms(inverse.T) - RIDGE
        self._root = np.ascontiguousarray(inverse.T)
        return self

    def forget(self) -> None:
        """Drop what only ``left_out`` needs."""
        del self._left_out

    def left_out(self, rows: np.ndarray) -> np.ndarray:
        """The score of some of the references, each described by all others (1 × rows)."""
        return self._left_out[None, rows]

    def score(self, X: np.ndarray) -> np.ndarray:
        """The score of new samples (1 × n)."""

        def make(rows: int) -> Callable[[Any], np.ndarray]:
            def of_block(block: np.ndarray) -> np.ndarray:
                return 1.0 - squared_norms(np.exp(-self._distances(block) / self._width) @ self._root)

            return of_block

        return in_blocks(make, X, np.empty(len(X)), self.columns.shape[1])[None]

    def _distances(self, X: np.ndarray) -> np.ndarray:
        check_columns(X, self.columns.T)
        D = np.empty((len(X), self.columns.shape[1]))
        l1_distances(np.ascontiguousarray(X), self.columns, D)
        return D
