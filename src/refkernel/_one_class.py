"""What SVDD and the one-class SVM share: fit, scores and warnings, from one description of each (``_dual.classifiers``)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import lapack
from sklearn.base import OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ._blocks import times
from ._distances import squared_norms
from ._dual.classifiers import Classifier
from ._dual.problem import DualProblem, Solution
from ._dual.solver import STOPPING_RULES, WHOLE, solve
from ._dual.sources import Cached, Dense, Features
from ._explicit.solver import solve_features, takes_over
from ._left_out import LeftOutModels, Targets, finite_scores
from ._params import NestedParams
from ._sklearn import validated
from ._streamed import fit_large, fit_source, has_features
from ._training import TrainingRows, training_rows
from ._typing import MatrixLike, RandomStateLike
from ._validation import as_labels, check_choice, check_positive
from .exceptions import DegenerateSolutionWarning, FarSamplesWarning
from .kernels import KernelLike, as_kernel
from .kernels.base import SYMMETRY_TOLERANCE, Kernel
from .sources import as_source, is_source

__all__ = ["DOUBTS", "OneClassClassifier", "check_values", "is_indefinite", "resolved_threshold"]

THRESHOLDS = ("auto", "training", "loo")

MOST_FEATURES = 1 << 22
"""Features that scoring holds at a time: 32 MB, and more work than two threads need."""

DOUBTS: dict[str, tuple[type[Warning], str]] = {
    "not converged": (
        ConvergenceWarning,
        "{stop} with a relative duality gap of {gap:.2g} (tol={tol:g}). Raise max_iter or tol, or scale the data.",
    ),
    "indefinite": (
        UserWarning,
        "The kernel is indefinite on the training samples: the solution is a stationary point, not a certified optimum.",
    ),
    "coarse": (
        UserWarning,
        "For this kernel the samples are nearly alike: rounding decides at the boundary. Scale the data first, for example with "
        "TargetScaler, or use a narrower kernel.",
    ),
    "degenerate": (
        DegenerateSolutionWarning,
        "The one-class SVM's optimum is w = 0: its decision values are noise. The targets' mean is (nearly) the origin of the "
        "kernel's space, as after centring on the training samples. Use center=False, references other than the targets, or SVDD.",
    ),
    "far samples": (
        FarSamplesWarning,
        "Samples far from all references are accepted: this kernel maps them all to one point, and that lies inside. Widen the "
        "base kernel (scale=10), choose references that reach where new samples may fall, or use the plain kernel.",
    ),
}
"""What a fit may warn about, by name; a search marks its candidates with the same names."""


class OneClassClassifier(OutlierMixin, NestedParams):
    """The fit and the scores that both classifiers share; each adds its description and its dual problem."""

    classifier: ClassVar[Classifier]
    """The dual problem, the score and the threshold."""

    kernel: KernelLike
    threshold: str
    tol: float
    max_iter: int
    cache_size: float
    stopping: str
    memory: float
    random_state: RandomStateLike

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Describe the target rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples; the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers. They feed references that ask for them, and otherwise train only
            ``SVDD(negatives="repel")``. All other rows are targets, labelled +1.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies the bound of each row's dual weight; a weight of 0 leaves the row out.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_params()
        kernel = as_kernel(self.kernel)
        if self._reads_blocks(X, kernel):
            self._warn_about(*fit_source(self, as_source(X), y, sample_weight, kernel))
            return self
        samples = self._validated(X, kernel, reset=True)
        training, weight = training_rows(samples, y, sample_weight)
        used, signed_weight = self._used_rows(training, weight)
        make_problem = self._problem_maker(signed_weight)
        self.kernel_ = kernel.resolve(training, weight[training.targets], self.random_state)
        if self._exceeds_memory(samples):
            self._warn_about(*fit_large(self, samples, used, signed_weight))
            return self
        left_out = resolved_threshold(self.threshold, self.kernel_) == "loo" and training.targets.size > 1
        rows = self._source(samples, used)
        if rows.on_demand and rows.n <= WHOLE and (left_out or not self.kernel_.positive_definite):
            rows = Dense(rows.whole())  # leaving samples out and the check for indefinite kernels need it anyway
        check_values(rows.diag, samples)
        problem = make_problem(rows.diag)
        solution = self._solved(problem, rows)
        self._store(samples, used, solution, rows)
        if left_out:
            solution = self._follow_new_samples(problem, rows, solution, signed_weight)
        self._warn_about(solution, rows, samples[used] if self.classifier.uses_diag else None)
        return self

    def _warn_about(self, solution: Solution, rows: Any, X: Any) -> None:
        self._doubts = self._doubts_about(solution, rows, X)
        stop = f"max_iter={self.max_iter} was reached" if 0 <= self.max_iter <= solution.n_iter else "The solver stopped"
        for doubt in self._doubts:
            category, message = DOUBTS[doubt]
            warnings.warn(message.format(stop=stop, gap=solution.gap, tol=self.tol), category, stacklevel=3)

    def _reads_blocks(self, X: Any, kernel: Kernel) -> bool:
        """Whether X is read block by block: sources, and large memory maps if the kernel has explicit features."""
        return is_source(X) or (isinstance(X, np.memmap) and X.ndim == 2 and has_features(kernel) and takes_over(*X.shape))

    def _exceeds_memory(self, X: Any) -> bool:
        """Whether the features of X in double precision would take more than ``memory``, and passes can do without."""
        r = getattr(self.kernel_, "rank_", 0)
        by_passes = isinstance(X, np.ndarray) and self.stopping == "relative" and self.max_iter < 0 and takes_over(len(X), r)
        return by_passes and resolved_threshold(self.threshold, self.kernel_) != "loo" and 8e-6 * len(X) * r > self.memory

    def _solved(self, problem: DualProblem, rows: Any) -> Solution:
        """The optimum: by passes over explicit features where samples are many, and by pair moves otherwise."""
        by_passes = isinstance(rows, Features) and self.stopping == "relative" and self.max_iter < 0 and takes_over(*rows.Phi.shape)
        return solve_features(problem, rows, self.tol) if by_passes else solve(problem, rows, **self._solver())

    def _follow_new_samples(self, problem: DualProblem, rows: Any, solution: Solution, signed_weight: np.ndarray) -> Solution:
        """Set ``offset_`` by targets left out; return the solution with the worst gap of all models."""
        targets = Targets(self.classifier, problem, rows, solution.b, solution.G, signed_weight, every=False, **self._solver())
        rounding = self.classifier.slack(solution.size_of_sums, 0.0, self.kernel_.precision, solution.noise)
        self.offset_ = targets.threshold(problem.total / problem.upper.sum()) - float(rounding)
        found = targets.left_out
        gap = float(found.gap.max(initial=solution.gap))
        return replace(solution, gap=gap, converged=bool(solution.converged and found.converged.all()))

    def _leave_one_out(self, X: Any, y: Any = None, sample_weight: Any = None) -> LeftOutModels:
        """Every target of a fitted model left out in turn: kernel, C and known outliers stay as they are (see ``calibration.held_out``)."""
        check_is_fitted(self)
        X = self._validated(X, self.kernel_, reset=False)
        training, weight = training_rows(X, y, sample_weight)
        used, signed_weight = self._used_rows(training, weight)
        rows = self._source(X, used)
        problem = self._problem_maker(signed_weight)(rows.diag)
        b = np.zeros(X.shape[0])
        b[self.support_] = self.dual_coef_[0]
        b = b[used]
        support = np.flatnonzero(b)
        G = rows.times(support, b[support]) + problem.p
        targets = Targets(self.classifier, problem, rows, b, G, signed_weight, **self._solver())
        return self._left_out_models(X, used, rows, b, targets)

    def _left_out_models(self, X: Any, used: np.ndarray, rows: Any, b: np.ndarray, targets: Targets) -> LeftOutModels:
        """The distinct models; the model of all targets comes first, if a target without weight needs it."""
        found: Any = targets.left_out
        unchanged = targets.is_target.copy()
        unchanged[found.samples] = False
        first = [b] if unchanged.any() else []
        B, quadratic = np.vstack([*first, found.B]), np.concatenate([[targets.quadratic] * len(first), found.quadratic])
        model = np.zeros(b.size, dtype=np.intp)
        model[found.samples] = len(first) + np.arange(found.samples.size)
        union = np.flatnonzero(B.any(axis=0))
        if isinstance(rows, Features):
            landmarks, weights = None, B[:, union] @ rows.Phi[union]
        else:
            landmarks, weights = self.kernel_.landmarks(X, used[union]), np.column_stack([B[:, union], np.zeros(len(B))])
        is_target = targets.is_target
        return LeftOutModels(self, landmarks, weights, quadratic, targets.scores[is_target], model[is_target])

    def _solver(self) -> dict[str, Any]:
        return {"tol": self.tol, "stopping": self.stopping, "max_iter": self.max_iter}

    def fit_predict(self, X: MatrixLike, y: npt.ArrayLike | None = None, **kwargs: Any) -> np.ndarray:
        """Fit, and label the training rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples; the kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers.
        **kwargs
            Passed to ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            +1 for targets, -1 for outliers.
        """
        self.fit(X, y, **kwargs)
        if not (self.kernel_.pairwise and self.classifier.uses_diag):
            return self.predict(X)
        K: Any = X
        return self.predict(X, diag=K.diagonal() if sp.issparse(K) else np.diagonal(K))

    def decision_function(self, X: MatrixLike, *, diag: npt.ArrayLike | None = None) -> np.ndarray:
        """Compute ``score_samples(X) - offset_``: at least 0 for samples that are accepted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` as in ``score_samples``.
        diag : array-like of shape (n_samples,), optional
            k(x, x) of each sample, as in ``score_samples``.

        Returns
        -------
        ndarray of shape (n_samples,)
            The decision values.
        """
        with np.errstate(over="ignore"):
            return finite_scores(self.score_samples(X, diag=diag) - self.offset_)

    def predict(self, X: MatrixLike, *, diag: npt.ArrayLike | None = None) -> np.ndarray:
        """Label samples: +1 for targets, -1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` as in ``score_samples``.
        diag : array-like of shape (n_samples,), optional
            k(x, x) of each sample, as in ``score_samples``.

        Returns
        -------
        ndarray of shape (n_samples,)
            +1 where ``decision_function`` is at least 0, else -1.
        """
        if is_source(X):
            return as_source(X).apply(self.predict)
        return as_labels(self.decision_function(X, diag=diag) >= 0)

    def score_samples(self, X: MatrixLike, *, diag: npt.ArrayLike | None = None) -> np.ndarray:
        """Compute the raw score of each sample; higher is more normal. A row's score does not depend on the rows beside it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` k(X, training samples), of shape (n_samples, n_training_samples).
        diag : array-like of shape (n_samples,), optional
            k(x, x) of each sample. Needed by SVDD with ``kernel="precomputed"``, and used only there.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores; finite for finite samples.
        """
        check_is_fitted(self)
        if is_source(X):
            return as_source(X).apply(self.score_samples)
        samples = self._validated(X, self.kernel_, reset=False)
        given = self._given_diag(samples, diag)
        with np.errstate(over="ignore", invalid="ignore"):
            sums, norms = self._sums_and_norms(samples, given)
            return finite_scores(self.classifier.score(sums, norms, self._quadratic))

    def _sums_and_norms(self, X: Any, diag: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Σ b_i k(x, x_i) and k(x, x) for every row of X (the latter only if the score uses it)."""
        kernel = self.kernel_
        if self._normal is not None:
            n, step = X.shape[0], max(MOST_FEATURES // max(self._normal.size, 1), 1)
            if n <= step:
                return self._of_features(X, self._normal)
            found = (self._of_features(X[start : start + step], self._normal) for start in range(0, n, step))
            parts, norms = zip(*found, strict=True)
            return np.concatenate(parts), np.concatenate(norms) if self.classifier.uses_diag else None
        sums = kernel.sums(X, self._landmarks, self.dual_coef_[0])
        return sums, diag if diag is not None or not self.classifier.uses_diag else kernel.diag(X)

    def _of_features(self, X: Any, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The same for rows whose features fit into memory."""
        Phi = np.asarray(self.kernel_.features(X))
        return times(Phi, normal), squared_norms(Phi) if self.classifier.uses_diag else None

    def _given_diag(self, X: Any, diag: npt.ArrayLike | None) -> np.ndarray | None:
        """k(x, x) after checking it, if the user must pass it; None if the kernel computes it or the score does not use it."""
        if not (self.kernel_.pairwise and self.classifier.uses_diag):
            return None
        if diag is None:
            return self.kernel_.diag(X)  # says how to pass it
        given = np.asarray(diag, dtype=np.float64)
        if given.shape != (X.shape[0],):
            raise ValueError(f"diag has shape {given.shape}; ({X.shape[0]},) was expected: k(x, x) for each row of X.")
        if not np.isfinite(given).all():
            raise ValueError("diag holds NaN or infinite values; it must be finite: k(x, x) for each row of X.")
        return given

    def _validated(self, X: Any, kernel: Kernel, reset: bool) -> Any:
        return kernel.checked(validated(self, X, reset, "csr" if kernel.accepts_sparse else False), training=reset)

    def _check_params(self) -> None:
        """Raise for parameters that are wrong for any data."""
        check_choice("stopping", self.stopping, STOPPING_RULES)
        check_choice("threshold", self.threshold, THRESHOLDS)
        check_positive("tol", self.tol)
        check_positive("cache_size", self.cache_size)
        check_positive("memory", self.memory)
        if not isinstance(self.max_iter, Integral) or self.max_iter < -1:
            raise ValueError(f"max_iter={self.max_iter!r} must be an int >= 0, or -1 for max(10 million, 100 n).")

    def _used_rows(self, training: TrainingRows, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows that the dual problem sees, and their weights."""
        return training.targets, weight[training.targets]

    def _problem_maker(self, signed_weight: np.ndarray) -> Callable[[np.ndarray], DualProblem]:
        """The function from diag(K) to the dual problem, after every check that needs no kernel value."""
        raise NotImplementedError

    def _source(self, X: Any, used: np.ndarray) -> Any:
        """Where the solver finds K."""
        K = self.kernel_.matrix(X, used)
        if K is not None:
            return Dense(K)
        X = X if np.array_equal(used, np.arange(X.shape[0])) else X[used]
        Phi = self.kernel_.features(X)
        return Cached(self.kernel_, X, self.cache_size) if Phi is None else Features(Phi)

    def _store(self, X: Any, used: np.ndarray, solution: Solution, rows: Any) -> None:
        support = solution.support
        self.support_ = used[support]
        self.dual_coef_ = solution.b[None, support]
        self.support_vectors_ = np.empty((0, X.shape[1])) if self.kernel_.pairwise else X[self.support_]
        self._normal = solution.b[support] @ rows.Phi[support] if isinstance(rows, Features) else None
        self._quadratic = float(solution.quadratic)
        self.n_iter_ = solution.n_iter
        self.duality_gap_ = solution.gap
        self.offset_ = float(self.classifier.threshold(solution.rho, solution.quadratic)) - self._slack(solution)

    @property
    def _landmarks(self) -> Any:
        """The support vectors, as the kernel takes them."""
        return self.support_ if self.kernel_.pairwise else self.support_vectors_

    def _slack(self, solution: Solution) -> float:
        shortfall = solution.shortfall if self.stopping == "relative" else 0.0
        noise = solution.noise if self.stopping == "relative" else 0.0
        return float(self.classifier.slack(solution.size_of_sums, shortfall, self.kernel_.precision, noise))

    def _doubts_about(self, solution: Solution, rows: Any, X: Any) -> tuple[str, ...]:
        """The names of what to warn about."""
        doubts = {
            "not converged": not solution.converged,
            "indefinite": solution.curvature < -SYMMETRY_TOLERANCE * np.abs(rows.diag).max()
            or (rows.n <= WHOLE and is_indefinite(self.kernel_, rows.whole)),
            "coarse": self._is_coarse(solution, X),
            "degenerate": self.stopping == "relative" and self.classifier.is_degenerate(solution),
        }
        doubts["far samples"] = not doubts["degenerate"] and self._accepts_far_samples()
        return tuple(name for name, holds in doubts.items() if holds)

    def _is_coarse(self, solution: Solution, X: Any) -> bool:
        """Whether rounding decides at the boundary."""
        return False

    def _accepts_far_samples(self) -> bool:
        Phi = self.kernel_.far_features()
        if Phi is None:
            return False
        return bool(self.classifier.score(Phi @ self._normal, Phi @ Phi, self._quadratic) >= self.offset_)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Also read files of version 0.1, which kept b'Kb under another name, and only if the score needs it."""
        if "support_" in state and "_quadratic" not in state:
            state = {**state, "_quadratic": state.get("_center_norm2", 0.0)}
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel = as_kernel(self.kernel)
        tags.input_tags.pairwise = kernel.pairwise
        tags.input_tags.sparse = kernel.accepts_sparse
        return tags


def resolved_threshold(threshold: str, kernel: Kernel) -> str:
    """What "auto" stands for: "loo" for a kernel whose width follows the neighbours."""
    return ("loo" if kernel.narrow else "training") if threshold == "auto" else threshold


def is_indefinite(kernel: Kernel, matrix: Callable[[], np.ndarray]) -> bool:
    """Whether a kernel of unknown kind turns out to be indefinite on the samples of a (small) kernel matrix."""
    if kernel.positive_definite:
        return False
    K = matrix()
    shift = SYMMETRY_TOLERANCE * max(np.abs(K).max(), np.finfo(float).tiny) * len(K)
    return lapack.dpotrf(K + shift * np.eye(len(K)))[1] > 0


def check_values(diag: np.ndarray, X: Any) -> None:
    """Raise if all values are so small that the kernel underflows."""
    if not np.any(diag) and (X.nnz if sp.issparse(X) else np.any(X)):
        raise ValueError("The kernel is 0 on every training sample: it underflows. Scale the data first, for example with TargetScaler.")
