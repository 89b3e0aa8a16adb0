"""What ``refkernel score --explain`` says about a whole table."""

from __future__ import annotations

from typing import Any

from .shared import console, shown

MOST_COLUMNS = 5
"""Columns that are named."""


def print_reasons(result: Any) -> None:
    """The columns that are the first reason most often, and those that look wrong as a whole."""
    for line in (*_first(result), *result.outside):
        console.print(shown(line), highlight=False, soft_wrap=True)


def _first(result: Any) -> list[str]:
    named = [f"{name} ({count:,})" for name, count in result.reasons.most_common(MOST_COLUMNS)]
    return [f"First reason: {', '.join(named)}."] if named else []
