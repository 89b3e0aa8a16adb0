"""Every sample left out in turn, exactly, at the cost of a few fits.

The bounds stay as they are. A sample without weight can be left out without any change. A sample with weight is left out by setting its
bounds to 0; the others are then solved from the solution at hand. As long as no weight meets a bound, their new weights have a closed
form, which needs one factorisation for all samples. Pair moves and Newton steps do the rest, to the tolerance of a fit.

If the others cannot take the weight (nu n > n - 1), their upper bounds are raised, all by the same factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from .._jit import LOOP, njit
from .._threads import one_blas_thread, share_rows
from .certificate import certify
from .newton import DEPENDENT, factorise_free, free_weights
from .problem import DualProblem
from .problems import change_total, curvature_floor
from .solver import WHOLE, Rule, solve_again
from .sources import Source, in_single_precision
from .working_sets import solve_by_working_sets

MOST_MODELS = 256
"""Models whose starts are computed together: with n = 1,024 their weights and gradients take 4 MB."""

MANY_ENTRIES = 1 << 22
"""With at least this many products of models and kernel values (about 10 ms of work), models are shared between threads."""

MOST_MET, ROUNDS = 32, 6
"""The closed form holds up to MOST_MET weights at the bounds that they met, and is then computed again, up to ROUNDS times."""


@dataclass(frozen=True)
class LeftOut:
    """One model for each of k ``samples``, which that model has not seen: weights ``B`` (k × n), 0 at the sample itself.

    ``sums`` are Σ b_j k(x_j, x_i) of each sample i under its own model. ``moved`` is (b' - b)'K(b' - b), the squared distance between the
    model b' and that of all samples. The rest are facts about each model, as in ``Solution``.
    """

    samples: np.ndarray
    B: np.ndarray
    sums: np.ndarray
    moved: np.ndarray
    rho: np.ndarray
    quadratic: np.ndarray
    scale: np.ndarray
    gap: np.ndarray
    size_of_sums: np.ndarray
    shortfall: np.ndarray
    converged: np.ndarray


def leave_out(
    problem: DualProblem,
    rows: Source,
    b: np.ndarray,
    G: np.ndarray,
    samples: np.ndarray,
    *,
    tol: float = 1e-06,
    stopping: str = "relative",
    max_iter: int = -1,
) -> LeftOut:
    """Solve the problem again without each of these samples, which carry weight.

    Parameters
    ----------
    problem, rows
        As for ``solve``.
    b, G : ndarrays of shape (n,)
        The solution with all samples, and its gradient.
    samples : int array of shape (k,)
        Targets to leave out, one at a time.
    tol, stopping, max_iter
        As for ``solve``.

    Returns
    -------
    LeftOut
        The k models.
    """
    samples = np.asarray(samples, dtype=np.intp)
    if np.count_nonzero(problem.upper) < 2 and samples.size:
        raise ValueError("1 target cannot be left out: nothing would remain. Pass at least 2 targets.")
    limit = max(10_000_000, 100 * rows.n) if max_iter < 0 else max_iter
    libsvm = stopping == "libsvm"
    floor = curvature_floor(rows.diag, libsvm)
    B, facts = np.empty((samples.size, rows.n)), np.empty((8, samples.size))
    if rows.n <= WHOLE:
        K = in_single_precision(rows.whole()) if libsvm else rows.whole()
        with one_blas_thread():
            _leave_out_whole(problem, K, rows.diag, b, samples, (tol, libsvm, floor, limit), B, facts)
    else:
        for number, i in enumerate(samples):
            facts[:, number] = _leave_out_one(problem, rows, b, G, i, B[number], (tol, stopping, floor, limit))
    sums, rho, quadratic, scale, gap, size_of_sums, shortfall, converged = facts
    if libsvm:
        shortfall[:] = 0.0  # its threshold is rho, wherever it stopped
    certified = (converged > 0) & (libsvm | (gap <= tol))
    Kb = G - problem.p
    moved = np.maximum(quadratic - 2.0 * (B @ Kb) + b @ Kb, 0.0)
    return LeftOut(samples, B, sums, moved, rho, quadratic, scale, gap, size_of_sums, shortfall, certified)


def _leave_out_whole(
    problem: DualProblem, K: np.ndarray, diag: np.ndarray, b: np.ndarray, samples: np.ndarray, rule: Rule, B: np.ndarray, facts: np.ndarray
) -> None:
    """Fills B and facts from a kernel matrix that is held whole."""
    steps = _Steps(K, problem, b)
    G = K @ b + problem.p

    def work(start: int, stop: int) -> None:
        for first in range(start, stop, MOST_MODELS):
            part = slice(first, min(first + MOST_MODELS, stop))
            changes, chosen = steps.without(samples[part]), np.arange(part.stop - part.start)
            gradients, lows, ups = G + changes @ K, np.empty_like(changes), np.empty_like(changes)
            _starts(K, problem.lower, problem.upper, problem.total, b, samples[part], changes, B[part], gradients, lows, ups)
            found = solve_again(problem, K, diag, lows, ups, rule, B[part], gradients)
            facts[0, part] = (gradients - problem.p)[chosen, samples[part]]
            facts[1:, part] = found[:, :7].T

    if samples.size * K.size >= MANY_ENTRIES:
        share_rows(work, samples.size)
    else:
        work(0, samples.size)


class _Steps:
    """How the free weights F respond when a sample is left out.

    With A the inverse of K_FF + t 11' (t is invisible to steps of sum 0), P = A - A11'A / 1'A1 solves for steps of sum 0 and
    a = A1 / 1'A1 spreads a weight of 1. Without a sample at its bound they change by b_i (P K_Fi + a). Columns of P move a free weight
    to a given value.
    """

    def __init__(self, K: np.ndarray, problem: DualProblem, b: np.ndarray) -> None:
        self.K, self.b, self.problem = K, b, problem
        free = free_weights(b, problem.lower, problem.upper)
        U, self.F = factorise_free(K, free) if free.size else (np.empty((0, 0)), free)
        r = self.F.size
        if r == 0:
            return
        V = solve_triangular(np.ascontiguousarray(U[:r, :r]), np.eye(r), check_finite=False)
        A = V @ V.T
        sums = A.sum(axis=1)
        self.a = sums / sums.sum()
        self.P = A - np.outer(self.a, sums)
        self.place = np.full(b.size, -1)
        self.place[self.F] = np.arange(r)

    def without(self, samples: np.ndarray) -> np.ndarray:
        """The changes of all weights, for each of the samples left out."""
        changes = np.zeros((samples.size, self.b.size))
        changes[np.arange(samples.size), samples] = -self.b[samples]
        if self.F.size == 0:
            return changes
        place = self.place[samples]
        bound = np.flatnonzero(place < 0)
        answers = np.zeros((samples.size, self.F.size))
        answers[bound] = self.b[samples[bound], None] * (self.K[np.ix_(samples[bound], self.F)] @ self.P + self.a)
        F = self.F
        _within_bounds(self.P, self.b[F], self.problem.lower[F], self.problem.upper[F], place, answers)
        changes[:, F] = answers
        return changes


@njit(interpreted=LOOP)
def _within_bounds(P: np.ndarray, b: np.ndarray, lower: np.ndarray, upper: np.ndarray, place: np.ndarray, answers: np.ndarray) -> None:
    """Make the weight at ``place`` (unless -1) 0, and stop weights at bounds that they would pass. Mutates answers.

    To give the weights D certain values, all weights change by P_D y, with y from the small system P_DD. The solver handles weights
    that still pass a bound after the last round.
    """
    n = b.size
    D = np.empty(MOST_MET, np.intp)
    goal, right = np.empty(MOST_MET), np.empty(MOST_MET)
    plain = np.empty(n)
    for k in range(place.size):
        for t in range(n):
            plain[t] = answers[k, t]
        met = 0
        if place[k] >= 0:
            D[0], goal[0] = place[k], -b[place[k]]
            met = 1
        for _ in range(ROUNDS):
            if met > 0:
                for c in range(met):
                    right[c] = goal[c] - plain[D[c]]
                y = small_solve(P, D[:met], right[:met])
                if y.size == 0:
                    break
                for t in range(n):
                    answers[k, t] = plain[t]
                for c in range(met):
                    for t in range(n):
                        answers[k, t] += y[c] * P[D[c], t]
                for c in range(met):
                    answers[k, D[c]] = goal[c]
            before = met
            for t in range(n):
                new = b[t] + answers[k, t]
                if (new < lower[t] or new > upper[t]) and t != place[k] and met < MOST_MET:
                    known = False
                    for c in range(before):
                        known = known or D[c] == t
                    if known:
                        continue
                    D[met] = t
                    goal[met] = (lower[t] if new < lower[t] else upper[t]) - b[t]
                    met += 1
            if met == before:
                break


@njit(interpreted=LOOP)
def small_solve(P: np.ndarray, D: np.ndarray, right: np.ndarray) -> np.ndarray:
    """y with P_DD y = right, by a Cholesky factor; empty if P_DD is singular."""
    r = D.size
    L = np.empty((r, r))
    y = np.empty(r)
    for c in range(r):
        y[c] = right[c]
        for k in range(c + 1):
            value = P[D[c], D[k]]
            for j in range(k):
                value -= L[c, j] * L[k, j]
            if k < c:
                L[c, k] = value / L[k, k]
            elif not value > DEPENDENT * P[D[c], D[c]]:
                return np.empty(0)
            else:
                L[c, c] = np.sqrt(value)
        for j in range(c):
            y[c] -= L[c, j] * y[j]
        y[c] /= L[c, c]
    for c in range(r - 1, -1, -1):
        for j in range(c + 1, r):
            y[c] -= L[j, c] * y[j]
        y[c] /= L[c, c]
    return y


@njit(interpreted=LOOP)
def _starts(
    K: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    total: float,
    b_all: np.ndarray,
    samples: np.ndarray,
    changes: np.ndarray,
    B: np.ndarray,
    G: np.ndarray,
    lows: np.ndarray,
    ups: np.ndarray,
) -> None:
    """Feasible starts without each of the samples, from changes that may lead out of bounds. Mutates B, G, lows and ups (k × n)."""
    n = b_all.size
    before = np.empty(n)
    for k in range(samples.size):
        i, b, g, low, up = samples[k], B[k], G[k], lows[k], ups[k]
        for t in range(n):
            low[t], up[t] = lower[t], upper[t]
        low[i] = up[i] = 0.0
        raise_bounds(up, total)
        left = total
        for t in range(n):
            wished = b_all[t] + changes[k, t]
            b[t] = min(max(wished, low[t]), up[t])
            left -= b[t]
            if b[t] != wished:
                for s in range(n):
                    g[s] += (b[t] - wished) * K[t, s]
        b[i] = 0.0
        if abs(left) > 1e-14 * total:
            for t in range(n):
                before[t] = b[t]
            change_total(b, g, low, up, total)
            for t in range(n):
                if b[t] != before[t]:
                    for s in range(n):
                        g[s] += (b[t] - before[t]) * K[t, s]


@njit(interpreted=LOOP)
def raise_bounds(upper: np.ndarray, total: float) -> None:
    """Raise upper bounds that sum to less than total, all by the same factor. Mutates upper."""
    most = 0.0
    for t in range(upper.size):
        most += upper[t]
    if most < total:
        for t in range(upper.size):
            upper[t] *= total / most


def _leave_out_one(
    problem: DualProblem, rows: Source, b_all: np.ndarray, G_all: np.ndarray, i: int, b: np.ndarray, rule: tuple[float, str, float, int]
) -> tuple[float, ...]:
    """As ``_starts`` and ``solve_again`` for one sample, by working sets. Fills b; returns its facts."""
    lower, upper = problem.lower.copy(), problem.upper.copy()
    lower[i] = upper[i] = 0.0
    raise_bounds(upper, problem.total)
    b[:] = b_all
    G = G_all.copy()
    b[i] = 0.0
    rows.add(G, np.array([i]), -b_all[i : i + 1])
    before = b.copy()
    change_total(b, G, lower, upper, problem.total)
    moved = np.flatnonzero(b != before)
    rows.add(G, moved, b[moved] - before[moved])
    without = DualProblem(problem.p, lower, upper, problem.total)
    _, converged, _ = solve_by_working_sets(without, rows, b, G, *rule)
    return G[i] - problem.p[i], *certify(b, G, problem.p, rows.diag, lower, upper), converged
