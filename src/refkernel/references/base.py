"""The base of all strategies: their contract, sums, and what users may pass instead of a strategy."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from .._distances import MODERATE
from .._sklearn import QuickParams
from .._training import HOW_TO_PASS_OUTLIERS, TrainingRows
from .._typing import MatrixLike

__all__ = ["GENERATED", "Given", "References", "ReferencesLike", "Size", "Strategy", "Sum", "TrainingRows", "as_strategy"]

Size: TypeAlias = float | int | str
"""How many references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half"."""

GENERATED = -1
"""The index of a reference vector that is not a training row."""


@dataclass(frozen=True)
class References:
    """References, and where each comes from.

    Parameters
    ----------
    vectors : ndarray or sparse matrix of shape (m, n_features)
        The references, in rows.
    indices : ndarray of shape (m,)
        The training row that each vector is; ``GENERATED`` (-1) for a vector that is not a training row.
    note : str, default=""
        What the strategy decided on its own, in words.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rows = rk.references.TrainingRows.of(np.eye(3))
    >>> rk.references.Training().draw(rows, np.random.RandomState(0)).indices
    array([0, 1, 2])
    """

    vectors: Any
    indices: np.ndarray
    note: str = ""


class Strategy(QuickParams):
    """The base class of all strategies: a subclass needs one method, ``draw``.

    ``a + b`` draws the references of a, then those of b.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> class Corners(rk.references.Strategy):
    ...     def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
    ...         low, high = rows.X.min(axis=0), rows.X.max(axis=0)
    ...         return rk.references.References(np.vstack([low, high]), np.full(2, rk.references.GENERATED))
    >>> rk.ReferenceMap(references=Corners() + "training").fit(np.eye(3)).references_.shape
    (5, 3)
    """

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        """Draw the references for one fit.

        Parameters
        ----------
        rows : TrainingRows
            The training rows: ``rows.X``, and the row numbers ``rows.targets`` and ``rows.outliers``.
        random_state : RandomState
            The source of everything random.

        Returns
        -------
        References
            The vectors, and the training row that each one is.
        """
        raise NotImplementedError

    def __add__(self, other: ReferencesLike) -> Sum:
        return Sum(self, as_strategy(other))


class Sum(Strategy):
    """The references of ``first`` followed by those of ``second``: what ``first + second`` returns.

    Parameters
    ----------
    first, second : Strategy
        The two strategies.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.references.Training() + rk.references.Normal(10)
    Sum(first=Training(), second=Normal(size=10))
    """

    def __init__(self, first: Strategy, second: Strategy) -> None:
        self.first = first
        self.second = second

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        a, b = self.first.draw(rows, random_state), self.second.draw(rows, random_state)
        parts = [a.vectors, b.vectors]
        vectors = sp.vstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.vstack(parts)
        return References(vectors, np.concatenate([a.indices, b.indices]))


class Given(Strategy):
    """Your own references, used as they are.

    Parameters
    ----------
    R : array-like or sparse matrix of shape (m, n_features)
        The references, in the units of the samples that the map is fitted on.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rk.ReferenceMap(references=rk.references.Given([[0.0], [1.0]])).fit(np.eye(3, 1)).rank_
    1
    """

    def __init__(self, R: MatrixLike) -> None:
        self.R = R

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        R = check_array(self.R, accept_sparse="csr", dtype=np.float64, input_name="R")
        if R.shape[1] != rows.X.shape[1]:
            raise ValueError(f"The references have {R.shape[1]} features, the training samples {rows.X.shape[1]}.")
        return generated(R)


NAMES: dict[str, Strategy] = {}
"""Strategies by name. ``named`` fills it: it imports the strategies, which import this module."""

ReferencesLike: TypeAlias = str | Strategy | MatrixLike
"""What users may pass as references: a name, a strategy, or the vectors themselves."""


def as_strategy(references: ReferencesLike) -> Strategy:
    """Convert a name or an array to a strategy.

    Parameters
    ----------
    references : str, Strategy or array-like of shape (m, n_features)
        What the parameter ``references`` of a map takes.

    Returns
    -------
    Strategy
        The strategy that it stands for; a strategy is returned unchanged.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.references.as_strategy("case3")
    Subset()
    """
    strategy = strategy_of(references)
    return copy.deepcopy(strategy) if isinstance(references, str) else strategy


def strategy_of(references: ReferencesLike) -> Strategy:
    """As ``as_strategy``, but all who give a name share one strategy: only to draw from."""
    if isinstance(references, str):
        if references not in NAMES:
            raise ValueError(f"references={references!r} is not known. Use one of {sorted(NAMES)}, a strategy or an array.")
        return NAMES[references]
    return references if hasattr(references, "draw") else Given(references)  # type: ignore[return-value]


def members(rows: TrainingRows, indices: np.ndarray) -> References:
    """Training rows as references."""
    return References(rows.X[indices], indices)


def generated(R: Any) -> References:
    """New vectors as references."""
    return References(R, np.full(R.shape[0], GENERATED))


def choice(rows: TrainingRows, pool: np.ndarray, m: int, random_state: np.random.RandomState, name: str, kind: str) -> References:
    """m random training rows out of a pool of row numbers, in ascending order."""
    at_most(pool, m, name, kind)
    return members(rows, np.sort(random_state.choice(pool, m, replace=False)))


def at_most(pool: np.ndarray, m: int, name: str, kind: str) -> int:
    """m, after checking that the pool holds at least m row numbers."""
    if m > pool.size:
        raise ValueError(f"{name} asks for {m} of {pool.size} {kind}. Lower size.")
    return m


def known_outliers(rows: TrainingRows) -> np.ndarray:
    """The row numbers of the outliers; raise if there are none."""
    if rows.outliers.size == 0:
        raise ValueError(f"These references need known outliers, but fit got none: {HOW_TO_PASS_OUTLIERS}.")
    return rows.outliers


def float_rows(rows: TrainingRows, indices: np.ndarray) -> Any:
    """Training rows in double precision, sparse if X is."""
    return rows.X[indices].astype(np.float64)


def moderate(X: Any) -> tuple[Any, float]:
    """(X / unit, unit): unit is a power of two near the size of X if squares of X would overflow or vanish, and 1 otherwise."""
    size = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
    unit = 1.0 if size == 0.0 or MODERATE[0] < size < MODERATE[1] else math.ldexp(1.0, math.frexp(size)[1] - 1)
    return (X, 1.0) if unit == 1.0 else (X / unit, unit)
