"""A table in portions: one in memory is one portion, and one on disk brings methods of the same names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["by_columns", "by_rows", "rows_at"]


def by_columns(X: Any) -> Iterator[Any]:
    """Data frames of all rows that together have all columns, in their order."""
    return X.by_columns() if hasattr(X, "by_columns") else iter((X,))


def by_rows(X: Any) -> Iterator[Any]:
    """Data frames of all columns that together have all rows, in their order."""
    return X.by_rows() if hasattr(X, "by_rows") else iter((X,))


def rows_at(X: Any, indices: np.ndarray) -> Any:
    """A data frame of some rows, in ascending order."""
    return X.rows_at(indices) if hasattr(X, "rows_at") else X.iloc[indices]
