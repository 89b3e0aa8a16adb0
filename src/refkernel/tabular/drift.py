"""Drift: is new data still what training data were? Rows are counted block by block, and tested at the end.

Numbers by Kolmogorov and Smirnov's test, categories by a chi-square test, missing shares by Fisher's, corrected by Holm's rule.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import kolmogorov
from scipy.stats import chi2_contingency, fisher_exact

from .._core.text import counted
from ..detectors.calibration.promise import holm
from ..detectors.explain.normal import written
from .columns import CATEGORY, DATE, ColumnProfile

LEVEL = 0.05  # the probability that any test calls drift where there is none, at most
MOST_TESTED = 50_000  # rows that are tested: a difference of one percentage point is then found, and smaller ones matter to nobody
FEWEST_TESTED = 1_000
MOST_VALUES = 1 << 20  # values that are kept for the tests: 8 MB
MOST_UNSEEN = 1_000  # new levels of a column that are counted one by one
FEWEST_EXPECTED = 5.0  # A chi-square test needs about this many expected rows in every cell (Cochran, 1954)
MANY = 0.1  # A column with at least this share of its rows outside training's range is worth a note
LEAST_FACTOR = 5.0  # values that differ from training's median by at least this factor, all by about the same, look like another unit
SPREAD = 0.5  # in powers of ten: values spread more than this are not one unit's multiple of another


@dataclass
class ColumnCount:
    """New values of a column, counted."""

    column: ColumnProfile
    rows: int = 0
    missing: int = 0
    unlike: int = 0  # rows with a value that training did not have: beyond its range, or of another level
    later: int = 0  # rows from later than all of training
    unseen: Counter[str] = field(default_factory=Counter)  # levels that training did not have

    @property
    def missing_share(self) -> float:
        """The share of the rows without a value."""
        return self.missing / self.rows if self.rows else 0.0

    def halve(self) -> None:
        """Keep every second one of the rows that are tested, if only some are."""

    def unit(self) -> str:
        """A hint if the whole column is in another unit."""
        return ""


@dataclass
class NumbersCount(ColumnCount):
    """New values of a column of numbers: counts of all, and those of evenly spread rows for a test."""

    falls_only: bool = False  # only lower values are tested for: left-out rows, scored by models of fewer rows, score a little lower
    outside: tuple[int, int] = (0, 0)  # values below the smallest and above the largest of training
    lowest: float = np.inf
    highest: float = -np.inf
    _tested: list[np.ndarray] = field(default_factory=list)

    def add(self, cells: np.ndarray, tested: slice) -> None:
        """Count some rows, and keep those that are tested."""
        self.rows, self.missing = self.rows + cells.size, self.missing + int(np.isnan(cells).sum())
        self._tested.append(cells[tested].copy())  # a view would keep the whole block
        if knots := self.column.knots[[0, -1]].tolist() if self.column.knots.size else []:
            self.outside = self.outside[0] + int((cells < knots[0]).sum()), self.outside[1] + int((cells > knots[1]).sum())
            self.unlike, normal = sum(self.outside), self.column.normal
            self.later = self.outside[1] if normal.is_date and not normal.is_clock else 0
        self.lowest = float(np.fmin.reduce(cells, initial=self.lowest))
        self.highest = float(np.fmax.reduce(cells, initial=self.highest))

    def halve(self) -> None:
        self._tested = [np.concatenate(self._tested)[::2]]

    @cached_property
    def tested(self) -> np.ndarray:
        """The values that are tested, in ascending order."""
        values = np.concatenate(self._tested) if self._tested else np.empty(0)
        return np.sort(values[~np.isnan(values)])

    def test(self) -> tuple[float, float]:
        """(D, p) of Kolmogorov and Smirnov's test at the knots: between them it sees nothing, and ties make D small: never too eager."""
        old, new, n, m = self.column, self.tested, self.column.present, self.tested.size
        if n == 0 or m == 0:
            return 0.0, 1.0
        below, at_most = (np.searchsorted(new, old.knots, side) for side in ("left", "right"))
        fallen = np.concatenate([below / m - old.below / n, at_most / m - old.at_most / n])
        D = float(fallen.max() if self.falls_only else np.abs(fallen).max())
        root = np.sqrt(n * m / (n + m))
        z = (root + 0.12 + 0.11 / root) * D  # Stephens' (1970) correction for small samples
        return D, float(np.exp(-2.0 * max(z, 0.0) ** 2) if self.falls_only else kolmogorov(z))

    def unit(self) -> str:
        typical = self.column.typical
        if self.unlike < self.rows or not typical or self.column.kind == DATE or not self.tested.all():
            return ""
        powers = np.log10(np.abs(self.tested) / abs(typical))
        if abs(powers.mean()) < np.log10(LEAST_FACTOR) or powers.std() > SPREAD:
            return ""
        times = written(float(f"{10 ** abs(powers.mean()):.2g}"))
        return f": values about {times} times {'larger' if powers.mean() > 0 else 'smaller'} than in training. Another unit?"


@dataclass
class CategoriesCount(ColumnCount):
    """New values of a column of categories, counted by level."""

    seen: Counter[str] = field(default_factory=Counter)

    def add(self, cells: np.ndarray, tested: slice) -> None:
        """Count some rows; all are tested."""
        counts = {level: count for level, count in Counter(cells.tolist()).items() if level == level}
        self.rows, self.missing = self.rows + cells.size, self.missing + cells.size - sum(counts.values())
        known = set(self.column.levels)
        for level, count in counts.items():
            if level in known:
                self.seen[level] += count
                continue
            self.unlike += count
            if level in self.unseen or len(self.unseen) < MOST_UNSEEN:
                self.unseen[level] += count

    def test(self) -> tuple[float, float]:
        """(half the sum of the shares' differences, p); unseen levels are tested too, beside training rows that are alone in theirs."""
        old = np.array([*self.column.counts, *[0] * len(self.unseen)])
        new = np.array([*(self.seen[level] for level in self.column.levels), *self.unseen.values()])
        if not old.sum() or not new.sum():
            return 0.0, 1.0
        difference = float(np.abs(old / old.sum() - new / new.sum()).sum() / 2)
        p = same_levels(old, new)
        if self.unlike:
            alone, seen = self.column.counts.count(1), sum(self.seen.values())
            p = min(1.0, 2.0 * min(p, same_share(alone, self.unlike, int(old.sum()) - alone, seen)))  # Bonferroni
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
        return self.count.column.name

    @property
    def found(self) -> bool:
        """Whether it is called drift."""
        return self.corrected <= LEVEL

    def as_dict(self) -> dict[str, Any]:
        """What machines read of it."""
        count, column = self.count, self.count.column
        shares = {"missing_share": count.missing_share, "missing_share_training": column.missing_share}
        about = {"name": self.name, "kind": column.kind, "missing": count.missing, **shares}
        if isinstance(count, NumbersCount):
            about |= {"range_training": [column.minimum, column.maximum] if column.knots.size else None}
            about |= {"range": [count.lowest, count.highest] if count.rows > count.missing else None}
            about |= zip(("below_range", "above_range"), count.outside, strict=True)
        if isinstance(count, CategoriesCount):
            about |= {"unseen_rows": count.unlike, "unseen": dict(count.unseen.most_common(100))}
        return about | self.outcome()

    def outcome(self) -> dict[str, Any]:
        return {"difference": self.difference, "p": self.p, "p_corrected": self.corrected, "drift": self.found}


@dataclass(frozen=True)
class Drift:
    """The tests of all columns and of the scores, corrected for their number."""

    columns: list[ColumnDrift]
    scores: ColumnDrift | None  # the scores against those of left-out training rows; None where a model has none

    @property
    def tests(self) -> int:
        return len(self.columns) + (self.scores is not None)

    @property
    def rule(self) -> str:
        """What is called drift, in words."""
        return f"({100 * LEVEL:g} % level, corrected for {counted(self.tests, 'test')})"

    @property
    def drifted(self) -> list[ColumnDrift]:
        """The columns that differ from training, those that differ most first."""
        return sorted((column for column in self.columns if column.found), key=lambda column: -column.difference)

    @property
    def scores_found(self) -> bool:
        """Whether the scores differ from those of training."""
        return self.scores is not None and self.scores.found

    def as_dict(self) -> dict[str, Any]:
        """What machines read of it."""
        scores, names = None if self.scores is None else self.scores.outcome(), [column.name for column in self.drifted]
        return {"level": LEVEL, "tests": self.tests, "drift": bool(names) or self.scores_found, "columns": names, "scores": scores}


class DriftMonitor:
    """Counts all new rows, and tests up to 50,000 numbers of a column, spread evenly, and the scores, against what training had."""

    def __init__(self, columns: Sequence[ColumnProfile], scores: np.ndarray | None = None) -> None:
        self.counts = [CategoriesCount(column) if column.kind == CATEGORY else NumbersCount(column) for column in columns]
        learnt = [] if scores is None else [ColumnProfile.of_numbers("scores", np.asarray(scores, dtype=np.float64))]
        self._scores = [NumbersCount(profile, falls_only=True) for profile in learnt]
        self._most = int(np.clip(MOST_VALUES // max(len(columns), 1), FEWEST_TESTED, MOST_TESTED))
        self.rows, self._step = 0, 1

    def add(self, cells: Sequence[np.ndarray], scores: Any = None) -> None:
        """Count a block of rows, by the cells of each column, and their scores."""
        tested = slice(-self.rows % self._step, None, self._step)
        for count, column in zip([*self.counts, *self._scores], [*cells, scores], strict=False):
            count.add(column, tested)
        self.rows += len(cells[0])
        while self.rows > self._most * self._step:
            self._step *= 2
            for count in [*self.counts, *self._scores]:
                count.halve()

    def outside(self) -> list[str]:
        """A line for each column with many rows that training never had, the worst first: ``mass: all 133 rows outside 2,700 … 6,300``."""
        lines = []
        for count in sorted(self.counts, key=lambda count: -count.unlike):
            if count.unlike > max(1, MANY * self.rows - 1):
                which = f"all {self.rows:,} rows" if count.unlike == self.rows else f"{count.unlike:,} of {self.rows:,} rows"
                lines.append(f"{count.column.name}: {which} outside {count.column.normal}{count.unit()}")
        return lines

    def drift(self) -> Drift:
        """Test what was counted."""
        tested = [(count, *_test(count)) for count in [*self.counts, *self._scores]]
        found = [ColumnDrift(*one, corrected) for one, corrected in zip(tested, holm([p for _, _, p in tested]), strict=True)]
        return Drift(found[: len(self.counts)], found[-1] if self._scores else None)


def _test(count: NumbersCount | CategoriesCount) -> tuple[float, float]:
    """(difference, p) of the values, and of the share of missing ones where there are any."""
    (difference, p), old = count.test(), count.column
    if not old.missing and not count.missing:
        return difference, p
    p_missing = same_share(old.missing, count.missing, old.present, count.rows - count.missing)
    return max(difference, abs(count.missing_share - old.missing_share)), min(1.0, 2.0 * min(p, p_missing))  # Bonferroni


def same_levels(old: np.ndarray, new: np.ndarray) -> float:
    """The p-value of a chi-square test that levels are as frequent among new rows as among old ones; rare levels count as one."""
    table = np.array([old, new], dtype=np.float64)
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return 1.0
    if table.shape[1] == 2:
        return same_share(*map(int, table.T.ravel()))
    expected = table.sum(axis=0) * table.sum(axis=1).min() / table.sum()
    few = expected < FEWEST_EXPECTED  # a chi-square test cannot take these: they count as one, or join the rarest other where still too few
    kept, others = table[:, ~few], table[:, few].sum(axis=1, keepdims=True)
    if expected[few].sum() >= FEWEST_EXPECTED:
        kept = np.hstack([kept, others])
    elif kept.shape[1]:
        kept[:, [np.argmin(kept.sum(axis=0))]] += others
    return float(chi2_contingency(kept, correction=False).pvalue) if kept.shape[1] > 1 else 1.0


def same_share(old: int, new: int, old_rest: int, new_rest: int) -> float:
    """The p-value of Fisher's exact test that a share is the same among old and new rows."""
    return float(min(1.0, fisher_exact([[old, new], [old_rest, new_rest]]).pvalue))
