"""The canonical dual problem and its solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SUM_PRECISION = 1e-12
"""The relative precision of sums of weights and of their products with the kernel."""


@dataclass(frozen=True)
class DualProblem:
    """min ½ b'Kb + p'b  subject to  Σ b = total, lower <= b <= upper.

    b are signed weights: a sample of the other class (SVDD with negatives) has bounds [-C, 0] where a target has
    [0, C], and signs appear nowhere else. K is held by a source (``sources``).
    """

    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    total: float

    def __post_init__(self):
        least, most = self.lower.sum(), self.upper.sum()
        slack = SUM_PRECISION * max(abs(least), abs(most))
        if not least - slack <= self.total <= most + slack:
            raise ValueError(f"Infeasible: weights within their bounds sum to {least:.6g} … {most:.6g}, not to {self.total:.6g}.")


@dataclass(frozen=True)
class Solution:
    """Weights ``b``, gradient ``G = Kb + p``, multiplier ``rho`` (G = rho on free weights) and the certificate.

    ``gap`` bounds how far the objective is above its optimum, as a share of the problem's own ``scale``; ``quadratic`` is
    b'Kb, ``size_of_sums`` the size of the terms of Kb, ``shortfall`` how far below rho the gradient of a weight that may grow is,
    ``curvature`` the smallest that a pair move met.
    """

    b: np.ndarray
    G: np.ndarray
    rho: float
    gap: float
    quadratic: float
    scale: float
    size_of_sums: float
    shortfall: float
    n_iter: int
    converged: bool
    curvature: float

    @property
    def is_zero(self) -> bool:
        """Whether the certificate cannot tell w = Σ b phi(x) from 0."""
        return 0.5 * abs(self.quadratic) <= max(self.gap, SUM_PRECISION) * self.scale

    @property
    def support(self) -> np.ndarray:
        """The indices of the non-zero weights."""
        return np.flatnonzero(self.b)
