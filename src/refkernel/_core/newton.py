"""Newton steps on the free weights: an active set method on the factorised kernel matrix of the free samples."""

import numpy as np

from .jit import entry, njit

DEPENDENT = 1e-11  # A sample counts as dependent if its part outside the span of the others is below this share of the kernel's size
AT_BOUND = 1e-12  # A weight this close to a bound, as a share of its range or of the largest weight, differs from it only by rounding
NEWTON_STEPS = 30  # Newton steps in a turn
MOST_FREE = 256  # Newton steps are for at most this many free weights: beyond, factorising usually costs more than the pair moves it saves


@njit(fastmath={"reassoc", "contract", "nsz"})  # lets sums use vector registers
def _newton(K: np.ndarray, b: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray, most_free: int) -> bool:
    """Newton steps on the free weights if they are at most ``most_free``, until one reaches no bound.

    Each step solves for the free weights F with U'U = K_FF + t 11' (t 11' does not affect steps of sum 0, and makes centred kernels
    regular), skips dependent samples, and ends at the first bound; the rows of the factor from that weight on are then computed again.
    Mutates b and G; returns False if more steps are needed.
    """
    n = b.size
    F, U, ones, step = np.empty(n, np.intp), np.empty((0, 0)), np.empty(n), np.empty(n)
    r, left, free, begin, common, anew, dropped = 0, 0, 0, 0, 0.0, True, False
    for _ in range(NEWTON_STEPS):
        if anew:
            free, common = 0, 0.0
            for t in range(n):
                if lower[t] < b[t] < upper[t]:
                    F[free] = t
                    free += 1
                    common = max(common, abs(K[t, t]))
            if free < 2 or free > most_free:
                return True
            U, r, left, anew, dropped = np.empty((free, free)), 0, free, False, False
        for c in range(r, left):  # row r of U is that of sample F[c]; its columns are those of F, moved left past skipped ones
            K_c, row = K[F[c]], U[r]
            for k in range(c, left):
                row[k] = K_c[F[k]] + common
            for i in range(r):
                above, factor = U[i], U[i, c]
                for k in range(c, left):
                    row[k] -= factor * above[k]
            if row[c] > DEPENDENT * common:
                root = np.sqrt(row[c])
                for k in range(c, left):
                    row[k] /= root
                F[r] = F[c]
                for i in range(r + 1):
                    U[i, r] = U[i, c]
                r += 1
        left = r

        for c in range(r):
            ones[c], step[c] = 1.0, G[F[c]]
        for c in range(r):
            row = U[c]
            ones[c] /= row[c]
            step[c] /= row[c]
            one, gradient = ones[c], step[c]
            for k in range(c + 1, r):
                ones[k] -= one * row[k]
                step[k] -= gradient * row[k]
        sum_ones, sum_steps = 0.0, 0.0
        for c in range(r - 1, -1, -1):
            row, one, gradient = U[c], ones[c], step[c]
            for k in range(c + 1, r):
                one -= row[k] * ones[k]
                gradient -= row[k] * step[k]
            ones[c], step[c] = one / row[c], gradient / row[c]
            sum_ones += ones[c]
            sum_steps += step[c]
        rho = sum_steps / sum_ones if r > 0 else 0.0

        part, first = 1.0, -1
        for c in range(r):
            t = F[c]
            step[c] = rho * ones[c] - step[c]
            if step[c] != 0.0:
                allowed = ((upper[t] if step[c] > 0.0 else lower[t]) - b[t]) / step[c]
                if allowed < part:
                    part, first = allowed, c
        for c in range(r):
            t = F[c]
            new = min(max(b[t] + part * step[c], lower[t]), upper[t])
            if c == first:
                new = upper[t] if step[c] > 0.0 else lower[t]
            change, row = new - b[t], K[t]
            b[t] = new
            for k in range(n):
                G[k] += change * row[k]
        if first < 0:
            if not (r < free and dropped):
                return True
            anew = True  # without the weights that met a bound, others no longer depend on the rest
            continue
        dropped, left = True, 0
        for c in range(r):  # rows before the first weight at a bound stay; those after it are factorised again
            if lower[F[c]] < b[F[c]] < upper[F[c]]:
                if left < c:
                    F[left] = F[c]
                    for i in range(begin):
                        U[i, left] = U[i, c]
                left += 1
            elif left == c:
                begin = c
        r = begin
    return False


newton = entry(_newton)


def free_weights(b: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The indices of the weights strictly between their bounds."""
    return np.flatnonzero((lower < b) & (b < upper))


def snap(b: np.ndarray, diag: np.ndarray, far: float, lower: np.ndarray, upper: np.ndarray) -> None:
    """Put weights a hair off a bound onto it, so that "free" is exact; the hair is thinner for samples with |K_ii| > far. Mutates b."""
    margin = AT_BOUND * np.minimum(upper - lower, np.abs(b).max()) * (1.0 if far == np.inf else far / np.maximum(np.abs(diag), far))
    b[:] = np.where(b <= lower + margin, lower, np.where(b >= upper - margin, upper, b))
