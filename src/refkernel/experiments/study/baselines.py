"""The alternatives in scikit-learn, with their defaults and tuned by the same validation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Baseline:
    """``decide(targets, known outliers, X_test, seed)`` gives decision values (candidates × t), the default settings first."""

    name: str
    decide: Callable
    counts: tuple[str, ...] = ("0",)
    variants: tuple[str, ...] = (DEFAULT, TUNED)

    def rows(self, parts) -> list[dict[str, Any]]:
        """One row for each number of known outliers and for each variant."""
        return [row for count in self.counts for row in self._rows(parts, count)]

    def _rows(self, parts, count):
        start = time.perf_counter()
        tables = []
        for part in parts:
            known = part.outliers if count == ALL else part.outliers[: int(count)]
            tables.append(rates(self.decide(part.targets, known, part.X_test, part.seed), part.is_target))
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


def _one_class_svm(targets, known, X_test, seed):
    models = [OneClassSVM()] + [OneClassSVM(gamma=gamma, nu=nu) for gamma in _gammas(targets) for nu in FINE_VALUES]
    return np.array([model.fit(targets).decision_function(X_test) for model in models])


def _isolation_forest(targets, known, X_test, seed):
    return _with_thresholds(IsolationForest(random_state=seed).fit(targets), targets, X_test)


def _elliptic_envelope(targets, known, X_test, seed):
    return _with_thresholds(EllipticEnvelope(random_state=seed).fit(targets), targets, X_test)


def _local_outlier_factor(targets, known, X_test, seed):
    found = []
    for neighbours in NEIGHBOURS:
        model = LocalOutlierFactor(min(neighbours, len(targets) - 1), novelty=True).fit(targets)
        found.append(_with_thresholds(model, None, X_test, scores=model.negative_outlier_factor_))
    return np.concatenate(found)


def _with_thresholds(model, targets, X_test, scores=None):
    """Decision values for the model's own threshold, and for those that leave a share nu of the targets outside."""
    scores = model.score_samples(targets) if scores is None else scores
    thresholds = np.concatenate([[model.offset_], np.quantile(scores, FINE_VALUES)])
    return model.score_samples(X_test) - thresholds[:, None]


def _svc(targets, known, X_test, seed):
    X, y = np.concatenate([targets, known]), np.repeat([1, -1], [len(targets), len(known)])
    models = [SVC()] + [SVC(C=C, gamma=gamma, class_weight="balanced") for gamma in _gammas(targets)[::2] for C in PENALTIES]
    return np.array([model.fit(X, y).decision_function(X_test) for model in models])


def _residual(targets, known, X_test, seed):
    models = [ReferenceResidual(RBF(scale=scale), random_state=seed).fit(targets) for scale in (1.0, *FINE_SCALES)]
    return np.concatenate([_with_thresholds(model, targets[model.held_out_], X_test) for model in models])


def _features(make, classifier):
    """A classifier on scikit-learn's approximate features of the RBF kernel, one for each target."""

    def decide(targets, known, X_test, seed):
        n, found = len(targets), []
        for gamma in _gammas(targets):
            Phi = make(gamma=gamma, n_components=n, random_state=seed).fit(targets).transform(np.concatenate([targets, X_test]))
            K = Phi @ Phi.T
            found += decision_paths(K[:n, :n], [Formulation(classifier, FINE_VALUES)], K[n:, :n], K.diagonal()[n:])
        return np.concatenate(found)

    return decide


def _gammas(targets):
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
