"""Tables to CSV and Parquet files, block by block, and never half a file."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from ..exceptions import TableError
from .reading import import_parquet, is_parquet

try:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
except ImportError:  # the extra parquet; CSV files are then written by pandas
    pa = None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path``. The file becomes ``path`` at the end, and is removed if there is an error before."""
    check_writable(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path, *inputs: Path) -> None:
    """An error if a file cannot be written there, or is one of those that are read, before work is done for it."""
    folder = path.parent
    for other in inputs:
        if path.exists() and other.exists() and path.samefile(other):
            raise TableError(f"--out {path} is a file that is read, and would be lost. Choose another name.")
    if path.is_dir():
        raise TableError(f"{path} is a folder. Name a file for --out.")
    if not folder.is_dir():
        raise TableError(f"{path} cannot be written: the folder {folder} does not exist. Make it, or choose another --out.")
    if not os.access(folder, os.W_OK):
        raise TableError(f"{path} cannot be written: no permission for the folder {folder}. Choose another --out.")


@contextmanager
def table_writer(path: Path, delimiter: str) -> Iterator[CsvWriter | ParquetWriter]:
    """Writes blocks of rows to a file that appears when all are written."""
    with replacing(path) as temporary:
        writer = ParquetWriter(temporary) if is_parquet(path) else CsvWriter(temporary, delimiter)
        try:
            yield writer
        finally:
            writer.close()


class CsvWriter:
    """Blocks of rows as CSV, UTF-8, the header first. Cells are quoted where they must be."""

    def __init__(self, path: Path, delimiter: str):
        self.delimiter = delimiter
        self._file = path.open("wb")
        self._has_header = False

    def write(self, block: pd.DataFrame) -> None:
        if not self._has_header:
            text = StringIO()
            csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerow(block.columns)
            self._file.write(text.getvalue().encode())
            self._has_header = True
        if pa is None:
            block.to_csv(self._file, header=False, index=False, sep=self.delimiter, lineterminator="\n")
        else:
            self._file.write(self._text(pa.Table.from_pandas(block, preserve_index=False)))

    def close(self) -> None:
        self._file.close()

    def _text(self, rows):
        try:
            return self._quoted(rows, "none")
        except pa.ArrowInvalid:  # a cell holds a delimiter, a quote or a newline
            return self._quoted(rows, "needed")

    def _quoted(self, rows, style):
        text = BytesIO()
        arrow_csv.write_csv(rows, text, arrow_csv.WriteOptions(include_header=False, delimiter=self.delimiter, quoting_style=style))
        return text.getbuffer()


class ParquetWriter:
    """Blocks of rows as Parquet, all with the types of the first one."""

    def __init__(self, path: Path):
        self._path, self._parquet = path, import_parquet()
        self._writer: Any = None

    def write(self, block: pd.DataFrame) -> None:
        rows = pa.Table.from_pandas(block, preserve_index=False).replace_schema_metadata(None)  # pandas' own types are no one else's matter
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._path, rows.schema)
        self._writer.write_table(rows.cast(self._writer.schema))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
