"""The generalized reference map and kernel: samples described by whitened, centred kernel values against references.

Symbols (rows are samples): ``R`` (m × d) references, ``K_RR = k(R, R)``, ``mu`` its column means, ``J = I - 11'/m``:

    J K_RR J = U diag(lam) U',   lam >= floor kept
    Phi(X) = (k(X, R) - 1 mu') J U lam^(-1/2)         (n × r)
    K(X, Z) = Phi(X) Phi(Z)'
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from ._core.blocks import in_blocks
from ._core.distances import squared_norms
from ._core.factor import Factor, check_floor, check_matrices, factorise
from ._core.file_rules import FEATURES, Array, Number, Part, Rule
from ._core.rows import TrainingRows
from ._core.types import MatrixLike, RandomStateLike
from ._core.validation import is_number, validate_data
from .kernels import Kernel, KernelLike, as_kernel
from .large import Source, as_source, is_source
from .large.labels import Labels, in_source, sampled
from .references import ReferencesLike
from .references.base import NestedParams, drawn


class ReferenceFit(NestedParams, Kernel):
    """Common code of the map and the kernel: parameters, fit, and the kernel's interface."""

    _file_rules: ClassVar[dict[str, Rule]] = {
        **FEATURES,
        "references_": Array(("m", "d"), sparse=True),
        "reference_indices_": Array(("m",), lowest=-1),
        "eigenvalues_": Array(("r",)),
        "rank_": Number(0, size="r"),
        "kernel_": Part(Kernel),
        "_factor": Part(Factor),
        "_mean_norm2": Number(),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """The factor takes kernel values against the references, and a column of ones."""
        fits = self._factor.projection.shape == (sizes["m"] + 1, sizes["r"])
        return None if fits else f"_factor is not a projection of {sizes['m']} references to {sizes['r']} features"

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
        if is_source(X):
            return self._fit_source(as_source(X), y)
        return self._fit_rows(TrainingRows.of(self._validated(X, reset=True), y))

    reference_indices_: np.ndarray

    def _fit_source(self, source: Source, y: npt.ArrayLike | None) -> Self:
        """Fit on a sample of the rows."""
        labels = Labels.of(len(source), y, None)
        rows, index = sampled(source, labels, self.random_state)
        self.n_features_in_ = source.n_columns
        self._fit_rows(labels.chosen(index).training(rows)[0])
        self.reference_indices_ = in_source(self.reference_indices_, index)
        return self

    def _fit_rows(self, rows: TrainingRows) -> Self:
        kernel = as_kernel(self.kernel)._in_map()
        check_floor(self.eigenvalue_floor)
        found = drawn(self.references, rows, self.random_state)
        self.references_, self.reference_indices_ = found.vectors, found.indices
        if found.note:
            self.choice_ = found.note
        self.kernel_ = kernel._fitted(TrainingRows.of(found.vectors) if kernel.fit_on == "references" else rows)
        check_matrices(len(found.indices))
        K_RR = self.kernel_(found.vectors)
        self._factor = factorise(K_RR, self.center, self.eigenvalue_floor)
        self._mean_norm2 = float(K_RR.mean()) if self.center else 0.0  # of the references' mean in the kernel's space
        self.eigenvalues_, self.rank_ = self._factor.eigenvalues, self._factor.eigenvalues.size
        return self

    _positive_definite = True
    _accepts_sparse = property(lambda self: as_kernel(self.kernel)._accepts_sparse)
    _thread_safe = property(lambda self: as_kernel(self.kernel)._thread_safe)

    def _fitted(self, rows: TrainingRows, sample_weight: np.ndarray | None = None, random_state: RandomStateLike = None) -> Self:
        """A copy fitted on these rows; weights affect the description, not the references."""
        copy = clone(self)
        if self.random_state is None and random_state is not None:
            copy.random_state = random_state
        copy.n_features_in_ = rows.X.shape[1]
        return copy._fit_rows(rows)

    def _validated(self, X: MatrixLike, reset: bool) -> Any:
        sparse = "csr" if self._accepts_sparse else False
        return validate_data(self, X, reset=reset, accept_sparse=sparse, dtype=[np.float64, np.float32], order="C")

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        Phi_X = self._features(X)
        return Phi_X @ (Phi_X if Z is None else self._features(Z)).T

    def diag(self, X: MatrixLike) -> np.ndarray:
        return squared_norms(self._features(X))

    def _shrunken(self, rank: int | None, ridge: float) -> np.ndarray:
        """The leading columns of the projection, with each eigenvalue lam counting lam / (lam + ridge) of its square."""
        lam, projection = self.eigenvalues_[:rank], self._factor.projection[:, :rank]
        return np.ascontiguousarray(projection * np.sqrt(lam / (lam + ridge)) if ridge else projection)

    def _far_features(self) -> np.ndarray | None:
        """Phi of a sample far from all references, where a base kernel such as RBF is 0."""
        return self._factor.projection[-1] if self.kernel_._vanishes else None

    def _features(self, X: MatrixLike) -> np.ndarray:
        """Phi(X), in blocks of rows so that no more than block × m kernel values exist at a time; float32 for float32 input."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return self.kernel_._products(X, self.references_, self._factor.projection, np.empty((X.shape[0], self.rank_), dtype=X.dtype))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
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
            return as_source(X).transformed(self._features, self.rank_)
        return self._features(X)

    kernel_matrix = ReferenceFit.__call__

    def residual(self, X: MatrixLike, rank: int | None = None, ridge: float = 0.0) -> np.ndarray:
        """Measure the part of each sample that the map cannot see: its squared distance from the span of the references.

        In the kernel's space it is kc(x, x) - ||Phi(x)||², where kc(x, x) = k(x, x) - 2 mean_r k(x, r) + mean_rs k(r, s) is centred
        as the map is (k(x, x) for ``center=False``). It is 0 on the references if no eigenvalue was dropped.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in rows.
        rank : int, optional
            Use the span of this many leading features only (the principal components of the references); all by default.
        ridge : float, default=0.0
            Regularises the map: kc(x, x) - k_x' (Kc_RR + ridge I)^-1 k_x, k_x the centred kernel values against the references. Each
            feature then counts lam / (lam + ridge), lam its eigenvalue, and references keep a residual of their own.

        Returns
        -------
        ndarray of shape (n_samples,)
            The residuals, float64, at least 0, and finite: those that overflow are the largest number there is. Their rounding error
            is about 1e-16 / (smallest kept eigenvalue) of k(x, x).
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False).astype(np.float64, copy=False)
        if rank is not None and not (isinstance(rank, Integral) and not isinstance(rank, bool) and 0 <= int(rank) <= self.rank_):
            raise ValueError(f"rank={rank!r} must be an int from 0 to {self.rank_}, the number of features of the map; or None for all.")
        if not (is_number(ridge) and ridge >= 0):
            raise ValueError(f"ridge={ridge!r} must be a number >= 0, on the scale of the eigenvalues.")
        m, projection = self.references_.shape[0], self._shrunken(rank, ridge)

        def make(rows: int) -> Callable[[Any], np.ndarray]:
            kernel = self.kernel_._against(self.references_, rows)

            def of_block(block: Any) -> np.ndarray:
                K = kernel(block)
                norm2 = self.kernel_.diag(block) + self._mean_norm2
                if self.center:
                    norm2 -= 2.0 * K[:, :m].mean(axis=1)
                return norm2 - squared_norms(K @ projection)

            return of_block

        with np.errstate(over="ignore", invalid="ignore"):
            residual = in_blocks(make, X, np.empty(X.shape[0]), len(projection), self.kernel_._thread_safe)
        return np.nan_to_num(np.maximum(residual, 0.0, out=residual), nan=np.finfo(np.float64).max, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


NPT = ReferenceMap  # the nonlinear projection trick: the map with its default references, the training samples


class ReferenceKernel(ReferenceFit):
    """The generalized reference kernel K(x, z) = Phi(x) · Phi(z), for :class:`SVDD` and :class:`OneClassSVM`.

    Parameters
    ----------
    kernel, references, center, eigenvalue_floor, random_state : as for :class:`ReferenceMap`
        The base kernel, and the map to which it belongs.

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
