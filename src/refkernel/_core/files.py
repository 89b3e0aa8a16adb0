"""Files that are written whole or not at all.

A new version takes the place of the old one in a single step, from a temporary name in the same folder. If anything goes wrong, the old
file stays and the temporary one is removed: by the next run for the same file, if the process was killed.
"""

import errno
import os
import shutil
import time
import uuid
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..exceptions import ResultsError
from .types import StrPath

ABANDONED = 3600.0  # seconds after which a temporary file that nobody writes to is what a killed process left
HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)  # error codes that mean that another process holds the lock

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
def replacing(path: StrPath, what: str = "The file") -> Iterator[Path]:
    """Yield a temporary path in the same folder; when the block ends, the file there is flushed to disk and replaces ``path``.

    Create the file inside the block, and close it there. An error about this file names ``path`` and begins with ``what``; all others pass
    through unchanged. A symbolic link is followed, not replaced.
    """
    goal = Path(os.path.realpath(path))
    own = f".{zlib.crc32(goal.name.encode(errors='surrogateescape')):08x}"  # names that are as long as they may be leave no room for more
    temporary = goal.parent / f"{own}-{uuid.uuid4().hex}.part"
    with suppress(OSError):
        for part in goal.parent.glob(f"{own}-*.part"):
            if time.time() - part.stat().st_mtime > ABANDONED:
                part.unlink()
    try:
        with naming(path, what, temporary):
            if goal.exists() and not goal.is_file():
                code = errno.EISDIR if goal.is_dir() else errno.EINVAL
                raise OSError(code, "it would replace a folder" if goal.is_dir() else "it would replace a device or a pipe")
            yield temporary
            with open(temporary, "r+b") as file:
                os.fsync(file.fileno())
            if goal.exists():
                shutil.copymode(goal, temporary)
            os.replace(temporary, goal)
    finally:
        with suppress(OSError):  # it has moved, or was never made
            temporary.unlink()


def write_bytes(path: StrPath, data: Any, what: str = "The file") -> Path:
    """Write ``data`` (bytes or a buffer) to ``path``, whole or not at all, and return the path."""
    with replacing(path, what) as temporary, open(temporary, "xb") as file:
        file.write(data)
    return Path(path)


def write_text(path: StrPath, text: str, what: str = "The file") -> Path:
    """Write ``text`` as UTF-8, line ends as they are."""
    return write_bytes(path, text.encode(), what)


def append_text(path: StrPath, text: str, what: str = "The file") -> None:
    """Append ``text`` as UTF-8, all of it or nothing."""
    rest = memoryview(text.encode())
    with naming(path, what), open(path, "ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        try:
            while rest:  # a nearly full disk may take a part and refuse the rest
                rest = rest[file.write(rest) :]
        except BaseException:
            with suppress(OSError):  # the first error says more
                file.truncate(end)
            raise


@contextmanager
def naming(path: StrPath, what: str, temporary: Path | None = None) -> Iterator[None]:
    """Name ``path`` in system errors that do not name a file (such as a full disk) or that name the temporary one."""
    try:
        yield
    except OSError as error:
        of_another = error.filename is not None and os.fspath(error.filename) not in (os.fspath(path), str(temporary))
        if error.errno is None or of_another:
            raise
        raise OSError(error.errno, f"{what} was not written: {error.strerror}", os.fspath(path)) from error


@contextmanager
def only_writer(folder: Path, name: str, way_out: str = "Name another folder") -> Iterator[None]:
    """Lock a folder while the block runs, or raise ResultsError if another run holds it. The file stays: others may have it open."""
    path = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be written: {error}. {way_out}.") from error
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        try:
            _lock(descriptor)
        except OSError as error:
            if error.errno in HELD:
                number = path.read_text(encoding="ascii", errors="replace").strip()
                holder = f" (pid {number})" if number.isdigit() else ""  # it may not have written its number yet
                raise ResultsError(f"Another process{holder} is writing into {folder}. Wait for it to finish. {way_out}.") from error
            warnings.warn(f"{folder} cannot be locked ({error}): make sure that no other process writes into it.", stacklevel=3)
        file.seek(0)
        file.write(f"{os.getpid():<20}\n".encode())  # padded, so that it covers an older number
        yield
