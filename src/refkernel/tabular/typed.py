"""From the cells of a file to numbers, categories and dates. Fit decides what a column is; scoring reads it in the same way."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype

from .._core.text import counted, named, option
from ..exceptions import TableError
from .columns import BOOLEANS, CATEGORY, DATE, NUMBER, ColumnProfile
from .readers.values import (
    FAILED,
    MOSTLY,
    NAMES_OF_MARKS,
    Marks,
    are_days_in_digits,
    categories,
    check_mark,
    check_thousands,
    check_units,
    dates,
    find_format,
    is_plain,
    is_text,
    numbers,
    texts,
    typed_seconds,
)

MOST_CATEGORIES = 1_000  # more categories than this name the rows rather than describe them
MOST_REFUSED = 20  # columns that cannot be used and are listed; an error for each of 10,000 would hide the first
TYPED = "typed"  # the format of dates that are not text: their type says what they are
T = TypeVar("T")
Learnt: TypeAlias = tuple[ColumnProfile, np.ndarray]  # what a column is, and its values as the model takes them


def learn(frame: pd.DataFrame, marks: Marks, categorical: tuple[str, ...], notes: list[str]) -> tuple[list[ColumnProfile], pd.DataFrame]:
    """What each column of a training table is, and its values as the model takes them."""
    if not len(frame.columns):
        raise TableError("No column is left to learn from: all were dropped.")
    failed = Counter[str]()
    found = _parsed(frame, list(frame.columns), lambda column: learn_column(column, marks, column.name in categorical, notes, failed))
    notes += failed_note(failed)
    cells = {profile.name: pd.Series(values, dtype=object) if profile.kind == CATEGORY else values for profile, values in found}
    return [profile for profile, _ in found], pd.DataFrame(cells)


def failed_note(failed: Counter[str]) -> list[str]:
    """A note about texts that stand for failed measurements, if there are any."""
    shown = named(f"{text!r} ({count:,})" for text, count in failed.most_common())
    return [f"Read as missing cells, in columns of numbers or dates: {shown}."] if failed else []


def read_cells(frame: pd.DataFrame, features: Sequence[ColumnProfile], marks: Marks, first_row: int = 0) -> list[np.ndarray]:
    """The cells of some columns as the model takes them: float64 (dates: seconds since 1970), or text; NaN where a value is missing."""
    known = {feature.name: feature for feature in features}
    return _parsed(frame, list(known), lambda column: _read(column, known[str(column.name)], marks, first_row))


def _parsed(frame: pd.DataFrame, names: list[str], parse: Callable[[pd.Series], T]) -> list[T]:
    """Each column parsed once; the columns that cannot be used, all in one error."""
    found, refused = list[T](), []
    for name in names:
        try:
            found.append(parse(frame[name]))
        except TableError as error:
            refused.append(str(error))
    if refused:
        more = f"\nand {len(refused) - MOST_REFUSED:,} more." if len(refused) > MOST_REFUSED else ""
        start = f"{len(refused):,} columns cannot be used.\n" if len(refused) > 1 else ""
        raise TableError(start + "\n".join(refused[:MOST_REFUSED]) + more)
    return found


def learn_column(column: pd.Series, marks: Marks, categorical: bool, notes: list[str], failed: Counter[str]) -> Learnt:
    """What a column is, and its values; ``failed`` counts texts that stand for failed measurements."""
    name = str(column.name)
    if not categorical:
        found = _learn_date(column, name, marks, notes, failed) if are_days_in_digits(column) else None  # they are numbers, too
        found = found or _learn_number(column, name, marks, notes, failed) or _learn_date(column, name, marks, notes, failed)
        if found is not None:
            return found
    _check_type(column)
    cells = texts(column, marks.missing)
    levels = {cell for cell in cells if cell == cell}
    if levels and {level.lower() for level in levels} <= BOOLEANS:
        cells = categories(column, marks.missing, lower=True)
        return ColumnProfile(name, CATEGORY, levels=("false", "true")), cells
    if len(levels) > MOST_CATEGORIES:
        raise TableError(
            f"Column {name} holds {len(levels):,} different texts; at most {MOST_CATEGORIES:,} categories can be used. "
            f"If it names the rows, leave it out: {option('--drop', [name])}."
        )
    return ColumnProfile(name, CATEGORY, levels=tuple(sorted(levels))), cells


def _learn_date(column: pd.Series, name: str, marks: Marks, notes: list[str], failed: Counter[str]) -> Learnt | None:
    """A column of dates or times, by its type or by its texts."""
    if (seconds := typed_seconds(column)) is not None:
        return ColumnProfile(name, DATE, date_format=TYPED), seconds
    if not is_text(column):
        return None
    cells = texts(column, marks.missing | FAILED)
    form, is_unclear = find_format(cells, day_first=marks.decimal == ",")
    if form is None:
        return None
    seconds, wrong = dates(cells, form)
    if wrong.any():
        if are_days_in_digits(column):  # numbers, then
            return None
        raise _unlike(column, wrong, cells, f"hold dates or times ({form})")
    if is_unclear:
        first, order = cells[cells == cells][0], "day/month/year" if form.startswith("%d") else "month/day/year"
        notes.append(f"Column {name}: dates such as {first} are read as {order}. If that is wrong, write them as 2024-12-31.")
    failed.update(cell for cell in texts(column, marks.missing)[cells != cells] if cell == cell)
    return ColumnProfile(name, DATE, date_format=form), seconds


def _learn_number(column: pd.Series, name: str, marks: Marks, notes: list[str], failed: Counter[str]) -> Learnt | None:
    """A column of numbers, in the ways people write them; None where most cells are words."""
    if is_bool_dtype(column) or not is_plain(column):
        return None
    found = numbers(column, marks)
    if found.wrong.any():
        check_mark(column, found.wrong | found.unclear, marks)
        good = np.isfinite(found.values).sum()
        if good < MOSTLY * (found.wrong.sum() + good):
            return None
        check_mark(column, found.wrong, marks)
        raise _unlike(column, found.wrong, texts(column, marks.missing), "be numeric")
    check_units(name, found)
    if infinite := int(np.isinf(found.values).sum()):
        raise TableError(f"Infinite values in {name} ({infinite:,}). Replace them by finite numbers, or leave the cells empty (missing).")
    if found.unclear.any():
        check_thousands(column, found, marks)
        first = texts(column)[found.unclear][0]
        whole, kind = first.replace(",", "").replace(".", ""), NAMES_OF_MARKS[marks.decimal]
        notes += [f"Column {name}: {first} is read as {whole}, because other columns have decimal {kind}."] if marks.is_decided else []
    failed.update(found.failed)
    decimal = marks.decimal if marks.decimal == "," or found.unclear.any() else ""
    return ColumnProfile(name, NUMBER, unit=found.unit, decimal=decimal), found.values


def _read(column: pd.Series, feature: ColumnProfile, marks: Marks, first_row: int) -> np.ndarray:
    if feature.kind == CATEGORY:
        return categories(column, marks.missing, lower=feature.is_boolean)
    if feature.kind == DATE:
        return _read_date(column, feature, marks, first_row)
    _check_type(column)
    if feature.decimal and not marks.is_decided:
        marks = replace(marks, decimal=feature.decimal, is_decided=True)
    found = numbers(column, marks)
    if found.unclear.any():
        check_thousands(column, found, marks)
    check_units(feature.name, found, feature.unit or (feature.unit_above if found.unit else "") if is_text(column) else None)
    if found.wrong.any():
        check_mark(column, found.wrong, marks)
        raise _unlike(column, found.wrong, texts(column, marks.missing), "be numeric", first_row)
    return found.values


def _read_date(column: pd.Series, feature: ColumnProfile, marks: Marks, first_row: int) -> np.ndarray:
    """Seconds since 1970, from a column that has a date's type, or from texts in the format of training (ISO where it was typed)."""
    if (seconds := typed_seconds(column)) is not None:
        return seconds
    cells = texts(column, marks.missing | FAILED)
    form = "ISO8601" if feature.date_format in (TYPED, None) else feature.date_format
    seconds, wrong = dates(cells, str(form))
    if wrong.any():
        raise _unlike(column, wrong, cells, f"hold dates or times as in training ({form})", first_row)
    return seconds


def _check_type(column: pd.Series) -> None:
    if not is_plain(column):
        raise TableError(
            f"Column {column.name} has the type {column.dtype}; numbers, text, dates and truth values can be used. Convert it, or leave it "
            f"out: {option('--drop', [str(column.name)])}."
        )


def _unlike(column: pd.Series, wrong: np.ndarray, cells: np.ndarray, what: str, first_row: int | None = None) -> TableError:
    """Some cells are no numbers, or no dates; without ``first_row``, the column is one to learn from."""
    row, name, odd = int(np.flatnonzero(wrong)[0]) + (first_row or 0) + 1, str(column.name), list(dict.fromkeys(cells[wrong]))
    kind, also = "numbers" if what == "be numeric" else "dates", f" Others are {named(map(repr, odd[1:]), 3)}." if odd[1:] else ""
    ways = f", take it as categories ({option('--categorical', [name])}), or leave it out ({option('--drop', [name])})"
    return TableError(
        f"Column {name} should {what}, but {int(wrong.sum())} of {counted(len(column), 'value')} are not {kind}: the first is {odd[0]!r} "
        f"in row {row:,} after the header.{also} Correct them, or say that they stand for missing cells "
        f"({option('--missing', odd[:MOST_REFUSED])}){ways if first_row is None else ''}."
    )
