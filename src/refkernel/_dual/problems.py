"""Many problems on kernel matrices that are held whole: the compiled entry point for paths and for samples left out. Jitted."""

from __future__ import annotations

import numpy as np

from .._jit import DRIVER, LOOP, njit
from .certificate import certify, largest_violation, spread_and_mass, typical_size, violation_for
from .following import FEW, LOST, follow, settle
from .moves import fill, largest, last_index
from .newton import MOST_FREE
from .whole import gradient, solve_whole

GIVEN, COMPUTED, FOLLOWING, FIRST = 0, 1, 2, 3
"""Where a problem starts: at given weights and their gradient, at a computed point, at the solution of the problem before it, or where
LIBSVM starts, with weight on the first samples."""

CONVERGED, OVERFLOWS = 1.0, -1.0
"""Values of the seventh fact: the problem was solved, or its kernel is not finite."""

CURVATURE_FLOOR = 1e-12
"""Pairs of equal samples have no curvature; this much (times the kernel's size) bounds their step, as in LIBSVM."""

MOST_LOSSES = 2
"""Weights that could not be followed so many times are not followed any further on that matrix: its samples are nearly dependent."""

FACTS = 9
"""What ``certify`` returns, whether the stopping rule was met, the pair moves made, and the smallest curvature met."""


def curvature_floor(diag: np.ndarray, libsvm: bool) -> float:
    """The floor for one problem; LIBSVM's does not follow the kernel's size."""
    return CURVATURE_FLOOR * (1.0 if libsvm else float(typical_size(diag)) or 1.0)


@njit(interpreted=DRIVER)
def solve_problems(
    K: np.ndarray,
    K_single: np.ndarray,
    diag: np.ndarray,
    p: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    total: np.ndarray,
    tol: np.ndarray,
    libsvm: np.ndarray,
    begin: np.ndarray,
    floor: np.ndarray,
    max_moves: np.ndarray,
    B: np.ndarray,
    G: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Solve q problems on each of s matrices K (s × n × n), one after the other. Mutates B, G (s × q × n) and facts (s × q × FACTS).

    p is (s × q × n); bounds are (q × n), floor (s), the rest (q). Problems that stop by LIBSVM's rule use ``K_single``.
    """
    q, n = upper.shape
    room = min(n, MOST_FREE) + 2
    inverse, F, a, common = np.empty((room, room)), np.empty(room, np.intp), np.empty(room), 0.0  # of the free weights: see ``follow``
    in_order = np.empty(n, np.intp)
    for t in range(n):
        in_order[t] = t
    for s in range(len(K)):
        alike = True  # equal weights are the optimum so far, as for a one-class SVM centred on its samples
        free, events, losses = FEW, 0, 0
        for k in range(q):
            b, g, linear, low, up, fact = B[s, k], G[s, k], p[s, k], lower[k], upper[k], facts[s, k]
            Q = K_single[s] if libsvm[k] else K[s]
            alike = alike or begin[k] == COMPUTED
            followed = False
            if begin[k] == FIRST:
                fill(b, in_order, low, up, total[k])
            elif begin[k] != GIVEN and alike:
                most = 0.0
                for t in range(n):
                    most += up[t]
                for t in range(n):
                    b[t] = min(total[k] / most, 1.0) * up[t]
                gradient(Q, linear, b, g)
                _, scale, mass, size, _ = spread_and_mass(b, g, linear, diag[s], low)
                alike = largest_violation(b, g, low, up) <= violation_for(tol[k], scale, mass, size)
                if not alike:
                    for t in range(n):
                        b[t] = 0.0
                    change_total(b, g, low, up, total[k])
            elif begin[k] == FOLLOWING:
                before, before_g = B[s, k - 1], G[s, k - 1]
                rises = not libsvm[k] and only_the_sum_rises(linear, low, up, upper[k - 1], total[k] - total[k - 1])
                if rises and losses < MOST_LOSSES:
                    for t in range(n):
                        b[t], g[t] = before[t], before_g[t]
                    free, common, events = follow(Q, b, g, low, up, total[k] - total[k - 1], inverse, F, a, free, common, max_moves[k])
                    followed = free >= 0
                    losses += free == LOST
                if not followed:
                    for t in range(n):
                        b[t] = rescaled(before[t], lower[k - 1, t], upper[k - 1, t], low[t], up[t])
                    change_total(b, before_g, low, up, total[k])
            if begin[k] != GIVEN:
                gradient(Q, linear, b, g)
            if followed and not settle(Q, b, g, low, up, total[k], inverse, F, a, free):
                free = FEW
                change_total(b, g, low, up, total[k])  # a step within rounding met a bound
                gradient(Q, linear, b, g)
            finite = True
            for t in range(n):
                finite = finite and abs(g[t]) < np.inf
            if finite:
                floor_k = CURVATURE_FLOOR if libsvm[k] else floor[s]
                fact[7], solved, fact[8] = solve_whole(Q, diag[s], linear, b, g, low, up, tol[k], libsvm[k], floor_k, max_moves[k])
                fact[6] = CONVERGED if solved else 0.0
                free = free if followed and fact[7] == 0.0 else FEW
                fact[7] += events if followed else 0
            else:
                fact[6], free = OVERFLOWS, FEW
            fact[0], fact[1], fact[2], fact[3], fact[4], fact[5] = certify(b, g, linear, diag[s], low, up)


@njit(interpreted=LOOP)
def only_the_sum_rises(p: np.ndarray, lower: np.ndarray, upper: np.ndarray, upper_before: np.ndarray, rise: float) -> bool:
    """Whether a problem differs from the one before it by the sum of its weights alone, as for a one-class SVM: what ``follow`` solves."""
    same = rise >= 0.0
    for t in range(p.size):
        same = same and p[t] == 0.0 and lower[t] == 0.0 and upper[t] == upper_before[t]
    return same


@njit(interpreted=DRIVER)
def rescaled(b: float, lower_before: float, upper_before: float, lower: float, upper: float) -> float:
    """A weight that moves as its bounds move."""
    if upper_before > 0.0:
        return b * (upper / upper_before)
    return b * (lower / lower_before) if lower_before < 0.0 else 0.0


@njit(interpreted=LOOP)
def change_total(b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float) -> None:
    """Bring the sum of lower <= b <= upper to total: raise weights of the smallest gradients, or lower those of the largest. Mutates b.

    Of equal gradients the first is raised first, and the last lowered first.
    """
    n = b.size
    left = total
    for t in range(n):
        b[t] = min(b[t], upper[t])
        left -= b[t]
    wish = np.empty(n)  # how much a weight wants to move; -inf if it cannot
    raised = left > 0.0
    for t in range(n):  # from the last to the first where weights are raised: ties go to the last place
        wish[n - 1 - t if raised else t] = (-G[t] if b[t] < upper[t] else -np.inf) if raised else (G[t] if b[t] > lower[t] else -np.inf)
    while left != 0.0:
        most = largest(wish)
        if most == -np.inf:
            break
        place = last_index(wish, most)
        wish[place] = -np.inf
        t = n - 1 - place if raised else place
        room = (upper[t] if raised else lower[t]) - b[t]
        step = min(room, left) if raised else max(room, left)
        b[t] = (upper[t] if raised else lower[t]) if step == room else b[t] + step
        left -= step
