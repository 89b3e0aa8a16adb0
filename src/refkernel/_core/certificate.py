"""How far a point is from the optimum: violation, multiplier, duality gap, and the scale that they are measured by."""

from typing import NamedTuple

import numpy as np

from .jit import entry, njit

EXTRA_DIGITS = 0.01  # weights settle later than the objective: violations are driven to this share of what the gap needs
ROUNDING = 4.0 * np.finfo(np.float64).eps  # gradients are known only to this share of the size of their terms
STALE = 1e4  # moves through samples whose kernel values are this many times those that make up the sums cost the gradient four digits
SCALE_FLOOR = 1e-6  # as a share of the kernel's size, the least that tolerances are relative to: samples with weight may all coincide
RHO, QUADRATIC, SCALE, GAP, SIZE_OF_SUMS, SHORTFALL, VIOLATION, MASS, FAR, ALLOWED, FINITE = range(11)
"""The places of ``Certificate``'s values in the array that ``_certify`` fills."""

FACTS = 11  # their number


class Certificate(NamedTuple):
    """What a point (b, G) shows.

    ``rho`` is the mean gradient of the free weights, or the midpoint of the interval that optimality allows; ``quadratic`` is b'Kb. ``gap``
    bounds how far the objective can still fall, as a share of ``scale``: the smaller of Σ (b - lower)(G - r)₊ + (upper - b)(r - G)₊ at r =
    rho and at the smallest gradient of a weight that may grow; ``shortfall`` is rho less that gradient: a threshold lowered by it leaves
    only samples at their upper bound outside. ``violation`` is the largest gradient of a weight that may shrink, less that same one, and
    ``allowed`` the violation that keeps the gap well within ``tol``, but at least what rounding can resolve. ``size_of_sums`` is Σ |b_i|
    sqrt |K_ii| · max sqrt |K_jj| over samples with weight, ``mass`` is Σ (b - lower), ``finite`` is 0 unless all gradients are finite.

    ``scale`` = ½ |Σb · Σ b_i K_ii - b'Kb| is half the weighted spread of the samples in the kernel's space, without samples far away, whose
    spread would hide all others': those with |K_ii| > ``far``, more than STALE times the square of the weighted mean of sqrt |K_ii| (inf if
    there are none). A tiny weight puts them on the boundary, but moves through them may leave rounding errors in all gradients.
    """

    rho: float
    quadratic: float
    scale: float
    gap: float
    size_of_sums: float
    shortfall: float
    violation: float
    mass: float
    far: float
    allowed: float
    finite: float


@njit()
def _certify(
    b: np.ndarray, G: np.ndarray, p: np.ndarray, diag: np.ndarray, lower: np.ndarray, upper: np.ndarray, tol: float, facts: np.ndarray
) -> None:
    """Fill facts with the certificate of a point. Mutates facts."""
    quadratic, weighted_diag, total, diagonals, weights, mass, roots, finite = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    heaviest, largest, g_up, g_down, lowest, highest, mean, free = 0.0, 0.0, np.inf, -np.inf, -np.inf, np.inf, 0.0, 0.0
    for t in range(b.size):
        weight, size, g = abs(b[t]), abs(diag[t]), G[t]
        root = np.sqrt(size)
        quadratic += b[t] * (g - p[t])
        weighted_diag += b[t] * diag[t]
        total += b[t]
        diagonals += weight * size
        weights += weight
        mass += b[t] - lower[t]
        roots += weight * root
        finite += 0.0 * g
        heaviest = max(heaviest, root if weight > 0.0 else 0.0)
        largest = max(largest, size)
        grows, shrinks = b[t] < upper[t], b[t] > lower[t]
        g_up = min(g_up, g if grows else np.inf)
        g_down = max(g_down, g if shrinks else -np.inf)
        if grows and shrinks:
            free += 1.0
            mean += (g - mean) / free
        elif shrinks:
            lowest = max(lowest, g)
        elif grows:
            highest = min(highest, g)
    near_heaviest, near_quadratic = heaviest, quadratic
    average = roots / weights if weights > 0.0 else np.inf
    far = STALE * average * average
    if largest > far:
        weighted_diag, total, diagonals, weights, near_heaviest = 0.0, 0.0, 0.0, 0.0, 0.0
        for t in range(b.size):
            weight, size = abs(b[t]), abs(diag[t])
            if size > far:
                near_quadratic -= b[t] * (G[t] - p[t])
            else:
                weighted_diag += b[t] * diag[t]
                total += b[t]
                diagonals += weight * size
                weights += weight
                near_heaviest = max(near_heaviest, np.sqrt(size) if weight > 0.0 else 0.0)
    else:
        far = np.inf
    scale = max(0.5 * abs(total * weighted_diag - near_quadratic), SCALE_FLOOR * 0.5 * weights * diagonals)
    allowed = max(EXTRA_DIGITS * tol * scale / mass if mass > 0.0 else 0.0, ROUNDING * roots * heaviest)
    rho = mean
    if free == 0.0:
        rho = highest if lowest == -np.inf else lowest if highest == np.inf else 0.5 * (lowest + highest)
    gap, gap_up = 0.0, 0.0
    for t in range(b.size):
        g, above, below = G[t], b[t] - lower[t], upper[t] - b[t]
        gap += above * (g - rho) if g > rho else below * (rho - g)
        gap_up += above * (g - g_up) if g > g_up else below * (g_up - g)
    gap = 0.0 if g_up == np.inf else min(gap, gap_up)
    facts[RHO], facts[QUADRATIC], facts[SCALE], facts[GAP] = rho, quadratic, scale, gap / scale if scale > 0.0 else 0.0
    facts[SIZE_OF_SUMS], facts[SHORTFALL], facts[VIOLATION] = roots * near_heaviest, max(rho - g_up, 0.0), max(g_down - g_up, 0.0)
    facts[MASS], facts[FAR], facts[ALLOWED], facts[FINITE] = mass, far, allowed, 1.0 if finite == 0.0 else 0.0


_fill = entry(_certify)


def certify(
    b: np.ndarray, G: np.ndarray, p: np.ndarray, diag: np.ndarray, lower: np.ndarray, upper: np.ndarray, tol: float = 0.0
) -> Certificate:
    """The certificate of a point."""
    facts = np.empty(FACTS)
    _fill(b, G, p, diag, lower, upper, float(tol), facts)
    return Certificate(*facts.tolist())


def typical_size(diag: np.ndarray) -> float:
    """The largest |K_ii|, or their median if a few samples are far beyond all others."""
    sizes = np.abs(diag)
    largest, median = float(sizes.max()), float(np.median(sizes))
    return largest if largest <= STALE * median or median == 0.0 else median
