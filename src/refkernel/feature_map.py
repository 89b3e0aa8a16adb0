"""The generalized reference map and kernel: samples described by whitened, centred kernel values against references.

Symbols (rows are samples): ``R`` (m × d) references, ``K_RR = k(R, R)``, ``mu`` its column means, ``J = I - 11'/m``:

    J K_RR J = U diag(lam) U',   lam >= floor kept
    Phi(X) = (k(X, R) - 1 mu') J U lam^(-1/2)         (n × r)
    K(X, Z) = Phi(X) Phi(Z)'
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._blocks import in_blocks
from ._distances import squared_norms
from ._factor import check_floor, factorise
from ._params import NestedParams
from ._sklearn import validate_data
from ._training import TrainingRows
from ._typing import MatrixLike, RandomStateLike
from .kernels import Kernel, KernelLike, as_kernel
from .references import ReferencesLike
from .references.base import strategy_of
from .sources import Source, as_source, is_source
from .sources.labels import Labels, in_source, sampled

__all__ = ["NPT", "ReferenceKernel", "ReferenceMap"]


class ReferenceFit(NestedParams, Kernel):
    """Common code of the map and the kernel: parameters, fit, and the kernel's interface."""

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        references: ReferencesLike = "training",
        center: bool = True,
        eigenvalue_floor: float = 1e-6,
        random_state: RandomStateLike = None,
    ) -> None:
        self.kernel = kernel
        self.references = references
        self.center = center
        self.eigenvalue_floor = eigenvalue_floor
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None) -> Self:  # type: ignore[override]
        """Draw the references, resolve the kernel's width and factorise the references' kernel matrix.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which feed the references that ask for them; all other rows are targets.

        Returns
        -------
        self
            The fitted object.
        """
        kernel = as_kernel(self.kernel)
        check_floor(self.eigenvalue_floor)
        if is_source(X):
            return self._fit_source(kernel, as_source(X), y)
        return self._fit_rows(kernel, TrainingRows.of(_validated(self, kernel, X, reset=True), y))

    reference_indices_: np.ndarray

    def _fit_source(self, kernel: Kernel, source: Source, y: npt.ArrayLike | None) -> Self:
        """Fit on a sample of the rows."""
        labels = Labels.of(len(source), y, None)
        rows, index = sampled(source, labels, self.random_state)
        self.n_features_in_ = source.n_columns
        drawn = self._fit_rows(kernel, labels.chosen(index).training(rows)[0]).reference_indices_
        self.reference_indices_ = in_source(drawn, index)
        return self

    def _fit_rows(self, kernel: Kernel, rows: TrainingRows) -> Self:
        kernel = kernel.in_map()
        drawn = strategy_of(self.references).draw(rows, check_random_state(self.random_state))
        self.kernel_ = kernel.resolve(TrainingRows.of(drawn.vectors) if kernel.fit_on == "references" else rows)
        self.references_, self.reference_indices_ = drawn.vectors, drawn.indices
        if drawn.note:
            self.choice_ = drawn.note
        K_RR = self.kernel_(drawn.vectors)
        factor = factorise(K_RR, self.center, self.eigenvalue_floor)
        self._mean_norm2 = float(K_RR.mean()) if self.center else 0.0  # of the references' mean in the kernel's space
        self.eigenvalues_ = factor.eigenvalues
        self.rank_ = factor.rank
        self._factor = factor
        return self

    positive_definite = True

    def resolve(self, rows: TrainingRows, sample_weight: np.ndarray | None = None, random_state: RandomStateLike = None) -> Self:
        """Fit a copy on the rows of one fit; ``self`` does not change.

        Parameters
        ----------
        rows : TrainingRows
            The targets and known outliers of one fit.
        sample_weight : ndarray of shape (n_targets,), optional
            Not used: weights affect the description, not the references.
        random_state : int, RandomState instance or None
            Used if this object has no ``random_state`` of its own.

        Returns
        -------
        ReferenceKernel or ReferenceMap
            The fitted copy.
        """
        copy = clone(self)
        if self.random_state is None and random_state is not None:
            copy.random_state = random_state
        kernel = as_kernel(copy.kernel)
        check_floor(copy.eigenvalue_floor)
        copy.n_features_in_ = rows.X.shape[1]
        return copy._fit_rows(kernel, rows)

    @property
    def accepts_sparse(self) -> bool:
        """Whether the base kernel takes sparse samples."""
        return as_kernel(self.kernel).accepts_sparse

    @property
    def thread_safe(self) -> bool:
        """Whether the base kernel may be called from several threads."""
        return as_kernel(self.kernel).thread_safe

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        """Compute K(X, Z) = Phi(X) Phi(Z)'.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Samples in rows.
        Z : array-like or sparse matrix of shape (m, n_features), optional
            Samples in rows; X by default.

        Returns
        -------
        ndarray of shape (n, m)
            The kernel matrix.
        """
        Phi_X = self.features(X)
        return Phi_X @ (Phi_X if Z is None else self.features(Z)).T

    def diag(self, X: MatrixLike) -> np.ndarray:
        """Compute K(x, x) for every row of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The diagonal of K(X, X).
        """
        return squared_norms(self.features(X))

    def far_features(self) -> np.ndarray | None:
        """Give Phi of a sample far from all references, where a base kernel such as RBF is 0.

        Returns
        -------
        ndarray of shape (rank,) or None
            That point; None if the base kernel does not vanish.
        """
        return self._factor.projection[-1] if self.kernel_.vanishes else None

    def features(self, X: MatrixLike) -> np.ndarray:
        """Compute Phi(X), in blocks of rows so that no more than block × m kernel values exist at a time.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in rows.

        Returns
        -------
        ndarray of shape (n_samples, rank)
            The features; float32 for float32 input.
        """
        return self.features_into(X, None)

    def features_into(self, X: MatrixLike, out: np.ndarray | None) -> np.ndarray:
        """Compute Phi(X) into an array that is used again.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in rows.
        out : ndarray of shape (n_samples, rank) or None
            Where the features go; None makes a new array.

        Returns
        -------
        ndarray of shape (n_samples, rank)
            The features.
        """
        check_is_fitted(self)
        X = _validated(self, self.kernel_, X, reset=False)
        out = np.empty((X.shape[0], self.rank_), dtype=X.dtype) if out is None else out
        return self.kernel_.features_against(X, self.references_, self._factor.projection, out)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.accepts_sparse
        return tags


class ReferenceMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ReferenceFit):
    """Map samples to whitened, centred kernel values against references.

    K(x, z) = Phi(x) · Phi(z) is the generalized reference kernel (Raitoharju and Iosifidis, 2022).

    Parameters
    ----------
    kernel : kernel object, str or callable, default="rbf"
        The base kernel: see :mod:`refkernel.kernels`.
    references : str, array of shape (m, n_features) or strategy, default="training"
        Where the references come from: "auto", "training", "subset", "kmeans", "leverage", "farthest", "normal", "normal_like",
        "uniform", "shell", "negatives", "case1" … "case7", "negatives1" … "negatives9", the vectors themselves, or a strategy of
        :mod:`refkernel.references`.
    center : bool, default=True
        Whether to centre on the mean of the references, in the kernel's space.
    eigenvalue_floor : float, default=1e-6
        Eigenvalues of the references' (centred) kernel matrix below this are dropped. Absolute, as in the article.
    random_state : int, RandomState instance or None, default=None
        The source of everything random.

    Attributes
    ----------
    references_ : ndarray or sparse matrix of shape (m, n_features)
        The references, in rows.
    reference_indices_ : ndarray of shape (m,)
        The training row that each reference is; -1 for generated references.
    eigenvalues_ : ndarray of shape (rank_,)
        The eigenvalues that were kept, largest first.
    rank_ : int
        The number of features of the map.
    kernel_ : Kernel
        The base kernel with its width resolved.
    choice_ : str
        How many references were chosen, and why (``references="auto"`` only).

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references="case4", random_state=0).fit_transform(X).shape
    (40, 19)
    """

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Map samples to Phi(X).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in rows.

        Returns
        -------
        ndarray of shape (n_samples, rank_)
            The features; float32 for float32 input. A source is transformed when it is read.
        """
        if is_source(X):
            return as_source(X).transformed(self.features, self.rank_)
        return self.features(X)

    def kernel_matrix(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        """Compute K(X, Z) = Phi(X) Phi(Z)'.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Samples in rows.
        Z : array-like or sparse matrix of shape (m, n_features), optional
            Samples in rows; X by default.

        Returns
        -------
        ndarray of shape (n, m)
            The kernel matrix.
        """
        return self(X, Z)

    def residual(self, X: MatrixLike, rank: int | None = None) -> np.ndarray:
        """Measure the part of each sample that the map cannot see: its squared distance from the span of the references.

        In the kernel's space it is kc(x, x) - ||Phi(x)||², where kc(x, x) = k(x, x) - 2 mean_r k(x, r) + mean_rs k(r, s) is centred
        as the map is (k(x, x) for ``center=False``). It is 0 on the references if no eigenvalue was dropped. Far from all references,
        for a kernel that vanishes there, it tends to k(x, x) plus the squared distance of the references' span from the origin
        (which is at most mean_rs k(r, s)).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in rows.
        rank : int, optional
            Use the span of this many leading features only (the principal components of the references); all by default.

        Returns
        -------
        ndarray of shape (n_samples,)
            The residuals, float64, at least 0, and finite: those that overflow are the largest number there is. Their rounding error
            is about 1e-16 / (smallest kept eigenvalue) of k(x, x).
        """
        check_is_fitted(self)
        X = _validated(self, self.kernel_, X, reset=False).astype(np.float64, copy=False)
        if rank is not None and not (isinstance(rank, Integral) and not isinstance(rank, bool) and 0 <= int(rank) <= self.rank_):
            raise ValueError(f"rank={rank!r} must be an int from 0 to {self.rank_}, the number of features of the map; or None for all.")
        m, projection = self.references_.shape[0], np.ascontiguousarray(self._factor.projection[:, :rank])

        def make(rows: int) -> Callable[[Any], np.ndarray]:
            kernel = self.kernel_.against(self.references_, rows)

            def of_block(block: Any) -> np.ndarray:
                K = kernel(block)
                norm2 = self.kernel_.diag(block) + self._mean_norm2
                if self.center:
                    norm2 -= 2.0 * K[:, :m].mean(axis=1)
                return norm2 - squared_norms(K @ projection)

            return of_block

        with np.errstate(over="ignore", invalid="ignore"):
            residual = in_blocks(make, X, np.empty(X.shape[0]), len(projection), self.kernel_.thread_safe)
        return np.nan_to_num(np.maximum(residual, 0.0, out=residual), nan=np.finfo(np.float64).max, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class NPT(ReferenceMap):
    """The nonlinear projection trick: the reference map whose references are the training samples.

    Parameters
    ----------
    kernel : kernel object, str or callable, default="rbf"
        The base kernel: see :mod:`refkernel.kernels`.
    center : bool, default=True
        Whether to centre on the mean of the training samples, in the kernel's space.
    eigenvalue_floor : float, default=1e-6
        Eigenvalues of the (centred) kernel matrix below this are dropped. Absolute, as in the article.

    Attributes
    ----------
    references_ : ndarray or sparse matrix of shape (n_targets, n_features)
        The target training samples.
    reference_indices_ : ndarray of shape (n_targets,)
        Their row numbers.
    eigenvalues_ : ndarray of shape (rank_,)
        The eigenvalues that were kept, largest first.
    rank_ : int
        The number of features of the map.
    kernel_ : Kernel
        The base kernel with its width resolved.

    Examples
    --------
    >>> import numpy as np
    >>> import refkernel as rk
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> rk.NPT(rk.RBF(sigma=1.0)).fit_transform(X).shape  # centred: one direction fewer than samples
    (3, 2)
    """

    references = "training"
    random_state = None

    def __init__(self, kernel: KernelLike = "rbf", center: bool = True, eigenvalue_floor: float = 1e-6) -> None:
        self.kernel = kernel
        self.center = center
        self.eigenvalue_floor = eigenvalue_floor


class ReferenceKernel(ReferenceFit):
    """The generalized reference kernel K(x, z) = Phi(x) · Phi(z), for :class:`SVDD` and :class:`OneClassSVM`.

    Parameters
    ----------
    kernel : kernel object, str or callable, default="rbf"
        The base kernel: see :mod:`refkernel.kernels`.
    references : str, array of shape (m, n_features) or strategy, default="training"
        Where the references come from, as for :class:`ReferenceMap`.
    center : bool, default=True
        Whether to centre on the mean of the references, in the kernel's space.
    eigenvalue_floor : float, default=1e-6
        Eigenvalues of the references' (centred) kernel matrix below this are dropped. Absolute, as in the article.
    random_state : int, RandomState instance or None, default=None
        The source of everything random.

    Attributes
    ----------
    references_, reference_indices_, eigenvalues_, rank_, kernel_
        As for :class:`ReferenceMap`.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> K = rk.ReferenceKernel(references="case2", random_state=0).fit(X)
    >>> K(X).shape, K.diag(X).shape
    ((40, 40), (40,))
    """


def _validated(estimator: ReferenceFit, kernel: Kernel, X: MatrixLike, reset: bool) -> Any:
    sparse = "csr" if kernel.accepts_sparse else False
    return validate_data(estimator, X, reset=reset, accept_sparse=sparse, dtype=[np.float64, np.float32], order="C")
