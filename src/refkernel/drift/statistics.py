"""Tests that two sets of rows come from one distribution, from counts alone, and Holm's correction for many tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import kolmogorov
from scipy.stats import chi2_contingency, fisher_exact

__all__ = ["holm", "kolmogorov_smirnov", "same_levels", "same_share", "two_tests"]

FEWEST_EXPECTED = 5.0
"""A chi-square test needs about this many expected rows in every cell (Cochran, 1954)."""


def kolmogorov_smirnov(
    below: np.ndarray, at_most: np.ndarray, n: int, new_below: np.ndarray, new_at_most: np.ndarray, m: int
) -> tuple[float, float]:
    """(D, p): the largest difference of two distribution functions at some knots, and how likely one as large is by chance.

    Differences between the knots are not seen. D can only be too small by this, and p too large: the test is never too eager. Ties have
    the same effect.
    """
    if n == 0 or m == 0:
        return 0.0, 1.0
    D = max(np.abs(at_most / n - new_at_most / m).max(), np.abs(below / n - new_below / m).max())
    root = np.sqrt(n * m / (n + m))
    return float(D), float(kolmogorov((root + 0.12 + 0.11 / root) * D))  # Stephens' (1970) correction for small samples


def same_levels(old: np.ndarray, new: np.ndarray) -> float:
    """The p-value of a chi-square test that levels are as frequent among new rows as among old ones; rare levels count as one."""
    table = np.array([old, new], dtype=np.float64)
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return 1.0
    if table.shape[1] == 2:
        return same_share(*map(int, table.T.ravel()))
    table = _pooled(table)
    return float(chi2_contingency(table, correction=False).pvalue) if table.shape[1] > 1 else 1.0


def _pooled(table: np.ndarray) -> np.ndarray:
    """The levels that a chi-square test can take, and all others as one, joined to the rarest of the former where they are too few."""
    expected = table.sum(axis=0) * table.sum(axis=1).min() / table.sum()
    kept, rest = table[:, expected >= FEWEST_EXPECTED], expected[expected < FEWEST_EXPECTED].sum()
    others = table[:, expected < FEWEST_EXPECTED].sum(axis=1, keepdims=True)
    if rest >= FEWEST_EXPECTED:
        return np.hstack([kept, others])
    if kept.shape[1]:
        kept[:, [np.argmin(kept.sum(axis=0))]] += others
    return kept


def same_share(old: int, new: int, old_rest: int, new_rest: int) -> float:
    """The p-value of Fisher's exact test that a share is the same among old and new rows."""
    return float(min(1.0, fisher_exact([[old, new], [old_rest, new_rest]]).pvalue))


def two_tests(first: float, second: float) -> float:
    """One p-value for two tests of one column (Bonferroni)."""
    return min(1.0, 2.0 * min(first, second))


def holm(p: Sequence[float]) -> list[float]:
    """The p-values of several tests, corrected for their number by Holm's step-down rule (1979)."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty(values.size)
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, values[order] * np.arange(values.size, 0, -1)))
    return corrected.tolist()
