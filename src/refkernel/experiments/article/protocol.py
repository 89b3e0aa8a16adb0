"""The article's protocol, frozen: what is run, with which seeds, and how each part is solved; and the run of one unit, or of all.

One *unit* is a task, a split and a repetition. Within it, all variants, classifiers and routes meet the same folds and the same
references, so that comparisons are paired. Problems that are mathematically the same are solved once:

- A one-class SVM has the same dual in both routes (the kernel matrix of the map's features is the reference kernel).
- NPT, the base of the mapping route, is case 1.
- SVDD's nu (kernel route) and C (mapping route) are two grids on one path: C = 1 / (nu n).

The parameter is nu for the kernel SVDD and the one-class SVM, and C for the linear SVDD of the mapping route, as in the authors' code. With
``solver="article"`` the kernel SVDD is solved exactly and the others with LIBSVM's start and stopping rule, on which the printed numbers of
the degenerate one-class SVMs depend; ``solver="exact"`` solves all to the certificate.
"""

import functools
import itertools
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ..._core.progress import Clock
from ..._core.rows import TrainingRows
from ..._core.threads import one_blas_thread
from ..._core.types import RandomStateLike, StrPath
from ...datasets import N_SPLITS, Split, list_tasks, load_task
from ...kernels import RBF, Kernel
from ...maps import ReferenceKernel
from ...metrics import geometric_mean
from ...model_selection import Formulation, decision_paths
from ...model_selection.grams import Grams, Samples
from ...model_selection.scoring import as_scoring, rates
from ...references import Strategy, case
from ..units import run_units

SCALES = (0.1, 1.0, 10.0, 100.0, 1000.0)
VALUES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
FOLDS = 5
EIGENVALUE_FLOOR = 1e-6
LIBSVM_TOLERANCE = 1e-3
CLASSIFIER_NAMES = {"svdd": "SVDD", "ocsvm": "OC-SVM"}
VARIANT_NAMES = {"base": "Base", **{f"case{k}": f"Case {k}" for k in range(1, 8)}}
ARTICLE_CLASSIFIERS, VARIANTS = tuple(CLASSIFIER_NAMES), tuple(VARIANT_NAMES)
ROUTES = ("kernel", "mapping")
SOLVERS = ("article", "exact")
KERNELS = tuple(RBF(scale=scale) for scale in SCALES)
TIE_DECIMALS = 12  # validation scores that agree to this many decimals differ by rounding only
Fold: TypeAlias = tuple[np.ndarray, np.ndarray]  # rows to train on, and rows to test on
Cell: TypeAlias = tuple[str, str, str]  # classifier, route and variant
KEYS = ("classifier", "route", "variant", "task", "split", "repeat")
COLUMNS = (*KEYS, "gmean", "tpr", "tnr", "scale", "parameter", "rank", "seed", "seconds")
GMEAN = as_scoring("gmean")
REFERENCES = {"base": None, **{f"case{k}": case(k) for k in range(1, 8)}}


@dataclass(frozen=True)
class Settings:
    """What decides the rows of a run; two runs with equal settings have equal rows."""

    splits: Literal["embedded", "authors"] = "embedded"
    tasks: tuple[str, ...] = ()
    variants: tuple[str, ...] = VARIANTS
    classifiers: tuple[str, ...] = ARTICLE_CLASSIFIERS
    routes: tuple[str, ...] = ROUTES
    splits_count: int = 5
    repeats: int = 5
    solver: str = "article"
    seed: int = 0

    def checked(self, data_dir: StrPath | None = None) -> "Settings":
        """These settings with all tasks where none is named, or a clear error."""
        if data_dir is not None and self.splits != "authors":
            raise ValueError(
                f"--data-dir {data_dir} is for the authors' .mat files, with --splits authors: both commands run the article's tasks. "
                f"For your own tables, use `refkernel benchmark --data-dir {data_dir}`."
            )
        known = tuple(task.name for task in list_tasks(self.splits))
        tasks = self.tasks or known
        for name, given, allowed in (
            ("tasks", tasks, known),
            ("variants", self.variants, VARIANTS),
            ("classifiers", self.classifiers, ARTICLE_CLASSIFIERS),
            ("routes", self.routes, ROUTES),
            ("solver", (self.solver,), SOLVERS),
        ):
            unknown = [value for value in given if value not in allowed]
            if unknown or not given:
                raise ValueError(f"{name}: {', '.join(unknown) or 'none'} given; choose from {', '.join(allowed)} (splits: {self.splits}).")
        if not 1 <= self.splits_count <= N_SPLITS:
            raise ValueError(f"splits-count={self.splits_count}: there are {N_SPLITS} splits, choose 1 to {N_SPLITS}.")
        if self.repeats < 1:
            raise ValueError(f"repeats={self.repeats}: at least 1 is needed.")
        return replace(self, tasks=tuple(task for task in known if task in tasks))

    def units(self) -> list["Unit"]:
        """All units, in the order of the rows."""
        return [Unit(*run, self.seed) for run in itertools.product(self.tasks, range(self.splits_count), range(self.repeats))]

    def cells(self) -> list[Cell]:
        """The cell of every row of a unit, in order."""
        cells, given = itertools.product(ARTICLE_CLASSIFIERS, ROUTES, VARIANTS), (self.classifiers, self.routes, self.variants)
        return [cell for cell in cells if all(name in names for name, names in zip(cell, given, strict=True))]


@dataclass(frozen=True)
class Unit:
    """One run of all cells: a task, a split and a repetition; its seeds follow from these and the run's seed alone."""

    task: str
    split: int
    repeat: int
    run_seed: int

    @property
    def key(self) -> dict[str, Any]:
        """The columns that identify the rows of this unit."""
        return {"task": self.task, "split": self.split, "repeat": self.repeat}

    @property
    def seeds(self) -> np.ndarray:
        """Seeds of the folds' permutation, of the references of each fold, and of the references of the final fit."""
        return np.random.SeedSequence([self.run_seed, *self.task.encode(), self.split, self.repeat]).generate_state(FOLDS + 2)

    def folds(self, n: int) -> list[Fold]:
        """(train, test) rows of a random FOLDS-fold split of n rows, each in the order of the data."""
        parts = np.array_split(np.random.RandomState(self.seeds[0]).permutation(n), FOLDS)
        return [(np.setdiff1d(np.arange(n), test), np.sort(test)) for test in parts]


def variant_name(code: str) -> str:
    """What tables and pages call a variant: "Base" (NPT in the mapping route, as in the article), "Case 1" …"""
    return VARIANT_NAMES.get(code, code)


def table_title(classifier: str, route: str) -> str:
    """What pages call one of the article's tables."""
    return f"{CLASSIFIER_NAMES.get(classifier, classifier)}, {route} route"


def formulations(route: str, solver: str) -> dict[str, Formulation]:
    """What to solve on a kernel matrix for each classifier of a route."""
    libsvm: dict[str, Any] = {"stopping": "libsvm", "tol": LIBSVM_TOLERANCE} if solver == "article" else {}
    svdd = Formulation("svdd", VALUES, "C", **libsvm) if route == "mapping" else Formulation("svdd", VALUES)
    return {"svdd": svdd, "ocsvm": Formulation("ocsvm", VALUES, **libsvm)}


def source(classifier: str, route: str, variant: str) -> Cell:
    """The cell whose computation serves this one: NPT is case 1, and a one-class SVM is the same in both routes."""
    variant = "case1" if (route, variant) == ("mapping", "base") else variant
    return classifier, "kernel" if classifier == "ocsvm" else route, variant


def reference_kernel(references: Strategy | None, random_state: RandomStateLike) -> ReferenceKernel | None:
    """The article's map on these references; None for the plain kernel."""
    if references is None:
        return None
    return ReferenceKernel(references=references, center=True, eigenvalue_floor=EIGENVALUE_FLOOR, random_state=random_state)


def first_best(scores: np.ndarray) -> tuple[int, ...]:
    """The index of the largest mean score; if several tie up to rounding, the first."""
    return tuple(int(i) for i in np.unravel_index(scores.round(TIE_DECIMALS).argmax(), scores.shape))


def score_columns(tpr: float, tnr: float) -> dict[str, float]:
    """The columns of a row that say how the choice did on the test set."""
    return {"gmean": float(geometric_mean(tpr, tnr)), "tpr": float(tpr), "tnr": float(tnr)}


def run_unit(unit: Unit, settings: Settings, data_dir: StrPath | None = None) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """The rows of one unit, and the seconds of its stages."""
    with one_blas_thread():
        start, clock = time.perf_counter(), Clock()
        data = load_task(unit.task, unit.split, splits=settings.splits, data_dir=data_dir)
        cells = settings.cells()
        needed, folds = {source(*cell) for cell in cells}, unit.folds(len(data.y_train))
        found: dict[Cell, dict[str, Any]] = {}
        for variant in dict.fromkeys(variant for _, _, variant in needed):
            pairs = sorted((c, r) for c, r, v in needed if v == variant)
            found |= _run_variant(unit.seeds, folds, settings.solver, data, variant, pairs, clock)
        seconds = (time.perf_counter() - start) / len(cells)
    facts = {**unit.key, "seed": int(unit.seeds[0]), "seconds": round(seconds, 6)}
    rows = []
    for classifier, route, variant in cells:
        result = found[source(classifier, route, variant)]
        rank = result["dimension"] if route == "mapping" else result["rank"]
        rows.append({"classifier": classifier, "route": route, "variant": variant, **facts, **result["scores"], "rank": rank})
    return rows, clock.stages


def _run_variant(
    seeds: np.ndarray, folds: list[Fold], solver: str, data: Split, variant: str, pairs: list[tuple[str, str]], clock: Clock
) -> dict[Cell, dict[str, Any]]:
    """The result of each cell of a variant for the (classifier, route) pairs, all on the same folds and references."""
    work = {pair: formulations(pair[1], solver)[pair[0]] for pair in pairs}
    scores = np.zeros((FOLDS, len(SCALES), len(pairs), len(VALUES)))
    for fold, (train, test) in enumerate(folds):
        y_test = data.y_train[test]
        samples = _samples(data.X_train[train], data.y_train[train], data.X_train[test], variant, seeds[1 + fold], clock)
        grams = samples.grams(KERNELS)
        decisions = np.concatenate(decision_paths(grams.K, list(work.values()), grams.K_test, grams.diag_test), axis=1)
        clock.lap("solving")
        scores[fold] = GMEAN.of_decisions(decisions.reshape(-1, y_test.size), None, y_test).reshape(scores.shape[1:])
        clock.lap("scoring")
    means = np.nanmean(scores, axis=0)
    best = [first_best(means[:, k]) for k in range(len(pairs))]
    samples = _samples(data.X_train, data.y_train, data.X_test, variant, seeds[1 + FOLDS], clock)
    final = functools.cache(lambda s: _grams_and_ranks(samples, KERNELS[s]))
    found = {}
    for pair, (s, v) in zip(pairs, best, strict=True):
        grams, ranks = final(s)
        (decisions,) = decision_paths(grams.K, [replace(work[pair], values=(VALUES[v],))], grams.K_test, grams.diag_test)
        clock.lap("solving")
        tpr, tnr = rates(decisions[0], data.y_test == 1)
        found[*pair, variant] = {"scores": {**score_columns(tpr[0], tnr[0]), "scale": SCALES[s], "parameter": VALUES[v]}, **ranks}
    return found


def _samples(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, variant: str, seed: int, clock: Clock) -> Samples:
    rows = TrainingRows(X, np.flatnonzero(y == 1), np.flatnonzero(y == -1))
    return Samples(rows, X_test, reference_kernel(REFERENCES[variant], int(seed)), clock=clock)


def _grams_and_ranks(samples: Samples, kernel: Kernel) -> tuple[Grams, dict[str, int]]:
    """The kernel matrices of the final fit; the rank of the training one, and the dimension of the map."""
    grams = samples.grams([kernel])
    rank = int(np.linalg.matrix_rank(grams.K[0], hermitian=True))
    dimension = samples.rank(kernel) or rank
    samples.clock.lap("ranks")
    return grams, {"rank": min(rank, dimension), "dimension": dimension}  # what exceeds the dimension is rounding


def run(settings: Settings, out: StrPath, *, data_dir: StrPath | None = None, **how: Any) -> dict[str, Any]:
    """Run the units that the folder ``out`` lacks, by ``jobs`` and ``progress`` of ``run_units``, and return what is in its run.json."""
    settings = settings.checked(data_dir)
    units, cells = settings.units(), settings.cells()
    compute = functools.partial(run_unit, settings=settings, data_dir=data_dir)
    facts = {"fits": len(units) * len(cells) * (FOLDS * len(SCALES) * len(VALUES) + 1)}
    return run_units(compute, units, len(cells), COLUMNS, asdict(settings), out, facts=facts, **how)
