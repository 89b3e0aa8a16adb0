"""What the candidates of a grid share (the plan of a search), and one fold, on which shared work is done once."""

import contextlib
import itertools
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._core.factor import check_floor
from .._core.progress import Clock
from .._core.rows import TrainingRows
from .._core.solver import WHOLE
from .._core.threads import one_blas_thread
from .._core.unwrap import detector_of
from .._core.validation import OUTLIER, rows_of_params, safe_indexing, safe_split, target_mask
from ..classifiers.base import DOUBTS, OneClassClassifier, check_values, is_indefinite, resolved_threshold
from ..kernels import Kernel, Linear, as_kernel
from ..kernels.base import PRECISION
from ..maps import ReferenceFit, ReferenceMap
from .grams import ReferenceSet, Samples
from .paths import Formulation, SolvedPaths, solve_formulations
from .scoring import rates

KERNEL_AXES = ("scale", "sigma", "gamma", "degree", "coef0")  # parameters of a base kernel that change no references and no distances
STACK_ENTRIES = 2**20  # kernel matrices of several base kernels are solved together if they hold at most this many entries (8 MB)
NO_SHARES = np.full((1, 2), np.nan)  # of a search without made-up outliers, and of fits that failed


class Alone(NamedTuple):
    """A candidate that shares nothing with others: fitted and scored as it is."""

    estimator: Any
    params: dict[str, Any]
    candidate: int


@dataclass
class KernelAxis:
    """One base kernel and the candidates on it, with the value of nu or C of each."""

    kernel: Any
    parameter: str
    members: list[Alone] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


@dataclass
class Shared:
    """Candidates that share preprocessing, references and distances."""

    prefix: list[Any]  # the transformers before the kernel
    key: Any  # the same for equal ones
    reference: Any  # the map or reference kernel, if any
    kernel: Kernel
    classifier: Any
    names: dict[str, str]  # which axis (nu, C or one of the base kernel's own) each name in the grid stands for
    axes: list[KernelAxis] = field(default_factory=list)


class Rows(NamedTuple):
    """Candidates on one fold: scores, seconds of one, failure; ``shares`` of normals accepted and of made-up outliers rejected."""

    candidates: list[int]
    scores: np.ndarray
    fit_time: float
    score_time: float
    doubts: list[tuple[str, ...]]
    failure: str | None = None
    shares: np.ndarray = NO_SHARES


class Task(NamedTuple):
    """What every fold of a search shares. Of the samples, ``given`` (all if None) are the user's; made-up outliers follow them."""

    X: Any
    y: Any
    scoring: Any
    error_score: Any
    fit_params: dict[str, Any]
    given: int | None = None


def configured(estimator: Any, params: dict[str, Any]) -> Any:
    """A new estimator with a candidate's parameters; a fit may change their values without touching the grid's."""
    return clone(estimator).set_params(**{name: clone(value, safe=False) for name, value in params.items()})


def plan(estimator: Any, candidates: Iterable[dict[str, Any]]) -> list[Shared | Alone]:
    """Group the candidates of a grid by what they share."""
    groups: dict[Any, list[Alone]] = defaultdict(list)
    shared = _shared(estimator)
    names = {} if shared is None else shared.names
    for number, params in enumerate(candidates):
        structure = tuple((name, id(value)) for name, value in sorted(params.items()) if name not in names)
        groups[structure].append(Alone(estimator, params, number))
    return [part for members in groups.values() for part in _parts(estimator, names, members)]


def _parts(estimator: Any, names: dict[str, str], alone: list[Alone]) -> list[Any]:
    """The group of candidates that differ along the axes only, and those that share nothing."""
    shared = _shared(configured(estimator, {name: value for name, value in alone[0].params.items() if name not in names}))
    if shared is None or names != shared.names:
        return alone
    classifier, fixed = shared.classifier, shared.kernel.get_params(deep=False)
    axes: dict[Any, KernelAxis] = {}
    for member in alone:
        along = {names[name]: value for name, value in member.params.items() if name in names}
        parameter, value = classifier._solved_parameter(along.pop("nu", classifier.nu), along.pop("C", getattr(classifier, "C", None)))
        key = (parameter, tuple(sorted((name, _key(v)) for name, v in along.items())))
        axis = axes.setdefault(key, KernelAxis(type(shared.kernel)(**fixed | along), parameter))
        axis.members.append(member)
        axis.values.append(value)
    unshared: list[Alone] = []
    for axis in axes.values():
        kernel = axis.kernel if shared.reference is None else as_kernel(classifier.kernel)
        if resolved_threshold(classifier.threshold, kernel) == "loo":  # paths do not leave targets out
            unshared += axis.members
        else:
            shared.axes.append(axis)
    return [shared, *unshared] if shared.axes else unshared


def _shared(estimator: Any) -> Shared | None:
    """The estimator's parts, if it is a classifier of this package on a kernel that can be shared; else None."""
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    *prefix, (name, classifier) = ((name, step) for name, step in steps if step not in (None, "passthrough"))
    if not isinstance(classifier, OneClassClassifier):
        return None
    final = f"{name}__" if name else ""
    try:
        classifier._check_params()
        kernel, reference, where = as_kernel(classifier.kernel), None, f"{final}kernel__"
        if isinstance(kernel, ReferenceFit):
            reference, where = kernel, f"{final}kernel__kernel__"
        elif prefix and isinstance(prefix[-1][1], ReferenceMap) and type(kernel) is Linear:
            name, reference = prefix.pop()
            where = f"{name}__kernel__"
        if reference is not None:
            check_floor(reference.eigenvalue_floor)
        base = kernel if reference is None else as_kernel(reference.kernel)
    except ValueError:
        return None  # its own fit says what is wrong
    if kernel._pairwise:
        return None
    names: dict[str, str] = {f"{final}{name}": name for name in ("nu", "C") if name in classifier.get_params(deep=False)}
    names |= {f"{where}{axis}": axis for axis in KERNEL_AXES if axis in base.get_params(deep=False)}
    transformers = [step for _, step in prefix]
    return Shared(transformers, tuple(map(_key, transformers)), reference, base, classifier, names)


def _key(value: Any) -> Any:
    """Equal for values that are the same: by parameters for estimators, by identity for what cannot be compared."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return type(value), tuple((name, _key(v)) for name, v in sorted(value.get_params(deep=False).items()))
    return value if getattr(value, "__hash__", None) else id(value)


def evaluate(
    parts: Sequence[Shared | Alone], task: Task, train: np.ndarray, test: np.ndarray, reference_sets: dict[Any, ReferenceSet]
) -> tuple[list[Rows], dict[str, float]]:
    """Fit the parts of a plan on one training fold and score them on its test fold; also the seconds of each stage."""
    with one_blas_thread():  # matrices are small, and other folds use the other cores
        fold = _Fold(task, train, test, reference_sets)
        rows = [found for part in parts for found in (_shared_rows(part, fold) if isinstance(part, Shared) else [_alone_row(part, fold)])]
    return rows, fold.clock.stages


def _alone_row(part: Alone, fold: "_Fold") -> Rows:
    """Fit and score one candidate on its own; if the fit fails, its score is ``error_score``."""
    task, fit_time = fold.task, 0.0
    try:
        model = configured(part.estimator, part.params)
        X_train, y_train = safe_split(model, task.X, task.y, fold.train)
        X_test, y_test = safe_split(model, task.X, task.y, fold.test, fold.train)
        params = rows_of_params(task.X if task.given is None else range(task.given), task.fit_params, fold.train)
        with warnings.catch_warnings():
            for category in {category for category, _ in DOUBTS.values()} - {UserWarning}:
                warnings.simplefilter("ignore", category)  # the search gives one warning for all
            model.fit(X_train, y_train, **params)
        fit_time = fold.clock.lap("alone")
        if task.given is None:
            scores, shares = np.array([float(task.scoring.scorer(model, X_test, y_test))]), NO_SHARES
        else:
            decisions = np.reshape(model.decision_function(X_test), (1, -1))
            scores, shares = task.scoring.of_decisions(decisions, X_test, y_test), fold.shares(decisions)
    except Exception:
        if isinstance(task.error_score, str):
            raise
        failed = np.array([float(task.error_score)])
        return Rows([part.candidate], failed, fit_time or fold.clock.lap("alone"), 0.0, [()], traceback.format_exc())
    doubts = getattr(detector_of(model), "_doubts", ())
    return Rows([part.candidate], scores, fit_time, fold.clock.lap("scoring"), [doubts], shares=shares)


def _shared_rows(part: Shared, fold: "_Fold") -> list[Rows]:
    """The rows of all candidates of a group; if the group cannot be solved together, each is fitted alone, and says why."""
    with contextlib.suppress(Exception):
        samples = fold.samples(part)
        if samples is not None:
            most = max(1, STACK_ENTRIES // max(1, len(samples.Z) * samples.n))
            runs = [list(run) for _, run in itertools.groupby(part.axes, key=lambda axis: (axis.parameter, axis.values))]
            stacks = [run[k : k + most] for run in runs for k in range(0, len(run), most)]
            return [_solved_rows(part.classifier, axes, samples, fold) for axes in stacks]
    return [_alone_row(member, fold) for axis in part.axes for member in axis.members]


def _solved_rows(classifier: Any, axes: list[KernelAxis], samples: Samples, fold: "_Fold") -> Rows:
    """The rows of candidates on several base kernels with the same values of nu or C."""
    start = time.perf_counter()
    grams = samples.grams([axis.kernel for axis in axes])
    for K in grams.K:
        check_values(K.diagonal(), samples.X)
    solver = {name: getattr(classifier, name) for name in ("tol", "stopping", "max_iter")}
    C_negative = classifier.C_negative if samples.outliers else None
    formulation = Formulation(classifier.classifier.name, axes[0].values, axes[0].parameter, **solver, C_negative=C_negative)
    solved = solve_formulations(grams.K, [formulation], samples.outliers)
    precision = max(axis.kernel._precision for axis in axes) if samples.references is None else PRECISION
    (decisions,) = solved.decisions(grams.K_test, grams.diag_test, precision)
    fold.clock.lap("solving")
    doubts = _doubts(axes, samples, grams.K, solved, decisions)
    candidates = [member.candidate for axis in axes for member in axis.members]
    fit_time = (time.perf_counter() - start) / len(candidates)
    tested = decisions.reshape(len(candidates), -1)[:, : decisions.shape[2] - samples.far]
    scores = fold.task.scoring.of_decisions(tested, fold.X_test, fold.y_test)
    return Rows(candidates, scores, fit_time, fold.clock.lap("scoring") / len(candidates), doubts, shares=fold.shares(tested))


def _doubts(axes: list[KernelAxis], samples: Samples, K: np.ndarray, solved: SolvedPaths, decisions: np.ndarray) -> list[tuple[str, ...]]:
    """What a fit of each candidate would warn about, by the names of DOUBTS."""
    found = {"not converged": ~solved.converged, "degenerate": solved.degenerate}
    if samples.references is None and samples.n <= WHOLE:
        indefinite = np.array([is_indefinite(axis.kernel, k.view) for axis, k in zip(axes, K, strict=True)])
        found["indefinite"] = np.broadcast_to(indefinite[:, None], solved.degenerate.shape)
    if samples.far:
        vanishes = np.array([axis.kernel._vanishes for axis in axes])
        found["far samples"] = (decisions[:, :, -1] >= 0) & ~solved.degenerate & vanishes[:, None]
    return [tuple(itertools.compress(found, doubted)) for doubted in zip(*(where.flat for where in found.values()), strict=True)]


class _Fold:
    """One split of the data, and what was computed on it so far; ``reference_sets`` remembers generated references for all folds."""

    def __init__(self, task: Task, train: np.ndarray, test: np.ndarray, reference_sets: dict[Any, ReferenceSet]) -> None:
        self.task, self.train, self.test, self.clock = task, train, test, Clock()
        self.X_train, self.X_test = safe_indexing(task.X, train), safe_indexing(task.X, test)
        self.y_train, self.y_test = (None if task.y is None else task.y[part] for part in (train, test))
        self.is_target = target_mask(train, self.y_train, warn=False)
        self._prefixes: dict[Any, tuple[Any, Any]] = {}
        self._reference_sets = reference_sets

    def samples(self, part: Shared) -> Samples | None:
        """The preprocessed samples of this fold with the references of a group; None if sharing is not for them, or they are not usable."""
        if part.key not in self._prefixes:
            X_train, X_test = self.X_train, self.X_test
            for step in part.prefix:
                step = clone(step)
                X_train, X_test = step.fit_transform(X_train, self.y_train), step.transform(X_test)
            if not sp.issparse(X_train):
                X_train, X_test = (np.ascontiguousarray(X, dtype=np.float64) for X in (X_train, X_test))
            self._prefixes[part.key] = X_train, X_test
        X_train, X_test = self._prefixes[part.key]
        if sp.issparse(X_train) or X_train.ndim != 2 or not (X_train.size and np.isfinite(X_train).all() and np.isfinite(X_test).all()):
            return None
        rows = TrainingRows(X_train, np.flatnonzero(self.is_target), np.flatnonzero(~self.is_target))
        self.clock.lap("preprocessing")
        repel = getattr(part.classifier, "negatives", "ignore") == "repel"
        return Samples(rows, X_test, part.reference, self._reference_sets, self.clock, repel, far=True)

    def shares(self, decisions: np.ndarray) -> np.ndarray:
        """Of each row of decision values: the share of normals accepted and of made-up outliers rejected."""
        if self.task.given is None:
            return NO_SHARES
        is_target = np.asarray(self.y_test != OUTLIER)
        counted = is_target | (self.test >= self.task.given)  # known outliers are neither
        return np.column_stack(rates(decisions[:, counted], is_target[counted]))
