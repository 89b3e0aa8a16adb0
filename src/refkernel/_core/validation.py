"""Checks that all rooms share: labels (-1 marks a known outlier, everything else is a target), numbers and rows of samples."""

import functools
import inspect
import itertools
import math
import warnings
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data as check_data

from .text import named

OUTLIER = -1
WAY_OUT = "rk.TableDetector takes text, truth values, dates and missing cells; in a pipeline, rk.TableEncoder() goes before {name}."
SYMMETRY_TOLERANCE = 1e-8  # rounding makes a kernel matrix asymmetric or indefinite by far less than this share of its size
LEAST_NU = 1e-9  # for a smaller nu, nu n is lost in rounding
RARE = 0.3  # two numbers in y, neither -1, are an error if one marks less than this share: it looks like outliers; else a warning


def target_mask(X: Any, y: Any, warn: bool = True) -> np.ndarray:
    """True for the rows that are targets."""
    if y is None:
        return np.ones(X.shape[0], dtype=bool)
    if warn:
        y = column_or_1d(y)
        check_consistent_length(X, y)
        if y.dtype.kind in "OU" and any(isinstance(label, str) and label.strip() == str(OUTLIER) for label in y.tolist()):
            raise ValueError(
                "y holds '-1' as text, which is not an outlier's label: pass numbers, -1 for known outliers and +1 for targets."
            )
    is_target = np.asarray(y != OUTLIER, dtype=bool)
    if not is_target.any():
        raise ValueError("All labels are -1 (known outliers): at least one target is needed. Targets are labelled +1.")
    if warn and not np.isin(y[is_target], (1,)).all():
        found = set(y.tolist())
        rarer = min(np.count_nonzero(y == label) for label in found) / y.size
        unusual = sorted({label for label in y[is_target].tolist() if label != 1}, key=str)
        if len(found) == 2 and OUTLIER not in found and (y.dtype.kind not in "fiu" or rarer < RARE):
            shown = " and ".join(map(repr, sorted(found, key=str)))
            raise ValueError(
                f"y holds {shown}, and neither is -1: only -1 marks a known outlier. Pass -1 for outliers and +1 for targets, "
                "for example np.where(y == the value of targets, 1, -1); or leave y out if all rows are targets."
            )
        warnings.warn(f"Labels {unusual[:5]} in y are taken as targets: only -1 marks an outlier, +1 a target.", UserWarning, stacklevel=3)
    return is_target


def as_labels(is_target: np.ndarray) -> np.ndarray:
    """+1 for targets, -1 for outliers."""
    return np.where(is_target, 1, OUTLIER)


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number (a bool is not)."""
    return (type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))) and math.isfinite(value)


def check_positive(name: str, value: Any) -> None:
    """Raise unless the value is a positive number."""
    if not (is_number(value) and value > 0):
        raise ValueError(f"{name}={value!r} must be a positive number.")


def check_nu(nu: Any) -> float:
    """nu, after checking that it is a share that rounding does not lose."""
    if not (is_number(nu) and 0 < nu <= 1):
        raise ValueError(f"nu={nu!r} must be in (0, 1]: the share of targets that may be left outside.")
    if nu < LEAST_NU:
        raise ValueError(
            f"nu={nu!r} is below {LEAST_NU:g}, too small to be a share of the samples. To leave almost no target outside, use nu = 1 / n."
        )
    return float(nu)


def check_bound(C: Any, n: float) -> float:
    """C, after checking that the weights of n targets (or of that total weight), each at most C, can sum to 1."""
    check_positive("C", C)
    if C * n < 1.0 - 1e-12:
        raise ValueError(f"C={C:g} leaves the dual infeasible: {n:g} targets need C >= {1.0 / n:.3g}. Raise C, or pass nu instead.")
    return float(C)


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} must be one of {list(choices)}.")


listed = functools.partial(named, shown=10)  # names of columns, as a message shows them


def validate_data(estimator: Any, X: Any, **options: Any) -> Any:
    """scikit-learn's ``validate_data``, with errors about text and missing values that name the columns and a way out."""
    X = unmasked(X)
    try:
        return check_data(estimator, X, **options)
    except (TypeError, ValueError) as error:
        found = None if "feature" in str(error) else _unusable(X)
        if found is None:
            raise
        raise ValueError(f"{found} {WAY_OUT.format(name=type(estimator).__name__)}") from error


def unmasked(X: Any) -> Any:
    """Masked cells as NaN: scikit-learn and NumPy would take what is behind the mask."""
    if not isinstance(X, np.ma.MaskedArray) or X.dtype.kind not in "fiubO":
        return X
    return np.ma.filled(X if X.dtype.kind == "O" else X.astype(np.float64), np.nan)


def _unusable(X: Any) -> str | None:
    """Which columns hold text or dates or, if none does, which lack values; None where X has another problem."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        typed = zip(X.columns, X.dtypes, strict=True)
        others = [f"{name} ({dtype})" for name, dtype in typed if getattr(dtype, "kind", "O") not in "biuf"]
        return f"Columns that do not hold numbers: {listed(others)}." if others else _lacking(X.columns, X.isna().to_numpy())
    if isinstance(X, list):
        X = np.array(X, dtype=object)
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind == "c":
        return None
    names = [f"column {number}" for number in range(X.shape[1])]
    if X.dtype.kind == "f":
        return _lacking(names, np.isnan(X))
    for kind, what in ((str, "text"), (complex, "complex numbers")):
        if found := [name for name, column in zip(names, X.T, strict=True) if any(isinstance(cell, kind) for cell in column)]:
            return f"X holds {what} in {listed(found)}."
    return None


def _lacking(names: Iterable[Any], missing: np.ndarray) -> str | None:
    counted = zip(names, missing.sum(axis=0).tolist(), strict=True)
    found = [f"{name} ({count:,} of {len(missing):,} rows)" for name, count in counted if count]
    return f"Input X contains NaN: {listed(found)}." if found else None


def validated(estimator: Any, X: Any, reset: bool, accept_sparse: str | bool) -> Any:
    """``validate_data`` for rows of doubles. Arrays that it would only look at skip its search for data frames: a third of a small fit."""
    known = _is_plain(X) and not hasattr(estimator, "feature_names_in_") and (reset or estimator.n_features_in_ == X.shape[1])
    if not known:
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


def safe_indexing(X: Any, rows: Any) -> Any:
    """Rows of an array, a sparse matrix, a data frame or a list, by numbers or by a mask."""
    if hasattr(X, "iloc"):
        return X.iloc[np.asarray(rows)]
    if isinstance(X, list | tuple):
        rows = np.asarray(rows)
        return list(itertools.compress(X, rows)) if rows.dtype == bool else [X[i] for i in rows]
    return (X.tocsr() if sp.issparse(X) else X)[np.asarray(rows)]


def safe_split(estimator: Any, X: Any, y: Any, rows: Any, train: Any = None) -> tuple[Any, Any]:
    """The rows of X and y; of a kernel matrix, those rows and the columns of the training samples."""
    y = None if y is None else safe_indexing(y, rows)
    if not get_tags(estimator).input_tags.pairwise:
        return safe_indexing(X, rows), y
    if not hasattr(X, "shape"):
        raise ValueError("Precomputed kernels must be passed as arrays or sparse matrices.")
    rows = np.asarray(rows)
    return X[np.ix_(rows, rows if train is None else np.asarray(train))], y


def rows_of_params(samples: Any, params: dict[str, Any], rows: Any) -> dict[str, Any]:
    """Parameters for ``fit``: those with one value for each sample are cut to some rows."""
    n = len(samples) if isinstance(samples, range | list | tuple) else samples.shape[0]

    def per_sample(value: Any) -> bool:
        return getattr(value, "shape", (None,))[:1] == (n,) or (isinstance(value, list | tuple) and len(value) == n)

    return {name: safe_indexing(value, rows) if per_sample(value) else value for name, value in params.items()}


class QuickParams(BaseEstimator):
    """A BaseEstimator that reads the signature of a class once: copies and searches ask for parameters again and again."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        key: Any = type(self)
        found = {name: getattr(self, name) for name in _names_of(key)}
        nested = {name: value for name, value in found.items() if deep and hasattr(value, "get_params") and not isinstance(value, type)}
        return found | {f"{name}__{key}": value for name, part in nested.items() for key, value in part.get_params().items()}


@functools.cache
def _names_of(cls: Any) -> tuple[str, ...]:
    return tuple(sorted(name for name in inspect.signature(cls.__init__).parameters if name not in ("self", "args", "kwargs")))
