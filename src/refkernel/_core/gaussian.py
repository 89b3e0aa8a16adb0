"""Gaussian kernel values: powers of 2, and weighted sums in one compiled pass; a row's result does not depend on the other rows."""

import numpy as np

from .blocks import MANY_ENTRIES
from .jit import entry, njit
from .threads import in_threads

TINY = float(np.finfo(float).tiny)  # the smallest unit that can be divided by
AT_HALF = 1.1774100225154747  # sqrt(2 ln 2): a Gaussian kernel is ½ at this many widths, so it is 2^-(||x - z|| / (AT_HALF sigma))²
LOG2_E = 1.4426950408889634  # exp(t) = 2^(LOG2_E t)
SHIFT = 6755399441055744.0  # 1.5 · 2^52: adding it rounds to an integer, which is then in the lowest bits
LEAST = -1021.0  # from here down, 2^t is at most 4.5e-308: values that small are 0, before they get slow and lose digits

# Interpolates (2^f - 1) / f at the Chebyshev points of |f| <= ½: 2^f within 2e-17 of itself.
C1, C2, C3, C4, C5 = 0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888, 0.0013333558146416936
C6, C7, C8 = 0.0001540353044173605, 1.525273382983612e-05, 1.321544258792169e-06
C9, C10, C11 = 1.0178062445845774e-07, 7.072585949269223e-09, 4.4549605981865186e-10
MOST_COLUMNS = 32  # with more features the distances cost more than the powers, and BLAS computes distances faster
CHUNK = 512  # landmarks at a time: their columns stay in the nearest cache while all rows pass
EIGHT = 8  # landmarks are padded to a multiple of this: the widest vector registers hold as many values


@njit(forceinline=True, fastmath={"contract"})  # multiplications and additions in one instruction
def _power(t: float) -> float:
    """2^t for t <= 0 within 2 units in the last place; 0 from LEAST down, and for NaN, the difference of two overflows."""
    shifted = t + SHIFT
    f = t - (shifted - SHIFT)
    square = f * f
    odd = C1 + square * (C3 + square * (C5 + square * (C7 + square * (C9 + square * C11))))
    even = C2 + square * (C4 + square * (C6 + square * (C8 + square * C10)))
    series = 1.0 + f * (odd + f * even)
    bits = np.float64(series).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)  # t - f is added to the exponent
    return np.int64(bits).view(np.float64) if t > LEAST else 0.0


@entry
@njit(fastmath={"contract"})
def _fill_powers(t: np.ndarray) -> None:
    """Replace t by 2^min(t, 0): distances that rounding made negative are 0. Mutates t."""
    for i in range(t.size):
        t[i] = _power(0.0 if t[i] > 0.0 else t[i])


def powers(t: np.ndarray) -> np.ndarray:
    """2^min(t, 0) for all t, within 2 units in the last place. Mutates t and returns it if it is in C order."""
    flat = t.reshape(-1)
    _fill_powers(flat)
    return t if t.flags.c_contiguous else flat.reshape(t.shape)


def exponentials(t: np.ndarray) -> np.ndarray:
    """exp(t) for t <= 0. Mutates t and returns it if it is in C order."""
    return powers(np.multiply(t, LOG2_E, out=t))


@entry
@njit(fastmath={"reassoc", "contract", "nsz"})  # lets sums use vector registers
def _fill_sums(X: np.ndarray, columns: np.ndarray, origin: np.ndarray, per_unit: float, weights: np.ndarray, out: np.ndarray) -> None:
    """out_i = Σ_j weights_j 2^-||x_i - z_j||² for chunks of landmarks (c × width), by their columns (c × d × width). Mutates out."""
    t = np.empty(weights.shape[1])
    for i in range(len(X)):
        out[i] = 0.0
    for c in range(len(weights)):
        for i in range(len(X)):
            for j in range(t.size):
                t[j] = 0.0
            for k in range(X.shape[1]):
                x, column = (X[i, k] - origin[k]) * per_unit, columns[c, k]
                for j in range(t.size):
                    t[j] -= (x - column[j]) * (x - column[j])
            total, weight = 0.0, weights[c]
            for j in range(t.size):
                total += weight[j] * _power(t[j])
            out[i] += total


def sums(X: np.ndarray, Z: np.ndarray, sigma: float, weights: np.ndarray) -> np.ndarray:
    """Σ_j weights_j exp(-||x - z_j||² / (2 sigma²)) for every row x of X."""
    (m, d), unit = Z.shape, per_unit(sigma)
    if X.ndim != 2 or X.shape[1] != d or weights.shape != (m,):
        raise ValueError(
            f"X has shape {X.shape} and weights {weights.shape}; (n, {d}) and ({m},) were expected: the columns and rows of Z."
        )
    X = np.ascontiguousarray(X)
    width = min(CHUNK, -(-m // EIGHT) * EIGHT)
    chunks = -(-m // width)
    landmarks, padded = np.zeros((chunks * width, d)), np.zeros(chunks * width)
    padded[:m] = weights
    with np.errstate(over="ignore"):
        landmarks[:m] = (Z - Z[0]) * unit
    columns = np.ascontiguousarray(landmarks.reshape(chunks, width, d).transpose(0, 2, 1))
    arguments, out = (columns, Z[0], unit, padded.reshape(chunks, width)), np.empty(len(X))
    if len(X) * m >= MANY_ENTRIES:
        in_threads(lambda start, stop: _fill_sums(X[start:stop], *arguments, out[start:stop]), len(X))
    else:
        _fill_sums(X, *arguments, out)
    return out


def per_unit(sigma: float) -> float:
    """The factor that makes squared distances exponents of ½. (The half width itself can overflow.)"""
    return 1.0 / AT_HALF / max(float(sigma), TINY)
