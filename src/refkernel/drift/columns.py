"""What the columns of the training table held, small enough for a model file: at most 768 numbers a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._encoding import by_columns
from ..exceptions import ModelFileError

__all__ = ["Categories", "Column", "Numbers", "column_from_dict", "describe"]

MOST_KNOTS = 256
"""Knots of a column of numbers: the largest difference between two distributions is found to within 1/256."""

FEWEST_KNOTS = 16

ALL_KNOTS = 100_000
"""Knots of all columns together: tables of thousands of columns get fewer for each."""


@dataclass(frozen=True)
class Numbers:
    """A column of numbers: order statistics of its training values (``knots``), and how many values are below and at most each.

    The first knot is the smallest value, the last one the largest. A column with few different values has them all as knots.
    """

    name: str
    rows: int
    missing: int
    knots: np.ndarray
    below: np.ndarray
    at_most: np.ndarray

    kind = "number"

    @classmethod
    def of(cls, name: str, values: np.ndarray, most: int = MOST_KNOTS) -> Numbers:
        """Describe training values; NaN is missing."""
        found = np.sort(values[~np.isnan(values)])
        knots = np.unique(found)
        if knots.size > most:
            knots = np.unique(found[np.linspace(0, found.size - 1, most).round().astype(int)])
        return cls(
            name,
            values.size,
            values.size - found.size,
            knots,
            np.searchsorted(found, knots, "left"),
            np.searchsorted(found, knots, "right"),
        )

    @property
    def present(self) -> int:
        """Rows with a value."""
        return self.rows - self.missing

    def quantile(self, share: float) -> float:
        """The first knot with at least this share of the training values at or below it; NaN if the column is empty."""
        if not self.knots.size:
            return float("nan")
        place = int(np.searchsorted(self.at_most, share * self.present))
        return float(self.knots[min(place, self.knots.size - 1)])

    def as_dict(self) -> dict[str, Any]:
        """The column in plain JSON."""
        counts = {"below": self.below.tolist(), "at_most": self.at_most.tolist()}
        return {"name": self.name, "rows": self.rows, "missing": self.missing, "knots": self.knots.tolist(), **counts}


@dataclass(frozen=True)
class Categories:
    """A column of categories: how often each level was there in training."""

    name: str
    rows: int
    missing: int
    levels: Mapping[str, int]

    kind = "category"

    @classmethod
    def of(cls, name: str, values: pd.Series) -> Categories:
        """Describe training values; NaN is missing."""
        counts = values.astype(object).value_counts()
        return cls(name, len(values), int(values.isna().sum()), {str(level): int(count) for level, count in counts.items()})

    @property
    def present(self) -> int:
        """Rows with a value."""
        return self.rows - self.missing

    def as_dict(self) -> dict[str, Any]:
        """The column in plain JSON."""
        return {"name": self.name, "rows": self.rows, "missing": self.missing, "levels": dict(self.levels)}


Column = Numbers | Categories


def describe(X: Any) -> list[Column]:
    """What each column of a training table holds: numbers where its type is one, categories otherwise."""
    most = int(np.clip(ALL_KNOTS // max(len(X.columns), 1), FEWEST_KNOTS, MOST_KNOTS))
    return [column for part in by_columns(X) for column in _described(part, most)]


def _described(X: pd.DataFrame, most: int) -> list[Column]:
    numbers = numbers_of(X)
    return [Numbers.of(str(name), numbers[name], most) if name in numbers else Categories.of(str(name), X[name]) for name in X.columns]


def numbers_of(X: pd.DataFrame) -> dict[str, np.ndarray]:
    """The columns of numbers, by name. Thousands of them are taken at once: one by one, pandas needs seconds."""
    numeric = X.select_dtypes(np.number)
    return dict(zip(numeric.columns, np.asfortranarray(numeric.to_numpy(dtype=np.float64)).T, strict=True))


def column_from_dict(item: Any) -> Column:
    """The column that ``as_dict`` has described; an error for anything else, because files can be damaged or forged."""
    try:
        column = _numbers(item) if "knots" in item else _categories(item)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"The description of a training column is damaged or forged ({error}): fit the model again.") from error
    return column


def _numbers(item: Any) -> Numbers:
    rows, missing = _counts([item["rows"], item["missing"]])
    knots = np.asarray(item["knots"], dtype=np.float64)
    below, at_most = (np.array(_counts(item[name]), dtype=np.int64) for name in ("below", "at_most"))
    shapes_fit = knots.ndim == 1 and knots.shape == below.shape == at_most.shape
    if not shapes_fit or not np.isfinite(knots).all() or (np.diff(knots) <= 0).any():
        raise ValueError("its knots are not rising numbers with two counts each")
    _check_counts(np.column_stack([below, at_most]).ravel(), rows, missing)
    return Numbers(str(item["name"]), rows, missing, knots, below, at_most)


def _categories(item: Any) -> Categories:
    rows, missing = _counts([item["rows"], item["missing"]])
    levels = dict(zip(map(str, item["levels"]), _counts(item["levels"].values()), strict=True))
    _check_counts(np.array([sum(levels.values())]), rows, missing)
    return Categories(str(item["name"]), rows, missing, levels)


def _counts(values: Sequence[Any]) -> list[int]:
    found = list(values)
    if not all(type(value) is int and 0 <= value < 2**53 for value in found):
        raise ValueError("its counts are not whole numbers")
    return found


def _check_counts(rising: np.ndarray, rows: int, missing: int) -> None:
    """Counts of values never fall from knot to knot, and end at the number of values."""
    if (np.diff(rising) < 0).any() or missing > rows or (rising[-1] if rising.size else 0) != rows - missing:
        raise ValueError("its counts do not add up")
