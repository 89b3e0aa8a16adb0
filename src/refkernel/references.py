"""Where reference vectors come from: strategies that compose with ``+``.

A strategy draws the reference vectors R (m × d) for one fit from the training rows and a random state. A new
strategy is a subclass with one ``draw``. Sizes are a fraction of the number of targets n (rounded down), a count,
or ``"balanced"``: the article's T = min(n, number of outliers).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_array

from ._validation import check_positive

GENERATED = -1
"""The index of a reference vector that is no training row."""

HOW_TO_PASS_OUTLIERS = "pass y to fit with -1 for the rows of X that are known outliers"


@dataclass(frozen=True)
class TrainingRows:
    """The rows ``X`` of one fit; ``targets`` and ``outliers`` hold the row numbers of each kind."""

    X: Any
    targets: np.ndarray
    outliers: np.ndarray

    def count(self, size) -> int:
        """The number that a size stands for here."""
        n = self.targets.size
        if isinstance(size, str) and size == "balanced":
            if self.outliers.size == 0:
                raise ValueError(
                    f'size="balanced" is min(targets, outliers), and there is no outlier: {HOW_TO_PASS_OUTLIERS}, or give a number.'
                )
            return min(n, self.outliers.size)
        if isinstance(size, Integral) and not isinstance(size, bool):
            m = int(size)
        elif isinstance(size, float | np.floating) and np.isfinite(size):
            m = int(np.floor(size * n + 1e-9))  # 0.29 * 100 is 28.999999999999996
        else:
            raise ValueError(f'size={size!r} must be a fraction of the targets (float), a count (int) or "balanced".')
        if m < 1:
            raise ValueError(f"size={size!r} of {n} targets leaves {m} reference vectors; at least 1 is needed. Raise size.")
        return m


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


class Training(Strategy):
    """The target training samples: with centring this is NPT."""

    def draw(self, rows, random_state):
        return _training_rows(rows, rows.targets)


class Subset(Strategy):
    """A random part of the target training samples, drawn without replacement (Nyström)."""

    def __init__(self, size=0.5):
        self.size = size

    def draw(self, rows, random_state):
        return _choice(rows, rows.targets, rows.count(self.size), random_state, f"Subset(size={self.size!r})", "targets")


class Negatives(Strategy):
    """Known outliers, drawn without replacement."""

    def __init__(self, size="balanced"):
        self.size = size

    def draw(self, rows, random_state):
        if rows.outliers.size == 0:
            raise ValueError(f"References from negatives need known outliers, and fit got none: {HOW_TO_PASS_OUTLIERS}.")
        return _choice(rows, rows.outliers, rows.count(self.size), random_state, f"Negatives(size={self.size!r})", "outliers")


class Normal(Strategy):
    """Independent draws of N(0, scale²) in every feature; meant for standardised data."""

    def __init__(self, size=1.0, scale=1.0):
        self.size = size
        self.scale = scale

    def draw(self, rows, random_state):
        check_positive("scale", self.scale)
        shape = (rows.count(self.size), rows.X.shape[1])
        return _generated(self.scale * random_state.standard_normal(shape))


class Given(Strategy):
    """The reference vectors ``R`` (m × d) as they are."""

    def __init__(self, R):
        self.R = R

    def draw(self, rows, random_state):
        R = check_array(self.R, accept_sparse="csr", dtype=np.float64, input_name="R")
        if R.shape[1] != rows.X.shape[1]:
            raise ValueError(f"The reference vectors have {R.shape[1]} features, the training samples {rows.X.shape[1]}.")
        return _generated(R)


def case(number: int) -> Strategy:
    """The article's case 1 … 7."""
    if number not in CASES:
        raise ValueError(f"case({number!r}): the article's cases are numbered 1 to 7.")
    return clone(CASES[number])


def as_strategy(references) -> Strategy:
    """The strategy that a user's name, array or object stands for."""
    if isinstance(references, str):
        if references not in NAMES:
            raise ValueError(f"references={references!r} is not known. Use one of {sorted(NAMES)}, a strategy or an array.")
        return clone(NAMES[references])
    return references if hasattr(references, "draw") else Given(references)


def _training_rows(rows, indices):
    return References(rows.X[indices], indices)


def _generated(R):
    return References(R, np.full(R.shape[0], GENERATED))


def _choice(rows, pool, m, random_state, name, kind):
    """m of the row numbers in pool, in their order."""
    if m > pool.size:
        raise ValueError(f"{name} asks for {m} of {pool.size} {kind}. Lower size.")
    return _training_rows(rows, np.sort(random_state.choice(pool, m, replace=False)))


CASES = {
    1: Training(),
    2: Normal(),
    3: Subset(0.5),
    4: Normal(0.5),
    5: Training() + Negatives(),
    6: Training() + Normal("balanced"),
    7: Normal() + Normal("balanced"),
}
"""The article's seven ways to choose references."""

NAMES = {
    "training": Training(),
    "subset": Subset(),
    "normal": Normal(),
    "negatives": Negatives(),
    **{f"case{number}": strategy for number, strategy in CASES.items()},
}
