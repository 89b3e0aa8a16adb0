"""Which character separates the cells of a CSV file, and which of its lines are the header."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from ..exceptions import TableError

DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


def find_delimiter(sample: str) -> str:
    """The delimiter that gives the rows of a sample one and the same number of cells, and most of them; a comma if none does."""

    def worth(delimiter: str) -> tuple[bool, int]:
        try:
            widths = [len(row) for row in csv.reader(StringIO(sample), delimiter=delimiter) if row]
        except csv.Error:  # reported with its line when the rows are read
            widths = []
        return (len(set(widths)) == 1 and widths[0] > 1, widths[0] if widths else _cells_of_first_line(sample, delimiter))

    return max(DELIMITERS, key=worth)


def _cells_of_first_line(sample: str, delimiter: str) -> int:
    return sample.lstrip("\r\n").splitlines()[0].count(delimiter) + 1


def first_row(sample: str, delimiter: str) -> list[str]:
    try:
        return next((row for row in csv.reader(StringIO(sample), delimiter=delimiter) if row), [])
    except csv.Error:
        return []


def header_of(sample: str, delimiter: str, path: Path) -> tuple[list[str], int]:
    """The first row that is not blank, and the number of lines up to its end."""
    reader = csv.reader(StringIO(sample), delimiter=delimiter)
    try:
        header = next((row for row in reader if row), [])
    except csv.Error as error:
        raise TableError(
            f"{path} is not a CSV file: its first line ends in a carriage return, or holds a broken quote ({error})."
        ) from error
    if not header:
        raise TableError(f"{path} has no header. A table needs one line of names, and rows.")
    return header, reader.line_num
