"""What to train on a table: the recipe, the rows, and the pipeline that follows from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.pipeline import Pipeline

from .._encoding import TableEncoder
from .._validation import OUTLIER, check_choice, check_nu, check_positive
from ..auto import AutoDetector
from ..calibration.promise import check_rate
from ..exceptions import TableError
from ..feature_map import ReferenceKernel
from ..kernels import RBF, Kernel
from ..model_selection import OneClassGridSearch
from ..one_class_svm import OneClassSVM
from ..references import NAMES, Normal, Subset
from ..svdd import SVDD
from .columns import Feature

AUTO_MODEL = "auto"
MODELS = {AUTO_MODEL: AutoDetector, "svdd": SVDD, "ocsvm": OneClassSVM}

AUTO, NONE = "auto", "none"
AUTO_REFERENCES = "case2"
"""What ``auto`` stands for: as many draws of N(0, 1) as there are targets, the article's best choice for SVDD."""

OCSVM_REFERENCES = "training rows"
"""The same for a one-class SVM: without centring they give the plain kernel, of up to 1,000 rows. Over the ten embedded tasks (50 splits,
scale 1, nu = 0.1) it has a Gmean of 75 % and accepts samples far from everything in no split; case2 has 68 % and accepts them in 7, and
scores rows with emptied cells above the same rows with medians."""

MOST_AUTO_REFERENCES = 1_000
"""``auto`` draws no more references than this: their factorisation then takes about a second, whatever the number of rows."""

MOST_AUTO_ENTRIES = 10**8
"""Nor more than give a feature matrix (targets × references) of 800 MB."""

DEFAULT_NU = 0.1

WIDE_SCALE = 10.0
"""SVDD on references, without a search: over the ten embedded tasks (50 splits, case2, nu = 0.1) a scale of 1 accepts samples far from
everything in all splits (Gmean 41 %), 3.16 in 4, and 10 in none (Gmean 73 %)."""

DEFAULT_SCALE = 1.0
"""For the other models: the article's width rule as it is."""

IMPUTE = ("median",)

SEARCHED_SCALES = tuple(float(f"{10.0**half:.3g}") for half in np.arange(-2.0, 2.5, 0.5))
SEARCHED_NUS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""The article's grid is coarse: half decades of the width and smaller nu gain one to three points of Gmean."""

FOLDS = 5
OTHER = "other"


@dataclass(frozen=True)
class Rows:
    """Which rows train: targets are those with ``target`` in ``target_column``, known outliers those with ``outlier`` (or any other)."""

    target_column: str | None = None
    target: str | None = None
    outlier: str | None = None

    def __post_init__(self) -> None:
        if self.target_column is None and (self.target is not None or self.outlier is not None):
            raise TableError("--target and --outlier are values of a column: name it by --target-column.")


@dataclass(frozen=True)
class Recipe:
    """What to train: ``auto`` needs no choice; the other models take references, nu and scale, or a search over them."""

    model: str = AUTO_MODEL
    references: str = AUTO
    nu: float | None = None
    scale: float | None = None
    search: bool = False
    seed: int = 0
    impute: str | None = None
    false_alarm_rate: float = 0.05

    def __post_init__(self) -> None:
        check_choice("--model", self.model, list(MODELS))
        check_rate("--false-alarm-rate", self.false_alarm_rate)
        check_choice("--references", self.references, [AUTO, NONE, *sorted(NAMES)])
        if self.impute is not None:
            check_choice("--impute", self.impute, IMPUTE)
        if self.nu is not None:
            check_nu(self.nu)
        if self.scale is not None:
            check_positive("--scale", self.scale)
        if self.model == AUTO_MODEL and (self.search or self.references != AUTO or self.nu is not None or self.scale is not None):
            raise TableError("--references, --nu, --scale and --search are for --model svdd or ocsvm: name one of them.")

    @property
    def reads_blocks(self) -> bool:
        """Whether the model can learn from rows that are not all in memory: a plain kernel and a search cannot."""
        return self.model == AUTO_MODEL or (self.references != NONE and not self.search)


def pipeline(features: list[Feature], recipe: Recipe, targets: int) -> Pipeline:
    """Columns to numbers, and the detector. AutoDetector scales by itself."""
    kinds = np.array([feature.kind for feature in features])  # a list of thousands would fill the model file
    if recipe.model == AUTO_MODEL:
        detector = AutoDetector(recipe.false_alarm_rate, random_state=recipe.seed)
        return Pipeline([("columns", TableEncoder(kinds, standardise=False)), ("model", detector)])
    nu = DEFAULT_NU if recipe.nu is None else recipe.nu
    model = MODELS[recipe.model](_kernel(recipe, targets), nu=nu, random_state=recipe.seed)
    return Pipeline([("columns", TableEncoder(kinds)), ("model", model)])


def search_of(model: Pipeline, y: np.ndarray, recipe: Recipe) -> OneClassGridSearch:
    """The search over scale and nu, where the recipe leaves them open. Without known outliers, made-up ones compare the candidates."""
    kernel = "model__kernel__scale" if recipe.references == NONE else "model__kernel__kernel__scale"
    grid = {
        kernel: SEARCHED_SCALES if recipe.scale is None else (recipe.scale,),
        "model__nu": SEARCHED_NUS if recipe.nu is None else (recipe.nu,),
    }
    is_outlier = y == OUTLIER
    folds = min(FOLDS, *(int(kind.sum()) for kind in (is_outlier, ~is_outlier) if kind.any()))
    return OneClassGridSearch(model, grid, cv=folds, random_state=recipe.seed)


def _kernel(recipe: Recipe, targets: int) -> Kernel:
    base = RBF(_scale(recipe))
    if recipe.references != AUTO:
        return base if recipe.references == NONE else ReferenceKernel(base, recipe.references)
    few, size = targets <= MOST_AUTO_REFERENCES, max(1, min(MOST_AUTO_REFERENCES, MOST_AUTO_ENTRIES // targets))
    if recipe.model == "ocsvm":  # half of the targets are in every fold of a search
        return ReferenceKernel(base, "training" if few else Subset(min(size, targets // 2)), center=False)
    return ReferenceKernel(base, AUTO_REFERENCES if few else Normal(size))


def references_of(recipe: Recipe) -> str:
    """The references, and what ``auto`` stands for."""
    if recipe.references != AUTO or recipe.model == AUTO_MODEL:
        return recipe.references
    return f"{AUTO} ({OCSVM_REFERENCES if recipe.model == 'ocsvm' else AUTO_REFERENCES})"


def _scale(recipe: Recipe) -> float:
    if recipe.scale is not None:
        return recipe.scale
    return WIDE_SCALE if recipe.model == "svdd" and recipe.references != NONE else DEFAULT_SCALE
