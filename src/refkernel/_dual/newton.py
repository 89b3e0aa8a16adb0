"""Newton steps on the free weights. Jitted: arrays in, numbers out; each says what it mutates."""

from __future__ import annotations

import numpy as np

from .._jit import DRIVER, LOOP, njit
from .moves import add_rows

DEPENDENT = 1e-11
"""A sample counts as dependent if its part outside the span of the others is below this share of the kernel's size."""

AT_BOUND = 1e-12
"""A weight this close to a bound, as a share of its range, differs from it only by rounding."""

NEWTON_STEPS = 30
"""Newton steps in a turn."""

MOST_FREE = 256
"""Take Newton steps for at most this many free weights: for more, factorising usually costs more than the pair moves it saves."""


@njit(interpreted=DRIVER)
def polish(K: np.ndarray, b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray, most_free: int) -> bool:
    """Newton steps on the free weights if they are at most ``most_free``, until one reaches no bound.

    Mutates b and G; returns False if more steps are needed.
    """
    F = np.empty(0, np.intp)
    U = np.empty((0, 0))
    anew, dependent = True, False
    for _ in range(NEWTON_STEPS):
        if anew:
            free = free_weights(b, lower, upper)
            if free.size < 2 or free.size > most_free:
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


@njit(interpreted=LOOP)
def free_weights(b: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The indices of the weights strictly between their bounds."""
    F = np.empty(b.size, np.intp)
    f = 0
    for t in range(b.size):
        F[f] = t  # the next one takes its place if this one is not free: a branch would often be predicted wrongly
        f += lower[t] < b[t] < upper[t]
    return F[:f]


@njit(interpreted=LOOP, inline="always")  # compiled once, as part of its only caller
def factorise_free(K: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U with U'U = K_FF + t 11', upper triangular and of leading size r, and the r indices of F that it is for.

    Dependent samples are skipped (their weights do not move). The common part t 11' does not affect steps of sum 0, and makes centred
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
        fours = r // 4 * 4
        for i in range(0, fours, 4):  # four rows at a time, so that U_c is read and written less often
            V, W, X, Y = U[kept[i], c:], U[kept[i + 1], c:], U[kept[i + 2], c:], U[kept[i + 3], c:]
            v, w, x, y = V[0], W[0], X[0], Y[0]
            for k in range(U_c.size):
                U_c[k] = (((U_c[k] - v * V[k]) - w * W[k]) - x * X[k]) - y * Y[k]
        for i in range(fours, r):
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
    for i in range(r):
        kept[i] = F[kept[i]]
    return U, kept[:r]


@njit(interpreted=LOOP)
def newton_step(U: np.ndarray, G: np.ndarray) -> np.ndarray:
    """The step of sum 0 after which the gradients G are equal, where U'U is the kernel matrix (plus a common part)."""
    r = G.size
    ones, grad = np.empty(r), np.empty(r)
    for c in range(r):
        ones[c], grad[c] = 1.0, G[c]
    fours = r // 4 * 4
    for c in range(0, fours, 4):
        forward(U, c, c + 4, ones, grad)
        # views that begin at the loop's start: indices that cannot be negative let the loop use vector registers
        s, t, u, v = U[c, c + 4 : r], U[c + 1, c + 4 : r], U[c + 2, c + 4 : r], U[c + 3, c + 4 : r]
        for solved in (ones, grad):
            x, a, b, d, e = solved[c + 4 :], solved[c], solved[c + 1], solved[c + 2], solved[c + 3]
            for k in range(s.size):
                x[k] = (((x[k] - a * s[k]) - b * t[k]) - d * u[k]) - e * v[k]
    forward(U, fours, r, ones, grad)
    sum_ones, sum_grad = 0.0, 0.0
    for c in range(r - 1, -1, -1):
        along_ones, along_grad = products(U[c, c + 1 : r], ones[c + 1 :], grad[c + 1 :])
        ones[c], grad[c] = (ones[c] - along_ones) / U[c, c], (grad[c] - along_grad) / U[c, c]
        sum_ones += ones[c]
        sum_grad += grad[c]
    rho = sum_grad / sum_ones if r > 0 else 0.0
    for c in range(r):
        grad[c] = rho * ones[c] - grad[c]
    return grad


@njit(interpreted=LOOP, inline="always")  # a few lines of its only caller
def forward(U: np.ndarray, begin: int, end: int, x: np.ndarray, y: np.ndarray) -> None:
    """Forward substitution with U' for the entries begin … end - 1 of x and y. Mutates x and y."""
    for c in range(begin, end):
        x[c] /= U[c, c]
        y[c] /= U[c, c]
        for k in range(c + 1, end):
            x[k] -= x[c] * U[c, k]
            y[k] -= y[c] * U[c, k]


@njit(interpreted=LOOP)
def products(u: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Σ u_k x_k and Σ u_k y_k, each by four independent sums: these use vector registers, and have the same bits when interpreted."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    e, f, g, h = 0.0, 0.0, 0.0, 0.0
    fours = u.size // 4 * 4
    for k in range(0, fours, 4):
        a += u[k] * x[k]
        b += u[k + 1] * x[k + 1]
        c += u[k + 2] * x[k + 2]
        d += u[k + 3] * x[k + 3]
        e += u[k] * y[k]
        f += u[k + 1] * y[k + 1]
        g += u[k + 2] * y[k + 2]
        h += u[k + 3] * y[k + 3]
    for k in range(fours, u.size):
        a += u[k] * x[k]
        e += u[k] * y[k]
    return (a + b) + (c + d), (e + f) + (g + h)


@njit(interpreted=LOOP, inline="always")  # compiled once, as part of its only caller
def take_step(K: np.ndarray, F: np.ndarray, step: np.ndarray, b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> bool:
    """Move the weights F along the step, as far as the bounds allow.

    Mutates b and G, and the step, which becomes what was taken of it. Returns whether that is the whole step.
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
        step[c] = new - b[t]
        b[t] = new
    add_rows(K, F, step, G)
    return first < 0


@njit(interpreted=LOOP, inline="always")  # compiled once, as part of its only caller
def drop(U: np.ndarray, r: int, c: int) -> None:
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


@njit(interpreted=LOOP)
def snap(b: np.ndarray, diag: np.ndarray, far: float, lower: np.ndarray, upper: np.ndarray) -> None:
    """Put weights that rounding left a hair off a bound onto it, so that "free" is an exact notion. Mutates b.

    The hair is thinner for samples with |K_ii| > far, whose gradients feel it.
    """
    for t in range(b.size):
        margin = AT_BOUND * (upper[t] - lower[t])
        margin = margin * (far / abs(diag[t])) if abs(diag[t]) > far else margin
        low, high = b[t] <= lower[t] + margin, b[t] >= upper[t] - margin
        b[t] = lower[t] if low else upper[t] if high else b[t]
