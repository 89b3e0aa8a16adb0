"""The passes: what one block of rows adds to a sum. Each function takes ``Rows`` and small arrays, and returns something with ``+``.

Symbols: ``G = Phi w + p`` and t = rho - G, which is positive for rows that want weight. The hinge (t)₊ is smoothed over the band
|t| < mu, where a row's weight b goes from its lower to its upper bound.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from .rows import Rows

SINGLE_ERROR = 2.0**-19  # products of features in single precision are known to this share of |w||phi|: 32 roundings


@dataclass(frozen=True)
class Point:
    """A normal w and a threshold rho."""

    w: np.ndarray
    rho: float

    def moved(self, step: np.ndarray, share: float = 1.0) -> "Point":
        return Point(self.w + share * step[:-1], self.rho + share * float(step[-1]))


class Sums(SimpleNamespace):
    """What is added up name by name; tuples are joined."""

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(**{name: value + getattr(other, name) for name, value in vars(self).items()})


@dataclass(frozen=True)
class Largest:
    """The largest of several numbers, or of each column."""

    value: Any

    def __add__(self, other: "Largest") -> "Largest":
        return Largest(np.maximum(self.value, other.value))


def smoothed(rows: Rows, point: Point, mu: float) -> Sums:
    """The smoothed problem at a point: its value, sums over weights, curvature, drift with mu, the band's rows and movable weight."""
    t = point.rho - rows.gradient(point.w)
    span = rows.upper - rows.lower
    b = smoothed_weights(t, mu, rows.lower, rows.upper)
    hinge = np.where(np.abs(t) < mu, (t + mu) ** 2 / (4.0 * mu), np.maximum(t, 0.0))
    carrying = np.flatnonzero(b)
    band = np.flatnonzero((np.abs(t) < mu) & (span > 0.0))
    root = np.sqrt(span[band] / (2.0 * mu))
    B = np.full((band.size, point.w.size + 1), -1.0)
    B[:, :-1] = rows.Phi[band]
    B *= root[:, None]
    return Sums(
        value=float(rows.lower @ t + span @ hinge),
        phi=b[carrying] @ rows.Phi[carrying].astype(np.float64, copy=False),
        b=float(b.sum()),
        sizes=float(np.abs(b) @ rows.diag),
        curvature=B.T @ B,
        drift=(root * t[band]) @ B,
        in_band=band.size,
        movable=float(span[band].sum()),
    )


@dataclass(frozen=True)
class Screen:
    """Rows within ``width`` of the boundary at a point are near; those below get their upper bound, those above their lower one."""

    point: Point
    width: float

    def sides(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Which rows are below, and which above."""
        G = rows.gradient(self.point.w)
        return self.point.rho - self.width > G, self.point.rho + self.width < G


def carried(b: np.ndarray, Phi: np.ndarray, diag: np.ndarray) -> Sums:
    """Sums over rows with weight: Σ b phi, Σ b, Σ b ||phi||², Σ |b|, Σ |b| ||phi||², Σ |b| ||phi||, and the largest ||phi||."""
    size, roots = np.abs(b), np.sqrt(diag)
    sums = {"b": b.sum(), "diag": b @ diag, "weights": size.sum(), "sizes": size @ diag, "roots": size @ roots}
    heaviest = Largest(float(roots[b != 0.0].max(initial=0.0)))
    return Sums(phi=b @ Phi, heaviest=heaviest, **{name: float(value) for name, value in sums.items()})


def screened(rows: Rows, screen: Screen) -> Sums:
    """The rows near the boundary, and the sums over all others, whose weights are at a bound."""
    below, above = screen.sides(rows)
    near = np.flatnonzero(~(below | above))
    b = np.where(below, rows.upper, rows.lower)
    b[near] = 0.0
    fixed = np.flatnonzero(b)
    return Sums(near=(rows.chosen(near),), fixed=carried(b[fixed], rows.exact(fixed), rows.diag[fixed]))


def verdict(b: np.ndarray, G: np.ndarray, rho: float, lower: np.ndarray, upper: np.ndarray) -> Sums:
    """How many rows are at the wrong bound, their part of the gap, and minus the smallest gradient of a weight that may grow."""
    losses = (b - lower) * np.maximum(G - rho, 0.0) + (upper - b) * np.maximum(rho - G, 0.0)
    least = float(np.min(G[b < upper], initial=np.inf))
    return Sums(wrong=int(np.count_nonzero(losses)), gap=float(losses.sum()), least=Largest(-least))


def judged(rows: Rows, screen: Screen, at: Point) -> Sums:
    """The verdict on the rows that a screen fixed, at the solution of the others."""
    below, above = screen.sides(rows)
    G = rows.gradient(at.w)
    if rows.recompute is not None:  # they are rounded
        error = SINGLE_ERROR * float(np.linalg.norm(at.w)) * np.sqrt(rows.diag)
        unsure = np.flatnonzero((below & (at.rho - error < G)) | (above & (at.rho + error > G)))
        G[unsure] = rows.exact(unsure) @ at.w + rows.p[unsure]
    fixed = np.flatnonzero(below | above)
    lower, upper = rows.lower[fixed], rows.upper[fixed]
    return verdict(np.where(below[fixed], upper, lower), G[fixed], at.rho, lower, upper)


def blended(rows: Rows, point: Point, mu: float) -> Sums:
    """The sums and the verdict of the weights that smoothing gives at a point."""
    Phi = rows.exact(np.arange(len(rows.p)))
    G = Phi @ point.w + rows.p
    b = smoothed_weights(point.rho - G, mu, rows.lower, rows.upper)
    return Sums(carried=carried(b, Phi, rows.diag), verdict=verdict(b, G, point.rho, rows.lower, rows.upper))


def smoothed_weights(t: np.ndarray, mu: float, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """From the lower bound at t = -mu to the upper one at t = mu."""
    return lower + (upper - lower) * np.clip((t + mu) / (2.0 * mu), 0.0, 1.0)


def carrying(rows: Rows, screen: Screen, is_smoothed: bool) -> tuple[tuple[np.ndarray, np.ndarray]]:
    """The rows to which a screen gives weight (at their bounds, or as smoothing does over a band as wide), and their weights."""
    if is_smoothed:
        b = smoothed_weights(screen.point.rho - rows.gradient(screen.point.w), screen.width, rows.lower, rows.upper)
    else:
        below, above = screen.sides(rows)
        b = np.where(below, rows.upper, np.where(above, rows.lower, 0.0))
    found = np.flatnonzero(b)
    return ((rows.index[found], b[found]),)
