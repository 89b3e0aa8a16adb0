"""Score a table with a saved model, block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from .._encoding import NUMBER, Column, TableEncoder
from .._threads import one_blas_thread
from .._timing import Clock
from ..exceptions import ModelFileError, TableError
from ..persistence import open_model
from ..persistence.description import mismatch
from .cells import is_text
from .checks import check_finite, missing_counts, missing_message, unseen
from .columns import Feature, feature_of, model_input
from .endings import is_parquet
from .explaining import Explaining, reason_names
from .fitting import PERCENT
from .form import CsvFormat, Table
from .reading import open_table
from .wording import named
from .writing import check_writable, table_writer

ADDED = ("score", "decision", "label")
P_VALUE = "p_value"
NORMALITY = "normality"
FILLED = "filled"
"""How many cells of a row were missing and filled."""
MOST_NESTED = 20


@dataclass(frozen=True)
class TableModel:
    """A saved model, the columns that it takes, and what its file says about it."""

    path: Path
    model: Any
    features: list[Feature]
    metadata: dict[str, Any]

    @property
    def about(self) -> dict[str, Any]:
        """What the maker of the model wrote into its file."""
        return self.metadata["about"]

    @property
    def detector(self) -> Any:
        """The estimator that decides: the last step of a pipeline, the best of a search."""
        return final(self.model)

    @property
    def columns(self) -> list[Column]:
        """What training knew about each column of the table: its kind, its encoded columns, its range or levels."""
        encoder = self.encoder
        return [Column(feature.name, feature.kind) for feature in self.features] if encoder is None else encoder.columns

    @property
    def encoder(self) -> TableEncoder | None:
        """The step that encodes the columns; None in files of version 0.1 and in models that were saved in Python."""
        return encoder_of(self.model)

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that scoring adds."""
        return (*ADDED, *([P_VALUE] if hasattr(self.detector, "p_values_of") else []), *([FILLED] if self.imputes else []))

    def with_false_alarm_rate(self, rate: float) -> TableModel:
        """The same model with another threshold; nothing is fitted again."""
        if not hasattr(self.detector, "with_false_alarm_rate") or not isinstance(self.model, Pipeline):
            raise ModelFileError(
                f"{self.path} holds a {type(self.detector).__name__}, whose threshold promises no rate: --false-alarm-rate needs "
                "a model of refkernel fit --model auto."
            )
        *steps, (name, detector) = self.model.steps
        moved = Pipeline([*steps, (name, detector.with_false_alarm_rate(rate))])
        return replace(self, model=moved)

    @property
    def accepts_far(self) -> bool:
        """Whether rows that are far from all training rows are accepted."""
        return bool((self.about.get("training") or {}).get("accepts_far"))

    @property
    def imputes(self) -> bool:
        """Whether missing values are filled: as ``refkernel fit`` was asked to, and always by an encoder that was fitted in Python."""
        recipe = self.about.get("recipe")
        return self.encoder is not None if recipe is None else recipe.get("impute") is not None


@dataclass
class Scored:
    """What happened to a table: rows, outliers among them, and what a user should hear."""

    rows: int = 0
    outliers: int = 0
    extra: list[str] = field(default_factory=list)
    reordered: bool = False
    unseen: dict[str, Counter[str]] = field(default_factory=dict)
    filled: Counter[str] = field(default_factory=Counter)
    violated: Counter[str] = field(default_factory=Counter)
    """Cells that contradict all training rows, by column."""
    reasons: Counter[str] = field(default_factory=Counter)
    """How often each column is the first reason of a flagged row, if rows are explained."""
    outside: list[str] = field(default_factory=list)
    """Columns with many values outside training's range, in words, if rows are explained."""
    defused: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


ABOUT = {
    "data": {
        "file": str,
        "rows": int,
        "targets": int,
        "outliers": int,
        "target_column": (str, None),
        "target": (str, None),
        "outlier": (str, None),
        "dropped": [str],
    },
    "features": [{"name": str, "categories": ([str], None)}],
    "recipe": {"model": str, "references": str, "impute": (str, None)},
    "search": ({"candidates": int, "gmean": float}, None),
    "training": (
        {
            "support_vectors": int,
            "rank": (int, None),
            "references": (int, None),
            "scale": float,
            "nu": float,
            "threshold": float,
            "duality_gap": float,
            "accepted_targets": float,
            "rejected_outliers": (float, None),
            "decision_percentiles": [float],
        },
        {
            "choice": str,
            "false_alarm_rate": float,
            "false_alarm_interval": [float],
            "made_up_auc": float,
            "threshold": float,
            "rejected_outliers": (float, None),
            "decision_percentiles": [float],
        },
    ),
}
"""What ``refkernel fit`` writes about a model, as a pattern of ``mismatch``."""

EXPECTED = {
    "false_alarm_rate": (float, None),
    "false_alarm_interval": ([float], None),
    "held_out_rows": (int, None),
    "made_up_caught": (float, None),
}
"""What it also writes about the training where it is known; files of version 0.1 lack some of it."""


def load_table_model(path: Path) -> TableModel:
    """A model of ``refkernel fit``, or another one that was fitted on a data frame: of numbers, or of any columns behind a TableEncoder."""
    saved = open_model(path)
    model, about = saved.model, saved.metadata["about"]
    if "made_by" in about or "features" in about:
        problem = mismatch(about, ABOUT) or mismatch({name: about["training"].get(name) for name in EXPECTED}, EXPECTED, "training")
        if problem:
            raise ModelFileError(f"{path}: {problem} in its description. The file is damaged or forged: make it again with refkernel fit.")
        features = [Feature.from_dict(item) for item in about["features"]]
        known = getattr(model, "feature_names_in_", None)
        encoder = encoder_of(model)
        kinds = None if encoder is None else [feature.kind for feature in features]
        if (
            known is None
            or list(known) != [feature.name for feature in features]
            or (encoder is not None and list(encoder.kinds_) != kinds)
        ):
            raise ModelFileError(f"{path} describes other columns than its model takes. The file is damaged or forged.")
        if len(about["training"]["decision_percentiles"]) != PERCENT.size or (np.diff(about["training"]["decision_percentiles"]) < 0).any():
            raise ModelFileError(f"{path}: decision_percentiles are not {PERCENT.size} rising numbers. The file is damaged or forged.")
    elif encoder_of(model) is not None:
        features = [feature_of(column, kind) for column, kind in zip(model[0].columns, model[0].kinds_, strict=True)]
    elif hasattr(model, "feature_names_in_"):
        features = [Feature(str(name)) for name in model.feature_names_in_]
    else:
        raise ModelFileError(f"{path} does not say which columns its model takes: make it with refkernel fit, or fit it on a data frame.")
    return TableModel(Path(path), model, features, saved.metadata)


def encoder_of(model: Any) -> TableEncoder | None:
    """The first step of a pipeline, if it encodes a table."""
    first = model.steps[0][-1] if getattr(model, "steps", None) else None
    return first if isinstance(first, TableEncoder) else None


def final(model: Any) -> Any:
    """The estimator that decides: the last step of a pipeline, the best of a search."""
    for _ in range(MOST_NESTED):
        if getattr(model, "best_estimator_", None) is not None:
            model = model.best_estimator_
        elif getattr(model, "steps", None):
            model = model.steps[-1][-1]
        else:
            return model
    raise ModelFileError(f"The model is nested more than {MOST_NESTED} times.")


def score_file(
    saved: TableModel,
    data: Path,
    out: Path,
    *,
    form: CsvFormat = CsvFormat(),  # noqa: B008 (frozen)
    proba_like: bool = False,
    prefix: str = "",
    defuse: bool = True,
    explain: int = 0,
    progress: Callable[[float], None] = lambda share: None,
    watch: Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], None] = lambda block, X, answers: None,
) -> Scored:
    """Write the table with the columns score, decision and label (and normality) added, in its order of rows.

    ``explain`` adds this many reasons of each flagged row. ``defuse`` puts an apostrophe before texts that a spreadsheet would run as
    formulas. ``watch`` gets each block: as read, as the model takes it, and with the model's answers.
    """
    table = open_table(data, form)
    percentiles = _percentiles(saved) if proba_like else None
    names = (*saved.added, *([NORMALITY] if proba_like else []), *reason_names(explain))
    result = Scored(extra=check_names(table, saved, [prefix + name for name in names]))
    explaining = Explaining(saved, explain, prefix) if explain else None
    check_writable(out, data, saved.path)
    order = [feature.name for feature in saved.features]
    used = set(order)
    result.reordered = [name for name in table.names if name in used] != order
    clock = Clock()
    numeric = frozenset(feature.name for feature in saved.features if feature.kind == NUMBER)
    with (
        one_blas_thread(),
        table_writer(out, table.delimiter, defuse, numeric) as writer,
    ):  # BLAS holds 100 MB for its threads, and blocks are small
        for block in table.blocks():
            X = checked_input(block, saved, table, result)
            clock.lap("reading")
            answers = decide(saved, X, percentiles)
            watch(block, X, answers)
            added = answers.add_prefix(prefix)
            clock.lap("computing")
            _count(result, X, added[f"{prefix}label"], saved)
            rows = _output(block, X[list(numeric & set(X))], added, table, out)
            if explaining is not None:
                rows = explaining.add_to(rows, X, added[f"{prefix}label"].to_numpy())
                clock.lap("explaining")
            writer.write(rows)
            clock.lap("writing")
            progress(table.share_read())
        result.defused = writer.defused
    result.notes = table.notes
    if explaining is not None:
        result.reasons, result.outside = explaining.first, explaining.notes()
    clock.lap("writing")
    result.seconds = clock.stages
    return result


def checked_input(block: pd.DataFrame, saved: TableModel, table: Table, result: Scored) -> pd.DataFrame:
    """What the model takes from a block; an error for values that it cannot take."""
    X = model_input(block, saved.features, table.decimal, result.rows)
    check_finite(X)
    if not saved.imputes and X.isna().to_numpy().any():
        raise _missing(saved, table)
    return X


def decide(saved: TableModel, X: pd.DataFrame, percentiles: list[float] | None = None) -> pd.DataFrame:
    """score, decision = score - threshold, label = +1 where decision >= 0 else -1; with percentiles normality too."""
    detector = saved.detector
    if not hasattr(detector, "score_samples") or not hasattr(detector, "offset_"):
        raise ModelFileError(f"{saved.path} holds a {type(detector).__name__}, which gives no scores. Save a detector such as SVDD.")
    with _trouble_of(saved):
        score = saved.model.score_samples(X)
        decision = score - detector.offset_
    columns = {"score": score, "decision": decision, "label": np.where(decision >= 0, 1, -1)}
    if P_VALUE in saved.added:
        columns[P_VALUE] = detector.p_values_of(score)
    if FILLED in saved.added:
        columns[FILLED] = X.isna().sum(axis=1).to_numpy()
    if percentiles is not None:
        contradicts = np.zeros(len(X), dtype=bool) if saved.encoder is None else saved.encoder.violations(X).any(axis=1)
        columns[NORMALITY] = np.where(contradicts, 0.0, normality(decision, percentiles))
    return pd.DataFrame(columns)


@contextmanager
def _trouble_of(saved: TableModel) -> Iterator[None]:
    """The rows were checked: what goes wrong now is the model's fault, and is reported as such."""
    try:
        yield
    except (MemoryError, OSError):
        raise
    except Exception as error:
        raise ModelFileError(
            f"{saved.path} cannot score ({type(error).__name__}: {error}). The file is damaged or forged, or its model needs other columns."
        ) from error


def normality(decision: np.ndarray, percentiles: Sequence[float]) -> np.ndarray:
    """The share of training targets with a lower decision value, from 0 to 1, linear between their percentiles.

    It never falls as the decision value rises. It is not a probability: a new target is as likely to get 0.05 as 0.95.
    """
    return np.interp(decision, percentiles, PERCENT / 100.0)


def check_names(table: Table, saved: TableModel, added: list[str]) -> list[str]:
    """The columns that the model does not use; an error for those that are missing or would be there twice."""
    wanted = [feature.name for feature in saved.features]
    there = set(table.names)
    absent = [name for name in wanted if name not in there]
    if absent:
        raise TableError(
            f"{table.path} lacks {len(absent):,} of the {len(wanted):,} columns of {saved.path.name}: {named(absent, 20)}. "
            f"It has {named(table.names, 20)}. Names must match; their order is free."
        )
    twice = [name for name in added if name in there]
    if twice:
        raise TableError(
            f"{table.path} has a column {named(twice)} already, which would be added. Rename it, or pass --prefix, such as rk_."
        )
    used = set(wanted)
    return [name for name in table.names if name not in used]


def _missing(saved: TableModel, table: Table) -> TableError:
    """The error for missing values, with their counts over the whole table."""
    counts: Counter[str] = Counter()
    rows = 0
    for block in table.blocks():
        counts += missing_counts(model_input(block, saved.features, table.decimal, rows))
        rows += len(block)
    way_out = f"{saved.path.name} was fitted without a rule for them: fit it with --impute median, or fill or remove these rows."
    return TableError(missing_message(counts, rows, way_out))


def _percentiles(saved: TableModel) -> list[float]:
    found = (saved.about.get("training") or {}).get("decision_percentiles")
    if found is None:
        raise ModelFileError(f"{saved.path} holds no training decisions, which --proba-like needs: make it with refkernel fit.")
    return found


def _count(result: Scored, X: pd.DataFrame, label: pd.Series, saved: TableModel) -> None:
    result.rows += len(X)
    result.outliers += int((label == -1).sum())
    result.filled += missing_counts(X)
    for name, counts in unseen(X, saved.features).items():
        result.unseen[name] = result.unseen.get(name, Counter()) + counts
    if saved.encoder is not None:
        rows = (
            X if saved.accepts_far else X[(label == -1).to_numpy()]
        )  # contradictions are flagged, but for models that accept all that is far
        violated = saved.encoder.violations(rows).sum(axis=0)
        result.violated += Counter({column.name: int(count) for column, count in zip(saved.columns, violated, strict=True) if count})


def _output(block: pd.DataFrame, numbers: pd.DataFrame, added: pd.DataFrame, table: Table, out: Path) -> pd.DataFrame:
    """The block as it was, with the new columns; Parquet gets numbers where CSV had their text."""
    added = added.set_index(block.index)
    if is_parquet(out):
        block = block.copy()
        for name in numbers:
            if is_text(block[name]):
                block[name] = numbers[name].to_numpy()
    elif table.decimal == ",":
        added = added.astype(str).apply(lambda column: column.str.replace(".", ",", regex=False))
    return pd.concat([block, added], axis=1)
