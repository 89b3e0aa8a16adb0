"""Dask arrays and data frames as a source: every pass is one reduction over partitions, on the scheduler that the user runs."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._explicit.keeping import InMemory
from .._explicit.streamed import StreamedRows
from .._explicit.terms import Terms
from .base import Source, checked_block
from .local import ArraySource

__all__ = ["DaskRows", "DaskSource"]

ADDED_AT_ONCE = 8
"""Parts that one task adds: every task costs the scheduler about a millisecond, and every part of a sum some kB."""

try:
    import dask
    import dask.array as da
except ImportError:  # the extra dask; whoever has a Dask collection has it
    dask = da = None


class DaskSource(Source):
    """The rows of a Dask array or data frame. They stay on the workers; sums and samples come back."""

    def __init__(self, data: Any) -> None:
        if data.ndim != 2:
            raise ValueError(f"The Dask collection has {data.ndim} dimension(s); rows of samples, (rows, columns), were expected.")
        self._data = data if hasattr(data, "columns") else data.rechunk({1: -1})
        self._parts = list(np.ravel(self._data.to_delayed()))
        chunks = getattr(self._data, "chunks", ((np.nan,),))[0]
        self._known = None if np.isnan(chunks).any() else [int(rows) for rows in chunks]

    @property
    def n_columns(self) -> int:
        return len(self._data.columns) if hasattr(self._data, "columns") else int(self._data.shape[1])

    @property
    def lengths(self) -> list[int]:
        """The number of rows of each partition; counted once if it is not known."""
        if self._known is None:
            self._known = list(dask.compute(*[dask.delayed(len)(part) for part in self._parts]))
        return self._known

    def __len__(self) -> int:
        return sum(self.lengths)

    def _starts(self) -> list[int]:
        return [0, *np.cumsum(self.lengths).tolist()][:-1]

    def reduce(self, function: Callable[..., Any], *state: Any, threads: bool = True) -> Any:
        """Add up ``function(X, start, *state)`` over the partitions.

        Parameters
        ----------
        function : callable
            A function of the rows of a partition (ndarray) and the number of the first; its results are added with ``+``.
        *state : Any
            Further arguments.
        threads : bool, default=True
            Not used: the scheduler decides.

        Returns
        -------
        Any
            The sum; None without any row.
        """
        given = dask.delayed(state)
        work = dask.delayed(_applied)
        filled = [(part, start) for part, start, rows in zip(self._parts, self._starts(), self.lengths, strict=True) if rows]
        return _sum([work(function, part, start, self.n_columns, given) for part, start in filled])

    def apply(self, function: Callable[[np.ndarray], np.ndarray]) -> Any:
        """Compute a result for every row, lazily.

        Parameters
        ----------
        function : callable
            From rows (k × d) to k results.

        Returns
        -------
        dask.array.Array
            The results, lazy, in partitions of the same rows.
        """
        dtype = np.asarray(function(np.zeros((1, self.n_columns)))).dtype
        return self._lazy(function, (), dtype)

    def transformed(self, function: Callable[[np.ndarray], np.ndarray], n_columns: int) -> Any:
        """Transform the rows, lazily.

        Parameters
        ----------
        function : callable
            From rows (k × d) to rows (k × n_columns), each by itself.
        n_columns : int
            The number of columns of the result.

        Returns
        -------
        dask.array.Array
            The transformed rows, lazy, in the same partitions.
        """
        return self._lazy(function, (n_columns,), np.dtype(np.float64))

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
        return DaskSource(self.transformed(function, n_columns))

    def _lazy(self, function: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        work, given = dask.delayed(_by_rows), dask.delayed(function, pure=False)
        rows: list[Any] = self._known or [np.nan] * len(self._parts)
        starts: list[Any] = self._starts() if self._known else [None] * len(self._parts)
        parts = [work(given, part, start, self.n_columns, shape, dtype) for part, start in zip(self._parts, starts, strict=True)]
        return da.concatenate([da.from_delayed(part, (k, *shape), dtype) for part, k in zip(parts, rows, strict=True)])

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
            Not used: features stay with the workers, in single precision, and Dask spills them if it must.
        thread_safe : bool
            Not used: every partition is one task.

        Returns
        -------
        reducer
            An object with ``reduce(function, *state)`` and ``close()``.
        """
        return DaskRows(self, features, r, terms, weight)


class DaskRows:
    """Features of all partitions, kept by the workers. If a worker dies, Dask recomputes what it held."""

    def __init__(self, source: DaskSource, features: Callable[..., np.ndarray], r: int, terms: Terms, weight: np.ndarray | None) -> None:
        prepare, given = dask.delayed(_prepared), dask.delayed((features, r, terms), pure=False)
        found = []
        for part, start, rows in zip(source._parts, source._starts(), source.lengths, strict=True):
            if rows:
                own = None if weight is None else weight[start : start + rows]
                found.append(prepare(part, start, source.n_columns, own, given))
        self._rows: Any = dask.persist(*found)

    def reduce(self, function: Callable[..., Any], *state: Any) -> Any:
        """The sum of ``function(rows, *state)`` over blocks."""
        work = dask.delayed(functools.partial(_passed, function, state), pure=False)
        return _sum([work(rows) for rows in self._rows])

    def close(self) -> None:
        """Let the workers forget the features."""
        self._rows = ()


def _sum(parts: list[Any]) -> Any:
    """The sum of delayed parts, neighbours first, so that neither a worker nor the client holds them all."""
    add = dask.delayed(_added)
    while len(parts) > 1:
        groups = [parts[i : i + ADDED_AT_ONCE] for i in range(0, len(parts), ADDED_AT_ONCE)]
        parts = [add(*group) if len(group) > 1 else group[0] for group in groups]
    return parts[0].compute(optimize_graph=False) if parts else None


def _added(*parts: Any) -> Any:
    return functools.reduce(operator.add, parts)


def _rows_of(part: Any, start: int | None, n_columns: int) -> np.ndarray:
    return checked_block(part.to_numpy() if hasattr(part, "to_numpy") else part, start or 0, n_columns)


def _applied(function: Callable[..., Any], part: Any, start: int, n_columns: int, state: tuple[Any, ...]) -> Any:
    return function(_rows_of(part, start, n_columns), start, *state)


def _by_rows(function: Any, part: Any, start: int | None, n_columns: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    X = _rows_of(part, start, n_columns)
    return np.asarray(function(X), dtype=dtype) if len(X) else np.empty((0, *shape), dtype)


def _prepared(part: Any, start: int, n_columns: int, weight: np.ndarray | None, given: tuple[Any, int, Terms]) -> StreamedRows:
    """The rows of a partition with their features, in single precision."""
    features, r, terms = given
    source = ArraySource(_rows_of(part, start, n_columns))
    rows = StreamedRows(source, features, r, terms, weight, InMemory(len(source), r), thread_safe=False, offset=start)
    rows.reduce(_nothing)  # the first pass keeps the features
    return rows


def _nothing(rows: Any) -> int:
    return 0


def _passed(function: Callable[..., Any], state: tuple[Any, ...], rows: StreamedRows) -> Any:
    return rows.reduce(function, *state)
