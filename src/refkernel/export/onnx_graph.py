"""What builds ONNX graphs, and the protocol by which models describe their own.

A model whose graph is not in ``onnx.GRAPHS`` defines it beside its arithmetic, and imports nothing for that::

    def _graph(self, op: Any, X: Any) -> Any:
        return op.Sub(op.row_norms(op.Div(op.Sub(X, self.mean_), self.scale_)), op.numbers(self.offset_))

``op`` is a :class:`Graph`. ``X`` is the node of the samples (n × d), in double precision; a detector returns the node of its decisions
(n × 1), a transformer that of its features. Parts of a model have such methods too, with whatever arguments the model passes them. A
public name of the package with this method is converted, with the pipelines that hold it.

A model that takes a table also has ``_graph_inputs()``, the names of its columns and whether each holds text (a list of pairs). It gets
one node (n × 1) for each column instead of X.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from onnx import TensorProto, compose, numpy_helper, parser
from skl2onnx.algebra import onnx_ops

Node: TypeAlias = Any  # of a graph of skl2onnx, which has no types. Arrays take the place of nodes as constants.


class Graph:
    """The operators of one opset: ``op.MatMul(A, B)`` is a node; arrays become constants. Names in lower case stand for several nodes."""

    def __init__(self, version: int):
        self.version = version
        self._scans = 0

    def __getattr__(self, name: str) -> Callable[..., Node]:
        return partial(getattr(onnx_ops, f"Onnx{name}"), op_version=self.version)

    @staticmethod
    def numbers(*values: float) -> np.ndarray:
        """A constant of doubles."""
        return np.array(values, dtype=np.float64)

    @staticmethod
    def integers(*values: int) -> np.ndarray:
        """A constant of 64-bit integers."""
        return np.array(values, dtype=np.int64)

    def doubles(self, X: Node) -> Node:
        """Numbers or truth values as doubles."""
        return self.Cast(X, to=TensorProto.DOUBLE)

    def single(self, X: Node) -> Node:
        """Numbers or truth values in single precision."""
        return self.Cast(X, to=TensorProto.FLOAT)

    def whole(self, X: Node) -> Node:
        """Numbers as 64-bit integers."""
        return self.Cast(X, to=TensorProto.INT64)

    def columns(self, X: Node, places: np.ndarray) -> Node:
        """Some columns of X."""
        return self.Gather(X, np.asarray(places, dtype=np.int64), axis=1)

    def row_sums(self, X: Node) -> Node:
        """The sum of each row (n × 1)."""
        return self.ReduceSumApi11(X, axes=[1], keepdims=1)

    def row_norms(self, X: Node) -> Node:
        """||x||² of each row (n × 1)."""
        return self.ReduceSumSquareApi18(X, axes=[1], keepdims=1)

    def arcsinh(self, X: Node) -> Node:
        """sign(x) (log m + log(|x| / m + sqrt((x / m)² + 1 / m²))), m = max(|x|, 1): onnxruntime has no Asinh of doubles."""
        size = self.Abs(X)
        m = self.Max(size, self.numbers(1.0))
        share, one = self.Div(size, m), self.Div(self.numbers(1.0), m)
        root = self.Sqrt(self.Add(self.Mul(share, share), self.Mul(one, one)))
        return self.Mul(self.Sign(X), self.Add(self.Log(m), self.Log(self.Add(share, root))))

    def rows_below(self, at: np.ndarray, score: Node) -> Node:
        """How many of the ascending values are at most the score (n × 1): first among every s-th, then among the s from there on."""
        s = int(np.ceil(np.sqrt(at.size)))
        table = np.full((s, s), np.inf)
        table.flat[: at.size] = at
        block = self.Max(self.Sub(self._count(self.LessOrEqual(table[None, :, 0], score)), self.integers(1)), self.integers(0))
        inside = self.Reshape(self.Gather(table, block, axis=0), self.integers(-1, s))
        return self.Add(self.Mul(block, self.integers(s)), self._count(self.LessOrEqual(inside, score)))

    def _count(self, true: Node) -> Node:
        """How many values of each row are true (n × 1)."""
        return self.Cast(self.row_sums(self.Cast(true, to=TensorProto.FLOAT)), to=TensorProto.INT64)

    def interpolated(self, at: np.ndarray, value: np.ndarray, x: Node) -> Node:
        """np.interp(x, at, value, left=0) of a column x (n × 1)."""
        with np.errstate(over="ignore", invalid="ignore"):
            slope = np.nan_to_num(np.diff(value) / np.diff(at))
        tables = np.r_[at[0], at], np.r_[0.0, value], np.r_[0.0, slope, 0.0]
        place = self.rows_below(at, x)
        begin, height, steep = (self.Gather(table, place, axis=0) for table in tables)
        return self.Add(height, self.Mul(steep, self.Sub(x, begin)))

    def l1(self, Z: Node, columns: np.ndarray, roots: bool = False) -> Node:
        """Sums of |z - r| or of their roots (n × m), for references given by their columns: one n × m matrix grows column by column."""
        first = self.Abs(self.Sub(self.Gather(Z, self.integers(0), axis=1), columns[:1]))
        first = self.Sqrt(first) if roots else first
        if len(columns) == 1:
            return first
        others = self.columns(Z, np.arange(1, len(columns)))
        self._scans += 1
        body = _body(ONE_COLUMN, 0.5 if roots else 1.0, f"distances_{self._scans}_", upright=self.integers(-1, 1))
        return self.Scan(first, others, columns[1:], num_scan_inputs=2, scan_input_axes=[1, 0], body=body, output_names=["u(D)"])

    def locally_explained(self, Z: Node, leaf: Node, columns: np.ndarray, inverses: np.ndarray, power: float, width: float) -> Node:
        """What the references of each sample's leaf explain of it (n × 1), from features in single precision.

        ``leaf`` (n × 1) is the number of each sample's leaf, ``columns`` (leaves × d × m) holds the references, and ``inverses``
        (leaves × m × m) the inverse Cholesky factors of their kernel matrices. Leaves are scanned one after the other.
        """
        self._scans += 1
        d, m = columns.shape[1:]
        shapes = {"first": np.array(0), "one_by_one": self.integers(0, 0, 1), "side_by_side": self.integers(d, -1)}
        shapes |= {"by_row": self.integers(-1, m), "column": self.integers(0, 1), "references": np.ones((m, 1))}
        shapes |= {"upright": np.ones((d, 1)), "lying": np.ones((1, d))}
        numbers = {"per_width": np.array([-1.0 / width], dtype=np.float32), "columns": np.ones((1, d), dtype=np.float32)}
        body = _body(
            ONE_LEAF.replace("DISTANCES", OF_PRODUCTS if power == 2.0 else OF_COLUMNS), power, f"leaf_{self._scans}_", **shapes, **numbers
        )
        nothing = self.Mul(self.doubles(leaf), self.numbers(0.0))
        scanned = np.arange(len(columns)), columns[:, :, None], np.ascontiguousarray(inverses.transpose(0, 2, 1))
        names = [f"u({name}{self._scans})" for name in ("samples", "leaves", "residuals")]
        return self.Scan(Z, leaf, nothing, *scanned, num_scan_inputs=3, body=body, output_names=names)[2]


ONE_LEAF = """
body (float[n,d] Z, int64[n,w] leaf, double[n,w] out, int64 number, float[d,w,m] R, float[m,m] inverse)
=> (float[n,d] Z_again, int64[n,w] leaf_again, double[n,w] written) {
    mine = Equal(leaf, number)
    places = NonZero(mine)
    rows = Gather<axis=0>(places, first)
    z = Gather<axis=0>(Z, rows)
    DISTANCES
    exponents = Mul(D, per_width)
    k = Exp(exponents)
    t = MatMul(k, inverse)
    t_double = Cast<to=11>(t)
    squares = Mul(t_double, t_double)
    explained = MatMul(squares, references)
    index = Reshape(rows, column)
    written = ScatterElements<axis=0>(out, index, explained)
    Z_again = Identity(Z)
    leaf_again = Identity(leaf)
}"""
"""The body of the scan over leaves, in ONNX's syntax: ||L^-1 k||² for the samples in one leaf, written to their places (11: double)."""

OF_COLUMNS = """z_columns = Transpose<perm=[1, 0]>(z)
    apart = Reshape(z_columns, one_by_one)
    signed = Sub(apart, R)
    absolute = Abs(signed)
    differences = POWER
    by_column = Reshape(differences, side_by_side)
    sums = MatMul(columns, by_column)
    D = Reshape(sums, by_row)"""
"""Distances that are sums over columns, by all differences."""

OF_PRODUCTS = """z_double = Cast<to=11>(z)
    r = Reshape(R, side_by_side)
    r_double = Cast<to=11>(r)
    z_squares = Mul(z_double, z_double)
    r_squares = Mul(r_double, r_double)
    z_norms = MatMul(z_squares, upright)
    r_norms = MatMul(lying, r_squares)
    products = MatMul(z_double, r_double)
    twice = Add(products, products)
    norms = Add(z_norms, r_norms)
    squares_left = Sub(norms, twice)
    not_negative = Relu(squares_left)
    D = Cast<to=1>(not_negative)"""
"""Squared distances, by products in double precision: differences of many columns would take more memory than all else."""

POWERS = {0.5: "Sqrt(absolute)", 1.0: "Identity(absolute)"}
ONE_COLUMN = """
body (double[n,m] D, double[n] z, double[m] r) => (double[n,m] following) {
    column = Reshape(z, upright)
    signed = Sub(column, r)
    absolute = Abs(signed)
    distance = POWER
    following = Add(D, distance)
}"""
"""The body of the scan over columns: D + |z - r| or its root, for one column z of the samples and r of the references."""


def _body(text: str, power: float, prefix: str, **constants: np.ndarray) -> Any:
    """The body of a scan. Its names get a prefix, because they must be unique in the whole graph."""
    graph = parser.parse_graph(text.replace("POWER", POWERS.get(power, "")))
    used = {name for node in graph.node for name in node.input}
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items() if name in used)
    for node in graph.node:
        node.name = node.output[0]
    return compose.add_prefix_graph(graph, prefix)
