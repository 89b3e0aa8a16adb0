"""Models inside pipelines and searches: their steps, the detector that decides, and its scores, higher for normal samples."""

from typing import Any

import numpy as np

from .validation import check_choice, safe_indexing

HIGHER_IS = ("auto", "normal", "outlier")

MOST_NESTED = 50  # pipelines and searches inside each other; only a forged file has more
FEW = 5  # rows that show whether scores depend on the rows beside them
LARGEST_SCORE = 1e300  # infinite scores count as this, so that differences of scores are numbers


def unwrap(model: Any) -> tuple[list[Any], Any]:
    """The transformers before the detector, and the detector: of a pipeline, of the best estimator of a search, or of both nested."""
    before: list[Any] = []
    for _ in range(MOST_NESTED):
        if getattr(model, "best_estimator_", None) is not None:
            model = model.best_estimator_
        elif getattr(model, "steps", None):
            *first, model = [step[-1] for step in model.steps]
            before += [step for step in first if step is not None and not isinstance(step, str)]
        else:
            return before, model
    raise ValueError(f"The model is nested more than {MOST_NESTED} times.")


def detector_of(model: Any) -> Any:
    """The estimator that decides: the last step of a pipeline, the best of a search."""
    return unwrap(model)[1]


def is_from(estimator: Any, package: str) -> bool:
    """Whether the detector's class, or one of its base classes, comes from this package."""
    return any(base.__module__.partition(".")[0] == package for base in type(detector_of(estimator)).__mro__)


def sign(estimator: Any, higher_is: str) -> float:
    """+1 if high scores of this detector mean normal samples, -1 if they mean outliers, as PyOD's do."""
    check_choice("higher_is", higher_is, HIGHER_IS)
    is_outlier = is_from(estimator, "pyod") if higher_is == "auto" else higher_is == "outlier"
    return -1.0 if is_outlier else 1.0


def depends_on_batch(model: Any, X: Any, sign: float) -> bool:
    """Whether a row's score depends on the rows beside it: PyOD's ECOD and COPOD rank a row among those that are scored with it."""
    some = safe_indexing(X, np.arange(min(FEW, X.shape[0])))
    return not np.allclose(normality(model, some, sign), normality(model, some, sign, alone=True), rtol=1e-6, atol=0.0)


def normality(model: Any, X: Any, sign: float, alone: bool = False) -> np.ndarray:
    """The score of each sample, higher for normal ones; finite. With ``alone``, each is scored on its own."""
    X = X if hasattr(X, "shape") else np.asarray(X)  # some of PyOD's detectors take no lists
    if alone:
        return np.array([normality(model, safe_indexing(X, np.array([i])), sign)[0] for i in range(X.shape[0])])
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
