"""Gauss-Legendre nodes for the integral over [0, 1] of a product of factors 1 - a t, with 0 <= a <= 1."""

from __future__ import annotations

import functools

import numpy as np

__all__ = ["error_bound", "nodes"]

TOLERANCE = 1e-15
"""The largest error of an integral, whose value is at most 1: below rounding."""


@functools.cache
def nodes(features: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for products of ``features`` - 1 factors.

    ⌈features / 2⌉ nodes are exact. Where ``features`` is large, fewer have an error below the tolerance: about 6 √features.
    """
    exact = max(1, (features + 1) // 2)
    fewest = next(count for count in range(1, exact + 1) if error_bound(count, features) <= TOLERANCE)
    t, w = np.polynomial.legendre.leggauss(fewest)
    return 0.5 * (1.0 + t), 0.5 * w


def error_bound(count: int, features: int) -> float:
    """How far the integral by ``count`` nodes is from the true one, at most; 0 if they are enough to be exact.

    On the ellipse with foci 0 and 1 whose semi-axes sum to rho / 2, a product of n factors is at most (1 + (rho - 1)² / 4 rho)^n. Its
    Chebyshev coefficients then shrink by 1 / rho, and those of degree 2 · ``count`` and above make the error.
    """
    if 2 * count >= features:
        return 0.0
    if count < 2:
        return 1.0
    rho = 1.0 + np.geomspace(1e-3, 1e3, 2000)
    logarithm = (features - 1) * np.log1p((rho - 1.0) ** 2 / (4.0 * rho)) - 2.0 * count * np.log(rho) - np.log1p(-(rho**-2.0))
    return float(32.0 / 15.0 * np.exp(logarithm.min()))
