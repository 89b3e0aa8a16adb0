"""The article's protocol, frozen: what is run, with which seeds, and how each part is solved.

One *unit* is a task, a split and a repetition. Within it, all variants, classifiers and routes meet the same folds and the same
references, so that comparisons are paired. Problems that are mathematically the same are solved once:

- A one-class SVM has the same dual in both routes (the kernel matrix of the map's features is the reference kernel).
- NPT, the base of the mapping route, is case 1.
- SVDD's nu (kernel route) and C (mapping route) are two grids on one path: C = 1 / (nu n).

The meaning of the parameter follows the authors' code: nu for the kernel SVDD and the one-class SVM, C itself for the linear SVDD of the
mapping route. With ``solver="article"`` the kernel SVDD is solved exactly (as by dd_tools' QP) and the other three with LIBSVM's start
and absolute stopping rule, on which the printed numbers of the degenerate one-class SVMs depend; ``solver="exact"`` solves all to the
certificate.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ...datasets import N_SPLITS, list_tasks
from ...kernels import RBF
from ...model_selection import Formulation
from ...references import case

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
Fold: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Rows to train on, and rows to test on."""

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

    def checked(self) -> Settings:
        """These settings with all tasks where none is named, or a clear error."""
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
        return Settings(**{**asdict(self), "tasks": tuple(task for task in known if task in tasks)})

    def units(self) -> list[Unit]:
        """All units, in the order of the rows."""
        return [
            Unit(task, split, repeat, self.seed)
            for task in self.tasks
            for split in range(self.splits_count)
            for repeat in range(self.repeats)
        ]

    def cells(self) -> list[tuple[str, str, str]]:
        """(classifier, route, variant) of every row of a unit, in order."""
        return [(c, r, v) for c in ARTICLE_CLASSIFIERS for r in ROUTES for v in VARIANTS if self._has(c, r, v)]

    def _has(self, classifier: str, route: str, variant: str) -> bool:
        return classifier in self.classifiers and route in self.routes and variant in self.variants

    def as_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


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
        key = [self.run_seed, *self.task.encode(), self.split, self.repeat]
        return np.random.SeedSequence(key).generate_state(FOLDS + 2)

    def folds(self, n: int) -> list[Fold]:
        """(train, test) rows of a random FOLDS-fold split of n rows, each in the order of the data."""
        parts = np.array_split(np.random.RandomState(self.seeds[0]).permutation(n), FOLDS)
        return [(np.setdiff1d(np.arange(n), test), np.sort(test)) for test in parts]


def classifier_name(code: str) -> str:
    """What tables and pages call a classifier."""
    return CLASSIFIER_NAMES.get(code, code)


def variant_name(code: str) -> str:
    """What tables and pages call a variant: "Base" (NPT in the mapping route, as in the article), "Case 1" …"""
    return VARIANT_NAMES.get(code, code)


def table_title(classifier: str, route: str) -> str:
    """What pages call one of the article's tables."""
    return f"{classifier_name(classifier)}, {route} route"


def formulations(route: str, solver: str) -> dict[str, Formulation]:
    """What to solve on a kernel matrix for each classifier of a route."""
    libsvm: dict[str, Any] = {"stopping": "libsvm", "tol": LIBSVM_TOLERANCE} if solver == "article" else {}
    svdd = Formulation("svdd", VALUES, "C", **libsvm) if route == "mapping" else Formulation("svdd", VALUES)
    return {"svdd": svdd, "ocsvm": Formulation("ocsvm", VALUES, **libsvm)}


def source(classifier: str, route: str, variant: str) -> tuple[str, str, str]:
    """The cell whose computation serves this one: NPT is case 1, and a one-class SVM is the same in both routes."""
    variant = "case1" if (route, variant) == ("mapping", "base") else variant
    return classifier, "kernel" if classifier == "ocsvm" else route, variant
