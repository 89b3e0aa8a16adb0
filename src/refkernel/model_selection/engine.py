"""One fold of a search: each piece of shared work once."""

from __future__ import annotations

import copy
import numbers
import threading
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import _safe_indexing, assert_all_finite, check_random_state
from sklearn.utils.metaestimators import _safe_split

from .._factor import Whitening, distinct_rows
from .._timing import Clock
from .._validation import target_mask
from ..kernels import negative_squared_distances, root_mean_squared_distance
from ..one_class import check_values
from ..references import GENERATED, TrainingRows, as_strategy
from ..references.base import MODERATE
from .candidates import Shared
from .paths import decision_paths

STACK_ENTRIES = 2**20
"""Kernel matrices of several base kernels are solved together, up to this many entries (8 MB)."""


@dataclass(frozen=True)
class Scores:
    """Of some candidates on one fold: their numbers, test scores, and seconds of fitting and scoring (shared work split).

    ``stages`` is where the time of the whole fold went.
    """

    candidates: np.ndarray
    scores: np.ndarray
    fit_time: np.ndarray
    score_time: np.ndarray
    stages: dict[str, float]


def evaluate(parts, X, y, train, test, scoring, reference_sets) -> Scores:
    """Fit the parts of a plan on one training fold and score them on its test fold.

    ``reference_sets`` remembers generated references from fold to fold; results do not depend on what it holds.
    """
    fold = _Fold(X, y, train, test, reference_sets, Clock())
    rows = [row for part in parts for row in (_shared_rows if isinstance(part, Shared) else _alone_rows)(part, fold, scoring)]
    candidates, scores, fit_time, score_time = (np.array(column) for column in zip(*rows, strict=True))
    return Scores(candidates, scores, fit_time, score_time, fold.clock.stages)


def _alone_rows(part, fold, scoring):
    model = part.configured()
    (X_train, y_train), (X_test, y_test) = fold.split_for(model)
    model.fit(X_train, y_train)
    fit_time = fold.clock.lap("alone")
    score = scoring.of_model(model, X_test, y_test)
    return [(part.candidate, score, fit_time, fold.clock.lap("scoring"))]


def _shared_rows(part, fold, scoring):
    """(candidate, score, fit time, score time) for every candidate of a Shared group."""
    samples = fold.samples(part)
    if samples is None:
        return [row for alone in part.members for row in _alone_rows(alone, fold, scoring)]
    rows: list[tuple] = []
    for axes in _together(part.axes, STACK_ENTRIES // max(1, len(samples.Z) * samples.n)):
        start = time.perf_counter()
        grams = samples.grams([axis.kernel for axis in axes])
        for K in grams.K:
            check_values(K.diagonal(), samples.X)
        (decisions,) = decision_paths(grams.K, [part.formulation(axes[0])], grams.K_test, grams.diag_test)
        fold.clock.lap("solving")
        candidates = [c for axis in axes for c in axis.candidates]
        fit_time = (time.perf_counter() - start) / len(candidates)
        scores = scoring.of_decisions(decisions.reshape(len(candidates), -1), fold.X_test, fold.y_test)
        score_time = fold.clock.lap("scoring") / len(candidates)
        rows.extend((c, s, fit_time, score_time) for c, s in zip(candidates, scores, strict=True))
    return rows


def _together(axes, most):
    """Runs of axes with the same values of the same parameter, of at most ``most`` axes each (at least one)."""
    runs: list[list] = []
    for axis in axes:
        if runs and len(runs[-1]) < most and (runs[-1][0].parameter, runs[-1][0].values) == (axis.parameter, axis.values):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return runs


class Grams(NamedTuple):
    """For a stack of s kernels: K (s × n × n) on the targets, K_test (s × t × n), and the diagonal of the test samples (s × t)."""

    K: np.ndarray
    K_test: np.ndarray
    diag_test: np.ndarray


class _Fold:
    """One split of the data, with what was computed on it so far."""

    def __init__(self, X, y, train, test, reference_sets, clock):
        self.clock = clock
        self._split = X, y, train, test
        self.X_train, self.X_test = _rows(X, train), _rows(X, test)
        self.y_train: Any = None if y is None else y[train]
        self.y_test: Any = None if y is None else y[test]
        self.is_target = target_mask(train, self.y_train, warn=False)
        self._prefixes: dict = {}
        self._reference_sets = reference_sets

    def samples(self, part):
        """The preprocessed samples of this fold against the references of a group; None where they are sparse."""
        X_train, X_test = self._preprocessed(part)
        if sp.issparse(X_train):
            return None
        rows = TrainingRows(X_train, np.flatnonzero(self.is_target), np.flatnonzero(~self.is_target))
        self.clock.lap("preprocessing")
        return Samples(rows, X_test, part.reference, self._reference_sets, self.clock)

    def split_for(self, model):
        """(X, y) to train and to test on; of a kernel matrix the rows and columns that the model takes."""
        X, y, train, test = self._split
        return _safe_split(model, X, y, train), _safe_split(model, X, y, test, train)

    def _preprocessed(self, part):
        if part.key not in self._prefixes:
            X_train, X_test = self.X_train, self.X_test
            for step in part.prefix:
                step = clone(step)
                X_train, X_test = step.fit_transform(X_train, self.y_train), step.transform(X_test)
            if not sp.issparse(X_train):
                X_train, X_test = (np.ascontiguousarray(X, dtype=np.float64) for X in (X_train, X_test))
                for X in (X_train, X_test):
                    if not np.isfinite(X.sum()):  # overflows where single values may not
                        assert_all_finite(X, input_name="X")
            self._prefixes[part.key] = X_train, X_test
        return self._prefixes[part.key]


class ReferenceSet:
    """Reference vectors R, each once, their distances, and their factorisation for each base kernel.

    ``targets``: so many of those given, which come first, are the targets.
    """

    def __init__(self, R, center, floor, targets):
        self.R, self.center, self.floor, self.targets = R, center, floor, targets
        self.fitted = _Widths(R)
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
        K_RR = fitted(self.R) if self.distances is None else fitted.of_squared_distances(self.distances)
        clock.lap("kernels")
        whitening = Whitening(K_RR, self.center, self.floor, self._counts, self._first)
        clock.lap("factorisation")
        if kernel.fit_on == "references":
            self._whitenings[id(kernel)] = kernel, whitening
        return whitening


class _Widths:
    """Kernels fitted on the same samples: their distances are measured once."""

    def __init__(self, X):
        self.X = X
        self._distance: float | None = None

    def __call__(self, kernel):
        if not hasattr(kernel, "of_width") or kernel.sigma is not None:
            return kernel.fit(self.X)
        if self._distance is None:
            self._distance = root_mean_squared_distance(self.X)
        return kernel.of_width(self._distance)


class Samples:
    """Training targets X and test samples against references, and their distances, for any base kernel.

    Without ``reference`` (a ReferenceMap or ReferenceKernel) it is the plain base kernel on the targets. Sets of generated
    references that were met before, in another fold, are found again in ``reference_sets``.
    """

    def __init__(self, rows: TrainingRows, X_test, reference=None, reference_sets=None, clock=None):
        self.clock = clock or Clock()
        X = rows.X[rows.targets]
        self.X, self.n = X, X.shape[0]
        self._fitted = _Widths(X)
        self.Z = np.concatenate([X, X_test])
        self.references: ReferenceSet | None = None
        if reference is not None:
            drawn = as_strategy(reference.references).draw(rows, _random_state(reference.random_state))
            targets = self.n if np.array_equal(drawn.indices[: self.n], rows.targets) else 0
            self.references = _reference_set(drawn, reference, targets, {} if reference_sets is None else reference_sets)
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

    def rank(self, kernel) -> int | None:
        """The dimension of the map for one base kernel; None for the plain kernel, which has no finite map."""
        if self.references is None:
            return None
        return self.references.whitening(kernel, self._resolved(kernel), self.clock).rank

    def _resolved(self, kernel):
        """The kernel with its width fixed by the references or by the targets, as it asks."""
        return self.references.fitted(kernel) if self.references is not None and kernel.fit_on == "references" else self._fitted(kernel)

    def _values(self, kernel, R, begin):
        """k(Z[begin:], R)."""
        if not hasattr(kernel, "of_squared_distances") or not MODERATE[0] < kernel.sigma < MODERATE[1]:
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


def _rows(X, indices):
    return X[indices] if isinstance(X, np.ndarray) else _safe_indexing(X, indices)
