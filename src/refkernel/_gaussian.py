"""Gaussian kernel values in one compiled pass: powers of 2, sums and features of new rows, and symmetric matrices.

What a row gets depends on the row alone: its terms are added in an order that the landmarks set, whatever rows are beside it.
"""

from __future__ import annotations

import functools

import numpy as np

from ._blocks import MANY_ENTRIES, ROWS_OF_BLAS, block_rows
from ._distances import TINY, DistancesTo, extend
from ._jit import njit
from ._jit.compiler import Interpreted
from ._jit.products import multiply
from ._threads import in_threads, one_blas_thread, share_rows

AT_HALF = 1.1774100225154747
"""sqrt(2 ln 2): a Gaussian kernel is ½ at this many widths, so exp(-||x - z||² / (2 sigma²)) = 2^-(||x - z|| / (AT_HALF sigma))²."""

LOG2_E = 1.4426950408889634
"""exp(t) = 2^(LOG2_E t)."""

SHIFT = 6755399441055744.0
"""1.5 · 2^52: adding it rounds to an integer, which is then in the lowest bits."""

LEAST = -1021.0
"""From here down, 2^t is at most 4.5e-308: values that small are 0, before they get slow and lose digits."""

# Interpolates (2^f - 1) / f at the Chebyshev points of |f| <= ½: 2^f within 2e-17 of itself.
C1, C2, C3, C4, C5 = 0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888, 0.0013333558146416936
C6, C7, C8 = 0.0001540353044173605, 1.525273382983612e-05, 1.321544258792169e-06
C9, C10, C11 = 1.0178062445845774e-07, 7.072585949269223e-09, 4.4549605981865186e-10

MOST_COLUMNS = 32
"""With more features the distances cost more than the powers, and BLAS computes distances faster."""

CHUNK = 512
"""Landmarks at a time: their columns stay in the nearest cache while all rows pass."""

EIGHT = 8
"""Landmarks are padded to a multiple of this: the widest vector registers hold as many values."""

TILE = 32
"""The side of the squares by which a triangle is mirrored: a square's rows and columns stay in the nearest cache."""

SMALL_PRODUCT = 1_000_000
"""Up to this many multiplications, OpenBLAS for AVX-512 does not pack the matrices first, which is a fifth faster."""

STRIPS = Interpreted(1 << 22, 1.0)
"""For a loop over strips of rows: interpreted, it takes twice the time of compiled code. Few rows do not notice that; 100,000 would."""


@njit(inline="always")
def power(t: float) -> float:
    """2^t for t <= 0 within 2 units in the last place; 0 from LEAST down, and for NaN, the difference of two overflows."""
    shifted = t + SHIFT
    f = t - (shifted - SHIFT)
    square = f * f
    odd = C1 + square * (C3 + square * (C5 + square * (C7 + square * (C9 + square * C11))))
    even = C2 + square * (C4 + square * (C6 + square * (C8 + square * C10)))
    series = 1.0 + f * (odd + f * even)
    bits = np.float64(series).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)  # t - f is added to the exponent
    return np.int64(bits).view(np.float64) if t > LEAST else 0.0


@njit(fastmath={"contract"})  # multiplications and additions in one instruction
def _powers(t: np.ndarray) -> None:
    for i in range(t.size):
        t[i] = power(0.0 if t[i] > 0.0 else t[i])  # distances that rounding made negative are 0


def powers(t: np.ndarray) -> np.ndarray:
    """2^min(t, 0) for all t, as ``power`` computes it. Mutates t and returns it if it is in C order."""
    flat = t.reshape(-1)
    _powers(flat)
    return t if t.flags.c_contiguous else flat.reshape(t.shape)


@functools.cache
def numpys_exp_has_vectors() -> bool:
    """Whether NumPy's exp of doubles uses vector registers; up to NumPy 2.4 it does with AVX-512 alone."""
    loops = np.lib.introspect.opt_func_info(func_name="^exp$", signature="float64").get("exp", {})
    return any(str(loop["current"]).startswith(("AVX512", "X86_V4")) for loop in loops.values())


def exponentials(t: np.ndarray) -> np.ndarray:
    """exp(t) for t <= 0. Mutates t and returns it if it is in C order.

    NumPy computes it where it has vectors: ours takes 0.6 of the time even there, but would move knife-edge scores of searches by rounding.
    """
    return np.exp(t, out=t) if numpys_exp_has_vectors() else powers(np.multiply(t, LOG2_E, out=t))


@njit(fastmath={"contract"}, forceinline=True)
def values(x: np.ndarray, columns: np.ndarray, t: np.ndarray) -> None:
    """t_j = 2^-||x - z_j||² for landmarks z given by their columns. Mutates t.

    Four features at a time: t is then read and written less often.
    """
    fours = x.size // 4 * 4
    for j in range(t.size):
        t[j] = 0.0
    for k in range(0, fours, 4):
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        for j in range(t.size):
            a0, a1, a2, a3 = x0 - columns[k, j], x1 - columns[k + 1, j], x2 - columns[k + 2, j], x3 - columns[k + 3, j]
            t[j] -= (a0 * a0 + a1 * a1) + (a2 * a2 + a3 * a3)
    for k in range(fours, x.size):
        x0 = x[k]
        for j in range(t.size):
            t[j] -= (x0 - columns[k, j]) * (x0 - columns[k, j])
    for j in range(t.size):
        t[j] = power(t[j])


@njit(fastmath={"reassoc", "contract", "nsz"})  # lets sums use vector registers
def dot(v: np.ndarray, w: np.ndarray) -> float:
    """Σ v_j w_j."""
    total = 0.0
    for j in range(v.size):
        total += v[j] * w[j]
    return total


@njit(fastmath={"contract"})
def _sums(X: np.ndarray, columns: np.ndarray, origin: np.ndarray, per_unit: float, weights: np.ndarray, out: np.ndarray) -> None:
    """out_i = Σ_j weights_j 2^-||x_i - z_j||² for chunks of landmarks (c × width), by their columns (c × d × width). Mutates out."""
    n, d = X.shape
    x, t = np.empty(d), np.empty(weights.shape[1])
    for i in range(n):
        out[i] = 0.0
    for c in range(len(weights)):
        block, part = columns[c], weights[c]
        for i in range(n):
            for k in range(d):
                x[k] = (X[i, k] - origin[k]) * per_unit
            values(x, block, t)
            out[i] += dot(t, part)


def sums(X: np.ndarray, Z: np.ndarray, sigma: float, weights: np.ndarray) -> np.ndarray:
    """Σ_j weights_j exp(-||x - z_j||² / (2 sigma²)) for every row x of X."""
    (m, d), per_unit = Z.shape, _per_unit(sigma)
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
        landmarks[:m] = (Z - Z[0]) * per_unit
    columns = np.ascontiguousarray(landmarks.reshape(chunks, width, d).transpose(0, 2, 1))
    arguments, out = (columns, Z[0], per_unit, padded.reshape(chunks, width)), np.empty(len(X))
    if len(X) * m >= MANY_ENTRIES:
        in_threads(lambda start, stop: _sums(X[start:stop], *arguments, out[start:stop]), len(X))
    else:
        _sums(X, *arguments, out)
    return out


def features(X: np.ndarray, Z: np.ndarray, sigma: float, projection: np.ndarray, out: np.ndarray) -> np.ndarray:
    """[exp(-||x - z_j||² / (2 sigma²)) for all j, 1] projection for every row x of X. Mutates out, and returns it."""
    (m, d), rank = Z.shape, projection.shape[1]
    if X.ndim != 2 or X.shape[1] != d or len(projection) != m + 1 or out.shape != (len(X), rank):
        raise ValueError(
            f"X has shape {X.shape}, projection {projection.shape} and out {out.shape}; "
            f"(n, {d}), ({m + 1}, rank) and (n, rank) were expected."
        )
    rows = strip_rows(m + 1, rank)
    to = DistancesTo(Z, half_width(sigma), 0, and_zero=True)
    X, origin, right, projection = (_read_only(A) for A in (X, to.origin, to.right, projection))

    def work(start: int, stop: int) -> None:
        end = stop - (stop - start) % rows
        _features(X[start:end], origin, to.per_unit, right, projection, rows, out[start:end])
        if end < stop:
            last, held = X[np.minimum(np.arange(end, end + rows), stop - 1)], np.empty((rows, rank))  # the last row fills the strip
            _features(_read_only(last), origin, to.per_unit, right, projection, rows, held)
            out[end:stop] = held[: stop - end]

    if len(X) * (m + 1) >= MANY_ENTRIES:
        share_rows(work, len(X))
    else:
        with one_blas_thread():
            work(0, len(X))
    return out


def strip_rows(inner: int, columns: int) -> int:
    """The number of rows in every strip: a whole block, or the largest part of one whose product is small."""
    rows = block_rows(inner)
    small = SMALL_PRODUCT // (inner * columns) // ROWS_OF_BLAS * ROWS_OF_BLAS
    return min(rows, small) if small else rows


def _read_only(A: np.ndarray) -> np.ndarray:
    """A contiguous view that cannot be written, so that compiled code meets one type of array."""
    view = np.ascontiguousarray(A).view()
    view.flags.writeable = False
    return view


@njit(interpreted=STRIPS)
def _features(
    X: np.ndarray, origin: np.ndarray, per_unit: float, right: np.ndarray, projection: np.ndarray, rows: int, out: np.ndarray
) -> None:
    """Fill ``out`` strip by strip; X consists of whole strips. Mutates out.

    Arrays are not assigned to slices: the text of the error that numba prepares for other shapes takes 3 s to compile.
    """
    left, K = np.empty((rows, len(right))), np.empty((rows, right.shape[1]))
    for start in range(0, len(X), rows):
        extend(X[start : start + rows], origin, per_unit, left)
        multiply(left, right, K)
        _powers(K.reshape(-1))
        K[:, -1] = 1.0
        multiply(K, projection, out[start : start + rows])


@njit(fastmath={"contract"})
def _matrix(X: np.ndarray, columns: np.ndarray, K: np.ndarray) -> None:
    """K_ij = 2^-||x_i - x_j||² for rows that are also given by their columns (d × n): each pair once. Mutates K."""
    n = len(K)
    for i in range(n):
        values(X[i], columns, K[i, :i])
        K[i, i] = 1.0
    for above in range(0, n, TILE):
        for left in range(above, n, TILE):
            for i in range(above, min(above + TILE, n)):
                for j in range(max(left, i + 1), min(left + TILE, n)):
                    K[i, j] = K[j, i]


def matrix(X: np.ndarray, sigma: float) -> np.ndarray:
    """exp(-||x_i - x_j||² / (2 sigma²)) for all pairs of rows of X."""
    K = np.empty((len(X), len(X)))
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray((X - X[0]) * _per_unit(sigma))
        _matrix(X, np.ascontiguousarray(X.T), K)
    return K


def half_width(sigma: float) -> float:
    """The distance at which the kernel is ½; in double precision, whatever the type of sigma."""
    return AT_HALF * float(sigma)


def _per_unit(sigma: float) -> float:
    """The factor that makes squared distances exponents of ½. (The half width itself can overflow.)"""
    return 1.0 / AT_HALF / max(float(sigma), TINY)
