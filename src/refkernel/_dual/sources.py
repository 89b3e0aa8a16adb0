"""Where the solver finds K: held whole, as explicit features, or as rows computed on demand and cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .._threads import share_rows

MANY_ENTRIES = 1 << 20
"""With at least this many kernel values (about 5 ms of work), rows are shared between threads."""

BLOCK_ENTRIES = 1 << 17
"""Kernel values computed at a time: 1 MB, so that they are summed while they are in the processor's cache."""


def in_single_precision(K: np.ndarray) -> np.ndarray:
    """K rounded to single precision, as LIBSVM stores it; if LIBSVM stops early, its answer depends on that. An error if it overflows."""
    with np.errstate(over="ignore"):
        rounded = K.astype(np.float32).astype(np.float64)
    if not np.isfinite(rounded).all() and np.isfinite(K).all():
        raise ValueError(
            "The kernel overflows in single precision, which stopping='libsvm' uses. Scale the data first, for example with TargetScaler, "
            "or use stopping='relative'."
        )
    return rounded


def kernel_times(kernel: Any, X: Any, Z: Any, v: np.ndarray) -> np.ndarray:
    """k(X, Z) v, in blocks of rows of X."""
    out = np.empty(X.shape[0])
    step = max(1, BLOCK_ENTRIES // max(1, Z.shape[0]))

    def fill(start: int, stop: int) -> None:
        for i in range(start, stop, step):
            end = min(i + step, stop)
            out[i:end] = kernel(X[i:end], Z) @ v

    _share(fill, X.shape[0], Z.shape[0], kernel)
    return out


def _share(work: Callable[[int, int], None], n: int, m: int, kernel: Any) -> None:
    """Call ``work(start, stop)`` for all n rows, in several threads if n × m kernel values are many."""
    share_rows(work, n) if n * m >= MANY_ENTRIES and kernel.thread_safe else work(0, n)


class Source(Protocol):
    """What the solver asks of K."""

    n: int
    diag: np.ndarray
    on_demand: bool
    """Whether rows are computed when they are asked for."""

    def whole(self) -> np.ndarray:
        """K itself, for small n."""

    def block(self, W: np.ndarray) -> np.ndarray:
        """K restricted to the samples W."""

    def times(self, W: np.ndarray, v: np.ndarray) -> np.ndarray:
        """K[:, W] v."""

    def add(self, G: np.ndarray, W: np.ndarray, v: np.ndarray) -> None:
        """Add K[:, W] v to G. The rows may be cached."""


class Dense:
    """K itself (n × n)."""

    on_demand = False

    def __init__(self, K: np.ndarray) -> None:
        self.K = K
        self.n = K.shape[0]
        self.diag = np.ascontiguousarray(np.diagonal(K))

    def whole(self) -> np.ndarray:
        return np.ascontiguousarray(self.K)

    def block(self, W: np.ndarray) -> np.ndarray:
        return self.K[np.ix_(W, W)]

    def times(self, W: np.ndarray, v: np.ndarray) -> np.ndarray:
        return v @ self.K[W]

    def add(self, G: np.ndarray, W: np.ndarray, v: np.ndarray) -> None:
        G += self.times(W, v)


class Features:
    """K = Phi Phi' from explicit features Phi (n × r); for large n, only blocks of K are formed."""

    on_demand = False

    def __init__(self, Phi: np.ndarray) -> None:
        self.Phi = Phi
        self.n = Phi.shape[0]
        self.diag = np.einsum("ij,ij->i", Phi, Phi)

    def whole(self) -> np.ndarray:
        return self.Phi @ self.Phi.T

    def block(self, W: np.ndarray) -> np.ndarray:
        return self.Phi[W] @ self.Phi[W].T

    def times(self, W: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.Phi @ (v @ self.Phi[W])

    def add(self, G: np.ndarray, W: np.ndarray, v: np.ndarray) -> None:
        G += self.times(W, v)


class Cached:
    """Rows of K computed on demand by ``kernel(X_rows, X)``; the most recently used stay, within ``cache_size`` MB."""

    on_demand = True

    def __init__(self, kernel: Any, X: Any, cache_size: float) -> None:
        self.kernel = kernel
        self.X = X
        self.n = X.shape[0]
        self.diag = kernel.diag(X)
        self.capacity = max(1, min(self.n, int(cache_size * 1e6 / (8 * self.n))))
        self._rows = np.empty((self.capacity, self.n))
        self._slot_of = np.full(self.n, -1)
        self._row_in = np.full(self.capacity, -1)
        self._last_use = np.zeros(self.capacity, dtype=np.intp)
        self._clock = 0

    def whole(self) -> np.ndarray:
        return self.kernel(self.X)

    def block(self, W: np.ndarray) -> np.ndarray:
        return self.kernel(self.X[W])

    def times(self, W: np.ndarray, v: np.ndarray) -> np.ndarray:
        return kernel_times(self.kernel, self.X, self.X[W], v)

    def add(self, G: np.ndarray, W: np.ndarray, v: np.ndarray) -> None:
        for i in range(0, W.size, self.capacity):
            G += v[i : i + self.capacity] @ self._rows[self._slots(W[i : i + self.capacity])]

    def _slots(self, W: np.ndarray) -> np.ndarray:
        """The slots that hold the rows W (at most ``capacity``), after computing those that are missing."""
        self._clock += 1
        held = self._slot_of[W] >= 0
        self._last_use[self._slot_of[W[held]]] = self._clock
        if not held.all():
            self._compute(W[~held])
        return self._slot_of[W]

    def _compute(self, missing: np.ndarray) -> None:
        """Compute the rows ``missing`` and put them in place of the least recently used ones."""
        slots = np.argsort(self._last_use, kind="stable")[: missing.size]
        evicted = self._row_in[slots]
        self._slot_of[evicted[evicted >= 0]] = -1
        X_missing = self.X[missing]
        step = max(1, BLOCK_ENTRIES // missing.size)

        def fill(start: int, stop: int) -> None:
            for i in range(start, stop, step):
                end = min(i + step, stop)
                self._rows[slots, i:end] = self.kernel(X_missing, self.X[i:end])

        _share(fill, self.n, missing.size, self.kernel)
        self._slot_of[missing] = slots
        self._row_in[slots] = missing
        self._last_use[slots] = self._clock
