"""How decision values spread."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from .._validation import target_mask
from .models import decisions_of, steps_of
from .style import BLUE, INK, PALE, VERMILION, axes_of, finish, pyplot


class ScoreDistributionDisplay:
    """How the decision values of targets and outliers spread around the threshold 0.

    Parameters
    ----------
    decisions : (n,) decision values.
    is_target : (n,) bool, False for outliers.
    title : str

    Attributes
    ----------
    ax_, figure_ : what it was drawn in.
    histograms_ : dict, the drawn steps by kind ("targets", "outliers").
    threshold_ : the line at 0.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> from refkernel.plot import ScoreDistributionDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> display = ScoreDistributionDisplay.from_estimator(rk.SVDD(nu=0.1).fit(X), X)
    >>> display.histograms_["targets"].get_label()
    'targets: 57 of 60 accepted'
    """

    def __init__(self, *, decisions, is_target, title=""):
        self.decisions = decisions
        self.is_target = is_target
        self.title = title

    @classmethod
    def from_estimator(cls, model, X, y=None, *, bins=30, ax=None, legend=True):
        """Draw the decision values of a fitted model on the rows of X; y = -1 marks outliers; without y all are targets."""
        pyplot()
        decisions = decisions_of(model, X)
        is_target = target_mask(decisions, y)
        display = cls(decisions=decisions, is_target=is_target, title=type(steps_of(model)[-1]).__name__)
        return display.plot(ax, bins=bins, legend=legend)

    def plot(self, ax=None, *, bins=30, legend=True):
        """Draw into ``ax``, or into a new figure: about ``bins`` bins over the whole range; no bin crosses the threshold."""
        if not isinstance(bins, Integral) or bins < 1:
            raise ValueError(f"bins={bins!r} must be an int >= 1: the number of bins over the range of decision values.")
        self.ax_, self.figure_ = axes_of(ax)
        self.histograms_ = {}
        edges, accepted = _edges(self.decisions, bins), self.decisions >= 0
        self._draw("targets", self.is_target, "accepted", accepted, edges, facecolor=PALE, edgecolor=BLUE)
        self._draw("outliers", ~self.is_target, "rejected", ~accepted, edges, facecolor="none", edgecolor=VERMILION, hatch="///")
        self.threshold_ = self.ax_.axvline(0.0, color=INK, ls="--", lw=1.4, label="threshold")
        self.ax_.set(xlabel="decision value (accepted if ≥ 0)", ylabel="share of the kind (%)", title=self.title)
        finish(self.ax_, legend)
        return self

    def _draw(self, kind, chosen, verb, is_right, edges, **style):
        """The histogram of one kind, if it has samples, labelled with the number that is classified correctly."""
        if chosen.any():
            share = 100.0 * np.histogram(self.decisions[chosen], edges)[0] / chosen.sum()
            label = f"{kind}: {is_right[chosen].sum()} of {chosen.sum()} {verb}"
            self.histograms_[kind] = self.ax_.stairs(share, edges, fill=True, linewidth=1.4, label=label, **style)


def _edges(decisions, bins) -> np.ndarray:
    """Edges of equal bins over the values; 0 is an edge, so that each bin is accepted or rejected as a whole."""
    low, high = decisions.min(), decisions.max()
    width = (high - low or abs(high) or 1.0) / bins
    return width * np.arange(np.floor(low / width) - 1, np.floor(high / width) + 3)  # an empty bin at each end: rounding loses no value
