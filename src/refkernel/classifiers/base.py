"""What SVDD and the one-class SVM share: fit, scores and warnings, from one description of each (``_core.problem``)."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import lapack
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._core.blocks import times
from .._core.distances import squared_norms
from .._core.file_rules import FEATURES, Array, Items, Number, OrNone, Part, Rule, Text
from .._core.gram import Cached, Dense, Features
from .._core.problem import Classifier, DualProblem, Solution
from .._core.rows import TrainingRows, training_rows
from .._core.solver import STOPPING_RULES, WHOLE, solve
from .._core.threshold import ThresholdMixin, finite_scores
from .._core.types import MatrixLike, RandomStateLike
from .._core.validation import SYMMETRY_TOLERANCE, check_choice, check_nu, check_positive, validated
from ..exceptions import DegenerateSolutionWarning, FarSamplesWarning
from ..kernels import KernelLike, as_kernel
from ..kernels.base import Kernel, symmetric
from ..large import as_source, is_source
from ..large.fit import fit_large, fit_source, has_features, solve_features, takes_over
from ..references.base import NestedParams
from .left_out import Targets, leave_one_out

COARSE_SLACK = 0.01  # warn when the rounding slack exceeds this share of SVDD's R²
MOST_FEATURES = 1 << 22  # features that scoring holds at a time: 32 MB, and more work than two threads need

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


class OneClassClassifier(ThresholdMixin, NestedParams):
    """The fit and the scores that both classifiers share; each adds its description and its dual problem."""

    classifier: ClassVar[Classifier]  # the dual problem, the score and the threshold

    _file_rules: ClassVar[dict[str, Rule]] = {
        **FEATURES,
        "support_": Array(("s",), lowest=0),
        "dual_coef_": Array((1, "s")),
        "support_vectors_": Array(("v", "d"), sparse=True),
        "offset_": Number(),
        "duality_gap_": Number(optional=True),
        "kernel_": Part(Kernel),
        "_quadratic": Number(),
        "_normal": OrNone(Array(("f",))),
        "_doubts": Items(Text(), optional=True),
    }

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        nu: float = 0.1,
        threshold: str = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: float = 200,
        stopping: str = "relative",
        memory: float = 512,
        random_state: RandomStateLike = None,
    ) -> None:
        self.kernel = kernel
        self.nu: Any = nu
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.stopping = stopping
        self.memory = memory
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        self._check_params()
        kernel = as_kernel(self.kernel)
        too_large = isinstance(X, np.memmap) and X.ndim == 2 and has_features(kernel) and takes_over(*X.shape)
        if is_source(X) or too_large:  # read block by block
            self._warn_about(*fit_source(self, as_source(X), y, sample_weight, kernel))
            return self
        samples = self._validated(X, kernel, reset=True)
        training, weight = training_rows(samples, y, sample_weight)
        used, signed_weight = self._used_rows(training, weight)
        bound, bound_outliers = self._bounds(signed_weight)
        self.kernel_ = kernel._fitted(training, weight[training.targets], self.random_state)
        if self._exceeds_memory(samples):
            self._warn_about(*fit_large(self, samples, used, signed_weight))
            return self
        left_out = resolved_threshold(self.threshold, self.kernel_) == "loo" and training.targets.size > 1
        rows = self._source(samples, used)
        if rows.on_demand and rows.n <= WHOLE and (left_out or not self.kernel_._positive_definite):
            rows = Dense(rows.whole())  # leaving samples out and the check for indefinite kernels need it anyway
        check_values(rows.diag, samples)
        problem = self.classifier.problem(rows.diag, bound, signed_weight, bound_outliers)
        solution = self._solved(problem, rows)
        self._store(samples, used, solution, rows)
        if left_out:
            solution = self._follow_new_samples(problem, rows, solution, signed_weight)
        self._warn_about(solution, rows, samples if used.size == samples.shape[0] else samples[used])
        return self

    def _warn_about(self, solution: Solution, rows: Any, X: Any) -> None:
        """Keep the names of what is doubtful, and warn about it."""
        rounding, Phi_far = self.kernel_._precision * solution.size_of_sums, self.kernel_._far_features()
        radius2 = abs(self.classifier.threshold(solution.rho, solution.quadratic))
        degenerate = self.stopping == "relative" and not self.classifier.uses_diag and bool(solution.is_zero)
        holds = {
            "not converged": not solution.converged,
            "indefinite": solution.curvature < -SYMMETRY_TOLERANCE * np.abs(rows.diag).max()
            or (rows.n <= WHOLE and is_indefinite(self.kernel_, rows.whole)),
            "coarse": self.classifier.uses_diag and rounding > COARSE_SLACK * radius2 and not _rows_are_equal(X),
            "degenerate": degenerate,
            "far samples": not degenerate
            and Phi_far is not None
            and self.classifier.score(Phi_far @ self._normal, Phi_far @ Phi_far, self._quadratic) >= self.offset_,
        }
        self._doubts = tuple(doubt for doubt in holds if holds[doubt])
        stop = f"max_iter={self.max_iter} was reached" if 0 <= self.max_iter <= solution.n_iter else "The solver stopped"
        for doubt in self._doubts:
            category, message = DOUBTS[doubt]
            warnings.warn(message.format(stop=stop, gap=solution.gap, tol=self.tol), category, stacklevel=3)

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
        targets = Targets(self, problem, rows, solution.b, solution.G, signed_weight, every=False)
        rounding = self.classifier.slack(solution.size_of_sums, 0.0, self.kernel_._precision, solution.noise)
        self.offset_ = targets.threshold(problem.total / problem.upper.sum()) - float(rounding)
        found = targets.left_out
        gap = float(found.gap.max(initial=solution.gap))
        return replace(solution, gap=gap, converged=bool(solution.converged and found.converged.all()))

    _leave_one_out = leave_one_out  # kernel, C and known outliers stay as they are (see ``calibration.held_out``)

    def _solver(self) -> dict[str, Any]:
        return {"tol": self.tol, "stopping": self.stopping, "max_iter": self.max_iter}

    def fit_predict(self, X: MatrixLike, y: npt.ArrayLike | None = None, **kwargs: Any) -> np.ndarray:
        self.fit(X, y, **kwargs)
        if not (self.kernel_._pairwise and self.classifier.uses_diag):
            return self.predict(X)
        K: Any = X
        return self.predict(X, diag=K.diagonal() if sp.issparse(K) else np.diagonal(K))

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
        with np.errstate(over="ignore", invalid="ignore"):
            sums, norms = self._sums_and_norms(samples, diag)
            return finite_scores(self.classifier.score(sums, norms, self._quadratic))

    def _sums_and_norms(self, X: Any, diag: npt.ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Σ b_i k(x, x_i) and k(x, x) for every row of X (the latter only if the score uses it)."""
        kernel = self.kernel_
        if self._normal is None:
            sums = kernel._sums(X, self.support_ if kernel._pairwise else self.support_vectors_, self.dual_coef_[0])
            if not self.classifier.uses_diag:
                return sums, None
            return sums, kernel.diag(X) if diag is None or not kernel._pairwise else _checked_diag(diag, len(sums))
        sums, norms = np.empty((2, X.shape[0]))
        step = max(MOST_FEATURES // max(self._normal.size, 1), 1)
        for start in range(0, X.shape[0], step):
            part = slice(start, start + step)
            Phi = np.asarray(kernel._features(X[part]))
            sums[part] = times(Phi, self._normal)
            norms[part] = squared_norms(Phi) if self.classifier.uses_diag else 0.0
        return sums, norms

    def _validated(self, X: Any, kernel: Kernel, reset: bool) -> Any:
        X = validated(self, X, reset, "csr" if kernel._accepts_sparse else False)
        if not kernel._pairwise:
            return X
        if reset and X.shape[0] != X.shape[1]:
            raise ValueError(f'With kernel="precomputed", fit takes the square kernel matrix of the samples; X has shape {X.shape}.')
        return X.toarray() if sp.issparse(X) else X

    def _check_params(self) -> None:
        """Raise for parameters that are wrong for any data."""
        parameter, value = self._solved_parameter(self.nu, getattr(self, "C", None))
        check_nu(value) if parameter == "nu" else check_positive("C", value)
        check_choice("stopping", self.stopping, STOPPING_RULES)
        check_choice("threshold", self.threshold, ("auto", "training", "loo"))
        check_positive("tol", self.tol)
        check_positive("cache_size", self.cache_size)
        check_positive("memory", self.memory)
        if not isinstance(self.max_iter, Integral) or self.max_iter < -1:
            raise ValueError(f"max_iter={self.max_iter!r} must be an int >= 0, or -1 for max(10 million, 100 n).")

    def _used_rows(self, training: TrainingRows, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows that the dual problem sees, and their weights."""
        return training.targets, weight[training.targets]

    def _bounds(self, signed_weight: np.ndarray) -> tuple[float, float]:
        """nu · n = 1 / C of the targets and the bound of outliers that repel, after every check that needs no kernel value."""
        return self.nu * signed_weight.sum(), 0.0

    @staticmethod
    def _solved_parameter(nu: Any, C: Any) -> tuple[str, float]:
        """Name and value of what bounds the share of targets outside."""
        return "nu", nu

    def _source(self, X: Any, used: np.ndarray) -> Any:
        """Where the solver finds K."""
        if self.kernel_._pairwise:
            return Dense(symmetric(X[np.ix_(used, used)], "precomputed kernel matrix"))
        X = X if np.array_equal(used, np.arange(X.shape[0])) else X[used]
        Phi = self.kernel_._features(X)
        return Cached(self.kernel_, X, self.cache_size) if Phi is None else Features(Phi)

    def _store(self, X: Any, used: np.ndarray, solution: Solution, rows: Any) -> None:
        support = np.flatnonzero(solution.b)
        self.support_ = used[support]
        self.dual_coef_ = solution.b[None, support]
        self.support_vectors_ = np.empty((0, X.shape[1])) if self.kernel_._pairwise else X[self.support_]
        self._normal = None
        if isinstance(rows, Features):  # of a linear kernel, features are the rows
            self._normal = solution.b[support] @ (self.support_vectors_ if rows.Phi is X else rows.Phi[support])
        self._quadratic = float(solution.quadratic)
        self.n_iter_ = int(solution.n_iter)
        self.duality_gap_ = float(solution.gap)
        self.offset_ = float(self.classifier.threshold(solution.rho, solution.quadratic)) - self._slack(solution)

    def _slack(self, solution: Solution) -> float:
        shortfall, noise = (solution.shortfall, solution.noise) if self.stopping == "relative" else (0.0, 0.0)
        return float(self.classifier.slack(solution.size_of_sums, shortfall, self.kernel_._precision, noise))

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """A kernel matrix is indexed by the support; other kernels have the vectors themselves."""
        expected = 0 if self.kernel_._pairwise else sizes["s"]
        if sizes["v"] != expected:
            return f"support_vectors_ has {sizes['v']} rows, not {expected}"
        if np.size(getattr(self.kernel_, "sigma_", 1.0)) not in (1, sizes["d"]):
            return f"kernel_.sigma_ is not one width or {sizes['d']}"
        features = getattr(self.kernel_, "rank_", sizes["d"])
        if (self._normal is None and hasattr(self.kernel_, "rank_")) or sizes.get("f", features) != features:
            return f"_normal is not {features} numbers"
        if not expected and sizes["s"] and self.support_.max() >= sizes["d"]:
            return f"support_ holds {self.support_.max()}; there are {sizes['d']} training samples"
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel = as_kernel(self.kernel)
        tags.input_tags.pairwise = kernel._pairwise
        tags.input_tags.sparse = kernel._accepts_sparse
        return tags


def resolved_threshold(threshold: str, kernel: Kernel) -> str:
    """What "auto" stands for: "loo" for a kernel whose width follows the neighbours."""
    return ("loo" if kernel._narrow else "training") if threshold == "auto" else threshold


def is_indefinite(kernel: Kernel, matrix: Callable[[], np.ndarray]) -> bool:
    """Whether a kernel of unknown kind turns out to be indefinite on the samples of a (small) kernel matrix."""
    if kernel._positive_definite:
        return False
    K = matrix()
    shift = SYMMETRY_TOLERANCE * max(np.abs(K).max(), np.finfo(float).tiny) * len(K)
    return lapack.dpotrf(K + shift * np.eye(len(K)))[1] > 0


def check_values(diag: np.ndarray, X: Any) -> None:
    """Raise if all values are so small that the kernel underflows."""
    if not np.any(diag) and (X.nnz if sp.issparse(X) else np.any(X)):
        raise ValueError("The kernel is 0 on every training sample: it underflows. Scale the data first, for example with TargetScaler.")


def _rows_are_equal(X: Any) -> bool:
    return (X[1:] != X[:-1]).nnz == 0 if sp.issparse(X) else bool((X[0] == X).all())


def _checked_diag(diag: npt.ArrayLike, n: int) -> np.ndarray:
    """k(x, x) of n samples, as the user passed it."""
    given = np.asarray(diag, dtype=np.float64)
    if given.shape != (n,):
        raise ValueError(f"diag has shape {given.shape}; ({n},) was expected: k(x, x) for each row of X.")
    if not np.isfinite(given).all():
        raise ValueError("diag holds NaN or infinite values; it must be finite: k(x, x) for each row of X.")
    return given
