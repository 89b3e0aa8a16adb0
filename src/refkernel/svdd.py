"""SVDD: the smallest ball around most of the targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._dual.classifiers import SVDD as DESCRIPTION
from ._dual.classifiers import bound_of_outliers, negative_margin
from ._dual.problem import DualProblem, Solution
from ._one_class import OneClassClassifier
from ._training import TrainingRows
from ._typing import RandomStateLike
from ._validation import check_bound, check_choice, check_nu, check_positive
from .kernels import KernelLike

__all__ = ["SVDD"]

DEFAULT_NU = 0.1
"""SVDD's nu when neither nu nor C is given."""

COARSE_SLACK = 0.01
"""Warn when the rounding slack exceeds this share of R²."""

NEGATIVES = ("ignore", "repel")
"""What SVDD does with rows whose y is -1."""


class SVDD(OneClassClassifier):
    """Support vector data description: the smallest ball, in the kernel's space, around most of the targets.

        min R² + C Σ ξ_i   subject to   ||phi(x_i) - c||² <= R² + ξ_i,  ξ_i >= 0

    With ``negatives="repel"`` known outliers x_l must lie outside it (Tax and Duin, 2004):

        min R² + C Σ ξ_i + C_negative Σ ξ_l   subject also to   ||phi(x_l) - c||² >= R² - ξ_l,  ξ_l >= 0

    Parameters
    ----------
    kernel : str, kernel object, ReferenceKernel, ReferenceMap, callable or "precomputed", default="rbf"
        A name stands for the kernel with its default parameters: "rbf" is ``RBF()``, whose width follows the data.
    nu : float in (0, 1], optional
        C = 1 / (nu n). nu is an upper bound on the share of training targets left outside and a lower bound on the share of support
        vectors. 0.1 if neither nu nor C is given.
    C : float >= 1 / n, optional
        The price of leaving a target outside.
    negatives : {"ignore", "repel"}, default="ignore"
        What SVDD does with known outliers (rows with y = -1). "ignore": they only feed references that ask for them. "repel": they
        also push the ball away. Without known outliers both give the same ball.
    C_negative : float > 0, optional
        The price of leaving an outlier inside; used by ``negatives="repel"``. C n / q by default, for q outliers: all of them
        together then weigh as much as the n targets. With sample weights, n and q are sums of weights.
    threshold : {"auto", "training", "loo"}, default="auto"
        "training" is the classical rule: the threshold is the ball's R², so nu bounds the share of *training* targets outside.
        "loo" sets ``offset_`` so that about a share nu of *new* targets is rejected (at least 1 / (n + 1)). It scores every target with
        the exact model fitted without it, which costs a few fits; with more than 1,024 rows, with a model fitted on the other four
        fifths. "auto" is "loo" for kernels whose width follows the neighbours (``kernel_.narrow``), because nearly all targets carry
        weight there and "training" would reject most new ones. For other kernels "auto" is "training".
    tol : float, default=1e-6
        Relative duality gap at which the solver stops.
    max_iter : int, default=-1
        Limit on the solver's moves; -1 is max(10 million, 100 n).
    cache_size : float, default=200
        Memory for kernel rows, in MB.
    stopping : {"relative", "libsvm"}, default="relative"
        "libsvm" starts and stops as LIBSVM does, with ``tol`` an absolute violation (LIBSVM's default is 1e-3).
    memory : float, default=512
        Explicit features that would take more than this many MB are kept in single precision, in a temporary file, or not at all, and
        the optimum is found in passes over them. It does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Passed to a reference kernel that has none of its own.

    Attributes
    ----------
    radius_ : float
        R: the mean over all samples with free weights, targets and outliers.
    offset_ : float
        -R² (with ``threshold="loo"``, the score that a share nu of new targets falls below), less a slack for rounding, so that
        samples on the boundary count as inside; ``decision_function = score_samples - offset_``.
    support_ : ndarray of shape (n_SV,)
        The rows of X that carry weight. Outliers that repel come after the targets.
    support_vectors_ : ndarray or sparse matrix of shape (n_SV, n_features)
        These rows; empty for ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (1, n_SV)
        Their weights, which sum to 1; those of outliers are negative.
    duality_gap_ : float
        The certificate: the relative duality gap at the end.
    n_iter_ : int
        The number of moves that the solver made.
    kernel_ : Kernel
        The fitted kernel.

    Notes
    -----
    Targets and outliers with free weights both lie on the ball's boundary. The problem therefore asks outliers to lie farther out, by
    1e-8 of the kernel's size, and ``offset_`` is midway: on the boundary, targets count as inside and outliers as outside.

    All weights sum to 1, so the outliers' weights add up to at most C n - 1 = 1 / nu - 1 in absolute value; nu = 1 leaves them none. If
    they sum to -s, nu (1 + s) replaces nu as the bound on the share of targets outside: outliers that look like targets cost targets.

    ``threshold="loo"`` compares -||phi(x) - c||² of new samples with -||phi(x_i) - c_i||² + ||c_i - c||² of the targets, c_i the
    centre without target i. The last term is what the shift of the centre adds, on average, to the distance of an independent sample.
    Without it almost nothing is rejected at narrow widths. If all k(x, x) are equal, it is ||c_i||² - ||c||², and the one-class SVM
    rejects the same samples.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = rk.SVDD(nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])

    A narrow kernel, and a threshold that holds for new samples:

    >>> new = np.random.default_rng(1).normal(size=(1000, 2))
    >>> narrow = rk.SVDD(rk.RBF(sigma=0.2), nu=0.1)
    >>> bool(np.mean(narrow.fit(X).predict(new) == -1) > 0.5)
    True
    >>> bool(np.mean(narrow.set_params(threshold="loo").fit(X).predict(new) == -1) < 0.15)
    True

    A known outlier amid the targets:

    >>> X, y = np.vstack([X, [[0.0, 0.0]]]), np.r_[np.ones(100), -1]
    >>> rk.SVDD(rk.RBF(scale=0.1), nu=0.1, negatives="repel").fit(X, y).predict([[0.0, 0.0], [1.0, 0.0]])
    array([-1,  1])
    """

    classifier = DESCRIPTION

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        nu: float | None = None,
        C: float | None = None,
        negatives: str = "ignore",
        C_negative: float | None = None,
        threshold: str = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: float = 200,
        stopping: str = "relative",
        memory: float = 512,
        random_state: RandomStateLike = None,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.C = C
        self.negatives = negatives
        self.C_negative = C_negative
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.stopping = stopping
        self.memory = memory
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        check_choice("negatives", self.negatives, NEGATIVES)
        if self.C_negative is not None:
            check_positive("C_negative", self.C_negative)
        parameter, value = self.solved_parameter(self.nu, self.C)
        check_nu(value) if parameter == "nu" else check_positive("C", value)

    def _used_rows(self, training: TrainingRows, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """With negatives="repel" the outliers too, after the targets and with negative weights."""
        used, target_weight = super()._used_rows(training, weight)
        if self.negatives == "ignore":
            return used, target_weight
        repelled = training.outliers
        return np.concatenate([used, repelled]), np.concatenate([target_weight, -weight[repelled]])

    def _problem_maker(self, signed_weight: np.ndarray) -> Callable[[np.ndarray], DualProblem]:
        parameter, value = self.solved_parameter(self.nu, self.C)
        n, q = signed_weight[signed_weight > 0].sum(), -signed_weight[signed_weight < 0].sum()
        bound = 1.0 / check_bound(value, n) if parameter == "C" else check_nu(value) * n
        bound_outliers = bound_of_outliers(self.C_negative, bound, n, q) if q else 0.0
        return lambda diag: self.classifier.problem(diag, bound, signed_weight, bound_outliers)

    @staticmethod
    def solved_parameter(nu: float | None, C: float | None) -> tuple[str, float]:
        """Tell which of nu and C sets the price of leaving a target outside.

        Parameters
        ----------
        nu : float or None
            The parameter nu.
        C : float or None
            The parameter C.

        Returns
        -------
        tuple of (str, float)
            "nu" or "C", and its value; nu = 0.1 if both are None.
        """
        if nu is not None and C is not None:
            raise ValueError(f"nu={nu!r} and C={C!r} are both given: pass one of them (C = 1 / (nu n)).")
        return ("C", C) if C is not None else ("nu", DEFAULT_NU if nu is None else nu)

    def _store(self, X: Any, used: np.ndarray, solution: Solution, rows: Any) -> None:
        repelled = solution.b < 0
        self._margin = negative_margin(rows.diag[~repelled]) if repelled.any() else None
        super()._store(X, used, solution, rows)
        self.radius_ = float(np.sqrt(abs(self.classifier.threshold(solution.rho, solution.quadratic))))

    def _slack(self, solution: Solution) -> float:
        """Midway between free targets and free outliers, if outliers repel."""
        return super()._slack(solution) if self._margin is None else 0.5 * self._margin

    def _is_coarse(self, solution: Solution, X: Any) -> bool:
        rounding = self.kernel_.precision * solution.size_of_sums
        return rounding > COARSE_SLACK * self.radius_**2 and not _rows_are_equal(X)


def _rows_are_equal(X: Any) -> bool:
    return (X[1:] != X[:-1]).nnz == 0 if sp.issparse(X) else bool((X[0] == X).all())
