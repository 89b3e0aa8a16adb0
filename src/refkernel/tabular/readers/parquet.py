"""Tables in Parquet files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet

from ...exceptions import TableError
from . import BLOCK_ROWS, ReadOptions, Table, arrow_frame, check_unpacked, marks_of
from .layout import checked_names


class ParquetTable(Table):
    """A Parquet file; ``blocks`` gives its rows, every column with its type."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path)
        try:
            self._file = parquet.ParquetFile(path)
        except pa.ArrowInvalid as error:
            raise TableError(f"{path} is not a Parquet file, or a broken one: {error} Write it again, or end its name in .csv.") from error
        about = self._file.metadata
        self.names = checked_names(self._file.schema_arrow.names, self.notes)
        self._whole = about.num_rows
        size = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
        check_unpacked(path, max(size, 8 * self._whole * len(self.names)))
        self.marks = marks_of(options, (), self.notes)

    def blocks(self) -> Iterator[pd.DataFrame]:
        """The rows, in their order."""
        self._read = 0
        for batch in self._file.iter_batches(batch_size=BLOCK_ROWS):
            self._read += batch.num_rows
            yield arrow_frame(self._checked(batch.columns, self.names), self.names)

    def _checked(self, columns: Any, names: list[str]) -> list[Any]:
        """Dictionaries as what they stand for; an error where texts are not UTF-8, which Arrow does not look at when it reads them."""
        found = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in columns]
        for column, name in zip(found, names, strict=True):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise TableError(f"{self.path}: column {name} is damaged: {error}. Write the file again.") from error
        return found
