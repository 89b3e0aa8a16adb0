"""A table of numbers, categories and dates as the columns that a detector takes, and what training knew about each of them."""

from .column import CATEGORY, CONSTANT, DATE, NUMBER, Column
from .encoded import Encoded
from .encoder import FAR, TableEncoder
from .portions import by_columns, by_rows, rows_at

__all__ = ["CATEGORY", "CONSTANT", "DATE", "FAR", "NUMBER", "Column", "Encoded", "TableEncoder", "by_columns", "by_rows", "rows_at"]
