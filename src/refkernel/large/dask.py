"""Dask arrays and data frames as a source: every pass is one reduction over partitions, on the scheduler that the user runs."""

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .rows import StreamedRows, Terms, room_for
from .source import ArraySource, Source, checked_block

ADDED_AT_ONCE = 8  # parts that one task adds: every task costs the scheduler about a millisecond, and every part of a sum some kB

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
        is_frame = hasattr(data, "columns")
        data = data if is_frame else data.rechunk({1: -1})
        self.n_columns = len(data.columns) if is_frame else int(data.shape[1])
        self._parts = list(np.ravel(data.to_delayed()))
        chunks = getattr(data, "chunks", ((np.nan,),))[0]
        self._known = None if np.isnan(chunks).any() else [int(rows) for rows in chunks]

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

    def _filled(self) -> list[tuple[Any, int, int]]:
        """The partitions that have rows, the numbers of their first rows, and how many they have."""
        return [found for found in zip(self._parts, self._starts(), self.lengths, strict=True) if found[2]]

    def reduce(self, function: Callable[..., Any], *state: Any, threads: bool = True) -> Any:
        given = dask.delayed(state)
        work = dask.delayed(_applied)
        return _sum([work(function, part, start, self.n_columns, given) for part, start, _ in self._filled()])

    def apply(self, function: Callable[[np.ndarray], np.ndarray]) -> Any:
        return self._lazy(function, (), np.asarray(function(np.zeros((1, self.n_columns)))).dtype)

    def transformed(self, function: Callable[[np.ndarray], np.ndarray], n_columns: int) -> Any:
        return self._lazy(function, (n_columns,), np.dtype(np.float64))

    def _lazy(self, function: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        work, given = dask.delayed(_by_rows), dask.delayed(function, pure=False)
        rows: list[Any] = self._known or [np.nan] * len(self._parts)
        starts: list[Any] = self._starts() if self._known else [None] * len(self._parts)
        parts = [work(given, part, start, self.n_columns, shape, dtype) for part, start in zip(self._parts, starts, strict=True)]
        return da.concatenate([da.from_delayed(part, (k, *shape), dtype) for part, k in zip(parts, rows, strict=True)])

    def feature_rows(self, features: Any, r: int, terms: Terms, weight: np.ndarray | None, memory: float, thread_safe: bool) -> Any:
        """As for any source; the workers keep the features in single precision, and Dask spills them if it must."""
        prepare, given = dask.delayed(_prepared), dask.delayed((features, r, terms), pure=False)
        weights = (None if weight is None else weight[start : start + rows] for _, start, rows in self._filled())
        parts = zip(self._filled(), weights, strict=True)
        return DaskRows(dask.persist(*(prepare(part, start, self.n_columns, own, given) for (part, start, _), own in parts)))


@dataclass(frozen=True)
class DaskRows:
    """Features of all partitions, kept by the workers. If a worker dies, Dask recomputes what it held."""

    parts: tuple[Any, ...]
    are_exact: ClassVar[bool] = False

    def reduce(self, function: Callable[..., Any], *state: Any) -> Any:
        """The sum of ``function(rows, *state)`` over blocks."""
        work = dask.delayed(functools.partial(_passed, function, state), pure=False)
        return _sum([work(rows) for rows in self.parts])


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
    rows = StreamedRows(source, features, r, terms, weight, room_for(len(source), r, np.inf), thread_safe=False, offset=start)
    rows.reduce(lambda rows: 0)  # the first pass keeps the features
    return rows


def _passed(function: Callable[..., Any], state: tuple[Any, ...], rows: StreamedRows) -> Any:
    return rows.reduce(function, *state)
