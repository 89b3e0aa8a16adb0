"""How validation chooses, and how its choice is scored: the same for every experiment."""

from __future__ import annotations

import numpy as np

from ..metrics import geometric_mean

TIE_DECIMALS = 12
"""Validation scores that agree to this many decimals differ by rounding only."""


def first_best(scores: np.ndarray) -> tuple[int, ...]:
    """The index of the largest mean score; if several tie up to rounding, the first."""
    return tuple(int(i) for i in np.unravel_index(scores.round(TIE_DECIMALS).argmax(), scores.shape))


def score_columns(tpr: float, tnr: float) -> dict[str, float]:
    """The columns of a row that say how the choice did on the test set."""
    return {"gmean": float(geometric_mean(tpr, tnr)), "tpr": float(tpr), "tnr": float(tnr)}
