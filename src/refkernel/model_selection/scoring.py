"""Scores of candidates on a test fold, all at once where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.metrics import get_scorer

from .. import metrics
from .._validation import OUTLIER, as_labels


@dataclass(frozen=True)
class Scoring:
    """A scorer, the same for many rows of decision values at once where there is one, and whether it needs both kinds."""

    scorer: Callable
    at_once: Callable | None
    needs_both: bool

    def of_model(self, model, X, y) -> float:
        """The score of a fitted model."""
        return float(self.scorer(model, X, y))

    def of_decisions(self, decisions, X, y) -> np.ndarray:
        """The scores of models known by their decision values (q × t) on X."""
        if self.at_once is not None:
            return self.at_once(decisions, np.asarray(y) != OUTLIER)
        return np.array([self.of_model(Decided(row), X, y) for row in decisions])


class Decided(OutlierMixin, BaseEstimator):
    """Stands for a fitted model in front of a scorer: its decision values on the test samples are known."""

    def __init__(self, decision):
        self.decision = decision

    def fit(self, X, y=None):
        return self

    def decision_function(self, X):
        return self.decision

    score_samples = decision_function

    def predict(self, X):
        return as_labels(self.decision >= 0)

    def __sklearn_is_fitted__(self):
        return True


def as_scoring(scoring: Any) -> Scoring:
    """The scoring that a name or a callable stands for."""
    if isinstance(scoring, str) and scoring in NAMES:
        return NAMES[scoring]
    if isinstance(scoring, str) or callable(scoring):
        return Scoring(get_scorer(scoring), None, False)
    raise ValueError(f"scoring={scoring!r} must be one of {sorted(NAMES)}, the name of a scikit-learn scorer, or a callable.")


def rates(decisions, is_target) -> tuple[np.ndarray, np.ndarray]:
    """TPR and TNR of every row of decision values; NaN for a kind that is absent."""
    accepted = (decisions >= 0).astype(np.float64)
    kinds = np.array([is_target, ~is_target], dtype=np.float64)
    counts = kinds @ accepted.T
    targets = np.count_nonzero(is_target)
    outliers = is_target.size - targets
    if targets and outliers:
        return counts[0] / targets, (outliers - counts[1]) / outliers
    nan = np.full(len(decisions), np.nan)  # which the search names
    return (counts[0] / targets if targets else nan), ((outliers - counts[1]) / outliers if outliers else nan)


def _gmeans(decisions, is_target):
    return metrics.geometric_mean(*rates(decisions, is_target))


def _balanced(decisions, is_target):
    tpr, tnr = rates(decisions, is_target)
    return 0.5 * (tpr + tnr)


NAMES = {
    "gmean": Scoring(metrics.gmean_scorer, _gmeans, True),
    "balanced_accuracy": Scoring(get_scorer("balanced_accuracy"), _balanced, True),
    "tpr_at_tnr": Scoring(metrics.tpr_at_tnr_scorer, None, True),
    "roc_auc": Scoring(get_scorer("roc_auc"), None, True),
    "average_precision": Scoring(get_scorer("average_precision"), None, True),
}
