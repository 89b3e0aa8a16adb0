"""What the columns of a data frame are, and their cells as each kind of part takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._validation import listed
from .column import CATEGORY, DATE, NUMBER

__all__ = ["READERS", "check_names", "dates_as_seconds", "kinds_of"]

KINDS = (NUMBER, CATEGORY, DATE)

KIND_OF_OBJECTS = {
    **dict.fromkeys(("string", "boolean", "empty"), CATEGORY),
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal"), NUMBER),
    **dict.fromkeys(("date", "datetime", "datetime64"), DATE),
}
"""The kind of a column by what pandas finds its Python objects to be."""


def check_names(X: Any) -> None:
    """An error unless X is a data frame whose columns have names of their own."""
    if not hasattr(X, "columns"):
        raise TypeError(f"TableEncoder takes columns by name, and X is a {type(X).__name__}: pass a pandas DataFrame.")
    names = list(X.columns)
    if not all(isinstance(name, str) for name in names):
        raise TypeError("TableEncoder takes columns by name, and some names are not text: X.columns = X.columns.astype(str).")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"X has more than one column of the name {listed(twice)}: rename them.")


def kinds_of(X: Any, given: Any) -> np.ndarray:
    """The kind of each column: as given for all of them or, by name, for some; by its type otherwise."""
    if given is not None and not isinstance(given, Mapping):
        return _checked(list(given), len(X.columns))
    given = given or {}
    absent = [name for name in given if name not in X.columns]
    if absent:
        raise ValueError(f"kinds names columns that X does not have: {listed(absent)}.")
    kinds = [given[name] if name in given else _kind(X[name]) for name in X.columns]
    refused = [f"{name} ({X[name].dtype})" for name, kind in zip(X.columns, kinds, strict=True) if kind is None]
    if refused:
        raise TypeError(
            f"Columns that hold neither numbers, text, truth values nor dates, or several of them: {listed(refused)}. Convert them "
            "(durations by .dt.total_seconds(), mixed cells by .astype(str)), or drop them."
        )
    return _checked(kinds, len(kinds))


def _checked(kinds: list[Any], count: int) -> np.ndarray:
    if len(kinds) != count:
        raise ValueError(f"kinds names {len(kinds)} columns, and X has {count}.")
    wrong = [kind for kind in kinds if kind not in KINDS]
    if wrong:
        raise ValueError(f"kinds holds {wrong[0]!r}; it must be one of {', '.join(KINDS)}.")
    return np.array(kinds)  # a list of thousands would fill a model file


def _kind(column: Any) -> str | None:
    from pandas.api.types import infer_dtype, is_bool_dtype, is_complex_dtype, is_datetime64_any_dtype, is_numeric_dtype, is_object_dtype

    if is_bool_dtype(column) or column.dtype.name in ("category", "string", "str"):
        return CATEGORY
    if is_datetime64_any_dtype(column) or column.dtype.kind == "M":  # pandas 2.2 does not count those of pyarrow
        return DATE
    if is_numeric_dtype(column):
        return None if is_complex_dtype(column) else NUMBER
    if is_object_dtype(column):
        return KIND_OF_OBJECTS.get(infer_dtype(column, skipna=True))
    return CATEGORY if column.dtype.kind in "OUT" else None


def _floats(part: Any) -> np.ndarray:
    if all(kind == np.float64 for kind in part.dtypes):
        return np.asarray(part.to_numpy(dtype=np.float64))
    return np.column_stack([_numbers(part[name]) for name in part.columns])


def _numbers(column: Any) -> np.ndarray:
    import pandas as pd

    try:
        return pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Column {column.name} must hold numbers, as in training: {error}.") from error


def _texts(part: Any) -> np.ndarray:
    """Categories as text, truth values as true and false; NaN where a cell is missing."""
    from pandas.api.types import infer_dtype

    (name,) = part.columns
    cells = part[name].to_numpy(dtype=object, na_value=np.nan)
    if infer_dtype(cells, skipna=True) not in ("string", "empty"):
        cells = np.array([_text(cell) for cell in cells], dtype=object)
    return cells[:, None]


def _text(cell: Any) -> Any:
    if cell is None or cell != cell:
        return np.nan
    return str(bool(cell)).lower() if isinstance(cell, bool | np.bool_) else str(cell)


def dates_as_seconds(part: Any) -> np.ndarray:
    """A column of dates as seconds since 1970."""
    import pandas as pd
    from pandas.api.types import infer_dtype, is_datetime64_any_dtype, is_numeric_dtype

    (name,) = part.columns
    column = part[name]
    if is_numeric_dtype(column):
        return _floats(part)
    if not is_datetime64_any_dtype(column) and KIND_OF_OBJECTS.get(infer_dtype(column, skipna=True)) != DATE:
        raise ValueError(f"{name} holds dates: pass them as pandas.to_datetime makes them, or as seconds since 1970.")
    dates = pd.to_datetime(pd.Series(column.to_numpy(dtype=object, na_value=None)), utc=True).dt.tz_convert(None)
    seconds = dates.to_numpy().astype("datetime64[us]")
    return np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64) / 1e6)[:, None]


READERS: dict[str, Callable[[Any], np.ndarray]] = {NUMBER: _floats, DATE: dates_as_seconds, CATEGORY: _texts}
"""From some columns of a kind to the matrix that its part takes."""
