"""SVDD and the one-class SVM, on any kernel."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack
from sklearn.base import OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ._dual.problem import one_class_svm, svdd, svdd_with_negatives
from ._dual.rows import BLOCK_ENTRIES, Cached, Dense, Features
from ._dual.solver import STOPPING_RULES, WHOLE, solve
from ._params import NestedParams
from ._validation import check_bound, check_choice, check_nu, check_positive, target_mask
from .exceptions import DegenerateSolutionWarning, FarSamplesWarning
from .kernels import SYMMETRY_TOLERANCE, as_kernel, squared_norms, symmetric
from .references import TrainingRows

PRECOMPUTED = "precomputed"

DEFAULT_NU = 0.1
"""SVDD's nu when neither nu nor C is given."""

COARSE_SLACK = 0.01
"""A share of R² from which on what rounding needs at the boundary is told of."""

NEGATIVES = ("ignore", "repel")
"""What SVDD does with rows whose y is -1."""


class _OneClass(OutlierMixin, NestedParams):
    """The fit and the scores that both classifiers share; each adds its dual problem and its score."""

    formulation: ClassVar[str]
    """The name of the dual problem, for ``refkernel.model_selection``."""

    _score_uses_diag: ClassVar[bool]

    def fit(self, X, y=None, sample_weight=None):
        """Describe the target rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples; the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers: they feed the references that ask for them, and train nothing else but
            ``SVDD(negatives="repel")``.
        sample_weight : array-like of shape (n_samples,), optional
            The bound of each row's dual weight is multiplied by its weight; a weight of 0 leaves the row out.

        Returns
        -------
        self
        """
        kernel = self._kernel()
        X = self._validated(X, kernel, reset=True)
        training, weight = training_rows(X, y, sample_weight)
        self.kernel_ = kernel if kernel == PRECOMPUTED else kernel.fit_copy(training, weight[training.targets], self.random_state)
        used, signed_weight = self._used_rows(training, weight)
        rows = self._rows(X, used)
        check_values(rows.diag, X)
        solution = solve(self._problem(rows.diag, signed_weight), rows, tol=self.tol, stopping=self.stopping, max_iter=self.max_iter)
        self._store(X, used, solution)
        self._warn(solution, rows)
        return self

    def fit_predict(self, X, y=None, **kwargs):
        """Fit, and label the training rows."""
        self.fit(X, y, **kwargs)
        diag = None if self.kernel_ != PRECOMPUTED else X.diagonal() if sp.issparse(X) else np.diagonal(X)
        return self.predict(X, diag)

    def decision_function(self, X, diag=None):
        """``score_samples(X) - offset_``: at least 0 for samples that belong to the targets."""
        return self.score_samples(X, diag) - self.offset_

    def predict(self, X, diag=None):
        """+1 for targets, -1 for outliers."""
        return np.where(self.decision_function(X, diag) >= 0, 1, -1)

    def score_samples(self, X, diag=None):
        """The raw score of each sample; higher is more normal.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            For ``kernel="precomputed"``: k(X, training samples), of shape (n_samples, n_training_samples).
        diag : array-like of shape (n_samples,), optional
            k(x, x) of each sample. Needed by SVDD with ``kernel="precomputed"``, and used only there.
        """
        check_is_fitted(self)
        X = self._validated(X, self.kernel_, reset=False)
        diag = self._given_diag(X, diag)
        score = np.empty(X.shape[0])
        step = max(1, BLOCK_ENTRIES // max(1, self.support_.size))
        for i in range(0, X.shape[0], step):
            score[i : i + step] = self._score(*self._sums_and_diag(X[i : i + step], diag[i : i + step]))
        return score

    def _sums_and_diag(self, X, diag):
        """Σ b_i k(x, x_i) and k(x, x) for every row of X (the latter only where the score uses it)."""
        if self.kernel_ == PRECOMPUTED:
            return X[:, self.support_] @ self.dual_coef_[0], diag
        Phi = None if self._normal is None else self.kernel_.features(X)
        if Phi is not None:
            return Phi @ self._normal, squared_norms(Phi)
        return self.kernel_(X, self.support_vectors_) @ self.dual_coef_[0], self.kernel_.diag(X) if self._score_uses_diag else diag

    def _given_diag(self, X, diag):
        if self.kernel_ != PRECOMPUTED or not self._score_uses_diag:
            return np.empty(X.shape[0])
        if diag is None:
            raise ValueError('With kernel="precomputed", SVDD needs k(x, x) of the samples to score: pass diag, of shape (n_samples,).')
        diag = np.asarray(diag, dtype=np.float64)
        if diag.shape != (X.shape[0],):
            raise ValueError(f"diag has shape {diag.shape}; ({X.shape[0]},) was expected: k(x, x) for each row of X.")
        if not np.isfinite(diag).all():
            raise ValueError("diag holds NaN or infinite values; it must be finite: k(x, x) for each row of X.")
        return diag

    def _kernel(self) -> Any:
        return PRECOMPUTED if isinstance(self.kernel, str) and self.kernel == PRECOMPUTED else as_kernel(self.kernel)

    def _validated(self, X, kernel, reset):
        sparse = "csr" if kernel == PRECOMPUTED or kernel.accepts_sparse else False
        X = validate_data(self, X, reset=reset, accept_sparse=sparse, dtype=np.float64)
        if kernel == PRECOMPUTED and sp.issparse(X):
            X = X.toarray()
        if kernel == PRECOMPUTED and reset and X.shape[0] != X.shape[1]:
            raise ValueError(f'With kernel="precomputed", fit takes the square kernel matrix of the samples; X has shape {X.shape}.')
        return X

    def _used_rows(self, training, weight):
        """The rows that the dual problem sees, and their weights."""
        return training.targets, weight[training.targets]

    def _rows(self, X, used):
        if self.kernel_ == PRECOMPUTED:
            return Dense(symmetric(X[np.ix_(used, used)], "precomputed kernel matrix"))
        X = X if np.array_equal(used, np.arange(X.shape[0])) else X[used]
        Phi = self.kernel_.features(X)
        return Cached(self.kernel_, X, self.cache_size) if Phi is None else Features(Phi)

    def _store(self, X, used, solution):
        support = solution.support
        self.support_ = used[support]
        self.dual_coef_ = solution.b[None, support]
        self.support_vectors_ = np.empty((0, X.shape[1])) if self.kernel_ == PRECOMPUTED else X[self.support_]
        Phi = None if self.kernel_ == PRECOMPUTED else self.kernel_.features(self.support_vectors_)
        self._normal = None if Phi is None else solution.b[support] @ Phi
        self.n_iter_ = solution.n_iter
        self.duality_gap_ = solution.gap

    def _is_indefinite(self, rows) -> bool:
        """Whether a kernel of unknown kind turns out to be indefinite on the samples, as far as that is cheap to see."""
        if rows.n > WHOLE or (self.kernel_ != PRECOMPUTED and self.kernel_.positive_definite):
            return False
        K = rows.whole()
        _, refused = lapack.dpotrf(K + SYMMETRY_TOLERANCE * max(np.abs(K).max(), np.finfo(float).tiny) * rows.n * np.eye(rows.n))
        return refused > 0

    def _warn(self, solution, rows):
        if not solution.converged:
            warnings.warn(
                f"max_iter={self.max_iter} was reached with a relative duality gap of {solution.gap:.2g} (tol={self.tol:g}). "
                "Raise max_iter or tol, or scale the data.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if solution.curvature < -SYMMETRY_TOLERANCE * solution.size or self._is_indefinite(rows):
            warnings.warn(
                "The kernel is indefinite on the training samples: the solution is a stationary point, not a certified optimum.",
                UserWarning,
                stacklevel=3,
            )
        if not self._is_degenerate(solution) and self._accepts_far_samples():
            warnings.warn(
                "Samples far from all references are accepted: this kernel maps them all to one point, and that lies inside. Widen the "
                "base kernel (scale=10), choose references that reach where new samples may fall, or use the plain kernel.",
                FarSamplesWarning,
                stacklevel=3,
            )

    def _is_degenerate(self, solution) -> bool:
        """Whether decision values are noise."""
        return False

    def _accepts_far_samples(self) -> bool:
        Phi = None if self.kernel_ == PRECOMPUTED else self.kernel_.far_features()
        return Phi is not None and bool(self._score(Phi @ self._normal, Phi @ Phi) >= self.offset_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        kernel = self._kernel()
        tags.input_tags.pairwise = kernel == PRECOMPUTED
        tags.input_tags.sparse = kernel == PRECOMPUTED or kernel.accepts_sparse
        return tags


class SVDD(_OneClass):
    """Support vector data description: the smallest ball, in the kernel's space, around most of the targets.

        min R² + C Σ ξ_i   subject to   ||phi(x_i) - c||² <= R² + ξ_i,  ξ_i >= 0

    With ``negatives="repel"`` known outliers x_l must lie outside it (Tax and Duin, 2004):

        min R² + C Σ ξ_i + C_negative Σ ξ_l   subject also to   ||phi(x_l) - c||² >= R² - ξ_l,  ξ_l >= 0

    Parameters
    ----------
    kernel : str, kernel object, ReferenceKernel, ReferenceMap, callable or "precomputed", default="rbf"
        A name stands for the kernel with its default parameters: "rbf" is ``RBF()``, whose width follows the data.
    nu : float in (0, 1], optional
        C = 1 / (nu n): an upper bound on the share of targets left outside, a lower bound on that of support vectors.
        0.1 when neither nu nor C is given.
    C : float >= 1 / n, optional
        The price of leaving a target outside.
    negatives : {"ignore", "repel"}, default="ignore"
        What rows with y = -1 do: nothing (but feed references that ask for them), or push the ball away as well.
        Without such rows both are the same.
    C_negative : float > 0, optional
        The price of leaving a negative inside; used by ``negatives="repel"``. C n / q when not given, for q negatives:
        all of them together then weigh as much as the n targets (n and q are sums of sample weights, if there are any).
    tol : float, default=1e-6
        Relative duality gap at which the solver stops.
    max_iter : int, default=-1
        Limit on the solver's moves; -1 is max(10 million, 100 n).
    cache_size : float, default=200
        Memory for kernel rows, in MB.
    stopping : {"relative", "libsvm"}, default="relative"
        "libsvm" starts and stops as LIBSVM does, with ``tol`` an absolute violation (LIBSVM's default is 1e-3).
    random_state : int, RandomState instance or None, default=None
        Passed to a reference kernel that has none of its own.

    Attributes
    ----------
    radius_ : float, R: the mean over the samples with free weights, of both kinds.
    offset_ : float, -R², less a rounding's worth so that samples on the boundary count as inside;
        ``decision_function = score_samples - offset_``.
    support_ : (n_SV,) rows of X with a weight; ``support_vectors_`` are these rows, ``dual_coef_`` (1, n_SV) the weights.
        Negatives that repel come after the targets; their weights are negative. All weights sum to 1.
    duality_gap_ : float, the certificate: the relative gap at the end.
    n_iter_ : int, moves made.
    kernel_ : the fitted kernel.

    Notes
    -----
    Targets and negatives with free weights lie both on the ball's boundary. Negatives are therefore asked to lie 1e-8 of the
    kernel's size farther out, and offset_ is midway: on the boundary targets count as inside, negatives as outside.

    All weights sum to 1, so those of negatives sum to at most C n - 1 = 1 / nu - 1: nu = 1 leaves them nothing. If theirs sum to -s,
    nu (1 + s) takes nu's place as the bound on the share of targets outside: negatives that cannot be told from targets cost targets.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = rk.SVDD(nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])

    A known outlier amid the targets:

    >>> X, y = np.vstack([X, [[0.0, 0.0]]]), np.r_[np.ones(100), -1]
    >>> rk.SVDD(rk.RBF(scale=0.1), nu=0.1, negatives="repel").fit(X, y).predict([[0.0, 0.0], [1.0, 0.0]])
    array([-1,  1])
    """

    formulation = "svdd"
    _score_uses_diag = True

    def __init__(
        self,
        kernel="rbf",
        *,
        nu=None,
        C=None,
        negatives="ignore",
        C_negative=None,
        tol=1e-6,
        max_iter=-1,
        cache_size=200,
        stopping="relative",
        random_state=None,
    ):
        self.kernel = kernel
        self.nu = nu
        self.C = C
        self.negatives = negatives
        self.C_negative = C_negative
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.stopping = stopping
        self.random_state = random_state

    def _used_rows(self, training, weight):
        """With negatives="repel" the outliers too, after the targets and with negative weights."""
        check_choice("negatives", self.negatives, NEGATIVES)
        used, target_weight = super()._used_rows(training, weight)
        if self.negatives == "ignore":
            return used, target_weight
        repelled = training.outliers
        return np.concatenate([used, repelled]), np.concatenate([target_weight, -weight[repelled]])

    def _problem(self, diag, signed_weight):
        check_solver_params(self)
        parameter, value = self.solved_parameter(self.nu, self.C)
        if self.C_negative is not None:
            check_positive("C_negative", self.C_negative)
        is_target = signed_weight > 0
        n = signed_weight[is_target].sum()
        C = check_bound(value, n) if parameter == "C" else 1.0 / (check_nu(value) * n)
        if is_target.all():
            return svdd(diag, C, signed_weight)
        C_negative = C * n / -signed_weight[~is_target].sum() if self.C_negative is None else self.C_negative
        return svdd_with_negatives(diag, C, C_negative, signed_weight)

    @staticmethod
    def solved_parameter(nu, C):
        """The one of nu and C that is given, and its value."""
        if nu is not None and C is not None:
            raise ValueError(f"nu={nu!r} and C={C!r} are both given: pass one of them (C = 1 / (nu n)).")
        return ("C", C) if C is not None else ("nu", DEFAULT_NU if nu is None else nu)

    def _store(self, X, used, solution):
        super()._store(X, used, solution)
        self._center_norm2 = solution.quadratic
        radius2 = max(solution.quadratic - 2.0 * solution.rho, 0.0)
        self.radius_ = float(np.sqrt(radius2))
        repelled = (solution.b < 0).any()
        slack = 0.5 * solution.negative_margin if repelled else solution.boundary_slack
        self.offset_ = -float(radius2 + slack)
        if slack > COARSE_SLACK * radius2 and not _rows_are_equal(X[used]):
            warnings.warn(
                f"For this kernel the samples are nearly alike: ||phi(x)||² is up to {solution.size:.3g} and R² {radius2:.3g}, so that "
                "rounding decides at the boundary. Scale the data first, for example with TargetScaler, or use a narrower kernel.",
                UserWarning,
                stacklevel=3,
            )

    def _score(self, sums, diag):
        """-||phi(x) - c||²"""
        return 2.0 * sums - diag - self._center_norm2


class OneClassSVM(_OneClass):
    """One-class SVM: the hyperplane, in the kernel's space, that separates most of the targets from the origin.

    The same optimum as ``sklearn.svm.OneClassSVM``, on any kernel of this package and with a certificate.

    Parameters
    ----------
    kernel : str, kernel object, ReferenceKernel, ReferenceMap, callable or "precomputed", default="rbf"
        A name stands for the kernel with its default parameters: "rbf" is ``RBF()``, whose width follows the data.
    nu : float in (0, 1], default=0.1
        An upper bound on the share of targets left outside, a lower bound on that of support vectors.
    tol, max_iter, cache_size, stopping, random_state
        As for :class:`SVDD`.

    Attributes
    ----------
    offset_ : float, rho; ``decision_function = score_samples - offset_``.
    support_, support_vectors_, dual_coef_, duality_gap_, n_iter_, kernel_
        As for :class:`SVDD`.

    Warns
    -----
    DegenerateSolutionWarning
        When the optimum is w = 0, as for a kernel centred on its own training samples.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> rk.OneClassSVM(nu=0.1).fit(X).predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    formulation = "ocsvm"
    _score_uses_diag = False

    def __init__(self, kernel="rbf", *, nu=0.1, tol=1e-6, max_iter=-1, cache_size=200, stopping="relative", random_state=None):
        self.kernel = kernel
        self.nu = nu
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.stopping = stopping
        self.random_state = random_state

    @staticmethod
    def solved_parameter(nu, C):
        """nu, the only one."""
        return "nu", nu

    def _problem(self, diag, weight):
        check_solver_params(self)
        return one_class_svm(diag, check_nu(self.nu), weight)

    def _store(self, X, used, solution):
        super()._store(X, used, solution)
        self.offset_ = float(solution.rho) - solution.boundary_slack

    def _warn(self, solution, rows):
        super()._warn(solution, rows)
        if self._is_degenerate(solution):
            warnings.warn(
                "The one-class SVM's optimum is w = 0: its decision values are noise. The targets' mean is (nearly) the origin of the "
                "kernel's space, as after centring on the training samples. Use center=False, references other than the targets, or SVDD.",
                DegenerateSolutionWarning,
                stacklevel=3,
            )

    def _is_degenerate(self, solution):
        return solution.is_zero and self.stopping == "relative"

    def _score(self, sums, diag):
        """w · phi(x)"""
        return sums


def training_rows(X, y, sample_weight):
    """The rows of this fit without those of weight 0, and the weight of every row of X."""
    weight = np.ones(X.shape[0]) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    if weight.shape != (X.shape[0],) or not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(f"sample_weight must hold {X.shape[0]} finite numbers >= 0, one for each row of X.")
    is_target = target_mask(X, y)
    targets = np.flatnonzero(is_target & (weight > 0))
    if targets.size == 0:
        raise ValueError("Sample weights must contain at least one non-zero number among the targets: all are 0.")
    return TrainingRows(X, targets, np.flatnonzero(~is_target & (weight > 0))), weight


def _rows_are_equal(X) -> bool:
    return (X[1:] != X[:-1]).nnz == 0 if sp.issparse(X) else bool((X[0] == X).all())


def check_values(diag, X):
    """Values so small that a kernel cannot see them are no data."""
    if not np.any(diag) and (X.nnz if sp.issparse(X) else np.any(X)):
        raise ValueError("The kernel is 0 on every training sample: it underflows. Scale the data first, for example with TargetScaler.")


def check_solver_params(estimator):
    """Raise for parameters that no data make right."""
    check_choice("stopping", estimator.stopping, STOPPING_RULES)
    check_positive("tol", estimator.tol)
    check_positive("cache_size", estimator.cache_size)
    if not isinstance(estimator.max_iter, Integral) or estimator.max_iter < -1:
        raise ValueError(f"max_iter={estimator.max_iter!r} must be an int >= 0, or -1 for max(10 million, 100 n).")
