"""Smoothed Newton steps to the neighbourhood of the optimum, and an exact finish on the rows near the boundary.

    min over w, rho   ½ ||w||² - rho total + Σ upper (rho - G)₊ + |lower| (G - rho)₊,     G = Phi w + p

is the dual of the problem in ``_core.problem``: r + 1 unknowns for any number of rows. Its hinges are smoothed over a band that shrinks.
Once few rows are close enough to the boundary to change sides, all others are fixed at their bounds, and those few are solved exactly. A
last pass over all rows judges the result; if it finds rows at the wrong bound, the search goes on from there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .._core.certificate import EXTRA_DIGITS, SCALE_FLOOR, certify
from .._core.dense import first_at_bound
from .._core.gram import Features
from .._core.problem import SUM_PRECISION, DualProblem, Solution
from .._core.smo import change_total
from .._core.solver import solve
from .._core.threads import one_blas_thread
from .block_sums import Point, Screen, Sums, blended, carried, judged, screened, smoothed, smoothed_weights, verdict
from .rows import Rows

SHRINK = 0.3  # the band's width from one step to the next
SAMPLE = 1 << 13  # rows that the search starts with; of a large problem, at most as many are kept near the boundary
MANY = 4 * SAMPLE  # with more rows, a start on a sample pays
FEW = 768  # rows that the pair solver finishes: it holds their kernel matrix whole (5 MB)
ROWS_PER_FEATURE = 3  # this many rows for each feature stay near the boundary: an optimum may have one free weight more than features
SAFE = 2.0  # rows within this multiple of the last step's largest change count as able to change sides
FARTHEST = 4.0  # A step changes no row by more than this many widths of the band: farther away the curvature is that of other rows
WITHIN = 0.75  # the share of the limit that a screen aims at: the density of rows is only known on average
TIED, MOST_TIED = 0.8, 8  # if this share of the band's rows stays as it shrinks, they tie; up to this many limits then finish exactly
POLISHING = 5  # Newton steps that make the weights of a band sum to their total
MOST_PASSES = 100  # A solve takes about 5 passes from a start on a sample, and 15 from none
FEASIBLE = 1e-9  # weights sum to their total up to this share
INNER_TOL, LEAST_TOL = 1e-3, 1e-10  # the tolerance of the rows near the boundary, as a share of the whole problem's, and its least


@dataclass(frozen=True)
class Guess:
    """Where to start: a point, the width of the first band, and features of some rows, on which steps are measured."""

    point: Point
    mu: float
    Phi: np.ndarray


@dataclass(frozen=True)
class Optimum:
    """A point, its screen, the rows it left (None: a smoothed band), their weights, the sums over rows with weight, the verdict."""

    point: Point
    screen: Screen
    near: Rows | None
    b: np.ndarray
    carried: Sums
    verdict: Sums
    passes: int

    @property
    def scale(self) -> float:
        """As ``Certificate.scale``: half the weighted spread, or a small share of the features' size."""
        c = self.carried
        return max(0.5 * abs(c.b * c.diag - self.quadratic), SCALE_FLOOR * 0.5 * c.weights * c.sizes)

    @property
    def quadratic(self) -> float:
        return float(self.point.w @ self.point.w)

    @property
    def gap(self) -> float:
        """The duality gap as a share of the scale."""
        return self.verdict.gap / self.scale if self.scale > 0.0 else 0.0

    @property
    def size_of_sums(self) -> float:
        return self.carried.roots * self.carried.heaviest.value

    @property
    def shortfall(self) -> float:
        """rho less the smallest gradient of a weight that may grow."""
        return max(self.point.rho + self.verdict.least.value, 0.0)

    def left(self, free: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The rows with weight among those that the screen left, or only those on the boundary, whose weights are ``free``."""
        if self.near is None:
            return np.empty(0, np.intp), np.empty(0)
        found = np.flatnonzero((self.near.lower < self.b) & (self.b < self.near.upper) if free else self.b)
        return self.near.index[found], self.b[found]

    def weights(self, rows: Rows) -> np.ndarray:
        """The weight of every row, for rows in memory."""
        G = rows.gradient(self.screen.point.w)
        if self.near is None:
            return smoothed_weights(self.screen.point.rho - G, self.screen.width, rows.lower, rows.upper)
        b = np.where(self.screen.point.rho > G, rows.upper, rows.lower)
        b[self.near.index] = self.b
        return b


class Search:
    """One solve: passes over ``rows``, whose ``reduce(function, *state)`` adds up over blocks; rows that are not exact are rounded."""

    def __init__(self, rows: Any, total: float, n: int, start: Guess, tol: float) -> None:
        self.rows, self.total, self.n, self.start, self.tol = rows, total, n, start, tol
        self.limit = max(SAMPLE if n > MANY else FEW, ROWS_PER_FEATURE * (start.point.w.size + 1))
        self.passes = 0

    def optimum(self) -> Optimum:
        """Newton steps until few rows can change sides, then the exact finish. Small products would only wait for a second thread."""
        with one_blas_thread():
            everything = self._finished(Screen(self.start.point, np.inf)) if self.n <= self.limit else None
            if everything is not None:
                return everything
            point, mu = self.start.point, self.start.mu
            sums, wider = self._pass(smoothed, point, mu), self.n
            while True:
                step = self._newton_step(sums, point, 1.0)
                change = float(np.abs(self.start.Phi @ step[:-1] - step[-1]).max())  # the largest of rho - G
                if self.passes > MOST_PASSES or self._is_negligible(sums, change, mu):
                    return self._as_it_is(point, sums, mu)
                tied = sums.in_band > TIED * wider  # a narrower band holds as many rows: they tie
                width = WITHIN * mu * self.limit / max(sums.in_band, 1) if not tied else 2.0 * mu
                if width >= SAFE * change and (not tied or sums.in_band <= MOST_TIED * self.limit):
                    found = self._finished(Screen(point.moved(step), width))
                    if found is not None and (found.verdict.wrong == 0 or found.gap <= INNER_TOL * self.tol):
                        return found
                if change <= 0.5 * mu:
                    point, mu, wider = point.moved(self._newton_step(sums, point, SHRINK)), SHRINK * mu, sums.in_band
                    sums = self._pass(smoothed, point, mu)
                else:
                    point, sums = self._line_search(point, sums, step * min(1.0, FARTHEST * mu / change), mu)

    def _pass(self, function: Callable[..., Any], *state: Any) -> Any:
        self.passes += 1
        return self.rows.reduce(function, *state)

    def _newton_step(self, sums: Sums, point: Point, shrink: float) -> np.ndarray:
        """The step to the optimum of a band of ``shrink`` times the width, if no row enters or leaves it."""
        gradient = np.append(point.w - sums.phi, sums.b - self.total) - (1.0 - shrink) * sums.drift
        H = sums.curvature.copy()
        r = point.w.size
        H[np.arange(r), np.arange(r)] += 1.0
        H[r, r] += SUM_PRECISION * (H[r, r] or 1.0)
        try:
            return -cho_solve(cho_factor(H, check_finite=False), gradient, check_finite=False)
        except LinAlgError:  # H is positive definite, but rounding made it singular
            return -np.linalg.lstsq(H, gradient)[0]

    def _value(self, sums: Sums, point: Point) -> float:
        return 0.5 * float(point.w @ point.w) - point.rho * self.total + sums.value

    def _line_search(self, point: Point, sums: Sums, step: np.ndarray, mu: float) -> tuple[Point, Sums]:
        """The first of the shares 1, 0.3, … of a step that lowers the smoothed objective."""
        before, share = self._value(sums, point), 1.0
        slope = float(np.append(point.w - sums.phi, sums.b - self.total) @ step)
        while True:
            moved = point.moved(step, share)
            found = self._pass(smoothed, moved, mu)
            if self._value(found, moved) <= before + 1e-4 * share * slope or share < 1e-6:
                return moved, found
            share *= SHRINK

    def _is_negligible(self, sums: Sums, change: float, mu: float) -> bool:
        """Whether the band is so narrow that its weights are as good as exact ones: the gap is at most their weight times its width."""
        scale = 0.5 * max(abs(self.total * sums.sizes - float(sums.phi @ sums.phi)), SCALE_FLOOR * abs(self.total) * sums.sizes)
        return change <= 0.5 * mu and sums.movable * mu <= EXTRA_DIGITS * self.tol * scale

    def _as_it_is(self, point: Point, sums: Sums, mu: float) -> Optimum:
        """The weights of a band, once they sum to their total."""
        for _ in range(POLISHING):
            if abs(sums.b - self.total) <= SUM_PRECISION * abs(self.total):
                break
            point = point.moved(self._newton_step(sums, point, 1.0))
            sums = self._pass(smoothed, point, mu)
        found = self._pass(blended, point, mu)
        at = Point(found.carried.phi, point.rho)
        return Optimum(at, Screen(point, mu), None, np.empty(0), found.carried, found.verdict, self.passes)

    def _finished(self, screen: Screen) -> Optimum | None:
        """The exact optimum if the rows that a screen fixes stay where they are; None if the others cannot carry the rest."""
        found = self._pass(screened, screen)
        near, fixed = Rows.joined(found.near), found.fixed
        rest = self.total - fixed.b
        slack = SUM_PRECISION * max(abs(self.total), fixed.weights)
        if not near.lower.sum() - slack <= rest <= near.upper.sum() + slack:
            return None
        rest = min(max(rest, near.lower.sum()), near.upper.sum())  # rounding must not make it infeasible
        problem = DualProblem(near.p + near.Phi @ fixed.phi, near.lower, near.upper, rest)
        exact = self._restricted(problem, Features(near.Phi), Point(screen.point.w - fixed.phi, screen.point.rho))
        if exact is None:
            return None
        b, rho = exact.b, exact.rho
        sums = fixed + carried(b, near.Phi, near.diag)
        point = Point(sums.phi, rho)
        judgement = self._pass(judged, screen, point) + verdict(b, near.Phi @ point.w + near.p, rho, near.lower, near.upper)
        return Optimum(point, screen, near, b, sums, judgement, self.passes)

    def _restricted(self, problem: DualProblem, rows: Features, start: Point) -> Solution | None:
        """The optimum of the rows near the boundary: by pair moves if few, else by another search; None if that would not be easier."""
        G, tol = rows.Phi @ start.w + problem.p, max(INNER_TOL * self.tol, LEAST_TOL)
        if rows.n <= max(FEW, ROWS_PER_FEATURE * (start.w.size + 1)):
            order = np.argsort(G, kind="stable")
            return solve(problem, rows, tol=tol, start=first_at_bound(problem.lower, problem.upper, problem.total, order))
        if rows.n > 0.5 * self.n and self.rows.are_exact:
            return None
        return solve_held(problem, rows, Guess(start, float(np.abs(G - start.rho).mean()), rows.Phi), tol)


def solve_held(problem: DualProblem, features: Features, start: Guess, tol: float) -> Solution:
    """The optimum for features in memory."""
    rows, total, bounds = Rows.of(features.Phi, features.diag, problem), problem.total, (problem.lower, problem.upper)
    best = Search(rows, total, features.n, start, tol).optimum()
    b, G = best.weights(rows), rows.gradient(best.point.w)
    rho, quadratic, scale, gap, size_of_sums, shortfall = certify(b, G, problem.p, rows.diag, *bounds)[:6]
    if gap > tol or abs(b.sum() - total) > FEASIBLE * np.abs(b).sum():  # if rows tie, a narrow band knows their weights to few digits
        change_total(b, G, *bounds, total)
        return solve(problem, features, tol=tol, start=b)
    return Solution(b, G, rho, gap, quadratic, scale, size_of_sums, shortfall, best.passes, True, np.inf)
