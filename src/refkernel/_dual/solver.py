"""Solve the dual problem to a certificate: whole where K is small, by working sets where it is not."""

from __future__ import annotations

import numpy as np

from .._threads import one_blas_thread
from .certificate import certify, largest_violation, typical_size, violation_for
from .moves import fill
from .problem import DualProblem, Solution
from .sources import in_single_precision
from .whole import solve_whole
from .working_sets import gradient, solve_by_working_sets

STOPPING_RULES = ("relative", "libsvm")

WHOLE = 1024
"""Up to this n the whole K (8 MB) is computed and all samples are optimised together."""

START_SAMPLE = 256
"""The number of samples whose mean replaces the mean of all if the start is computed without the whole kernel."""

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
    with one_blas_thread():  # two threads that wait for each other lose more than a second one gains in products this small
        return _solve(problem, rows, tol, stopping, start, max(10_000_000, 100 * rows.n) if max_iter < 0 else max_iter)


def _solve(problem, rows, tol, stopping, start, limit):
    K = rows.whole() if rows.n <= WHOLE else None
    if K is not None and stopping == "libsvm":
        K = in_single_precision(K)
    floor = CURVATURE_FLOOR * (1.0 if stopping == "libsvm" else typical_size(rows.diag) or 1.0)
    b = _start(problem, rows, K, stopping, tol) if start is None else _feasible(problem, start)
    G = _gradient(problem, rows, K, b)
    if not np.isfinite(G).all():
        raise ValueError("The kernel overflows or is NaN on the training samples. Scale the data first, for example with TargetScaler.")
    if K is None:
        moves, converged, curvature = solve_by_working_sets(problem, rows, b, G, tol, stopping, floor, limit)
    else:
        libsvm = stopping == "libsvm"
        bounds = problem.lower, problem.upper
        moves, converged, curvature = solve_whole(K, rows.diag, problem.p, b, G, *bounds, tol, libsvm, floor, limit)
    return _certified(problem, rows.diag, b, G, moves, converged, curvature, tol if stopping == "relative" else np.inf)


def _certified(problem, diag, b, G, moves, converged, curvature, most_gap):
    """The solution with its certificate; it has converged only if the gap shows it."""
    rho, quadratic, scale, gap, size_of_sums, shortfall = certify(b, G, problem.p, diag, problem.lower, problem.upper)
    return Solution(b, G, rho, gap, quadratic, scale, size_of_sums, shortfall, moves, converged and gap <= most_gap, curvature)


def _start(problem, rows, K, stopping, tol):
    """A computed feasible point: weights at the bound for the samples that equal weights describe worst.

    Equal weights themselves are the optimum of a one-class SVM whose kernel is centred on its samples.
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
    return K @ b + problem.p if K is not None else gradient(problem, rows, b)


def _feasible(problem, start):
    b = np.array(start, dtype=np.float64)
    slack = 1e-9 * max(np.abs(b).sum(), abs(problem.total))
    within = b.shape == problem.p.shape and ((problem.lower <= b) & (b <= problem.upper)).all()
    if not (within and abs(b.sum() - problem.total) <= slack):
        raise ValueError(f"The start is not feasible: weights must lie within their bounds and sum to {problem.total:.6g}.")
    return b
