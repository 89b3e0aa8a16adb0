"""Colours, marks, axes and legends that all displays share."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BLUE",
    "GREEN",
    "INK",
    "MARKS",
    "ORANGE",
    "PALE",
    "PURPLE",
    "SKY",
    "VERMILION",
    "Drawn",
    "axes_of",
    "finish",
    "legend_beside",
    "pyplot",
]

INK, BLUE, ORANGE, GREEN, VERMILION, PURPLE = "#000000", "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
SKY = "#56B4E9"
PALE = "#C4E4F7"
"""For areas: sky blue at a third of its strength, so that marks and hatches on it stay readable."""

MARKS: dict[str, dict[str, Any]] = {
    "references": {"marker": "s", "s": 44, "facecolors": "none", "edgecolors": GREEN, "linewidths": 1.1},
    "generated references": {"marker": "^", "s": 24, "facecolors": "none", "edgecolors": PURPLE, "linewidths": 1.1},
    "targets": {"marker": "o", "s": 11, "facecolors": INK, "edgecolors": "none"},
    "known outliers": {"marker": "x", "s": 34, "c": VERMILION, "linewidths": 1.6},
    "support vectors": {"marker": "o", "s": 84, "facecolors": "none", "edgecolors": INK, "linewidths": 1.1},
}
"""The points of a decision region, in the order in which they are drawn."""

SIZE = (8.0, 4.8)
"""Inches of a new figure: matplotlib's own height, and room for the legend on the right."""


class Drawn:
    """Where a display was drawn."""

    ax_: Any
    figure_: Any


def pyplot() -> Any:
    """``matplotlib.pyplot``; raise with the name of the extra if it is not installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Displays are drawn by matplotlib: pip install "refkernel[plot]".') from error
    return plt


def axes_of(ax: Any) -> tuple[Any, Any]:
    """The axes to draw in and their figure; a new figure, with room for a legend beside the axes, if none are given."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=SIZE, layout="constrained")
    return ax, ax.figure


def finish(ax: Any, legend: bool) -> None:
    """Hide the upper and right spines, and draw the legend if it is wanted."""
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        legend_beside(ax, ax.get_legend_handles_labels()[0])


def legend_beside(ax: Any, handles: list[Any]) -> None:
    """Draw the legend beside the axes, where it covers no data."""
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
