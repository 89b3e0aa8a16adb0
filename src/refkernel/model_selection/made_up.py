"""Test folds with made-up outliers, for a search that knows no outliers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags

from .._sklearn import safe_indexing
from .._validation import OUTLIER, target_mask
from ..pseudo_outliers import as_pseudo_outliers
from ..pseudo_outliers.table import stacked
from .engine import Task

__all__ = ["with_made_up"]

FEWEST, MOST = 50, 500
"""Made-up outliers of a fold: as many as it has training targets, within these limits."""


def with_made_up(
    task: Task, splits: list[Any], source: Any, estimator: Any, random_state: np.random.RandomState
) -> tuple[Task, list[tuple[np.ndarray, np.ndarray]]]:
    """The task with made-up outliers after its samples, and the splits with those of each fold in its test part.

    They are drawn once for each fold, from its training targets alone.
    """
    X, y = _samples(task.X, estimator), task.y
    n = len(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the refit repeats them
        target_mask(X, y)  # raises for labels that mark nothing
    source = as_pseudo_outliers(source)
    seeds = random_state.randint(np.iinfo(np.int32).max, size=len(splits))
    rows, tests, total = [X], [], n
    for (train, test), seed in zip(splits, seeds, strict=True):
        train, test = _positions(train, n), _positions(test, n)
        targets = safe_indexing(X, train[target_mask(train, None if y is None else y[train], warn=False)])
        drawn = source.draw(targets, min(MOST, max(FEWEST, len(targets))), np.random.RandomState(seed))
        rows.append(drawn)
        tests.append((train, np.concatenate([test, np.arange(total, total + len(drawn))])))
        total += len(drawn)
    kinds = [np.ones(n, dtype=int) if y is None else y, np.full(total - n, OUTLIER)]
    return task._replace(X=_stacked(rows), y=_joined(*kinds), given=n), tests


def _samples(X: Any, estimator: Any) -> Any:
    """X as sources of outliers take it."""
    if sp.issparse(X):
        raise ValueError(
            'Without known outliers the search makes outliers up (scoring="label_free"). These are dense, and X is sparse: pass '
            "X.toarray(), or y with -1 for known outliers."
        )
    if get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            'scoring="label_free" makes outliers up from samples, and X holds kernel values: pass samples and a kernel that computes '
            "these values, or y with -1 for known outliers."
        )
    return X if hasattr(X, "iloc") else np.asarray(X)


def _positions(indices: Any, n: int) -> np.ndarray:
    """Row numbers, from numbers (negative ones too) or from a mask."""
    return np.arange(n)[np.asarray(indices)]


def _stacked(rows: list[Any]) -> Any:
    """The samples and all drawn rows; arrays of rows drawn for a DataFrame take its columns' names."""
    if hasattr(rows[0], "iloc"):
        rows = [rows[0], *(drawn if hasattr(drawn, "iloc") else type(rows[0])(drawn, columns=rows[0].columns) for drawn in rows[1:])]
    return stacked(rows)


def _joined(y: np.ndarray, made_up: np.ndarray) -> np.ndarray:
    """Labels of both; y of strings becomes objects, so that -1 stays a number."""
    return np.concatenate([y if y.dtype.kind in "biuf" else y.astype(object), made_up])
