"""The decorator, and the choice between interpreting a call and compiling it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

from .cache import cache_of
from .notice import compiling

T = TypeVar("T")

SMALL = 1 << 16
"""Array entries up to which a call is interpreted, for functions that loop over them: a kernel matrix of 256 samples."""

ANY = 1 << 62
"""No limit, for functions that leave the loops over arrays to others."""


class Patience:
    """How long calls are interpreted, and have been, in this process, in seconds."""

    limit = 1.0
    spent = 0.0


def njit(*, interpreted: int = 0, **options: Any) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """``numba.njit`` with these options, cached if a folder can be written.

    Calls whose arrays have at most ``interpreted`` entries are interpreted, as long as patience lasts and no compiled code is at hand.
    """

    def compiled(function: Callable[..., T]) -> Callable[..., T]:
        dispatcher: Any = numba.njit(**options)(function)
        if dispatcher is not function:  # the same if NUMBA_DISABLE_JIT is set
            dispatcher._cache = cache_of(function)
            dispatcher._compile_for_args = _Missing(dispatcher, interpreted)
        return dispatcher

    return compiled


class _Missing:
    """What a dispatcher asks for a callable if it has no code for the types of its arguments."""

    def __init__(self, dispatcher: Any, interpreted: int):
        self._dispatcher, self._most, self._compile = dispatcher, interpreted, dispatcher._compile_for_args
        self._not_cached: set[Any] = set()

    def __call__(self, *args: Any) -> Callable[..., Any]:
        if Patience.spent < Patience.limit and sum(getattr(a, "size", 1) for a in args) <= self._most and not self._is_cached(args):
            return self._interpret
        with compiling():
            return self._compile(*args)

    def _is_cached(self, args: tuple[Any, ...]) -> bool:
        types = tuple(map(self._dispatcher.typeof_pyval, args))
        if types in self._not_cached:
            return False
        self._not_cached.add(types)
        return self._dispatcher._cache.holds(types, self._dispatcher.targetctx)

    def _interpret(self, *args: Any) -> Any:
        """The function's own source. What it calls may be compiled meanwhile, which does not count."""
        before, start = Patience.spent, time.perf_counter() - compiling.seconds
        try:
            with np.errstate(all="ignore"):  # compiled code does not warn
                return self._dispatcher.py_func(*args)
        finally:
            Patience.spent = before + (time.perf_counter() - compiling.seconds - start)  # not the sum over nested calls
