"""Which single value would make a flagged row normal: found on the model itself, and checked by it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._core.text import counted
from ...exceptions import _printable
from .normal import Normal, in_order, names_of, normals_of_model
from .reasons import html_table

GRID = 33  # values that are tried first, evenly spread over all of training's range and a quarter of it on both sides
BEYOND = 0.25
FINER = 17  # values that are tried in what is usual, and around the best of all if none is accepted
HALVINGS = 30  # after this many, an end of an interval is known to a billionth of the distance between the values tried
DIGITS = 4  # significant digits of the ends of an interval
MINUTE = 60.0  # the ends of an interval of dates are whole minutes
BLOCK = 4096  # rows that are scored at a time
NOTHING = "no single feature suffices"
Decide: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]  # decisions of the rows at some places, with these values in one column


@dataclass(frozen=True)
class Change:
    """One value that would make a row normal, with all others unchanged.

    Examples
    --------
    >>> from refkernel.detectors.explain import Change
    >>> print(Change("temperature", 97.0, 83.1, 70.2, 83.1))
    accepted if temperature were <= 83.1 (and >= 70.2)
    """

    name: str
    value: Any  # what the row has there
    nearest: Any  # the nearest value that is accepted; of categories the one that is accepted most clearly
    low: float | None = None
    high: float | None = None  # the ends of the interval of accepted values around it, as far as values were tried
    levels: tuple[Any, ...] = ()  # all categories that are accepted
    is_date: bool = False  # whether the numbers are seconds since 1970
    combination: bool = False  # whether the value is normal by itself, and only its combination with the row's other values is not

    def __str__(self) -> str:
        text = f"accepted if {self.name} were {self._accepted()}"
        return _printable(text + (" in combination with the other values" if self.combination else ""))

    def _accepted(self) -> str:
        if self.low is None or self.high is None:
            return " or ".join(map(str, self.levels))
        low, high = map(Normal(is_date=self.is_date).written, (self.low, self.high))
        values = f"<= {high} (and >= {low})" if self.nearest == self.high else f">= {low} (and <= {high})"
        return low if low == high else values


@dataclass(frozen=True)
class Counterfactuals:
    """The single values that would make flagged rows normal.

    Parameters
    ----------
    rows : ndarray of int
        The numbers of the rows that are flagged.
    changes : list of list of Change
        For each of them the changes that suffice, smallest first, measured in widths of the range of most values.

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
        return [[str(change) for change in found] or [NOTHING] for found in self.changes]

    def __repr__(self) -> str:
        lines = (f"row {row}: {'; '.join(texts)}" for row, texts in zip(self.rows, self.sentences(), strict=True))
        return "\n".join([f"Counterfactuals of {counted(self.rows.size, 'flagged row')}", *lines])

    def _repr_html_(self) -> str:
        lines = []
        for row, changes in zip(self.rows.tolist(), self.changes, strict=True):
            written = [(it.name, Normal(is_date=it.is_date).written(it.value), it._accepted()) for it in changes]
            lines += [(row, *cells) for cells in written or [("", "", NOTHING)]]
        about = "Rows that are flagged, and single values that the model would accept"
        return html_table(about, ("row", "feature", "value", "accepted"), lines)


def counterfactuals(model: Any, X: Any, *, ranges: Mapping[str, Any] | None = None) -> Counterfactuals:
    """Find the nearest value of each column that would make a flagged row normal, with the other columns unchanged.

    Values over training's range and a quarter of it on both sides are tried on ``model.decision_function``, and the ends of the interval
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
    names = names_of(model, X)
    normals = _normals(model, names, ranges or {})
    X = in_order(model, X)
    flagged = np.flatnonzero(np.asarray(model.decision_function(X)) < 0)
    rows = X.iloc[flagged] if hasattr(X, "iloc") else X[flagged]
    found: list[list[tuple[float, Change]]] = [[] for _ in flagged]
    for number, (name, normal) in enumerate(zip(names, normals, strict=True) if flagged.size else ()):
        cells = np.asarray(rows.iloc[:, number] if hasattr(rows, "iloc") else rows[:, number])
        search = _levels if normal.low is None else _intervals
        for place, distance, change in search(cells, _decider(model, rows, number), normal, name):
            found[place].append((distance, change))
    return Counterfactuals(flagged, [[change for _, change in sorted(each, key=lambda pair: pair[0])] for each in found])


def _decider(model: Any, rows: Any, number: int) -> Decide:
    """The decision values of the rows at some places, each with every of its values in this column."""

    def decide(places: np.ndarray, values: np.ndarray) -> np.ndarray:
        each, flat = np.repeat(places, values[0].size) if len(places) else places, values.ravel()
        found = np.empty(flat.size)
        for start in range(0, flat.size, BLOCK):
            part = slice(start, start + BLOCK)
            if hasattr(rows, "iloc"):
                block = rows.iloc[each[part]].copy()
                block[block.columns[number]] = flat[part]
            else:
                block = np.array(rows[each[part]], dtype=np.result_type(rows.dtype, flat.dtype))
                block[:, number] = flat[part]
            found[part] = model.decision_function(block)
        return found.reshape(values.shape)

    return decide


def _intervals(cells: np.ndarray, decide: Decide, normal: Normal, name: str) -> list[tuple[int, float, Change]]:
    """(place of the row, distance in widths of the usual range, change) where a number is accepted."""
    smallest, largest = float(normal.low or 0.0), float(normal.high or 0.0)
    usual, more = normal.usual, BEYOND * (largest - smallest)
    width = usual[1] - usual[0] or largest - smallest or abs(largest) or 1.0
    grid = np.union1d(np.linspace(smallest - more, largest + more, GRID), np.linspace(*usual, FINER))
    cells = np.asarray(cells, dtype=np.float64)
    places, found = np.arange(len(cells)), []
    tried = np.tile(grid, (places.size, 1))
    while places.size:
        decisions = decide(places, tried)
        some = (decisions >= 0).any(axis=1)
        mine = places[some]
        low, high = _ends(mine, decide, tried[some], decisions[some] >= 0, cells[mine], normal.is_date)
        nearest = np.where(np.abs(low - cells[mine]) < np.abs(high - cells[mine]), low, high)
        distance = np.nan_to_num(np.abs(nearest - cells[mine]) / width)  # a missing cell moves by nothing
        for place, far, x, value, a, b in zip(*map(np.ndarray.tolist, (mine, distance, cells[mine], nearest, low, high)), strict=True):
            found.append((place, far, Change(name, x, value, a, b, (), normal.is_date, usual[0] <= x <= usual[1])))
        if tried.shape[1] != grid.size:
            break
        best = decisions[~some].argmax(axis=1)  # again, around the best value
        below, above = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, grid.size - 1)]
        places, tried = places[~some], np.linspace(below, above, FINER, axis=1)
    return found


def _ends(
    places: np.ndarray, decide: Decide, tried: np.ndarray, inside: np.ndarray, cells: np.ndarray, is_date: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the accepted interval nearest to each row's cell, to few digits where the model accepts these; ``tried`` rises."""
    runs = [_run(held, np.abs(values - cell)) for held, values, cell in zip(inside, tried, cells, strict=True)]
    first, last = np.array(runs, dtype=np.intp).reshape(-1, 2).T
    each, most = np.arange(len(places)), tried.shape[1] - 1
    low = _halved(places, decide, tried[each, first], tried[each, np.maximum(first - 1, 0)])
    high = _halved(places, decide, tried[each, last], tried[each, np.minimum(last + 1, most)])
    size = np.maximum(np.abs(low), np.abs(high))
    unit = MINUTE if is_date else 10.0 ** (np.floor(np.log10(np.where(size > 0.0, size, 1.0))) - DIGITS + 1)
    shorter = np.ceil(low / unit) * unit, np.floor(high / unit) * unit
    chosen = [np.where(shorter[0] <= shorter[1], short, end) for short, end in zip(shorter, (low, high), strict=True)]
    low, high = (np.where(decide(places, short) >= 0, short, end) for short, end in zip(chosen, (low, high), strict=True))
    return low, high


def _run(inside: np.ndarray, away: np.ndarray) -> tuple[int, int]:
    """The first and the last of the accepted values, without a gap, around the nearest of them."""
    start = int(np.where(inside, np.nan_to_num(away), np.inf).argmin())
    gaps = np.flatnonzero(np.r_[True, ~inside, True]) - 1
    return int(gaps[gaps < start][-1]) + 1, int(gaps[gaps > start][0]) - 1


def _halved(places: np.ndarray, decide: Decide, accepted: np.ndarray, rejected: np.ndarray) -> np.ndarray:
    """The last accepted value on the way from an accepted to a rejected one; the accepted one if both are the same."""
    accepted, rejected = accepted.copy(), rejected.copy()
    moving = np.flatnonzero(accepted != rejected)
    for _ in range(HALVINGS if moving.size else 0):
        middle = 0.5 * (accepted[moving] + rejected[moving])
        holds = decide(places[moving], middle) >= 0
        accepted[moving[holds]], rejected[moving[~holds]] = middle[holds], middle[~holds]
    return accepted


def _levels(cells: np.ndarray, decide: Decide, normal: Normal, name: str) -> list[tuple[int, float, Change]]:
    """(place of the row, 1, change) where another category is accepted."""
    if not normal.levels:
        return []
    levels, found = np.array(normal.levels, dtype=object), []
    decisions = decide(np.arange(len(cells)), np.tile(levels, (len(cells), 1)))
    for place, (cell, mine) in enumerate(zip(cells.tolist(), decisions, strict=True)):
        if accepted := tuple(levels[i] for i in np.argsort(-mine, kind="stable") if mine[i] >= 0):
            found.append((place, 1.0, Change(name, cell, accepted[0], levels=accepted, combination=cell in normal.levels)))
    return found


def _normals(model: Any, names: list[str], ranges: Mapping[str, Any]) -> list[Normal]:
    """What is normal for each column: what was passed, and otherwise what the model keeps."""
    if unknown := [name for name in ranges if name not in names]:
        raise ValueError(f"ranges names {unknown[0]!r}, which is not one of the {len(names)} columns.")
    kept = [] if all(name in ranges for name in names) else normals_of_model(model)
    return [_given(name, ranges[name]) if name in ranges else kept[number] for number, name in enumerate(names)]


def _given(name: str, given: Sequence[Any]) -> Normal:
    """(low, high), or levels."""
    if len(given) != 2 or not all(isinstance(value, int | float | np.number) for value in given):
        return Normal(levels=tuple(given))
    low, high = map(float, given)
    if not low <= high or np.isinf([low, high]).any():
        raise ValueError(f"ranges[{name!r}] = ({low:g}, {high:g}) must be two finite numbers, the lower first.")
    return Normal(low, high)
