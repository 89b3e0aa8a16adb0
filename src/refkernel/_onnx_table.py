"""A TableEncoder as an ONNX graph, of the operators of ``onnx_export``: one input for each column of the table.

Numbers and dates (seconds since 1970, as doubles) are missing where they are NaN, categories where the text is empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._encoding import CATEGORY, DATE, TableEncoder
from ._encoding.parts import DAY, DAYS_OF_WEEK, THURSDAY, TOLERANCE, YEAR, ZERO_TOLERANCE, CategoryPart, NumbersPart

DOUBLE = 11
"""ONNX's number of this type."""

LABEL_ENCODER = 2
"""The version of the operator: the first that takes texts to numbers."""

Encoded = tuple[list[Any], Any, Any]
"""Encoded columns, and how many cells of each row contradict training and are missing (n × 1)."""


def table_encoder(op: Any, encoder: TableEncoder, inputs: list[Any]) -> Any:
    """``TableEncoder.transform``, in double precision."""
    encoded, violated, missing, extra = [], [], [], []
    for places, part in zip(encoder.places_, encoder.parts_, strict=True):
        mine = [inputs[j] for j in places]
        columns, contradicts, is_missing = (_category if encoder.kinds_[places[0]] == CATEGORY else _numbers)(op, part, mine)
        encoded += columns
        violated.append(_row_sum(op, contradicts))
        missing.append(_row_sum(op, is_missing))
        extra.append(_row_sum(op, op.Mul(is_missing, op.Sub(_constant(1.0), contradicts))))
    too_many = _indicator(op, op.Greater(_sum(op, missing), _constant(float(encoder.most_missing_))))
    count = op.Add(_sum(op, violated), op.Mul(too_many, _sum(op, extra)))
    return op.Concat(*encoded, op.Mul(count, _constant(encoder.jump_)) if encoder.standardise else count, axis=1)


def _numbers(op: Any, part: NumbersPart, inputs: list[Any]) -> Encoded:
    X = op.Concat(*[op.Cast(value, to=DOUBLE) for value in inputs], axis=1)
    is_missing = op.IsNaN(X)
    filled = op.Where(is_missing, part.median_, X)
    scaled = op.Div(op.Sub(filled, part.mean_), part.std_) if part.standardise else filled
    units = np.array(part.units)
    columns = []
    if len(part.varying):
        columns.append(op.Gather(scaled, part.varying.astype(np.int64), axis=1))
    flags = _indicator(op, is_missing)
    if len(part.flagged):
        flagged = op.Gather(flags, part.flagged.astype(np.int64), axis=1)
        unit = units[len(part.varying) : len(part.varying) + len(part.flagged)]
        columns.append(op.Div(flagged, unit) if part.standardise else flagged)
    if part.kind == DATE:
        circles = units[len(units) - 2 * len(part.cycles_) :: 2] if part.standardise else np.ones(len(part.cycles_))
        columns += [
            column for name, unit in zip(part.cycles_, circles, strict=True) for column in _circle(op, CYCLES[name](op, filled), unit)
        ]
    tolerance = np.where(part.median_ == 0, ZERO_TOLERANCE, TOLERANCE * np.abs(part.median_))
    away = op.Greater(op.Abs(op.Sub(filled, part.median_)), np.where(part.constant_, tolerance, np.inf))
    low, high = part.limits_
    far = op.Or(op.Less(filled, low), op.Greater(filled, high))
    never = op.Mul(flags, (part.missing_ == 0.0).astype(np.float64))
    return columns, op.Max(_indicator(op, op.Or(away, far)), never), flags


def _category(op: Any, part: CategoryPart, inputs: list[Any]) -> Encoded:
    """Two tables of words: the encoded column of each, and what it says about the row."""
    (cells,) = inputs
    width = len(part.units) - part.has_new_
    missing = width - 1 if part.has_missing_ else -1
    pool = len(part.own_) if part.has_pool_ else -1
    own = {level: place for place, level in enumerate(part.own_)} if part.units else {}
    places = _looked_up(op, cells, {**own, "": missing}, pool)
    columns = [_indicator(op, op.Equal(places, np.arange(width, dtype=np.float32)[None]))] if width else []
    known = dict.fromkeys(part.levels_, 0.0)
    if part.has_new_:
        columns.append(op.Cast(_looked_up(op, cells, {**known, "": 0.0}, 1.0), to=DOUBLE))
    if part.standardise and columns:
        columns = [op.Div(op.Concat(*columns, axis=1), np.array(part.units))]
    contradicts = _looked_up(op, cells, {**known, "": float(not part.has_missing_)}, float(not part.expects_new_))
    is_missing = _looked_up(op, cells, {"": 1.0}, 0.0)
    return columns, op.Cast(contradicts, to=DOUBLE), op.Cast(is_missing, to=DOUBLE)


def _looked_up(op: Any, cells: Any, values: dict[str, float], otherwise: float) -> Any:
    return op.LabelEncoder_2(
        cells,
        keys_strings=list(values),
        values_floats=[float(value) for value in values.values()],
        default_float=float(otherwise),
        op_version=LABEL_ENCODER,
    )


def _circle(op: Any, share: Any, unit: float) -> list[Any]:
    """Sine and cosine of a place in a cycle; onnxruntime has no cosine of doubles."""
    angle = op.Mul(share, _constant(2.0 * np.pi))
    return [op.Div(op.Sin(op.Add(angle, _constant(shift))), _constant(unit)) for shift in (0.0, 0.5 * np.pi)]


def _rest(op: Any, X: Any, length: float) -> Any:
    """x modulo a length, as a share of it."""
    turns = op.Div(X, _constant(length))
    return op.Sub(turns, op.Floor(turns))


CYCLES = {
    "hour": lambda op, X: _rest(op, X, DAY),
    "weekday": lambda op, X: _rest(op, op.Add(op.Floor(op.Div(X, _constant(DAY))), _constant(THURSDAY)), DAYS_OF_WEEK),
    "month": lambda op, X: _rest(op, X, YEAR),
}


def _indicator(op: Any, condition: Any) -> Any:
    return op.Cast(condition, to=DOUBLE)


def _row_sum(op: Any, X: Any) -> Any:
    return op.ReduceSumApi11(X, axes=[1], keepdims=1)


def _sum(op: Any, parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else op.Sum(*parts)


def _constant(value: float) -> np.ndarray:
    return np.array([value], dtype=np.float64)
