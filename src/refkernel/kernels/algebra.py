"""Kernels made of kernels: ``k1 + k2``, ``k1 * k2``, ``2.0 * k``."""

from __future__ import annotations

import numpy as np

from .._training import TrainingRows
from .._typing import MatrixLike, RandomStateLike
from .._validation import check_positive
from .base import Kernel

__all__ = ["Product", "Scaled", "Sum"]


class _Pair(Kernel):
    """Two kernels that see the same rows."""

    def __init__(self, first: Kernel, second: Kernel) -> None:
        self.first = first
        self.second = second

    def resolve(self, rows: TrainingRows, sample_weight: np.ndarray | None = None, random_state: RandomStateLike = None) -> Kernel:
        return type(self)(self.first.resolve(rows, sample_weight, random_state), self.second.resolve(rows, sample_weight, random_state))

    @property
    def fit_on(self) -> str:  # type: ignore[override]
        if self.first.fit_on != self.second.fit_on:
            raise ValueError(f"One kernel has fit_on={self.first.fit_on!r}, the other {self.second.fit_on!r}: they must agree.")
        return self.first.fit_on

    @property
    def accepts_sparse(self) -> bool:
        return self.first.accepts_sparse and self.second.accepts_sparse

    @property
    def thread_safe(self) -> bool:
        return self.first.thread_safe and self.second.thread_safe

    @property
    def positive_definite(self) -> bool:
        return self.first.positive_definite and self.second.positive_definite

    @property
    def narrow(self) -> bool:
        return self.first.narrow or self.second.narrow

    @property
    def precision(self) -> float:
        return max(self.first.precision, self.second.precision)


class Sum(_Pair):
    """k(x, z) = k1(x, z) + k2(x, z): what ``k1 + k2`` returns.

    Parameters
    ----------
    first, second : Kernel
        The two kernels.

    Examples
    --------
    >>> import refkernel as rk
    >>> (rk.kernels.Linear() + 2.0 * rk.kernels.Linear())([[1.0]], [[2.0]])
    array([[6.]])
    """

    @property
    def vanishes(self) -> bool:
        return self.first.vanishes and self.second.vanishes

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        return self.first(X, Z) + self.second(X, Z)

    def diag(self, X: MatrixLike) -> np.ndarray:
        return self.first.diag(X) + self.second.diag(X)

    def features(self, X: MatrixLike) -> np.ndarray | None:
        first, second = self.first.features(X), self.second.features(X)
        return None if first is None or second is None else np.hstack([first, second])

    def far_features(self) -> np.ndarray | None:
        first, second = self.first.far_features(), self.second.far_features()
        return None if first is None or second is None else np.concatenate([first, second])


class Product(_Pair):
    """k(x, z) = k1(x, z) · k2(x, z): what ``k1 * k2`` returns.

    Parameters
    ----------
    first, second : Kernel
        The two kernels.

    Examples
    --------
    >>> import refkernel as rk
    >>> (rk.kernels.Linear() * rk.kernels.Linear())([[1.0]], [[2.0]])
    array([[4.]])
    """

    @property
    def vanishes(self) -> bool:
        return self.first.vanishes and self.second.vanishes

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        return self.first(X, Z) * self.second(X, Z)

    def diag(self, X: MatrixLike) -> np.ndarray:
        return self.first.diag(X) * self.second.diag(X)


class Scaled(Kernel):
    """k(x, z) = factor · k1(x, z): what ``factor * k1`` returns.

    Parameters
    ----------
    kernel : Kernel
        The kernel to scale.
    factor : float
        A positive number.

    Examples
    --------
    >>> import refkernel as rk
    >>> (0.5 * rk.kernels.Linear())([[1.0]], [[2.0]])
    array([[1.]])
    """

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel = kernel
        self.factor = factor

    def resolve(self, rows: TrainingRows, sample_weight: np.ndarray | None = None, random_state: RandomStateLike = None) -> Kernel:
        check_positive("factor", self.factor)
        return Scaled(self.kernel.resolve(rows, sample_weight, random_state), self.factor)

    fit_on = property(lambda self: self.kernel.fit_on)
    accepts_sparse = property(lambda self: self.kernel.accepts_sparse)
    thread_safe = property(lambda self: self.kernel.thread_safe)
    positive_definite = property(lambda self: self.kernel.positive_definite)
    vanishes = property(lambda self: self.kernel.vanishes)
    narrow = property(lambda self: self.kernel.narrow)
    precision = property(lambda self: self.kernel.precision)

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        return self.factor * self.kernel(X, Z)

    def diag(self, X: MatrixLike) -> np.ndarray:
        return self.factor * self.kernel.diag(X)

    def features(self, X: MatrixLike) -> np.ndarray | None:
        Phi = self.kernel.features(X)
        return None if Phi is None else np.sqrt(self.factor) * Phi

    def far_features(self) -> np.ndarray | None:
        Phi = self.kernel.far_features()
        return None if Phi is None else np.sqrt(self.factor) * Phi
