"""BLAS threads: one where we say so, and as found afterwards, whatever runs at the same time."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import refkernel as rk
from refkernel._core import threads as _threads
from refkernel._core.threads import one_blas_thread


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    """The suite runs with one; here there is something to restore."""
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS cannot have two threads")
        yield


def in_threads(count, work):
    """work(i) in so many threads at once; what they raise is returned."""
    raised = []

    def guarded(i):
        try:
            work(i)
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_the_limit_ends_with_the_last_of_those_who_overlap():
    """The first to enter leaves first, as in a queue: the limit stays until the second leaves, and then all is as found."""
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert blas_threads() == {1}
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == {2}


def test_threads_that_enter_and_leave_in_any_order_leave_blas_as_found():
    """Each waits inside until all are in, and leaves by an exception or not."""
    inside, seen = threading.Barrier(6), []

    def work(i):
        with one_blas_thread():
            inside.wait(timeout=30)
            seen.append(blas_threads())
            if i % 2:
                raise ValueError(i)

    assert len(in_threads(6, work)) == 3
    assert seen == [{1}] * 6
    assert blas_threads() == {2}


def test_a_limit_inside_a_limit_is_the_same_limit():
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_concurrent_maps_leave_blas_as_found(monkeypatch):
    """Four transforms at once, each with threads of its own: the same features, and the process keeps its BLAS threads."""
    monkeypatch.setattr(_threads, "cpu_count", lambda: 2)
    monkeypatch.setattr("refkernel._core.blocks.MANY_ENTRIES", 1)
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    fitted = rk.ReferenceMap(references=X[:50]).fit(X[:100])
    expected, found = fitted.transform(X), {}
    for _ in range(3):
        assert in_threads(4, lambda i: found.update({i: fitted.transform(X)})) == []
        assert blas_threads() == {2}
    for features in found.values():
        np.testing.assert_array_equal(features, expected)
