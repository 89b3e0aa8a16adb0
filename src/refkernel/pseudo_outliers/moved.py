"""Sources that move training rows: away from the centre, or from their neighbours."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._validation import check_positive, is_number
from .base import EQUAL_ROWS, PseudoOutliers, shuffled
from .table import Table

__all__ = ["NeighbourNoise", "PushedOutward"]


class PushedOutward(PseudoOutliers):
    """Rows from the edge of the data, pushed further away from the mean. Categories do not change.

    Distances are measured after scaling every numeric column by its standard deviation, so units do not matter. A column of
    integers gets integers, and a constant column stays constant.

    Parameters
    ----------
    by : float, default=0.5
        How much further out, as a share of the distance from the mean: uniform between half and one and a half times this.
    edge : float in (0, 1], default=0.25
        The share of training rows, those farthest from the mean, that count as the edge.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.pseudo_outliers import PushedOutward
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> made = PushedOutward().draw(X, 50, random_state=0)
    >>> bool(np.linalg.norm(made, axis=1).min() > np.median(np.linalg.norm(X, axis=1)))
    True
    """

    def __init__(self, by: float = 0.5, edge: float = 0.25) -> None:
        self.by = by
        self.edge = edge

    def _made(self, table: Table, n: int, random_state: np.random.RandomState) -> Any:
        check_positive("by", self.by)
        if not (is_number(self.edge) and 0 < self.edge <= 1):
            raise ValueError(f"edge={self.edge!r} must be in (0, 1]: the share of training rows that count as the edge.")
        Z, mean, std = _standardised(table, "PushedOutward")
        count = max(1, round(self.edge * len(Z)))
        edge = np.argsort(-np.einsum("ij,ij->i", Z, Z), kind="stable")[:count]
        rows = edge[shuffled(count, n, random_state)]
        further = 1.0 + self.by * random_state.uniform(0.5, 1.5, size=(n, 1))
        return _moved(table, rows, mean + std * further * Z[rows])


class NeighbourNoise(PseudoOutliers):
    """Rows moved in a random direction by several times the distance to their neighbours. Categories do not change.

    Distances are measured after scaling every numeric column by its standard deviation, so units do not matter. A row whose
    neighbours all equal it takes the mean distance of the other rows. A column of integers gets integers, and a constant column stays
    constant.

    Parameters
    ----------
    factor : float, default=3.0
        How far, as a multiple of the root mean squared distance to the neighbours: uniform between half and one and a half times this.
    neighbours : int, default=5
        The number of neighbours that the distance is taken over; all other rows if there are fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.pseudo_outliers import NeighbourNoise
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> NeighbourNoise().draw(X, 50, random_state=0).shape
    (50, 2)
    """

    def __init__(self, factor: float = 3.0, neighbours: int = 5) -> None:
        self.factor = factor
        self.neighbours = neighbours

    def _made(self, table: Table, n: int, random_state: np.random.RandomState) -> Any:
        check_positive("factor", self.factor)
        if not isinstance(self.neighbours, Integral) or isinstance(self.neighbours, bool) or self.neighbours < 1:
            raise ValueError(f"neighbours={self.neighbours!r} must be an int >= 1.")
        Z, mean, std = _standardised(table, "NeighbourNoise")
        rows = shuffled(len(Z), n, random_state)
        direction = random_state.standard_normal((n, Z.shape[1])) * (std > 0)
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), np.finfo(float).tiny)  # all 0 where no column varies
        far = self.factor * random_state.uniform(0.5, 1.5, size=n) * self._distances(Z, rows)
        return _moved(table, rows, mean + std * (Z[rows] + far[:, None] * direction))

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


def _standardised(table: Table, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numeric columns as (Z, mean, std): scaled values are mean + std · Z; Z and std are 0 if a column is constant."""
    if table.numeric.size == 0:
        raise ValueError(f"{name} moves numbers, and X holds categories only. Use PermutedColumns, SwappedColumns or Box.")
    S = table.scaled
    mean, std = S.mean(axis=0), np.where(table.half_range > 0, S.std(axis=0), 0.0)
    if not std.any():
        warnings.warn(EQUAL_ROWS.format(name=name), UserWarning, stacklevel=4)
    return (S - mean) * (std > 0) / np.where(std > 0, std, 1.0), mean, std


def _moved(table: Table, rows: np.ndarray, scaled: np.ndarray) -> Any:
    return table.built(np.repeat(rows[:, None], table.shape[1], axis=1), table.unscaled(scaled))
