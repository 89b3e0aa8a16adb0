"""A model from a table in a file: choose the rows, read the columns, fit, and note what a user should know."""

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._core.text import counted, named
from .._core.validation import OUTLIER
from ..exceptions import FarSamplesWarning, TableError, _printable
from ..model_selection import OneClassGridSearch
from .card import held_out
from .checking import column_notes, own_columns
from .columns import CATEGORY, ColumnProfile
from .detector import READING, TableDetector
from .frames import times_of
from .readers import ReadOptions, open_table, read_sample
from .readers.values import texts
from .typed import learn

MOST_CELLS, FEWEST_DRAWN = 1 << 24, 1_000
"""Cells of a larger table are not all read into memory: as many of its rows train as have this many, drawn at random."""

OTHER = "other"  # stands for all values but the target's
ACCEPTS_FAR = (
    "This model accepts rows that are far from all training rows: a reference kernel brings them near the centre. Fit it with a larger "
    "--scale, without --references, which always rejects them, or with --model auto."
)


@dataclass(frozen=True)
class TrainingLabels:
    """Which rows train: targets are those with ``target`` in ``target_column``, known outliers those with ``outlier`` (or any other)."""

    target_column: str | None = None
    target: str | None = None
    outlier: str | None = None

    def __post_init__(self) -> None:
        if self.target_column is None and (self.target is not None or self.outlier is not None):
            raise TableError("--target and --outlier are values of a column: name it by --target-column.")


def fit_file(
    model: TableDetector,
    data: Path,
    labels: TrainingLabels = TrainingLabels(),  # noqa: B008 (frozen)
    options: ReadOptions = ReadOptions(),  # noqa: B008 (frozen)
    progress: Callable[[str], None] = lambda stage: None,
) -> list[str]:
    """Fit a model to a table, and return what a user should hear. ``progress`` hears what is being done."""
    progress(f"fit: reading {data}")
    table = open_table(data, options)
    frame, total = read_sample(table, max(FEWEST_DRAWN, MOST_CELLS // max(1, len(table.names))), model.random_state, progress)
    time_column, group_column = ([name] if name else [] for name in (model.time_column, model.group_column))
    flags = ("--drop", "--categorical", "--time-column", "--group-column")
    for flag, names in zip(flags, (model.drop, model.categorical, time_column, group_column), strict=True):
        _check_columns(frame, table.path, flag, names)
    notes = list(table.notes)
    if total > len(frame):
        drawn = f"{len(frame):,} rows of {total:,} train, drawn at random"
        notes.append(f"{drawn}: more than {MOST_CELLS:,} cells are not read into memory.")
    kept, y = choose_rows(frame, labels, table.path, notes)
    left_out = {*model.drop, *time_column, *group_column, *([labels.target_column] if labels.target_column else [])}
    added = own_columns(frame.columns) - left_out
    if own := [name for name in frame.columns if name in added]:
        notes.append(f"Columns that refkernel score adds to a table are left out: {named(own, 20)}. Rename those that are yours.")
        left_out |= set(own)
    if (targets := int((y != OUTLIER).sum())) < 2:
        raise TableError(f"{table.path} has {counted(targets, 'target')}; a model needs at least 2, and 30 or more to mean something.")
    progress(f"fit: reading the columns of {counted(len(y), 'row')}")
    chosen = frame.loc[kept].drop(columns=list(left_out)).reset_index(drop=True)
    profiles, X = learn(chosen, table.marks, tuple(model.categorical), notes)
    profiles = [replace(profile, unit_above=table.units.get(profile.name, "")) for profile in profiles]
    X, normal, profiles = _without_empty(X, X[y != OUTLIER], profiles, notes)
    progress(f"fit: learning what is normal in {counted(len(X), 'row')} of {counted(len(profiles), 'column')}")
    how: dict[str, Any] = {"groups": texts(frame.loc[kept, model.group_column])} if model.group_column else {}
    if model.time_column:
        (when,), moments = learn(frame.loc[kept, time_column], table.marks, (), [])
        how["time"] = times_of(moments, model.time_column)
    kinds = np.array([profile.kind for profile in profiles])  # a list of thousands would fill the model file
    if isinstance(model.detector, OneClassGridSearch) and isinstance(model.detector.cv, int):
        fewest = min(int(kind.sum()) for kind in (y == OUTLIER, y != OUTLIER) if kind.any())
        model.set_params(detector__cv=min(model.detector.cv, fewest))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model._fit(X, y, kinds, profiles, how)
            progress(f"fit: judging the model by {counted(len(X), 'row')}")
            if model.card_["false_alarm_rate"] is None:
                model.card_ |= held_out(model, model.read(X).frame(), y)
        except ValueError as error:
            hint = "" if (y == OUTLIER).any() else " For known outliers, give --target-column, --target and --outlier."
            raise TableError(f"{error}{hint}") from error
    told = (warning for warning in caught if warning.category is not FarSamplesWarning)  # ACCEPTS_FAR says it with the options there are
    notes += dict.fromkeys(str(warning.message) for warning in told)
    notes += column_notes(model.columns_, normal)
    if model.card_["accepts_far"]:
        notes.append(ACCEPTS_FAR)
    model.reading_ = {name: getattr(options, name) for name in READING} | {"missing": list(options.missing)}
    if options.header is not False:  # the model's columns and their units will tell the header and the row under it
        model.reading_ |= {"header": None, "skip_lines": None, "units_row": options.units_row and None}
    about: dict[str, str | None] = {"target_column": labels.target_column, "target": labels.target, "outlier": labels.outlier}
    if model.time_column and when.kind != CATEGORY:
        ends = map(when.normal.written, moments.iloc[:, 0].agg(["min", "max"]))
        about |= dict(zip(("first_time", "last_time"), ends, strict=True))
    with table.path.open("rb") as file:
        about["file_sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    model.card_ |= {"file": _printable(table.path.name), "rows": total, **about}
    return notes


def choose_rows(frame: Any, labels: TrainingLabels, path: Path, notes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """(kept, y): True for the rows that train, and +1 or -1 for each of them."""
    if labels.target_column is None:
        return np.ones(len(frame), dtype=bool), np.ones(len(frame))
    _check_columns(frame, path, "--target-column", [labels.target_column])
    values = pd.Series(texts(frame[labels.target_column]), dtype=object)
    is_target = _rows_with(values, labels.target, "--target", labels.target_column)
    if labels.outlier is None:
        is_outlier = np.zeros(len(frame), dtype=bool)
    elif labels.outlier == OTHER:
        is_outlier = ~is_target & values.notna().to_numpy()
    else:
        is_outlier = _rows_with(values, labels.outlier, "--outlier", labels.target_column)
    if (is_target & is_outlier).any():
        raise TableError(f"--target and --outlier are both {labels.target!r}. Give two different values, or --outlier {OTHER}.")
    kept = is_target | is_outlier
    if not kept.all():
        hint = "" if labels.outlier else f" --outlier {OTHER} takes them as known outliers."
        left_out = int((~kept).sum())
        verb = "is" if left_out == 1 else "are"
        notes.append(f"{counted(left_out, 'row')} with another {labels.target_column} {verb} left out.{hint}")
    return kept, np.where(is_target, 1.0, OUTLIER)[kept]


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
    if absent := [name for name in names if name not in frame.columns]:
        raise TableError(f"{flag}: {path} has no column {named(absent)}. Its columns are {named(frame.columns, 50)}.")


def _without_empty(X: Any, normal: Any, profiles: list[ColumnProfile], notes: list[str]) -> tuple[Any, Any, list[ColumnProfile]]:
    """The columns that have a value in some normal row; an error where none has."""
    empty = set(normal.columns[normal.isna().all()])
    if len(empty) == len(profiles):
        raise TableError(f"All values of all {len(X):,} rows are missing: there is nothing to learn from.")
    if not empty:
        return X, normal, profiles
    notes.append(f"No row has a value in {named(sorted(empty))}, so the model does not use {'it' if len(empty) == 1 else 'them'}.")
    kept = [profile for profile in profiles if profile.name not in empty]
    names = np.array([profile.name for profile in kept], dtype=object)
    return X[names], normal[names], kept
