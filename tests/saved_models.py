"""A small fitted model of every public estimator: what tests of model files share."""

from __future__ import annotations

import copy
import inspect
import warnings
from functools import cache

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

import refkernel as rk

N, D = 24, 3


def rows(seed=0, n=N):
    return np.random.default_rng(seed).normal(size=(n, D))


def table(seed=0, n=60):
    """Numbers with gaps, a category, a date and a constant."""
    rng = np.random.default_rng(seed)
    width = rng.normal(size=n)
    width[::9] = np.nan
    return pd.DataFrame(
        {
            "width": width,
            "colour": rng.choice(["red", "blue", "green"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D"),
            "always": 7.0,
        }
    )


LABELS = np.r_[np.ones(N - 4), -np.ones(4)]


def wide(seed=0, n=64):
    """More columns than the ordinary descriptions take."""
    return rows(seed, n * 20).reshape(n, 60)


def embedding(seed=0, n=160):
    """Columns that share a unit, and few of them vary by themselves."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 52)) * np.linspace(1.0, 3.0, 52)


def watched(detector, new):
    """A monitor of a fitted detector that has seen some rows."""
    monitor = rk.Monitor(detector)
    monitor.update(new)
    return monitor


MODELS = {
    "SVDD": lambda: rk.SVDD(nu=0.2).fit(rows()),
    "OneClassSVM, precomputed": lambda: rk.OneClassSVM("precomputed").fit(rows() @ rows().T),
    "SVDD, negatives": lambda: rk.SVDD(rk.RBF(sigma=[1.0, 2.0, 3.0]), negatives="repel").fit(rows(), LABELS),
    "SVDD, sum of kernels": lambda: rk.SVDD(0.5 * rk.RBF(1.0) + rk.kernels.Laplacian() * rk.kernels.Polynomial(2)).fit(rows()),
    "OneClassSVM": lambda: rk.OneClassSVM(rk.ReferenceKernel(references="normal", random_state=0), nu=0.2).fit(rows()),
    "OneClassSVM, linear": lambda: rk.OneClassSVM("linear", nu=0.2).fit(rows()),
    "ESVDD": lambda: rk.ESVDD().fit(rows()),
    "ReferenceResidual": lambda: rk.ReferenceResidual(random_state=0).fit(rows()),
    "ReferenceMap": lambda: rk.ReferenceMap(references="case5", random_state=0).fit(rows(), LABELS),
    "ReferenceKernel": lambda: rk.ReferenceKernel().fit(rows()),
    "NPT": lambda: rk.NPT().fit(rows()),
    "RBF": lambda: rk.SVDD(rk.RBF(0.5)).fit(rows()),
    "TargetScaler": lambda: rk.TargetScaler().fit(rows()),
    "TargetImputer": lambda: make_pipeline(rk.TargetImputer(), rk.TargetScaler(), rk.SVDD()).fit(rows()),
    "AutoDetector": lambda: rk.AutoDetector().fit(rows(n=40)),
    "AutoDetector, labels": lambda: rk.AutoDetector(random_state=np.random.RandomState(3)).fit(rows(n=44), np.r_[np.ones(40), -np.ones(4)]),
    "TableEncoder": lambda: make_pipeline(rk.TableEncoder(), rk.SVDD()).fit(table()),
    "TableDetector": lambda: rk.TableDetector(rk.SVDD()).fit(table()),
    "TableDetector, automatic": lambda: rk.TableDetector().fit(table()),
    "TableDetector, search": lambda: rk.TableDetector(rk.OneClassGridSearch(rk.SVDD(), {"nu": [0.1, 0.3]}, random_state=0)).fit(table()),
    "AutoDetector, wide": lambda: rk.AutoDetector().fit(wide()),
    "AutoDetector, embedding": lambda: rk.AutoDetector().fit(embedding()),
    "AutoDetector, contaminated": lambda: rk.AutoDetector(contamination=0.1, units=[1.0, np.nan, 2.0]).fit(rows(n=60)),
    "AutoDetector, groups": lambda: rk.AutoDetector(0.1).fit(rows(n=60), groups=["a", "b"] * 30),
    "OneClassGridSearch, pipeline": lambda: rk.OneClassGridSearch(
        make_pipeline(rk.TargetScaler(), rk.SVDD()), {"svdd__nu": [0.1, 0.3]}
    ).fit(rows()),
    "ConformalDetector, table": lambda: rk.ConformalDetector(
        make_pipeline(rk.TableEncoder(), rk.SVDD()), false_alarm_rate=0.2, cv=3, random_state=0
    ).fit(table()),
    "ConformalDetector, groups": lambda: rk.ConformalDetector(rk.SVDD(), 0.2, method="split", random_state=0).fit(
        rows(n=60), groups=["a", "b"] * 30
    ),
    "Monitor": lambda: watched(rk.TableDetector().fit(table()), table(2, 20)),
    "OneClassGridSearch": lambda: rk.OneClassGridSearch(rk.SVDD(), {"nu": [0.1, 0.3], "kernel": ["rbf", rk.RBF(2.0)]}).fit(rows()),
    "OneClassGridSearch, labels": lambda: rk.OneClassGridSearch(rk.OneClassSVM(), {"nu": [0.1, 0.3]}, scoring="gmean").fit(rows(), LABELS),
    **{
        f"ConformalDetector, {method}": lambda method=method: rk.ConformalDetector(
            rk.SVDD(), false_alarm_rate=0.2, method=method, random_state=0
        ).fit(rows(n=40))
        for method in ("loo", "cv", "split")
    },
}
"""By the name of the public class, and what is special."""


def public_estimators():
    """The names of the public estimators and kernels."""
    return {name for name in rk.__all__ if inspect.isclass(getattr(rk, name)) and issubclass(getattr(rk, name), BaseEstimator)}


@cache
def fitted(name):
    """The model, fitted once; do not change it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name]()


def new_rows(model):
    """New samples of the form that a model takes."""
    if hasattr(model, "feature_names_in_") or isinstance(model, rk.Monitor):
        return table(1, 5)
    d = model.n_features_in_
    return rows(1, 5) if d == D else rows(1, 5) @ np.random.default_rng(2).normal(size=(D, d))


def answers(model, X):
    """What a model says of samples."""
    if isinstance(model, rk.Monitor):  # a copy, since it learns
        before = copy.deepcopy(model)
        return before.update(X).p_values
    for method in ("decision_function", "transform", "__call__"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(X), dtype=np.float64)
    raise ValueError(f"{type(model).__name__} answers nothing.")
