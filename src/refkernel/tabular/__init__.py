"""A table of numbers, categories and dates as the columns that a detector takes, and what training knew about each of them."""

from .columns import CATEGORY, DATE, NUMBER, ColumnProfile
from .encoder import FAR, Rows, TableEncoder

__all__ = ["CATEGORY", "DATE", "FAR", "NUMBER", "ColumnProfile", "Rows", "TableEncoder"]
