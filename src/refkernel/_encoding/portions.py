"""A table in portions: one in memory is one portion, and one on disk brings ``by_columns`` and ``by_rows`` of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["by_columns", "by_rows"]


def by_columns(X: Any) -> Iterator[Any]:
    """Data frames of all rows that together have all columns, in their order."""
    return X.by_columns() if hasattr(X, "by_columns") else iter((X,))


def by_rows(X: Any) -> Iterator[Any]:
    """Data frames of all columns that together have all rows, in their order."""
    return X.by_rows() if hasattr(X, "by_rows") else iter((X,))
