"""Scores of one-class predictions: +1 is a target, -1 an outlier."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
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
    return float(np.sqrt(tpr * tnr))
