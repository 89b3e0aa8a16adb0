"""Where a search starts, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._dual.certificate import SCALE_FLOOR
from .passes import Carried, Carrying, Near, Point, Screen, Verdict, smoothed_weights
from .rows import HeldRows


@dataclass(frozen=True)
class Guess:
    """Where to start: a point, the width of the first band, and features of some rows, on which steps are measured."""

    point: Point
    mu: float
    Phi: np.ndarray


@dataclass(frozen=True)
class Optimum:
    """A solution: its point; the screen behind it, the rows that this left and their weights; the sums over all rows with weight, and
    the verdict over all rows. Without rows that were left, the weights are those of a smoothed band: the screen's point and width."""

    point: Point
    screen: Screen
    near: Near | None
    b: np.ndarray
    carried: Carried
    verdict: Verdict
    passes: int

    @property
    def scale(self) -> float:
        """As ``certificate.spread_and_mass``: half the weighted spread, or a small share of the features' size."""
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

    def left(self) -> Carrying:
        """The rows with weight among those that the screen left."""
        if self.near is None:
            return Carrying(np.empty(0, np.intp), np.empty(0))
        found = np.flatnonzero(self.b)
        return Carrying(self.near.index[found], self.b[found])

    def boundary(self) -> Carrying:
        """The rows on the boundary: those whose weights are free."""
        if self.near is None:
            return self.left()
        free = np.flatnonzero((self.near.lower < self.b) & (self.b < self.near.upper))
        return Carrying(self.near.index[free], self.b[free])

    def weights(self, held: HeldRows) -> np.ndarray:
        """The weight of every row, for rows in memory."""
        problem = held.problem
        G = held.gradient(self.screen.point.w)
        if self.near is None:
            return smoothed_weights(self.screen.point.rho - G, self.screen.width, problem.lower, problem.upper)
        b = np.where(self.screen.point.rho > G, problem.upper, problem.lower)
        b[self.near.index] = self.b
        return b
