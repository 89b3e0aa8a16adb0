"""Scores of candidates on a test fold, all at once if the score allows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.metrics import get_scorer

from .. import metrics
from .._validation import OUTLIER, as_labels

__all__ = ["LABEL_FREE", "NAMES", "Scoring", "as_scoring", "aurocs", "rates"]

LABEL_FREE = "label_free"
"""The scoring that tells held-out targets from made-up outliers."""


@dataclass(frozen=True)
class Scoring:
    """A scorer, its form for many rows of decision values at once if it has one, and whether it needs both kinds of samples."""

    scorer: Callable[..., float]
    at_once: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
    needs_both: bool

    def of_model(self, model: Any, X: Any, y: Any) -> float:
        """The score of a fitted model."""
        return float(self.scorer(model, X, y))

    def of_decisions(self, decisions: np.ndarray, X: Any, y: Any) -> np.ndarray:
        """The scores of q models, given their decision values (q × t) on X."""
        if self.at_once is not None:
            return self.at_once(decisions, np.asarray(y) != OUTLIER)
        return np.array([self.of_model(Decided(row), X, y) for row in decisions])


class Decided(OutlierMixin, BaseEstimator):
    """Stands in for a fitted model whose decision values on the test samples are known, so that a scorer can score it."""

    def __init__(self, decision: np.ndarray) -> None:
        self.decision = decision

    def fit(self, X: Any, y: Any = None) -> Self:
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        return self.decision

    score_samples = decision_function

    def predict(self, X: Any) -> np.ndarray:
        return as_labels(self.decision >= 0)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def as_scoring(scoring: Any) -> Scoring:
    """The scoring that a name or a callable stands for."""
    if isinstance(scoring, str) and scoring in NAMES:
        return NAMES[scoring]
    if isinstance(scoring, str) or callable(scoring):
        return Scoring(get_scorer(scoring), None, False)
    raise ValueError(f"scoring={scoring!r} must be one of {sorted(NAMES)}, the name of a scikit-learn scorer, or a callable.")


def rates(decisions: np.ndarray, is_target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """TPR and TNR of every row of decision values; NaN if there are no targets or no outliers."""
    accepted = (decisions >= 0).astype(np.float64)
    kinds = np.array([is_target, ~is_target], dtype=np.float64)
    counts = kinds @ accepted.T
    targets = np.count_nonzero(is_target)
    outliers = is_target.size - targets
    if targets and outliers:
        return counts[0] / targets, (outliers - counts[1]) / outliers
    nan = np.full(len(decisions), np.nan)  # the search warns about it
    return (counts[0] / targets if targets else nan), ((outliers - counts[1]) / outliers if outliers else nan)


def _gmeans(decisions: np.ndarray, is_target: np.ndarray) -> np.ndarray:
    return metrics.geometric_mean(*rates(decisions, is_target))


def aurocs(decisions: np.ndarray, is_target: np.ndarray) -> np.ndarray:
    """The area under the ROC curve of every row of decision values, ties counting half; NaN if there are no targets or no outliers."""
    targets = np.count_nonzero(is_target)
    outliers = is_target.size - targets
    if not (targets and outliers):
        return np.full(len(decisions), np.nan)
    ranks = rankdata(decisions, axis=1)[:, is_target].sum(axis=1)
    return (ranks - 0.5 * targets * (targets + 1)) / (targets * outliers)


def _label_free(decisions: np.ndarray, is_target: np.ndarray) -> np.ndarray:
    """The mean of AUROC, which ranks widths, and Gmean, which ranks thresholds."""
    return 0.5 * (aurocs(decisions, is_target) + _gmeans(decisions, is_target))


def _label_free_scorer(model: Any, X: Any, y: Any) -> float:
    """What a search calls with made-up outliers in X; its own ``score`` needs known ones."""
    if y is None or np.all(np.asarray(y) != OUTLIER):
        raise ValueError('scoring="label_free" makes outliers up in fit only: pass y to score with -1 for the rows of X that are outliers.')
    return float(_label_free(np.reshape(model.decision_function(X), (1, -1)), np.asarray(y) != OUTLIER)[0])


def _balanced(decisions: np.ndarray, is_target: np.ndarray) -> np.ndarray:
    tpr, tnr = rates(decisions, is_target)
    return 0.5 * (tpr + tnr)


NAMES = {
    "gmean": Scoring(metrics.gmean_scorer, _gmeans, True),
    "balanced_accuracy": Scoring(get_scorer("balanced_accuracy"), _balanced, True),
    "tpr_at_tnr": Scoring(metrics.tpr_at_tnr_scorer, None, True),
    "roc_auc": Scoring(get_scorer("roc_auc"), None, True),
    "average_precision": Scoring(get_scorer("average_precision"), None, True),
    LABEL_FREE: Scoring(_label_free_scorer, _label_free, True),
}
