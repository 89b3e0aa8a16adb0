"""Sources that recombine values: within each column's range, or column by column from other rows."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np

from .._validation import is_number
from .base import EQUAL_ROWS, PseudoOutliers, shuffled
from .table import Table, first_rows

__all__ = ["Box", "PermutedColumns", "SwappedColumns"]

LEAST_COLUMNS = 2
"""A row with one exchanged column is often still normal."""


class PermutedColumns(PseudoOutliers):
    """Each column permuted independently: every value looks right, but the combination does not.

    The marginal distributions are the training rows', exactly if n is a multiple of their number. At least two columns
    must vary; otherwise the draws are training rows, and a warning says so.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.pseudo_outliers import PermutedColumns
    >>> X = np.column_stack([np.arange(5), 10 * np.arange(5)])
    >>> PermutedColumns().draw(X, 5, random_state=0)
    array([[ 2,  0],
           [ 0, 20],
           [ 1, 10],
           [ 3, 40],
           [ 4, 30]])
    """

    def _made(self, table: Table, n: int, random_state: np.random.RandomState) -> Any:
        _warn_if_one_varies(table, "PermutedColumns")
        rows, d = table.shape
        return table.built(np.column_stack([shuffled(rows, n, random_state) for _ in range(d)]))


class SwappedColumns(PseudoOutliers):
    """Training rows in which a few columns come from other rows, each from a different row.

    Parameters
    ----------
    columns : float in (0, 1] or int, default=0.1
        How many columns to exchange: a share of all columns (at least 2, or 1 if there is only one), or a count.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.pseudo_outliers import SwappedColumns
    >>> X = np.repeat(np.arange(50)[:, None], 20, axis=1)
    >>> made = SwappedColumns().draw(X, 100, random_state=0)
    >>> sorted({int(np.bincount(row).max()) for row in made})
    [18]
    """

    def __init__(self, columns: float = 0.1) -> None:
        self.columns = columns

    def _made(self, table: Table, n: int, random_state: np.random.RandomState) -> Any:
        _warn_if_one_varies(table, "SwappedColumns")
        rows, d = table.shape
        k = self._count(d)
        donors = np.repeat(shuffled(rows, n, random_state)[:, None], d, axis=1)
        chosen = np.argpartition(random_state.random_sample((n, d)), k - 1, axis=1)[:, :k]
        if rows > 1:
            others = (np.take_along_axis(donors, chosen, axis=1) + random_state.randint(1, rows, size=(n, k))) % rows
            np.put_along_axis(donors, chosen, others, axis=1)
        return table.built(donors)

    def _count(self, d: int) -> int:
        if isinstance(self.columns, Integral) and not isinstance(self.columns, bool) and int(self.columns) >= 1:
            return min(int(self.columns), d)
        if is_number(self.columns) and not isinstance(self.columns, Integral) and 0 < self.columns <= 1:
            return min(max(round(self.columns * d), LEAST_COLUMNS), d)
        raise ValueError(f"columns={self.columns!r} must be a share of the columns (a float in (0, 1]) or a count (an int >= 1).")


class Box(PseudoOutliers):
    """Uniform draws in a box a little wider than the training rows; categories are drawn uniformly among those seen.

    A column of integers gets integers. A constant column stays constant: the rows do not say on what scale it varies.

    Parameters
    ----------
    margin : float >= 0, default=0.1
        How far the box reaches beyond the smallest and the largest value of each column, as a share of their distance.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.pseudo_outliers import Box
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> made = Box().draw(X, 1000, random_state=0)
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
        if table.numeric.size == 0:
            return table.built(donors)
        Z = random_state.uniform(-1.0, 1.0, size=(n, table.numeric.size))
        return table.built(donors, table.unscaled((1.0 + 2.0 * self.margin) * Z))


def _warn_if_one_varies(table: Table, name: str) -> None:
    if table.varying() < 2:
        warnings.warn(
            f"{name} exchanges values between rows, and fewer than 2 columns of X vary: its draws are training rows. Use Box or "
            "NeighbourNoise instead.",
            UserWarning,
            stacklevel=4,
        )
