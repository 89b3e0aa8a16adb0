"""The private names of scikit-learn that this package uses, tested with 1.6 to 1.9. If a release moves one, adapt this module."""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_method_params as check_method_params

__all__ = ["BaseSearchCV", "LabelledOutlierMixin", "QuickParams", "check_method_params", "safe_indexing", "safe_split"]


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


class QuickParams(BaseEstimator):
    """A BaseEstimator that reads the signature of a class once: copies and searches ask for parameter names again and again."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        key: Any = cls
        return list(_names_of(key))


@functools.cache
def _names_of(cls: Any) -> tuple[str, ...]:
    return tuple(super(QuickParams, cls)._get_param_names())
