"""For a kernel that is not held whole: working sets of the worst violators are optimised one after the other."""

import numpy as np

from .certificate import certify
from .dense import MOVES_PER_TURN
from .gram import Source
from .newton import free_weights, newton, snap
from .problem import DualProblem
from .smo import smo

WORKING_SET = 256  # samples that are optimised together
PATIENCE = 200  # after this many working sets, or moves a sample, wide sets take over: most problems need 10 to 50, others thousands
WIDE_SET = 1024  # at most this many samples in a wide set: all free weights and the worst violators, optimised with Newton steps
WIDE_TURNS = 10  # turns of pair moves and Newton steps on one wide set
MOST_REFRESHES = 10  # the limit on solving again because the gradient, computed anew, still violates optimality


def solve_by_working_sets(
    problem: DualProblem, rows: Source, b: np.ndarray, G: np.ndarray, rule: tuple[bool, float, float, int]
) -> tuple[int, bool, float]:
    """Solve from b and its gradient G, by a rule of ``solver``. Mutates both; returns moves, whether it converged, and curvature."""
    libsvm, tol, floor, limit = rule
    p, diag, bounds = problem.p, rows.diag, (problem.lower, problem.upper)
    moves, sets, curvature, eps, changed = 0, 0, np.inf, tol, np.empty(0, dtype=np.intp)
    for _ in range(MOST_REFRESHES):
        made = 1
        while made > 0 and moves < limit:
            if not libsvm:
                eps = certify(b, G, p, diag, *bounds, tol).allowed
            most = min(limit - moves, PATIENCE * rows.n)
            widely = not libsvm and sets + moves / rows.n >= PATIENCE
            made, met, changed = _improve(problem, rows, b, G, eps, floor, most, widely, changed)
            moves, sets, curvature = moves + made, sets + 1, min(curvature, met)
        if libsvm:
            break
        G[:] = gradient(problem, rows, b)  # the certificate is of the weights, not of the sums that led to them
        if violation(b, G, *bounds) <= eps or moves >= limit:
            break
    snap(b, diag, certify(b, G, p, diag, *bounds).far, *bounds)
    return moves, violation(b, G, *bounds) <= eps, curvature


def violation(b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """The largest gradient of a weight that may shrink, less the smallest of one that may grow; 0 if no pair can move."""
    up, down = np.min(G, where=b < upper, initial=np.inf), np.max(G, where=b > lower, initial=-np.inf)
    return max(float(down - up), 0.0)


def _improve(
    problem: DualProblem,
    rows: Source,
    b: np.ndarray,
    G: np.ndarray,
    eps: float,
    floor: float,
    max_iter: int,
    widely: bool,
    before: np.ndarray,
) -> tuple[int, float, np.ndarray]:
    """Optimise the worst violators, ``widely`` with all free weights by Newton steps. Mutates b and G; returns moves, curvature, changes.

    The samples that the set ``before`` changed take part: else sets would raise and lower the weights of nearly equal samples in turn.
    """
    W = _working_set(b, G, problem.lower, problem.upper)
    if W.size == 0:
        return 0, np.inf, W
    W = np.union1d(W, before)
    if widely:
        wide = np.union1d(free_weights(b, problem.lower, problem.upper), W)
        widely = wide.size <= WIDE_SET and violation(b, G, problem.lower, problem.upper) > eps
        W = wide if widely else W
    K, diag, lower, upper, b_W, G_W = rows.block(W), rows.diag[W], problem.lower[W], problem.upper[W], b[W], G[W]
    if not widely:
        moves, _, curvature = smo(K, diag, b_W, G_W, lower, upper, max(eps, 0.1 * violation(b_W, G_W, lower, upper)), floor, max_iter)
    else:
        moves, curvature = 0, np.inf
        for _ in range(WIDE_TURNS):
            most = min(max(int(MOVES_PER_TURN * W.size), 8), max_iter - moves)
            made, worst, met = smo(K, diag, b_W, G_W, lower, upper, eps, floor, most)
            moves, curvature = moves + made, min(curvature, met)
            if worst <= eps or moves >= max_iter:
                break
            newton(K, b_W, G_W, lower, upper, W.size)
    changed = b_W != b[W]
    rows.add(G, W[changed], b_W[changed] - b[W][changed])
    b[W] = b_W
    return moves, curvature, W[changed]


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
