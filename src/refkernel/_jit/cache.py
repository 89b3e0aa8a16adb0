"""Compiled code on disk: a cache that never makes an import fail and never serves stale code.

numba keys the compiled code of a function on its own file, although functions of other files are compiled into it. Here the key
covers every jitted file of the package. If nothing can be cached, functions are compiled in memory, with one warning.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache

DIGITS = 16
"""Hexadecimal digits of the sources' hash in a file name: 64 bits tell all versions of a package apart."""


def cache_of(function: Callable[..., Any]) -> FunctionCache | NullCache:
    """Where the compiled code of a function is kept."""
    try:
        return _Cache(function)
    except RuntimeError as error:  # neither the package's folder nor the user's can be written
        return _InMemory(error)


class _Files(CompileResultCacheImpl):
    """Adds to a file name the state of all jitted sources, and whether bounds are checked, which numba ignores."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        checked = "-checked" if getattr(numba.config, "BOUNDSCHECK", None) else ""
        return f"{super().get_filename_base(fullname, abiflags)}-{_state_of_sources()}{checked}"


class _Cache(FunctionCache):
    """Functions whose files cannot be read are compiled again; those whose files cannot be written stay in memory."""

    _impl_class = _Files

    def holds_code(self, target_context: Any) -> bool:
        """Whether there is code for this processor, for arguments of any types."""
        try:
            target_context.refresh()
            processor = self._index_key((), target_context.codegen())[1:]
            return any(key[1:] == processor for key in self._cache_file._load_index())
        except Exception:  # see load_overload
            return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file may raise anything, and compiling replaces it
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(error)


class _InMemory(NullCache):
    """No cache; warns with the reason when something is compiled."""

    def __init__(self, error: Exception):
        self._error = error

    def holds_code(self, target_context: Any) -> bool:
        return False

    def save_overload(self, sig: Any, cres: Any) -> None:
        _warn(self._error)


@functools.cache
def _state_of_sources() -> str:
    """A hash of all files of the package that mention njit or numba."""
    sources = (path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py")))
    return hashlib.sha256(b"".join(source for source in sources if b"njit" in source or b"numba" in source)).hexdigest()[:DIGITS]


_warned = False


def _warn(error: Exception) -> None:
    """Once in a process."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"Compiled code cannot be cached ({error}): every process compiles it again, which takes several seconds. "
            "Set the environment variable NUMBA_CACHE_DIR to a folder that can be written.",
            RuntimeWarning,
            stacklevel=2,
        )
