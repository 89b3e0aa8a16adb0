"""Folds of targets left out in turn, for problems where leaving out each target on its own costs too much."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .certificate import certify
from .problem import DualProblem
from .problems import change_total, curvature_floor
from .sources import Source
from .working_sets import solve_by_working_sets

FOLDS = 5
"""Each costs about as much as a fit, and leaves out a fifth of the targets."""


class FoldsOut(NamedTuple):
    """For each of the ``samples``, what ``LeftOut`` holds, but under the model of the other folds."""

    samples: np.ndarray
    sums: np.ndarray
    moved: np.ndarray
    quadratic: np.ndarray
    gap: np.ndarray
    converged: np.ndarray


def leave_folds_out(
    problem: DualProblem, rows: Source, b: np.ndarray, G: np.ndarray, *, tol: float = 1e-06, stopping: str = "relative", max_iter: int = -1
) -> FoldsOut:
    """Solve the problem again without each fold of its targets; their upper bounds grow so that nu stays.

    Parameters
    ----------
    problem, rows, tol, stopping, max_iter
        As for ``solve``.
    b, G : ndarrays of shape (n,)
        The solution with all samples, and its gradient.

    Returns
    -------
    FoldsOut
        For every target.
    """
    targets = np.flatnonzero(problem.upper > 0.0)
    fold_of = np.random.default_rng(0).permutation(targets.size) % FOLDS
    facts = np.empty((5, rows.n))
    for fold in range(FOLDS):
        out = targets[fold_of == fold]
        facts[:, out] = _leave_out(problem, rows, b, G, out, tol, stopping, max_iter)
    sums, moved, quadratic, gap, converged = facts[:, targets]
    return FoldsOut(targets, sums, moved, quadratic, gap, converged > 0)


def _leave_out(
    problem: DualProblem, rows: Source, b_all: np.ndarray, G_all: np.ndarray, out: np.ndarray, tol: float, stopping: str, max_iter: int
) -> np.ndarray:
    """(sums, moved, quadratic, gap, converged) of the samples left out together; all but the first are the same for all samples."""
    limit = max(10_000_000, 100 * rows.n) if max_iter < 0 else max_iter
    floor = curvature_floor(rows.diag, stopping == "libsvm")
    lower, upper, b, G = problem.lower.copy(), problem.upper.copy(), b_all.copy(), G_all.copy()
    lower[out] = upper[out] = b[out] = 0.0
    upper *= problem.upper.sum() / upper.sum()
    b[b > 0.0] *= (problem.total - b[b < 0.0].sum()) / b[b > 0.0].sum() if (b > 0.0).any() else 1.0
    change_total(b, G, lower, upper, problem.total)
    moved = np.flatnonzero(b != b_all)
    rows.add(G, moved, b[moved] - b_all[moved])
    without = DualProblem(problem.p, lower, upper, problem.total)
    _, converged, _ = solve_by_working_sets(without, rows, b, G, tol, stopping, floor, limit)
    _, quadratic, _, gap, _, _ = certify(b, G, problem.p, rows.diag, lower, upper)
    Kb = G_all - problem.p
    move = max(quadratic - 2.0 * (b @ Kb) + b_all @ Kb, 0.0)
    return np.vstack([(G - problem.p)[out], np.repeat([[move], [quadratic], [gap], [converged]], out.size, axis=1)])
