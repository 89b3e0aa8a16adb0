"""How far a point is from the optimum: violation, multiplier, duality gap. Jitted; no function mutates its arguments."""

from __future__ import annotations

import numpy as np

from .._jit import LOOP, njit

EXTRA_DIGITS = 0.01
"""Weights settle later than the objective: violations are driven to this share of what the gap needs."""

ROUNDING = 4.0 * np.finfo(np.float64).eps
"""Gradients are known only to this share of the size of their terms."""

STALE = 1e4
"""Moves through samples whose kernel values are this many times those that make up the sums cost the gradient four digits."""

SCALE_FLOOR = 1e-6
"""Tolerances are relative to the weighted spread of the samples, or to this share of the kernel's size if that is larger: double
precision can then meet the tolerance even if all samples with weight coincide."""


@njit(interpreted=LOOP)
def largest_violation(b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """The largest gradient of a weight that may shrink, less the smallest of one that may grow; 0 if no pair can move."""
    g_up = np.inf
    g_down = -np.inf
    for t in range(b.size):  # values instead of branches, which would often be predicted wrongly
        up = G[t] if b[t] < upper[t] else np.inf
        down = G[t] if b[t] > lower[t] else -np.inf
        g_up = min(g_up, up)
        g_down = max(g_down, down)
    return max(g_down - g_up, 0.0)


@njit(interpreted=LOOP, inline="always")  # a line of its callers, too short to compile alone
def violation_for(tol: float, scale: float, mass: float, size: float) -> float:
    """The violation that keeps the gap well within ``tol`` of the scale, but at least what rounding can resolve.

    The scale, the mass and the size of sums are those of ``spread_and_mass``.
    """
    return max(EXTRA_DIGITS * tol * scale / mass if mass > 0.0 else 0.0, ROUNDING * size)


@njit(interpreted=LOOP)
def size_of_sums(b: np.ndarray, diag: np.ndarray, most: float) -> float:
    """The size of the terms of Σ b_i K_ij for a sample j with weight and |K_jj| <= most: Σ |b_i| sqrt |K_ii| · max sqrt |K_jj|.

    Samples without weight do not count: they change no sum, however far away they are.
    """
    total, heaviest = 0.0, 0.0
    for t in range(b.size):
        if b[t] != 0.0:
            root = np.sqrt(abs(diag[t]))
            total += abs(b[t]) * root
            heaviest = max(heaviest, root if abs(diag[t]) <= most else 0.0)
    return total * heaviest


@njit(interpreted=LOOP)
def certify(
    b: np.ndarray, G: np.ndarray, p: np.ndarray, diag: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[float, float, float, float, float, float]:
    """The certificate of a solution: (rho, b'Kb, scale, gap / scale, size of sums, shortfall).

    ``shortfall`` is rho less the smallest gradient of a weight that may grow: 0 at the optimum. With a threshold lowered by it, only
    samples at their upper bound are outside.
    """
    quadratic, scale, _, size, far = spread_and_mass(b, G, p, diag, lower)
    if far < np.inf:
        size = size_of_sums(b, diag, far)
    rho = multiplier(b, G, lower, upper)
    gap = duality_gap(rho, b, G, lower, upper)
    shortfall = max(rho - smallest_growing(b, G, upper), 0.0)
    return rho, quadratic, scale, gap / scale if scale > 0.0 else 0.0, size, shortfall


@njit(interpreted=LOOP)
def multiplier(b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """rho: the mean gradient of the free weights; if there are none, the midpoint of the interval that optimality allows."""
    free = 0
    mean = 0.0
    lowest = -np.inf
    highest = np.inf
    for t in range(b.size):
        if lower[t] < b[t] < upper[t]:
            free += 1
            mean += (G[t] - mean) / free
        elif b[t] > lower[t]:
            lowest = max(lowest, G[t])
        elif b[t] < upper[t]:
            highest = min(highest, G[t])
    if free > 0:
        return mean
    if lowest == -np.inf:
        return highest
    if highest == np.inf:
        return lowest
    return 0.5 * (lowest + highest)


@njit(interpreted=LOOP)
def gap_at(rho: float, b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """A bound on how far the objective can still fall: Σ (b - lower)(G - rho)₊ + (upper - b)(rho - G)₊, for any rho."""
    gap = 0.0
    for t in range(b.size):
        gap += (b[t] - lower[t]) * (G[t] - rho) if G[t] > rho else (upper[t] - b[t]) * (rho - G[t])
    return gap


@njit(interpreted=LOOP)
def duality_gap(rho: float, b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """The smaller of two valid bounds: at rho, and at the smallest gradient of a weight that may grow (at most violation · mass)."""
    g_up = smallest_growing(b, G, upper)
    if g_up == np.inf:
        return 0.0
    return min(gap_at(rho, b, G, lower, upper), gap_at(g_up, b, G, lower, upper))


@njit(interpreted=LOOP)
def smallest_growing(b: np.ndarray, G: np.ndarray, upper: np.ndarray) -> float:
    """The smallest gradient of a weight that may grow; inf if there is none."""
    g_up = np.inf
    for t in range(b.size):
        g_up = min(g_up, G[t] if b[t] < upper[t] else np.inf)
    return g_up


@njit(interpreted=LOOP)
def spread_and_mass(
    b: np.ndarray, G: np.ndarray, p: np.ndarray, diag: np.ndarray, lower: np.ndarray
) -> tuple[float, float, float, float, float]:
    """The problem's own scale and the weight that can move: (b'Kb, scale, Σ (b - lower), size of sums, far).

    scale = ½ |Σb · Σ b_i K_ii - b'Kb|: half the weighted spread of the samples in the kernel's space. It scales with the kernel and
    does not change if all samples are shifted together. Samples far away do not count: their spread would hide that of all others.

    A sample is far away if |K_ii| > far: more than STALE times the square of the weighted mean of sqrt |K_ii|. Without such samples, far is
    inf. (The mean of |K_ii| itself would follow a far sample: a weight of 1e-35 times its 1e70.) A far sample needs next to no weight to
    be on the boundary. That weight matters to its own gradient alone, but moves through the sample may leave rounding in all gradients.
    """
    quadratic, weighted_diag, total, diagonals, weights, mass, roots, heaviest, largest = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(b.size):
        weight, root = abs(b[t]), np.sqrt(abs(diag[t]))
        quadratic += b[t] * (G[t] - p[t])
        weighted_diag += b[t] * diag[t]
        total += b[t]
        diagonals += abs(b[t] * diag[t])
        weights += weight
        mass += b[t] - lower[t]
        roots += weight * root
        heaviest = max(heaviest, root if weight > 0.0 else 0.0)
        largest = max(largest, abs(diag[t]))
    mean = roots / weights if weights > 0.0 else np.inf
    far, near_quadratic = STALE * mean * mean, quadratic
    if largest > far:
        far_quadratic, weighted_diag, total, diagonals, weights = 0.0, 0.0, 0.0, 0.0, 0.0
        for t in range(b.size):
            if abs(diag[t]) > far:
                far_quadratic += b[t] * (G[t] - p[t])
            else:
                weighted_diag += b[t] * diag[t]
                total += b[t]
                diagonals += abs(b[t] * diag[t])
                weights += abs(b[t])
        near_quadratic = quadratic - far_quadratic
    else:
        far = np.inf
    scale = max(0.5 * abs(total * weighted_diag - near_quadratic), SCALE_FLOOR * 0.5 * weights * diagonals)
    return quadratic, scale, mass, roots * heaviest, far


def typical_size(diag: np.ndarray) -> np.ndarray:
    """The largest |K_ii|, or their median if a few samples are far beyond all others; of each row of ``diag``, if there are several."""
    sizes = np.abs(diag)
    largest = sizes.max(axis=-1)
    if sizes.max() <= STALE * sizes.min():
        return largest
    ordered, n = np.sort(sizes, axis=-1), sizes.shape[-1]
    median = 0.5 * ordered[..., (n - 1) // 2] + 0.5 * ordered[..., n // 2]
    return np.where((largest <= STALE * median) | (median == 0.0), largest, median)
