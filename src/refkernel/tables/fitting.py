"""A model from a table: choose the rows, learn the columns, fit the pipeline, and record what to know about it later."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from .._encoding import CONSTANT, DATE, FAR, Column, by_rows
from .._validation import OUTLIER
from ..auto import AutoDetector
from ..drift import describe
from ..exceptions import FarSamplesWarning, TableError
from .cells import texts
from .checks import check_finite, check_not_empty, missing_counts, missing_message, row_names
from .columns import Feature, learn
from .expected import expectations
from .form import CsvFormat
from .reading import open_table, read_whole
from .recipe import AUTO, AUTO_MODEL, NONE, OTHER, Recipe, Rows, pipeline, references_of, search_of
from .seen import kept_scores
from .stored import EncodedRows, RawColumns, Stored, is_large
from .wording import counted, named, option

OPTIONS_OF_OUTLIERS = "give --target-column, --target and --outlier"
"""How known outliers are passed on the command line."""

ACCEPTS_FAR = (
    "This model accepts rows that are far from all training rows: a reference kernel brings them near the centre. Fit it with a larger "
    "--scale, with --references none, which always rejects them, or with --model auto."
)

MOST_JUDGING = 50_000
"""Rows of a table on disk that models without some of them are fitted to."""

MOSTLY_MISSING = 0.5
"""A column with more missing cells than this is noted."""

PERCENT = np.linspace(0.0, 100.0, 101)
"""Normality is linear between the percentiles of the training targets' decision values."""


@dataclass
class Fitted:
    """A fitted pipeline, what its file says about it, and what a user should hear."""

    model: Pipeline
    about: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def fit_file(
    data: Path,
    recipe: Recipe,
    rows: Rows,
    form: CsvFormat,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    time_column: str | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Fitted:
    """The model of a table. ``progress`` hears what is being done."""
    progress(f"fit: reading {data}")
    table = open_table(data, form)
    frame: Any = RawColumns(table, progress) if is_large(table) and recipe.reads_blocks else read_whole(table)
    _check_columns(frame, table.path, "--drop", drop)
    _check_columns(frame, table.path, "--categorical", categorical)
    _check_columns(frame, table.path, "--time-column", [time_column] if time_column else [])
    notes: list[str] = list(table.notes)
    kept, y = choose_rows(frame, rows, table.path, notes)
    left_out = {*drop, *(name for name in (rows.target_column, time_column) if name is not None)}
    _check_count(y, table.path)
    progress(f"fit: reading the columns of {counted(len(y), 'row')}")
    features, X = _learnt(frame, kept, left_out, table.decimal, tuple(categorical), notes)
    check_not_empty(X[y != OUTLIER])
    _check_cells(X, recipe, notes)
    progress(f"fit: learning what is normal in {counted(len(X), 'row')} of {counted(len(features), 'column')}")
    fitted, recipe, found = _fit(features, X, y, recipe, notes)
    _note_columns(fitted[0].columns, X[y != OUTLIER], notes)
    progress(f"fit: judging the model by {counted(len(X), 'row')}")
    training = facts(fitted, X, y) | expectations(fitted, *some_rows(X, y, recipe.seed), recipe.seed)
    if training["accepts_far"]:
        notes.append(ACCEPTS_FAR)
    about = {
        "made_by": "refkernel fit",
        "data": {
            "file": table.path.name,
            "rows": len(frame),
            **_kinds(y),
            "dropped": list(drop),
            "time_column": time_column,
            **asdict(rows),
        },
        "features": [feature.as_dict() for feature in features],
        "columns": [column.as_dict() for column in describe(X[y != OUTLIER])],
        "recipe": asdict(recipe) | {"references": references_of(recipe)},
        "search": found,
        "training": training,
        "seen": kept_scores(fitted, X[y != OUTLIER]),
    }
    return Fitted(fitted, about, notes)


def choose_rows(frame: Any, rows: Rows, path: Path, notes: list[str]) -> tuple[np.ndarray, np.ndarray]:
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
        left_out = int((~kept).sum())
        verb = "is" if left_out == 1 else "are"
        notes.append(f"{counted(left_out, 'row')} with another {rows.target_column} {verb} left out.{hint}")
    return kept, np.where(is_target, 1.0, OUTLIER)[kept]


def _learnt(
    frame: Any, kept: np.ndarray, left_out: set[str], decimal: str, categorical: tuple[str, ...], notes: list[str]
) -> tuple[list[Feature], Any]:
    """What the columns of the chosen rows are, and their values: a data frame, or ``Stored`` on disk."""
    if isinstance(frame, RawColumns):
        X = frame.chosen(kept, left_out).learnt(decimal, categorical, notes)
        return X.features, X
    return learn(frame.loc[kept].drop(columns=list(left_out)).reset_index(drop=True), decimal, categorical, notes)


def some_rows(X: Any, y: np.ndarray, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows that further models are fitted to: all of a table in memory, a sample of one on disk."""
    if not isinstance(X, Stored):
        return X, y
    chosen = np.sort(check_random_state(seed).choice(len(X), min(MOST_JUDGING, len(X)), replace=False))
    return X.rows_at(chosen), y[chosen]


def facts(model: Pipeline, X: Any, y: np.ndarray) -> dict[str, Any]:
    """What the training ended in."""
    return _facts_of_auto(model, X, y) if isinstance(model[-1], AutoDetector) else _facts_of_classifier(model, X, y)


def accepts_far(classifier: Any) -> bool:
    """Whether a row that is far from all training rows would be accepted."""
    return bool(classifier.decision_function(np.full((1, classifier.n_features_in_), FAR))[0] >= 0)


def _facts_of_auto(model: Pipeline, X: Any, y: np.ndarray) -> dict[str, Any]:
    detector, outliers = model[-1], X[y == OUTLIER]
    return {
        "choice": detector.choice_,
        "false_alarm_rate": detector.false_alarm_rate_,
        "false_alarm_interval": list(detector.false_alarm_interval_),
        "accepts_far": False,
        "threshold": detector.offset_,
        "rejected_outliers": float((_in_portions(model.predict, outliers) == OUTLIER).mean()) if len(outliers) else None,
        "decision_percentiles": np.percentile(detector.calibration_ - detector.offset_, PERCENT).tolist(),
    }


def _facts_of_classifier(model: Pipeline, X: Any, y: np.ndarray) -> dict[str, Any]:
    classifier = model[-1]
    decisions = _in_portions(model.decision_function, X)
    is_target = y != OUTLIER
    return {
        "support_vectors": int(classifier.support_.size),
        "rank": getattr(classifier.kernel_, "rank_", None),
        "references": len(classifier.kernel_.references_) if hasattr(classifier.kernel_, "references_") else None,
        "scale": float(getattr(classifier.kernel, "kernel", classifier.kernel).scale),
        "nu": float(classifier.nu),
        "accepts_far": accepts_far(classifier),
        "threshold": float(classifier.offset_),
        "duality_gap": float(classifier.duality_gap_),
        "accepted_targets": float((decisions[is_target] >= 0).mean()),
        "rejected_outliers": None if is_target.all() else float((decisions[~is_target] < 0).mean()),
        "decision_percentiles": np.percentile(decisions[is_target], PERCENT).tolist(),
    }


def _in_portions(function: Callable[[pd.DataFrame], np.ndarray], X: Any) -> np.ndarray:
    return np.concatenate([function(part) for part in by_rows(X)])


def _fit(
    features: list[Feature], X: Any, y: np.ndarray, recipe: Recipe, notes: list[str]
) -> tuple[Pipeline, Recipe, dict[str, Any] | None]:
    """The fitted model, the recipe that it follows, and what the search found.

    ``--references auto`` is a reference kernel, but not one that accepts everything far away: the plain kernel is then taken instead,
    if its rows are in memory.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted, found = _fit_once(features, X, y, recipe)
            may_change = recipe.model != AUTO_MODEL and recipe.references == AUTO and recipe.scale is None and not isinstance(X, Stored)
            if may_change and accepts_far(fitted[-1]):
                recipe = replace(recipe, references=NONE)
                fitted, found = _fit_once(features, X, y, recipe)
                notes.append(
                    "With references, this model would accept rows that are far from all training rows: the plain kernel "
                    "(--references none) is used instead."
                )
        except ValueError as error:
            hint = "" if (y == OUTLIER).any() else f" For known outliers, {OPTIONS_OF_OUTLIERS}."
            raise TableError(f"{error}{hint}") from error
    told = (warning for warning in caught if warning.category is not FarSamplesWarning)  # ACCEPTS_FAR says it with the options there are
    notes += dict.fromkeys(str(warning.message) for warning in told)
    return fitted, recipe, found


def _fit_once(features: list[Feature], X: Any, y: np.ndarray, recipe: Recipe) -> tuple[Pipeline, dict[str, Any] | None]:
    model = pipeline(features, recipe, int((y != OUTLIER).sum()))
    if recipe.model == AUTO_MODEL or isinstance(X, Stored):
        encoder = model[0].fit(X, y)
        encoded = EncodedRows(X, encoder) if isinstance(X, Stored) else encoder.transform(X)
        if recipe.model == AUTO_MODEL:
            model.set_params(model__units=encoder.units_)
        model[-1].fit(encoded, y if (y == OUTLIER).any() else None)
        return model, None
    if not recipe.search:
        return model.fit(X, y), None
    search = search_of(model, y, recipe).fit(_filled(X, y), y)
    found = {"candidates": len(search.cv_results_["params"]), "gmean": search.best_score_, "made_up": bool((y != OUTLIER).all())}
    return model.set_params(**search.best_params_).fit(X, y), found


def _filled(X: pd.DataFrame, y: np.ndarray) -> pd.DataFrame:
    """The table without missing values, for a search that makes outliers up from its rows; the final fit sees the table as it is."""
    normal = X[y != OUTLIER]
    return X.fillna({name: normal[name].median() if X[name].dtype == np.float64 else normal[name].mode()[0] for name in X.columns})


def _rows_with(values: pd.Series, value: str | None, flag: str, column: str) -> np.ndarray:
    """True where a value is; an error that lists the values there are."""
    found = Counter(values.dropna())
    there = ", ".join(f"{name} ({count:,})" for name, count in found.most_common(10)) or "none"
    if value is None:
        raise TableError(f"--target-column {column} needs --target: one of its values. There are {there}.")
    if value.strip() not in found:
        raise TableError(f"{flag} {value!r} is not a value of {column}. There are {there}.")
    return (values == value.strip()).to_numpy()


def _check_columns(frame: Any, path: Path, flag: str, names: Sequence[str]) -> None:
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise TableError(f"{flag}: {path} has no column {named(absent)}. Its columns are {named(frame.columns, 50)}.")


def _check_count(y: np.ndarray, path: Path) -> None:
    targets = int((y != OUTLIER).sum())
    if targets < 2:
        raise TableError(f"{path} has {counted(targets, 'target')}; a model needs at least 2, and 30 or more to mean something.")


def _check_cells(X: Any, recipe: Recipe, notes: list[str]) -> None:
    check_finite(X)
    missing = missing_counts(X)
    if missing and recipe.impute is None:
        way_out = "Pass --impute median to fill them, or leave columns out with --drop."
        raise TableError(missing_message(missing, len(X), way_out))
    if missing:
        notes.append(
            missing_message(missing, len(X), "Numbers are filled with the median and marked as filled; missing categories count as one.")
        )


def _note_columns(columns: list[Column], X: Any, notes: list[str]) -> None:
    """What a user should know about columns: constants, columns that are mostly empty or name the rows, dates."""
    constant = [column.name for column in columns if column.kind == CONSTANT]
    if constant:
        notes.append(f"Constant in the targets: {named(constant)}; rows that differ there will be flagged.")
    empty = [f"{column.name} ({100 * column.missing:.0f} %)" for column in columns if column.missing > MOSTLY_MISSING]
    if empty:
        notes.append(f"Mostly missing: {named(empty)}. What the model learns from the few values there may be chance.")
    dates = [column.name for column in columns if column.kind == DATE]
    if dates:
        notes.append(
            f"Dates and times: {named(dates)}. Rows from later than training are unusual for that alone; "
            f"{option('--time-column', dates[:1])} keeps a column out of the model."
        )
    names = row_names(X)
    if names:
        seems, it = ("seems", "it") if len(names) == 1 else ("seem", "them")
        notes.append(
            f"{named(names)} {seems} to name the rows rather than describe them. If so, leave {it} out: {option('--drop', names)}."
        )


def _kinds(y: np.ndarray) -> dict[str, int]:
    return {"targets": int((y != OUTLIER).sum()), "outliers": int((y == OUTLIER).sum())}
