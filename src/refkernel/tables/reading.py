"""Tables from CSV, Parquet and Excel files: block by block, every column by its name, and a message for every file that is not a table.

Cells of a CSV file stay the text that they are. What they mean is decided in ``columns``.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any, Protocol

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

EXCEL = (".xlsx", ".xlsm")
OTHER_WORKBOOKS = (".xls", ".xlsb", ".ods", ".numbers")
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How workbooks begin: a zip archive, or the older container of Microsoft Office."""

NUMBER_WORDS = ("inf", "infinity", "nan")
"""Words that Python reads as numbers, and that may name a column."""

UNPACKED = 5
"""How many times larger than its compressed file a text is taken to be."""

GZIP_MARK = b"\x1f\x8b"
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


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


def open_table(path: Path, form: CsvFormat) -> Table:
    """The table in a file, by the ending of its name: .parquet or .pq, .xlsx or .xlsm, and CSV (or .csv.gz) for all others."""
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} does not exist. Check the path.")
    if path.is_dir():
        raise TableError(f"{path} is a folder. Name a CSV, Parquet or Excel file in it.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty (0 bytes). A table needs a header and rows.")
    _check_kind(path)
    if is_excel(path):
        from .workbook import WorkbookTable

        return WorkbookTable(path, form)
    return ParquetTable(path) if is_parquet(path) else CsvTable(path, form)


def is_parquet(path: Path) -> bool:
    """Whether a file is to be Parquet, by its name."""
    return Path(path).suffix.lower() in PARQUET


def is_excel(path: Path) -> bool:
    """Whether a file is to be a workbook that can be read, by its name."""
    return Path(path).suffix.lower() in EXCEL


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


def read_whole(table: Table) -> pd.DataFrame:
    """All rows of a table that has at least one."""
    blocks = list(table.blocks())
    return blocks[0] if len(blocks) == 1 else pd.concat(blocks, ignore_index=True)


class CsvTable:
    """A CSV file with a header; ``blocks`` gives its rows, every cell as text."""

    def __init__(self, path: Path, form: CsvFormat) -> None:
        self.path, self.decimal, self.encoding = path, form.decimal, _encoding(form.encoding)
        sample = _sample(path, self.encoding)
        self.delimiter = form.delimiter or find_delimiter(sample)
        header, self._header_lines = _header(sample, self.delimiter, path)
        if form.header is None:
            ask_for_header(header, path)
        if form.header is False:
            header, self._header_lines = [""] * len(header), 0
        self.names = checked_names(header, path)
        self._check_delimiter(sample)
        self._size = path.stat().st_size
        self._position: Callable[[], int] = lambda: 0
        self.notes: list[str] = []
        self.is_flat, self.size = True, self._size * (UNPACKED if is_gzip(path) else 1)
        self._is_checked = False

    def blocks(self) -> Iterator[pd.DataFrame]:
        """The rows, in their order; an error where there is none."""
        if not self._is_checked:
            self._check_lines()
        self._is_checked = True
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

    def _arrow_blocks(self) -> Iterator[pd.DataFrame]:
        try:
            with pa.OSFile(str(self.path)) as file:
                self._position = lambda: file.tell() if not file.closed else self._size
                for batch in self._arrow_reader(pa.CompressedInputStream(file, "gzip") if is_gzip(self.path) else file):
                    yield batch.to_pandas(types_mapper=pd.ArrowDtype)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if not sum(map(len, self._python_blocks())):  # it names the line; Arrow wants a row after the header
                return
            raise TableError(
                f"{self.path} cannot be read: {error}. Pass --encoding or --delimiter if the file is written in another way."
            ) from error

    def _arrow_reader(self, file: Any) -> Any:
        encoding = "utf-8" if self.encoding == "utf-8-sig" else self.encoding
        return arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(
                column_names=self.names, skip_rows=self._header_lines, block_size=BLOCK_BYTES, encoding=encoding
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(self.names, pa.string()), strings_can_be_null=False),
        )

    def _python_blocks(self) -> Iterator[pd.DataFrame]:
        rows: list[list[str]] = []
        for _, row in self._python_rows():
            rows.append(row)
            if len(rows) == BLOCK_ROWS:
                yield pd.DataFrame(rows, columns=self.names, dtype=object)
                rows = []
        yield pd.DataFrame(rows, columns=self.names, dtype=object)

    def _wrong_length(self, line: int, row: list[str]) -> TableError:
        delimiter = DELIMITERS.get(self.delimiter, repr(self.delimiter))
        why = "The file was cut off there, or" if len(row) < len(self.names) else "A cell holds an unquoted delimiter, or"
        return TableError(
            f"{self.path}, line {line}: {len(row)} cells, but the header has {len(self.names)}. {why} the delimiter is not {delimiter}: "
            "correct the line, or pass --delimiter."
        )

    def _check_lines(self) -> None:
        """Check the quotes: Arrow accepts one that is never closed, and loses the lines after it, so Python's strict reader goes first."""
        quotes, returns = 0, 0
        for block in _blocks_of_bytes(self.path, self.encoding):
            if b"\0" in block:
                raise TableError(
                    f"{self.path} holds NUL characters: it is damaged, or not {self._encoding_name()}. Write it again, or pass --encoding."
                )
            quotes += block.count(b'"')
            returns += _lone_returns(block)
        if not quotes and not returns:
            return
        width, swallowed = len(self.names) - 1, 0
        for _, row in self._python_rows():
            for cell in row:
                returns -= _lone_returns(cell)
                if "\n" in cell:
                    swallowed += sum(part.count(self.delimiter) == width > 0 for part in cell.splitlines())
        if returns:
            raise TableError(
                f"{self.path}, line {self._line_of_return()}: a carriage return without a line feed, as old Macs wrote. It may end "
                "a line or not. Save the file with line feeds (LF)."
            )
        if swallowed:
            self.notes.append(
                f"{swallowed:,} lines inside quoted cells look like rows. If a quote is missing somewhere, these rows were not read."
            )

    def _python_rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of each row that is not blank, by Python's strict reader."""
        with open_text(self.path, self.encoding) as file:
            self._position = lambda: os.lseek(file.fileno(), 0, os.SEEK_CUR) if not file.closed else self._size
            reader = csv.reader(file, delimiter=self.delimiter, strict=True)
            start = 1
            try:
                while reader.line_num < self._header_lines:
                    next(reader)
                start = reader.line_num + 1
                for row in reader:
                    if row and len(row) != len(self.names):
                        raise self._wrong_length(start, row)
                    if row:
                        yield start, row
                    start = reader.line_num + 1
            except csv.Error as error:
                raise self._not_csv(error, start, reader.line_num) from error
            except UnicodeDecodeError as error:
                raise _not_decoded(self.path, error, self.encoding) from error

    def _line_of_return(self) -> int:
        """The line, by line feeds, of the first carriage return that stands alone."""
        line = 1
        for block in _blocks_of_bytes(self.path, self.encoding):
            found = re.search(rb"\r(?!\n)", block)
            if found:
                return line + block.count(b"\n", 0, found.start())
            line += block.count(b"\n")
        return line

    def _not_csv(self, error: csv.Error, start: int, line: int) -> TableError:
        if "unexpected end" in str(error):
            return TableError(
                f"{self.path}, line {start}: ends inside a quoted cell. A quote that opens there is never closed, and would swallow "
                f"{max(line - start, 0):,} more lines; or the file was cut off. Close or double the quote, or write the file again."
            )
        if "field larger" in str(error):
            return TableError(
                f"{self.path}, line {start}: a cell has more than {csv.field_size_limit():,} characters. A quote may be missing."
            )
        return TableError(f"{self.path}, line {start}: {error}. A quote inside a quoted cell must be doubled; correct the line.")

    def _encoding_name(self) -> str:
        return self.encoding.upper().removesuffix("-SIG")

    def _check_delimiter(self, sample: str) -> None:
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
    """A Parquet file; ``blocks`` gives its rows, every column with its type, and ``column`` one of its columns.

    ``file`` is the Parquet file of a table that was read from ``path``, if that is another, with the names of the table's columns.
    """

    decimal = "."
    delimiter = ","

    def __init__(self, path: Path, file: Any = None, names: list[str] | None = None) -> None:
        self.path = path
        parquet = import_parquet()
        try:
            self._file = parquet.ParquetFile(path if file is None else file)
        except pa.ArrowInvalid as error:
            raise TableError(f"{path} is not a Parquet file, or a broken one: {error} Write it again, or end its name in .csv.") from error
        self.names = names or checked_names(self._file.schema_arrow.names, path)
        self._rows, self._read = self._file.metadata.num_rows, 0
        self.is_flat, self.size = self._file.metadata.num_columns == len(self.names), 8 * self._rows * len(self.names)
        self.notes: list[str] = []

    def blocks(self) -> Iterator[pd.DataFrame]:
        """The rows, in their order; an error where there is none."""
        if not self._rows:
            raise TableError(f"{self.path} has {len(self.names)} columns and no rows.")
        self._read = 0
        for batch in self._file.iter_batches(batch_size=BLOCK_ROWS):
            self._read += batch.num_rows
            yield pa.table([_plain(column) for column in batch.columns], names=self.names).to_pandas(types_mapper=pd.ArrowDtype)

    def __len__(self) -> int:
        return int(self._rows)

    def column(self, name: str) -> pd.Series:
        """All rows of one column, of a file whose columns are not nested."""
        chunks = [_plain(chunk) for chunk in self._file.reader.read_column(self.names.index(name)).chunks]
        return pa.table([pa.chunked_array(chunks)], names=[name]).to_pandas(types_mapper=pd.ArrowDtype)[name]

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


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed by gzip, by its first bytes."""
    with path.open("rb") as file:
        return file.read(len(GZIP_MARK)) == GZIP_MARK


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if it is compressed."""
    try:
        with gzip.open(path) if is_gzip(path) else path.open("rb") as file:
            yield file  # type: ignore[misc]
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is compressed by gzip and broken ({error}). Copy or write it again.") from error


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIOWrapper]:
    """The text of a file, unpacked if it is compressed."""
    with open_bytes(path) as file, TextIOWrapper(file, encoding=encoding, newline="") as text:
        yield text


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


def _check_kind(path: Path) -> None:
    """Workbooks that cannot be read, and workbooks whose name says they are something else, by their first bytes."""
    with path.open("rb") as file:
        start = file.read(max(map(len, WORKBOOKS)))
    if path.suffix.lower() in OTHER_WORKBOOKS:
        raise TableError(f"{path} is a workbook of a kind that cannot be read. Save it as .xlsx or as CSV (UTF-8), and pass that.")
    if start.startswith(WORKBOOKS) and not is_parquet(path) and not is_excel(path):
        raise TableError(f"{path} is a workbook or a zip archive. If it is an Excel file, end its name in .xlsx; else unpack it.")


def ask_for_header(header: list[str], path: Path) -> None:
    """An error for a first line that seems to be a row: all cells are numbers, or some have decimals."""
    cells = [cell.strip() for cell in header if cell.strip()]
    found = [cell for cell in cells if _is_number(cell)]
    if found and (len(found) == len(cells) or any(not cell.lstrip("+-").isdigit() and cell.lower() not in NUMBER_WORDS for cell in found)):
        raise TableError(
            f"{path}: the first line holds numbers ({', '.join(found[:3])}), where names of columns are expected. Pass --no-header if it "
            "is a row (columns are then called column 1, column 2, …), or --header if these are the names."
        )


def _blocks_of_bytes(path: Path, encoding: str) -> Iterator[bytes]:
    """The bytes of a file, block by block, in an encoding where ASCII characters are single bytes."""
    wide = encoding.lower().replace("_", "-").startswith(("utf-16", "utf16", "utf-32", "utf32"))
    try:
        opened: Any = open_text(path, encoding) if wide else open_bytes(path)
        with opened as file:
            while block := file.read(BLOCK_BYTES):
                if block[-1:] in ("\r", b"\r"):  # its line feed may come next
                    block += file.read(1)
                yield block.encode() if wide else block
    except UnicodeDecodeError as error:
        raise _not_decoded(path, error, encoding) from error


def _lone_returns(text: Any) -> int:
    pair, one = (b"\r\n", b"\r") if isinstance(text, bytes) else ("\r\n", "\r")
    return text.count(one) - text.count(pair)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _plain(column: Any) -> Any:
    """Dictionaries as what they stand for."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _sample(path: Path, encoding: str) -> str:
    """The first whole lines of a file (its only line, if it has one)."""
    with open_bytes(path) as file:
        mark = file.read(2)
    if mark in BYTE_ORDER_MARKS and encoding == "utf-8-sig":
        raise TableError(f"{path} is not UTF-8 but UTF-16. Pass --encoding {BYTE_ORDER_MARKS[mark]}.")
    try:
        with open_text(path, encoding) as file:
            sample, rest = file.read(SAMPLE_BYTES), file.read(1)
    except UnicodeDecodeError as error:
        raise _not_decoded(path, error, encoding) from error
    if not sample.strip():
        raise TableError(f"{path} holds nothing but white space. A table needs a header and rows.")
    if "\r" in sample and "\n" not in sample:
        raise TableError(f"{path} ends its lines with a carriage return alone, as old Macs did. Save it with line feeds (LF).")
    lines = sample.splitlines(keepends=True)
    return "".join(lines[:-1]) if len(lines) > 1 and rest else sample


def _first_row(sample: str, delimiter: str) -> list[str]:
    try:
        return next((row for row in csv.reader(StringIO(sample), delimiter=delimiter) if row), [])
    except csv.Error:
        return []


def _header(sample: str, delimiter: str, path: Path) -> tuple[list[str], int]:
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


def _encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError as error:
        raise TableError(f"--encoding {name!r} is not known. Usual ones are utf-8, latin-1, cp1252 and utf-16.") from error
    return "utf-8-sig" if name.lower().replace("_", "-") in ("utf-8", "utf8") else name


def _not_decoded(path: Path, error: UnicodeDecodeError, encoding: str) -> TableError:
    byte = error.object[error.start : error.start + 1].hex()
    return TableError(
        f"{path} is not {encoding.upper().removesuffix('-SIG')}: byte 0x{byte} is not one of its characters. "
        "Pass --encoding: cp1252 or latin-1 for Western European files, utf-16 for some exports."
    )
