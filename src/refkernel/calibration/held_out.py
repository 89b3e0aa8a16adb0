"""Models and the samples that they have not seen: what "split", "cv" and "loo" have in common.

``HeldOut`` is the contract. An estimator that can leave out one sample at a time faster than by refitting offers, once fitted,

    _leave_one_out(X, y=None, sample_weight=None) -> HeldOut

with the rows that it was fitted on. ``scores`` then has an entry for each target of positive weight, in the order of the rows, and
samples whose absence changes nothing may share one model.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from .._progress import progress
from .._sklearn import safe_indexing
from .._threads import in_parallel
from .scores import last_step, normality

__all__ = ["HeldOut", "HeldOutLastStep", "HeldOutModels", "Rows", "by_folds", "goes_own_way", "has_own_way"]

HELD_FROM = 100
"""With fewer samples, a scaler that has seen the sample left out makes it look too normal: up to 1.6 points more of new targets are
rejected than promised at n = 35, up to 0.4 at n = 100."""


class HeldOut(Protocol):
    """``scores[i]`` is the score of calibration sample i by model number ``model[i]``, which has not seen it; higher is more normal."""

    scores: np.ndarray
    model: np.ndarray

    def score_matrix(self, X: Any) -> np.ndarray:
        """The score of every row of X (t) by every model (K): t × K."""


class HeldOutModels(BaseEstimator):
    """``HeldOut`` as a list of fitted estimators whose scores all have the same sign."""

    def __init__(self, models: list[Any], scores: np.ndarray, model: np.ndarray, sign: float) -> None:
        self.models = models
        self.scores = scores
        self.model = model
        self.sign = sign

    def score_matrix(self, X: Any) -> np.ndarray:
        return np.column_stack([normality(model, X, self.sign) for model in self.models])


class HeldOutLastStep(BaseEstimator):
    """``HeldOut`` of a pipeline's last step; the steps before it stay as they were fitted on all rows."""

    def __init__(self, steps: Any, last: HeldOut) -> None:
        self.steps = steps
        self.last = last

    @property
    def scores(self) -> np.ndarray:
        return self.last.scores

    @property
    def model(self) -> np.ndarray:
        return self.last.model

    def score_matrix(self, X: Any) -> np.ndarray:
        return self.last.score_matrix(self.steps.transform(X))


class Rows:
    """The rows of one fit: ``calibrating`` are the targets, ``always`` the known outliers that every model may see."""

    def __init__(self, X: Any, calibrating: np.ndarray, always: np.ndarray, weight: np.ndarray | None = None) -> None:
        self.X = X
        self.calibrating = calibrating
        self.always = always
        self.weight = weight

    def fitted(self, estimator: Any, targets: np.ndarray) -> Any:
        """A copy of the estimator fitted on these targets and the known outliers."""
        rows = np.union1d(targets, self.always)
        return _without_own_threshold(estimator).fit(self.part(rows), *self._labels(rows), **self._weights(rows))

    def part(self, rows: np.ndarray) -> Any:
        """These rows of X."""
        return safe_indexing(self.X, rows)

    def exactly_left_out(self, model: Any) -> HeldOut:
        """Leave out every target in turn, by the fitted model's own method."""
        rows = np.union1d(self.calibrating, self.always)
        X, weight = self.part(rows), self._weights(rows).get("sample_weight")
        y = next(iter(self._labels(rows)), None)
        if isinstance(model, Pipeline):
            return HeldOutLastStep(model[:-1], last_step(model)._leave_one_out(model[:-1].transform(X), y, weight))
        return model._leave_one_out(X, y, weight)

    def _labels(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        return (np.where(np.isin(rows, self.always), -1, 1),) if self.always.size else ()

    def _weights(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return {} if self.weight is None else {"sample_weight": self.weight[rows]}


def _without_own_threshold(estimator: Any) -> Any:
    """A copy that does not leave samples out for a threshold of its own, which would not be used."""
    copy = clone(estimator)
    detector = last_step(copy)
    if has_own_way(copy) and "threshold" in detector.get_params(deep=False):
        detector.set_params(threshold="training")
    return copy


def has_own_way(estimator: Any) -> bool:
    """Whether the detector has its own method to leave out one sample at a time."""
    return hasattr(last_step(estimator), "_leave_one_out")


def goes_own_way(estimator: Any, n: int) -> bool:
    """Whether to use that method for n samples; if n is small, a pipeline's earlier steps must be fitted again."""
    return has_own_way(estimator) and (not isinstance(estimator, Pipeline) or n >= HELD_FROM)


def by_folds(estimator: Any, rows: Rows, folds: Sequence[Any], sign: float, n_jobs: int | None = None, verbose: int = 0) -> HeldOutModels:
    """One model for each (train, test) of positions among the calibrating rows; each kind of warning is given once for all fits."""
    tasks = ((estimator, rows, rows.calibrating[train], rows.calibrating[test], sign) for train, test in folds)
    done = in_parallel(_fold, tasks, n_jobs)
    scores, model = np.empty(rows.calibrating.size), np.empty(rows.calibrating.size, dtype=np.intp)
    models, heard = [], dict[type[Warning], warnings.WarningMessage]()
    for number, (fitted, found, said) in enumerate(progress(done, len(folds), verbose, "fits")):
        models.append(fitted)
        scores[folds[number][1]], model[folds[number][1]] = found, number
        heard.update({warning.category: warning for warning in said if warning.category not in heard})
    for warning in heard.values():
        warnings.warn(warning.message, stacklevel=4)
    return HeldOutModels(models, scores, model, sign)


def _fold(estimator: Any, rows: Rows, train: np.ndarray, test: np.ndarray, sign: float) -> tuple[Any, np.ndarray, list[Any]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = rows.fitted(estimator, train)
        return model, normality(model, rows.part(test), sign), said
