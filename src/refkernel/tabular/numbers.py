"""How numbers and dates of a table are encoded. ``categories`` has the same for categories.

A part learns from the normal training rows. ``encode`` gives its columns, ``units`` their units (NaN: the detector standardises).
``violated`` is True for cells that contradict what all training rows agree on: another value of a constant, a missing value where none was
missing, a number beyond ``limits``, an unexpected category. ``graph`` gives the same in ONNX, where missing numbers and dates are NaN, and
missing categories empty texts.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from .._core.file_rules import Array, Items, Number, Rule, Text
from .columns import ALL_KNOTS, DATE, FEWEST_KNOTS, MOST_KNOTS, NUMBER, QUANTILES, UNEXPECTED, ColumnProfile, knots_of

SAME = 1e-9  # A column whose range is below this share of its size is constant
TOLERANCE = 1e-6  # A value differs from a constant where it is farther away than this share of it
ZERO_TOLERANCE = 1e-9  # the same for a constant of 0
MISSING_UNIT = 1.0  # A missing number is 1 / MISSING_UNIT away from the median, which stands for it
SQUARED_MISSING_UNIT = 0.5  # the same where distances are squared: cells within 2 standard deviations of the median are nearer to it
CYCLE_UNIT = float(np.sqrt(2.0))  # of sine and cosine, for each unit of their spread: times are as far apart as normal numbers on average
SQUARED_CYCLE_UNIT = 1.0  # the same where columns are standardised: sine and cosine have a variance of 1 together, as a number has
LEAST_SPREAD = 0.1  # times that all training rows agree on within half an hour of a day are no narrower than this
REACH = 1.0  # numbers this many ranges beyond training's contradict it: of rows like 200 training rows, fewer than 1 in 10,000 do
FEW_VALUES = 20  # A range of n values underestimates what is normal: ranges of few values reach 1 + FEW_VALUES / n times as far
DAY, YEAR = 86_400.0, 365.2425 * 86_400.0
DAYS_OF_WEEK, DAYS_OF_TWO_MONTHS = 7, 60
THURSDAY = 3  # the weekday of 1 January 1970, where Monday is 0
Encoded: TypeAlias = tuple[list[Any], Any, Any]  # a graph's encoded columns, its cells that contradict training, and those that are missing


class NumbersPart(BaseEstimator):
    """All columns of numbers at once: their values or medians, and flags for missing cells where training had some.

    Another value of a constant contradicts training where at most a share ``UNEXPECTED`` of the training rows, or a single one, is alone
    with a value in an otherwise constant column: new rows are so about as often (Good and Turing). Elsewhere, as in counts of rare words,
    constants are columns like others. So it is with missing cells, and with numbers far outside: all columns then have flags, and none
    limits.
    """

    kind = NUMBER
    _file_rules: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("mean_", "std_"), Array(("p",))),
        **dict.fromkeys(("missing_", "knot_counts_"), Array(("p",), lowest=0)),
        "knots_": Array(("k",)),
        **dict.fromkeys(("below_", "at_most_"), Array(("k",), lowest=0)),
        **dict.fromkeys(("constant_", "expects_missing_", "expects_far_"), Array(("p",), dtype="b")),
        "quantiles_": Array((5, "p")),
        "limits_": Array((2, "p"), finite=False),
    }

    def __init__(self, standardise: bool = False) -> None:
        self.standardise = standardise

    def fit(self, values: np.ndarray) -> Self:
        """Learn ranges, shares of missing cells, and which columns are constant (n × p)."""
        is_missing = np.isnan(values)
        self.missing_ = is_missing.sum(axis=0)
        self.quantiles_ = np.nanquantile(values, QUANTILES, axis=0)
        columns = [np.sort(column[~gone]) for column, gone in zip(values.T, is_missing.T, strict=True)]
        knots = [knots_of(column, int(np.clip(ALL_KNOTS // len(columns), FEWEST_KNOTS, MOST_KNOTS))) for column in columns]
        self.knots_, self.below_, self.at_most_ = (np.concatenate(found) for found in zip(*knots, strict=True))
        self.knot_counts_ = np.array([found.size for found, _, _ in knots])
        smallest, largest = np.array([column[[0, -1]] for column in columns]).T
        with np.errstate(over="ignore"):
            same = largest - smallest <= SAME * np.abs(self.median_)
        most = max(1.0, UNEXPECTED * len(values))
        self.constant_ = same & (self._alone(values).sum() <= most)
        self.expects_missing_ = np.full(same.size, is_missing[:, self.missing_ == 1].any(axis=1).sum() > most)
        size = np.maximum(np.abs(smallest), np.abs(largest))
        size[size == 0] = 1.0
        shares = np.where(is_missing, self.median_, values) / size
        std = shares.std(axis=0, ddof=1) * size
        std[same & ~self.constant_] = (size / np.sqrt(len(values)))[same & ~self.constant_]  # as if one row had been 0
        self.mean_, self.std_ = shares.mean(axis=0) * size, np.where(std > 0, std, 1.0)
        has_limits = ~same & (self.kind == NUMBER)  # time moves on
        bounds = [limits(column) if is_bounded else NO_LIMITS for column, is_bounded in zip(columns, has_limits, strict=True)]
        self.limits_ = np.array(bounds).T
        self.expects_far_ = np.full(same.size, np.isinf(self.limits_[:, ~same]).sum() > most)
        return self

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """Knots rise within each column, and the counts at them do not fall."""
        ends = np.cumsum(self.knot_counts_)
        if ends[-1:].sum() != self.knots_.size or (self.knot_counts_ == 0).any():
            return "knot_counts_ does not fit knots_"
        inside = np.ones(self.knots_.size, dtype=bool)
        inside[np.r_[0, ends[:-1]]] = False
        rise = all((np.diff(found, prepend=0)[inside] >= 0).all() for found in (self.knots_, self.below_, self.at_most_))
        return None if rise else "knots_, below_ and at_most_ do not rise within each column"

    def _alone(self, values: np.ndarray) -> np.ndarray:
        """True for rows without which a column would be constant."""
        differs = np.abs(values - self.median_) > self._tolerance
        return differs[:, differs.sum(axis=0) == 1].any(axis=1)

    @property
    def median_(self) -> np.ndarray:
        """The median of each column."""
        return self.quantiles_[len(QUANTILES) // 2]

    @property
    def _tolerance(self) -> np.ndarray:
        """How far a value may be from a constant."""
        return np.where(self.median_ == 0, ZERO_TOLERANCE, TOLERANCE * np.abs(self.median_))

    @property
    def flagged(self) -> np.ndarray:
        """The columns where missing cells are ordinary, and have a column of their own."""
        return np.flatnonzero(self._may_lack)

    @property
    def _may_lack(self) -> np.ndarray:
        return (self.missing_ > 0) | self.expects_missing_

    @property
    def _bounds(self) -> np.ndarray:
        """The smallest and the largest number of each column that training does not contradict (2 × p)."""
        return np.where(self.expects_far_, np.array([NO_LIMITS]).T, self.limits_)

    @property
    def varying(self) -> np.ndarray:
        """The columns that are not constant."""
        return np.flatnonzero(~self.constant_)

    @property
    def sources(self) -> np.ndarray:
        """The column that each encoded column is made of: the values, then the flags."""
        return np.r_[self.varying, self.flagged]

    @property
    def units(self) -> list[float]:
        """The units of the encoded columns."""
        return [np.nan] * len(self.varying) + [self._flag_unit] * len(self.flagged)

    @property
    def _flag_unit(self) -> float:
        return SQUARED_MISSING_UNIT if self.standardise else MISSING_UNIT

    def names(self, names: list[str]) -> list[str]:
        """The names of the encoded columns."""
        return [names[j] for j in self.varying] + [f"{names[j]}: missing" for j in self.flagged]

    def encode(self, values: np.ndarray) -> np.ndarray:
        """The encoded columns."""
        is_missing = np.isnan(values)
        filled = np.where(is_missing, self.median_, values) if is_missing.any() else values
        flags = is_missing[:, self.flagged]
        if self.standardise:
            filled, flags = (filled - self.mean_) / self.std_, flags / self._flag_unit
        shown = filled if not self.constant_.any() else filled[:, self.varying]
        return np.hstack([shown, flags]) if flags.shape[1] else shown

    def violated(self, values: np.ndarray) -> np.ndarray:
        """True where a cell contradicts all of training (n × p)."""
        found = np.isnan(values) & ~self._may_lack
        if self.constant_.any():
            found |= (np.abs(values - self.median_) > self._tolerance) & self.constant_
        low, high = self._bounds
        return found | (values < low) | (values > high)

    def graph(self, op: Any, inputs: list[Any]) -> Encoded:
        """The same in ONNX."""
        X = op.Concat(*map(op.doubles, inputs), axis=1)
        is_missing = op.IsNaN(X)
        filled, flags = op.Where(is_missing, self.median_, X), op.doubles(is_missing)
        away = op.Greater(op.Abs(op.Sub(filled, self.median_)), np.where(self.constant_, self._tolerance, np.inf))
        low, high = self._bounds
        far = op.Or(op.Less(filled, low), op.Greater(filled, high))
        never = op.Mul(flags, (~self._may_lack).astype(np.float64))
        return self._graph_columns(op, filled, flags), op.Max(op.doubles(op.Or(away, far)), never), flags

    def _graph_columns(self, op: Any, filled: Any, flags: Any) -> list[Any]:
        if self.standardise:
            filled, flags = op.Div(op.Sub(filled, self.mean_), self.std_), op.Div(flags, op.numbers(self._flag_unit))
        return [op.columns(node, chosen) for node, chosen in ((filled, self.varying), (flags, self.flagged)) if len(chosen)]

    def profiles(self, names: list[str], rows: int) -> list[ColumnProfile]:
        """What training knew."""
        ends = np.cumsum(self.knot_counts_)[:-1]
        knots = zip(*(np.split(found, ends) for found in (self.knots_, self.below_, self.at_most_)), strict=True)
        facts = zip(names, self.constant_.tolist(), self.missing_.tolist(), self.quantiles_.T.tolist(), knots, strict=True)
        return [
            ColumnProfile(name, self.kind, constant, rows, missing, tuple(quantiles), *found)
            for name, constant, missing, quantiles, found in facts
        ]


NO_LIMITS = (-np.inf, np.inf)


def limits(ordered: np.ndarray) -> tuple[float, float]:
    """The smallest and the largest number that training does not contradict, of its values in ascending order.

    They are ``REACH`` ranges beyond the values (their logarithms where all are positive: another unit is recognised either way). A side has
    no limit if training's own extreme value there would contradict all others.
    """
    if ordered.size < 2:
        return NO_LIMITS
    with np.errstate(all="ignore"):  # a limit that overflows is infinite
        low, high = _beyond(ordered)
        if ordered[0] <= 0.0:
            return low, high
        small, large = np.exp(_beyond(np.log(ordered)))
        gaps = np.diff(ordered)
    resolution = gaps[gaps > 0].min(initial=np.inf)  # numbers are rounded: 0 may stand for anything below it
    return (small if resolution < small else low), large


def _beyond(ordered: np.ndarray) -> tuple[float, float]:
    """The limits of ascending numbers."""
    reach = REACH * (1.0 + FEW_VALUES / ordered.size)
    smallest, second, before, largest = ordered[[0, 1, -2, -1]]
    low = -np.inf if smallest < second - reach * (largest - second) else smallest - reach * (largest - smallest)
    high = np.inf if largest > before + reach * (before - smallest) else largest + reach * (largest - smallest)
    return low, high


class DatePart(NumbersPart):
    """A point in time, in seconds since 1970: elapsed time, and the hour, weekday and month as places on a circle where training varies."""

    kind = DATE
    _file_rules: ClassVar[dict[str, Rule]] = {
        "cycles_": Items(Text(("hour", "weekday", "month")), size="y"),
        "spreads_": Items(Number(), size="y"),
    }

    def fit(self, values: np.ndarray) -> Self:
        """Learn the range, and which cycles there are (n × 1)."""
        super().fit(values)
        present = values[~np.isnan(values)]
        days = np.floor(present / DAY)
        varies = (np.ptp(present % DAY) > 0, np.ptp(days) >= DAYS_OF_WEEK, np.ptp(days) >= DAYS_OF_TWO_MONTHS)
        self.cycles_ = [name for name, there in zip(CYCLES, varies, strict=True) if there and not self.constant_[0]]
        angles = [2.0 * np.pi * CYCLES[name](present) for name in self.cycles_]
        self.spreads_ = [max(float(np.hypot(np.std(np.sin(angle)), np.std(np.cos(angle)))), LEAST_SPREAD) for angle in angles]
        return self

    @property
    def units(self) -> list[float]:
        return [*super().units, *np.repeat(self._circle_units, 2).tolist()]

    @property
    def _circle_units(self) -> np.ndarray:
        return np.array(self.spreads_) * (SQUARED_CYCLE_UNIT if self.standardise else CYCLE_UNIT)

    def names(self, names: list[str]) -> list[str]:
        return [*super().names(names), *(f"{names[0]}: {cycle} ({part})" for cycle in self.cycles_ for part in ("sine", "cosine"))]

    def encode(self, values: np.ndarray) -> np.ndarray:
        filled = np.where(np.isnan(values), self.median_, values)[:, 0]
        units = self._circle_units if self.standardise else np.ones(len(self.cycles_))
        angles = [2.0 * np.pi * CYCLES[name](filled) for name in self.cycles_]
        circles = [part(angle) / unit for angle, unit in zip(angles, units, strict=True) for part in (np.sin, np.cos)]
        return np.column_stack([super().encode(values), *circles])

    def _graph_columns(self, op: Any, filled: Any, flags: Any) -> list[Any]:
        units = self._circle_units if self.standardise else np.ones(len(self.cycles_))
        columns = super()._graph_columns(op, filled, flags)
        for name, unit in zip(self.cycles_, units, strict=True):
            days = op.Add(op.Floor(op.Div(filled, op.numbers(DAY))), op.numbers(THURSDAY))
            length = {"hour": DAY, "weekday": DAYS_OF_WEEK, "month": YEAR}[name]
            turns = op.Div(days if name == "weekday" else filled, op.numbers(length))
            angle = op.Mul(op.Sub(turns, op.Floor(turns)), op.numbers(2.0 * np.pi))
            for shift in (0.0, 0.5 * np.pi):  # onnxruntime has no cosine of doubles
                columns.append(op.Div(op.Sin(op.Add(angle, op.numbers(shift))), op.numbers(unit)))
        return columns


CYCLES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hour": lambda seconds: seconds % DAY / DAY,
    "weekday": lambda seconds: (np.floor(seconds / DAY) + THURSDAY) % DAYS_OF_WEEK / DAYS_OF_WEEK,
    "month": lambda seconds: seconds % YEAR / YEAR,
}
"""The place of a moment in each cycle, from 0 to 1."""
