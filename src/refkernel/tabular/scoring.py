"""Score a table with a saved model, block by block: read, encode once, score, explain, write."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._core.text import named
from .._core.threads import one_blas_thread
from ..detectors.calibration.base import group_names
from ..detectors.explain.reasons import Reason
from ..exceptions import ModelFileError, TableError
from ..export.files import open_model
from .card import CARD, PERCENT
from .columns import NUMBER, ColumnProfile
from .detector import TableDetector
from .encoder import Rows, TableEncoder
from .readers import ReadOptions, Table, is_parquet, open_table
from .readers.values import Marks, is_text, texts
from .summary import Watch
from .typed import read_cells
from .writing import check_writable, table_writer

ADDED = ("score", "decision", "label")
P_VALUE, NORMALITY = "p_value", "normality"
FILLED = "filled"  # how many cells of a row were missing and filled


@dataclass(frozen=True)
class SavedModel:
    """A model, the file that it was read from, and how the table that it scores writes numbers."""

    path: Path
    model: TableDetector
    marks: Marks = Marks()  # noqa: RUF009 (frozen)

    @cached_property
    def columns(self) -> list[ColumnProfile]:
        """What is known about each column, with the decimal mark of the table, or else of training."""
        columns = self.model.columns_
        return [replace(column, decimal=self.marks.decimal) for column in columns] if self.marks.is_decided else columns

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that scoring adds."""
        fills = isinstance(self.model.encoder_, TableEncoder)
        return (*ADDED, *([P_VALUE] if hasattr(self.model, "calibration_") else []), *([FILLED] if fills else []))

    def reasons(self, rows: Rows, count: int = 3) -> list[list[Reason]]:
        """For each row the cells that lower its score most, the strongest first; none where the model's kind cannot be explained."""
        try:
            return self.model._reasons(rows, self.columns, count)
        except (TypeError, ValueError):  # a detector or a transformer of another library, a kernel of another kind
            return [[] for _ in range(len(rows))]

    def open(self, data: Path, options: ReadOptions) -> Table:
        """A table whose header is the line with the model's columns, read by the options of training where none are given."""
        kept = {name: value for name, value in getattr(self.model, "reading_", {}).items() if value is not None and value != []}
        kept = {name: value for name, value in kept.items() if getattr(options, name) in (None, ())}
        table = open_table(data, replace(options, **kept, wanted={column.name: column.unit_above for column in self.columns}))
        if kept:
            told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in kept.items())
            table.notes.append(f"Read as fit was told to: {told}. The options of this command replace those of fit.")
        return table

    def rows_of(self, block: pd.DataFrame, marks: Marks, first_row: int = 0) -> Rows:
        """The rows of a block of a file, read and encoded; an error that names what cannot be read."""
        cells = read_cells(block, self.columns, marks, first_row)
        try:
            rows = self.model.encoder_.read(cells)
        except ValueError as error:
            raise TableError(str(error)) from error
        name = self.model.group_column
        return rows if name is None else replace(rows, groups=group_names(texts(block[name]), len(block)))


class PlainColumns:
    """Stands in for an encoder where a model takes numbers as they are, by the names of the data frame that it was fitted on."""

    def __init__(self, names: Sequence[Any]) -> None:
        self.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
        self.n_features_in_ = len(names)
        self.columns = [ColumnProfile(name) for name in self.feature_names_in_]

    def column_sources(self) -> np.ndarray:
        return np.arange(self.n_features_in_)

    def read(self, X: Any) -> Rows:
        """The rows, whose cells are the numbers that the model takes; all must be finite."""
        if isinstance(X, Rows):
            return X
        cells = X if isinstance(X, list) else [X[name].to_numpy(dtype=np.float64) for name in self.feature_names_in_]
        encoded = np.column_stack(cells)
        if (wrong := self.feature_names_in_[~np.isfinite(encoded).all(axis=0)]).size:
            raise TableError(f"Missing or infinite values in {named(wrong)}, and this model takes neither. Fit it with refkernel fit.")
        nothing = np.zeros(encoded.shape, dtype=bool)
        return Rows(self.feature_names_in_.tolist(), cells, encoded, nothing, nothing)

    def transform(self, X: Any) -> np.ndarray:
        return self.read(X).encoded


def load_table_model(path: Path, opened: Any = None) -> SavedModel:
    """The model in a file, which may have been opened: a TableDetector, or another model that was fitted on a data frame."""
    saved = opened or open_model(path)
    model, names = saved.model, getattr(saved.model, "feature_names_in_", None)
    if isinstance(model, TableDetector):
        return SavedModel(Path(path), model)
    if names is None:
        raise ModelFileError(f"{path} does not say which columns its model takes: make it with refkernel fit, or fit it on a data frame.")
    steps = list(getattr(model, "steps", ()))
    has_encoder = bool(steps) and isinstance(steps[0][1], TableEncoder)
    wrapped = TableDetector(model)
    wrapped.encoder_ = steps[0][1] if has_encoder else PlainColumns(names)
    wrapped.detector_ = (model[1:] if len(steps) > 2 else steps[1][1]) if has_encoder else model
    wrapped.n_features_in_, wrapped.feature_names_in_, wrapped.formats_ = len(names), np.asarray(names, dtype=object), {}
    facts = {"model": type(wrapped._final).__name__, "recognised": 1.0, "dropped": [], "accepts_far": False}
    facts |= dict.fromkeys(("rows", "targets", "outliers", "alone", "twice"), 0)
    wrapped.card_ = {**dict.fromkeys(CARD), **facts, "created": saved.metadata["created"], "versions": saved.metadata["versions"]}
    wrapped.percentiles_, wrapped.seen_scores_ = None, np.empty(0)
    return SavedModel(Path(path), wrapped)


def score_file(
    saved: SavedModel,
    table: Table,
    out: Path,
    *,
    watch: Watch | None = None,
    proba_like: bool = False,
    prefix: str = "",
    defuse: bool = True,
    explain: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> Watch:
    """Write an open table with the columns score, decision and label (and normality) added, in its order of rows.

    ``explain`` adds this many reasons of each flagged row. ``defuse`` puts an apostrophe before texts that a spreadsheet would run as
    formulas. ``watch`` follows the rows, and is returned with what a user should hear.
    """
    if proba_like and saved.model.percentiles_ is None:
        raise ModelFileError(f"{saved.path} holds no training decisions, which --proba-like needs: make it with refkernel fit.")
    watch = watch or Watch(replace(saved, marks=table.marks))
    saved = watch.saved
    reason_names = [f"{prefix}reason_{number}" for number in range(1, explain + 1)]
    added = [prefix + name for name in (*saved.added, *([NORMALITY] if proba_like else []))] + reason_names
    watch.extra = check_names(table, saved, added)
    unused = {*watch.extra, saved.model.group_column}
    watch.reordered = [name for name in table.names if name not in unused] != [column.name for column in saved.columns]
    check_writable(out, table.path, saved.path)
    numeric = frozenset(column.name for column in saved.columns if column.kind == NUMBER)
    with one_blas_thread(), table_writer(out, table, defuse, numeric) as writer:  # BLAS holds 100 MB for its threads
        for block in table.blocks():
            rows = saved.rows_of(block, table.marks, watch.rows)
            answers = decide(saved, rows, proba_like)
            watch.add(block, rows, answers)
            written = block.copy() if is_parquet(out) else block
            for name, cells in zip(rows.names, rows.cells, strict=True):
                if is_parquet(out) and name in numeric and is_text(block[name]):
                    written[name] = cells  # where CSV has the text of numbers
            written = pd.concat([written, answers.add_prefix(prefix).set_index(block.index)], axis=1)
            if explain:
                reasons = _reasons(saved, rows, answers["label"].to_numpy(), explain, watch)
                written = written.assign(**dict(zip(reason_names, reasons.T, strict=True)))
            writer.write(written)
            progress(table.share_read())
        if not watch.rows:
            writer.write(pd.DataFrame(columns=[*table.names, *added], dtype=object))
        watch.defused = writer.defused
    watch.notes = table.notes
    return watch


def decide(saved: SavedModel, rows: Rows, proba_like: bool = False) -> pd.DataFrame:
    """score, decision = score - threshold, label = +1 where decision >= 0 else -1, p_value and filled where there are any; normality."""
    model = saved.model
    if not hasattr(model._final, "score_samples") or not hasattr(model._final, "offset_"):
        raise ModelFileError(f"{saved.path} holds a {type(model._final).__name__}, which gives no scores. Save a detector such as SVDD.")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # columns were matched by name
            score = model.score_samples(rows)
            decision = score - model._offsets(rows.groups, len(score))
            columns = {"score": score, "decision": decision, "label": np.where(decision >= 0, 1, -1)}
            if P_VALUE in saved.added:
                columns[P_VALUE] = model.p_values_of(score, rows.groups)
    except (MemoryError, OSError):
        raise
    except Exception as error:  # the rows were checked: it is the model's fault
        raise ModelFileError(
            f"{saved.path} cannot score ({type(error).__name__}: {error}). The file is damaged or forged, or its model needs other columns."
        ) from error
    if FILLED in saved.added:
        columns[FILLED] = rows.missing.sum(axis=1)
    if proba_like:
        columns[NORMALITY] = np.where(rows.violations.any(axis=1), 0.0, normality(decision, model.percentiles_))
    return pd.DataFrame(columns)


def normality(decision: np.ndarray, percentiles: np.ndarray) -> np.ndarray:
    """The share of training targets with a lower decision value, from 0 to 1, linear between their percentiles.

    It never falls as the decision value rises. It is not a probability: a new target is as likely to get 0.05 as 0.95.
    """
    return np.interp(decision, percentiles, PERCENT / 100.0)


def check_names(table: Table, saved: SavedModel, added: Sequence[str] = ()) -> list[str]:
    """The columns that the model does not use; an error for those that are missing or would be there twice."""
    wanted = [str(name) for name in (*saved.model.feature_names_in_, saved.model.group_column) if name is not None]
    there, used = set(table.names), set(wanted)
    if absent := [name for name in wanted if name not in there]:
        raise TableError(
            f"{table.path} lacks {len(absent):,} of the {len(wanted):,} columns of {saved.path.name}: {named(absent, 20)}. "
            f"It has {named(table.names, 20)}. Names must match; their order is free."
        )
    if twice := [name for name in added if name in there]:
        what = f"{table.path} has a column {named(twice)} already, which would be added"
        raise TableError(f"{what}. Rename it, or pass --prefix, such as rk_.")
    units = {column.name: unit for column in saved.columns if (unit := column.unit_above or column.unit)}
    other = [f"{name} is in {unit}, and was in {units[name]}" for name, unit in table.units.items() if unit != units.get(name, unit)]
    if other:
        raise TableError(f"{table.path}: {named(other)} in training. Write the numbers as in training.")
    return [name for name in table.names if name not in used]


def _reasons(saved: SavedModel, rows: Rows, label: np.ndarray, count: int, watch: Watch) -> np.ndarray:
    """The strongest reasons of each flagged row as texts (rows × count); the columns that come first are counted."""
    written, flagged = np.full((len(rows), count), "", dtype=object), np.flatnonzero(label == -1)
    try:
        found = saved.model._reasons(rows.take(flagged), saved.columns, count) if flagged.size else []
    except (TypeError, ValueError) as error:  # a detector or a transformer of another library, a kernel of another kind
        raise ModelFileError(f"--explain: {saved.path}: {error}") from error
    for row, mine in zip(flagged, found, strict=True):
        written[row, : len(mine)] = [str(reason) for reason in mine]
    watch.reasons.update(mine[0].column for mine in found if mine)
    return written
