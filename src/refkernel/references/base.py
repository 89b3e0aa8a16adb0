"""What every strategy builds on: the rows of a fit, sizes, sums, and what users may give instead of a strategy."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from .._distances import MODERATE
from .._training import HOW_TO_PASS_OUTLIERS, TrainingRows

GENERATED = -1
"""The index of a reference vector that is not a training row."""


@dataclass(frozen=True)
class References:
    """Reference ``vectors`` (m × d) and, for each, the training row it is (``GENERATED`` where it is none)."""

    vectors: Any
    indices: np.ndarray


class Strategy(BaseEstimator):
    """Draws reference vectors; ``a + b`` draws those of a, then those of b."""

    def draw(self, rows: TrainingRows, random_state) -> References:
        raise NotImplementedError

    def __add__(self, other) -> Sum:
        return Sum(self, as_strategy(other))


class Sum(Strategy):
    """The references of ``first`` followed by those of ``second``."""

    def __init__(self, first, second):
        self.first = first
        self.second = second

    def draw(self, rows, random_state):
        a, b = self.first.draw(rows, random_state), self.second.draw(rows, random_state)
        parts = [a.vectors, b.vectors]
        vectors = sp.vstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.vstack(parts)
        return References(vectors, np.concatenate([a.indices, b.indices]))


class Given(Strategy):
    """The reference vectors ``R`` (m × d) as they are."""

    def __init__(self, R):
        self.R = R

    def draw(self, rows, random_state):
        R = check_array(self.R, accept_sparse="csr", dtype=np.float64, input_name="R")
        if R.shape[1] != rows.X.shape[1]:
            raise ValueError(f"The reference vectors have {R.shape[1]} features, the training samples {rows.X.shape[1]}.")
        return generated(R)


NAMES: dict[str, Strategy] = {}
"""Strategies by name; ``named`` fills it, as they stand on this module."""


def as_strategy(references) -> Strategy:
    """The strategy that a user's name, array or object stands for."""
    if isinstance(references, str):
        if references not in NAMES:
            raise ValueError(f"references={references!r} is not known. Use one of {sorted(NAMES)}, a strategy or an array.")
        return copy.deepcopy(NAMES[references])
    return references if hasattr(references, "draw") else Given(references)


def members(rows, indices) -> References:
    """The training rows of these numbers."""
    return References(rows.X[indices], indices)


def generated(R) -> References:
    """Vectors that are no training rows."""
    return References(R, np.full(R.shape[0], GENERATED))


def choice(rows, pool, m, random_state, name, kind) -> References:
    """m of the row numbers in pool, in their order."""
    at_most(pool, m, name, kind)
    return members(rows, np.sort(random_state.choice(pool, m, replace=False)))


def at_most(pool, m, name, kind) -> int:
    """m, if the pool holds as many row numbers."""
    if m > pool.size:
        raise ValueError(f"{name} asks for {m} of {pool.size} {kind}. Lower size.")
    return m


def known_outliers(rows) -> np.ndarray:
    """The numbers of the outlier rows, if there are any."""
    if rows.outliers.size == 0:
        raise ValueError(f"References from negatives need known outliers, and fit got none: {HOW_TO_PASS_OUTLIERS}.")
    return rows.outliers


def float_rows(rows, indices):
    """The rows of these numbers in double precision, sparse where X is."""
    return rows.X[indices].astype(np.float64)


def moderate(X):
    """(X / unit, unit): where squares of X would overflow or vanish, unit is a power of two near its size, and else 1."""
    size = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
    unit = 1.0 if size == 0.0 or MODERATE[0] < size < MODERATE[1] else math.ldexp(1.0, math.frexp(size)[1] - 1)
    return (X, 1.0) if unit == 1.0 else (X / unit, unit)
