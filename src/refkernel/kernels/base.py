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

from .._blocks import fill_blocks, in_blocks
from .._sklearn import QuickParams
from .._training import TrainingRows
from .._typing import MatrixLike, RandomStateLike

__all__ = ["Kernel", "check_columns", "check_matrix", "symmetric"]

SYMMETRY_TOLERANCE = 1e-8
"""Rounding makes a kernel matrix asymmetric or indefinite by far less than this share of its size."""

DIAGONAL_BLOCK = 256
"""Rows at a time when a diagonal must be read off kernel matrices: 0.5 MB, small next to the data."""

PRECISION = 1e-12
"""Sums of products, added up in another order, agree to this share of their size."""


class Kernel(QuickParams):
    """The base class of all kernels.

    A subclass needs one formula, in ``__call__``; everything else has a default. ``k1 + k2``, ``k1 * k2`` and ``2.0 * k`` are
    kernels too.

    Attributes
    ----------
    fit_on : {"references", "training"}
        The rows that a reference map resolves this kernel on.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> class Quadratic(rk.kernels.Kernel):
    ...     def __call__(self, X, Z=None):
    ...         return (np.asarray(X) @ np.asarray(X if Z is None else Z).T) ** 2
    >>> Quadratic()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[121.]])
    """

    fit_on: str = "references"
    """The rows that a reference map resolves this kernel on: "references" or "training"."""

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
        """The share of their size to which sums of kernel values agree if added up in another order."""
        return PRECISION

    def in_map(self) -> Kernel:
        """Return this kernel as the base of a reference map.

        Returns
        -------
        Kernel
            The kernel itself, unless its default width differs under a map.
        """
        return self

    def resolve(self, rows: TrainingRows, sample_weight: np.ndarray | None = None, random_state: RandomStateLike = None) -> Kernel:
        """Fix every parameter that depends on data, using the target rows; ``self`` is not changed.

        Parameters
        ----------
        rows : TrainingRows
            The rows of one fit.
        sample_weight : ndarray of shape (n_targets,), optional
            The weight of each target.
        random_state : int, RandomState instance or None
            Used by kernels that draw something and have no ``random_state`` of their own.

        Returns
        -------
        Kernel
            A kernel that is ready to use.
        """
        return self

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, sample_weight: np.ndarray | None = None) -> Any:
        """Resolve the kernel on the rows of X; ``self`` is not changed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows on which the width is measured.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which are ignored.
        sample_weight : ndarray of shape (n_targets,), optional
            The weight of each target.

        Returns
        -------
        Kernel
            The kernel to use: ``k = k.fit(X)``.
        """
        rows: Any = X if hasattr(X, "shape") else np.asarray(X, dtype=np.float64)
        return self.resolve(TrainingRows.of(rows, y), sample_weight)

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        """Compute the kernel matrix k(X, Z).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Samples in rows.
        Z : array-like or sparse matrix of shape (m, n_features), optional
            Samples in rows; X by default.

        Returns
        -------
        ndarray of shape (n, m)
            One row for each sample of X, one column for each sample of Z.
        """
        raise NotImplementedError

    def diag(self, X: MatrixLike) -> np.ndarray:
        """Compute k(x, x) for every row of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Samples in rows.

        Returns
        -------
        ndarray of shape (n,)
            The diagonal of k(X, X).
        """
        rows: Any = X
        return in_blocks(lambda _: lambda block: np.diagonal(self(block)), rows, np.empty(rows.shape[0]), DIAGONAL_BLOCK, self.thread_safe)

    def features(self, X: MatrixLike) -> np.ndarray | None:
        """Compute Phi(X) with k(x, z) = Phi(x) · Phi(z), if the kernel has a small dense map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Samples in rows.

        Returns
        -------
        ndarray of shape (n, rank) or None
            The features; None if the kernel has no such map.
        """
        return None

    def features_into(self, X: MatrixLike, out: np.ndarray | None) -> np.ndarray | None:
        """Compute Phi(X), in an array that is used again if the kernel can write there.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Samples in rows.
        out : ndarray of shape (n, rank) or None
            Where the features may go.

        Returns
        -------
        ndarray of shape (n, rank) or None
            ``out`` or another array with what ``features`` gives.
        """
        return self.features(X)

    def far_features(self) -> np.ndarray | None:
        """Give the features of samples far from all data, if the kernel maps all of them to one point.

        Returns
        -------
        ndarray of shape (rank,) or None
            That point; None for other kernels.
        """
        return None

    def of_squared_distances(self, negative: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Compute kernel values from distances; only for kernels with ``shares_distances``.

        Parameters
        ----------
        negative : ndarray of shape (n, m)
            -||x - z||² for each pair.
        out : ndarray of shape (n, m), optional
            Where the values may go; a new array by default.

        Returns
        -------
        ndarray of shape (n, m)
            k(X, Z).
        """
        raise NotImplementedError

    def against(self, Z: Any, rows: int) -> Callable[[Any], np.ndarray]:
        """Prepare kernel values against a fixed Z.

        Parameters
        ----------
        Z : ndarray or sparse matrix of shape (m, n_features)
            Samples in rows.
        rows : int
            The largest number of rows in a block of X.

        Returns
        -------
        callable
            The function X -> [k(X, Z), 1]. Its result is valid until the next call.
        """
        return lambda X: np.column_stack([self(X, Z), np.ones(X.shape[0])])

    def sums(self, X: Any, Z: Any, weights: np.ndarray) -> np.ndarray:
        """Compute Σ_j weights_j k(x, z_j) for every row x of X; it does not depend on the rows beside x.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, n_features)
            Samples in rows.
        Z : ndarray or sparse matrix of shape (m, n_features)
            Samples in rows.
        weights : ndarray of shape (m,)
            The weight of each row of Z.

        Returns
        -------
        ndarray of shape (n,)
            The weighted sums.
        """
        with_one = np.append(weights, 0.0)

        def make(rows: int) -> Callable[[Any], np.ndarray]:
            values = self.against(Z, rows)
            return lambda block: values(block) @ with_one

        return in_blocks(make, X, np.empty(X.shape[0]), with_one.size, self.thread_safe)

    def features_against(self, X: Any, Z: Any, projection: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Compute [k(X, Z), 1] projection, the features of a reference map; a row's do not depend on the rows beside it.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, n_features)
            Samples in rows.
        Z : ndarray or sparse matrix of shape (m, n_features)
            The references, in rows.
        projection : ndarray of shape (m + 1, rank)
            Centring and whitening.
        out : ndarray of shape (n, rank)
            Where the features go.

        Returns
        -------
        ndarray of shape (n, rank)
            ``out``.
        """

        def make(rows: int) -> Callable[[Any, np.ndarray], None]:
            values, held = self.against(Z, rows), np.empty((rows, projection.shape[1]))

            def fill(block: Any, Phi: np.ndarray) -> None:
                K, whole = values(block), len(Phi) == block.shape[0] and Phi.dtype == held.dtype
                into = np.matmul(K, projection, out=Phi if whole else held[: len(K)])
                if not whole:
                    Phi[:] = into[: len(Phi)]

            return fill

        return fill_blocks(make, X, out, len(projection), self.thread_safe)

    def checked(self, X: Any, training: bool) -> Any:
        """Convert validated input to what this kernel takes; raise if it cannot take it.

        Parameters
        ----------
        X : ndarray or sparse matrix
            The samples after scikit-learn's validation.
        training : bool
            Whether X comes from ``fit``.

        Returns
        -------
        ndarray or sparse matrix
            The samples for ``__call__``.
        """
        return X

    def matrix(self, X: Any, rows: np.ndarray) -> np.ndarray | None:
        """Give the kernel matrix of training rows, if it is known rather than computed.

        Parameters
        ----------
        X : ndarray or sparse matrix
            What ``checked`` returned.
        rows : ndarray of int
            Row numbers.

        Returns
        -------
        ndarray or None
            Their kernel matrix; None if it must be computed.
        """
        return None

    def landmarks(self, X: Any, rows: np.ndarray) -> Any:
        """Select training rows for use as the second argument of ``__call__``.

        Parameters
        ----------
        X : ndarray or sparse matrix
            What ``checked`` returned.
        rows : ndarray of int
            Row numbers.

        Returns
        -------
        ndarray or sparse matrix
            These rows, as this kernel refers to them.
        """
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
    """K if it is symmetric up to rounding; otherwise the mean of K and its transpose, with a warning."""
    if np.abs(K - K.T).max(initial=0.0) <= SYMMETRY_TOLERANCE * np.abs(K).max(initial=0.0):
        return K
    warnings.warn(f"The {name} is not symmetric: the mean of K and its transpose is used.", UserWarning, stacklevel=2)
    return 0.5 * (K + K.T)


def check_matrix(K: np.ndarray, X: Any, Z: Any, name: str) -> np.ndarray:
    """K, after checking its shape and values; made symmetric if Z is None."""
    shape = (X.shape[0], (X if Z is None else Z).shape[0])
    if K.shape != shape:
        raise ValueError(
            f"The {name} returned shape {K.shape}; {shape} was expected: one row for each sample of X, one column for each sample of Z."
        )
    if not np.isfinite(K).all():
        raise ValueError(f"The {name} returned {int((~np.isfinite(K)).sum())} NaN or infinite values for finite input.")
    return symmetric(K, name) if Z is None else K


def check_columns(X: MatrixLike, Z: MatrixLike | None) -> None:
    """Raise unless X and Z are 2-d with the same number of columns."""
    shapes = [np.shape(A) for A in (X, Z) if A is not None]
    if any(len(shape) != 2 for shape in shapes) or len({shape[1] for shape in shapes}) != 1:
        raise ValueError(f"X and Z must be rows of samples with the same number of columns; got shapes {' and '.join(map(str, shapes))}.")
