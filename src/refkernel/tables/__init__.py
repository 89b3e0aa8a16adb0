"""A user's own tables: read, checked, fitted, scored and drawn. The commands of ``refkernel.cli.tables`` are thin around this."""

from ..exceptions import TableError
from .fitting import Fitted, fit_file
from .form import CsvFormat
from .reading import open_table
from .recipe import Recipe, Rows
from .scoring import Scored, TableModel, load_table_model, score_file

__all__ = [
    "CsvFormat",
    "Fitted",
    "Recipe",
    "Rows",
    "Scored",
    "TableError",
    "TableModel",
    "fit_file",
    "load_table_model",
    "open_table",
    "score_file",
]
