"""Tables to CSV and Parquet files, block by block, and never half a file."""

import codecs
import csv
import gzip
import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from .._core.files import replacing
from ..exceptions import TableError
from .readers import EXCEL, OTHER_WORKBOOKS, Table, is_parquet
from .readers.values import is_text

GZIP = ".gz"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)*|[.,]\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)


def check_writable(path: Path, *others: Path) -> None:
    """An error if a file cannot be written there, or is one of the others that are read or written, before work is done for it."""
    folder = path.parent
    if str(path) == "-":
        raise TableError("- is standard output, which only refkernel score --out writes to. Name a file.")
    for other in others:
        if os.path.realpath(path) == os.path.realpath(other) or (path.exists() and other.exists() and path.samefile(other)):
            raise TableError(f"{path} is a file that is read, or another output, and one would be lost. Choose another name.")
    if path.suffix.lower() in (*EXCEL, *OTHER_WORKBOOKS):
        raise TableError(f"--out {path}: workbooks are read, and not written. End the name in .csv, which Excel opens, or in .parquet.")
    if path.exists() and not path.is_file() and not path.is_dir():  # a device or a pipe
        return
    if path.is_dir():
        raise TableError(f"{path} is a folder. Name a file for --out.")
    if not folder.is_dir():
        raise TableError(f"{path} cannot be written: the folder {folder} does not exist. Make it, or choose another --out.")
    if not os.access(folder, os.W_OK):
        raise TableError(f"{path} cannot be written: no permission for the folder {folder}. Choose another --out.")


@contextmanager
def table_writer(
    path: Path, table: Table, defuse: bool = True, numeric: frozenset[str] = frozenset()
) -> "Iterator[CsvWriter | ParquetWriter]":
    """Writes blocks of rows like those of a table to a file that appears when all are written: see :class:`CsvWriter`."""
    with replacing(path) as temporary:
        is_gzip = path.suffix.lower() == GZIP
        with closing(ParquetWriter(temporary) if is_parquet(path) else CsvWriter(temporary, table, defuse, numeric, is_gzip)) as writer:
            yield writer


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run a text: it begins with =, +, -, @, a tab or a carriage return, and is no number."""
    return text.startswith(FORMULA_STARTS) and NUMBER.fullmatch(text.strip()) is None


class CsvWriter:
    """Blocks of rows as CSV, with the delimiter, the encoding and the decimal mark of a table, the header first.

    ``defuse`` puts an apostrophe before formulas, which are counted; ``numeric`` columns hold none.
    """

    def __init__(self, path: Path, table: Table, defuse: bool, numeric: frozenset[str], compressed: bool) -> None:
        self._delimiter, self._defuse, self._numeric = table.delimiter, defuse, numeric
        self._encode = codecs.getincrementalencoder(table.encoding)("replace").encode  # it writes a mark of the byte order only once
        self._has_dots = "…".encode(table.encoding, "replace") != "?".encode(table.encoding)
        self._has_commas = table.marks.decimal == ","
        self._file: Any = gzip.open(path, "wb") if compressed else path.open("wb")  # noqa: SIM115 (closed in close)
        self._has_header, self.defused = False, 0

    def write(self, block: pd.DataFrame) -> None:
        if not self._has_header:
            header = StringIO()
            names = [f"'{name}" if self._defuse and is_formula(name) else name for name in map(str, block.columns)]
            csv.writer(header, delimiter=self._delimiter, lineterminator="\n").writerow(names)
            self._file.write(self._encode(header.getvalue()))
            self._has_header = True
        if self._has_commas:
            block = block.copy(deep=False)
            for name in block.columns[[kind == np.float64 for kind in block.dtypes]]:
                block[name] = block[name].astype(str).str.replace(".", ",", regex=False)
        rows = pa.Table.from_pandas(self._defused(block) if self._defuse else block, preserve_index=False)
        try:
            text = self._text(rows, "none")
        except pa.ArrowInvalid:  # a cell holds a delimiter, a quote or a newline
            text = self._text(rows, "needed")
        decoded = str(text.getbuffer(), "utf-8")
        self._file.write(self._encode(decoded if self._has_dots else decoded.replace("…", "...")))

    def close(self) -> None:
        self._file.close()

    def _defused(self, block: pd.DataFrame) -> pd.DataFrame:
        block = block.copy(deep=False)
        for name in (name for name in block.columns if name not in self._numeric and is_text(block[name])):
            starts = block[name].str.startswith(FORMULA_STARTS).fillna(False).to_numpy(dtype=bool, copy=True)
            if starts.any():
                cells = block[name].to_numpy(dtype=object, copy=True)
                starts[starts] = [is_formula(cell) for cell in cells[starts]]
                cells[starts] = "'" + cells[starts]
                block[name], self.defused = cells, self.defused + int(starts.sum())
        return block

    def _text(self, rows: Any, quoting: str) -> BytesIO:
        text = BytesIO()
        arrow_csv.write_csv(rows, text, arrow_csv.WriteOptions(include_header=False, delimiter=self._delimiter, quoting_style=quoting))
        return text


class ParquetWriter:
    """Blocks of rows as Parquet, all with the types of the first one."""

    defused = 0  # no spreadsheet runs text of a typed column

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def write(self, block: pd.DataFrame) -> None:
        rows = pa.Table.from_pandas(block, preserve_index=False).replace_schema_metadata(None)  # pandas' own types concern no other reader
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._path, rows.schema)
        self._writer.write_table(rows.cast(self._writer.schema))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
