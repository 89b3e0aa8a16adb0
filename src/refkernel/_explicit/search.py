"""Smoothed Newton steps to the neighbourhood of the optimum, and an exact finish on the rows near the boundary.

    min over w, rho   ½ ||w||² - rho total + Σ upper (rho - G)₊ + |lower| (G - rho)₊,     G = Phi w + p

is the dual of the problem in ``_dual.problem``: r + 1 unknowns for any number of rows. Its hinges are smoothed over a band that shrinks.
Once few rows are close enough to the boundary to change sides, all others are fixed at their bounds, and those few are solved exactly. A
last pass over all rows judges the result; if it finds rows at the wrong bound, the search goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._dual.certificate import EXTRA_DIGITS, SCALE_FLOOR, multiplier
from .._dual.moves import fill
from .._dual.problem import SUM_PRECISION, DualProblem
from .._dual.solver import solve
from .._dual.sources import Features
from .._threads import one_blas_thread
from .algebra import Merged, solve_positive
from .optimum import Guess, Optimum
from .passes import (
    Carried,
    Near,
    Point,
    Screen,
    Screened,
    Smoothed,
    Verdict,
    blended,
    judged,
    screened,
    smoothed,
)
from .rows import HeldRows, Reducer

SHRINK = 0.3
"""The band's width from one step to the next."""

SAMPLE = 1 << 13
"""Rows that the search starts with; of a large problem, at most so many are kept near the boundary."""

MANY = 4 * SAMPLE
"""With more rows, a start on a sample pays."""

FEW = 768
"""Rows that the pair solver finishes: it holds their kernel matrix whole (5 MB)."""

ROWS_PER_FEATURE = 3
"""At least this many rows for each feature stay near the boundary: an optimum may have one free weight more than features."""

SAFE = 2.0
"""Rows within this multiple of the last step's largest change count as able to change sides."""

FARTHEST = 4.0
"""A step changes no row by more than this many widths of the band: farther away the curvature is that of other rows."""

WITHIN = 0.75
"""The share of the limit that a screen aims at: the density of rows is only known on average."""

TIED, MOST_TIED = 0.8, 8
"""If this share of the band's rows stays as it shrinks, they tie, and up to this many times the limit go into the exact finish."""

POLISHING = 5
"""Newton steps that make the weights of a band sum to their total."""

MOST_PASSES = 100
"""A solve takes about 5 passes from a start on a sample, and 15 from none."""

INNER_TOL = 1e-3
"""The tolerance of the rows near the boundary, as a share of the whole problem's."""


class Search:
    """One solve: passes over the rows of a reducer."""

    def __init__(self, rows: Reducer, total: float, n: int, start: Guess, tol: float) -> None:
        self.rows, self.total, self.n, self.start, self.tol = rows, total, n, start, tol
        self.limit = max(SAMPLE if n > MANY else FEW, ROWS_PER_FEATURE * (start.point.w.size + 1))
        self.passes = 0

    def optimum(self) -> Optimum:
        """Newton steps until few rows can change sides, then the exact finish. Small products would only wait for a second thread."""
        with one_blas_thread():
            return self._optimum()

    def _optimum(self) -> Optimum:
        everything = self._finished(Screen(self.start.point, np.inf)) if self.n <= self.limit else None
        if everything is not None:
            return everything
        point, mu = self.start.point, self.start.mu
        sums, wider = self._pass(smoothed, point, mu), self.n
        while True:
            step = self._newton_step(sums, point, 1.0)
            change = self._change(step)
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

    def _newton_step(self, sums: Smoothed, point: Point, shrink: float) -> np.ndarray:
        """The step to the optimum of a band of ``shrink`` times the width, if no row enters or leaves it."""
        gradient = np.append(point.w - sums.phi, sums.b - self.total) - (1.0 - shrink) * sums.drift
        H = sums.curvature.copy()
        r = point.w.size
        H[np.arange(r), np.arange(r)] += 1.0
        H[r, r] += SUM_PRECISION * (H[r, r] or 1.0)
        return -solve_positive(H, gradient)

    def _change(self, step: np.ndarray) -> float:
        """The largest change of rho - G by a step."""
        return float(np.abs(self.start.Phi @ step[:-1] - step[-1]).max())

    def _value(self, sums: Smoothed, point: Point) -> float:
        return 0.5 * float(point.w @ point.w) - point.rho * self.total + sums.value

    def _line_search(self, point: Point, sums: Smoothed, step: np.ndarray, mu: float) -> tuple[Point, Smoothed]:
        """The first of the shares 1, 0.3, … of a step that lowers the smoothed objective."""
        before, share = self._value(sums, point), 1.0
        slope = float(np.append(point.w - sums.phi, sums.b - self.total) @ step)
        while True:
            moved = point.moved(step, share)
            found = self._pass(smoothed, moved, mu)
            if self._value(found, moved) <= before + 1e-4 * share * slope or share < 1e-6:
                return moved, found
            share *= SHRINK

    def _is_negligible(self, sums: Smoothed, change: float, mu: float) -> bool:
        """Whether the band is so narrow that its weights are as good as exact ones: the gap is at most their weight times its width."""
        scale = 0.5 * max(abs(self.total * sums.sizes - float(sums.phi @ sums.phi)), SCALE_FLOOR * abs(self.total) * sums.sizes)
        return change <= 0.5 * mu and sums.movable * mu <= EXTRA_DIGITS * self.tol * scale

    def _as_it_is(self, point: Point, sums: Smoothed, mu: float) -> Optimum:
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
        found: Screened = self._pass(screened, screen)
        near, fixed = found.near.joined(), found.fixed
        rest = self.total - fixed.b
        slack = SUM_PRECISION * max(abs(self.total), fixed.weights)
        if not near.lower.sum() - slack <= rest <= near.upper.sum() + slack:
            return None
        shifted = DualProblem(near.p + near.Phi @ fixed.phi, near.lower, near.upper, rest)
        b, rho = self._restricted(shifted, near, Point(screen.point.w - fixed.phi, screen.point.rho))
        carried = fixed + Carried.of(b, near.Phi, near.diag)
        point = Point(carried.phi, rho)
        verdict = self._pass(judged, screen, point) + Verdict.of(b, near.Phi @ point.w + near.p, rho, near.lower, near.upper)
        return Optimum(point, screen, near, b, carried, verdict, self.passes)

    def _restricted(self, problem: DualProblem, near: Near, start: Point) -> tuple[np.ndarray, float]:
        """The weights of the rows near the boundary and their threshold: by a search of their own if they are many, else by pair moves."""
        if not len(near.p):
            return np.empty(0), start.rho
        tol = INNER_TOL * self.tol
        held = HeldRows(near.Phi, near.diag, problem)
        n, few = len(problem.p), max(FEW, ROWS_PER_FEATURE * (start.w.size + 1))
        if few < n <= 0.5 * self.n:
            mu = float(np.median(np.abs(held.gradient(start.w) - start.rho)))
            best = Search(held, problem.total, n, Guess(start, mu, near.Phi), tol).optimum()
            b = best.weights(held)
            return b, multiplier(b, held.gradient(best.point.w), problem.lower, problem.upper)
        merged = Merged(near.Phi, problem)
        order = np.argsort(merged.Phi @ start.w + merged.problem.p, kind="stable")
        b = fill(order, merged.problem.lower, merged.problem.upper, problem.total)
        solution = solve(merged.problem, Features(merged.Phi), tol=tol, start=b)
        return merged.shared(solution.b), solution.rho
