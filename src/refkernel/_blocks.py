"""Rows in blocks of one fixed size, so that a row's answer does not depend on the rows beside it.

BLAS chooses how to sum a product by its shape. A block is therefore always filled up to the same number of rows, and BLAS uses one
thread: every row then meets the same sums in the same order, alone or among a million, whichever thread computes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._threads import one_blas_thread, share_rows

BLOCK_ENTRIES = 1 << 16
"""Values computed at a time: half a MB, which caches hold with what they become."""

FEWEST_ROWS, MOST_ROWS = 32, 512
"""Limits of a block: fewer rows waste the fixed cost of a call, more make a single row expensive."""

MANY_ENTRIES = 1 << 21
"""From this many values, rows are shared between threads: some 10 ms of work."""


def block_rows(columns: int) -> int:
    """The number of rows of every block whose results have this many columns: a multiple of 32."""
    return min(max(BLOCK_ENTRIES // max(1, columns) // 32 * 32, FEWEST_ROWS), MOST_ROWS)


def in_blocks(make: Callable[[int], Callable[[Any], Any]], X: Any, out: np.ndarray, columns: int, thread_safe: bool = True) -> np.ndarray:
    """Fill ``out`` with ``make(rows)(block)`` for blocks of that many rows of X, the last one filled up, and return it.

    ``make`` is called once in each thread; what it returns may reuse its buffers from block to block. ``columns`` is the number of
    values that it computes for a row. What is not ``thread_safe`` is a user's function: it gets the rows as they are, in one thread.
    """
    step = block_rows(columns)

    def fill(start, stop):
        function = make(step)
        for i in range(start, stop, step):
            rows = np.minimum(np.arange(i, i + step), stop - 1)  # the last row again, until the block is full
            block = X[rows] if thread_safe and i + step > stop else X[i : min(i + step, stop)]
            out[i : min(i + step, stop)] = function(block)[: stop - i]

    if thread_safe and X.shape[0] * columns >= MANY_ENTRIES:
        share_rows(fill, X.shape[0])
    else:
        with one_blas_thread():
            fill(0, X.shape[0])
    return out
