"""Leave out one target at a time: the scores of targets that a model has not seen, and a threshold for new samples."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._core.blocks import in_blocks
from .._core.distances import squared_norms
from .._core.file_rules import Array, OrNone, Part, Rule
from .._core.gram import Features
from .._core.leave_one_out import leave_folds_out, leave_out
from .._core.problem import SUM_PRECISION, DualProblem
from .._core.rows import training_rows
from .._core.solver import WHOLE
from .._core.threshold import finite_scores
from .._core.types import MatrixLike
from .._core.working_set import gradient

COARSE_TOL = 1e-4  # the tolerance of models that only set a threshold: three digits of it are enough


@dataclass
class LeftOutModels:
    """The models of a classifier, each without one target; that of all stands for targets without weight (see ``HeldOut``).

    ``scores[i]`` is the score of the i-th target by model number ``model[i]``, which has not seen it. ``landmarks`` are the rows with
    weight in any model (None for explicit features), ``weights`` those of each model (or its normal), ``quadratic`` its b'Kb.
    """

    classifier: Any
    landmarks: Any
    weights: np.ndarray
    quadratic: np.ndarray
    scores: np.ndarray
    model: np.ndarray

    _file_rules: ClassVar[dict[str, Rule]] = {
        "classifier": Part(BaseEstimator),
        "landmarks": OrNone(Array(("m", "d"), sparse=True)),
        "weights": Array(("k", "w")),
        "quadratic": Array(("k",)),
        "scores": Array(("n",)),
        "model": Array(("n",), lowest=0, below="k"),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """Landmarks are rows for the classifier, each with its weights."""
        expected = np.size(self.classifier._normal) if self.landmarks is None else sizes["m"] + 1
        return None if expected == sizes["w"] else f"weights has {sizes['w']} columns, not {expected}"

    def score_matrix(self, X: MatrixLike) -> np.ndarray:
        """The score of every row of X (t) by every model (k): t × k."""
        fitted, W = self.classifier, self.weights.T
        kernel, description = fitted.kernel_, fitted.classifier
        samples = fitted._validated(X, kernel, reset=False)
        sums = np.empty((samples.shape[0], W.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            if self.landmarks is None:
                samples = np.asarray(kernel._features(samples))
                in_blocks(lambda rows: lambda block: block @ W, samples, sums, max(W.shape))
            else:
                kernel._products(samples, self.landmarks, W, sums)
            norms = None
            if description.uses_diag:
                norms = (squared_norms(samples) if self.landmarks is None else kernel.diag(samples))[:, None]
            scores = description.score(sums, norms, self.quadratic)
        return finite_scores(scores)


class Targets:
    """The targets of one problem. Those with weight are left out in turn, or in folds if they are many and ``every`` is False; the
    targets of these folds alone then count.

    ``comparable`` are their ``scores`` plus |m|² if the centre moves by m without them, as new samples are farther from it by that on
    average; or, if all k(x, x) are equal, with b'Kb of all targets instead of each model's own.
    """

    def __init__(
        self, model: Any, problem: DualProblem, rows: Any, b: np.ndarray, G: np.ndarray, signed_weight: np.ndarray, every: bool = True
    ) -> None:
        description, solver = model.classifier, model._solver()
        self.is_target = signed_weight > 0
        self._counts = self.is_target.copy()
        if every or rows.n <= WHOLE:
            self.left_out = leave_out(problem, rows, b, G, np.flatnonzero(self.is_target & (b != 0.0)), **solver)
        else:
            self.left_out = leave_folds_out(problem, rows, b, G, **{**solver, "tol": max(solver["tol"], COARSE_TOL)})
            self._counts[:] = False
            self._counts[self.left_out.samples] = True
        found, Kb = self.left_out, G - problem.p
        self.quadratic = float(b @ Kb)
        sums, quadratic, moved = Kb.copy(), np.full(b.size, self.quadratic), np.zeros(b.size)
        sums[found.samples], quadratic[found.samples], moved[found.samples] = found.sums, found.quadratic, found.moved
        self.scores = description.score(sums, rows.diag, quadratic)
        alike = np.ptp(rows.diag) <= SUM_PRECISION * np.abs(rows.diag).max()
        self.comparable = self.scores + description.diag_share * (quadratic - self.quadratic if alike else moved)
        self.weight = signed_weight

    def threshold(self, nu: float) -> float:
        """The score that about a share nu of new samples falls below."""
        return lower_quantile(self.comparable[self._counts], self.weight[self._counts], nu)


def leave_one_out(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> LeftOutModels:
    """The distinct models of a fitted classifier; that of all targets comes first, if a target without weight needs it."""
    check_is_fitted(model)
    X = model._validated(X, model.kernel_, reset=False)
    used, signed_weight = model._used_rows(*training_rows(X, y, sample_weight))
    rows = model._source(X, used)
    bound, bound_outliers = model._bounds(signed_weight)
    problem = model.classifier.problem(rows.diag, bound, signed_weight, bound_outliers)
    b = np.zeros(X.shape[0])
    b[model.support_] = model.dual_coef_[0]
    b = b[used]
    targets = Targets(model, problem, rows, b, gradient(problem, rows, b), signed_weight)
    found, is_target = targets.left_out, targets.is_target
    first = [b] if is_target.sum() > found.samples.size else []  # of targets without weight
    B, quadratic = np.vstack([*first, found.B]), np.concatenate([[targets.quadratic] * len(first), found.quadratic])
    number = np.zeros(b.size, dtype=np.intp)
    number[found.samples] = len(first) + np.arange(found.samples.size)
    union = np.flatnonzero(B.any(axis=0))
    if isinstance(rows, Features):
        landmarks, weights = None, B[:, union] @ rows.Phi[union]
    else:
        landmarks = used[union] if model.kernel_._pairwise else X[used[union]]
        weights = np.column_stack([B[:, union], np.zeros(len(B))])
    return LeftOutModels(model, landmarks, weights, quadratic, targets.scores[is_target], number[is_target])


def lower_quantile(scores: np.ndarray, weight: np.ndarray, nu: float) -> float:
    """The k-th smallest score by weight, k = max(⌊nu (n + 1)⌋, 1): a new one is below it with probability at most max(nu, 1 / (n + 1))."""
    order = np.argsort(scores, kind="stable")
    n = scores.size
    ranks = np.cumsum(weight[order]) * (n / weight.sum())
    within = int(np.count_nonzero(ranks <= nu * (n + 1) * (1.0 + SUM_PRECISION) + SUM_PRECISION))
    return float(scores[order[min(max(within, 1), n) - 1]])
