"""How far outside of all training values a number contradicts them: a column in another unit, a misplaced decimal point."""

from __future__ import annotations

import numpy as np

__all__ = ["limits"]

REACH = 1.0
"""Numbers farther than this many ranges of the training values beyond the smallest or largest of them contradict training. Of new rows like
200 training rows, fewer than 1 in 10,000 are so far out, be they normal, exponential, log-normal or Laplacian."""

FEW_ROWS = 20
"""A range of n values underestimates what is normal: ranges of few values reach 1 + FEW_ROWS / n times as far."""


def limits(values: np.ndarray) -> np.ndarray:
    """The smallest and the largest number of each column that training does not contradict (2 × columns); NaN is missing.

    They are ``REACH`` ranges beyond the training values: of the logarithms where all values are positive, of the values elsewhere. A
    column in another unit is thus recognised whether its values are 1,000 times larger or 1,000 times smaller. A side has no limit
    if training's own extreme value there would contradict all others.
    """
    ordered = np.sort(values, axis=0)  # NaN comes last
    with np.errstate(all="ignore"):  # a limit that overflows is infinite
        return np.array([_of_column(column[~np.isnan(column)]) for column in ordered.T]).T


def _of_column(ordered: np.ndarray) -> tuple[float, float]:
    if ordered.size < 2:
        return -np.inf, np.inf
    low, high = _beyond(ordered)
    if ordered[0] <= 0.0:
        return low, high
    small, large = np.exp(_beyond(np.log(ordered)))
    gaps = np.diff(ordered)
    resolution = gaps[gaps > 0].min(initial=np.inf)  # numbers are rounded: 0 may stand for anything below it
    return (small if resolution < small else low), large


def _beyond(ordered: np.ndarray) -> tuple[float, float]:
    """The limits of ascending numbers."""
    reach = REACH * (1.0 + FEW_ROWS / ordered.size)
    smallest, second, before, largest = ordered[[0, 1, -2, -1]]
    low = -np.inf if smallest < second - reach * (largest - second) else smallest - reach * (largest - smallest)
    high = np.inf if largest > before + reach * (before - smallest) else largest + reach * (largest - smallest)
    return low, high
