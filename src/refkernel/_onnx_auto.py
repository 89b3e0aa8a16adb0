"""An AutoDetector as an ONNX graph, of the operators of ``onnx_export``. Everything is in double precision.

Distances add up column by column, as ``auto.descriptions`` adds them: neighbours that tie exactly are taken in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .auto.descriptions import Neighbours
from .auto.evidence import FARTHEST

LARGEST = np.finfo(np.float64).max

FLOAT, INT64 = 1, 7
"""ONNX's numbers of these types."""


def auto_detector(op: Any, model: Any, X: Any) -> Any:
    """score_samples(X) - offset_, from the descriptions that are used."""
    X = X if (model._unit == 1.0).all() else op.Div(X, model._unit)
    views = [_view(op, view, X) for view in model._views]
    distances: dict[Any, Any] = {}
    used, evidence = list(model._used), list(model._evidence)
    found = []
    for v, part in model._parts:
        mine = [(used.pop(0), evidence.pop(0)) for _ in part.names]
        if not any(is_used for is_used, _ in mine):
            continue
        key = v, part.columns.tobytes()  # residuals of few rows have the neighbours' distances
        if key not in distances:
            distances[key] = _l1(op, views[v], part.columns, f"distances_{len(distances)}_")
        scores = (_neighbours if isinstance(part, Neighbours) else _residual)(op, part, distances[key])
        found += [_evidence(op, of, score) for (is_used, of), score in zip(mine, scores, strict=True) if is_used]
    mean = op.Div(op.Sum(*found), _numbers(len(found)))
    return op.Sub(op.Sub(_numbers(0.0), mean), _numbers(model.offset_))


def _view(op, view, X):
    """``ColumnView.transform``: a constant column is 0, or ± jump where a sample differs from it."""
    away = op.Sub(X, view.median_)
    wide = op.Div(away, view.width_)
    bent = wide if view.kind == "plain" else _arcsinh(op, wide)
    if view.units is not None:
        bent = op.Where(~np.isnan(view.units), wide, bent)
    Z = op.Div(op.Sub(bent, view.mean_), view.std_)
    if not view.constant_.any():
        return Z
    differs = op.Greater(op.Abs(away), np.where(view.constant_, view.tolerance_, np.inf))
    jump = op.Where(differs, op.Mul(op.Sign(away), _numbers(view.jump_)), _numbers(0.0))
    return op.Add(op.Mul(Z, np.where(view.constant_, 0.0, 1.0)), jump)


def _arcsinh(op, X):
    """sign(x) (log m + log(|x| / m + sqrt((x / m)² + 1 / m²))), m = max(|x|, 1): onnxruntime has no Asinh of doubles."""
    size = op.Abs(X)
    m = op.Max(size, _numbers(1.0))
    share, one = op.Div(size, m), op.Div(_numbers(1.0), m)
    root = op.Sqrt(op.Add(op.Mul(share, share), op.Mul(one, one)))
    return op.Mul(op.Sign(X), op.Add(op.Log(m), op.Log(op.Add(share, root))))


def _l1(op, Z, columns, prefix):
    """||z - r||_1 (n × m) for references given by their columns: one n × m matrix grows column by column, whatever their number."""
    first = op.Abs(op.Sub(op.Gather(Z, _integers(0), axis=1), columns[:1]))
    d = columns.shape[0]
    if d == 1:
        return first
    others = op.Gather(Z, _integers(*range(1, d)), axis=1)
    body = _one_column(prefix)
    return op.Scan(first, others, columns[1:], num_scan_inputs=2, scan_input_axes=[1, 0], body=body, output_names=["u(D)"])


def _one_column(prefix):
    """The body of the scan: D + |z - r|, for one column z of the samples and r of the references. Names must occur once in a graph."""
    from onnx import TensorProto, helper, numpy_helper

    D, z, r, upright, column, difference, distance, following = (
        prefix + name for name in ("D", "z", "r", "upright", "column", "difference", "distance", "following")
    )

    def declared(name, *shape):
        return helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape)

    nodes = [
        helper.make_node("Reshape", [z, upright], [column], name=column),
        helper.make_node("Sub", [column, r], [difference], name=difference),
        helper.make_node("Abs", [difference], [distance], name=distance),
        helper.make_node("Add", [D, distance], [following], name=following),
    ]
    inputs, outputs = [declared(D, None, None), declared(z, None), declared(r, None)], [declared(following, None, None)]
    return helper.make_graph(nodes, prefix + "body", inputs, outputs, [numpy_helper.from_array(_integers(-1, 1), upright)])


def _neighbours(op, part, D):
    """The distance to the nearest row, and the mean of d / sqrt(the neighbour's own mean distance)."""
    nearest = op.TopK(D, _integers(part._k), axis=1, largest=0, sorted=1, output_names=["u(distances)", "u(rows)"])
    distances, rows = nearest[0], nearest[1]
    own = op.Gather(np.sqrt(np.maximum(part._close, part._floor)), rows, axis=0)
    return [
        op.Gather(distances, _integers(0), axis=1),
        op.ReduceMeanApi18(op.Div(distances, own), axes=[1], keepdims=1),
    ]


def _residual(op, part, D):
    """1 - ||exp(-D / width) root||²"""
    features = op.MatMul(op.Exp(op.Div(D, _numbers(-part._width))), part._root)
    return [op.Sub(_numbers(1.0), op.ReduceSumSquareApi18(features, axes=[1], keepdims=1))]


def _evidence(op, evidence, score):
    """Linear interpolation between the left-out rows, and log(1 + excess) beyond the highest."""
    at, value = evidence._at, evidence._value
    score = op.Min(score, _numbers(LARGEST))
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.nan_to_num(np.diff(value) / np.diff(at))
    position = _rows_below(op, at, score)
    begin, height, steep = (op.Gather(table, position, axis=0) for table in (np.r_[at[0], at], np.r_[0.0, value], np.r_[0.0, slope, 0.0]))
    excess = op.Div(op.Max(op.Sub(score, _numbers(at[-1])), _numbers(0.0)), _numbers(evidence._unit))
    beyond = op.Log(op.Add(op.Min(excess, _numbers(FARTHEST)), _numbers(1.0)))
    return op.Add(op.Add(height, op.Mul(steep, op.Sub(score, begin))), beyond)


def _rows_below(op, at, score):
    """How many of the values are at most the score (n × 1), by n × m comparisons."""
    below = op.Cast(op.LessOrEqual(at[None], score), to=FLOAT)  # holds every count up to 2**24
    return op.Cast(op.ReduceSumApi11(below, axes=[1], keepdims=1), to=INT64)


def _numbers(*values):
    return np.array(values, dtype=np.float64)


def _integers(*values):
    return np.array(values, dtype=np.int64)
