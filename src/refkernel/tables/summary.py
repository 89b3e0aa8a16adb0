"""What a table of new rows was like: how many were flagged, how well labels agree, the worst rows, and drift, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from .._validation import OUTLIER
from ..drift import Column, Drift, DriftMonitor, column_from_dict
from ..exceptions import ModelFileError, TableError
from .cells import texts
from .expected import measured_rate
from .scoring import TableModel
from .seen import SeenRows
from .wording import named

FLATTERING = 0.1
"""A table of which at least this share has trained the model flatters it."""


@dataclass(frozen=True)
class Labels:
    """Which rows of a table are known to be normal: those with ``target`` in ``column``."""

    column: str
    target: str


def labels_for(saved: TableModel, names: Sequence[str], column: str | None = None, target: str | None = None) -> Labels | None:
    """The labels that a table has: in the column that is named, or in the one that the model was trained by, if it is there."""
    trained = saved.about.get("data") or {}
    if column is None and target is not None:
        raise TableError("--target is a value of a column: name it by --target-column.")
    if column is None:
        known, value = trained.get("target_column"), trained.get("target")
        return Labels(known, value) if known is not None and known in names and value is not None else None
    if column not in names:
        raise TableError(f"--target-column: the table has no column {column}. Its columns are {named(names, 50)}.")
    if target is None:
        target = trained.get("target") if column == trained.get("target_column") else None
    if target is None:
        raise TableError(f"--target-column {column} needs --target: its value for normal rows.")
    return Labels(column, target.strip())


def training_columns(saved: TableModel) -> list[Column]:
    """What the model's file says about the columns in training; nothing in files of earlier versions."""
    columns = [column_from_dict(item) for item in saved.about.get("columns") or []]
    if columns and [column.name for column in columns] != [feature.name for feature in saved.features]:
        raise ModelFileError(f"{saved.path} describes other training columns than its model takes. The file is damaged or forged.")
    return columns


@dataclass
class Kept:
    """Some rows of a table: their numbers (the first row is 1), their cells as they were, what the model took, and its answers."""

    rows: np.ndarray
    cells: pd.DataFrame
    X: pd.DataFrame
    answers: pd.DataFrame

    def take(self, chosen: np.ndarray) -> Kept:
        """Some of these rows."""
        frames = (frame.iloc[chosen].reset_index(drop=True) for frame in (self.cells, self.X, self.answers))
        return Kept(self.rows[chosen], *frames)

    def and_(self, other: Kept) -> Kept:
        """These rows and others."""
        pairs = ((self.cells, other.cells), (self.X, other.X), (self.answers, other.answers))
        return Kept(np.concatenate([self.rows, other.rows]), *(pd.concat(pair, ignore_index=True) for pair in pairs))


@dataclass
class Watch:
    """Follows the rows of a table as they are scored. It holds two numbers a row, ``worst`` rows and ``spread`` rows.

    The ``spread`` rows are taken evenly from the whole table, whatever its length.
    """

    saved: TableModel
    labels: Labels | None = None
    worst: int = 0
    spread: int = 0
    rows: int = 0
    worst_rows: Kept | None = None
    spread_rows: Kept | None = None
    _scores: list[np.ndarray] = field(default_factory=list)
    _kinds: list[np.ndarray] = field(default_factory=list)
    _step: int = 1

    def __post_init__(self) -> None:
        self._seen = SeenRows(self.saved.about.get("seen"))
        self._monitor = DriftMonitor(training_columns(self.saved), getattr(self.saved.detector, "calibration_", None))

    def add(self, block: pd.DataFrame, X: pd.DataFrame, answers: pd.DataFrame) -> None:
        """Take a block of rows: as read, as the model took them, and with its answers (score, decision, label, …)."""
        score = answers["score"].to_numpy()
        self._monitor.add(X, score)
        self._seen.add(score)
        self._scores.append(score)
        if self.labels is not None:
            self._kinds.append(_kinds(block[self.labels.column], self.labels.target))
        here = Kept(np.arange(self.rows + 1, self.rows + len(block) + 1), block, X, answers)
        self.rows += len(block)
        if self.worst:
            self.worst_rows = self._worst_of(here)
        if self.spread:
            self._spread(here)

    def _worst_of(self, here: Kept) -> Kept:
        """The worst rows of those that were kept and those that are here; earlier rows come first where scores are equal."""
        score, kept = here.answers["score"].to_numpy(), self.worst_rows
        if kept is None:
            return here.take(np.argsort(score, kind="stable")[: self.worst])
        limit = np.inf if len(kept.rows) < self.worst else kept.answers["score"].iloc[-1]
        worse = np.flatnonzero(score < limit)
        if not worse.size:
            return kept
        both = kept.and_(here.take(worse[np.argsort(score[worse], kind="stable")[: self.worst]]))
        return both.take(np.argsort(both.answers["score"].to_numpy(), kind="stable")[: self.worst])

    def _spread(self, here: Kept) -> None:
        chosen = here.take(np.flatnonzero((here.rows - 1) % self._step == 0))
        self.spread_rows = chosen if self.spread_rows is None else self.spread_rows.and_(chosen)
        while len(self.spread_rows.rows) > self.spread:
            self._step *= 2
            self.spread_rows = self.spread_rows.take(np.flatnonzero((self.spread_rows.rows - 1) % self._step == 0))

    @property
    def scores(self) -> np.ndarray:
        """The scores of all rows."""
        return np.concatenate(self._scores) if self._scores else np.empty(0)

    @property
    def kinds(self) -> np.ndarray | None:
        """+1 for rows that are known to be normal, -1 for known others, 0 for rows without a label; None without labels."""
        return None if self.labels is None else np.concatenate(self._kinds) if self._kinds else np.empty(0)

    @property
    def trained_share(self) -> float | None:
        """The share of the rows that have trained the model; None if it cannot be told."""
        return self._seen.share

    @property
    def flatters(self) -> bool:
        """Whether rows that have trained the model make its figures look better than they are for new rows."""
        return (self.trained_share or 0.0) >= FLATTERING

    def drift(self) -> Drift | None:
        """The tests against training; None where the model's file does not describe its columns."""
        return self._monitor.drift() if self._monitor.counts else None

    def agreement(self) -> dict[str, Any] | None:
        """How the labels of the table agree with the model; None without labels."""
        if self.labels is None or self.kinds is None:
            return None
        flagged, kinds = self.scores < self.saved.detector.offset_, self.kinds
        normal, others = kinds == 1, kinds == OUTLIER
        both = normal.any() and others.any()
        return {
            "column": self.labels.column,
            "target": self.labels.target,
            "normal_rows": int(normal.sum()),
            "other_rows": int(others.sum()),
            "rows_without_label": int((kinds == 0).sum()),
            **measured_rate("false_alarm", flagged[normal]),
            **measured_rate("caught", flagged[others]),
            "auroc": float(roc_auc_score(normal[kinds != 0], self.scores[kinds != 0])) if both else None,
        }


def _kinds(column: pd.Series, target: str) -> np.ndarray:
    values = texts(column)
    return np.where(values == target, 1, np.where(values == values, OUTLIER, 0)).astype(np.int8)
