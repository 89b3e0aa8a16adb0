"""The effect of nu or C."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .._core.types import MatrixLike
from .._core.unwrap import detector_of
from .._core.validation import as_labels, check_choice, target_mask
from ..metrics import geometric_mean, true_rates
from .style import BLUE, GREEN, INK, ORANGE, PURPLE, VERMILION, Display

STEPS = 20  # the default number of values of nu on a path: every 0.05, so that the bound looks like a line


@dataclass(kw_only=True, eq=False, repr=False)
class PathDisplay(Display):
    """The effect of nu (or C): the shares of rejected targets and of support vectors, and the bound between them.

    nu bounds the share of rejected training targets from above and the share of support vectors from below; for C the bound is 1 / (n C).
    If known outliers repel, with dual weights that sum to -s, the bound is 1 + s times as high.

    Parameters
    ----------
    parameter : {"nu", "C"}
        The parameter on the horizontal axis.
    values : ndarray of shape (q,)
        Its values, ascending.
    bound : ndarray of shape (q,)
        The bound, which lies between ``rejected`` and ``support``.
    rejected, support : ndarray of shape (q,)
        The shares of the n targets that are left outside, and that are support vectors.
    tnr : ndarray of shape (q,), optional
        The share of the given outliers that is rejected.
    title : str, default=""
        The title of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
    lines_ : dict
        The drawn lines by label.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> from refkernel.plot import PathDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> display = PathDisplay.from_estimator(rk.SVDD(), X, values=[0.1, 0.3, 0.5])
    >>> bool(np.all(display.rejected <= display.bound)), bool(np.all(display.support >= display.bound))
    (True, True)
    """

    parameter: str
    values: np.ndarray
    bound: np.ndarray
    rejected: np.ndarray
    support: np.ndarray
    tnr: np.ndarray | None = None
    title: str = ""

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        *,
        parameter: str = "nu",
        values: npt.ArrayLike | None = None,
        ax: Any = None,
        legend: bool = True,
    ) -> Self:
        """Fit a copy of the model on X for every value of its parameter, and draw how the rows of X are classified.

        Parameters
        ----------
        model : SVDD, OneClassSVM, a pipeline that ends in one, or a fitted search
            A classifier with nu and support vectors; it is cloned, not changed.
        X : array-like or data frame of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers: with them, TPR, TNR and Gmean are drawn too. All rates are of training samples: they show the
            trade-off, and say little about new samples. Use ``OneClassGridSearch`` to estimate rates of new samples.
        parameter : {"nu", "C"}, default="nu"
            The parameter to vary.
        values : array-like, optional
            By default nu = 0.05, 0.1, … 1, or the equivalent C.
        """
        check_choice("parameter", parameter, ("nu", "C"))
        model = getattr(model, "best_estimator_", model)
        final = detector_of(model)
        if parameter not in final.get_params(deep=False):
            raise ValueError(f"{type(final).__name__} has no {parameter} to follow: a path needs SVDD (nu or C) or OneClassSVM (nu).")
        is_target = target_mask(X if hasattr(X, "shape") else np.asarray(X), y)
        n = is_target.sum()
        nu = np.arange(1, STEPS + 1) / STEPS
        steps = np.sort((nu if parameter == "nu" else 1.0 / (n * nu)) if values is None else np.asarray(values, dtype=np.float64))
        if steps.ndim != 1 or steps.size == 0:
            raise ValueError(f"values has shape {steps.shape}; it must be a list of at least one {parameter}.")
        seed = int(np.random.default_rng().integers(2**31))  # one for all fits, or the lines would show differences between draws
        unseeded = [name for name, given in model.get_params().items() if name.endswith("random_state") and given is None]
        model = clone(model).set_params(**dict.fromkeys(unseeded, seed))
        rejected, support, tnr, repelled = np.array([_shares(model, parameter, value, X, y, is_target) for value in steps]).T
        return cls(
            parameter=parameter,
            values=steps,
            bound=(steps if parameter == "nu" else 1.0 / (n * steps)) * (1.0 + repelled),
            rejected=rejected,
            support=support,
            tnr=None if is_target.all() else tnr,
            title=f"{type(final).__name__} along {parameter}",
        ).plot(ax, legend=legend)

    def _draw(self) -> list[Any]:
        lines: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
            "support vectors (share of targets)": (self.support, {"color": BLUE, "marker": "o"}),
            "bound by theory": (self.bound, {"color": INK, "ls": "--"}),
            "rejected targets (share)": (self.rejected, {"color": ORANGE, "marker": "s"}),
        }
        if self.tnr is not None:
            tpr = 1.0 - self.rejected
            lines["TPR on the given samples"] = (tpr, {"color": GREEN, "ls": ":", "marker": "^"})
            lines["TNR on the given samples"] = (self.tnr, {"color": VERMILION, "ls": ":", "marker": "v"})
            lines["Gmean on the given samples"] = (geometric_mean(tpr, self.tnr), {"color": PURPLE, "ls": "-.", "marker": "D"})
        self.lines_ = {
            label: self.ax_.plot(self.values, line, label=label, ms=3.5, lw=1.4, **style)[0] for label, (line, style) in lines.items()
        }
        if self.parameter == "C":
            self.ax_.set_xscale("log")
        self.ax_.set(xlabel=self.parameter, ylabel="share", ylim=(-0.03, 1.03), title=self.title)
        return self._labelled()


def _shares(model: Any, parameter: str, value: float, X: Any, y: Any, is_target: np.ndarray) -> tuple[float, float, float, float]:
    """With one value of nu or C: the shares of rejected targets, of targets that support, of rejected outliers; these' total |weight|."""
    fitted = clone(model)
    final = detector_of(fitted)
    final.set_params(**{name: None for name in ("nu", "C") if name in final.get_params(deep=False)})  # only one may be given
    final.set_params(**{parameter: float(value)})
    fitted.fit(X, y)
    if not hasattr(final := detector_of(fitted), "support_"):
        raise ValueError(f"{type(final).__name__} has no support vectors to count: a path needs SVDD (nu or C) or OneClassSVM (nu).")
    tpr, tnr = true_rates(as_labels(is_target), fitted.predict(X))
    return 1.0 - tpr, is_target[final.support_].sum() / is_target.sum(), tnr, -final.dual_coef_.clip(max=0.0).sum()
