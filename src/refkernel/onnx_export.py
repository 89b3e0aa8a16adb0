"""ONNX export: fitted models as graphs that onnxruntime scores without Python.

Importing this module registers converters for the package's estimators with skl2onnx, so ``skl2onnx.to_onnx`` converts
pipelines of them too.

Our steps compute in double precision, and detectors take doubles from our transformers, for any type of input:
decisions from single-precision kernel values are off by 1e-5 to 1e-4 of their range where the kernel is wide or whitened.

Symbols as in ``feature_map``: ``Phi(X) = [k(X, R), 1] projection``. A graph is built by ``op``: ``op.MatMul(X, W)`` is one node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._distances import squared_norms
from ._encoding import CATEGORY, TableEncoder
from ._onnx_auto import Node, Ops, auto_detector, integers, numbers
from ._onnx_table import table_encoder
from .auto import AutoDetector
from .feature_map import NPT, ReferenceKernel, ReferenceMap
from .kernels import RBF, Kernel, Laplacian, Linear, Pairwise, Polynomial, Product, Scaled, Sigmoid, Sum
from .one_class_svm import OneClassSVM
from .preprocessing import TargetImputer, TargetScaler
from .svdd import SVDD

try:
    import skl2onnx
    from onnx import ModelProto, TensorProto
    from skl2onnx.algebra import onnx_ops
    from skl2onnx.algebra.type_helper import guess_initial_types
    from skl2onnx.common.data_types import (
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
        guess_proto_type,
        guess_tensor_type,
    )
    from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
    from skl2onnx.operator_converters.imputer_op import convert_sklearn_imputer
    from skl2onnx.shape_calculators.imputer import calculate_sklearn_imputer_output_shapes
except ImportError as error:
    raise ImportError('The ONNX export needs skl2onnx and onnx: pip install "refkernel[onnx]".') from error

__all__ = ["register", "to_onnx"]

Build: TypeAlias = Callable[[Ops, Any, Node], Node]
"""The graph of a model: (op, model, X)."""
Finish: TypeAlias = Callable[[Ops, Any, Node], list[Node]]
"""The nodes that end a graph: (op, operator, result). Scopes and operators are objects of skl2onnx, which has no types."""

ON_REFERENCES = (ReferenceKernel, ReferenceMap, NPT)
"""Kernels of a classifier that are inner products of Phi."""


def to_onnx(model: Any, X: Any = None, *, target_opset: int | dict[str, int] | None = None) -> ModelProto:
    """Convert a fitted model to an ONNX graph.

    A detector has two outputs of shape (n_samples, 1): ``label`` (int64, +1 or -1) and ``scores``, its decision function. A
    transformer has one, ``variable``. Decisions on float32 samples agree with the model's to 1e-5 of their range, on float64
    samples to 1e-9: our steps compute in double precision. Other steps of a pipeline compute as skl2onnx writes them; for
    samples many deviations from 0, scale with :class:`TargetScaler`, or pass ``X`` as float64.

    Parameters
    ----------
    model : fitted estimator
        A :class:`SVDD`, :class:`OneClassSVM`, :class:`AutoDetector`, :class:`ReferenceMap`, :class:`NPT` or :class:`TargetScaler`, or
        a scikit-learn pipeline of these and of steps that skl2onnx knows. A fitted search stands for its ``best_estimator_``. Kernels: RBF,
        Laplacian, Linear, Polynomial, Sigmoid, for a classifier itself or under a reference map or kernel.
    X : array-like or DataFrame of shape (n_samples, n_features), optional
        Samples of the type that the graph should take: float32, float64 or integers. A DataFrame gives one input for each
        column. By default one input ``X`` of float32; for a model of ``refkernel fit`` one input of shape (n_samples, 1) for each
        column: texts for categories (missing: empty), float64 for numbers and for dates, in seconds since 1970 (missing: NaN).
    target_opset : int or dict, optional
        The ONNX operator set to use, 12 or later; skl2onnx chooses by default.

    Returns
    -------
    onnx.ModelProto
        Write it with ``SerializeToString()``.

    Notes
    -----
    The graph of a Laplacian kernel holds n_samples × n_references × n_features differences at a time: score in small batches.
    That of an AutoDetector holds n_samples × n_training_rows distances. Where two training rows are equally far from a sample up to
    rounding, as in columns of integers, graph and model may take either as a neighbour: there scores differ by up to 1e-3 of their range.

    Examples
    --------
    >>> import numpy as np, onnxruntime, refkernel as rk
    >>> from refkernel.onnx_export import to_onnx
    >>> model = rk.SVDD(nu=0.1).fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> label, scores = session.run(None, {"X": np.array([[0.0, 0.0], [5.0, 5.0]], dtype=np.float32)})
    >>> label.ravel().tolist()
    [1, -1]
    """
    check_is_fitted(model)
    model = getattr(model, "best_estimator_", model)
    types = _default_types(model) if X is None else guess_initial_types(_as_samples(X))
    try:
        return skl2onnx.to_onnx(model, initial_types=types, target_opset=target_opset)
    except (MissingConverter, MissingShapeCalculator) as error:
        steps = [type(step).__name__ for _, step in getattr(model, "steps", [("", model)])]
        raise ValueError(f"A step of {' and '.join(steps)} cannot be converted to ONNX: see to_onnx for the models that can.") from error
    except RuntimeError as error:
        if X is None and "column name" in str(error):
            raise ValueError("The model takes columns by name: pass some rows as X, a DataFrame, for their names and types.") from error
        raise


def register() -> None:
    """Register converters for the estimators of this package with skl2onnx; importing this module calls it."""
    for model, build in GRAPHS.items():
        parse, shapes, finish = DETECTOR if model in DETECTORS else TRANSFORMER
        skl2onnx.update_registered_converter(model, f"Refkernel{model.__name__}", shapes, _converter(build, finish), parser=parse)
    skl2onnx.update_registered_converter(
        TargetImputer, "RefkernelTargetImputer", calculate_sklearn_imputer_output_shapes, convert_sklearn_imputer
    )


class _Ops:
    """The operators of one opset: ``op.MatMul(A, B)`` is a node; arrays become constants."""

    def __init__(self, version: int):
        self.version = version

    def __getattr__(self, name: str) -> Callable[..., Node]:
        return partial(getattr(onnx_ops, f"Onnx{name}"), op_version=self.version)


def _converter(build: Build, finish: Finish) -> Callable[[Any, Any, Any], None]:
    """A converter in the form of skl2onnx: samples as doubles, the model's own graph, the outputs."""

    def convert(scope: Any, operator: Any, container: Any) -> None:
        op = _Ops(container.target_opset)
        samples = list(operator.inputs) if isinstance(operator.raw_operator, TableEncoder) else _samples(op, operator)
        for output in finish(op, operator, build(op, operator.raw_operator, samples)):
            output.add_to(scope, container)

    return convert


def _samples(op: Ops, operator: Any) -> Node:
    """X (n × d) in double precision, from one input or one for each column.

    A single input goes through Concat too. onnxruntime merges a matrix product with a scalar factor next to it, and rounds the
    factor to single precision: Concat keeps the division by a scaler of one feature apart.
    """
    return op.Concat(*[op.Cast(variable, to=TensorProto.DOUBLE) for variable in operator.inputs], axis=1)


def _parse_transformer(scope: Any, model: BaseEstimator, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    return _declare(scope, model, inputs, variable=_precision(scope))


def _parse_detector(scope: Any, model: BaseEstimator, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """What a transformer of ours gives a detector stays double: rounded features of a wide kernel cost digits."""
    for step in scope.operators.values():
        if type(step.raw_operator) in GRAPHS and inputs[0] in list(step.outputs):
            inputs[0].type = DoubleTensorType()
    return _declare(scope, model, inputs, label=Int64TensorType(), scores=_precision(scope))


def _precision(scope: Any) -> Any:
    """The type of real outputs: that of the graph's inputs (double if one is), whatever the steps before this one give."""
    types = [guess_tensor_type(variable.type) for variable in scope.input_variables if not isinstance(variable.type, StringTensorType)]
    return next((kind for kind in types if isinstance(kind, DoubleTensorType)), types[0] if types else FloatTensorType())


def _declare(scope: Any, model: BaseEstimator, inputs: list[Any], **outputs: Any) -> list[Any]:
    """A step of the graph, with these outputs."""
    operator = scope.declare_local_operator(skl2onnx.get_model_alias(type(model)), model)
    operator.inputs = inputs
    for name, kind in outputs.items():
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _transformer_shapes(operator: Any) -> None:
    model = _checked(operator)
    operator.outputs[0].type.shape = [operator.inputs[0].get_first_dimension(), model.get_feature_names_out().size]


def _detector_shapes(operator: Any) -> None:
    _checked(operator)
    for output in operator.outputs:
        output.type.shape = [operator.inputs[0].get_first_dimension(), 1]


def _checked(operator: Any) -> Any:
    """The model, if it is fitted and its inputs have as many features as it was fitted on."""
    model = operator.raw_operator
    check_is_fitted(model)
    if getattr(model, "kernel_", None) is not None and model.kernel_.pairwise:
        _convertible(model.kernel_, model.n_features_in_)  # raises
    widths = [variable.get_second_dimension() for variable in operator.inputs]
    if None not in widths and sum(widths) != model.n_features_in_:
        raise ValueError(
            f"The graph's input has {sum(widths)} features, but {type(model).__name__} was fitted on {model.n_features_in_}: "
            "pass X with the same columns as in fit."
        )
    return model


def _transformer(op: Ops, operator: Any, features: Node) -> list[Node]:
    (output,) = operator.outputs
    return [op.Cast(features, to=guess_proto_type(output.type), output_names=[output])]


def _detector(op: Ops, operator: Any, decision: Node) -> list[Node]:
    """Labels follow from the decision in double precision, as ``predict`` makes them."""
    label, scores = operator.outputs
    inside = op.GreaterOrEqual(decision, numbers(0.0))
    return [
        op.Where(inside, integers(1), integers(-1), output_names=[label]),
        op.Cast(decision, to=guess_proto_type(scores.type), output_names=[scores]),
    ]


TRANSFORMER = (_parse_transformer, _transformer_shapes, _transformer)
DETECTOR = (_parse_detector, _detector_shapes, _detector)
"""What skl2onnx needs to know about a kind of model: its outputs, their shapes, and the nodes that end its graph."""


def _target_scaler(op: Ops, scaler: TargetScaler, X: Node) -> Node:
    kept = X if scaler.kept_.all() else op.Gather(X, integers(*np.flatnonzero(scaler.kept_)), axis=1)
    return op.Div(op.Sub(kept, scaler.mean_), scaler.scale_)


def _reference_map(op: Ops, reference_map: ReferenceMap, X: Node) -> Node:
    return _features(op, reference_map, _against_references(op, reference_map, X))


def _classifier(op: Ops, model: SVDD | OneClassSVM, X: Node) -> Node:
    """slope · Σ b_i k(x_i, x) - diag_share · (k(x, x) + b'Kb) - offset"""
    description, sums = model.classifier, _sums(op, model, X)
    linear = op.MatMul(sums.values, _column(description.slope * sums.weights))
    constant = numbers(description.score(sums.shift, 0.0, model._quadratic) - model.offset_)
    return op.Add(op.Sub(linear, sums.diag()) if description.uses_diag else linear, constant)


GRAPHS: dict[type[BaseEstimator], Build] = {
    TableEncoder: table_encoder,
    TargetScaler: _target_scaler,
    ReferenceMap: _reference_map,
    NPT: _reference_map,
    SVDD: _classifier,
    OneClassSVM: _classifier,
    AutoDetector: auto_detector,
}
"""The models that are converted, and the function ``(op, model, X)`` that builds the graph of each."""

DETECTORS = (SVDD, OneClassSVM, AutoDetector)


@dataclass(frozen=True)
class _Sums:
    """Σ b_i K(x, x_i) = values · weights + shift, and the graph of K(x, x) on demand."""

    values: Node
    weights: np.ndarray
    shift: float
    diag: Callable[[], Node]


def _sums(op: Ops, model: SVDD | OneClassSVM, X: Node) -> _Sums:
    """From kernel values of the references, the samples themselves (linear kernel), or kernel values of the support vectors."""
    kernel = model.kernel_
    if type(kernel) in ON_REFERENCES:
        K_XR, normal = _against_references(op, kernel, X), kernel._factor.projection @ model._normal
        return _Sums(K_XR, normal[:-1], normal[-1], lambda: _row_norms(op, _features(op, kernel, K_XR)))
    kernel, formula = _convertible(kernel, model.n_features_in_)
    diag = partial(formula.diag, op, kernel, X, model.n_features_in_)
    if model._normal is not None:
        return _Sums(X, model._normal, 0.0, diag)
    return _Sums(formula.values(op, kernel, X, _dense(model.support_vectors_)), model.dual_coef_[0], 0.0, diag)


def _against_references(op: Ops, fitted: ReferenceMap | ReferenceKernel, X: Node) -> Node:
    kernel, formula = _convertible(fitted.kernel_, fitted.n_features_in_)
    return formula.values(op, kernel, X, _dense(fitted.references_))


def _features(op: Ops, fitted: ReferenceMap | ReferenceKernel, K_XR: Node) -> Node:
    projection = _dense(fitted._factor.projection)
    return op.Add(op.MatMul(K_XR, projection[:-1]), projection[-1])


@dataclass(frozen=True)
class _Formula:
    """A kernel as a graph: ``values(op, kernel, X, Z)`` is k(X, Z), ``diag(op, kernel, X, d)`` the column of k(x, x), d its features."""

    values: Callable[[Ops, Any, Node, np.ndarray], Node]
    diag: Callable[[Ops, Any, Node, int], Node]


def _of_distances(values: Callable[[Ops, Any, Node, np.ndarray], Node]) -> _Formula:
    return _Formula(values, lambda op, kernel, X, d: numbers(1.0))


def _of_products(formula: Callable[[Ops, Any, Node], Node]) -> _Formula:
    """A function of gamma x · z. As in ``_rbf``, the factor goes into the constants: see ``_samples``."""
    return _Formula(
        lambda op, kernel, X, Z: formula(op, kernel, op.MatMul(X, _gamma(kernel) * Z.T)),
        lambda op, kernel, X, d: formula(op, kernel, op.Mul(_row_norms(op, X), numbers(_gamma(kernel)))),
    )


def _gamma(kernel: Kernel) -> float:
    return getattr(kernel, "gamma", 1.0)


def _rbf(op: Ops, kernel: Any, X: Node, Z: np.ndarray) -> Node:
    """exp(-||x - z||² / (2 sigma²)); all rows are first moved by the mean of Z, so that far-away data lose no digits."""
    if np.ndim(kernel.sigma):
        X, Z, kernel = op.Div(X, np.asarray(kernel.sigma)), Z / kernel.sigma, RBF(sigma=1.0)
    origin, gamma = Z.mean(axis=0), 0.5 / kernel.sigma**2
    X, Z = op.Sub(X, origin), Z - origin
    near = op.Sub(op.MatMul(X, 2.0 * gamma * Z.T), gamma * squared_norms(Z))
    exponent = op.Sub(near, op.Mul(_row_norms(op, X), numbers(gamma)))
    return op.Exp(op.Min(exponent, numbers(0.0)))


def _laplacian(op: Ops, kernel: Any, X: Node, Z: np.ndarray) -> Node:
    """exp(-gamma ||x - z||_1)"""
    rows = op.Reshape(X, integers(0, 1, Z.shape[1]))  # 0: as many as X has
    distances = op.ReduceSumApi11(op.Abs(op.Sub(rows, Z)), axes=[2], keepdims=0)
    return op.Exp(op.Mul(distances, numbers(-kernel.gamma)))


def _of_pair(operator: str) -> _Formula:
    """A sum or product of two kernels."""
    return _Formula(
        lambda op, kernel, X, Z: getattr(op, operator)(_values(op, kernel.first, X, Z), _values(op, kernel.second, X, Z)),
        lambda op, kernel, X, d: getattr(op, operator)(_diag(op, kernel.first, X, d), _diag(op, kernel.second, X, d)),
    )


def _values(op: Ops, kernel: Kernel, X: Node, Z: np.ndarray) -> Node:
    kernel, formula = _convertible(kernel, Z.shape[1])
    return formula.values(op, kernel, X, Z)


def _diag(op: Ops, kernel: Kernel, X: Node, d: int) -> Node:
    kernel, formula = _convertible(kernel, d)
    return formula.diag(op, kernel, X, d)


FORMULAS: dict[type, _Formula] = {
    RBF: _of_distances(_rbf),
    Laplacian: _of_distances(_laplacian),
    Linear: _of_products(lambda op, kernel, products: products),
    Polynomial: _of_products(lambda op, kernel, products: op.Pow(op.Add(products, numbers(kernel.coef0)), numbers(kernel.degree))),
    Sigmoid: _of_products(lambda op, kernel, products: op.Tanh(op.Add(products, numbers(kernel.coef0)))),
    Sum: _of_pair("Add"),
    Product: _of_pair("Mul"),
    Scaled: _Formula(
        lambda op, kernel, X, Z: op.Mul(_values(op, kernel.kernel, X, Z), numbers(kernel.factor)),
        lambda op, kernel, X, d: op.Mul(_diag(op, kernel.kernel, X, d), numbers(kernel.factor)),
    ),
}
"""By type, not by ``isinstance``: a subclass may have another formula."""

BY_NAME: dict[str, Callable[..., Kernel]] = {
    "rbf": lambda gamma: RBF(sigma=np.sqrt(0.5 / gamma)),
    "laplacian": lambda gamma: Laplacian(gamma=gamma),
    "linear": lambda gamma: Linear(),
    "poly": lambda gamma, **params: Polynomial(gamma=gamma, **params),
    "polynomial": lambda gamma, **params: Polynomial(gamma=gamma, **params),
    "sigmoid": lambda gamma, **params: Sigmoid(gamma=gamma, **params),
}
"""scikit-learn's pairwise kernels that are kernels of this package."""


def _convertible(kernel: Any, d: int) -> tuple[Any, _Formula]:
    """The kernel, or the one of this package that equals it, and its formula."""
    found = kernel
    if type(kernel) is Pairwise and kernel.metric in BY_NAME:
        params = kernel.params or {}
        gamma = params.get("gamma")
        found = BY_NAME[kernel.metric](**{**params, "gamma": 1.0 / d if gamma is None else gamma})
    if type(found) not in FORMULAS:
        can = ", ".join(sorted(known.__name__ for known in FORMULAS))
        raise ValueError(
            f"kernel={kernel!r} cannot be converted to ONNX. These can: {can}, scikit-learn's pairwise kernels of the same names, "
            "and a ReferenceKernel or ReferenceMap on one of them. Fit the model with one of these."
        )
    return found, FORMULAS[type(found)]


def _row_norms(op: Ops, X: Node) -> Node:
    return op.ReduceSumSquareApi18(X, axes=[1], keepdims=1)


def _column(weights: np.ndarray) -> np.ndarray:
    return np.asarray(weights, dtype=np.float64)[:, None]


def _dense(rows: Any) -> np.ndarray:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)


def _default_types(model: Any) -> list[tuple[str, Any]]:
    """One input of float32; for a model of ``refkernel fit``, whose columns are known, one for each of them."""
    encoder = model[0] if isinstance(model, Pipeline) else model
    if not isinstance(encoder, TableEncoder):
        return [("X", FloatTensorType([None, model.n_features_in_]))]
    named = zip(encoder.feature_names_in_, encoder.kinds_, strict=True)
    return [(str(name), (StringTensorType if kind == CATEGORY else DoubleTensorType)([None, 1])) for name, kind in named]


def _as_samples(X: Any) -> Any:
    """X in a form whose types skl2onnx can read: a DataFrame, or a numeric array with samples in rows."""
    if hasattr(X, "columns"):
        if any(kind.kind == "M" for kind in X.dtypes):
            raise ValueError("A graph takes dates as float64 in seconds since 1970: pass X with such columns.")
        return X
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiu":
        raise ValueError(f"X has shape {X.shape} and type {X.dtype}: pass rows of numbers (n_samples, n_features), as in fit.")
    return X


register()
