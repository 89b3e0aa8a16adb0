"""Base kernels: one formula each, a width that fit resolves once, parameters that never leak."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import chi2_kernel, cosine_similarity, pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import refkernel as rk
from refkernel._core import distances as _distances
from refkernel.kernels import RBF, Function, Laplacian, Linear, Pairwise, Polynomial, Sigmoid, as_kernel

SEEDS = (0, 1, 2)

FORMULAS = {
    "rbf": (RBF(sigma=1.3), lambda x, z: math.exp(-sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) / (2 * 1.3**2))),
    "laplacian": (Laplacian(gamma=0.4), lambda x, z: math.exp(-0.4 * sum(abs(a - b) for a, b in zip(x, z, strict=True)))),
    "linear": (Linear(), lambda x, z: sum(a * b for a, b in zip(x, z, strict=True))),
    "polynomial": (
        Polynomial(degree=2, gamma=0.5, coef0=0.7),
        lambda x, z: (0.5 * sum(a * b for a, b in zip(x, z, strict=True)) + 0.7) ** 2,
    ),
    "sigmoid": (Sigmoid(gamma=0.2, coef0=0.1), lambda x, z: math.tanh(0.2 * sum(a * b for a, b in zip(x, z, strict=True)) + 0.1)),
}

every_kernel = pytest.mark.parametrize("name", FORMULAS)
every_seed = pytest.mark.parametrize("seed", SEEDS)


def linear_callable(X, Z):
    return X @ Z.T


def mean_over_pairs(X, distance, w):
    """Σ w_i w_j distance(x_i, x_j) / (Σ w)², the zero diagonal included, by a double loop."""
    total = sum(w[i] * w[j] * distance(X[i], X[j]) for i in range(len(X)) for j in range(len(X)))
    return total / sum(w) ** 2


def squared_distance(x, z):
    return sum((a - b) ** 2 for a, b in zip(x, z, strict=True))


def l1_distance(x, z):
    return sum(abs(a - b) for a, b in zip(x, z, strict=True))


@every_kernel
@every_seed
def test_kernel_equals_its_formula(name, seed, samples):
    """Every entry of k(X, Z) and of k(X) is the formula's value for that pair of rows."""
    kernel, formula = FORMULAS[name]
    X, Z = samples(7, 3, seed), samples(5, 3, seed + 100)
    k = kernel.fit(X)
    # rounding only: values are of size 1 to 100
    np.testing.assert_allclose(k(X, Z), [[formula(x, z) for z in Z] for x in X], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(k(X), [[formula(x, z) for z in X] for x in X], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", [*(k for k, _ in FORMULAS.values()), RBF(1.0), Laplacian(), Polynomial(), Sigmoid(), Pairwise("cosine")])
@pytest.mark.parametrize("n", [1, 9, 600])
def test_diag_equals_the_diagonal_of_the_matrix(kernel, n, samples):
    """k.diag(X) is the diagonal of k(X), also beyond one block of rows."""
    X = samples(n, 3, 0)
    k = kernel.fit(X)
    np.testing.assert_allclose(k.diag(X), np.diagonal(k(X)), rtol=1e-12, atol=1e-13)


def test_diag_of_a_callable_is_read_off_its_matrices(samples):
    """A callable has no formula for its diagonal, and still the right one, across blocks and for no rows at all."""
    X = samples(600, 2, 0)
    np.testing.assert_allclose(as_kernel(linear_callable).diag(X), (X**2).sum(axis=1), rtol=1e-12)
    assert as_kernel(linear_callable).diag(X[:0]).shape == (0,)


@every_seed
@pytest.mark.parametrize("n", [2, 3, 11])
def test_rbf_width_is_the_mean_squared_distance_over_all_pairs(seed, n, samples):
    """sigma² = scale · d_aver, with d_aver over all n² pairs, zero diagonal included."""
    X = samples(n, 3, seed)
    expected = mean_over_pairs(X, squared_distance, np.ones(n))
    assert RBF(scale=2.5).fit(X).sigma_ ** 2 == pytest.approx(2.5 * expected, rel=1e-12)


@every_seed
@pytest.mark.parametrize("n", [2, 3, 11])
def test_laplacian_width_is_the_mean_l1_distance_over_all_pairs(seed, n, samples):
    """gamma = 1 / (scale · mean L1 distance), with the mean over all n² pairs."""
    X = samples(n, 3, seed)
    expected = mean_over_pairs(X, l1_distance, np.ones(n))
    assert Laplacian(scale=2.5).fit(X).gamma_ == pytest.approx(1 / (2.5 * expected), rel=1e-12)


@every_seed
def test_weighted_width_is_that_of_repeated_rows(seed, samples):
    """Integer weights stand for repetitions, real ones for the weighted mean over pairs."""
    X = samples(9, 2, seed)
    rng = np.random.default_rng(seed)
    count, real = rng.integers(0, 4, 9) + (np.arange(9) == 0), rng.uniform(0.1, 2, 9)
    repeated = np.repeat(X, count, axis=0)
    assert RBF(1.0).fit(X, sample_weight=count).sigma_ == pytest.approx(RBF(1.0).fit(repeated).sigma_, rel=1e-12)
    assert Laplacian().fit(X, sample_weight=count).gamma_ == pytest.approx(Laplacian().fit(repeated).gamma_, rel=1e-12)
    assert RBF(1.0).fit(X, sample_weight=real).sigma_ ** 2 == pytest.approx(mean_over_pairs(X, squared_distance, real), rel=1e-12)
    assert 1 / Laplacian().fit(X, sample_weight=real).gamma_ == pytest.approx(mean_over_pairs(X, l1_distance, real), rel=1e-12)


@every_seed
def test_rbf_keeps_its_digits_far_from_the_origin(seed, samples):
    """Distances, and so the kernel and its width, do not change when the data move by 1e8."""
    X, Z = (np.round(samples(n, 3, seed) * 2**10) / 2**10 for n in (20, 7))  # representable exactly after the move, whose spacing is 2^-26
    near, far = RBF(1.0).fit(X), RBF(1.0).fit(X + 1e8)
    assert far.sigma_ == pytest.approx(near.sigma_, rel=1e-12)
    np.testing.assert_allclose(far(X + 1e8, Z + 1e8), near(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(far(X + 1e8), near(X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e160, 1e300])
def test_rbf_is_free_of_units(unit, quiet, samples):
    """The width rule makes the kernel independent of the data's unit, from 1e-300 to 1e300, with no warning."""
    X, Z = samples(12, 3, 0), samples(5, 3, 1)
    plain, scaled = RBF(1.0).fit(X), quiet(RBF(1.0).fit, X * unit)
    np.testing.assert_allclose(quiet(scaled, X * unit, Z * unit), plain(X, Z), rtol=1e-10)
    np.testing.assert_allclose(quiet(scaled, X * unit), plain(X), rtol=1e-10)


def test_rbf_is_never_above_one_nor_nan():
    """Rounding never lifts a value over k(x, x) = 1, and far outliers give 0."""
    X = np.random.default_rng(0).normal(size=(50, 3)) * np.logspace(0, 12, 50)[:, None]
    K = RBF(sigma=1.0)(X, X.copy())
    assert (K >= 0).all()
    assert (K <= 1 + 1e-12).all()
    np.testing.assert_array_equal(RBF(sigma=1.0)(np.full((1, 2), 1e300), np.zeros((1, 2))), [[0.0]])


@pytest.mark.parametrize(
    "kernel", [RBF(1.0), Laplacian(), Polynomial(), Sigmoid(), Linear(), Pairwise("cosine"), Function(linear_callable)]
)
def test_fit_never_changes_the_kernel(kernel, samples):
    """fit returns the kernel to use and leaves its parameters as they were, so one kernel can serve many estimators."""
    before = kernel.get_params()
    fitted = kernel.fit(samples(8, 2, 0))
    assert kernel.get_params() == before
    assert type(fitted) is type(kernel)
    X = samples(4, 2, 1)
    np.testing.assert_array_equal(fitted.fit(samples(8, 2, 5))(X), fitted(X))  # a resolved width stays


@pytest.mark.parametrize(
    "kernel",
    [RBF(2.0, fit_on="training"), Laplacian(0.5), Polynomial(2, 0.1, 3.0), Sigmoid(0.2, 0.3), Linear(), Pairwise("chi2", {"gamma": 2.0})],
)
def test_kernels_take_part_in_clone_params_and_pickle(kernel):
    """clone, set_params(get_params) and pickle give a kernel with the same parameters."""
    params = kernel.get_params()
    for copy in (
        clone(kernel),
        type(kernel)(**params),
        kernel.__class__(**params).set_params(**params),
        pickle.loads(pickle.dumps(kernel)),
    ):
        assert copy is not kernel
        assert copy.get_params() == params


def test_scale_of_a_base_kernel_is_searched_through_a_pipeline(samples):
    """svdd__kernel__kernel__scale reaches the base kernel of a reference kernel inside a pipeline, and the search uses it."""
    X = samples(40, 2, 0)
    y = np.where(np.arange(40) % 4 == 0, -1, 1)
    X[y == -1] += 4.0
    pipeline = Pipeline([("scale", rk.TargetScaler()), ("svdd", rk.SVDD(kernel=rk.ReferenceKernel(kernel=rk.RBF(1.0))))])
    search = GridSearchCV(pipeline, {"svdd__kernel__kernel__scale": [0.01, 1.0, 7.0]}, scoring="accuracy", cv=3).fit(X, y)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    best = search.best_estimator_["svdd"]
    assert best.kernel.kernel.scale == search.best_params_["svdd__kernel__kernel__scale"]
    assert best.kernel_.kernel_.sigma_**2 == pytest.approx(
        best.kernel.kernel.scale * mean_over_pairs(best.kernel_.references_, squared_distance, np.ones(len(best.kernel_.references_)))
    )
    assert as_kernel(pipeline["svdd"].kernel.kernel).scale == 1.0


@pytest.mark.parametrize("make", [rk.ReferenceMap, rk.ReferenceKernel])
def test_set_params_never_leaks_into_another_default(make):
    """Default kernels are shared objects: setting a nested parameter of one instance leaves all others alone."""
    first, second = make(), make()
    first.set_params(kernel__scale=9.0)
    assert first.kernel.scale == 9.0
    assert as_kernel(second.kernel).scale is as_kernel(make().kernel).scale is None


def test_set_params_never_changes_the_object_that_the_user_gave():
    """A kernel given to two estimators keeps its parameters when one of them is set."""
    shared = rk.ReferenceKernel()
    first, second = rk.SVDD(shared), rk.OneClassSVM(shared)
    first.set_params(kernel__kernel__scale=3.0, kernel__center=False)
    assert (first.kernel.kernel.scale, first.kernel.center) == (3.0, False)
    assert (as_kernel(second.kernel.kernel).scale, second.kernel.center) == (None, True)
    assert as_kernel(shared.kernel).scale is as_kernel(rk.ReferenceMap().kernel).scale is None


def test_set_params_reaches_into_a_kernel_given_by_name():
    """kernel__scale on kernel="rbf" means the scale of RBF(1.0); the default name of other instances stays."""
    model = rk.SVDD().set_params(kernel__scale=4.0)
    assert isinstance(model.kernel, RBF)
    assert model.kernel.scale == 4.0
    assert rk.SVDD().kernel == "rbf"
    assert rk.SVDD().set_params(kernel="linear", nu=0.3).get_params()["nu"] == 0.3
    with pytest.raises(ValueError, match="nonsense"):
        rk.SVDD().set_params(kernel__nonsense=1.0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("rbf", RBF), ("linear", Linear), ("poly", Polynomial), ("polynomial", Polynomial), ("laplacian", Laplacian), ("sigmoid", Sigmoid)],
)
def test_names_stand_for_kernels_with_default_parameters(name, expected, samples):
    """A name means the kernel class with its defaults."""
    X = samples(6, 2, 0)
    assert type(as_kernel(name)) is expected
    np.testing.assert_array_equal(as_kernel(name).fit(X)(X), expected().fit(X)(X))


def test_pairwise_names_stand_for_the_kernels_of_scikit_learn(samples):
    """cosine and chi2 are computed by scikit-learn's own functions."""
    X, Z = np.abs(samples(6, 3, 0)), np.abs(samples(4, 3, 1))
    np.testing.assert_allclose(as_kernel("cosine").fit(X)(X, Z), cosine_similarity(X, Z), rtol=1e-12)
    np.testing.assert_allclose(as_kernel("chi2").fit(X)(X, Z), chi2_kernel(X, Z), rtol=1e-12)
    np.testing.assert_allclose(Pairwise("chi2", {"gamma": 2.0})(X), chi2_kernel(X, gamma=2.0), rtol=1e-12)
    np.testing.assert_allclose(as_kernel("additive_chi2").fit(X)(X, Z), pairwise_kernels(X, Z, metric="additive_chi2"), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["cosine", linear_callable])
def test_names_and_callables_train_every_estimator(kernel, samples):
    """A pairwise name or a callable is as good a kernel as an object, for both classifiers and for the map."""
    X = samples(30, 3, 0, offset=2.0)
    for model in (rk.SVDD(kernel), rk.OneClassSVM(kernel), rk.SVDD(rk.ReferenceKernel(kernel))):
        assert set(model.fit(X).predict(X)) <= {-1, 1}
        assert model.duality_gap_ <= model.tol
    assert rk.ReferenceMap(kernel).fit_transform(X).shape[0] == 30


def test_callable_linear_equals_the_linear_kernel(samples, same_decisions):
    """A callable with the linear formula gives the linear kernel's model."""
    X = samples(40, 3, 0)
    same_decisions(rk.SVDD("linear").fit(X), rk.SVDD(linear_callable).fit(X), X, 1e-9)


@pytest.mark.parametrize("kernel", [RBF(1.0), Laplacian(), Linear(), Polynomial(), Sigmoid(), Pairwise("cosine")])
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_equals_dense(kernel, container, samples):
    """A sparse X gives the values of the same dense X: matrix, diagonal and width."""
    X, Z = samples(10, 4, 0), samples(6, 4, 1)
    X[np.abs(X) < 0.5] = 0.0
    k, dense = kernel.fit(container(X)), kernel.fit(X)
    # sparse distances come from x·x - 2x·z + z·z, good to about 1e-14 for data of size 1
    np.testing.assert_allclose(k(container(X)), dense(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(k(container(X), container(Z)), dense(X, Z), rtol=0, atol=1e-12)
    np.testing.assert_allclose(k.diag(container(X)), dense.diag(X), rtol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(1.0), Laplacian()])
def test_sparse_weighted_width_equals_dense(kernel, samples):
    """Weights enter the width of sparse data as they do that of dense data."""
    X, w = samples(10, 4, 0), np.arange(10.0)
    X[np.abs(X) < 0.5] = 0.0
    sparse, dense = (kernel.fit(Y, sample_weight=w) for Y in (sp.csr_matrix(X), X))
    np.testing.assert_allclose(sparse(X), dense(X), rtol=1e-10)


def test_fit_on_training_measures_the_training_samples(samples):
    """fit_on="training" takes the article's text (width from X), the default the authors' code (width from R)."""
    X, R = samples(20, 2, 0), samples(9, 2, 1) * 5.0
    by_text = rk.ReferenceMap(RBF(fit_on="training"), references=R).fit(X)
    by_code = rk.ReferenceMap(RBF(1.0), references=R).fit(X)
    assert by_text.kernel_.sigma_**2 == pytest.approx(mean_over_pairs(X, squared_distance, np.ones(20)))
    assert by_code.kernel_.sigma_**2 == pytest.approx(mean_over_pairs(R, squared_distance, np.ones(9)))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (RBF(scale=0.0), r"scale=0\.0 must be a positive"),
        (RBF(scale=float("nan")), "scale=nan must be a positive"),
        (RBF(sigma=-1.0), r"sigma=-1\.0 must be a positive"),
        (RBF(scale="wide"), "scale='wide' must be a positive"),
        (RBF(fit_on="test"), "fit_on='test' must be one of .*references.*training"),
        (Laplacian(scale=-2), "scale=-2 must be a positive"),
        (Laplacian(gamma=0), "gamma=0 must be a positive"),
        (Polynomial(gamma=-1), "gamma=-1 must be a positive"),
        (Sigmoid(gamma=-1), "gamma=-1 must be a positive"),
    ],
)
def test_bad_parameters_are_named(kernel, words, samples):
    """An impossible parameter is refused by fit, with its name, its value and what is allowed."""
    with pytest.raises(ValueError, match=words):
        kernel.fit(samples(5, 2, 0))


def test_unknown_kernels_are_refused_with_the_choices():
    """A name that is no kernel lists those that are; something else says what a kernel may be."""
    with pytest.raises(ValueError, match=r"kernel='gauss' is not known.*'rbf'.*callable"):
        as_kernel("gauss")
    with pytest.raises(ValueError, match="kernel=3 is neither a name, a kernel object nor a callable"):
        as_kernel(3)


@pytest.mark.parametrize("kernel", [RBF(1.0), Laplacian()])
def test_kernel_without_width_says_how_to_get_one(kernel):
    """A call before fit is refused, and fit is named, for every kernel whose width follows the data."""
    with pytest.raises(ValueError, match=r"no width yet.*fit"):
        kernel(np.eye(2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_distances_of_many_rows_are_those_of_few(dtype, order):
    """They agree to rounding, also far from the origin and on read-only rows."""
    rng = np.random.default_rng(0)
    X, Z = np.asarray(rng.normal(1e3, size=(512, 3)), dtype, order), rng.normal(1e3, size=(5, 3))
    X.flags.writeable = False
    many = _distances.negative_squared_distances(X, Z)
    few = np.vstack([_distances.negative_squared_distances(part, Z) for part in np.array_split(X, 2)])
    np.testing.assert_allclose(many, few, rtol=1e-12, atol=1e-12)


def test_root_laplacian_is_its_formula_and_its_width_the_mean_of_all_pairs(samples):
    """exp(-gamma Σ_j sqrt|x_j - z_j|), computed pair by pair; explanations add up to the score."""
    X, Z = samples(30, 3, 0), samples(7, 3, 1)
    kernel = Laplacian(scale=2.0, exponent=0.5).fit(X)
    distances = np.array([[sum(abs(a - b) ** 0.5 for a, b in zip(x, z, strict=True)) for z in X] for x in X])
    assert kernel.gamma_ == pytest.approx(1.0 / (2.0 * distances.mean()), rel=1e-12)
    expected = [[np.exp(-kernel.gamma_ * sum(abs(a - b) ** 0.5 for a, b in zip(x, z, strict=True))) for x in X] for z in Z]
    np.testing.assert_allclose(kernel(Z, X), expected, rtol=1e-12)
    for model in (rk.SVDD(Laplacian(exponent=0.5)).fit(X), rk.ReferenceResidual(Laplacian(exponent=0.5), random_state=0).fit(X)):
        explained = rk.explain(model, Z)
        np.testing.assert_allclose(explained.values.sum(axis=1) + explained.baseline, model.score_samples(Z), atol=1e-9)
    with pytest.raises(ValueError, match="exponent=2"):
        Laplacian(exponent=2).fit(X)


def test_fit_returns_the_kernel_itself_and_estimators_fit_a_copy(samples):
    """As everywhere in scikit-learn; one kernel can be shared by many estimators."""
    X = samples(20, 2, 0)
    for kernel in (RBF(), Laplacian(), rk.kernels.Polynomial(), RBF(1.0) + 2.0 * Laplacian(), rk.kernels.Precomputed(np.eye(20))):
        shared = clone(kernel, safe=False)
        rows = np.arange(20.0)[:, None] if isinstance(kernel, rk.kernels.Precomputed) else X
        rk.SVDD(shared, nu=0.5).fit(rows)
        assert not [name for name in vars(shared) if name.endswith("_")]
        assert shared.fit(rows) is shared
        assert [name for name in vars(shared) if name.endswith("_")]


class Returning(rk.kernels.Kernel):
    """Calls a function of X and Z, which may be wrong."""

    def __init__(self, function):
        self.function = function

    def __call__(self, X, Z=None):
        return self.function(X, X if Z is None else Z)


@pytest.mark.parametrize(
    ("kernel", "error", "words"),
    [
        (Returning(lambda X, Z: X[:, 0]), ValueError, r"kernel Returning returned shape \(2,\); \(2, 1\) was expected: one row for each"),
        (Returning(lambda X, Z: X @ X.T), ValueError, r"kernel Returning returned shape \(2, 2\); \(2, 1\) was expected"),
        (Returning(lambda X, Z: np.nan * X @ Z.T), ValueError, "kernel Returning returned 2 NaN or infinite values"),
        (RBF(1.0) + Returning(lambda X, Z: X[:, 0]), ValueError, r"kernel Returning returned shape \(2,\)"),
        (rk.kernels.Kernel(), NotImplementedError, r"Kernel has no formula: define __call__\(self, X, Z=None\)"),
        (RBF, ValueError, r"kernel=RBF is a class\. Pass an object: RBF\(\)"),
    ],
)
@pytest.mark.parametrize("use", [rk.SVDD, rk.ReferenceMap, rk.ReferenceResidual, lambda kernel: rk.SVDD(rk.ReferenceKernel(kernel))])
def test_errors_of_bad_kernels_name_the_mistake(use, kernel, error, words, samples):
    """A kernel of one's own is tried on two rows by every estimator, so that its result is not what a later step stumbles over."""
    with pytest.raises(error, match=words):
        use(kernel).fit(samples(20, 2, 0))
