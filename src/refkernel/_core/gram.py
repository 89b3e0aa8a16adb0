"""Where the solver finds K: held whole, as explicit features, or as rows computed on demand and cached."""

from typing import Any, Protocol

import numpy as np

from .threads import share_rows

MANY_VALUES = 1 << 20  # with at least this many kernel values (about 5 ms of work), rows are shared between threads
BLOCK_VALUES = 1 << 17  # kernel values computed at a time: 1 MB, so that they are copied while they are in the processor's cache

np.empty(1 << 20)  # once such a block was freed, glibc keeps freed matrices: a third of a fit of 500 rows would go into page faults


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


class Source(Protocol):
    """What the solver asks of K; ``on_demand`` says whether rows are computed when they are asked for."""

    n: int
    diag: np.ndarray
    on_demand: bool = False

    def whole(self) -> np.ndarray:
        """K itself, for small n."""

    def block(self, W: np.ndarray) -> np.ndarray:
        """K restricted to the samples W."""

    def times(self, W: np.ndarray, v: np.ndarray) -> np.ndarray:
        """K[:, W] v."""

    def add(self, G: np.ndarray, W: np.ndarray, v: np.ndarray) -> None:
        """Add K[:, W] v to G. The rows may be cached."""
        G += self.times(W, v)


class Dense(Source):
    """K itself (n × n)."""

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


class Features(Source):
    """K = Phi Phi' from explicit features Phi (n × r); for large n, only blocks of K are formed."""

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


class Cached(Source):
    """Rows of K computed on demand by ``kernel(X_rows, X)``, and kept if all of K takes at most ``cache_size`` MB."""

    on_demand = True

    def __init__(self, kernel: Any, X: Any, cache_size: float) -> None:
        self.kernel = kernel
        self.X = X
        self.n = X.shape[0]
        self.diag = kernel.diag(X)
        self._rows = np.empty((self.n, self.n)) if 8e-6 * self.n**2 <= cache_size else None
        self._known = np.zeros(self.n, dtype=bool)

    def whole(self) -> np.ndarray:
        return self.kernel(self.X)

    def block(self, W: np.ndarray) -> np.ndarray:
        return self.kernel(self.X[W])

    def times(self, W: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.kernel._sums(self.X, self.X[W], v) if W.size else np.zeros(self.n)

    def add(self, G: np.ndarray, W: np.ndarray, v: np.ndarray) -> None:
        if self._rows is None:
            G += self.times(W, v)
            return
        missing, rows = W[~self._known[W]], self._rows
        if missing.size:
            X_W, step = self.X[missing], max(1, BLOCK_VALUES // missing.size)

            def work(start: int, stop: int) -> None:
                for i in range(start, stop, step):
                    part = slice(i, min(i + step, stop))
                    rows[missing, part] = self.kernel(self.X[part], X_W).T

            share_rows(work, self.n) if self.n * missing.size >= MANY_VALUES and self.kernel._thread_safe else work(0, self.n)
            self._known[missing] = True
        G += v @ rows[W]
