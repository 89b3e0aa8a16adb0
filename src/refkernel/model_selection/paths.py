"""Every value of nu or C on one kernel matrix: the layer below the estimators, for users who bring their own kernels."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._dual.path import Family, solve_path
from .._dual.problem import ocsvm_family, svdd_family
from .._dual.solver import STOPPING_RULES
from .._validation import check_bound, check_choice, check_nu


@dataclass(frozen=True)
class Formulation:
    """A classifier ("svdd" or "ocsvm") with the values of its parameter ("nu"; for SVDD also "C") to solve for.

    ``tol``, ``stopping`` and ``max_iter`` are those of the estimators.
    """

    classifier: str
    values: tuple[float, ...]
    parameter: str = "nu"
    tol: float = 1e-6
    stopping: str = "relative"
    max_iter: int = -1

    def __post_init__(self):
        object.__setattr__(self, "values", tuple(self.values))
        check_choice("classifier", self.classifier, CLASSIFIERS)
        check_choice("parameter", self.parameter, ("nu",) if self.classifier == "ocsvm" else ("nu", "C"))
        check_choice("stopping", self.stopping, STOPPING_RULES)


def decision_paths(K, formulations: Sequence[Formulation], K_test, diag_test) -> list[np.ndarray]:
    """Decision values on test samples, for every value of every formulation, from one kernel matrix.

    Parameters
    ----------
    K : (n, n) kernel matrix of the training samples.
    formulations : what to solve on it.
    K_test : (t, n) kernel values of the test samples against the training samples.
    diag_test : (t,) k(x, x) of the test samples.
        Stacks of the three, one of each for every one of s kernels, are solved together.

    Returns
    -------
    For each formulation an array (len(values), t), as the estimators' ``decision_function`` would give it; (s, len(values), t) for
    stacks.

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
    if not np.isfinite(K.sum()):
        raise ValueError("The kernel overflows or is NaN on the training samples. Scale the data first, for example with TargetScaler.")
    plan = _plan(tuple(formulations), K.shape[1])
    path = solve_path(np.ascontiguousarray(K, dtype=np.float64), plan.family)
    if not path.converged.all():
        warnings.warn(
            f"{(~path.converged).sum()} of {path.converged.size} fits reached max_iter. Raise max_iter or tol, or scale the data.",
            ConvergenceWarning,
            stacklevel=2,
        )
    decisions = path.B @ K_test.swapaxes(1, 2)
    decisions *= plan.slope
    decisions -= plan.share_of_diagonal * diag_test[:, None, :]
    radius2 = np.maximum(path.quadratic - 2.0 * path.rho, 0.0)
    decisions += (np.where(plan.is_svdd, radius2 - path.quadratic, -path.rho) + path.slack)[:, :, None]
    if plan.order is not None:
        decisions = decisions[:, plan.order]
    return [decisions[:, part] for part in plan.parts]


@dataclass(frozen=True)
class _Plan:
    """The problems of some formulations, and how decision values follow: slope · Σ b k(x, ·) - share · k(x, x) + offset.

    ``order`` says where the problem of each value is (None: in its place), and ``parts`` which values are whose.
    """

    family: Family
    order: np.ndarray | None
    parts: list[slice]
    is_svdd: np.ndarray
    slope: np.ndarray
    share_of_diagonal: np.ndarray


@functools.lru_cache(maxsize=1024)
def _plan(formulations, n) -> _Plan:
    families, orders, svdd, parts = [], [], [], []
    begin = 0
    for f in formulations:
        if f.parameter == "nu":
            bounds = np.array([check_nu(value) for value in f.values]) * n
        else:
            bounds = 1.0 / np.array([check_bound(value, n) for value in f.values])
        order = np.argsort(bounds, kind="stable")  # each starts from the one before: neighbours are close
        share, totals, uppers = CLASSIFIERS[f.classifier](bounds[order])
        families.append(Family.of(share, totals, uppers, tol=f.tol, stopping=f.stopping, max_iter=f.max_iter))
        orders.append(begin + np.argsort(order))
        svdd.append(np.full(bounds.size, f.classifier == "svdd"))
        parts.append(slice(begin, begin + bounds.size))
        begin += bounds.size
    is_svdd, order = np.concatenate(svdd), np.concatenate(orders)
    shares = is_svdd[:, None].astype(np.float64)
    in_order = (order == np.arange(begin)).all()
    return _Plan(functools.reduce(operator.add, families), None if in_order else order, parts, is_svdd, 1.0 + shares, shares)


CLASSIFIERS = {"svdd": svdd_family, "ocsvm": ocsvm_family}
"""For each: bounds nu n -> (share of the diagonal in the linear term, totals, uppers)."""
