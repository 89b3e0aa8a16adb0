"""Tables in CSV files, whose cells stay the text that they are: ``values`` decides what they mean.

Python's strict reader names the line of what is not a row. A file is read once, and memory holds one block of it.
"""

import codecs
import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import StringIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..._core.text import named
from ...exceptions import TableError
from . import ReadOptions, Table, arrow_frame, check_unpacked, limit, marks_of
from .layout import find_header, find_layout
from .values import is_number

SAMPLE_BYTES = 1 << 16  # what the delimiter is judged by: enough for a header and some rows
BLOCK_BYTES = 1 << 21  # text in a block of rows: 2 MB hold some thousand rows
MOST_LINE_BYTES = 1 << 26  # the longest row, in bytes: 64 MB. A file of one endless line ends there, before it fills the memory.
UTF_8, WITH_BOM, WESTERN = "utf-8", "utf-8-sig", "cp1252"
GZIP_MARK = b"\x1f\x8b"
POINT = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")  # one thousand, where semicolons separate cells, or a number below it: nobody can know
DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


class CsvTable(Table):
    """A CSV file with a header; ``blocks`` gives its rows, every cell as text."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path)
        self._whole = path.stat().st_size
        self.encoding = options.encoding or UTF_8
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            raise TableError(f"--encoding {options.encoding!r} is not known. Usual ones are utf-8, latin-1, cp1252 and utf-16.") from error
        with path.open("rb") as file:
            self._is_gzip = file.read(2) == GZIP_MARK
        if options.encoding is None:
            self._find_encoding()
        sample = self._sample()
        self.delimiter = options.delimiter or find_delimiter(sample, options.wanted)
        rows, problem = _first_rows(sample, self.delimiter)
        if not rows:
            raise TableError(f"{path} is not a CSV file: its first line ends in a carriage return, or holds a broken quote ({problem}).")
        self._header_lines = find_layout(self, rows, options)
        self.marks = marks_of(options, (cells for line, cells in rows if line > self._header_lines), self.notes)
        self._check_delimiter(sample)
        if self.delimiter == ";" and not self.marks.is_decided and not options.wanted:
            cells = (cell for line, row in rows if line > self._header_lines for cell in row)
            for cell in islice(filter(POINT.fullmatch, cells), 1):
                self.notes.append(f"{cell} is read with a decimal point: no cell decides it. --decimal , reads {cell.replace('.', '')}.")

    def blocks(self) -> Iterator[pd.DataFrame]:
        rows: list[list[str]] = []
        ragged: list[tuple[int, int]] = []
        swallowed, begun, width, before = 0, 0, len(self.names), self._header_lines
        line, reader = before + 1, csv.reader(islice(self._lines(), before, None), delimiter=self.delimiter, strict=True)
        try:
            for row in reader:
                rows += [row] if row else []
                ragged += [(line, len(row))] if len(row) not in (0, width) else []
                if before + reader.line_num > line:  # line feeds in cells
                    parts = (part for cell in row if "\n" in cell for part in cell.splitlines())
                    swallowed += sum(part.count(self.delimiter) == width - 1 > 0 for part in parts)
                line = before + reader.line_num + 1
                if self._letters - begun >= BLOCK_BYTES:
                    if ragged:
                        break
                    yield self._frame(rows)
                    rows, begun = [], self._letters
        except csv.Error as error:
            raise self._problem(line, before + reader.line_num, error) from error
        if ragged:
            raise self._ragged(ragged)
        if rows:
            yield self._frame(rows)
        note = f"{swallowed:,} lines inside quoted cells look like rows. If a quote is missing somewhere, these rows were not read."
        if swallowed and note not in self.notes:
            self.notes.append(note)

    def _frame(self, rows: list[list[str]]) -> pd.DataFrame:
        return arrow_frame([pa.chunked_array([pa.array(column, pa.string())]) for column in zip(*rows, strict=True)], self.names)

    def _lines(self) -> Iterator[str]:
        most = limit("REFKERNEL_MOST_LINE_BYTES", MOST_LINE_BYTES)
        with self.path.open("rb") as raw:
            file: Any = gzip.GzipFile(fileobj=raw) if self._is_gzip else raw
            text, number, self._letters, due = TextIOWrapper(file, encoding=self.encoding, newline="\n"), 0, 0, 0
            try:
                while line := text.readline(most + 1):
                    number += 1
                    self._letters += len(line)
                    if len(line) > most:
                        raise TableError(
                            f"{self.path}, line {number}: longer than {most:,} bytes, the most that a row may have. A line feed or a quote "
                            "may be missing; if not, set the environment variable REFKERNEL_MOST_LINE_BYTES to a larger number."
                        )
                    if "\0" in line:
                        what = f"holds NUL characters: it is damaged, or not {self._encoding_name()}. Write it again, or pass --encoding"
                        raise TableError(f"{self.path} {what}.")
                    if self._is_gzip and self._letters >= due:
                        check_unpacked(self.path, file.tell())
                        due = self._letters + SAMPLE_BYTES
                    self._read = raw.tell()
                    yield line
            except UnicodeDecodeError as error:
                byte = error.object[error.start : error.start + 1].hex()
                raise TableError(
                    f"{self.path} is not {self._encoding_name()}: byte 0x{byte} is not one of its characters. "
                    "Pass --encoding: cp1252 or latin-1 for Western European files, utf-16 for some exports."
                ) from error
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise TableError(f"{self.path} is compressed by gzip and broken ({error}). Copy or write it again.") from error

    def _find_encoding(self) -> None:
        """UTF-8, UTF-16 by its mark, or else that of Western Europe, with a note."""
        with gzip.open(self.path) if self._is_gzip else self.path.open("rb") as file, suppress(EOFError, gzip.BadGzipFile, zlib.error):
            start = file.read(SAMPLE_BYTES)
            if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                self.encoding = "utf-16"
                return
            self.encoding = WITH_BOM if start.startswith(codecs.BOM_UTF8) else UTF_8
            try:
                codecs.getincrementaldecoder(UTF_8)().decode(start)  # the last letter may be cut
            except UnicodeDecodeError:
                self.encoding = WESTERN
                self.notes.append(f"The file is not UTF-8 and is read as {WESTERN} (Western European). --encoding names another encoding.")

    def _sample(self) -> str:
        """The first lines of a file."""
        text = ""
        for line in self._lines():
            text += line
            if len(text) >= SAMPLE_BYTES:
                break
        if not text.strip():
            raise TableError(f"{self.path} holds nothing but white space. A table needs a header and rows.")
        if "\n" not in text and "\r" in text:
            raise TableError(f"{self.path} ends its lines with a carriage return alone, as old Macs did. Save it with line feeds (LF).")
        return text

    def _check_delimiter(self, sample: str) -> None:
        """An error where the header is one column, and another delimiter would give more."""
        better, line = find_delimiter(sample), sample.splitlines()[-1]
        width = max((len(row) for _, row in _first_rows(sample, better)[0]), default=1)
        others = [better] if width > 1 else [mark for mark in " :" if mark in line and all(map(is_number, line.split(mark)))]
        if len(self.names) == 1 and others and others[0] != self.delimiter:
            gives = f"{DELIMITERS.get(others[0], repr(others[0]))} gives {max(width, len(line.split(others[0])))}"
            what = f"with {self._delimiter_name()} as delimiter the header is one column; {gives}"
            raise TableError(f"{self.path}: {what}. If that is right, pass --delimiter {others[0]!r}.")

    def _delimiter_name(self) -> str:
        return DELIMITERS.get(self.delimiter, repr(self.delimiter))

    def _ragged(self, found: list[tuple[int, int]]) -> TableError:
        (line, cells), *others = found
        width = len(self.names)
        why = "The file was cut off there, or" if cells < width else "A cell holds an unquoted delimiter, or"
        what = f"{cells} cells, but the header has {width}. {why} the delimiter is not {self._delimiter_name()}"
        more = f" Lines {named((line for line, _ in others), 20)} differ, too." if others else ""
        way_out = "correct the line, or pass --delimiter, or --skip-lines if the header stands further down"
        return TableError(f"{self.path}, line {line}: {what}: {way_out}.{more}")

    def _problem(self, line: int, last: int, error: csv.Error) -> TableError:
        """What is wrong with the row that begins in a line, by Python's strict reader, which is at the ``last`` line."""
        what = f"{error}. A quote inside a quoted cell must be doubled; correct the line."
        if "unexpected end" in str(error):
            what = f"ends inside a quoted cell. A quote that opens there is never closed, and would swallow {last - line:,} more lines; or "
            what += "the file was cut off. Close or double the quote, or write the file again."
        if "field larger" in str(error):
            what = f"a cell has more than {csv.field_size_limit():,} characters. A quote may be missing."
        if "new-line character" in str(error):
            what = "a carriage return without a line feed, as old Macs wrote. It may end a line or not. Save the file with line feeds (LF)."
        return TableError(f"{self.path}, line {line}: {what}")

    def _encoding_name(self) -> str:
        return codecs.lookup(self.encoding).name.upper().removesuffix("-SIG")


def find_delimiter(sample: str, wanted: Mapping[str, str] | None = None) -> str:
    """The delimiter by which a row names all columns of a model, or else that gives most rows the same number of cells, and most cells."""

    def worth(delimiter: str) -> tuple[float, int, bool]:
        widths = Counter(len(row) for _, row in _first_rows(sample, delimiter)[0])
        width = max(widths, key=lambda cells: (widths[cells], cells), default=1)
        return widths[width] / widths.total() if width > 1 else 0.0, width, delimiter != ","  # a comma may be a decimal mark

    best = max(DELIMITERS, key=worth)
    fitting = (mark for mark in (best, *DELIMITERS) if find_header(_first_rows(sample, mark)[0], wanted or {}) is not None)
    return next(fitting, best if worth(best)[0] else ",")


def _first_rows(sample: str, delimiter: str) -> tuple[list[tuple[int, list[str]]], str]:
    """The rows that are not blank, each with the number of its last line, and what is wrong with the next one, if something is."""
    rows: list[tuple[int, list[str]]] = []
    reader = csv.reader(StringIO(sample), delimiter=delimiter)
    try:
        for row in reader:
            rows += [(reader.line_num, row)] if row else []
    except csv.Error as error:  # the rows before it count; it is reported with its line when they are read
        return rows, str(error)
    return rows, ""
