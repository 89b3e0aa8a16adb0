"""Training rows of numbers, categories or both: what sources read, and how they write new rows of the same kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

__all__ = ["Table", "as_table", "first_rows", "stacked"]

LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True)
class Table:
    """Checked training rows by column: ``columns`` as they came, ``numeric`` the positions of those that hold numbers."""

    columns: list[Any]
    numeric: np.ndarray
    frame: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.columns[0]), len(self.columns)

    @cached_property
    def values(self) -> np.ndarray:
        """The numeric columns (n × p) in double precision."""
        return np.column_stack([np.asarray(self.columns[j], dtype=np.float64) for j in self.numeric])

    @cached_property
    def centre(self) -> np.ndarray:
        """The middle of each numeric column's range."""
        return 0.5 * self.values.min(axis=0) + 0.5 * self.values.max(axis=0)

    @cached_property
    def half_range(self) -> np.ndarray:
        """Half of each numeric column's range; halves first, because the range of huge values may overflow."""
        return 0.5 * self.values.max(axis=0) - 0.5 * self.values.min(axis=0)

    @cached_property
    def scaled(self) -> np.ndarray:
        """The numeric columns moved to [-1, 1]; constant ones to 0."""
        return (self.values - self.centre) / np.where(self.half_range > 0, self.half_range, 1.0)

    def unscaled(self, Z: np.ndarray) -> np.ndarray:
        """The inverse of ``scaled``, kept finite."""
        with np.errstate(over="ignore"):
            return np.clip(self.centre + self.half_range * Z, -LARGEST, LARGEST)

    def varying(self) -> int:
        """How many columns hold more than one value."""
        categories = np.setdiff1d(np.arange(len(self.columns)), self.numeric)
        numbers = np.count_nonzero(self.half_range) if self.numeric.size else 0
        return int(numbers) + sum(first_rows(self.columns[j]).size > 1 for j in categories)

    def built(self, donors: np.ndarray, values: np.ndarray | None = None) -> Any:
        """New rows: column j of row i comes from training row ``donors[i, j]``; numeric columns hold ``values`` if these are given.

        Columns of integers get rounded values within the limits of their type.
        """
        columns = [column.take(donors[:, j]) for j, column in enumerate(self.columns)]
        if values is not None:
            for at, j in enumerate(self.numeric):
                columns[j] = _like(self.columns[j], values[:, at])
        if self.frame is None:
            return np.column_stack(columns)
        made = type(self.frame)(dict(enumerate(columns))).astype(dict(enumerate(self.frame.dtypes)))
        return made.set_axis(self.frame.columns, axis=1)


def as_table(X: Any) -> Table:
    """The rows of an array or a DataFrame, after checking that no value is missing."""
    if sp.issparse(X):
        raise ValueError("Made-up outliers are dense, and X is sparse. Pass X.toarray().")
    if hasattr(X, "iloc"):
        return _of_frame(X)
    X = np.asarray(X) if not hasattr(X, "dtype") else X
    if X.dtype.kind in "OUSb":
        X = check_array(X, dtype=None, ensure_all_finite=False)
        columns = [_plain(X[:, j]) for j in range(X.shape[1])]
    else:
        X = check_array(X, dtype=None)
        columns = list(X.T)
    return _checked(Table(columns, _positions(columns)), [f"Column {j} of X" for j in range(len(columns))])


def first_rows(column: Any) -> np.ndarray:
    """The first row of each value that a column holds."""
    rows: dict[Any, int] = {}
    for i, value in enumerate(np.asarray(column).tolist()):
        rows.setdefault(value, i)
    return np.fromiter(rows.values(), dtype=np.intp)


def stacked(parts: list[Any]) -> Any:
    """Rows of arrays or DataFrames below each other."""
    if not hasattr(parts[0], "iloc"):
        return np.concatenate(parts)
    import pandas as pd

    return pd.concat(parts, ignore_index=True)


def _of_frame(X: Any) -> Table:
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X has shape {X.shape}: at least one row and one column are needed.")
    columns = [X.iloc[:, j].array for j in range(X.shape[1])]
    for name, column in zip(X.columns, columns, strict=True):
        if getattr(column.dtype, "kind", "O") in "mMc":
            raise ValueError(f"Column {name!r} of X holds {column.dtype}, neither numbers nor categories: convert it to one of them.")
    return _checked(Table(columns, _positions(columns), X), [f"Column {name!r} of X" for name in X.columns])


def _positions(columns: list[Any]) -> np.ndarray:
    return np.array([j for j, column in enumerate(columns) if getattr(column.dtype, "kind", "O") in "iuf"], dtype=np.intp)


def _plain(column: np.ndarray) -> np.ndarray:
    """A column of an array of objects: as floats if every value is a number, else unchanged."""
    if column.dtype.kind == "O" and all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in column):
        return column.astype(np.float64)
    return column


def _checked(table: Table, names: list[str]) -> Table:
    for j, column in enumerate(table.columns):
        if j in table.numeric:
            bad = _is_missing(column) | ~np.isfinite(_numbers(column))
            what = "NaN or infinite values"
        else:
            bad, what = _is_missing(column), "missing values"
        if bad.any():
            raise ValueError(
                f"{names[j]} holds {np.count_nonzero(bad)} {what}, the first in row {int(np.argmax(bad))}: impute or drop them before "
                "making up outliers."
            )
    return table


def _is_missing(column: Any) -> np.ndarray:
    if hasattr(column, "isna"):
        return np.asarray(column.isna())
    return np.array([value is None or value != value for value in column.tolist()], dtype=bool)


def _numbers(column: Any) -> np.ndarray:
    return column.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(column, "to_numpy") else np.asarray(column, dtype=np.float64)


def _like(column: Any, values: np.ndarray) -> np.ndarray:
    """Values as a column of the same type: rounded and clipped to its limits if it holds integers."""
    dtype = getattr(column.dtype, "numpy_dtype", getattr(column.dtype, "subtype", column.dtype))
    if dtype.kind not in "iu":
        with np.errstate(over="ignore"):
            return np.clip(values, -np.finfo(dtype).max, np.finfo(dtype).max).astype(dtype)
    limits = np.iinfo(dtype)
    rounded = np.rint(values)
    inside = np.where((rounded > limits.min) & (rounded < limits.max), rounded, 0.0).astype(dtype)
    return np.where(rounded <= limits.min, limits.min, np.where(rounded >= limits.max, limits.max, inside)).astype(dtype)
