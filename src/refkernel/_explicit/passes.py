"""The passes: what one block of rows adds to a sum. Each function takes ``Rows`` and small arrays, and returns something with ``+``.

Symbols: ``G = Phi w + p`` and t = rho - G, which is positive for rows that want weight. The hinge (t)₊ is smoothed over the band
|t| < mu, where a row's weight b goes from its lower to its upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from .rows import Rows

SINGLE_ERROR = 2.0**-19
"""Products of features in single precision are known to this share of |w||phi|: 32 roundings."""


@dataclass(frozen=True)
class Point:
    """A normal w and a threshold rho."""

    w: np.ndarray
    rho: float

    def moved(self, step: np.ndarray, share: float = 1.0) -> Point:
        return Point(self.w + share * step[:-1], self.rho + share * float(step[-1]))


@dataclass(frozen=True)
class Sums:
    """What is added up field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Smoothed(Sums):
    """The smoothed problem at a point: Σ of its terms, Σ b phi, Σ b, Σ |b| ||phi||², the curvature, the change of the gradient with mu
    (times mu), the rows in the band and the weight that these can move."""

    value: float
    phi: np.ndarray
    b: float
    sizes: float
    curvature: np.ndarray
    drift: np.ndarray
    in_band: int
    movable: float


def smoothed(rows: Rows, point: Point, mu: float) -> Smoothed:
    """What a Newton step needs."""
    t = point.rho - rows.gradient(point.w)
    span = rows.upper - rows.lower
    b = smoothed_weights(t, mu, rows.lower, rows.upper)
    hinge = np.where(np.abs(t) < mu, (t + mu) ** 2 / (4.0 * mu), np.maximum(t, 0.0))
    carrying = np.flatnonzero(b)
    band = np.flatnonzero((np.abs(t) < mu) & (span > 0.0))
    root = np.sqrt(span[band] / (2.0 * mu))
    B = rows.rounded(band, point.w.size + 1)
    B[:, -1] = -1.0
    B *= root[:, None]
    curvature, drift = B.T @ B, (root * t[band]) @ B
    phi = b[carrying] @ rows.rounded(carrying, point.w.size)
    value, sizes = float(rows.lower @ t + span @ hinge), float(np.abs(b) @ rows.diag)
    return Smoothed(value, phi, float(b.sum()), sizes, curvature, drift, band.size, float(span[band].sum()))


@dataclass(frozen=True)
class Near:
    """Rows near the boundary, in their order, with the terms of the problem restricted to them."""

    Phi: np.ndarray
    diag: np.ndarray
    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    index: np.ndarray


@dataclass(frozen=True)
class Pieces:
    """Rows near the boundary of several blocks; joined once, at the end."""

    parts: tuple[Near, ...]

    def __add__(self, other: Pieces) -> Pieces:
        return Pieces(self.parts + other.parts)

    def joined(self) -> Near:
        """All of them, in their order."""
        return Near(*(np.concatenate([getattr(part, f.name) for part in self.parts]) for f in fields(Near)))


@dataclass(frozen=True)
class Largest:
    """The largest of several numbers."""

    value: float

    def __add__(self, other: Largest) -> Largest:
        return Largest(max(self.value, other.value))


@dataclass(frozen=True)
class Screen:
    """Rows within ``width`` of the boundary at a point are near; those below get their upper bound, those above their lower one."""

    point: Point
    width: float

    def sides(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Which rows are below, and which above."""
        G = rows.gradient(self.point.w)
        return self.point.rho - self.width > G, self.point.rho + self.width < G


@dataclass(frozen=True)
class Carried(Sums):
    """Sums over rows with weight: Σ b phi, Σ b, Σ b ||phi||², Σ |b|, Σ |b| ||phi||², Σ |b| ||phi||, and the largest ||phi||."""

    phi: np.ndarray
    b: float
    diag: float
    weights: float
    sizes: float
    roots: float
    heaviest: Largest

    @classmethod
    def of(cls, b: np.ndarray, Phi: np.ndarray, diag: np.ndarray) -> Carried:
        weights, roots = np.abs(b), np.sqrt(diag)
        heaviest = Largest(float(roots[b != 0.0].max(initial=0.0)))
        return cls(b @ Phi, float(b.sum()), float(b @ diag), float(weights.sum()), float(weights @ diag), float(weights @ roots), heaviest)


@dataclass(frozen=True)
class Screened(Sums):
    """The rows near the boundary, and the sums over all others, whose weights are at a bound."""

    near: Pieces
    fixed: Carried


def screened(rows: Rows, screen: Screen) -> Screened:
    """The rows that a screen leaves, and the sums of those that it fixes."""
    below, above = screen.sides(rows)
    near = np.flatnonzero(~(below | above))
    b = np.where(below, rows.upper, rows.lower)
    b[near] = 0.0
    fixed = np.flatnonzero(b)
    kept = Near(rows.exact(near), rows.diag[near], rows.p[near], rows.lower[near], rows.upper[near], rows.start + near)
    Phi = rows.exact(fixed, rows.work.array("rounded", fixed.size, screen.point.w.size))
    return Screened(Pieces((kept,)), Carried.of(b[fixed], Phi, rows.diag[fixed]))


@dataclass(frozen=True)
class Verdict(Sums):
    """How rows fare at a solution: how many are at the wrong bound, their part of the duality gap, and minus the smallest gradient of a
    weight that may grow."""

    wrong: int
    gap: float
    least: Largest

    @classmethod
    def of(cls, b: np.ndarray, G: np.ndarray, rho: float, lower: np.ndarray, upper: np.ndarray) -> Verdict:
        losses = (b - lower) * np.maximum(G - rho, 0.0) + (upper - b) * np.maximum(rho - G, 0.0)
        least = float(np.min(G[b < upper], initial=np.inf))
        return cls(int(np.count_nonzero(losses)), float(losses.sum()), Largest(-least))


def judged(rows: Rows, screen: Screen, at: Point) -> Verdict:
    """The rows that a screen fixed, at the solution of the others."""
    below, above = screen.sides(rows)
    G = rows.gradient(at.w)
    if rows.is_rounded:
        error = SINGLE_ERROR * float(np.linalg.norm(at.w)) * np.sqrt(rows.diag)
        unsure = np.flatnonzero((below & (at.rho - error < G)) | (above & (at.rho + error > G)))
        G[unsure] = rows.exact(unsure) @ at.w + rows.p[unsure]
    fixed = np.flatnonzero(below | above)
    lower, upper = rows.lower[fixed], rows.upper[fixed]
    return Verdict.of(np.where(below[fixed], upper, lower), G[fixed], at.rho, lower, upper)


@dataclass(frozen=True)
class Blended(Sums):
    """The weights of a smoothed solution, as they are."""

    carried: Carried
    verdict: Verdict


def blended(rows: Rows, point: Point, mu: float) -> Blended:
    """The sums and the certificate of the weights that smoothing gives at a point."""
    everything = np.arange(len(rows.p))
    G = rows.exact(everything) @ point.w + rows.p
    b = smoothed_weights(point.rho - G, mu, rows.lower, rows.upper)
    carrying = np.flatnonzero(b)
    carried = Carried.of(b[carrying], rows.exact(carrying), rows.diag[carrying])
    return Blended(carried, Verdict.of(b, G, point.rho, rows.lower, rows.upper))


def smoothed_weights(t: np.ndarray, mu: float, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """From the lower bound at t = -mu to the upper one at t = mu."""
    return lower + (upper - lower) * np.clip((t + mu) / (2.0 * mu), 0.0, 1.0)


@dataclass(frozen=True)
class Carrying:
    """The numbers of rows with weight, and their weights."""

    index: np.ndarray
    b: np.ndarray

    def __add__(self, other: Carrying) -> Carrying:
        return Carrying(np.concatenate([self.index, other.index]), np.concatenate([self.b, other.b]))

    def sorted(self) -> Carrying:
        """The same rows in ascending order."""
        order = np.argsort(self.index, kind="stable")
        return Carrying(self.index[order], self.b[order])


def carrying(rows: Rows, screen: Screen, is_smoothed: bool) -> Carrying:
    """The rows to which a screen gives weight: at their bounds, or as smoothing does over a band as wide as the screen."""
    if is_smoothed:
        b = smoothed_weights(screen.point.rho - rows.gradient(screen.point.w), screen.width, rows.lower, rows.upper)
    else:
        below, above = screen.sides(rows)
        b = np.where(below, rows.upper, np.where(above, rows.lower, 0.0))
    found = np.flatnonzero(b)
    return Carrying(rows.start + found, b[found])
