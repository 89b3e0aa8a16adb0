"""Scores of candidates on a test fold, all at once if the score allows it, and made-up outliers for a search that knows none."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer
from sklearn.utils import get_tags

from .. import metrics
from .._core.threshold import ThresholdMixin
from .._core.validation import OUTLIER, safe_indexing, target_mask
from ..detectors.pseudo_outliers import as_pseudo_outliers
from ..detectors.pseudo_outliers.table import stacked

LABEL_FREE = "label_free"  # the scoring that tells held-out targets from made-up outliers


@dataclass(frozen=True)
class Scoring:
    """A scorer, its form for many rows of decision values at once if it has one, and whether it needs both kinds of samples."""

    scorer: Callable[..., float]
    at_once: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
    needs_both: bool

    def of_decisions(self, decisions: np.ndarray, X: Any, y: Any) -> np.ndarray:
        """The scores of q models, given their decision values (q × t) on X."""
        if self.at_once is not None:
            return self.at_once(decisions, np.asarray(y) != OUTLIER)
        return np.array([float(self.scorer(Decided(row), X, y)) for row in decisions])


class Decided(ThresholdMixin, BaseEstimator):
    """Stands in for a fitted model whose decision values on the test samples are known, so that a scorer can score it."""

    offset_ = 0.0

    def __init__(self, decision: np.ndarray) -> None:
        self.decision = decision

    def score_samples(self, X: Any) -> np.ndarray:
        return self.decision

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
    accepted = (decisions >= 0).astype(np.float64) @ np.column_stack([is_target, ~is_target])
    targets, outliers = np.count_nonzero(is_target), np.count_nonzero(~is_target)
    with np.errstate(invalid="ignore"):  # 0 / 0 where a kind is missing: the search warns about it
        return accepted[:, 0] / targets, (outliers - accepted[:, 1]) / outliers


def _gmeans(decisions: np.ndarray, is_target: np.ndarray) -> np.ndarray:
    return metrics.geometric_mean(*rates(decisions, is_target))


def _aurocs(decisions: np.ndarray, is_target: np.ndarray) -> np.ndarray:
    """The area under the ROC curve of every row of decision values, ties counting half; NaN if there are no targets or no outliers."""
    targets, outliers = np.count_nonzero(is_target), np.count_nonzero(~is_target)
    ranks = rankdata(decisions, axis=1)[:, is_target].sum(axis=1)
    with np.errstate(invalid="ignore"):
        return (ranks - 0.5 * targets * (targets + 1)) / (targets * outliers)


def _label_free(decisions: np.ndarray, is_target: np.ndarray) -> np.ndarray:
    """The mean of AUROC, which ranks widths, and Gmean, which ranks thresholds."""
    return 0.5 * (_aurocs(decisions, is_target) + _gmeans(decisions, is_target))


def _label_free_scorer(model: Any, X: Any, y: Any) -> float:
    """What a search calls with made-up outliers in X; its own ``score`` needs known ones."""
    if y is None or np.all(np.asarray(y) != OUTLIER):
        raise ValueError('scoring="label_free" makes outliers up in fit only: pass y to score with -1 for the rows of X that are outliers.')
    return float(_label_free(np.reshape(model.decision_function(X), (1, -1)), np.asarray(y) != OUTLIER)[0])


def _balanced(decisions: np.ndarray, is_target: np.ndarray) -> np.ndarray:
    return np.mean(rates(decisions, is_target), axis=0)


NAMES = {
    "gmean": Scoring(metrics.gmean_scorer, _gmeans, True),
    "balanced_accuracy": Scoring(get_scorer("balanced_accuracy"), _balanced, True),
    "tpr_at_tnr": Scoring(metrics.tpr_at_tnr_scorer, None, True),
    "roc_auc": Scoring(get_scorer("roc_auc"), None, True),
    "average_precision": Scoring(get_scorer("average_precision"), None, True),
    LABEL_FREE: Scoring(_label_free_scorer, _label_free, True),
}

FEWEST, MOST = 50, 500  # made-up outliers of a fold: as many as it has training targets, within these limits


def with_made_up(task: Any, splits: list[Any], source: Any, estimator: Any, random_state: np.random.RandomState) -> tuple[Any, list[Any]]:
    """The task with made-up outliers after its samples, and the splits: those drawn from a fold's training targets join its test part."""
    if sp.issparse(task.X):
        raise ValueError(
            'Without known outliers the search makes outliers up (scoring="label_free"). These are dense, and X is sparse: pass '
            "X.toarray(), or y with -1 for known outliers."
        )
    if get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            'scoring="label_free" makes outliers up from samples, and X holds kernel values: pass samples and a kernel that computes '
            "these values, or y with -1 for known outliers."
        )
    X: Any = task.X if hasattr(task.X, "iloc") else np.asarray(task.X)
    y = task.y
    n = total = len(X)
    with warnings.catch_warnings(action="ignore"):  # the refit repeats them
        target_mask(X, y)  # raises for labels that mark nothing
    source = as_pseudo_outliers(source)
    seeds = random_state.randint(np.iinfo(np.int32).max, size=len(splits))
    rows, tests = [X], []
    for split, seed in zip(splits, seeds, strict=True):
        train, test = (np.arange(n)[np.asarray(part)] for part in split)  # from numbers, negative ones too, or from a mask
        targets = safe_indexing(X, train[target_mask(train, None if y is None else y[train], warn=False)])
        drawn = source.draw(targets, min(MOST, max(FEWEST, len(targets))), np.random.RandomState(seed))
        if hasattr(X, "iloc") and not hasattr(drawn, "iloc"):
            drawn = type(X)(drawn, columns=X.columns)
        rows.append(drawn)
        tests.append((train, np.concatenate([test, np.arange(total, total + len(drawn))])))
        total += len(drawn)
    labels = np.ones(n, dtype=int) if y is None else y if y.dtype.kind in "biuf" else y.astype(object)  # so that -1 stays a number
    return task._replace(X=stacked(rows), y=np.concatenate([labels, np.full(total - n, OUTLIER)]), given=n), tests
