"""Scores on one scale: minus the logarithm of the share of normal rows that score as high; and how well they tell outliers from these."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score

from ..._core.file_rules import Array, Number, Rule

TIE = 1e-6  # scores that differ by less may be those of equal rows: single precision sums in another order elsewhere
MOST_TIES = 10  # ties beside each other that are one value: crowded scores must not all become one
TAIL = 0.1  # the share of the rows whose excess over the rest measures the tail beyond the highest
HIGHEST_RATE = 0.3  # beyond it more normal rows are lost than outliers are gained, on tables of 50 to 150 rows
HIGHEST_AUROC = 0.999  # beyond it, the made-up outliers are too far away to say anything about real ones; it stands for a rate of 1.4 %


class Evidence(BaseEstimator):
    """-log((rows that score as high + 1) / (n + 1)) by linear interpolation; beyond the highest row it grows with log(1 + excess)."""

    _file_rules: ClassVar[dict[str, Rule]] = {"at_": Array(("t",)), "value_": Array(("t",)), "unit_": Number(positive=True)}

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        return None if sizes["t"] else "at_ is empty"

    def fit(self, held: np.ndarray) -> Self:
        """Sort the scores of rows that their description has not seen."""
        low, high, count, _ = _values(held)
        self.at_, first = np.unique(np.column_stack([low, high]), return_index=True)
        self.value_ = -np.log((_as_high(count) + 1.0) / (len(held) + 1.0)).repeat(2)[first]
        self.unit_ = _tail(held.max(), held)
        return self

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The evidence against each sample; at least 0."""
        return np.interp(scores, self.at_, self.value_, left=0.0) + np.log1p(np.maximum(scores - self.at_[-1], 0.0) / self.unit_)

    def _graph(self, op: Any, scores: Any) -> Any:
        excess = op.Div(op.Max(op.Sub(scores, op.numbers(self.at_[-1])), op.numbers(0.0)), op.numbers(self.unit_))
        return op.Add(op.interpolated(self.at_, self.value_, scores), op.Log(op.Add(excess, op.numbers(1.0))))

    @staticmethod
    def left_out(held: np.ndarray) -> np.ndarray:
        """The evidence against each of the rows by all others: as fitted without it."""
        n = len(held)
        if n == 1:
            return np.zeros(1)
        start, end, count, place = _values(held)
        as_high, alone = _as_high(count), count == 1
        value = -np.log(as_high / n)  # where others score the same: one row fewer is as high, and there is one row fewer
        low, high = value[:-2], -np.log((as_high[2:] + 1.0) / n)
        between = low + (high - low) * (start[1:-1] - end[:-2]) / (start[2:] - end[:-2])
        found = value.copy()
        found[1:-1] = np.where(alone[1:-1], between, value[1:-1])
        if alone[-1]:
            others = np.delete(held, held.argmax())
            found[-1] = value[-2] + np.log1p((start[-1] - end[-2]) / _tail(others.max(), others)) if len(start) > 1 else 0.0
        return found[place]


def _values(held: np.ndarray) -> tuple[np.ndarray, ...]:
    """The values of rows in ascending order: the ends of each, how many rows have it, and the number of each row's value.

    Scores that differ by less than TIE are one value, which is a bit wider than they are: what equal rows get elsewhere is inside.
    """
    at, place, count = np.unique(held, return_inverse=True, return_counts=True)
    first, tie = [0], TIE * np.maximum(1.0, np.abs(at))
    for i in range(1, len(at)):
        if at[i] - at[i - 1] > tie[i] or at[i] - at[first[-1]] > MOST_TIES * tie[i]:
            first.append(i)
    count = np.add.reduceat(count, first)
    low, high = at[first], at[np.array([*first[1:], len(at)]) - 1]
    beside, room = np.where(count > 1, tie[first], 0.0), (low[1:] - high[:-1]) / 3.0
    low[1:] -= np.minimum(beside[1:], room)
    high += np.minimum(beside, np.append(room, np.inf))
    return low, high, count, (np.searchsorted(first, np.arange(len(at)), side="right") - 1)[place]


def _as_high(count: np.ndarray) -> np.ndarray:
    """How many rows score at least as high as each value, from the rows that have each."""
    return np.cumsum(count[::-1])[::-1]


def _tail(highest: float, held: np.ndarray) -> float:
    """The unit beyond the highest row: its excess over all but a tenth of the rows."""
    excess = highest - np.quantile(held, 1.0 - TAIL)
    return float(excess) if excess > 0 else float(np.abs(highest) or 1.0)


def auroc(held: np.ndarray, outliers: np.ndarray) -> float:
    """The AUROC of scores of outliers against scores of left-out normal rows; higher scores are less normal."""
    return float(roc_auc_score(np.repeat([0, 1], [held.size, outliers.size]), np.concatenate([held, outliers])))


def balanced_rate(aurocs: Sequence[float]) -> float:
    """The rate of equal errors of two normal distributions with one variance and these AUROCs: Phi(-mean(Phi^-1) / sqrt(2))."""
    return min(HIGHEST_RATE, float(norm.cdf(-np.mean(norm.ppf(np.clip(aurocs, 0.5, HIGHEST_AUROC))) / np.sqrt(2.0))))


def standard_error(auc: float, n: int, q: int) -> float:
    """The standard error of an AUROC on n normal samples and q outliers (Hanley and McNeil, 1982)."""
    first, second = auc / (2.0 - auc), 2.0 * auc**2 / (1.0 + auc)
    return float(np.sqrt((auc * (1.0 - auc) + (q - 1) * (first - auc**2) + (n - 1) * (second - auc**2)) / (n * q)))
