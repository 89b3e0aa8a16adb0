"""Every sample left out in turn, exactly, at the cost of a few fits; where that costs too much, folds of targets.

A sample without weight changes nothing. One with weight is left out by setting its bounds to 0. As long as no weight meets a bound, the new
weights have a closed form, from one factorisation for all samples; pair moves and Newton steps do the rest, to the tolerance of a fit. If
the others cannot take the weight (nu n > n - 1), their upper bounds are raised, all by the same factor.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from .certificate import GAP, QUADRATIC, certify
from .dense import CONVERGED
from .gram import Source, in_single_precision
from .newton import DEPENDENT, free_weights
from .problem import DualProblem
from .smo import change_total
from .solver import WHOLE, Bounds, Rule, solve_again, stopping_rule
from .threads import one_blas_thread, share_rows
from .working_set import solve_by_working_sets

MOST_MODELS = 256  # models whose starts are computed together: with n = 1,024 their weights and gradients take 4 MB
MANY_PRODUCTS = 1 << 22  # with at least this many, of models and kernel values (about 10 ms of work), models are shared between threads
FOLDS = 5  # each costs about as much as a fit, and leaves out a fifth of the targets
ENOUGH_LEFT_OUT = 1000  # no more folds after this many targets: a rate of 10 % is then known to one point


@dataclass(frozen=True)
class LeftOut:
    """What the models of k ``samples`` give, which they have not seen: one model for each, or one for each fold.

    ``sums`` are Σ b_j k(x_j, x_i) of each sample i under its own model b', ``moved`` is (b' - b)'K(b' - b); then its b'Kb, duality gap, and
    whether it converged. Weights ``B`` (k × n) of single models are 0 at the sample itself.
    """

    samples: np.ndarray
    sums: np.ndarray
    moved: np.ndarray
    quadratic: np.ndarray
    gap: np.ndarray
    converged: np.ndarray
    B: np.ndarray


def leave_out(problem: DualProblem, rows: Source, b: np.ndarray, G: np.ndarray, samples: np.ndarray, **how: Any) -> LeftOut:
    """Solve again without each of these targets, which carry weight in the solution b with gradient G; ``how``: see ``stopping_rule``."""
    samples = np.asarray(samples, dtype=np.intp)
    if np.count_nonzero(problem.upper) < 2 and samples.size:
        raise ValueError("1 target cannot be left out: nothing would remain. Pass at least 2 targets.")
    rule = libsvm, tol, *_ = stopping_rule(rows.diag, **how)
    B, facts = np.empty((samples.size, rows.n)), np.empty((4, samples.size))
    if rows.n <= WHOLE:
        K = in_single_precision(rows.whole()) if libsvm else rows.whole()
        with one_blas_thread():
            _leave_out_whole(problem, K, rows.diag, b, samples, rule, B, facts)
    else:
        B[:] = b
        B[np.arange(samples.size), samples] = 0.0
        for number, i in enumerate(samples):
            lower, upper = (bounds[0] for bounds in _bounds_without(problem, samples[number : number + 1]))
            gradient, *found = _solve_on(problem, rows, b, G, (lower, upper), B[number], rule)
            facts[:, number] = gradient[i], *found
    sums, quadratic, gap, converged = facts
    Kb = G - problem.p
    moved = np.maximum(quadratic - 2.0 * (B @ Kb) + b @ Kb, 0.0)
    return LeftOut(samples, sums, moved, quadratic, gap, (converged > 0) & (libsvm | (gap <= tol)), B)


def _leave_out_whole(
    problem: DualProblem, K: np.ndarray, diag: np.ndarray, b: np.ndarray, samples: np.ndarray, rule: Rule, B: np.ndarray, facts: np.ndarray
) -> None:
    """Fills B and facts from a kernel matrix that is held whole."""
    steps = _Steps(K, problem, b)
    G = K @ b + problem.p

    def work(start: int, stop: int) -> None:
        for first in range(start, stop, MOST_MODELS):
            part = slice(first, min(first + MOST_MODELS, stop))
            gradients, bounds = G + steps.start(samples[part], B[part]) @ K, _bounds_without(problem, samples[part])
            _make_feasible(K, problem.total, *bounds, B[part], gradients)
            found = solve_again(problem, K, diag, bounds, rule, B[part], gradients)
            facts[0, part] = (gradients - problem.p)[np.arange(len(gradients)), samples[part]]
            facts[1:, part] = found[:, [QUADRATIC, GAP, CONVERGED]].T

    share_rows(work, samples.size) if samples.size * K.size >= MANY_PRODUCTS else work(0, samples.size)


class _Steps:
    """How the free weights F respond when a sample is left out.

    With A = (K_FF + t 11')^-1 (t is invisible to steps of sum 0), P = A - A11'A / 1'A1 solves for steps of sum 0 and a = A1 / 1'A1 spreads
    a weight of 1. Without a sample at its bound they change by b_i (P K_Fi + a); columns of P move a free weight to 0.
    """

    def __init__(self, K: np.ndarray, problem: DualProblem, b: np.ndarray) -> None:
        self.K, self.b = K, b
        self.F, self.place = free_weights(b, problem.lower, problem.upper), np.full(b.size, -1)
        if self.F.size == 0:
            return
        M = K[np.ix_(self.F, self.F)]
        common = np.abs(M.diagonal()).max()
        U, pivots, rank, _ = lapack.dpstrf(M + common, tol=DEPENDENT * common)
        self.F = self.F[pivots[:rank] - 1]
        V, _ = lapack.dtrtri(U[:rank, :rank])
        V = np.triu(V)
        A = V @ V.T
        sums = A.sum(axis=1)
        self.a = sums / sums.sum()
        self.P = A - np.outer(self.a, sums)
        self.ridge = DEPENDENT * self.P.diagonal().max() or 1.0  # a column of P vanishes if its weight is the only free one
        self.place[self.F] = np.arange(rank)

    def start(self, samples: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Fill B with weights without each of the samples, and return how they differ from those of all. They may pass bounds."""
        changes, place = np.zeros(B.shape), self.place[samples]
        bound, free = np.flatnonzero(place < 0), np.flatnonzero(place >= 0)
        if self.F.size:
            D = place[free]
            changes[np.ix_(bound, self.F)] = self.b[samples[bound], None] * (self.K[np.ix_(samples[bound], self.F)] @ self.P + self.a)
            changes[np.ix_(free, self.F)] = -(self.b[samples[free]] / (self.P[D, D] + self.ridge))[:, None] * self.P[D]
        changes[np.arange(samples.size), samples] = -self.b[samples]
        B[:] = self.b + changes
        return changes


def _bounds_without(problem: DualProblem, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bounds (k × n) without each of the samples, raised by one factor if the others cannot take the weight."""
    lower, upper = (np.repeat(bounds[None], samples.size, axis=0) for bounds in (problem.lower, problem.upper))
    chosen = np.arange(samples.size), samples
    lower[chosen] = upper[chosen] = 0.0
    upper *= np.maximum(problem.total / upper.sum(axis=1, keepdims=True), 1.0)
    return lower, upper


def _make_feasible(K: np.ndarray, total: float, lower: np.ndarray, upper: np.ndarray, B: np.ndarray, G: np.ndarray) -> None:
    """Bring weights within their bounds, and their sums to total. Mutates B and G (k × n)."""
    wished = B.copy()
    np.clip(B, lower, upper, out=B)
    passed = np.flatnonzero((wished != B).any(axis=1))
    G[passed] += (B - wished)[passed] @ K
    short = np.flatnonzero(np.abs(total - B.sum(axis=1)) > 1e-14 * total)
    before = B[short]
    for k in short:
        change_total(B[k], G[k], lower[k], upper[k], float(total))
    G[short] += (B[short] - before) @ K


def _solve_on(
    problem: DualProblem, rows: Source, b_all: np.ndarray, G_all: np.ndarray, bounds: Bounds, b: np.ndarray, rule: Rule
) -> tuple[np.ndarray, float, float, bool]:
    """Kb, b'Kb, gap, and whether it converged, with other bounds, from b of any smaller total; G_all is that of b_all. Mutates b."""
    G = G_all.copy()
    change_total(b, G, *bounds, float(problem.total))
    moved = np.flatnonzero(b != b_all)
    rows.add(G, moved, b[moved] - b_all[moved])
    _, converged, _ = solve_by_working_sets(DualProblem(problem.p, *bounds, problem.total), rows, b, G, rule)
    found = certify(b, G, problem.p, rows.diag, *bounds)
    return G - problem.p, found.quadratic, found.gap, converged


def leave_folds_out(problem: DualProblem, rows: Source, b: np.ndarray, G: np.ndarray, **how: Any) -> LeftOut:
    """Solve the problem again without folds of its targets, from b and its gradient G; upper bounds grow so that nu stays."""
    targets = np.flatnonzero(problem.upper > 0.0)
    count = min(FOLDS, targets.size)  # outliers that repel may be the many
    folds = [np.sort(targets[part]) for part in np.array_split(np.random.default_rng(0).permutation(targets.size), count)]
    folds = folds[: -(-ENOUGH_LEFT_OUT // folds[-1].size)]
    rule = stopping_rule(rows.diag, **how)
    facts, Kb = np.empty((5, rows.n)), G - problem.p
    for out in folds:
        lower, upper, others = problem.lower.copy(), problem.upper.copy(), b.copy()
        lower[out] = upper[out] = others[out] = 0.0
        upper *= problem.upper.sum() / upper.sum()
        positive = others > 0.0
        others[positive] *= (problem.total - others[~positive].sum()) / others[positive].sum() if positive.any() else 1.0
        sums, quadratic, gap, converged = _solve_on(problem, rows, b, G, (lower, upper), others, rule)
        facts[0, out] = sums[out]
        facts[1:, out] = np.array([[max(quadratic - 2.0 * (others @ Kb) + b @ Kb, 0.0)], [quadratic], [gap], [converged]])
    left_out = np.sort(np.concatenate(folds))
    sums, moved, quadratic, gap, converged = facts[:, left_out]
    return LeftOut(left_out, sums, moved, quadratic, gap, converged > 0, np.empty((0, rows.n)))
