"""Which cells speak most against a row, next to what training held in their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..drift import Categories, Column
from ..explanations import explain
from .scoring import TableModel
from .summary import training_columns

LOW, HIGH = 0.01, 0.99
"""The normal range of a column of numbers is that of all but the lowest and the highest percent of the training values."""

SHOWN_LEVELS = 3


@dataclass(frozen=True)
class Reason:
    """A cell that speaks against its row: its column, its value, and what is normal there."""

    column: str
    value: str
    normal: str
    share: float
    """The share of training rows that are as unusual in this column by itself; 0 for what training never saw."""
    weight: float | None = None
    """What the cell adds to the row's score (negative: it speaks against the row); None where the model cannot be explained."""

    def __str__(self) -> str:
        return f"{self.column} = {self.value} (normal: {self.normal})"

    def as_dict(self) -> dict[str, Any]:
        """The reason in plain JSON."""
        return {"column": self.column, "value": self.value, "normal": self.normal, "share": self.share, "weight": self.weight}


def normal_of(column: Column) -> str:
    """What is normal in a column, in a few words."""
    if isinstance(column, Categories):
        levels = sorted(column.levels, key=lambda level: -column.levels[level])
        return ", ".join(levels[:SHOWN_LEVELS]) + (f" and {len(levels) - SHOWN_LEVELS:,} more" if len(levels) > SHOWN_LEVELS else "")
    if not column.knots.size:
        return "missing"
    low, high = column.quantile(LOW), column.quantile(HIGH)
    return f"always {number(low)}" if column.knots.size == 1 else f"{number(low)} … {number(high)}"


def reasons_of(saved: TableModel, X: pd.DataFrame, count: int = 3) -> list[list[Reason]]:
    """For each row the cells that speak most against it, the strongest first.

    Cells are ordered by what they add to the score (see :func:`refkernel.explain`). If the model cannot be explained, the cells that are
    rarest by themselves come first.
    """
    columns = training_columns(saved)
    if not columns or not len(X):
        return [[] for _ in range(len(X))]
    rarity = np.column_stack([_rarity(column, X[column.name]) for column in columns])
    weights = _weights(saved, X, rarity.shape)
    order = rarity if weights is None else np.where(weights < 0, weights, np.inf)
    normal = [normal_of(column) for column in columns]
    found = []
    for row in range(len(X)):
        worst = [i for i in np.argsort(order[row], kind="stable")[:count] if np.isfinite(order[row, i])]
        found.append([_reason(columns[i], X, row, normal[i], rarity[row, i], None if weights is None else weights[row, i]) for i in worst])
    return found


def _weights(saved, X, shape) -> np.ndarray | None:
    """What each cell adds to its row's score; None if the model is of a kind that cannot be explained."""
    try:
        values = explain(saved.model, X).values
    except (AttributeError, TypeError, ValueError):
        return None
    return values if values.shape == shape else None


def _reason(column, X, row, normal, rarity, weight) -> Reason:
    value = _value(X[column.name].iloc[row])
    return Reason(column.name, value, normal, max(float(rarity), 0.0), None if weight is None else float(weight))


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


def number(value: float) -> str:
    """A number as people write it: five digits, thousands separated."""
    return f"{value:,.0f}" if abs(value) >= 10_000 and abs(value) < 1e15 else f"{value:.5g}"


def _value(cell: Any) -> str:
    if cell != cell:
        return "missing"
    return number(float(cell)) if isinstance(cell, float) else str(cell)
