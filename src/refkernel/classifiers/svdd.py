"""SVDD, the smallest ball around most of the targets, and the one-class SVM, the hyperplane that separates most of them from the origin."""

from typing import Any, ClassVar

import numpy as np

from .._core import problem
from .._core.file_rules import Number, OrNone, Rule
from .._core.problem import Solution, bound_of_outliers, negative_margin
from .._core.rows import TrainingRows
from .._core.types import RandomStateLike
from .._core.validation import check_bound, check_choice, check_positive
from ..kernels import KernelLike
from .base import OneClassClassifier

DEFAULT_NU = 0.1  # SVDD's nu when neither nu nor C is given


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
        "loo" sets ``offset_`` so that about a share nu of *new* targets is rejected (at least 1 / (n + 1)): every target is scored by the
        exact model without it (by the model of the other four fifths with more than 1,024 rows). "auto" is "loo" for kernels whose width
        follows the neighbours (``RBF()``), because nearly all targets carry weight there, and "training" for others.
    tol : float, default=1e-6
        Relative duality gap at which the solver stops.
    max_iter : int, default=-1
        Limit on the solver's moves; -1 is max(10 million, 100 n).
    cache_size : float, default=200
        Rows of the kernel matrix are kept if all of them take at most this many MB, and computed again otherwise.
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
    support_, support_vectors_ : ndarray of shape (n_SV,), ndarray or sparse matrix of shape (n_SV, n_features)
        The numbers of the rows of X that carry weight, outliers that repel after the targets, and the rows (not for "precomputed").
    dual_coef_ : ndarray of shape (1, n_SV)
        Their weights, which sum to 1; those of outliers are negative.
    duality_gap_, n_iter_, kernel_
        The certificate (the relative duality gap at the end), the number of the solver's moves, and the fitted kernel.

    Notes
    -----
    Targets and outliers with free weights both lie on the ball's boundary. The problem therefore asks outliers to lie farther out, by
    1e-8 of the kernel's size, and ``offset_`` is midway: on the boundary, targets count as inside and outliers as outside.

    ``threshold="loo"`` compares -||phi(x) - c||² of new samples with -||phi(x_i) - c_i||² + ||c_i - c||² of the targets, c_i the
    centre without target i. The last term is what the shift of the centre adds, on average, to the distance of an independent sample.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> rk.SVDD(nu=0.1).fit(X).predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])

    A known outlier amid the targets:

    >>> X, y = np.vstack([X, [[0.0, 0.0]]]), np.r_[np.ones(100), -1]
    >>> rk.SVDD(rk.RBF(scale=0.1), nu=0.1, negatives="repel").fit(X, y).predict([[0.0, 0.0], [1.0, 0.0]])
    array([-1,  1])
    """

    classifier = problem.SVDD

    _file_rules: ClassVar[dict[str, Rule]] = {"radius_": Number(optional=True), "_margin": OrNone(Number(), optional=True)}

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
        super().__init__(kernel, threshold=threshold, tol=tol, max_iter=max_iter, cache_size=cache_size, stopping=stopping, memory=memory)
        self.random_state = random_state
        self.nu = nu
        self.C = C
        self.negatives = negatives
        self.C_negative = C_negative

    def _check_params(self) -> None:
        super()._check_params()
        check_choice("negatives", self.negatives, ("ignore", "repel"))
        if self.C_negative is not None:
            check_positive("C_negative", self.C_negative)

    def _used_rows(self, training: TrainingRows, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """With negatives="repel" the outliers too, after the targets and with negative weights."""
        used, target_weight = super()._used_rows(training, weight)
        if self.negatives == "ignore":
            return used, target_weight
        repelled = training.outliers
        return np.concatenate([used, repelled]), np.concatenate([target_weight, -weight[repelled]])

    def _bounds(self, signed_weight: np.ndarray) -> tuple[float, float]:
        parameter, value = self._solved_parameter(self.nu, self.C)
        n, q = signed_weight[signed_weight > 0].sum(), -signed_weight[signed_weight < 0].sum()
        bound = 1.0 / check_bound(value, n) if parameter == "C" else value * n
        return bound, bound_of_outliers(self.C_negative, bound, n, q) if q else 0.0

    @staticmethod
    def _solved_parameter(nu: float | None, C: float | None) -> tuple[str, float]:
        """Name and value of what sets the price of leaving a target outside: C, or nu (0.1 if both are None)."""
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


class OneClassSVM(OneClassClassifier):
    """One-class SVM: the hyperplane, in the kernel's space, that separates most of the targets from the origin.

    It has the same optimum as ``sklearn.svm.OneClassSVM``, takes any kernel of this package, and comes with a certificate.

    Parameters
    ----------
    kernel : str, kernel object, ReferenceKernel, ReferenceMap, callable or "precomputed", default="rbf"
        A name stands for the kernel with its default parameters: "rbf" is ``RBF()``, whose width follows the data.
    nu : float in (0, 1], default=0.1
        An upper bound on the share of training targets left outside, and a lower bound on the share of support vectors.
    threshold, tol, max_iter, cache_size, stopping, memory, random_state : as for :class:`SVDD`
        "training" puts the threshold at rho, the classical rule.

    Attributes
    ----------
    offset_ : float
        rho (with ``threshold="loo"``, the score that a share nu of new targets falls below), less a slack for rounding, so that
        samples on the boundary count as inside; ``decision_function = score_samples - offset_``.
    support_, support_vectors_, dual_coef_, duality_gap_, n_iter_, kernel_
        As for :class:`SVDD`.

    Warns
    -----
    DegenerateSolutionWarning
        If the optimum is w = 0, as for a kernel centred on its own training samples.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> rk.OneClassSVM(nu=0.1).fit(X).predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    classifier = problem.OCSVM
