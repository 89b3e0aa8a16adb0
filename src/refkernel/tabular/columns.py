"""ColumnProfile: what is known about one column of a table, from how its cells are written to what was normal in training."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._core.text import named
from ..detectors.explain.normal import Normal

NUMBER, CATEGORY, DATE = KINDS = ("number", "category", "date")
BOOLEANS = frozenset({"true", "false"})
QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
UNEXPECTED = 0.01  # the share of new rows that may bring an unseen category, or another value of a constant, and be flagged for it
MOST_KNOTS = 256  # knots of a column of numbers: the largest difference between two distributions is found to within 1/256
FEWEST_KNOTS = 16
ALL_KNOTS = 100_000  # knots of all columns together: tables of thousands of columns get fewer for each


@dataclass(frozen=True, eq=False)
class ColumnProfile:
    """One column of a table, as it was in the normal training rows.

    Numbers and dates (in seconds since 1970) are described by order statistics (``knots``, from the smallest value to the largest) and by
    how many values are ``below`` and ``at_most`` each of them; categories by their ``levels``, the most frequent first, and ``counts``.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.tabular import ColumnProfile
    >>> print(ColumnProfile.of_numbers("width", np.array([3.5, 2.0, np.nan, 4.0])))
    2 … 4
    """

    name: str
    kind: str = NUMBER
    is_constant: bool = False  # whether all training rows agree, so that another value contradicts them
    rows: int = 0  # training rows; 0 if nothing was learnt
    missing: int = 0  # training rows without a value
    quantiles: tuple[float, ...] = ()
    knots: np.ndarray = field(default_factory=lambda: np.empty(0))
    below: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    at_most: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    levels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    pooled: tuple[str, ...] = ()  # levels that are too rare to stand alone
    date_format: str | None = None  # how files write dates
    unit: str = ""  # what files write behind the numbers
    decimal: str = ""  # the decimal mark of files, where it is a comma or the other mark separates thousands
    unit_above: str = ""  # what files write in a row of units under the header

    @classmethod
    def of_numbers(cls, name: str, values: np.ndarray, most: int = MOST_KNOTS) -> "ColumnProfile":
        """Describe numbers; NaN is missing."""
        ordered = np.sort(values[~np.isnan(values)])
        quantiles = tuple(np.quantile(ordered, QUANTILES).tolist()) if ordered.size else ()
        return cls(name, NUMBER, False, values.size, values.size - ordered.size, quantiles, *knots_of(ordered, most))

    @property
    def is_boolean(self) -> bool:
        """Whether it is true or false, however that is written."""
        return self.kind == CATEGORY and set(self.levels) == BOOLEANS

    @property
    def present(self) -> int:
        """Training rows with a value."""
        return self.rows - self.missing

    @property
    def missing_share(self) -> float:
        """The share of training rows without a value."""
        return self.missing / self.rows if self.rows else 0.0

    @property
    def minimum(self) -> float | None:
        """The smallest number; None for categories and where nothing was learnt."""
        return float(self.knots[0]) if self.knots.size else None

    @property
    def maximum(self) -> float | None:
        """The largest number; None for categories and where nothing was learnt."""
        return float(self.knots[-1]) if self.knots.size else None

    @property
    def typical(self) -> Any:
        """The median, or the most frequent level; None where nothing was learnt."""
        return self.quantiles[len(QUANTILES) // 2] if self.quantiles else self.levels[0] if self.levels else None

    @property
    def normal(self) -> Normal:
        """What training had, from the smallest to the largest value, and without 1 % of the numbers on each side."""
        middle = (self.quantiles[0], self.quantiles[-1]) if self.quantiles else None
        typical = None if self.levels else self.typical
        return Normal(self.minimum, self.maximum, self.levels, self.kind == DATE, typical, middle, self.decimal or ".")

    def __str__(self) -> str:
        """The range of numbers and dates, the levels of a category, the value of a constant."""
        if self.is_constant:
            return f"always {self.levels[0] if self.levels else self.normal.written(self.minimum)}"
        if self.kind != CATEGORY:
            return f"{self.normal} {self.unit or self.unit_above}".rstrip()
        rare = f"; {len(self.pooled)} {'is' if len(self.pooled) == 1 else 'are'} rare" if self.pooled else ""
        return f"{len(self.levels)}: {named(self.levels)}{rare}"

    def as_dict(self) -> dict[str, Any]:
        """The profile in plain JSON."""
        plain = ("name", "kind", "is_constant", "rows", "missing", "date_format", "unit", "decimal", "unit_above")
        found = {key: getattr(self, key) for key in plain}
        if self.kind == CATEGORY:
            return found | {"levels": dict(zip(self.levels, self.counts, strict=False)), "pooled": list(self.pooled)}
        return found | {key: np.asarray(getattr(self, key)).tolist() for key in ("quantiles", "knots", "below", "at_most")}


def knots_of(ordered: np.ndarray, most: int = MOST_KNOTS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(knots, below, at_most) of ascending numbers. Few different numbers are all knots."""
    if (knots := np.unique(ordered)).size > most:
        knots = np.unique(ordered[np.linspace(0, ordered.size - 1, most).round().astype(int)])
    return knots, np.searchsorted(ordered, knots, "left"), np.searchsorted(ordered, knots, "right")


def counted_levels(cells: Iterable[Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The levels among some texts, the most frequent first, and their counts; NaN is missing."""
    counts = {level: count for level, count in Counter(cells).items() if level == level}
    levels = sorted(counts, key=lambda level: (-counts[level], level))
    return tuple(levels), tuple(counts[level] for level in levels)
