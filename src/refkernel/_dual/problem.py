"""The canonical dual problem, its adapters for the two classifiers, and its solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROUNDING = 1e-12
"""Sums of weights and of their products with the kernel are known to this relative precision."""

BOUNDARY_SLACK = 1e-10
"""Scores are sums of kernel values that are known, through the whitening of a reference kernel, to about this share of their size."""

NEGATIVE_MARGIN = 1e-8
"""How far outside the ball negatives are asked to lie, as a share of the kernel's size: free targets and free negatives would else
both lie on the boundary, where no threshold tells them apart. Half of it is above the solver's default tolerance and BOUNDARY_SLACK."""


@dataclass(frozen=True)
class DualProblem:
    """min ½ b'Kb + p'b  subject to  Σ b = total, lower <= b <= upper.

    b are signed weights: a sample of the other class (SVDD with negatives) has bounds [-C, 0] where a target has
    [0, C], and no sign appears anywhere else. K stays with whoever holds the kernel (``rows``).
    """

    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    total: float

    def __post_init__(self):
        least, most = self.lower.sum(), self.upper.sum()
        slack = ROUNDING * max(abs(least), abs(most))
        if not least - slack <= self.total <= most + slack:
            raise ValueError(f"Infeasible: weights within their bounds sum to {least:.6g} … {most:.6g}, not to {self.total:.6g}.")


@dataclass(frozen=True)
class Solution:
    """Weights ``b``, gradient ``G = Kb + p``, multiplier ``rho`` (G = rho on free weights) and the certificate.

    ``gap`` bounds how far the objective is above its optimum, as a share of the problem's own ``scale``; ``quadratic`` is
    b'Kb, ``size`` the largest |K_ii|, ``curvature`` the smallest that a pair move met.
    """

    b: np.ndarray
    G: np.ndarray
    rho: float
    gap: float
    quadratic: float
    scale: float
    size: float
    n_iter: int
    converged: bool
    curvature: float

    @property
    def boundary_slack(self) -> float:
        """What to give way at the boundary, so that samples on it (the free ones) count as inside, whatever the rounding."""
        return BOUNDARY_SLACK * self.size * float(np.abs(self.b).sum())

    @property
    def negative_margin(self) -> float:
        """How far beyond R² negatives are asked to lie."""
        return NEGATIVE_MARGIN * self.size

    @property
    def is_zero(self) -> bool:
        """Whether the certificate cannot tell w = Σ b phi(x) from 0."""
        return 0.5 * abs(self.quadratic) <= max(self.gap, ROUNDING) * self.scale

    @property
    def support(self) -> np.ndarray:
        """The indices of the non-zero weights."""
        return np.flatnonzero(self.b)


def one_class_svm(diag, nu, sample_weight) -> DualProblem:
    """min ½ b'Kb, Σ b = nu Σ w, 0 <= b <= w: scikit-learn's scaling, so that decision values equal its."""
    zeros = np.zeros_like(sample_weight)
    return DualProblem(zeros, zeros, sample_weight, nu * sample_weight.sum())


def svdd(diag, C, sample_weight) -> DualProblem:
    """min ½ b'Kb - ½ diag(K)'b, Σ b = 1, 0 <= b <= C w: Tax and Duin's dual, halved (as LIBSVM's tools solve it)."""
    return DualProblem(-0.5 * diag, np.zeros_like(sample_weight), C * sample_weight, 1.0)


def svdd_with_negatives(diag, C, C_negative, signed_weight) -> DualProblem:
    """As ``svdd``, with 0 <= b <= C w for targets (w > 0) and C_negative w <= b <= 0 for negatives (w < 0), which must lie outside.

    Outside is ||phi(x) - c||² >= R² + NEGATIVE_MARGIN max |diag|: that much is taken off the diagonal of negatives in the linear term.
    """
    margin = NEGATIVE_MARGIN * np.abs(diag).max()
    p = -0.5 * np.where(signed_weight < 0, diag - margin, diag)
    return DualProblem(p, C_negative * np.minimum(signed_weight, 0.0), C * np.maximum(signed_weight, 0.0), 1.0)


def ocsvm_family(bounds):
    """The one-class SVMs with nu n = bounds: (the diagonal's share in the linear term, totals, uppers)."""
    return 0.0, bounds, np.ones_like(bounds)


def svdd_family(bounds):
    """The SVDDs with 1 / C = nu n = bounds: (the diagonal's share in the linear term, totals, uppers)."""
    return -0.5, np.ones_like(bounds), 1.0 / bounds
