"""The contract of a source: rows in blocks that can be read again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._explicit.keeping import cheapest
from .._explicit.streamed import StreamedRows
from .._explicit.terms import Terms
from .._threads import summed

__all__ = ["Block", "Gathered", "Source", "checked_block"]

BLOCK_BYTES = 1 << 23
"""Rows read at a time, where the source can be cut anywhere: 8 MB in double precision."""


class Block:
    """Some rows: the number of the first, how many there are, and how to get them. They are read on first use."""

    def __init__(self, start: int, rows: int, read: Callable[[], np.ndarray]) -> None:
        self.start, self.rows, self._read = start, rows, read
        self._X: np.ndarray | None = None

    def load(self) -> np.ndarray:
        """The rows."""
        if self._X is None:
            self._X = self._read()
        return self._X


class Source:
    """Rows in blocks. ``len(source)`` is their number; counting may cost a reading.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> source = rk.sources.open([np.zeros((2, 3)), np.ones((1, 3))])
    >>> len(source), source.shape
    (3, (3, 3))
    """

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        raise NotImplementedError

    def blocks(self) -> Iterator[Block]:
        """Read the rows from the first to the last.

        Yields
        ------
        Block
            The next rows.
        """
        raise NotImplementedError

    def __len__(self) -> int:
        if not hasattr(self, "_rows"):
            self._rows = sum(block.rows for block in self.blocks())
        return self._rows

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return len(self), self.n_columns

    def reduce(self, function: Callable[..., Any], *state: Any, threads: bool = True) -> Any:
        """Add up ``function(X, start, *state)`` over the blocks.

        Parameters
        ----------
        function : callable
            A function of the rows of a block (ndarray) and the number of the first; its results are added with ``+``.
        *state : Any
            Further arguments.
        threads : bool, default=True
            Whether several threads may call it at once.

        Returns
        -------
        Any
            The sum; None without any block.
        """
        return summed(lambda block: function(block.load(), block.start, *state), self.blocks(), threads)

    def apply(self, function: Callable[[np.ndarray], np.ndarray]) -> Any:
        """Compute a result for every row.

        Parameters
        ----------
        function : callable
            From rows (k × d) to results, k numbers or k rows.

        Returns
        -------
        ndarray or dask.array.Array
            The results of all rows, in their order. For a Dask collection it is lazy.
        """
        return np.concatenate([function(block.load()) for block in self.blocks() if block.rows])

    def map(self, function: Callable[[np.ndarray], np.ndarray], n_columns: int) -> Source:
        """Transform the rows whenever they are read.

        Parameters
        ----------
        function : callable
            From rows (k × d) to rows (k × n_columns), each by itself.
        n_columns : int
            The number of columns of the result.

        Returns
        -------
        Source
            The transformed rows.
        """
        return Mapped(self, function, n_columns)

    def transformed(self, function: Callable[[np.ndarray], np.ndarray], n_columns: int) -> Any:
        """Transform the rows as a transformer does.

        Parameters
        ----------
        function : callable
            From rows (k × d) to rows (k × n_columns), each by itself.
        n_columns : int
            The number of columns of the result.

        Returns
        -------
        Source or dask.array.Array
            The transformed rows, computed when they are read; an array of Dask for a Dask collection.
        """
        return self.map(function, n_columns)

    def sample(self, count: int, random_state: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows without replacement.

        Parameters
        ----------
        count : int
            How many; all rows if there are fewer.
        random_state : RandomState
            The source of everything random.

        Returns
        -------
        rows : ndarray of shape (count, n_columns)
            The rows, in their order.
        indices : ndarray of int of shape (count,)
            Their numbers.
        """
        n = len(self)
        chosen = np.arange(n) if n <= count else np.sort(random_state.choice(n, count, replace=False))
        return self.rows_at(chosen), chosen

    def rows_at(self, indices: np.ndarray) -> np.ndarray:
        """Read some rows.

        Parameters
        ----------
        indices : ndarray of int
            Their numbers, in ascending order.

        Returns
        -------
        ndarray of shape (len(indices), n_columns)
            These rows.
        """
        found = self.reduce(gathered, indices, threads=False)
        return found.rows if found is not None else np.empty((0, self.n_columns))

    def feature_rows(
        self, features: Callable[..., np.ndarray], r: int, terms: Terms, weight: np.ndarray | None, memory: float, thread_safe: bool
    ) -> Any:
        """Prepare passes over the features of all rows (used by classifiers).

        Parameters
        ----------
        features : callable
            From rows, and an array to write to or None, to r features each.
        r : int
            The number of features.
        terms : Terms
            The problem that the rows belong to.
        weight : ndarray of shape (n,) or None
            The signed weight of each row; None for ones.
        memory : float
            Features may take this many MB between passes.
        thread_safe : bool
            Whether several threads may call ``features``.

        Returns
        -------
        reducer
            An object with ``reduce(function, *state)`` and ``close()``.
        """
        return StreamedRows(self, features, r, terms, weight, cheapest(len(self), r, memory), thread_safe)


@dataclass(frozen=True)
class Gathered:
    """Rows of several blocks, one after the other."""

    rows: np.ndarray

    def __add__(self, other: Gathered) -> Gathered:
        return Gathered(np.concatenate([self.rows, other.rows]))


def gathered(X: np.ndarray, start: int, chosen: np.ndarray) -> Gathered:
    """The rows of a block whose numbers were chosen (in ascending order)."""
    first, last = np.searchsorted(chosen, [start, start + len(X)])
    return Gathered(X[chosen[first:last] - start])


class Mapped(Source):
    """The rows of another source, transformed."""

    def __init__(self, source: Source, function: Callable[[np.ndarray], np.ndarray], n_columns: int) -> None:
        self._source, self._function, self._n_columns = source, function, n_columns

    @property
    def n_columns(self) -> int:
        return self._n_columns

    def __len__(self) -> int:
        return len(self._source)

    def blocks(self) -> Iterator[Block]:
        step = max(BLOCK_BYTES // (8 * max(self._n_columns, 1)), 1)
        for block in self._source.blocks():
            for begin in range(0, block.rows, step):
                end = min(begin + step, block.rows)
                yield Block(block.start + begin, end - begin, partial(self._transformed, block, begin, end))

    def _transformed(self, block: Block, begin: int, end: int) -> np.ndarray:
        return self._function(block.load()[begin:end])


def checked_block(X: Any, start: int, n_columns: int | None) -> np.ndarray:
    """The rows of a block as numbers; raise with the number of the first row that is not usable."""
    found = np.asarray(X)
    if found.ndim != 2 or (n_columns is not None and found.shape[1] != n_columns):
        expected = f"(rows, {n_columns})" if n_columns is not None else "(rows, columns)"
        raise ValueError(f"The block from row {start:,} on has shape {found.shape}; {expected} was expected.")
    if found.dtype.kind not in "fiub":
        found = _as_numbers(found, start)
    if found.dtype not in (np.float64, np.float32):
        found = found.astype(np.float64)
    if found.size and not np.isfinite(found.sum()):
        bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
        if bad.size:
            column = int(np.flatnonzero(~np.isfinite(found[bad[0]]))[0])
            raise ValueError(
                f"Row {start + int(bad[0]):,} holds {found[bad[0], column]} in column {column}. Fill or drop missing values first, "
                "for example with TargetImputer."
            )
    return found


def _as_numbers(X: np.ndarray, start: int) -> np.ndarray:
    """Objects (or texts) as numbers; raise with the row and the value that is not a number."""
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError):
        for i, row in enumerate(X):
            for j, value in enumerate(row):
                try:
                    float(value)
                except (TypeError, ValueError):
                    raise ValueError(
                        f"Row {start + i:,} holds {value!r} in column {j}, which is not a number. Pass numeric columns only."
                    ) from None
        raise
