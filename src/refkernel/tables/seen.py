"""How many rows of a table have trained the model: such rows look more normal than new ones, and figures about them flatter the model.

A row is recognised by its score, which does not depend on the rows beside it, nor on how the table is written, sorted or cut. The file of
a model keeps the scores of some training rows that have no equal among the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._encoding import by_rows, rows_at
from ..exceptions import ModelFileError
from ..persistence.description import mismatch

__all__ = ["SeenRows", "kept_scores"]

MOST_KEPT = 1_000

CLOSE = 1e-9
"""Scores that differ by less than this share of the largest are the same: another processor rounds differently."""

FEWEST_ALONE = 0.05
"""If fewer training rows than this share have no equal, and would have none among new rows, nothing can be said."""

PATTERN = {"scores": [float], "rows": int, "alone": int, "twice": int}


def kept_scores(model: Any, X: Any) -> dict[str, Any]:
    """What a model's file keeps about its normal training rows: how many are alone or come twice, and scores of those alone."""
    hashes = np.concatenate([pd.util.hash_pandas_object(part, index=False).to_numpy() for part in by_rows(X)])
    _, equal, count = np.unique(hashes, return_inverse=True, return_counts=True)
    times = count[equal]
    alone = np.flatnonzero(times == 1)
    chosen = alone[:: -(-alone.size // MOST_KEPT) or 1]
    scores = np.sort(model.score_samples(rows_at(X, chosen))) if alone.size else np.empty(0)
    return {"scores": scores.tolist(), "rows": len(X), "alone": int(alone.size), "twice": int((times == 2).sum())}


@dataclass
class SeenRows:
    """Counts, block by block, rows that have trained a model."""

    kept: dict[str, Any] | None
    """What the model's file says; None in files of earlier versions."""
    rows: int = 0
    found: int = 0

    def __post_init__(self) -> None:
        problem = None if self.kept is None else mismatch(self.kept, PATTERN, "seen")
        if problem:
            raise ModelFileError(f"{problem} in the description of the model. The file is damaged or forged.")
        self._scores = np.sort(np.array([] if self.kept is None else self.kept["scores"], dtype=np.float64))

    def add(self, scores: np.ndarray) -> None:
        """Take the scores of a block."""
        self.rows += len(scores)
        if self._scores.size:
            reach = CLOSE * float(np.abs(self._scores).max())
            place = np.searchsorted(self._scores, scores - reach)
            nearest = self._scores[np.minimum(place, self._scores.size - 1)]
            self.found += int((np.abs(nearest - scores) <= reach).sum())

    @property
    def share(self) -> float | None:
        """The share of the table's rows that have trained the model, from 0 to 1; None if it cannot be told.

        Of new rows, about as many are equal to a training row that is alone as training has rows that come twice (Good and Turing).
        """
        if self.kept is None or not self._scores.size or not self.rows or not self.kept["rows"]:
            return None
        by_chance, at_most = self.kept["twice"] / self.kept["rows"], self.kept["alone"] / self.kept["rows"]
        if at_most - by_chance < FEWEST_ALONE:
            return None
        found = self.found * self.kept["alone"] / self._scores.size / self.rows
        return float(np.clip((found - by_chance) / (at_most - by_chance), 0.0, 1.0))
