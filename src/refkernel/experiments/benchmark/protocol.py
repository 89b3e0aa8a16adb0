"""The clean protocol: half of the normal rows train, the other half and all outliers test.

Nothing of an outlier is seen before the test: rows are standardised by the training rows, and no method gets a label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler

MOST_TRAINING_ROWS = 5_000
MOST_TEST_ROWS = 10_000
"""Of each kind: at most this many normal rows and this many outliers are scored."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training rows (all of them normal) and test rows, as they are and standardised; test rows are in random order."""

    train: np.ndarray
    test: np.ndarray
    raw_train: np.ndarray
    raw_test: np.ndarray
    is_outlier: np.ndarray
    seed: int


def split_rows(is_outlier: np.ndarray, seed: int, most_train: int, most_test: int) -> tuple[np.ndarray, np.ndarray]:
    """(train, test): row numbers.

    ``RandomState(seed)`` permutes the normal rows, then the outliers, then the test rows. The first half of the normal rows (rounded down)
    trains, the rest tests. Where there are more than the caps, the first of each permutation are taken, so that a smaller cap takes a part
    of what a larger one takes.
    """
    random = np.random.RandomState(seed)  # its stream is frozen, while a Generator's may change with NumPy's version
    normals, outliers = random.permutation(np.flatnonzero(~is_outlier)), random.permutation(np.flatnonzero(is_outlier))
    half = len(normals) // 2
    test = np.concatenate([normals[half:][:most_test], outliers[:most_test]])
    return normals[:half][:most_train], random.permutation(test)


def make_split(X: np.ndarray, is_outlier: np.ndarray, seed: int, most_train: int, most_test: int) -> Split:
    """Rows of a table for one seed."""
    train, test = split_rows(is_outlier, seed, most_train, most_test)
    scaler = StandardScaler().fit(X[train])  # a column that is constant in training is centred and keeps its unit
    return Split(scaler.transform(X[train]), scaler.transform(X[test]), X[train], X[test], is_outlier[test], seed)
