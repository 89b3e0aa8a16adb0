"""The features that count for and against one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..explanations import Explanation, explain
from .style import BLUE, INK, VERMILION, axes_of, finish, pyplot

__all__ = ["ExplanationDisplay"]

MOST_FEATURES = 12
"""As many bars as can be read side by side; the other features share one bar."""


class ExplanationDisplay:
    """Bars from the baseline to the score of one row: what each feature adds, most important first.

    Parameters
    ----------
    values : ndarray of shape (n_features,)
        What each feature adds to the score.
    names : sequence of str
        The features.
    baseline : float
        The score with all features switched off.
    threshold : float, optional
        The lowest score that is accepted.
    cells : sequence of str, optional
        The row's value of each feature, for the labels.

    Attributes
    ----------
    ax_ : matplotlib axes
        The axes that it was drawn in.
    figure_ : matplotlib figure
        The figure of these axes.
    bars_ : matplotlib container
        The bars, the most important at the top.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> from refkernel.plot import ExplanationDisplay
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> display = ExplanationDisplay.from_estimator(rk.AutoDetector().fit(X), [[0.0, 5.0, 0.0]])
    >>> display.ax_.get_yticklabels()[0].get_text()
    'x1 = 5'
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        *,
        values: np.ndarray,
        names: Sequence[str],
        baseline: float,
        threshold: float | None = None,
        cells: Sequence[str] | None = None,
    ) -> None:
        self.values = values
        self.names = names
        self.baseline = baseline
        self.threshold = threshold
        self.cells = cells

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, row: int = 0, method: str = "auto", ax: Any = None, legend: bool = True) -> Self:
        """Draw the explanation of one row of X.

        Parameters
        ----------
        model : fitted detector
            What :func:`refkernel.explain` takes.
        X : array-like or data frame of shape (n_samples, n_columns)
            Samples in rows.
        row : int, default=0
            The number of the row to explain.
        method : {"auto", "shapley", "path"}, default="auto"
            As for :func:`refkernel.explain`.
        ax : matplotlib axes, optional
            The axes to draw in; a new figure by default.
        legend : bool, default=True
            Whether to draw a legend beside the axes.

        Returns
        -------
        self
            The display, drawn.
        """
        pyplot()
        chosen = X.iloc[[row]] if hasattr(X, "iloc") else np.asarray(X)[[row]]
        found: Explanation = explain(model, chosen, method=method)
        score = float(found.scores[0])
        threshold = score - float(np.asarray(model.decision_function(chosen))[0])
        cells = [_text(cell) for cell in np.asarray(chosen, dtype=object)[0]]
        display = cls(values=found.values[0], names=found.names, baseline=found.baseline, threshold=threshold, cells=cells)
        return display.plot(ax, legend=legend)

    def plot(self, ax: Any = None, *, most: int = MOST_FEATURES, legend: bool = True) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib axes, optional
            The axes to draw in; a new figure by default.
        most : int, default=12
            The number of bars; the features beyond it share one bar.
        legend : bool, default=True
            Whether to draw a legend beside the axes.

        Returns
        -------
        self
            The display, drawn.
        """
        if most < 1:
            raise ValueError(f"most={most!r} must be an int >= 1: the number of bars.")
        labels, values = self._shown(most)
        ends = self.baseline + np.cumsum(values)
        starts = np.concatenate([[self.baseline], ends[:-1]])
        self.ax_, self.figure_ = axes_of(ax)
        places, against = np.arange(len(values)), values < 0
        colours = [VERMILION if is_against else BLUE for is_against in against]
        self.bars_ = self.ax_.barh(places, values, left=starts, color=colours, height=0.7)
        for bar, is_against in zip(self.bars_, against, strict=True):
            bar.set_hatch("///" if is_against else "")
            bar.set_edgecolor("white")
        self._label(values, starts, ends)
        self.ax_.vlines(ends[:-1], places[:-1] - 0.35, places[1:] + 0.35, color=INK, lw=0.6)
        if self.threshold is not None:
            self.ax_.axvline(self.threshold, color=INK, ls="--", lw=1.4, label="threshold")
        self.ax_.set(
            yticks=places,
            yticklabels=labels,
            xlabel=f"score: from {self.baseline:.3g} (all features off) to {ends[-1]:.3g} (this row)",
            ylim=(len(values) - 0.4, -0.6),
        )
        self.ax_.margins(x=0.2)
        finish(self.ax_, legend)
        return self

    def _shown(self, most: int) -> tuple[list[str], np.ndarray]:
        """Labels and values of the bars, the most important first."""
        order = np.argsort(-np.abs(self.values), kind="stable")
        texts = [f"{name} = {cell}" for name, cell in zip(self.names, self.cells, strict=True)] if self.cells else list(self.names)
        if len(order) <= most:
            return [texts[i] for i in order], self.values[order]
        few, rest = order[: most - 1], order[most - 1 :]
        return [*(texts[i] for i in few), f"{len(rest)} others"], np.append(self.values[few], self.values[rest].sum())

    def _label(self, values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
        """The number of each bar, at its end."""
        for place, (value, start, end) in enumerate(zip(values, starts, ends, strict=True)):
            side = "right" if end < start else "left"
            self.ax_.annotate(
                f"{value:+.2g}", (end, place), (-4 if side == "right" else 4, 0), textcoords="offset points", ha=side, va="center"
            )


def _text(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
