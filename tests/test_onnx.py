"""ONNX export: onnxruntime gives the decisions that the model gives."""

import importlib
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
import skl2onnx
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import refkernel as rk
from refkernel.export.onnx import to_onnx
from refkernel.kernels import RBF, Laplacian, Linear, Polynomial, Sigmoid

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-9}
SINGLE = 1e-3
"""Of models that compute in single precision."""
"""Share of the decisions' range: what the export promises for samples of each type."""

KERNELS = {
    "rbf": RBF(1.0),
    "wide rbf": RBF(scale=1000.0),
    "linear": Linear(),
    "polynomial": Polynomial(),
    "laplacian": Laplacian(),
    "root laplacian": Laplacian(exponent=0.5),
    "sigmoid": Sigmoid(gamma=0.01),
}

ROUTES = {
    "own kernel": lambda model, kernel, center: model(kernel, nu=0.2),
    "reference kernel": lambda model, kernel, center: model(rk.ReferenceKernel(kernel, "subset", center, random_state=0), nu=0.2),
    "map": lambda model, kernel, center: make_pipeline(rk.ReferenceMap(kernel, "subset", center, random_state=0), model("linear", nu=0.2)),
}

CONVERTERS = {"to_onnx": to_onnx, "skl2onnx": lambda model, X: skl2onnx.to_onnx(model, X[:1])}

each_model = pytest.mark.parametrize("model", [rk.SVDD, rk.OneClassSVM])
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
each_route = pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
each_converter = pytest.mark.parametrize("convert", CONVERTERS.values(), ids=CONVERTERS)
each_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])

pytestmark = pytest.mark.filterwarnings("ignore:The .*kernel is indefinite")  # the sigmoid, which says so


def session_of(graph):
    """The graph in onnxruntime, after the checker has passed it."""
    onnx.checker.check_model(graph)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def scored(graph, X):
    """The graph's outputs."""
    return outputs(session_of(graph), X)


def outputs(session, X):
    names = [end.name for end in session.get_inputs()]
    return session.run(None, {names[0]: X} if len(names) == 1 else {name: X[[name]].to_numpy() for name in names})


def assert_same_decisions(model, graph, X, dtype):
    """Decisions equal to the type's tolerance of their range, labels equal outside that band."""
    X = X.astype(dtype)
    assert_same_outputs(model, session_of(graph), X, X.astype(np.float64))


def assert_same_outputs(model, session, X, exact, size=None):
    dtype = np.asarray(X).dtype.type
    expected, predicted = model.decision_function(exact), model.predict(exact)
    size = np.ptp(expected) if size is None else size
    assert size > 1e-6, "these decisions are all alike, so that the law would say nothing"
    label, scores, *p_value = outputs(session, X)
    assert (label.dtype, scores.dtype) == (np.int64, dtype)
    assert label.shape == scores.shape == (len(X), 1)
    final = model[-1] if isinstance(model, Pipeline) else model
    assert [each.dtype for each in p_value] == [np.float64] * hasattr(final, "p_values")
    band = (SINGLE if isinstance(final, rk.AutoDetector) else TOLERANCE[dtype]) * size
    np.testing.assert_allclose(scores[:, 0], expected, rtol=0, atol=band)
    clear = np.abs(expected) > band
    np.testing.assert_array_equal(label[clear, 0], predicted[clear])


@each_model
@each_kernel
@each_route
@pytest.mark.parametrize(("n", "d"), [(40, 5), (25, 1)])
def test_decisions_equal_the_models(model, kernel, route, n, d, samples):
    """For every kernel and route, on new and on far samples, on one row, in float32 and float64."""
    X, new = samples(n, d, 0, offset=2.0), samples(50, d, 1, offset=2.0)
    fitted = route(model, kernel, model is rk.SVDD).fit(X)  # a one-class SVM on centred targets would be degenerate
    far, size = np.vstack([new, -1e3 * new[:5]]), np.ptp(fitted.decision_function(new))
    for dtype in TOLERANCE:
        session = session_of(to_onnx(fitted, X.astype(dtype)))
        for given, own_size in [(new, None), (far, None), (new[:1], size)]:
            given = given.astype(dtype)
            assert_same_outputs(fitted, session, given, given.astype(np.float64), own_size)


@each_converter
@pytest.mark.parametrize(
    ("before", "dtype"),
    [(step, dtype) for step in (rk.TargetScaler(), StandardScaler(), PCA(2)) for dtype in TOLERANCE]
    + [(SimpleImputer(), np.float32)],  # onnxruntime has no imputer of doubles
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
@each_model
def test_pipelines_convert_by_either_function(convert, dtype, before, model, samples):
    """Our own to_onnx and skl2onnx's agree with the pipeline, with any step in front."""
    X = samples(40, 3, 0, offset=2.0)
    pipeline = make_pipeline(before, rk.ReferenceMap(center=False), model("linear", nu=0.2)).fit(X)
    assert_same_decisions(pipeline, convert(pipeline, X.astype(dtype)), samples(50, 3, 1, offset=2.0), dtype)


@each_converter
def test_features_between_our_steps_keep_their_digits(convert, samples):
    """Features of a wide kernel are nearly equal: rounded to float32 they would move the decisions by more than is promised."""
    X, new = samples(40, 3, 0), samples(50, 3, 1).astype(np.float32)
    pipeline = make_pipeline(rk.TargetScaler(), rk.ReferenceMap(RBF(scale=1e4), center=False), rk.OneClassSVM("linear")).fit(X)
    expected = pipeline.decision_function(new.astype(np.float64))
    rounded = pipeline[-1].decision_function(pipeline[:-1].transform(new.astype(np.float64)).astype(np.float32))
    assert np.abs(rounded - expected).max() > TOLERANCE[np.float32] * np.ptp(expected)
    _, scores = scored(convert(pipeline, new), new)
    np.testing.assert_allclose(scores[:, 0], expected, rtol=0, atol=TOLERANCE[np.float32] * np.ptp(expected))


@each_converter
@pytest.mark.parametrize("before", [rk.TargetScaler(), StandardScaler()], ids=["TargetScaler", "StandardScaler"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_one_feature_keeps_double_precision(convert, before, kernel, samples):
    """onnxruntime would merge the one scale with the matrix product after it, in single precision."""
    X = samples(40, 1, 0, offset=7.0)
    pipeline = make_pipeline(before, rk.SVDD(kernel)).fit(X)
    assert_same_decisions(pipeline, convert(pipeline, X), samples(50, 1, 1, offset=7.0), np.float64)
    uncentred = make_pipeline(StandardScaler(with_mean=False), rk.OneClassSVM(kernel)).fit(X)
    assert_same_decisions(uncentred, convert(uncentred, X), samples(50, 1, 1, offset=7.0), np.float64)


@each_type
def test_targets_far_from_the_origin_lose_no_digits(dtype, samples):
    """Distances are taken from the mean of the support vectors: data at a million deviations are scored as well as at 0."""
    X, new = samples(40, 3, 0, offset=1e6), samples(50, 3, 1, offset=1e6)
    for kernel in (RBF(1.0), RBF(scale=0.1), Laplacian()):
        for fitted in (rk.SVDD(kernel).fit(X), make_pipeline(rk.TargetScaler(), rk.SVDD(rk.ReferenceKernel(kernel))).fit(X)):
            assert_same_decisions(fitted, to_onnx(fitted, X.astype(dtype)), new, dtype)


@each_type
@each_kernel
@pytest.mark.parametrize("center", [True, False])
def test_features_equal_the_maps(dtype, kernel, center, samples):
    """A converted ReferenceMap gives Phi(X), in the type of X."""
    X, new = samples(30, 3, 0), samples(50, 3, 1).astype(dtype)
    fitted = rk.ReferenceMap(kernel, "case4", center, random_state=0).fit(X)
    (Phi,) = scored(to_onnx(fitted, new), new)
    expected = fitted.transform(new.astype(np.float64))
    assert Phi.dtype == dtype
    np.testing.assert_allclose(Phi, expected, rtol=0, atol=TOLERANCE[dtype] * np.ptp(expected))


@each_converter
@each_type
def test_other_transformers_equal_theirs(convert, dtype, samples):
    """NPT, and a TargetScaler that drops a constant feature."""
    X, new = samples(30, 4, 0, offset=5.0), samples(50, 4, 1, offset=5.0).astype(dtype)
    X[:, 2] = 3.0
    for fitted in (rk.NPT().fit(X), rk.TargetScaler().fit(X), rk.TargetScaler().fit(new)):
        (out,) = scored(convert(fitted, new), new)
        expected = fitted.transform(new.astype(np.float64))
        assert (out.dtype, out.shape) == (dtype, expected.shape)
        np.testing.assert_allclose(out, expected, rtol=0, atol=TOLERANCE[dtype] * np.ptp(expected))


@each_converter
def test_maps_feed_scikit_learns_estimators(convert, samples):
    """A map before a classifier of scikit-learn, alone or in a union of features, converts as skl2onnx's own steps do."""
    X = samples(60, 3, 0).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, -1)
    union = FeatureUnion([("features", rk.ReferenceMap(random_state=0)), ("scaled", rk.TargetScaler())])
    for features in (rk.ReferenceMap(references="subset", random_state=0), union):
        pipeline = make_pipeline(rk.TargetScaler(), features, LogisticRegression()).fit(X, y)
        label, probability = scored(convert(pipeline, X), X)
        expected = pipeline.predict_proba(X.astype(np.float64))[:, 1]
        # a few roundings of features and coefficients near 1 to float32
        np.testing.assert_allclose([p[1] for p in probability], expected, rtol=0, atol=1e-5)
        clear = np.abs(expected - 0.5) > 1e-5
        np.testing.assert_array_equal(label[clear], pipeline.predict(X.astype(np.float64))[clear])


@each_model
def test_models_fitted_on_sparse_samples_convert(model, samples):
    """Sparse support vectors and references are stored dense; so is the normal that a sparse linear fit does not have."""
    X, new = np.maximum(samples(40, 3, 0, offset=0.5), 0.0), samples(50, 3, 1, offset=0.5)
    for kernel in ("rbf", "linear", "poly", rk.ReferenceKernel(center=False)):
        fitted = model(kernel).fit(sp.csr_array(X))
        assert_same_outputs(fitted, session_of(to_onnx(fitted, X)), new, sp.csr_array(new))


def test_repelled_negatives_convert(samples):
    """Weights of either sign make the centre of an SVDD that negatives pushed away."""
    X, y = samples(40, 3, 0), np.repeat([1, -1], [30, 10])
    for kernel in (RBF(1.0), rk.ReferenceKernel(references="case5", random_state=0)):
        fitted = rk.SVDD(kernel, nu=0.2, negatives="repel").fit(X, y)
        assert (fitted.dual_coef_ < 0).any()
        assert_same_decisions(fitted, to_onnx(fitted, X), samples(50, 3, 1), np.float64)


def test_reference_maps_may_be_a_classifiers_kernel(samples):
    """kernel=ReferenceMap(...) and NPT() are kernels too."""
    X = samples(40, 3, 0)
    for kernel in (rk.ReferenceMap(references="case4", random_state=0), rk.NPT()):
        fitted = rk.SVDD(kernel).fit(X)
        assert_same_decisions(fitted, to_onnx(fitted, X), samples(50, 3, 1), np.float64)


@each_model
def test_sums_products_and_factors_convert_with_the_parts_own_defaults(model, samples):
    """A polynomial kernel without a gamma takes 1 / d, as a part of another kernel too."""
    X = samples(40, 3, 0)
    for kernel in (RBF(1.0) + 0.5 * Linear(), Polynomial() + RBF(1.0), Polynomial() * RBF(1.0), 2.0 * RBF(1.0)):
        fitted = model(kernel, nu=0.2).fit(X)
        assert_same_decisions(fitted, to_onnx(fitted, X), samples(50, 3, 1), np.float64)


@pytest.mark.parametrize("opset", [12, 13, 15, 18, 21])
def test_every_opset_gives_the_same(opset, samples):
    """The operators changed their signatures over the opsets; the decisions do not."""
    X = samples(40, 3, 0, offset=2.0)
    for kernel in (RBF(1.0), Laplacian(), Polynomial()):
        fitted = make_pipeline(rk.TargetScaler(), rk.SVDD(rk.ReferenceKernel(kernel))).fit(X)
        graph = to_onnx(fitted, target_opset=opset)
        assert [imported.version for imported in graph.opset_import if imported.domain == ""] == [opset]
        assert_same_decisions(fitted, graph, samples(50, 3, 1, offset=2.0), np.float32)


def test_the_graph_is_small(samples):
    """Support vectors only; a one-class SVM on references folds its projection into one weight for each reference."""
    n, m, d = 200, 100, 3
    X = samples(n, d, 0, offset=2.0)
    plain = rk.OneClassSVM(RBF(1.0), nu=0.1).fit(X)
    folded = rk.OneClassSVM(rk.ReferenceKernel(references="subset", center=False, random_state=0)).fit(X)
    few = 3 * d + 20  # the origin and single numbers
    assert plain.support_.size < n / 2
    assert _stored(to_onnx(plain)) <= plain.support_.size * (d + 2) + few
    assert _stored(to_onnx(folded)) <= m * (d + 2) + few
    assert _stored(to_onnx(rk.OneClassSVM("linear").fit(X))) <= few


def _stored(graph):
    return sum(int(np.prod(constant.dims)) for constant in graph.graph.initializer)


def test_a_sample_on_the_boundary_is_a_target():
    """A decision of 0 is labelled +1, as predict labels it."""
    model = rk.SVDD("linear", C=1.0).fit([[-1.0], [1.0]])
    model.offset_ = -4.0
    X = np.array([[2.0], [-2.0], [2.0000001]])
    assert model.decision_function(X)[:2].tolist() == [0.0, 0.0]
    label, scores = scored(to_onnx(model, X), X)
    assert label.ravel().tolist() == [1, 1, -1] == model.predict(X).tolist()
    assert scores[:2].ravel().tolist() == [0.0, 0.0]


def test_outputs_are_named_as_skl2onnx_names_them(samples):
    """label and scores of shape (n, 1), as for scikit-learn's own OneClassSVM; one input X of float32 by default."""
    X = samples(40, 3, 0)
    graph = to_onnx(rk.SVDD().fit(X)).graph
    assert [end.name for end in graph.input] == ["X"]
    assert graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert [end.name for end in graph.output] == ["label", "scores"]
    assert [end.type.tensor_type.elem_type for end in graph.output] == [onnx.TensorProto.INT64, onnx.TensorProto.FLOAT]
    assert [[dim.dim_value for dim in end.type.tensor_type.shape.dim][1:] for end in graph.output] == [[1], [1]]


@each_type
def test_data_frames_give_one_input_for_each_column(dtype, samples):
    """The columns, fed by name, give the decisions of the frame."""
    frame = pd.DataFrame(samples(40, 3, 0), columns=["a", "b", "c"]).astype(dtype)
    for model in (rk.SVDD(RBF(1.0)).fit(frame), make_pipeline(rk.TargetScaler(), rk.SVDD(RBF(1.0))).fit(frame)):
        assert_same_decisions(model, to_onnx(model, frame), frame, dtype)


def test_integers_are_samples_too(samples):
    """An integer input is scored as the numbers that it holds; scores are float32."""
    X = np.round(10 * samples(40, 3, 0)).astype(np.int64)
    model = rk.SVDD(RBF(1.0)).fit(X)
    label, scores = scored(to_onnx(model, X), X)
    expected = model.decision_function(X)
    np.testing.assert_allclose(scores[:, 0], expected, rtol=0, atol=1e-5 * np.ptp(expected))
    assert (label[:, 0] == np.where(expected >= 0, 1, -1)).mean() > 0.9  # samples on the boundary may fall to either side


def test_a_search_stands_for_its_best_estimator(samples):
    """to_onnx(search) is to_onnx(search.best_estimator_)."""
    X = samples(40, 3, 0)
    y = np.where(np.arange(40) < 30, 1, -1)
    X[y == -1] += 3.0
    search = rk.OneClassGridSearch(rk.SVDD(), {"nu": [0.1, 0.3]}, cv=2, random_state=0).fit(X, y)
    assert to_onnx(search) == to_onnx(search.best_estimator_)


@each_converter
@pytest.mark.parametrize(
    "model", [rk.SVDD(), rk.OneClassSVM(), rk.ReferenceMap(), rk.TargetScaler(), make_pipeline(rk.TargetScaler(), rk.SVDD())], ids=str
)
def test_unfitted_models_are_refused(convert, model, samples):
    """The error is scikit-learn's own."""
    with pytest.raises(NotFittedError, match="not fitted yet"):
        convert(model, samples(5, 3, 0))


@each_converter
def test_kernels_without_a_graph_are_refused_by_name(convert, samples):
    """The error names the kernel and lists those that can be converted."""
    X = np.abs(samples(30, 3, 0))

    class Other(RBF):
        """A subclass may have another formula."""

    for model, name in [
        (rk.SVDD("cosine").fit(X), "cosine"),
        (rk.SVDD("precomputed").fit(X @ X.T), "Precomputed"),
        (rk.OneClassSVM(lambda X, Z: X @ Z.T).fit(X), "Function"),
        (rk.ReferenceMap("chi2").fit(X), "chi2"),
        (rk.SVDD(rk.ReferenceKernel("chi2")).fit(X), "chi2"),
        (rk.SVDD(Other(sigma=1.0)).fit(X), "Other"),
    ]:
        with pytest.raises(ValueError, match=f"(?s)kernel=.*{name}.*Laplacian, Linear, Polynomial, Product, RBF, Scaled, Sigmoid, Sum"):
            convert(model, X @ X.T if name == "precomputed" else X)


def test_samples_that_do_not_fit_the_model_are_refused(samples):
    """Another number of features, one row without its brackets, or text."""
    model = rk.SVDD().fit(samples(30, 3, 0))
    with pytest.raises(ValueError, match="has 2 features, but SVDD was fitted on 3"):
        to_onnx(model, np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"shape \(3,\).*pass rows of numbers"):
        to_onnx(model, np.zeros(3))
    with pytest.raises(ValueError, match="pass rows of numbers"):
        to_onnx(model, [["a", "b", "c"]])


def test_the_missing_extra_is_named(monkeypatch):
    """Without skl2onnx the import says what to install."""
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    monkeypatch.delitem(sys.modules, "refkernel.export.onnx")
    with pytest.raises(ImportError, match=r'pip install "refkernel\[onnx\]"'):
        importlib.import_module("refkernel.export.onnx")


def test_tables_with_missing_values_are_converted():
    """An imputer that learned from the targets alone fills in the graph what it fills here."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.r_[np.ones(50), -np.ones(10)]
    X[y == -1] += 5.0
    X[::7, 1] = np.nan
    fitted = make_pipeline(rk.TargetImputer(strategy="median"), rk.TargetScaler(), rk.SVDD()).fit(X, y)
    assert_same_decisions(fitted, rk.to_onnx(fitted), X, np.float32)  # onnxruntime imputes single precision only


def test_what_has_no_graph_is_said():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["a", "b"])
    with pytest.raises(ValueError, match="cannot be converted to ONNX"):
        rk.to_onnx(rk.ESVDD().fit(X))
    by_name = make_pipeline(ColumnTransformer([("both", "passthrough", ["a", "b"])]), rk.SVDD()).fit(X)
    with pytest.raises(ValueError, match="pass some rows as X"):
        rk.to_onnx(by_name)


@each_converter
@each_type
@pytest.mark.parametrize(("n", "d"), [(12, 3), (40, 1), (120, 5)])
def test_auto_detectors_equal_theirs(convert, dtype, n, d, samples):
    """On new, on far and on the training samples; few rows, one column."""
    X, new = samples(n, d, 0, offset=2.0).astype(dtype), samples(50, d, 1, offset=2.0)
    fitted = rk.AutoDetector(0.4).fit(X)
    graph = convert(fitted, X)
    for given in (np.vstack([new, X]), np.vstack([new, -1e3 * new[:5], 1e30 * new[:2]])):
        assert_same_decisions(fitted, graph, given, dtype)


@each_type
def test_auto_detectors_see_a_constant_violated(dtype, samples):
    """A column that never varied jumps where a sample differs, in either direction, and stays silent within rounding."""
    X, new = samples(80, 4, 0), samples(30, 4, 1)
    X[:, 1], X[:, 3], new[:, 1], new[:, 3] = 7.0, 0.0, 7.0, 0.0
    new[:5, 1], new[5:10, 3] = 7.5, -1.0
    fitted = rk.AutoDetector().fit(X)
    graph = to_onnx(fitted, X.astype(dtype))
    assert_same_decisions(fitted, graph, new, dtype)
    assert (scored(graph, new.astype(dtype))[0][:10] == -1).all()


def test_auto_detectors_convert_with_many_leaves(samples):
    """Each sample is described by the references of its own leaf; some leaves have no sample."""
    fitted = rk.AutoDetector().fit(samples(400, 3, 0))
    assert_same_decisions(fitted, to_onnx(fitted, samples(1, 3, 0)), samples(50, 3, 1), np.float64)


def test_auto_detectors_hold_only_what_is_used(samples):
    """Known outliers leave descriptions out; the graph computes the others."""
    X = samples(120, 3, 0)
    fitted = rk.AutoDetector().fit(X)
    everything = to_onnx(fitted, X)
    fitted._weights[1:] = 0.0
    graph = to_onnx(fitted, X)
    assert_same_decisions(fitted, graph, samples(50, 3, 1), np.float64)
    assert len(graph.graph.node) < len(everything.graph.node)


@each_converter
@each_type
def test_auto_detectors_convert_in_pipelines_and_in_huge_units(convert, dtype, samples):
    """After a scaler of ours; and where columns have units that would overflow when squared."""
    X, new = samples(60, 3, 0, offset=5.0), samples(50, 3, 1, offset=5.0)
    pipeline = make_pipeline(rk.TargetScaler(), rk.AutoDetector()).fit(X)
    assert_same_decisions(pipeline, convert(pipeline, X.astype(dtype)), new, dtype)
    if dtype == np.float64:
        units = np.array([1e200, 1.0, 1e-200])
        huge = rk.AutoDetector().fit(X * units)
        assert_same_decisions(huge, convert(huge, X), new * units, dtype)


@pytest.mark.parametrize("opset", [12, 13, 15, 18, 21])
def test_auto_detectors_are_the_same_in_every_opset(opset, samples):
    fitted = rk.AutoDetector().fit(samples(60, 3, 0))
    assert_same_decisions(fitted, to_onnx(fitted, target_opset=opset), samples(50, 3, 1), np.float32)


def test_auto_detectors_of_data_frames_take_any_column_names(samples):
    """Names inside the graph do not clash with those of the columns."""
    frame = pd.DataFrame(samples(60, 3, 0), columns=["D", "z", "r"])
    fitted = rk.AutoDetector().fit(frame)
    assert_same_decisions(fitted, to_onnx(fitted, frame), 2.0 * frame, np.float64)


def test_a_model_of_a_table_asks_for_a_frame(samples):
    """An array has no names and types of columns."""
    table = pd.DataFrame(samples(40, 2, 0), columns=["a", "b"])
    model = make_pipeline(rk.TableEncoder(), rk.SVDD()).fit(table)
    with pytest.raises(ValueError, match="pass X as a data frame"):
        to_onnx(model, np.zeros((3, table.shape[1])))


@pytest.mark.parametrize("scale", [1e-160, 1e160])
@pytest.mark.parametrize("model", [rk.SVDD(), rk.SVDD(rk.ReferenceKernel("rbf", "subset")), make_pipeline(rk.TargetScaler(), rk.SVDD())])
def test_columns_of_any_size_are_converted(model, scale):
    """Their squares overflow or underflow."""
    X = scale * np.random.default_rng(0).normal(size=(60, 3))
    fitted = clone(model).fit(X)
    label, scores = scored(to_onnx(fitted, X), 2.0 * X)
    np.testing.assert_array_equal(label.ravel(), fitted.predict(2.0 * X))
    np.testing.assert_allclose(scores.ravel(), fitted.decision_function(2.0 * X), atol=1e-8)


# p-values


def assert_same_p_values(model, X, dtype, final=None):
    """Equal, but for the calibration scores that the two scores of a row enclose: an independent count. Returns the share that is equal."""
    final, X = final or model, X.astype(dtype)
    exact = X.astype(np.float64)
    _, scores, p_value = scored(to_onnx(model, X), X)
    expected, n = model.p_values(exact), final._calibration_size()
    assert (p_value.dtype, p_value.shape) == (np.float64, (len(X), 1))
    pair = np.sort(np.column_stack([scores[:, 0].astype(np.float64), model.decision_function(exact)]), axis=1) + final.offset_
    pair += np.array([-1, 1]) * 1e-6 * np.abs(pair)  # scores of single precision
    held = np.sort(final._calibrating().scores)
    enclosed = np.searchsorted(held, pair[:, 1], side="right") - np.searchsorted(held, pair[:, 0])
    assert (np.abs(p_value[:, 0] - expected) <= (enclosed + 1e-6) / (n + 1)).all()
    return np.mean(p_value[:, 0] == expected)


DISCRETE = {
    "three columns of few values": lambda rng, n: np.column_stack([rng.integers(0, 3, n), rng.integers(0, 2, n), rng.integers(0, 4, n)]),
    "counts": lambda rng, n: rng.poisson(1.0, (n, 2)),
    "99 % zeros": lambda rng, n: np.where(rng.random((n, 6)) < 0.03, 1.0, 0.0),
    "one of eight rows": lambda rng, n: np.random.default_rng(9).normal(size=(8, 4))[rng.integers(0, 8, n)],
}


@each_type
@pytest.mark.parametrize("draw", DISCRETE.values(), ids=DISCRETE)
@pytest.mark.parametrize("n", [60, 300])
def test_p_values_of_rows_that_repeat_equal_the_models(draw, n, dtype):
    """Most calibration scores tie there: the last digits of single precision would move them by a tenth of the rows, and scores by 3 %."""
    rng = np.random.default_rng(n)
    X, new = (draw(rng, count).astype(dtype).astype(np.float64) for count in (n, 200))
    rows = np.vstack([X, new, 2.0 * X[:20]])
    fitted = rk.AutoDetector(0.2).fit(X)
    _, scores, p_value = scored(to_onnx(fitted, X.astype(dtype)), rows.astype(dtype))
    expected = fitted.decision_function(rows)
    np.testing.assert_allclose(scores[:, 0], expected, rtol=0, atol=SINGLE * np.ptp(expected))
    moved = np.abs(p_value[:, 0] - fitted.p_values(rows)) * (n + 1)
    assert moved.max() < 2.5
    assert np.mean(moved == 0) > 0.95


@each_type
@pytest.mark.parametrize(("n", "d"), [(60, 3), (500, 5), (200, 60)])
def test_p_values_of_auto_detectors_equal_theirs_where_no_calibration_score_is_between(dtype, n, d, samples):
    X = samples(n, d, 0, offset=2.0)
    rows = np.vstack([samples(500, d, 1, offset=2.0), X, 5.0 * X[:20]])
    assert assert_same_p_values(rk.AutoDetector(0.2).fit(X), rows, dtype) > 0.99


@each_type
def test_p_values_of_pipelines_and_tables_equal_theirs(dtype, samples):
    X, rows = samples(150, 3, 0), samples(300, 3, 1)
    pipeline = make_pipeline(rk.TargetScaler(), rk.AutoDetector(0.2)).fit(X)
    _, _, p_value = scored(to_onnx(pipeline, X.astype(dtype)), rows.astype(dtype))
    given = rows.astype(dtype).astype(np.float64)
    assert np.mean(p_value[:, 0] == pipeline[-1].p_values(pipeline[0].transform(given))) > 0.99
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": X[:, 0], "machine": rng.choice(["saw", "press"], 150), "count": rng.integers(0, 3, 150).astype(float)})
    table = rk.TableDetector().fit(frame)
    _, _, p_value = outputs(session_of(to_onnx(table)), frame.astype({"machine": object}))
    assert np.mean(p_value[:, 0] == table.p_values(frame)) > 0.99
    np.testing.assert_array_equal(table.p_values_of(table.score_samples(frame)), table.p_values(frame))


@each_type
@pytest.mark.parametrize("estimator", [rk.SVDD(), rk.OneClassSVM(RBF(1.0)), make_pipeline(rk.TargetScaler(), rk.SVDD())], ids=str)
def test_split_conformal_detectors_of_double_precision_have_equal_p_values(estimator, dtype, samples):
    """Also of the rows that calibrate, which tie, and in tables of few values. Labels and scores are the detector's."""
    rng = np.random.default_rng(1)
    for X in (samples(200, 3, 0, offset=2.0), rng.integers(0, 3, (200, 3)).astype(np.float64)):
        X = X.astype(dtype).astype(np.float64)
        fitted = rk.ConformalDetector(estimator, 0.1, method="split", random_state=0).fit(X)
        rows = np.vstack([X, samples(300, 3, 1, offset=2.0).astype(dtype).astype(np.float64)])
        graph = to_onnx(fitted, X.astype(dtype))
        assert_same_decisions(fitted, graph, rows, dtype)
        label, _, p_value = scored(graph, rows.astype(dtype))
        np.testing.assert_array_equal(p_value[:, 0], fitted.p_values(rows))
        np.testing.assert_array_equal(label[:, 0], fitted.predict(rows))


def test_a_conformal_detector_of_an_auto_detector_converts(samples):
    X = samples(200, 3, 0)
    fitted = rk.ConformalDetector(rk.AutoDetector(0.2), 0.1, method="split", random_state=0).fit(X)
    assert assert_same_p_values(fitted, samples(300, 3, 1), np.float64) > 0.99


def test_what_a_graph_cannot_promise_is_refused(samples):
    """Several models, steps of other packages, a table, a threshold for each group."""
    X = samples(80, 3, 0)
    frame = pd.DataFrame(X, columns=list("abc"))
    for estimator, method, message in (
        (rk.SVDD(), "cv", 'method="cv" scores a row by several models: fit it with method="split"'),
        (rk.SVDD(), "loo", 'fit it with method="split"'),
        (make_pipeline(StandardScaler(), rk.SVDD()), "split", "StandardScaler in a ConformalDetector cannot be converted"),
        (make_pipeline(rk.TableEncoder(), rk.SVDD()), "split", "TableEncoder in a ConformalDetector cannot be converted"),
    ):
        fitted = rk.ConformalDetector(estimator, 0.1, method=method, random_state=0).fit(frame)
        with pytest.raises(ValueError, match=message):
            to_onnx(fitted)
    groups = np.repeat(["saw", "press"], 40)
    with pytest.raises(ValueError, match="AutoDetector has a threshold for each group, and an ONNX graph has one"):
        to_onnx(rk.AutoDetector(0.1).fit(X, groups=groups))
    with pytest.raises(ValueError, match="a threshold for each group"):
        to_onnx(rk.TableDetector(false_alarm_rate=0.1, group_column="g").fit(frame.assign(g=groups)))
