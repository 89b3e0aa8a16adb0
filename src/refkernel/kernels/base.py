"""The contract of a kernel.

A kernel is a small object of parameters. ``resolve`` fixes what depends on data and returns the kernel that is ready to use; it
never changes the kernel itself, so one kernel can be shared by many estimators. A new kernel is a subclass with one formula in
``__call__``.

Symbols: ``X`` (n × d) and ``Z`` (m × d) hold samples in rows; ``Z=None`` stands for ``Z = X``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from .._training import TrainingRows

SYMMETRY_TOLERANCE = 1e-8
"""Rounding makes a kernel matrix unsymmetric or indefinite by far less than this share of its size."""

DIAGONAL_BLOCK = 256
"""Rows at a time when a diagonal can only be read off kernel matrices: 0.5 MB, small next to the data."""


PRECISION = 1e-12
"""Sums of products, added up in another order, agree to this share of their size."""


class Kernel(BaseEstimator):
    """What every kernel offers; also a kernel of unknown formula, whose diagonal is read off its matrices.

    ``k1 + k2``, ``k1 * k2`` and ``2.0 * k`` are kernels too.
    """

    fit_on: str = "references"
    """Whose rows a reference map resolves this kernel on: "references" or "training"."""

    @property
    def accepts_sparse(self) -> bool:
        """Whether X and Z may be sparse."""
        return True

    @property
    def thread_safe(self) -> bool:
        """Whether several threads may call it at once."""
        return True

    @property
    def pairwise(self) -> bool:
        """Whether X holds kernel values against the training samples instead of features."""
        return False

    @property
    def positive_definite(self) -> bool:
        """Whether every kernel matrix is known to be positive semidefinite."""
        return False

    @property
    def vanishes(self) -> bool:
        """Whether k(x, z) tends to 0 as x moves away from z."""
        return False

    @property
    def narrow(self) -> bool:
        """Whether the width follows the neighbours: most targets then carry weight, and nu says little about new samples."""
        return False

    @property
    def shares_distances(self) -> bool:
        """Whether ``of_squared_distances`` gives this kernel, so that several widths can share one distance matrix."""
        return False

    @property
    def precision(self) -> float:
        """Sums of kernel values, added up in another order, agree to this share of their size."""
        return PRECISION

    def in_map(self) -> Kernel:
        """This kernel as the base of a reference map."""
        return self

    def resolve(self, rows: TrainingRows, sample_weight: np.ndarray | None = None, random_state: Any = None) -> Kernel:
        """The kernel with every parameter that depends on data fixed by the target rows; ``self`` stays as it is."""
        return self

    def fit(self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None) -> Any:
        """``resolve`` on the rows of X: returns the kernel to use, and leaves this one unchanged."""
        X = X if hasattr(X, "shape") else np.asarray(X, dtype=np.float64)
        return self.resolve(TrainingRows.of(X, y), sample_weight)

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """k(X, Z), of shape (n, m)."""
        raise NotImplementedError

    def diag(self, X: Any) -> np.ndarray:
        """k(x, x) for every row of X."""
        starts = range(0, X.shape[0], DIAGONAL_BLOCK)
        blocks = [np.diagonal(self(X[i : i + DIAGONAL_BLOCK])) for i in starts]
        return np.concatenate(blocks) if blocks else np.empty(0)

    def features(self, X: Any) -> np.ndarray | None:
        """Phi(X) with k(x, z) = Phi(x) · Phi(z), where there is a small dense one; else None."""
        return None

    def far_features(self) -> np.ndarray | None:
        """The features of every sample that is far from all data, for kernels that map them all to one point; else None."""
        return None

    def of_squared_distances(self, negative: np.ndarray) -> np.ndarray:
        """The kernel from ``negative_squared_distances``, where it ``shares_distances``."""
        raise NotImplementedError

    def against(self, Z: Any, rows: int) -> Callable[[Any], np.ndarray]:
        """The function X -> [k(X, Z), 1] for blocks of up to ``rows`` rows; its result holds until the next call."""
        return lambda X: np.column_stack([self(X, Z), np.ones(X.shape[0])])

    def checked(self, X: Any, training: bool) -> Any:
        """X as this kernel takes it, from validated input; raises for what it cannot take."""
        return X

    def matrix(self, X: Any, rows: np.ndarray) -> np.ndarray | None:
        """The kernel matrix of these training rows where it is given rather than computed; else None."""
        return None

    def landmarks(self, X: Any, rows: np.ndarray) -> Any:
        """These training rows as the second argument of ``__call__``."""
        return X[rows]

    def __add__(self, other: Any) -> Kernel:
        from .algebra import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        from .algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, float(other)) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__


def symmetric(K: np.ndarray, name: str) -> np.ndarray:
    """K, or with a warning the mean of K and its transpose where they differ by more than rounding."""
    if np.abs(K - K.T).max(initial=0.0) <= SYMMETRY_TOLERANCE * np.abs(K).max(initial=0.0):
        return K
    warnings.warn(f"The {name} is not symmetric: the mean of K and its transpose is used.", UserWarning, stacklevel=2)
    return 0.5 * (K + K.T)


def check_matrix(K: np.ndarray, X: Any, Z: Any, name: str) -> np.ndarray:
    """K, if it has the right shape and finite values; made symmetric where Z is None."""
    shape = (X.shape[0], (X if Z is None else Z).shape[0])
    if K.shape != shape:
        raise ValueError(
            f"The {name} returned shape {K.shape}; {shape} was expected: one row for each sample of X, one column for each sample of Z."
        )
    if not np.isfinite(K).all():
        raise ValueError(f"The {name} returned {int((~np.isfinite(K)).sum())} NaN or infinite values for finite input.")
    return symmetric(K, name) if Z is None else K


def check_columns(X: npt.ArrayLike, Z: npt.ArrayLike | None) -> None:
    """Raise unless X and Z are 2-d with the same number of columns."""
    shapes = [np.shape(A) for A in (X, Z) if A is not None]
    if any(len(shape) != 2 for shape in shapes) or len({shape[1] for shape in shapes}) != 1:
        raise ValueError(f"X and Z must be rows of samples with the same number of columns; got shapes {' and '.join(map(str, shapes))}.")
