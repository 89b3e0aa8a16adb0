"""Cholesky factors and triangular solves, for a few hundred rows.

OpenBLAS multiplies small matrices on AVX-512 at twice the speed of its own ``dpotrf`` and ``dtrsm``. Where it does, both are a loop over
strips of a few rows: a product for what earlier strips contribute, and the strip's own triangle. Elsewhere LAPACK and BLAS are faster.
For m = 50 to 200 references, strips take 0.5 to 0.6 of the time.
"""

from __future__ import annotations

import numpy as np

from .._jit import LOOP, njit
from .._jit.lapack import MINUS, NO, ONE, TRANSPOSED, blas_solve_rows, dgemm, lapack_cholesky
from .._jit.products import add_multiple, divide

STRIP = 8
"""Rows in a strip: as many as the widest vector registers hold values."""

MOST = 512
"""The largest triangle that strips factorise faster: the products of larger ones are no longer small."""


@njit(interpreted=LOOP)
def cholesky(M: np.ndarray, strips: bool) -> bool:
    """Replace the upper triangle of M by U with U'U = M; False if M is not positive definite. Mutates M."""
    m = len(M)
    if not strips or m > MOST:
        return lapack_cholesky(M)
    entries, at = M.reshape(-1), np.array((m, 0, 0, 0), np.int32)
    for begin in range(0, m, STRIP):
        end = min(begin + STRIP, m)
        if begin > 0:  # M[begin:end, begin:] -= U[:begin, begin:end]' U[:begin, begin:]
            at[1], at[2], at[3] = m - begin, end - begin, begin
            above, strip = entries[begin:].ctypes, entries[begin * m + begin :].ctypes
            sizes = at[1:].ctypes, at[2:].ctypes, at[3:].ctypes
            dgemm(NO.ctypes, TRANSPOSED.ctypes, *sizes, MINUS.ctypes, above, at.ctypes, above, at.ctypes, ONE.ctypes, strip, at.ctypes)
        for k in range(begin, end):
            row = M[k, k:]
            for j in range(begin, k):
                add_multiple(row, -M[j, k], M[j, k:])
            if not row[0] > 0.0:
                return False
            divide(row, np.sqrt(row[0]))
    return True


@njit(interpreted=LOOP)
def solve_rows(U: np.ndarray, Z: np.ndarray, strips: bool) -> None:
    """Replace Z by ZU^-1 for U in the upper triangle of an array, where Z is given by its columns (m × n). Mutates Z."""
    m, n = Z.shape
    if n == 0:
        return
    if not strips or m > MOST:
        blas_solve_rows(U, Z)
        return
    entries, at = U.reshape(-1), np.array((m, n, 0, 0), np.int32)
    for begin in range(0, m, STRIP):
        end = min(begin + STRIP, m)
        if begin > 0:  # Z[begin:end] -= U[:begin, begin:end]' Z[:begin]
            at[2], at[3] = end - begin, begin
            above, strip, wide = entries[begin:].ctypes, Z[begin:].ctypes, at[1:].ctypes
            dgemm(
                NO.ctypes, TRANSPOSED.ctypes, wide, at[2:].ctypes, at[3:].ctypes, MINUS.ctypes, Z.ctypes, wide, above, at.ctypes,
                ONE.ctypes, strip, wide,
            )  # fmt: skip
        for k in range(begin, end):
            row = Z[k]
            for j in range(begin, k):
                add_multiple(row, -U[j, k], Z[j])
            divide(row, U[k, k])
