"""Colours, marks, axes and legends that all displays share."""

from inspect import cleandoc
from typing import Any, Self

INK, BLUE, ORANGE, GREEN, VERMILION, PURPLE = "#000000", "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
PALE = "#C4E4F7"
"""For areas: sky blue at a third of its strength, so that marks and hatches on it stay readable."""

MARKS: dict[str, dict[str, Any]] = {
    "references": {"marker": "s", "s": 44, "facecolors": "none", "edgecolors": GREEN, "linewidths": 1.1},
    "generated references": {"marker": "^", "s": 24, "facecolors": "none", "edgecolors": PURPLE, "linewidths": 1.1},
    "accepted rows": {"marker": "o", "s": 12, "color": BLUE},
    "flagged rows": {"marker": "o", "s": 13, "color": ORANGE},
    "beyond the edge": {"marker": "D", "s": 40, "facecolors": "none", "edgecolors": PURPLE, "linewidths": 1.1},
    "targets": {"marker": "o", "s": 11, "facecolors": INK, "edgecolors": "none"},
    "known outliers": {"marker": "x", "s": 34, "c": VERMILION, "linewidths": 1.6},
    "support vectors": {"marker": "o", "s": 84, "facecolors": "none", "edgecolors": INK, "linewidths": 1.1},
}
"""The points of a decision region, in the order in which they are drawn."""

SIZE = (8.0, 4.8)  # inches of a new figure: matplotlib's own height, and room for the legend on the right


class Display:
    """The data of a picture; ``plot`` draws it."""

    ax_: Any
    figure_: Any

    def __init_subclass__(cls) -> None:
        """``from_estimator`` ends in the parameters and the result of ``plot``, and so does what it says."""
        made = cls.from_estimator.__func__  # type: ignore[attr-defined]
        if made.__doc__ and Display.plot.__doc__:  # python -OO leaves them out
            made.__doc__ = cleandoc(made.__doc__) + cleandoc(Display.plot.__doc__).partition("----------")[2]

    def plot(self, ax: Any = None, *, legend: bool = True) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib axes, optional
            The axes to draw in; a new figure by default.
        legend : bool, default=True
            Whether to draw a legend beside the axes.

        Returns
        -------
        self
            The display, drawn.
        """
        if ax is None:
            _, ax = pyplot().subplots(figsize=SIZE, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        handles = self._draw()
        if legend:
            ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        return self

    def _draw(self) -> list[Any]:
        """Draw into ``ax_``, and return what the legend shows."""
        raise NotImplementedError

    def _labelled(self) -> list[Any]:
        """What has a label, after the upper and right spines are hidden."""
        self.ax_.spines[["top", "right"]].set_visible(False)
        return self.ax_.get_legend_handles_labels()[0]


def pyplot() -> Any:
    """``matplotlib.pyplot``; raise with the name of the extra if it is not installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Displays are drawn by matplotlib: pip install "refkernel[plot]".') from error
    return plt
