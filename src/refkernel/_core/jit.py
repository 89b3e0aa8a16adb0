"""numba's ``njit`` with the options of this package, and a cache that neither damage nor a missing home can break.

numba trusts its cache: a damaged file ends in a traceback or worse. So each file of the cache has a seal beside it, a checksum of its bytes
and of all sources in this folder. Before numba reads the folder, files without a valid seal are removed; they are then compiled again.
"""

import contextlib
import functools
import hashlib
import os
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
T = TypeVar("T")
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False}
"""1 / 0 is inf, as in NumPy: tests of divisors forbid vector registers. An option that is not given is that of the caller which is compiled
first: ``fastmath`` that lets a caller reorder its sums would cancel the terms of a function that rounds by adding a large number.
"""
NOTICE = "refkernel compiles numerical code for this processor. This takes some seconds, once: later runs find the code in a cache."

WITHOUT_CACHE = """Compiled code cannot be cached ({}): every process compiles it again, which takes several seconds. \
Set the environment variable NUMBA_CACHE_DIR to a folder that can be written."""

MOST_TRIES = 40  # a call compiles fewer functions, and each of them may fail to be saved once
_sealed: dict[Path, int] = {}  # files of the cache that are known to be whole, with their times
_folders: set[Path] = set()
_reasons: list[str] = []  # why there is no cache, if there is none
_announced = False


def njit(**options: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """``numba.njit`` with ``OPTIONS``, cached if a folder can be written. Python calls such a function through ``entry``."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        try:
            dispatcher: Any = numba.njit(cache=True, **OPTIONS | options)(function)
        except RuntimeError as error:  # neither the package's folder nor the user's can be written
            _reasons.append(str(error))
            return numba.njit(**OPTIONS | options)(function)
        if dispatcher is not function:  # the same if NUMBA_DISABLE_JIT is set
            _verify(Path(dispatcher.stats.cache_path))
        return dispatcher

    return decorate


def entry(function: Callable[P, T]) -> Callable[P, T]:
    """A jitted function as Python calls it: says so when it compiles, and seals what numba has cached."""
    dispatcher: Any = function
    if not hasattr(dispatcher, "overloads"):
        return function

    @functools.wraps(dispatcher.py_func)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        known = len(dispatcher.overloads)
        if known == 0:
            _announce(dispatcher.__name__)
        result = _tried(function, *args, **kwargs)
        if len(dispatcher.overloads) > known:
            _seal()
        return result

    return call


def _tried(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function returns, although its code may not be saved: numba keeps what it has compiled, so that each try gets farther."""
    for _ in range(MOST_TRIES):
        try:
            return function(*args, **kwargs)
        except OSError as error:
            if not _reasons:
                warnings.warn(WITHOUT_CACHE.format(error), RuntimeWarning, stacklevel=4)
            _reasons.append(str(error))
    return function(*args, **kwargs)


def _announce(name: str) -> None:
    """Say once, to a person at a terminal, that a function will be compiled; warn once if that is so in every process."""
    global _announced
    if _announced or any(any(folder.glob(f"*{name}-*.nbi")) for folder in _folders):
        return
    _announced = True
    if _reasons:
        warnings.warn(WITHOUT_CACHE.format(_reasons[0]), RuntimeWarning, stacklevel=3)
    elif sys.stderr is not None and sys.stderr.isatty():
        print(NOTICE, file=sys.stderr, flush=True)


@functools.cache
def _key() -> Any:
    """The state of a checksum after all sources of this folder (numba looks at a function's own file only) and the checks of bounds."""
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"".join(sources) + os.environ.get("NUMBA_BOUNDSCHECK", "").encode())


def _checksum(path: Path) -> str:
    key = _key().copy()
    with contextlib.suppress(OSError):  # without its bytes, a file that cannot be read has no valid seal
        key.update(path.read_bytes())
    return key.hexdigest()


def _verify(folder: Path) -> None:
    """Remove the files of a folder that are damaged or belong to other sources, once in a process."""
    if folder in _folders:
        return
    _folders.add(folder)
    for path in folder.glob("*.nb[ci]"):
        seal = path.with_name(path.name + ".sha256")
        with contextlib.suppress(OSError):  # another process may remove or replace it at the same time
            time = path.stat().st_mtime_ns
            if seal.is_file() and seal.read_text(encoding="ascii", errors="replace") == _checksum(path):
                _sealed[path] = time
            else:
                path.unlink()


def _seal() -> None:
    """Seal the files that numba has written since the folders were verified."""
    for path in (path for folder in _folders for path in folder.glob("*.nb[ci]")):
        with contextlib.suppress(OSError):  # without a seal, the next process compiles the function again
            time = path.stat().st_mtime_ns
            if _sealed.get(path) != time:
                part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
                part.write_text(_checksum(path), encoding="ascii")
                part.replace(path.with_name(path.name + ".sha256"))
                _sealed[path] = time
