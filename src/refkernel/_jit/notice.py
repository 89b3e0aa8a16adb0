"""One line when compiling takes long, so that nobody wonders why a first call takes seconds."""

from __future__ import annotations

import gc
import logging
import sys
import threading
import time
from typing import Any

NOTICE_AFTER = 1.0
"""Seconds of compiling in a process before the line appears."""

NOTICE = "refkernel compiles numerical code for this processor. This takes some seconds, once: later runs find the code in a cache."

log = logging.getLogger("refkernel")


class compiling:
    """A context in which numba compiles. Says so once in a process if it takes long, and holds the garbage collector back.

    The collector would walk through everything that numba builds, again and again, which takes a sixth of the time.
    """

    _seconds, _said = 0.0, False

    def __enter__(self) -> None:
        self._start, self._collects = time.perf_counter(), gc.isenabled()
        gc.disable()
        self._timer = threading.Timer(NOTICE_AFTER - compiling._seconds, self._say)
        self._timer.daemon = True
        if compiling._seconds >= NOTICE_AFTER:
            self._say()
        elif not compiling._said:
            self._timer.start()

    def __exit__(self, *_: Any) -> None:
        self._timer.cancel()
        if self._collects:
            gc.enable()
        compiling._seconds += time.perf_counter() - self._start

    @staticmethod
    def _say() -> None:
        if not compiling._said:
            compiling._said = True
            say(NOTICE)


def say(message: str) -> None:
    """To the log ``refkernel`` where someone listens to it, and otherwise to a person at a terminal or in a notebook."""
    if log.isEnabledFor(logging.INFO):
        log.info(message)
    elif sys.stderr is not None and (sys.stderr.isatty() or hasattr(sys, "ps1")):
        print(message, file=sys.stderr, flush=True)
