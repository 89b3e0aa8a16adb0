"""The features that count for and against one row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..detectors.explain import explain
from .style import BLUE, INK, VERMILION, Display

MOST_FEATURES = 12  # as many bars as can be read side by side; the other features share one bar


@dataclass(kw_only=True, eq=False, repr=False)
class ExplanationDisplay(Display):
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
    most : int, default=12
        The number of bars; the features beyond it share one bar.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
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

    values: np.ndarray
    names: Sequence[str]
    baseline: float
    threshold: float | None = None
    cells: Sequence[str] | None = None
    most: int = MOST_FEATURES

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
        """
        chosen = X.iloc[[row]] if hasattr(X, "iloc") else np.asarray(X)[[row]]
        found = explain(model, chosen, method=method)
        threshold = float(found.scores[0] - np.asarray(model.decision_function(chosen))[0])
        cells = [normal.written(column[0]) for normal, column in zip(found.normals, found.cells, strict=True)]
        display = cls(values=found.values[0], names=found.names, baseline=found.baseline, threshold=threshold, cells=cells)
        return display.plot(ax, legend=legend)

    def _draw(self) -> list[Any]:
        if self.most < 1:
            raise ValueError(f"most={self.most!r} must be an int >= 1: the number of bars.")
        labels, values = self._shown()
        ends = self.baseline + np.cumsum(values)
        starts = np.concatenate([[self.baseline], ends[:-1]])
        places, against = np.arange(len(values)), values < 0
        style = {"color": np.where(against, VERMILION, BLUE), "hatch": np.where(against, "///", ""), "edgecolor": "white"}
        self.bars_ = self.ax_.barh(places, values, left=starts, height=0.7, **style)
        for place, value, end in zip(places, values, ends, strict=True):
            side, shift = ("right", -4) if value < 0 else ("left", 4)
            self.ax_.annotate(f"{value:+.2g}", (end, place), (shift, 0), textcoords="offset points", ha=side, va="center")
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
        return self._labelled()

    def _shown(self) -> tuple[list[str], np.ndarray]:
        """Labels and values of the bars, the most important first."""
        order = np.argsort(-np.abs(self.values), kind="stable")
        texts = [f"{name} = {cell}" for name, cell in zip(self.names, self.cells, strict=True)] if self.cells else list(self.names)
        if len(order) <= self.most:
            return [texts[i] for i in order], self.values[order]
        few, rest = np.split(order, [self.most - 1])
        return [*(texts[i] for i in few), f"{len(rest)} others"], np.append(self.values[few], self.values[rest].sum())
