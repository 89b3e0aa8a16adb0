"""Data frames: what their columns are, and their cells as parts take them. Those of polars and pyarrow come by way of narwhals."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._core.validation import listed
from .columns import CATEGORY, DATE, KINDS, NUMBER

KIND_OF_OBJECTS = {
    **dict.fromkeys(("string", "boolean", "empty"), CATEGORY),
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal"), NUMBER),
    **dict.fromkeys(("date", "datetime", "datetime64"), DATE),
}
"""The kind of a column by what pandas finds its Python objects to be."""

MANY_COLUMNS = 50  # beyond this many columns of numbers, pandas gathers them faster at once than one by one


def as_frame(X: Any) -> Any:
    """A frame of pandas as it is, one of polars or pyarrow as a frame of pandas; None for anything else."""
    if hasattr(X, "__dask_graph__"):
        raise TypeError("X is a Dask data frame, and a table must be in memory: pass X.compute(), or a part such as X.head(100_000).")
    if hasattr(X, "iloc"):
        return X if hasattr(X, "columns") else None
    if isinstance(X, np.ndarray) or not hasattr(X, "columns"):
        return None
    try:
        import narwhals as nw
    except ImportError as error:
        raise ImportError(f'A {type(X).__name__} is read by narwhals: pip install "refkernel[tables]".') from error
    try:
        found = nw.from_native(X)
    except TypeError:
        return None
    return (found.collect() if isinstance(found, nw.LazyFrame) else found).to_pandas()


def check_names(X: Any) -> Any:
    """The frame of pandas; an error unless X is a data frame whose columns have names of their own."""
    if (frame := as_frame(X)) is None:
        raise TypeError(f"A table's columns are taken by name, and X is a {type(X).__name__}: pass a data frame.")
    names = list(frame.columns)
    if not all(isinstance(name, str) for name in names):
        raise TypeError("A table's columns are taken by name, and some names are not text: X.columns = X.columns.astype(str).")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"X has more than one column of the name {listed(twice)}: rename them.")
    return frame


def kinds_of(X: Any, given: Any) -> np.ndarray:
    """The kind of each column: as given for all of them or, by name, for some; by its type otherwise."""
    if given is not None and not isinstance(given, Mapping):
        return _checked(list(given), len(X.columns))
    given = given or {}
    if absent := [name for name in given if name not in X.columns]:
        raise ValueError(f"kinds names columns that X does not have: {listed(absent)}.")
    kinds = [given[name] if name in given else _kind(X[name]) for name in X.columns]
    if refused := [f"{name} ({X[name].dtype})" for name, kind in zip(X.columns, kinds, strict=True) if kind is None]:
        raise TypeError(
            f"Columns that hold neither numbers, text, truth values nor dates, or several of them: {listed(refused)}. Convert them "
            "(durations by .dt.total_seconds(), mixed cells by .astype(str)), or drop them."
        )
    return _checked(kinds, len(kinds))


def _checked(kinds: list[Any], count: int) -> np.ndarray:
    if len(kinds) != count:
        raise ValueError(f"kinds names {len(kinds)} columns, and X has {count}.")
    if wrong := [kind for kind in kinds if kind not in KINDS]:
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


def _floats(frame: Any, names: Sequence[str]) -> np.ndarray:
    if len(names) > MANY_COLUMNS:
        part = frame[list(names)]
        if all(kind == np.float64 for kind in part.dtypes):
            return np.asarray(part.to_numpy(dtype=np.float64))
    return np.column_stack([_numbers(frame[name]) for name in names])


def _numbers(column: Any) -> np.ndarray:
    import pandas as pd

    if column.dtype == np.float64:
        return column.to_numpy()
    try:
        return pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Column {column.name} must hold numbers, as in training: {error}.") from error


def _texts(frame: Any, names: Sequence[str]) -> np.ndarray:
    """Categories as text, truth values as true and false; NaN where a cell is missing."""
    from pandas.api.types import infer_dtype

    column = frame[names[0]]
    cells = column.to_numpy(dtype=object, na_value=np.nan)
    if column.dtype.name not in ("str", "string") and infer_dtype(cells, skipna=True) not in ("string", "empty"):
        cells = np.array([_text(cell) for cell in cells], dtype=object)
    return cells[:, None]


def _text(cell: Any) -> Any:
    if cell is None or cell != cell:
        return np.nan
    return str(bool(cell)).lower() if isinstance(cell, bool | np.bool_) else str(cell)


def _dates(frame: Any, names: Sequence[str]) -> np.ndarray:
    """A column of dates as seconds since 1970."""
    import pandas as pd
    from pandas.api.types import infer_dtype, is_datetime64_any_dtype, is_numeric_dtype

    column = frame[names[0]]
    if is_numeric_dtype(column):
        return _numbers(column)[:, None]
    if not is_datetime64_any_dtype(column) and column.dtype.kind != "M" and KIND_OF_OBJECTS.get(infer_dtype(column, skipna=True)) != DATE:
        raise ValueError(f"{names[0]} holds dates: pass them as pandas.to_datetime makes them, or as seconds since 1970.")
    if not isinstance(column.dtype, np.dtype | pd.DatetimeTZDtype) or column.dtype.kind == "O":
        column = pd.to_datetime(pd.Series(column.to_numpy(dtype=object, na_value=None)), utc=True)
    seconds = (column if column.dt.tz is None else column.dt.tz_convert(None)).to_numpy().astype("datetime64[us]")
    return np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64) / 1e6)[:, None]


def times_of(frame: Any, name: str) -> np.ndarray | None:
    """The moments in a column as numbers; a row without one has that of the row before. None where it holds text."""
    import pandas as pd

    kind = kinds_of(frame[[name]], None)[0]
    return None if kind == CATEGORY else pd.Series(READERS[kind](frame, [name])[:, 0]).ffill().bfill().to_numpy()


READERS: dict[str, Callable[[Any, Any], np.ndarray]] = {NUMBER: _floats, DATE: _dates, CATEGORY: _texts}
"""From some columns of a kind to the matrix that its part takes."""
