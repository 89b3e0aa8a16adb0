"""What a fitted table model knows about one column of its table."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CATEGORY", "CONSTANT", "DATE", "DROPPED", "NUMBER", "Column"]

NUMBER, CATEGORY, DATE, CONSTANT, DROPPED = "number", "category", "date", "constant", "dropped"


@dataclass(frozen=True)
class Column:
    """One column of a table, as it was in the normal training rows.

    ``encoded`` are the numbers of the encoded columns that it becomes: together they are one feature. The encoded column ``violated`` of
    :class:`TableEncoder` is shared: it belongs to the columns that ``TableEncoder.violations`` names for a row.
    """

    name: str
    kind: str
    """number, category, date, constant, or dropped (known, but not in the model)."""
    encoded: tuple[int, ...] = ()
    minimum: float | None = None
    """Numbers and dates; dates are seconds since 1970. A constant number is both minimum and maximum."""
    maximum: float | None = None
    quantiles: tuple[float, float, float, float, float] | None = None
    """1, 25, 50, 75 and 99 % of the training values."""
    levels: tuple[str, ...] = ()
    """Known categories, the most frequent first."""
    counts: tuple[int, ...] = ()
    """How many training rows have each of them."""
    pooled: tuple[str, ...] = ()
    """The levels that are too rare to stand alone: they share one encoded column."""
    missing: float = 0.0
    """The share of training rows without a value."""
