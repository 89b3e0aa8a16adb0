"""The points of a decision region: samples, support vectors and references, in the space of the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from .._validation import target_mask
from ..references import GENERATED
from .models import reference_map_of, steps_of

__all__ = ["Samples", "points_of", "samples_of"]


@dataclass(frozen=True)
class Samples:
    """The samples of a picture: ``X`` as it was given, its ``values`` (n × d), and which rows are targets."""

    X: Any
    values: np.ndarray
    is_target: np.ndarray


def samples_of(model: Any, X: Any, y: Any) -> Samples:
    """The samples of a picture, after checking that X has the model's features."""
    values = check_array(X, dtype=np.float64)
    d = getattr(model, "n_features_in_", values.shape[1])
    if values.shape[1] != d:
        raise ValueError(f"X has {values.shape[1]} features; {type(model).__name__} was fitted on {d}: pass all of them.")
    return Samples(X, values, target_mask(values, y))


def points_of(model: Any, samples: Samples) -> dict[str, np.ndarray]:
    """The points to mark, by kind, in the space of X; kinds without points are left out."""
    steps, is_target = steps_of(model), samples.is_target
    points = {"targets": samples.values[is_target], "known outliers": samples.values[~is_target]}
    if hasattr(steps[-1], "support_vectors_"):
        points["support vectors"] = _located(samples, steps[:-1], steps[-1].support_, steps[-1].support_vectors_)
    found = reference_map_of(steps)
    if found is not None:
        number, fitted = found
        indices, R = fitted.reference_indices_, fitted.references_
        for kind, chosen in {"references": indices != GENERATED, "generated references": indices == GENERATED}.items():
            points[kind] = _located(samples, steps[:number], indices[chosen], R[chosen])
    return {kind: found for kind, found in points.items() if len(found)}


def _located(samples: Samples, steps: list[Any], indices: np.ndarray, vectors: Any) -> np.ndarray:
    """The output of some steps in the space of X: the rows of X that it came from, or the result of undoing the steps."""
    inputs = [samples.X]
    for step in steps:
        inputs.append(step.transform(inputs[-1]))
    Z, vectors = _dense(inputs.pop()), _dense(vectors)
    is_row = (indices != GENERATED) & (indices < len(Z))
    is_row[is_row] = np.isclose(Z[indices[is_row]], vectors[is_row]).all(axis=1)
    rest = vectors[~is_row]
    for step, given in zip(reversed(steps), reversed(inputs), strict=True):
        rest = _undone(step, rest, np.shape(given)[1])
    return np.concatenate([samples.values[indices[is_row]], rest])


def _undone(step: Any, vectors: np.ndarray, n_features: int) -> np.ndarray:
    """The input of a step that gave ``vectors``; no rows (of ``n_features`` features) if the step cannot be undone."""
    if len(vectors) and hasattr(step, "inverse_transform"):
        return _dense(step.inverse_transform(vectors))
    return np.empty((0, n_features))


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
