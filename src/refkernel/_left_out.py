"""What leaving out one target at a time says of a classifier: scores of targets unseen, and a threshold for new samples."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ._blocks import in_blocks
from ._distances import squared_norms
from ._dual.folds_out import FoldsOut, leave_folds_out
from ._dual.leave_one_out import LeftOut, leave_out
from ._dual.problem import SUM_PRECISION
from ._dual.solver import WHOLE

COARSE_TOL = 1e-4
"""The tolerance of models that only set a threshold, on which nothing depends beyond three digits."""


class LeftOutModels(BaseEstimator):
    """The models of a classifier without one target each, and that of all targets for those without weight.

    ``scores[i]`` is the score of the i-th target under the model of number ``model[i]``, which has not seen it (``HeldOut`` in
    ``calibration``).

    Parameters
    ----------
    classifier : OneClassClassifier
        Fitted on all targets.
    landmarks : array of shape (u, d) or None
        The rows with weight in any model, as the kernel takes them; None where the kernel has explicit features.
    weights : array of shape (k, u + 1), or (k, r) for r features
        The weights of each model, or its normal.
    quadratic : array of shape (k,)
        b'Kb of each model.
    scores, model : arrays of shape (n,)
        For each target.
    """

    def __init__(self, classifier, landmarks, weights, quadratic, scores, model):
        self.classifier = classifier
        self.landmarks = landmarks
        self.weights = weights
        self.quadratic = quadratic
        self.scores = scores
        self.model = model

    def score_matrix(self, X) -> np.ndarray:
        """The score of every row of X (t) under every model (k): t × k."""
        fitted, W = self.classifier, self.weights.T
        kernel, description = fitted.kernel_, fitted.classifier
        X = fitted._validated(X, kernel, reset=False)
        if self.landmarks is None:
            X = np.asarray(kernel.features(X))
            norms = squared_norms(X) if description.uses_diag else None

            def make(rows):
                return lambda block: block @ W
        else:
            norms = kernel.diag(X) if description.uses_diag else None

            def make(rows):
                values = kernel.against(self.landmarks, rows)
                return lambda block: values(block) @ W

        with np.errstate(over="ignore", invalid="ignore"):
            safe = kernel.thread_safe or self.landmarks is None
            sums = in_blocks(make, X, np.empty((X.shape[0], W.shape[1])), max(W.shape), safe)
            scores = description.score(sums, norms[:, None] if norms is not None else None, self.quadratic)
        most = np.finfo(np.float64).max
        return np.nan_to_num(scores, copy=False, nan=-most, posinf=most, neginf=-most)


class Targets:
    """The targets of one problem, those with weight left out in turn; folds of them where they are many and ``every`` is False.

    ``scores`` are those of targets that the model has not seen. ``comparable`` are the same with what a model differs from that of all
    targets taken out, so that the latter's scores of new samples can be compared with them. Where a centre moves by m when a
    sample goes, new samples are farther from it by |m|² on average, and in narrow kernels that exceeds all other differences. If all
    k(x, x) are equal, scores differ by their sums only, and b'Kb of all targets takes the place of each model's own.
    """

    def __init__(self, description, problem, rows, b, G, signed_weight, every=True, **solver):
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

    def threshold(self, nu) -> float:
        """The score that about a share nu of new samples stays below."""
        return lower_quantile(self.comparable[self.is_target], self.weight[self.is_target], nu)


def lower_quantile(scores, weight, nu) -> float:
    """The k-th smallest of n scores, k = nu (n + 1) rounded down and at least 1: a new exchangeable score is below it with
    probability at most max(nu, 1 / (n + 1)). Scores of unequal weight count by it."""
    order = np.argsort(scores, kind="stable")
    n = scores.size
    ranks = np.cumsum(weight[order]) * (n / weight.sum())
    within = np.count_nonzero(ranks <= nu * (n + 1) * (1.0 + SUM_PRECISION) + SUM_PRECISION)
    return float(scores[order[min(max(within, 1), n) - 1]])
