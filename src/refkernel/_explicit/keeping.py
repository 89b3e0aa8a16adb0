"""Where features stay between passes: in memory, in a temporary file, or nowhere. Kept features are rounded to single precision."""

from __future__ import annotations

import errno
import shutil
import tempfile
import threading
from typing import Any, Protocol

import numpy as np

FREE_DISK = 1.5
"""Features go to the disk only if it has this many times their size free."""


class Keeping(Protocol):
    """Features by the number of their first row."""

    def put(self, start: int, Phi: np.ndarray, diag: np.ndarray) -> None:
        """Keep the features and squared norms of a block."""

    def get(self, start: int) -> tuple[np.ndarray, np.ndarray] | None:
        """What was kept of a block; None if nothing was."""

    def close(self) -> None:
        """Give back memory and disk."""


class Nowhere:
    """Features are computed again in every pass."""

    def put(self, start: int, Phi: np.ndarray, diag: np.ndarray) -> None:
        pass

    def get(self, start: int) -> None:
        return None

    def close(self) -> None:
        pass


class InMemory:
    """Features in single precision, norms in double. One array for all rows, which the system provides in large pages."""

    def __init__(self, n: int, r: int) -> None:
        self._Phi, self._diag = np.empty((n, r), np.float32), np.empty(n)
        self._parts: dict[int, slice] = {}

    @property
    def nbytes(self) -> int:
        return self._Phi.nbytes + self._diag.nbytes

    def put(self, start: int, Phi: np.ndarray, diag: np.ndarray) -> None:
        part = slice(start, start + len(Phi))
        self._Phi[part], self._diag[part] = Phi, diag
        self._parts[start] = part

    def get(self, start: int) -> tuple[np.ndarray, np.ndarray] | None:
        part = self._parts.get(start)
        return (self._Phi[part], self._diag[part]) if part is not None else None

    def close(self) -> None:
        self._Phi, self._diag = np.empty((0, self._Phi.shape[1]), np.float32), np.empty(0)
        self._parts.clear()


class OnDisk:
    """As ``InMemory``, in a temporary file without a name: it is gone when it is closed, or when the process ends."""

    def __init__(self) -> None:
        self._file: Any = tempfile.TemporaryFile(prefix="refkernel-")  # noqa: SIM115 - closed by ``close``
        self._places: dict[int, tuple[int, tuple[int, int]]] = {}
        self._end, self._lock = 0, threading.Lock()

    def put(self, start: int, Phi: np.ndarray, diag: np.ndarray) -> None:
        with self._lock:
            try:
                self._file.seek(self._end)
                self._file.write(np.ascontiguousarray(Phi, dtype=np.float32).data)
                self._file.write(np.ascontiguousarray(diag, dtype=np.float64).data)
                self._file.flush()
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise
                raise OSError(
                    error.errno,
                    f"The features of {start + len(Phi):,} rows did not fit into the folder for temporary files ({tempfile.gettempdir()}). "
                    "Free some space, set the environment variable TMPDIR to another folder, or raise memory so that they stay in memory",
                ) from error
            self._places[start] = self._end, Phi.shape
            self._end += 4 * Phi.size + 8 * diag.size

    def get(self, start: int) -> tuple[np.ndarray, np.ndarray] | None:
        if start not in self._places:
            return None
        place, shape = self._places[start]
        Phi, diag = np.empty(shape, np.float32), np.empty(shape[0])
        with self._lock:
            self._file.seek(place)
            self._file.readinto(Phi.data.cast("B"))
            self._file.readinto(diag.data.cast("B"))
        return Phi, diag

    def close(self) -> None:
        self._file.close()


def cheapest(n: int, r: int, memory: float) -> Keeping:
    """Memory if ``memory`` (MB) allows it, else the disk if it has room, else nowhere."""
    size = n * (4.0 * r + 8.0)
    if size <= 1e6 * memory:
        return InMemory(n, r)
    try:
        free = shutil.disk_usage(tempfile.gettempdir()).free
        return OnDisk() if free >= FREE_DISK * size else Nowhere()
    except OSError:  # no folder for temporary files, or none that can be written
        return Nowhere()
