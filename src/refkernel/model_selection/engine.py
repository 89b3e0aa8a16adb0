"""One fold of a search: shared work is done once."""

from __future__ import annotations

import itertools
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import assert_all_finite

from .._dual.solver import WHOLE
from .._one_class import DOUBTS, check_values, is_indefinite
from .._sklearn import check_method_params, safe_indexing, safe_split
from .._timing import Clock
from .._training import TrainingRows
from .._validation import OUTLIER, target_mask
from .candidates import Alone, KernelAxis, Shared, final_step
from .grams import ReferenceSet, Samples
from .paths import SolvedPaths, solve_formulations
from .scoring import rates

__all__ = ["Rows", "Scores", "Task", "evaluate"]

STACK_ENTRIES = 2**20
"""Kernel matrices of several base kernels are solved together if they hold at most this many entries (8 MB)."""

NO_SHARES = np.full((1, 2), np.nan)
"""Of a search without made-up outliers, and of fits that failed."""


class Rows(NamedTuple):
    """Some candidates on one fold: their numbers and scores, the seconds that fitting and scoring one of them took (shared work is split
    evenly), and what a fit of each would warn about. If the fit failed, ``failure`` says why.

    With made-up outliers, ``shares`` holds the shares of normals accepted and of made-up outliers rejected (candidates × 2).
    """

    candidates: list[int]
    scores: np.ndarray
    fit_time: float
    score_time: float
    doubts: list[tuple[str, ...]]
    failure: str | None = None
    shares: np.ndarray = NO_SHARES


@dataclass(frozen=True)
class Scores:
    """Some candidates on one fold; ``stages`` holds the seconds that they took, by stage."""

    rows: list[Rows]
    stages: dict[str, float]


class Task(NamedTuple):
    """What every fold of a search shares: the samples, the scoring, what a failed fit scores, and parameters for ``fit``.

    Of the samples, ``given`` (all if None) are the user's; those after them are made-up outliers. If some of the user's rows repeat
    others, ``groups`` holds a number for each, the same for equal ones.
    """

    X: Any
    y: Any
    scoring: Any
    error_score: Any = "raise"
    fit_params: dict[str, Any] | None = None
    given: int | None = None
    groups: np.ndarray | None = None


def evaluate(
    parts: Sequence[Shared | Alone], task: Task, train: np.ndarray, test: np.ndarray, reference_sets: dict[Any, ReferenceSet]
) -> Scores:
    """Fit the parts of a plan on one training fold and score them on its test fold.

    ``reference_sets`` remembers generated references from fold to fold; results do not depend on what it holds.
    """
    fold = _Fold(task, train, test, reference_sets)
    rows = [found for part in parts for found in (_shared_rows(part, fold) if isinstance(part, Shared) else [_alone_row(part, fold)])]
    return Scores(rows, fold.clock.stages)


def _alone_row(part: Alone, fold: _Fold) -> Rows:
    """Fit and score one candidate on its own; if the fit fails, its score is ``error_score``."""
    scored = fold.task.error_score
    fit_time = 0.0
    try:
        model = part.configured()
        (X_train, y_train), (X_test, y_test) = fold.split_for(model)
        with warnings.catch_warnings():
            for category, _ in DOUBTS.values():
                if category is not UserWarning:
                    warnings.simplefilter("ignore", category)  # the search gives one warning for all
            model.fit(X_train, y_train, **fold.fit_params())
        fit_time = fold.clock.lap("alone")
        score, shares = fold.score_of(model, X_test, y_test)
    except Exception:
        if isinstance(scored, str):
            raise
        failed = np.array([float(scored)])
        return Rows([part.candidate], failed, fit_time or fold.clock.lap("alone"), 0.0, [()], traceback.format_exc())
    doubts = getattr(final_step(model), "_doubts", ())
    return Rows([part.candidate], np.array([score]), fit_time, fold.clock.lap("scoring"), [doubts], shares=shares)


def _shared_rows(part: Shared, fold: _Fold) -> list[Rows]:
    """The rows of all candidates of a group; if the group cannot be solved together, each is fitted alone."""
    try:
        samples = fold.samples(part)
        if samples is not None:
            return [_solved_rows(part, axes, samples, fold) for axes in _together(part.axes, _most_axes(samples))]
    except Exception:
        if isinstance(fold.task.error_score, str):
            raise
    return [_alone_row(alone, fold) for alone in part.members]


def _solved_rows(part: Shared, axes: list[KernelAxis], samples: Samples, fold: _Fold) -> Rows:
    """The rows of candidates on several base kernels with the same values of nu or C."""
    start = time.perf_counter()
    grams = samples.grams([axis.kernel for axis in axes], far=True)
    for number in np.flatnonzero(~grams.K.diagonal(axis1=1, axis2=2).any(axis=1)):
        check_values(grams.K[number].diagonal(), samples.X)
    solved = solve_formulations(grams.K, [part.formulation(axes[0], samples)], samples.outliers, samples.counts)
    precision = max(samples.precision(axis.kernel) for axis in axes)
    (decisions,) = solved.decisions(grams.K_test, grams.diag_test, precision)
    fold.clock.lap("solving")
    accepts_far = decisions[:, :, -1] >= 0 if grams.far else None
    doubts = _doubts(axes, samples, grams.K, solved, accepts_far)
    candidates = [c for axis in axes for c in axis.candidates]
    fit_time = (time.perf_counter() - start) / len(candidates)
    tested = decisions.reshape(len(candidates), -1)
    tested = tested[:, :-1] if grams.far else tested
    scores = fold.task.scoring.of_decisions(tested, fold.X_test, fold.y_test)
    return Rows(candidates, scores, fit_time, fold.clock.lap("scoring") / len(candidates), doubts, shares=fold.shares(tested))


def _doubts(
    axes: list[KernelAxis], samples: Samples, K: np.ndarray, solved: SolvedPaths, accepts_far: np.ndarray | None
) -> list[tuple[str, ...]]:
    """What a fit of each candidate would warn about, by the names of DOUBTS."""
    degenerate = solved.degenerate
    found = {"not converged": ~solved.converged, "degenerate": degenerate}
    if samples.references is None and samples.n <= WHOLE:
        indefinite = np.array([is_indefinite(axis.kernel, k.view) for axis, k in zip(axes, K, strict=True)])
        found["indefinite"] = np.broadcast_to(indefinite[:, None], degenerate.shape)
    if accepts_far is not None:
        vanishes = np.array([axis.kernel.vanishes for axis in axes])
        found["far samples"] = accepts_far & ~degenerate & vanishes[:, None]
    named = {name: where.ravel().tolist() for name, where in found.items() if where.any()}
    if not named:
        return [()] * degenerate.size
    return [tuple(itertools.compress(named, doubted)) for doubted in zip(*named.values(), strict=True)]


def _most_axes(samples: Samples) -> int:
    return STACK_ENTRIES // max(1, len(samples.Z) * samples.n)


def _together(axes: list[KernelAxis], most: int) -> list[list[KernelAxis]]:
    """Runs of axes with the same values of the same parameter, of at most ``most`` axes each (at least one)."""
    runs: list[list[KernelAxis]] = []
    for axis in axes:
        if runs and len(runs[-1]) < most and (runs[-1][0].parameter, runs[-1][0].values) == (axis.parameter, axis.values):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return runs


class _Fold:
    """One split of the data, and what was computed on it so far."""

    def __init__(self, task: Task, train: np.ndarray, test: np.ndarray, reference_sets: dict[Any, ReferenceSet]) -> None:
        self.clock = Clock()
        self.task = task
        self._train, self._test = train, test
        self.X_train, self.X_test = _rows(task.X, train), _rows(task.X, test)
        self.y_train: Any = None if task.y is None else task.y[train]
        self.y_test: Any = None if task.y is None else task.y[test]
        self.is_target = target_mask(train, self.y_train, warn=False)
        self._prefixes: dict[Any, tuple[Any, Any]] = {}
        self._reference_sets = reference_sets

    def samples(self, part: Shared) -> Samples | None:
        """The preprocessed samples of this fold with the references of a group; None if they are sparse."""
        X_train, X_test = self._preprocessed(part)
        if sp.issparse(X_train):
            return None
        rows = TrainingRows(X_train, np.flatnonzero(self.is_target), np.flatnonzero(~self.is_target))
        apart = part.repel or part.classifier.stopping == "libsvm"  # whose rule depends on every move
        groups = None if apart or self.task.groups is None else self.task.groups[np.asarray(self._train)][rows.targets]
        self.clock.lap("preprocessing")
        return Samples(rows, X_test, part.reference, self._reference_sets, self.clock, part.repel, groups)

    def split_for(self, model: Any) -> tuple[Any, Any]:
        """(X, y) to train on and to test on; for a kernel matrix, the rows and columns that the model takes."""
        X, y = self.task.X, self.task.y
        return safe_split(model, X, y, self._train), safe_split(model, X, y, self._test, self._train)

    def fit_params(self) -> dict[str, Any]:
        """The parameters for ``fit``; those with one value for each sample are cut to the training fold."""
        samples = self.task.X if self.task.given is None else range(self.task.given)
        return check_method_params(samples, self.task.fit_params, indices=self._train) if self.task.fit_params else {}

    def score_of(self, model: Any, X_test: Any, y_test: Any) -> tuple[float, np.ndarray]:
        """The score of a fitted model, and its shares."""
        if self.task.given is None:
            return self.task.scoring.of_model(model, X_test, y_test), NO_SHARES
        decisions = np.reshape(model.decision_function(X_test), (1, -1))
        return float(self.task.scoring.of_decisions(decisions, X_test, y_test)[0]), self.shares(decisions)

    def shares(self, decisions: np.ndarray) -> np.ndarray:
        """Of each row of decision values: the share of normals accepted and of made-up outliers rejected."""
        if self.task.given is None:
            return NO_SHARES
        is_target = self.y_test != OUTLIER
        counted = is_target | (self._test >= self.task.given)  # known outliers are neither
        return np.column_stack(rates(decisions[:, counted], is_target[counted]))

    def _preprocessed(self, part: Shared) -> tuple[Any, Any]:
        if part.key not in self._prefixes:
            X_train, X_test = self.X_train, self.X_test
            for step in part.prefix:
                step = clone(step)
                X_train, X_test = step.fit_transform(X_train, self.y_train), step.transform(X_test)
            if not sp.issparse(X_train):
                X_train, X_test = (np.ascontiguousarray(X, dtype=np.float64) for X in (X_train, X_test))
                if X_train.ndim == 2 and X_train.shape[1] == 0:
                    raise ValueError(f"X has 0 features (shape={X_train.shape}): nothing describes a sample.")
                for X in (X_train, X_test):
                    if not np.isfinite(X.sum()):  # a sum may overflow even if all values are finite
                        assert_all_finite(X, input_name="X")
            self._prefixes[part.key] = X_train, X_test
        return self._prefixes[part.key]


def _rows(X: Any, indices: np.ndarray) -> Any:
    return X[indices] if isinstance(X, np.ndarray) else safe_indexing(X, indices)
