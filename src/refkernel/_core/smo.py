"""Sequential minimal optimisation (SMO) with second-order selection of pairs, and weights raised or lowered to a given sum."""

import numpy as np

from .jit import entry, njit


@njit(fastmath={"nnan", "nsz"})  # lets minima and maxima use vector registers
def _smo(
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

    i has the smallest gradient of those that may grow; j, of those that may shrink, promises the largest decrease (WSS2). Ties go to the
    later index, as in LIBSVM. Returns the moves made, the last violation, and the smallest curvature met.
    """
    n = b.size
    up, down, gain = np.empty(n), np.empty(n), np.empty(n)  # gradients of weights that may grow or shrink; inf or -inf if they may not
    for t in range(n):
        up[t] = G[t] if b[t] < upper[t] else np.inf
        down[t] = G[t] if b[t] > lower[t] else -np.inf
    curvature_met = np.inf
    moves = 0
    while True:
        g_i, g_max = np.inf, -np.inf
        for t in range(n):
            g_i = up[t] if up[t] < g_i else g_i
            g_max = down[t] if down[t] > g_max else g_max
        violation = g_max - g_i
        if not violation > 0.0 or violation < eps or moves >= max_iter:
            return moves, max(violation, 0.0), curvature_met
        moves += 1

        i, j = 0, 0
        for t in range(n):
            i = t if up[t] == g_i else i
        K_i, diag_i, best = K[i], diag[i], 0.0
        for t in range(n):
            d = down[t] - g_i
            d = d if d > 0.0 else 0.0
            curvature = diag_i + diag[t] - 2.0 * K_i[t]
            gain[t] = d * d / (curvature if curvature > curvature_floor else curvature_floor)
            best = gain[t] if gain[t] > best else best
        if best > 0.0:
            for t in range(n):
                j = t if gain[t] == best else j
        else:  # squares of tiny kernels underflow
            for t in range(n):
                j = t if down[t] == g_max else j
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
            up[t] += change
            down[t] += change
        up[i] = G[i] if b[i] < upper[i] else np.inf
        up[j] = G[j]
        down[i] = G[i]
        down[j] = G[j] if b[j] > lower[j] else -np.inf


@njit()
def _change_total(b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float) -> None:
    """Bring the sum of b to total: raise weights of the smallest gradients, first ones first, or lower those of the largest. Mutates b."""
    left = total
    for t in range(b.size):
        b[t] = min(b[t], upper[t])
        left -= b[t]
    sign = 1.0 if left > 0.0 else -1.0
    wish = np.empty(b.size)  # the gradient, or its negative where weights are lowered; inf for weights that cannot move
    for t in range(b.size):
        wish[t] = sign * G[t] if (b[t] < upper[t] if sign > 0.0 else b[t] > lower[t]) else np.inf
    while left != 0.0:
        place, least = 0, np.inf
        for t in range(b.size):
            if wish[t] < least or (wish[t] == least and sign < 0.0):
                place, least = t, wish[t]
        if least == np.inf:
            break
        wish[place] = np.inf
        end = upper[place] if sign > 0.0 else lower[place]
        room = end - b[place]
        if sign * room > sign * left:
            b[place] += left
            break
        b[place] = end
        left -= room


smo, change_total = entry(_smo), entry(_change_total)
