"""Tables from CSV and Parquet files: block by block, every column by its name, and a message for every file that is not a table.

Cells of a CSV file stay the text that they are. What they mean is decided in ``columns``.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from ..exceptions import TableError

try:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
except ImportError:  # the extra parquet; without it CSV files are read by Python's own csv module
    pa = None

DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
PARQUET = (".parquet", ".pq")

SAMPLE_BYTES = 1 << 16
"""What the delimiter is judged by: enough for a header and some rows."""

BLOCK_BYTES = 1 << 21
"""Text read at a time: 2 MB hold some thousand rows. Arrow reads up to 40 blocks ahead, so larger ones would cost memory."""

BLOCK_ROWS = 1 << 14
"""Rows of a block where rows are counted."""

GZIP_MARK = b"\x1f\x8b"
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


@dataclass(frozen=True)
class CsvFormat:
    """How CSV files are written. A delimiter of None is found out."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self):
        if self.decimal not in (".", ","):
            raise TableError(f"--decimal {self.decimal!r} must be a point or a comma.")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise TableError(f"--delimiter {self.delimiter!r} must be one character; a tab is written $'\\t' in a shell, or the word tab.")


def open_table(path: Path, form: CsvFormat) -> CsvTable | ParquetTable:
    """The table in a file, by the ending of its name: .parquet or .pq, and CSV for all others."""
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} does not exist. Check the path.")
    if path.is_dir():
        raise TableError(f"{path} is a folder. Name a CSV or Parquet file in it.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty (0 bytes). A table needs a header and rows.")
    return ParquetTable(path) if is_parquet(path) else CsvTable(path, form)


def is_parquet(path: Path) -> bool:
    return Path(path).suffix.lower() in PARQUET


def read_whole(table: CsvTable | ParquetTable) -> pd.DataFrame:
    """All rows of a table that has at least one."""
    blocks = list(table.blocks())
    return blocks[0] if len(blocks) == 1 else pd.concat(blocks, ignore_index=True)


class CsvTable:
    """A CSV file with a header; ``blocks`` gives its rows, every cell as text."""

    def __init__(self, path: Path, form: CsvFormat):
        self.path, self.decimal, self.encoding = path, form.decimal, _encoding(form.encoding)
        sample = _sample(path, self.encoding)
        self.delimiter = form.delimiter or find_delimiter(sample)
        header, self._header_lines = _header(sample, self.delimiter, path)
        self.names = _checked_names(header, path)
        self._check_delimiter(sample)
        self._size, self._position = path.stat().st_size, lambda: 0

    def blocks(self) -> Iterator[pd.DataFrame]:
        """The rows, in their order; an error where there is none."""
        self._check_end()
        some = False
        for block in self._arrow_blocks() if pa is not None else self._python_blocks():
            if len(block):
                some = True
                yield block
        if not some:
            raise TableError(f"{self.path} has a header of {len(self.names)} columns and no rows.")

    def share_read(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        return min(self._position() / self._size, 1.0)

    def _arrow_blocks(self):
        try:
            with pa.OSFile(str(self.path)) as file:
                self._position = lambda: file.tell() if not file.closed else self._size
                for batch in self._arrow_reader(file):
                    yield batch.to_pandas(types_mapper=pd.ArrowDtype)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if not sum(map(len, self._python_blocks())):  # it names the line; Arrow wants a row after the header
                return
            raise TableError(f"{self.path} cannot be read: {error}.") from error

    def _arrow_reader(self, file):
        encoding = "utf-8" if self.encoding == "utf-8-sig" else self.encoding
        return arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(
                column_names=self.names, skip_rows=self._header_lines, block_size=BLOCK_BYTES, encoding=encoding
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(self.names, pa.string()), strings_can_be_null=False),
        )

    def _python_blocks(self):
        with self.path.open(encoding=self.encoding, newline="") as file:
            self._position = lambda: os.lseek(file.fileno(), 0, os.SEEK_CUR) if not file.closed else self._size
            reader = csv.reader(file, delimiter=self.delimiter, strict=True)
            try:
                yield from self._frames(reader)
            except csv.Error as error:
                raise TableError(
                    f"{self.path}, line {reader.line_num}: {error}. A quoted cell is not closed, or the file was cut off there."
                ) from error
            except UnicodeDecodeError as error:
                raise _not_decoded(self.path, error) from error

    def _frames(self, reader):
        rows: list[list[str]] = []
        while reader.line_num < self._header_lines:
            next(reader)
        for row in reader:
            if row and len(row) != len(self.names):
                raise self._wrong_length(reader.line_num, row)
            if row:
                rows.append(row)
            if len(rows) == BLOCK_ROWS:
                yield pd.DataFrame(rows, columns=self.names, dtype=object)
                rows = []
        yield pd.DataFrame(rows, columns=self.names, dtype=object)

    def _wrong_length(self, line, row):
        delimiter = DELIMITERS.get(self.delimiter, repr(self.delimiter))
        why = "The file was cut off there, or" if len(row) < len(self.names) else "A cell holds an unquoted delimiter, or"
        return TableError(
            f"{self.path}, line {line}: {len(row)} cells, but the header has {len(self.names)}. {why} the delimiter is not {delimiter}: "
            "mend the line, or pass --delimiter."
        )

    def _check_end(self):
        """A file that ends inside a quoted cell has no last newline and an odd number of quotes."""
        with self.path.open("rb") as file:
            file.seek(-1, 2)
            if file.read(1) in b"\n\r\0":
                return
            file.seek(0)
            quotes = sum(block.count(b'"') for block in iter(lambda: file.read(BLOCK_BYTES), b""))
        if quotes % 2:
            raise TableError(f"{self.path} ends inside a quoted cell: the file was cut off. Write or download it again.")

    def _check_delimiter(self, sample):
        better = find_delimiter(sample)
        if len(self.names) == 1 and better != self.delimiter and len(_first_row(sample, better)) > 1:
            raise TableError(
                f"{self.path}: with {DELIMITERS.get(self.delimiter, repr(self.delimiter))} as delimiter the header is one column; "
                f"{DELIMITERS[better]} gives {len(_first_row(sample, better))}. Leave out --delimiter, or pass {better!r}."
            )
        line = sample.splitlines()[-1]
        for other in " :":
            if len(self.names) == 1 and other != self.delimiter and len(line.split(other)) > 1 and all(map(_is_number, line.split(other))):
                raise TableError(
                    f"{self.path} has one column, with cells such as {line!r}. If these are several numbers, pass --delimiter {other!r}."
                )


class ParquetTable:
    """A Parquet file; ``blocks`` gives its rows, every column with its type."""

    decimal = "."
    delimiter = ","

    def __init__(self, path: Path):
        self.path = path
        parquet = import_parquet()
        try:
            self._file = parquet.ParquetFile(path)
        except pa.ArrowInvalid as error:
            raise TableError(f"{path} is no Parquet file, or a broken one: {error} Write it again, or end its name in .csv.") from error
        self.names = _checked_names(self._file.schema_arrow.names, path)
        self._rows, self._read = self._file.metadata.num_rows, 0

    def blocks(self) -> Iterator[pd.DataFrame]:
        """The rows, in their order; an error where there is none."""
        if not self._rows:
            raise TableError(f"{self.path} has {len(self.names)} columns and no rows.")
        self._read = 0
        for batch in self._file.iter_batches(batch_size=BLOCK_ROWS):
            self._read += batch.num_rows
            yield pa.table([_plain(column) for column in batch.columns], names=self.names).to_pandas(types_mapper=pd.ArrowDtype)

    def share_read(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        return self._read / max(self._rows, 1)


def import_parquet() -> Any:
    """pyarrow.parquet, or an error that says what to install."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install refkernel[parquet], or use a CSV file.") from error
    return pyarrow.parquet


def find_delimiter(sample: str) -> str:
    """The delimiter that gives the rows of a sample one and the same number of cells, and most of them; a comma if none does."""

    def worth(delimiter):
        widths = [len(row) for row in csv.reader(StringIO(sample), delimiter=delimiter) if row]
        return (len(set(widths)) == 1 and widths[0] > 1, widths[0] if widths else 0)

    return max(DELIMITERS, key=worth)


def _is_number(text) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _plain(column):
    """Dictionaries as what they stand for."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _sample(path, encoding):
    """The first whole lines of a file (its only line, if it has one)."""
    with path.open("rb") as file:
        mark = file.read(2)
    if mark == GZIP_MARK:
        raise TableError(f"{path} is compressed (gzip). Unpack it first.")
    if mark in BYTE_ORDER_MARKS and encoding == "utf-8-sig":
        raise TableError(f"{path} is not UTF-8 but UTF-16. Pass --encoding {BYTE_ORDER_MARKS[mark]}.")
    try:
        with path.open(encoding=encoding, newline="") as file:
            sample, rest = file.read(SAMPLE_BYTES), file.read(1)
    except UnicodeDecodeError as error:
        raise _not_decoded(path, error) from error
    if not sample.strip():
        raise TableError(f"{path} holds nothing but white space. A table needs a header and rows.")
    if "\r" in sample and "\n" not in sample:
        raise TableError(f"{path} ends its lines with a carriage return alone, as old Macs did. Save it with today's line ends (LF).")
    lines = sample.splitlines(keepends=True)
    return "".join(lines[:-1]) if len(lines) > 1 and rest else sample


def _first_row(sample, delimiter):
    return next(row for row in csv.reader(StringIO(sample), delimiter=delimiter) if row)


def _header(sample, delimiter, path):
    """The first row that is not blank, and the number of lines up to its end."""
    reader = csv.reader(StringIO(sample), delimiter=delimiter)
    try:
        header = next(row for row in reader if row)
    except csv.Error as error:
        raise TableError(f"{path} is no CSV file: {error}.") from error
    return header, reader.line_num


def _checked_names(header, path):
    """Stripped column names; a column without one is called by its number."""
    names = [name.strip() or f"column {number}" for number, name in enumerate(header, start=1)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(
            f"{path}: {len(twice)} column names are there more than once: {', '.join(twice)}. Columns are matched by name: rename them."
        )
    return names


def _encoding(name):
    try:
        "".encode(name)
    except LookupError as error:
        raise TableError(f"--encoding {name!r} is not known. Usual ones are utf-8, latin-1, cp1252 and utf-16.") from error
    return "utf-8-sig" if name.lower().replace("_", "-") in ("utf-8", "utf8") else name


def _not_decoded(path, error):
    byte = error.object[error.start : error.start + 1].hex()
    return TableError(
        f"{path} is not {error.encoding.upper().removesuffix('-SIG')}: byte 0x{byte} is none of its characters. "
        "Pass --encoding: cp1252 or latin-1 for Western European files, utf-16 for some exports."
    )
