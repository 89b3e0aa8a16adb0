"""Rows of a source as a reducer: features in blocks, kept or computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .._threads import summed
from .keeping import Keeping
from .rows import Workspace, rows_of_block
from .terms import Terms


class StreamedRows:
    """The features of a source on this machine. Large blocks are cut (``rows_of_block``).

    Features in double precision are computed into arrays that a pass uses again and again: new memory costs as much as computing them.

    ``offset`` is the number of the first row, if the source is a part of a larger one.
    """

    def __init__(
        self,
        source: Any,
        features: Callable[..., np.ndarray],
        r: int,
        terms: Terms,
        weight: np.ndarray | None,
        keeping: Keeping,
        thread_safe: bool,
        offset: int = 0,
    ) -> None:
        self._offset = offset
        self._source, self._features, self._terms, self._weight = source, features, terms, weight
        self._step, self._r, self._keeping, self._thread_safe = rows_of_block(r), r, keeping, thread_safe

    def reduce(self, function: Callable[..., Any], *state: Any) -> Any:
        """The sum of ``function(rows, *state)`` over blocks."""
        free: list[Workspace] = []

        def on_part(part: tuple[Any, int, int]) -> Any:
            work = free.pop() if free else Workspace(self._step)
            try:
                return function(self._rows(*part, work), *state)
            finally:
                free.append(work)

        return summed(on_part, self._parts(), self._thread_safe)

    def __sizeof__(self) -> int:
        """What it holds: Dask moves objects between workers by their size."""
        return object.__sizeof__(self) + getattr(self._keeping, "nbytes", 0) + getattr(self._source, "nbytes", 0)

    def close(self) -> None:
        """Give back what features were kept in."""
        self._keeping.close()

    def _parts(self) -> Iterator[tuple[Any, int, int]]:
        """A source's block, and the part of it that is looked at together."""
        for block in self._source.blocks():
            for begin in range(0, block.rows, self._step):
                yield block, begin, min(begin + self._step, block.rows)

    def _rows(self, block: Any, begin: int, end: int, work: Workspace) -> Any:
        start = block.start + begin
        weight = None if self._weight is None else self._weight[start : start + end - begin]
        kept = self._keeping.get(start)
        if kept is not None:
            recompute = partial(self._recomputed, block, begin, end)
            return self._terms.rows(*kept, weight, self._offset + start, work, recompute)
        Phi = self._exact(block.load()[begin:end], work.array("features", end - begin, self._r))
        diag = np.einsum("ij,ij->i", Phi, Phi)
        self._keeping.put(start, Phi, diag)
        return self._terms.rows(Phi, diag, weight, self._offset + start, work)

    def _recomputed(self, block: Any, begin: int, end: int, indices: np.ndarray, out: np.ndarray | None) -> np.ndarray:
        return self._exact(block.load()[begin:end][indices], out)

    def _exact(self, X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Features in double precision, also of rows in single precision."""
        return np.asarray(self._features(X.astype(np.float64, copy=False), out), dtype=np.float64)
