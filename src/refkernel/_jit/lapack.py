"""LAPACK and BLAS for jitted functions. Interpreted or compiled, they call the same routines of SciPy's library, with the same bits.

LAPACK stores matrices by columns, and sees an array in C order as its transpose: a matrix "in rows" below is one whose transpose LAPACK
sees. Triangles of symmetric matrices are the upper ones of the array.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import binding
from numba import types
from numba.extending import get_cython_function_address, register_jitable

LOWER, LEFT, NO, RIGHT, TRANSPOSED, VECTORS = (np.frombuffer(bytes([letter]), np.uint8) for letter in b"LLNRTV")
ONE, ZERO, MINUS = np.ones(1), np.zeros(1), -np.ones(1)


class Routine:
    """A routine of LAPACK or BLAS that takes so many pointers. Compiled code knows it by a symbol, and can therefore be cached."""

    def __init__(self, library: str, name: str, pointers: int) -> None:
        address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
        binding.add_symbol(f"refkernel_{name}", address)
        self._numba_type_ = types.ExternalFunction(f"refkernel_{name}", types.void(*pointers * [types.voidptr]))
        self._interpreted: Any = ctypes.CFUNCTYPE(None, *pointers * [ctypes.c_void_p])(address)

    def __call__(self, *pointers: Any) -> None:
        self._interpreted(*pointers)


dpotrf, dsytrd, dormqr = Routine("lapack", "dpotrf", 5), Routine("lapack", "dsytrd", 10), Routine("lapack", "dormqr", 13)
dstevd, dsterf = Routine("lapack", "dstevd", 11), Routine("lapack", "dsterf", 4)
dgemm, dgemv = Routine("blas", "dgemm", 13), Routine("blas", "dgemv", 11)
dsyrk, dtrsm = Routine("blas", "dsyrk", 10), Routine("blas", "dtrsm", 11)


@register_jitable
def lapack_cholesky(M: np.ndarray) -> bool:
    """Replace the upper triangle of M by U with U'U = M; False if M is not positive definite. Mutates M."""
    at = np.array((len(M), 0), np.int32)
    dpotrf(LOWER.ctypes, at.ctypes, M.ctypes, at.ctypes, at[1:].ctypes)
    return at[1] == 0


@register_jitable
def tridiagonalise(K: np.ndarray, d: np.ndarray, e: np.ndarray, tau: np.ndarray, panel: int) -> None:
    """K = QTQ': diagonals d and e of T, Q as reflectors in K and tau, ``panel`` columns at a time. Mutates all of them."""
    m = len(K)
    at, work = np.array((m, panel * m, 0), np.int32), np.empty(panel * m)
    dsytrd(LOWER.ctypes, at.ctypes, K.ctypes, at.ctypes, d.ctypes, e.ctypes, tau.ctypes, work.ctypes, at[1:].ctypes, at[2:].ctypes)


@register_jitable
def turn(reflectors: np.ndarray, tau: np.ndarray, turns: int, V: np.ndarray, panel: int) -> None:
    """Multiply the rows of V by Q, of which the first ``turns`` reflectors act on them. Mutates V."""
    count, m = V.shape
    at = np.array((m - 1, count, turns, m, panel * count + 65 * 64, 0), np.int32)  # 65 · 64: what dormqr takes for itself
    work = np.empty(panel * count + 65 * 64)
    below, C = reflectors.reshape(-1)[1:], V.reshape(-1)[1:]  # Q leaves the first coordinate alone
    dormqr(
        LEFT.ctypes, NO.ctypes, at.ctypes, at[1:].ctypes, at[2:].ctypes, below.ctypes, at[3:].ctypes, tau.ctypes, C.ctypes, at[3:].ctypes,
        work.ctypes, at[4:].ctypes, at[5:].ctypes,
    )  # fmt: skip


@register_jitable
def all_eigenpairs(d: np.ndarray, e: np.ndarray, V: np.ndarray) -> None:
    """Replace d by the eigenvalues of a tridiagonal matrix in ascending order, and V by their eigenvectors, in rows. Mutates e too."""
    n = d.size
    at = np.array((n, V.shape[1], 1 + 4 * n + n * n, 3 + 5 * n, 0), np.int32)
    work, whole = np.empty(at[2]), np.empty(at[3], np.int32)
    dstevd(
        VECTORS.ctypes, at.ctypes, d.ctypes, e.ctypes, V.ctypes, at[1:].ctypes, work.ctypes, at[2:].ctypes, whole.ctypes, at[3:].ctypes,
        at[4:].ctypes,
    )  # fmt: skip


@register_jitable
def eigenvalues(d: np.ndarray, e: np.ndarray) -> None:
    """Replace d by the eigenvalues of a tridiagonal matrix in ascending order. Mutates e too."""
    at = np.array((d.size, 0), np.int32)
    dsterf(at.ctypes, d.ctypes, e.ctypes, at[1:].ctypes)


@register_jitable
def blas_solve_rows(U: np.ndarray, Z: np.ndarray) -> None:
    """Replace Z by ZU^-1 for U in the upper triangle of an array, where Z is given by its columns (m × n). Mutates Z."""
    m, n = Z.shape
    at = np.array((n, m), np.int32)
    dtrsm(
        RIGHT.ctypes, LOWER.ctypes, TRANSPOSED.ctypes, NO.ctypes, at.ctypes, at[1:].ctypes, ONE.ctypes, U.ctypes, at[1:].ctypes, Z.ctypes,
        at.ctypes,
    )  # fmt: skip


@register_jitable
def times_vector(A: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """out = Ax. Mutates out."""
    rows, columns = A.shape
    at = np.array((columns, rows, 1), np.int32)
    one = at[2:].ctypes
    dgemv(TRANSPOSED.ctypes, at.ctypes, at[1:].ctypes, ONE.ctypes, A.ctypes, at.ctypes, x.ctypes, one, ZERO.ctypes, out.ctypes, one)


@register_jitable
def add_outer(size: float, V: np.ndarray, M: np.ndarray) -> None:
    """Add size · V'V to the upper triangle of M. Mutates M."""
    count, m = V.shape
    at, alpha = np.array((m, count), np.int32), np.array((size,))
    dsyrk(LOWER.ctypes, NO.ctypes, at.ctypes, at[1:].ctypes, alpha.ctypes, V.ctypes, at.ctypes, ONE.ctypes, M.ctypes, at.ctypes)


@register_jitable
def products_of_rows(V: np.ndarray) -> np.ndarray:
    """VV', of which only the upper triangle is meant."""
    count, m = V.shape
    at, products = np.array((count, m), np.int32), np.empty((count, count))
    dsyrk(
        LOWER.ctypes, TRANSPOSED.ctypes, at.ctypes, at[1:].ctypes, ONE.ctypes, V.ctypes, at[1:].ctypes, ZERO.ctypes, products.ctypes,
        at.ctypes,
    )  # fmt: skip
    return products


@register_jitable
def project_out(V: np.ndarray, A: np.ndarray) -> None:
    """Take the parts along the orthonormal rows of V out of the rows of A. Mutates A."""
    (count, m), n = V.shape, len(A)
    at, along = np.array((count, n, m), np.int32), np.empty((n, count))
    dgemm(
        TRANSPOSED.ctypes, NO.ctypes, at.ctypes, at[1:].ctypes, at[2:].ctypes, ONE.ctypes, V.ctypes, at[2:].ctypes, A.ctypes,
        at[2:].ctypes, ZERO.ctypes, along.ctypes, at.ctypes,
    )  # fmt: skip
    dgemm(
        NO.ctypes, NO.ctypes, at[2:].ctypes, at[1:].ctypes, at.ctypes, MINUS.ctypes, V.ctypes, at[2:].ctypes, along.ctypes,
        at.ctypes, ONE.ctypes, A.ctypes, at[2:].ctypes,
    )  # fmt: skip
