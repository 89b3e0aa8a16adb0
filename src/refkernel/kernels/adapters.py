"""Kernels from elsewhere (scikit-learn's by name, a function, a matrix), and what users may pass as a kernel."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.metrics import pairwise

from .._core.rows import TrainingRows
from .._core.types import RandomStateLike
from .base import Kernel, check_matrix, symmetric
from .products import Linear, Polynomial, Sigmoid
from .stationary import RBF, Laplacian

KernelLike: TypeAlias = str | Kernel | Callable[..., Any]
"""What users may pass as a kernel: a name, a kernel object or a callable ``k(X, Z)``."""


class Pairwise(Kernel):
    """Any kernel of ``sklearn.metrics.pairwise`` by name.

    Parameters
    ----------
    metric : str
        The name of the kernel, as for ``sklearn.metrics.pairwise.pairwise_kernels``.
    params : dict, optional
        The parameters of the kernel.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.kernels.Pairwise("chi2", {"gamma": 2.0})([[1.0, 0.0]]).round(4)
    array([[1.]])
    """

    _trusted = True

    def __init__(self, metric: str, params: dict[str, Any] | None = None) -> None:
        self.metric = metric
        self.params = params

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        K = pairwise.pairwise_kernels(X, Z, metric=self.metric, **(self.params or {}))
        return check_matrix(K, np.asarray(X) if isinstance(X, list) else X, Z, f"kernel {self.metric!r}")


class Function(Kernel):
    """A callable ``function(X, Z)`` that returns the n × m kernel matrix, as scikit-learn's SVMs take it.

    Parameters
    ----------
    function : callable
        Takes two arrays of samples in rows, of shapes (n, n_features) and (m, n_features).

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rk.kernels.Function(lambda X, Z: (1.0 + X @ Z.T) ** 2)(np.array([[1.0], [2.0]]))
    array([[ 4.,  9.],
           [ 9., 25.]])
    """

    _accepts_sparse = _thread_safe = False
    _trusted = True

    def __init__(self, function: Callable[[Any, Any], npt.ArrayLike]) -> None:
        self.function = function

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        X = np.asarray(X)
        K = np.asarray(self.function(X, X if Z is None else np.asarray(Z)), dtype=np.float64)
        return check_matrix(K, X, Z, f"kernel function {getattr(self.function, '__name__', self.function)!s}")


class Precomputed(Kernel):
    """Kernel values that were computed elsewhere.

    Parameters
    ----------
    K : array-like of shape (N, N), optional
        The kernel matrix of all samples, training and test. X is then a column of row numbers of K, for ``fit`` and for
        ``predict``; everything works as on features, including cross-validation.
        Without K (as with ``kernel="precomputed"``), X itself holds kernel values: ``fit`` takes the square matrix of the training
        samples, ``predict`` takes k(X, training samples), and k(x, x) as ``diag`` if the score needs it (SVDD).

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> K, rows = rk.RBF().fit(X)(X), np.arange(30)[:, None]
    >>> rk.SVDD(rk.kernels.Precomputed(K)).fit(rows[:20]).predict(rows[20:]).shape
    (10,)
    """

    def __init__(self, K: npt.ArrayLike | None = None) -> None:
        self.K: Any = K

    _pairwise = _accepts_sparse = property(lambda self: self.K is None)  # row numbers are dense

    def _learn(self, rows: TrainingRows, sample_weight: np.ndarray | None, random_state: RandomStateLike) -> None:
        if self.K is None:
            return
        K = np.asarray(self.K, dtype=np.float64)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or not np.isfinite(K).all():
            raise ValueError(f"K must be a square matrix of finite numbers, the kernel matrix of all samples; got shape {K.shape}.")
        self.K_ = symmetric(K, "precomputed kernel matrix")

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        if self.K is None:
            return X if Z is None else X[:, Z]
        K = self._values
        x = _row_numbers(X, len(K))
        return K[np.ix_(x, x if Z is None else _row_numbers(Z, len(K)))]

    @property
    def _values(self) -> np.ndarray:
        """The matrix, checked if the kernel is fitted."""
        return self.K_ if hasattr(self, "K_") else np.asarray(self.K, dtype=np.float64)

    def diag(self, X: Any) -> np.ndarray:
        if self.K is None:
            raise ValueError(
                'With kernel="precomputed", SVDD needs k(x, x) of the samples to score: pass diag, of shape (n_samples,). '
                "For cross-validation use kernel=Precomputed(K), with row numbers as X."
            )
        x = _row_numbers(X, len(self._values))
        return self._values[x, x]


def _row_numbers(X: npt.ArrayLike, count: int) -> np.ndarray:
    """The column X as row numbers, after checking that they are below count."""
    X = np.asarray(X)
    x = X[:, 0].astype(np.intp) if X.ndim == 2 and X.shape[1] == 1 and np.isfinite(X).all() else None
    if x is None or not (x == X[:, 0]).all() or x.min(initial=0) < 0 or x.max(initial=-1) >= count:
        raise ValueError(f"With Precomputed(K), X must be one column of row numbers from 0 to {count - 1}; got shape {X.shape}.")
    return x


NAMES: dict[str, Callable[[], Kernel]] = {
    "rbf": RBF,
    "linear": Linear,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "laplacian": Laplacian,
    "sigmoid": Sigmoid,
    "precomputed": Precomputed,
}


def as_kernel(kernel: KernelLike) -> Kernel:
    """Convert a name or a callable to a kernel object.

    Parameters
    ----------
    kernel : str, Kernel or callable
        What an estimator's parameter ``kernel`` takes.

    Returns
    -------
    Kernel
        The kernel object that it stands for; a kernel object is returned unchanged.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.kernels.as_kernel("rbf")
    RBF()
    """
    if isinstance(kernel, str):
        if kernel in NAMES or kernel in pairwise.PAIRWISE_KERNEL_FUNCTIONS:
            return NAMES[kernel]() if kernel in NAMES else Pairwise(kernel)
        known = sorted({*NAMES, *pairwise.PAIRWISE_KERNEL_FUNCTIONS})
        raise ValueError(f"kernel={kernel!r} is not known. Use one of {known}, a kernel object, or a callable.")
    if isinstance(kernel, type):
        raise ValueError(f"kernel={kernel.__name__} is a class. Pass an object: {kernel.__name__}().")
    if callable(kernel):
        return kernel if isinstance(kernel, Kernel) else Function(kernel)
    raise ValueError(f"kernel={kernel!r} is neither a name, a kernel object nor a callable.")
