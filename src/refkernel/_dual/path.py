"""Families of problems on kernel matrices: the whole axis of nu or C, each solved from the one before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._jit import njit
from .problem import BOUNDARY_SLACK
from .rows import in_single_precision
from .smo import duality_gap, fill, largest_violation, multiplier, solve_whole, spread_and_mass, violation_for
from .solver import CURVATURE_FLOOR

MOST_MOVES = 10_000_000
"""Pair moves for one problem, unless the user says otherwise."""


@dataclass(frozen=True)
class Family:
    """Problems min ½ b'Kb + share · diag(K)'b, Σ b = total, 0 <= b <= upper, for any K of one size; one row of ``table`` each.

    The columns: share, total, upper, tol, the most moves, and 1 where the problem starts as LIBSVM does and ends by its
    absolute rule (on K in single precision), 1 where it starts from the solution before it.
    """

    table: np.ndarray

    @classmethod
    def of(cls, share, totals, uppers, *, tol=1e-6, stopping="relative", max_iter=-1) -> Family:
        """A path over ``totals`` and ``uppers``, each problem from the one before."""
        libsvm = stopping == "libsvm"
        table = np.empty((len(totals), 7))
        table[:, 0], table[:, 1], table[:, 2], table[:, 3] = share, totals, uppers, tol
        table[:, 4] = MOST_MOVES if max_iter < 0 else max_iter
        table[:, 5], table[:, 6] = libsvm, not libsvm
        table[:1, 6] = 0.0
        return cls(table)

    def __add__(self, other) -> Family:
        return Family(np.concatenate([self.table, other.table]))

    @property
    def libsvm(self) -> bool:
        """Whether some problem needs K in single precision."""
        return bool(self.table[:, 5].any())


@dataclass(frozen=True)
class Path:
    """Solutions of q problems on each of s matrices: weights ``B`` (s × q × n), and (s × q) their ``rho``, b'Kb, gap and slack."""

    B: np.ndarray
    rho: np.ndarray
    quadratic: np.ndarray
    gap: np.ndarray
    slack: np.ndarray
    converged: np.ndarray


def solve_path(K, family: Family) -> Path:
    """Solve a family of problems on every kernel matrix of a stack K (s × n × n, contiguous).

    The answers do not depend on their neighbours beyond ``tol``.
    """
    diag = K.diagonal(axis1=1, axis2=2).copy()
    size = np.abs(diag).max(axis=1)
    B = np.empty((len(K), len(family.table), K.shape[1]))
    facts = np.empty((4, *B.shape[:2]))
    _solve_path(K, in_single_precision(K) if family.libsvm else K, diag, family.table, CURVATURE_FLOOR, size, B, facts)
    rho, quadratic, gap, converged = facts
    return Path(B, rho, quadratic, gap, np.outer(BOUNDARY_SLACK * size, family.table[:, 1]), converged > 0)


@njit(cache=True, nogil=True)
def _solve_path(K, K_single, diag, table, floor, size, B, facts):
    """Fills B with weights and facts with (rho, b'Kb, relative gap, converged)."""
    for s in range(len(K)):
        _solve_one(K[s], K_single[s], diag[s], table, floor, size[s], B[s], facts[:, s])


@njit(cache=True, nogil=True)
def _solve_one(K, K_single, diag, table, floor, size, B, facts):
    """The same for one matrix."""
    n = diag.size
    lower = np.zeros(n)
    upper = np.empty(n)
    p = np.empty(n)
    b = np.zeros(n)
    G = np.empty(n)
    alike = True  # equal weights are the optimum so far, as for a one-class SVM centred on its samples
    for k in range(len(table)):
        share, total, bound, tol, max_iter = table[k, 0], table[k, 1], table[k, 2], table[k, 3], int(table[k, 4])
        libsvm, follows = table[k, 5] > 0, table[k, 6] > 0
        alike = alike or not follows
        Q = K_single if libsvm else K
        for t in range(n):
            upper[t] = bound
            p[t] = share * diag[t]
        if libsvm:
            b = fill(np.arange(n), lower, upper, total)
        elif alike:
            for t in range(n):
                b[t] = min(total / n, bound)
            gradient(Q, p, b, G)
            alike = largest_violation(b, G, lower, upper) <= violation_for(tol, b, G, p, diag, lower)
            if not alike:
                b = fill(np.argsort(G), lower, upper, total)
        else:
            for t in range(n):
                b[t] *= bound / table[k - 1, 2]
            change_total(b, np.argsort(G), bound, total)
        gradient(Q, p, b, G)
        curvature_floor = floor * (1.0 if libsvm or size == 0.0 else size)
        _, converged, _ = solve_whole(Q, diag, p, b, G, lower, upper, tol, libsvm, curvature_floor, max_iter)
        quadratic, scale, _ = spread_and_mass(b, G, p, diag, lower)
        rho = multiplier(b, G, lower, upper)
        gap = duality_gap(rho, b, G, lower, upper)
        facts[0, k], facts[1, k], facts[2, k] = rho, quadratic, gap / scale if scale > 0.0 else 0.0
        facts[3, k] = 1.0 if converged else 0.0
        for t in range(n):
            B[k, t] = b[t]


@njit(cache=True, nogil=True)
def gradient(K, p, b, G):
    """G = Kb + p. Mutates G."""
    for t in range(b.size):
        G[t] = p[t]
    for i in range(b.size):
        if b[i] != 0.0:
            for t in range(b.size):
                G[t] += b[i] * K[i, t]


@njit(cache=True, nogil=True)
def change_total(b, order, upper, total):
    """Bring the sum of 0 <= b <= upper to total: raise the first in order, or lower the last. Mutates b."""
    left = total
    for t in range(b.size):
        b[t] = min(b[t], upper)
        left -= b[t]
    for k in range(b.size):
        if left > 0.0:
            t = order[k]
            step = min(upper - b[t], left)
            b[t] = upper if step == upper - b[t] else b[t] + step
        else:
            t = order[b.size - 1 - k]
            step = max(-b[t], left)
            b[t] = 0.0 if step == -b[t] else b[t] + step
        left -= step
        if left == 0.0:
            break
