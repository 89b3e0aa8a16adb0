"""Compiled loops of local residuals: a tree of leaves, distances to the references of a leaf, and what these leave of a sample.

``columns`` (leaves × d × m) holds the m references of each leaf, column by column: inner loops run over references. Everything is in single
precision, except the matrices that are factorised. What a row gets depends on the row alone, to the bit.
"""

import numpy as np

from .jit import entry, njit

LOG2_E = np.float32(1.4426950408889634)  # exp(t) = 2^(LOG2_E t)
SHIFT = np.float32(12582912.0)  # 1.5 · 2^23: adding it rounds to an integer, which is then in the lowest bits
LEAST = np.float32(-125.0)  # from here down, 2^t counts as 0
ZERO, ONE, HALF_BITS = np.float32(0.0), np.float32(1.0), 23

# Interpolates (2^f - 1) / f at the Chebyshev points of |f| <= ½: 2^f within one unit in the last place.
C1, C2, C3 = np.float32(0.69314718), np.float32(0.24022652), np.float32(0.05550358)
C4, C5, C6 = np.float32(0.009618), np.float32(0.00133999), np.float32(0.00015457)


@entry
@njit()
def leaves_of(Z: np.ndarray, column: np.ndarray, at: np.ndarray, child: np.ndarray, leaf: np.ndarray) -> None:
    """Fill leaf with each row's. Node i, from the root 0, leads to child[i, 0] below at[i], else to child[i, 1]; leaf c is child -c - 1."""
    for i in range(len(Z)):
        node = 0 if len(at) else -1
        while node >= 0:
            node = child[node, 0] if Z[i, column[node]] < at[node] else child[node, 1]
        leaf[i] = -node - 1


@entry
@njit()
def box_distances(Z: np.ndarray, low: np.ndarray, high: np.ndarray, centre: np.ndarray, inward: float, out: np.ndarray) -> None:
    """Fill ``out`` with the L1 distance of each row from a box, plus ``inward`` times that from a centre. Mutates out."""
    for i in range(len(Z)):
        away, off = ZERO, ZERO
        for j in range(Z.shape[1]):
            z = Z[i, j]
            away += max(max(low[j] - z, z - high[j]), ZERO)
            off += abs(z - centre[j])
        out[i] = away + inward * off


@njit()
def distances(x: np.ndarray, columns: np.ndarray, power: float, out: np.ndarray) -> None:
    """Fill ``out`` with Σ_j |x_j - r_j|^power for references r given by their columns; the power is ½, 1 or 2. Mutates out."""
    m = out.size
    for k in range(m):
        out[k] = ZERO
    for j in range(len(columns)):
        v, column = x[j], columns[j]
        if power == 0.5:
            for k in range(m):
                out[k] += np.sqrt(abs(v - column[k]))
        elif power == 2.0:
            for k in range(m):
                out[k] += (v - column[k]) * (v - column[k])
        else:
            for k in range(m):
                out[k] += abs(v - column[k])


@njit(fastmath={"contract"})
def kernel_values(D: np.ndarray, per_width: float, k: np.ndarray) -> None:
    """Fill k with exp(-D / width). Mutates k."""
    rate = -LOG2_E * np.float32(per_width)
    for a in range(D.size):
        t = max(D[a] * rate, LEAST)
        shifted = t + SHIFT
        f = t - (shifted - SHIFT)
        series = ONE + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * C6)))))
        bits = np.float32(series).view(np.int32) + (np.float32(shifted).view(np.int32) << HALF_BITS)  # t - f is added to the exponent
        k[a] = np.int32(bits).view(np.float32) if t > LEAST else ZERO


@njit(fastmath={"reassoc", "contract", "nsz"})  # lets sums use vector registers
def dot(v: np.ndarray, w: np.ndarray) -> np.float32:
    """Σ v_j w_j."""
    total = ZERO
    for j in range(v.size):
        total += v[j] * w[j]
    return total


@entry
@njit()
def kernel_matrix(columns: np.ndarray, power: float, per_width: float, ridge: float, K: np.ndarray) -> None:
    """Fill the lower triangle of K with the kernel matrix of references, and a ridge on its diagonal. Mutates K."""
    d, m = columns.shape
    x, D, k = np.empty(d, np.float32), np.empty(m, np.float32), np.empty(m, np.float32)
    for a in range(m):
        for j in range(d):
            x[j] = columns[j, a]
        distances(x, columns, power, D[:a])
        kernel_values(D[:a], per_width, k[:a])
        for b in range(a):
            K[a, b] = k[b]
        K[a, a] = 1.0 + ridge


@entry
@njit()
def explained(
    Z: np.ndarray,
    order: np.ndarray,
    leaf: np.ndarray,
    columns: np.ndarray,
    factors: np.ndarray,
    power: float,
    per_width: float,
    out: np.ndarray,
) -> None:
    """Fill out_i with ||L^-1 k||² for the rows i of ``order``; row c of ``factors`` is the packed L^-1 of leaf c. Mutates out."""
    m = columns.shape[2]
    D, k = np.empty(m, np.float32), np.empty(m, np.float32)
    for i in order:
        c = leaf[i]
        distances(Z[i], columns[c], power, D)
        kernel_values(D, per_width, k)
        total, at = 0.0, 0
        for a in range(m):
            t = np.float64(dot(factors[c, at : at + a + 1], k[: a + 1]))  # squares of what is far away are too small for single precision
            total += t * t
            at += a + 1
        out[i] = total


@entry
@njit()
def normal_scores(X: np.ndarray, start: np.ndarray, at: np.ndarray, score: np.ndarray, unit: np.ndarray, Z: np.ndarray) -> None:
    """Fill Z with each column's normal scores: linear between the values seen, at[start[j] : start[j + 1]], logarithmic beyond them."""
    for i in range(len(X)):
        for j in range(X.shape[1]):
            x, low, high = X[i, j], start[j], start[j + 1] - 1
            if x <= at[low]:
                Z[i, j] = score[low] - np.log1p((at[low] - x) / unit[j])
            elif x >= at[high]:
                Z[i, j] = score[high] + np.log1p((x - at[high]) / unit[j])
            else:
                while high - low > 1:
                    middle = (low + high) // 2
                    if x < at[middle]:
                        high = middle
                    else:
                        low = middle
                Z[i, j] = score[low] + (score[high] - score[low]) * ((x - at[low]) / (at[high] - at[low]))


@entry
@njit()
def unseen(X: np.ndarray, start: np.ndarray, at: np.ndarray, near: np.ndarray, evidence: np.ndarray, Z: np.ndarray) -> None:
    """Fill Z with a column's evidence where no value seen, at[start[j] : start[j + 1]], is as near as near[j]; else with 0. Mutates Z."""
    for i in range(len(X)):
        for j in range(X.shape[1]):
            x, low, high, end = X[i, j], start[j], start[j + 1], start[j + 1]
            while low < high:
                middle = (low + high) // 2
                if at[middle] < x:
                    low = middle + 1
                else:
                    high = middle
            is_far = (low == end or at[low] - x > near[j]) and (low == start[j] or x - at[low - 1] > near[j])
            Z[i, j] = evidence[j] if is_far else 0.0
