"""What the study compares: classifiers on reference strategies, and scikit-learn's alternatives, by default and tuned."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import SVC, OneClassSVM

from ..._core.distances import root_mean_squared_distance
from ...detectors.residual import ReferenceResidual
from ...kernels import RBF
from ...model_selection import Formulation, decision_paths
from ...references import FarthestFirst, KMeans, LeverageScores, Normal, Shell, Uniform, as_strategy, case

FINE_SCALES = tuple(float(f"{s:.4g}") for s in 10.0 ** np.arange(-2, 3.1, 0.5))  # half decades; every second is the article's
FINE_VALUES: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
FINE_KERNELS = tuple(RBF(scale=scale) for scale in FINE_SCALES)
GRIDS = {"article": (slice(2, None, 2), slice(2, None)), "fine": (slice(None), slice(None))}
"""The scales and values of nu of each grid: the article's is part of the fine one."""

WITHOUT_OUTLIERS = {
    "base": None,
    **{f"case{k}": case(k) for k in (1, 2, 3, 4, 6, 7)},
    "kmeans": KMeans(0.5),
    "leverage": LeverageScores(0.5),
    "farthest": FarthestFirst(0.5),
    "uniform": Uniform(1.0),
    "uniform2": Uniform(1.0, scale=2.0),
    "normal3": Normal(1.0, scale=3.0),
    "shell": Shell(1.0),
}
"""Strategies whose references hold no outlier. (Those like the targets are case 2 here: the data are standardised.)"""
WITH_OUTLIERS = {"case5": case(5), **{f"negatives{k}": as_strategy(f"negatives{k}") for k in range(2, 10)}}
"""Strategies that use known outliers. (The follow-up's first option is case 1.)"""
STRATEGIES = {**WITHOUT_OUTLIERS, **WITH_OUTLIERS}
ALL = "all"
COUNTS = (1, 3, 10)  # numbers of known outliers that training may use, apart from none and all
CURVES = (("ocsvm", "case5"), ("ocsvm", "negatives2"), ("ocsvm", "negatives7"), ("svddneg", "base"))  # run with each count, as SVC is


@dataclass(frozen=True)
class Method:
    """A classifier on a reference strategy ("-": none) and the number of outliers it may train with ("0", "1", … "all")."""

    classifier: str
    references: str
    negatives: str


def kernel_methods() -> list[Method]:
    """All classifiers on all strategies; ESVDD needs a map, so it does not run on the plain kernel."""
    found = []
    for name in STRATEGIES:
        known = ALL if name in WITH_OUTLIERS else "0"
        found += [Method("svdd", name, known), Method("ocsvm", name, known), Method("svddneg", name, ALL)]
        found += [Method("esvdd", name, known)] if name != "base" else []
    return found + [Method(*pair, str(count)) for count in COUNTS for pair in CURVES]


NEIGHBOURS = (20, 5, 10, 35)
PENALTIES = (0.1, 1.0, 10.0, 100.0)
DEFAULT, TUNED = "default", "tuned"
Decide: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class Baseline:
    """``decide(targets, known outliers, X_test, seed)`` gives decision values (candidates × t), the default settings first."""

    name: str
    decide: Decide
    counts: tuple[str, ...] = ("0",)
    variants: tuple[str, ...] = (DEFAULT, TUNED)


def _one_class_svm(targets: np.ndarray, known: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    models = [OneClassSVM()] + [OneClassSVM(gamma=gamma, nu=nu) for gamma in _gammas(targets) for nu in FINE_VALUES]
    return np.array([model.fit(targets).decision_function(X_test) for model in models])


def _seeded(make: type) -> Decide:
    return lambda targets, known, X_test, seed: _with_thresholds(make(random_state=seed).fit(targets), targets, X_test)


def _local_outlier_factor(targets: np.ndarray, known: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    models = [LocalOutlierFactor(min(neighbours, len(targets) - 1), novelty=True).fit(targets) for neighbours in NEIGHBOURS]
    return np.concatenate([_with_thresholds(model, targets, X_test, model.negative_outlier_factor_) for model in models])


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
    Baseline("IsolationForest", _seeded(IsolationForest)),
    Baseline("LocalOutlierFactor", _local_outlier_factor),
    Baseline("EllipticEnvelope", _seeded(EllipticEnvelope)),
    Baseline("kernel-PCA residual", _residual),
    *(
        Baseline(f"{make.__name__} + {name}", _features(make, classifier), variants=(TUNED,))
        for make in (RBFSampler, Nystroem)
        for name, classifier in (("SVDD", "svdd"), ("OC-SVM", "ocsvm"))
    ),
    Baseline("SVC", _svc, (*map(str, COUNTS), ALL)),
)
