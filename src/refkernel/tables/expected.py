"""What to expect of a model on new rows: false alarms on rows that it has not seen, and made-up outliers that it catches."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from .._validation import OUTLIER
from ..auto import AutoDetector
from ..auto.judging import auroc
from ..pseudo_outliers import as_pseudo_outliers

CONFIDENCE = 0.9
"""Of the intervals of measured rates."""

FOLDS = 5
FEWEST_ROWS = 20
"""With fewer targets, a fold says nothing."""

MOST_FOLDED = 5_000
"""Up to this many targets all folds are held out in turn, and above it one: a fifth of the targets is enough there, and fits take long."""

MADE_UP = 500
MADE_UP_KIND = "permuted_and_box"
"""Rows with values of different training rows, and rows drawn evenly from the box around the training rows."""


def expectations(model: Pipeline, X: pd.DataFrame, y: np.ndarray, seed: int) -> dict[str, Any]:
    """False alarms on held-out targets (unless the model promises a rate by itself), and what becomes of made-up outliers."""
    held_out = {} if hasattr(model[-1], "false_alarm_rate_") else _held_out(model, X, y, seed)
    return held_out | _made_up(model, X[y != OUTLIER], seed)


def _held_out(model: Pipeline, X: pd.DataFrame, y: np.ndarray, seed: int) -> dict[str, Any]:
    """The share of targets that models fitted without them reject, with its exact interval."""
    targets = np.flatnonzero(y != OUTLIER)
    if targets.size < FEWEST_ROWS:
        return {}
    folds = list(KFold(FOLDS, shuffle=True, random_state=seed).split(targets))
    flagged = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said of the model itself
        for _, test in folds if targets.size <= MOST_FOLDED else folds[:1]:
            rest = np.delete(np.arange(len(y)), targets[test])
            try:
                fitted = clone(model).fit(X.iloc[rest], y[rest])
            except ValueError:  # too few rows for what the model wants; the model of all rows was fitted
                return {}
            flagged.append(fitted.predict(X.iloc[targets[test]]) == OUTLIER)
    return {**measured_rate("false_alarm", np.concatenate(flagged)), "held_out_rows": int(sum(map(len, flagged)))}


def _made_up(model: Pipeline, normal: pd.DataFrame, seed: int) -> dict[str, float]:
    """The share of made-up outliers that is caught and, where training rows were scored as new ones, the AUROC against these."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tables so small that made-up rows repeat training rows
        encoded = np.asarray(model[:-1].transform(normal), dtype=np.float64)
        rows = as_pseudo_outliers(MADE_UP_KIND).draw(encoded, MADE_UP, check_random_state(seed))
        found = {"made_up_caught": float((model[-1].predict(rows) == OUTLIER).mean())}
        if isinstance(model[-1], AutoDetector):
            found["made_up_auc"] = auroc(-model[-1].calibration_, -model[-1].score_samples(rows))
    return found


def measured_rate(name: str, flagged: np.ndarray) -> dict[str, Any]:
    """A measured share and its exact interval (Clopper and Pearson), by the names ``name_rate`` and ``name_interval``."""
    count, n = int(flagged.sum()), flagged.size
    if not n:
        return {f"{name}_rate": None, f"{name}_interval": None}
    tail = (1.0 - CONFIDENCE) / 2
    low = float(beta.ppf(tail, count, n - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - tail, count + 1, n - count)) if count < n else 1.0
    return {f"{name}_rate": count / n, f"{name}_interval": [low, high]}
