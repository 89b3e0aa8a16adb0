"""The plane of the data as the page draws it."""

from __future__ import annotations

from typing import Any

from ..tables import TableModel
from ..tables.planes import GRID, region_of
from ..tables.summary import Kept
from .charts import short

__all__ = ["plane_chart"]


def plane_chart(saved: TableModel, kept: Kept, features: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """Points and a grid of scores on a plane through them; None where the rows do not span one."""
    region = region_of(saved, kept.X, features)
    if region is None:
        return None
    on_it = kept.take(region.rows)
    return {
        "labels": region.labels,
        "x": [float(region.x[0]), float(region.x[-1])],
        "y": [float(region.y[0]), float(region.y[-1])],
        "grid": GRID,
        "scores": short(region.scores),
        "points": [short(region.points[:, 0]), short(region.points[:, 1])],
        "of_points": on_it.answers["score"].tolist(),
        "rows": on_it.rows.tolist(),
        "slice": region.is_slice,
    }
