"""Numbers and outcomes as the page says them."""

from __future__ import annotations

from typing import Any

from ..drift import LEVEL, Drift
from ..tables.wording import counted, named

__all__ = ["cut", "drift_words", "p_text", "percent"]

MOST_TEXT = 200
"""Characters of a cell."""


def drift_words(drift: Drift) -> str:
    """The outcome of the drift tests in a sentence or two."""
    tests = len(drift.columns) + (drift.scores is not None)
    rule = f"({100 * LEVEL:g} % level, corrected for {counted(tests, 'test')})"
    if not drift.drifted:
        columns = f"No column differs from training by more than chance explains {rule}."
    else:
        verb = "differs" if len(drift.drifted) == 1 else "differ"
        columns = f"{len(drift.drifted):,} of {counted(len(drift.columns), 'column')} {verb} from training {rule}: "
        columns += named(column.name for column in drift.drifted) + "."
    if drift.scores is None:
        return columns
    scores = (
        f"differ from those of left-out training rows ({p_text(drift.scores[2])})" if drift.scores_found else "are like those in training"
    )
    return f"{columns} The scores {scores}."


def p_text(p: float) -> str:
    """A p-value as text."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def percent(share: float | None) -> str:
    """A share in percent, with as many digits as it can bear."""
    return "–" if share is None else f"{100 * share:.3g} %"


def cut(cell: Any) -> str:
    """A cell as text; long ones are cut."""
    text = "" if cell is None or cell != cell else str(cell)
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"
