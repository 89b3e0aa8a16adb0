"""Scores of one-class predictions: +1 is a target, -1 an outlier."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ._core.validation import OUTLIER

__all__ = ["gmean_score", "gmean_scorer", "tpr_at_tnr_score", "tpr_at_tnr_scorer", "true_rates"]
__dir__ = __all__.copy


def true_rates(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> tuple[float, float]:
    """Compute the share of targets that are accepted and the share of outliers that are rejected.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        -1 for outliers and for rejected samples, anything else for targets and for accepted ones.

    Returns
    -------
    tpr, tnr : float
        The shares of targets that are accepted and of outliers that are rejected; NaN if there are none.

    Examples
    --------
    >>> from refkernel.metrics import true_rates
    >>> true_rates([1, 1, -1, -1], [1, -1, -1, -1])
    (0.5, 1.0)
    """
    truth, decided = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(truth, decided)
    is_target, accepted = truth != OUTLIER, decided != OUTLIER
    tpr = accepted[is_target].mean() if is_target.any() else np.nan
    tnr = (~accepted[~is_target]).mean() if not is_target.all() else np.nan
    return float(tpr), float(tnr)


def geometric_mean(tpr: npt.ArrayLike, tnr: npt.ArrayLike) -> Any:
    """sqrt(TPR · TNR), for numbers or for arrays."""
    return np.sqrt(np.multiply(tpr, tnr))


def gmean_score(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> float:
    """Compute the geometric mean of TPR and TNR.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        -1 for outliers and for rejected samples, anything else for targets and for accepted ones.

    Returns
    -------
    float
        From 0 to 1; NaN, with a warning, if ``y_true`` holds only targets or only outliers.

    Examples
    --------
    >>> from refkernel.metrics import gmean_score
    >>> gmean_score([1, 1, -1, -1], [1, -1, -1, -1]).__round__(4)
    0.7071
    """
    tpr, tnr = true_rates(y_true, y_pred)
    if np.isnan(tpr + tnr):
        absent = "targets (+1)" if np.isnan(tpr) else "outliers (-1)"
        warnings.warn(f"gmean is undefined: y_true has no {absent}.", UndefinedMetricWarning, stacklevel=2)
    return float(geometric_mean(tpr, tnr))


def tpr_at_tnr_score(y_true: npt.ArrayLike, score: npt.ArrayLike, tnr: float = 0.95) -> float:
    """Compute the share of targets accepted by the threshold that rejects a given share of the outliers.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        -1 for outliers, anything else for targets.
    score : array-like of shape (n_samples,)
        Decision values or scores; higher is more normal.
    tnr : float, default=0.95
        The share of outliers to reject.

    Returns
    -------
    float
        From 0 to 1; NaN, with a warning, if ``y_true`` holds only targets or only outliers.

    Examples
    --------
    >>> from refkernel.metrics import tpr_at_tnr_score
    >>> tpr_at_tnr_score([1, 1, 1, -1, -1], [3.0, 2.0, 0.5, 1.0, 0.0], tnr=1.0).__round__(4)
    0.6667
    """
    truth, values = column_or_1d(y_true), column_or_1d(score)
    check_consistent_length(truth, values)
    is_target = truth != OUTLIER
    if is_target.all() or not is_target.any():
        warnings.warn("tpr_at_tnr is undefined: y_true must hold targets (+1) and outliers (-1).", UndefinedMetricWarning, stacklevel=2)
        return float("nan")
    rejected = int(np.ceil(tnr * (~is_target).sum() - 1e-9))
    threshold = np.sort(values[~is_target])[rejected - 1] if rejected > 0 else -np.inf
    return float((values[is_target] > threshold).mean())


gmean_scorer = make_scorer(gmean_score)
"""gmean as a scikit-learn scorer."""

tpr_at_tnr_scorer = make_scorer(tpr_at_tnr_score, response_method="decision_function")
"""TPR at a TNR of 95 % as a scikit-learn scorer."""
