"""Solve the dual problem to a certificate: whole where K is small, by working sets where it is not."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from .._threads import one_blas_thread
from .certificate import EXTRA_DIGITS, certify, largest_violation, spread_and_mass, violation_for
from .moves import fill
from .problem import DualProblem, Solution
from .problems import FACTS, GIVEN, OVERFLOWS, curvature_floor, solve_problems
from .sources import Source, in_single_precision
from .whole import gradient as whole_gradient
from .whole import solve_whole
from .working_sets import gradient, solve_by_working_sets

STOPPING_RULES = ("relative", "libsvm")

Rule: TypeAlias = tuple[float, bool, float, int]
"""When to stop: tol, whether by LIBSVM's rule, the curvature's floor, and the limit on pair moves."""

WHOLE = 1024
"""Up to this n the whole K (8 MB) may be held, and all samples are optimised together."""

ON_DEMAND = 512
"""Beyond this n, kernels whose values are computed are faster without the whole K: most of its rows belong to samples without weight."""

START_SAMPLE, START_SHARE = 256, 8
"""At most this many samples, and one in this many; their mean replaces the mean of all where the start is computed without the whole K."""

OVERFLOW = "The kernel overflows or is NaN on the training samples. Scale the data first, for example with TargetScaler."


def solve(
    problem: DualProblem,
    rows: Source,
    *,
    tol: float = 1e-06,
    stopping: str = "relative",
    start: np.ndarray | None = None,
    max_iter: int = -1,
) -> Solution:
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
    libsvm = stopping == "libsvm"
    floor = curvature_floor(rows.diag, libsvm)
    if rows.n <= (WHOLE if libsvm or not rows.on_demand else min(WHOLE, ON_DEMAND)):
        K = np.ascontiguousarray(in_single_precision(rows.whole()) if libsvm else rows.whole())
        b, G = _begin(problem, K, rows.diag, tol, libsvm) if start is None else _begin_at(problem, K, start)
        check_finite(G)
        end = solve_whole(K, rows.diag, problem.p, b, G, problem.lower, problem.upper, float(tol), libsvm, floor, limit)
    else:
        with one_blas_thread():  # two threads that wait for each other lose more than a second one gains in products this small
            b = _start(problem, rows, libsvm) if start is None else _feasible(problem, start)
            G = gradient(problem, rows, b)
            check_finite(G)
            end = solve_by_working_sets(problem, rows, b, G, tol, stopping, floor, limit)
    facts = certify(b, G, problem.p, rows.diag, problem.lower, problem.upper)
    return _certified(b, G, facts, end, np.inf if libsvm else tol)


def solve_again(
    problem: DualProblem, K: np.ndarray, diag: np.ndarray, lower: np.ndarray, upper: np.ndarray, rule: Rule, B: np.ndarray, G: np.ndarray
) -> np.ndarray:
    """Solve a problem for k pairs of bounds (k × n) on one K. Mutates B and G (k × n); returns the facts (k × FACTS) of ``problems``."""
    tol, libsvm, floor, limit = rule
    k = len(B)
    K, facts = np.ascontiguousarray(K)[None], np.empty((1, k, FACTS))
    p = np.repeat(problem.p[None, None], k, axis=1)
    per_problem = (np.full(k, value) for value in (float(problem.total), float(tol), bool(libsvm), GIVEN))
    solve_problems(K, K, diag[None], p, lower, upper, *per_problem, np.full(1, floor), np.full(k, limit), B[None], G[None], facts)
    if (facts[..., 6] == OVERFLOWS).any():
        raise ValueError(OVERFLOW)
    return facts[0]


def check_finite(G: np.ndarray) -> None:
    """Raise if a gradient, and so the kernel, is not finite."""
    if not np.isfinite(G).all():
        raise ValueError(OVERFLOW)


def _certified(
    b: np.ndarray, G: np.ndarray, facts: tuple[float, float, float, float, float, float], end: tuple[int, bool, float], most_gap: float
) -> Solution:
    """The solution with its certificate; it has converged only if the gap shows it."""
    rho, quadratic, scale, gap, size_of_sums, shortfall = facts
    moves, converged, curvature = end
    asked = EXTRA_DIGITS * most_gap if np.isfinite(most_gap) else 0.0
    solved = bool(converged and gap <= most_gap)
    return Solution(b, G, rho, gap, quadratic, scale, size_of_sums, shortfall, int(moves), solved, curvature, asked)


def _begin(problem: DualProblem, K: np.ndarray, diag: np.ndarray, tol: float, libsvm: bool) -> tuple[np.ndarray, np.ndarray]:
    """The start that ``solve_problems`` uses too: LIBSVM's, or equal weights if they are optimal, or a computed point."""
    p, lower, upper, n = problem.p, problem.lower, problem.upper, len(K)
    b, G = np.empty(n), np.empty(n)
    order, least = np.arange(n), lower
    if not libsvm:
        b = min(problem.total / np.cumsum(upper)[-1], 1.0) * upper  # summed in order, as compiled code does
        whole_gradient(K, p, b, G)
        _, scale, mass, size, _ = spread_and_mass(b, G, p, diag, lower)
        if largest_violation(b, G, lower, upper) <= violation_for(float(tol), scale, mass, size):
            return b, G
        order, least = np.argsort(G, kind="stable"), np.zeros(n)
    fill(b, order, least, upper, float(problem.total))
    whole_gradient(K, p, b, G)
    return b, G


def _begin_at(problem: DualProblem, K: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    b = _feasible(problem, start)
    return b, K @ b + problem.p


def _start(problem: DualProblem, rows: Source, libsvm: bool) -> np.ndarray:
    """A feasible point: weight at the bound for the samples that equal weights (on some samples) describe worst."""
    b = np.empty(rows.n)
    if libsvm:
        order = np.arange(rows.n)
    else:
        sample = np.unique(np.linspace(0, rows.n - 1, max(1, min(START_SAMPLE, rows.n // START_SHARE))).astype(np.intp))
        alike = problem.upper[sample] * min(problem.total / problem.upper[sample].sum(), 1.0)
        order = np.argsort(rows.times(sample, alike) + problem.p, kind="stable")
    fill(b, order, problem.lower, problem.upper, problem.total)
    return b


def _feasible(problem: DualProblem, start: np.ndarray) -> np.ndarray:
    b = np.array(start, dtype=np.float64)
    slack = 1e-9 * max(np.abs(b).sum(), abs(problem.total))
    within = b.shape == problem.p.shape and ((problem.lower <= b) & (b <= problem.upper)).all()
    if not (within and abs(b.sum() - problem.total) <= slack):
        raise ValueError(f"The start is not feasible: weights must lie within their bounds and sum to {problem.total:.6g}.")
    return b
