"""Pair moves, and the feasible points they start from. Jitted: arrays in, numbers out; each says what it mutates."""

from __future__ import annotations

import numpy as np

from .._jit import LOOP, njit


@njit(interpreted=LOOP)
def smo(
    K: np.ndarray,
    diag: np.ndarray,
    b: np.ndarray,
    G: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    eps: float,
    curvature_floor: float,
    max_iter: int,
) -> tuple[int, float, float]:
    """Move pairs of weights until no pair violates optimality by eps. Mutates b and G.

    i is the weight with the smallest gradient that may grow; j, among those that may shrink, promises the largest
    decrease of the objective (second order). Ties go to the later index, as in LIBSVM.
    Returns the moves made, the last violation, and the smallest curvature met.
    """
    n = b.size
    gain = np.empty(n)
    grow, shrink = np.empty(n), np.empty(n)  # how much a weight wants to grow or shrink; -inf if it may not
    for t in range(n):
        grow[t] = -G[t] if b[t] < upper[t] else -np.inf
        shrink[t] = G[t] if b[t] > lower[t] else -np.inf
    curvature_met = np.inf
    moves = 0
    while True:
        g_i = -largest(grow)
        g_max = largest(shrink)
        violation = g_max - g_i
        if not violation > 0.0 or violation < eps or moves >= max_iter:
            return moves, max(violation, 0.0), curvature_met
        moves += 1

        i = last_index(grow, -g_i)
        K_i, diag_i = K[i], diag[i]
        for t in range(n):
            d = max(shrink[t] - g_i, 0.0)
            gain[t] = d * d / max(diag_i + diag[t] - 2.0 * K_i[t], curvature_floor)
        best = largest(gain)
        j = last_index(gain, best) if best > 0.0 else last_index(shrink, g_max)  # squares of tiny kernels underflow
        K_j = K[j]

        curvature = diag_i + diag[j] - 2.0 * K_i[j]
        curvature_met = min(curvature_met, curvature)
        step = (G[j] - g_i) / max(curvature, curvature_floor)
        room_i = upper[i] - b[i]
        room_j = b[j] - lower[j]
        if step >= min(room_i, room_j):  # the bound is met exactly, so that "free" is an exact notion
            step = min(room_i, room_j)
        b[i] = upper[i] if step == room_i else b[i] + step
        b[j] = lower[j] if step == room_j else b[j] - step
        for t in range(n):
            change = step * (K_i[t] - K_j[t])
            G[t] += change
            grow[t] -= change
            shrink[t] += change
        for t in (i, j):
            grow[t] = -G[t] if b[t] < upper[t] else -np.inf
            shrink[t] = G[t] if b[t] > lower[t] else -np.inf


@njit(interpreted=LOOP)
def largest(values: np.ndarray) -> float:
    """The largest value, by four independent comparisons at a time."""
    a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
    fours = values.size // 4 * 4
    for t in range(0, fours, 4):
        a = values[t] if values[t] > a else a
        b = values[t + 1] if values[t + 1] > b else b
        c = values[t + 2] if values[t + 2] > c else c
        d = values[t + 3] if values[t + 3] > d else d
    for t in range(fours, values.size):
        a = max(a, values[t])
    return max(max(a, b), max(c, d))


@njit(interpreted=LOOP)
def last_index(values: np.ndarray, value: float) -> int:
    """The last index that holds a value; 0 if none does."""
    last = 0
    for t in range(values.size):  # without an early exit, so that the loop uses vector registers
        last = t if values[t] == value else last
    return last


@njit(interpreted=LOOP)
def add_rows(K: np.ndarray, rows: np.ndarray, weights: np.ndarray, G: np.ndarray) -> None:
    """G += Σ weights_k K[rows_k], in this order; four rows at a time, so that G is read and written less often. Mutates G."""
    fours = rows.size // 4 * 4
    for k in range(0, fours, 4):
        v, w, x, y = K[rows[k]], K[rows[k + 1]], K[rows[k + 2]], K[rows[k + 3]]
        a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for t in range(G.size):
            G[t] = (((G[t] + a * v[t]) + b * w[t]) + c * x[t]) + d * y[t]
    for k in range(fours, rows.size):
        v, a = K[rows[k]], weights[k]
        for t in range(G.size):
            G[t] += a * v[t]


@njit(interpreted=LOOP)
def fill(b: np.ndarray, order: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float) -> None:
    """Set b to the feasible point that raises weights to their upper bound in the given order until they sum to total. Mutates b."""
    left = total
    for t in range(lower.size):
        b[t] = lower[t]
        left -= lower[t]
    for t in order:
        step = max(min(upper[t] - lower[t], left), 0.0)
        b[t] = upper[t] if step == upper[t] - lower[t] else b[t] + step
        left -= step
        if left <= 0.0:
            break
