"""Rows in blocks of one fixed size, so that a row's result does not depend on the other rows.

BLAS chooses the order of its sums by the shape of a product: every block is padded to the same number of rows, and BLAS uses one thread. It
also takes 16 or 24 rows at a time and sums what is left in another way: blocks are multiples of both.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .threads import one_blas_thread, share_rows

BLOCK_ENTRIES = 1 << 16  # values computed at a time: half a MB, so that inputs and results fit into the cache
ROWS_OF_BLAS = 48  # blocks are a multiple of this
FEWEST_ROWS, MOST_ROWS = ROWS_OF_BLAS, 11 * ROWS_OF_BLAS  # fewer waste the fixed cost of a call, more make a single row expensive
MANY_ENTRIES = 1 << 21  # with at least this many values (about 10 ms of work), rows are shared between threads


def in_blocks(make: Callable[[int], Callable[[Any], Any]], X: Any, out: np.ndarray, columns: int, thread_safe: bool = True) -> np.ndarray:
    """Fill ``out`` with ``make(rows)(block)`` for blocks of that many rows of X, the last one padded, and return it.

    ``make`` is called once in each thread, and its function may reuse buffers. ``columns`` is the number of values computed for each row. A
    function that is not ``thread_safe`` is a user's: it gets the rows without padding, in one thread.
    """

    step = min(max(BLOCK_ENTRIES // max(1, columns) // ROWS_OF_BLAS * ROWS_OF_BLAS, FEWEST_ROWS), MOST_ROWS)

    def fill(start: int, stop: int) -> None:
        function = make(step)
        for i in range(start, stop, step):
            end = min(i + step, stop)
            block = X[i:end]
            if thread_safe and end < i + step:
                block = X[np.minimum(np.arange(i, i + step), stop - 1)]  # repeat the last row until the block is full
            out[i:end] = function(block)[: end - i]

    if thread_safe and X.shape[0] * columns >= MANY_ENTRIES:
        share_rows(fill, X.shape[0])
    else:
        with one_blas_thread():
            fill(0, X.shape[0])
    return out


def times(Phi: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Phi @ w, the value of a row whatever rows are beside it."""
    return in_blocks(lambda rows: lambda block: block @ w, Phi, np.empty(len(Phi)), w.size)
