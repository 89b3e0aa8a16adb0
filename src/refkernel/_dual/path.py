"""Families of problems on kernel matrices: all values of nu or C, each solved from the one before."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .certificate import EXTRA_DIGITS, typical_size
from .classifiers import Classifier, negative_margin
from .problem import is_zero, noise
from .problems import COMPUTED, CURVATURE_FLOOR, FACTS, FIRST, FOLLOWING, solve_problems
from .sources import in_single_precision

MOST_MOVES = 10_000_000
"""The default limit on pair moves for one problem."""


class Family(NamedTuple):
    """q problems min ½ b'Kb + linear_share · diag(K)'b, Σ b = total, on any K of one size. Each array has one entry per problem.

    Targets have 0 <= b <= upper, outliers that repel lower <= b <= 0. ``begin`` says where each starts (see ``problems``).
    ``libsvm`` problems stop by LIBSVM's absolute rule, on K in single precision. ``asked`` is the gap that the solver aims at.
    """

    linear_share: np.ndarray
    total: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    tol: np.ndarray
    max_moves: np.ndarray
    libsvm: np.ndarray
    begin: np.ndarray
    asked: np.ndarray

    @classmethod
    def of(
        cls,
        classifier: Classifier,
        bounds: np.ndarray,
        lowers: np.ndarray | None = None,
        *,
        tol: float = 1e-06,
        stopping: str = "relative",
        max_iter: int = -1,
    ) -> Family:
        """A path over nu n = 1 / C = ``bounds``, each problem from the one before."""
        q = len(bounds)
        totals, uppers = classifier.scaled(bounds)
        begin = np.full(q, FIRST if stopping == "libsvm" else FOLLOWING)
        begin[:1] = FIRST if stopping == "libsvm" else COMPUTED
        return cls(
            linear_share=np.full(q, classifier.linear_share),
            total=totals,
            lower=np.zeros(q) if lowers is None else lowers,
            upper=uppers,
            tol=np.full(q, float(tol)),
            max_moves=np.full(q, MOST_MOVES if max_iter < 0 else max_iter),
            libsvm=np.full(q, stopping == "libsvm"),
            begin=begin,
            asked=np.full(q, 0.0 if stopping == "libsvm" else EXTRA_DIGITS * tol),
        )

    def joined(self, other: Family) -> Family:
        """The problems of both, one after the other."""
        return Family(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Path:
    """Solutions of q problems on each of s matrices: weights ``B`` (s × q × n), and (s × q) facts about each, as in ``Solution``."""

    B: np.ndarray
    rho: np.ndarray
    quadratic: np.ndarray
    scale: np.ndarray
    gap: np.ndarray
    size_of_sums: np.ndarray
    shortfall: np.ndarray
    converged: np.ndarray
    asked: np.ndarray

    @functools.cached_property
    def is_zero(self) -> np.ndarray:
        """Whether w = Σ b phi(x) cannot be told from 0."""
        return is_zero(self)

    @property
    def noise(self) -> np.ndarray:
        """The largest |w · phi(x)| that noise alone explains; 0 if w is not 0."""
        return noise(self)


def solve_path(K: np.ndarray, family: Family, outliers: int = 0, counts: np.ndarray | None = None) -> Path:
    """Solve a family of problems on every kernel matrix of a stack K (s × n × n, contiguous).

    The last ``outliers`` samples are outliers that repel. Each answer depends on its neighbours on the path only within ``tol``.
    Samples that stand for several equal ones have their number in ``counts``: their weight is the sum of the weights of these.
    """
    (s, n, _), q = K.shape, len(family.total)
    diag = K.diagonal(axis1=1, axis2=2).copy()
    wished, lower, upper = diag, np.zeros((q, n)), np.empty((q, n))
    upper[:] = family.upper[:, None] if counts is None else family.upper[:, None] * counts
    if outliers:
        wished = diag.copy()
        wished[:, n - outliers :] -= np.array([negative_margin(d[: n - outliers]) for d in diag])[:, None]
        lower[:, n - outliers :], upper[:, n - outliers :] = family.lower[:, None], 0.0
    p = family.linear_share[:, None] * wished[:, None, :]
    floor = CURVATURE_FLOOR * np.where(size := typical_size(diag), size, 1.0)
    B, G, facts = np.empty((s, q, n)), np.empty((s, q, n)), np.empty((s, q, FACTS))
    any_libsvm = family.libsvm.any()
    K_single = in_single_precision(K) if any_libsvm else K
    rules = family.total, family.tol, family.libsvm, family.begin, floor, family.max_moves
    solve_problems(K, K_single, diag, p, lower, upper, *rules, B, G, facts)
    rho, quadratic, scale, gap, size_of_sums, shortfall, converged, _, _ = facts.transpose(2, 0, 1)
    certified = gap <= family.tol
    if any_libsvm:
        certified |= family.libsvm
        np.copyto(shortfall, 0.0, where=family.libsvm)  # LIBSVM's threshold is rho, wherever it stopped
    return Path(B, rho, quadratic, scale, gap, size_of_sums, shortfall, (converged > 0) & certified, family.asked)
