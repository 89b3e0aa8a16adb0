"""Standardise, and fill missing values, by the target rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ._sklearn import safe_indexing, validate_data
from ._typing import MatrixLike
from ._validation import target_mask
from .sources import Source, as_source, is_source
from .sources.labels import Labels
from .sources.moments import largest_sizes, moments_of

__all__ = ["TargetImputer", "TargetScaler"]

CONSTANT = 10 * np.finfo(float).eps
"""A feature whose deviation is below this share of its size counts as constant: it varies only by rounding."""


class TargetScaler(TransformerMixin, BaseEstimator):
    """Standardise features by the mean and standard deviation (n - 1) of the target rows; drop features constant in them.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_kept,)
        Mean and standard deviation of the kept features over the targets.
    kept_ : ndarray of shape (n_features,)
        Boolean; False for features that are constant in the targets.
    constants_ : ndarray of shape (n_features - n_kept,)
        The values of the constant features.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.TargetScaler().fit_transform([[1.0, 5.0], [3.0, 5.0]])
    array([[-0.70710678],
           [ 0.70710678]])
    """

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Learn means, deviations and the constant features from the target rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which are ignored.

        Returns
        -------
        self
            The fitted scaler.
        """
        if is_source(X):
            return self._fit_source(as_source(X), y)
        samples: np.ndarray = validate_data(self, X, dtype=[np.float64, np.float32])
        targets = np.asarray(samples[target_mask(samples, y)], dtype=np.float64)
        if targets.shape[0] < 2:
            raise ValueError("A standard deviation needs at least 2 target rows; got 1 sample (n_samples = 1).")
        unit = np.abs(targets).max(axis=0)
        unit[unit == 0] = 1.0
        return self._set(len(targets), unit, (targets / unit).mean(axis=0), (targets / unit).std(axis=0, ddof=1), targets[0])

    def _fit_source(self, source: Source, y: npt.ArrayLike | None) -> Self:
        """Learn from a source, in two passes: the size of each column, then its moments."""
        labels = Labels.of(len(source), y, None)
        self.n_features_in_ = source.n_columns
        unit = source.reduce(largest_sizes, labels.kind).values
        unit[unit == 0] = 1.0
        moments = source.reduce(moments_of, labels.kind, unit)
        if moments.n < 2:
            raise ValueError(f"A standard deviation needs at least 2 target rows; the source has {moments.n}.")
        return self._set(moments.n, unit, moments.mean, np.sqrt(moments.squares / (moments.n - 1)), moments.first * unit)

    def _set(self, n: int, unit: np.ndarray, mean: np.ndarray, deviation: np.ndarray, first: np.ndarray) -> Self:
        """Set the attributes from the mean and the deviation of each column in its unit, and a target row."""
        self.kept_ = deviation > CONSTANT
        if not self.kept_.any():
            raise ValueError(f"All {unit.size} features are constant over the {n} target rows: nothing is left to scale.")
        self.mean_ = (mean * unit)[self.kept_]
        self.scale_ = (deviation * unit)[self.kept_]
        self.constants_ = first[~self.kept_]
        return self

    def transform(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute (X - mean_) / scale_ for the kept features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples in rows.

        Returns
        -------
        ndarray of shape (n_samples, n_kept)
            The standardised samples, finite for finite samples; float32 for float32 input. A source is standardised when it is read.
        """
        check_is_fitted(self)
        if is_source(X):
            return as_source(X).transformed(self.transform, int(self.kept_.sum()))
        samples: np.ndarray = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        with np.errstate(over="ignore"):
            scaled = (samples[:, self.kept_] - self.mean_) / self.scale_
        most = np.finfo(samples.dtype).max
        return np.clip(scaled, -most, most, out=scaled).astype(samples.dtype, copy=False)

    def inverse_transform(self, X: npt.ArrayLike) -> np.ndarray:
        """Restore all features: the kept ones in their own units, the dropped ones at their constant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_kept)
            Standardised samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The samples in their own units.
        """
        check_is_fitted(self)
        scaled: np.ndarray = check_array(X, dtype=[np.float64, np.float32])
        if scaled.shape[1] != self.mean_.size:
            raise ValueError(f"X has {scaled.shape[1]} features; inverse_transform expects the {self.mean_.size} that transform returns.")
        found = np.empty((scaled.shape[0], self.kept_.size), dtype=scaled.dtype)
        found[:, self.kept_] = scaled * self.scale_ + self.mean_
        found[:, ~self.kept_] = self.constants_
        return found

    def get_feature_names_out(self, input_features: npt.ArrayLike | None = None) -> np.ndarray:
        """Name the kept features.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of all features; those seen in ``fit`` by default.

        Returns
        -------
        ndarray of str
            The names of the kept features.
        """
        return OneToOneFeatureMixin.get_feature_names_out(self, input_features)[self.kept_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class TargetImputer(SimpleImputer):
    """scikit-learn's ``SimpleImputer`` with statistics of the target rows only: known outliers are ignored.

    Parameters
    ----------
    missing_values : int, float, str, np.nan, None or pandas.NA, default=np.nan
        The placeholder for missing values.
    strategy : {"mean", "median", "most_frequent", "constant"} or callable, default="mean"
        How to compute the fill values.
    fill_value : str or number, optional
        The value for ``strategy="constant"``.
    copy : bool, default=True
        Whether to copy X.
    add_indicator : bool, default=False
        Whether to add columns that mark filled values.
    keep_empty_features : bool, default=False
        Whether to keep features that are missing in all targets.

    Attributes
    ----------
    statistics_, indicator_, n_features_in_, feature_names_in_
        As for ``sklearn.impute.SimpleImputer``.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rk.TargetImputer(strategy="median").fit_transform([[1.0], [3.0], [np.nan], [90.0]], [1, 1, 1, -1])
    array([[ 1.],
           [ 3.],
           [ 2.],
           [90.]])
    """

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None) -> Self:
        """Learn the fill values from the target rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which are ignored.

        Returns
        -------
        self
            The fitted imputer.
        """
        if y is None:
            return super().fit(X)
        rows: Any = X
        if sp.issparse(rows):
            rows = rows.tocsr()
        elif not isinstance(rows, list) and not hasattr(rows, "iloc"):
            rows = np.asarray(rows)
        return super().fit(safe_indexing(rows, np.flatnonzero(target_mask(rows, y))))

    def fit_transform(self, X: MatrixLike, y: npt.ArrayLike | None = None, **params: Any) -> np.ndarray:
        """Fill the missing values of all rows with statistics of the target rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which are ignored.
        **params
            Not used.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features_out)
            The samples without missing values.
        """
        return self.fit(X, y).transform(X)
