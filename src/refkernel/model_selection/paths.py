"""Every value of nu or C on one kernel matrix: the layer below the estimators, for users who bring their own kernels."""

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._core.problem import CLASSIFIERS, Solution, bound_of_outliers, joint, negative_margin
from .._core.solver import STOPPING_RULES, Family, solve_path
from .._core.validation import check_bound, check_choice, check_nu
from ..kernels.base import PRECISION


@dataclass(frozen=True)
class Formulation:
    """A classifier with the values of its parameter to solve for.

    Parameters
    ----------
    classifier : {"svdd", "ocsvm"}
        SVDD or the one-class SVM.
    values : sequence of float
        The values of the parameter.
    parameter : {"nu", "C"}, default="nu"
        Which parameter; "C" is for SVDD only.
    tol, stopping, max_iter, C_negative : optional
        As for :class:`SVDD`.

    Examples
    --------
    >>> from refkernel.model_selection import Formulation
    >>> Formulation("svdd", [0.1, 0.2]).values
    (0.1, 0.2)
    """

    classifier: str
    values: Sequence[float]
    parameter: str = "nu"
    tol: float = 1e-6
    stopping: str = "relative"
    max_iter: int = -1
    C_negative: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        check_choice("classifier", self.classifier, CLASSIFIERS)
        check_choice("parameter", self.parameter, CLASSIFIERS[self.classifier].parameters)
        check_choice("stopping", self.stopping, STOPPING_RULES)


def decision_paths(K: np.ndarray, formulations: Sequence[Formulation], K_test: np.ndarray, diag_test: np.ndarray) -> list[np.ndarray]:
    """Compute decision values on test samples, for every value of every formulation, from one kernel matrix.

    The matrices of s kernels can be stacked along a first axis; they are then solved together.

    Parameters
    ----------
    K : ndarray of shape (n, n) or (s, n, n)
        Kernel matrix of the training samples.
    formulations : sequence of Formulation
        What to solve on it.
    K_test : ndarray of shape (t, n) or (s, t, n)
        Kernel values of the test samples against the training samples.
    diag_test : ndarray of shape (t,) or (s, t)
        k(x, x) of the test samples.

    Returns
    -------
    list of ndarray of shape (len(values), t) or (s, len(values), t)
        For each formulation, what the estimators' ``decision_function`` would return.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> from refkernel.model_selection import Formulation, decision_paths
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> k = rk.RBF().fit(X)
    >>> svdd, ocsvm = decision_paths(
    ...     k(X), [Formulation("svdd", [0.1, 0.2, 0.3]), Formulation("ocsvm", [0.1, 0.5])], k(X[:5] + 1, X), k.diag(X[:5] + 1)
    ... )
    >>> svdd.shape, ocsvm.shape
    ((3, 5), (2, 5))
    """
    if np.ndim(K) == 2:
        return [found[0] for found in decision_paths(K[None], formulations, K_test[None], diag_test[None])]
    solved = solve_formulations(K, formulations)
    converged = solved.path.converged
    if not converged.all():
        warnings.warn(
            f"{(~converged).sum()} of {converged.size} fits stopped short of tol. Raise max_iter or tol, or scale the data.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solved.decisions(K_test, diag_test)


def solve_formulations(K: np.ndarray, formulations: Sequence[Formulation], outliers: int = 0) -> "SolvedPaths":
    """Solve every value of every formulation on a stack of kernel matrices K (s × n × n), whose last ``outliers`` samples repel."""
    K = np.ascontiguousarray(K, dtype=np.float64)
    if not math.isfinite(K.sum()):
        raise ValueError("The kernel overflows or is NaN on the training samples. Scale the data first, for example with TargetScaler.")
    families, *plan = _plan(tuple(formulations), K.shape[1] - outliers, outliers)
    margin = np.array([negative_margin(k.diagonal()[:-outliers]) for k in K]) if outliers else np.zeros(len(K))
    return SolvedPaths(solve_path(K, families, outliers), outliers, margin, *plan)


@dataclass(frozen=True)
class SolvedPaths:
    """The solutions of some formulations on a stack of s kernels, and what follows from them; see ``_plan``."""

    path: Solution
    outliers: int
    margin: np.ndarray
    each: Any
    noisy: np.ndarray
    places: list[np.ndarray]

    def decisions(self, K_test: np.ndarray, diag_test: np.ndarray, precision: float = PRECISION) -> list[np.ndarray]:
        """Decision values (s, len(values), t) of test samples for each formulation, as the estimators' ``decision_function``."""
        path, each = self.path, self.each
        slack = each.slack(path.size_of_sums, path.shortfall, precision, np.where(self.noisy, path.noise, 0.0))
        if self.outliers:
            repelled = (path.b[:, :, -self.outliers :] < 0).any(axis=2)
            slack = np.where(repelled, 0.5 * self.margin[:, None], slack)
        found = path.b @ K_test.swapaxes(1, 2)
        found *= each.slope[:, None]
        found -= each.diag_share[:, None] * diag_test[:, None, :]
        found += (-each.threshold(path.rho, path.quadratic) - each.diag_share * path.quadratic + slack)[:, :, None]
        return self._in_order(found)

    @property
    def converged(self) -> np.ndarray:
        """Whether the solver converged (s × values), for a single formulation."""
        return self._in_order(self.path.converged)[0]

    @property
    def degenerate(self) -> np.ndarray:
        """Whether decision values are noise (s × values), for a single formulation."""
        return self._in_order(self.path.is_zero & self.noisy)[0]

    def _in_order(self, found: np.ndarray) -> list[np.ndarray]:
        """Cut into formulations, with values in the order in which the user gave them."""
        return [found[:, places] for places in self.places]


@functools.lru_cache(maxsize=1024)
def _plan(formulations: tuple[Formulation, ...], n: int, outliers: int) -> tuple[list[Family], Any, np.ndarray, list[np.ndarray]]:
    """The problems for n targets, sorted so that each starts from its neighbour's solution; where decisions may be noise; their places."""
    families, places, begin = [], [], 0
    for f in formulations:
        if f.parameter == "nu":
            bounds = np.array([check_nu(value) for value in f.values]) * n
        else:
            bounds = 1.0 / np.array([check_bound(value, n) for value in f.values])
        order = np.argsort(bounds, kind="stable")
        lowers = np.array([-bound_of_outliers(f.C_negative, bound, n, outliers) if outliers else 0.0 for bound in bounds[order]])
        families.append(Family(CLASSIFIERS[f.classifier], bounds[order], lowers, f.tol, f.stopping, f.max_iter))
        places.append(begin + np.argsort(order))
        begin += bounds.size
    libsvm = np.concatenate([np.full(len(f.values), f.stopping == "libsvm") for f in formulations])
    each = joint([CLASSIFIERS[f.classifier] for f in formulations for _ in f.values])
    return families, each, (each.diag_share == 0.0) & ~libsvm, places
