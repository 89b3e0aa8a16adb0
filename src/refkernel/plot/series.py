"""A series over time, with the stretches that a detector flags."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .style import BLUE, INK, ORANGE, Display

APART = 5.0  # deviations between the lines of two columns


@dataclass(kw_only=True, eq=False, repr=False)
class SeriesDisplay(Display):
    """The columns of a series above each other, each in its own deviations, and the windows that are flagged.

    Parameters
    ----------
    series : DataFrame
        Columns of numbers in the order of time.
    when : array-like
        The time of each row.
    flagged : IntervalIndex
        The flagged windows. Those that overlap are drawn as one stretch.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
    stretches_ : list of (start, end)
        The drawn stretches.

    Examples
    --------
    >>> import numpy as np, pandas as pd, refkernel as rk
    >>> series = pd.DataFrame({"flow": np.random.default_rng(0).normal(size=600)})
    >>> series.loc[500:550, "flow"] += 8
    >>> model = rk.TableDetector().fit(rk.windows(series[:400], 20))
    >>> display = rk.plot.SeriesDisplay.from_estimator(model, rk.windows(series, 20), series)
    >>> [(int(start), int(end)) for start, end in display.stretches_][-1]
    (490, 569)
    """

    series: Any
    when: Any
    flagged: Any

    @classmethod
    def from_estimator(cls, model: Any, X: Any, series: Any, *, time: str | None = None, ax: Any = None, legend: bool = True) -> Self:
        """Draw a series and the windows of it that a model flags.

        Parameters
        ----------
        model : fitted outlier detector
            It was fitted on windows of normal operation.
        X : DataFrame
            The windows of the series: ``rk.windows(series, …)``.
        series : DataFrame
            The series itself.
        time : str, optional
            Its column that says when; its index by default.
        """
        check_is_fitted(model)
        numbers = series.drop(columns=[] if time is None else [time])
        when = series.index if time is None else series[time]
        return cls(series=numbers, when=np.asarray(when), flagged=X.index[model.predict(X) == -1]).plot(ax, legend=legend)

    def _draw(self) -> list[Any]:
        self.stretches_: list[tuple[Any, Any]] = []
        for window in self.flagged:
            if self.stretches_ and window.left <= self.stretches_[-1][1]:
                self.stretches_[-1] = (self.stretches_[-1][0], max(window.right, self.stretches_[-1][1]))
            else:
                self.stretches_.append((window.left, window.right))
        names = list(self.series.columns)
        for place, name in enumerate(names):
            values = self.series[name].to_numpy(dtype=float)
            deviations = (values - np.nanmedian(values)) / (np.nanstd(values) or 1.0)
            self.ax_.plot(self.when, np.clip(deviations, -APART, APART) - APART * place, color=BLUE, lw=0.8)
        for start, end in self.stretches_:
            label = "flagged windows" if start == self.stretches_[0][0] else None
            self.ax_.axvspan(start, end, color=ORANGE, alpha=0.35, lw=0, label=label)
        self.ax_.set_yticks([-APART * place for place in range(len(names))], names, color=INK)
        return self._labelled()
