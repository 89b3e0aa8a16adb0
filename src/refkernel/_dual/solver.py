"""Solve the dual problem to a certificate: whole where K is small, by working sets where it is not."""

from __future__ import annotations

import numpy as np

from .problem import DualProblem, Solution
from .rows import in_single_precision
from .smo import (
    MOST_FREE,
    duality_gap,
    fill,
    free_weights,
    largest_violation,
    multiplier,
    polish,
    smo,
    snap,
    solve_whole,
    spread_and_mass,
    violation_for,
)

STOPPING_RULES = ("relative", "libsvm")

WHOLE = 1024
"""Up to this n the whole K (8 MB) is computed and all samples are optimised together."""

WORKING_SET = 256
"""Beyond that, samples that are optimised together."""

START_SAMPLE = 256
"""Samples whose mean stands for the mean of all when a start is computed without the whole kernel."""

CURVATURE_FLOOR = 1e-12
"""Pairs of equal samples have no curvature; this much (times the kernel's size) bounds their step, as in LIBSVM."""


def solve(problem: DualProblem, rows, *, tol=1e-6, stopping="relative", start=None, max_iter=-1) -> Solution:
    """The optimum of ``problem`` for the kernel behind ``rows``.

    Parameters
    ----------
    tol : float
        With ``stopping="relative"``: the duality gap at the end, as a share of the problem's own scale.
        With ``stopping="libsvm"``: the largest violation at the end, absolute, as LIBSVM measures it.
    stopping : {"relative", "libsvm"}
        ``"libsvm"`` also starts as LIBSVM does, from the first samples at their upper bound, and rounds kernel values as it does.
    start : ndarray of shape (n,), optional
        Any feasible weights to start from.
    max_iter : int
        Limit on pair moves; -1 is LIBSVM's own, max(10 million, 100 n).
    """
    limit = max(10_000_000, 100 * rows.n) if max_iter < 0 else max_iter
    K = rows.whole() if rows.n <= WHOLE else None
    if K is not None and stopping == "libsvm":
        K = in_single_precision(K)
    size = float(np.abs(rows.diag).max())
    floor = CURVATURE_FLOOR * (1.0 if stopping == "libsvm" else size or 1.0)
    b = _start(problem, rows, K, stopping, tol) if start is None else _feasible(problem, start)
    G = _gradient(problem, rows, K, b)
    if not np.isfinite(G).all():
        raise ValueError("The kernel overflows or is NaN on the training samples. Scale the data first, for example with TargetScaler.")
    if K is None:
        moves, converged, curvature = _solve_by_working_sets(problem, rows, b, G, tol, stopping, floor, limit)
    else:
        libsvm = stopping == "libsvm"
        bounds = problem.lower, problem.upper
        moves, converged, curvature = solve_whole(K, rows.diag, problem.p, b, G, *bounds, tol, libsvm, floor, limit)
    return _certified(problem, rows.diag, b, G, moves, converged, curvature)


def _solve_by_working_sets(problem, rows, b, G, tol, stopping, floor, limit):
    """As ``solve_whole``, for a kernel that is not held whole. Mutates b and G."""
    moves, curvature, made = 0, np.inf, 1
    eps = tol
    while made > 0 and moves < limit:
        if stopping == "relative":
            eps = violation_for(tol, b, G, problem.p, rows.diag, problem.lower)
        made, met = _improve(problem, rows, b, G, eps, floor, limit - moves)
        moves, curvature = moves + made, min(curvature, met)
    if stopping == "relative":
        _polish(problem, rows, b, G)
    snap(b, problem.lower, problem.upper)
    return moves, largest_violation(b, G, problem.lower, problem.upper) <= eps, curvature


def _certified(problem, diag, b, G, moves, converged, curvature):
    quadratic, scale, _ = spread_and_mass(b, G, problem.p, diag, problem.lower)
    rho = multiplier(b, G, problem.lower, problem.upper)
    gap = duality_gap(rho, b, G, problem.lower, problem.upper)
    size = float(np.abs(diag).max())
    return Solution(b, G, rho, gap / scale if scale > 0 else 0.0, quadratic, scale, size, moves, converged, curvature)


def _improve(problem, rows, b, G, eps, floor, max_iter):
    """One working set: the worst violators, moved among themselves. Mutates b and G; returns moves and curvature."""
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


def _polish(problem, rows, b, G):
    """Newton steps on the free weights, where these are few and it helps. Mutates b and G."""
    F = free_weights(b, problem.lower, problem.upper)
    if not 2 <= F.size <= MOST_FREE:
        return
    moved, G_moved, b_F = b.copy(), G.copy(), b[F]
    polish(rows.block(F), b_F, G[F], problem.lower[F], problem.upper[F])
    moved[F] = b_F
    rows.add(G_moved, F, b_F - b[F])
    before, after = (largest_violation(*point, problem.lower, problem.upper) for point in ((b, G), (moved, G_moved)))
    if after < before:
        b[:], G[:] = moved, G_moved


def _working_set(b, G, lower, upper):
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


def _start(problem, rows, K, stopping, tol):
    """A computed feasible point: weights at the bound for the samples that are worst described by all samples alike.

    All alike is itself the optimum of a one-class SVM whose kernel is centred on its samples.
    """
    if stopping == "libsvm":
        return fill(np.arange(rows.n), problem.lower, problem.upper, problem.total)
    sample = np.arange(rows.n) if K is not None else np.unique(np.linspace(0, rows.n - 1, START_SAMPLE).astype(np.intp))
    alike = problem.upper[sample] * min(problem.total / problem.upper[sample].sum(), 1.0)
    G = (K @ alike if K is not None else rows.times(sample, alike)) + problem.p
    if K is not None and _optimal(problem, rows.diag, alike, G, tol):
        return alike
    return fill(np.argsort(G, kind="stable"), problem.lower, problem.upper, problem.total)


def _optimal(problem, diag, b, G, tol):
    feasible = (b >= problem.lower).all()
    return feasible and largest_violation(b, G, problem.lower, problem.upper) <= violation_for(tol, b, G, problem.p, diag, problem.lower)


def _gradient(problem, rows, K, b):
    if K is not None:
        return K @ b + problem.p
    support = np.flatnonzero(b)
    return rows.times(support, b[support]) + problem.p


def _feasible(problem, start):
    b = np.array(start, dtype=np.float64)
    slack = 1e-9 * max(np.abs(b).sum(), abs(problem.total))
    within = b.shape == problem.p.shape and ((problem.lower <= b) & (b <= problem.upper)).all()
    if not (within and abs(b.sum() - problem.total) <= slack):
        raise ValueError(f"The start is not feasible: weights must lie within their bounds and sum to {problem.total:.6g}.")
    return b
