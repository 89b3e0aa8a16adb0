"""The alternatives in scikit-learn, with their defaults and tuned by the same validation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import SVC, OneClassSVM

from ..._distances import root_mean_squared_distance
from ...kernels import RBF
from ...metrics import geometric_mean
from ...model_selection import Formulation, decision_paths
from ...model_selection.scoring import rates
from ...residual import ReferenceResidual
from ..selection import first_best, score_columns
from .methods import ALL, COUNTS, FINE_SCALES, FINE_VALUES

NEIGHBOURS = (20, 5, 10, 35)
PENALTIES = (0.1, 1.0, 10.0, 100.0)
DEFAULT, TUNED = "default", "tuned"


Decide: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class Part:
    """One training and test set: a fold of the validation, or the whole. ``outliers`` are in random order."""

    targets: np.ndarray
    outliers: np.ndarray
    X_test: np.ndarray
    is_target: np.ndarray
    seed: int

    def known(self, count: str) -> np.ndarray:
        """The outliers that training may use: "all", or this many."""
        return self.outliers if count == ALL else self.outliers[: int(count)]


@dataclass(frozen=True)
class Baseline:
    """``decide(targets, known outliers, X_test, seed)`` gives decision values (candidates × t), the default settings first."""

    name: str
    decide: Decide
    counts: tuple[str, ...] = ("0",)
    variants: tuple[str, ...] = (DEFAULT, TUNED)

    def rows(self, parts: list[Part]) -> list[dict[str, Any]]:
        """One row for each number of known outliers and for each variant."""
        return [row for count in self.counts for row in self._rows(parts, count)]

    def _rows(self, parts: list[Part], count: str) -> Iterator[dict[str, Any]]:
        start = time.perf_counter()
        tables = [rates(self.decide(part.targets, part.known(count), part.X_test, part.seed), part.is_target) for part in parts]
        validation = np.nanmean([geometric_mean(*table) for table in tables[:-1]], axis=0)
        chosen = {DEFAULT: 0, TUNED: first_best(validation)[0]}
        seconds = round((time.perf_counter() - start) / len(self.variants), 6)
        for variant in self.variants:
            yield {
                "classifier": self.name,
                "references": "-",
                "negatives": count,
                "grid": variant,
                **score_columns(*(rate[chosen[variant]] for rate in tables[-1])),
                "validation": float(validation[chosen[variant]]),
                "scale": "",
                "parameter": "",
                "seconds": seconds,
            }


def _one_class_svm(targets: np.ndarray, known: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    models = [OneClassSVM()] + [OneClassSVM(gamma=gamma, nu=nu) for gamma in _gammas(targets) for nu in FINE_VALUES]
    return np.array([model.fit(targets).decision_function(X_test) for model in models])


def _isolation_forest(targets: np.ndarray, known: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    return _with_thresholds(IsolationForest(random_state=seed).fit(targets), targets, X_test)


def _elliptic_envelope(targets: np.ndarray, known: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    return _with_thresholds(EllipticEnvelope(random_state=seed).fit(targets), targets, X_test)


def _local_outlier_factor(targets: np.ndarray, known: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    found = []
    for neighbours in NEIGHBOURS:
        model = LocalOutlierFactor(min(neighbours, len(targets) - 1), novelty=True).fit(targets)
        found.append(_with_thresholds(model, targets, X_test, scores=model.negative_outlier_factor_))
    return np.concatenate(found)


def _with_thresholds(model: Any, targets: np.ndarray, X_test: np.ndarray, scores: np.ndarray | None = None) -> np.ndarray:
    """Decision values for the model's own threshold, and for those that leave a share nu of the targets outside."""
    scores = model.score_samples(targets) if scores is None else scores
    thresholds = np.concatenate([[model.offset_], np.quantile(scores, FINE_VALUES)])
    return model.score_samples(X_test) - thresholds[:, None]


def _svc(targets: np.ndarray, known: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    X, y = np.concatenate([targets, known]), np.repeat([1, -1], [len(targets), len(known)])
    models = [SVC()] + [SVC(C=C, gamma=gamma, class_weight="balanced") for gamma in _gammas(targets)[::2] for C in PENALTIES]
    return np.array([model.fit(X, y).decision_function(X_test) for model in models])


def _residual(targets: np.ndarray, known: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    models = [ReferenceResidual(RBF(scale=scale), random_state=seed).fit(targets) for scale in (1.0, *FINE_SCALES)]
    return np.concatenate([_with_thresholds(model, targets[model.held_out_], X_test) for model in models])


def _features(make: type, classifier: str) -> Decide:
    """A classifier on scikit-learn's approximate features of the RBF kernel, one for each target."""

    def decide(targets: np.ndarray, known: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
        n, found = len(targets), []
        for gamma in _gammas(targets):
            Phi = make(gamma=gamma, n_components=n, random_state=seed).fit(targets).transform(np.concatenate([targets, X_test]))
            K = Phi @ Phi.T
            found += decision_paths(K[:n, :n], [Formulation(classifier, FINE_VALUES)], K[n:, :n], K.diagonal()[n:])
        return np.concatenate(found)

    return decide


def _gammas(targets: np.ndarray) -> list[float]:
    return [0.5 / (scale * root_mean_squared_distance(targets) ** 2) for scale in FINE_SCALES]


BASELINES = (
    Baseline("sklearn OneClassSVM", _one_class_svm),
    Baseline("IsolationForest", _isolation_forest),
    Baseline("LocalOutlierFactor", _local_outlier_factor),
    Baseline("EllipticEnvelope", _elliptic_envelope),
    Baseline("kernel-PCA residual", _residual),
    *(
        Baseline(f"{make.__name__} + {name}", _features(make, classifier), variants=(TUNED,))
        for make in (RBFSampler, Nystroem)
        for name, classifier in (("SVDD", "svdd"), ("OC-SVM", "ocsvm"))
    ),
    Baseline("SVC", _svc, (*map(str, COUNTS), ALL)),
)
