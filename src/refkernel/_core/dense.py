"""Problems on a kernel matrix that is held whole: SMO and Newton steps in turn, each problem from the solution of the one before."""

import numpy as np

from .certificate import ALLOWED, EXTRA_DIGITS, FACTS, FAR, FINITE, GAP, MASS, SCALE, VIOLATION, _certify, typical_size
from .jit import entry, njit
from .newton import AT_BOUND, MOST_FREE, _newton
from .smo import _change_total, _smo

COARSE = 1e5  # the first pair moves stop at this multiple of the final tolerance; Newton steps usually finish
MOVES_PER_TURN = 0.25  # pair moves for each sample (at least 8) before Newton steps get their turn
STUBBORN = 400  # from this turn on (100 pair moves a sample) Newton steps take any number of weights: narrow kernels are nearly singular
PATIENCE = 20  # from this turn on a small gap also ends the solve, from ten times it one of tol: weights of equal samples never settle
CONVERGED, MOVES, CURVATURE = FACTS, FACTS + 1, FACTS + 2
"""Places of further facts: whether the stopping rule was met, the pair moves made, and the smallest curvature that one met."""

ALL_FACTS = FACTS + 3  # their number
CURVATURE_FLOOR = 1e-12  # pairs of equal samples have no curvature; this much (times the kernel's size) bounds their step, as in LIBSVM


@njit()
def _gradient(K: np.ndarray, p: np.ndarray, b: np.ndarray, G: np.ndarray) -> None:
    """G = Kb + p, summed in one order for all samples: those that are equal get equal gradients. Mutates G."""
    for t in range(b.size):
        G[t] = p[t]
    for i in range(b.size):
        if b[i] != 0.0:
            row, weight = K[i], b[i]
            for t in range(b.size):
                G[t] += weight * row[t]


@njit()
def _solve(
    K: np.ndarray,
    diag: np.ndarray,
    p: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    total: np.ndarray,
    given: bool,
    libsvm: bool,
    tol: float,
    curvature_floor: float,
    max_moves: int,
    B: np.ndarray,
    G: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Solve q problems one after the other. Bounds are (q × n), totals (q). Mutates B, G (q × n) and facts (q × ALL_FACTS).

    If the start is ``given``, B and G hold one for each problem. Otherwise problems start at equal weights as long as these are the
    optimum, then with weight on the samples that equal weights describe worst, and then at the solution before, moved as the bounds move.

    LIBSVM's rule: pair moves until no pair violates by ``tol``. Ours: in turn pair moves, which find the free weights early, and Newton
    steps, which give the last digits at once, until no pair violates by more than ``tol`` allows; or the duality gap decides: see PATIENCE.
    """
    n = len(K)
    turn = max_moves if libsvm else max(int(MOVES_PER_TURN * n), 8)
    alike = not given
    for k in range(len(B)):
        b, g, low, up, fact = B[k], G[k], lower[k], upper[k], facts[k]
        if alike:
            most = 0.0
            for t in range(n):
                most += up[t]
            for t in range(n):
                b[t] = min(total[k] / most, 1.0) * up[t]
            _gradient(K, p, b, g)
            _certify(b, g, p, diag, low, up, tol, fact)
            alike = fact[VIOLATION] <= fact[ALLOWED] or fact[FINITE] == 0.0
            if not alike:
                for t in range(n):
                    b[t] = 0.0
        elif not given:
            for t in range(n):
                g[t] = G[k - 1, t]
                before, now = (upper[k - 1, t], up[t]) if upper[k - 1, t] > 0.0 else (lower[k - 1, t], low[t])
                b[t] = B[k - 1, t] * (now / before) if before != 0.0 else 0.0
        if not (given or alike):
            _change_total(b, g, low, up, total[k])
        if libsvm or not (given or alike):
            _gradient(K, p, b, g)

        moves, turns, limit, curvature_met, complete, fresh = 0, 0, max_moves, np.inf, True, True
        while True:
            _certify(b, g, p, diag, low, up, tol, fact)
            eps = tol if libsvm else fact[ALLOWED]  # the problem's scale is known better as the weights settle
            solved = complete and (fact[VIOLATION] <= eps if turns > 0 or not libsvm else fact[VIOLATION] < eps)
            if not (libsvm or solved) and turns > 0 and turns % PATIENCE == 0:
                enough = eps * fact[MASS] * (1.0 if turns < 10 * PATIENCE else 1.0 / EXTRA_DIGITS)
                solved = fact[GAP] * fact[SCALE] <= enough
            if solved and not (libsvm or fresh) and fact[FAR] < np.inf and turns < 10 * PATIENCE:
                _gradient(K, p, b, g)
                fresh = True
                continue
            if solved or moves >= limit or fact[FINITE] == 0.0:
                break
            goal = COARSE * eps if turns == 0 and not libsvm else eps
            made, _, met = _smo(K, diag, b, g, low, up, goal, curvature_floor, min(turn, limit - moves))
            moves, turns, curvature_met, fresh = moves + made, turns + 1, min(curvature_met, met), False
            if libsvm:
                limit = limit if made > 0 else moves  # what cannot move cannot converge either
            else:
                complete = _newton(K, b, g, low, up, MOST_FREE if turns < STUBBORN else n)
        heaviest = 0.0
        for t in range(n):
            heaviest = max(heaviest, abs(b[t]))
        for t in range(n):
            near = min(fact[FAR] / abs(diag[t]), 1.0) if diag[t] != 0.0 else 1.0
            margin = AT_BOUND * near * min(up[t] - low[t], heaviest)
            b[t] = low[t] if b[t] <= low[t] + margin else up[t] if b[t] >= up[t] - margin else b[t]
        _certify(b, g, p, diag, low, up, tol, fact)
        fact[CONVERGED], fact[MOVES], fact[CURVATURE] = 1.0 if solved else 0.0, moves, curvature_met


solve_dense = entry(_solve)


def curvature_floor(diag: np.ndarray, libsvm: bool) -> float:
    """The floor for one problem; LIBSVM's does not follow the kernel's size."""
    return CURVATURE_FLOOR * (1.0 if libsvm else typical_size(diag) or 1.0)


def first_at_bound(lower: np.ndarray, upper: np.ndarray, total: float, order: np.ndarray | None = None) -> np.ndarray:
    """The feasible point that raises weights from their lower to their upper bound one after the other, until they sum to total."""
    order = np.arange(lower.size) if order is None else order
    room = (upper - lower)[order]
    left = np.subtract.accumulate(np.concatenate([[total], lower, room]))[lower.size : -1]  # one after the other, as LIBSVM does
    b = lower.copy()
    b[order] = np.where(left >= room, upper[order], lower[order] + np.maximum(left, 0.0))
    return b
