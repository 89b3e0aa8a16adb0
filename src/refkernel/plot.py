"""Pictures of fitted models, in scikit-learn's Display convention (extra ``plot``: matplotlib).

Each display holds the data of one picture, ``plot`` draws it, and ``from_estimator`` computes and draws it. Colours are Okabe and
Ito's, and marks and lines differ in shape too. Legends stand beside the axes: axes of your own need ``layout="constrained"``.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted

from ._validation import OUTLIER, check_choice, target_mask
from .metrics import true_rates
from .references import GENERATED

__all__ = ["DecisionRegionDisplay", "PathDisplay", "ScoreDistributionDisplay", "SpectrumDisplay"]

INK, BLUE, ORANGE, GREEN, VERMILION, PURPLE = "#000000", "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
PALE = "#C4E4F7"
"""Fills areas: the palette's sky blue at a third, so that marks and hatches on it stay readable."""

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

MARGIN = 0.12
"""Part of the data's range that a plane shows on each side: room for a boundary that runs outside the samples."""

STEPS = 20
"""Values of nu on a path where none are given: every 0.05, so that the bound of theory is seen as a line."""

SEED = 0
"""Seeds what has no random_state on a path: all fits must see the same references, or the lines show the draws."""


class DecisionRegionDisplay:
    """Where a model accepts, on a plane through the samples, with the samples, support vectors and references.

    Parameters
    ----------
    x1, x2 : (g,) coordinates of the grid.
    decisions : (g, g) decision values; row i belongs to ``x2[i]``.
    marks : dict, points (k, 2) on the plane by kind: the keys of ``refkernel.plot.MARKS``.
    labels : the names of the two axes.
    title : str

    Attributes
    ----------
    ax_, figure_ : what it was drawn in.
    region_, boundary_ : the shaded part and the line around it; None where nothing (or no line) is to be drawn.
    marks_ : dict, the drawn points by kind.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> from refkernel.plot import DecisionRegionDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> display = DecisionRegionDisplay.from_estimator(rk.SVDD(nu=0.1).fit(X), X, grid=50)
    >>> display.ax_.get_title(), sorted(display.marks_)
    ('SVDD', ['support vectors', 'targets'])
    """

    def __init__(self, *, x1, x2, decisions, marks, labels=("feature 0", "feature 1"), title=""):
        self.x1 = x1
        self.x2 = x2
        self.decisions = decisions
        self.marks = marks
        self.labels = labels
        self.title = title

    @classmethod
    def from_estimator(cls, model, X, y=None, *, features=None, grid=200, ax=None, legend=True):
        """Draw a fitted model on the plane of two features or of two principal components.

        Parameters
        ----------
        model : a fitted outlier detector, a pipeline that ends in one, or a search over them
        X : array-like or data frame of shape (n_samples, n_features)
            The samples to show: best the training samples.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers.
        features : two names or numbers, optional
            The features of the plane; all others stand at the targets' median. By default the two that there are, or else the
            first two principal components of X. Samples are moved straight onto the plane: near the boundary of a plane through more
            than two features, a mark can lie on the wrong side.
        grid : int, default=200
            Points of the grid along each axis.
        ax : matplotlib axes, optional
        legend : bool, default=True

        Notes
        -----
        Support vectors and references are shown at the rows of X that they are. Generated references, and training rows that X does
        not hold, are brought back through the steps before them, where these can be undone, and left out elsewhere.
        """
        _pyplot()
        check_is_fitted(model)
        if get_tags(model).input_tags.pairwise:
            raise ValueError('A model with kernel="precomputed" knows no features: there is no plane to draw.')
        if not isinstance(grid, Integral) or grid < 2:
            raise ValueError(f"grid={grid!r} must be an int >= 2: the points along each axis.")
        samples = _samples(model, X, y)
        plane = _plane(samples, features, _names(model, X))
        marks = {kind: plane.project(points) for kind, points in _points(model, samples).items()}
        x1, x2 = _ranges(np.concatenate(list(marks.values())), grid)
        on_plane = plane.lift(np.stack(np.meshgrid(x1, x2), axis=-1).reshape(-1, 2))
        decisions = _decisions(model, _like(X, on_plane)).reshape(grid, grid)
        title = ", ".join([type(_steps(model)[-1]).__name__, *plane.note])
        return cls(x1=x1, x2=x2, decisions=decisions, marks=marks, labels=plane.labels, title=title).plot(ax, legend=legend)

    def plot(self, ax=None, *, legend=True):
        """Draw into ``ax``, or into a new figure."""
        self.ax_, self.figure_ = _axes(ax)
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
            _legend(self.ax_, [self._accepted(), *self.marks_.values()])
        return self

    @staticmethod
    def _accepted():
        from matplotlib.patches import Patch

        return Patch(facecolor=PALE, edgecolor=BLUE, linewidth=1.8, label="accepted")


class SpectrumDisplay:
    """The eigenvalues that a reference map keeps, largest first, above its floor.

    Parameters
    ----------
    eigenvalues : (r,) the kept eigenvalues.
    floor : float, eigenvalues below it were dropped.
    n_references : int, m: how many eigenvalues there were.

    Attributes
    ----------
    ax_, figure_ : what it was drawn in.
    line_, floor_line_ : the eigenvalues and the floor (None for a floor of 0, which a logarithmic axis cannot show).

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> from refkernel.plot import SpectrumDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = rk.SVDD(rk.ReferenceKernel(references="case4", random_state=0)).fit(X)
    >>> SpectrumDisplay.from_estimator(model).ax_.get_title()
    'rank 21 of 30 references'
    """

    def __init__(self, *, eigenvalues, floor, n_references):
        self.eigenvalues = eigenvalues
        self.floor = floor
        self.n_references = n_references

    @classmethod
    def from_estimator(cls, model, *, ax=None, legend=True):
        """Draw the spectrum of a fitted ReferenceMap or ReferenceKernel, or of the one inside a classifier, pipeline or search."""
        _pyplot()
        check_is_fitted(model)
        found = _reference_map(_steps(model))
        if found is None:
            raise ValueError(
                f"{type(model).__name__} holds no ReferenceMap or ReferenceKernel, whose eigenvalues are drawn here: "
                "use for example SVDD(ReferenceKernel())."
            )
        fitted = found[1]
        display = cls(eigenvalues=fitted.eigenvalues_, floor=fitted.eigenvalue_floor, n_references=fitted.references_.shape[0])
        return display.plot(ax, legend=legend)

    def plot(self, ax=None, *, legend=True):
        """Draw into ``ax``, or into a new figure."""
        self.ax_, self.figure_ = _axes(ax)
        rank = len(self.eigenvalues)
        (self.line_,) = self.ax_.semilogy(np.arange(1, rank + 1), self.eigenvalues, "o-", color=BLUE, ms=3.5, lw=1, label="eigenvalues")
        self.floor_line_ = None
        if self.floor > 0:
            self.floor_line_ = self.ax_.axhline(self.floor, color=VERMILION, ls="--", lw=1.4, label=f"floor {self.floor:g}")
        self.ax_.locator_params(axis="x", integer=True)
        self.ax_.set(xlabel="number of the eigenvalue", ylabel="eigenvalue", title=f"rank {rank} of {self.n_references} references")
        _finish(self.ax_, legend)
        return self


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
        """Draw the decision values of a fitted model on the rows of X; y = -1 marks outliers, without y all are targets."""
        _pyplot()
        decisions = _decisions(model, X)
        is_target = target_mask(decisions, y)
        display = cls(decisions=decisions, is_target=is_target, title=type(_steps(model)[-1]).__name__)
        return display.plot(ax, bins=bins, legend=legend)

    def plot(self, ax=None, *, bins=30, legend=True):
        """Draw into ``ax``, or into a new figure: about ``bins`` bins over the whole range, none across the threshold."""
        if not isinstance(bins, Integral) or bins < 1:
            raise ValueError(f"bins={bins!r} must be an int >= 1: the number of bins over the range of decision values.")
        self.ax_, self.figure_ = _axes(ax)
        self.histograms_ = {}
        edges, accepted = _edges(self.decisions, bins), self.decisions >= 0
        self._draw("targets", self.is_target, "accepted", accepted, edges, facecolor=PALE, edgecolor=BLUE)
        self._draw("outliers", ~self.is_target, "rejected", ~accepted, edges, facecolor="none", edgecolor=VERMILION, hatch="///")
        self.threshold_ = self.ax_.axvline(0.0, color=INK, ls="--", lw=1.4, label="threshold")
        self.ax_.set(xlabel="decision value (accepted from 0 on)", ylabel="share of the kind (%)", title=self.title)
        _finish(self.ax_, legend)
        return self

    def _draw(self, kind, chosen, verb, is_right, edges, **style):
        """The steps of one kind, where there are samples of it, labelled with how many are decided rightly."""
        if chosen.any():
            share = 100.0 * np.histogram(self.decisions[chosen], edges)[0] / chosen.sum()
            label = f"{kind}: {is_right[chosen].sum()} of {chosen.sum()} {verb}"
            self.histograms_[kind] = self.ax_.stairs(share, edges, fill=True, linewidth=1.4, label=label, **style)


class PathDisplay:
    """What nu (or C) does: the share of targets that is rejected and that of support vectors, beside theory's bound between them.

    nu bounds the share of rejected training targets from above and that of support vectors from below; for C the bound is 1 / (n C).
    Where negatives repel, with dual weights that sum to -s, it is 1 + s times as high.

    Parameters
    ----------
    parameter : "nu" or "C".
    values : (q,) its values, ascending.
    bound : (q,) what theory puts between the next two.
    rejected, support : (q,) shares of the n targets: those left outside, and those that are support vectors.
    tnr : (q,) optional, the share of given outliers that is rejected.
    title : str

    Attributes
    ----------
    ax_, figure_ : what it was drawn in.
    lines_ : dict, the drawn lines by label.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> from refkernel.plot import PathDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> display = PathDisplay.from_estimator(rk.SVDD(), X, values=[0.1, 0.3, 0.5])
    >>> bool(np.all(display.rejected <= display.bound)), bool(np.all(display.support >= display.bound))
    (True, True)
    """

    def __init__(self, *, parameter, values, bound, rejected, support, tnr=None, title=""):
        self.parameter = parameter
        self.values = values
        self.bound = bound
        self.rejected = rejected
        self.support = support
        self.tnr = tnr
        self.title = title

    @classmethod
    def from_estimator(cls, model, X, y=None, *, parameter="nu", values=None, ax=None, legend=True):
        """Fit a copy of the model on X for every value of its parameter, and draw what becomes of the rows of X.

        Parameters
        ----------
        model : SVDD or another classifier with nu and support vectors, a pipeline that ends in one, or a fitted search; it stays as it is
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers: with them the rates TPR, TNR and Gmean are drawn too. All are of the samples that were trained
            on, so they show the trade, and are no estimate of what new samples will meet: that is what ``OneClassGridSearch`` is for.
        parameter : {"nu", "C"}, default="nu"
        values : array-like, optional
            By default nu = 0.05, 0.1, … 1, or the C that mean the same.
        ax : matplotlib axes, optional
        legend : bool, default=True
        """
        _pyplot()
        check_choice("parameter", parameter, ("nu", "C"))
        model = getattr(model, "best_estimator_", model)
        final, _ = _final(model)
        if parameter not in final.get_params(deep=False):
            raise ValueError(f"{type(final).__name__} has no {parameter} to follow: a path needs SVDD (nu or C) or OneClassSVM (nu).")
        is_target = target_mask(X if hasattr(X, "shape") else np.asarray(X), y)
        n = is_target.sum()
        values = np.sort(_path_values(parameter, n) if values is None else np.asarray(values, dtype=np.float64))
        if values.ndim != 1 or values.size == 0:
            raise ValueError(f"values has shape {values.shape}; it must be a list of at least one {parameter}.")
        rejected, support, tnr, repelled = np.array([_shares(_refitted(model, parameter, value, X, y), X, is_target) for value in values]).T
        display = cls(
            parameter=parameter,
            values=values,
            bound=(values if parameter == "nu" else 1.0 / (n * values)) * (1.0 + repelled),
            rejected=rejected,
            support=support,
            tnr=None if is_target.all() else tnr,
            title=f"{type(final).__name__} along {parameter}",
        )
        return display.plot(ax, legend=legend)

    def plot(self, ax=None, *, legend=True):
        """Draw into ``ax``, or into a new figure."""
        self.ax_, self.figure_ = _axes(ax)
        lines = {
            "support vectors (share of targets)": (self.support, {"color": BLUE, "marker": "o"}),
            "bound by theory": (self.bound, {"color": INK, "ls": "--"}),
            "rejected targets (share)": (self.rejected, {"color": ORANGE, "marker": "s"}),
        }
        if self.tnr is not None:
            tpr = 1.0 - self.rejected
            lines["TPR on the given samples"] = (tpr, {"color": GREEN, "ls": ":", "marker": "^"})
            lines["TNR on the given samples"] = (self.tnr, {"color": VERMILION, "ls": ":", "marker": "v"})
            lines["Gmean on the given samples"] = (np.sqrt(tpr * self.tnr), {"color": PURPLE, "ls": "-.", "marker": "D"})
        self.lines_ = {
            label: self.ax_.plot(self.values, line, label=label, ms=3.5, lw=1.4, **style)[0] for label, (line, style) in lines.items()
        }
        if self.parameter == "C":
            self.ax_.set_xscale("log")
        self.ax_.set(xlabel=self.parameter, ylabel="share", ylim=(-0.03, 1.03), title=self.title)
        _finish(self.ax_, legend)
        return self


@dataclass(frozen=True)
class _Plane:
    """The points origin + p · axes of the samples' space; ``note`` says in words which plane it is."""

    origin: np.ndarray
    axes: np.ndarray
    labels: tuple[str, str]
    note: tuple[str, ...] = ()

    def project(self, X) -> np.ndarray:
        """The coordinates (n × 2) of samples moved straight onto the plane."""
        return (X - self.origin) @ self.axes.T

    def lift(self, P) -> np.ndarray:
        """The samples (n × d) at coordinates of the plane."""
        return self.origin + P @ self.axes


def _plane(samples, features, names) -> _Plane:
    """The plane that a user's features stand for."""
    d = samples.values.shape[1]
    if d < 2:
        raise ValueError(f"A plane needs at least 2 features; X has {d}. See ScoreDistributionDisplay for the decision values alone.")
    if features is None and d > 2:
        return _principal_plane(samples.values)
    numbers = [0, 1] if features is None else _numbers(features, names)
    origin = np.median(samples.values[samples.is_target], axis=0)
    origin[numbers] = 0.0
    note = () if d == 2 else ("other features at the targets' median",)
    return _Plane(origin, np.eye(d)[numbers], (names[numbers[0]], names[numbers[1]]), note)


def _principal_plane(X) -> _Plane:
    if X.shape[0] < 2:
        raise ValueError("Principal components need at least 2 samples; X has 1. Pass features, two names or numbers.")
    pca = PCA(2, svd_solver="full").fit(X)
    first, second = (f"component {k} ({100 * share:.0f} % of the variance)" for k, share in enumerate(pca.explained_variance_ratio_, 1))
    return _Plane(pca.mean_, pca.components_, (first, second), ("plane of two principal components",))


def _numbers(features, names) -> list[int]:
    """Two different column numbers from names or numbers."""
    numbers = [_number(feature, names) for feature in ([features] if isinstance(features, str | Integral) else features)]
    if len(numbers) != 2 or numbers[0] == numbers[1]:
        raise ValueError(f"features={features!r} must be two different names or numbers: the axes of the plane.")
    return numbers


def _number(feature, names) -> int:
    if feature in names:
        return names.index(feature)
    if isinstance(feature, Integral) and 0 <= int(feature) < len(names):
        return int(feature)
    raise ValueError(f"X has no feature {feature!r}. Use two of the names {names}, or numbers from 0 to {len(names) - 1}.")


@dataclass(frozen=True)
class _Samples:
    """The samples of a picture: ``X`` as it was given, its ``values`` (n × d), and which rows are targets."""

    X: Any
    values: np.ndarray
    is_target: np.ndarray


def _samples(model, X, y) -> _Samples:
    values = check_array(X, dtype=np.float64)
    d = getattr(model, "n_features_in_", values.shape[1])
    if values.shape[1] != d:
        raise ValueError(f"X has {values.shape[1]} features; {type(model).__name__} was fitted on {d}: pass all of them.")
    return _Samples(X, values, target_mask(values, y))


def _points(model, samples) -> dict[str, np.ndarray]:
    """The points to mark by kind, in the space of X; kinds without points are left out."""
    steps, is_target = _steps(model), samples.is_target
    points = {"targets": samples.values[is_target], "known outliers": samples.values[~is_target]}
    if hasattr(steps[-1], "support_vectors_"):
        points["support vectors"] = _located(samples, steps[:-1], steps[-1].support_, steps[-1].support_vectors_)
    found = _reference_map(steps)
    if found is not None:
        number, fitted = found
        indices, R = fitted.reference_indices_, fitted.references_
        for kind, chosen in {"references": indices != GENERATED, "generated references": indices == GENERATED}.items():
            points[kind] = _located(samples, steps[:number], indices[chosen], R[chosen])
    return {kind: found for kind, found in points.items() if len(found)}


def _located(samples, steps, indices, vectors) -> np.ndarray:
    """Where vectors that came out of some steps are in the space of X: at their rows of X, else where undoing the steps puts them."""
    inputs = [samples.X]
    for step in steps:
        inputs.append(step.transform(inputs[-1]))
    Z, vectors = _dense(inputs.pop()), _dense(vectors)
    is_row = (indices != GENERATED) & (indices < len(Z))
    is_row[is_row] = np.isclose(Z[indices[is_row]], vectors[is_row]).all(axis=1)
    rest = vectors[~is_row]
    for step, given in zip(reversed(steps), reversed(inputs), strict=True):
        rest = _undone(step, rest, _dense(given)[samples.is_target])
    return np.concatenate([samples.values[indices[is_row]], rest])


def _undone(step, vectors, targets) -> np.ndarray:
    """What a step made ``vectors`` from, no rows where that cannot be known; ``targets`` are the target rows that it got."""
    if len(vectors) and hasattr(step, "kept_"):
        found = np.tile(np.median(targets, axis=0), (len(vectors), 1))  # dropped features are constant
        found[:, step.kept_] = vectors * step.scale_ + step.mean_
        return found
    if len(vectors) and hasattr(step, "inverse_transform"):
        return _dense(step.inverse_transform(vectors))
    return np.empty((0, targets.shape[1]))


def _dense(X) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def _steps(model) -> list[Any]:
    """The fitted steps of a pipeline, of the best estimator of a search, or the model alone."""
    model = getattr(model, "best_estimator_", model)
    return [step for _, step in model.steps if step not in (None, "passthrough")] if hasattr(model, "steps") else [model]


def _final(model) -> tuple[Any, str]:
    """The classifier of a model, and what its parameters' names begin with."""
    return (model.steps[-1][1], f"{model.steps[-1][0]}__") if hasattr(model, "steps") else (model, "")


def _reference_map(steps) -> tuple[int, Any] | None:
    """The first fitted reference map or kernel, and the number of the step that holds it."""
    for number, step in enumerate(steps):
        for part in (step, getattr(step, "kernel_", None)):
            if hasattr(part, "reference_indices_"):
                return number, part
    return None


def _path_values(parameter, n) -> np.ndarray:
    """nu in equal steps up to 1, or the C that mean the same for n targets."""
    nu = np.arange(1, STEPS + 1) / STEPS
    return nu if parameter == "nu" else 1.0 / (n * nu)


def _refitted(model, parameter, value, X, y):
    """A copy of the model with one value of nu or C, fitted; what is random in it does not depend on the value."""
    final, prefix = _final(model)
    params = {f"{prefix}{name}": None for name in ("nu", "C") if name in final.get_params(deep=False)}  # one excludes the other
    params |= {name: SEED for name, given in model.get_params().items() if name.endswith("random_state") and given is None}
    return clone(model).set_params(**{**params, f"{prefix}{parameter}": float(value)}).fit(X, y)


def _shares(fitted, X, is_target) -> tuple[float, float, float, float]:
    """Of the targets: the shares rejected and of support vectors; of the outliers: the share rejected; what their weights sum to."""
    final, _ = _final(fitted)
    if not hasattr(final, "support_"):
        raise ValueError(f"{type(final).__name__} has no support vectors to count: a path needs SVDD (nu or C) or OneClassSVM (nu).")
    tpr, tnr = true_rates(np.where(is_target, 1, OUTLIER), fitted.predict(X))
    return 1.0 - tpr, is_target[final.support_].sum() / is_target.sum(), tnr, -final.dual_coef_.clip(max=0.0).sum()


def _decisions(model, X) -> np.ndarray:
    check_is_fitted(model)
    if not hasattr(model, "decision_function"):
        raise ValueError(f"{type(model).__name__} has no decision_function: pass a classifier, or a pipeline that ends in one.")
    return np.asarray(model.decision_function(X))


def _names(model, X) -> list[str]:
    """The features' names: those of a data frame, those that the model was fitted with, or numbers."""
    names = X.columns if hasattr(X, "columns") else getattr(model, "feature_names_in_", None)
    d = np.shape(X)[1]
    return [str(name) for name in names] if names is not None and len(names) == d else [f"feature {i}" for i in range(d)]


def _like(X, values):
    """Values as a data frame with the columns of X, where X is one."""
    return type(X)(dict(zip(X.columns, values.T, strict=True))) if hasattr(X, "columns") else values


def _ranges(P, grid) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of a grid over points of the plane and the margin around them."""
    low, high = P.min(axis=0), P.max(axis=0)
    margin = MARGIN * np.where(high > low, high - low, 1.0)
    return np.linspace(low[0] - margin[0], high[0] + margin[0], grid), np.linspace(low[1] - margin[1], high[1] + margin[1], grid)


def _edges(decisions, bins) -> np.ndarray:
    """Edges of equal bins over the values; 0 is one of them, so that every bin is accepted or rejected as a whole."""
    low, high = decisions.min(), decisions.max()
    width = (high - low or abs(high) or 1.0) / bins
    return width * np.arange(np.floor(low / width) - 1, np.floor(high / width) + 3)  # an empty bin at each end: rounding drops no value


def _pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Displays are drawn by matplotlib: pip install "refkernel[plot]".') from error
    return plt


def _axes(ax):
    """The axes to draw in and their figure: a new one, with room for a legend beside them, where none are given."""
    if ax is None:
        _, ax = _pyplot().subplots(figsize=SIZE, layout="constrained")
    return ax, ax.figure


def _finish(ax, legend):
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        _legend(ax, ax.get_legend_handles_labels()[0])


def _legend(ax, handles):
    """Beside the axes, where it covers no data."""
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
