"""Tables in files: one module for each file type, and ``values`` for numbers and dates as people write them."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from ..._core.text import counted
from ...exceptions import TableError
from .values import Marks, find_decimal

__all__ = ["ReadOptions", "Table", "open_table", "read_sample", "read_whole"]

BLOCK_ROWS = 1 << 14  # rows of a block where rows are counted
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")
OTHER_WORKBOOKS = (".xls", ".xlsb", ".ods", ".numbers")

WORKBOOK_STARTS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # how workbooks begin: a zip archive, or the older container of Microsoft Office

MOST_UNPACKED = 200
"""A compressed table may hold this many times the size of its file. Measured data stay below 100; files made to fill memory reach 1,000."""

FREE_BYTES = 1 << 26  # tables of up to 64 MB are read whatever their compression


@dataclass(frozen=True)
class ReadOptions:
    """How a file writes its table. What is None is recognised where that leaves no doubt, and otherwise asked for by an error."""

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None  # whether a line names the columns. None: yes, but ask where it holds numbers.
    sheet: str | None = None  # of a workbook, by default the first
    skip_lines: int | None = None  # lines above the header
    units_row: bool | None = None  # whether the line under the header holds units
    missing: Sequence[str] = ()  # texts that stand for missing cells, beside the usual ones
    wanted: Mapping[str, str] = field(default_factory=dict)  # the columns of a model, and their units: they tell the header

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise TableError(f"--decimal {self.decimal!r} must be a point or a comma.")
        if self.delimiter is not None and (len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n'):
            raise TableError(
                f"--delimiter {self.delimiter!r} must be one character of ASCII, and not a quote or the end of a line; a tab is written "
                "$'\\t' in a shell, or the word tab."
            )


class Table:
    """A file of rows: the names of its columns, their ``units`` where a row under the header has them, and ``blocks`` of rows in order."""

    marks: Marks
    delimiter, encoding = ",", "utf-8"

    def __init__(self, path: Path) -> None:
        self.path, self.names, self.units, self.notes = path, list[str](), dict[str, str](), list[str]()
        self._read, self._whole = 0, 1

    def blocks(self) -> Iterator[pd.DataFrame]:
        """The rows, in their order."""
        raise NotImplementedError

    def share_read(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        return min(self._read / max(self._whole, 1), 1.0)


def open_table(path: Path, options: ReadOptions) -> Table:
    """The table in a file, by the ending of its name: .parquet or .pq, .xlsx or .xlsm, and CSV (or .csv.gz) for all others."""
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} does not exist. Check the path.")
    if path.is_dir():
        raise TableError(f"{path} is a folder. Name a CSV, Parquet or Excel file in it.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty (0 bytes). A table needs a header and rows.")
    ending = path.suffix.lower()
    if ending in OTHER_WORKBOOKS:
        raise TableError(f"{path} is a workbook of a kind that cannot be read. Save it as .xlsx or as CSV (UTF-8), and pass that.")
    with path.open("rb") as file:
        if ending not in PARQUET + EXCEL and file.read(4) in WORKBOOK_STARTS:
            raise TableError(f"{path} is a workbook or a zip archive. If it is an Excel file, end its name in .xlsx; else unpack it.")
    if ending in EXCEL:
        from .excel import WorkbookTable

        return WorkbookTable(path, options)
    if is_parquet(path):
        from .parquet import ParquetTable

        return ParquetTable(path, options)
    from .csv import CsvTable

    return CsvTable(path, options)


def marks_of(options: ReadOptions, rows: Iterable[Sequence[str]], notes: list[str]) -> Marks:
    """How numbers and missing cells are written, by what the user says or else by some rows."""
    decimal = options.decimal or find_decimal(rows)
    if decimal == "," and options.decimal is None:
        notes.append("Numbers are read with decimal commas, which some cells leave no doubt of. --decimal . reads points instead.")
    return Marks(decimal or ".", frozenset(text.strip().lower() for text in options.missing), decimal is not None)


def read_whole(table: Table) -> pd.DataFrame:
    """All rows of a table that has at least one."""
    return read_sample(table, sys.maxsize, 0, lambda stage: None)[0]


def read_sample(table: Table, most: int, seed: Any, progress: Callable[[str], None]) -> tuple[pd.DataFrame, int]:
    """Draw at most this many rows of a table, in order; also return how many it has. Memory holds about twice as many."""
    rng, held, keys, total = check_random_state(seed), list[pd.DataFrame](), np.empty(0), 0
    for block in table.blocks():
        held, keys, total = [*held, block], np.append(keys, rng.random_sample(len(block))), total + len(block)
        progress(f"fit: reading {table.path.name}, {table.share_read():.0%}, {counted(total, 'row')}")
        if keys.size > 2 * most:
            held, keys = _with_least(held, keys, most)
    if not total:
        raise TableError(f"{table.path} has {counted(len(table.names), 'column')} and no rows.")
    (frame,), _ = _with_least(held, keys, most)
    return frame, total


def _with_least(blocks: list[pd.DataFrame], keys: np.ndarray, most: int) -> tuple[list[pd.DataFrame], np.ndarray]:
    """The rows with the least keys, in one block, and these keys: rows are drawn by keys that are random."""
    rows = blocks[0] if len(blocks) == 1 else pd.concat(blocks, ignore_index=True)
    if len(rows) <= most:
        return [rows], keys
    kept = np.sort(np.argpartition(keys, most - 1)[:most])
    return [rows.iloc[kept].reset_index(drop=True)], keys[kept]


def is_parquet(path: Path) -> bool:
    """Whether a file is to be Parquet, by its name."""
    return Path(path).suffix.lower() in PARQUET


def check_unpacked(path: Path, size: int) -> None:
    """Refuse a compressed table of more bytes than its file can honestly hold."""
    most = limit("REFKERNEL_MOST_UNPACKED", MOST_UNPACKED)
    if size > max(FREE_BYTES, most * path.stat().st_size):
        raise TableError(
            f"{path} holds more than {most:,} times the {path.stat().st_size:,} bytes of its file, as files do that are made to fill the "
            "memory. If you trust it, set the environment variable REFKERNEL_MOST_UNPACKED to a larger number."
        )


def limit(variable: str, default: int) -> int:
    """A limit that an environment variable may change."""
    if not (text := os.environ.get(variable, str(default))).isdecimal():
        raise TableError(f"The environment variable {variable} is {text!r}, and must be a whole number.")
    return int(text)


def arrow_frame(columns: Sequence[Any], names: Sequence[str]) -> pd.DataFrame:
    """A data frame that holds Arrow's columns as they are.

    In pyarrow 17 to 21, the memory that ``Table.to_pandas`` needs grows with the square of the number of columns: over 20 GB for 60,000.
    """
    return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(column) for name, column in zip(names, columns, strict=True)}, copy=False)
