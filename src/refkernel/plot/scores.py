"""The distribution of decision values."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .._typing import MatrixLike
from .._validation import target_mask
from .models import decisions_of, steps_of
from .style import BLUE, INK, PALE, VERMILION, Drawn, axes_of, finish, pyplot

__all__ = ["ScoreDistributionDisplay"]


@dataclass(kw_only=True, eq=False, repr=False)
class ScoreDistributionDisplay(Drawn):
    """The distribution of the decision values of targets and outliers around the threshold 0.

    Parameters
    ----------
    decisions : ndarray of shape (n,)
        Decision values.
    is_target : ndarray of shape (n,)
        Boolean; False for outliers.
    title : str, default=""
        The title of the axes.

    Attributes
    ----------
    ax_ : matplotlib axes
        The axes that it was drawn in.
    figure_ : matplotlib figure
        The figure of these axes.
    histograms_ : dict
        The drawn steps by kind ("targets", "outliers").
    threshold_ : matplotlib line
        The line at 0.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> from refkernel.plot import ScoreDistributionDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> display = ScoreDistributionDisplay.from_estimator(rk.SVDD(rk.RBF(1.0), nu=0.1).fit(X), X)
    >>> display.histograms_["targets"].get_label()
    'targets: 57 of 60 accepted'
    """

    decisions: np.ndarray
    is_target: np.ndarray
    title: str = ""

    @classmethod
    def from_estimator(
        cls, model: Any, X: MatrixLike, y: npt.ArrayLike | None = None, *, bins: int = 30, ax: Any = None, legend: bool = True
    ) -> Self:
        """Draw the decision values of a fitted model on the rows of X.

        Parameters
        ----------
        model : fitted outlier detector
            Anything with ``decision_function``: a detector, a pipeline that ends in one, or a search over them.
        X : array-like or data frame of shape (n_samples, n_features)
            Samples in rows.
        y : array-like of shape (n_samples,), optional
            -1 marks outliers; without y all rows are targets.
        bins : int, default=30
            The approximate number of bins.
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
        decisions = decisions_of(model, X)
        is_target = target_mask(decisions, y)
        display = cls(decisions=decisions, is_target=is_target, title=type(steps_of(model)[-1]).__name__)
        return display.plot(ax, bins=bins, legend=legend)

    def plot(self, ax: Any = None, *, bins: int = 30, legend: bool = True) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib axes, optional
            The axes to draw in; a new figure by default.
        bins : int, default=30
            The approximate number of bins over the range of decision values; no bin crosses the threshold.
        legend : bool, default=True
            Whether to draw a legend beside the axes.

        Returns
        -------
        self
            The display, drawn.
        """
        if not isinstance(bins, Integral) or bins < 1:
            raise ValueError(f"bins={bins!r} must be an int >= 1: the number of bins over the range of decision values.")
        self.ax_, self.figure_ = axes_of(ax)
        self.histograms_: dict[str, Any] = {}
        edges, accepted = _edges(self.decisions, bins), self.decisions >= 0
        self._draw("targets", self.is_target, "accepted", accepted, edges, facecolor=PALE, edgecolor=BLUE)
        self._draw("outliers", ~self.is_target, "rejected", ~accepted, edges, facecolor="none", edgecolor=VERMILION, hatch="///")
        self.threshold_ = self.ax_.axvline(0.0, color=INK, ls="--", lw=1.4, label="threshold")
        self.ax_.set(xlabel="decision value (accepted if ≥ 0)", ylabel="share of the kind (%)", title=self.title)
        finish(self.ax_, legend)
        return self

    def _draw(self, kind: str, chosen: np.ndarray, verb: str, is_right: np.ndarray, edges: np.ndarray, **style: Any) -> None:
        """The histogram of one kind, if it has samples, labelled with the number that is classified correctly."""
        if chosen.any():
            share = 100.0 * np.histogram(self.decisions[chosen], edges)[0] / chosen.sum()
            label = f"{kind}: {is_right[chosen].sum()} of {chosen.sum()} {verb}"
            self.histograms_[kind] = self.ax_.stairs(share, edges, fill=True, linewidth=1.4, label=label, **style)


def _edges(decisions: np.ndarray, bins: int) -> np.ndarray:
    """Edges of equal bins over the values; 0 is an edge, so that each bin is accepted or rejected as a whole."""
    low, high = decisions.min(), decisions.max()
    width = (high - low or abs(high) or 1.0) / bins
    return width * np.arange(
        np.floor(low / width) - 1, np.floor(high / width) + 3
    )  # an empty bin at each end, so that rounding loses no value
