"""A plane through the rows of a table, with the scores on it: of two columns, or of two principal components."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._encoding import NUMBER
from .._threads import one_blas_thread
from ..exceptions import TableError
from ..tables import TableModel
from ..tables.scoring import decide
from ..tables.summary import Kept
from .charts import short

__all__ = ["plane_chart"]

GRID = 72
"""Points of the plane along each axis; the page interpolates between them."""

MARGIN = 0.08
"""The share of the points' range added on each side."""

FLAT = 1e-9
"""Rows whose second direction is shorter than this share of the first lie on a line."""


def plane_chart(saved: TableModel, kept: Kept, features: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """Points and a grid of scores on a plane through them; None where the rows do not span one."""
    with one_blas_thread():
        return _of_columns(saved, kept, features) if features else _of_components(saved, kept)


def _of_columns(saved: TableModel, kept: Kept, features: tuple[str, ...]) -> dict[str, Any] | None:
    """The plane of two columns, all others at their median or most frequent value."""
    numeric = [feature.name for feature in saved.features if feature.kind == NUMBER]
    if len(features) != 2 or features[0] == features[1] or not set(features) <= set(numeric):
        raise TableError(f"--features {','.join(features)} must be two different numeric columns of the model: {', '.join(numeric)}.")
    known = kept.X[list(features)].notna().all(axis=1).to_numpy()
    if not known.any():
        return None
    P = kept.X.loc[known, list(features)].to_numpy(dtype=np.float64)
    x, y, points = _grid(P)
    typical = {name: _typical(kept.X[name]) for name in kept.X.columns}
    on_plane = pd.DataFrame(
        {name: np.full(len(points), value, dtype=kept.X[name].dtype) for name, value in typical.items()}, columns=kept.X.columns
    )
    on_plane[list(features)] = points
    return _chart(kept.take(np.flatnonzero(known)), list(features), P, x, y, decide(saved, on_plane)["score"], len(saved.features) > 2)


def _typical(column: pd.Series) -> Any:
    if column.dtype == np.float64:
        return float(column.median())
    return column.mode().iloc[0] if column.notna().any() else np.nan


def _of_components(saved: TableModel, kept: Kept) -> dict[str, Any] | None:
    """The plane of two principal components of what the detector takes, each encoded column in units of its standard deviation."""
    if not hasattr(saved.model, "steps") or len(kept.rows) < 3:
        return None
    E = np.asarray(saved.model[:-1].transform(kept.X), dtype=np.float64)
    center, spread = E.mean(axis=0), E.std(axis=0)
    unit = np.where(spread > 0, spread, 1.0)
    _, sizes, directions = np.linalg.svd((E - center) / unit, full_matrices=False)
    if sizes.size < 2 or not sizes[1] > FLAT * sizes[0]:
        return None
    axes, shares = directions[:2], 100 * sizes**2 / (sizes**2).sum()
    P = ((E - center) / unit) @ axes.T
    x, y, points = _grid(P)
    scores = saved.detector.score_samples(center + (points @ axes) * unit)
    labels = [f"component {i + 1} ({shares[i]:.0f} % of the variance)" for i in (0, 1)]
    return _chart(kept, labels, P, x, y, scores, E.shape[1] > 2)


def _grid(P: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    low, high = P.min(axis=0), P.max(axis=0)
    margin = MARGIN * np.where(high > low, high - low, 1.0)
    x, y = (np.linspace(low[i] - margin[i], high[i] + margin[i], GRID) for i in (0, 1))
    return x, y, np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def _chart(
    kept: Kept, labels: list[str], P: np.ndarray, x: np.ndarray, y: np.ndarray, scores: npt.ArrayLike, is_slice: bool
) -> dict[str, Any]:
    return {
        "labels": labels,
        "x": [float(x[0]), float(x[-1])],
        "y": [float(y[0]), float(y[-1])],
        "grid": GRID,
        "scores": short(scores),
        "points": [short(P[:, 0]), short(P[:, 1])],
        "of_points": kept.answers["score"].tolist(),
        "rows": kept.rows.tolist(),
        "slice": bool(is_slice),
    }
