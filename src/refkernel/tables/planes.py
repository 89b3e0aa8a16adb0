"""A plane through the rows of a table, with the scores on it: of two columns, or of two principal components of all numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._encoding import CONSTANT, NUMBER, Column
from .._threads import one_blas_thread
from ..exceptions import TableError
from ..explanations.ranges import normal_of
from .scoring import TableModel, decide

__all__ = ["GRID", "Region", "region_of"]

GRID = 72
"""Points of the plane along each axis; pictures interpolate between them."""

MARGIN = 0.08
"""The share of the points' range added on each side."""

BULK, REACH = 0.05, 1.0
"""Points further from the middle 90 % than these are wide stand at the edge of the plane."""

MOST_UNITS = 5.0

FLAT = 1e-9
"""Rows whose second direction is shorter than this share of the first lie on a line."""


@dataclass(frozen=True)
class Plane:
    """The rows center + unit · (p · axes) of some columns of numbers."""

    columns: list[str]
    center: np.ndarray
    unit: np.ndarray
    axes: np.ndarray
    labels: list[str]

    def project(self, V: np.ndarray) -> np.ndarray:
        """The coordinates (n × 2) of rows."""
        return ((V - self.center) / self.unit) @ self.axes.T

    def lift(self, P: np.ndarray) -> np.ndarray:
        """The rows at coordinates of the plane."""
        return self.center + (P @ self.axes) * self.unit


@dataclass(frozen=True)
class Region:
    """Rows on a plane, and the scores of a grid of GRID × GRID points around them."""

    labels: list[str]
    rows: np.ndarray
    """The numbers of the rows that are on it: all but those without a value in a column that was asked for."""
    points: np.ndarray
    """Where they are (n × 2)."""
    x: np.ndarray
    y: np.ndarray
    scores: np.ndarray
    """Row by row of the grid, from the lowest y."""
    is_slice: bool
    """Whether the model has further columns."""


def region_of(saved: TableModel, X: pd.DataFrame, features: tuple[str, ...] = ()) -> Region | None:
    """Rows and a grid of scores on a plane through them; None where the rows do not span one.

    Columns that are not in the plane have the value that is typical of training.
    """
    typical = _typical_row(saved, X)
    plane = _named(saved, features) if features else _principal(saved, X, typical)
    if plane is None:
        return None
    V = X[plane.columns].to_numpy(dtype=np.float64)
    known = ~np.isnan(V).any(axis=1) if features else np.ones(len(V), dtype=bool)
    if not known.any():
        return None
    P = _within(plane.project(np.where(np.isnan(V), plane.center, V)[known]))
    x, y, points = _grid(P)
    on_plane = pd.DataFrame({name: np.full(len(points), value, dtype=X[name].dtype) for name, value in typical.items()})
    on_plane[plane.columns] = plane.lift(points)
    with one_blas_thread():
        scores = decide(saved, on_plane)["score"].to_numpy()
    return Region(plane.labels, np.flatnonzero(known), P, x, y, scores, len(saved.features) > 2)


def _typical_row(saved: TableModel, X: pd.DataFrame) -> dict[str, Any]:
    """The median or the most frequent level of each column, in training where the model's file has them, else in these rows."""
    return {column.name: _typical(column, X[column.name]) for column in saved.columns}


def _typical(column: Column, cells: pd.Series) -> Any:
    normal = normal_of(column)
    if normal is not None:
        return normal.levels[0] if normal.levels else normal.typical
    return float(cells.median()) if cells.dtype == np.float64 else cells.mode().get(0, np.nan)


def _named(saved: TableModel, features: tuple[str, ...]) -> Plane:
    numeric = [feature.name for feature in saved.features if feature.kind == NUMBER]
    if len(features) != 2 or features[0] == features[1] or not set(features) <= set(numeric):
        raise TableError(f"--features {','.join(features)} must be two different numeric columns of the model: {', '.join(numeric)}.")
    return Plane(list(features), np.zeros(2), np.ones(2), np.eye(2), list(features))


def _principal(saved: TableModel, X: pd.DataFrame, typical: dict[str, Any]) -> Plane | None:
    """Two principal components of the columns of numbers that vary, in training and here, in units of their standard deviations."""
    constant = {column.name for column in saved.columns if column.kind == CONSTANT}
    varying = [feature.name for feature in saved.features if feature.kind == NUMBER and feature.name not in constant]
    columns = [name for name in varying if X[name].nunique() > 1]
    if len(columns) == 2:
        return _named(saved, (columns[0], columns[1]))
    center = np.array([typical[name] for name in columns], dtype=np.float64)
    V = X[columns].to_numpy(dtype=np.float64)
    Z = np.where(np.isnan(V), center, V) - center
    unit = _within(Z).std(axis=0)
    Z = np.clip(Z, -MOST_UNITS * unit, MOST_UNITS * unit)  # a few wild rows must not choose the plane
    _, sizes, directions = np.linalg.svd((Z - Z.mean(axis=0)) / unit, full_matrices=False)
    if sizes.size < 2 or not sizes[1] > FLAT * sizes[0]:
        return None
    shares = 100 * sizes**2 / (sizes**2).sum()
    return Plane(columns, center, unit, directions[:2], [f"component {i + 1} ({shares[i]:.0f} % of the variance)" for i in (0, 1)])


def _within(values: np.ndarray) -> np.ndarray:
    """Columns without their wild values: those far from the bulk are moved to its edge."""
    low, high = np.quantile(values, [BULK, 1.0 - BULK], axis=0)
    room = REACH * np.where(high > low, high - low, np.ptp(values, axis=0))
    return np.clip(values, low - room, high + room)


def _grid(P: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    low, high = P.min(axis=0), P.max(axis=0)
    margin = MARGIN * np.where(high > low, high - low, 1.0)
    x, y = (np.linspace(low[i] - margin[i], high[i] + margin[i], GRID) for i in (0, 1))
    return x, y, np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
