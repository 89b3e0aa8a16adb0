"""Moments of each column over the target rows of a source: block by block, merged without loss of digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Largest", "Moments", "largest_sizes", "moments_of"]


@dataclass(frozen=True)
class Largest:
    """The largest value of each column."""

    values: np.ndarray

    def __add__(self, other: Largest) -> Largest:
        return Largest(np.maximum(self.values, other.values))


@dataclass(frozen=True)
class Moments:
    """The number of rows, their mean, the sum of squared deviations from it, and the first row."""

    n: int
    mean: np.ndarray
    squares: np.ndarray
    first: np.ndarray

    def __add__(self, other: Moments) -> Moments:
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
