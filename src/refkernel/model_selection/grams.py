"""Kernel matrices of one fold, for any base kernel: references, distances and factorisations computed once."""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._core.distances import negative_squared_distances, squared_norms
from .._core.factor import Whitening
from .._core.progress import Clock
from .._core.rows import TrainingRows
from ..kernels import Kernel
from ..references import GENERATED
from ..references.base import drawn


class Grams(NamedTuple):
    """Of a stack of s kernels: K (s × n × n) of the training samples, K_test (s × t × n), and the diagonal of the t test samples."""

    K: np.ndarray
    K_test: np.ndarray
    diag_test: np.ndarray


class ReferenceSet:
    """Reference vectors R, their distances, and their factorisation for each base kernel; the first may be the training samples."""

    def __init__(self, R: np.ndarray, center: bool, floor: float, samples: int) -> None:
        self.R, self.center, self.floor, self.samples = R, center, floor, samples
        self.rows = TrainingRows.of(R)
        self.distances: np.ndarray | None = None
        self._whitenings: dict[int, tuple[Any, Whitening]] = {}  # by id; the kernel is kept alive, so that its id stays its own

    def whitening(self, kernel: Kernel, fitted: Kernel, clock: Clock) -> Whitening:
        """The factorisation for a resolved kernel; remembered if the kernel is resolved on these references."""
        if id(kernel) in self._whitenings:
            return self._whitenings[id(kernel)][1]
        shared = self.distances if fitted._shares_distances else None
        K_RR = fitted(self.R) if shared is None else fitted._of_squared_distances(shared)
        clock.lap("kernels")
        whitening = Whitening(K_RR, self.center, self.floor, self.samples)
        clock.lap("factorisation")
        if kernel.fit_on == "references":
            self._whitenings[id(kernel)] = kernel, whitening
        return whitening


class Samples:
    """Training and test samples of one fold, for matrices of any base kernel (of its reference map if ``reference`` is given).

    ``reference_sets`` remembers generated references from fold to fold. Known outliers that ``repel`` follow the targets. If ``far``, a
    test sample far from all references follows the others.
    """

    def __init__(
        self,
        rows: TrainingRows,
        X_test: np.ndarray,
        reference: Any = None,
        reference_sets: dict[Any, ReferenceSet] | None = None,
        clock: Clock | None = None,
        repel: bool = False,
        far: bool = False,
    ) -> None:
        self.clock = clock or Clock()
        self._rows, self.far = rows, far and reference is not None
        self.outliers = rows.outliers.size if repel else 0
        solved = np.concatenate([rows.targets, rows.outliers]) if self.outliers else rows.targets
        self.X = rows.X[solved]
        self.n = len(self.X)
        _, first, which = np.unique(self.X + 0.0, axis=0, return_index=True, return_inverse=True)
        self._alike = first[which.ravel()] if len(first) < self.n else None  # of each sample the first that equals it
        self.Z = np.concatenate([self.X, X_test])
        self.references: ReferenceSet | None = None
        if reference is not None:
            found = drawn(reference.references, rows, copy.deepcopy(reference.random_state))
            R = found.vectors.toarray() if sp.issparse(found.vectors) else found.vectors
            samples = self.n if np.array_equal(found.indices[: self.n], solved) else 0
            self.references = ReferenceSet(R, reference.center, reference.eigenvalue_floor, samples)
            if reference_sets is not None and (found.indices == GENERATED).all():
                key = (reference.center, reference.eigenvalue_floor, R.shape, R.tobytes())
                self.references = reference_sets.setdefault(key, self.references)
        self._distances: dict[int, np.ndarray] = {}  # of Z[begin:] (and a far sample) to the references (or to X)

    def grams(self, kernels: Sequence[Kernel]) -> Grams:
        """The matrices of some base kernels."""
        found = [self._gram(kernel) for kernel in kernels]
        return Grams(*(np.stack(parts) if len(parts) > 1 else parts[0][None] for parts in zip(*found, strict=True)))

    def _gram(self, kernel: Kernel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """k(X, X), the values of the test samples and their diagonal, for one base kernel."""
        fitted, references = self._resolved(kernel), self.references
        if references is None:
            K_ZX, diag = self._values(fitted, self.X, 0), fitted.diag(self.Z[self.n :])
            self.clock.lap("kernels")
            return K_ZX[: self.n], K_ZX[self.n :], diag
        K_ZR = self._values(fitted, references.R, self.n if references.samples else 0)
        self.clock.lap("kernels")
        whitening = references.whitening(kernel, fitted, self.clock)
        if references.samples:
            K, (K_test, diag) = whitening.K_first, whitening.with_first(K_ZR)
            if self._alike is not None:  # samples that are equal must not differ by rounding: LIBSVM's rule would tell them apart
                K, K_test = K[np.ix_(self._alike, self._alike)], K_test[:, self._alike]
        else:
            Phi = whitening.features(K_ZR)
            train, test = Phi[: self.n], Phi[self.n :]
            K, K_test, diag = train @ train.T, test @ train.T, squared_norms(test)
        self.clock.lap("products")
        return K, K_test, diag

    def whole(self, kernel: Kernel) -> tuple[np.ndarray, np.ndarray | None]:
        """The kernel matrix of training and test samples together, and their features under a reference map."""
        fitted = self._resolved(kernel)
        if self.references is None:
            return fitted(self.Z), None
        whitening = self.references.whitening(kernel, fitted, self.clock)
        Phi = whitening.features(self._values(fitted, self.references.R, 0))
        self.clock.lap("products")
        return Phi @ Phi.T, Phi

    def rank(self, kernel: Kernel) -> int | None:
        """The dimension of the reference map; None without references."""
        if self.references is None:
            return None
        return self.references.whitening(kernel, self._resolved(kernel), self.clock).rank

    def _resolved(self, kernel: Kernel) -> Kernel:
        """The kernel with its width fixed by the references or by the targets, as it asks."""
        if self.references is None:
            return kernel._fitted(self._rows)
        return kernel._in_map()._fitted(self.references.rows if kernel.fit_on == "references" else self._rows)

    def _values(self, kernel: Kernel, R: np.ndarray, begin: int) -> np.ndarray:
        """k(Z[begin:], R), with a row of zeros for the far sample."""
        if kernel._shares_distances:
            return kernel._of_squared_distances(self._distances_to(R, begin))
        K = kernel(self.Z[begin:], R)
        return np.vstack([K, np.zeros((1, len(R)))]) if self.far else K

    def _distances_to(self, R: np.ndarray, begin: int) -> np.ndarray:
        """-||z - r||² for Z[begin:] and the far sample; remembered. The same product measures those among the references once."""
        if begin not in self._distances:
            Z, references = self.Z[begin:], self.references
            if references is None or references.distances is not None:
                D = negative_squared_distances(Z, R)
            else:
                D = negative_squared_distances(np.concatenate([Z, R]), R)
                references.distances = D[len(Z) :].copy()
                np.fill_diagonal(references.distances, 0.0)
            self._distances[begin] = np.vstack([D[: len(Z)], np.full((1, len(R)), -np.inf)]) if self.far else D[: len(Z)]
            self.clock.lap("distances")
        return self._distances[begin]
