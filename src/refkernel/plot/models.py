"""The parts of a fitted model that displays look at: its steps, its classifier, its reference map, its decision values."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

__all__ = ["decisions_of", "final_of", "reference_map_of", "steps_of"]


def steps_of(model: Any) -> list[Any]:
    """The fitted steps of a pipeline, of the best estimator of a search, or the model alone."""
    model = getattr(model, "best_estimator_", model)
    return [step for _, step in model.steps if step not in (None, "passthrough")] if hasattr(model, "steps") else [model]


def final_of(model: Any) -> tuple[Any, str]:
    """The classifier of a model, and the prefix of its parameters' names."""
    return (model.steps[-1][1], f"{model.steps[-1][0]}__") if hasattr(model, "steps") else (model, "")


def reference_map_of(steps: list[Any]) -> tuple[int, Any] | None:
    """The first fitted reference map or kernel, and the number of the step that holds it."""
    for number, step in enumerate(steps):
        for part in (step, getattr(step, "kernel_", None)):
            if hasattr(part, "reference_indices_"):
                return number, part
    return None


def decisions_of(model: Any, X: Any) -> np.ndarray:
    """Decision values; raise if the model has none."""
    check_is_fitted(model)
    if not hasattr(model, "decision_function"):
        raise ValueError(f"{type(model).__name__} has no decision_function: pass a classifier, or a pipeline that ends in one.")
    return np.asarray(model.decision_function(X))
