"""The names of a table's columns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ..exceptions import TableError

NUMBER_WORDS = ("inf", "infinity", "nan")
"""Words that Python reads as numbers, and that may name a column."""


def checked_names(header: list[str], path: Path) -> list[str]:
    """Stripped column names; a column without one is called by its number."""
    names = [name.strip() or f"column {number}" for number, name in enumerate(header, start=1)]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        verb = "name appears" if len(twice) == 1 else "names appear"
        raise TableError(
            f"{path}: {len(twice):,} column {verb} more than once: {', '.join(twice[:20])}. Columns are matched by name: rename them."
        )
    return names


def ask_for_header(header: list[str], path: Path) -> None:
    """An error for a first line that seems to be a row: all cells are numbers, or some have decimals."""
    cells = [cell.strip() for cell in header if cell.strip()]
    found = [cell for cell in cells if is_number(cell)]
    if found and (len(found) == len(cells) or any(not cell.lstrip("+-").isdigit() and cell.lower() not in NUMBER_WORDS for cell in found)):
        raise TableError(
            f"{path}: the first line holds numbers ({', '.join(found[:3])}), where names of columns are expected. Pass --no-header if it "
            "is a row (columns are then called column 1, column 2, …), or --header if these are the names."
        )


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
