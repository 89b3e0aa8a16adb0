"""Leave out one target at a time: the scores of targets that a model has not seen, and a threshold for new samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ._blocks import in_blocks
from ._distances import squared_norms
from ._dual.classifiers import Classifier
from ._dual.folds_out import FoldsOut, leave_folds_out
from ._dual.leave_one_out import LeftOut, leave_out
from ._dual.problem import SUM_PRECISION, DualProblem
from ._dual.solver import WHOLE
from ._typing import MatrixLike

__all__ = ["LeftOutModels", "Targets", "finite_scores", "lower_quantile"]

COARSE_TOL = 1e-4
"""The tolerance of models that only set a threshold: three digits of it are enough."""


class LeftOutModels(BaseEstimator):
    """The models of a classifier, each without one target; the model of all targets stands for targets without weight.

    ``scores[i]`` is the score of the i-th target by model number ``model[i]``, which has not seen it (``HeldOut`` in ``calibration``).

    Parameters
    ----------
    classifier : OneClassClassifier
        Fitted on all targets.
    landmarks : array of shape (u, d) or None
        The rows with weight in any model, as the kernel takes them; None if the kernel has explicit features.
    weights : array of shape (k, u + 1), or (k, r) for r features
        The weights of each model, or its normal.
    quadratic : array of shape (k,)
        b'Kb of each model.
    scores : array of shape (n,)
        The score of each target.
    model : array of int of shape (n,)
        The number of the model that scores it.
    """

    def __init__(
        self, classifier: Any, landmarks: Any, weights: np.ndarray, quadratic: np.ndarray, scores: np.ndarray, model: np.ndarray
    ) -> None:
        self.classifier = classifier
        self.landmarks = landmarks
        self.weights = weights
        self.quadratic = quadratic
        self.scores = scores
        self.model = model

    def score_matrix(self, X: MatrixLike) -> np.ndarray:
        """The score of every row of X (t) by every model (k): t × k."""
        fitted, W = self.classifier, self.weights.T
        kernel, description = fitted.kernel_, fitted.classifier
        samples = fitted._validated(X, kernel, reset=False)
        if self.landmarks is None:
            samples = np.asarray(kernel.features(samples))
            norms = squared_norms(samples) if description.uses_diag else None

            def make(rows: int) -> Callable[[Any], np.ndarray]:
                return lambda block: block @ W
        else:
            norms = kernel.diag(samples) if description.uses_diag else None

            def make(rows: int) -> Callable[[Any], np.ndarray]:
                values = kernel.against(self.landmarks, rows)
                return lambda block: values(block) @ W

        with np.errstate(over="ignore", invalid="ignore"):
            safe = kernel.thread_safe or self.landmarks is None
            sums = in_blocks(make, samples, np.empty((samples.shape[0], W.shape[1])), max(W.shape), safe)
            scores = description.score(sums, norms[:, None] if norms is not None else None, self.quadratic)
        return finite_scores(scores)


class Targets:
    """The targets of one problem. Those with weight are left out in turn, or in folds if they are many and ``every`` is False.

    ``scores`` are the scores of targets by models that have not seen them. ``comparable`` corrects them for the difference between
    those models and the model of all targets, so that its scores of new samples can be compared with them. If a centre moves by m
    when a sample is left out, new samples are farther from it by |m|² on average; in narrow kernels that exceeds all other
    differences. If all k(x, x) are equal, scores differ by their sums only, and b'Kb of all targets replaces each model's own.
    """

    def __init__(
        self,
        description: Classifier,
        problem: DualProblem,
        rows: Any,
        b: np.ndarray,
        G: np.ndarray,
        signed_weight: np.ndarray,
        every: bool = True,
        **solver: Any,
    ) -> None:
        self.is_target = signed_weight > 0
        self.left_out: LeftOut | FoldsOut
        if every or rows.n <= WHOLE:
            self.left_out = leave_out(problem, rows, b, G, np.flatnonzero(self.is_target & (b != 0.0)), **solver)
        else:
            self.left_out = leave_folds_out(problem, rows, b, G, **{**solver, "tol": max(solver["tol"], COARSE_TOL)})
        found = self.left_out
        chosen = found.samples
        Kb = G - problem.p
        sums, quadratic, moved = Kb.copy(), np.full(b.size, float(b @ Kb)), np.zeros(b.size)
        sums[chosen], quadratic[chosen], moved[chosen] = found.sums, found.quadratic, found.moved
        self.quadratic = float(b @ Kb)
        self.scores = description.score(sums, rows.diag, quadratic)
        alike = np.ptp(rows.diag) <= SUM_PRECISION * np.abs(rows.diag).max()
        self.comparable = self.scores + description.diag_share * (quadratic - self.quadratic if alike else moved)
        self.weight = signed_weight

    def threshold(self, nu: float) -> float:
        """The score that about a share nu of new samples falls below."""
        return lower_quantile(self.comparable[self.is_target], self.weight[self.is_target], nu)


def lower_quantile(scores: np.ndarray, weight: np.ndarray, nu: float) -> float:
    """The k-th smallest of n scores, k = nu (n + 1) rounded down and at least 1: a new exchangeable score is below it with
    probability at most max(nu, 1 / (n + 1)). Scores count by their weights."""
    order = np.argsort(scores, kind="stable")
    n = scores.size
    ranks = np.cumsum(weight[order]) * (n / weight.sum())
    within = int(np.count_nonzero(ranks <= nu * (n + 1) * (1.0 + SUM_PRECISION) + SUM_PRECISION))
    return float(scores[order[min(max(within, 1), n) - 1]])


def finite_scores(scores: np.ndarray) -> np.ndarray:
    """Scores of samples so far away that they overflow: the lowest (or highest) finite number; NaN counts as lowest."""
    if np.isfinite(scores).all():
        return scores
    most = np.finfo(np.float64).max
    return np.nan_to_num(scores, nan=-most, posinf=most, neginf=-most)
