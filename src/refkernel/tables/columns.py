"""What the columns of a table mean to a model: numbers, categories, missing values."""

from __future__ import annotations

import csv
import shlex
from collections import Counter
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_object_dtype, is_string_dtype

from .._encoding import CATEGORY, NUMBER
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
"""A text column with different values in more than this share of its rows names the rows and says little about them."""

MOST_CATEGORIES = 1_000
"""Every category becomes a feature. More than this many cost memory and time, and each is rarely seen twice."""

FEW_ROWS = 10
"""In fewer rows than this, values all differ by chance."""

MOST_REFUSED = 20
"""Columns that cannot be used and are listed; an error for each of 10,000 would hide the first."""

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

    @property
    def kind(self) -> str:
        """number or category."""
        return NUMBER if self.categories is None else CATEGORY

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


def learn(frame: pd.DataFrame, decimal: str, categorical: tuple[str, ...]) -> tuple[list[Feature], pd.DataFrame]:
    """What each column of a training table is, and its values as the model takes them."""
    if not len(frame.columns):
        raise TableError("No column is left to learn from: all were dropped.")
    return _parsed(frame, list(frame.columns), lambda column: _learn(column, decimal, column.name in categorical))


def model_input(frame: pd.DataFrame, features: list[Feature], decimal: str, first_row: int = 0) -> pd.DataFrame:
    """The features of some rows as the model takes them: float64, or text; NaN where a value is missing."""
    known = {feature.name: feature for feature in features}
    return _parsed(frame, list(known), lambda column: _read(column, known[column.name], decimal, first_row))[1]


def _parsed(frame, names, parse) -> tuple[list[Feature], pd.DataFrame]:
    """Each column parsed once; the columns that cannot be used, all in one error."""
    features, values, refused = [], [], []
    for name in names:
        try:
            feature, column = parse(frame[name])
        except TableError as error:
            refused.append(str(error))
            continue
        features.append(feature)
        values.append(column)
    if refused:
        more = f"\nand {len(refused) - MOST_REFUSED:,} more." if len(refused) > MOST_REFUSED else ""
        start = f"{len(refused):,} columns cannot be used.\n" if len(refused) > 1 else ""
        raise TableError(start + "\n".join(refused[:MOST_REFUSED]) + more)
    return features, _frame(features, values)


def _frame(features, values) -> pd.DataFrame:
    """The columns side by side, all numbers in one array: a frame of thousands of arrays takes seconds where this takes none."""
    numeric = [i for i, feature in enumerate(features) if feature.categories is None]
    X = pd.DataFrame(
        np.column_stack([values[i] for i in numeric]) if numeric else None,
        columns=[features[i].name for i in numeric],
        index=pd.RangeIndex(len(values[0])),
    )
    if len(numeric) == len(features):
        return X
    others = pd.DataFrame(
        {feature.name: pd.Series(v, dtype=object) for feature, v in zip(features, values, strict=True) if feature.categories is not None}
    )
    return pd.concat([X, others], axis=1)[[feature.name for feature in features]]


def missing_counts(X: pd.DataFrame) -> Counter[str]:
    """Missing values by column, for the columns that have some."""
    return Counter({str(name): int(count) for name, count in X.isna().sum().items() if count})


def missing_message(counts: Counter[str], rows: int, way_out: str) -> str:
    """What is missing where, and what to do."""
    return f"Missing values in {_listed(counts)} of {rows:,} rows. {way_out}"


def check_finite(X: pd.DataFrame) -> None:
    """An error that names the columns with infinite values."""
    infinite = np.isinf(_numbers_of(X)).sum(axis=0)
    counts = Counter({str(name): int(count) for name, count in infinite[infinite > 0].items()})
    if +counts:
        raise TableError(f"Infinite values in {_listed(+counts)}. Replace them by finite numbers, or leave the cells empty (missing).")


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
    values = _numbers_of(X)
    same = (values.isna() | values.eq(values.bfill().iloc[0])).all() & values.notna().any()
    others = [name for name in X.columns if name not in values.columns and X[name].nunique() == 1]
    return [str(name) for name in [*values.columns[same], *others]]


def row_names(X: pd.DataFrame) -> list[str]:
    """Columns that seem to name the rows: texts that nearly all differ, and whole numbers that count the rows."""
    if len(X) < FEW_ROWS:
        return []
    values = _numbers_of(X)
    counting = values.columns[(np.diff(values.to_numpy(), axis=0) == 1.0).all(axis=0)]
    naming = [name for name in X.columns.difference(values.columns, sort=False) if X[name].nunique() > MANY_DIFFERENT * len(X)]
    return [str(name) for name in X.columns if name in {*counting, *naming}]


def check_not_empty(X: pd.DataFrame) -> None:
    """An error for columns that have no value at all."""
    empty = [str(name) for name in X.columns[X.isna().all()]]
    if len(empty) == len(X.columns):
        raise TableError(f"All values of all {len(X):,} rows are missing: there is nothing to learn from.")
    if empty:
        raise TableError(f"No row has a value in {named(empty)}. Leave the empty columns out: {option('--drop', empty)}.")


def named(names, shown: int = SHOWN) -> str:
    """Some names for a message."""
    names = list(map(str, names))
    return ", ".join(names[:shown]) + (f" and {len(names) - shown:,} more" if len(names) > shown else "")


def counted(count: int, thing: str, things: str | None = None) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def option(flag: str, names) -> str:
    """An option with a list of columns, as a shell takes it when it is pasted."""
    text = StringIO()
    csv.writer(text, lineterminator="").writerow(list(names))
    return f"{flag} {shlex.quote(text.getvalue())}"


def _learn(column, decimal, categorical):
    _check_type(column)
    if not categorical:
        values, wrong = numbers(column, decimal)
        if not wrong.any():
            return Feature(str(column.name)), values
        _check_mark(column, wrong, decimal)
        found = np.isfinite(values).sum()
        if found >= MOSTLY * (wrong.sum() + found):
            ways = f"take it as categories ({option('--categorical', [column.name])}), or leave it out ({option('--drop', [column.name])})"
            raise _not_numbers(column, wrong, decimal, 0, ways)
    cells = texts(column)
    categories = sorted({cell for cell in cells if cell == cell})
    if len(categories) > MOST_CATEGORIES:
        raise TableError(
            f"Column {column.name} holds {len(categories):,} different texts; at most {MOST_CATEGORIES:,} categories can be used. "
            f"If it names the rows, leave it out: {option('--drop', [column.name])}."
        )
    return Feature(str(column.name), tuple(categories)), cells


def _read(column, feature, decimal, first_row):
    if feature.categories is not None:
        return feature, texts(column)
    _check_type(column)
    values, wrong = numbers(column, decimal)
    if wrong.any():
        raise _not_numbers(column, wrong, decimal, first_row, "leave the column out in fit (--drop)")
    return feature, values


def _check_type(column):
    if not (is_text(column) or is_numeric_dtype(column) or is_bool_dtype(column)):
        raise TableError(
            f"Column {column.name} has the type {column.dtype}; numbers and text can be used. Convert it, or leave it out: "
            f"{option('--drop', [column.name])}."
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
        f"Column {column.name} should be numeric, but {int(wrong.sum())} of {counted(len(column), 'value')} are not numbers: the first is "
        f"{texts(column)[where]!r} in row {first_row + where + 1:,} after the header. Correct the values, or {way_out}."
    )


def _listed(counts):
    shown = [f"{name} ({count:,})" for name, count in counts.most_common(SHOWN)]
    return ", ".join(shown) + (f" and {len(counts) - SHOWN} more columns" if len(counts) > SHOWN else "")


def _numbers_of(X) -> pd.DataFrame:
    return X.select_dtypes(np.float64)


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
