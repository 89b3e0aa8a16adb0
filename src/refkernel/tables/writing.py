"""Tables to CSV and Parquet files, block by block, and never half a file."""

from __future__ import annotations

import csv
import gzip
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._files import replacing
from ..exceptions import TableError
from .cells import is_text
from .endings import EXCEL, OTHER_WORKBOOKS, is_parquet
from .parquet_table import import_parquet

try:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
except ImportError:  # the extra parquet; CSV files are then written by pandas
    pa = None


def check_writable(path: Path, *inputs: Path) -> None:
    """An error if a file cannot be written there, or is one of those that are read, before work is done for it."""
    folder = path.parent
    for other in inputs:
        if path.exists() and other.exists() and path.samefile(other):
            raise TableError(f"--out {path} is a file that is read, and would be lost. Choose another name.")
    if path.suffix.lower() in (*EXCEL, *OTHER_WORKBOOKS):
        raise TableError(f"--out {path}: workbooks are read, and not written. End the name in .csv, which Excel opens, or in .parquet.")
    if path.is_dir():
        raise TableError(f"{path} is a folder. Name a file for --out.")
    if not folder.is_dir():
        raise TableError(f"{path} cannot be written: the folder {folder} does not exist. Make it, or choose another --out.")
    if not os.access(folder, os.W_OK):
        raise TableError(f"{path} cannot be written: no permission for the folder {folder}. Choose another --out.")


GZIP = ".gz"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)*|[.,]\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)


@contextmanager
def table_writer(
    path: Path, delimiter: str, defuse: bool = True, numeric: frozenset[str] = frozenset()
) -> Iterator[CsvWriter | ParquetWriter]:
    """Writes blocks of rows to a file that appears when all are written; ``defuse`` and ``numeric``: see :func:`defused`."""
    check_writable(path)
    with replacing(path) as temporary:
        writer: CsvWriter | ParquetWriter = (
            ParquetWriter(temporary) if is_parquet(path) else CsvWriter(temporary, delimiter, defuse, numeric, path.suffix.lower() == GZIP)
        )
        try:
            yield writer
        finally:
            writer.close()


def defused(block: pd.DataFrame, numeric: frozenset[str] = frozenset()) -> tuple[pd.DataFrame, int]:
    """The block with an apostrophe before each text that a spreadsheet would run as a formula, and the number of those.

    Such texts begin with =, +, -, @, a tab or a carriage return. Numbers stay as they are, whatever their sign; ``numeric`` columns hold
    nothing else.
    """
    found, count = block, 0
    for name in block.columns:
        if name in numeric or not is_text(block[name]):
            continue
        is_formula = _starts_formula(block[name])
        if is_formula.any():
            cells = block[name].astype(object)
            is_formula &= ~cells.map(_is_number, na_action="ignore").fillna(True).to_numpy(dtype=bool)
            cells[is_formula] = "'" + cells[is_formula]
            found = block.copy() if found is block else found
            found[name], count = cells, count + int(is_formula.sum())
    return found, count


def _starts_formula(column: pd.Series) -> np.ndarray:
    return column.str.startswith(FORMULA_STARTS).fillna(False).to_numpy(dtype=bool).copy()


def _is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell.strip()) is not None


def _defused_cell(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not _is_number(text) else text


class CsvWriter:
    """Blocks of rows as CSV, UTF-8, the header first. Cells are quoted where they must be."""

    def __init__(
        self, path: Path, delimiter: str, defuse: bool = True, numeric: frozenset[str] = frozenset(), compressed: bool = False
    ) -> None:
        self.delimiter, self._defuse, self._numeric = delimiter, defuse, numeric
        self.defused = 0
        self._file: Any = gzip.open(path, "wb") if compressed else path.open("wb")  # noqa: SIM115 (closed in close)
        self._has_header = False

    def write(self, block: pd.DataFrame) -> None:
        """Append a block."""
        if not self._has_header:
            text = StringIO()
            names = [_defused_cell(str(name)) if self._defuse else name for name in block.columns]
            csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerow(names)
            self._file.write(text.getvalue().encode())
            self._has_header = True
        if self._defuse:
            block, count = defused(block, self._numeric)
            self.defused += count
        if pa is None:
            block.to_csv(self._file, header=False, index=False, sep=self.delimiter, lineterminator="\n")
        else:
            self._file.write(self._text(pa.Table.from_pandas(block, preserve_index=False)))

    def close(self) -> None:
        """End the file."""
        self._file.close()

    def _text(self, rows: Any) -> Any:
        try:
            return self._quoted(rows, "none")
        except pa.ArrowInvalid:  # a cell holds a delimiter, a quote or a newline
            return self._quoted(rows, "needed")

    def _quoted(self, rows: Any, style: str) -> Any:
        text = BytesIO()
        arrow_csv.write_csv(rows, text, arrow_csv.WriteOptions(include_header=False, delimiter=self.delimiter, quoting_style=style))
        return text.getbuffer()


class ParquetWriter:
    """Blocks of rows as Parquet, all with the types of the first one."""

    defused = 0  # no spreadsheet runs text of a typed column

    def __init__(self, path: Path) -> None:
        self._path, self._parquet = path, import_parquet()
        self._writer: Any = None

    def write(self, block: pd.DataFrame) -> None:
        """Append a block."""
        rows = pa.Table.from_pandas(block, preserve_index=False).replace_schema_metadata(None)  # pandas' own types concern no other reader
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._path, rows.schema)
        self._writer.write_table(rows.cast(self._writer.schema))

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()
