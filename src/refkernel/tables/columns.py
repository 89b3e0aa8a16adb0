"""What the columns of a table mean to a model: numbers, categories, dates. Fit decides; scoring reads them in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype

from .._encoding import CATEGORY, DATE, NUMBER, Column
from ..exceptions import ModelFileError, TableError
from .cells import (
    BOOLEANS,
    FORMATS,
    are_booleans,
    are_days_in_digits,
    categories,
    dates,
    find_format,
    is_plain,
    is_text,
    numbers,
    texts,
    typed_seconds,
)
from .marks import Reading, check_mark, check_percent, check_thousands, learn_thousands, shows_decimals
from .wording import counted, option

__all__ = ["Column", "Feature", "feature_of", "learn", "model_input"]

MOSTLY = 0.5
"""A text column with at least this share of numbers is meant to be numeric: its other values are mistakes."""

MOST_CATEGORIES = 1_000
"""More categories than this name the rows rather than describe them."""

MOST_REFUSED = 20
"""Columns that cannot be used and are listed; an error for each of 10,000 would hide the first."""


TYPED = "typed"
"""The format of dates that are not text: their type says what they are."""


@dataclass(frozen=True)
class Feature:
    """A column that a model uses, and how its cells are read."""

    name: str
    categories: tuple[str, ...] | None = None
    date_format: str | None = None
    """Of a date or time."""
    percent: bool = False
    thousands: bool = False
    """Whether 1,234 is one thousand."""

    @property
    def kind(self) -> str:
        """number, category or date."""
        return CATEGORY if self.categories is not None else NUMBER if self.date_format is None else DATE

    @property
    def is_boolean(self) -> bool:
        """Whether it is true or false, however that is written."""
        return self.categories is not None and set(self.categories) == BOOLEANS

    def as_dict(self) -> dict[str, Any]:
        """The feature in plain JSON."""
        return asdict(self) | {"categories": None if self.categories is None else list(self.categories)}

    @classmethod
    def from_dict(cls, item: dict[str, Any]) -> Feature:
        """The feature that ``as_dict`` has described; files of version 0.1 know names and categories."""
        categories = item.get("categories")
        others = {name: item[name] for name in ("date_format", "percent", "thousands") if name in item}
        marks = [others.get(name, False) for name in ("percent", "thousands")]
        if others.get("date_format") not in (None, TYPED, *FORMATS) or not all(isinstance(mark, bool) for mark in marks):
            raise ModelFileError(f"A model file describes the column {item['name']} in a way that no version has written: it is forged.")
        return cls(item["name"], None if categories is None else tuple(categories), **others)


def feature_of(column: Column, kind: str) -> Feature:
    """How cells of a column are read that an encoder learnt from a data frame, where types said what it was."""
    return Feature(column.name, column.levels if kind == CATEGORY else None, TYPED if kind == DATE else None)


def learn(frame: pd.DataFrame, decimal: str, categorical: tuple[str, ...], notes: list[str]) -> tuple[list[Feature], pd.DataFrame]:
    """What each column of a training table is, and its values as the model takes them."""
    values: list[np.ndarray] = []
    features = learn_columns(frame, decimal, categorical, notes, lambda feature, column: values.append(column))
    return features, _frame(features, values)


def learn_columns(
    frame: Any, decimal: str, categorical: tuple[str, ...], notes: list[str], keep: Callable[[Feature, np.ndarray], None]
) -> list[Feature]:
    """What each column of a training table is. ``frame`` may give its columns one by one, and ``keep`` takes their values."""
    if not len(frame.columns):
        raise TableError("No column is left to learn from: all were dropped.")
    reading = Reading(decimal, notes, cache(lambda: shows_decimals(frame, decimal)))
    return _parsed(frame, list(frame.columns), lambda column: _learn(column, reading, column.name in categorical), keep)


def model_input(frame: pd.DataFrame, features: list[Feature], decimal: str, first_row: int = 0) -> pd.DataFrame:
    """The features of some rows as the model takes them: float64 (dates: seconds since 1970), or text; NaN where a value is missing."""
    known = {feature.name: feature for feature in features}
    values: list[np.ndarray] = []
    _parsed(
        frame,
        list(known),
        lambda column: _read(column, known[str(column.name)], decimal, first_row),
        lambda feature, column: values.append(column),
    )
    return _frame(list(known.values()), values)


def _parsed(
    frame: Any,
    names: list[str],
    parse: Callable[[pd.Series], tuple[Feature, np.ndarray]],
    keep: Callable[[Feature, np.ndarray], None],
) -> list[Feature]:
    """Each column parsed once; the columns that cannot be used, all in one error."""
    features, refused = [], []
    for name in names:
        try:
            feature, column = parse(frame[name])
        except TableError as error:
            refused.append(str(error))
            continue
        features.append(feature)
        keep(feature, column)
    if refused:
        more = f"\nand {len(refused) - MOST_REFUSED:,} more." if len(refused) > MOST_REFUSED else ""
        start = f"{len(refused):,} columns cannot be used.\n" if len(refused) > 1 else ""
        raise TableError(start + "\n".join(refused[:MOST_REFUSED]) + more)
    return features


def _frame(features: list[Feature], values: list[np.ndarray]) -> pd.DataFrame:
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


def _learn(column: pd.Series, reading: Reading, categorical: bool) -> tuple[Feature, np.ndarray]:
    name = str(column.name)
    if not categorical:
        found = _learn_date(column, name, reading.notes) if are_days_in_digits(column) else None  # they are numbers, too
        found = found or _learn_number(column, name, reading) or _learn_date(column, name, reading.notes)
        if found is not None:
            return found
    _check_type(column)
    cells = texts(column)
    if are_booleans(cells):
        cells = categories(column, lower=True)
        return Feature(name, ("false", "true")), cells
    levels = sorted({cell for cell in cells if cell == cell})
    if len(levels) > MOST_CATEGORIES:
        raise TableError(
            f"Column {name} holds {len(levels):,} different texts; at most {MOST_CATEGORIES:,} categories can be used. "
            f"If it names the rows, leave it out: {option('--drop', [name])}."
        )
    return Feature(name, tuple(levels)), cells


def _learn_date(column: pd.Series, name: str, notes: list[str]) -> tuple[Feature, np.ndarray] | None:
    """A column of dates or times, by its type or by its texts."""
    seconds = typed_seconds(column)
    if seconds is not None:
        return Feature(name, date_format=TYPED), seconds
    if not is_text(column):
        return None
    cells = texts(column)
    form, is_unclear = find_format(cells)
    if form is None:
        return None
    if is_unclear:
        first = cells[cells == cells][0]
        notes.append(f"Column {name}: dates such as {first} are read as month/day/year. If the day comes first, write them as 2024-12-31.")
    return Feature(name, date_format=form), dates(cells, form)[0]


def _learn_number(column: pd.Series, name: str, reading: Reading) -> tuple[Feature, np.ndarray] | None:
    """A column of numbers, in the ways people write them; None where most cells are words."""
    if is_bool_dtype(column) or not is_plain(column):
        return None
    decimal = reading.decimal
    found = numbers(column, decimal)
    if found.unclear.any():
        check_mark(column, found.wrong | found.unclear, decimal, bool(found.wrong.any()))
        learn_thousands(column, found, reading)
    check_percent(name, found, None)
    if not found.wrong.any():
        return Feature(name, percent=bool(found.percent.any()), thousands=bool((found.clear | found.unclear).any())), found.values
    check_mark(column, found.wrong, decimal)
    good = np.isfinite(found.values).sum()
    if good >= MOSTLY * (found.wrong.sum() + good):
        ways = f"take it as categories ({option('--categorical', [name])}), or leave it out ({option('--drop', [name])})"
        raise _not_numbers(column, found.wrong, decimal, 0, ways)
    return None


def _read(column: pd.Series, feature: Feature, decimal: str, first_row: int) -> tuple[Feature, np.ndarray]:
    if feature.categories is not None:
        return feature, categories(column, lower=feature.is_boolean)
    if feature.date_format is not None:
        return feature, _read_date(column, feature, first_row)
    _check_type(column)
    found = numbers(column, decimal)
    if found.unclear.any() and not feature.thousands:
        check_thousands(column, found, decimal)
    check_percent(feature.name, found, feature.percent if is_text(column) else None)
    if found.wrong.any():
        raise _not_numbers(column, found.wrong, decimal, first_row, "leave the column out in fit (--drop)")
    return feature, found.values


def _read_date(column: pd.Series, feature: Feature, first_row: int) -> np.ndarray:
    """Seconds since 1970, from a column that has a date's type, or from texts in the format of training (ISO where it was typed)."""
    seconds = typed_seconds(column)
    if seconds is not None:
        return seconds
    cells = texts(column)
    form = "ISO8601" if feature.date_format in (TYPED, None) else feature.date_format
    seconds, wrong = dates(cells, str(form))
    if wrong.any():
        where = int(np.flatnonzero(wrong)[0])
        raise TableError(
            f"Column {feature.name} should hold dates or times as in training ({form}), but {int(wrong.sum())} of "
            f"{counted(len(column), 'value')} are not: the first is {cells[where]!r} in row {first_row + where + 1:,} after the header. "
            "Write them as in training."
        )
    return seconds


def _check_type(column: pd.Series) -> None:
    if not is_plain(column):
        raise TableError(
            f"Column {column.name} has the type {column.dtype}; numbers, text, dates and truth values can be used. Convert it, or leave it "
            f"out: {option('--drop', [str(column.name)])}."
        )


def _not_numbers(column: pd.Series, wrong: np.ndarray, decimal: str, first_row: int, way_out: str) -> TableError:
    check_mark(column, wrong, decimal)
    where = int(np.flatnonzero(wrong)[0])
    return TableError(
        f"Column {column.name} should be numeric, but {int(wrong.sum())} of {counted(len(column), 'value')} are not numbers: the first is "
        f"{texts(column)[where]!r} in row {first_row + where + 1:,} after the header. Correct the values, or {way_out}."
    )
