"""Which cells speak most against a row, next to what training held in their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._encoding import DATE
from ..drift import Categories, Column
from ..explanations import explain
from ..explanations.normal import Normal
from ..explanations.reasons import worst_features
from .scoring import TableModel
from .summary import training_columns


@dataclass(frozen=True)
class Reason:
    """A cell that speaks against its row: its column, its value, and what training had there."""

    column: str
    value: str
    normal: str
    outside: bool
    """Whether training never had such a value; if it had, the value does not fit the others of the row."""
    weight: float | None = None
    """What the cell adds to the row's score (negative: it speaks against the row); None where the model cannot be explained."""

    def as_dict(self) -> dict[str, Any]:
        """The reason in plain JSON."""
        return {"column": self.column, "value": self.value, "normal": self.normal, "outside": self.outside, "weight": self.weight}


def normals_of(saved: TableModel, tail: float = 0.0) -> list[Normal]:
    """What training had in each column; of numbers all but a share ``tail`` on each side."""
    dates = {feature.name for feature in saved.features if feature.kind == DATE}
    return [_normal(column, column.name in dates, tail) for column in training_columns(saved)]


def _normal(column: Column, is_date: bool, tail: float) -> Normal:
    if isinstance(column, Categories):
        return Normal(levels=tuple(sorted(column.levels, key=lambda level: -column.levels[level])))
    if not column.knots.size:
        return Normal()
    return Normal(column.quantile(tail), column.quantile(1.0 - tail), is_date=is_date, typical=column.quantile(0.5))


def reasons_of(saved: TableModel, X: pd.DataFrame, count: int = 3) -> list[list[Reason]]:
    """For each row the cells that speak most against it, the strongest first.

    Cells are ordered by what they add to the score (see :func:`refkernel.explain`). If the model cannot be explained, the cells that are
    rarest by themselves come first.
    """
    columns, normals = training_columns(saved), normals_of(saved)
    if not columns or not len(X):
        return [[] for _ in range(len(X))]
    weights = _weights(saved, X, len(columns))
    order = weights if weights is not None else np.column_stack([_rarity(column, X[column.name]) - 1.0 for column in columns])
    found = []
    for row, worst in enumerate(worst_features(order, count)):
        chosen = [int(i) for i in worst if i >= 0]
        found.append([_reason(columns[i].name, X, row, normals[i], None if weights is None else float(weights[row, i])) for i in chosen])
    return found


def _weights(saved: TableModel, X: pd.DataFrame, columns: int) -> np.ndarray | None:
    """What each cell adds to its row's score; None if the model is of a kind that cannot be explained."""
    try:
        values = explain(saved.model, X).values
    except (TypeError, ValueError):
        return None
    return values if values.shape == (len(X), columns) else None


def _reason(name: str, X: pd.DataFrame, row: int, normal: Normal, weight: float | None) -> Reason:
    cell = X[name].iloc[row]
    outside = bool(cell != cell or normal.outside(np.array([cell], dtype=object))[0])
    return Reason(name, normal.written(cell), str(normal) or "always missing", outside, weight)


def _rarity(column: Column, cells: pd.Series) -> np.ndarray:
    """The share of training rows as unusual as each cell; below 0, and lower the further away, for what training never saw."""
    missing = column.missing / column.rows if column.missing else -1.0
    if isinstance(column, Categories):
        shares = {level: count / column.rows for level, count in column.levels.items()}
        return np.array([missing if cell != cell else shares.get(cell, -1.0) for cell in cells])
    values = cells.to_numpy(dtype=np.float64)
    if not column.knots.size:
        return np.where(np.isnan(values), 1.0, -1.0)
    at_most = np.interp(values, column.knots, column.at_most) / column.present
    tail = 2.0 * np.minimum(at_most, 1.0 - at_most)
    width = column.knots[-1] - column.knots[0] or abs(column.knots[0]) or 1.0
    beyond = np.maximum(column.knots[0] - values, values - column.knots[-1]) / width
    return np.where(np.isnan(values), missing, np.where(beyond > 0, -beyond, tail))
