"""The rows of one fit: which are targets, which are known outliers, and their weights."""

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .validation import target_mask

HOW_TO_PASS_OUTLIERS = "pass y to fit with -1 for the rows of X that are known outliers"
OUTLIER_SIZES = {"balanced": "min(targets, outliers)", "outliers": "the number of outliers"}  # these need known outliers
MOST_DENSE, AT_ONCE = 1 << 27, 1 << 22  # cells of a sparse matrix that are made dense to fit (1 GB), and to score (32 MB)


def dense(X: Any) -> Any:
    """A sparse matrix as an array, and everything else as it is."""
    if sp.issparse(X) and X.shape[0] * X.shape[1] > MOST_DENSE:
        size = f"X is sparse, and would take {8e-9 * X.shape[0] * X.shape[1]:.3g} GB as an array of {X.shape[0]:,} × {X.shape[1]:,}"
        raise MemoryError(f"{size}. At most 1 GB is made dense: reduce the columns by TruncatedSVD first.")
    return X.toarray() if sp.issparse(X) else X


def in_dense_blocks(score: Callable[[np.ndarray], np.ndarray], X: Any) -> np.ndarray:
    """The scores of the rows of a sparse matrix, some of which are made dense at a time."""
    rows = sp.csr_array(X)
    step = max(1, AT_ONCE // max(1, rows.shape[1]))
    return np.concatenate([score(rows[i : i + step].toarray()) for i in range(0, max(1, rows.shape[0]), step)])


@dataclass(frozen=True)
class TrainingRows:
    """The rows X of one fit, and the row numbers of its targets and known outliers."""

    X: Any
    targets: np.ndarray
    outliers: np.ndarray
    _measured: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, X: Any, y: npt.ArrayLike | None = None) -> "TrainingRows":
        """Sort the rows of X by their labels: -1 marks known outliers, all other rows are targets."""
        is_target = target_mask(X, y)
        return cls(X, np.flatnonzero(is_target), np.flatnonzero(~is_target))

    @property
    def X_targets(self) -> Any:
        """The target rows."""
        return self.X if self.targets.size == self.X.shape[0] else self.X[self.targets]

    def measured(self, measure: Callable[..., Any], sample_weight: np.ndarray | None = None) -> Any:
        """measure(X_targets, sample_weight); unweighted measures are remembered, so that many kernels can share them."""
        if sample_weight is not None:
            return measure(self.X_targets, sample_weight)
        if measure not in self._measured:
            self._measured[measure] = measure(self.X_targets, None)
        return self._measured[measure]

    def count(self, size: float | int | str) -> int:
        """The number of references, at least 1, of a size: a fraction of the targets (float), a count (int) or a name."""
        n, q = self.targets.size, self.outliers.size
        if isinstance(size, str) and size in OUTLIER_SIZES:
            if q == 0:
                raise ValueError(
                    f'size="{size}" is {OUTLIER_SIZES[size]}, but there are no outliers: {HOW_TO_PASS_OUTLIERS}, or give a number.'
                )
            return q if size == "outliers" else min(n, q)
        if isinstance(size, str) and size == "rounded_half":
            return n - n // 2
        if isinstance(size, Integral) and not isinstance(size, bool):
            m = int(size)
        elif isinstance(size, float | np.floating) and np.isfinite(size):
            m = int(np.floor(size * n + 1e-9))  # 0.29 * 100 is 28.999999999999996
        else:
            raise ValueError(
                f"size={size!r} must be a fraction of the targets (float), a count (int) "
                'or one of "balanced", "outliers" and "rounded_half".'
            )
        if m < 1:
            raise ValueError(f"size={size!r} of {n} targets leaves {m} references; at least 1 is needed. Raise size.")
        return m


def training_rows(X: Any, y: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None) -> tuple[TrainingRows, np.ndarray]:
    """The rows of a fit, without rows of weight 0, and the weight of every row of X."""
    weight = np.ones(X.shape[0]) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    if weight.shape != (X.shape[0],) or not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(f"sample_weight must hold {X.shape[0]} finite numbers >= 0, one for each row of X.")
    is_target = target_mask(X, y)
    targets = np.flatnonzero(is_target & (weight > 0))
    if targets.size == 0:
        raise ValueError("Sample weights must contain at least one non-zero number among the targets: all are 0.")
    return TrainingRows(X, targets, np.flatnonzero(~is_target & (weight > 0))), weight
