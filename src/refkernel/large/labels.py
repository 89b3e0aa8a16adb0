"""The rows of a source that one fit sees: targets, known outliers, their weights, a sample of them, and the moments of its columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._core.rows import TrainingRows, training_rows
from .block_sums import Largest
from .source import Source

SAMPLED_ROWS = 20_000  # rows of a source that references are drawn from, widths are measured on, and the search for the optimum starts with
MOST_OUTLIERS = 2_000  # known outliers of a source that references may be drawn from


@dataclass(frozen=True)
class Labels:
    """Which rows of a source are targets (1), known outliers (-1) or left out (0), and their weights; None stands for ones."""

    kind: np.ndarray | None
    weight: np.ndarray | None

    @classmethod
    def of(cls, n: int, y: Any, sample_weight: Any) -> "Labels":
        if y is None and sample_weight is None:
            return cls(None, None)
        training, weight = training_rows(np.empty((n, 0)), _in_memory(y), _in_memory(sample_weight))
        kind = np.zeros(n, dtype=np.int8)
        kind[training.targets], kind[training.outliers] = 1, -1
        return cls(kind, weight)

    def chosen(self, index: np.ndarray) -> "Labels":
        return self if self.kind is None or self.weight is None else Labels(self.kind[index], self.weight[index])

    def signed(self, model: Any) -> np.ndarray | None:
        """The weight of every row in a model's problem: negative for outliers that repel, 0 for rows that it does not see."""
        if self.kind is None:
            return None
        signed = np.zeros(len(self.kind))
        used, weight = model._used_rows(*self.training(np.empty((len(self.kind), 0))))
        signed[used] = weight
        return signed

    def training(self, X: Any) -> tuple[TrainingRows, np.ndarray]:
        """The rows of one fit, and their weights."""
        kind, weight = (np.ones(len(X)), np.ones(len(X))) if self.kind is None or self.weight is None else (self.kind, self.weight)
        return TrainingRows(X, np.flatnonzero(kind == 1), np.flatnonzero(kind == -1)), weight


def _in_memory(labels: Any) -> Any:
    """Labels or weights as an array: of a Dask collection they are gathered, a number for each row."""
    return np.asarray(labels.compute() if hasattr(labels, "compute") else labels) if labels is not None else None


def sampled(source: Source, labels: Labels, random_state: Any, count: int = SAMPLED_ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn at random, and known outliers."""
    n = len(source)
    random = check_random_state(random_state)
    pool = np.arange(n) if labels.kind is None else np.flatnonzero(labels.kind == 1)
    index = pool if pool.size <= count else random.choice(pool, count, replace=False)
    if labels.kind is not None:
        outliers = np.flatnonzero(labels.kind == -1)
        few = outliers if outliers.size <= MOST_OUTLIERS else random.choice(outliers, MOST_OUTLIERS, replace=False)
        index = np.concatenate([index, few])
    index = np.sort(index)
    return source.rows_at(index).astype(np.float64, copy=False), index


def in_source(indices: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Numbers of rows in a sample as numbers in its source; negative ones stand for other rows and stay."""
    return np.where(indices >= 0, index[np.maximum(indices, 0)], indices)


@dataclass(frozen=True)
class Moments:
    """The number of rows, their mean, the sum of squared deviations from it, and the first row."""

    n: int
    mean: np.ndarray
    squares: np.ndarray
    first: np.ndarray

    def __add__(self, other: "Moments") -> "Moments":
        if not (self.n and other.n):
            return self if self.n else other
        n, shift = self.n + other.n, other.mean - self.mean
        mean = self.mean + shift * (other.n / n)
        return Moments(n, mean, self.squares + other.squares + shift**2 * (self.n * other.n / n), self.first)


def largest_sizes(X: np.ndarray, start: int, kind: np.ndarray | None) -> Largest:
    """The largest |x| of each column over the targets of a block."""
    return Largest(np.abs(_targets(X, start, kind)).max(axis=0, initial=0.0))


def moments_of(X: np.ndarray, start: int, kind: np.ndarray | None, unit: np.ndarray) -> Moments:
    """The moments of x / unit over the targets of a block."""
    X = _targets(X, start, kind) / unit
    if not len(X):
        return Moments(0, np.zeros(unit.size), np.zeros(unit.size), np.zeros(unit.size))
    mean = X.mean(axis=0)
    return Moments(len(X), mean, ((X - mean) ** 2).sum(axis=0), X[0])


def _targets(X: np.ndarray, start: int, kind: np.ndarray | None) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    return X if kind is None else X[kind[start : start + len(X)] == 1]
