"""Sums, products and multiples of kernels, widths by feature and by neighbours, and matrices: all behind one contract."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.svm import OneClassSVM as LibSVM

import refkernel as rk
from refkernel._core.distances import neighbour_distances
from refkernel.kernels import RBF, Laplacian, Linear, Polynomial, Precomputed, Product, Scaled, Sum

every_seed = pytest.mark.parametrize("seed", range(3))

MADE = {
    "sum": lambda: RBF(1.0) + Linear(),
    "product": lambda: RBF(1.0) * Laplacian(),
    "multiple": lambda: 2.5 * RBF(0.3),
    "nested": lambda: 0.5 * (RBF(1.0) + Linear()) * Laplacian() + Polynomial(2),
    "by feature": lambda: RBF([0.5, 2.0, 1.0]),
    "with references": lambda: rk.ReferenceKernel(RBF(1.0), references="case3", random_state=0) + 0.1 * Linear(),
}


@every_seed
@pytest.mark.parametrize("name", MADE)
def test_kernels_made_of_kernels_keep_the_contract(name, seed, samples):
    """The diagonal is that of the matrix, the matrix is symmetric and positive semidefinite, and resolving changes nothing."""
    X, kernel = samples(25, 3, seed), MADE[name]()
    before = repr(kernel)
    ready = kernel.fit(X)
    K = ready(X)
    assert repr(kernel) == before
    np.testing.assert_allclose(ready.diag(X), np.diagonal(K), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(K, K.T, atol=1e-9)
    assert np.linalg.eigvalsh(K)[0] > -1e-8 * np.trace(K)
    np.testing.assert_allclose(ready(X[:4], X), K[:4], rtol=1e-9, atol=1e-9)
    Phi = ready._features(X)
    if Phi is not None:
        np.testing.assert_allclose(Phi @ Phi.T, K, rtol=1e-9, atol=1e-9)


def test_the_formulas_are_sums_products_and_multiples(samples):
    X = samples(12, 3, 0)
    a, b = RBF(1.0).fit(X), Laplacian().fit(X)
    np.testing.assert_allclose((RBF(1.0) + Laplacian()).fit(X)(X), a(X) + b(X))
    np.testing.assert_allclose((RBF(1.0) * Laplacian()).fit(X)(X), a(X) * b(X))
    np.testing.assert_allclose((RBF(1.0) * 3).fit(X)(X), 3.0 * a(X))
    assert isinstance(2.0 * RBF(), Scaled)
    assert isinstance(RBF() + RBF(), Sum)
    assert isinstance(RBF() * RBF(), Product)
    with pytest.raises(TypeError):
        RBF() + 1.0
    with pytest.raises(ValueError, match="factor=-1"):
        (-1.0 * RBF()).fit(X)
    with pytest.raises(ValueError, match="fit_on"):
        rk.ReferenceMap(RBF(1.0) + RBF(1.0, fit_on="training")).fit(X)


@every_seed
@pytest.mark.parametrize("name", [name for name in MADE if name != "with references"])
def test_they_describe_are_mapped_searched_and_saved(name, seed, samples, tmp_path):
    X = samples(40, 3, seed)
    y = np.r_[np.ones(30), -np.ones(10)]
    X[30:] *= 3.0
    kernel = MADE[name]()
    model = rk.SVDD(kernel, nu=0.2).fit(X[:30])
    assert model.duality_gap_ <= model.tol
    same = rk.SVDD("precomputed", nu=0.2).fit(model.kernel_(X[:30]))
    np.testing.assert_allclose(model.dual_coef_.sum(), same.dual_coef_.sum())
    assert rk.ReferenceMap(kernel, references="case3", random_state=0).fit_transform(X[:30]).shape[0] == 30
    search = rk.OneClassGridSearch(rk.SVDD(kernel), {"nu": [0.1, 0.3]}, cv=3, random_state=0).fit(X, y)
    assert len(search.cv_results_["params"]) == 2
    pytest.importorskip("skops", reason="model files need the extra save")
    rk.save(model, tmp_path / "model.rk")
    np.testing.assert_array_equal(rk.load(tmp_path / "model.rk").decision_function(X), model.decision_function(X))


@every_seed
def test_equal_widths_by_feature_are_one_width(seed, samples):
    X = samples(20, 3, seed)
    one, many = RBF(0.7).fit(X), RBF([0.7, 0.7, 0.7]).fit(X)
    np.testing.assert_allclose(many(X), one(X), rtol=1e-12)
    np.testing.assert_allclose(RBF(sigma=[1.0, 2.0, 3.0])(X), RBF(sigma=1.0)(X / [1.0, 2.0, 3.0]), rtol=1e-12)
    sparse = sp.csr_array(X)
    np.testing.assert_allclose(RBF(sigma=[1.0, 2.0, 3.0])(sparse), RBF(sigma=[1.0, 2.0, 3.0])(X), rtol=1e-9)
    with pytest.raises(ValueError, match="3 of them: one for each feature"):
        RBF([1.0, 2.0]).fit(X)
    with pytest.raises(ValueError, match="scale='wide'"):
        RBF("wide").fit(X)


@every_seed
@pytest.mark.parametrize("gamma", [0.3, "scale", "auto"])
def test_gamma_means_what_it_means_in_scikit_learn(gamma, seed, samples):
    X = samples(60, 3, seed)
    ours = rk.OneClassSVM(RBF(gamma=gamma), nu=0.2, tol=1e-9).fit(X)
    theirs = LibSVM(gamma=gamma, nu=0.2, tol=1e-9).fit(X)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    with pytest.raises(ValueError, match="both given"):
        RBF(sigma=1.0, gamma=1.0).fit(X)


def test_a_quarter_is_scikit_learns_default_on_standardised_data():
    """The number that RBF's docstring gives."""
    X = np.random.default_rng(0).normal(size=(400, 6))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert RBF(0.25).fit(X).sigma_ == pytest.approx(RBF(gamma="scale").fit(X).sigma_, rel=1e-12)


@every_seed
def test_the_width_by_neighbours_follows_a_naive_loop(seed, samples):
    X = samples(50, 3, seed)
    near = np.sort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[:, 1:6]
    naive = np.median(np.sqrt((near**2).mean(axis=1))), np.quantile(near[:, 0], 0.95)
    assert neighbour_distances(X) == pytest.approx(naive, rel=1e-6)
    assert neighbour_distances(np.repeat(X, 4, axis=0)) == pytest.approx(naive, rel=1e-6)
    sigma = max(0.35 * naive[0], naive[1] / 5.0)
    assert RBF("neighbours").fit(X).sigma_ == pytest.approx(sigma, rel=1e-6)
    assert RBF("neighbours").fit(1e200 * X).sigma_ == pytest.approx(1e200 * sigma, rel=1e-6)


def test_lone_rows_widen_the_width_until_most_have_a_neighbour_within_reach():
    """A tenth of the rows lies far apart from each other and from the rest."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(180, 2)) * 0.01, rng.normal(size=(20, 2)) * 3.0])
    typical, seldom_exceeded = neighbour_distances(X)
    assert seldom_exceeded / 5.0 > 0.35 * typical
    assert RBF().fit(X).sigma_ == pytest.approx(seldom_exceeded / 5.0)


@pytest.mark.parametrize("X", [np.ones((1, 2)), np.ones((9, 2)), np.zeros((4, 1000))], ids=["one row", "equal rows", "wide"])
def test_a_width_of_nothing_is_one(X):
    assert neighbour_distances(X) == (0.0, 0.0)
    assert RBF("neighbours").fit(X).sigma_ == 1.0


def test_the_default_width_is_narrow_on_samples_and_the_articles_under_a_map(samples):
    X = samples(60, 3, 0)
    assert RBF().fit(X).sigma_ == RBF("neighbours").fit(X).sigma_
    assert rk.SVDD().fit(X).kernel_.sigma_ == RBF("neighbours").fit(X).sigma_
    assert rk.ReferenceMap().fit(X).kernel_.sigma_ == RBF(1.0).fit(X).sigma_
    assert neighbour_distances(np.random.default_rng(0).normal(size=(5000, 3)))[0] > 0


@every_seed
def test_a_given_matrix_with_row_numbers_is_the_kernel_on_samples(seed, samples):
    X = samples(40, 3, seed)
    K, rows = RBF(1.0).fit(X[:30])(X), np.arange(40)[:, None]
    by_rows = rk.SVDD(Precomputed(K), nu=0.2).fit(rows[:30])
    by_samples = rk.SVDD(RBF(1.0), nu=0.2).fit(X[:30])
    np.testing.assert_allclose(by_rows.decision_function(rows), by_samples.decision_function(X), atol=1e-9)


def test_svdd_on_a_given_matrix_is_cross_validated(samples):
    """k(x, x) comes along, by row numbers; scikit-learn's own tools need nothing else."""
    X = samples(60, 3, 0)
    y = np.r_[np.ones(45), -np.ones(15)]
    X[45:] += 4.0
    K, rows, folds = RBF(1.0).fit(X[:45])(X), np.arange(60)[:, None], StratifiedKFold(3)
    scores = cross_val_score(rk.SVDD(Precomputed(K), nu=0.1), rows, y, scoring="roc_auc", cv=folds)
    assert scores.mean() > 0.9
    search = GridSearchCV(rk.SVDD(Precomputed(K)), {"nu": [0.1, 0.3]}, scoring="roc_auc", cv=folds).fit(rows, y)
    ours = rk.OneClassGridSearch(rk.SVDD(Precomputed(K)), {"nu": [0.1, 0.3]}, scoring="roc_auc", cv=folds, refit=False)
    assert ours.fit(rows, y).cv_results_["mean_test_score"] == pytest.approx(search.cv_results_["mean_test_score"], abs=0.02)
    assert clone(Precomputed(K)).K.shape == (60, 60)


@pytest.mark.parametrize("X", [[[0.5]], [[-1.0]], [[60.0]], [[0.0, 1.0]]])
def test_what_is_not_a_row_number_is_refused(X):
    K = np.eye(60)
    model = rk.SVDD(Precomputed(K)).fit(np.arange(20)[:, None])
    with pytest.raises(ValueError, match=r"row numbers from 0 to 59|features"):
        model.predict(X)
    with pytest.raises(ValueError, match="square matrix of finite numbers"):
        rk.SVDD(Precomputed(K[:3])).fit([[0], [1]])


def test_precomputed_says_how_to_bring_the_diagonal():
    model = rk.SVDD("precomputed").fit(np.eye(10))
    with pytest.raises(ValueError, match="pass diag"):
        model.predict(np.eye(10))
    with pytest.raises(TypeError):
        model.predict(np.eye(10), np.ones(10))  # diag is not the second argument
    assert model.predict(np.eye(10), diag=np.ones(10)).shape == (10,)
