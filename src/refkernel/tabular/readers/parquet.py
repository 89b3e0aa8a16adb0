"""Tables in Parquet files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from ...exceptions import TableError
from . import BLOCK_ROWS, ReadOptions, Table, arrow_frame, check_unpacked, marks_of
from .layout import checked_names


class ParquetTable(Table):
    """A Parquet file; ``blocks`` gives its rows, every column with its type."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path)
        try:
            schema = parquet.ParquetFile(path).schema
            leaves = [schema.column(number) for number in range(len(schema))]
            texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and not leaf.max_repetition_level]
            self._file = parquet.ParquetFile(path, read_dictionary=texts)  # repeated texts stay one until their size is known
        except pa.ArrowInvalid as error:
            raise TableError(f"{path} is not a Parquet file, or a broken one: {error} Write it again, or end its name in .csv.") from error
        about = self._file.metadata
        self.names = checked_names(self._file.schema_arrow.names, self.notes)
        self._whole = about.num_rows
        size = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
        check_unpacked(path, max(size, self._whole * sum(max(leaf.length, 8) for leaf in leaves)))
        self.marks = marks_of(options, (), self.notes)

    def blocks(self) -> Iterator[pd.DataFrame]:
        self._read = self._size = 0
        for batch in self._file.iter_batches(batch_size=BLOCK_ROWS):
            self._read += batch.num_rows
            yield arrow_frame(list(map(self._checked, batch.columns, self.names)), self.names)

    def _checked(self, column: Any, name: str) -> Any:
        """A dictionary as what it stands for; an error where texts are not UTF-8, which Arrow does not look at when it reads them."""
        try:
            if pa.types.is_dictionary(column.type):
                if not pa.types.is_primitive(column.type.value_type):
                    self._size += pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0
                    check_unpacked(self.path, self._size)
                column = column.dictionary_decode()
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise TableError(f"{self.path}: column {name} is damaged: {error}. Write the file again.") from error
        return column
