"""Scores of one-class predictions: +1 is a target, -1 an outlier."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ._validation import OUTLIER


def true_rates(y_true, y_pred) -> tuple[float, float]:
    """(TPR, TNR): the share of targets that are accepted and of outliers that are rejected; NaN for a kind that is absent."""
    y_true, y_pred = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y_true, y_pred)
    is_target, accepted = y_true != OUTLIER, y_pred != OUTLIER
    tpr = accepted[is_target].mean() if is_target.any() else np.nan
    tnr = (~accepted[~is_target]).mean() if not is_target.all() else np.nan
    return float(tpr), float(tnr)


def geometric_mean(tpr, tnr):
    """sqrt(TPR · TNR), of numbers or of arrays."""
    return np.sqrt(tpr * tnr)


def gmean_score(y_true, y_pred) -> float:
    """The geometric mean of TPR and TNR, in [0, 1]. NaN, with a warning, where one kind is absent from ``y_true``.

    Examples
    --------
    >>> from refkernel.metrics import gmean_score
    >>> gmean_score([1, 1, -1, -1], [1, -1, -1, -1]).__round__(4)
    0.7071
    """
    tpr, tnr = true_rates(y_true, y_pred)
    if np.isnan(tpr + tnr):
        absent = "targets (+1)" if np.isnan(tpr) else "outliers (-1)"
        warnings.warn(f"gmean is undefined: y_true holds no {absent}.", UndefinedMetricWarning, stacklevel=2)
    return float(geometric_mean(tpr, tnr))


def tpr_at_tnr_score(y_true, score, tnr=0.95) -> float:
    """The share of targets that is accepted by the threshold that rejects a share ``tnr`` of the outliers.

    Examples
    --------
    >>> from refkernel.metrics import tpr_at_tnr_score
    >>> tpr_at_tnr_score([1, 1, 1, -1, -1], [3.0, 2.0, 0.5, 1.0, 0.0], tnr=1.0).__round__(4)
    0.6667
    """
    y_true, score = column_or_1d(y_true), column_or_1d(score)
    check_consistent_length(y_true, score)
    is_target = y_true != OUTLIER
    if is_target.all() or not is_target.any():
        warnings.warn("tpr_at_tnr is undefined: y_true holds one kind only.", UndefinedMetricWarning, stacklevel=2)
        return float("nan")
    rejected = int(np.ceil(tnr * (~is_target).sum() - 1e-9))
    threshold = np.sort(score[~is_target])[rejected - 1] if rejected > 0 else -np.inf
    return float((score[is_target] > threshold).mean())


gmean_scorer = make_scorer(gmean_score)
"""gmean as a scikit-learn scorer."""

tpr_at_tnr_scorer = make_scorer(tpr_at_tnr_score, response_method="decision_function")
"""TPR at a TNR of 95 % as a scikit-learn scorer."""
