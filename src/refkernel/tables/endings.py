"""What kind of table a file is, by its name and its first bytes."""

from __future__ import annotations

from pathlib import Path

from ..exceptions import TableError

PARQUET = (".parquet", ".pq")

EXCEL = (".xlsx", ".xlsm")

OTHER_WORKBOOKS = (".xls", ".xlsb", ".ods", ".numbers")

WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How workbooks begin: a zip archive, or the older container of Microsoft Office."""


def is_parquet(path: Path) -> bool:
    """Whether a file is to be Parquet, by its name."""
    return Path(path).suffix.lower() in PARQUET


def is_excel(path: Path) -> bool:
    """Whether a file is to be a workbook that can be read, by its name."""
    return Path(path).suffix.lower() in EXCEL


def check_kind(path: Path) -> None:
    """Workbooks that cannot be read, and workbooks whose name says they are something else, by their first bytes."""
    with path.open("rb") as file:
        start = file.read(max(map(len, WORKBOOKS)))
    if path.suffix.lower() in OTHER_WORKBOOKS:
        raise TableError(f"{path} is a workbook of a kind that cannot be read. Save it as .xlsx or as CSV (UTF-8), and pass that.")
    if start.startswith(WORKBOOKS) and not is_parquet(path) and not is_excel(path):
        raise TableError(f"{path} is a workbook or a zip archive. If it is an Excel file, end its name in .xlsx; else unpack it.")
