"""Numbers as a page shows them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ..statistics import LEVEL, Comparison

SAME = 0.05
"""Differences below this are shown as 0.0."""


def value_text(mean: Any, std: Any = None) -> str:
    """A mean, with its deviation if there is one; nothing if there is no mean."""
    return "" if pd.isna(mean) else f"{mean:.1f}" + ("" if pd.isna(std) else f" ± {std:.1f}")


def signed(value: float) -> str:
    """A difference with its sign, one decimal, with a real minus sign; +0.0 for what rounds to zero."""
    return f"{0.0 if abs(value) < SAME else value:+.1f}".replace("-", "−")


def p_text(p: float) -> str:
    """A p value as text."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def tone_of(difference: float) -> str:
    """none, same, above or below: how a difference is coloured."""
    return "none" if pd.isna(difference) else "same" if abs(difference) < SAME else "above" if difference > 0 else "below"


def comparison_view(item: Comparison, name: str) -> dict[str, Any]:
    """A comparison as a row of a page's table."""
    return {
        "name": name,
        "average": f"{item.average:.1f}",
        "difference": signed(item.mean),
        "tone": tone_of(item.mean),
        "score": f"{item.wins} : {item.losses}",
        "p": p_text(item.p),
        "corrected": p_text(item.corrected),
        "real": item.corrected < LEVEL,
        "sort": f"{item.mean:.4f}",
        "sort_average": f"{item.average:.4f}",
        "sort_p": f"{item.corrected:.6f}",
    }
