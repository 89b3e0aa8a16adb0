"""The jitted parts: pair moves, the computed starts, the certificate. Arrays in, numbers out; each says what it mutates."""

from __future__ import annotations

import numpy as np

from .._jit import njit

DEPENDENT = 1e-11
"""A sample whose part outside the span of the others is below this share of the kernel's size is taken as dependent."""

AT_BOUND = 1e-12
"""A weight this close to a bound, as a share of its range, is off it by the rounding of sums only."""

COARSE = 1e5
"""The first pair moves stop this many times earlier than needed, for Newton steps to finish if they can."""

MOVES_PER_TURN = 0.25
"""Pair moves for each sample (at least 8) before Newton steps get their turn."""

NEWTON_STEPS = 30
"""Newton steps in a turn."""

MOST_FREE = 256
"""Newton steps are for this many free weights: beyond, factorising costs more than the pair moves it saves."""

EXTRA_DIGITS = 0.01
"""Weights settle later than the objective does: violations are driven this far below what the gap needs."""

PATIENCE = 20
"""Turns after which a gap that is as small is enough, and ten times as many after which the tolerance itself is: where samples
coincide many weights are as good as each other, and rounding keeps moving them."""

ROUNDING = 4.0 * np.finfo(np.float64).eps
"""Gradients are not known better than this, times the kernel's size and the sum of weights."""

SCALE_FLOOR = 1e-6
"""The spread that a tolerance refers to is taken as at least this share of the kernel's size, so that a set whose
weighted samples coincide still has a tolerance that double precision can meet."""


@njit(cache=True, nogil=True, error_model="numpy")  # unchecked division lets the loop over gains use vector registers
def smo(K, diag, b, G, lower, upper, eps, curvature_floor, max_iter):
    """Move pairs of weights until no pair violates optimality by eps. Mutates b and G.

    i is the weight with the smallest gradient that may grow; j, among those that may shrink, promises the largest
    decrease of the objective (second order). Ties go to the later index, as in LIBSVM.
    Returns the moves made, the last violation, and the smallest curvature met.
    """
    n = b.size
    gain = np.empty(n)
    grow, shrink = np.empty(n), np.empty(n)  # how much the weight wants to, -inf where it may not
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
            G[t] += step * (K_i[t] - K_j[t])
        for t in range(n):
            grow[t] = -G[t] if b[t] < upper[t] else -np.inf
        for t in range(n):
            shrink[t] = G[t] if b[t] > lower[t] else -np.inf


@njit(cache=True, nogil=True)
def largest(values):
    """The largest value: four at a time, each comparison waiting for none of the other three."""
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


@njit(cache=True, nogil=True)
def last_index(values, value):
    """The last place that holds a value; the first place where none does."""
    last = 0
    for t in range(values.size):  # through all, without a way out, in vector registers
        last = t if values[t] == value else last
    return last


@njit(cache=True, nogil=True)
def largest_violation(b, G, lower, upper):
    """The largest gradient that may shrink less the smallest that may grow; 0 where no pair can move."""
    g_up = np.inf
    g_down = -np.inf
    for t in range(b.size):
        if b[t] < upper[t]:
            g_up = min(g_up, G[t])
        if b[t] > lower[t]:
            g_down = max(g_down, G[t])
    return max(g_down - g_up, 0.0)


@njit(cache=True, nogil=True)
def factorise_free(K, F):
    """U with U'U = K_FF + t 11', upper triangular and of leading size r, and the r indices of F that it is for.

    Dependent samples are skipped (their weights stay put). The common part t 11' is invisible to steps of sum 0 and makes centred
    kernels regular.
    """
    f = F.size
    t = 0.0
    for c in range(f):
        t = max(t, abs(K[F[c], F[c]]))
    U = np.zeros((f, f))
    kept = np.empty(f, np.intp)
    r = 0
    for c in range(f):
        K_c, U_c = K[F[c]], U[c, c:]
        for k in range(U_c.size):
            U_c[k] = K_c[F[c + k]] + t
        for i in range(r):
            V = U[kept[i], c:]
            v = V[0]
            for k in range(U_c.size):
                U_c[k] -= v * V[k]
        if not U_c[0] > DEPENDENT * t:
            continue
        root = np.sqrt(U_c[0])
        for k in range(U_c.size):
            U_c[k] /= root
        kept[r] = c
        r += 1
    if r < f:
        for i in range(r):
            for k in range(i, r):
                U[i, k] = U[kept[i], kept[k]]
    return U, F[kept[:r]]


@njit(cache=True, nogil=True)
def drop(U, r, c):
    """Take row and column c out of the matrix whose factor of size r is U, by rotations of the rows below. Mutates U."""
    for i in range(r):
        begin = max(c, i - 1)
        to, source = U[i, begin : r - 1], U[i, begin + 1 : r]
        for k in range(to.size):
            to[k] = source[k]
    for i in range(c, r - 1):
        u, v = U[i, i : r - 1], U[i + 1, i : r - 1]
        size = np.hypot(u[0], v[0])
        cos, sin = u[0] / size, v[0] / size
        for k in range(u.size):
            x, y = u[k], v[k]
            u[k] = cos * x + sin * y
            v[k] = cos * y - sin * x


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})  # lets dot products use vector registers
def newton_step(U, G):
    """The step of sum 0 after which the gradients G are equal, where U'U is the kernel matrix (plus a common part)."""
    r = G.size
    ones = np.ones(r)
    grad = G.copy()
    for c in range(r):  # on views that begin where a loop does: indices that cannot be negative let it use vector registers
        u, x, g = U[c, c + 1 : r], ones[c + 1 :], grad[c + 1 :]
        ones[c] /= U[c, c]
        grad[c] /= U[c, c]
        one, slope = ones[c], grad[c]
        for k in range(u.size):
            x[k] -= one * u[k]
        for k in range(u.size):
            g[k] -= slope * u[k]
    sum_ones, sum_grad = 0.0, 0.0
    for c in range(r - 1, -1, -1):
        u, x, g = U[c, c + 1 : r], ones[c + 1 :], grad[c + 1 :]
        one, slope = ones[c], grad[c]
        for k in range(u.size):
            one -= u[k] * x[k]
            slope -= u[k] * g[k]
        ones[c], grad[c] = one / U[c, c], slope / U[c, c]
        sum_ones += ones[c]
        sum_grad += grad[c]
    rho = sum_grad / sum_ones if r > 0 else 0.0
    for c in range(r):
        grad[c] = rho * ones[c] - grad[c]
    return grad


@njit(cache=True, nogil=True)
def free_weights(b, lower, upper):
    """The indices of the weights strictly between their bounds."""
    F = np.empty(b.size, np.intp)
    f = 0
    for t in range(b.size):
        if lower[t] < b[t] < upper[t]:
            F[f] = t
            f += 1
    return F[:f]


@njit(cache=True, nogil=True)
def take_step(K, F, step, b, G, lower, upper):
    """Move the weights F along the step as far as the bounds allow, and no further than all of it.

    Mutates b and G. Returns whether it was all.
    """
    part = 1.0
    first = -1
    for c in range(F.size):
        t = F[c]
        if step[c] != 0.0:
            allowed = ((upper[t] if step[c] > 0.0 else lower[t]) - b[t]) / step[c]
            if allowed < part:
                part = allowed
                first = c
    for c in range(F.size):
        t = F[c]
        new = min(max(b[t] + part * step[c], lower[t]), upper[t])
        if c == first:
            new = upper[t] if step[c] > 0.0 else lower[t]
        change = new - b[t]
        b[t] = new
        K_t = K[t]
        for i in range(G.size):
            G[i] += change * K_t[i]
    return first < 0


@njit(cache=True, nogil=True)
def polish(K, b, G, lower, upper):
    """Newton steps on the free weights, until one meets no bound. Mutates b and G; False if there are more to take."""
    F = np.empty(0, np.intp)
    U = np.empty((0, 0))
    anew, dependent = True, False
    for _ in range(NEWTON_STEPS):
        if anew:
            free = free_weights(b, lower, upper)
            if free.size < 2 or free.size > MOST_FREE:
                return True
            U, F = factorise_free(K, free)
            anew, dependent = False, F.size < free.size
            dropped = False
        if take_step(K, F, newton_step(U, G[F]), b, G, lower, upper):
            if not (dependent and dropped):
                return True
            anew = True  # without the weights that met a bound, others no longer depend on the rest
        else:
            dropped = True
            for c in range(F.size - 1, -1, -1):
                if not lower[F[c]] < b[F[c]] < upper[F[c]]:
                    drop(U, F.size, c)
                    for k in range(c + 1, F.size):
                        F[k - 1] = F[k]
                    F = F[:-1]
    return False


@njit(cache=True, nogil=True)
def snap(b, lower, upper):
    """Put weights that rounding left a hair off a bound onto it, so that "free" is an exact notion. Mutates b."""
    for t in range(b.size):
        margin = AT_BOUND * (upper[t] - lower[t])
        if b[t] <= lower[t] + margin:
            b[t] = lower[t]
        elif b[t] >= upper[t] - margin:
            b[t] = upper[t]


@njit(cache=True, nogil=True)
def violation_for(tol, b, G, p, diag, lower):
    """The violation that keeps the gap well within ``tol`` of the scale, as far as rounding lets it be seen."""
    _, scale, mass = spread_and_mass(b, G, p, diag, lower)
    size, weights = 0.0, 0.0
    for t in range(b.size):
        size = max(size, abs(diag[t]))
        weights += abs(b[t])
    return max(EXTRA_DIGITS * tol * scale / mass if mass > 0.0 else 0.0, ROUNDING * size * weights)


@njit(cache=True, nogil=True)
def solve_whole(K, diag, p, b, G, lower, upper, tol, libsvm, curvature_floor, max_iter):
    """Optimise all weights together until the stopping rule holds. Mutates b and G.

    LIBSVM's rule: pair moves until no pair violates by ``tol``. Ours: pair moves and, in turn, Newton steps on the free weights,
    until no pair violates by what ``tol`` allows. Pair moves soon find which weights are free and the last digits late; Newton steps
    give these at once. Where both go on and on, the duality gap decides: see PATIENCE.

    Returns the moves made, whether the rule was met within ``max_iter`` moves, and the smallest curvature met.
    """
    moves = 0
    turns = 0
    curvature_met = np.inf
    eps = tol if libsvm else violation_for(tol, b, G, p, diag, lower)
    goal = eps if libsvm else COARSE * eps
    turn = max_iter if libsvm else max(int(MOVES_PER_TURN * b.size), 8)
    violation = largest_violation(b, G, lower, upper)
    solved = violation < eps if libsvm else violation <= eps
    while not solved and moves < max_iter and not np.isnan(eps):
        made, violation, met = smo(K, diag, b, G, lower, upper, goal, curvature_floor, min(turn, max_iter - moves))
        moves += made
        turns += 1
        curvature_met = min(curvature_met, met)
        if libsvm:
            solved = violation <= eps
            continue
        complete = polish(K, b, G, lower, upper)
        eps = violation_for(tol, b, G, p, diag, lower)  # the problem's scale is known better as the weights settle
        goal = eps
        solved = complete and largest_violation(b, G, lower, upper) <= eps
        if not solved and turns % PATIENCE == 0:
            _, _, mass = spread_and_mass(b, G, p, diag, lower)
            enough = eps * mass if turns < 10 * PATIENCE else eps * mass / EXTRA_DIGITS
            solved = duality_gap(multiplier(b, G, lower, upper), b, G, lower, upper) <= enough
    snap(b, lower, upper)
    return moves, solved, curvature_met


@njit(cache=True, nogil=True)
def fill(order, lower, upper, total):
    """The feasible point that raises weights to their upper bound in the given order until they sum to total."""
    b = np.empty(lower.size)
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
    return b


@njit(cache=True, nogil=True)
def multiplier(b, G, lower, upper):
    """rho: the mean gradient of the free weights; without any, the middle of what optimality allows."""
    free = 0
    mean = 0.0
    lowest = -np.inf
    highest = np.inf
    for t in range(b.size):
        if lower[t] < b[t] < upper[t]:
            free += 1
            mean += (G[t] - mean) / free
        elif b[t] > lower[t]:
            lowest = max(lowest, G[t])
        elif b[t] < upper[t]:
            highest = min(highest, G[t])
    if free > 0:
        return mean
    if lowest == -np.inf:
        return highest
    if highest == np.inf:
        return lowest
    return 0.5 * (lowest + highest)


@njit(cache=True, nogil=True)
def gap_at(rho, b, G, lower, upper):
    """What the objective can still lose: Σ (b - lower)(G - rho)₊ + (upper - b)(rho - G)₊, for any rho."""
    gap = 0.0
    for t in range(b.size):
        if G[t] > rho:
            gap += (b[t] - lower[t]) * (G[t] - rho)
        else:
            gap += (upper[t] - b[t]) * (rho - G[t])
    return gap


@njit(cache=True, nogil=True)
def duality_gap(rho, b, G, lower, upper):
    """The smaller of two valid bounds: at rho, and at the smallest gradient that may grow (at most violation · mass)."""
    g_up = np.inf
    for t in range(b.size):
        if b[t] < upper[t]:
            g_up = min(g_up, G[t])
    if g_up == np.inf:
        return 0.0
    return min(gap_at(rho, b, G, lower, upper), gap_at(g_up, b, G, lower, upper))


@njit(cache=True, nogil=True)
def spread_and_mass(b, G, p, diag, lower):
    """The problem's own scale and the weight that can move: (b'Kb, scale, Σ (b - lower)).

    scale = ½ |Σb · Σ b_i K_ii - b'Kb|: half the weighted spread of the samples in the kernel's space, which neither a
    multiple of the kernel nor a common part of all samples can hide.
    """
    quadratic = 0.0
    weighted_diag = 0.0
    total = 0.0
    size = 0.0
    weights = 0.0
    mass = 0.0
    for t in range(b.size):
        quadratic += b[t] * (G[t] - p[t])
        weighted_diag += b[t] * diag[t]
        total += b[t]
        size += abs(b[t] * diag[t])
        weights += abs(b[t])
        mass += b[t] - lower[t]
    scale = max(0.5 * abs(total * weighted_diag - quadratic), SCALE_FLOOR * 0.5 * weights * size)
    return quadratic, scale, mass
