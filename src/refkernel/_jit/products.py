"""Matrix products with the same bits in interpreted code and in what njit compiles: both call SciPy's BLAS."""

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
