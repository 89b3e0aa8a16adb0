"""Eigenvalues and eigenvectors of a tridiagonal matrix, many at a time: each has a lane of the processor's vector registers.

LAPACK finds them one by one, and waits for a division in every row. Here the divisions of all lanes are made together: 32 of 200
eigenpairs take a seventh of the time of dsterf and dstein.

The matrix is given by its diagonal d and the one beside it, e, as long as d: its last value is not used.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import LOOP, njit, register_jitable
from .._jit.lapack import products_of_rows
from .triangular import cholesky, solve_rows

BOUND = 6.0
"""No eigenvalue is larger if no entry exceeds 2: a row has three of them (Gershgorin)."""

SMALL = 2.0**-104
"""What replaces a smaller pivot of scaled entries: the square of their rounding. A vector may grow by its inverse."""

ROUNDING = 4 * np.finfo(np.float64).eps
"""Times a little more than the number of rows: the error of eigenpairs of scaled entries."""

NEAR = 0.01
"""Vectors with a larger inner product are of eigenvalues that rounding does not tell apart, and may both miss a direction."""


@njit(interpreted=LOOP)
def smallest_eigenvalues(d: np.ndarray, e: np.ndarray, count: int, floor: float) -> np.ndarray:
    """The ``count`` eigenvalues that are below the floor, in ascending order, by bisection to the rounding of the matrix."""
    size, d, e = scaled(d, e)
    high = min(floor / size, BOUND)
    low = -high - 1e-12  # further down than rounding moves the eigenvalues of a kernel matrix
    lam, pivots, smaller = np.full(count, low), np.empty(count), np.empty(count)
    count_smaller(d, e, lam, pivots, smaller)
    if count > 0 and smaller[0] > 0.0:
        low = -BOUND
        lam = np.full(count, low)
    middle, width = np.empty(count), high - low
    while width > np.finfo(np.float64).eps:
        width *= 0.5
        for k in range(count):
            middle[k] = lam[k] + width
        count_smaller(d, e, middle, pivots, smaller)
        for k in range(count):
            lam[k] = lam[k] if smaller[k] > k else middle[k]
    return (lam + 0.5 * width) * size


@njit(interpreted=LOOP)
def eigenvectors(d: np.ndarray, e: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, bool]:
    """Eigenvectors of norm 1 for the eigenvalues lam, in rows, as orthogonal as these are apart; False if some are not found.

    For each, the rows of the matrix less the eigenvalue are eliminated from both ends to the one where least remains. The vector is 1
    there, and solves the equations of the other rows (a twisted factorisation). Between two eigenvalues that are all but equal,
    much may remain in every row: then the vector is none of the matrix.
    """
    size, d, e = scaled(d, e)
    m, n, lam = d.size, lam.size, lam / size
    down, up = np.empty((m, n)), np.empty((m, n))
    for i in range(m):
        entry, square = d[i], e[i - 1] * e[i - 1]
        for k in range(n):
            down[i, k] = next_pivot(entry - lam[k], square, down[i - 1, k] if i > 0 else np.inf)
    least, meeting = np.full(n, np.inf), np.zeros(n)
    for i in range(m - 1, -1, -1):
        entry, square = d[i], e[i] * e[i]
        for k in range(n):
            up[i, k] = next_pivot(entry - lam[k], square, up[i + 1, k] if i + 1 < m else np.inf)
            remains = abs(down[i, k] + up[i, k] - (entry - lam[k]))
            meeting[k] = i if remains < least[k] else meeting[k]
            least[k] = min(remains, least[k])
    Z, norms = up, np.zeros(n)  # a pivot is not needed after its row of vectors
    for i in range(m):
        beside, here = -e[i - 1], float(i)
        for k in range(n):
            z = beside * Z[i - 1, k] / up[i, k] if i > 0 else 0.0
            Z[i, k] = 1.0 if meeting[k] == here else z if meeting[k] < here else 0.0
    for i in range(m - 1, -1, -1):
        beside, here = -e[i], float(i)
        for k in range(n):
            z = beside * Z[i + 1, k] / down[i, k] if i + 1 < m else 0.0
            Z[i, k] = z if meeting[k] > here else Z[i, k]
            norms[k] += Z[i, k] * Z[i, k]
    V, errors = np.empty((n, m)), np.zeros(n)
    for k in range(n):
        norms[k] = np.sqrt(norms[k])
    for i in range(m):
        before, after = max(i - 1, 0), min(i + 1, m - 1)
        left, entry, right = e[i - 1], d[i], e[i]  # e ends with 0
        for k in range(n):
            error = abs((entry - lam[k]) * Z[i, k] + left * Z[before, k] + right * Z[after, k])
            errors[k] = error if error > errors[k] else errors[k]
            V[k, i] = Z[i, k] / norms[k]
    found = True
    for k in range(n):
        found = found and errors[k] <= ROUNDING * (m + 10) * norms[k]
    return V, found


@register_jitable
def scaled(d: np.ndarray, e: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """A power of 2, and the matrix divided by it, which rounds nothing: the largest entry is then from 0.5 to 2."""
    size, e = 0.0, e.copy()
    e[-1:] = 0.0
    for i in range(d.size):
        size = max(size, abs(d[i]), abs(e[i]))
    power = math.ldexp(1.0, min(math.frexp(size)[1], 1023)) if size > 0.0 else 1.0
    return power, d / power, e / power


@register_jitable
def next_pivot(entry: float, square: float, pivot: float) -> float:
    """The pivot of a row with this entry on the diagonal and the square of the one beside it, from the pivot of the row before."""
    remains = entry - square / pivot
    return -SMALL if abs(remains) < SMALL else remains


@register_jitable
def count_smaller(d: np.ndarray, e: np.ndarray, shifts: np.ndarray, pivots: np.ndarray, smaller: np.ndarray) -> None:
    """How many eigenvalues are smaller than each of the shifts: as many as there are negative pivots. Mutates the last two."""
    for k in range(shifts.size):
        pivots[k], smaller[k] = np.inf, 0.0
    for i in range(d.size):
        entry, square = d[i], e[i - 1] * e[i - 1]
        for k in range(shifts.size):
            pivots[k] = next_pivot(entry - shifts[k], square, pivots[k])
            smaller[k] += 1.0 if pivots[k] < 0.0 else 0.0


@register_jitable
def orthonormalise(V: np.ndarray, strips: bool) -> bool:
    """Make rows of norm 1 orthogonal too; False if some are too near each other. Mutates V."""
    if len(V) == 0:
        return True
    G = products_of_rows(V)
    for i in range(len(G)):
        for j in range(i + 1, len(G)):
            if not abs(G[i, j]) < NEAR:
                return False
    if not cholesky(G, strips):
        return False
    solve_rows(G, V, strips)
    return True
