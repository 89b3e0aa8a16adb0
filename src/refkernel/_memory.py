"""Memory that is freed and needed again at once."""

from __future__ import annotations

import functools

import numpy as np

KEPT = 1 << 20
"""Values of the block below (8 MB): more than the matrices of a search usually take together."""


@functools.cache
def keep_freed_memory() -> None:
    """Let freed matrices stay with the process, once for each process.

    glibc returns freed memory to the system at once, and every new matrix then begins with page faults, until a process has freed a
    block as large as what it frees later. (It keeps up to twice the largest block that was freed, 64 MB at most.) Without this, a fifth
    of the time of some searches went into page faults. Other C libraries are not affected.
    """
    np.empty(KEPT)
