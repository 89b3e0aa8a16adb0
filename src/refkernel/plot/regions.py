"""The region that a model accepts, on a plane through the samples: of two features or of two principal components."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted

from .._core.unwrap import detector_of, unwrap
from .._core.validation import target_mask
from ..detectors.explain.normal import dense, names_of
from ..references import GENERATED
from .scores import decisions_of
from .style import BLUE, MARKS, PALE, Display

MARGIN = 0.12  # the share of the data's range added on each side: room for a boundary outside the samples


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionRegionDisplay(Display):
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
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
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

        Support vectors and references that are rows of X are shown there. Generated references, and training rows that X does not
        hold, are mapped back through the steps of the pipeline; if a step has no ``inverse_transform`` they are left out.

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
        """
        check_is_fitted(model)
        if get_tags(model).input_tags.pairwise:
            raise ValueError('A model with kernel="precomputed" has no features, so no plane can be drawn.')
        if not isinstance(grid, Integral) or grid < 2:
            raise ValueError(f"grid={grid!r} must be an int >= 2: the points along each axis.")
        values = check_array(X, dtype=np.float64)
        d = getattr(model, "n_features_in_", values.shape[1])
        if values.shape[1] != d:
            raise ValueError(f"X has {values.shape[1]} features; {type(model).__name__} was fitted on {d}: pass all of them.")
        is_target = target_mask(values, y)
        plane = _plane_of(values, is_target, features, names_of(model, X))
        marks = {kind: plane.project(points) for kind, points in _points_of(model, X, values, is_target).items()}
        x1, x2, points = grid_over(np.concatenate(list(marks.values())), grid)
        rows = plane.lift(points)
        rows = type(X)(dict(zip(X.columns, rows.T, strict=True))) if hasattr(X, "columns") else rows
        decisions = decisions_of(model, rows).reshape(grid, grid)
        title = ", ".join([type(detector_of(model)).__name__, *plane.note])
        return cls(x1=x1, x2=x2, decisions=decisions, marks=marks, labels=plane.labels, title=title).plot(ax, legend=legend)

    def _draw(self) -> list[Any]:
        from matplotlib.patches import Patch

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
        return [Patch(facecolor=PALE, edgecolor=BLUE, linewidth=1.8, label="accepted"), *self.marks_.values()]


@dataclass(frozen=True)
class Plane:
    """The points origin + unit · (p · axes) of the samples' space; ``note`` says in words which plane it is."""

    origin: np.ndarray
    axes: np.ndarray
    labels: tuple[str, str]
    note: tuple[str, ...] = ()
    unit: np.ndarray | float = 1.0

    def project(self, X: np.ndarray) -> np.ndarray:
        """The coordinates (n × 2) of samples projected onto the plane."""
        return ((X - self.origin) / self.unit) @ self.axes.T

    def lift(self, P: np.ndarray) -> np.ndarray:
        """The samples (n × d) at coordinates of the plane."""
        return self.origin + (P @ self.axes) * self.unit


def _plane_of(X: np.ndarray, is_target: np.ndarray, features: Sequence[str | int] | None, names: list[str]) -> Plane:
    """The plane of two features, or of two principal components if X has more and none are named."""
    d = X.shape[1]
    if d < 2:
        raise ValueError(f"A plane needs at least 2 features; X has {d}. See ScoreDistributionDisplay for the decision values alone.")
    if features is None and d > 2:
        if X.shape[0] < 2:
            raise ValueError("Principal components need at least 2 samples; X has 1. Pass features, two names or numbers.")
        pca = PCA(2, svd_solver="full").fit(X)
        first, second = (f"component {k} ({100 * share:.0f} % of the variance)" for k, share in enumerate(pca.explained_variance_ratio_, 1))
        return Plane(pca.mean_, pca.components_, (first, second), ("plane of two principal components",))
    numbers = [0, 1] if features is None else _numbers(features, names)
    origin = np.median(X[is_target], axis=0)
    origin[numbers] = 0.0
    note = () if d == 2 else ("other features at the targets' median",)
    return Plane(origin, np.eye(d)[numbers], (names[numbers[0]], names[numbers[1]]), note)


def _numbers(features: Any, names: list[str]) -> list[int]:
    """Two different column numbers from names or numbers."""
    given: Any = [features] if isinstance(features, str | Integral) else features
    numbers: list[Any] = [names.index(feature) if feature in names else feature for feature in given]
    for feature in numbers:
        if feature not in range(len(names)):
            raise ValueError(f"X has no feature {feature!r}. Use two of the names {names}, or numbers from 0 to {len(names) - 1}.")
    if len(numbers) != 2 or numbers[0] == numbers[1]:
        raise ValueError(f"features={features!r} must be two different names or numbers: the axes of the plane.")
    return numbers


def grid_over(P: np.ndarray, size: int, share: float = MARGIN) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(x, y, points): the coordinates of a grid over points of the plane and a margin around them, and all of its points by rows."""
    low, high = P.min(axis=0), P.max(axis=0)
    margin = share * np.where(high > low, high - low, 1.0)
    x, y = np.linspace(low - margin, high + margin, size).T
    return x, y, np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def _points_of(model: Any, X: Any, values: np.ndarray, is_target: np.ndarray) -> dict[str, np.ndarray]:
    """The points to mark, by kind, in the space of X; kinds without points are left out."""
    before, final = unwrap(model)
    points = {"targets": values[is_target], "known outliers": values[~is_target]}
    if hasattr(final, "support_vectors_"):
        points["support vectors"] = _located(X, values, before, final.support_, final.support_vectors_)
    steps = [*before, final]
    if (found := reference_map_of(steps)) is not None:
        number, fitted = found
        indices, R = fitted.reference_indices_, fitted.references_
        for kind, chosen in {"references": indices != GENERATED, "generated references": indices == GENERATED}.items():
            points[kind] = _located(X, values, steps[:number], indices[chosen], R[chosen])
    return {kind: found for kind, found in points.items() if len(found)}


def reference_map_of(steps: Sequence[Any]) -> tuple[int, Any] | None:
    """The first fitted reference map or kernel, and the number of the step that holds it."""
    parts = ((number, part) for number, step in enumerate(steps) for part in (step, getattr(step, "kernel_", None)))
    return next((found for found in parts if hasattr(found[1], "reference_indices_")), None)


def _located(X: Any, values: np.ndarray, steps: list[Any], indices: np.ndarray, vectors: Any) -> np.ndarray:
    """The output of some steps in the space of X: the rows of X that it came from, or what undoing the steps gives, if they can be."""
    inputs = [X]
    for step in steps:
        inputs.append(step.transform(inputs[-1]))
    Z, vectors = dense(inputs.pop()), dense(vectors)
    is_row = (indices != GENERATED) & (indices < len(Z))
    is_row[is_row] = np.isclose(Z[indices[is_row]], vectors[is_row]).all(axis=1)
    rest = vectors[~is_row]
    for step, given in zip(reversed(steps), reversed(inputs), strict=True):
        undo = getattr(step, "inverse_transform", None)
        rest = dense(undo(rest)) if undo and len(rest) else np.empty((0, np.shape(given)[1]))
    return np.concatenate([values[indices[is_row]], rest])
