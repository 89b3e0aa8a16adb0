"""What every source builds on: one ``draw``, sums, and what users may give instead of a source."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state

from .table import Table, as_table, stacked

EQUAL_ROWS = "All training rows are equal, so {name} has no scale to work with: its draws equal them."


class PseudoOutliers(BaseEstimator):
    """Makes outliers up from training rows; ``a + b`` draws in equal parts from a and b.

    A subclass overrides :meth:`draw`, or, to be handed checked rows and get mixed tables for free, ``_made``.
    """

    def draw(self, X, n, random_state=None) -> Any:
        """Make n outliers up.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or DataFrame
            Training rows, without missing values.
        n : int
            How many rows to make.
        random_state : int, RandomState instance or None, default=None
            The source of everything random.

        Returns
        -------
        array of shape (n, n_features) or DataFrame
            A DataFrame where X is one, with the same columns and kinds of columns.
        """
        return self._made(as_table(X), check_count(n), check_random_state(random_state))

    def _made(self, table: Table, n: int, random_state) -> Any:
        raise NotImplementedError

    def _parts(self) -> list[Any]:
        return [self]

    def __add__(self, other) -> Sum:
        return Sum(self, as_pseudo_outliers(other))


class Sum(PseudoOutliers):
    """Draws in equal parts from every source of a sum; what does not divide goes to the first ones.

    Parameters
    ----------
    first, second : source
        Either may be a sum itself: ``a + b + c`` draws a third from each.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.pseudo_outliers import Box, PermutedColumns, SwappedColumns
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> (PermutedColumns() + SwappedColumns() + Box()).draw(X, 9, random_state=0).shape
    (9, 2)
    """

    def __init__(self, first, second):
        self.first = first
        self.second = second

    def draw(self, X, n, random_state=None):
        """Make n outliers up: see :meth:`PseudoOutliers.draw`."""
        random_state = check_random_state(random_state)
        parts = self._parts()
        share, rest = divmod(check_count(n), len(parts))
        counts = [share + (number < rest) for number in range(len(parts))]
        return stacked([part.draw(X, count, random_state) for part, count in zip(parts, counts, strict=True) if count])

    def _parts(self):
        return [leaf for part in (self.first, self.second) for leaf in (part._parts() if hasattr(part, "_parts") else [part])]


class Given(PseudoOutliers):
    """Rows of your own, drawn without replacement; all of them, over and over, where more are asked for.

    Parameters
    ----------
    rows : array of shape (m, n_features) or DataFrame
        What to draw from.

    Examples
    --------
    >>> from refkernel.pseudo_outliers import Given
    >>> Given([[9.0, 9.0]]).draw([[0.0, 0.0], [1.0, 1.0]], 2)
    array([[9., 9.],
           [9., 9.]])
    """

    def __init__(self, rows):
        self.rows = rows

    def draw(self, X, n, random_state=None):
        """Draw n of the rows: see :meth:`PseudoOutliers.draw`."""
        rows = self.rows if hasattr(self.rows, "iloc") else np.asarray(self.rows)
        X = X if hasattr(X, "iloc") else np.asarray(X)
        if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] != X.shape[1]:
            raise ValueError(f"The given outliers have shape {rows.shape}; rows of {X.shape[1]} columns are needed, as in X.")
        return _safe_indexing(rows, shuffled(rows.shape[0], check_count(n), check_random_state(random_state)))


NAMES: dict[str, PseudoOutliers] = {}
"""Sources by name; the package fills it, as they stand on this module."""


def as_pseudo_outliers(source) -> Any:
    """The source that a user's name, array or object stands for.

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


def check_count(n) -> int:
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"n={n!r} must be an int >= 1: how many outliers to make up.")
    return int(n)


def shuffled(rows: int, n: int, random_state) -> np.ndarray:
    """n of the row numbers 0 … rows - 1 in random order, every one as often as any other to within 1."""
    return np.concatenate([random_state.permutation(rows) for _ in range(-(-n // rows))])[:n]
