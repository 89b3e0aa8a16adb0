"""Training rows of numbers, categories or both: what sources read, and how they write new rows of the same kind."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

LARGEST = np.finfo(np.float64).max


class Table:
    """The columns of an array or a DataFrame without missing values; ``scaled`` are the ``numeric`` ones moved to [-1, 1]."""

    def __init__(self, X: Any) -> None:
        self.frame = X if hasattr(X, "iloc") else None
        self.columns: list[Any] = _of_array(X) if self.frame is None else _of_frame(X)
        kinds = [getattr(column.dtype, "kind", "O") for column in self.columns]
        self.numeric = np.flatnonzero([kind in "iuf" for kind in kinds])
        for j, name in enumerate(range(len(kinds)) if self.frame is None else X.columns):
            bad, what = _unusable(self.columns[j], j in self.numeric)
            if bad.any():
                found = f"{np.count_nonzero(bad)} {what} values, the first in row {bad.argmax()}"
                raise ValueError(f"Column {name!r} of X holds {found}: impute or drop them before making up outliers.")
        self.shape = len(self.columns[0]), len(self.columns)
        values = np.array([np.asarray(self.columns[j], dtype=np.float64) for j in self.numeric]).reshape(-1, self.shape[0]).T.copy()
        low, high = 0.5 * values.min(axis=0), 0.5 * values.max(axis=0)
        self._centre, self.half_range = low + high, high - low
        self.scaled = (values - self._centre) / np.where(self.half_range > 0, self.half_range, 1.0)

    def varying(self) -> int:
        """How many columns hold more than one value."""
        categories = np.setdiff1d(np.arange(len(self.columns)), self.numeric)
        return int(np.count_nonzero(self.half_range)) + sum(first_rows(self.columns[j]).size > 1 for j in categories)

    def built(self, donors: np.ndarray, scaled: np.ndarray | None = None) -> Any:
        """New rows: column j of row i comes from training row ``donors[i, j]``; its numbers are ``scaled`` values if these are given."""
        columns = [column.take(donors[:, j]) for j, column in enumerate(self.columns)]
        if scaled is not None:
            with np.errstate(over="ignore"):
                values = np.clip(self._centre + self.half_range * scaled, -LARGEST, LARGEST)
            for j, column in zip(self.numeric, values.T, strict=True):
                columns[j] = _like(self.columns[j], column)
        if self.frame is None:
            return np.column_stack(columns)
        made = type(self.frame)(dict(enumerate(columns))).astype(dict(enumerate(self.frame.dtypes)))
        return made.set_axis(self.frame.columns, axis=1)


def first_rows(column: Any) -> np.ndarray:
    """The first row of each value that a column holds."""
    values = np.asarray(column).tolist()
    return np.sort([*{value: i for i, value in zip(range(len(values) - 1, -1, -1), reversed(values), strict=True)}.values()])


def stacked(parts: list[Any]) -> Any:
    """Rows of arrays or DataFrames below each other."""
    if not hasattr(parts[0], "iloc"):
        return np.concatenate(parts)
    import pandas as pd

    return pd.concat(parts, ignore_index=True)


def _of_frame(X: Any) -> list[Any]:
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: at least one row and one column are needed.")
    columns = [X.iloc[:, j].array for j in range(X.shape[1])]
    for name, column in zip(X.columns, columns, strict=True):
        if getattr(column.dtype, "kind", "O") in "mMc":
            raise ValueError(f"Column {name!r} of X holds {column.dtype}, neither numbers nor categories: convert it to one of them.")
    return columns


def _of_array(X: Any) -> list[np.ndarray]:
    """The columns of an array; those of an array of objects as floats if every value is a number."""
    if sp.issparse(X):
        raise ValueError("Made-up outliers are dense, and X is sparse. Pass X.toarray().")
    X = X if hasattr(X, "dtype") else np.asarray(X)
    X = check_array(X, dtype=None, ensure_all_finite=X.dtype.kind not in "OUSb")
    if X.dtype.kind != "O":
        return list(X.T)
    numbers = (all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in column) for column in X.T)
    return [column.astype(np.float64) if of_numbers else column for column, of_numbers in zip(X.T, numbers, strict=True)]


def _unusable(column: Any, is_number: bool) -> tuple[np.ndarray, str]:
    """Which values of a column are missing or infinite, and what to call them."""
    if is_number:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(column, "to_numpy") else column
        return ~np.isfinite(numbers), "NaN or infinite"
    missing = column.isna() if hasattr(column, "isna") else [value is None or value != value for value in column.tolist()]
    return np.asarray(missing, dtype=bool), "missing"


def _like(column: Any, values: np.ndarray) -> np.ndarray:
    """Values as a column of the same type, within its limits; whole numbers if it holds integers."""
    dtype = getattr(column.dtype, "numpy_dtype", getattr(column.dtype, "subtype", column.dtype))
    if dtype.kind in "iu":
        largest = np.iinfo(dtype).max
        values, low, high = np.rint(values), np.iinfo(dtype).min, largest - largest // 2**53  # the largest that is a float, too
    else:
        low, high = np.finfo(dtype).min, np.finfo(dtype).max
    with np.errstate(over="ignore"):
        return np.clip(values, low, high).astype(dtype)
