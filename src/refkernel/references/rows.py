"""Strategies that choose training rows: all, at random, or by how they lie."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky, lapack
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._validation import check_positive
from ..kernels import RBF, Kernel
from .base import Strategy, at_most, choice, float_rows, known_outliers, members, moderate

SCORED_TARGETS = 4000
"""Leverage scores need a kernel matrix of the targets and its inverse: at this many 128 MB each, and a few seconds."""


class Training(Strategy):
    """The target training samples: with centring this is NPT."""

    def draw(self, rows, random_state):
        return members(rows, rows.targets)


class Subset(Strategy):
    """A random part of the target training samples, drawn without replacement (Nyström)."""

    def __init__(self, size=0.5):
        self.size = size

    def draw(self, rows, random_state):
        return choice(rows, rows.targets, rows.count(self.size), random_state, f"Subset(size={self.size!r})", "targets")


class Negatives(Strategy):
    """Known outliers, drawn without replacement."""

    def __init__(self, size="balanced"):
        self.size = size

    def draw(self, rows, random_state):
        return choice(rows, known_outliers(rows), rows.count(self.size), random_state, f"Negatives(size={self.size!r})", "outliers")


class LeverageScores(Strategy):
    """Targets drawn without replacement, one after the other, by their ridge leverage scores (Alaoui & Mahoney 2015).

    l_i = (K (K + n ridge I)^-1)_ii with K = k(X, X) of the n targets: large for a target that is unlike the others.
    ``kernel`` is a kernel object, fitted on the targets, or "rbf", which stands for ``RBF()``. Directions that hold less
    than ``ridge`` of the kernel's mean diagonal hardly count. The scores are exact for up to ``SCORED_TARGETS`` targets;
    of more, that many are first drawn uniformly, and both scores and references are among these.
    """

    def __init__(self, size=0.5, kernel="rbf", ridge=1e-3):
        self.size = size
        self.kernel = kernel
        self.ridge = ridge

    def draw(self, rows, random_state):
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
    """Targets in greedy order: a random one, then always the farthest from those before it (Gonzalez 1985)."""

    def __init__(self, size=0.5):
        self.size = size

    def draw(self, rows, random_state):
        m = at_most(rows.targets, rows.count(self.size), f"FarthestFirst(size={self.size!r})", "targets")
        X = _without_offset(moderate(float_rows(rows, rows.targets))[0])
        norms = row_norms(X, squared=True)
        nearest = np.full(rows.targets.size, np.inf)
        chosen = [random_state.randint(rows.targets.size)]
        while len(chosen) < m:
            i = chosen[-1]
            products = safe_sparse_dot(X, X[[i]].T, dense_output=True).ravel()
            np.minimum(nearest, norms + norms[i] - 2.0 * products, out=nearest)
            nearest[i] = -np.inf  # never again, also where all others equal it
            chosen.append(int(np.argmax(nearest)))
        return members(rows, rows.targets[chosen])


def leverage_scores(K, ridge) -> np.ndarray:
    """l_i = (K (K + n ridge I)^-1)_ii = 1 - n ridge ((K + n ridge I)^-1)_ii for each of the n rows of a kernel matrix."""
    n = K.shape[0]
    A = np.array(K, dtype=np.float64, order="F")
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


def _kernel_matrix(kernel, X):
    """K of a kernel that is resolved on X; "rbf" is the RBF kernel whose sigma² is the mean squared distance."""
    if not isinstance(kernel, Kernel) and not (isinstance(kernel, str) and kernel == "rbf"):
        raise ValueError(f'kernel={kernel!r} must be "rbf" or a kernel object, such as refkernel.kernels.Laplacian() or Function(f).')
    return RBF(scale=1.0).fit(moderate(X)[0])(moderate(X)[0]) if isinstance(kernel, str) else kernel.fit(X)(X)


def _without_offset(X):
    """X moved to its mean, so that distances from inner products lose no digits; sparse X stays, as it would not be sparse."""
    return X if sp.issparse(X) else X - X.mean(axis=0)
