"""The terms of a problem row by row, from weights: what a block needs to know of the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .passes import Near
from .rows import Rows, Workspace


@dataclass(frozen=True)
class Terms:
    """p = linear_share (diag - margin [w < 0]),  lower_per_weight min(w, 0) <= b <= upper_per_weight max(w, 0),  Σ b = total.

    ``upper`` is the sum of all upper bounds.
    """

    linear_share: float
    margin: float
    lower_per_weight: float
    upper_per_weight: float
    total: float
    upper: float

    def of(self, diag: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """p, lower and upper of rows; weights of outliers that repel are negative, and None stands for ones."""
        if weight is None:
            return self.linear_share * diag, np.zeros(len(diag)), np.full(len(diag), self.upper_per_weight)
        p = self.linear_share * np.where(weight < 0.0, diag - self.margin, diag)
        return p, self.lower_per_weight * np.minimum(weight, 0.0), self.upper_per_weight * np.maximum(weight, 0.0)

    def near(self, Phi: np.ndarray, weight: np.ndarray | None, index: np.ndarray) -> Near:
        """Rows in memory, with their terms."""
        diag = np.einsum("ij,ij->i", Phi, Phi)
        return Near(Phi, diag, *self.of(diag, weight), index)

    def rows(
        self,
        Phi: np.ndarray,
        diag: np.ndarray,
        weight: np.ndarray | None,
        start: int,
        work: Workspace,
        recompute: Callable[..., np.ndarray] | None = None,
    ) -> Rows:
        """A block of rows."""
        return Rows(Phi, diag, *self.of(diag, weight), start, work, recompute)
