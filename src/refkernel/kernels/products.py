"""Kernels of the inner product of two samples."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise

from .._core.distances import squared_norms
from .._core.file_rules import Number, Rule
from .._core.rows import TrainingRows
from .._core.types import MatrixLike, RandomStateLike
from .._core.validation import check_positive
from .base import Kernel


class Linear(Kernel):
    """k(x, z) = x · z.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.kernels.Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    _positive_definite = _trusted = True

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        return pairwise.linear_kernel(X, Z)

    def _features(self, X: MatrixLike) -> np.ndarray | None:
        return None if sp.issparse(X) else np.asarray(X, dtype=np.float64)

    def diag(self, X: MatrixLike) -> np.ndarray:
        return squared_norms(X)


class _OfProducts(Kernel):
    """A function of gamma x · z + coef0."""

    gamma: float | str | None
    coef0: float
    _formula: Callable[[np.ndarray], np.ndarray]  # the kernel's values from gamma x · z + coef0

    def _learn(self, rows: TrainingRows, sample_weight: np.ndarray | None, random_state: RandomStateLike) -> None:
        self.gamma_ = as_gamma(self.gamma, rows.X_targets)

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        return self._of(pairwise.linear_kernel(X, Z), X)

    def diag(self, X: MatrixLike) -> np.ndarray:
        return self._of(squared_norms(X), X)

    def _of(self, products: np.ndarray, X: MatrixLike) -> np.ndarray:
        gamma = self.gamma_ if hasattr(self, "gamma_") else as_gamma(self.gamma, X)
        return self._formula(gamma * products + self.coef0)


class Polynomial(_OfProducts):
    """k(x, z) = (gamma x · z + coef0)^degree.

    Parameters
    ----------
    degree : float, default=3
        The exponent.
    gamma : float, "scale" or "auto", optional
        The factor of x · z; it becomes ``gamma_``. "auto", the default, is 1 / d for d features; "scale" is 1 / (d · variance of X).
    coef0 : float, default=1.0
        The number added before the power is taken.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.kernels.Polynomial(degree=2, gamma=1.0)([[1.0]], [[2.0]])
    array([[9.]])
    """

    _file_rules: ClassVar[dict[str, Rule]] = dict.fromkeys(("degree", "coef0", "gamma_"), Number())

    def __init__(self, degree: float = 3, gamma: float | str | None = None, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def _formula(self, products: np.ndarray) -> np.ndarray:
        return products**self.degree


class Sigmoid(_OfProducts):
    """k(x, z) = tanh(gamma x · z + coef0), which is not positive definite: fitting may warn about that.

    Parameters
    ----------
    gamma, coef0 : as for :class:`Polynomial`
        The factor of x · z, and the number added before tanh is taken.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.kernels.Sigmoid(gamma=1.0, coef0=0.0)([[1.0]], [[1.0]]).round(4)
    array([[0.7616]])
    """

    _file_rules: ClassVar[dict[str, Rule]] = dict.fromkeys(("coef0", "gamma_"), Number())

    def __init__(self, gamma: float | str | None = None, coef0: float = 1.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    _formula = np.tanh


def as_gamma(gamma: float | str | None, X: Any) -> float:
    """The number that gamma stands for: itself, or scikit-learn's rule of that name for X (None means "auto")."""
    d = np.shape(X)[1]
    if gamma is None or (isinstance(gamma, str) and gamma == "auto"):
        return 1.0 / d
    if isinstance(gamma, str) and gamma == "scale":
        variance = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else np.var(X)
        return 1.0 / (d * variance) if variance > 0 else 1.0
    if isinstance(gamma, str):
        raise ValueError(f'gamma={gamma!r} must be a positive number, "scale" or "auto".')
    check_positive("gamma", gamma)
    return gamma
