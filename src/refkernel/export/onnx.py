"""ONNX export: fitted models as graphs that onnxruntime scores without Python.

Importing this module registers converters with skl2onnx, so ``skl2onnx.to_onnx`` converts pipelines of our estimators too. Our steps
compute in double precision for any type of input: decisions from single-precision kernel values are off by 1e-5 to 1e-4 of their range
where the kernel is wide or whitened. Graphs of kernel models are built here; other models describe their own: see ``onnx_graph``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

import refkernel

from .._core.distances import MODERATE, squared_norms
from .._core.unwrap import unwrap
from ..classifiers import SVDD, OneClassSVM
from ..detectors.calibration.detector import TIE, ConformalDetector
from ..detectors.explain.normal import dense
from ..kernels import RBF, Laplacian, Linear, Polynomial, Product, Scaled, Sigmoid, Sum
from ..maps import ReferenceKernel, ReferenceMap
from ..preprocessing import TargetImputer, TargetScaler

__all__ = ["register", "to_onnx"]

try:
    import skl2onnx
    from onnx import ModelProto
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

    from .onnx_graph import Graph, Node
except ImportError as error:
    raise ImportError('The ONNX export needs skl2onnx and onnx: pip install "refkernel[onnx]".') from error


def to_onnx(model: Any, X: Any = None, *, target_opset: int | dict[str, int] | None = None) -> ModelProto:
    """Convert a fitted model to an ONNX graph.

    A detector has two outputs of shape (n_samples, 1): ``label`` (int64, +1 or -1) and ``scores``, its decision function. If it has
    p-values, there is a third, ``p_value`` (float64). A transformer has one, ``variable``. Decisions agree to 1e-5 of their range on
    float32 samples, to 1e-9 on float64 samples. Other steps of a pipeline compute as skl2onnx writes them: for samples many deviations
    from 0, use :class:`TargetScaler`, or pass ``X`` as float64.

    Parameters
    ----------
    model : fitted estimator
        A :class:`SVDD`, :class:`OneClassSVM`, :class:`AutoDetector`, :class:`ReferenceMap` or :class:`TargetScaler`, or a scikit-learn
        pipeline of these and of steps that skl2onnx knows; a ``ConformalDetector(method="split")`` around such models, without the
        latter. A fitted search stands for its ``best_estimator_``. Kernels: RBF, Laplacian, Linear, Polynomial, Sigmoid, for a classifier
        itself or under a reference map or kernel.
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
    The graph of an AutoDetector holds n_samples × 200 × n_features differences. It computes in single precision, as the model does:
    their scores differ by up to 1e-3 of their range, and in most rows by 1e-7. p-values are equal but for the share of calibration scores
    that the two scores of a row enclose, which is rarely more than one score.

    Examples
    --------
    >>> import numpy as np, onnxruntime, refkernel as rk
    >>> from refkernel.export.onnx import to_onnx
    >>> model = rk.SVDD(nu=0.1).fit(np.random.default_rng(0).normal(size=(100, 2)))
    >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> label, scores = session.run(None, {"X": np.array([[0.0, 0.0], [5.0, 5.0]], dtype=np.float32)})
    >>> label.ravel().tolist()
    [1, -1]
    """
    check_is_fitted(model)
    before, final = unwrap(model)
    steps = [*before, final]
    try:
        return skl2onnx.to_onnx(make_pipeline(*steps) if before else final, initial_types=_types(steps[0], X), target_opset=target_opset)
    except (MissingConverter, MissingShapeCalculator) as error:
        names = " and ".join(type(step).__name__ for step in steps)
        raise ValueError(f"A step of {names} cannot be converted to ONNX: see to_onnx for the models that can.") from error
    except RuntimeError as error:  # skl2onnx raises nothing more precise
        if X is None and "column name" in str(error):
            raise ValueError("The model takes columns by name: pass some rows as X, a DataFrame, for their names and types.") from error
        raise ValueError(f"skl2onnx cannot convert the model: {error}") from error


def _types(first: Any, X: Any) -> list[tuple[str, Any]]:
    """The inputs of the graph: as X has them, or one of float32; one for each column if the first step takes a table."""
    takes_table = hasattr(first, "_graph_inputs")
    if X is None:
        if not takes_table:
            return [("X", FloatTensorType([None, first.n_features_in_]))]
        return [(name, (StringTensorType if is_text else DoubleTensorType)([None, 1])) for name, is_text in first._graph_inputs()]
    if hasattr(X, "columns"):
        if any(kind.kind == "M" for kind in X.dtypes):
            raise ValueError("A graph takes dates as float64 in seconds since 1970: pass X with such columns.")
        return guess_initial_types(X)
    if takes_table:
        raise ValueError("The model takes columns by name: pass X as a data frame with the columns of fit, or leave it out.")
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiu":
        raise ValueError(f"X has shape {X.shape} and type {X.dtype}: pass rows of numbers (n_samples, n_features), as in fit.")
    return guess_initial_types(X)


def register() -> None:
    """Register converters for the estimators of this package with skl2onnx; importing this module calls it."""
    public = [getattr(refkernel, name) for name in refkernel.__all__ if name[0].isupper()]  # classes; modules may need other extras
    for model in {*GRAPHS, *(model for model in public if hasattr(model, "_graph"))}:
        skl2onnx.update_registered_converter(model, f"Refkernel{model.__name__}", _shapes, _convert, parser=_parse)
    skl2onnx.update_registered_converter(
        TargetImputer, "RefkernelTargetImputer", calculate_sklearn_imputer_output_shapes, convert_sklearn_imputer
    )


def _parse(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """Declare a step of the graph with its outputs, in the precision of the graph's inputs (double if one is)."""
    operator = scope.declare_local_operator(skl2onnx.get_model_alias(type(model)), model)
    operator.inputs = inputs
    types = [guess_tensor_type(variable.type) for variable in scope.input_variables if not isinstance(variable.type, StringTensorType)]
    real = next((kind for kind in types if isinstance(kind, DoubleTensorType)), types[0] if types else FloatTensorType())
    if not hasattr(model, "decision_function"):
        operator.outputs.append(scope.declare_local_variable("variable", real))
        return operator.outputs
    for step in scope.operators.values():  # a detector gets doubles from our transformers: rounded features of a wide kernel cost digits
        if type(step.raw_operator).__module__.partition(".")[0] == "refkernel" and inputs[0] in list(step.outputs):
            inputs[0].type = DoubleTensorType()
    p_value = [("p_value", DoubleTensorType())] if hasattr(model, "p_values") else []
    for name, kind in (("label", Int64TensorType()), ("scores", real), *p_value):
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _shapes(operator: Any) -> None:
    """Check that the model fits its inputs, and set the shapes of its outputs."""
    model = operator.raw_operator
    check_is_fitted(model)
    if len(getattr(model, "group_names_", ())):
        raise ValueError(f"{type(model).__name__} has a threshold for each group, and an ONNX graph has one: fit it without groups.")
    if getattr(model, "kernel_", None) is not None and model.kernel_._pairwise:
        _check_kernel(model.kernel_)
    widths = [variable.get_second_dimension() for variable in operator.inputs]
    if None not in widths and sum(widths) != model.n_features_in_:
        raise ValueError(
            f"The graph's input has {sum(widths)} features, but {type(model).__name__} was fitted on {model.n_features_in_}: "
            "pass X with the same columns as in fit."
        )
    width = 1 if hasattr(model, "decision_function") else model.get_feature_names_out().size
    for output in operator.outputs:
        output.type.shape = [operator.inputs[0].get_first_dimension(), width]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the model's graph: samples as doubles, its result, the outputs. Labels follow from the decision in double precision.

    A single input goes through Concat too. onnxruntime merges a matrix product with a scalar factor next to it, and rounds the
    factor to single precision: Concat keeps the division by a scaler of one feature apart.
    """
    op, model, outputs = Graph(container.target_opset), operator.raw_operator, list(operator.outputs)
    takes_table = hasattr(model, "_graph_inputs")
    X = list(operator.inputs) if takes_table else op.Concat(*[op.doubles(variable) for variable in operator.inputs], axis=1)
    found = _graph_of(op, model, X)
    label = op.Where(op.GreaterOrEqual(found, op.numbers(0.0)), op.integers(1), op.integers(-1))
    results = [label, found] if len(outputs) > 1 else [found]
    if len(outputs) > 2:
        scores = model._calibration()[0] if isinstance(model, ConformalDetector) else model.calibration_ - TIE
        at_most = op.doubles(op.rows_below(scores - model.offset_, found))
        results.append(op.Div(op.Add(at_most, op.numbers(1.0)), op.numbers(len(scores) + 1.0)))
    for result, output in zip(results, outputs, strict=True):
        op.Cast(result, to=guess_proto_type(output.type), output_names=[output]).add_to(scope, container)


def _graph_of(op: Graph, model: Any, X: Node) -> Node:
    return GRAPHS[type(model)](op, model, X) if type(model) in GRAPHS else model._graph(op, X)


def _target_scaler(op: Graph, scaler: TargetScaler, X: Node) -> Node:
    kept = X if scaler.kept_.all() else op.columns(X, np.flatnonzero(scaler.kept_))
    return op.Div(op.Sub(kept, scaler.mean_), scaler.scale_)


def _features(op: Graph, fitted: Any, K_XR: Node) -> Node:
    """Phi(X) = [k(X, R), 1] projection."""
    projection = np.asarray(fitted._factor.projection, dtype=np.float64)
    return op.Add(op.MatMul(K_XR, projection[:-1]), projection[-1])


def _classifier(op: Graph, model: SVDD | OneClassSVM, X: Node) -> Node:
    """slope · Σ b_i k(x_i, x) - diag_share · (k(x, x) + b'Kb) - offset"""
    description, kernel, shift = model.classifier, model.kernel_, 0.0
    is_map = type(kernel) in (ReferenceKernel, ReferenceMap)
    if is_map:
        normal = kernel._factor.projection @ model._normal
        values, weights, shift = _values(op, kernel.kernel_, X, dense(kernel.references_)), normal[:-1], normal[-1]
    elif model._normal is not None:
        values, weights = X, model._normal
    else:
        values, weights = _values(op, kernel, X, dense(model.support_vectors_)), model.dual_coef_[0]
    score = op.MatMul(values, (description.slope * np.asarray(weights, dtype=np.float64))[:, None])
    if description.uses_diag:
        diag = op.row_norms(_features(op, kernel, values)) if is_map else _values(op, kernel, X, None)
        score = op.Sub(score, diag)
    return op.Add(score, op.numbers(description.score(shift, 0.0, model._quadratic) - model.offset_))


def _conformal(op: Graph, detector: ConformalDetector, X: Node) -> Node:
    """The scores of the one model, less the threshold."""
    held_out: Any = detector.models_
    if len(getattr(held_out, "models", ())) != 1:
        raise ValueError(f'ConformalDetector with method="{detector.method_}" scores a row by several models: fit it with method="split".')
    before, final = unwrap(held_out.models[0])
    for step in (*before, final):
        if hasattr(step, "_graph_inputs") or not (type(step) in GRAPHS or hasattr(step, "_graph")):
            raise ValueError(f"{type(step).__name__} in a ConformalDetector cannot be converted to ONNX: see to_onnx for what can.")
        X = _graph_of(op, step, X)
    return op.Sub(op.Mul(op.Add(X, op.numbers(final.offset_)), op.numbers(held_out.sign)), op.numbers(detector.offset_))


GRAPHS: dict[type, Callable[[Graph, Any, Node], Node]] = {  # models of kernels, and what builds the graph of each
    TargetScaler: _target_scaler,
    ReferenceMap: lambda op, fitted, X: _features(op, fitted, _values(op, fitted.kernel_, X, dense(fitted.references_))),
    SVDD: _classifier,
    OneClassSVM: _classifier,
    ConformalDetector: _conformal,
}


def _values(op: Graph, kernel: Any, X: Node, Z: np.ndarray | None) -> Node:
    """k(X, Z); without Z the column of k(x, x)."""
    _check_kernel(kernel)
    kind, gamma = type(kernel), getattr(kernel, "gamma_", getattr(kernel, "gamma", 1.0))
    if kind in (Sum, Product):
        return (op.Add if kind is Sum else op.Mul)(*(_values(op, part, X, Z) for part in kernel._parts))
    if kind is Scaled:
        return op.Mul(_values(op, kernel._parts[0], X, Z), op.numbers(kernel.factor))
    if kind in (RBF, Laplacian):
        if Z is None:
            return op.numbers(1.0)
        if kind is RBF:
            return _rbf(op, np.asarray(kernel._width()), X, Z)
        return op.Exp(op.Mul(op.l1(X, np.ascontiguousarray(Z.T), kernel.exponent != 1.0), op.numbers(-gamma)))
    products = op.Mul(op.row_norms(X), op.numbers(gamma)) if Z is None else op.MatMul(X, gamma * Z.T)  # not by a factor: see _convert
    if kind is Polynomial:
        return op.Pow(op.Add(products, op.numbers(kernel.coef0)), op.numbers(kernel.degree))
    return op.Tanh(op.Add(products, op.numbers(kernel.coef0))) if kind is Sigmoid else products


def _rbf(op: Graph, sigma: np.ndarray, X: Node, Z: np.ndarray) -> Node:
    """exp(-||x - z||² / (2 sigma²)); all rows are first moved by the mean of Z, so that far-away data lose no digits."""
    origin = Z.mean(axis=0)
    X, Z = op.Sub(X, origin), Z - origin
    if sigma.ndim or not MODERATE[0] < sigma < MODERATE[1]:
        X, Z, sigma = op.Concat(op.Div(X, np.atleast_1d(sigma)), axis=1), Z / sigma, np.ones(())  # Concat: see _convert
    gamma = 0.5 / float(sigma) ** 2
    near = op.Sub(op.MatMul(X, 2.0 * gamma * Z.T), gamma * squared_norms(Z))
    exponent = op.Sub(near, op.Mul(op.row_norms(X), op.numbers(gamma)))
    return op.Exp(op.Min(exponent, op.numbers(0.0)))


KERNELS = (RBF, Laplacian, Linear, Polynomial, Product, Scaled, Sigmoid, Sum)  # by type: a subclass may have another formula


def _check_kernel(kernel: Any) -> None:
    if type(kernel) not in KERNELS:
        raise ValueError(
            f"kernel={kernel!r} cannot be converted to ONNX. These can: {', '.join(sorted(known.__name__ for known in KERNELS))}, "
            "and a ReferenceKernel or ReferenceMap on one of them. Fit the model with one of these."
        )


register()
