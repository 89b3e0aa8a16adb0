"""What is normal in one column, and how its values are written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

__all__ = ["Normal", "written"]

SHOWN_LEVELS = 3
"""Levels that a text names."""

DAY = 86_400.0


@dataclass(frozen=True)
class Normal:
    """What training had in one column: numbers from ``low`` to ``high`` (dates: seconds since 1970), or ``levels``."""

    low: float | None = None
    high: float | None = None
    levels: tuple[str, ...] = ()
    is_date: bool = False
    typical: float | None = None
    """The median."""

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            shown = ", ".join(self.levels[:SHOWN_LEVELS])
            more = len(self.levels) - SHOWN_LEVELS
            return f"{shown} and {more:,} more" if more > 0 else shown
        low, high = self.written(self.low), self.written(self.high)
        return low if low == high else f"{low} … {high}"

    def written(self, value: Any) -> str:
        """A cell of this column as text."""
        if value is None or value != value:
            return "missing"
        if self.levels:
            return str(value)
        return _written_date(value) if self.is_date else written(value)

    def outside(self, cells: np.ndarray) -> np.ndarray:
        """True for cells that training did not have: beyond the range, other levels; missing ones are not."""
        if self.low is None or self.high is None:
            known = set(self.levels)
            return np.array([cell == cell and cell is not None and cell not in known for cell in cells], dtype=bool)
        numbers = np.asarray(cells, dtype=np.float64)
        return (numbers < self.low) | (numbers > self.high)


def written(value: float) -> str:
    """A number with four significant digits, all digits before the point, and thousands separated: 6,300 or 0.1234."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size != 0.0 and not 1e-4 <= size < 1e9:
        return f"{value:.4g}"
    text = f"{value:,.{max(0, 3 - math.floor(math.log10(size or 1.0)))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _written_date(seconds: float) -> str:
    try:
        moment = datetime.fromtimestamp(float(seconds), UTC)
    except (OverflowError, OSError, ValueError):
        return written(seconds)
    return f"{moment:%Y-%m-%d}" if seconds % DAY == 0 else f"{moment:%Y-%m-%d %H:%M}"
