"""Paired comparisons of methods over tasks: Wilcoxon's test, Holm's correction, average ranks and the critical difference.

Tables of means have tasks in rows and methods in columns.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from ..drift import holm as corrected_by_holm

LEVEL = 0.05
"""The level of every test."""
ZERO = 1e-9
"""Task means that differ by less differ by rounding only."""
TIE_DECIMALS = 9
"""Decimals to which differences and means are compared, for the same reason."""

Name = TypeVar("Name", bound=Hashable)


def differences(one: pd.Series, other: pd.Series) -> np.ndarray:
    """one - other on the tasks that both have; 0 where they differ by rounding only."""
    d = (one - other).dropna().to_numpy()
    return np.where(np.abs(d) < ZERO, 0.0, d)


def paired_p(d: np.ndarray, alternative: str = "two-sided") -> float:
    """The exact p value of Wilcoxon's signed-rank test that differences d are symmetric about 0; zeros are left out.

    The distribution of the rank sum over all 2^n signs is a product of polynomials, with ties too. (SciPy's permutation of
    tied ranks takes seconds for a dozen tasks, and its older versions approximate.)
    """
    d = np.round(d[np.abs(d) >= ZERO], TIE_DECIMALS)
    halves = np.rint(2 * rankdata(np.abs(d))).astype(int)  # tied ranks are multiples of a half
    share = np.ones(1)
    for rank in halves:
        share = (np.append(share, np.zeros(rank)) + np.append(np.zeros(rank), share)) / 2
    positive = int(halves[d > 0].sum())
    greater, less = float(share[positive:].sum()), float(share[: positive + 1].sum())
    return min(1.0, {"greater": greater, "less": less, "two-sided": 2 * min(greater, less)}[alternative])


def holm(p: dict[Name, float]) -> dict[Name, float]:
    """Holm's step-down correction of p values."""
    return dict(zip(p, corrected_by_holm(list(p.values())), strict=True))


@dataclass(frozen=True)
class Comparison:
    """A method against another over tasks: its average, the mean difference, wins, losses, p, and p corrected by Holm's rule."""

    method: Any
    average: float
    mean: float
    wins: int
    losses: int
    p: float
    corrected: float


def compare_with(means: pd.DataFrame, other: Any) -> list[Comparison]:
    """Every other column of a table against the column ``other``, the best first; empty if the table has no such column."""
    if other not in means:
        return []
    d = {m: differences(means[m], means[other]) for m in means if m != other}
    p = {m: paired_p(values) for m, values in d.items()}
    corrected = holm(p)
    found = [Comparison(m, means[m].mean(), v.mean(), int((v > 0).sum()), int((v < 0).sum()), p[m], corrected[m]) for m, v in d.items()]
    return sorted(found, key=lambda c: -c.mean)


@dataclass(frozen=True)
class RankComparison:
    """Average ranks (1 is best) of methods over tasks, Nemenyi's critical difference, the p value of Friedman's test.

    groups: the longest runs of methods, in the order of their ranks, that span less than the critical difference.
    """

    ranks: pd.Series
    tasks: int
    critical_difference: float
    p: float
    groups: tuple[tuple[str, ...], ...]


def compare_ranks(means: pd.DataFrame) -> RankComparison | None:
    """Rank the methods by the tasks that all of them have; None for fewer than three methods or two tasks."""
    means = means.dropna().round(TIE_DECIMALS)
    tasks, methods = means.shape
    if tasks < 2 or methods < 3:
        return None
    ranks = means.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    cd = critical_difference(methods, tasks)
    varies = bool((means.nunique(axis=1) > 1).any())
    p = float(friedmanchisquare(*means.to_numpy().T).pvalue) if varies else 1.0
    return RankComparison(ranks, tasks, cd, p, groups_within(ranks, cd))


def critical_difference(k: int, n: int) -> float:
    """Nemenyi's critical difference of average ranks for k methods and n tasks: q sqrt(k (k + 1) / (6 n))."""
    q = studentized_range.ppf(1 - LEVEL, k, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * n)))


def groups_within(ranks: pd.Series, cd: float) -> tuple[tuple[str, ...], ...]:
    """Maximal runs of two or more sorted ranks that differ by less than cd."""
    values, names = ranks.to_numpy(), list(ranks.index)
    ends = np.searchsorted(values, values + cd)
    runs = [(i, end) for i, end in enumerate(ends) if end - i > 1 and (i == 0 or end > ends[i - 1])]
    return tuple(tuple(names[i:end]) for i, end in runs)
