"""Which input column each column of a transformed table comes from, for transformers that work column by column."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder

from .._encoding import TableEncoder
from ..preprocessing import TargetScaler

__all__ = ["SHARED", "sources_of", "unwrapped"]

SHARED = -1
"""The source of a column that belongs to some of the input's columns, other ones in each row."""


def unwrapped(model: Any) -> tuple[list[Any], Any]:
    """The transformers of a fitted pipeline and its last step, of the best estimator of a search too."""
    before: list[Any] = []
    while True:
        if getattr(model, "best_estimator_", None) is not None:
            model = model.best_estimator_
        elif isinstance(model, Pipeline):
            before += [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
            model = model.steps[-1][1]
        else:
            return before, model


@singledispatch
def sources_of(step: Any, columns: int) -> np.ndarray:
    """The number of the input column of each output column; a transformer of your own says it by a method ``column_sources``."""
    if hasattr(step, "column_sources"):
        return np.asarray(step.column_sources(), dtype=np.intp)
    raise TypeError(
        f"{type(step).__name__} may mix columns, so its input cannot be explained. Explain what it returns: "
        "rk.explain(pipeline[-1], pipeline[:-1].transform(X))."
    )


@sources_of.register
def _(step: str, columns: int) -> np.ndarray:
    return np.arange(columns if step == "passthrough" else 0)


@sources_of.register
def _(step: OneToOneFeatureMixin, columns: int) -> np.ndarray:
    return np.arange(columns)


sources_of.register(Normalizer, sources_of.dispatch(object))  # its columns keep their names, but depend on all others


@sources_of.register
def _(step: FunctionTransformer, columns: int) -> np.ndarray:
    if step.func is not None and step.feature_names_out != "one-to-one":
        return sources_of.dispatch(object)(step, columns)
    return np.arange(columns)


@sources_of.register
def _(step: TargetScaler, columns: int) -> np.ndarray:
    return np.flatnonzero(step.kept_)


@sources_of.register
def _(step: TableEncoder, columns: int) -> np.ndarray:
    found = np.full(step.units_.size, SHARED)
    for number, column in enumerate(step.columns):
        found[list(column.encoded)] = number
    return found


@sources_of.register
def _(step: SelectorMixin, columns: int) -> np.ndarray:
    return step.get_support(indices=True)


@sources_of.register
def _(step: SimpleImputer, columns: int) -> np.ndarray:
    filled = np.array([step.keep_empty_features or value == value for value in step.statistics_])  # NaN where nothing was seen
    marked = step.indicator_.features_ if step.add_indicator else np.empty(0, dtype=np.intp)
    return np.concatenate([np.flatnonzero(filled), marked])


@sources_of.register
def _(step: OneHotEncoder, columns: int) -> np.ndarray:
    return np.repeat(np.arange(columns), step._n_features_outs)


@sources_of.register
def _(step: Pipeline, columns: int) -> np.ndarray:
    found = np.arange(columns)
    for _, inner in step.steps:
        if inner not in (None, "passthrough"):
            found = found[sources_of(inner, found.size)]
    return found


@sources_of.register
def _(step: ColumnTransformer, columns: int) -> np.ndarray:
    parts = []
    for name, inner, chosen in step.transformers_:
        numbers = _numbers(step, chosen)
        if step.output_indices_[name].stop > step.output_indices_[name].start:
            parts.append(numbers[sources_of(inner, numbers.size)])
    return np.concatenate(parts)


def _numbers(step: ColumnTransformer, chosen: Any) -> np.ndarray:
    """Column numbers of what a part of a ColumnTransformer was given."""
    if isinstance(chosen, slice):
        return np.arange(step.n_features_in_)[chosen]
    chosen = np.atleast_1d(np.asarray(chosen))
    if chosen.dtype == bool:
        return np.flatnonzero(chosen)
    if chosen.dtype.kind in "iu":
        return chosen
    known = {name: number for number, name in enumerate(step.feature_names_in_)}
    return np.array([known[name] for name in chosen], dtype=np.intp)
