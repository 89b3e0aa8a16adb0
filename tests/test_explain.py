"""What each feature adds to a score: against all subsets, a numerical integral, and the axioms."""

from __future__ import annotations

import itertools
import math
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler

import refkernel as rk
from refkernel._core.shapley import error_bound, nodes, shapley_of_sums
from refkernel.detectors.explain import Explanation
from refkernel.detectors.explain.normal import written
from refkernel.detectors.explain.product_form import form_of
from refkernel.kernels import Laplacian, Linear

D = 5


def data(n=40, d=D, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def shapley(value, players):
    """The definition: each player's marginal contribution, averaged over all subsets."""
    v = {on: value(np.array(on, dtype=bool)) for on in itertools.product([False, True], repeat=players)}
    phi = np.zeros(players)
    for on, before in v.items():
        weight = math.factorial(sum(on)) * math.factorial(players - sum(on) - 1) / math.factorial(players) if not all(on) else 0.0
        for j in np.flatnonzero(~np.array(on)):
            phi[j] += weight * (v[(*on[:j], True, *on[j + 1 :])] - before)
    return phi


def switched(kernel, x, Z, on):
    """k(x, z) for every z, columns that are off agreeing with it."""
    return np.diagonal(kernel(np.where(on, x, Z), Z))


def value_of(model, x, on):
    """The score with some columns switched off, from the model's own kernel and attributes."""
    if hasattr(model, "map_"):
        k = switched(model.map_.kernel_, x, model.map_.references_, on)
        Phi = np.append(k, 1.0) @ model.map_._factor.projection[:, : model.rank_]
        return -(model.map_.kernel_.diag(x[None])[0] + model.map_._mean_norm2 - 2.0 * k.mean() * model.center - Phi @ Phi)
    if isinstance(model.kernel_, rk.ReferenceKernel):
        Phi = np.append(switched(model.kernel_.kernel_, x, model.kernel_.references_, on), 1.0) @ model.kernel_._factor.projection
        return model.classifier.score(Phi @ model._normal, Phi @ Phi, model._quadratic)
    sums = switched(model.kernel_, x, model.support_vectors_, on) @ model.dual_coef_[0]
    return model.classifier.score(sums, model.kernel_.diag(x[None])[0], model._quadratic)


WIDTHS = rk.RBF(sigma=[0.5, 1.0, 1.5, 2.0, 4.0])
MODELS = {
    "svdd": rk.SVDD(nu=0.2),
    "svdd, wide": rk.SVDD(rk.RBF(1.0), nu=0.2),
    "ocsvm": rk.OneClassSVM(nu=0.2),
    "laplacian": rk.SVDD("laplacian", nu=0.2),
    "a width for each column": rk.OneClassSVM(WIDTHS, nu=0.2),
    "product": rk.SVDD(WIDTHS * Laplacian(), nu=0.2),
    "sum of products": rk.SVDD(WIDTHS * Laplacian() + 0.5 * rk.RBF(2.0) + 2.0 * Laplacian(2.0), nu=0.2),
    "product of sums": rk.OneClassSVM((rk.RBF(1.0) + Laplacian()) * (rk.RBF(2.0) + 0.5 * Laplacian(3.0)), nu=0.2),
    "references, svdd": rk.SVDD(rk.ReferenceKernel(rk.RBF(2.0), "case4", random_state=0), nu=0.2),
    "references, not centred": rk.SVDD(rk.ReferenceKernel(rk.RBF(2.0), "subset", center=False, random_state=0), nu=0.2),
    "references, ocsvm": rk.OneClassSVM(rk.ReferenceKernel(Laplacian(), "case4", random_state=0), nu=0.2),
    "references, sum": rk.SVDD(rk.ReferenceKernel(rk.RBF(2.0) + Laplacian(), "case4", random_state=0), nu=0.2),
    "residual": rk.ReferenceResidual(references="subset", random_state=0),
    "residual, truncated": rk.ReferenceResidual("laplacian", rank=0.9, center=False, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_are_the_shapley_values_of_all_subsets(name):
    model, new = MODELS[name].fit(data()), 1.5 * data(3, seed=1)
    why = rk.explain(model, new)
    expected = np.array([shapley(lambda on, x=x: value_of(model, x, on), D) for x in new])
    size = max(1.0, abs(why.baseline))
    np.testing.assert_allclose(why.values, expected, atol=1e-11 * size)
    assert why.baseline == pytest.approx(value_of(model, new[0], np.zeros(D, dtype=bool)), abs=1e-11 * size)


@pytest.mark.parametrize("method", ["shapley", "path"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_and_baseline_sum_to_the_score(name, method):
    model, new = MODELS[name].fit(data()), np.vstack([2.0 * data(20, seed=1), data()[:3], np.full((1, D), 1e4)])
    why = rk.explain(model, new, method=method)
    np.testing.assert_allclose(why.values.sum(axis=1) + why.baseline, model.score_samples(new), atol=1e-11 * max(1.0, abs(why.baseline)))
    np.testing.assert_array_equal(why.scores, why.values.sum(axis=1) + why.baseline)


@pytest.mark.parametrize("name", ["svdd, wide", "sum of products", "references, sum", "residual"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_path_values_are_the_integral_of_the_slopes_along_the_path(name):
    model, x = MODELS[name].fit(data()), 1.5 * data(1, seed=1)[0]
    h = 1e-5

    def grown(t):
        """The score with the exponents of column j multiplied by t_j."""
        form = form_of(model)
        u = np.abs(x - form.centres)
        p = np.concatenate([np.exp(-((q * u + a) * u + r * np.sqrt(u)) @ t) for q, a, r in form.rate])
        return form.constant + form.weight @ p + (0.0 if form.pair is None else p @ form.pair @ p)

    def slope(t, j):
        step = h * np.eye(D)[j]
        return (grown(np.full(D, t) + step) - grown(np.full(D, t) - step)) / (2.0 * h)

    assert grown(np.ones(D)) == pytest.approx(model.score_samples(x[None])[0], abs=1e-9)
    expected = [quad(slope, 0.0, 1.0, args=(j,))[0] for j in range(D)]
    np.testing.assert_allclose(rk.explain(model, x[None], method="path").values[0], expected, atol=1e-6)


@pytest.mark.parametrize("model", [rk.SVDD("linear", nu=0.2), rk.OneClassSVM("linear", nu=0.2)])
@pytest.mark.parametrize("method", ["shapley", "path"])
def test_linear_kernels_add_up_column_by_column(model, method):
    X, new = data() + 3.0, data(4, seed=1)
    normal = model.fit(X).dual_coef_[0] @ model.support_vectors_
    is_svdd = model.classifier.uses_diag
    expected = 2.0 * new * normal - new**2 if is_svdd else new * normal
    why = rk.explain(model, new, method=method)
    np.testing.assert_allclose(why.values, expected, atol=1e-12)
    np.testing.assert_allclose(why.scores, model.score_samples(new), atol=1e-11)


def test_a_linear_part_of_a_sum_adds_its_own_terms():
    model, new = rk.SVDD(rk.RBF(sigma=1.0) + 0.1 * Linear(), nu=0.2).fit(data()), data(4, seed=1)
    why, b, Z = rk.explain(model, new), model.dual_coef_[0], model.support_vectors_
    for x, found in zip(new, why.values, strict=True):
        product = shapley(lambda on, x=x: 2.0 * b @ np.exp(-0.5 * ((x - Z)[:, on] ** 2).sum(axis=1)), D)
        np.testing.assert_allclose(found, product + 0.1 * (2.0 * x * (b @ Z) - x**2), atol=1e-12)
    np.testing.assert_allclose(why.scores, model.score_samples(new), atol=1e-11)


@pytest.mark.parametrize("name", ["svdd", "references, not centred", "residual"])
def test_columns_that_are_alike_get_the_same_value(name):
    X, new = data(), data(5, seed=1)
    X[:, 3], new[:, 3] = X[:, 1], new[:, 1]
    values = rk.explain(MODELS[name].fit(X), new).values
    np.testing.assert_allclose(values[:, 1], values[:, 3], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["shapley", "path"])
@pytest.mark.parametrize("name", ["svdd", "references, not centred", "residual"])
def test_a_column_that_never_differs_gets_nothing(name, method):
    X, new = data(), data(5, seed=1)
    X[:, 2] = new[:, 2] = 7.0
    assert (rk.explain(MODELS[name].fit(X), new, method=method).values[:, 2] == 0.0).all()


@pytest.mark.parametrize("name", ["svdd, wide", "references, svdd"])
def test_a_group_of_columns_is_one_player(name):
    model, new = MODELS[name].fit(data()), data(3, seed=1)
    why = rk.explain(model, new, groups={"pair": [1, 4]})
    assert why.names == ("x0", "pair", "x2", "x3")
    player = np.array([0, 1, 2, 3, 1])
    expected = [shapley(lambda on, x=x: value_of(model, x, on[player]), 4) for x in new]
    np.testing.assert_allclose(why.values, expected, atol=1e-11)
    whole = rk.explain(model, new, groups={"all": range(D)})
    np.testing.assert_allclose(whole.values[:, 0], model.score_samples(new) - why.baseline, atol=1e-11)


@pytest.mark.parametrize("model", [rk.SVDD(nu=0.2), rk.SVDD(rk.ReferenceKernel(references="subset", random_state=0)), rk.AutoDetector()])
def test_a_row_is_explained_alike_alone_and_among_others(model):
    model.fit(data(60))
    new = data(50, seed=1)
    among = rk.explain(model, new).values
    assert all(np.array_equal(rk.explain(model, new[i : i + 1]).values[0], among[i]) for i in (0, 17, 49))


@pytest.mark.parametrize("model", [rk.SVDD(nu=0.2), rk.ReferenceResidual(references="subset", random_state=0), rk.AutoDetector()])
def test_one_column_explains_everything(model):
    model.fit(data(d=1))
    new = data(6, d=1, seed=1) * 3.0
    why = rk.explain(model, new)
    np.testing.assert_allclose(why.values[:, 0] + why.baseline, model.score_samples(new), atol=1e-12 * max(1.0, abs(why.baseline)))


def test_half_as_many_nodes_as_features_are_exact():
    for features in (1, 2, 3, 8, 19, 20):
        t, w = nodes(features)
        assert t.size == math.ceil(features / 2)
        assert error_bound(t.size, features) == 0.0
        a = np.linspace(0.1, 1.0, features - 1)
        exact = np.polynomial.Polynomial([1.0])
        for each in a:
            exact *= np.polynomial.Polynomial([1.0, -each])
        assert w @ np.prod(1.0 - np.outer(t, a), axis=1) == pytest.approx(exact.integ()(1.0), abs=1e-12)


@pytest.mark.parametrize("features", [50, 200, 1000])
@pytest.mark.parametrize("count", [5, 10, 20])
def test_errors_of_few_nodes_stay_below_their_bound(features, count):
    t, w = np.polynomial.legendre.leggauss(count)
    t_exact, w_exact = np.polynomial.legendre.leggauss(features // 2)
    rng, bound = np.random.default_rng(0), error_bound(count, features)
    for a in (np.ones(features - 1), rng.random(features - 1), np.repeat([0.0, 1.0], [features // 2, features - 1 - features // 2])):
        integral = [0.5 * w_ @ np.prod(1.0 - np.outer(0.5 * (1.0 + t_), a), axis=1) for t_, w_ in ((t, w), (t_exact, w_exact))]
        assert abs(integral[0] - integral[1]) <= bound + 1e-15


def test_200_features_are_explained_within_the_error_bound_by_fewer_nodes():
    X, new = data(80, 200), data(3, 200, seed=1) * 1.3
    model = rk.SVDD(rk.RBF(0.5), nu=0.2).fit(X)
    why, form = rk.explain(model, new), form_of(model)
    assert nodes(200)[0].size < 50
    assert 0.0 < why.error_bound < 1e-13
    t, w = np.polynomial.legendre.leggauss(100)
    exact = np.zeros((3, 200))
    columns = np.ascontiguousarray(form.centres.T)
    shapley_of_sums(new, columns, form.rate, np.arange(200), form.weight, (0.5 * (1.0 + t), 0.5 * w), exact)
    np.testing.assert_allclose(why.values, exact, atol=why.error_bound + 1e-14)
    np.testing.assert_allclose(why.scores, model.score_samples(new), atol=1e-12)


def naive_auto(detector, x):
    """AutoDetector's values of one row, description by description, with a numerical integral for the residuals."""
    model, shares = detector._model, []
    for described in model.described_:
        z, Z = (described.seen(rows, model.columns_).astype(float) for rows in ((x / model.unit_)[None], model.rows_.astype(float)))
        for part in described.parts:
            if not part.is_local:
                shares.append(np.where(z[0] == z.max(), z[0], 0.0))
                continue
            power = part.power
            C = np.exp(-(np.abs(Z[:, None] - Z) ** power).sum(axis=2) / part.width_) + 0.03 * np.eye(len(Z))
            shares.append(integrated(np.linalg.inv(C), np.abs(z - Z) ** power / part.width_))
    scores = model.score(x[None])[:, 0]
    evidence = [found(score) for found, score in zip(detector._evidence, scores, strict=True)]
    weighted = [weight * E * share / (share.sum() or 1.0) for weight, E, share in zip(detector._weights, evidence, shares, strict=True)]
    return -np.sum(weighted, axis=0) / detector._weights.sum()


def integrated(M, e):
    """The integral over t of the slopes of 1 - k'Mk along the path k = exp(-t Σ_j e_j), column by column."""

    def slope(t, j):
        k = np.exp(-t * e.sum(axis=1))
        return 2.0 * (M @ k) @ (k * e[:, j])

    return np.array([quad(slope, 0.0, 1.0, args=(j,), limit=200)[0] for j in range(e.shape[1])])


@pytest.mark.parametrize("known", [False, True])
def test_autodetector_shares_each_description_by_its_distances(known):
    X = data(40, 3)
    X[:, 1] *= 50.0
    y = np.ones(40)
    if known:
        X[:5, 2] += 6.0
        y[:5] = -1
    detector = rk.AutoDetector().fit(X, y)
    new = data(3, 3, seed=1) * np.array([2.0, 100.0, 2.0])
    expected = [naive_auto(detector, x) for x in new]
    np.testing.assert_allclose(rk.explain(detector, new).values, expected, atol=1e-3)


def test_autodetector_values_sum_to_the_score_and_name_a_broken_constant():
    X = data(100)
    X[:, 3] = 100.0
    detector = rk.AutoDetector().fit(X)
    new = np.vstack([data(20, seed=1) * 2.0, X[:5], np.full((1, D), 1e200)])
    new[0, 3] = 130.0
    new[1:20, 3] = 100.0
    why = rk.explain(detector, new)
    assert why.method == "path"
    assert why.baseline == 0.0
    np.testing.assert_allclose(why.scores, detector.score_samples(new), atol=1e-11)
    assert why.worst(1)[0, 0] == 3
    assert (why.values[1:20, 3] == 0.0).all()
    grouped = rk.explain(detector, new, groups={"pair": [0, 1]}).values
    np.testing.assert_allclose(grouped[:, 0], why.values[:, :2].sum(axis=1), atol=1e-12)


def test_autodetector_has_no_shapley_values():
    with pytest.raises(ValueError, match='explained by method="path"'):
        rk.explain(rk.AutoDetector().fit(data()), data(1), method="shapley")


def table(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=n), "colour": rng.choice(["red", "green", "blue"], n), "b": rng.normal(size=n), "set": 5.0})


def test_a_pipeline_is_explained_by_the_columns_of_its_input():
    X = table()
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer([("categories", OneHotEncoder(sparse_output=False), ["colour"]), ("numbers", numbers, ["b", "a", "set"])])
    model = Pipeline([("columns", columns), ("scale", rk.TargetScaler()), ("model", rk.SVDD(rk.RBF(1.0), nu=0.2))]).fit(X)
    why = rk.explain(model, X[:4])
    assert why.names == ("a", "colour", "b", "set")
    np.testing.assert_allclose(why.scores, model.score_samples(X[:4]), atol=1e-12)
    assert (why.values[:, 3] == 0.0).all()  # the scaler drops it
    inner = rk.explain(model[-1], model[:-1].transform(X[:4]), groups={"colour": [0, 1, 2]})
    np.testing.assert_allclose(why.values[:, [1, 2, 0]], inner.values, atol=1e-14)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), rk.TargetScaler(), "passthrough", VarianceThreshold()])
def test_scalers_keep_the_names_of_the_columns(scaler):
    X = pd.DataFrame(data(), columns=list("abcde"))
    X["c"] = 1.0
    model = Pipeline([("scaler", scaler), ("model", rk.OneClassSVM(nu=0.2))]).fit(X)
    why = rk.explain(model, X[:5])
    assert why.names == tuple("abcde")
    assert (why.values[:, 2] == 0.0).all()
    np.testing.assert_allclose(why.scores, model.score_samples(X[:5]), atol=1e-12)


def test_the_best_of_a_search_is_explained():
    X, y = np.vstack([data(40), data(8, seed=2) + 4.0]), np.repeat([1, -1], [40, 8])
    pipeline = Pipeline([("scale", rk.TargetScaler()), ("model", rk.SVDD(rk.RBF()))])
    search = rk.OneClassGridSearch(pipeline, {"model__nu": [0.1, 0.2]}, cv=2, random_state=0).fit(X, y)
    np.testing.assert_allclose(rk.explain(search, X[:4]).scores, search.best_estimator_.score_samples(X[:4]), atol=1e-12)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (rk.SVDD("poly"), "Polynomial is not a sum of products"),
        (rk.SVDD(lambda X, Z: np.exp(-((X[:, :1] - Z[:, 0]) ** 2))), "Function is not a sum of products"),
        (rk.SVDD(rk.RBF(1.0) * Linear()), "product with a linear kernel"),
        (rk.SVDD(rk.ReferenceKernel("linear", random_state=0)), "square of a linear kernel"),
        (rk.ESVDD(), "ESVDD cannot be explained"),
        (make_pipeline(PCA(2), rk.SVDD()), "PCA may mix columns"),
        (make_pipeline(Normalizer(), rk.SVDD()), "Normalizer may mix columns"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_cannot_be_explained_says_what_can(model, message):
    with pytest.raises(TypeError, match=message):
        rk.explain(model.fit(data()), data(1))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"g": [9]}, "holds 9, which is not one of the 5 columns"),
        ({"g": ["x7"]}, "holds 'x7', which is not one"),
        ({"g": [0], "h": ["x0"]}, "Column x0 is in the groups 'g' and 'h'"),
        ({"x1": [0]}, "has the name of a column that is not in it"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        rk.explain(rk.SVDD(nu=0.2).fit(data()), data(1), groups=groups)


def test_sparse_rows_are_explained_as_dense_ones():
    sp = pytest.importorskip("scipy.sparse")
    X, new = data(), data(3, seed=1)
    dense, sparse = (rk.explain(rk.SVDD(rk.RBF(1.0), nu=0.2).fit(make(X)), make(new)) for make in (np.asarray, sp.csr_array))
    np.testing.assert_allclose(sparse.values, dense.values, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-160, 1e160])
@pytest.mark.parametrize("method", ["shapley", "path"])
@pytest.mark.parametrize(
    "model",
    [
        rk.SVDD(nu=0.2),
        rk.SVDD(rk.ReferenceKernel(references="subset", random_state=0)),
        rk.ReferenceResidual(references="subset", random_state=0),
    ],
)
def test_columns_of_any_size_are_explained_alike(model, method, scale):
    """Their squares overflow or underflow."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    why, plain = (rk.explain(clone(model).fit(unit * X), 3.0 * unit * X, method=method) for unit in (scale, 1.0))
    np.testing.assert_allclose(why.values, plain.values, rtol=1e-6, atol=1e-9)


NASTY = "</td><script>alert(1)</script>"


@pytest.mark.parametrize(
    "detector",
    [
        rk.ConformalDetector(rk.SVDD(rk.RBF(1.0), nu=0.2)),
        rk.ConformalDetector(rk.OneClassSVM(nu=0.2), method="cv", cv=3, random_state=0),
        rk.ConformalDetector(rk.SVDD(nu=0.2), method="split", random_state=0),
        rk.ConformalDetector(make_pipeline(StandardScaler(), rk.SVDD(nu=0.2)), method="cv", cv=3, random_state=0),
        rk.ConformalDetector(rk.AutoDetector(), method="split", random_state=0),
        make_pipeline(rk.TargetScaler(), rk.ConformalDetector(rk.SVDD(rk.RBF(2.0)), method="cv", cv=3, scored_by="full", random_state=0)),
    ],
)
def test_a_calibrated_detector_is_explained_by_the_mean_score_of_its_models(detector):
    detector.fit(data(120))
    new = data(4, seed=1) * 2.0
    why = rk.explain(detector, new)
    final, rows = (detector[-1], detector[:-1].transform(new)) if hasattr(detector, "steps") else (detector, new)
    models = [final.estimator_] if hasattr(final, "estimator_") else final.models_.models
    np.testing.assert_allclose(why.scores, np.mean([model.score_samples(rows) for model in models], axis=0), atol=1e-11)
    assert why.names == tuple(f"x{j}" for j in range(D))
    spoilt = data(120)[[detector.decision_function(data(120)).argmax()]]
    spoilt[0, 1] = 30.0
    change = rk.counterfactuals(detector, spoilt).changes[0][0]
    assert change.name == "x1"
    spoilt[0, 1] = change.nearest
    assert detector.decision_function(spoilt)[0] >= 0


def test_an_explanation_is_read_as_sentences_a_frame_and_a_text():
    X = pd.DataFrame(data(200, 3), columns=["width", "height", "depth"])
    X.loc[0, "height"] = 50.0
    new = pd.DataFrame({"width": [0.0, 0.0], "height": [9.0, 0.0], "depth": [0.0, 0.0]})
    why = rk.explain(rk.AutoDetector().fit(X), new)
    low, high = np.quantile(X["height"], [0.01, 0.99])
    first = why.sentences()[0][0]
    assert first == f"height = 9 (normal: {written(low)} … {written(high)}, extremes {written(X['height'].min())} … 50)"
    assert len(why.sentences(1)[0]) == 1
    pd.testing.assert_frame_equal(why.to_frame(), pd.DataFrame(why.values, columns=list(X)))
    text = repr(why)
    assert text.splitlines()[0] == 'Explanation of 2 rows by 3 features ("path")'
    assert f"row 0, score {why.scores[0]:.4g}: {first}" in text
    assert len(repr(rk.explain(rk.AutoDetector().fit(X), X)).splitlines()) == 7  # the title, five rows, and how many more


def test_columns_that_belong_together_are_named_with_all_their_cells():
    why = rk.explain(rk.SVDD(rk.RBF(1.0), nu=0.2).fit(data()), [[0.0, 9.0, 0.0, 0.0, 8.5]], groups={"pair": [1, 4]})
    assert why.sentences(1) == [["pair = 9, 8.5"]]


def test_an_explanation_of_values_alone_names_the_features():
    why = Explanation(np.array([[-1.0, 2.0]]), 0.0, ("a", "b"), "path")
    assert why.sentences() == [["a"]]
    assert "<td" in why._repr_html_()


def test_tables_for_notebooks_hold_the_values_and_escape_names_and_cells():
    colour = np.repeat([NASTY, "green"], 50)
    X = pd.DataFrame({f"<b>{NASTY}": np.where(colour == "green", 0.0, 9.0) + 0.3 * data(100, 1)[:, 0], "colour": colour})
    model = rk.TableDetector().fit(X)
    odd = pd.DataFrame({X.columns[0]: [30.0, 4.5], "colour": [NASTY, f"new{NASTY}"]})
    why, change = rk.explain(model, odd), rk.counterfactuals(model, odd)
    for html in (why._repr_html_(), change._repr_html_()):
        assert "<script" not in html
        assert "<b>" not in html
        page = HTMLParser(convert_charrefs=True)
        texts = []
        page.handle_data = texts.append
        page.feed(html)
        assert f"<b>{NASTY}" in "".join(texts)
    widths = [float(text) for text in re.findall(r"width:([\d.]+)%", why._repr_html_())]
    assert max(widths) == 50.0  # the largest value fills its half of the track
    assert f"{why.values[0].min():+.3g}" in why._repr_html_()
    assert "row 0: " in repr(change)
