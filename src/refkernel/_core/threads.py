"""Threads: one BLAS thread for small matrices, and many rows shared between threads."""

import contextvars
import functools
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from joblib import Parallel, cpu_count, delayed
from threadpoolctl import LibController, ThreadpoolController

T = TypeVar("T")
MOST_THREADS = 8  # memory, not arithmetic, limits a map of many rows: more threads than this do not help


class _OneBlasThread:
    """One BLAS thread, however many threads of ours ask for it at a time.

    Most libraries have one limit for the whole process: the first thread to enter sets it, and the last to leave restores what was found.
    Libraries built on OpenMP have one limit for each thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: dict[int | None, tuple[int, list[Any]]] = {}  # how often entered and what was found, by thread; None: the process

    def __enter__(self) -> None:
        with self._lock:
            for thread in (None, threading.get_ident()):
                entered, found = self._limits.get(thread, (0, []))
                if not entered:
                    found = [(library, library.num_threads) for library in _blas(per_thread=thread is not None)]
                    _set((library, 1) for library, _ in found)
                self._limits[thread] = entered + 1, found

    def __exit__(self, *error: object) -> None:
        with self._lock:
            for thread in (None, threading.get_ident()):
                entered, found = self._limits.pop(thread)
                if entered == 1:
                    _set(found)
                else:
                    self._limits[thread] = entered - 1, found

    def renew_lock(self) -> None:
        """Replace the lock after a fork: the thread that held it does not exist in the child."""
        self._lock = threading.Lock()


def _set(limits: Iterable[tuple[Any, int]]) -> None:
    for library, count in limits:
        if hasattr(library, "clear_controlling_thread"):  # only the thread that set a limit may lift it, but another may leave last
            library.clear_controlling_thread(force=True)
        library.set_num_threads(count)


@functools.cache
def _blas(per_thread: bool) -> list[LibController]:
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in libraries if (getattr(library, "threading_layer", None) == "openmp") == per_thread]


_ONE_BLAS_THREAD = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ONE_BLAS_THREAD.renew_lock)


def one_blas_thread() -> _OneBlasThread:
    """A context in which BLAS uses one thread: small products are faster, and our own threads have the cores to themselves."""
    return _ONE_BLAS_THREAD


def share_rows(work: Callable[[int, int], None], n: int) -> None:
    """As ``in_threads``, for work that calls BLAS: one thread of its own for each of ours."""
    with one_blas_thread():
        in_threads(work, n)


def in_threads(work: Callable[[int, int], None], n: int) -> None:
    """Call ``work(start, stop)`` for parts of range(n), in as many threads as there are cores; this one is the first."""
    threads = min(cpu_count(), MOST_THREADS)
    if threads == 1:
        work(0, n)
        return
    bounds = [k * n // threads for k in range(threads + 1)]
    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(work, *part) for part in itertools.pairwise(bounds[1:])]
        contextvars.Context().run(work, 0, bounds[1])  # with NumPy's default errstate, as in the other threads
        for other in others:
            other.result()


def summed(work: Callable[[Any], Any], parts: Iterable[Any], thread_safe: bool = True) -> Any:
    """The sum of ``work(part)``, added in the order of the parts; as many are worked on at a time as there are cores."""
    threads = min(cpu_count(), MOST_THREADS) if thread_safe else 1
    if threads == 1:
        with one_blas_thread():
            return functools.reduce(_added, map(work, parts), None)
    found: Any = None
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Any]] = deque()
        for part in parts:
            pending.append(pool.submit(work, part))
            if len(pending) > threads:
                found = _added(found, pending.popleft().result())
        for future in pending:
            found = _added(found, future.result())
    return found


def _added(found: Any, part: Any) -> Any:
    return part if found is None else found + part


def in_parallel(work: Callable[..., T], arguments: Iterable[tuple[Any, ...]], n_jobs: int | None) -> Iterable[T]:
    """``work(*a)`` for every a of ``arguments``, by joblib: results as they come, if its backend can return a generator."""
    tasks = itertools.starmap(delayed(work), arguments)
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # the multiprocessing backend only returns them all at the end
        parallel = Parallel(n_jobs=n_jobs)
    return parallel(tasks)
