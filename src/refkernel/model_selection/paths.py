"""Every value of nu or C on one kernel matrix: the layer below the estimators, for users who bring their own kernels."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._dual.path import Path, solve_path
from .._dual.problem import ocsvm_family, svdd_family
from .._dual.rows import in_single_precision
from .._validation import check_bound, check_nu


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


def decision_paths(K, formulations: Sequence[Formulation], K_test, diag_test) -> list[np.ndarray]:
    """Decision values on test samples, for every value of every formulation, from one kernel matrix.

    Parameters
    ----------
    K : (n, n) kernel matrix of the training samples.
    formulations : what to solve on it.
    K_test : (t, n) kernel values of the test samples against the training samples.
    diag_test : (t,) k(x, x) of the test samples.

    Returns
    -------
    For each formulation an array (len(values), t), as the estimators' ``decision_function`` would give it.

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
    K = np.ascontiguousarray(K, dtype=np.float64)
    diag = np.ascontiguousarray(K.diagonal())
    libsvm = any(formulation.stopping == "libsvm" for formulation in formulations)
    matrices = {"relative": K, "libsvm": in_single_precision(K) if libsvm else None}
    return [_decisions(matrices[f.stopping], diag, f, K_test, diag_test) for f in formulations]


def _decisions(K, diag, formulation, K_test, diag_test):
    order, totals, uppers = _family(formulation, diag.size)
    _, linear_term, decision = CLASSIFIERS[formulation.classifier]
    options = {"tol": formulation.tol, "stopping": formulation.stopping, "max_iter": formulation.max_iter}
    path = solve_path(K, diag, linear_term(diag), totals, uppers, **options)
    decisions = decision(path, path.B @ K_test.T, diag_test)
    return decisions if order is None else decisions[order]


@functools.lru_cache(maxsize=1024)
def _family(formulation, n):
    """(totals, uppers) of the problems in the order in which each starts from the one before, and where each value went.

    Their order is that of nu n (the number of samples whose weights, all at the bound, make up the whole); None: as given.
    """
    if formulation.parameter == "nu":
        bounds = np.array([check_nu(value) for value in formulation.values]) * n
    else:
        bounds = 1.0 / np.array([check_bound(value, n) for value in formulation.values])
    order = np.argsort(bounds, kind="stable")
    where = None if (order[1:] > order[:-1]).all() else np.argsort(order)
    return where, *CLASSIFIERS[formulation.classifier][0](bounds[order])


def _svdd_decision(path: Path, sums, diag_test):
    radius2 = np.maximum(path.quadratic - 2.0 * path.rho, 0.0) + path.slack
    decisions = 2.0 * sums
    decisions -= diag_test
    decisions += (radius2 - path.quadratic)[:, None]
    return decisions


def _ocsvm_decision(path: Path, sums, diag_test):
    return sums - (path.rho - path.slack)[:, None]


def _half_diagonal(diag):
    return -0.5 * diag


def _nothing(diag):
    return np.zeros_like(diag)


CLASSIFIERS = {"svdd": (svdd_family, _half_diagonal, _svdd_decision), "ocsvm": (ocsvm_family, _nothing, _ocsvm_decision)}
"""For each: bounds -> (totals, uppers); diag -> the linear term; the decision values of a path."""
