"""Scores of different descriptions on one scale: minus the logarithm of the share of normal rows that score as high."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from ..._core.file_rules import Array, Number, Rule

TAIL = 0.1  # the share of the rows whose excess over the rest measures the tail beyond the highest


class Evidence(BaseEstimator):
    """-log((rows that score as high + 1) / (n + 1)) by linear interpolation; beyond the highest row it grows with log(1 + excess)."""

    _file_rules: ClassVar[dict[str, Rule]] = {"at_": Array(("t",)), "value_": Array(("t",)), "unit_": Number(positive=True)}

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        return None if sizes["t"] else "at_ is empty"

    def fit(self, held: np.ndarray) -> Self:
        """Sort the scores of rows that their description has not seen."""
        n = len(held)
        self.at_, count = np.unique(held, return_counts=True)
        self.value_ = -np.log((_as_high(count) + 1.0) / (n + 1.0))
        self.unit_ = _tail(self.at_[-1], held)
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
        at, place, count = np.unique(held, return_inverse=True, return_counts=True)
        as_high, alone = _as_high(count), count == 1
        value = -np.log(as_high / n)  # where others score the same: one row fewer is as high, and there is one row fewer
        low, high = value[:-2], -np.log((as_high[2:] + 1.0) / n)
        between = low + (high - low) * (at[1:-1] - at[:-2]) / (at[2:] - at[:-2])
        found = value.copy()
        found[1:-1] = np.where(alone[1:-1], between, value[1:-1])
        if alone[-1]:
            others = np.delete(held, held.argmax())
            found[-1] = value[-2] + np.log1p((at[-1] - at[-2]) / _tail(at[-2], others)) if len(at) > 1 else 0.0
        return found[place]


def _as_high(count: np.ndarray) -> np.ndarray:
    """How many rows score at least as high as each value, from the rows that have each."""
    return np.cumsum(count[::-1])[::-1]


def _tail(highest: float, held: np.ndarray) -> float:
    """The unit beyond the highest row: its excess over all but a tenth of the rows."""
    excess = highest - np.quantile(held, 1.0 - TAIL)
    return float(excess) if excess > 0 else float(np.abs(highest) or 1.0)
