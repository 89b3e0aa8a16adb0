"""The report's answer in a few sentences, from its numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .statements import FAILS, HOLDS, OPEN

WORDS = {HOLDS: ("holds", "hold"), FAILS: ("does not hold", "do not hold"), OPEN: ("is not decided", "are not decided")}
"""What one statement does, and what several do."""


def answer(counts: Any, statements: list[dict[str, Any]]) -> list[str]:
    """How many of the article's cells and statements this run confirms."""
    return [*_of_cells(counts), *_of_statements(statements)]


def _of_cells(counts: Any) -> list[str]:
    if not counts.cells:
        return []
    share = 100.0 * counts.within / counts.cells
    cells = f"{counts.within} of the article’s {counts.cells} cells ({share:.0f} %) are met within their printed ±"
    return [f"{cells}; the {counts.columns} column averages differ by {counts.mean_difference:.2f} points on average."]


def _of_statements(statements: list[dict[str, Any]]) -> list[str]:
    found = Counter(item["verdict"] for item in statements if item["evidence"])
    parts = [f"{found[verdict]} {words[found[verdict] > 1]}" for verdict, words in WORDS.items() if found[verdict]]
    return [f"Of {found.total()} statements of the article that this run can test, {_listed(parts)}."] if parts else []


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
