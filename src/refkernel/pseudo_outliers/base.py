"""The base of all sources: one ``draw``, sums, and what users may pass instead of a source."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state

from .._typing import RandomStateLike
from .table import Table, as_table, stacked

__all__ = ["EQUAL_ROWS", "NAMES", "Given", "PseudoOutliers", "Sum", "as_pseudo_outliers", "check_count", "shuffled"]

EQUAL_ROWS = "All training rows are equal, so {name} has no scale to work with: its draws equal them."


class PseudoOutliers(BaseEstimator):
    """The base class of all sources of made-up outliers: a subclass needs one method, ``draw``.

    ``a + b`` draws in equal parts from a and b.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.pseudo_outliers import PseudoOutliers
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
        return self._made(as_table(X), check_count(n), check_random_state(random_state))

    def _made(self, table: Table, n: int, random_state: np.random.RandomState) -> Any:
        """Make up n rows from a checked table, which may mix numbers and categories."""
        raise NotImplementedError

    def _parts(self) -> list[Any]:
        return [self]

    def __add__(self, other: Any) -> Sum:
        return Sum(self, as_pseudo_outliers(other))


class Sum(PseudoOutliers):
    """Draws in equal parts from every source of a sum; the remainder goes to the first sources.

    Parameters
    ----------
    first : source
        The first source, which may itself be a sum: ``a + b + c`` draws a third from each.
    second : source
        The second source, which may itself be a sum.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.pseudo_outliers import Box, PermutedColumns, SwappedColumns
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> (PermutedColumns() + SwappedColumns() + Box()).draw(X, 9, random_state=0).shape
    (9, 2)
    """

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def draw(self, X: Any, n: int, random_state: RandomStateLike = None) -> Any:
        """Make up n outliers, in equal parts from every source.

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
            The made-up rows, source by source; a DataFrame if X is one.
        """
        random_state = check_random_state(random_state)
        parts = self._parts()
        share, rest = divmod(check_count(n), len(parts))
        counts = [share + (number < rest) for number in range(len(parts))]
        return stacked([part.draw(X, count, random_state) for part, count in zip(parts, counts, strict=True) if count])

    def _parts(self) -> list[Any]:
        return [leaf for part in (self.first, self.second) for leaf in (part._parts() if hasattr(part, "_parts") else [part])]


class Given(PseudoOutliers):
    """Your own rows, drawn without replacement; rows repeat if there are too few.

    Parameters
    ----------
    rows : array of shape (m, n_features) or DataFrame
        The rows to draw from.

    Examples
    --------
    >>> from refkernel.pseudo_outliers import Given
    >>> Given([[9.0, 9.0]]).draw([[0.0, 0.0], [1.0, 1.0]], 2)
    array([[9., 9.],
           [9., 9.]])
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def draw(self, X: Any, n: int, random_state: RandomStateLike = None) -> Any:
        """Draw n of the given rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or DataFrame
            Training rows; only their number of columns counts.
        n : int
            The number of rows to draw.
        random_state : int, RandomState instance or None, default=None
            The source of everything random.

        Returns
        -------
        ndarray of shape (n, n_features) or DataFrame
            The drawn rows; a DataFrame if the given rows are one.
        """
        rows = self.rows if hasattr(self.rows, "iloc") else np.asarray(self.rows)
        X = X if hasattr(X, "iloc") else np.asarray(X)
        if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] != X.shape[1]:
            raise ValueError(f"The given outliers have shape {rows.shape}; rows of {X.shape[1]} columns are needed, as in X.")
        return _safe_indexing(rows, shuffled(rows.shape[0], check_count(n), check_random_state(random_state)))


NAMES: dict[str, PseudoOutliers] = {}
"""Sources by name. The package fills it, because the sources import this module."""


def as_pseudo_outliers(source: Any) -> Any:
    """Return the source that a name, an array or an object stands for.

    Parameters
    ----------
    source : str, source, or array of shape (m, n_features)
        A name of ``NAMES``, an object with a ``draw(X, n, random_state)``, or rows to draw from.

    Returns
    -------
    source
        An object with ``draw``.

    Examples
    --------
    >>> from refkernel.pseudo_outliers import as_pseudo_outliers
    >>> as_pseudo_outliers("box")
    Box()
    """
    if isinstance(source, str):
        if source not in NAMES:
            raise ValueError(f"pseudo_outliers={source!r} is not known. Use one of {sorted(NAMES)}, a source or an array of rows.")
        return copy.deepcopy(NAMES[source])
    return source if hasattr(source, "draw") else Given(source)


def check_count(n: Any) -> int:
    """n as an int, after checking that it is a number of rows."""
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"n={n!r} must be an int >= 1: the number of outliers to make up.")
    return int(n)


def shuffled(rows: int, n: int, random_state: np.random.RandomState) -> np.ndarray:
    """n of the row numbers 0 … rows - 1 in random order; no row occurs more than once more often than another."""
    return np.concatenate([random_state.permutation(rows) for _ in range(-(-n // rows))])[:n]
