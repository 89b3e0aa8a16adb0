"""Threads: one BLAS thread where matrices are small, and rows shared between threads where there are many."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

MOST_THREADS = 8
"""Memory, not arithmetic, limits a map of many rows: more threads than this do not help."""


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread():
    """A context in which BLAS uses one thread: small products are faster so, and threads of ours have the cores to themselves."""
    return _controller().limit(limits=1, user_api="blas")


def share_rows(work: Callable[[int, int], None], n: int) -> None:
    """Call ``work(start, stop)`` for parts of range(n), in as many threads as there are cores."""
    threads = min(cpu_count(), MOST_THREADS)
    if threads == 1:
        work(0, n)
        return
    bounds = [k * n // threads for k in range(threads + 1)]
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, bounds[:-1], bounds[1:]))
