"""Where searches start, and the solution of features in memory in the words of ``_dual``."""

from __future__ import annotations

import numpy as np

from .._dual.certificate import certify, spread_and_mass
from .._dual.newton import snap
from .._dual.problem import SUM_PRECISION, DualProblem, Solution
from .._dual.solver import solve
from .._dual.sources import Features
from .optimum import Guess
from .passes import Near, Point
from .rows import HeldRows
from .search import MANY, SAMPLE, Search

LEAST_SPREAD = 1e-4
"""If a sample's gradients are all alike (w = 0), those of all rows may still differ by this share of their terms."""

FEASIBLE = 1e-9
"""Weights sum to their total up to this share."""


ROWS_PER_FEATURE = 100
"""With fewer rows for each feature, Newton steps cost more than the pair moves that they save."""


def takes_over(n: int, r: int) -> bool:
    """Whether passes over the features are faster than pair moves: always at least as fast from about 30,000 rows on."""
    return n > max(MANY, ROWS_PER_FEATURE * r)


def solve_features(problem: DualProblem, rows: Features, tol: float = 1e-6) -> Solution:
    """As ``_dual.solver.solve``, for features in memory."""
    if problem.total >= (1.0 - SUM_PRECISION) * problem.upper.sum():
        return solve(problem, rows, tol=tol)  # every weight is at its bound, so no sample lies on the boundary
    held = HeldRows(rows.Phi, rows.diag, problem)
    best = Search(held, problem.total, rows.n, _start(held, tol), tol).optimum()
    b = best.weights(held)
    G = held.gradient(best.point.w)
    *_, far = spread_and_mass(b, G, problem.p, rows.diag, problem.lower)
    snap(b, rows.diag, far, problem.lower, problem.upper)
    rho, quadratic, scale, gap, size_of_sums, shortfall = certify(b, G, problem.p, rows.diag, problem.lower, problem.upper)
    if not (gap <= tol and abs(b.sum() - problem.total) <= FEASIBLE * np.abs(b).sum()):
        return solve(problem, rows, tol=tol)
    return Solution(b, G, rho, gap, quadratic, scale, size_of_sums, shortfall, best.passes, True, np.inf)


def _start(held: HeldRows, tol: float) -> Guess:
    problem, n = held.problem, len(held.Phi)
    if n <= max(MANY, 8 * held.Phi.shape[1]):
        return cold_start(held.Phi, problem)
    chosen = np.sort(np.random.RandomState(0).choice(n, SAMPLE, replace=False))
    terms = problem.p[chosen], problem.lower[chosen], problem.upper[chosen]
    return sample_start(Near(held.Phi[chosen], held.diag[chosen], *terms, chosen), problem.total, float(problem.upper.sum()), tol)


def cold_start(Phi: np.ndarray, problem: DualProblem) -> Guess:
    """Equal weights, and a band that holds half of the rows."""
    w = problem.upper * (problem.total / problem.upper.sum()) @ Phi
    G = Phi @ w + problem.p
    rho = _threshold(G, problem)
    distances = np.abs(G - rho)
    mu = float(np.median(distances)) or float(distances.max()) or 1.0
    return Guess(Point(w, rho), mu, Phi[:SAMPLE])


def sample_start(sample: Near, total: float, most: float, tol: float) -> Guess:
    """The optimum of a sample, its bounds raised so that the upper ones sum to ``most``; the band is as wide as that is uncertain."""
    raised = most / sample.upper.sum()
    problem = DualProblem(sample.p, sample.lower * raised, sample.upper * raised, total)
    held = HeldRows(sample.Phi, sample.diag, problem)
    point = Search(held, total, len(sample.p), cold_start(sample.Phi, problem), tol).optimum().point
    spread = max(float(np.std(held.gradient(point.w))), LEAST_SPREAD * abs(total) * float(sample.diag.mean()))
    return Guess(point, spread * np.sqrt((point.w.size + 1.0) / len(sample.p)) or 1.0, sample.Phi)


def _threshold(G: np.ndarray, problem: DualProblem) -> float:
    """The gradient up to which weights at their upper bounds sum to the total."""
    order = np.argsort(G, kind="stable")
    reached = np.cumsum(problem.upper[order]) + problem.lower.sum() - np.cumsum(problem.lower[order])
    return float(G[order[min(int(np.searchsorted(reached, problem.total)), len(order) - 1)]])
