"""Small problems on the way: systems that rounding made singular, and rows that repeat each other."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .._dual.problem import DualProblem


def solve_positive(H: np.ndarray, x: np.ndarray) -> np.ndarray:
    """H^-1 x for a positive definite H, which rounding may have made singular."""
    for ridge in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
        try:
            return cho_solve(cho_factor(H + ridge * np.trace(H) * np.eye(len(H)), check_finite=False), x, check_finite=False)
        except LinAlgError:
            continue
    return np.linalg.lstsq(H, x)[0]


class Merged:
    """A problem in which equal rows are one row, which may carry the weight of all of them."""

    def __init__(self, Phi: np.ndarray, problem: DualProblem) -> None:
        self._whole = problem
        terms = np.column_stack([Phi, problem.p])
        _, first, self._group = np.unique(terms @ np.arange(1.0, terms.shape[1] + 1.0), return_index=True, return_inverse=True)
        if first.size < len(terms) and (terms[first][self._group] != terms).any():  # sums that agree by chance
            _, first, group = np.unique(terms, axis=0, return_index=True, return_inverse=True)
            self._group = group.ravel()  # NumPy 2.0 gives it a second axis
        self.Phi = Phi[first]
        lower, upper = (np.bincount(self._group, bounds, len(first)) for bounds in (problem.lower, problem.upper))
        self.problem = DualProblem(problem.p[first], lower, upper, problem.total)

    def shared(self, b: np.ndarray) -> np.ndarray:
        """The weights of the single rows: equal rows are equally far between their bounds."""
        lower, upper = self.problem.lower, self.problem.upper
        share = np.divide(b - lower, upper - lower, out=np.zeros_like(b), where=upper > lower)[self._group]
        whole = self._whole
        return np.where(share == 1.0, whole.upper, whole.lower + share * (whole.upper - whole.lower))
