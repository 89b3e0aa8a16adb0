"""One writer at a time in a folder.

The operating system holds the lock for the open file, and releases it when the process ends, even by a crash: no lock is ever left over.
The lock file itself stays, because removing it while another process opens it would protect nothing.
"""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..exceptions import ResultsError

LOCK_NAME = ".lock"
ELSEWHERE = "Name another folder with --out"
HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)
"""Error codes that mean that another process holds the lock."""

if os.name == "nt":
    import msvcrt

    LOCKED_BYTE = 2**30
    """Windows does not let others read a locked byte; this one lies beyond the text."""

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Lock a folder, created if necessary, while the block runs; raise ResultsError if another process or run holds the lock."""
    path = folder / LOCK_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be written: {error}. {ELSEWHERE}.") from error
    try:
        _claim(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _claim(descriptor: int, path: Path) -> None:
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno in HELD:
            raise ResultsError(
                f"Another process{_holder(path)} is writing into {path.parent}. Wait for it to finish, or name another folder with --out."
            ) from error
        warnings.warn(f"{path.parent} cannot be locked ({error}): make sure that no other process writes into it.", stacklevel=4)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, f"{os.getpid():<20}\n".encode())  # padded, so that it covers an older number


def _holder(path: Path) -> str:
    """The process that wrote its number into the lock file, in words; nothing if it has not done so yet."""
    number = path.read_text(encoding="ascii", errors="replace").strip()
    return f" (pid {number})" if number.isdigit() else ""
