"""Families of problems on kernel matrices: all values of nu or C, each solved from the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._jit import njit
from .certificate import EXTRA_DIGITS, certify, largest_violation, typical_size, violation_for
from .classifiers import Classifier, negative_margin
from .moves import fill
from .problem import is_zero, noise
from .solver import CURVATURE_FLOOR
from .sources import in_single_precision
from .whole import gradient, solve_whole

MOST_MOVES = 10_000_000
"""The default limit on pair moves for one problem."""


class Family(NamedTuple):
    """q problems min ½ b'Kb + linear_share · diag(K)'b, Σ b = total, on any K of one size: one entry of each array a problem.

    Targets have 0 <= b <= upper, outliers that repel lower <= b <= 0. ``libsvm`` problems start as LIBSVM does and end by its absolute
    rule (on K in single precision); those that ``follow`` start from the solution before them.
    """

    linear_share: np.ndarray
    total: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    tol: np.ndarray
    max_moves: np.ndarray
    libsvm: np.ndarray
    follows: np.ndarray

    @classmethod
    def of(cls, classifier: Classifier, bounds, lowers=None, *, tol=1e-6, stopping="relative", max_iter=-1) -> Family:
        """A path over nu n = 1 / C = ``bounds``, each problem from the one before."""
        q = len(bounds)
        totals, uppers = classifier.scaled(bounds)
        follows = np.full(q, stopping != "libsvm")
        follows[:1] = False
        return cls(
            linear_share=np.full(q, classifier.linear_share),
            total=totals,
            lower=np.zeros(q) if lowers is None else lowers,
            upper=uppers,
            tol=np.full(q, float(tol)),
            max_moves=np.full(q, MOST_MOVES if max_iter < 0 else max_iter),
            libsvm=np.full(q, stopping == "libsvm"),
            follows=follows,
        )

    def joined(self, other: Family) -> Family:
        """The problems of both, one after the other."""
        return Family(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Path:
    """Solutions of q problems on each of s matrices: weights ``B`` (s × q × n), and (s × q) facts about each, as in ``Solution``."""

    B: np.ndarray
    rho: np.ndarray
    quadratic: np.ndarray
    scale: np.ndarray
    gap: np.ndarray
    size_of_sums: np.ndarray
    shortfall: np.ndarray
    converged: np.ndarray
    asked: np.ndarray

    @property
    def is_zero(self) -> np.ndarray:
        """Whether w = Σ b phi(x) cannot be told from 0."""
        return is_zero(self)

    @property
    def noise(self) -> np.ndarray:
        """How large w · phi(x) can be although it is nothing but noise; 0 if w is not 0."""
        return noise(self)


def solve_path(K, family: Family, outliers: int = 0) -> Path:
    """Solve a family of problems on every kernel matrix of a stack K (s × n × n, contiguous).

    The last ``outliers`` samples are outliers that repel. Each answer depends on its neighbours on the path only within ``tol``.
    """
    diag = K.diagonal(axis1=1, axis2=2).copy()
    targets = K.shape[1] - outliers
    margin = np.array([negative_margin(d[:targets]) for d in diag]) if outliers else np.zeros(len(K))
    B = np.empty((len(K), len(family.total), K.shape[1]))
    facts = np.empty((7, *B.shape[:2]))
    _solve_path(
        K,
        in_single_precision(K) if family.libsvm.any() else K,
        diag,
        targets,
        margin,
        family,
        CURVATURE_FLOOR,
        typical_size(diag),
        B,
        facts,
    )
    rho, quadratic, scale, gap, size_of_sums, shortfall, converged = facts
    shortfall[:, family.libsvm] = 0.0  # LIBSVM's threshold is rho, wherever it stopped
    certified = family.libsvm | (gap <= family.tol)
    asked = np.broadcast_to(np.where(family.libsvm, 0.0, EXTRA_DIGITS * family.tol), rho.shape)
    return Path(B, rho, quadratic, scale, gap, size_of_sums, shortfall, (converged > 0) & certified, asked)


@njit(cache=True, nogil=True)
def _solve_path(K, K_single, diag, targets, margin, family, floor, size, B, facts):
    """Fills B with weights and facts with what ``certify`` returns, and whether the stopping rule was met."""
    for s in range(len(K)):
        _solve_one(K[s], K_single[s], diag[s], targets, margin[s], family, floor, size[s], B[s], facts[:, s])


@njit(cache=True, nogil=True)
def _solve_one(K, K_single, diag, targets, margin, family, floor, size, B, facts):
    """The same for one matrix."""
    n = diag.size
    none = np.zeros(n)
    lower = np.zeros(n)
    upper = np.zeros(n)
    p = np.empty(n)
    b = np.zeros(n)
    G = np.empty(n)
    alike = True  # equal weights are the optimum so far, as for a one-class SVM centred on its samples
    for k in range(family.total.size):
        share, total, bound, tol = family.linear_share[k], family.total[k], family.upper[k], family.tol[k]
        libsvm, follows = family.libsvm[k], family.follows[k]
        alike = alike or not follows
        Q = K_single if libsvm else K
        for t in range(n):
            p[t] = share * (diag[t] if t < targets else diag[t] - margin)
        for t in range(targets):
            upper[t] = bound
        for t in range(targets, n):
            lower[t] = family.lower[k]
        if libsvm:
            b = fill(np.arange(n), lower, upper, total)
        elif alike:
            for t in range(n):
                b[t] = min(total / targets, bound) if t < targets else 0.0
            gradient(Q, p, b, G)
            alike = largest_violation(b, G, lower, upper) <= violation_for(tol, b, G, p, diag, lower)
            if not alike:
                b = fill(np.argsort(G), none, upper, total)
        else:
            for t in range(n):
                b[t] *= bound / family.upper[k - 1] if t < targets else family.lower[k] / family.lower[k - 1]
            change_total(b, np.argsort(G), lower, upper, total)
        gradient(Q, p, b, G)
        curvature_floor = floor * (1.0 if libsvm or size == 0.0 else size)
        _, converged, _ = solve_whole(Q, diag, p, b, G, lower, upper, tol, libsvm, curvature_floor, family.max_moves[k])
        facts[0, k], facts[1, k], facts[2, k], facts[3, k], facts[4, k], facts[5, k] = certify(b, G, p, diag, lower, upper)
        facts[6, k] = 1.0 if converged else 0.0
        for t in range(n):
            B[k, t] = b[t]


@njit(cache=True, nogil=True)
def change_total(b, order, lower, upper, total):
    """Bring the sum of lower <= b <= upper to total: raise the first in order, or lower the last. Mutates b."""
    left = total
    for t in range(b.size):
        b[t] = min(b[t], upper[t])
        left -= b[t]
    for k in range(b.size):
        if left > 0.0:
            t = order[k]
            step = min(upper[t] - b[t], left)
            b[t] = upper[t] if step == upper[t] - b[t] else b[t] + step
        else:
            t = order[b.size - 1 - k]
            step = max(lower[t] - b[t], left)
            b[t] = lower[t] if step == lower[t] - b[t] else b[t] + step
        left -= step
        if left == 0.0:
            break
