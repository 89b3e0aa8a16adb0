"""The study's answer in a few sentences, from its numbers."""

from __future__ import annotations

import pandas as pd

from ..pages.texts import p_text
from ..statistics import LEVEL, Comparison
from .findings import CHOSEN, against, method_name
from .methods import GRIDS

PLAIN = ("ocsvm", "base")
"""What a strategy must be better than: the one-class SVM on the plain kernel."""


def answer(means: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """Whether a strategy is better than the plain kernel without outliers, and what known outliers are worth."""
    found = {grid: [item for item in against(means, *PLAIN, grid) if item.method[0] != CHOSEN] for grid in GRIDS}
    return [*(_of_grid(grid, items) for grid, items in found.items() if items), *_with_outliers(table)]


def _of_grid(grid: str, found: list[Comparison]) -> str:
    best = found[0]
    better = [item for item in found if item.mean > 0 and item.corrected < LEVEL]
    plain = f"{method_name(*PLAIN)} ({best.average - best.mean:.1f})"
    highest = f"The highest average is {best.average:.1f}, by {_named(best)} (corrected {p_text(best.corrected)})"
    if not better:
        return f"Trained without outliers, on the {grid} grid, no method is significantly better than {plain}. {highest}."
    names = ", ".join(map(_named, better))
    return f"Trained without outliers, on the {grid} grid, these are significantly better than {plain}: {names}. {highest}."


def _named(item: Comparison) -> str:
    return method_name(*item.method[:2])


def _with_outliers(table: pd.DataFrame) -> list[str]:
    known, free = table[table["negatives"] != "0"], table[table["negatives"] == "0"]
    if known.empty or free.empty:
        return []
    best, most = known.iloc[0], free["gmean"].max()
    name = f"{method_name(best['classifier'], best['references'])}, {best['negatives']} known"
    return [f"Trained with known outliers, the highest average is {best['gmean']:.1f} ({name}); without them it is {most:.1f}."]
