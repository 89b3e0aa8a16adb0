"""The methods of the benchmark, each as its users would write it: nothing is tuned on any table.

A method makes a model from a seed, scores rows (larger is more normal) and decides which it accepts.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.svm import OneClassSVM

import refkernel as rk

Score: TypeAlias = Callable[[Any, np.ndarray], np.ndarray]

RATE = 0.05
"""The false-alarm rate that our calibrated detectors promise."""
NU = 0.1
"""The share to reject where a method has a nu or a contamination."""
LEAST_DEVIATION = 1e-7
"""The smallest deviation of a component, as a share of the largest: the square of a smaller one is lost in rounding."""
MOST_COLUMNS_OF_MCD = 500
"""MCD estimates hundreds of d × d covariances: 1,500 columns take many minutes."""


def _score_samples(model: Any, X: np.ndarray) -> np.ndarray:
    return model.score_samples(X)


def _predict(model: Any, X: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return model.predict(X) == 1


@dataclass(frozen=True)
class Method:
    """``make(seed)`` gives a model, ``score(model, X)`` its scores, ``accept(model, X, scores)`` True for the rows that it accepts.

    wish : the share of normal rows that it was asked to reject. raw : it scales rows itself. most_columns : it is not run on wider
    tables. usual : it is run if no method is named.
    """

    key: str
    name: str
    package: str
    make: Callable[[int], Any]
    wish: float = NU
    score: Score = _score_samples
    accept: Callable[[Any, np.ndarray, np.ndarray], np.ndarray] = _predict
    raw: bool = False
    most_columns: int | None = None
    usual: bool = True

    @property
    def missing(self) -> str:
        """Why it cannot run here; empty if it can."""
        if self.package == "pyod" and importlib.util.find_spec("pyod") is None:
            return "PyOD is not installed: pip install 'refkernel[benchmark]'"
        return ""


class NearestDistance:
    """Novelty by the mean distance to the k nearest training rows; a share nu of the training rows, each left out once, is rejected."""

    def __init__(self, k: int):
        self.k = k

    def fit(self, X: np.ndarray) -> Self:
        k = min(self.k, len(X) - 1)
        self.index_ = NearestNeighbors(n_neighbors=k).fit(X)
        own = self.index_.kneighbors()[0].mean(axis=1)  # without the row itself
        self.threshold_ = np.quantile(own, 1 - NU)
        return self

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        return -self.index_.kneighbors(X)[0].mean(axis=1)


def _within_threshold(model: Any, X: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return scores >= -model.threshold_


def _outlyingness(model: Any, X: np.ndarray) -> np.ndarray:
    return -model.decision_function(X)


def _alone(combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Score:
    """Scores of ECOD and COPOD for rows that are scored one at a time.

    Both rank a row among the training rows *and* the rows that are scored with it: in one batch with many outliers, the outliers become
    the rule. What they give for a batch of one row follows from the training rows' sorted columns and their first three moments.
    """

    def score(model: Any, X: np.ndarray) -> np.ndarray:
        train = model.X_train
        n, ordered = len(train), np.sort(train, axis=0)
        columns = range(X.shape[1])
        below = np.column_stack([np.searchsorted(ordered[:, j], X[:, j], side="right") for j in columns])
        above = n - np.column_stack([np.searchsorted(ordered[:, j], X[:, j], side="left") for j in columns])
        left, right = -np.log((below + 1) / (n + 1)), -np.log((above + 1) / (n + 1))
        skewness = _skewness_sign(train, X)
        by_skewness = -left * np.sign(skewness - 1) + right * np.sign(skewness + 1)
        return -np.maximum(by_skewness, combine(left, right)).sum(axis=1)

    return score


def _skewness_sign(train: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The sign of each column's skewness with one row of X added to the training rows (rows of X × columns)."""
    centred, n = train - train.mean(axis=0), len(train) + 1
    d = X - train.mean(axis=0)
    shift = d / n
    third = (centred**3).sum(axis=0) + d**3 - 3 * shift * ((centred**2).sum(axis=0) + d**2) + 2 * n * shift**3
    return np.sign(third)


def _mean(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left + right) / 2


def _pyod(module: str, name: str, *, seeded: bool = False, score: Score = _outlyingness, most_columns: int | None = None) -> Method:
    def make(seed: int) -> Any:
        detector = getattr(importlib.import_module(f"pyod.models.{module}"), name)
        return detector(contamination=NU, **({"random_state": seed} if seeded else {}))

    return Method(f"pyod-{module}", f"PyOD {name}", "pyod", make, score=score, accept=_within_threshold, most_columns=most_columns)


def _pca(seed: int) -> Any:
    """PyOD's PCA with as many components as the training rows have: it divides by the variance of each, which may be 0."""
    from pyod.models.pca import PCA

    class FullRankPCA(PCA):
        def fit(self, X: np.ndarray, y: None = None) -> Self:
            self.n_components = int(np.linalg.matrix_rank(X - X.mean(axis=0), rtol=LEAST_DEVIATION))
            return super().fit(X, y)

    return FullRankPCA(contamination=NU, random_state=seed)


METHODS = {
    method.key: method
    for method in (
        Method("auto", "rk.AutoDetector", "refkernel", lambda seed: rk.AutoDetector(RATE, random_state=seed, n_jobs=1), RATE, raw=True),
        Method("svdd", "rk.SVDD", "refkernel", lambda seed: rk.SVDD(random_state=seed)),
        Method("ocsvm", "rk.OneClassSVM", "refkernel", lambda seed: rk.OneClassSVM(random_state=seed)),
        Method("residual", "rk.ReferenceResidual", "refkernel", lambda seed: rk.ReferenceResidual(random_state=seed)),
        Method(
            "conformal",
            "rk.ConformalDetector(SVDD)",
            "refkernel",
            lambda seed: rk.ConformalDetector(rk.SVDD(random_state=seed), RATE, random_state=seed),
            RATE,
            usual=False,  # it ranks as SVDD does, and would count twice
        ),
        Method("iforest", "IsolationForest", "scikit-learn", lambda seed: IsolationForest(contamination=NU, random_state=seed)),
        Method("lof", "LocalOutlierFactor", "scikit-learn", lambda seed: LocalOutlierFactor(novelty=True, contamination=NU)),
        Method("sklearn-ocsvm", "sklearn OCSVM", "scikit-learn", lambda seed: OneClassSVM(nu=NU)),
        # with its default nu it decides worse and ranks better
        Method("sklearn-ocsvm-default", "sklearn OCSVM (nu = 0.5)", "scikit-learn", lambda seed: OneClassSVM(), wish=0.5),
        Method("knn1", "kNN (k = 1)", "scikit-learn", lambda seed: NearestDistance(1), accept=_within_threshold),
        Method("knn5", "kNN (k = 5, mean)", "scikit-learn", lambda seed: NearestDistance(5), accept=_within_threshold),
        _pyod("knn", "KNN"),
        _pyod("ecod", "ECOD", score=_alone(np.maximum)),
        _pyod("copod", "COPOD", score=_alone(_mean)),
        Method("pyod-pca", "PyOD PCA", "pyod", _pca, score=_outlyingness, accept=_within_threshold),
        _pyod("mcd", "MCD", seeded=True, most_columns=MOST_COLUMNS_OF_MCD),
        _pyod("hbos", "HBOS"),
        _pyod("iforest", "IForest", seeded=True),
    )
}


def chosen(keys: tuple[str, ...] = ()) -> tuple[list[Method], list[str]]:
    """The methods with these keys, or all the usual ones if no key is given, and notes on those that cannot run here.

    A method that is named by its key and cannot run is an error.
    """
    unknown = [key for key in keys if key not in METHODS]
    if unknown:
        raise ValueError(f"Unknown method {unknown[0]!r}: choose from {', '.join(METHODS)}.")
    if keys:
        methods = [METHODS[key] for key in dict.fromkeys(keys)]
        for method in methods:
            if method.missing:
                raise ValueError(f"The method {method.key} cannot run: {method.missing}.")
        return methods, []
    usual = [method for method in METHODS.values() if method.usual]
    reasons: dict[str, list[str]] = {}
    for method in usual:
        if method.missing:
            reasons.setdefault(method.missing, []).append(method.name)
    return [m for m in usual if not m.missing], [f"{', '.join(names)} left out: {reason}." for reason, names in reasons.items()]
