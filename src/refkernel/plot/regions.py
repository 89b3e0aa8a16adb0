"""The region that a model accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .marks import points_of, samples_of
from .models import decisions_of, steps_of
from .planes import like, names_of, plane_of, ranges
from .style import BLUE, MARKS, PALE, Drawn, axes_of, legend_beside, pyplot

__all__ = ["DecisionRegionDisplay"]


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionRegionDisplay(Drawn):
    """The region that a model accepts, on a plane through the samples, with samples, support vectors and references.

    Parameters
    ----------
    x1, x2 : ndarray of shape (g,)
        Coordinates of the grid.
    decisions : ndarray of shape (g, g)
        Decision values; row i belongs to ``x2[i]``.
    marks : dict
        Points (k × 2) on the plane by kind: "references", "generated references", "targets", "known outliers", "support vectors".
    labels : tuple of str
        The names of the two axes.
    title : str, default=""
        The title of the axes.

    Attributes
    ----------
    ax_ : matplotlib axes
        The axes that it was drawn in.
    figure_ : matplotlib figure
        The figure of these axes.
    region_, boundary_ : matplotlib contours or None
        The shaded area and the line around it; None if nothing is accepted, or if there is no boundary.
    marks_ : dict
        The drawn points by kind.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> from refkernel.plot import DecisionRegionDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> display = DecisionRegionDisplay.from_estimator(rk.SVDD(nu=0.1).fit(X), X, grid=50)
    >>> display.ax_.get_title(), sorted(display.marks_)
    ('SVDD', ['support vectors', 'targets'])
    """

    x1: np.ndarray
    x2: np.ndarray
    decisions: np.ndarray
    marks: dict[str, np.ndarray]
    labels: tuple[str, str] = ("feature 0", "feature 1")
    title: str = ""

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        features: Sequence[str | int] | None = None,
        grid: int = 200,
        ax: Any = None,
        legend: bool = True,
    ) -> Self:
        """Draw a fitted model on the plane of two features or of two principal components.

        Parameters
        ----------
        model : fitted outlier detector
            A detector, a pipeline that ends in one, or a search over them.
        X : array-like or data frame of shape (n_samples, n_features)
            The samples to show, preferably the training samples.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers.
        features : two names or numbers, optional
            The features of the plane; all others are fixed at the targets' median. By default both features of X, or its first two
            principal components if it has more. Samples are projected onto the plane, so with more than two features a mark near the
            boundary can appear on the wrong side.
        grid : int, default=200
            Points of the grid along each axis.
        ax : matplotlib axes, optional
            The axes to draw in; a new figure by default.
        legend : bool, default=True
            Whether to draw a legend beside the axes.

        Returns
        -------
        self
            The display, drawn.

        Notes
        -----
        Support vectors and references that are rows of X are shown there. Generated references, and training rows that X does not
        hold, are mapped back through the steps of the pipeline; if a step has no ``inverse_transform`` they are left out.
        """
        pyplot()
        check_is_fitted(model)
        if get_tags(model).input_tags.pairwise:
            raise ValueError('A model with kernel="precomputed" has no features, so no plane can be drawn.')
        if not isinstance(grid, Integral) or grid < 2:
            raise ValueError(f"grid={grid!r} must be an int >= 2: the points along each axis.")
        samples = samples_of(model, X, y)
        plane = plane_of(samples, features, names_of(model, X))
        marks = {kind: plane.project(points) for kind, points in points_of(model, samples).items()}
        x1, x2 = ranges(np.concatenate(list(marks.values())), grid)
        on_plane = plane.lift(np.stack(np.meshgrid(x1, x2), axis=-1).reshape(-1, 2))
        decisions = decisions_of(model, like(X, on_plane)).reshape(grid, grid)
        title = ", ".join([type(steps_of(model)[-1]).__name__, *plane.note])
        return cls(x1=x1, x2=x2, decisions=decisions, marks=marks, labels=plane.labels, title=title).plot(ax, legend=legend)

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
        self.ax_, self.figure_ = axes_of(ax)
        low, high = self.decisions.min(), self.decisions.max()
        self.region_ = self.boundary_ = None
        if high >= 0:
            self.region_ = self.ax_.contourf(self.x1, self.x2, self.decisions, levels=[0.0, np.inf], colors=[PALE])
        if low < 0 < high:
            self.boundary_ = self.ax_.contour(self.x1, self.x2, self.decisions, levels=[0.0], colors=[BLUE], linewidths=1.8)
        self.marks_ = {
            kind: self.ax_.scatter(*self.marks[kind].T, label=f"{kind} ({len(self.marks[kind])})", **MARKS[kind])
            for kind in MARKS
            if kind in self.marks
        }
        self.ax_.set(xlabel=self.labels[0], ylabel=self.labels[1], title=self.title)
        if legend:
            legend_beside(self.ax_, [self._accepted(), *self.marks_.values()])
        return self

    @staticmethod
    def _accepted() -> Any:
        from matplotlib.patches import Patch

        return Patch(facecolor=PALE, edgecolor=BLUE, linewidth=1.8, label="accepted")
