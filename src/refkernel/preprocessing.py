"""Standardise, and fill missing values, by the targets."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from ._sklearn import safe_indexing
from ._validation import target_mask

CONSTANT = 10 * np.finfo(float).eps
"""A feature whose deviation is below this share of its size varies by rounding only."""


class TargetScaler(TransformerMixin, BaseEstimator):
    """Standardise features by the mean and standard deviation (n - 1) of the target rows; drop features constant in them.

    Attributes
    ----------
    mean_, scale_ : (n_kept,) mean and standard deviation of the kept features over the targets.
    kept_ : (n_features,) bool, False for the features that are constant in the targets.
    constants_ : (n_features - n_kept,) the values of those features in the targets.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.TargetScaler().fit_transform([[1.0, 5.0], [3.0, 5.0]])
    array([[-0.70710678],
           [ 0.70710678]])
    """

    def fit(self, X, y=None):
        """Learn mean, deviation and the constant features from the rows of X whose y is not -1."""
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        X = np.asarray(X[target_mask(X, y)], dtype=np.float64)
        if X.shape[0] < 2:
            raise ValueError("A standard deviation needs at least 2 target rows; got 1 sample (n_samples = 1).")
        unit = np.abs(X).max(axis=0)
        unit[unit == 0] = 1.0
        deviation = (X / unit).std(axis=0, ddof=1)
        self.kept_ = deviation > CONSTANT
        if not self.kept_.any():
            raise ValueError(f"All {X.shape[1]} features are constant over the {X.shape[0]} target rows: nothing is left to scale.")
        self.mean_ = ((X / unit).mean(axis=0) * unit)[self.kept_]
        self.scale_ = (deviation * unit)[self.kept_]
        self.constants_ = X[0, ~self.kept_]
        return self

    def transform(self, X):
        """(X - mean_) / scale_ for the kept features."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return ((X[:, self.kept_] - self.mean_) / self.scale_).astype(X.dtype, copy=False)

    def inverse_transform(self, X):
        """All the features again: the kept ones in their own units, the dropped ones at their constant."""
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != self.mean_.size:
            raise ValueError(f"X has {X.shape[1]} features; transform gives {self.mean_.size}, and inverse_transform expects as many.")
        found = np.empty((X.shape[0], self.kept_.size), dtype=X.dtype)
        found[:, self.kept_] = X * self.scale_ + self.mean_
        found[:, ~self.kept_] = self.constants_
        return found

    def get_feature_names_out(self, input_features=None):
        """The names of the kept features."""
        return OneToOneFeatureMixin.get_feature_names_out(self, input_features)[self.kept_]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class TargetImputer(SimpleImputer):
    """scikit-learn's ``SimpleImputer``, with the statistics of the target rows: known outliers fill nothing.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rk.TargetImputer(strategy="median").fit_transform([[1.0], [3.0], [np.nan], [90.0]], [1, 1, 1, -1])
    array([[ 1.],
           [ 3.],
           [ 2.],
           [90.]])
    """

    def fit(self, X, y=None):
        """Learn what to fill with from the rows of X whose y is not -1."""
        if y is None:
            return super().fit(X)
        if sp.issparse(X):
            X = X.tocsr()
        elif not isinstance(X, list) and not hasattr(X, "iloc"):
            X = np.asarray(X)
        return super().fit(safe_indexing(X, np.flatnonzero(target_mask(X, y))))

    def fit_transform(self, X, y=None, **params):
        """Fill the missing values of all rows by those of the targets."""
        return self.fit(X, y).transform(X)
