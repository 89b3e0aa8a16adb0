"""A family of problems on one kernel matrix, solved one from the other: the whole axis of nu or C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from .problem import BOUNDARY_SLACK
from .smo import duality_gap, fill, largest_violation, multiplier, solve_whole, spread_and_mass, violation_for
from .solver import CURVATURE_FLOOR


@dataclass(frozen=True)
class Path:
    """Solutions of q problems on one K: weights ``B`` (q × n), and for each ``rho``, b'Kb, the relative gap and the slack."""

    B: np.ndarray
    rho: np.ndarray
    quadratic: np.ndarray
    gap: np.ndarray
    slack: np.ndarray
    converged: np.ndarray


def solve_path(K, diag, p, totals, uppers, *, tol=1e-6, stopping="relative", max_iter=-1) -> Path:
    """The problems min ½ b'Kb + p'b, Σ b = totals[k], 0 <= b <= uppers[k] (arrays), each from the solution before it.

    The answers do not depend on their neighbours beyond ``tol``; with ``stopping="libsvm"`` each starts as LIBSVM does.
    """
    n = diag.size
    totals, uppers = np.asarray(totals, dtype=np.float64), np.asarray(uppers, dtype=np.float64)
    limit = max(10_000_000, 100 * n) if max_iter < 0 else max_iter
    size = float(np.abs(diag).max())
    libsvm = stopping == "libsvm"
    floor = CURVATURE_FLOOR * (1.0 if libsvm else size or 1.0)
    B = np.empty((len(totals), n))
    facts = np.empty((len(totals), 4))
    _solve_path(K, diag, p, totals, uppers, tol, libsvm, floor, limit, B, facts)
    rho, quadratic, gap, converged = facts.T
    return Path(B, rho, quadratic, gap, BOUNDARY_SLACK * size * totals, converged > 0)


@njit(cache=True, nogil=True)
def _solve_path(K, diag, p, totals, uppers, tol, libsvm, floor, max_iter, B, facts):
    """Fills B with weights and the rows of facts with (rho, b'Kb, relative gap, converged)."""
    n = diag.size
    lower = np.zeros(n)
    upper = np.empty(n)
    b = np.zeros(n)
    G = np.empty(n)
    alike = True  # equal weights are the optimum so far, as for a one-class SVM centred on its samples
    for k in range(totals.size):
        for t in range(n):
            upper[t] = uppers[k]
        if libsvm:
            b = fill(np.arange(n), lower, upper, totals[k])
        elif alike:
            for t in range(n):
                b[t] = min(totals[k] / n, uppers[k])
            gradient(K, p, b, G)
            alike = largest_violation(b, G, lower, upper) <= violation_for(tol, b, G, p, diag, lower)
            if not alike:
                b = fill(np.argsort(G), lower, upper, totals[k])
        else:
            for t in range(n):
                b[t] *= uppers[k] / uppers[k - 1]
            change_total(b, np.argsort(G), uppers[k], totals[k])
        gradient(K, p, b, G)
        _, converged, _ = solve_whole(K, diag, p, b, G, lower, upper, tol, libsvm, floor, max_iter)
        quadratic, scale, _ = spread_and_mass(b, G, p, diag, lower)
        rho = multiplier(b, G, lower, upper)
        gap = duality_gap(rho, b, G, lower, upper)
        facts[k, 0], facts[k, 1], facts[k, 2] = rho, quadratic, gap / scale if scale > 0.0 else 0.0
        facts[k, 3] = 1.0 if converged else 0.0
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
