"""A progress bar in terminals and notebooks, and where the time goes."""

import sys
import time
import warnings
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def progress(results: Iterable[T], total: int, verbose: int, desc: str = "folds") -> Iterable[T]:
    """The results as they come, with a progress bar in a terminal or a notebook."""
    if not verbose or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return results
    try:
        from tqdm.auto import tqdm
    except ImportError:
        warnings.warn("The progress bar needs tqdm: pip install refkernel[progress].", UserWarning, stacklevel=4)
        return results
    return tqdm(results, total=total, desc=desc, unit="task")


class Clock:
    """A stopwatch: each lap adds the time since the last one to the seconds of a stage."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> float:
        """Add the time since the last lap to ``stage``, and return it."""
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        self.stages[stage] = self.stages.get(stage, 0.0) + seconds
        return seconds
