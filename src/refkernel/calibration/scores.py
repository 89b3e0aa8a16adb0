"""Scores of fitted detectors of any library, higher for normal samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._validation import check_choice

__all__ = ["is_from", "last_step", "normality", "sign"]

HIGHER_IS = ("auto", "normal", "outlier")

LARGEST_SCORE = 1e300
"""Infinite scores count as this, so that differences of scores are numbers."""


def last_step(estimator: Any) -> Any:
    """The detector itself: the last step of a pipeline."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def is_from(estimator: Any, package: str) -> bool:
    """Whether the detector's class, or one of its base classes, comes from this package."""
    return any(base.__module__.partition(".")[0] == package for base in type(last_step(estimator)).__mro__)


def sign(estimator: Any, higher_is: str) -> float:
    """+1 if high scores of this detector mean normal samples, -1 if they mean outliers, as PyOD's do."""
    check_choice("higher_is", higher_is, HIGHER_IS)
    if higher_is == "auto":
        return -1.0 if is_from(estimator, "pyod") else 1.0
    return 1.0 if higher_is == "normal" else -1.0


def normality(model: Any, X: Any, sign: float) -> np.ndarray:
    """The score of each sample, higher for normal ones; finite."""
    X = X if hasattr(X, "shape") else np.asarray(X)  # some of PyOD's detectors take no lists
    for name in ("score_samples", "decision_function"):
        if hasattr(model, name):
            scores = sign * np.asarray(getattr(model, name)(X), dtype=np.float64).ravel()
            if np.isnan(scores).any():
                raise ValueError(f"{type(model).__name__}.{name} gives NaN for {np.isnan(scores).sum()} of {scores.size} samples.")
            return np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)
    raise TypeError(
        f"{type(model).__name__} has neither score_samples nor decision_function, so it cannot score new samples. "
        "(LocalOutlierFactor needs novelty=True.)"
    )
