"""One line when compiling takes long: nobody should wonder why a first call takes seconds."""

from __future__ import annotations

import gc
import logging
import sys
import threading
import time
from typing import Any

NOTICE_AFTER = 1.0
"""Seconds of compiling, in one process, before the line appears."""

NOTICE = "Compiling numerical code for this processor. This takes some seconds, once: later runs find it in a cache."

logger = logging.getLogger("refkernel")


class compiling:
    """A context in which numba compiles: keeps time, says so once if it takes long, and holds the garbage collector back.

    The collector would go through everything that numba builds again and again, which takes a sixth of the time.
    """

    seconds = 0.0
    _said = False

    def __enter__(self) -> None:
        self._start, self._collected = time.perf_counter(), gc.isenabled()
        gc.disable()
        self._timer = threading.Timer(max(NOTICE_AFTER - compiling.seconds, 0.0), _say)
        self._timer.daemon = True
        if not compiling._said:
            self._timer.start()

    def __exit__(self, *_: Any) -> None:
        self._timer.cancel()
        if self._collected:
            gc.enable()
        compiling.seconds += time.perf_counter() - self._start


def _say() -> None:
    """To the log where someone listens; otherwise to a person at a terminal or in a notebook."""
    if compiling._said:
        return
    compiling._said = True
    if logger.isEnabledFor(logging.INFO):
        logger.info(NOTICE)
    elif sys.stderr is not None and (sys.stderr.isatty() or hasattr(sys, "ps1")):
        print(f"refkernel: {NOTICE}", file=sys.stderr, flush=True)
