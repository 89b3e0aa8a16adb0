"""What the columns of a table mean to a model: numbers, categories, missing values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_object_dtype, is_string_dtype

from ..exceptions import TableError

try:
    import pyarrow as pa
    import pyarrow.compute as arrow
except ImportError:  # the extra parquet; numbers are then read by pandas
    pa = None

MISSING = ("", "na", "n/a", "nan", "null", "?")
"""Texts that stand for a missing value, in any case."""

MOSTLY = 0.5
"""A text column with at least this share of numbers is meant to be numeric: its other values are mistakes."""

MANY_DIFFERENT = 0.5
"""A text column that differs in more than this share of its rows names the rows and says little about them."""

MOST_CATEGORIES = 1_000
"""Every category becomes a feature: more than this cost memory and time, and are hardly seen twice."""

FEW_ROWS = 10
"""In fewer rows than this, values all differ by chance."""

SHOWN = 5
"""Values, or columns, that a message names."""

OTHER_MARK = {".": r"[+-]?\d*,\d+", ",": r"[+-]?\d*\.\d+"}
"""For each decimal mark, a number that is written with the other one."""

SWAPPED = str.maketrans(",.", ".,")

NAMES_OF_MARKS = {".": "points", ",": "commas"}


@dataclass(frozen=True)
class Feature:
    """A column that a model uses: a number, or one of some categories."""

    name: str
    categories: tuple[str, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The feature in plain JSON."""
        return {"name": self.name, "categories": None if self.categories is None else list(self.categories)}

    @classmethod
    def from_dict(cls, item: dict[str, Any]) -> Feature:
        """The feature that ``as_dict`` has described."""
        return cls(item["name"], None if item.get("categories") is None else tuple(item["categories"]))


def numbers(column: pd.Series, decimal: str = ".") -> tuple[np.ndarray, np.ndarray]:
    """(values, wrong): float64 with NaN for missing cells, and True for cells that are neither missing nor a number."""
    nothing_wrong = np.zeros(len(column), dtype=bool)
    if not is_text(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), nothing_wrong
    fast = _arrow_numbers(column) if decimal == "." else None
    if fast is not None:
        return fast, nothing_wrong
    text = pd.Series(texts(column), dtype=object)
    if decimal == ",":
        text = text.map(lambda cell: cell.translate(SWAPPED), na_action="ignore")
    parsed = pd.to_numeric(text, errors="coerce").notna().to_numpy()
    values = np.full(len(text), np.nan)
    values[parsed] = text.to_numpy()[parsed].astype(np.float64)
    return values, text.notna().to_numpy() & ~parsed


def texts(column: pd.Series) -> np.ndarray:
    """The cells as text without white space around, NaN for missing ones."""
    cells = pd.Series(column.to_numpy(dtype=object, na_value=np.nan), dtype=object)
    if not is_text(column):
        cells = cells.map(lambda cell: f"{cell:.17g}" if isinstance(cell, float) else str(cell), na_action="ignore")
    cells = cells.map(str.strip, na_action="ignore")
    return cells.mask(cells.map(str.lower, na_action="ignore").isin(MISSING), np.nan).to_numpy(dtype=object)


def is_text(column: pd.Series) -> bool:
    return is_object_dtype(column) or is_string_dtype(column)


def learn_features(frame: pd.DataFrame, decimal: str, categorical: tuple[str, ...]) -> list[Feature]:
    """What each column of a training table is."""
    features = [_learn(frame[name], decimal, name in categorical) for name in frame.columns]
    if not features:
        raise TableError("No column is left to learn from: all were dropped.")
    return features


def model_input(frame: pd.DataFrame, features: list[Feature], decimal: str, first_row: int = 0) -> pd.DataFrame:
    """The features of some rows as the model takes them: float64, or text; NaN where a value is missing."""
    columns = {}
    for feature in features:
        column = frame[feature.name]
        if feature.categories is not None:
            columns[feature.name] = pd.Series(texts(column), dtype=object)
            continue
        _check_type(column)
        values, wrong = numbers(column, decimal)
        if wrong.any():
            raise _not_numbers(column, wrong, decimal, first_row, "--drop it in fit")
        columns[feature.name] = pd.Series(values)
    return pd.DataFrame(columns)


def missing_counts(X: pd.DataFrame) -> Counter[str]:
    """Missing values by column, for the columns that have some."""
    return Counter({str(name): int(count) for name, count in X.isna().sum().items() if count})


def missing_message(counts: Counter[str], rows: int, way_out: str) -> str:
    """What is missing where, and what to do."""
    return f"Missing values in {_listed(counts)} of {rows:,} rows. {way_out}"


def check_finite(X: pd.DataFrame) -> None:
    """An error that names the columns with infinite values."""
    counts = Counter({name: int(np.isinf(X[name]).sum()) for name in X.columns if X[name].dtype == np.float64})
    if +counts:
        raise TableError(f"Infinite values in {_listed(+counts)} rows. Replace them by finite numbers, or leave the cells empty (missing).")


def unseen(X: pd.DataFrame, features: list[Feature]) -> dict[str, Counter[str]]:
    """Categories that the model does not know, with their counts, by column."""
    found = {}
    for feature in features:
        if feature.categories is not None:
            values = X[feature.name].dropna()
            found[feature.name] = Counter(values[~values.isin(feature.categories)].tolist())
    return {name: counts for name, counts in found.items() if counts}


def constant_columns(X: pd.DataFrame) -> list[str]:
    """Columns with one value only."""
    return [str(name) for name in X.columns if X[name].nunique() == 1]


def row_names(X: pd.DataFrame) -> list[str]:
    """Columns that seem to name the rows: texts that nearly all differ, and whole numbers that count the rows."""
    if len(X) < FEW_ROWS:
        return []
    return [str(name) for name in X.columns if _counts_rows(X[name]) or _names_rows(X[name])]


def check_not_empty(X: pd.DataFrame) -> None:
    """An error for columns that have no value at all."""
    empty = [str(name) for name in X.columns if X[name].isna().all()]
    if len(empty) == len(X.columns):
        raise TableError(f"All values of all {len(X):,} rows are missing: there is nothing to learn from.")
    if empty:
        raise TableError(f"No row has a value in {named(empty)}. Leave the empty columns out: --drop {','.join(empty)}.")


def named(names) -> str:
    """Some names for a message."""
    names = list(names)
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _learn(column, decimal, categorical):
    _check_type(column)
    if not categorical:
        values, wrong = numbers(column, decimal)
        if not wrong.any():
            return Feature(str(column.name))
        _check_mark(column, wrong, decimal)
        filled = wrong.sum() + np.isfinite(values).sum()
        if np.isfinite(values).sum() >= MOSTLY * filled:
            raise _not_numbers(
                column, wrong, decimal, 0, f"take it as categories (--categorical {column.name}), or leave it out (--drop {column.name})"
            )
    categories = sorted({cell for cell in texts(column) if cell == cell})
    if len(categories) > MOST_CATEGORIES:
        raise TableError(
            f"Column {column.name} holds {len(categories):,} different texts; at most {MOST_CATEGORIES:,} categories can be used. "
            f"If it names the rows, leave it out: --drop {column.name}."
        )
    return Feature(str(column.name), tuple(categories))


def _check_type(column):
    if not (is_text(column) or is_numeric_dtype(column) or is_bool_dtype(column)):
        raise TableError(
            f"Column {column.name} has the type {column.dtype}; numbers and text can be used. Convert it, or --drop {column.name}."
        )


def _check_mark(column, wrong, decimal):
    """An error where what is wrong are numbers with the other decimal mark."""
    cells = pd.Series(texts(column)[wrong], dtype=object)
    if not cells.str.fullmatch(OTHER_MARK[decimal]).all():
        return
    other = "," if decimal == "." else "."
    decided = pd.Series(texts(column)[~wrong], dtype=object).dropna().str.contains(decimal, regex=False)
    if decided.any():
        raise TableError(
            f"Column {column.name} mixes decimal commas and points: {len(cells)} values such as {cells[0]} and {int(decided.sum())} with "
            f"{NAMES_OF_MARKS[decimal]}. Write them all in one way."
        )
    raise TableError(
        f"Column {column.name} has decimal {NAMES_OF_MARKS[other]}, in {len(cells)} values such as {cells[0]}. "
        + ("Pass --decimal , to read them." if other == "," else "Leave out --decimal.")
    )


def _not_numbers(column, wrong, decimal, first_row, way_out):
    _check_mark(column, wrong, decimal)
    where = int(np.flatnonzero(wrong)[0])
    return TableError(
        f"Column {column.name} should hold numbers, and {int(wrong.sum())} of {len(column):,} values are none: the first is "
        f"{texts(column)[where]!r} in row {first_row + where + 1:,} after the header. Mend the values, or {way_out}."
    )


def _listed(counts):
    shown = [f"{name} ({count:,})" for name, count in counts.most_common(SHOWN)]
    return ", ".join(shown) + (f" and {len(counts) - SHOWN} more columns" if len(counts) > SHOWN else "")


def _counts_rows(column):
    return column.dtype == np.float64 and bool((np.diff(column.to_numpy()) == 1.0).all())


def _names_rows(column):
    return column.dtype != np.float64 and column.nunique() > MANY_DIFFERENT * len(column)


def _arrow_numbers(column):
    """The numbers of a column that Arrow holds as text, if every cell is one or empty; else None."""
    if pa is None or not isinstance(column.dtype, pd.ArrowDtype):
        return None
    text = column.array.__arrow_array__()
    try:
        values = arrow.cast(arrow.if_else(arrow.equal(text, ""), None, text), pa.float64())
    except pa.ArrowInvalid:
        return None
    return values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False)
