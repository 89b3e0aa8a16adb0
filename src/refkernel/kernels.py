"""Base kernels: k(X, Z), its diagonal, and a width that ``fit`` resolves once.

A kernel is a small object of parameters. ``fit`` never changes it: it returns a kernel whose width is fixed,
so that one kernel can be shared by many estimators. A new kernel is a subclass with one formula in ``__call__``.

Symbols: ``X`` (n × d) and ``Z`` (m × d) hold samples in rows; ``Z=None`` stands for ``Z = X``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise

from ._jit import njit
from ._validation import check_choice, check_positive

MANY_ROWS = 512
"""From so many rows on, distances are prepared in one jitted pass; below, NumPy's several are as fast and need no compiling."""

SYMMETRY_TOLERANCE = 1e-8
"""Rounding makes a kernel matrix unsymmetric or indefinite by far less than this share of its size."""

FAR = 1e3
"""Up to this squared norm, rounding lifts a squared distance of 0 by less than 1e-12, which no kernel value shows."""

DIAGONAL_BLOCK = 256
"""Rows at a time when a diagonal can only be read off kernel matrices: 0.5 MB, small next to the data."""


NO_WIDTH = "This {} has no width yet: call k = k.fit(X) first (fit returns the kernel to use), or pass {}."


class Kernel(BaseEstimator):
    """What every kernel offers; also the kernel of an unknown formula, whose diagonal is read off its matrices."""

    fit_on = "references"
    accepts_sparse = True
    thread_safe = True
    positive_definite = False
    """Whether every kernel matrix is known to be positive semidefinite."""
    vanishes = False
    """Whether k(x, z) tends to 0 as x goes away from z."""

    def fit(self, X, y=None, sample_weight=None) -> Kernel:
        """Return this kernel with every parameter that depends on data fixed by ``X``."""
        return self

    def __call__(self, X, Z=None) -> np.ndarray:
        raise NotImplementedError

    def fit_copy(self, rows, sample_weight, random_state) -> Kernel:
        """The kernel fitted on the target rows of one fit, with this one unchanged."""
        X = rows.X if rows.targets.size == rows.X.shape[0] else rows.X[rows.targets]
        return self.fit(X, sample_weight=sample_weight)

    def features(self, X) -> np.ndarray | None:
        """Phi(X) with k(x, z) = Phi(x) · Phi(z), where there is a small dense one; else None."""
        return None

    def far_features(self) -> np.ndarray | None:
        """The features of every sample that is far from all data, for kernels that map them all to one point; else None."""
        return None

    def against(self, Z, rows) -> Callable[[Any], np.ndarray]:
        """The function X -> [k(X, Z), 1] for blocks of up to ``rows`` rows; its result holds until the next call."""
        return lambda X: np.column_stack([self(X, Z), np.ones(X.shape[0])])

    def diag(self, X) -> np.ndarray:
        """k(x, x) for every row of X."""
        starts = range(0, X.shape[0], DIAGONAL_BLOCK)
        blocks = [np.diagonal(self(X[i : i + DIAGONAL_BLOCK])) for i in starts]
        return np.concatenate(blocks) if blocks else np.empty(0)


class RBF(Kernel):
    """k(x, z) = exp(-||x - z||² / (2 sigma²)).

    Parameters
    ----------
    scale : float, default=1.0
        The article's width rule: sigma² = scale · (mean squared distance over all pairs that ``fit`` sees).
    sigma : float, optional
        A fixed width; ``scale`` is then not used.
    fit_on : {"references", "training"}, default="references"
        Whose distances a reference map measures: those of the references (the authors' code) or of the
        training samples (the article's text).

    Examples
    --------
    >>> import refkernel as rk
    >>> k = rk.RBF(scale=2.0).fit([[0.0], [1.0]])    # mean squared distance 1/2, so sigma² = 1
    >>> round(k.sigma, 6)
    1.0
    >>> k([[0.0]], [[1.0]]).round(4)
    array([[0.6065]])
    """

    positive_definite = True
    vanishes = True

    def __init__(self, scale=1.0, sigma=None, fit_on="references"):
        self.scale = scale
        self.sigma = sigma
        self.fit_on = fit_on

    def fit(self, X, y=None, sample_weight=None):
        return self.of_width(1.0 if self.sigma is not None else root_mean_squared_distance(X, sample_weight))

    def of_width(self, distance) -> RBF:
        """This kernel with the width that a root mean squared distance gives, unless it has one."""
        check_choice("fit_on", self.fit_on, ("references", "training"))
        if self.sigma is not None:
            check_positive("sigma", self.sigma)
            return self
        check_positive("scale", self.scale)
        return RBF(self.scale, _positive_or_one(np.sqrt(self.scale) * distance), self.fit_on)

    def __call__(self, X, Z=None):
        if sp.issparse(X) or sp.issparse(Z):
            return pairwise.rbf_kernel(X, Z, gamma=0.5 / self._width() ** 2)
        X = np.asarray(X, dtype=np.float64)
        K = DistancesTo(X if Z is None else Z, np.sqrt(2.0) * self._width(), X.shape[0])(X)
        if Z is None:
            np.fill_diagonal(K, 0.0)
        return np.exp(K, out=K)

    def against(self, Z, rows):
        if sp.issparse(Z):
            return super().against(Z, rows)
        distances, sparse = DistancesTo(Z, np.sqrt(2.0) * self._width(), rows, and_zero=True), super().against(Z, rows)

        def values(X):
            if sp.issparse(X):
                return sparse(X)
            K = distances(X)  # exp(0) = 1
            return np.exp(K, out=K)

        return values

    def of_squared_distances(self, negative) -> np.ndarray:
        """The kernel from ``negative_squared_distances``."""
        K = negative * (0.5 / self._width() ** 2)
        return np.exp(K, out=K)

    def diag(self, X):
        return np.ones(np.shape(X)[0])

    def _width(self):
        if self.sigma is None:
            raise ValueError(NO_WIDTH.format("RBF", "sigma"))
        return self.sigma


class Laplacian(Kernel):
    """k(x, z) = exp(-gamma ||x - z||_1), gamma = 1 / (scale · mean L1 distance over all pairs) unless given."""

    positive_definite = True
    vanishes = True

    def __init__(self, scale=1.0, gamma=None, fit_on="references"):
        self.scale = scale
        self.gamma = gamma
        self.fit_on = fit_on

    def fit(self, X, y=None, sample_weight=None):
        check_choice("fit_on", self.fit_on, ("references", "training"))
        if self.gamma is not None:
            check_positive("gamma", self.gamma)
            return self
        check_positive("scale", self.scale)
        return Laplacian(self.scale, 1.0 / _positive_or_one(self.scale * mean_l1_distance(X, sample_weight)), self.fit_on)

    def __call__(self, X, Z=None):
        if self.gamma is None:
            raise ValueError(NO_WIDTH.format("Laplacian", "gamma"))
        return pairwise.laplacian_kernel(X, Z, gamma=self.gamma)

    def diag(self, X):
        return np.ones(np.shape(X)[0])


class Linear(Kernel):
    """k(x, z) = x · z."""

    positive_definite = True

    def __call__(self, X, Z=None):
        return pairwise.linear_kernel(X, Z)

    def features(self, X):
        return None if sp.issparse(X) else np.asarray(X, dtype=np.float64)

    def diag(self, X):
        return squared_norms(X)


class Polynomial(Kernel):
    """k(x, z) = (gamma x · z + coef0)^degree, gamma = 1 / d unless given."""

    def __init__(self, degree=3, gamma=None, coef0=1.0):
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def fit(self, X, y=None, sample_weight=None):
        return Polynomial(self.degree, _per_feature(self.gamma, X), self.coef0)

    def __call__(self, X, Z=None):
        return pairwise.polynomial_kernel(X, Z, degree=self.degree, gamma=self.gamma, coef0=self.coef0)

    def diag(self, X):
        return (_per_feature(self.gamma, X) * squared_norms(X) + self.coef0) ** self.degree


class Sigmoid(Kernel):
    """k(x, z) = tanh(gamma x · z + coef0), gamma = 1 / d unless given. Indefinite: expect a warning."""

    def __init__(self, gamma=None, coef0=1.0):
        self.gamma = gamma
        self.coef0 = coef0

    def fit(self, X, y=None, sample_weight=None):
        return Sigmoid(_per_feature(self.gamma, X), self.coef0)

    def __call__(self, X, Z=None):
        return pairwise.sigmoid_kernel(X, Z, gamma=self.gamma, coef0=self.coef0)

    def diag(self, X):
        return np.tanh(_per_feature(self.gamma, X) * squared_norms(X) + self.coef0)


class Pairwise(Kernel):
    """Any kernel of ``sklearn.metrics.pairwise`` by name, with its own parameters: ``Pairwise("chi2", {"gamma": 2.0})``."""

    def __init__(self, metric, params=None):
        self.metric = metric
        self.params = params

    def __call__(self, X, Z=None):
        K = pairwise.pairwise_kernels(X, Z, metric=self.metric, **(self.params or {}))
        return _check_matrix(K, X, Z, f"kernel {self.metric!r}")


class Function(Kernel):
    """A callable ``function(X, Z)`` that returns the n × m kernel matrix, as scikit-learn's SVMs take it."""

    accepts_sparse = False
    thread_safe = False

    def __init__(self, function):
        self.function = function

    def __call__(self, X, Z=None):
        X = np.asarray(X)
        K = np.asarray(self.function(X, X if Z is None else np.asarray(Z)), dtype=np.float64)
        return _check_matrix(K, X, Z, f"kernel function {getattr(self.function, '__name__', self.function)!s}")


NAMES: dict[str, Callable[[], Kernel]] = {
    "rbf": RBF,
    "linear": Linear,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "laplacian": Laplacian,
    "sigmoid": Sigmoid,
}


def as_kernel(kernel) -> Any:
    """The kernel object that a user's name, callable or object stands for."""
    if isinstance(kernel, str):
        if kernel in NAMES:
            return NAMES[kernel]()
        if kernel in pairwise.PAIRWISE_KERNEL_FUNCTIONS:
            return Pairwise(kernel)
        known = sorted({*NAMES, *pairwise.PAIRWISE_KERNEL_FUNCTIONS})
        raise ValueError(f"kernel={kernel!r} is not known. Use one of {known}, a kernel object, or a callable.")
    if hasattr(kernel, "fit_copy"):
        return kernel
    if callable(kernel):
        return Function(kernel)
    raise ValueError(f"kernel={kernel!r} is neither a name, a kernel object nor a callable.")


def negative_squared_distances(X, Z=None) -> np.ndarray:
    """-||x - z||² for all pairs (n × m)."""
    X = np.asarray(X, dtype=np.float64)
    D = DistancesTo(X if Z is None else Z, 1.0, X.shape[0])(X)
    if Z is None:
        np.fill_diagonal(D, 0.0)
    return D


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})  # lets sums use vector registers
def extend(X, origin, per_unit, rows):
    """Fill ``rows`` with [y, ||y||², 1] for y = (x - origin) / unit, and return the largest ||y||². Mutates rows."""
    n, d = X.shape
    largest = 0.0
    for i in range(n):
        norm = 0.0
        for j in range(d):
            y = (X[i, j] - origin[j]) * per_unit
            rows[i, j] = y
            norm += y * y
        rows[i, d] = norm
        rows[i, d + 1] = 1.0
        largest = max(largest, norm)
    return largest


class DistancesTo:
    """X -> -||x - z||² / unit² for all z, as one matrix product of the extended rows [x, ||x||², 1] and [2z, -1, -||z||²].

    With ``and_zero``, a column of zeros follows.

    Rows are first moved by a row of Z: distances stay, and far-away data lose no digits. Blocks of up to ``rows`` rows are
    computed in buffers that the next call uses again.
    """

    def __init__(self, Z, unit, rows, and_zero=False):
        Z = np.asarray(Z, dtype=np.float64)
        (m, d), self.origin = Z.shape, Z[0]
        self._per_unit = 1.0 / max(unit, np.finfo(float).tiny)
        self._left, self._out = np.empty((rows, d + 2)), np.empty((rows, m + and_zero))
        self._right = np.zeros((d + 2, m + and_zero))
        with np.errstate(over="ignore", under="ignore"):
            moved = (Z - self.origin) * self._per_unit
            norms = squared_norms(moved)
            self._right[:d, :m], self._right[d, :m], self._right[d + 1, :m] = 2.0 * moved.T, -1.0, -norms
        self._far, self._m = norms.max() > FAR, m

    def __call__(self, X):
        n = X.shape[0]
        left, out = self._left[:n], self._out[:n]
        with np.errstate(over="ignore", under="ignore"):
            if n >= MANY_ROWS:
                farthest = extend(np.asarray(X), self.origin, self._per_unit, left)
            else:
                moved = np.subtract(X, self.origin, out=left[:, :-2])
                np.multiply(moved, self._per_unit, out=moved)
                norms = np.einsum("ij,ij->i", moved, moved)
                left[:, -2], left[:, -1], farthest = norms, 1.0, norms.max()
            np.matmul(left, self._right, out=out)
        if self._far or farthest > FAR:
            np.minimum(out, 0.0, out=out)
            out[:, self._m :] = 0.0  # an infinite norm times 0 is NaN
        return out


def root_mean_squared_distance(X, sample_weight=None) -> float:
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


def mean_l1_distance(X, sample_weight=None) -> float:
    """The mean of ||x - z||_1 over all n² (weighted) pairs, feature by feature from sorted values: O(d n log n)."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    w = np.full(X.shape[0], 1.0 / X.shape[0]) if sample_weight is None else sample_weight / np.sum(sample_weight)
    order = np.argsort(X, axis=0, kind="stable")
    below = np.cumsum(w[order], axis=0)[:-1]
    return float(np.sum(2.0 * below * (1.0 - below) * np.diff(np.take_along_axis(X, order, axis=0), axis=0)))


def squared_norms(X) -> np.ndarray:
    """||x||² for every row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    X = np.asarray(X, dtype=np.float64)
    return np.einsum("ij,ij->i", X, X)


def _per_feature(gamma, X):
    if gamma is not None:
        check_positive("gamma", gamma)
        return gamma
    return 1.0 / np.shape(X)[1]


def _positive_or_one(width):
    """Equal rows have no distance to measure; any width then gives the same kernel."""
    if not np.isfinite(width):
        raise ValueError("The distances between the samples overflow. Scale the data first, for example with TargetScaler.")
    return float(width) if width > 0 else 1.0


def symmetric(K, name) -> np.ndarray:
    """K, or with a warning the mean of K and its transpose where they differ by more than rounding."""
    if np.abs(K - K.T).max(initial=0.0) <= SYMMETRY_TOLERANCE * np.abs(K).max(initial=0.0):
        return K
    warnings.warn(f"The {name} is not symmetric: the mean of K and its transpose is used.", UserWarning, stacklevel=2)
    return 0.5 * (K + K.T)


def _check_matrix(K, X, Z, name):
    shape = (X.shape[0], (X if Z is None else Z).shape[0])
    if K.shape != shape:
        raise ValueError(f"The {name} returned shape {K.shape}; {shape} was expected: one row a sample of X, one column a sample of Z.")
    if not np.isfinite(K).all():
        raise ValueError(f"The {name} returned {int((~np.isfinite(K)).sum())} NaN or infinite values for finite input.")
    return symmetric(K, name) if Z is None else K
