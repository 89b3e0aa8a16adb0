"""Which single value would make a flagged row normal: found on the model itself, and checked by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._encoding.frames import dates_as_seconds
from .explanation import names_of
from .normal import Normal
from .ranges import normals_of_model

__all__ = ["Change", "Counterfactuals", "counterfactuals"]

GRID = 33
"""Values that are tried first, evenly spread over the normal range and a quarter of it on both sides."""

BEYOND = 0.25

FINER = 17
"""Values that are tried around the best of them, if none is accepted."""

HALVINGS = 30
"""After this many, an end of an interval is known to a billionth of the distance between the values tried."""

DIGITS = 4
"""Significant digits of the ends of an interval."""

MINUTE = 60.0
"""The ends of an interval of dates are whole minutes."""

BLOCK = 4096
"""Rows that are scored at a time."""


@dataclass(frozen=True)
class Change:
    """One value that would make a row normal, with all others unchanged.

    Parameters
    ----------
    name : str
        The column.
    value : object
        What the row has there.
    nearest : object
        The nearest value that is accepted; of categories the one that is accepted most clearly.
    low, high : float, optional
        The ends of the interval of accepted values around it, as far as values were tried.
    levels : tuple, default=()
        All categories that are accepted.
    is_date : bool, default=False
        Whether the numbers are seconds since 1970.
    combination : bool, default=False
        Whether the value is normal by itself, and only its combination with the row's other values is not.

    Examples
    --------
    >>> from refkernel.explanations import Change
    >>> print(Change("temperature", 97.0, 83.1, 70.2, 83.1))
    accepted if temperature were <= 83.1 (and >= 70.2)
    """

    name: str
    value: Any
    nearest: Any
    low: float | None = None
    high: float | None = None
    levels: tuple[Any, ...] = ()
    is_date: bool = False
    combination: bool = False

    def __str__(self) -> str:
        with_others = " in combination with the other values" if self.combination else ""
        return f"accepted if {self.name} were {self._values()}{with_others}"

    def _values(self) -> str:
        if self.low is None or self.high is None:
            return " or ".join(map(str, self.levels))
        low, high = map(Normal(is_date=self.is_date).written, (self.low, self.high))
        if low == high:
            return low
        above = self.nearest == self.high
        return f"<= {high} (and >= {low})" if above else f">= {low} (and <= {high})"


@dataclass(frozen=True)
class Counterfactuals:
    """The single values that would make flagged rows normal.

    Parameters
    ----------
    rows : ndarray of int
        The numbers of the rows that are flagged.
    changes : list of list of Change
        For each of them the changes that suffice, smallest first, measured in widths of the normal range.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = rk.counterfactuals(rk.SVDD(rk.RBF(1.0)).fit(X), [[0.0, 0.0], [0.0, 5.0], [5.0, 5.0]])
    >>> found.rows
    array([1, 2])
    >>> found.sentences()[1]
    ['no single feature suffices']
    """

    rows: np.ndarray
    changes: list[list[Change]]

    def sentences(self) -> list[list[str]]:
        """Say the changes in words.

        Returns
        -------
        list of list of str
            For each flagged row a sentence for each change, or one that says that no single feature suffices.
        """
        return [[str(change) for change in found] or ["no single feature suffices"] for found in self.changes]


def counterfactuals(model: Any, X: Any, *, ranges: Mapping[str, Any] | None = None) -> Counterfactuals:
    """Find the nearest value of each column that would make a flagged row normal, with the other columns unchanged.

    Values over the normal range and a quarter of it on both sides are tried on ``model.decision_function``, and the ends of the interval
    of accepted values are found by bisection. The model has accepted every value that is returned.

    Parameters
    ----------
    model : fitted detector
        Anything with ``decision_function``: a detector, a pipeline that ends in one, or a search over them.
    X : array-like or data frame of shape (n_samples, n_columns)
        Rows; those that the model accepts are skipped.
    ranges : mapping of str, optional
        For columns by name: ``(low, high)`` for numbers, or a list of levels for categories (an empty one leaves the column as it is). By
        default what the model keeps of its training rows: all of ``AutoDetector``, support vectors and references of the others.

    Returns
    -------
    Counterfactuals
        The flagged rows, and the changes that suffice for each.

    See Also
    --------
    explain : What each feature adds to the score.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = rk.AutoDetector().fit(X)
    >>> found = rk.counterfactuals(model, [[0.0, 6.0]])
    >>> change = found.changes[0][0]
    >>> change.name, bool(1.0 < change.nearest < 4.0)
    ('x1', True)
    """
    check_is_fitted(model)
    X = X if hasattr(X, "shape") else np.asarray(X)
    names = names_of(model, X)
    normals = _normals(model, names, ranges or {})
    X = _in_order(model, X)
    flagged = np.flatnonzero(np.asarray(model.decision_function(X)) < 0)
    found: list[list[tuple[float, Change]]] = [[] for _ in flagged]
    for number, normal in enumerate(normals):
        if normal is not None and flagged.size:
            search = _levels if normal.low is None else _intervals
            for place, distance, change in search(_Column(model, X, flagged, number, names[number], normal.is_date), normal):
                found[place].append((distance, change))
    return Counterfactuals(flagged, [[change for _, change in sorted(each, key=lambda pair: pair[0])] for each in found])


def _in_order(model: Any, X: Any) -> Any:
    """The columns of a data frame that the model was fitted on, in that order, if all of them are there."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or not hasattr(X, "columns") or not set(names) <= set(X.columns):
        return X
    return X[list(names)]


@dataclass(frozen=True)
class _Column:
    """Flagged rows of X with one column replaced."""

    model: Any
    X: Any
    rows: np.ndarray
    number: int
    name: str
    is_date: bool

    @property
    def cells(self) -> np.ndarray:
        """What the rows have there; dates in seconds."""
        if not hasattr(self.X, "iloc"):
            return np.asarray(self.X[:, self.number])[self.rows]
        column = self.X.iloc[:, [self.number]]
        return (dates_as_seconds(column) if self.is_date else np.asarray(column))[self.rows, 0]

    def decisions(self, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Decision values of the rows at these places with these values."""
        blocks = range(0, len(places), BLOCK)
        return np.concatenate([self._of_block(places[i : i + BLOCK], values[i : i + BLOCK]) for i in blocks]) if blocks else np.empty(0)

    def _of_block(self, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        if hasattr(self.X, "iloc"):
            rows = self.X.iloc[self.rows[places]].copy()
            rows[rows.columns[self.number]] = values
        else:
            rows = np.array(self.X[self.rows[places]], dtype=np.result_type(self.X.dtype, values.dtype))
            rows[:, self.number] = values
        return np.asarray(self.model.decision_function(rows))


def _intervals(column: _Column, normal: Normal) -> list[tuple[int, float, Change]]:
    """(place of the row, distance in widths of the normal range, change) where a number is accepted."""
    low, high = float(normal.low or 0.0), float(normal.high or 0.0)
    width = high - low or abs(high) or 1.0
    grid = np.linspace(low - BEYOND * width, high + BEYOND * width, GRID) if high > low else np.array([low])
    everywhere = np.arange(len(column.rows))
    tried = np.tile(grid, (everywhere.size, 1))
    decisions = _tried(column, everywhere, tried)
    some = (decisions >= 0).any(axis=1)
    found = _bracketed(column, everywhere[some], tried[some], decisions[some] >= 0, (low, high, width))
    rest = everywhere[~some]
    if rest.size and grid.size > 1:
        finer = grid[decisions[rest].argmax(axis=1)][:, None] + np.linspace(-1.0, 1.0, FINER) * (grid[1] - grid[0])
        inside = _tried(column, rest, finer) >= 0
        some = inside.any(axis=1)
        found += _bracketed(column, rest[some], finer[some], inside[some], (low, high, width))
    return found


def _tried(column: _Column, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Decision values of each row with each of its values."""
    return column.decisions(np.repeat(places, values.shape[1]), values.ravel()).reshape(values.shape)


def _bracketed(
    column: _Column, places: np.ndarray, tried: np.ndarray, inside: np.ndarray, normal: tuple[float, float, float]
) -> list[tuple[int, float, Change]]:
    """Both ends of the accepted interval that is nearest to each row's cell; ``tried`` rises along each row.

    ``normal`` are the ends and the width of the normal range.
    """
    smallest, largest, width = normal
    cells = np.asarray(column.cells, dtype=np.float64)[places]
    runs = [_run(held, np.abs(values - cell)) for held, values, cell in zip(inside, tried, cells, strict=True)]
    first, last = np.array(runs, dtype=np.intp).reshape(-1, 2).T
    each = np.arange(len(places))
    low = _halved(column, places, tried[each, first], tried[each, np.maximum(first - 1, 0)])
    high = _halved(column, places, tried[each, last], tried[each, np.minimum(last + 1, tried.shape[1] - 1)])
    low, high = _rounded(column, places, low, high)
    nearest = np.where(np.abs(low - cells) < np.abs(high - cells), low, high)
    distance = np.nan_to_num(np.abs(nearest - cells) / width)  # a missing cell moves by nothing
    rows = zip(places.tolist(), distance.tolist(), cells.tolist(), nearest.tolist(), low.tolist(), high.tolist(), strict=True)
    return [
        (place, far, Change(column.name, cell, value, a, b, is_date=column.is_date, combination=smallest <= cell <= largest))
        for place, far, cell, value, a, b in rows
    ]


def _run(inside: np.ndarray, away: np.ndarray) -> tuple[int, int]:
    """The first and the last of the accepted values, without a gap, around the nearest of them."""
    start = int(np.where(inside, np.nan_to_num(away), np.inf).argmin())
    gaps = np.flatnonzero(~inside)
    before, after = gaps[gaps < start], gaps[gaps > start]
    return int(before[-1]) + 1 if before.size else 0, int(after[0]) - 1 if after.size else inside.size - 1


def _halved(column: _Column, places: np.ndarray, accepted: np.ndarray, rejected: np.ndarray) -> np.ndarray:
    """The last accepted value on the way from an accepted to a rejected one; the accepted one if both are the same."""
    accepted, rejected = accepted.copy(), rejected.copy()
    moving = np.flatnonzero(accepted != rejected)
    for _ in range(HALVINGS):
        if not moving.size:
            break
        middle = 0.5 * (accepted[moving] + rejected[moving])
        holds = column.decisions(places[moving], middle) >= 0
        accepted[moving[holds]], rejected[moving[~holds]] = middle[holds], middle[~holds]
    return accepted


def _rounded(column: _Column, places: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends moved inward to numbers of few digits, where the model accepts these."""
    size = np.maximum(np.abs(low), np.abs(high))
    unit = MINUTE if column.is_date else 10.0 ** (np.floor(np.log10(np.where(size > 0.0, size, 1.0))) - DIGITS + 1)
    shorter = np.ceil(low / unit) * unit, np.floor(high / unit) * unit
    fits = shorter[0] <= shorter[1]
    ends = []
    for end, short in zip((low, high), shorter, strict=True):
        chosen = np.where(fits, short, end)
        ends.append(np.where(column.decisions(places, chosen) >= 0, chosen, end))
    return ends[0], ends[1]


def _levels(column: _Column, normal: Normal) -> list[tuple[int, float, Change]]:
    """(place of the row, 1, change) where another category is accepted."""
    if not normal.levels:
        return []
    n, levels = len(column.rows), np.array(normal.levels, dtype=object)
    values = np.tile(levels, (n, 1))
    decisions = _tried(column, np.arange(n), values)
    found = []
    for place, cell in enumerate(column.cells.tolist()):
        order = np.argsort(-decisions[place], kind="stable")
        accepted = tuple(levels[i] for i in order if decisions[place, i] >= 0)
        if accepted:
            found.append((place, 1.0, Change(column.name, cell, accepted[0], levels=accepted, combination=cell in normal.levels)))
    return found


def _normals(model: Any, names: list[str], ranges: Mapping[str, Any]) -> list[Normal | None]:
    """What is normal for each column: what was passed, and otherwise what the model keeps."""
    unknown = [name for name in ranges if name not in names]
    if unknown:
        raise ValueError(f"ranges names {unknown[0]!r}, which is not one of the {len(names)} columns.")
    kept = [None] * len(names) if all(name in ranges for name in names) else normals_of_model(model)
    return [_given(name, ranges[name]) if name in ranges else normal for name, normal in zip(names, kept, strict=True)]


def _given(name: str, given: Sequence[Any]) -> Normal:
    """(low, high), or levels."""
    numbers = [value for value in given if isinstance(value, int | float | np.number)]
    if len(given) != 2 or len(numbers) != 2:
        return Normal(levels=tuple(given))
    low, high = map(float, given)
    if not low <= high or np.isinf([low, high]).any():
        raise ValueError(f"ranges[{name!r}] = ({low:g}, {high:g}) must be two finite numbers, the lower first.")
    return Normal(low, high)
