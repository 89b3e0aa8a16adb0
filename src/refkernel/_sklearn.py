"""What this package uses of scikit-learn's insides, tested with 1.6 to 1.9. If a release moves a private name, adapt this module."""

import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import validate_data

__all__ = ["BaseSearchCV", "LabelledOutlierMixin", "QuickParams", "check_method_params", "safe_indexing", "safe_split", "validated"]


class LabelledOutlierMixin(OutlierMixin):
    """An OutlierMixin whose ``fit_predict`` passes the labels on to ``fit``."""

    def fit_predict(self, X: Any, y: npt.ArrayLike | None = None, **kwargs: Any) -> np.ndarray:
        """Fit, and label the training rows. What a threshold promises, it promises for new samples, not for these rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Training samples, as ``fit`` takes them.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers.
        **kwargs
            Passed to ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            +1 for samples that are accepted, -1 for those rejected.
        """
        estimator: Any = self
        return estimator.fit(X, y, **kwargs).predict(X)


def validated(estimator: Any, X: Any, reset: bool, accept_sparse: str | bool) -> Any:
    """``validate_data`` for rows of doubles. Arrays that it would only look at skip its search for data frames: a third of a small fit."""
    if not (_is_plain(X) and _is_expected(estimator, X, reset)):
        return validate_data(estimator, X, reset=reset, accept_sparse=accept_sparse, dtype=np.float64, order="C")
    if reset:
        estimator.n_features_in_ = X.shape[1]
    return X


def _is_plain(X: Any) -> bool:
    """Whether X is an array of finite doubles, row by row."""
    if not (type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size and X.flags.c_contiguous):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(X.sum())


def _is_expected(estimator: Any, X: np.ndarray, reset: bool) -> bool:
    """Whether the columns are those of fit, without names."""
    return not hasattr(estimator, "feature_names_in_") and (reset or estimator.n_features_in_ == X.shape[1])


class QuickParams(BaseEstimator):
    """A BaseEstimator that reads the signature of a class once: copies and searches ask for parameter names again and again."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        key: Any = cls
        return list(_names_of(key))


@functools.cache
def _names_of(cls: Any) -> tuple[str, ...]:
    return tuple(super(QuickParams, cls)._get_param_names())
