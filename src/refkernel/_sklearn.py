"""What this package uses of scikit-learn's insides, tested with 1.6 to 1.9. If a release moves a private name, adapt this module."""

import functools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import validate_data as check_data

from ._validation import listed

__all__ = [
    "BaseSearchCV",
    "LabelledOutlierMixin",
    "QuickParams",
    "check_method_params",
    "safe_indexing",
    "safe_split",
    "validate_data",
    "validated",
]

WAY_OUT = "make_pipeline(rk.TableEncoder(), rk.{name}()) takes text, truth values, dates and missing cells of a pandas DataFrame."


def validate_data(estimator: Any, X: Any, **options: Any) -> Any:
    """scikit-learn's ``validate_data``, with errors about text and missing values that name the columns and a way out."""
    try:
        return check_data(estimator, X, **options)
    except (TypeError, ValueError) as error:
        found = None if "feature" in str(error) else _unusable(X)
        if found is None:
            raise
        raise ValueError(f"{found} {WAY_OUT.format(name=type(estimator).__name__)}") from error


def _unusable(X: Any) -> str | None:
    """Which columns hold text or dates or, if none does, which lack values; None where X has another problem."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        typed = zip(X.columns, X.dtypes, strict=True)
        others = [f"{name} ({dtype})" for name, dtype in typed if getattr(dtype, "kind", "O") not in "biuf"]
        return f"Columns that do not hold numbers: {listed(others)}." if others else _lacking(X.columns, X.isna().to_numpy())
    if isinstance(X, list):
        X = np.array(X, dtype=object)
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return None
    names = [f"column {number}" for number in range(X.shape[1])]
    if X.dtype.kind == "f":
        return _lacking(names, np.isnan(X))
    texts = [name for name, column in zip(names, X.T, strict=True) if any(isinstance(cell, str) for cell in column)]
    return f"X holds text in {listed(texts)}." if texts else None


def _lacking(names: Iterable[Any], missing: np.ndarray) -> str | None:
    counted = zip(names, missing.sum(axis=0).tolist(), strict=True)
    found = [f"{name} ({count:,} of {len(missing):,} rows)" for name, count in counted if count]
    return f"Input X contains NaN: {listed(found)}." if found else None


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
