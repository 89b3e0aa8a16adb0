"""Tables from Excel workbooks. Cells become the text that a CSV file would hold, so that both mean the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from ..exceptions import TableError
from .form import BLOCK_ROWS, CsvFormat
from .headers import ask_for_header, checked_names
from .wording import counted, named


class WorkbookTable:
    """One sheet of an .xlsx file; ``blocks`` gives its rows, every cell as text. Formulas stand for the values that Excel computed last."""

    decimal = "."
    delimiter = ","

    def __init__(self, path: Path, form: CsvFormat) -> None:
        self.path, self._read, self._rows = path, 0, 1
        self.notes: list[str] = []
        self._sheet = self._choose(form.sheet)
        header = next(self._cells(), [])
        if not header:
            raise TableError(f"{path}: the sheet {self._sheet} is empty. A table needs a header and rows.")
        if form.header is None:
            ask_for_header(header, path)
        self._skipped = form.header is not False
        self.names = checked_names(header if self._skipped else [""] * len(header), path)

    def blocks(self) -> Iterator[pd.DataFrame]:
        """The rows, in their order; an error where there is none."""
        rows: list[list[str]] = []
        self._read, empty = 0, 0
        for number, cells in enumerate(self._cells()):
            if number == 0 and self._skipped:
                continue
            if not cells:
                empty += 1
                continue
            rows.append(self._fitted(cells, number))
            self._read += 1
            if len(rows) == BLOCK_ROWS:
                yield pd.DataFrame(rows, columns=self.names, dtype=object)
                rows = []
        if rows:
            yield pd.DataFrame(rows, columns=self.names, dtype=object)
        if empty:
            self._note(f"{counted(empty, 'empty row')} of the sheet {self._sheet} {'was' if empty == 1 else 'were'} left out.")
        if not self._read:
            raise TableError(f"{self.path}: the sheet {self._sheet} has a header of {len(self.names)} columns and no rows.")

    def _note(self, note: str) -> None:
        """Add a note; tables are sometimes read twice."""
        if note not in self.notes:
            self.notes.append(note)

    def share_read(self) -> float:
        """How much of the sheet has been read, from 0 to 1."""
        return min(self._read / max(self._rows, 1), 1.0)

    def _fitted(self, cells: list[str], number: int) -> list[str]:
        """A row as long as the header: Excel leaves out empty cells at the end."""
        if len(cells) > len(self.names):
            raise TableError(
                f"{self.path}: row {number + 1:,} of the sheet {self._sheet} has {len(cells)} cells, but the header has {len(self.names)}. "
                "Name all columns, or clear the cells beside the table."
            )
        return cells + [""] * (len(self.names) - len(cells))

    def _choose(self, wanted: str | None) -> str:
        book = _open(self.path)
        try:
            sheets = [sheet.title for sheet in book.worksheets]
            if not sheets:
                raise TableError(f"{self.path} has no sheet of cells.")
            if wanted is not None and wanted not in sheets:
                raise TableError(f"--sheet {wanted!r} is not in {self.path}. Its sheets are {named(sheets, 20)}.")
            if wanted is None and len(sheets) > 1:
                self.notes.append(
                    f"The first of {len(sheets)} sheets is read: {sheets[0]}. --sheet takes another one: {named(sheets[1:])}."
                )
            chosen = wanted or sheets[0]
            self._rows = book[chosen].max_row or 1
            return chosen
        finally:
            book.close()

    def _cells(self) -> Iterator[list[str]]:
        """The rows from the first to the last that hold something, if only spaces, without empty cells at their end."""
        book, pending, has_begun = _open(self.path), 0, False
        try:
            for row in book[self._sheet].iter_rows(values_only=True):
                cells = [as_text(cell) for cell in row]
                while cells and not cells[-1].strip():
                    cells.pop()
                if not cells and (not has_begun or all(cell is None for cell in row)):  # spaces are cells, and their row is noted
                    pending += has_begun
                else:
                    for _ in range(pending):
                        yield []
                    has_begun, pending = True, 0
                    yield cells
        except TableError:
            raise
        except Exception as error:  # openpyxl reports damage by whatever it meets
            raise _broken(self.path, error) from error
        finally:
            book.close()


def as_text(cell: Any) -> str:
    """A cell as a CSV file would hold it."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    return str(cell.total_seconds()) if isinstance(cell, timedelta) else str(cell)


def _open(path: Path) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ImportError('Excel files need openpyxl: pip install "refkernel[excel]", or save the sheet as CSV (UTF-8).') from error
    try:
        return load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl reports damage by whatever it meets
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> TableError:
    return TableError(
        f"{path} cannot be read as a workbook ({type(error).__name__}: {error}). Save it again as .xlsx, or save its sheet as CSV."
    )
