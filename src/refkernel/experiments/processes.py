"""Work shared between processes, of which the one that asks is the first."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from joblib import effective_n_jobs
from joblib.executor import get_memmapping_executor  # the pool that joblib reuses too: loky's own would break Parallel afterwards
from threadpoolctl import threadpool_limits

A = TypeVar("A")
T = TypeVar("T")

AHEAD = 2
"""Items that wait for each of the other processes, so that it goes on while this one is in the middle of an item."""

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""What libraries read when another process imports them: the processes share the cores between them."""


def in_processes(work: Callable[[A], T], items: Iterable[A], jobs: int = 1) -> Iterator[T]:
    """``work(item)`` for every item, in their order, by ``jobs`` processes (-1: one for each core) with one thread each.

    This process works too, from the first moment: the others take a second or two to import what they need.
    """
    others = effective_n_jobs(jobs) - 1
    if others == 0:
        yield from map(work, items)
        return
    left, results = iter(items), deque[Future[Any]]()
    executor = get_memmapping_executor(others, env=ONE_THREAD)
    try:
        with threadpool_limits(1):
            for item in left:
                own: Future[Any] = Future()
                results.append(own)
                busy = sum(not result.done() for result in results) - 1
                results.extend(executor.submit(work, item) for item in itertools.islice(left, max((1 + AHEAD) * others - busy, 0)))
                own.set_result(work(item))
                while results and results[0].done():
                    yield results.popleft().result()
            while results:
                yield results.popleft().result()
    finally:
        for result in results:
            result.cancel()
