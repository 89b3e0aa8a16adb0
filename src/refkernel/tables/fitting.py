"""A model from a table: which rows are targets, what the columns are, the pipeline, and what to know about it later."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from .._training import HOW_TO_PASS_OUTLIERS
from .._validation import OUTLIER, check_choice, check_nu, check_positive
from ..exceptions import TableError
from ..feature_map import ReferenceKernel
from ..kernels import RBF
from ..model_selection import OneClassGridSearch
from ..one_class_svm import OneClassSVM
from ..preprocessing import TargetImputer, TargetScaler
from ..references import NAMES, Normal
from ..svdd import SVDD
from .columns import (
    Feature,
    check_finite,
    check_not_empty,
    constant_columns,
    learn_features,
    missing_counts,
    missing_message,
    model_input,
    named,
    row_names,
    texts,
)
from .reading import CsvFormat, open_table, read_whole

CLASSIFIERS: dict[str, type] = {"svdd": SVDD, "ocsvm": OneClassSVM}

AUTO, NONE = "auto", "none"
AUTO_REFERENCES = "case2"
"""What ``auto`` stands for: as many draws of N(0, 1) as there are targets, the article's best choice for SVDD."""

MOST_AUTO_REFERENCES = 1_000
"""``auto`` draws no more references than this: their factorisation then takes about a second, whatever the number of rows."""

MOST_AUTO_ENTRIES = 10**8
"""Nor more than give a feature matrix (targets × references) of 800 MB."""

OPTIONS_OF_OUTLIERS = "give --target-column, --target and --outlier"
"""How the command line is told of known outliers."""

DEFAULT_NU = 0.1

WIDE_SCALE = 10.0
"""SVDD on references, without a search: over the ten embedded tasks (50 splits, case2, nu = 0.1) a scale of 1 accepts samples far from
everything in all splits (Gmean 41 %), 3.16 in 4, and 10 in none (Gmean 73 %)."""

DEFAULT_SCALE = 1.0
"""For the other models: the article's width rule as it is."""

FAR = 1e6
"""So many standard deviations from the targets, an RBF kernel is 0 against all references, and decisions have reached their limit."""

ACCEPTS_FAR = (
    "This model accepts samples that are far from all training rows: a reference kernel brings them near the centre. Try a larger --scale, "
    "--search with known outliers, or --references none, which rejects them always."
)

IMPUTE = ("median",)

SEARCHED_SCALES = tuple(float(f"{10.0**half:.3g}") for half in np.arange(-2.0, 2.5, 0.5))
SEARCHED_NUS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""The article's grid is coarse: half decades of the width and smaller nu gain one to three points of Gmean."""

FOLDS = 5
OTHER = "other"

PERCENT = np.linspace(0.0, 100.0, 101)
"""Normality is linear between the percentiles of the training targets' decision values."""


@dataclass(frozen=True)
class Rows:
    """Which rows train: targets are those with ``target`` in ``target_column``, known outliers those with ``outlier`` (or any other)."""

    target_column: str | None = None
    target: str | None = None
    outlier: str | None = None

    def __post_init__(self):
        if self.target_column is None and (self.target is not None or self.outlier is not None):
            raise TableError("--target and --outlier are values of a column: name it by --target-column.")


@dataclass(frozen=True)
class Recipe:
    """What to train."""

    model: str = "svdd"
    references: str = AUTO
    nu: float | None = None
    scale: float | None = None
    search: bool = False
    seed: int = 0
    impute: str | None = None

    def __post_init__(self):
        check_choice("--model", self.model, CLASSIFIERS)
        check_choice("--references", self.references, [AUTO, NONE, *sorted(NAMES)])
        if self.impute is not None:
            check_choice("--impute", self.impute, IMPUTE)
        if self.nu is not None:
            check_nu(self.nu)
        if self.scale is not None:
            check_positive("--scale", self.scale)


@dataclass
class Fitted:
    """A fitted pipeline, what its file says about it, and what a user should hear."""

    model: Pipeline
    about: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def fit_file(data: Path, recipe: Recipe, rows: Rows, form: CsvFormat, drop=(), categorical=()) -> Fitted:
    """The model of a table."""
    table = open_table(data, form)
    frame = read_whole(table)
    _check_columns(frame, table.path, "--drop", drop)
    _check_columns(frame, table.path, "--categorical", categorical)
    notes: list[str] = []
    kept, y = choose_rows(frame, rows, table.path, notes)
    chosen = frame.loc[kept].drop(columns=[*drop, *([rows.target_column] if rows.target_column else [])]).reset_index(drop=True)
    _check_count(y, table.path)
    features = learn_features(chosen, table.decimal, tuple(categorical))
    X = model_input(chosen, features, table.decimal)
    check_not_empty(X[y != OUTLIER])
    _check_cells(X, recipe, notes)
    _note_columns(X[y != OUTLIER], notes)
    model, found = _fit(pipeline(features, recipe, int((y != OUTLIER).sum())), X, y, recipe, notes)
    training = facts(model, X, y)
    if training["accepts_far"]:
        notes.append(ACCEPTS_FAR)
    about = {
        "made_by": "refkernel fit",
        "data": {"file": table.path.name, "rows": len(frame), **_kinds(y), "dropped": list(drop), **asdict(rows)},
        "features": [feature.as_dict() for feature in features],
        "recipe": asdict(recipe),
        "search": found,
        "training": training,
    }
    return Fitted(model, about, notes)


def choose_rows(frame: pd.DataFrame, rows: Rows, path: Path, notes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """(kept, y): True for the rows that train, and +1 or -1 for each of them."""
    if rows.target_column is None:
        return np.ones(len(frame), dtype=bool), np.ones(len(frame))
    _check_columns(frame, path, "--target-column", [rows.target_column])
    values = pd.Series(texts(frame[rows.target_column]), dtype=object)
    is_target = _rows_with(values, rows.target, "--target", rows.target_column)
    if rows.outlier is None:
        is_outlier = np.zeros(len(frame), dtype=bool)
    elif rows.outlier == OTHER:
        is_outlier = ~is_target & values.notna().to_numpy()
    else:
        is_outlier = _rows_with(values, rows.outlier, "--outlier", rows.target_column)
    if (is_target & is_outlier).any():
        raise TableError(f"--target and --outlier are both {rows.target!r}. Give two different values, or --outlier {OTHER}.")
    kept = is_target | is_outlier
    if not kept.all():
        hint = "" if rows.outlier else f" --outlier {OTHER} takes them as known outliers."
        notes.append(f"{int((~kept).sum()):,} rows with another {rows.target_column} are left out.{hint}")
    return kept, np.where(is_target, 1.0, OUTLIER)[kept]


def pipeline(features: list[Feature], recipe: Recipe, targets: int) -> Pipeline:
    """Columns to features, features to the targets' scale, and the classifier."""
    classifier = CLASSIFIERS[recipe.model]
    nu = DEFAULT_NU if recipe.nu is None else recipe.nu
    steps = [
        ("columns", _columns(features, recipe.impute)),
        ("scale", TargetScaler()),
        ("model", classifier(_kernel(recipe, targets), nu=nu, random_state=recipe.seed)),
    ]
    return Pipeline(steps)


def facts(model: Pipeline, X: pd.DataFrame, y: np.ndarray) -> dict[str, Any]:
    """What the training ended in."""
    classifier = model[-1]
    decisions = model.decision_function(X)
    is_target = y != OUTLIER
    return {
        "support_vectors": int(classifier.support_.size),
        "rank": getattr(classifier.kernel_, "rank_", None),
        "references": len(classifier.kernel_.references_) if hasattr(classifier.kernel_, "references_") else None,
        "scale": float(getattr(classifier.kernel, "kernel", classifier.kernel).scale),
        "nu": float(classifier.nu),
        "accepts_far": bool(classifier.decision_function(np.full((1, classifier.n_features_in_), FAR))[0] >= 0),
        "threshold": float(classifier.offset_),
        "duality_gap": float(classifier.duality_gap_),
        "accepted_targets": float((decisions[is_target] >= 0).mean()),
        "rejected_outliers": None if is_target.all() else float((decisions[~is_target] < 0).mean()),
        "decision_percentiles": np.percentile(decisions[is_target], PERCENT).tolist(),
    }


def _fit(model, X, y, recipe, notes):
    """The fitted model (the best of a search), and what the search found."""
    _check_outliers(y, recipe)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = (_search(model, y, recipe) if recipe.search else model).fit(X, y)
        except ValueError as error:
            raise TableError(str(error).replace(HOW_TO_PASS_OUTLIERS, OPTIONS_OF_OUTLIERS)) from error
    notes += dict.fromkeys(str(warning.message) for warning in caught)
    if not recipe.search:
        return fitted, None
    return fitted.best_estimator_, {"candidates": len(fitted.cv_results_["params"]), "gmean": fitted.best_score_}


def _search(model, y, recipe):
    kernel = "model__kernel__scale" if recipe.references == NONE else "model__kernel__kernel__scale"
    grid = {
        kernel: SEARCHED_SCALES if recipe.scale is None else (recipe.scale,),
        "model__nu": SEARCHED_NUS if recipe.nu is None else (recipe.nu,),
    }
    folds = min(FOLDS, int((y == OUTLIER).sum()), int((y != OUTLIER).sum()))
    return OneClassGridSearch(model, grid, cv=folds, random_state=recipe.seed)


def _columns(features, impute):
    numbers = [feature.name for feature in features if feature.categories is None]
    texts = [feature.name for feature in features if feature.categories is not None]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    parts = [
        ("numbers", "passthrough" if impute is None else TargetImputer(strategy=impute), numbers),
        ("categories", encoder if impute is None else make_pipeline(TargetImputer(strategy="most_frequent"), encoder), texts),
    ]
    return ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)


def _kernel(recipe, targets):
    if recipe.references == NONE:
        return RBF(_scale(recipe))
    references: Any = AUTO_REFERENCES if recipe.references == AUTO else recipe.references
    if recipe.references == AUTO and targets > MOST_AUTO_REFERENCES:
        references = Normal(max(1, min(MOST_AUTO_REFERENCES, MOST_AUTO_ENTRIES // targets)))
    return ReferenceKernel(RBF(_scale(recipe)), references)


def _scale(recipe):
    if recipe.scale is not None:
        return recipe.scale
    return WIDE_SCALE if recipe.model == "svdd" and recipe.references != NONE else DEFAULT_SCALE


def _rows_with(values, value, option, column):
    """True where a value is; an error that lists the values there are."""
    found = Counter(values.dropna())
    there = ", ".join(f"{name} ({count:,})" for name, count in found.most_common(10)) or "none"
    if value is None:
        raise TableError(f"--target-column {column} needs --target: one of its values. There are {there}.")
    if value.strip() not in found:
        raise TableError(f"{option} {value!r} is no value of {column}. There are {there}.")
    return (values == value.strip()).to_numpy()


def _check_columns(frame, path, option, names):
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise TableError(f"{option}: {path} has no column {named(absent)}. Its columns are {', '.join(map(str, frame.columns))}.")


def _check_count(y, path):
    targets = int((y != OUTLIER).sum())
    if targets < 2:
        raise TableError(f"{path} has {targets} target row; a description needs at least 2, and 30 or more to mean something.")


def _check_outliers(y, recipe):
    outliers = int((y == OUTLIER).sum())
    if recipe.search and outliers < 2:
        raise TableError(
            f"--search needs at least 2 known outliers to compare models by, and there are {outliers}: {OPTIONS_OF_OUTLIERS} {OTHER}, "
            "or leave out --search."
        )


def _check_cells(X, recipe, notes):
    check_finite(X)
    missing = missing_counts(X)
    if missing and recipe.impute is None:
        way_out = "Pass --impute median to fill them (categories: the most frequent), or leave columns out with --drop."
        raise TableError(missing_message(missing, len(X), way_out))
    if missing:
        notes.append(missing_message(missing, len(X), "They are filled with the median (categories: the most frequent)."))


def _note_columns(X, notes):
    constant = constant_columns(X)
    if constant:
        notes.append(f"Constant in the targets, so of no use: {named(constant)}.")
    names = row_names(X)
    if names:
        notes.append(f"{named(names)} seems to name the rows rather than describe them. If so, leave it out: --drop {','.join(names)}.")


def _kinds(y):
    return {"targets": int((y != OUTLIER).sum()), "outliers": int((y == OUTLIER).sum())}
