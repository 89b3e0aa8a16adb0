"""Tables that are too large for memory: columns are read one at a time, and what they mean is kept in a temporary file.

Memory holds one column of the table, or some thousand rows of it. Temporary files have no name: they are gone when they are closed, or when
the process ends.
"""

from __future__ import annotations

import copy
import errno
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from .._encoding import TableEncoder
from ..exceptions import TableError
from ..sources import Source
from ..sources.base import Block
from .columns import Feature, learn_columns
from .csv_table import CsvTable
from .form import Table
from .parquet_table import ParquetTable
from .wording import counted

MOST_HELD_BYTES = 1 << 25
"""Tables of more bytes than this (32 MB: the text of a CSV file, or 8 for each cell of a Parquet file) are read column by column."""

GROUP_ROWS = 1 << 17
"""Rows of a temporary file that are written together."""

PORTION_CELLS = 1 << 20
"""Cells that are looked at together where all columns are needed: 8 MB as numbers."""


def is_large(table: Table) -> bool:
    """Whether a table is to be read column by column: those of Parquet files are flat, and of CSV files Arrow makes them."""
    return (
        find_spec("pyarrow") is not None and isinstance(table, CsvTable | ParquetTable) and table.is_flat and table.size > MOST_HELD_BYTES
    )


class RawColumns:
    """The columns of a table as they are in its file, one at a time; ``chosen`` leaves out rows and columns."""

    def __init__(self, table: Table, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._file = table if isinstance(table, ParquetTable) else _by_column(table, progress)
        self._kept: np.ndarray | None = None
        self.columns = pd.Index(self._file.names)

    def __len__(self) -> int:
        return len(self._file) if self._kept is None else int(self._kept.sum())

    def __getitem__(self, name: str) -> pd.Series:
        self._progress(f"fit: reading column {self.columns.get_loc(name) + 1:,} of {len(self.columns):,}, {name}")
        column = self._file.column(name)
        return column if self._kept is None else column[self._kept].reset_index(drop=True)

    def chosen(self, kept: np.ndarray, left_out: set[str]) -> RawColumns:
        """The same without some rows and columns."""
        other = copy.copy(self)
        other.columns = self.columns.drop(list(left_out))
        other._kept = None if kept.all() else kept
        return other

    def learnt(self, decimal: str, categorical: tuple[str, ...], notes: list[str]) -> Stored:
        """What the columns are, and their values on disk."""
        file: Any = tempfile.TemporaryFile(prefix="refkernel-")  # noqa: SIM115 - closed when the map of it is forgotten
        features = learn_columns(self, decimal, categorical, notes, partial(_write, file))
        _give_back()
        return Stored(_Cells(file, len(self)), list(enumerate(features)))


class Stored:
    """The values of a table in a file: numbers, seconds since 1970, or the numbers of categories. NaN is missing.

    It stands in for a data frame where that is read by ``by_columns`` or ``by_rows``.
    """

    def __init__(self, cells: _Cells, columns: Sequence[tuple[int, Feature]], rows: np.ndarray | None = None) -> None:
        self._cells, self._columns, self._rows = cells, list(columns), rows

    @property
    def features(self) -> list[Feature]:
        """What the columns are."""
        return [feature for _, feature in self._columns]

    @property
    def columns(self) -> pd.Index:
        """The names of the columns."""
        return pd.Index([feature.name for feature in self.features])

    def __len__(self) -> int:
        return self._cells.rows if self._rows is None else len(self._rows)

    def __getitem__(self, chosen: np.ndarray) -> Stored:
        """Some columns, by their names, or the rows where ``chosen`` is True."""
        if chosen.dtype == bool:
            rows = np.flatnonzero(chosen) if self._rows is None else self._rows[chosen]
            return self if chosen.all() else Stored(self._cells, self._columns, rows)
        return Stored(self._cells, [self._columns[j] for j in self.columns.get_indexer(chosen)], self._rows)

    def by_columns(self) -> Iterator[pd.DataFrame]:
        """One column at a time."""
        for place, feature in self._columns:
            column = self._cells.read(place, 0, self._cells.rows)
            yield pd.DataFrame({feature.name: _values(feature, column if self._rows is None else column[self._rows])})
        _give_back()

    def by_rows(self) -> Iterator[pd.DataFrame]:
        """Some rows at a time."""
        step = max(PORTION_CELLS // max(len(self._columns), 1), 1)
        for start in range(0, len(self), step):
            yield self.rows_at(np.arange(start, min(start + step, len(self))))

    def rows_at(self, indices: np.ndarray) -> pd.DataFrame:
        """Some rows, in ascending order, as the model takes them."""
        rows = indices if self._rows is None else self._rows[indices]
        first, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        return pd.DataFrame(
            {feature.name: _values(feature, self._cells.read(place, first, end)[rows - first]) for place, feature in self._columns}
        )


class _Cells:
    """Columns of numbers in a file, one after the other. They are read, not mapped: pages of a map count as memory until it is short."""

    def __init__(self, file: Any, rows: int) -> None:
        self._file, self.rows, self._lock = file, rows, threading.Lock()

    def read(self, column: int, start: int, stop: int) -> np.ndarray:
        """Some rows of a column."""
        found = np.empty(stop - start)
        with self._lock:
            self._file.seek(found.itemsize * (column * self.rows + start))
            self._file.readinto(found.data.cast("B"))
        return found


class EncodedRows(Source):
    """The rows of a table on disk, as an encoder gives them to a detector."""

    def __init__(self, X: Stored, encoder: TableEncoder) -> None:
        self._X, self._encoder = X, encoder

    @property
    def n_columns(self) -> int:
        return len(self._encoder.units_)

    def __len__(self) -> int:
        return len(self._X)

    def blocks(self) -> Iterator[Block]:
        step = max(PORTION_CELLS // self.n_columns, 1)
        for start in range(0, len(self), step):
            stop = min(start + step, len(self))
            yield Block(start, stop - start, partial(self._encoded, np.arange(start, stop)))

    def rows_at(self, indices: np.ndarray) -> np.ndarray:
        parts = np.array_split(indices, max(len(indices) * self.n_columns // PORTION_CELLS, 1))
        return np.concatenate([self._encoded(part) for part in parts])

    def _encoded(self, indices: np.ndarray) -> np.ndarray:
        return self._encoder.transform(self._X.rows_at(indices))


def _values(feature: Feature, cells: np.ndarray) -> np.ndarray:
    """Cells of the file as the model takes them."""
    if feature.categories is None:
        return cells
    known = np.array([*feature.categories, np.nan], dtype=object)
    return known[np.where(np.isnan(cells), len(feature.categories), cells).astype(np.intp)]


def _write(file: Any, feature: Feature, column: np.ndarray) -> None:
    """Append a column to the file."""
    if feature.categories is not None:
        codes = pd.Categorical(column, categories=list(feature.categories)).codes
        column = np.where(codes < 0, np.nan, codes)
    try:
        file.write(np.ascontiguousarray(column, dtype=np.float64).data)
    except OSError as error:
        raise _disk_error(error, len(column)) from error


def _by_column(table: Table, progress: Callable[[str], None]) -> ParquetTable:
    """The text of a CSV file as a temporary Parquet file, whose columns can be read one by one."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    schema = pa.schema([(name, pa.string()) for name in table.names])
    file: Any = tempfile.TemporaryFile(prefix="refkernel-")  # noqa: SIM115 - closed when the table is forgotten
    rows = 0
    try:
        with parquet.ParquetWriter(file, schema) as writer:
            for group in _groups(table):
                writer.write_table(pa.Table.from_pandas(group, schema, preserve_index=False))
                rows += len(group)
                progress(f"fit: reading {table.path.name}, {table.share_read():.0%}, {counted(rows, 'row')}")
    except OSError as error:
        raise _disk_error(error, rows) from error
    file.seek(0)
    _give_back()
    return ParquetTable(table.path, file, table.names)


def _groups(table: Table) -> Iterator[pd.DataFrame]:
    """The rows in larger blocks: a group of rows costs some bytes for each column."""
    held: list[pd.DataFrame] = []
    for block in table.blocks():
        held.append(block)
        if sum(map(len, held)) >= GROUP_ROWS:
            yield pd.concat(held, ignore_index=True)
            held = []
    if held:
        yield pd.concat(held, ignore_index=True)


def _give_back() -> None:
    """Return to the system what Arrow keeps of columns that are gone."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def _disk_error(error: OSError, rows: int) -> Exception:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return error
    return TableError(
        f"The folder for temporary files ({tempfile.gettempdir()}) is full after {counted(rows, 'row')} of the table. Free some space, or "
        "set the environment variable TMPDIR to another folder."
    )
