"""Descriptions of a set of rows by L1 distances: how far a sample is from them. Each also scores its own rows as if left out.

``D`` are L1 distances. Scores are larger for samples that are less normal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.linalg import lapack
from sklearn.base import BaseEstimator

from .._blocks import in_blocks
from .._distances import l1_distances, nearest_l1, root_l1_distances, squared_norms
from .._gaussian import exponentials
from .._nearest import Screen
from .._threads import one_blas_thread, share_rows
from ..kernels.base import check_columns

__all__ = ["Neighbours", "Residuals"]

NEIGHBOURS = 5
"""Neighbours whose distances are averaged."""

DENSE = 0.1
"""A neighbour's own distances count as at least this share of their median: copies of a row do not make a region infinitely dense."""

RIDGE = 0.03
"""Noise on the kernel's diagonal, as a share of it: only a sample that differs from the references by more than this stands out."""

PANELS = 4
"""The triangular root is multiplied in this many panels of columns, each without the rows that are 0: five eighths of the work."""

SEARCHED_ROWS = 1 << 12
"""Rows whose neighbours are searched at a time: copies of them stay small next to the table."""

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

    def _screened(self) -> Screen | None:
        """What makes the search among many rows fast; made when it is first needed."""
        if not Screen.pays(self.columns):
            return None
        if not hasattr(self, "_screen"):
            self._screen = Screen(self.columns).fit()
        return self._screen

    def __getstate__(self) -> dict[str, Any]:
        """Copies and files do not hold the screen: it follows from the columns."""
        return {name: value for name, value in super().__getstate__().items() if name != "_screen"}

    def _nearest(self, X: np.ndarray, own: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances and row numbers of the k nearest rows, nearest first; ``own`` is the number of the sample's own row, or -1."""
        check_columns(X, self.columns.T)
        k = min(k, self.columns.shape[1] - int((own >= 0).any()))
        D, index = np.empty((len(X), k)), np.empty((len(X), k), dtype=np.intp)

        def find(start: int, stop: int) -> None:
            for i in range(start, stop, SEARCHED_ROWS):
                rows = slice(i, min(i + SEARCHED_ROWS, stop))
                part = np.ascontiguousarray(X[rows]), own[rows], D[rows], index[rows]
                nearest_l1(part[0], self.columns, *part[1:]) if screen is None else screen.nearest(*part)

        screen = self._screened()
        share_rows(find, len(X)) if len(X) >= FEW else find(0, len(X))
        return D, index


class Residuals(BaseEstimator):
    """What Laplacian kernels on the references do not explain of a sample: 1 - k'(K + ridge I)^-1 k, k = exp(-D / width).

    It is the squared distance from the references' span in the kernel's space, with a ridge; also a Gaussian process's variance. There
    is one score for each of ``scales``, the widths as multiples of the mean distance. With ``roots`` D adds up the square roots of the
    columns' differences: many small ones then weigh more than few large ones. c equal references explain c / (c + ridge) of a sample
    like them, so groups of fewer references than ``ridge`` stand out themselves.
    """

    def __init__(self, columns: np.ndarray, scales: tuple[float, ...], roots: bool = False, ridge: float = RIDGE) -> None:
        self.columns = columns
        self.scales = scales
        self.roots = roots
        self.ridge = ridge

    @property
    def names(self) -> tuple[str, ...]:
        """What each score is."""
        kernel = "Laplacian kernel of root distances" if self.roots else "Laplacian kernel"
        return tuple(f"residual of a {kernel}, scale {scale:g}" for scale in self.scales)

    def fit(self) -> Self:
        """Factorise the kernel matrices of the references."""
        with one_blas_thread():  # one thread is faster than two that wait for each other
            D = self._distances(self.columns.T)
            mean = float(D.mean()) or 1.0
            self._widths = [scale * mean for scale in self.scales]
            self._roots = [_inverse_root(exponentials(D / -width), self.ridge) for width in self._widths]
            self._left_out = np.array([1.0 / squared_norms(root) - self.ridge for root in self._roots])
        return self

    def forget(self) -> None:
        """Drop what only ``left_out`` needs."""
        del self._left_out

    def left_out(self, rows: np.ndarray) -> np.ndarray:
        """The scores of some of the references, each described by all others (scales × rows)."""
        return self._left_out[:, rows]

    def score(self, X: np.ndarray) -> np.ndarray:
        """The scores of new samples (scales × n)."""
        m = self.columns.shape[1]
        panels = list(itertools.pairwise(sorted({number * m // PANELS for number in range(PANELS + 1)})))

        def explained(K: np.ndarray, root: np.ndarray) -> Any:
            return sum(squared_norms(K[:, :stop] @ root[:stop, start:stop]) for start, stop in panels)

        def make(rows: int) -> Callable[[Any], np.ndarray]:
            def of_block(block: np.ndarray) -> np.ndarray:
                D, found = self._distances(block), zip(self._widths, self._roots, strict=True)
                return np.column_stack([1.0 - explained(exponentials(D / -width), root) for width, root in found])

            return of_block

        return in_blocks(make, X, np.empty((len(X), len(self.scales))), m).T

    def _distances(self, X: np.ndarray) -> np.ndarray:
        check_columns(X, self.columns.T)
        D = np.empty((len(X), self.columns.shape[1]))
        (root_l1_distances if self.roots else l1_distances)(np.ascontiguousarray(X), self.columns, D)
        return D


def _inverse_root(K: np.ndarray, ridge: float) -> np.ndarray:
    """Upper triangular U with UU' = (K + ridge I)^-1. Overwrites K."""
    K.flat[:: len(K) + 1] = 1.0 + ridge
    L, _ = lapack.dpotrf(K.T, lower=1, clean=1, overwrite_a=1)
    inverse, _ = lapack.dtrtri(L, lower=1)
    return np.ascontiguousarray(inverse.T)
