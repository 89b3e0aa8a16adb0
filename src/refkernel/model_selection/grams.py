"""Kernel matrices of one fold, for any base kernel: references, distances and factorisations computed once."""

from __future__ import annotations

import copy
import numbers
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from .._distances import negative_squared_distances
from .._factor import Whitening, distinct_rows, first_of_each
from .._memory import keep_freed_memory
from .._timing import Clock
from .._training import TrainingRows
from .._typing import RandomStateLike
from ..kernels import Kernel
from ..kernels.base import PRECISION
from ..references import GENERATED, References
from ..references.base import strategy_of

__all__ = ["Grams", "ReferenceSet", "Samples"]


class Grams(NamedTuple):
    """For a stack of s kernels: K (s × n × n) of the training samples, K_test (s × t × n), and the diagonal of the t test samples.

    If ``far``, one more test sample follows the others: one far from all references.
    """

    K: np.ndarray
    K_test: np.ndarray
    diag_test: np.ndarray
    far: bool = False


class ReferenceSet:
    """Distinct reference vectors R, their distances, and their factorisation for each base kernel.

    If the first references are the training targets, ``targets`` holds the numbers of those whose inner products are wanted.
    """

    def __init__(self, R: np.ndarray, center: bool, floor: float, targets: np.ndarray | None) -> None:
        self.R, self.center, self.floor, self.holds_targets = R, center, floor, targets is not None
        self.rows = TrainingRows.of(R)
        self.distances: np.ndarray | None = None
        self._counts: np.ndarray | None = None
        self._first: Any = slice(0 if targets is None else targets.size)
        repeated = distinct_rows(R)
        if repeated is not None:
            distinct, which = repeated
            self.R, self._counts, self._first = (
                R[distinct],
                np.bincount(which).astype(np.float64),
                which[targets] if self.holds_targets else self._first,
            )
        self._whitenings: dict[int, tuple[Any, Whitening]] = {}  # by id; the kernel is kept alive, so that its id stays its own

    def whitening(self, kernel: Kernel, fitted: Kernel, clock: Clock) -> Whitening:
        """The factorisation for a resolved kernel; remembered if the kernel is resolved on these references."""
        if id(kernel) in self._whitenings:
            return self._whitenings[id(kernel)][1]
        shared = self.distances if fitted.shares_distances else None
        K_RR = fitted(self.R) if shared is None else fitted.of_squared_distances(shared)
        clock.lap("kernels")
        whitening = Whitening(K_RR, self.center, self.floor, self._counts, self._first)
        clock.lap("factorisation")
        if kernel.fit_on == "references":
            self._whitenings[id(kernel)] = kernel, whitening
        return whitening


class Samples:
    """Training and test samples of one fold, for kernel matrices of any base kernel.

    References, distances and factorisations are computed once and shared by all kernels.

    Parameters
    ----------
    rows : TrainingRows
        The training samples: targets and known outliers.
    X_test : ndarray of shape (t, n_features)
        The test samples.
    reference : ReferenceMap or ReferenceKernel, optional
        Where references come from; without it, matrices are those of the plain base kernel.
    reference_sets : dict, optional
        Remembers generated references from fold to fold; results do not depend on it.
    clock : Clock, optional
        Adds up seconds by stage.
    repel : bool, default=False
        Whether matrices hold the outliers too, after the targets.
    groups : ndarray of int of shape (n_targets,), optional
        A number from 0 on for each target, the same for equal ones. Equal targets then have one row, and ``counts`` holds their numbers.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> samples = rk.model_selection.Samples(rk.references.TrainingRows.of(X[:20]), X[20:], rk.ReferenceKernel())
    >>> samples.grams([rk.RBF(scale=1.0), rk.RBF(scale=10.0)]).K_test.shape
    (2, 10, 20)
    """

    def __init__(
        self,
        rows: TrainingRows,
        X_test: np.ndarray,
        reference: Any = None,
        reference_sets: dict[Any, ReferenceSet] | None = None,
        clock: Clock | None = None,
        repel: bool = False,
        groups: np.ndarray | None = None,
    ) -> None:
        keep_freed_memory()
        self.clock = clock or Clock()
        self._rows = rows
        self.outliers = rows.outliers.size if repel else 0
        solved = np.concatenate([rows.targets, rows.outliers]) if self.outliers else rows.targets
        self.X, self.counts, distinct = rows.X[solved], None, np.arange(solved.size)
        if groups is not None:
            if np.shape(groups) != solved.shape:
                raise ValueError(f"groups has shape {np.shape(groups)}; {solved.shape} was expected: one number for each target.")
            first, which = first_of_each(np.asarray(groups))
            if first.size < which.size and np.array_equal(self.X[first][which], self.X):  # a transformer may have told them apart
                self.X, self.counts, distinct = self.X[first], np.bincount(which).astype(np.float64), first
        self.n = len(self.X)
        self.Z = np.concatenate([self.X, X_test])
        self.references: ReferenceSet | None = None
        if reference is not None:
            drawn = strategy_of(reference.references).draw(rows, _random_state(reference.random_state))
            targets = distinct if np.array_equal(drawn.indices[: solved.size], solved) else None
            self.references = _reference_set(drawn, reference, targets, {} if reference_sets is None else reference_sets)
        self._ready: dict[int, tuple[Any, Any]] = {}  # a kernel and what it resolved to, by id
        self._distances: dict[tuple[int, bool], np.ndarray] = {}  # of Z[begin:] (and a far sample) to the references (or to X)

    def grams(self, kernels: Sequence[Kernel], far: bool = False) -> Grams:
        """Compute the kernel matrices for each of some base kernels.

        Parameters
        ----------
        kernels : sequence of Kernel
            The base kernels.
        far : bool, default=False
            Under a reference map, add a test sample far from all references, as the last one.

        Returns
        -------
        Grams
            K (s × n × n) of the training samples, K_test (s × t × n) and diag_test (s × t), for s kernels.
        """
        far = far and self.references is not None  # then one more row
        s, tested = len(kernels), len(self.Z) - self.n + far
        K, K_test, diag_test = np.empty((s, self.n, self.n)), np.empty((s, tested, self.n)), np.empty((s, tested))
        for kernel, k, k_test, diag in zip(kernels, K, K_test, diag_test, strict=True):
            self._fill(kernel, k, k_test, diag, far)
            self.clock.lap("kernels" if self.references is None else "products")
        return Grams(K, K_test, diag_test, far)

    def _fill(self, kernel: Kernel, K: np.ndarray, K_test: np.ndarray, diag_test: np.ndarray, far: bool) -> None:
        """Write k(X, X), the values of the test samples (and of a far one) and their diagonal, for one base kernel."""
        fitted = self._resolved(kernel)
        if self.references is None:
            self._fill_plain(fitted, K, K_test)
            diag_test[:] = fitted.diag(self.Z[self.n :])
            return
        references = self.references
        K_ZR = self._values(fitted, references.R, self.n if references.holds_targets else 0, far)
        self.clock.lap("kernels")
        whitening = references.whitening(kernel, fitted, self.clock)
        if references.holds_targets:
            K[:] = whitening.K_first
            K_test[:], diag_test[:] = whitening.with_first(K_ZR)
        else:
            Phi = whitening.features(K_ZR)
            train, test = Phi[: self.n], Phi[self.n :]
            np.matmul(train, train.T, out=K)  # each pair once
            np.matmul(test, train.T, out=K_test)
            np.einsum("ij,ij->i", test, test, out=diag_test)

    def _fill_plain(self, kernel: Kernel, K: np.ndarray, K_test: np.ndarray) -> None:
        """Write k(X, X) and the values of the test samples, without references."""
        if kernel.shares_distances:
            D = self._distances_to(self.X, 0)
            for part, into in ((D[: self.n], K), (D[self.n :], K_test)):
                found = kernel.of_squared_distances(part, out=into)
                if found is not into:
                    into[:] = found
        else:
            K_ZX = kernel(self.Z, self.X)
            K[:], K_test[:] = K_ZX[: self.n], K_ZX[self.n :]

    def whole(self, kernel: Kernel) -> tuple[np.ndarray, np.ndarray | None]:
        """Compute the kernel matrix of training and test samples together, for one base kernel.

        Parameters
        ----------
        kernel : Kernel
            The base kernel.

        Returns
        -------
        K : ndarray of shape (n + t, n + t)
            The kernel matrix, training samples first.
        Phi : ndarray of shape (n + t, rank) or None
            The features; None without references.
        """
        fitted = self._resolved(kernel)
        if self.references is None:
            return fitted(self.Z), None
        whitening = self.references.whitening(kernel, fitted, self.clock)
        Phi = whitening.features(self._values(fitted, self.references.R, 0))
        self.clock.lap("products")
        return Phi @ Phi.T, Phi

    def precision(self, kernel: Kernel) -> float:
        """Return the relative precision of sums of kernel values.

        Parameters
        ----------
        kernel : Kernel
            The base kernel.

        Returns
        -------
        float
            A share of the size of the sums.
        """
        return kernel.precision if self.references is None else PRECISION

    def rank(self, kernel: Kernel) -> int | None:
        """Return the dimension of the reference map.

        Parameters
        ----------
        kernel : Kernel
            The base kernel.

        Returns
        -------
        int or None
            The rank; None without references.
        """
        if self.references is None:
            return None
        return self.references.whitening(kernel, self._resolved(kernel), self.clock).rank

    def _resolved(self, kernel: Kernel) -> Kernel:
        """The kernel with its width fixed by the references or by the targets, as it asks."""
        if id(kernel) not in self._ready:
            self._ready[id(kernel)] = kernel, self._resolve(kernel)
        return self._ready[id(kernel)][1]

    def _resolve(self, kernel: Kernel) -> Kernel:
        if self.references is None:
            return kernel.resolve(self._rows)
        return kernel.in_map().resolve(self.references.rows if kernel.fit_on == "references" else self._rows)

    def _values(self, kernel: Kernel, R: np.ndarray, begin: int, far: bool = False) -> np.ndarray:
        """k(Z[begin:], R), with a row of zeros for a far sample at the end if asked for."""
        if kernel.shares_distances:
            return kernel.of_squared_distances(self._distances_to(R, begin, far))
        K = kernel(self.Z[begin:], R)
        return np.vstack([K, np.zeros((1, len(R)))]) if far else K

    def _distances_to(self, R: np.ndarray, begin: int, far: bool = False) -> np.ndarray:
        """-||z - r||² for Z[begin:], with a row for a far sample at the end if asked for; remembered."""
        if (begin, far) not in self._distances:
            D = self._measured(self.Z[begin:], R)
            self._distances[begin, far] = np.vstack([D, np.full((1, len(R)), -np.inf)]) if far else D
            self.clock.lap("distances")
        return self._distances[begin, far]

    def _measured(self, Z: np.ndarray, R: np.ndarray) -> np.ndarray:
        """Distances to the references, in one product with those among the references if these are not known yet."""
        if self.references is None or self.references.distances is not None:
            return negative_squared_distances(Z, R)
        D = negative_squared_distances(np.concatenate([Z, R]), R)
        among = D[len(Z) :].copy()  # a copy, so that the rows of Z can be freed
        np.fill_diagonal(among, 0.0)
        self.references.distances = among
        return D[: len(Z)]


def _reference_set(drawn: References, reference: Any, targets: np.ndarray | None, known: dict[Any, ReferenceSet]) -> ReferenceSet:
    """The set of these references; the same object if the same generated references are drawn again."""
    R = drawn.vectors.toarray() if sp.issparse(drawn.vectors) else drawn.vectors
    key = (reference.center, reference.eigenvalue_floor, R.shape, R.tobytes()) if (drawn.indices == GENERATED).all() else None
    if key is not None and key in known:
        return known[key]
    references = ReferenceSet(R, reference.center, reference.eigenvalue_floor, targets)
    if key is not None:
        known[key] = references
    return references


_THREAD = threading.local()
"""One RandomState in each thread, seeded again for every draw: creating a new one costs ten times as much."""


def _random_state(given: RandomStateLike) -> np.random.RandomState:
    """The same random numbers in every fold: the thread's own RandomState for a seed, a copy of anything else."""
    if not isinstance(given, numbers.Integral):
        return check_random_state(copy.deepcopy(given))
    if not hasattr(_THREAD, "random_state"):
        _THREAD.random_state = np.random.RandomState(0)
    _THREAD.random_state.seed(given)
    return _THREAD.random_state
