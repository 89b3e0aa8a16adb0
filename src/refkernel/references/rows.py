"""Strategies that choose training rows: all of them, at random, or by their position."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky, lapack
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._training import TrainingRows
from .._validation import check_positive
from ..kernels import RBF, Kernel
from .base import References, Size, Strategy, at_most, choice, float_rows, known_outliers, members, moderate

__all__ = ["FarthestFirst", "LeverageScores", "Negatives", "Subset", "Training", "leverage_scores"]

SCORED_TARGETS = 4000
"""Leverage scores need a kernel matrix of the targets and its inverse: 128 MB each for this many targets, and a few seconds."""


class Training(Strategy):
    """The target training samples: with centring this is NPT.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references=rk.references.Training(), random_state=0).fit(X).references_.shape
    (40, 3)
    """

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        return members(rows, rows.targets)


class Subset(Strategy):
    """A random part of the target training samples, drawn without replacement (Nyström).

    Parameters
    ----------
    size : float, int or str, default=0.5
        The number of references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half".

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references=rk.references.Subset(0.25), random_state=0).fit(X).references_.shape
    (10, 3)
    """

    def __init__(self, size: Size = 0.5) -> None:
        self.size = size

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        return choice(rows, rows.targets, rows.count(self.size), random_state, f"Subset(size={self.size!r})", "targets")


class Negatives(Strategy):
    """Known outliers, drawn without replacement.

    Parameters
    ----------
    size : float, int or str, default="balanced"
        The number of references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half".

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> y = np.r_[np.ones(30), -np.ones(10)]
    >>> rk.ReferenceMap(references=rk.references.Negatives(5), random_state=0).fit(X, y).reference_indices_.min() >= 30
    np.True_
    """

    def __init__(self, size: Size = "balanced") -> None:
        self.size = size

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        return choice(rows, known_outliers(rows), rows.count(self.size), random_state, f"Negatives(size={self.size!r})", "outliers")


class LeverageScores(Strategy):
    """Targets drawn without replacement, one after the other, by their ridge leverage scores (Alaoui & Mahoney 2015).

    l_i = (K (K + n ridge I)^-1)_ii with K = k(X, X) of the n targets: large for a target that is unlike the others. The scores
    are exact for up to 4,000 targets. With more, 4,000 are first drawn uniformly, and scores and references come from these.

    Parameters
    ----------
    size : float, int or str, default=0.5
        The number of references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half".
    kernel : Kernel or "rbf", default="rbf"
        The kernel, which is resolved on the targets; "rbf" stands for ``RBF()``.
    ridge : float, default=1e-3
        Directions with less than this share of the kernel's mean diagonal count for little.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references=rk.references.LeverageScores(10), random_state=0).fit(X).references_.shape
    (10, 3)
    """

    def __init__(self, size: Size = 0.5, kernel: Kernel | str = "rbf", ridge: float = 1e-3) -> None:
        self.size = size
        self.kernel = kernel
        self.ridge = ridge

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        check_positive("ridge", self.ridge)
        m, pool, kind = rows.count(self.size), rows.targets, "targets"
        if pool.size > SCORED_TARGETS:
            pool, kind = random_state.choice(pool, SCORED_TARGETS, replace=False), f"targets (scored: a random part of {pool.size})"
        at_most(pool, m, f"LeverageScores(size={self.size!r})", kind)
        scores = leverage_scores(_kernel_matrix(self.kernel, float_rows(rows, pool)), self.ridge)
        with np.errstate(divide="ignore"):  # a target with score 0 comes last
            arrivals = random_state.standard_exponential(pool.size) / scores  # the first is i with probability l_i / sum(l)
        return members(rows, np.sort(pool[np.argsort(arrivals)[:m]]))


class FarthestFirst(Strategy):
    """Targets in greedy order: a random one, then always the one farthest from those before it (Gonzalez 1985).

    Parameters
    ----------
    size : float, int or str, default=0.5
        The number of references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half".

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references=rk.references.FarthestFirst(10), random_state=0).fit(X).references_.shape
    (10, 3)
    """

    def __init__(self, size: Size = 0.5) -> None:
        self.size = size

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        m = at_most(rows.targets, rows.count(self.size), f"FarthestFirst(size={self.size!r})", "targets")
        X = _without_offset(moderate(float_rows(rows, rows.targets))[0])
        norms = row_norms(X, squared=True)
        nearest = np.full(rows.targets.size, np.inf)
        chosen = [random_state.randint(rows.targets.size)]
        while len(chosen) < m:
            i = chosen[-1]
            products = safe_sparse_dot(X, X[[i]].T, dense_output=True).ravel()
            np.minimum(nearest, norms + norms[i] - 2.0 * products, out=nearest)
            nearest[i] = -np.inf  # never chosen again, even if all others equal it
            chosen.append(int(np.argmax(nearest)))
        return members(rows, rows.targets[chosen])


def leverage_scores(K: npt.ArrayLike, ridge: float) -> np.ndarray:
    """Compute the ridge leverage score of each row of a kernel matrix.

    l_i = (K (K + n ridge I)^-1)_ii = 1 - n ridge ((K + n ridge I)^-1)_ii.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The kernel matrix.
    ridge : float
        A positive number.

    Returns
    -------
    ndarray of shape (n,)
        The scores, from 0 to 1.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rk.references.leverage_scores(np.eye(2), ridge=0.5)
    array([0.5, 0.5])
    """
    A = np.array(K, dtype=np.float64, order="F")
    n = A.shape[0]
    A.flat[:: n + 1] += n * ridge
    try:
        L = cholesky(A, lower=True, overwrite_a=True)
    except LinAlgError as error:
        raise ValueError(
            f"ridge={ridge:g} leaves K + n·ridge·I indefinite: the kernel matrix K of {n} targets has an eigenvalue "
            f"below -n·ridge = {-n * ridge:.3g}. Raise ridge, or use a positive definite kernel."
        ) from error
    L_inverse, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
    return np.maximum(1.0 - n * ridge * np.einsum("ij,ij->j", L_inverse, L_inverse), 0.0)


def _kernel_matrix(kernel: Kernel | str, X: Any) -> np.ndarray:
    """K of a kernel resolved on X; "rbf" is the RBF kernel whose sigma² is the mean squared distance."""
    if not isinstance(kernel, Kernel) and not (isinstance(kernel, str) and kernel == "rbf"):
        raise ValueError(f'kernel={kernel!r} must be "rbf" or a kernel object, such as refkernel.kernels.Laplacian() or Function(f).')
    return RBF(scale=1.0).fit(moderate(X)[0])(moderate(X)[0]) if isinstance(kernel, str) else kernel.fit(X)(X)


def _without_offset(X: Any) -> Any:
    """X minus its mean, so that distances from inner products lose no digits; sparse X is returned unchanged, to stay sparse."""
    return X if sp.issparse(X) else X - X.mean(axis=0)
