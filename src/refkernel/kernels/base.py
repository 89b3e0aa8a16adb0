"""The contract of a kernel (``fit`` for what depends on data, one formula in ``__call__``), and kernels made of kernels.

Estimators fit a copy of the kernel that they are given. ``X`` (n × d) and ``Z`` (m × d) hold samples in rows; ``Z=None`` is ``Z = X``.
"""

import copy
import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .._core.blocks import in_blocks
from .._core.file_rules import Number, Part, Rule
from .._core.rows import TrainingRows
from .._core.types import MatrixLike, RandomStateLike
from .._core.validation import SYMMETRY_TOLERANCE, QuickParams, check_positive

DIAGONAL_BLOCK = 256  # rows at a time when a diagonal must be read off kernel matrices: 0.5 MB, small next to the data
PRECISION = 1e-12  # sums of products, added up in another order, agree to this share of their size


class Kernel(QuickParams):
    """The base class of all kernels.

    A subclass needs one formula, in ``__call__``; everything else has a default. ``k1 + k2``, ``k1 * k2`` and ``2.0 * k`` are
    kernels too.

    Attributes
    ----------
    fit_on : {"references", "training"}
        The rows that a reference map fits this kernel on.

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
    _accepts_sparse: bool = True  # whether X and Z may be sparse
    _thread_safe: bool = True  # whether several threads may call it at once
    _trusted: bool = False  # whether the matrices are right, or checked where they are made
    _pairwise: bool = False  # whether X holds kernel values against the training samples instead of features
    _positive_definite: bool = False  # whether every kernel matrix is known to be positive semidefinite
    _vanishes: bool = False  # whether k(x, z) tends to 0 as x moves away from z
    _narrow: bool = False  # whether the width follows the neighbours: most targets then carry weight
    _shares_distances: bool = False  # whether several widths can share one distance matrix, by ``_of_squared_distances``
    _of_squared_distances: Callable[[np.ndarray], np.ndarray]  # k(X, Z) from -||x - z||² of each pair, for kernels that share them
    # (p, s) if k = exp(-Σ_j |x_j - z_j|^p / width), and the width s times the mean of these sums
    _power_and_scale: tuple[float, float] | None = None
    _precision: float = PRECISION  # the share of their size to which sums agree if added up in another order

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, sample_weight: np.ndarray | None = None) -> Self:
        """Learn what depends on data, such as a width.

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
        self
            The fitted kernel.
        """
        rows: Any = X if hasattr(X, "shape") else np.asarray(X, dtype=np.float64)
        self._learn(TrainingRows.of(rows, y), sample_weight, None)
        return self

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
        raise NotImplementedError(f"{type(self).__name__} has no formula: define __call__(self, X, Z=None), which returns k(X, Z).")

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
        out = np.empty(np.shape(X)[0])
        return in_blocks(lambda _: lambda block: np.diagonal(self(block)), X, out, DIAGONAL_BLOCK, self._thread_safe)

    def _learn(self, rows: TrainingRows, sample_weight: np.ndarray | None, random_state: RandomStateLike) -> None:
        """Set what depends on data: by default nothing, but a user's formula is tried on two rows."""
        if not self._trusted:
            some = rows.X[:2]
            check_matrix(np.asarray(self(some, some[:1])), some, some[:1], f"kernel {type(self).__name__}")

    def _fitted(self, rows: TrainingRows, sample_weight: np.ndarray | None = None, random_state: RandomStateLike = None) -> Self:
        """A copy that is fitted on the rows; ``self`` does not change."""
        fitted = copy.copy(self)
        fitted._learn(rows, sample_weight, random_state)
        return fitted

    def _in_map(self) -> "Kernel":
        """This kernel as the base of a reference map: itself, unless its default width differs there."""
        return self

    def _features(self, X: MatrixLike) -> np.ndarray | None:
        """Phi(X) with k(x, z) = Phi(x) · Phi(z); None if the kernel has no small dense map."""
        return None

    def _far_features(self) -> np.ndarray | None:
        """Phi of samples far from all data, if the kernel maps all of them to one point; else None."""
        return None

    def _against(self, Z: Any, rows: int) -> Callable[[Any], np.ndarray]:
        """The function X -> [k(X, Z), 1] for at most this many rows of X. A result is valid until the next call."""
        return lambda X: np.column_stack([self(X, Z), np.ones(X.shape[0])])

    def _sums(self, X: Any, Z: Any, weights: np.ndarray) -> np.ndarray:
        """Σ_j weights_j k(x, z_j) for every row x of X. It does not depend on the rows beside x."""
        return self._products(X, Z, np.append(weights, 0.0), np.empty(X.shape[0]))

    def _products(self, X: Any, Z: Any, W: np.ndarray, out: np.ndarray) -> np.ndarray:
        """[k(X, Z), 1] W in ``out``; of a projection W, the features of a reference map."""

        def make(rows: int) -> Callable[[Any], np.ndarray]:
            values = self._against(Z, rows)
            return lambda block: values(block) @ W

        return in_blocks(make, X, out, max(W.shape), self._thread_safe)

    def __add__(self, other: Any) -> "Kernel":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> "Kernel":
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


class _OfKernels(Kernel):
    """A kernel made of the kernels in the parameters ``_names``, which all see the same rows."""

    _names: ClassVar[tuple[str, ...]]
    _combined: Callable[..., np.ndarray]  # of the values of its parts

    def _learn(self, rows: TrainingRows, sample_weight: np.ndarray | None, random_state: RandomStateLike) -> None:
        for name in self._names:
            setattr(self, f"{name}_", getattr(self, name)._fitted(rows, sample_weight, random_state))

    @property
    def _parts(self) -> list[Kernel]:
        """The kernels, fitted if this one is."""
        return [getattr(self, f"{name}_", getattr(self, name)) for name in self._names]

    @property
    def fit_on(self) -> str:  # type: ignore[override]
        one, *others = dict.fromkeys(part.fit_on for part in self._parts)
        if others:
            raise ValueError(f"One kernel has fit_on={one!r}, the other {others[0]!r}: they must agree.")
        return one

    _accepts_sparse = property(lambda self: all(part._accepts_sparse for part in self._parts))
    _thread_safe = property(lambda self: all(part._thread_safe for part in self._parts))
    _positive_definite = property(lambda self: all(part._positive_definite for part in self._parts))
    _vanishes = property(lambda self: all(part._vanishes for part in self._parts))
    _narrow = property(lambda self: any(part._narrow for part in self._parts))
    _precision = property(lambda self: max(part._precision for part in self._parts))

    def _features(self, X: MatrixLike) -> np.ndarray | None:
        return self._joined([part._features(X) for part in self._parts])

    def _far_features(self) -> np.ndarray | None:
        return self._joined([part._far_features() for part in self._parts])

    def _joined(self, parts: list[Any]) -> np.ndarray | None:
        """The features of this kernel from those of its parts; None if it has none."""
        return None

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        return self._combined(*(part(X, Z) for part in self._parts))

    def diag(self, X: MatrixLike) -> np.ndarray:
        return self._combined(*(part.diag(X) for part in self._parts))


class _Pair(_OfKernels):
    """A kernel made of two."""

    _names = ("first", "second")
    _file_rules: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("first", "second"), Part(Kernel, fitted=False)),
        **dict.fromkeys(("first_", "second_"), Part(Kernel)),
    }

    def __init__(self, first: Kernel, second: Kernel) -> None:
        self.first = first
        self.second = second


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

    _combined = np.add

    def _joined(self, parts: list[Any]) -> np.ndarray | None:
        return None if any(Phi is None for Phi in parts) else np.concatenate(parts, axis=-1)


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

    _combined = np.multiply


class Scaled(_OfKernels):
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

    _names = ("kernel",)
    _file_rules: ClassVar[dict[str, Rule]] = {
        "kernel": Part(Kernel, fitted=False),
        "kernel_": Part(Kernel),
        "factor": Number(positive=True),
    }

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel = kernel
        self.factor = factor

    def _learn(self, rows: TrainingRows, sample_weight: np.ndarray | None, random_state: RandomStateLike) -> None:
        check_positive("factor", self.factor)
        super()._learn(rows, sample_weight, random_state)

    def _combined(self, values: np.ndarray) -> np.ndarray:
        return self.factor * values

    def _joined(self, parts: list[Any]) -> np.ndarray | None:
        return None if parts[0] is None else np.sqrt(self.factor) * parts[0]
