"""For a kernel that is not held whole: working sets of the worst violators are optimised one after the other."""

from __future__ import annotations

import numpy as np

from .certificate import largest_violation, spread_and_mass, violation_for
from .moves import smo
from .newton import MOST_FREE, free_weights, polish, snap
from .problem import DualProblem
from .sources import Source
from .whole import MOVES_PER_TURN

WORKING_SET = 256
"""Samples that are optimised together."""

PATIENCE = 200
"""After this many working sets, or pair moves for each sample, wide sets take over. Most problems need 10 to 50; narrow kernels of few
features are nearly singular, and need thousands."""

WIDE_SET = 1024
"""At most this many samples in a wide set, which holds all free weights and the worst violators, and is optimised with Newton steps."""

WIDE_TURNS = 10
"""Turns of pair moves and Newton steps on one wide set."""

MOST_REFRESHES = 10
"""The limit on recomputing a gradient that lost digits to far-away rows."""


def solve_by_working_sets(
    problem: DualProblem, rows: Source, b: np.ndarray, G: np.ndarray, tol: float, stopping: str, floor: float, limit: int
) -> tuple[int, bool, float]:
    """As ``solve_whole``, for a kernel that is not held whole. Mutates b and G."""
    moves, sets, curvature, eps = 0, 0, np.inf, tol
    for _ in range(MOST_REFRESHES):
        made = 1
        while made > 0 and moves < limit:
            if stopping == "relative":
                _, scale, mass, size, _ = spread_and_mass(b, G, problem.p, rows.diag, problem.lower)
                eps = violation_for(tol, scale, mass, size)
            most = min(limit - moves, PATIENCE * rows.n)
            improve = _improve_widely if stopping == "relative" and sets + moves / rows.n >= PATIENCE else _improve
            made, met = improve(problem, rows, b, G, eps, floor, most)
            moves, sets, curvature = moves + made, sets + 1, min(curvature, met)
        *_, far = spread_and_mass(b, G, problem.p, rows.diag, problem.lower)
        if stopping == "libsvm" or far == np.inf:
            break
        G[:] = gradient(problem, rows, b)
        if largest_violation(b, G, problem.lower, problem.upper) <= eps or moves >= limit:
            break
    if stopping == "relative":
        _polish(problem, rows, b, G)
    snap(b, rows.diag, far, problem.lower, problem.upper)
    return moves, largest_violation(b, G, problem.lower, problem.upper) <= eps, curvature


def _improve(
    problem: DualProblem, rows: Source, b: np.ndarray, G: np.ndarray, eps: float, floor: float, max_iter: int
) -> tuple[int, float]:
    """Optimise one working set of the worst violators. Mutates b and G; returns moves and curvature."""
    W = _working_set(b, G, problem.lower, problem.upper)
    if W.size == 0:
        return 0, np.inf
    b_W, G_W = b[W], G[W]
    worst = G_W[b_W > problem.lower[W]].max() - G_W[b_W < problem.upper[W]].min()
    made, _, met = smo(rows.block(W), rows.diag[W], b_W, G_W, problem.lower[W], problem.upper[W], max(eps, 0.1 * worst), floor, max_iter)
    changed = b_W != b[W]
    rows.add(G, W[changed], b_W[changed] - b[W][changed])
    b[W] = b_W
    return made, met


def _improve_widely(
    problem: DualProblem, rows: Source, b: np.ndarray, G: np.ndarray, eps: float, floor: float, max_iter: int
) -> tuple[int, float]:
    """As ``_improve``, with all free weights in the set and Newton steps on them; as ``_improve`` if too many are free."""
    W = np.union1d(free_weights(b, problem.lower, problem.upper), _working_set(b, G, problem.lower, problem.upper))
    if W.size > WIDE_SET or largest_violation(b, G, problem.lower, problem.upper) <= eps:
        return _improve(problem, rows, b, G, eps, floor, max_iter)
    K, diag, lower, upper, b_W, G_W = rows.block(W), rows.diag[W], problem.lower[W], problem.upper[W], b[W], G[W]
    moves, curvature = 0, np.inf
    for _ in range(WIDE_TURNS):
        made, violation, met = smo(K, diag, b_W, G_W, lower, upper, eps, floor, min(max(int(MOVES_PER_TURN * W.size), 8), max_iter - moves))
        moves, curvature = moves + made, min(curvature, met)
        if violation <= eps or moves >= max_iter:
            break
        polish(K, b_W, G_W, lower, upper, W.size)
    changed = b_W != b[W]
    rows.add(G, W[changed], b_W[changed] - b[W][changed])
    b[W] = b_W
    return moves, curvature


def _polish(problem: DualProblem, rows: Source, b: np.ndarray, G: np.ndarray) -> None:
    """Newton steps on the free weights, if these are few and the steps help. Mutates b and G."""
    F = free_weights(b, problem.lower, problem.upper)
    if not 2 <= F.size <= MOST_FREE:
        return
    moved, G_moved, b_F = b.copy(), G.copy(), b[F]
    polish(rows.block(F), b_F, G[F], problem.lower[F], problem.upper[F], MOST_FREE)
    moved[F] = b_F
    rows.add(G_moved, F, b_F - b[F])
    before, after = (largest_violation(*point, problem.lower, problem.upper) for point in ((b, G), (moved, G_moved)))
    if after < before:
        b[:], G[:] = moved, G_moved


def _working_set(b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Half a working set of the smallest gradients that may grow, half of the largest that may shrink."""
    up, down = np.flatnonzero(b < upper), np.flatnonzero(b > lower)
    if up.size == 0 or down.size == 0:
        return np.empty(0, dtype=np.intp)
    up, down = up[G[up] < G[down].max()], down[G[down] > G[up].min()]
    half = WORKING_SET // 2
    if up.size > half:
        up = up[np.argpartition(G[up], half)[:half]]
    if down.size > half:
        down = down[np.argpartition(-G[down], half)[:half]]
    return np.union1d(up, down)


def gradient(problem: DualProblem, rows: Source, b: np.ndarray) -> np.ndarray:
    """Kb + p."""
    support = np.flatnonzero(b)
    return rows.times(support, b[support]) + problem.p
