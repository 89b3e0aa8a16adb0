"""Why rows are flagged, in words: for the command line and for reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .normal import Normal, written

__all__ = ["OutsideRanges", "Reason", "combined", "reasons", "row_reasons", "worst_features"]

MANY = 0.1
"""A column with at least this share of its rows outside training's range is worth a note."""

LEAST_FACTOR = 5.0
"""Values that differ from training's median by at least this factor, all by about the same, look like another unit."""

SPREAD = 0.5
"""In powers of ten: values spread more than this are not one unit's multiple of another."""


@dataclass(frozen=True)
class Reason:
    """A cell that counts against its row: its column, its value, and what training had there (empty if that is unknown)."""

    column: str
    value: str
    normal: str
    outside: bool
    """Whether training never had such a value."""
    weight: float
    """What the cell adds to the row's score, negative."""
    why: str
    """What is wrong with the value, in words; empty where nothing is known."""
    beside: str = ""
    """The cell that it does not go with, where both are normal by themselves: ``bill_length_mm = 38.1``."""

    def as_dict(self) -> dict[str, Any]:
        """The reason in plain JSON."""
        return asdict(self)


def worst_features(values: np.ndarray, count: int) -> np.ndarray:
    """The numbers of the features that count most against each row (rows × count), worst first; -1 where there are no more."""
    count = min(count, values.shape[1])
    found = np.argpartition(values, count - 1, axis=1)[:, :count] if 0 < count < values.shape[1] else np.argsort(values, axis=1)[:, :count]
    against = np.take_along_axis(values, found, axis=1)
    order = np.argsort(against, axis=1, kind="stable")
    return np.where(np.take_along_axis(against, order, axis=1) < 0.0, np.take_along_axis(found, order, axis=1), -1)


def reasons(
    names: Sequence[str],
    values: np.ndarray,
    cells: Sequence[np.ndarray],
    normals: Sequence[Normal | None],
    count: int,
    partners: np.ndarray | None = None,
) -> np.ndarray:
    """The features that count most against each row, in words (rows × count): ``body_mass_g = 3.75 (normal: 2,700 … 6,300)``.

    ``values`` (rows × features) are negative for features that count against a row; ``cells`` are the cells, one array per feature.
    ``partners`` are the features that the first ones do not go with; -1 for none. Texts are empty where nothing more counts against a row.
    """
    worst = worst_features(values, count)
    beside = _beside(names, cells, normals, partners, len(values))
    texts = np.full((len(values), max(count, 0)), "", dtype=object)
    for number in np.unique(worst[worst >= 0]):
        row, place = np.nonzero(worst == number)
        others = np.where(place == 0, beside[row], "")
        texts[row, place] = [
            f"{names[number]} = {text} ({why})" if why else f"{names[number]} = {text}"
            for text, _, why in _judged(cells[number][row], normals[number], others)
        ]
    return texts


def row_reasons(
    names: Sequence[str],
    values: np.ndarray,
    cells: Sequence[np.ndarray],
    normals: Sequence[Normal | None],
    count: int,
    partners: np.ndarray | None = None,
) -> list[list[Reason]]:
    """The same for each row as a list, the strongest first."""
    beside = _beside(names, cells, normals, partners, len(values))

    def reason(row: int, place: int, j: int) -> Reason:
        other = beside[row] if place == 0 else ""
        [(text, outside, why)] = _judged(cells[j][row : row + 1], normals[j], np.array([other], dtype=object))
        return Reason(names[j], text, "" if normals[j] is None else str(normals[j]), outside, float(values[row, j]), why, other)

    return [
        [reason(row, place, j) for place, j in enumerate(worst.tolist()) if j >= 0]
        for row, worst in enumerate(worst_features(values, count))
    ]


def _beside(
    names: Sequence[str], cells: Sequence[np.ndarray], normals: Sequence[Normal | None], partners: np.ndarray | None, rows: int
) -> np.ndarray:
    """The cell that the first reason of each row does not go with, as text; empty for none."""
    texts = np.full(rows, "", dtype=object)
    for number in [] if partners is None else np.unique(partners[partners >= 0]):
        chosen = np.flatnonzero(partners == number)
        texts[chosen] = [f"{names[number]} = {text}" for text, _ in _written(cells[number][chosen], normals[number])]
    return texts


def combined(
    values: np.ndarray, cells: Sequence[np.ndarray], usual: Sequence[Normal | None], find: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """The features that the first reasons do not go with; -1 where one of the two is unusual by itself.

    ``usual`` is what most of training had in each feature; dates are several features in one. ``find`` gives the partners of features in
    some rows, by the numbers of the rows and their worst features.
    """
    first = worst_features(values, 1)[:, 0]
    alone = np.array([_unusual(column, normal) for column, normal in zip(cells, usual, strict=True)])
    rows = np.flatnonzero((first >= 0) & ~alone[first, np.arange(len(first))])
    partners = np.full(len(values), -1)
    if rows.size and len(cells) > 1:
        found = find(rows, first[rows])
        partners[rows] = np.where((found >= 0) & ~alone[found, rows], found, -1)
    return partners


def _unusual(cells: np.ndarray, usual: Normal | None) -> np.ndarray:
    if usual is None or usual.is_date:
        return np.ones(len(cells), dtype=bool)
    return usual.outside(cells) | np.array([_is_missing(cell) for cell in cells.tolist()], dtype=bool)


def _judged(cells: np.ndarray, normal: Normal | None, beside: np.ndarray) -> list[tuple[str, bool, str]]:
    """Each cell as text, whether training had no such cell, and what is wrong with it in words."""
    within, outside = ("", "") if normal is None else (f"within {normal}", f"normal: {normal}")
    if normal is not None and normal.is_date:
        within += "; its hour, weekday or season may be unusual"
    return [
        (text, beyond, f"normal alone, but not in combination with {other}" if other else outside if beyond else within)
        for (text, beyond), other in zip(_written(cells, normal), beside, strict=True)
    ]


def _written(cells: np.ndarray, normal: Normal | None) -> list[tuple[str, bool]]:
    """Each cell as text, and whether training had no such cell."""
    if normal is None:
        return [(_plain(cell), False) for cell in cells.tolist()]
    outside = normal.outside(cells).tolist()
    return [(normal.written(cell), beyond or _is_missing(cell)) for cell, beyond in zip(cells.tolist(), outside, strict=True)]


def _plain(cell: Any) -> str:
    return "missing" if _is_missing(cell) else written(cell) if isinstance(cell, float) else str(cell)


def _is_missing(cell: Any) -> bool:
    return cell is None or cell != cell


@dataclass
class OutsideRanges:
    """Counts, block by block, the rows outside training's range in each column, and tells which columns look wrong as a whole."""

    names: Sequence[str]
    normals: Sequence[Normal | None]
    rows: int = 0
    outside: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        d = len(self.names)
        self.outside = np.zeros(d, dtype=np.int64)
        self._log = np.zeros((d, 3))  # of |value| / |median|, where both exist: their number, their sum, the sum of their squares

    def add(self, cells: Sequence[np.ndarray]) -> None:
        """Count the rows of a block; one array of cells for each column."""
        self.rows += len(cells[0]) if len(cells) else 0
        for number, (normal, column) in enumerate(zip(self.normals, cells, strict=True)):
            if normal is not None:
                self._add(number, normal, column)

    def _add(self, number: int, normal: Normal, column: np.ndarray) -> None:
        outside = normal.outside(column)
        self.outside[number] += int(outside.sum())
        if normal.typical and not normal.is_date and self.outside[number] == self.rows:  # only a whole column can be in another unit
            numbers = np.abs(np.asarray(column, dtype=np.float64))
            logarithms = np.log10(numbers[np.isfinite(numbers) & (numbers > 0.0)] / abs(normal.typical))
            self._log[number] += logarithms.size, logarithms.sum(), (logarithms**2).sum()

    def notes(self) -> list[str]:
        """A line for each column with many rows outside: ``body_mass_g: all 133 rows outside 2,700 … 6,300``; the worst first."""
        many = [number for number in np.argsort(-self.outside, kind="stable") if self.outside[number] > max(1, MANY * self.rows - 1)]
        return [self._note(number) for number in many]

    def _note(self, number: int) -> str:
        count = int(self.outside[number])
        which = f"all {count:,} rows" if count == self.rows else f"{count:,} of {self.rows:,} rows"
        return f"{self.names[number]}: {which} outside {self.normals[number]}{self._unit(number)}"

    def _unit(self, number: int) -> str:
        """A hint if the whole column is a multiple of what training had."""
        found, total, squares = self._log[number]
        if found < self.rows or found == 0 or self.outside[number] < self.rows:
            return ""
        mean = total / found
        spread = np.sqrt(max(squares / found - mean**2, 0.0))
        if abs(mean) < np.log10(LEAST_FACTOR) or spread > SPREAD:
            return ""
        times = written(float(f"{10 ** abs(mean):.2g}"))
        return f": values about {times} times {'larger' if mean > 0 else 'smaller'} than in training. Another unit?"
