"""What a pass sees: blocks of rows as features with their bounds; and the reduction over blocks that are held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .._threads import summed

HELD_ENTRIES = 1 << 20
"""Values of a block of features that is held whole: 8 MB, so that copies made of it stay small next to the data."""


class Workspace:
    """Arrays that blocks of up to ``rows`` rows use in turn: new memory costs as much as what is computed into it."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._arrays: dict[str, np.ndarray] = {}

    def array(self, name: str, rows: int, columns: int, dtype: Any = np.float64) -> np.ndarray:
        """An array of that name, valid until the next one of that name."""
        held = self._arrays.get(name)
        if held is None or held.size < rows * columns or held.dtype != dtype:
            held = self._arrays[name] = np.empty(self._rows * columns, dtype)
        return held[: rows * columns].reshape(rows, columns)


@dataclass(frozen=True)
class Rows:
    """A block: features ``Phi`` (k × r), ||phi||², and the terms of its rows in  min ½ b'Kb + p'b,  lower <= b <= upper.

    ``Phi`` may be rounded to single precision; ``exact(indices)`` gives rows of it in double precision. ``start`` is the number of the
    first row.
    """

    Phi: np.ndarray
    diag: np.ndarray
    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    start: int
    work: Workspace = field(repr=False)
    recompute: Callable[..., np.ndarray] | None = field(default=None, repr=False)

    def rounded(self, indices: np.ndarray, columns: int) -> np.ndarray:
        """The features of some rows, as they are kept, in the first of that many columns; valid until the next call."""
        kept = self.work.array("kept", len(indices), self.Phi.shape[1], self.Phi.dtype)
        np.take(self.Phi, indices, axis=0, out=kept, mode="clip")  # other modes make a copy
        out = self.work.array("rounded", len(indices), columns)
        out[:, : kept.shape[1]] = kept
        return out

    def exact(self, indices: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The features of some rows in double precision."""
        if self.recompute is None or not len(indices):
            return self.Phi[indices].astype(np.float64, copy=False)
        return self.recompute(indices, out)

    @property
    def is_rounded(self) -> bool:
        """Whether ``Phi`` is rounded, and ``exact`` is not."""
        return self.recompute is not None

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """G = Phi w + p, in double precision."""
        return self.Phi @ w.astype(self.Phi.dtype) + self.p


class Reducer(Protocol):
    """Blocks of rows, wherever they are: a pass is the sum of ``function(rows, *state)`` over them."""

    def reduce(self, function: Callable[..., Any], *state: Any) -> Any:
        """The sum over all blocks."""


def rows_of_block(r: int) -> int:
    """Rows that are looked at together: at least as many as features, whose curvature (r × r) each block adds."""
    return max(HELD_ENTRIES // max(r, 1), r, 1)


class HeldRows:
    """One array of features in memory, in double precision."""

    def __init__(self, Phi: np.ndarray, diag: np.ndarray, problem: Any) -> None:
        self.Phi, self.diag, self.problem = Phi, diag, problem

    def reduce(self, function: Callable[..., Any], *state: Any) -> Any:
        """The sum of ``function(rows, *state)`` over blocks."""
        if self.Phi.size <= HELD_ENTRIES:
            return function(next(iter(self._blocks())), *state)
        return summed(lambda rows: function(rows, *state), self._blocks())

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """G = Phi w + p for all rows."""
        return self.Phi @ w + self.problem.p

    def _blocks(self) -> Iterable[Rows]:
        n, r = self.Phi.shape
        step = rows_of_block(r)
        for i in range(0, n, step):
            part = slice(i, i + step)
            problem = self.problem
            yield Rows(self.Phi[part], self.diag[part], problem.p[part], problem.lower[part], problem.upper[part], i, Workspace(step))
