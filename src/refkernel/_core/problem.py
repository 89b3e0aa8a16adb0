"""The canonical dual problem, its solution, and the few numbers from which all that a classifier does follows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

SUM_PRECISION = 1e-12  # the relative precision of sums of weights and of their products with the kernel
NEGATIVE_MARGIN = 1e-8  # outliers must lie this share of the kernel's size outside: twice what the solver leaves, so a threshold separates


@dataclass(frozen=True)
class DualProblem:
    """min ½ b'Kb + p'b  subject to  Σ b = total, lower <= b <= upper.

    b are signed weights: a sample of the other class has bounds [-C, 0] where a target has [0, C], and signs appear nowhere else. Bounds
    that the sum puts out of reach are drawn in, so that tolerances follow the weights: with C >= 1, every C gives the same problem.
    """

    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    total: float

    def __post_init__(self) -> None:
        least, most = self.lower.sum(), self.upper.sum()
        slack = SUM_PRECISION * max(abs(least), abs(self.total))  # not of the upper bounds, which may be anything above the total
        if not least - slack <= self.total <= most + slack:
            raise ValueError(f"Infeasible: weights within their bounds sum to {least:.6g} … {most:.6g}, not to {self.total:.6g}.")
        object.__setattr__(self, "upper", np.minimum(self.upper, max(self.total - least, 0.0)))


@dataclass(frozen=True)
class Solution:
    """Weights ``b``, gradient ``G = Kb + p``, multiplier ``rho`` (G = rho on free weights) and the certificate.

    ``gap`` bounds how far the objective is above its optimum, as a share of the problem's own ``scale``, ``asked`` is the gap that the
    solver aims at, ``shortfall`` how far the gradient of a weight that may grow lies below rho (0 by LIBSVM's rule), ``curvature`` the
    smallest that a pair move met. A path holds the solutions of q problems on each of s matrices: b and G are then s × q × n, all else s ×
    q.
    """

    b: np.ndarray
    G: np.ndarray
    rho: Any
    gap: Any
    quadratic: Any
    scale: Any
    size_of_sums: Any
    shortfall: Any
    n_iter: Any
    converged: Any
    curvature: Any
    asked: Any = 0.0

    @property
    def is_zero(self) -> Any:
        """Whether w = Σ b phi(x) cannot be told from 0: ½ ||w||² is within what the solver settles."""
        return 0.5 * np.abs(self.quadratic) <= self._settled * self.scale

    @property
    def noise(self) -> Any:
        """A bound on |w · phi(x)| if w cannot be told from 0, else 0: ||w||² <= 2 · settled · scale, and scale <= ½ (Σ |b| sqrt K_ii)²."""
        return np.where(self.is_zero, np.sqrt(self._settled) * self.size_of_sums, 0.0)

    @property
    def _settled(self) -> Any:
        return np.maximum(np.maximum(self.gap, self.asked), SUM_PRECISION)


@dataclass(frozen=True)
class Classifier:
    """The dual  min ½ b'Kb + linear_share · diag(K)'b,  Σ b = total, 0 <= b <= upper,  and what follows from its solution.

        score(x) = slope · Σ b_i k(x_i, x) - diag_share · (k(x, x) + b'Kb)

    At a training sample that is slope · G_i - diag_share · b'Kb: the threshold is the same at rho, at most ``highest`` (SVDD's is -R²).
    ``parameters`` set the bounds, ``scaled`` gives (totals, uppers) for values of nu · n = 1 / C. ``joint`` makes arrays of the numbers.
    """

    name: str
    linear_share: float
    slope: float
    diag_share: float
    highest: float
    parameters: tuple[str, ...]
    scaled: Callable[[Any], tuple[Any, Any]]

    @property
    def uses_diag(self) -> bool:
        """Whether a score needs k(x, x)."""
        return self.diag_share != 0.0

    def problem(self, diag: np.ndarray, bound: float, signed_weight: np.ndarray, bound_outliers: float = 0.0) -> DualProblem:
        """The dual problem for samples of these weights; negative ones mark outliers that repel, within [-bound_outliers |w|, 0]."""
        is_target = signed_weight >= 0
        margin = 0.0 if is_target.all() else negative_margin(diag[is_target])
        p = self.linear_share * np.where(is_target, diag, diag - margin)
        total, upper = self.scaled(bound)
        return DualProblem(p, bound_outliers * np.minimum(signed_weight, 0.0), upper * np.maximum(signed_weight, 0.0), float(total))

    def score(self, sums: Any, diag: Any, quadratic: Any) -> Any:
        """The score from Σ b_i k(x_i, x), k(x, x) and b'Kb."""
        return self.slope * sums - self.diag_share * diag - self.diag_share * quadratic if self.uses_diag else self.slope * sums

    def threshold(self, rho: Any, quadratic: Any) -> Any:
        """The score on the boundary."""
        return np.minimum(self.slope * rho - self.diag_share * quadratic, self.highest)

    def slack(self, size_of_sums: Any, shortfall: Any, precision: float, noise: Any = 0.0) -> Any:
        """How far below the boundary a score is still inside: rounding, the solver's error, and noise if w = 0."""
        return np.maximum(precision * size_of_sums + self.slope * shortfall, (self.diag_share == 0.0) * noise)


def joint(classifiers: Sequence[Classifier]) -> Classifier:
    """The classifiers of several problems as one, with an entry for each: scores, thresholds and slacks then take one pass."""
    shares: dict[str, Any] = {
        name: np.array([getattr(c, name) for c in classifiers]) for name in ("linear_share", "slope", "diag_share", "highest")
    }
    return replace(classifiers[0], **shares)


def negative_margin(diag_targets: np.ndarray) -> float:
    """How far outside the boundary outliers must lie: a share of the median target, so that one far-away row does not set it."""
    sizes = np.abs(diag_targets)
    return NEGATIVE_MARGIN * float(np.median(sizes) or sizes.max())


def bound_of_outliers(C_negative: float | None, bound: float, n: float, q: float) -> float:
    """C_negative; by default the bound that gives q outliers the same total weight as n targets, for nu n = 1 / C = bound."""
    return n / (bound * q) if C_negative is None else C_negative


OCSVM = Classifier("ocsvm", 0.0, 1.0, 0.0, np.inf, ("nu",), lambda bound: (bound, np.ones_like(bound)))
"""min ½ b'Kb, Σ b = nu n, 0 <= b <= 1: scaled as in scikit-learn, so that decision values are the same."""

SVDD = Classifier("svdd", -0.5, 2.0, 1.0, 0.0, ("nu", "C"), lambda bound: (np.ones_like(bound), 1.0 / bound))
"""min ½ b'Kb - ½ diag(K)'b, Σ b = 1, 0 <= b <= C: Tax and Duin's dual, halved (as LIBSVM's tools solve it)."""

CLASSIFIERS = {classifier.name: classifier for classifier in (SVDD, OCSVM)}
