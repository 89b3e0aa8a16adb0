"""Tables from Excel workbooks. Cells become the text that a CSV file would hold, so that both mean the same."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pandas as pd

from ..._core.text import counted, named
from ...exceptions import TableError
from . import ReadOptions, Table, check_unpacked, marks_of
from .layout import find_layout

SHEET_ROWS = 1 << 20  # the most rows that Excel allows in a sheet; a row whose number is larger would stand behind that many empty ones
BLOCK_CELLS = 1 << 20  # cells of a block, with those that Excel leaves out
FIRST_ROWS = 200  # rows by which the layout of a sheet is recognised


class WorkbookTable(Table):
    """One sheet of an .xlsx file; ``blocks`` gives its rows, every cell as text. Formulas stand for the values that Excel computed last."""

    encoding = "utf-8-sig"  # without its mark, Excel takes a CSV file for one in another encoding

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path)
        with suppress(BadZipFile), ZipFile(path) as archive:  # openpyxl names the damage
            check_unpacked(path, sum(part.file_size for part in archive.infolist()))
        with _opened(path) as book:
            self._sheet, self._whole = self._choose(book, options.sheet)
            first = list(islice(self._filled(book), FIRST_ROWS))
        self.marks = marks_of(options, ([cell if isinstance(cell, str) else "" for cell in row] for _, row in first), self.notes)
        self.delimiter = "," if self.marks.decimal == "." else ";"
        rows = [(number, cells) for number, row in first if (cells := self._texts(row))]
        if not rows:
            raise TableError(f"{path}: the sheet {self._sheet} is empty. A table needs a header and rows.")
        width = max(len(cells) for _, cells in rows)
        self._header_rows = find_layout(self, [(number, cells + [""] * (width - len(cells))) for number, cells in rows], options)

    def blocks(self) -> Iterator[pd.DataFrame]:
        rows: list[list[str]] = []
        self._read, empty, last, width = 0, 0, self._header_rows, len(self.names)
        for number, cells in self._cells():
            empty, last = empty + number - last - bool(cells), number
            if not cells:
                continue
            if len(cells) > width:
                what = f"row {number:,} of the sheet {self._sheet} has {len(cells)} cells, but the header has {width}"
                raise TableError(f"{self.path}: {what}. Name all columns, or clear the cells beside the table.")
            rows.append(cells + [""] * (width - len(cells)))  # Excel leaves out empty cells at the end
            self._read += 1
            if len(rows) * width >= BLOCK_CELLS:
                check_unpacked(self.path, 8 * self._read * width)  # a cell takes a pointer, if it is empty
                yield pd.DataFrame(rows, columns=self.names, dtype=object)
                rows = []
        if rows:
            yield pd.DataFrame(rows, columns=self.names, dtype=object)
        note = f"{counted(empty, 'empty row')} of the sheet {self._sheet} {'was' if empty == 1 else 'were'} left out."
        if empty and note not in self.notes:  # tables are sometimes read twice
            self.notes.append(note)

    def _choose(self, book: Any, wanted: str | None) -> tuple[str, int]:
        """The name of the sheet, and how many rows it states."""
        if not (sheets := [sheet.title for sheet in book.worksheets]):
            raise TableError(f"{self.path} has no sheet of cells.")
        if wanted is not None and wanted not in sheets:
            raise TableError(f"--sheet {wanted!r} is not in {self.path}. Its sheets are {named(sheets, 20)}.")
        if wanted is None and len(sheets) > 1:
            others = f"--sheet takes another one: {named(sheets[1:])}"
            self.notes.append(f"The first of {len(sheets)} sheets is read: {sheets[0]}. {others}.")
        return wanted or sheets[0], book[wanted or sheets[0]].max_row or 1

    def _cells(self) -> Iterator[tuple[int, list[str]]]:
        """The rows under the header, with their numbers."""
        with _opened(self.path) as book:
            yield from ((number, self._texts(row)) for number, row in self._filled(book) if number > self._header_rows)

    def _filled(self, book: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """The rows that hold something, if only spaces, with their numbers."""
        sheet = book[self._sheet]
        sheet.reset_dimensions()  # some writers state fewer rows than there are
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            if number > SHEET_ROWS:
                raise TableError(f"{self.path}: the sheet {self._sheet} has more than {SHEET_ROWS:,} rows, which Excel does not allow.")
            if any(cell is not None for cell in row):
                yield number, row

    def _texts(self, row: tuple[Any, ...]) -> list[str]:
        """The cells as text, without empty ones at their end."""
        cells = [_text(cell, self.marks.decimal) for cell in row]
        while cells and not cells[-1].strip():
            cells.pop()
        return cells


def _text(cell: Any, decimal: str) -> str:
    """A cell as a CSV file would hold it."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell).replace(".", decimal)
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    return str(cell.total_seconds()) if isinstance(cell, timedelta) else str(cell)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ImportError('Excel files need openpyxl: pip install "refkernel[excel]", or save the sheet as CSV (UTF-8).') from error
    try:
        with closing(load_workbook(path, read_only=True, data_only=True)) as book:
            yield book
    except TableError:
        raise
    except Exception as error:  # openpyxl reports damage by whatever it meets
        what = f"cannot be read as a workbook ({type(error).__name__}: {error})"
        raise TableError(f"{path} {what}. Save it again as .xlsx, or save its sheet as CSV.") from error
