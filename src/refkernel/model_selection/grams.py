"""Kernel matrices of one fold, for any base kernel: references, distances and factorisations computed once."""

from __future__ import annotations

import copy
import numbers
import threading
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from .._distances import negative_squared_distances
from .._factor import Whitening, distinct_rows
from .._timing import Clock
from .._training import TrainingRows
from ..kernels.base import PRECISION
from ..references import GENERATED, as_strategy


class Grams(NamedTuple):
    """For a stack of s kernels: K (s × n × n) on the training samples, K_test (s × t × n), and the test samples' diagonal (s × t)."""

    K: np.ndarray
    K_test: np.ndarray
    diag_test: np.ndarray


class ReferenceSet:
    """Reference vectors R, each once, their distances, and their factorisation for each base kernel.

    The first ``targets`` references are the training targets.
    """

    def __init__(self, R, center, floor, targets):
        self.R, self.center, self.floor, self.targets = R, center, floor, targets
        self.rows = TrainingRows.of(R)
        self.distances: np.ndarray | None = None
        self._counts: np.ndarray | None = None
        self._first: Any = slice(targets)
        repeated = distinct_rows(R)
        if repeated is not None:
            distinct, which = repeated
            self.R, self._counts, self._first = R[distinct], np.bincount(which).astype(np.float64), which[:targets]
        self._whitenings: dict[int, tuple[Any, Whitening]] = {}  # by id: the kernel is held too, so that no other gets its id

    def whitening(self, kernel, fitted, clock) -> Whitening:
        """The factorisation for a fitted kernel; kept for kernels that are fitted here, and so are always the same."""
        if id(kernel) in self._whitenings:
            return self._whitenings[id(kernel)][1]
        shared = self.distances is not None and fitted.shares_distances
        K_RR = fitted.of_squared_distances(self.distances) if shared else fitted(self.R)
        clock.lap("kernels")
        whitening = Whitening(K_RR, self.center, self.floor, self._counts, self._first)
        clock.lap("factorisation")
        if kernel.fit_on == "references":
            self._whitenings[id(kernel)] = kernel, whitening
        return whitening


class Samples:
    """Training samples X and test samples against references, and their distances, for any base kernel.

    X are the targets, followed by the outliers if these ``repel``. Without ``reference`` (a ReferenceMap or ReferenceKernel) it is the
    plain base kernel on them. Sets of generated references that were met before, in another fold, are found again in
    ``reference_sets``.
    """

    def __init__(self, rows: TrainingRows, X_test, reference=None, reference_sets=None, clock=None, repel=False):
        self.clock = clock or Clock()
        self._rows = rows
        self.outliers = rows.outliers.size if repel else 0
        X = rows.X[np.concatenate([rows.targets, rows.outliers]) if self.outliers else rows.targets]
        self.X, self.n = X, X.shape[0]
        self.Z = np.concatenate([X, X_test])
        self.references: ReferenceSet | None = None
        if reference is not None:
            drawn = as_strategy(reference.references).draw(rows, _random_state(reference.random_state))
            targets = self.n if np.array_equal(drawn.indices[: self.n], rows.targets) else 0
            self.references = _reference_set(drawn, reference, targets, {} if reference_sets is None else reference_sets)
        self._features_of_X: dict[int, np.ndarray] = {}  # by id of the kernel, which the caller holds
        self._ready: dict[int, tuple[Any, Any]] = {}  # a kernel and what it resolved to, by id
        self._distances: dict[int, np.ndarray] = {}  # of Z[begin:] to the references (or to X), by begin

    def grams(self, kernels) -> Grams:
        """The kernel matrices for each of some base kernels."""
        K_ZX = np.empty((len(kernels), len(self.Z), self.n))
        diag_test = np.empty((len(kernels), len(self.Z) - self.n))
        for kernel, into, diag in zip(kernels, K_ZX, diag_test, strict=True):
            self._fill(kernel, into, diag)
            self.clock.lap("kernels" if self.references is None else "products")
        return Grams(K_ZX[:, : self.n], K_ZX[:, self.n :], diag_test)

    def _fill(self, kernel, K_ZX, diag_test):
        """Write k(Z, X) and the diagonal of the test samples, for one base kernel."""
        if self.references is None:
            fitted = self._resolved(kernel)
            K_ZX[:], diag_test[:] = self._values(fitted, self.X, 0), fitted.diag(self.Z[self.n :])
            return
        references, fitted = self.references, self._resolved(kernel)
        K_ZR = self._values(fitted, references.R, references.targets)
        self.clock.lap("kernels")
        whitening = references.whitening(kernel, fitted, self.clock)
        if references.targets:
            K_ZX[: self.n] = whitening.K_first
            K_ZX[self.n :], diag_test[:] = whitening.with_first(K_ZR)
        else:
            Phi = whitening.features(K_ZR)
            self._features_of_X[id(kernel)] = Phi[: self.n]
            np.matmul(Phi, Phi[: self.n].T, out=K_ZX)
            np.einsum("ij,ij->i", Phi[self.n :], Phi[self.n :], out=diag_test)

    def whole(self, kernel) -> tuple[np.ndarray, np.ndarray | None]:
        """k(Z, Z) for Z = the targets and all test samples, and their features where there are references, for one base kernel."""
        fitted = self._resolved(kernel)
        if self.references is None:
            return fitted(self.Z), None
        whitening = self.references.whitening(kernel, fitted, self.clock)
        Phi = whitening.features(self._values(fitted, self.references.R, 0))
        self.clock.lap("products")
        return Phi @ Phi.T, Phi

    def far(self, kernel) -> tuple[np.ndarray, float] | None:
        """K(z, X) and K(z, z) of a sample z that is far from all references, where the reference kernel maps all of these to one point.

        After ``grams`` of this kernel, which leaves the features of X.
        """
        if self.references is None or not kernel.vanishes:
            return None
        whitening = self.references.whitening(kernel, self._resolved(kernel), self.clock)
        K_zR = np.zeros((1, len(self.references.R)))
        if self.references.targets:
            K_zX, diag = whitening.with_first(K_zR)
            return K_zX[0], float(diag[0])
        phi = whitening.features(K_zR)[0]
        return self._features_of_X[id(kernel)] @ phi, float(phi @ phi)

    def precision(self, kernel) -> float:
        """What sums of kernel values are known to, as a share of their size."""
        return kernel.precision if self.references is None else PRECISION

    def rank(self, kernel) -> int | None:
        """The dimension of the map for one base kernel; None for the plain kernel, which has no finite map."""
        if self.references is None:
            return None
        return self.references.whitening(kernel, self._resolved(kernel), self.clock).rank

    def _resolved(self, kernel):
        """The kernel with its width fixed by the references or by the targets, as it asks."""
        if id(kernel) not in self._ready:
            self._ready[id(kernel)] = kernel, self._resolve(kernel)
        return self._ready[id(kernel)][1]

    def _resolve(self, kernel):
        if self.references is None:
            return kernel.resolve(self._rows)
        return kernel.in_map().resolve(self.references.rows if kernel.fit_on == "references" else self._rows)

    def _values(self, kernel, R, begin):
        """k(Z[begin:], R)."""
        if not kernel.shares_distances:
            return kernel(self.Z[begin:], R)
        if begin not in self._distances:
            self._distances[begin] = self._measured(self.Z[begin:], R)
            self.clock.lap("distances")
        return kernel.of_squared_distances(self._distances[begin])

    def _measured(self, Z, R):
        """All distances to the references, in one product with those between the references where these are new too."""
        if self.references is None or self.references.distances is not None:
            return negative_squared_distances(Z, R)
        D = negative_squared_distances(np.concatenate([Z, R]), R)
        among = D[len(Z) :].copy()  # which may live on without those of Z
        np.fill_diagonal(among, 0.0)
        self.references.distances = among
        return D[: len(Z)]


def _reference_set(drawn, reference, targets, known):
    """The set of these references; the same object where generated ones are drawn again."""
    R = drawn.vectors.toarray() if sp.issparse(drawn.vectors) else drawn.vectors
    key = (reference.center, reference.eigenvalue_floor, R.shape, R.tobytes()) if (drawn.indices == GENERATED).all() else None
    if key is not None and key in known:
        return known[key]
    references = ReferenceSet(R, reference.center, reference.eigenvalue_floor, targets)
    if key is not None:
        known[key] = references
    return references


_THREAD = threading.local()
"""One RandomState in each thread, seeded anew for every draw: making a new one costs ten times as much."""


def _random_state(given):
    """What to draw references with, the same in every fold: for a seed that of the thread, else a copy of what is given."""
    if not isinstance(given, numbers.Integral):
        return check_random_state(copy.deepcopy(given))
    if not hasattr(_THREAD, "random_state"):
        _THREAD.random_state = np.random.RandomState(0)
    _THREAD.random_state.seed(given)
    return _THREAD.random_state
