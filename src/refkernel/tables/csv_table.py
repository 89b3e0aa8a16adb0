"""Tables in CSV files, whose cells stay the text that they are: what they mean is decided in ``columns``."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ..exceptions import TableError
from . import text_files
from .delimiters import DELIMITERS, find_delimiter, first_row, header_of
from .form import BLOCK_ROWS, CsvFormat
from .frames import arrow_frame
from .headers import ask_for_header, checked_names, is_number
from .text_files import blocks_of_bytes, encoding_of, is_gzip, lone_returns, not_decoded, open_text, sample_of

try:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
except ImportError:  # the extra parquet; without it CSV files are read by Python's own csv module
    pa = None

UNPACKED = 5
"""How many times larger than its compressed file a text is taken to be."""

ARROW_BYTES = 1 << 18
"""Text that Arrow takes at a time. It reads 32 such pieces ahead, and holds them; a row must fit into one."""


class CsvTable:
    """A CSV file with a header; ``blocks`` gives its rows, every cell as text."""

    def __init__(self, path: Path, form: CsvFormat) -> None:
        self.path, self.decimal, self.encoding = path, form.decimal, encoding_of(form.encoding)
        sample = sample_of(path, self.encoding)
        self.delimiter = form.delimiter or find_delimiter(sample)
        header, self._header_lines = header_of(sample, self.delimiter, path)
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
        self._arrow_bytes = text_files.BLOCK_BYTES

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
                for rows in _joined(self._arrow_reader(pa.CompressedInputStream(file, "gzip") if is_gzip(self.path) else file)):
                    yield arrow_frame(rows.columns, self.names)
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
                column_names=self.names, skip_rows=self._header_lines, block_size=self._arrow_bytes, encoding=encoding
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
        quotes, returns, are_short = 0, 0, True
        for block in blocks_of_bytes(self.path, self.encoding):
            are_short = are_short and _has_short_lines(block)
            if b"\0" in block:
                raise TableError(
                    f"{self.path} holds NUL characters: it is damaged, or not {self._encoding_name()}. Write it again, or pass --encoding."
                )
            quotes += block.count(b'"')
            returns += lone_returns(block)
        if not quotes and not returns:
            self._arrow_bytes = min(ARROW_BYTES, text_files.BLOCK_BYTES) if are_short else text_files.BLOCK_BYTES
            return
        width, swallowed = len(self.names) - 1, 0
        for _, row in self._python_rows():
            for cell in row:
                returns -= lone_returns(cell)
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
                raise not_decoded(self.path, error, self.encoding) from error

    def _line_of_return(self) -> int:
        """The line, by line feeds, of the first carriage return that stands alone."""
        line = 1
        for block in blocks_of_bytes(self.path, self.encoding):
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
        if len(self.names) == 1 and better != self.delimiter and len(first_row(sample, better)) > 1:
            raise TableError(
                f"{self.path}: with {DELIMITERS.get(self.delimiter, repr(self.delimiter))} as delimiter the header is one column; "
                f"{DELIMITERS[better]} gives {len(first_row(sample, better))}. Leave out --delimiter, or pass {better!r}."
            )
        line = sample.splitlines()[-1]
        for other in " :":
            if len(self.names) == 1 and other != self.delimiter and len(line.split(other)) > 1 and all(map(is_number, line.split(other))):
                raise TableError(
                    f"{self.path} has one column, with cells such as {line!r}. If these are several numbers, pass --delimiter {other!r}."
                )


def _joined(batches: Any) -> Iterator[Any]:
    """Arrow's rows in tables of about ``BLOCK_BYTES``: pandas takes as long for a small one."""
    some, size = [], 0
    for batch in batches:
        some.append(batch)
        size += batch.nbytes
        if size >= text_files.BLOCK_BYTES:
            yield pa.Table.from_batches(some).combine_chunks()
            some, size = [], 0
    if some:
        yield pa.Table.from_batches(some).combine_chunks()


def _has_short_lines(block: bytes) -> bool:
    """Whether a line ends in every eighth of ``ARROW_BYTES``: no line is then longer than three, and as UTF-8 none longer than a piece."""
    step = ARROW_BYTES // 8
    return all(block.find(b"\n", start, start + step) >= 0 for start in range(0, len(block) - step + 1, step))
