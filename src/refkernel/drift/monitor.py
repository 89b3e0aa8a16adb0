"""Is a table still like the one a model was trained on? Rows are counted block by block, and tested at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .columns import Categories, Column, Numbers, numbers_of
from .statistics import holm, kolmogorov_smirnov, same_levels, same_share, two_tests

__all__ = ["LEVEL", "ColumnDrift", "Drift", "DriftMonitor"]

LEVEL = 0.05
"""The probability that any test calls drift where there is none, at most."""

MOST_TESTED = 50_000
"""Rows that are tested: a difference of one percentage point is then found, and smaller ones matter to nobody."""

FEWEST_TESTED = 1_000
MOST_VALUES = 1 << 20
"""Values that are kept for the tests: 8 MB."""

MOST_UNSEEN = 1_000
"""New levels of a column that are counted one by one."""


class NumbersCount:
    """New values of a column of numbers: counts of all, and those of evenly spread rows for a test."""

    def __init__(self, column: Numbers) -> None:
        self.column = column
        self.rows = self.missing = self._below = self._above = 0
        self.lowest, self.highest = np.inf, -np.inf
        self._tested: list[np.ndarray] = []

    def add(self, cells: np.ndarray, tested: slice) -> None:
        """Count some rows, and keep those that are tested."""
        self.rows, self.missing = self.rows + cells.size, self.missing + int(np.isnan(cells).sum())
        self._tested.append(cells[tested].copy())  # a view would keep the whole block
        knots = self.column.knots
        if knots.size:
            self._below += int((cells < knots[0]).sum())
            self._above += int((cells > knots[-1]).sum())
        self.lowest = float(np.fmin.reduce(cells, initial=self.lowest))
        self.highest = float(np.fmax.reduce(cells, initial=self.highest))

    def halve(self) -> None:
        """Keep every second one of the rows that are tested."""
        self._tested = [np.concatenate(self._tested)[::2]]

    @property
    def outside(self) -> tuple[int, int]:
        """New values below the smallest and above the largest training value."""
        return self._below, self._above

    @cached_property
    def tested(self) -> np.ndarray:
        """The values that are tested, in ascending order."""
        values = np.concatenate(self._tested) if self._tested else np.empty(0)
        return np.sort(values[~np.isnan(values)])

    def shares(self, edges: np.ndarray) -> np.ndarray:
        """The shares of the new values at or below some edges."""
        return np.searchsorted(self.tested, edges, "right") / max(self.tested.size, 1)

    def median(self) -> float:
        """The median of the new values; NaN where there is none."""
        return float(np.median(self.tested)) if self.tested.size else float("nan")

    def test(self) -> tuple[float, float]:
        """(difference, p) of the values."""
        old, new = self.column, self.tested
        below, at_most = (np.searchsorted(new, old.knots, side) for side in ("left", "right"))
        return kolmogorov_smirnov(old.below, old.at_most, old.present, below, at_most, new.size)


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

    All rows are counted. Up to 50,000 rows (fewer of many columns), spread evenly over all, are tested in columns of numbers.

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
        self._most = int(np.clip(MOST_VALUES // max(len(columns), 1), FEWEST_TESTED, MOST_TESTED))
        self._rows, self._step = 0, 1

    def add(self, X: pd.DataFrame, scores: np.ndarray | None = None) -> None:
        """Count a block of rows and their scores."""
        tested = slice(-self._rows % self._step, None, self._step)
        numbers = numbers_of(X)
        for count in self.counts:
            if isinstance(count, NumbersCount):
                count.add(numbers[count.column.name], tested)
            else:
                count.add(X[count.column.name])
        if self._scores is not None and scores is not None:
            self._scores.add(scores, tested)
        self._rows += len(X)
        while self._rows > self._most * self._step:
            self._step *= 2
            for halved in [*self.counts, self._scores]:
                if isinstance(halved, NumbersCount):
                    halved.halve()

    def drift(self) -> Drift:
        """Test what was counted."""
        found = [_tested(count) for count in self.counts]
        scores = None if self._scores is None else self._scores.test()
        corrected = holm([p for _, p in found] + ([scores[1]] if scores else []))
        columns = [ColumnDrift(*items) for items in zip(self.counts, *zip(*found, strict=True), corrected, strict=False)] if found else []
        return Drift(columns, (*scores, corrected[-1]) if scores else None)


def _tested(count: NumbersCount | CategoriesCount) -> tuple[float, float]:
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
