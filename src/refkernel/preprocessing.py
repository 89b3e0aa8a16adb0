"""Standardise, and fill missing values, by the target rows."""

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ._core.file_rules import FEATURES, Array, Rule
from ._core.types import MatrixLike
from ._core.validation import safe_indexing, target_mask, unmasked, validate_data
from .large import as_source, is_source
from .large.labels import Labels, largest_sizes, moments_of

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

    _file_rules: ClassVar[dict[str, Rule]] = {
        **FEATURES,
        "kept_": Array(("d",), dtype="b"),
        "mean_": Array(("k",)),
        "scale_": Array(("k",)),
        "constants_": Array(("c",)),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """A feature is kept or constant."""
        kept = int(self.kept_.sum())
        fits = (kept, sizes["d"] - kept) == (sizes["k"], sizes["c"])
        return None if fits else f"mean_ has {sizes['k']} values, but {kept} features are kept"

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
            source = as_source(X)
            self.n_features_in_, n, reduce = source.n_columns, len(source), source.reduce
        else:
            samples: np.ndarray = validate_data(self, X, dtype=[np.float64, np.float32])
            n, reduce = len(samples), lambda function, *state: function(samples, 0, *state)
        kind = Labels.of(n, y, None).kind
        unit = reduce(largest_sizes, kind).value
        unit[unit == 0] = 1.0
        moments = reduce(moments_of, kind, unit)
        if moments.n < 2:
            raise ValueError(f"A standard deviation needs at least 2 target rows; got {moments.n} sample (n_samples = {moments.n}).")
        deviation = np.sqrt(moments.squares / (moments.n - 1))
        self.kept_ = deviation > CONSTANT
        if not self.kept_.any():
            raise ValueError(f"All {unit.size} features are constant over the {moments.n} target rows: nothing is left to scale.")
        self.mean_ = (moments.mean * unit)[self.kept_]
        self.scale_ = (deviation * unit)[self.kept_]
        self.constants_ = (moments.first * unit)[~self.kept_]
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
    missing_values, strategy, fill_value, copy, add_indicator, keep_empty_features : as for ``sklearn.impute.SimpleImputer``
        Its parameters.

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

    _file_rules: ClassVar[dict[str, Rule]] = {**FEATURES, "statistics_": Array(("d",), dtype="fO", finite=False)}

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        try:
            with warnings.catch_warnings(action="ignore"):  # a row without names
                self.transform(np.full((1, sizes["d"]), self.missing_values, dtype=self.statistics_.dtype))
        except Exception as error:  # what scikit-learn keeps for itself is checked by using it
            return f"cannot fill a row: {error}"
        return None

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None) -> Self:
        X = unmasked(X)
        if y is None:
            return super().fit(X)
        rows = X if hasattr(X, "iloc") or hasattr(X, "tocsr") or isinstance(X, list) else np.asarray(X)
        return super().fit(safe_indexing(rows, np.flatnonzero(target_mask(rows, y))))

    def transform(self, X: MatrixLike) -> Any:
        return super().transform(unmasked(X))
