"""The critical-difference diagram."""

from __future__ import annotations

from collections.abc import Callable

from ...plot.style import BLUE, ORANGE
from ..statistics import RankComparison
from .svg import INK, Drawing, canvas, styled, to_svg

MOST_NUMBERED = 12
"""With more methods than this, only every second rank is numbered, and names are a little smaller."""


def draw_ranks(comparison: RankComparison, name: str, title: str, label: Callable[[str], str] = str, unit: str = "tasks") -> Drawing:
    """Average ranks, the best on the left; bars join what does not differ significantly. ``label`` names a method, ``unit`` a task."""
    ranks, k = comparison.ranks, len(comparison.ranks)
    half = (k + 1) // 2
    bars = 0.28 * len(comparison.groups)
    with styled():
        figure, axes = canvas(0.9 + 0.2 * half + 0.5 * bars)
        axes.set(xlim=(0.8, k + 0.2), ylim=(-bars - 0.75 * half - 0.6, 2.1))
        axes.axis("off")
        axes.set_title(title, loc="left")
        axes.hlines(0, 1, k, color=INK, lw=1)
        for tick in range(1, k + 1):
            axes.vlines(tick, 0, 0.18, color=INK, lw=1)
            if k <= MOST_NUMBERED or tick % 2:
                axes.text(tick, 0.28, str(tick), ha="center", va="bottom", fontsize=8)
        cd = min(comparison.critical_difference, k - 1.0)
        axes.hlines(1.35, 1, 1 + cd, color=ORANGE, lw=3)
        axes.text(1 + cd + 0.02 * k, 1.35, f"critical difference {comparison.critical_difference:.2f}", va="center", fontsize=8)
        best, worst = ranks.iloc[0] - 0.03 * k, ranks.iloc[-1] + 0.03 * k
        for i, (method, rank) in enumerate(ranks.items()):
            first = i < half
            y = -bars - 0.6 - 0.75 * (i if first else k - 1 - i)
            end = best if first else worst
            axes.plot([rank, rank, end], [0, y, y], color=INK, lw=0.8)
            axes.text(
                end + (-0.01 if first else 0.01) * k,
                y,
                f"{label(str(method))} ({rank:.1f})",
                ha="right" if first else "left",
                va="center",
                fontsize=9 if k <= MOST_NUMBERED else 8,
            )
        for i, group in enumerate(comparison.groups):
            axes.hlines(-0.28 * (i + 1), ranks[group[0]] - 0.06, ranks[group[-1]] + 0.06, color=BLUE, lw=4)
        numbers = ", ".join(f"{label(str(v))} {r:.2f}" for v, r in ranks.items())
        joined = "; ".join(" – ".join([label(g[0]), label(g[-1])]) for g in comparison.groups) or "none"
        text = f"Average ranks, best first: {numbers}. Critical difference {comparison.critical_difference:.2f}. Joined by bars: {joined}."
        caption = f"{comparison.tasks} {unit}; Friedman test p = {comparison.p:.2g}"
        return Drawing(to_svg(figure, f"ranks-{name}", f"Critical-difference diagram, {title}", text), caption)
