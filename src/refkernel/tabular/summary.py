"""What a table of new rows was like: how many were flagged, how well labels agree, the worst rows, and drift, in bounded memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from .. import __version__
from .._core.text import named
from .._core.validation import OUTLIER
from ..detectors.explain.reasons import Reason
from ..exceptions import TableError, _printable
from .card import measured_rate, trained_share
from .columns import NUMBER
from .drift import Drift, DriftMonitor
from .encoder import Rows
from .readers.values import texts

if TYPE_CHECKING:
    from .scoring import SavedModel

FLATTERING = 0.1  # A table of which at least this share has trained the model flatters it


@dataclass(frozen=True)
class Labels:
    """Which rows of a table are known to be normal: those with ``target`` in ``column``."""

    column: str
    target: str


def labels_for(saved: "SavedModel", names: Sequence[str], column: str | None = None, target: str | None = None) -> Labels | None:
    """The labels that a table has: in the column that is named, or in the one that the model was trained by, if it is there."""
    trained = saved.model.card_
    if column is None and target is not None:
        raise TableError("--target is a value of a column: name it by --target-column.")
    if column is None:
        known, value = trained["target_column"], trained["target"]
        return Labels(known, value) if known is not None and known in names and value is not None else None
    if column not in names:
        raise TableError(f"--target-column: the table has no column {column}. Its columns are {named(names, 50)}.")
    if target is None:
        target = trained["target"] if column == trained["target_column"] else None
    if target is None:
        raise TableError(f"--target-column {column} needs --target: its value for normal rows.")
    return Labels(column, target.strip())


@dataclass
class Kept:
    """Some rows of a table: their numbers (the first row is 1), their cells as they were, what the model took, and its answers."""

    rows: np.ndarray
    cells: pd.DataFrame
    X: Rows
    answers: pd.DataFrame

    @property
    def scores(self) -> np.ndarray:
        return self.answers["score"].to_numpy()

    def take(self, chosen: np.ndarray) -> "Kept":
        cells, answers = (frame.iloc[chosen].reset_index(drop=True) for frame in (self.cells, self.answers))
        return Kept(self.rows[chosen], cells, self.X.take(chosen), answers)

    def worst(self, count: int) -> "Kept":
        """Those with the lowest scores, earlier rows first where scores are equal."""
        return self.take(np.argsort(self.scores, kind="stable")[:count])

    def and_(self, other: "Kept") -> "Kept":
        cells, answers = (pd.concat(pair, ignore_index=True) for pair in ((self.cells, other.cells), (self.answers, other.answers)))
        return Kept(np.concatenate([self.rows, other.rows]), cells, self.X.and_(other.X), answers)


@dataclass
class Watch:
    """Follows the rows of a table as they are scored: two numbers a row, the ``worst`` rows, and ``spread`` rows taken evenly from all."""

    saved: "SavedModel"
    labels: Labels | None = None
    worst: int = 0
    spread: int = 0
    rows: int = 0
    worst_rows: Kept | None = None
    spread_rows: Kept | None = None
    violated: Counter[str] = field(default_factory=Counter)  # cells that contradict all training rows, by column
    lacking: Counter[str] = field(default_factory=Counter)  # those of them that are missing
    reasons: Counter[str] = field(default_factory=Counter)  # how often each column is the first reason, if rows are explained
    extra: list[str] = field(default_factory=list)  # columns that the model does not use
    reordered: bool = False
    defused: int = 0
    notes: list[str] = field(default_factory=list)
    _scores: list[np.ndarray] = field(default_factory=list)
    _flagged: list[np.ndarray] = field(default_factory=list)
    _kinds: list[np.ndarray] = field(default_factory=list)
    _step: int = 1

    def __post_init__(self) -> None:
        self.monitor = DriftMonitor(self.saved.columns, getattr(self.saved.model, "calibration_", None))

    def add(self, block: pd.DataFrame, X: Rows, answers: pd.DataFrame) -> None:
        """Take a block of rows: as read, as the model took them, and with its answers (score, decision, label, …)."""
        here = Kept(np.arange(self.rows + 1, self.rows + len(block) + 1), block, X, answers)
        self.rows += len(block)
        self.monitor.add(X.cells, here.scores)
        self._scores.append(here.scores)
        self._flagged.append(answers["label"].to_numpy() == OUTLIER)
        accepts_far = self.saved.model.card_["accepts_far"]  # else contradictions are flagged
        told = X.violations if accepts_far else X.violations & self._flagged[-1][:, None]
        for counter, cells in ((self.violated, told), (self.lacking, told & X.missing)):
            counter.update({name: int(count) for name, count in zip(X.names, cells.sum(axis=0), strict=True) if count})
        if self.labels is not None:
            self._kinds.append(label_kinds(block[self.labels.column], self.labels.target))
        if self.worst:
            worst = here.worst(self.worst)
            self.worst_rows = worst if self.worst_rows is None else self.worst_rows.and_(worst).worst(self.worst)
        if self.spread:
            chosen = here.take(np.flatnonzero((here.rows - 1) % self._step == 0))
            self.spread_rows = chosen if self.spread_rows is None else self.spread_rows.and_(chosen)
            while len(self.spread_rows.rows) > self.spread:
                self._step *= 2
                self.spread_rows = self.spread_rows.take(np.flatnonzero((self.spread_rows.rows - 1) % self._step == 0))

    @property
    def scores(self) -> np.ndarray:
        return np.concatenate(self._scores) if self._scores else np.empty(0)

    @property
    def outliers(self) -> int:
        return int(self.flagged.sum())

    @property
    def flagged(self) -> np.ndarray:
        """True for the rows that are flagged."""
        return np.concatenate(self._flagged) if self._flagged else np.empty(0, dtype=bool)

    @property
    def kinds(self) -> np.ndarray | None:
        """+1 for rows that are known to be normal, -1 for known others, 0 for rows without a label; None without labels."""
        return None if self.labels is None else np.concatenate(self._kinds) if self._kinds else np.empty(0)

    @cached_property
    def worst_reasons(self) -> list[list[Reason]]:
        """Why the worst rows are unusual, when all rows have been seen."""
        return [] if self.worst_rows is None else self.saved.reasons(self.worst_rows.X)

    @property
    def trained_share(self) -> float | None:
        """The share of the rows that have trained the model; None if it cannot be told."""
        return trained_share(self.saved.model.card_, self.saved.model.seen_scores_, self.scores)

    @property
    def flatters(self) -> bool:
        """Whether rows that have trained the model make its figures look better than they are for new rows."""
        return (self.trained_share or 0.0) >= FLATTERING

    def drift(self) -> Drift | None:
        """The tests against training; None without rows, and where the model's file does not describe its columns."""
        return self.monitor.drift() if self.rows and all(column.rows for column in self.saved.columns) else None

    def agreement(self) -> dict[str, Any] | None:
        """How the labels of the table agree with the model; None without labels."""
        if self.labels is None or self.kinds is None:
            return None
        flagged, kinds = self.flagged, self.kinds
        normal, others = kinds == 1, kinds == OUTLIER
        return {
            "column": self.labels.column,
            "target": self.labels.target,
            "normal_rows": int(normal.sum()),
            "other_rows": int(others.sum()),
            "rows_without_label": int((kinds == 0).sum()),
            **measured_rate("false_alarm", flagged[normal]),
            **measured_rate("caught", flagged[others]),
            "auroc": float(roc_auc_score(normal[kinds != 0], self.scores[kinds != 0])) if normal.any() and others.any() else None,
        }

    def as_dict(self, table: str) -> dict[str, Any]:
        """The whole summary in plain JSON."""
        model, drift = self.saved.model, self.drift()
        promise = {} if model.card_["held_out_rows"] else model.card_
        return {
            "made_by": f"refkernel score {__version__}",
            "model": _printable(self.saved.path.name),
            "table": _printable(table),
            "rows": self.rows,
            "flagged": self.outliers,
            "flagged_share": self.outliers / self.rows if self.rows else None,
            "trained_share": self.trained_share,
            "flatters": self.flatters,
            "threshold": float(model.offset_),
            **{f"expected_{name}": promise.get(name) for name in ("false_alarm_rate", "false_alarm_interval")},
            "labels": self.agreement(),
            "drift": None if drift is None else drift.as_dict(),
            "columns": [] if drift is None else [column.as_dict() for column in drift.columns],
            "worst": self.worst_as_dicts(),
        }

    def worst_as_dicts(self) -> list[dict[str, Any]]:
        """The worst rows, and why they are unusual."""
        if (kept := self.worst_rows) is None:
            return []
        known = None if self.labels is None else kept.cells[self.labels.column]
        numbers = {c.name: v for c, v in zip(self.saved.columns, kept.X.cells, strict=True) if c.kind == NUMBER}
        cells = {name: [None if np.isnan(v) else v for v in mine.tolist()] for name, mine in numbers.items()}  # JSON has no NaN
        return [
            {
                "row": int(row),
                "score": float(answers["score"]),
                "p_value": answers.get("p_value"),
                "label": int(answers["label"]),
                "known": None if known is None else str(known[i]),
                "reasons": [
                    reason.as_dict() | ({"value": cells[reason.column][i]} if reason.column in cells else {})
                    for reason in self.worst_reasons[i]
                ],
            }
            for i, (row, answers) in enumerate(zip(kept.rows, kept.answers.to_dict("records"), strict=True))
        ]


def label_kinds(column: pd.Series, target: str) -> np.ndarray:
    """+1 for rows with the target, -1 for others, 0 for rows without a label."""
    values = texts(column)
    return np.where(values == target, 1, np.where(values == values, OUTLIER, 0)).astype(np.int8)
