"""An AutoDetector as an ONNX graph, of the operators of ``onnx_export``. Everything is in double precision.

Distances add up column by column, as ``auto.descriptions`` adds them: neighbours that tie exactly are taken in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from .auto import AutoDetector
from .auto.descriptions import Neighbours, Residuals
from .auto.evidence import FARTHEST, Evidence
from .auto.views import ColumnView

Node: TypeAlias = Any
"""A node of a graph, of skl2onnx, which has no types. Arrays take the place of nodes as constants."""

LARGEST = np.finfo(np.float64).max

FLOAT, INT64 = 1, 7
"""ONNX's numbers of these types."""


class Ops(Protocol):
    """The operators of one opset: ``op.MatMul(A, B)`` is a node."""

    def __getattr__(self, name: str) -> Callable[..., Node]: ...


def auto_detector(op: Ops, model: AutoDetector, X: Node) -> Node:
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
        roots = getattr(part, "roots", False)
        key = v, roots, part.columns.tobytes()  # residuals of few rows have the neighbours' distances
        if key not in distances:
            distances[key] = _l1(op, views[v], part.columns, roots, f"distances_{len(distances)}_")
        scores = (_neighbours if isinstance(part, Neighbours) else _residuals)(op, part, distances[key])
        found += [_evidence(op, of, score) for (is_used, of), score in zip(mine, scores, strict=True) if is_used]
    mean = op.Div(op.Sum(*found), numbers(len(found)))
    return op.Sub(_bounded(op, model, X, op.Sub(numbers(0.0), mean)), numbers(model.offset_))


def _bounded(op: Ops, model: AutoDetector, X: Node, scores: Node) -> Node:
    """The scores; those of samples that contradict a constant begin at ``_lowest`` instead of 0."""
    view = model._views[0]
    fixed = getattr(view, "fixed_", view.constant_)
    if not fixed.any():
        return scores
    differs = op.Greater(op.Abs(op.Sub(X, view.median_)), np.where(fixed, view.tolerance_, np.inf))
    count = op.ReduceSumApi11(op.Cast(differs, to=FLOAT), axes=[1], keepdims=1)
    return op.Where(op.Greater(count, np.zeros(1, dtype=np.float32)), op.Add(scores, numbers(model._lowest)), scores)


def _view(op: Ops, view: ColumnView, X: Node) -> Node:
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
    jump = op.Where(differs, op.Mul(op.Sign(away), numbers(view.jump_)), numbers(0.0))
    return op.Add(op.Mul(Z, np.where(view.constant_, 0.0, 1.0)), jump)


def _arcsinh(op: Ops, X: Node) -> Node:
    """sign(x) (log m + log(|x| / m + sqrt((x / m)² + 1 / m²))), m = max(|x|, 1): onnxruntime has no Asinh of doubles."""
    size = op.Abs(X)
    m = op.Max(size, numbers(1.0))
    share, one = op.Div(size, m), op.Div(numbers(1.0), m)
    root = op.Sqrt(op.Add(op.Mul(share, share), op.Mul(one, one)))
    return op.Mul(op.Sign(X), op.Add(op.Log(m), op.Log(op.Add(share, root))))


def _l1(op: Ops, Z: Node, columns: np.ndarray, roots: bool, prefix: str) -> Node:
    """Sums of |z - r| or of their roots (n × m), for references given by their columns: one n × m matrix grows column by column."""
    first = op.Abs(op.Sub(op.Gather(Z, integers(0), axis=1), columns[:1]))
    first = op.Sqrt(first) if roots else first
    d = columns.shape[0]
    if d == 1:
        return first
    others = op.Gather(Z, integers(*range(1, d)), axis=1)
    body = _one_column(prefix, roots)
    return op.Scan(first, others, columns[1:], num_scan_inputs=2, scan_input_axes=[1, 0], body=body, output_names=["u(D)"])


def _one_column(prefix: str, roots: bool) -> Any:
    """The body of the scan: D + |z - r| or its root, for one column z of the samples and r of the references. Names must be unique."""
    from onnx import TensorProto, helper, numpy_helper

    D, z, r, upright, column, difference, distance, root, following = (
        prefix + name for name in ("D", "z", "r", "upright", "column", "difference", "distance", "root", "following")
    )

    def declared(name: str, *shape: None) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape)

    nodes = [
        helper.make_node("Reshape", [z, upright], [column], name=column),
        helper.make_node("Sub", [column, r], [difference], name=difference),
        helper.make_node("Abs", [difference], [distance], name=distance),
        *([helper.make_node("Sqrt", [distance], [root], name=root)] if roots else []),
        helper.make_node("Add", [D, root if roots else distance], [following], name=following),
    ]
    inputs, outputs = [declared(D, None, None), declared(z, None), declared(r, None)], [declared(following, None, None)]
    return helper.make_graph(nodes, prefix + "body", inputs, outputs, [numpy_helper.from_array(integers(-1, 1), upright)])


def _neighbours(op: Ops, part: Neighbours, D: Node) -> list[Node]:
    """The distance to the nearest row, and the mean of d / sqrt(the neighbour's own mean distance)."""
    nearest = op.TopK(D, integers(part._k), axis=1, largest=0, sorted=1, output_names=["u(distances)", "u(rows)"])
    distances, rows = nearest[0], nearest[1]
    own = op.Gather(np.sqrt(np.maximum(part._close, part._floor)), rows, axis=0)
    return [
        op.Gather(distances, integers(0), axis=1),
        op.ReduceMeanApi18(op.Div(distances, own), axes=[1], keepdims=1),
    ]


def _residuals(op: Ops, part: Residuals, D: Node) -> list[Node]:
    """1 - ||exp(-D / width) root||² for every width."""
    found = []
    for width, root in zip(part._widths, part._roots, strict=True):
        features = op.MatMul(op.Exp(op.Div(D, numbers(-width))), root)
        found.append(op.Sub(numbers(1.0), op.ReduceSumSquareApi18(features, axes=[1], keepdims=1)))
    return found


def _evidence(op: Ops, evidence: Evidence, score: Node) -> Node:
    """Linear interpolation between the left-out rows, and log(1 + excess) beyond the highest."""
    at, value = evidence._at, evidence._value
    score = op.Min(score, numbers(LARGEST))
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.nan_to_num(np.diff(value) / np.diff(at))
    position = _rows_below(op, at, score)
    begin, height, steep = (op.Gather(table, position, axis=0) for table in (np.r_[at[0], at], np.r_[0.0, value], np.r_[0.0, slope, 0.0]))
    excess = op.Div(op.Max(op.Sub(score, numbers(at[-1])), numbers(0.0)), numbers(evidence._unit))
    beyond = op.Log(op.Add(op.Min(excess, numbers(FARTHEST)), numbers(1.0)))
    return op.Add(op.Add(height, op.Mul(steep, op.Sub(score, begin))), beyond)


def _rows_below(op: Ops, at: np.ndarray, score: Node) -> Node:
    """How many of the values are at most the score (n × 1), by n × m comparisons."""
    below = op.Cast(op.LessOrEqual(at[None], score), to=FLOAT)  # holds every count up to 2**24
    return op.Cast(op.ReduceSumApi11(below, axes=[1], keepdims=1), to=INT64)


def numbers(*values: float) -> np.ndarray:
    """A constant of doubles."""
    return np.array(values, dtype=np.float64)


def integers(*values: int) -> np.ndarray:
    """A constant of 64-bit integers."""
    return np.array(values, dtype=np.int64)
