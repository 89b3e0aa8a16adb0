"""Tables in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ..exceptions import TableError
from .form import BLOCK_ROWS
from .frames import arrow_frame
from .headers import checked_names

try:
    import pyarrow as pa
except ImportError:  # the extra parquet
    pa = None


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
            yield arrow_frame(self._checked(batch.columns, self.names), self.names)

    def __len__(self) -> int:
        return int(self._rows)

    def column(self, name: str) -> pd.Series:
        """All rows of one column, of a file whose columns are not nested."""
        chunks = self._file.reader.read_column(self.names.index(name)).chunks
        chunks = self._checked(chunks, [name] * len(chunks))
        return arrow_frame([pa.chunked_array(chunks)], [name])[name]

    def _checked(self, columns: Any, names: list[str]) -> list[Any]:
        """Dictionaries as what they stand for; an error where texts are not UTF-8, which Arrow does not look at when it reads them."""
        found = [_plain(column) for column in columns]
        for column, name in zip(found, names, strict=True):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise TableError(f"{self.path}: column {name} is damaged: {error}. Write the file again.") from error
        return found

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


def _plain(column: Any) -> Any:
    """Dictionaries as what they stand for."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
