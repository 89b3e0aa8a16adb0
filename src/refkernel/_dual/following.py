"""From one value of nu to the next: between them, the weights of a one-class SVM are a piecewise linear function of their sum.

The free weights move along a line on which their gradients stay equal, until one of them meets a bound, or the gradient of a weight at
its bound meets theirs. The inverse of their kernel matrix is kept from event to event, and from one value to the next. Jitted.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from .._jit import LOOP, njit
from .._jit.products import add_multiple
from .moves import add_rows, largest, last_index
from .newton import MOST_FREE, free_weights, take_step

FREE_PER_SAMPLE = 1.0
"""Follow the line if there are at least this many free weights for each sample by which the sum rises. There are two to three events for
each of these samples, whose cost grows with the free weights; so does that of pair moves and Newton steps, and faster."""

EVENTS, MORE_EVENTS = 5, 20
"""Events for each sample by which the sum rises, and some more, after which it is given up: of nearly equal samples many enter and leave in
turn, and pair moves find their weights faster."""

NEARLY_DEPENDENT = 1e-9
"""Give up where the part of a sample outside the span of the others falls below this share of the kernel's size: the inverse of a matrix
has lost so many digits more than its factor."""

NOBODY = cast(int, np.intp(-1))
"""Instead of a weight, or of its place. (A plain number would be a type of its own to numba, and compiled twice.)"""

LOST, FEW = NOBODY, cast(int, np.intp(-2))
"""Instead of a number of free weights: they depend on each other or would not settle, or they are too few or too many to be followed."""


@njit(interpreted=LOOP)
def inverted(
    K: np.ndarray, b: np.ndarray, lower: np.ndarray, upper: np.ndarray, fewest: float, inverse: np.ndarray, F: np.ndarray, a: np.ndarray
) -> tuple[int, float]:
    """Fill ``inverse``, F and a with the free weights, as ``follow`` needs them. Mutates these.

    Returns the number of free weights, FEW if they are fewer than ``fewest``, or LOST if they are nearly dependent; and the common part t.
    """
    free = free_weights(b, lower, upper)
    t = 0.0
    if free.size < fewest or free.size < 2 or free.size >= min(MOST_FREE, len(inverse)):
        return FEW, t
    for c in range(free.size):
        t = max(t, abs(K[free[c], free[c]]))
    for r in range(free.size):
        if not enter(K, free[r], inverse, F, a, r, t):
            return LOST, t
    return free.size, t


@njit(interpreted=LOOP)
def enter(K: np.ndarray, i: int, inverse: np.ndarray, F: np.ndarray, a: np.ndarray, r: int, t: float) -> bool:
    """Let weight i follow the r free ones; False if its sample nearly depends on theirs. Mutates inverse, F and a."""
    k, w = np.empty(r), np.zeros(r)
    rest, border = K[i, i] + t, 1.0
    for c in range(r):
        k[c] = K[i, F[c]] + t
    for c in range(r):
        add_multiple(w, k[c], inverse[c, :r])
        border -= k[c] * a[c]
    for c in range(r):
        rest -= k[c] * w[c]
    if not rest > NEARLY_DEPENDENT * t:
        return False
    for c in range(r):
        w_c = w[c] / rest
        add_multiple(inverse[c, :r], w_c, w)
        a[c] -= w_c * border
        inverse[c, r], inverse[r, c] = -w_c, -w_c
    inverse[r, r], a[r], F[r] = 1.0 / rest, border / rest, i
    return True


@njit(interpreted=LOOP)
def leave(inverse: np.ndarray, F: np.ndarray, a: np.ndarray, r: int, c: int) -> None:
    """Take the weight in place c out of r free ones; the last one takes its place. Mutates inverse, F and a."""
    last, out = r - 1, inverse[c, :r].copy()
    for i in range(r):
        share = out[i] / out[c]
        add_multiple(inverse[i, :r], -share, out)
        a[i] -= share * a[c] if i != c else 0.0
    F[c], a[c] = F[last], a[last]
    for j in range(r):
        inverse[c, j] = inverse[last, j]
    for i in range(r):
        inverse[i, c] = inverse[i, last]


@njit(interpreted=LOOP)
def follow(
    K: np.ndarray,
    b: np.ndarray,
    G: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    rise: float,
    inverse: np.ndarray,
    F: np.ndarray,
    a: np.ndarray,
    r: int,
    t: float,
    most: int,
) -> tuple[int, float, int]:
    """Raise the sum of optimal weights 0 <= b <= upper by ``rise``, and keep them optimal. Mutates b, G, inverse, F and a.

    F begins with the r free weights; ``inverse`` is that of K_FF + t 11', and a its product with 1. If r is FEW, they are computed.
    Returns r at the end, FEW if nothing was done, or LOST if the end was not reached in ``most`` events; t; and the events.
    """
    if r < FREE_PER_SAMPLE * rise:
        r, t = inverted(K, b, lower, upper, FREE_PER_SAMPLE * rise, inverse, F, a)
    if r < 0:
        return r, t, 0
    n, left, rho = b.size, rise, 0.0
    side = np.empty(n)  # of the common gradient where that of a weight at its bound is: 1 above, -1 below; 0 for free weights
    for i in range(n):
        side[i] = -1.0 if b[i] >= upper[i] else 1.0
    for c in range(r):
        side[F[c]] = 0.0
        rho += G[F[c]] / r
    d, turn, soon = np.empty(len(a)), np.empty(n), np.empty(n)
    for event in range(min(int(EVENTS * rise) + MORE_EVENTS, most)):
        total = 0.0
        for c in range(r):
            total += a[c]
        if not 0.0 < total < np.inf:
            return LOST, t, event
        for c in range(r):
            d[c] = a[c] / total  # how the free weights move, for each unit of the sum
        for i in range(n):
            turn[i] = 0.0
        add_rows(K, F[:r], d, turn)  # how the gradients move
        rate = 1.0 / total - t  # how the common one moves
        step, leaving, entering = left, NOBODY, NOBODY
        for c in range(r):
            room = (upper[F[c]] if d[c] > 0.0 else 0.0) - b[F[c]]
            if d[c] != 0.0 and room / d[c] < step:
                step, leaving = room / d[c], c
        for i in range(n):
            closing = side[i] * (rate - turn[i])
            soon[i] = -max(side[i] * (G[i] - rho), 0.0) / closing if closing > 0.0 else -np.inf
        first = -largest(soon)
        if first < step:
            step, leaving, entering = first, NOBODY, last_index(soon, -first)
        step = max(step, 0.0)
        for c in range(r):
            b[F[c]] = min(max(b[F[c]] + step * d[c], 0.0), upper[F[c]])
        for i in range(n):
            G[i] += step * turn[i]
        rho += step * rate
        left -= step
        if leaving < 0 and entering < 0:
            return r, t, event
        if leaving >= 0:
            i, grown = F[leaving], d[leaving] > 0.0
            b[i], side[i] = upper[i] if grown else 0.0, -1.0 if grown else 1.0
            leave(inverse, F, a, r, leaving)
            r -= 1
            if r == 0:  # the next to grow is that of the smallest gradient
                for i in range(n):
                    soon[i] = -G[i] if side[i] > 0.0 else -np.inf
                rho = -largest(soon)
                entering = last_index(soon, -rho)
                if rho == np.inf:
                    return LOST, t, event
        if entering >= 0:
            if r + 1 >= len(a) or not enter(K, entering, inverse, F, a, r, t):
                return LOST, t, event
            side[entering] = 0.0
            r += 1
    return LOST, t, most


@njit(interpreted=LOOP)
def settle(
    K: np.ndarray,
    b: np.ndarray,
    G: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    total: float,
    inverse: np.ndarray,
    F: np.ndarray,
    a: np.ndarray,
    r: int,
) -> bool:
    """Bring the sum of all weights to ``total``, and the gradients of the r free ones to one value. Mutates b and G.

    Rounding moved both a little on the way here. Returns whether the step met no bound.
    """
    step, missing, mean, size = np.zeros(r), total, 0.0, 0.0
    for t in range(b.size):
        missing -= b[t]
    for c in range(r):
        mean += G[F[c]] / r
    for c in range(r):
        add_multiple(step, mean - G[F[c]], inverse[c, :r])  # gradients less their mean: the inverse has too few digits for the mean
    for c in range(r):
        missing -= step[c]
        size += a[c]
    add_multiple(step, missing / size, a[:r])
    return take_step(K, F[:r], step, b, G, lower, upper)
