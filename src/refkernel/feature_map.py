"""The generalized reference map and kernel: every sample by its whitened, centred kernel values against references.

Symbols (DESIGN: rows are samples): ``R`` (m × d) references, ``K_RR = k(R, R)``, ``mu`` its column means, ``J = I - 11'/m``:

    J K_RR J = U diag(lam) U',   lam >= floor kept
    Phi(X) = (k(X, R) - 1 mu') J U lam^(-1/2)         (n × r)
    K(X, Z) = Phi(X) Phi(Z)'
"""

from __future__ import annotations

from functools import partial
from numbers import Integral

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ._factor import check_floor, factorise
from ._params import NestedParams
from ._threads import share_rows
from ._validation import OUTLIER, target_mask
from .kernels import RBF, as_kernel, squared_norms
from .references import GENERATED, TrainingRows, as_strategy

BLOCK_ENTRIES = 1 << 16
"""Kernel values that ``transform`` holds at a time (in each thread): half a MB, which caches hold with what they become."""

MANY_ENTRIES = 1 << 21
"""Kernel values from which on ``transform`` shares the rows between threads: some 10 ms of work."""


class _ReferenceFit(NestedParams):
    """What the map and the kernel share: parameters, fit, and the kernel's interface."""

    def __init__(self, kernel=RBF(), references="training", center=True, eigenvalue_floor=1e-6, random_state=None):  # noqa: B008 (copied before it changes: NestedParams)
        self.kernel = kernel
        self.references = references
        self.center = center
        self.eigenvalue_floor = eigenvalue_floor
        self.random_state = random_state

    def fit(self, X, y=None):
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
        """
        kernel = as_kernel(self.kernel)
        check_floor(self.eigenvalue_floor)
        X = _validated(self, kernel, X, reset=True)
        is_target = target_mask(X, y)
        rows = TrainingRows(X, np.flatnonzero(is_target), np.flatnonzero(~is_target))
        drawn = as_strategy(self.references).draw(rows, check_random_state(self.random_state))
        self.kernel_ = kernel.fit(drawn.vectors if kernel.fit_on == "references" else X[rows.targets])
        self.references_, self.reference_indices_ = drawn.vectors, drawn.indices
        K_RR = self.kernel_(drawn.vectors)
        factor = factorise(K_RR, self.center, self.eigenvalue_floor)
        self._mean_norm2 = float(K_RR.mean()) if self.center else 0.0  # of the references' mean in the kernel's space
        self.eigenvalues_ = factor.eigenvalues
        self.rank_ = factor.eigenvalues.size
        self._factor = factor
        return self

    positive_definite = True
    thread_safe = True

    def fit_copy(self, rows, sample_weight, random_state):
        """A copy fitted on the targets and outliers of one fit; weights weigh the description, not the references."""
        copy = clone(self)
        if self.random_state is None and random_state is not None:
            copy.random_state = random_state
        used = np.concatenate([rows.targets, rows.outliers])
        used.sort()
        copy.fit(rows.X[used], np.where(np.isin(used, rows.outliers), OUTLIER, 1) if rows.outliers.size else None)
        copy.reference_indices_ = np.where(copy.reference_indices_ == GENERATED, GENERATED, used[copy.reference_indices_])
        return copy

    @property
    def accepts_sparse(self):
        """Whether the base kernel takes sparse samples."""
        return as_kernel(self.kernel).accepts_sparse

    def __call__(self, X, Z=None):
        """K(X, Z) = Phi(X) Phi(Z)'."""
        Phi_X = self.features(X)
        return Phi_X @ (Phi_X if Z is None else self.features(Z)).T

    def diag(self, X):
        """K(x, x) for every row of X."""
        return squared_norms(self.features(X))

    def far_features(self):
        """Phi of a sample far from all references, where a base kernel such as RBF is 0; None for others."""
        return self._factor.projection[-1] if self.kernel_.vanishes else None

    def features(self, X):
        """Phi(X), in blocks of rows so that no more than block × m kernel values exist at a time."""
        check_is_fitted(self)
        X = _validated(self, self.kernel_, X, reset=False)
        Phi = np.empty((X.shape[0], self.rank_), dtype=X.dtype)
        if self.kernel_.thread_safe and X.shape[0] * self.references_.shape[0] >= MANY_ENTRIES:
            share_rows(partial(self._fill, X, Phi), X.shape[0])
        else:
            self._fill(X, Phi, 0, X.shape[0])
        return Phi

    def _fill(self, X, Phi, start, stop):
        """Phi[start:stop], block by block."""
        rows = max(1, BLOCK_ENTRIES // self.references_.shape[0])
        kernel = self.kernel_.against(self.references_, min(rows, stop - start))
        for i in range(start, stop, rows):
            block = Phi[i : min(i + rows, stop)]
            np.matmul(kernel(X[i : min(i + rows, stop)]), self._factor.projection, out=block, casting="same_kind")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.accepts_sparse
        return tags


class ReferenceMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _ReferenceFit):
    """Map samples to whitened, centred kernel values against reference vectors.

    Parameters
    ----------
    kernel : kernel object, str or callable, default=RBF()
        The base kernel: see :mod:`refkernel.kernels`.
    references : str, array of shape (m, n_features) or strategy, default="training"
        Where the references come from: "training", "subset", "kmeans", "leverage", "farthest", "normal", "normal_like",
        "uniform", "shell", "negatives", "case1" … "case7", "negatives1" … "negatives9", the vectors themselves, or a strategy of
        :mod:`refkernel.references`.
    center : bool, default=True
        Centre in the kernel's space at the mean of the references.
    eigenvalue_floor : float, default=1e-6
        Eigenvalues of the references' (centred) kernel matrix below this are dropped. Absolute, as in the article.
    random_state : int, RandomState instance or None, default=None
        The source of everything random.

    Attributes
    ----------
    references_ : (m, n_features) the reference vectors.
    reference_indices_ : (m,) the training row that each reference is; -1 where it was generated.
    eigenvalues_ : (rank_,) the kept eigenvalues, largest first.
    rank_ : int, the number of features of the map.
    kernel_ : the base kernel with its width resolved.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references="case4", random_state=0).fit_transform(X).shape
    (40, 19)
    """

    def transform(self, X):
        """Phi(X), of shape (n_samples, rank_); float32 for float32 input."""
        return self.features(X)

    def kernel_matrix(self, X, Z=None):
        """K(X, Z) = Phi(X) Phi(Z)'."""
        return self(X, Z)

    def residual(self, X, rank=None):
        """The squared distance, in the kernel's space, of each sample from the span of the references: what the map cannot see of it.

        kc(x, x) - ||Phi(x)||², where kc(x, x) = k(x, x) - 2 mean_r k(x, r) + mean_rs k(r, s) is centred as the map is (k(x, x) for
        ``center=False``). It is 0 on the references if no eigenvalue was dropped. Far from all references, for a kernel that vanishes
        there, it tends to k(x, x) plus the squared distance of the references' span from the origin (which is at most mean_rs k(r, s)).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        rank : int, optional
            Take the span of this many leading features only (the principal components of the references); all by default.

        Returns
        -------
        ndarray of shape (n_samples,), float64, at least 0. Rounding is about 1e-16 / (smallest kept eigenvalue) of k(x, x).
        """
        check_is_fitted(self)
        X = _validated(self, self.kernel_, X, reset=False).astype(np.float64, copy=False)
        if rank is not None and not (isinstance(rank, Integral) and not isinstance(rank, bool) and 0 <= int(rank) <= self.rank_):
            raise ValueError(f"rank={rank!r} must be an int from 0 to {self.rank_}, the number of features of the map; or None for all.")
        residual = np.empty(X.shape[0])
        fill = partial(self._fill_residual, X, self._factor.projection[:, :rank], residual)
        if self.kernel_.thread_safe and X.shape[0] * self.references_.shape[0] >= MANY_ENTRIES:
            share_rows(fill, X.shape[0])
        else:
            fill(0, X.shape[0])
        return np.maximum(residual, 0.0, out=residual)

    def _fill_residual(self, X, projection, residual, start, stop):
        """residual[start:stop], block by block."""
        m = self.references_.shape[0]
        rows = max(1, BLOCK_ENTRIES // m)
        kernel = self.kernel_.against(self.references_, min(rows, stop - start))
        for i in range(start, stop, rows):
            block = X[i : min(i + rows, stop)]
            K = kernel(block)
            norm2 = self.kernel_.diag(block) + self._mean_norm2
            if self.center:
                norm2 -= 2.0 * K[:, :m].mean(axis=1)
            residual[i : i + block.shape[0]] = norm2 - squared_norms(K @ projection)

    @property
    def _n_features_out(self):
        return self.rank_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class NPT(ReferenceMap):
    """The nonlinear projection trick: the reference map whose references are the training samples.

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

    def __init__(self, kernel=RBF(), center=True, eigenvalue_floor=1e-6):  # noqa: B008 (copied before it changes: NestedParams)
        self.kernel = kernel
        self.center = center
        self.eigenvalue_floor = eigenvalue_floor


class ReferenceKernel(_ReferenceFit):
    """The generalized reference kernel K(x, z) = Phi(x) · Phi(z), for :class:`SVDD` and :class:`OneClassSVM`.

    Parameters and attributes are those of :class:`ReferenceMap`.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> K = rk.ReferenceKernel(references="case2", random_state=0).fit(X)
    >>> K(X).shape, K.diag(X).shape
    ((40, 40), (40,))
    """


def _validated(estimator, kernel, X, reset):
    sparse = "csr" if kernel.accepts_sparse else False
    return validate_data(estimator, X, reset=reset, accept_sparse=sparse, dtype=[np.float64, np.float32])
