"""Where the time goes."""

from __future__ import annotations

import time


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
