"""The canonical dual problem and its solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

    def __post_init__(self) -> None:
        least, most = self.lower.sum(), self.upper.sum()
        slack = SUM_PRECISION * max(abs(least), abs(most))
        if not least - slack <= self.total <= most + slack:
            raise ValueError(f"Infeasible: weights within their bounds sum to {least:.6g} … {most:.6g}, not to {self.total:.6g}.")


@dataclass(frozen=True)
class Solution:
    """Weights ``b``, gradient ``G = Kb + p``, multiplier ``rho`` (G = rho on free weights) and the certificate.

    ``gap`` bounds how far the objective is above its optimum, as a share of the problem's own ``scale``. ``asked`` is the gap that the
    solver aims at; two solutions may differ by it. ``quadratic`` is b'Kb, ``size_of_sums`` the size of the terms of Kb,
    ``shortfall`` how far the gradient of a weight that may grow lies below rho, ``curvature`` the smallest that a pair move met.
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
    asked: float = 0.0

    @property
    def is_zero(self) -> bool:
        """Whether w = Σ b phi(x) cannot be told from 0."""
        return bool(is_zero(self))

    @property
    def noise(self) -> float:
        """The largest |w · phi(x)| that noise alone explains; 0 if w is not 0."""
        return float(noise(self))

    @property
    def support(self) -> np.ndarray:
        """The indices of the non-zero weights."""
        return np.flatnonzero(self.b)


def is_zero(facts: Any) -> Any:
    """Whether ½ ||w||² is within what the solver settles, for a ``Solution`` or a ``Path``."""
    return 0.5 * np.abs(facts.quadratic) <= _settled(facts) * facts.scale


def noise(facts: Any) -> Any:
    """A bound on |w · phi(x)| for samples no larger than those with weight if w cannot be told from 0, and 0 otherwise.

    ||w||² is then at most 2 · settled · scale, and scale at most ½ (Σ |b| sqrt K_ii)² for samples of one size.
    """
    return np.where(facts.is_zero, np.sqrt(_settled(facts)) * facts.size_of_sums, 0.0)


def _settled(facts: Any) -> Any:
    return np.maximum(np.maximum(facts.gap, facts.asked), SUM_PRECISION)
