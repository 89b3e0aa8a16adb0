"""One fold of a search: each piece of shared work once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from .._factor import whitened
from .._validation import target_mask
from ..kernels import negative_squared_distances, squared_norms
from ..references import TrainingRows, as_strategy
from .candidates import Shared
from .paths import decision_paths


@dataclass(frozen=True)
class Scores:
    """Of some candidates on one fold: their numbers, test scores, and seconds of fitting and scoring (shared work split)."""

    candidates: np.ndarray
    scores: np.ndarray
    fit_time: np.ndarray
    score_time: np.ndarray


def evaluate(parts, X, y, train, test, scoring) -> Scores:
    """Fit the parts of a plan on one training fold and score them on its test fold."""
    fold = _Fold(X, y, train, test)
    rows = [row for part in parts for row in (_shared_rows if isinstance(part, Shared) else _alone_rows)(part, fold, scoring)]
    candidates, scores, fit_time, score_time = (np.array(column) for column in zip(*rows, strict=True))
    return Scores(candidates, scores, fit_time, score_time)


def _alone_rows(part, fold, scoring):
    start = time.perf_counter()
    model = part.configured().fit(fold.X_train, fold.y_train)
    fitted = time.perf_counter()
    score = scoring.of_model(model, fold.X_test, fold.y_test)
    return [(part.candidate, score, fitted - start, time.perf_counter() - fitted)]


def _shared_rows(part, fold, scoring):
    """(candidate, score, fit time, score time) for every candidate of a Shared group."""
    rows: list[tuple] = []
    start = time.perf_counter()
    samples = fold.samples(part)
    if samples is None:
        return [row for alone in part.members for row in _alone_rows(alone, fold, scoring)]
    for axis in part.axes:
        K, K_test, diag_test = samples.grams(axis.kernel)
        (decisions,) = decision_paths(K, [part.formulation(axis)], K_test, diag_test)
        fitted = time.perf_counter()
        scores = scoring.of_decisions(decisions, fold.X_test, fold.y_test)
        end = time.perf_counter()
        share = len(axis.candidates)
        rows.extend((c, s, (fitted - start) / share, (end - fitted) / share) for c, s in zip(axis.candidates, scores, strict=True))
        start = end
    return rows


class _Fold:
    """One split of the data, with what was computed on it so far."""

    def __init__(self, X, y, train, test):
        self.X_train, self.X_test = _safe_indexing(X, train), _safe_indexing(X, test)
        self.y_train: Any = None if y is None else _safe_indexing(y, train)
        self.y_test: Any = None if y is None else _safe_indexing(y, test)
        self._prefixes: dict = {}

    def samples(self, part):
        """The preprocessed samples of this fold against the references of a group; None where they are sparse."""
        X_train, X_test = self._preprocessed(part)
        if sp.issparse(X_train):
            return None
        is_target = target_mask(X_train, self.y_train)
        rows = TrainingRows(X_train, np.flatnonzero(is_target), np.flatnonzero(~is_target))
        return Samples(rows, X_test, part.reference)

    def _preprocessed(self, part):
        if part.key not in self._prefixes:
            X_train, X_test = self.X_train, self.X_test
            for step in part.prefix:
                step = clone(step)
                X_train, X_test = step.fit_transform(X_train, self.y_train), step.transform(X_test)
            if not sp.issparse(X_train):
                X_train, X_test = (np.ascontiguousarray(X, dtype=np.float64) for X in (X_train, X_test))
            self._prefixes[part.key] = X_train, X_test
        return self._prefixes[part.key]


class Samples:
    """Training targets X and test samples T against references R, and their distances, for any base kernel.

    Without ``reference`` (a ReferenceMap or ReferenceKernel) the targets are their own references and nothing is centred:
    the plain base kernel.
    """

    def __init__(self, rows: TrainingRows, X_test, reference=None):
        self.reference = reference
        self.X = rows.X[rows.targets]
        self.n = self.X.shape[0]
        self.Z = np.vstack([self.X, X_test])
        self.R = self.X
        if reference is not None:
            self.R = as_strategy(reference.references).draw(rows, check_random_state(reference.random_state)).vectors
        self._distances: Any = None

    def grams(self, kernel):
        """K (n × n), K_test (t × n) and the diagonal of the test samples, for one base kernel."""
        if self.reference is None:
            fitted = kernel.fit(self.X)
            K_ZX = self._values(fitted)[0]
            return K_ZX[: self.n], K_ZX[self.n :], fitted.diag(self.Z[self.n :])
        fitted = kernel.fit(self.R if kernel.fit_on == "references" else self.X)
        K_ZR, K_RR = self._values(fitted)
        Phi, _ = whitened(K_RR, K_ZR, self.reference.center, self.reference.eigenvalue_floor)
        K_ZX = Phi @ Phi[: self.n].T
        return K_ZX[: self.n], K_ZX[self.n :], squared_norms(Phi[self.n :])

    def _values(self, kernel):
        """k(Z, R) and k(R, R) (the latter only for a reference kernel)."""
        if not hasattr(kernel, "of_squared_distances"):
            return kernel(self.Z, self.R), kernel(self.R) if self.reference is not None else None
        if self._distances is None:
            D_ZR = negative_squared_distances(self.Z, self.R)
            self._distances = D_ZR, negative_squared_distances(self.R) if self.reference is not None else None
        return tuple(None if D is None else kernel.of_squared_distances(D) for D in self._distances)
