"""How numbers are marked: decimal commas and points, thousands, percent signs; and an error where nobody can know what is meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..exceptions import TableError
from .cells import MARKED, SWAPPED, Numbers, is_text, texts

__all__ = ["NAMES_OF_MARKS", "Reading", "check_mark", "check_percent", "check_thousands", "learn_thousands", "shows_decimals"]

OTHER_MARK = {".": r"[+-]?\d*,\d+", ",": r"[+-]?\d*\.\d+"}
"""For each decimal mark, a number that is written with the other one."""

NAMES_OF_MARKS = {".": "points", ",": "commas"}

THOUSAND = 1_000.0

SHOWN_ROWS = 1_000
"""The first rows of each column, by which a decimal mark is recognised."""


@dataclass(frozen=True)
class Reading:
    """How a training table is read: its decimal mark, notes for the user, and whether some column shows beyond doubt what that mark is."""

    decimal: str
    notes: list[str]
    is_decided: Callable[[], bool]


def learn_thousands(column: pd.Series, found: Numbers, reading: Reading) -> None:
    """Cells such as 1,234 are thousands where other columns show that the decimal mark is the other one."""
    if not reading.is_decided():
        return check_thousands(column, found, reading.decimal)
    first = texts(column)[found.unclear][0]
    reading.notes.append(
        f"Column {column.name}: {first} is read as {re.sub(r'[,.]', '', first)}, because other columns have decimal "
        f"{NAMES_OF_MARKS[reading.decimal]}."
    )


def shows_decimals(frame: Any, decimal: str) -> bool:
    """Whether some column has numbers with the decimal mark that cannot be thousands, such as 0.5 or $1,234.50."""
    return any(_has_decimals(column, decimal) for column in (frame[name] for name in frame.columns) if is_text(column))


def _has_decimals(column: pd.Series, decimal: str) -> bool:
    cells = [cell for cell in texts(column[:SHOWN_ROWS]) if cell == cell]
    found = [MARKED.fullmatch(cell if decimal == "." else cell.translate(SWAPPED)) for cell in cells]
    return all(found) and any(match["rest"] and len(match["rest"]) != len(".123") for match in found if match)


def check_percent(name: str, found: Numbers, wanted: bool | None) -> None:
    """An error where some numbers have a percent sign and others have none: 5 and 5 % may be a hundred times apart."""
    has = found.percent[np.isfinite(found.values)]
    if has.any() and not has.all():
        raise TableError(
            f"Column {name} mixes {int(has.sum()):,} values with a percent sign and {int((~has).sum()):,} without. Write all alike."
        )
    if wanted is not None and len(has) and bool(has.any()) != wanted:
        now, then = ("with", "without") if has.any() else ("without", "with")
        raise TableError(f"Column {name} is written {now} percent signs, and was {then} them in training. Write it as in training.")


def check_thousands(column: pd.Series, found: Numbers, decimal: str) -> None:
    """An error where cells such as 1,234 may be thousands or decimals, and no other cell decides it."""
    plain = np.isfinite(found.values) & ~found.clear & ~found.unclear
    if found.clear.any() or (plain.any() and (np.abs(found.values[plain]) < THOUSAND).all()):
        return
    mark = "," if decimal == "." else "."
    first = texts(column)[found.unclear][0]
    raise TableError(
        f"Column {column.name} holds {int(found.unclear.sum()):,} values such as {first}, where {mark!r} may be a decimal mark or "
        "separate thousands. "
        + ("Pass --decimal , if they are decimals" if decimal == "." else "Leave out --decimal if they are decimals")
        + "; else write the numbers without separators."
    )


def check_mark(column: pd.Series, wrong: np.ndarray, decimal: str, doubted: bool = True) -> None:
    """An error where what is wrong are numbers with the other decimal mark."""
    if not doubted:
        return
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
