"""The worst rows of a table as the page lists them."""

from __future__ import annotations

from typing import Any

from ..explanations.reasons import Reason
from ..tables.summary import Watch
from .words import cut

__all__ = ["cells_of", "worst_rows"]

MOST_CELLS = 40
"""Cells of a row that the page shows; more would hide the rows."""


def worst_rows(watch: Watch, reasons: list[list[Reason]]) -> list[dict[str, Any]]:
    """A row of the page's table for each of the worst rows, with its reasons."""
    kept = watch.worst_rows
    if kept is None:
        return []
    p_values = kept.answers["p_value"].tolist() if "p_value" in kept.answers else [None] * len(kept.rows)
    label = watch.labels.column if watch.labels else None
    found = []
    for i, row in enumerate(kept.rows):
        found.append(
            {
                "row": int(row),
                "score": float(kept.answers["score"].iloc[i]),
                "score_text": f"{kept.answers['score'].iloc[i]:.4g}",
                "p": p_values[i],
                "p_text": "" if p_values[i] is None else f"{p_values[i]:.2g}",
                "label": "" if label is None else cut(kept.cells[label].iloc[i]),
                "reasons": [(reason.column, cut(reason.value), cut(reason.why)) for reason in reasons[i]],
            }
        )
    return found


def cells_of(watch: Watch) -> dict[str, Any]:
    """The worst rows as they were read."""
    kept = watch.worst_rows
    if kept is None:
        return {"names": [], "rows": []}
    names = list(kept.cells.columns)[:MOST_CELLS]
    columns = [[cut(cell) for cell in kept.cells[name].astype(object).where(kept.cells[name].notna(), "")] for name in names]
    return {"names": list(map(str, names)), "rows": [list(row) for row in zip(*columns, strict=True)]}
