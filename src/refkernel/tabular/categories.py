"""How a category of a table is encoded: a part as those of ``numbers``."""

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from .._core.file_rules import Flag, Items, Number, Rule, Text
from .columns import CATEGORY, UNEXPECTED, ColumnProfile, counted_levels
from .numbers import Encoded

LEVEL_UNIT = 2.0  # categories are then 1 apart, about as far as rows are in a number; units from 1 to 3 rank planted errors alike
NEW_UNIT = 1.0  # A category that was never seen is 1 / NEW_UNIT farther away than the rare ones, where training makes new ones likely
NEARLY_NO_UNIT = 1e6  # the same for a detector that scales by itself: left-out rows tell it how unusual new categories are
FEWEST = 10  # A category in fewer training rows shares a column with all others that are as rare
MOST_LEVELS = 50  # at most this many categories stand alone, the most frequent ones; distances take time for each
LABEL_ENCODER = 2  # the version of ONNX's operator: the first that takes texts to numbers


class CategoryPart(BaseEstimator):
    """A category: one column for each frequent level, one that all rare levels share, and one for missing cells where training had some.

    A level never seen counts as rare and new. It contradicts training where at most a share ``unexpected`` of the rows is alone in its
    level, which estimates how often new rows bring new levels (Good and Turing).
    """

    kind = CATEGORY
    _file_rules: ClassVar[dict[str, Rule]] = {
        "missing_": Number(0),
        "levels_": Items(Text(), size="l"),
        "own_": Items(Text()),
        "counts_": Items(Number(0), size="l"),
        "expects_new_": Flag(),
    }

    def __init__(self, standardise: bool = False, unexpected: float = UNEXPECTED) -> None:
        self.standardise = standardise
        self.unexpected = unexpected

    def fit(self, values: np.ndarray) -> Self:
        """Learn the levels, and which are rare (n × 1)."""
        levels, counts = counted_levels(values[:, 0])
        self.levels_, self.counts_ = list(levels), list(counts)
        self.missing_ = len(values) - sum(self.counts_)
        self.own_ = [level for level, count in zip(self.levels_, self.counts_, strict=True) if count >= FEWEST][:MOST_LEVELS]
        self.expects_new_ = self.counts_.count(1) > self.unexpected * len(values)
        return self

    @property
    def is_constant(self) -> bool:
        """Whether all training rows agree: then nothing is encoded."""
        return len(self.levels_) == 1 and not self.missing_

    @property
    def _extra(self) -> dict[str, int]:
        """The encoded columns behind those of the frequent levels: of rare levels, missing cells and new levels, where there are such."""
        there = {"rare": len(self.own_) < len(self.levels_), "missing": self.missing_ > 0, "new": self.expects_new_}
        names = [name for name, is_there in there.items() if is_there and not self.is_constant]
        return {name: place for place, name in enumerate(names, start=len(self.own_))}

    @property
    def units(self) -> list[float]:
        levels = [] if self.is_constant else [LEVEL_UNIT] * len(self.own_)
        new = NEW_UNIT if self.standardise else NEARLY_NO_UNIT
        return levels + [new if name == "new" else LEVEL_UNIT for name in self._extra]

    def names(self, names: list[str]) -> list[str]:
        return [] if self.is_constant else [f"{names[0]}: {level}" for level in [*self.own_, *self._extra]]

    def _places(self) -> tuple[dict[str, int], int, int]:
        """The encoded column of each frequent level, of all other levels, and of missing cells; -1 for none."""
        own = {} if self.is_constant else {level: place for place, level in enumerate(self.own_)}
        return own, self._extra.get("rare", -1), self._extra.get("missing", -1)

    def encode(self, values: np.ndarray) -> np.ndarray:
        own, other, missing = self._places()
        places = np.array([own.get(cell, other) if cell == cell else missing for cell in values[:, 0]], dtype=np.intp)
        known = np.flatnonzero(places >= 0)
        encoded = np.zeros((len(values), len(self.units)))
        encoded[known, places[known]] = 1.0
        if "new" in self._extra:
            encoded[:, -1] = self._is_new(values)[:, 0]
        return encoded / self.units if self.standardise else encoded

    def _is_new(self, values: np.ndarray) -> np.ndarray:
        known = set(self.levels_)
        return np.array([cell == cell and cell not in known for cell in values[:, 0]], dtype=bool)[:, None]

    def violated(self, values: np.ndarray) -> np.ndarray:
        found = np.zeros(values.shape, dtype=bool) if self.missing_ else np.asarray(values != values, dtype=bool)
        return found if self.expects_new_ else found | self._is_new(values)

    def graph(self, op: Any, inputs: list[Any]) -> Encoded:
        """The same in ONNX, by tables of words."""
        (cells,) = inputs
        own, other, missing = self._places()
        known = dict.fromkeys(self.levels_, 0.0)
        columns, width = [], len(self.units) - ("new" in self._extra)
        if width:
            places = _looked_up(op, cells, {**own, "": missing}, other)
            columns.append(op.doubles(op.Equal(places, np.arange(width, dtype=np.float32)[None])))
        if "new" in self._extra:
            columns.append(op.doubles(_looked_up(op, cells, {**known, "": 0.0}, 1.0)))
        if self.standardise and columns:
            columns = [op.Div(op.Concat(*columns, axis=1), np.array(self.units))]
        contradicts = _looked_up(op, cells, {**known, "": float(not self.missing_)}, float(not self.expects_new_))
        return columns, op.doubles(contradicts), op.doubles(_looked_up(op, cells, {"": 1.0}, 0.0))

    def profiles(self, names: list[str], rows: int) -> list[ColumnProfile]:
        pooled = tuple(level for level in self.levels_ if level not in self.own_)
        profile = ColumnProfile(names[0], CATEGORY, self.is_constant, rows, self.missing_)
        return [replace(profile, levels=tuple(self.levels_), counts=tuple(self.counts_), pooled=pooled)]


def _looked_up(op: Any, cells: Any, values: dict[str, float], otherwise: float) -> Any:
    numbers = [float(value) for value in values.values()]
    return op.LabelEncoder_2(
        cells, keys_strings=list(values), values_floats=numbers, default_float=float(otherwise), op_version=LABEL_ENCODER
    )
