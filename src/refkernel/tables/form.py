"""How a table is written in its file, and what all kinds of tables offer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd

from ..exceptions import TableError

BLOCK_ROWS = 1 << 14
"""Rows of a block where rows are counted."""


@dataclass(frozen=True)
class CsvFormat:
    """How CSV files are written, and which sheet of a workbook to read. A delimiter of None is detected."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool | None = None
    """Whether the first line names the columns. None: yes, but ask where it holds numbers."""
    sheet: str | None = None
    """By default the first."""

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise TableError(f"--decimal {self.decimal!r} must be a point or a comma.")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise TableError(f"--delimiter {self.delimiter!r} must be one character; a tab is written $'\\t' in a shell, or the word tab.")


class Table(Protocol):
    """A file of rows: the names of its columns, and blocks of rows in their order."""

    path: Path
    names: list[str]
    decimal: str
    delimiter: str
    notes: list[str]

    def blocks(self) -> Iterator[pd.DataFrame]:
        """The rows, in their order; an error where there is none."""
        ...

    def share_read(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        ...
