"""The distribution of decision values."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._core.text import percent
from .._core.types import MatrixLike
from .._core.unwrap import detector_of
from .._core.validation import target_mask
from .style import BLUE, INK, PALE, VERMILION, Display


@dataclass(kw_only=True, eq=False, repr=False)
class ScoreDistributionDisplay(Display):
    """The distribution of the decision values of targets and outliers around the threshold 0.

    Parameters
    ----------
    decisions : ndarray of shape (n,)
        Decision values.
    is_target : ndarray of shape (n,)
        Boolean; False for outliers.
    title : str, default=""
        The title of the axes.
    bins : int, default=30
        The approximate number of bins over the range of decision values; no bin crosses the threshold.
    highest_rate : float, optional
        A bound of the threshold's false-alarm rate, for the legend; ``from_estimator`` takes it from ``false_alarm_band``.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
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
    bins: int = 30
    highest_rate: float | None = None

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
        """
        decisions = decisions_of(model, X)
        is_target = target_mask(decisions, y)
        final = detector_of(model)
        high = final.false_alarm_band().at(p_value=final.false_alarm_rate_)[1] if hasattr(final, "false_alarm_band") else None
        display = cls(decisions=decisions, is_target=is_target, title=type(final).__name__, bins=bins, highest_rate=high)
        return display.plot(ax, legend=legend)

    def _draw(self) -> list[Any]:
        if not isinstance(self.bins, Integral) or self.bins < 1:
            raise ValueError(f"bins={self.bins!r} must be an int >= 1: the number of bins over the range of decision values.")
        self.histograms_: dict[str, Any] = {}
        low, high = self.decisions.min(), self.decisions.max()
        width = (high - low or abs(high) or 1.0) / self.bins
        first, last = np.floor(low / width) - 1, np.floor(high / width) + 2  # an empty bin at each end, so that rounding loses no value
        edges = width * np.arange(first, last + 1)  # 0 is an edge, so that each bin is accepted or rejected as a whole
        for kind, values, verb, style in (
            ("targets", self.decisions[self.is_target], "accepted", {"facecolor": PALE, "edgecolor": BLUE}),
            ("outliers", self.decisions[~self.is_target], "rejected", {"facecolor": "none", "edgecolor": VERMILION, "hatch": "///"}),
        ):
            if values.size:
                share = 100.0 * np.histogram(values, edges)[0] / values.size
                label = f"{kind}: {np.sum((values >= 0) == (verb == 'accepted'))} of {values.size} {verb}"
                self.histograms_[kind] = self.ax_.stairs(share, edges, fill=True, linewidth=1.4, label=label, **style)
        bound = "" if self.highest_rate is None else f": rejects at most\n{percent(self.highest_rate)} of new normal rows (95 %)"
        self.threshold_ = self.ax_.axvline(0.0, color=INK, ls="--", lw=1.4, label=f"threshold{bound}")
        self.ax_.set(xlabel="decision value (accepted if ≥ 0)", ylabel="share of the kind (%)", title=self.title)
        return self._labelled()


def decisions_of(model: Any, X: Any) -> np.ndarray:
    """Decision values; raise if the model has none."""
    check_is_fitted(model)
    if not hasattr(model, "decision_function"):
        raise ValueError(f"{type(model).__name__} has no decision_function: pass a classifier, or a pipeline that ends in one.")
    return np.asarray(model.decision_function(X))
