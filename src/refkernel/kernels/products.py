"""Kernels of the inner product of two samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise

from .._distances import squared_norms
from .._training import TrainingRows
from .._typing import MatrixLike, RandomStateLike
from .._validation import check_positive
from .base import Kernel

__all__ = ["Linear", "Polynomial", "Sigmoid", "as_gamma"]


class Linear(Kernel):
    """k(x, z) = x · z.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.kernels.Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    positive_definite = True

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        return pairwise.linear_kernel(X, Z)

    def features(self, X: MatrixLike) -> np.ndarray | None:
        return None if sp.issparse(X) else np.asarray(X, dtype=np.float64)

    def diag(self, X: MatrixLike) -> np.ndarray:
        return squared_norms(X)


class Polynomial(Kernel):
    """k(x, z) = (gamma x · z + coef0)^degree.

    Parameters
    ----------
    degree : float, default=3
        The exponent.
    gamma : float, "scale" or "auto", optional
        The factor of x · z. "auto", the default, is 1 / d for d features; "scale" is 1 / (d · variance of X).
    coef0 : float, default=1.0
        The number added before the power is taken.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.kernels.Polynomial(degree=2, gamma=1.0)([[1.0]], [[2.0]])
    array([[9.]])
    """

    def __init__(self, degree: float = 3, gamma: float | str | None = None, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def resolve(self, rows: TrainingRows, sample_weight: np.ndarray | None = None, random_state: RandomStateLike = None) -> Polynomial:
        return Polynomial(self.degree, as_gamma(self.gamma, rows.X_targets), self.coef0)

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        return pairwise.polynomial_kernel(X, Z, degree=self.degree, gamma=as_gamma(self.gamma, X), coef0=self.coef0)

    def diag(self, X: MatrixLike) -> np.ndarray:
        return (as_gamma(self.gamma, X) * squared_norms(X) + self.coef0) ** self.degree


class Sigmoid(Kernel):
    """k(x, z) = tanh(gamma x · z + coef0).

    It is not positive definite: fitting may warn about that.

    Parameters
    ----------
    gamma : float, "scale" or "auto", optional
        The factor of x · z. "auto", the default, is 1 / d for d features; "scale" is 1 / (d · variance of X).
    coef0 : float, default=1.0
        The number added before tanh is taken.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.kernels.Sigmoid(gamma=1.0, coef0=0.0)([[1.0]], [[1.0]]).round(4)
    array([[0.7616]])
    """

    def __init__(self, gamma: float | str | None = None, coef0: float = 1.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def resolve(self, rows: TrainingRows, sample_weight: np.ndarray | None = None, random_state: RandomStateLike = None) -> Sigmoid:
        return Sigmoid(as_gamma(self.gamma, rows.X_targets), self.coef0)

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        return pairwise.sigmoid_kernel(X, Z, gamma=as_gamma(self.gamma, X), coef0=self.coef0)

    def diag(self, X: MatrixLike) -> np.ndarray:
        return np.tanh(as_gamma(self.gamma, X) * squared_norms(X) + self.coef0)


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
