"""Products and multiples with the same bits in interpreted code and in what njit compiles, fast in both.

Matrix products call SciPy's BLAS; multiples of rows are NumPy's in interpreted code, and loops in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba.extending import overload
from scipy.linalg import blas


def multiply(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    """out = AB, for contiguous arrays. Mutates out."""
    if out.shape[1] == 1:
        out[:, 0] = blas.dgemv(1.0, A.T, B[:, 0], trans=1)  # as numba does
    else:
        blas.dgemm(1.0, B.T, A.T, c=out.T, overwrite_c=1)


@overload(multiply)
def _compiled(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> Callable[..., None]:
    def by_blas(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
        np.dot(A, B, out)

    return by_blas


def add_multiple(row: np.ndarray, factor: float, other: np.ndarray) -> None:
    """row += factor · other. Mutates row."""
    row += factor * other


@overload(add_multiple, inline="always")
def _compiled_sum(row: np.ndarray, factor: float, other: np.ndarray) -> Callable[..., None]:
    def by_loop(row: np.ndarray, factor: float, other: np.ndarray) -> None:
        for i in range(row.size):
            row[i] += factor * other[i]

    return by_loop


def divide(row: np.ndarray, divisor: float) -> None:
    """row /= divisor. Mutates row."""
    row /= divisor


@overload(divide, inline="always")
def _compiled_quotient(row: np.ndarray, divisor: float) -> Callable[..., None]:
    def by_loop(row: np.ndarray, divisor: float) -> None:
        for i in range(row.size):
            row[i] /= divisor

    return by_loop


def shift_and_scale(row: np.ndarray, shift: float, scales: np.ndarray) -> None:
    """row = (row - shift) · scales. Mutates row."""
    row -= shift
    row *= scales


@overload(shift_and_scale, inline="always")
def _compiled_shift(row: np.ndarray, shift: float, scales: np.ndarray) -> Callable[..., None]:
    def by_loop(row: np.ndarray, shift: float, scales: np.ndarray) -> None:
        for i in range(row.size):
            row[i] = (row[i] - shift) * scales[i]

    return by_loop
