"""Every value of nu or C on one kernel matrix: the layer below the estimators, for users who bring their own kernels."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._dual.classifiers import CLASSIFIERS, bound_of_outliers, joint, negative_margin
from .._dual.path import Family, Path, solve_path
from .._dual.solver import STOPPING_RULES
from .._validation import check_bound, check_choice, check_nu
from ..kernels.base import PRECISION

__all__ = ["Formulation", "SolvedPaths", "decision_paths", "solve_formulations"]


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
    tol : float, default=1e-6
        As for :class:`SVDD`.
    stopping : {"relative", "libsvm"}, default="relative"
        As for :class:`SVDD`.
    max_iter : int, default=-1
        As for :class:`SVDD`.
    C_negative : float, optional
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

    def bounds_of_outliers(self, bounds: np.ndarray, n: int, q: int) -> np.ndarray:
        """Compute the bounds of the weights of outliers that repel.

        Parameters
        ----------
        bounds : ndarray
            The values of nu n = 1 / C.
        n : int
            The number of targets.
        q : int
            The number of outliers.

        Returns
        -------
        ndarray
            One bound for each value.
        """
        return np.array([bound_of_outliers(self.C_negative, bound, n, q) for bound in bounds])


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


def solve_formulations(
    K: np.ndarray, formulations: Sequence[Formulation], outliers: int = 0, counts: np.ndarray | None = None
) -> SolvedPaths:
    """Solve every value of every formulation on a stack of kernel matrices K (s × n × n), whose last ``outliers`` samples repel.

    Without such outliers, each sample may stand for several equal ones: ``counts`` says how many.
    """
    K = np.ascontiguousarray(K, dtype=np.float64)
    if not math.isfinite(K.sum()):
        raise ValueError("The kernel overflows or is NaN on the training samples. Scale the data first, for example with TargetScaler.")
    plan = _plan(tuple(formulations), K.shape[1] - outliers if counts is None else int(counts.sum()), outliers)
    path = solve_path(K, plan.family, outliers, counts)
    margin = np.array([negative_margin(k.diagonal()[:-outliers]) for k in K]) if outliers else np.zeros(len(K))
    return SolvedPaths(plan, path, outliers, margin)


@dataclass(frozen=True)
class SolvedPaths:
    """The solutions of some formulations on a stack of s kernels, and what follows from them."""

    plan: _Plan
    path: Path
    outliers: int
    margin: np.ndarray

    def decisions(self, K_test: np.ndarray, diag_test: np.ndarray, precision: float = PRECISION) -> list[np.ndarray]:
        """Decision values (s, len(values), t) of test samples for each formulation, as the estimators' ``decision_function``."""
        found, each = self.path.B @ K_test.swapaxes(1, 2), self.plan.each
        found *= each.slope[:, None]
        found -= each.diag_share[:, None] * diag_test[:, None, :]
        found += self._constants(precision)[:, :, None]
        return self._in_order(found)

    def _constants(self, precision: float) -> np.ndarray:
        """The part of each problem's decisions that is the same for all samples: -diag_share · b'Kb - threshold + slack."""
        path, each = self.path, self.plan.each
        noise = np.where(self.plan.noisy, path.noise, 0.0) if self.plan.noisy.any() else 0.0
        slack = each.slack(path.size_of_sums, path.shortfall, precision, noise)
        if self.outliers:
            repelled = (path.B[:, :, -self.outliers :] < 0).any(axis=2)
            slack = np.where(repelled, 0.5 * self.margin[:, None], slack)
        return -each.threshold(path.rho, path.quadratic) - each.diag_share * path.quadratic + slack

    @property
    def converged(self) -> np.ndarray:
        """Whether the solver converged (s × values), for a single formulation."""
        return self._in_order(self.path.converged)[0]

    @property
    def degenerate(self) -> np.ndarray:
        """Whether decision values are noise (s × values), for a single formulation."""
        noisy = self.plan.noisy
        return self._in_order(self.path.is_zero & noisy if noisy.any() else np.zeros(self.path.rho.shape, dtype=bool))[0]

    def _in_order(self, found: np.ndarray) -> list[np.ndarray]:
        """Cut into formulations, with values in the order in which the user gave them."""
        found = found if self.plan.order is None else found[:, self.plan.order]
        return [found[:, part] for part in self.plan.parts]


@dataclass(frozen=True)
class _Plan:
    """The problems of some formulations.

    ``each`` joins the classifiers of the problems; where ``noisy``, all decisions may be noise. ``parts`` holds the slice of each
    formulation, ``order`` the position of each value's problem (None if they are in order).
    """

    family: Family
    each: Any
    noisy: np.ndarray
    order: np.ndarray | None
    parts: list[slice]


@functools.lru_cache(maxsize=1024)
def _plan(formulations: tuple[Formulation, ...], n: int, outliers: int) -> _Plan:
    """The problems of these formulations for n targets, sorted so that each starts from its neighbour's solution."""
    families, orders, parts = [], [], []
    begin = 0
    for f in formulations:
        if f.parameter == "nu":
            bounds = np.array([check_nu(value) for value in f.values]) * n
        else:
            bounds = 1.0 / np.array([check_bound(value, n) for value in f.values])
        order = np.argsort(bounds, kind="stable")
        lowers = -f.bounds_of_outliers(bounds[order], n, outliers) if outliers else None
        classifier = CLASSIFIERS[f.classifier]
        families.append(Family.of(classifier, bounds[order], lowers, tol=f.tol, stopping=f.stopping, max_iter=f.max_iter))
        orders.append(begin + np.argsort(order))
        parts.append(slice(begin, begin + bounds.size))
        begin += bounds.size
    order = np.concatenate(orders)
    in_order = (order == np.arange(begin)).all()
    family = functools.reduce(Family.joined, families)
    each = joint([CLASSIFIERS[f.classifier] for f in formulations for _ in f.values])
    return _Plan(family, each, (each.diag_share == 0.0) & ~family.libsvm, None if in_order else order, parts)
