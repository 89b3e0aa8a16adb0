"""What is normal for each column of a model's input: a range of numbers, or some levels."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._encoding import DATE, Column, TableEncoder
from .._one_class import OneClassClassifier
from ..auto import AutoDetector
from ..references import GENERATED
from ..residual import ReferenceResidual
from .normal import Normal
from .sources import unwrapped

__all__ = ["normal_of", "normals_of_model"]


def normal_of(column: Column, bulk: bool = False) -> Normal | None:
    """What a table model's column says; None if it says nothing. ``bulk`` leaves out 1 % of the numbers on each side."""
    if column.minimum is not None and column.maximum is not None:
        low, _, typical, _, high = column.quantiles or (column.minimum, None, None, None, column.maximum)
        ends = (low, high) if bulk else (column.minimum, column.maximum)
        return Normal(*ends, is_date=column.kind == DATE, typical=typical)
    return Normal(levels=column.levels) if column.levels else None


def normals_of_model(model: Any) -> list[Normal | None]:
    """What is normal for each input column, by what a fitted model keeps of its training rows."""
    before, final = unwrapped(model)
    if before and isinstance(before[0], TableEncoder):
        return [normal_of(column) for column in before[0].columns]
    rows = kept_rows(final)
    for step in reversed(before):
        if not hasattr(step, "inverse_transform"):
            raise TypeError(
                f"{type(step).__name__} cannot be undone, so the ranges of its input are not known. Pass them: "
                "ranges={name: (low, high), …}, or levels for categories."
            )
        rows = step.inverse_transform(rows)
    low, high, typical = rows.min(axis=0), rows.max(axis=0), np.median(rows, axis=0)
    return [Normal(float(a), float(b), typical=float(c)) for a, b, c in zip(low, high, typical, strict=True)]


@singledispatch
def kept_rows(final: Any) -> np.ndarray:
    """Training rows that a detector keeps, or draws like them."""
    raise TypeError(f"{type(final).__name__} keeps no training rows: pass ranges={{name: (low, high), …}}.")


@kept_rows.register
def _(final: OneClassClassifier) -> np.ndarray:
    kernel, rows = final.kernel_, _dense(final.support_vectors_)
    if not hasattr(kernel, "reference_indices_"):
        return rows
    return np.vstack([rows, _dense(kernel.references_)[kernel.reference_indices_ != GENERATED]])


@kept_rows.register
def _(final: ReferenceResidual) -> np.ndarray:
    return _dense(final.map_.references_)


@kept_rows.register
def _(final: AutoDetector) -> np.ndarray:
    """The rows among which neighbours are searched, in the view that only standardises."""
    view, Z = final._views[0], final._parts[0][1].columns.T
    return ((Z * view.std_ + view.mean_) * view.width_ + view.median_) * final._unit


def _dense(rows: Any) -> np.ndarray:
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)
