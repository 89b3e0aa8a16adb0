"""Is a table still like the one a model was trained on? Rows are counted block by block, and tested at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from .columns import Categories, Column, Numbers, quantile
from .statistics import holm, kolmogorov_smirnov, same_levels, same_share, two_tests

__all__ = ["LEVEL", "ColumnDrift", "Drift", "DriftMonitor"]

LEVEL = 0.05
"""The probability that any test calls drift where there is none, at most."""

MOST_UNSEEN = 1_000
"""New levels of a column that are counted one by one."""


@dataclass
class NumbersCount:
    """New values of a column of numbers, counted at the knots of its training values."""

    column: Numbers
    rows: int = 0
    missing: int = 0
    lowest: float = np.inf
    highest: float = -np.inf
    _equal: np.ndarray = field(init=False)
    _upto: np.ndarray = field(init=False)

    def __post_init__(self):
        self._equal = np.zeros(self.column.knots.size, dtype=np.int64)
        self._upto = np.zeros(self.column.knots.size + 1, dtype=np.int64)

    def add(self, values: pd.Series) -> None:
        """Count some rows."""
        cells = values.to_numpy(dtype=np.float64)
        found = cells[~np.isnan(cells)]
        self.rows, self.missing = self.rows + cells.size, self.missing + cells.size - found.size
        knots = self.column.knots
        if not found.size:
            return
        self.lowest, self.highest = min(self.lowest, float(found.min())), max(self.highest, float(found.max()))
        place = np.searchsorted(knots, found)
        self._upto += np.bincount(place, minlength=knots.size + 1)
        if knots.size:
            nearest = np.minimum(place, knots.size - 1)
            self._equal += np.bincount(nearest[knots[nearest] == found], minlength=knots.size)

    @property
    def at_most(self) -> np.ndarray:
        """New values at or below each knot."""
        return np.cumsum(self._upto[:-1])

    @property
    def outside(self) -> tuple[int, int]:
        """New values below the smallest and above the largest training value."""
        return (int(self._upto[0] - self._equal[0]), int(self._upto[-1])) if self._equal.size else (0, 0)

    def median(self) -> float:
        """About the median of the new values."""
        if self.rows == self.missing:
            return float("nan")
        half = (self.rows - self.missing) / 2
        return quantile(self.column.knots, self.at_most, 0.5) if self.at_most[-1] >= half else self.highest

    def test(self) -> tuple[float, float]:
        """(difference, p) of the values."""
        old, new = self.column, self.at_most
        return kolmogorov_smirnov(old.below, old.at_most, old.present, new - self._equal, new, self.rows - self.missing)


@dataclass
class CategoriesCount:
    """New values of a column of categories, counted by level."""

    column: Categories
    rows: int = 0
    missing: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    unseen: Counter[str] = field(default_factory=Counter)
    unseen_rows: int = 0

    def add(self, values: pd.Series) -> None:
        """Count some rows."""
        counts = values.value_counts()
        self.rows, self.missing = self.rows + len(values), self.missing + len(values) - int(counts.sum())
        for level, count in counts.items():
            if level in self.column.levels:
                self.seen[str(level)] += int(count)
                continue
            self.unseen_rows += int(count)
            if level in self.unseen or len(self.unseen) < MOST_UNSEEN:
                self.unseen[str(level)] += int(count)

    def test(self) -> tuple[float, float]:
        """(difference, p): half the sum of the shares' differences; unseen levels are a level of their own, tested on their own too."""
        old = np.array([*self.column.levels.values(), 0])
        new = np.array([*(self.seen[level] for level in self.column.levels), self.unseen_rows])
        if not old.sum() or not new.sum():
            return 0.0, 1.0
        difference = float(np.abs(old / old.sum() - new / new.sum()).sum() / 2)
        p = same_levels(old, new)
        if self.unseen_rows:
            p = two_tests(p, same_share(0, self.unseen_rows, int(old.sum()), int(new.sum()) - self.unseen_rows))
        return difference, p


@dataclass(frozen=True)
class ColumnDrift:
    """How a column differs from training: by how much its shares differ at most, and whether that can be chance."""

    count: NumbersCount | CategoriesCount
    difference: float
    p: float
    corrected: float

    @property
    def name(self) -> str:
        """The column."""
        return self.count.column.name

    @property
    def found(self) -> bool:
        """Whether it is called drift."""
        return self.corrected <= LEVEL

    def as_dict(self) -> dict[str, Any]:
        """What machines read of it."""
        count, column = self.count, self.count.column
        shares = {"missing_share": _share(count.missing, count.rows), "missing_share_training": _share(column.missing, column.rows)}
        about = {"name": self.name, "kind": column.kind, "missing": count.missing, **shares}
        if isinstance(count, NumbersCount):
            low, high = count.outside
            knots = count.column.knots
            there = count.rows > count.missing
            about |= {
                "range_training": [float(knots[0]), float(knots[-1])] if knots.size else None,
                "range": [count.lowest, count.highest] if there else None,
                "below_range": low,
                "above_range": high,
            }
        else:
            about |= {"unseen_rows": count.unseen_rows, "unseen": dict(count.unseen.most_common(100))}
        return about | {"difference": self.difference, "p": self.p, "p_corrected": self.corrected, "drift": self.found}


@dataclass(frozen=True)
class Drift:
    """The tests of all columns and of the scores, corrected for their number."""

    columns: list[ColumnDrift]
    scores: tuple[float, float, float] | None
    """(difference, p, corrected p) of the scores against those of left-out training rows; None where a model has none."""

    @property
    def drifted(self) -> list[ColumnDrift]:
        """The columns that differ from training, those that differ most first."""
        return sorted((column for column in self.columns if column.found), key=lambda column: -column.difference)

    @property
    def scores_found(self) -> bool:
        """Whether the scores differ from those of training."""
        return self.scores is not None and self.scores[2] <= LEVEL

    def as_dict(self) -> dict[str, Any]:
        """What machines read of it."""
        keys = ("difference", "p", "p_corrected")
        scores = None if self.scores is None else {**dict(zip(keys, self.scores, strict=True)), "drift": self.scores_found}
        names = [column.name for column in self.drifted]
        tests = len(self.columns) + (self.scores is not None)
        return {"level": LEVEL, "tests": tests, "drift": bool(names) or self.scores_found, "columns": names, "scores": scores}


class DriftMonitor:
    """Counts new rows at what is known of the training rows.

    Parameters
    ----------
    columns : list of Numbers or Categories
        What training held: see :func:`describe`.
    scores : ndarray, optional
        Scores of training rows by models that have not seen them. New rows that are exchangeable with them score alike.
    """

    def __init__(self, columns: Sequence[Column], scores: np.ndarray | None = None) -> None:
        self.counts = [NumbersCount(column) if isinstance(column, Numbers) else CategoriesCount(column) for column in columns]
        self._scores = None if scores is None else NumbersCount(Numbers.of("scores", np.asarray(scores, dtype=np.float64)))

    def add(self, X: pd.DataFrame, scores: np.ndarray | None = None) -> None:
        """Count a block of rows and their scores."""
        for count in self.counts:
            count.add(X[count.column.name])
        if self._scores is not None and scores is not None:
            self._scores.add(pd.Series(scores))

    def drift(self) -> Drift:
        """Test what was counted."""
        found = [_tested(count) for count in self.counts]
        scores = None if self._scores is None else self._scores.test()
        corrected = holm([p for _, p in found] + ([scores[1]] if scores else []))
        columns = [ColumnDrift(*items) for items in zip(self.counts, *zip(*found, strict=True), corrected, strict=False)] if found else []
        return Drift(columns, (*scores, corrected[-1]) if scores else None)


def _tested(count) -> tuple[float, float]:
    """(difference, p) of a column's values, and of its share of missing ones where there are any."""
    difference, p = count.test()
    old = count.column
    if not old.missing and not count.missing:
        return difference, p
    gone = abs(_share(count.missing, count.rows) - _share(old.missing, old.rows))
    p_missing = same_share(old.missing, count.missing, old.present, count.rows - count.missing)
    return max(difference, gone), two_tests(p, p_missing)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
