"""Solve the dual problem to a certificate: whole where K is small, by working sets where it is not; or all values of nu or C in turn."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .certificate import EXTRA_DIGITS, FACTS, FINITE, certify
from .dense import ALL_FACTS, CONVERGED, CURVATURE, MOVES, curvature_floor, first_at_bound, solve_dense
from .gram import Source, in_single_precision
from .problem import Classifier, DualProblem, Solution, negative_margin
from .threads import one_blas_thread
from .working_set import gradient, solve_by_working_sets

STOPPING_RULES = ("relative", "libsvm")
Bounds: TypeAlias = tuple[np.ndarray, np.ndarray]  # lower and upper ones
Rule: TypeAlias = tuple[bool, float, float, int]  # whether by LIBSVM's rule, tol, the curvature's floor, the limit on pair moves
WHOLE = 1024  # up to this n the whole K (8 MB) may be held, and all samples are optimised together
ON_DEMAND = 512  # beyond this n, computed kernels are faster without the whole K: most of its rows belong to samples without weight
START_SAMPLE, START_SHARE = 256, 8  # at most this many, and one in this many: their mean replaces the mean of all in a start on demand
OVERFLOW = "The kernel overflows or is NaN on the training samples. Scale the data first, for example with TargetScaler."


def stopping_rule(diag: np.ndarray, tol: float = 1e-06, stopping: str = "relative", max_iter: int = -1) -> Rule:
    """What the parameters stand for, for a kernel of this diagonal; ``max_iter=-1`` is LIBSVM's own limit, max(10 million, 100 n)."""
    libsvm = stopping == "libsvm"
    return libsvm, float(tol), curvature_floor(diag, libsvm), max(10_000_000, 100 * diag.size) if max_iter < 0 else int(max_iter)


def solve(
    problem: DualProblem, rows: Source, tol: float = 1e-6, stopping: str = "relative", start: np.ndarray | None = None, max_iter: int = -1
) -> Solution:
    """The optimum of ``problem`` for the kernel behind ``rows``, from any feasible weights ``start``.

    "relative" ends at a duality gap of ``tol``, as a share of the problem's scale; "libsvm" at a violation of ``tol``, from LIBSVM's start,
    on kernel values rounded as there. ``max_iter`` limits pair moves.
    """
    rule = libsvm, *_ = stopping_rule(rows.diag, tol, stopping, max_iter)
    with one_blas_thread():  # two threads that wait for each other lose more than a second one gains in products this small
        if rows.n <= (WHOLE if libsvm or not rows.on_demand else min(WHOLE, ON_DEMAND)):
            K = np.ascontiguousarray(in_single_precision(rows.whole()) if libsvm else rows.whole())
            given = libsvm or start is not None
            B = np.empty((1, rows.n))
            if given:
                B[0] = first_at_bound(problem.lower, problem.upper, problem.total) if start is None else _feasible(problem, start)
            G = B @ K + problem.p if given else np.empty_like(B)
            facts = solve_again(problem, K, rows.diag, (problem.lower[None], problem.upper[None]), rule, B, G, given)[0]
            return solution_of(B[0], G[0], facts, libsvm, tol)
        b = _start(problem, rows, libsvm) if start is None else _feasible(problem, start)
        G = gradient(problem, rows, b)
        if not np.isfinite(G).all():
            raise ValueError(OVERFLOW)
        facts = np.empty(ALL_FACTS)
        facts[[MOVES, CONVERGED, CURVATURE]] = solve_by_working_sets(problem, rows, b, G, rule)
        facts[:FACTS] = certify(b, G, problem.p, rows.diag, problem.lower, problem.upper)
    return solution_of(b, G, facts, libsvm, tol)


def solution_of(b: np.ndarray, G: np.ndarray, facts: np.ndarray, libsvm: Any, tol: Any) -> Solution:
    """Weights and gradients with the facts about them: of one problem, or of paths (s × q)."""
    facts, ours = np.moveaxis(facts, -1, 0), np.logical_not(libsvm)
    rho, quadratic, scale, gap, size_of_sums, shortfall = facts[:6]
    converged = (facts[CONVERGED] > 0.0) & (facts[FINITE] > 0.0) & ((gap <= tol) | libsvm)
    moves, asked = facts[MOVES].astype(np.intp), ours * (EXTRA_DIGITS * tol)
    return Solution(b, G, rho, gap, quadratic, scale, size_of_sums, ours * shortfall, moves, converged, facts[CURVATURE], asked)


def solve_again(
    problem: DualProblem, K: np.ndarray, diag: np.ndarray, bounds: Bounds, rule: Rule, B: np.ndarray, G: np.ndarray, given: bool = True
) -> np.ndarray:
    """Solve a problem for k pairs of bounds (k × n) on one K. Mutates B and G (k × n); returns the facts (k × ALL_FACTS) of ``dense``."""
    facts, totals = np.empty((len(B), ALL_FACTS)), np.full(len(B), float(problem.total))
    solve_dense(np.ascontiguousarray(K), diag, problem.p, bounds[0], bounds[1], totals, given, *rule, B, G, facts)
    if not facts[:, FINITE].all():
        raise ValueError(OVERFLOW)
    return facts


class Family(NamedTuple):
    """Problems of one classifier for nu n = 1 / C = ``bounds``, in the order of their path; outliers have the lower bounds ``lowers``."""

    classifier: Classifier
    bounds: np.ndarray
    lowers: np.ndarray
    tol: float = 1e-06
    stopping: str = "relative"
    max_iter: int = -1


def solve_path(K: np.ndarray, families: Sequence[Family], outliers: int = 0) -> Solution:
    """Solve families on each matrix of a stack K (s × n × n), each problem from the one before; the last ``outliers`` samples repel."""
    counts = [family.bounds.size for family in families]
    (s, n, _), q = K.shape, sum(counts)
    B, G, facts = np.empty((s, q, n)), np.empty((s, q, n)), np.empty((s, q, ALL_FACTS))
    for family, end in zip(families, np.cumsum(counts), strict=True):
        part = slice(end - family.bounds.size, end)
        totals, uppers = family.classifier.scaled(family.bounds)
        lower, upper = np.zeros((totals.size, n)), np.zeros((totals.size, n))
        lower[:, n - outliers :] = family.lowers[:, None]
        upper[:, : n - outliers] = np.minimum(uppers, totals - outliers * family.lowers)[:, None]
        matrices = in_single_precision(K) if family.stopping == "libsvm" else K
        for k, single, b, g, found in zip(K, matrices, B[:, part], G[:, part], facts[:, part], strict=True):
            diag = k.diagonal().copy()
            p = family.classifier.linear_share * diag
            if outliers:
                p[n - outliers :] -= family.classifier.linear_share * negative_margin(diag[: n - outliers])
            rule = stopping_rule(diag, family.tol, family.stopping, family.max_iter)
            given = family.stopping == "libsvm"
            if given:
                b[:] = [first_at_bound(*bounds) for bounds in zip(lower, upper, totals, strict=True)]
            solve_dense(single, diag, p, lower, upper, totals, given, *rule, b, g, found)
    libsvm, tol = (np.repeat(each, counts) for each in ([f.stopping == "libsvm" for f in families], [f.tol for f in families]))
    return solution_of(B, G, facts, libsvm, tol)


def _start(problem: DualProblem, rows: Source, libsvm: bool) -> np.ndarray:
    """A feasible point: weight at the bound for the samples that equal weights (on some samples) describe worst."""
    order = None
    if not libsvm:
        sample = np.unique(np.linspace(0, rows.n - 1, max(1, min(START_SAMPLE, rows.n // START_SHARE))).astype(np.intp))
        alike = problem.upper[sample] * min(problem.total / problem.upper[sample].sum(), 1.0)
        order = np.argsort(rows.times(sample, alike) + problem.p, kind="stable")
    return first_at_bound(problem.lower, problem.upper, problem.total, order)


def _feasible(problem: DualProblem, start: np.ndarray) -> np.ndarray:
    b = np.array(start, dtype=np.float64)
    slack = 1e-9 * max(np.abs(b).sum(), abs(problem.total))
    within = b.shape == problem.p.shape and ((problem.lower <= b) & (b <= problem.upper)).all()
    if not (within and abs(b.sum() - problem.total) <= slack):
        raise ValueError(f"The start is not feasible: weights must lie within their bounds and sum to {problem.total:.6g}.")
    return b
