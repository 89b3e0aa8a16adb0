"""One problem on a kernel matrix that is held whole. Jitted."""

from __future__ import annotations

import numpy as np

from .._jit import DRIVER, LOOP, njit
from .certificate import EXTRA_DIGITS, duality_gap, largest_violation, multiplier, spread_and_mass, violation_for
from .moves import add_rows, smo
from .newton import MOST_FREE, polish, snap

COARSE = 1e5
"""The first pair moves stop at this multiple of the final tolerance; Newton steps usually finish."""

MOVES_PER_TURN = 0.25
"""Pair moves for each sample (at least 8) before Newton steps get their turn."""

STUBBORN = 400
"""After this many turns (100 pair moves for each sample) Newton steps are taken however many weights are free. Narrow kernels of few
features are nearly singular: pair moves would need millions."""

LIBSVM_TURN = 1000
"""Pair moves in one call by LIBSVM's rule, which takes nothing but pair moves: one call stays short where it is interpreted."""

PATIENCE = 20
"""After this many turns a sufficiently small gap also ends the solve; after ten times as many, a gap of tol does. If samples coincide,
many weights are equally good, and rounding keeps moving them."""


@njit(interpreted=DRIVER)
def solve_whole(
    K: np.ndarray,
    diag: np.ndarray,
    p: np.ndarray,
    b: np.ndarray,
    G: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    tol: float,
    libsvm: bool,
    curvature_floor: float,
    max_iter: int,
) -> tuple[int, bool, float]:
    """Optimise all weights together until the stopping rule holds. Mutates b and G.

    LIBSVM's rule: pair moves until no pair violates by ``tol``. Ours: pair moves and Newton steps on the free weights in turn, until
    no pair violates by more than ``tol`` allows. Pair moves find the free weights early and the last digits late; Newton steps give
    the last digits at once. If neither gets there, the duality gap decides: see PATIENCE.

    Returns the moves made, whether the rule was met within ``max_iter`` moves, and the smallest curvature met.
    """
    moves = 0
    turns = 0
    curvature_met = np.inf
    _, scale, mass, size, far = spread_and_mass(b, G, p, diag, lower)
    eps = tol if libsvm else violation_for(tol, scale, mass, size)
    goal = eps if libsvm else COARSE * eps
    turn = LIBSVM_TURN if libsvm else max(int(MOVES_PER_TURN * b.size), 8)
    violation = largest_violation(b, G, lower, upper)
    solved = violation < eps if libsvm else violation <= eps
    while not solved and moves < max_iter and not np.isnan(eps):
        made, violation, met = smo(K, diag, b, G, lower, upper, goal, curvature_floor, min(turn, max_iter - moves))
        moves += made
        turns += 1
        curvature_met = min(curvature_met, met)
        complete = libsvm or polish(K, b, G, lower, upper, MOST_FREE if turns < STUBBORN else b.size)
        _, scale, mass, size, far = spread_and_mass(b, G, p, diag, lower)
        if libsvm:
            solved = violation <= eps
            if made == 0:
                break  # what cannot move cannot converge either
            continue
        eps = violation_for(tol, scale, mass, size)  # the problem's scale is known better as the weights settle
        goal = eps
        solved = complete and largest_violation(b, G, lower, upper) <= eps
        if not solved and turns % PATIENCE == 0:
            enough = eps * mass if turns < 10 * PATIENCE else eps * mass / EXTRA_DIGITS
            solved = duality_gap(multiplier(b, G, lower, upper), b, G, lower, upper) <= enough
        if solved and far < np.inf:
            gradient(K, p, b, G)
            solved = largest_violation(b, G, lower, upper) <= eps or turns >= 10 * PATIENCE
    snap(b, diag, far, lower, upper)
    return moves, solved, curvature_met


@njit(interpreted=LOOP)
def gradient(K: np.ndarray, p: np.ndarray, b: np.ndarray, G: np.ndarray) -> None:
    """G = Kb + p. Mutates G."""
    support, weights = np.empty(b.size, np.intp), np.empty(b.size)
    count = 0
    for t in range(b.size):
        G[t] = p[t]
        support[count], weights[count] = t, b[t]
        count += b[t] != 0.0
    add_rows(K, support[:count], weights, G)
