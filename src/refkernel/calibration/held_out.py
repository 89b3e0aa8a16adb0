"""Models and the samples that they have not seen: the one thing that "split", "cv" and "loo" have in common.

``HeldOut`` is the contract. An estimator that can leave out one sample at a time faster than by fitting anew offers, once fitted,

    _leave_one_out(X, y=None, sample_weight=None) -> HeldOut

with the rows that it was fitted on. ``scores`` then has an entry for each target of positive weight, in the order of the rows, and
samples whose absence changes nothing may share one model.
"""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from .._progress import progress
from .._sklearn import safe_indexing
from .._threads import in_parallel
from .scores import last_step, normality

HELD_FROM = 100
"""With fewer samples, a scaler that has seen the sample left out makes it look too normal: up to 1.6 points more of new normals are
rejected than promised at n = 35, up to 0.4 at n = 100."""


class HeldOut(Protocol):
    """``scores[i]``: calibration sample i under the model of number ``model[i]``, which has not seen it; higher is more normal."""

    scores: np.ndarray
    model: np.ndarray

    def score_matrix(self, X) -> np.ndarray:
        """The score of every row of X (t) under every model (K): t × K."""


class HeldOutModels(BaseEstimator):
    """``HeldOut`` by a list of fitted estimators, all with the same sign of their scores."""

    def __init__(self, models, scores, model, sign):
        self.models = models
        self.scores = scores
        self.model = model
        self.sign = sign

    def score_matrix(self, X):
        return np.column_stack([normality(model, X, self.sign) for model in self.models])


class HeldOutLastStep(BaseEstimator):
    """``HeldOut`` of a pipeline's last step; what the steps before it learnt from all rows is held."""

    def __init__(self, steps, last):
        self.steps = steps
        self.last = last

    @property
    def scores(self):
        return self.last.scores

    @property
    def model(self):
        return self.last.model

    def score_matrix(self, X):
        return self.last.score_matrix(self.steps.transform(X))


class Rows:
    """The rows of one fit: ``calibrating`` are the targets, ``always`` the known outliers that every model may see."""

    def __init__(self, X, calibrating, always, weight=None):
        self.X = X
        self.calibrating = calibrating
        self.always = always
        self.weight = weight

    def fitted(self, estimator, targets) -> Any:
        """A copy of the estimator fitted on these targets and the known outliers."""
        rows = np.union1d(targets, self.always)
        return clone(estimator).fit(self.part(rows), *self._labels(rows), **self._weights(rows))

    def part(self, rows):
        return safe_indexing(self.X, rows)

    def exactly_left_out(self, model) -> HeldOut:
        """Every target left out in turn, by the fitted model's own way."""
        rows = np.union1d(self.calibrating, self.always)
        X, weight = self.part(rows), self._weights(rows).get("sample_weight")
        y = next(iter(self._labels(rows)), None)
        if isinstance(model, Pipeline):
            return HeldOutLastStep(model[:-1], last_step(model)._leave_one_out(model[:-1].transform(X), y, weight))
        return model._leave_one_out(X, y, weight)

    def _labels(self, rows):
        return (np.where(np.isin(rows, self.always), -1, 1),) if self.always.size else ()

    def _weights(self, rows):
        return {} if self.weight is None else {"sample_weight": self.weight[rows]}


def has_own_way(estimator) -> bool:
    """Whether the detector has its own way to leave out one sample at a time."""
    return hasattr(last_step(estimator), "_leave_one_out")


def goes_own_way(estimator, n: int) -> bool:
    """Whether to use it for n samples: a pipeline's earlier steps are worth learning again where n is small."""
    return has_own_way(estimator) and (not isinstance(estimator, Pipeline) or n >= HELD_FROM)


def by_folds(estimator, rows: Rows, folds, sign, n_jobs=None, verbose=0) -> HeldOutModels:
    """One model for each (train, test) of positions among the calibrating rows; warnings of all fits are given once for each kind."""
    tasks = ((estimator, rows, rows.calibrating[train], rows.calibrating[test], sign) for train, test in folds)
    done = in_parallel(_fold, tasks, n_jobs)
    scores, model = np.empty(rows.calibrating.size), np.empty(rows.calibrating.size, dtype=np.intp)
    models, heard = [], {}
    for number, (fitted, found, said) in enumerate(progress(done, len(folds), verbose, "fits")):
        models.append(fitted)
        scores[folds[number][1]], model[folds[number][1]] = found, number
        heard.update({warning.category: warning for warning in said if warning.category not in heard})
    for warning in heard.values():
        warnings.warn(warning.message, stacklevel=4)
    return HeldOutModels(models, scores, model, sign)


def _fold(estimator, rows, train, test, sign):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = rows.fitted(estimator, train)
        return model, normality(model, rows.part(test), sign), said
