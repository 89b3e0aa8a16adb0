"""What a pass sees: blocks of rows as features with their bounds. They are held in memory, or come from a source."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .._core.problem import DualProblem
from .._core.threads import summed

HELD_ENTRIES = 1 << 20  # values of a block of features that is held whole: 8 MB, so that copies made of it stay small next to the data
FREE_DISK = 1.5  # features go to the disk only if it has this many times their size free


@dataclass(frozen=True)
class Rows:
    """Features ``Phi`` (rounded, if ``recompute(chosen)`` has exact ones), ||phi||², p, lower <= b <= upper, and the rows' numbers."""

    Phi: np.ndarray
    diag: np.ndarray
    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    index: np.ndarray
    recompute: Callable[[Any], np.ndarray] | None = None
    are_exact: ClassVar[bool] = True

    @classmethod
    def of(cls, Phi: np.ndarray, diag: np.ndarray, problem: DualProblem) -> "Rows":
        """All rows of a problem."""
        return cls(Phi, diag, problem.p, problem.lower, problem.upper, np.arange(len(Phi)))

    @classmethod
    def joined(cls, parts: Iterable["Rows"]) -> "Rows":
        """The rows of several blocks, in double precision."""
        terms = zip(*((part.Phi, part.diag, part.p, part.lower, part.upper, part.index) for part in parts), strict=True)
        Phi, diag, p, lower, upper, index = map(np.concatenate, terms)
        return cls(Phi, diag, p, lower, upper, index)

    def chosen(self, rows: Any) -> "Rows":
        """Some rows, in double precision."""
        return Rows(self.exact(rows), *(terms[rows] for terms in (self.diag, self.p, self.lower, self.upper, self.index)))

    def exact(self, rows: Any) -> np.ndarray:
        """The features of some rows in double precision."""
        if self.recompute is not None and np.size(rows):
            return self.recompute(rows)
        return self.Phi[rows].astype(np.float64, copy=False)

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """G = Phi w + p."""
        return self.Phi @ w.astype(self.Phi.dtype) + self.p

    def reduce(self, function: Callable[..., Any], *state: Any) -> Any:
        """The sum of ``function(rows, *state)`` over blocks of them."""
        if self.Phi.size <= HELD_ENTRIES:
            return function(self, *state)
        step = rows_of_block(self.Phi.shape[1])
        parts = (self.chosen(slice(start, start + step)) for start in range(0, len(self.Phi), step))
        return summed(lambda rows: function(rows, *state), parts)


@dataclass(frozen=True)
class Terms:
    """p = linear_share (diag - margin [w < 0]), lower_per_weight min(w, 0) <= b <= min(upper_per_weight max(w, 0), most), Σ b = total."""

    linear_share: float
    margin: float
    lower_per_weight: float
    upper_per_weight: float
    total: float
    upper: float
    most: float

    def rows(self, Phi: np.ndarray, diag: np.ndarray, weight: np.ndarray | None, index: np.ndarray, recompute: Any = None) -> Rows:
        """Rows with their terms; weights of outliers that repel are negative, and None stands for ones."""
        weight = np.ones(len(diag)) if weight is None else weight
        p = self.linear_share * np.where(weight < 0.0, diag - self.margin, diag)
        upper = np.minimum(self.upper_per_weight * np.maximum(weight, 0.0), self.most)
        return Rows(Phi, diag, p, self.lower_per_weight * np.minimum(weight, 0.0), upper, index, recompute)


def rows_of_block(r: int) -> int:
    """Rows that are looked at together: at least as many as features, whose curvature (r × r) each block adds."""
    return max(HELD_ENTRIES // max(r, 1), r, 1)


@dataclass(frozen=True)
class StreamedRows:
    """A source's features, kept in single precision between passes if there is ``room``; ``offset`` is the number of its first row."""

    source: Any
    features: Callable[[np.ndarray], np.ndarray]
    r: int
    terms: Terms
    weight: np.ndarray | None
    room: np.ndarray | None
    thread_safe: bool
    offset: int = 0
    are_exact: ClassVar[bool] = False
    norms: dict[int, np.ndarray] = field(default_factory=dict)  # ||phi||² of the blocks that are kept, by their first rows

    def reduce(self, function: Callable[..., Any], *state: Any) -> Any:
        """The sum of ``function(rows, *state)`` over blocks."""
        return summed(lambda part: function(self._rows(*part), *state), self._parts(), self.thread_safe)

    def __sizeof__(self) -> int:
        """What it holds: Dask moves objects between workers by their size."""
        return object.__sizeof__(self) + getattr(self.room, "nbytes", 0) + getattr(self.source, "nbytes", 0)

    def _parts(self) -> Iterator[tuple[Any, slice]]:
        """A source's block, and the part of it that is looked at together."""
        step = rows_of_block(self.r)
        for block in self.source.blocks():
            for begin in range(0, block.rows, step):
                yield block, slice(begin, min(begin + step, block.rows))

    def _rows(self, block: Any, part: slice) -> Rows:
        whole = slice(block.start + part.start, block.start + part.stop)
        weight = None if self.weight is None else self.weight[whole]
        index, norms = np.arange(self.offset + whole.start, self.offset + whole.stop), self.norms.get(whole.start)
        if self.room is not None and norms is not None:
            return self.terms.rows(self.room[whole], norms, weight, index, lambda chosen: self._exact(block.load()[part][chosen]))
        Phi = self._exact(block.load()[part])
        norms = np.einsum("ij,ij->i", Phi, Phi)
        if self.room is not None:
            self.room[whole], self.norms[whole.start] = Phi, norms
        return self.terms.rows(Phi, norms, weight, index)

    def _exact(self, X: np.ndarray) -> np.ndarray:
        """Features in double precision, also of rows in single precision."""
        return np.asarray(self.features(X.astype(np.float64, copy=False)), dtype=np.float64)


def room_for(n: int, r: int, memory: float) -> np.ndarray | None:
    """Room for n rows in single precision: in memory up to ``memory`` (MB), else an unnamed temporary file; None if the disk has none."""
    size = 4 * n * r
    if size <= 1e6 * memory:
        return np.empty((n, r), np.float32)
    try:
        if shutil.disk_usage(tempfile.gettempdir()).free < FREE_DISK * size:
            return None
        with tempfile.TemporaryFile(prefix="refkernel-") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)  # a file map that finds the disk full would end the process
            return np.memmap(file, np.float32, "w+", shape=(n, r))
    except OSError:
        return None
