"""Models and the samples that they have not seen: what "split", "cv" and "loo" have in common.

``HeldOut`` is the contract. A fitted estimator that can leave out one sample at a time faster than by refitting offers
``_leave_one_out(X, y=None, sample_weight=None) -> HeldOut`` with the rows that it was fitted on. ``scores`` then has an entry for each
target of positive weight, in the order of the rows, and samples whose absence changes nothing may share one model.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..._core.file_rules import Array, Flag, Items, Number, Part, Rule
from ..._core.progress import progress
from ..._core.threads import in_parallel
from ..._core.unwrap import depends_on_batch, detector_of, normality
from ..._core.validation import safe_indexing


class HeldOut(Protocol):
    """``scores[i]`` is the score of calibration sample i by model number ``model[i]``, which has not seen it; higher is more normal."""

    scores: np.ndarray
    model: np.ndarray

    def score_matrix(self, X: Any) -> np.ndarray:
        """The score of every row of X (t) by every model (K): t × K."""


class HeldOutModels(BaseEstimator):
    """``HeldOut`` as a list of fitted estimators whose scores all have the same sign."""

    _file_rules: ClassVar[dict[str, Rule]] = {
        "models": Items(Part(object), size="k"),
        "scores": Array(("n",)),
        "model": Array(("n",), lowest=0, below="k"),
        "sign": Number(),
        "alone": Flag(),
    }

    def __init__(self, models: list[Any], scores: np.ndarray, model: np.ndarray, sign: float, alone: bool = False) -> None:
        self.models = models
        self.scores = scores
        self.model = model
        self.sign = sign
        self.alone = alone

    def score_matrix(self, X: Any) -> np.ndarray:
        return np.column_stack([normality(model, X, self.sign, self.alone) for model in self.models])


@dataclass(frozen=True)
class Rows:
    """The rows of one fit: ``calibrating`` are the targets, ``always`` the known outliers that every model may see."""

    X: Any
    calibrating: np.ndarray
    always: np.ndarray
    weight: np.ndarray | None

    def fitted(self, estimator: Any, targets: np.ndarray) -> Any:
        """A copy of the estimator fitted on these targets and the known outliers."""
        rows, copy = np.union1d(targets, self.always), clone(estimator)
        detector = detector_of(copy)
        if hasattr(detector, "_leave_one_out") and "threshold" in detector.get_params(deep=False):
            detector.set_params(threshold="training")  # it leaves no samples out for a threshold that is not used
        return copy.fit(self.part(rows), *self._labels(rows), **self._weights(rows))

    def part(self, rows: np.ndarray) -> Any:
        """These rows of X."""
        return safe_indexing(self.X, rows)

    def exactly_left_out(self, model: Any) -> HeldOut:
        """Leave out every target in turn, by the fitted model's own method."""
        rows = np.union1d(self.calibrating, self.always)
        return model._leave_one_out(self.part(rows), *self._labels(rows), **self._weights(rows))

    def _labels(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        return (np.where(np.isin(rows, self.always), -1, 1),) if self.always.size else ()

    def _weights(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return {} if self.weight is None else {"sample_weight": self.weight[rows]}


def by_folds(estimator: Any, rows: Rows, folds: Sequence[Any], sign: float, n_jobs: int | None = None, verbose: int = 0) -> HeldOutModels:
    """One model for each (train, test) of positions among the calibrating rows; each kind of warning is given once for all fits."""
    tasks = ((estimator, rows, rows.calibrating[train], rows.calibrating[test], sign) for train, test in folds)
    done = in_parallel(_fold, tasks, n_jobs)
    scores, model = np.empty(rows.calibrating.size), np.empty(rows.calibrating.size, dtype=np.intp)
    models, alone, heard = [], False, dict[type[Warning], warnings.WarningMessage]()
    for number, (fitted, found, batched, said) in enumerate(progress(done, len(folds), verbose, "fits")):
        models.append(fitted)
        alone = alone or batched
        scores[folds[number][1]], model[folds[number][1]] = found, number
        heard.update({warning.category: warning for warning in said if warning.category not in heard})
    for warning in heard.values():
        warnings.warn(warning.message, stacklevel=4)
    if alone:
        name = type(detector_of(estimator)).__name__
        warnings.warn(
            f"{name} ranks a row among the rows that are scored with it. Rows are scored one by one, which takes longer.", stacklevel=4
        )
    return HeldOutModels(models, scores, model, sign, alone)


def _fold(estimator: Any, rows: Rows, train: np.ndarray, test: np.ndarray, sign: float) -> tuple[Any, np.ndarray, bool, list[Any]]:
    with warnings.catch_warnings(record=True, action="always") as said:
        model, held = rows.fitted(estimator, train), rows.part(test)
        alone = depends_on_batch(model, rows.part(train), sign)
        return model, normality(model, held, sign, alone), alone, said
