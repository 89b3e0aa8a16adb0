"""How one column of a table is encoded: numbers, categories and dates.

A part learns from the normal training rows. ``encode`` gives its encoded columns, ``units`` their units (NaN: the detector standardises the
column), and ``violated`` is True for cells that contradict what all training rows agree on: another value of a constant, a missing value
where none was missing, a category that was never seen where new ones are not to be expected.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from .column import CATEGORY, CONSTANT, DATE, NUMBER, Column

__all__ = ["CategoryPart", "DatePart", "NumberPart"]

SAME = 1e-9
"""A column whose range is below this share of its size is constant."""

TOLERANCE = 1e-6
"""A value differs from a constant where it is farther away than this share of it."""

ZERO_TOLERANCE = 1e-9
"""The same for a constant of 0."""

LEVEL_UNIT = 1.0
"""Two categories are 2 / LEVEL_UNIT apart, as far as two numbers that differ by as many standard deviations, whatever their frequency."""

MISSING_UNIT = 1.0
"""A missing number is 1 / MISSING_UNIT away from the median, which stands for it."""

CYCLE_UNIT = float(np.sqrt(2.0))
"""Of sine and cosine: times that are spread evenly are then as far apart as normal numbers on average."""

FEWEST = 5
"""A category in fewer training rows shares a column with all others that are as rare."""

MOST_LEVELS = 50
"""At most this many categories stand alone, the most frequent ones; distances take time for each."""

UNEXPECTED = 0.01
"""Where fewer rows than this are alone in their category, a category that was never seen contradicts all of training (the share of
rows that are alone estimates how often new rows bring new categories: Good and Turing)."""

QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)

MINUTE, HOUR, DAY, YEAR = 60.0, 3_600.0, 86_400.0, 365.2425 * 86_400.0
THURSDAY = 3
"""The weekday of 1 January 1970, where Monday is 0."""


class NumberPart(BaseEstimator):
    """A number: its value, the median where it is missing, and a flag for missing cells where training had some."""

    kind = NUMBER

    def __init__(self, standardise: bool = False) -> None:
        self.standardise = standardise

    def fit(self, values: np.ndarray) -> Self:
        """Learn the range, the share of missing cells, and whether the column is constant."""
        is_missing = np.isnan(values)
        present = values[~is_missing]
        self.missing_ = float(is_missing.mean())
        self.quantiles_ = np.quantile(present, QUANTILES).tolist()
        self.minimum_, self.maximum_ = float(present.min()), float(present.max())
        self.median_ = float(np.median(present))
        self.is_constant_ = bool(self.maximum_ - self.minimum_ <= SAME * abs(self.median_))
        self._learn_scale(np.where(is_missing, self.median_, values))
        return self

    def _learn_scale(self, filled: np.ndarray) -> None:
        size = float(np.abs(filled).max()) or 1.0
        std = float((filled / size).std(ddof=1) * size) if len(filled) > 1 else 0.0
        self.mean_, self.std_ = float((filled / size).mean() * size), std or 1.0

    @property
    def has_flag(self) -> bool:
        """Whether missing cells are an ordinary thing that has its own column."""
        return self.missing_ > 0.0

    @property
    def units(self) -> list[float]:
        """The units of the encoded columns."""
        return [*self._value_units(), *([MISSING_UNIT] if self.has_flag else [])]

    def _value_units(self) -> list[float]:
        return [] if self.is_constant_ else [np.nan]

    def names(self, name: str) -> list[str]:
        """The names of the encoded columns."""
        return [*self._value_names(name), *([f"{name}: missing"] if self.has_flag else [])]

    def _value_names(self, name: str) -> list[str]:
        return [] if self.is_constant_ else [name]

    def encode(self, values: np.ndarray) -> list[np.ndarray]:
        """The encoded columns."""
        is_missing = np.isnan(values)
        filled = np.where(is_missing, self.median_, values) if is_missing.any() else values
        flag = [is_missing / MISSING_UNIT if self.standardise else is_missing.astype(np.float64)] if self.has_flag else []
        return [*([] if self.is_constant_ else self._encode(filled)), *flag]

    def _encode(self, filled: np.ndarray) -> list[np.ndarray]:
        return [self._standardised(filled)]

    def _standardised(self, filled: np.ndarray) -> np.ndarray:
        return (filled - self.mean_) / self.std_ if self.standardise else filled

    def violated(self, values: np.ndarray) -> np.ndarray:
        """True where a cell contradicts all of training."""
        is_missing = np.isnan(values)
        found = is_missing if not self.has_flag else np.zeros(len(values), dtype=bool)
        if self.is_constant_:
            tolerance = TOLERANCE * abs(self.median_) or ZERO_TOLERANCE
            found = found | (np.abs(np.where(is_missing, self.median_, values) - self.median_) > tolerance)
        return found

    def is_missing(self, values: np.ndarray) -> np.ndarray:
        """True for cells without a value."""
        return np.isnan(values)

    def column(self, name: str, encoded: tuple[int, ...]) -> Column:
        """What training knew."""
        return Column(
            name,
            CONSTANT if self.is_constant_ else self.kind,
            encoded,
            self.minimum_,
            self.maximum_,
            tuple(self.quantiles_),  # type: ignore[arg-type]
            missing=self.missing_,
        )


class DatePart(NumberPart):
    """A point in time, in seconds since 1970: elapsed time, and the hour, weekday and month as places on a circle where training varies."""

    kind = DATE

    def fit(self, values: np.ndarray) -> Self:
        """Learn the range, and which cycles there are."""
        super().fit(values)
        present = values[~np.isnan(values)]
        days = np.floor(present / DAY)
        self.has_hours_ = bool(np.ptp(present % DAY) > 0)
        self.has_weekdays_ = bool(np.ptp((days + THURSDAY) % 7) > 0 and np.ptp(days) >= 7)
        self.has_months_ = bool(np.ptp(days) >= 2 * 30)
        return self

    @property
    def _cycles(self) -> list[tuple[str, float, float]]:
        """(name, length, start) in seconds. A month is its place in the year."""
        cycles = [("hour", DAY, 0.0, self.has_hours_), ("weekday", 7 * DAY, -THURSDAY * DAY, self.has_weekdays_)]
        return [cycle[:3] for cycle in [*cycles, ("month", YEAR, 0.0, self.has_months_)] if cycle[3]]

    def _value_units(self) -> list[float]:
        return [] if self.is_constant_ else [np.nan, *[CYCLE_UNIT] * (2 * len(self._cycles))]

    def _value_names(self, name: str) -> list[str]:
        cycles = [f"{name}: {cycle} ({part})" for cycle, _, _ in self._cycles for part in ("sine", "cosine")]
        return [] if self.is_constant_ else [name, *cycles]

    def _encode(self, filled: np.ndarray) -> list[np.ndarray]:
        divisor = CYCLE_UNIT if self.standardise else 1.0
        found = [self._standardised(filled)]
        for name, length, start in self._cycles:
            moments = np.floor(filled / DAY) * DAY if name == "weekday" else filled
            angle = 2.0 * np.pi * ((moments - start) % length) / length
            found += [np.sin(angle) / divisor, np.cos(angle) / divisor]
        return found


class CategoryPart(BaseEstimator):
    """A category: one column for each frequent level, and one that all rare levels share. Where training had them, missing cells are a level.

    A level that was never seen counts as a rare one; where training had (nearly) no row alone in its level, it contradicts training.
    """

    kind = CATEGORY

    def __init__(self, standardise: bool = False) -> None:
        self.standardise = standardise

    def fit(self, values: np.ndarray) -> Self:
        """Learn the levels, and which are rare."""
        counts = Counter(value for value in values if value == value)
        n = len(values)
        self.missing_ = 1.0 - sum(counts.values()) / n
        self.levels_ = sorted(counts, key=lambda level: (-counts[level], level))
        self.counts_ = [counts[level] for level in self.levels_]
        frequent = [level for level, count in zip(self.levels_, self.counts_, strict=True) if count >= FEWEST]
        self.own_ = frequent[:MOST_LEVELS]
        self.has_missing_ = self.missing_ > 0.0
        self.has_pool_ = len(self.own_) < len(self.levels_)
        self.expects_new_ = self.counts_.count(1) >= UNEXPECTED * n
        self.is_constant_ = len(self.levels_) == 1 and not self.has_missing_
        return self

    @property
    def units(self) -> list[float]:
        """The units of the encoded columns."""
        return [LEVEL_UNIT] * self._width

    @property
    def _width(self) -> int:
        return 0 if self.is_constant_ else len(self.own_) + self.has_pool_ + self.has_missing_

    def names(self, name: str) -> list[str]:
        """The names of the encoded columns."""
        if self.is_constant_:
            return []
        others = [f"{name}: rare"] * self.has_pool_ + [f"{name}: missing"] * self.has_missing_
        return [*(f"{name}: {level}" for level in self.own_), *others]

    def encode(self, values: np.ndarray) -> list[np.ndarray]:
        """The encoded columns."""
        if self.is_constant_:
            return []
        places = self._places(values)
        one = 1.0 / LEVEL_UNIT if self.standardise else 1.0
        return [np.where(places == place, one, 0.0) for place in range(self._width)]

    def _places(self, values: np.ndarray) -> np.ndarray:
        """The number of the encoded column of each cell; -1 for none."""
        own = {level: place for place, level in enumerate(self.own_)}
        pool = len(self.own_) if self.has_pool_ else -1
        missing = self._width - 1 if self.has_missing_ else -1
        return np.fromiter((own.get(v, pool) if v == v else missing for v in values), dtype=np.intp, count=len(values))

    def violated(self, values: np.ndarray) -> np.ndarray:
        """True where a cell contradicts all of training."""
        known = set(self.levels_)
        if self.expects_new_ and self.has_missing_:
            return np.zeros(len(values), dtype=bool)
        at_missing, at_new = not self.has_missing_, not self.expects_new_
        return np.fromiter((v not in known and at_new if v == v else at_missing for v in values), dtype=bool, count=len(values))

    def is_missing(self, values: np.ndarray) -> np.ndarray:
        """True for cells without a value."""
        return np.asarray(values != values, dtype=bool)

    def column(self, name: str, encoded: tuple[int, ...]) -> Column:
        """What training knew."""
        own = set(self.own_)
        pooled = tuple(level for level in self.levels_ if level not in own)
        kind = CONSTANT if self.is_constant_ else self.kind
        return Column(name, kind, encoded, levels=tuple(self.levels_), counts=tuple(self.counts_), pooled=pooled, missing=self.missing_)
