"""Gaussian kernel values in one compiled pass: exp(-t), sums and features of new rows, and symmetric matrices.

What a row gets depends on the row alone: its terms are added in an order that the landmarks set, whatever rows are beside it.
"""

from __future__ import annotations

import numpy as np

from ._blocks import MANY_ENTRIES, ROWS_OF_BLAS, block_rows
from ._distances import TINY, DistancesTo, extend
from ._jit import njit
from ._jit.compiler import Interpreted
from ._jit.products import multiply
from ._threads import in_threads, one_blas_thread, share_rows

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""ln 2 in two parts: the product of the first with an integer up to 1,022 is exact."""

SHIFT = 6755399441055744.0
"""1.5 · 2^52: adding it rounds to an integer, which is then in the lowest bits."""

LEAST = -708.0
"""Below, exp is less than 3.4e-308: values that small are 0, before they get slow and lose digits."""

# Interpolates (exp(r) - 1 - r) / r² at the Chebyshev points of |r| <= 0.347, a hair more than ½ ln 2: exp(r) within 1.8e-17 of itself.
C0, C1, C2, C3, C4 = 0.5, 0.16666666666666669, 0.04166666666662374, 0.008333333333330032, 0.0013888888917406447
C5, C6, C7, C8, C9 = 0.00019841269863201828, 2.4801520996825697e-05, 2.7557268229963227e-06, 2.76202305675069e-07, 2.5100494788905042e-08

MOST_COLUMNS = 32
"""With more features the distances cost more than the exponentials, and BLAS computes distances faster."""

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
def exp_of(t: float) -> float:
    """exp(t) for t <= 0 within 2 units in the last place; 0 below LEAST, and for NaN, the difference of two overflows."""
    shifted = t * LOG2_E + SHIFT
    whole = shifted - SHIFT
    r = (t - whole * LN2_HIGH) - whole * LN2_LOW
    low = C0 + r * (C1 + r * (C2 + r * (C3 + r * C4)))
    high = C5 + r * (C6 + r * (C7 + r * (C8 + r * C9)))
    square = r * r
    series = 1.0 + (r + square * (low + square * square * r * high))
    power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)  # 2 ** whole
    return series * power if t > LEAST else 0.0


@njit(fastmath={"contract"})  # multiplications and additions in one instruction
def _exponentials(t: np.ndarray) -> None:
    for i in range(t.size):
        t[i] = exp_of(0.0 if t[i] > 0.0 else t[i])  # distances that rounding made negative are 0


def exponentials(t: np.ndarray) -> np.ndarray:
    """Replace all t by exp(min(t, 0)), as ``exp_of`` computes it. Mutates t, and returns it."""
    _exponentials(t.reshape(-1))
    return t


@njit(fastmath={"contract"}, forceinline=True)
def values(x: np.ndarray, columns: np.ndarray, t: np.ndarray) -> None:
    """t_j = exp(-||x - z_j||²) for landmarks z given by their columns. Mutates t.

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
        t[j] = exp_of(t[j])


@njit(fastmath={"reassoc", "contract", "nsz"})  # lets sums use vector registers
def dot(v: np.ndarray, w: np.ndarray) -> float:
    """Σ v_j w_j."""
    total = 0.0
    for j in range(v.size):
        total += v[j] * w[j]
    return total


@njit(fastmath={"contract"})
def _sums(X: np.ndarray, columns: np.ndarray, origin: np.ndarray, per_unit: float, weights: np.ndarray, out: np.ndarray) -> None:
    """out_i = Σ_j weights_j exp(-||x_i - z_j||²) for chunks of landmarks (c × width), by their columns (c × d × width). Mutates out."""
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
    to = DistancesTo(Z, np.sqrt(2.0) * sigma, 0, and_zero=True)
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
        _exponentials(K.reshape(-1))
        K[:, -1] = 1.0
        multiply(K, projection, out[start : start + rows])


@njit(fastmath={"contract"})
def _matrix(X: np.ndarray, columns: np.ndarray, K: np.ndarray) -> None:
    """K_ij = exp(-||x_i - x_j||²) for rows that are also given by their columns (d × n): each pair once. Mutates K."""
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


def _per_unit(sigma: float) -> float:
    """The factor that makes squared distances exponents."""
    return float(np.sqrt(0.5) / max(sigma, TINY))
