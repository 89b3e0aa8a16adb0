"""Squared distances between rows X (n × d) and Z (m × d), arrays or sparse matrices (``Any``), and measures taken from them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .jit import entry, njit

FAR = 1e3  # up to this squared norm, rounding changes a squared distance of 0 by less than 1e-12, too little to affect a kernel value
MODERATE = (1e-100, 1e100)  # between these sizes, squares and sums of squares neither overflow nor vanish


def squared_norms(X: Any) -> np.ndarray:
    """||x||² for every row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    X = np.asarray(X, dtype=np.float64)
    return np.einsum("ij,ij->i", X, X)


def negative_squared_distances(X: npt.ArrayLike, Z: npt.ArrayLike | None = None) -> np.ndarray:
    """-||x - z||² for all pairs (n × m); ``Z=None`` stands for ``Z = X``."""
    X = np.asarray(X, dtype=np.float64)
    D = DistancesTo(X if Z is None else Z, 1.0, X.shape[0])(X)
    if Z is None:
        np.fill_diagonal(D, 0.0)
    return D


class DistancesTo:
    """X -> -||x - z||² per_unit² for all z, and 0 for ``and_zero``: one product of the rows [x, ||x||², 1] and [2z, -1, -||z||²].

    Rows are first shifted by a row of Z, so that data far from the origin lose no digits. The buffers for ``rows`` rows are used again.
    """

    def __init__(self, Z: npt.ArrayLike, per_unit: float, rows: int, and_zero: bool = False):
        Z = np.asarray(Z, dtype=np.float64)
        if Z.ndim != 2 or len(Z) == 0:
            raise ValueError(f"Samples must be rows of a 2-d array with at least one row; got shape {Z.shape}.")
        (m, d), self.origin, self.per_unit = Z.shape, Z[0], per_unit
        self._left, self._out = np.empty((rows, d + 2)), np.empty((rows, m + and_zero))
        self.right = np.zeros((d + 2, m + and_zero))
        with np.errstate(over="ignore", under="ignore"):
            moved = (Z - self.origin) * self.per_unit
            norms = squared_norms(moved)
            self.right[:d, :m], self.right[d, :m], self.right[d + 1, :m] = 2.0 * moved.T, -1.0, -norms
        self._far, self._m = norms.max() > FAR, m

    def __call__(self, X: npt.ArrayLike) -> np.ndarray:
        X = np.asarray(X)
        n = len(X)
        if X.ndim != 2 or X.shape[1] != self.origin.size or n > len(self._left):
            raise ValueError(f"X has shape {X.shape}; (up to {len(self._left)}, {self.origin.size}) was expected: the columns of Z.")
        if n == 0:
            return self._out[:0]
        left, out = self._left[:n], self._out[:n]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            moved = np.subtract(X, self.origin, out=left[:, :-2])
            if self.per_unit != 1.0:
                moved *= self.per_unit
            np.einsum("ij,ij->i", moved, moved, out=left[:, -2])
            left[:, -1] = 1.0
            np.matmul(left, self.right, out=out)
        norms = left[:, -2]
        if self._far:
            np.minimum(out, 0.0, out=out)
        elif not norms.max() <= FAR:
            far = np.flatnonzero(~(norms <= FAR))  # a row's result must not depend on the rows beside it
            out[far] = np.minimum(out[far], 0.0)
        out[:, self._m :] = 0.0  # an infinite norm times 0 is NaN
        return out


def root_mean_squared_distance(X: Any, sample_weight: np.ndarray | None = None) -> float:
    """The square root of the mean of ||x - z||² over all n² (weighted) pairs: sqrt(2 · the total variance)."""
    if sp.issparse(X):
        w = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        mean = X.T @ w / w.sum()
        return float(np.sqrt(max(2.0 * (np.average(squared_norms(X), weights=w) - mean @ mean), 0.0)))
    Y = np.asarray(X, dtype=np.float64)
    Y = Y - Y[0]
    Y -= np.average(Y, axis=0, weights=sample_weight)
    unit = np.abs(Y).max(initial=0.0)
    if not unit:
        return 0.0
    return float(unit * np.sqrt(2.0 * np.average(squared_norms(Y / unit), weights=sample_weight)))


NEIGHBOURS = 5  # nearest rows whose distances a width follows
MOST_OF_THEM = 0.95  # the share of rows that should have a neighbour within reach of the width
MOST_QUERIES, MOST_ROWS = 1000, 50_000  # this many rows, spread evenly, against at most this many others measure a width to about 2 %


def neighbour_distances(X: Any, sample_weight: np.ndarray | None = None) -> tuple[float, float]:
    """Distances to nearest other rows: a typical one, and one that few exceed (0 if all are equal). Copies and weights change nothing."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    X = np.unique(X[_spread(len(X), MOST_ROWS)], axis=0)
    unit = np.abs(X - X[0]).max(initial=0.0)
    if len(X) < 2 or not unit:
        return 0.0, 0.0
    X = (X - X[0]) / unit
    queries = _spread(len(X), MOST_QUERIES)
    k = min(NEIGHBOURS, len(X) - 1)
    nearest = np.empty((len(queries), k))
    step = max(1, (1 << 22) // len(X))
    for i in range(0, len(queries), step):
        D = -negative_squared_distances(X[queries[i : i + step]], X)
        D[np.arange(len(D)), queries[i : i + step]] = np.inf
        nearest[i : i + step] = np.maximum(np.partition(D, k - 1, axis=1)[:, :k], 0.0)
    typical = np.median(np.sqrt(nearest.mean(axis=1)))
    return float(unit * typical), float(unit * np.quantile(np.sqrt(nearest.min(axis=1)), MOST_OF_THEM))


def _spread(n: int, most: int) -> np.ndarray:
    """Up to ``most`` of n row numbers, evenly spread."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(np.intp))


def mean_l1_distance(X: Any, sample_weight: np.ndarray | None = None) -> float:
    """The mean of ||x - z||_1 over all n² (weighted) pairs, feature by feature from sorted values: O(d n log n)."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    w = np.full(X.shape[0], 1.0 / X.shape[0]) if sample_weight is None else sample_weight / np.sum(sample_weight)
    order = np.argsort(X, axis=0, kind="stable")
    below = np.cumsum(w[order], axis=0)[:-1]
    return float(np.sum(2.0 * below * (1.0 - below) * np.diff(np.take_along_axis(X, order, axis=0), axis=0)))


CHUNK = 1024  # rows of Z that one pass over the columns covers: their distances stay in the nearest cache


@entry
@njit()
def root_l1_distances(X: np.ndarray, columns: np.ndarray, D: np.ndarray) -> None:
    """Fill D (n × m) with Σ_j sqrt(|x_j - z_j|) for Z given by its columns (d × m), in the order of the columns. Mutates D."""
    d, m = columns.shape
    for i in range(X.shape[0]):
        for begin in range(0, m, CHUNK):
            part = D[i, begin : min(begin + CHUNK, m)]
            for t in range(part.size):
                part[t] = 0.0
            for j in range(d):
                x, column = X[i, j], columns[j, begin : begin + part.size]
                for t in range(part.size):
                    part[t] += np.sqrt(abs(x - column[t]))


def moderate_unit(X: Any, axis: int | None = None) -> Any:
    """A power of two near the size of X if squares of X would overflow or vanish, else 1; with ``axis=0`` one for each column."""
    size = np.abs(X.data if sp.issparse(X) else X).max(axis=axis, initial=0.0)
    extreme = (size > 0.0) & ~((size > MODERATE[0]) & (size < MODERATE[1]))
    unit = np.where(extreme, np.ldexp(1.0, np.frexp(size)[1] - 1), 1.0)
    return unit if axis == 0 else float(unit)


def moderate(X: Any) -> tuple[Any, float]:
    """(X / unit, unit), with one unit for all of X."""
    unit = moderate_unit(X)
    return (X, 1.0) if unit == 1.0 else (X / unit, unit)
