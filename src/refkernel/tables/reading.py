"""Open the table in a file: CSV, Parquet or Excel, block by block, with a message for every file that is not a table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ..exceptions import TableError
from .csv_table import CsvTable
from .endings import check_kind, is_excel, is_parquet
from .form import CsvFormat, Table
from .parquet_table import ParquetTable

__all__ = ["open_table", "read_whole"]


def open_table(path: Path, form: CsvFormat) -> Table:
    """The table in a file, by the ending of its name: .parquet or .pq, .xlsx or .xlsm, and CSV (or .csv.gz) for all others."""
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} does not exist. Check the path.")
    if path.is_dir():
        raise TableError(f"{path} is a folder. Name a CSV, Parquet or Excel file in it.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty (0 bytes). A table needs a header and rows.")
    check_kind(path)
    if is_excel(path):
        from .workbook import WorkbookTable

        return WorkbookTable(path, form)
    return ParquetTable(path) if is_parquet(path) else CsvTable(path, form)


def read_whole(table: Table) -> pd.DataFrame:
    """All rows of a table that has at least one."""
    blocks = list(table.blocks())
    return blocks[0] if len(blocks) == 1 else pd.concat(blocks, ignore_index=True)
