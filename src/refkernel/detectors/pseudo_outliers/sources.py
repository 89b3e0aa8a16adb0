"""All sources: the base class, sums, sources that recombine training rows, and sources that move rows away from the others."""

import copy
import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from ..._core.types import RandomStateLike
from ..._core.validation import check_positive, is_number, safe_indexing
from .table import Table, first_rows, stacked

LEAST_COLUMNS = 2  # A row with one exchanged column is often still normal
EQUAL_ROWS = "All training rows are equal, so {name} has no scale to work with: its draws equal them."


class PseudoOutliers(BaseEstimator):
    """The base class of all sources of made-up outliers: a subclass needs one method, ``draw``.

    ``a + b`` draws in equal parts from a and b.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.detectors.pseudo_outliers import PseudoOutliers
    >>> class Mirrored(PseudoOutliers):
    ...     def draw(self, X, n, random_state=None):
    ...         return -np.resize(X, (n, np.shape(X)[1]))
    >>> Mirrored().draw([[1.0, 2.0], [3.0, 4.0]], 3)
    array([[-1., -2.],
           [-3., -4.],
           [-1., -2.]])
    """

    def draw(self, X: Any, n: int, random_state: RandomStateLike = None) -> Any:
        """Make up n outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or DataFrame
            Training rows, without missing values.
        n : int
            The number of rows to make.
        random_state : int, RandomState instance or None, default=None
            The source of everything random.

        Returns
        -------
        ndarray of shape (n, n_features) or DataFrame
            The made-up rows; a DataFrame with the same columns and types if X is one.
        """
        return self._made(Table(X), _count(n), check_random_state(random_state))

    def _made(self, table: Table, n: int, random_state: np.random.RandomState) -> Any:
        """Make up n rows from a checked table, which may mix numbers and categories."""
        raise NotImplementedError

    def __add__(self, other: Any) -> "Sum":
        return Sum(self, as_pseudo_outliers(other))


class Sum(PseudoOutliers):
    """Draws in equal parts from every source of a sum; the remainder goes to the first sources.

    Parameters
    ----------
    first, second : source
        The two sources, which may themselves be sums: ``a + b + c`` draws a third from each.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.pseudo_outliers.as_pseudo_outliers("permuted_and_box")
    Sum(first=PermutedColumns(), second=Box())
    """

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def draw(self, X: Any, n: int, random_state: RandomStateLike = None) -> Any:
        random_state = check_random_state(random_state)
        parts = self._parts()
        share, rest = divmod(_count(n), len(parts))
        counts = [share + (number < rest) for number in range(len(parts))]
        return stacked([part.draw(X, count, random_state) for part, count in zip(parts, counts, strict=True) if count])

    def _parts(self) -> list[Any]:
        return [leaf for part in (self.first, self.second) for leaf in (part._parts() if isinstance(part, Sum) else [part])]


class Given(PseudoOutliers):
    """Your own rows, drawn without replacement; rows repeat if there are too few.

    Parameters
    ----------
    rows : array of shape (m, n_features) or DataFrame
        The rows to draw from.

    Examples
    --------
    >>> from refkernel.detectors.pseudo_outliers import Given
    >>> Given([[9.0, 9.0]]).draw([[0.0, 0.0], [1.0, 1.0]], 2)
    array([[9., 9.],
           [9., 9.]])
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def draw(self, X: Any, n: int, random_state: RandomStateLike = None) -> Any:
        rows, X = (values if hasattr(values, "iloc") else np.asarray(values) for values in (self.rows, X))
        if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] != X.shape[1]:
            raise ValueError(f"The given outliers have shape {rows.shape}; rows of {X.shape[1]} columns are needed, as in X.")
        return safe_indexing(rows, _shuffled(rows.shape[0], _count(n), check_random_state(random_state)))


class PermutedColumns(PseudoOutliers):
    """Each column permuted independently: every value looks right, but the combination does not.

    The marginal distributions are the training rows', exactly if n is a multiple of their number. At least two columns
    must vary; otherwise the draws are training rows, and a warning says so.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.pseudo_outliers.PermutedColumns().draw([[0, 0], [1, 10], [2, 20]], 3, random_state=0)
    array([[ 2, 20],
           [ 1,  0],
           [ 0, 10]])
    """

    def _made(self, table: Table, n: int, random_state: np.random.RandomState) -> Any:
        _warn_if_one_varies(table, "PermutedColumns")
        rows, d = table.shape
        return table.built(np.column_stack([_shuffled(rows, n, random_state) for _ in range(d)]))


class SwappedColumns(PseudoOutliers):
    """Training rows in which a few columns come from other rows, each from a different row.

    Parameters
    ----------
    columns : float in (0, 1] or int, default=0.1
        How many columns to exchange: a share of all columns (at least 2, or 1 if there is only one), or a count.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> made = rk.pseudo_outliers.SwappedColumns().draw(np.repeat(np.arange(50)[:, None], 20, axis=1), 100, random_state=0)
    >>> sorted({int(np.bincount(row).max()) for row in made})
    [18]
    """

    def __init__(self, columns: float = 0.1) -> None:
        self.columns = columns

    def _made(self, table: Table, n: int, random_state: np.random.RandomState) -> Any:
        _warn_if_one_varies(table, "SwappedColumns")
        rows, d = table.shape
        if _is_count(self.columns):
            k = min(int(self.columns), d)
        elif is_number(self.columns) and not isinstance(self.columns, Integral) and 0 < self.columns <= 1:
            k = min(max(round(self.columns * d), LEAST_COLUMNS), d)
        else:
            raise ValueError(f"columns={self.columns!r} must be a share of the columns (a float in (0, 1]) or a count (an int >= 1).")
        donors = np.repeat(_shuffled(rows, n, random_state)[:, None], d, axis=1)
        chosen = np.argpartition(random_state.random_sample((n, d)), k - 1, axis=1)[:, :k]
        if rows > 1:
            others = (np.take_along_axis(donors, chosen, axis=1) + random_state.randint(1, rows, size=(n, k))) % rows
            np.put_along_axis(donors, chosen, others, axis=1)
        return table.built(donors)


class Box(PseudoOutliers):
    """Uniform draws in a box a little wider than the training rows; categories are drawn uniformly among those seen.

    A column of integers gets integers. A constant column stays constant: the rows do not say on what scale it varies.

    Parameters
    ----------
    margin : float >= 0, default=0.1
        How far the box reaches beyond the smallest and the largest value of each column, as a share of their distance.

    Examples
    --------
    >>> import refkernel as rk
    >>> made = rk.pseudo_outliers.Box().draw([[0.0], [1.0]], 1000, random_state=0)
    >>> bool(made.min() > -0.1), bool(made.max() < 1.1)
    (True, True)
    """

    def __init__(self, margin: float = 0.1) -> None:
        self.margin = margin

    def _made(self, table: Table, n: int, random_state: np.random.RandomState) -> Any:
        if not (is_number(self.margin) and self.margin >= 0):
            raise ValueError(f"margin={self.margin!r} must be a number >= 0: how much of a column's range to add on each side.")
        if table.varying() == 0:
            warnings.warn(EQUAL_ROWS.format(name="Box"), UserWarning, stacklevel=3)
        donors = np.zeros((n, table.shape[1]), dtype=np.intp)
        for j in np.setdiff1d(np.arange(table.shape[1]), table.numeric):
            levels = first_rows(table.columns[j])
            donors[:, j] = levels[random_state.randint(levels.size, size=n)]
        return table.built(donors, (1.0 + 2.0 * self.margin) * random_state.uniform(-1.0, 1.0, size=(n, table.numeric.size)))


class _Moved(PseudoOutliers):
    """Training rows whose numbers are moved, in standard deviations of each column."""

    def _made(self, table: Table, n: int, random_state: np.random.RandomState) -> Any:
        name = type(self).__name__
        if table.numeric.size == 0:
            raise ValueError(f"{name} moves numbers, and X holds categories only. Use PermutedColumns, SwappedColumns or Box.")
        mean, std = table.scaled.mean(axis=0), np.where(table.half_range > 0, table.scaled.std(axis=0), 0.0)
        varies = std > 0
        if not varies.any():
            warnings.warn(EQUAL_ROWS.format(name=name), UserWarning, stacklevel=3)
        rows, moved = self._moved((table.scaled - mean) * varies / np.where(varies, std, 1.0), varies, n, random_state)
        return table.built(np.repeat(rows[:, None], table.shape[1], axis=1), mean + std * moved)

    def _moved(self, Z: np.ndarray, varies: np.ndarray, n: int, random_state: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of n of the standardised rows, and where they are moved to; columns that do not vary are 0."""
        raise NotImplementedError


class PushedOutward(_Moved):
    """Rows from the edge of the data, pushed further away from the mean. Categories do not change.

    Distances are in standard deviations of each column. A column of integers gets integers, and a constant column stays constant.

    Parameters
    ----------
    by : float, default=0.5
        How much further out, as a share of the distance from the mean: uniform between half and one and a half times this.
    edge : float in (0, 1], default=0.25
        The share of training rows, those farthest from the mean, that count as the edge.

    Examples
    --------
    >>> import refkernel as rk
    >>> bool(rk.pseudo_outliers.PushedOutward(edge=0.5).draw([[-1.0], [1.0]], 9, random_state=0).min() < -1.0)
    True
    """

    def __init__(self, by: float = 0.5, edge: float = 0.25) -> None:
        self.by = by
        self.edge = edge

    def _moved(self, Z: np.ndarray, varies: np.ndarray, n: int, random_state: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        check_positive("by", self.by)
        if not (is_number(self.edge) and 0 < self.edge <= 1):
            raise ValueError(f"edge={self.edge!r} must be in (0, 1]: the share of training rows that count as the edge.")
        count = max(1, round(self.edge * len(Z)))
        edge = np.argsort(-np.einsum("ij,ij->i", Z, Z), kind="stable")[:count]
        rows = edge[_shuffled(count, n, random_state)]
        return rows, (1.0 + self.by * random_state.uniform(0.5, 1.5, size=(n, 1))) * Z[rows]


class NeighbourNoise(_Moved):
    """Rows moved in a random direction by several times the distance to their neighbours. Categories do not change.

    Distances are in standard deviations of each column. A row whose neighbours all equal it takes the mean distance of the other rows. A
    column of integers gets integers, and a constant column stays constant.

    Parameters
    ----------
    factor : float, default=3.0
        How far, as a multiple of the root mean squared distance to the neighbours: uniform between half and one and a half times this.
    neighbours : int, default=5
        The number of neighbours that the distance is taken over; all other rows if there are fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.detectors.pseudo_outliers import NeighbourNoise
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> NeighbourNoise().draw(X, 50, random_state=0).shape
    (50, 2)
    """

    def __init__(self, factor: float = 3.0, neighbours: int = 5) -> None:
        self.factor = factor
        self.neighbours = neighbours

    def _moved(self, Z: np.ndarray, varies: np.ndarray, n: int, random_state: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        check_positive("factor", self.factor)
        if not _is_count(self.neighbours):
            raise ValueError(f"neighbours={self.neighbours!r} must be an int >= 1.")
        rows = _shuffled(len(Z), n, random_state)
        direction = random_state.standard_normal((n, Z.shape[1])) * varies
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), np.finfo(float).tiny)  # all 0 where no column varies
        far = self.factor * random_state.uniform(0.5, 1.5, size=n) * self._distances(Z, rows)
        return rows, Z[rows] + far[:, None] * direction

    def _distances(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The root mean squared distance of these rows to their neighbours, never 0 if any two rows differ."""
        k = min(self.neighbours, len(Z) - 1)
        if k == 0:
            return np.zeros(rows.size)
        asked, back = np.unique(rows, return_inverse=True)
        distances, _ = NearestNeighbors(n_neighbors=k + 1).fit(Z).kneighbors(Z[asked])
        found = np.sqrt(np.mean(distances[:, 1:] ** 2, axis=1))  # the first is the row itself, or its equal
        positive = found[found > 0]
        usual = positive.mean() if positive.size else np.sqrt(2.0 * np.mean(np.einsum("ij,ij->i", Z, Z)))
        return np.where(found > 0, found, usual)[back]


def as_pseudo_outliers(source: Any) -> Any:
    """Return the source that a name, an array or an object stands for.

    Parameters
    ----------
    source : str, source, or array of shape (m, n_features)
        "permuted", "box", "swapped", "pushed", "noise" or "permuted_and_box"; an object with a ``draw(X, n, random_state)``; or rows to
        draw from.

    Returns
    -------
    source
        An object with ``draw``.

    Examples
    --------
    >>> from refkernel.detectors.pseudo_outliers import as_pseudo_outliers
    >>> as_pseudo_outliers("box")
    Box()
    """
    if isinstance(source, str):
        if source not in NAMES:
            raise ValueError(f"pseudo_outliers={source!r} is not known. Use one of {sorted(NAMES)}, a source or an array of rows.")
        return copy.deepcopy(NAMES[source])
    return source if hasattr(source, "draw") else Given(source)


def _warn_if_one_varies(table: Table, name: str) -> None:
    if table.varying() < 2:
        warnings.warn(
            f"{name} exchanges values between rows, and fewer than 2 columns of X vary: its draws are training rows. Use Box or "
            "NeighbourNoise instead.",
            UserWarning,
            stacklevel=4,
        )


def _is_count(n: Any) -> bool:
    return isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 1


def _count(n: Any) -> int:
    if not _is_count(n):
        raise ValueError(f"n={n!r} must be an int >= 1: the number of outliers to make up.")
    return int(n)


def _shuffled(rows: int, n: int, random_state: np.random.RandomState) -> np.ndarray:
    """n of the row numbers 0 … rows - 1 in random order; no row occurs more than once more often than another."""
    return np.concatenate([random_state.permutation(rows) for _ in range(-(-n // rows))])[:n]


NAMES = {
    "permuted": PermutedColumns(),
    "box": Box(),
    "swapped": SwappedColumns(),
    "pushed": PushedOutward(),
    "noise": NeighbourNoise(),
    "permuted_and_box": PermutedColumns() + Box(),
}
