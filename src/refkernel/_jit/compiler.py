"""The decorator, and the choice between interpreting a call and compiling it."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeVar

import numba
import numpy as np

from .cache import cache_of
from .notice import compiling

T = TypeVar("T")

patience = 1.0
"""A factor of all limits in seconds. With 0 nothing is interpreted."""


class Interpreted(NamedTuple):
    """Calls that are interpreted: those whose arrays have at most so many entries, until they have cost a process some seconds.

    The seconds are about what compiling costs, so that neither choice is ever worse than twice the other.
    """

    entries: float
    seconds: float


LOOP = Interpreted(1 << 16, 0.3)
"""For functions that loop over arrays: up to a kernel matrix of 256 samples."""

DRIVER = Interpreted(np.inf, 2.0)
"""For functions that leave most of such loops to others."""

NEVER = Interpreted(0, 0.0)
"""For functions that give other bits when interpreted, or take long for any arguments."""

DEFAULTS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
"""Division by 0 gives inf or NaN, as in NumPy: a test of each divisor would forbid vector registers, and takes time to compile."""


def njit(*, interpreted: Interpreted = NEVER, **options: Any) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """``numba.njit`` with these options, cached if a folder can be written.

    Calls are interpreted as ``interpreted`` says, unless compiled code is at hand.
    """

    def compiled(function: Callable[..., T]) -> Callable[..., T]:
        dispatcher: Any = numba.njit(**DEFAULTS | options)(function)
        if dispatcher is not function:  # the same if NUMBA_DISABLE_JIT is set
            dispatcher._cache = cache_of(function)
            dispatcher._compile_for_args = _Missing(dispatcher, interpreted)
        return dispatcher

    return compiled


class _Missing:
    """What a dispatcher asks for a callable if it has no code for the types of its arguments."""

    def __init__(self, dispatcher: Any, interpreted: Interpreted):
        self._dispatcher, self._compile, self._limit = dispatcher, dispatcher._compile_for_args, interpreted
        self._spent = 0.0

    def __call__(self, *args: Any) -> Callable[..., Any]:
        if self._spent < self._limit.seconds * patience and _entries(args) <= self._limit.entries and not self._is_cached:
            return self._interpret
        with _own_time(), compiling():
            return self._compile(*args)

    @functools.cached_property
    def _is_cached(self) -> bool:
        return self._dispatcher._cache.holds_code(self._dispatcher.targetctx)

    def _interpret(self, *args: Any) -> Any:
        """The function's own source; other functions that it calls keep their own time."""
        with _own_time() as own, np.errstate(all="ignore"):  # compiled code does not warn
            result = self._dispatcher.py_func(*args)
        self._spent += own.seconds
        return _plain(result)


def _plain(result: Any) -> Any:
    """Numbers as Python's own, as compiled code returns them."""
    if isinstance(result, tuple):
        values = map(_plain, result)
        return type(result)(*values) if hasattr(result, "_fields") else tuple(values)
    return result.item() if isinstance(result, np.generic) else result


def _entries(args: tuple[Any, ...]) -> int:
    return sum(getattr(a, "size", 1) for a in args)


class _own_time:
    """The processor's time that a block takes, without blocks inside it."""

    _inside = threading.local()

    def __enter__(self) -> Self:
        self._before, self._start = getattr(self._inside, "seconds", 0.0), time.thread_time()
        self._inside.seconds = 0.0
        return self

    def __exit__(self, *_: Any) -> None:
        whole = time.thread_time() - self._start
        self.seconds = whole - self._inside.seconds
        self._inside.seconds = self._before + whole
