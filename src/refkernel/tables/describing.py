"""What training knew about each column, in words."""

from __future__ import annotations

from datetime import UTC, datetime

from .._encoding import CATEGORY, CONSTANT, DATE, Column
from .scoring import TableModel
from .wording import named

FIRST_YEAR, LAST_YEAR = -62135596800.0, 253402300799.0
"""The years 1 and 9999, in seconds from 1970: what a calendar can show."""


def described(saved: TableModel) -> list[tuple[str, str, str, str]]:
    """(name, kind, range or levels, share missing) of each column."""
    if saved.encoder is None:  # version 0.1 knew the categories
        return [(f.name, f.kind, "" if f.categories is None else _levels(f.categories), "") for f in saved.features]
    return [(column.name, column.kind, in_training(column), f"{100 * column.missing:.2g} %") for column in saved.columns]


def in_training(column: Column) -> str:
    """The range of numbers and dates, the levels of a category, the value of a constant."""
    if column.kind == CONSTANT:
        return f"always {column.levels[0] if column.levels else _number(column.minimum)}"
    if column.kind == CATEGORY:
        return _levels(column.levels) + (
            f"; {len(column.pooled)} {'is' if len(column.pooled) == 1 else 'are'} rare" if column.pooled else ""
        )
    show = moment if column.kind == DATE else _number
    return f"{show(column.minimum)} … {show(column.maximum)}"


def moment(seconds: float | None) -> str:
    """A date and time, from seconds since 1970."""
    if seconds is None or not FIRST_YEAR <= seconds <= LAST_YEAR:
        return f"{seconds}"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M").removesuffix(" 00:00")


def _levels(levels: tuple[str, ...]) -> str:
    return f"{len(levels)}: {named(levels)}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.6g}"
