"""The methods of the benchmark, each as its users would write it: nothing is tuned on any table. Larger scores are more normal."""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.svm import OneClassSVM

import refkernel as rk

Score: TypeAlias = Callable[[Any, np.ndarray], np.ndarray]
Learn: TypeAlias = Callable[[np.ndarray], Callable[..., np.ndarray]]
RATE = 0.05  # the false-alarm rate that our calibrated detectors promise
NU = 0.1  # the share to reject where a method has a nu or a contamination
VARIANCE = 0.95  # the share of the variance that principal components explain
NO_PYOD = "PyOD is not installed: pip install 'refkernel[benchmark]'"


@dataclass(frozen=True)
class Method:
    """``make(seed)`` a model, ``score(model, X)``, ``accept(model, X, scores)``; ``wish``: share to reject; ``raw``: it scales itself."""

    key: str
    name: str
    package: str
    make: Callable[[int], Any]
    wish: float = NU
    score: Score = lambda model, X: model.score_samples(X)
    accept: Callable[[Any, np.ndarray, np.ndarray], np.ndarray] = lambda model, X, scores: model.predict(X) == 1
    raw: bool = False


class Thresholded:
    """``learn(X)`` gives the outlyingness of new rows, or of the training rows if called without; a share NU of these is rejected."""

    def __init__(self, learn: Learn):
        self.learn = learn

    def fit(self, X: np.ndarray) -> Self:
        self.outlyingness_ = self.learn(X)
        self.threshold_ = np.quantile(self.outlyingness_(), 1 - NU)
        return self

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        return -self.outlyingness_(X)


def _neighbours(k: int, power: int = 1) -> Learn:
    """The mean of the k smallest distances to training rows, or of their squares; a training row is not its own neighbour."""

    def learn(X: np.ndarray) -> Callable[..., np.ndarray]:
        index = NearestNeighbors(n_neighbors=min(k, len(X) - 1)).fit(X)
        return lambda Z=None: (index.kneighbors(Z)[0] ** power).mean(axis=1)

    return learn


def _mahalanobis(X: np.ndarray) -> Callable[..., np.ndarray]:
    """Mahalanobis' distance with Ledoit and Wolf's shrunk covariance."""
    covariance = LedoitWolf().fit(X)
    return lambda Z=X: covariance.mahalanobis(Z)


def _component_residual(X: np.ndarray) -> Callable[..., np.ndarray]:
    """The squared distance to the principal components that explain a share VARIANCE of the variance."""
    components = PCA(VARIANCE, svd_solver="full").fit(X)
    return lambda Z=X: ((Z - components.inverse_transform(components.transform(Z))) ** 2).sum(axis=1)


def _within_threshold(model: Any, X: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return scores >= -model.threshold_


def _ecod_alone(model: Any, X: np.ndarray) -> np.ndarray:
    """Scores of ECOD, one row at a time: it ranks rows among those scored with them, and in a batch of outliers these are the rule."""
    train, columns = model.X_train, range(X.shape[1])
    n, ordered = len(train), np.sort(train, axis=0)
    below = np.column_stack([np.searchsorted(ordered[:, j], X[:, j], side="right") for j in columns])
    above = n - np.column_stack([np.searchsorted(ordered[:, j], X[:, j], side="left") for j in columns])
    left, right = -np.log((below + 1) / (n + 1)), -np.log((above + 1) / (n + 1))
    centred, d = train - train.mean(axis=0), X - train.mean(axis=0)
    shift = d / (n + 1)  # of the mean, where a row of X joins the training rows; their skewness decides by its sign
    third = (centred**3).sum(axis=0) + d**3 - 3 * shift * ((centred**2).sum(axis=0) + d**2) + 2 * (n + 1) * shift**3
    skewness = np.sign(third)
    by_skewness = -left * np.sign(skewness - 1) + right * np.sign(skewness + 1)
    return -np.maximum(by_skewness, np.maximum(left, right)).sum(axis=1)


def _thresholded(key: str, name: str, learn: Learn) -> Method:
    return Method(key, name, "scikit-learn", lambda seed: Thresholded(learn), accept=_within_threshold)


def _pyod(module: str, name: str, score: Score = lambda model, X: -model.decision_function(X)) -> Method:
    def make(seed: int) -> Any:
        return getattr(importlib.import_module(f"pyod.models.{module}"), name)(contamination=NU)

    return Method(f"pyod-{module}", f"PyOD {name}", "pyod", make, score=score, accept=_within_threshold)


METHODS = {
    method.key: method
    for method in (
        Method("auto", "rk.AutoDetector", "refkernel", lambda seed: rk.AutoDetector(RATE, random_state=seed), RATE, raw=True),
        Method("svdd", "rk.SVDD", "refkernel", lambda seed: rk.SVDD(random_state=seed)),
        Method("ocsvm", "rk.OneClassSVM", "refkernel", lambda seed: rk.OneClassSVM(random_state=seed)),
        Method("residual", "rk.ReferenceResidual", "refkernel", lambda seed: rk.ReferenceResidual(random_state=seed)),
        Method("iforest", "IsolationForest", "scikit-learn", lambda seed: IsolationForest(contamination=NU, random_state=seed)),
        Method("lof", "LocalOutlierFactor", "scikit-learn", lambda seed: LocalOutlierFactor(novelty=True, contamination=NU)),
        Method("sklearn-ocsvm", "sklearn OCSVM", "scikit-learn", lambda seed: OneClassSVM(nu=NU)),
        # with its default nu it decides worse and ranks better
        Method("sklearn-ocsvm-default", "sklearn OCSVM (nu = 0.5)", "scikit-learn", lambda seed: OneClassSVM(), wish=0.5),
        _thresholded("knn1", "kNN (k = 1)", _neighbours(1)),
        _thresholded("knn5", "kNN (k = 5, mean)", _neighbours(5)),
        _thresholded("dte-np", "DTE-NP", _neighbours(5, power=2)),
        _thresholded("mahalanobis", "Mahalanobis (Ledoit-Wolf)", _mahalanobis),
        _thresholded("pca-residual", "PCA residual (95 %)", _component_residual),
        _pyod("knn", "KNN"),
        _pyod("ecod", "ECOD", _ecod_alone),
        _pyod("hbos", "HBOS"),
    )
}


def chosen(keys: tuple[str, ...] = ()) -> tuple[list[Method], list[str]]:
    """The methods with these keys (one that cannot run is an error), or all that can run here, and notes on the others."""
    if unknown := [key for key in keys if key not in METHODS]:
        raise ValueError(f"Unknown method {unknown[0]!r}: choose from {', '.join(METHODS)}.")
    methods = [METHODS[key] for key in dict.fromkeys(keys or METHODS)]
    missing = [] if importlib.util.find_spec("pyod") else [method for method in methods if method.package == "pyod"]
    if keys and missing:
        raise ValueError(f"The method {missing[0].key} cannot run: {NO_PYOD}.")
    notes = [f"{', '.join(method.name for method in missing)} left out: {NO_PYOD}."] if missing else []
    return [method for method in methods if method not in missing], notes
