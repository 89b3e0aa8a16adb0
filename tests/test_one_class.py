"""SVDD and the one-class SVM: equal to other solvers, to each other where they must be, and to their own definitions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM as LIBSVM

import refkernel as rk
from refkernel._core.validation import validate_data, validated
from refkernel.classifiers import base as _one_class
from refkernel.kernels import RBF

SIGMA = 1.7
every_seed = pytest.mark.parametrize("seed", [0, 1, 2])
every_model = pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])


def libsvm(nu, tol=1e-9):
    """scikit-learn's one-class SVM with the RBF of width SIGMA."""
    return LIBSVM(gamma=0.5 / SIGMA**2, nu=nu, tol=tol)


@every_seed
@pytest.mark.parametrize("shape", [(20, 2), (100, 5), (300, 1), (60, 40)])
@pytest.mark.parametrize("nu", [0.0571, 0.3137, 0.8291])  # nu·n is no whole number, so that some weight is free and the offset unique
def test_one_class_svm_equals_that_of_scikit_learn(seed, shape, nu, samples, same_decisions):
    """Decision values equal LIBSVM's to 1e-5 of their range, on training and on new samples."""
    X, X_new = samples(*shape, seed), samples(50, shape[1], seed + 20) * 1.5
    same_decisions(libsvm(nu).fit(X), rk.OneClassSVM(RBF(sigma=SIGMA), nu=nu).fit(X), np.vstack([X, X_new]), 1e-5)


@every_seed
@every_model
def test_without_a_free_weight_the_boundary_is_midway(seed, make, samples):
    """Where all weights are at a bound (nu·n whole) the offset is the middle of all that are optimal."""
    X = samples(20, 2, seed)
    model = make(RBF(sigma=50.0), nu=0.8).fit(X)
    assert model.support_.size == 16  # so wide a kernel leaves the 16 samples farthest out at their bound
    score, inside = model.score_samples(X), np.setdiff1d(np.arange(20), model.support_)
    assert score[model.support_].max() <= score[inside].min()
    # offset_ gives way by 1e-10 of the scores' size, so that samples on the boundary are inside
    assert model.offset_ == pytest.approx(0.5 * (score[model.support_].max() + score[inside].min()), abs=2e-10 * max(1.0, 0.8 * 20))


@every_seed
def test_weighted_one_class_svm_equals_that_of_scikit_learn(seed, samples, same_decisions):
    """Sample weights bound each weight as in LIBSVM."""
    X, w = samples(80, 3, seed), np.random.default_rng(seed).uniform(0.1, 3.0, 80)
    same_decisions(libsvm(0.3).fit(X, sample_weight=w), rk.OneClassSVM(RBF(sigma=SIGMA), nu=0.3).fit(X, sample_weight=w), X, 1e-5)


def test_working_sets_equal_scikit_learn_too(samples, same_decisions):
    """3,000 samples, more than are solved as a whole, with a cache that holds a tenth of the kernel's rows."""
    X = samples(3000, 5, 0)
    ours = rk.OneClassSVM(RBF(sigma=SIGMA), nu=0.1, cache_size=7).fit(X)
    same_decisions(libsvm(0.1, tol=1e-6).fit(X), ours, X, 1e-5)
    assert ours.duality_gap_ <= ours.tol


@every_seed
@pytest.mark.parametrize("nu", [0.1, 0.45])
def test_constant_diagonal_makes_svdd_and_one_class_svm_agree(seed, nu, samples):
    """With k(x, x) = 1 both are one problem: SVDD's decision values are those of the one-class SVM times 2 / (nu n)."""
    X, X_new = samples(70, 3, seed), samples(60, 3, seed + 30) * 2
    ball, plane = rk.SVDD(RBF(1.0), nu=nu).fit(X), rk.OneClassSVM(RBF(1.0), nu=nu).fit(X)
    expected = plane.decision_function(X_new) * 2 / (nu * 70)
    np.testing.assert_allclose(ball.decision_function(X_new), expected, rtol=0, atol=1e-7)  # of decision values up to 1
    np.testing.assert_array_equal(ball.predict(X_new)[np.abs(expected) > 1e-7], plane.predict(X_new)[np.abs(expected) > 1e-7])


@every_seed
@every_model
@pytest.mark.parametrize("nu", [0.05, 0.2, 0.6])
@pytest.mark.parametrize("kernel", [RBF(1.0), rk.ReferenceKernel(references="case2", random_state=0)])
def test_nu_is_between_the_shares_of_outliers_and_of_support_vectors(seed, make, nu, kernel, samples):
    """At most nu of the targets are left outside, and at least nu carry weight."""
    X = samples(101, 3, seed)
    model = make(kernel, nu=nu).fit(X)
    assert (model.predict(X) == -1).mean() <= nu
    assert model.support_.size / 101 >= nu - 1e-12


@every_seed
@every_model
def test_decision_is_score_minus_offset_and_prediction_its_sign(seed, make, samples):
    """scikit-learn's four outlier equations, for training and new samples, and fit_predict."""
    X, X_new = samples(60, 3, seed), samples(60, 3, seed + 5) * 2
    model = make(nu=0.2).fit(X)
    decision = model.decision_function(X_new)
    np.testing.assert_array_equal(decision, model.score_samples(X_new) - model.offset_)
    np.testing.assert_array_equal(model.predict(X_new), np.where(decision >= 0, 1, -1))
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.predict(X))
    assert {-1, 1} == set(model.predict(X_new))


@every_seed
def test_svdd_scores_are_squared_distances_from_the_centre(seed, samples):
    """With the linear kernel the centre is a point of the input space: scores, radius and offset by plain geometry."""
    X, X_new = samples(50, 3, seed), samples(20, 3, seed + 5)
    model = rk.SVDD("linear", nu=0.2).fit(X)
    centre = model.dual_coef_[0] @ model.support_vectors_
    np.testing.assert_allclose(-model.score_samples(X_new), ((X_new - centre) ** 2).sum(axis=1), rtol=1e-9)
    free = (model.dual_coef_[0] > 0) & (model.dual_coef_[0] < 1 / (0.2 * 50))
    assert free.any()
    np.testing.assert_allclose(((model.support_vectors_[free] - centre) ** 2).sum(axis=1), model.radius_**2, rtol=1e-6)
    # offset_ gives way by 1e-10 of the largest k(x, x), so that samples on the boundary are inside
    assert model.offset_ == pytest.approx(-(model.radius_**2), abs=1.1e-10 * (X**2).sum(axis=1).max())
    assert model.dual_coef_.sum() == pytest.approx(1.0)


def test_svdd_without_slack_is_the_smallest_enclosing_ball():
    """C = 1 leaves no target outside: four corners and inner points have the ball around the corners."""
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [0.2, 0.1], [0.0, -0.5]]) + 10.0
    model = rk.SVDD("linear", C=1.0).fit(X)
    assert model.radius_ == pytest.approx(np.sqrt(2.0), rel=1e-6)
    np.testing.assert_array_equal(model.predict(X), 1)
    np.testing.assert_array_equal(model.predict([[10.0, 11.3], [10.0, 11.5]]), [1, -1])


@every_seed
@every_model
@pytest.mark.parametrize("kernel", [RBF(1.0), "linear", rk.ReferenceKernel(references="case2", random_state=0)])
@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_free_support_vectors_lie_on_the_boundary_and_inside(seed, make, kernel, nu, samples):
    """A sample whose weight is between its bounds has decision value 0, and counts as a target whatever the rounding."""
    X = samples(90, 3, seed, offset=2.0)
    model = make(kernel, nu=nu).fit(X)
    bound = 1.0 if make is rk.OneClassSVM else 1 / (nu * 90)
    free = model.support_[(model.dual_coef_[0] > 0) & (model.dual_coef_[0] < bound)]
    decision = model.decision_function(X)
    assert np.abs(decision[free]).max(initial=0.0) <= 1e-6 * np.ptp(decision)
    np.testing.assert_array_equal(model.predict(X)[free], 1)


@every_seed
@every_model
@pytest.mark.parametrize("kernel", ["rbf", "linear", rk.ReferenceKernel(references="case3", center=False, random_state=0)])
def test_known_outliers_never_train_the_description(seed, make, kernel, samples):
    """Rows with y = -1 change nothing, unless the references ask for them; support_ still indexes the X that was passed."""
    X, y = samples(60, 3, seed, offset=1.0), np.where(np.arange(60) % 4 == 1, -1, 1)
    X[y == -1] += 9.0
    with_outliers, without = make(kernel).fit(X, y), make(kernel).fit(X[y == 1])
    np.testing.assert_array_equal(with_outliers.decision_function(X), without.decision_function(X))
    np.testing.assert_array_equal(X[with_outliers.support_], with_outliers.support_vectors_)
    np.testing.assert_array_equal(with_outliers.support_, np.flatnonzero(y == 1)[without.support_])


def test_known_outliers_feed_the_references_that_ask(samples):
    """case5 takes the outliers as references: the description changes, its support does not include them."""
    X, y = samples(40, 3, 0), np.repeat([1, -1], [30, 10])
    model = rk.SVDD(rk.ReferenceKernel(references="case5")).fit(X, y)
    np.testing.assert_array_equal(model.kernel_.references_, X)
    assert (y[model.support_] == 1).all()
    by_hand = rk.SVDD(rk.ReferenceKernel(references=X)).fit(X[y == 1])
    np.testing.assert_allclose(model.decision_function(X), by_hand.decision_function(X), rtol=0, atol=1e-9)


@every_seed
@every_model
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_integer_weights_stand_for_repeated_rows(seed, make, kernel, samples, same_decisions):
    """A weight of 2 is a row given twice, a weight of 0 a row left out, for the bounds and for the kernel's width."""
    X, w = samples(50, 3, seed, offset=2.0), np.random.default_rng(seed).integers(0, 4, 50)

    def model():
        return make(kernel, nu=0.3, threshold="training")

    same_decisions(model().fit(np.repeat(X, w, axis=0)), model().fit(X, sample_weight=w), X, 1e-6)


@every_model
@pytest.mark.parametrize("kernel", ["rbf", rk.ReferenceKernel(references="case3", center=False, random_state=0)])
def test_weight_zero_leaves_a_row_out(make, kernel, samples):
    """Rows of weight 0 are no targets and no references; support_ indexes the rows that were passed."""
    X, w = samples(40, 3, 0, offset=1.0), np.where(np.arange(40) % 3 == 0, 0.0, 1.0)
    weighted, removed = make(kernel).fit(X, sample_weight=w), make(kernel).fit(X[w > 0])
    np.testing.assert_array_equal(weighted.decision_function(X), removed.decision_function(X))
    np.testing.assert_array_equal(weighted.support_, np.flatnonzero(w > 0)[removed.support_])


@every_seed
@every_model
@pytest.mark.parametrize("kernel", [RBF(sigma=SIGMA), rk.kernels.Linear()])
def test_precomputed_equals_the_kernel_object(seed, make, kernel, samples, same_decisions):
    """A kernel matrix gives the model of its kernel, outlier rows included; SVDD takes the test diagonal explicitly."""
    X, X_new, y = samples(50, 3, seed, offset=2.0), samples(30, 3, seed + 5), np.where(np.arange(50) % 7 == 0, -1, 1)
    by_object, by_matrix = make(kernel).fit(X, y), make("precomputed").fit(kernel(X), y)
    diag = {"diag": kernel.diag(X_new)} if make is rk.SVDD else {}
    np.testing.assert_allclose(
        by_matrix.decision_function(kernel(X_new, X), **diag), by_object.decision_function(X_new), atol=1e-6 * np.ptp(kernel(X))
    )
    np.testing.assert_allclose(by_matrix.score_samples(kernel(X_new, X), **diag), by_object.score_samples(X_new), rtol=1e-5)
    np.testing.assert_array_equal(by_matrix.predict(kernel(X_new, X), **diag), by_object.predict(X_new))
    np.testing.assert_array_equal(make("precomputed").fit_predict(kernel(X)), make(kernel).fit(X).predict(X))


@every_seed
@every_model
def test_map_and_reference_kernel_are_one_kernel(seed, make, samples):
    """ReferenceMap as a kernel is ReferenceKernel; NPT is that of case 1."""
    X = samples(40, 3, seed)
    kernels = [cls(references="case4", random_state=seed) for cls in (rk.ReferenceMap, rk.ReferenceKernel)]
    a, b = (make(kernel).fit(X) for kernel in kernels)
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))


@every_seed
@every_model
@pytest.mark.parametrize("references", ["case2", "case4", "case5", "case7"])
def test_kernel_route_equals_mapping_route(seed, make, references, samples, same_decisions):
    """A kernel machine on the reference kernel is a linear machine on the reference map, for the same nu and seed."""
    X, y = samples(40, 3, seed), np.repeat([1, -1], [32, 8])
    by_kernel = make(rk.ReferenceKernel(references=references, random_state=seed)).fit(X, y)
    by_map = make_pipeline(rk.ReferenceMap(references=references, random_state=seed), make("linear")).fit(X, y)
    same_decisions(by_kernel, by_map, X, 1e-9)


def tiny_rbf(X, Z):
    return 1e-6 * RBF(sigma=SIGMA)(X, Z)


@every_seed
@every_model
def test_kernel_times_a_small_number_gives_the_same_predictions(seed, make, samples):
    """Tolerances are relative: a kernel times 1e-6 is the same model, with decision values times 1e-6."""
    X, X_new = samples(60, 3, seed), samples(200, 3, seed + 5) * 2
    plain, tiny = make(RBF(sigma=SIGMA)).fit(X), make(tiny_rbf).fit(X)
    np.testing.assert_array_equal(tiny.predict(X_new), plain.predict(X_new))
    np.testing.assert_allclose(tiny.decision_function(X_new) * 1e6, plain.decision_function(X_new), rtol=0, atol=1e-6)


@every_model
@pytest.mark.parametrize("max_iter", [0, 1, 3])
def test_move_limit_warns(make, max_iter, samples):
    """A fit that stops at max_iter says so, with the limit, the gap and the ways out; the default limit does not bind."""
    X = samples(80, 3, 0)
    with pytest.warns(ConvergenceWarning, match=rf"max_iter={max_iter} was reached with a relative duality gap of .*Raise max_iter or tol"):
        model = make("laplacian", nu=0.4, max_iter=max_iter, tol=1e-9).fit(X)
    assert model.n_iter_ <= max_iter
    assert model.duality_gap_ > 1e-9


@every_seed
@pytest.mark.filterwarnings("ignore::refkernel.exceptions.DegenerateSolutionWarning")
def test_a_degenerate_one_class_svm_accepts_its_noise_in_fits_and_searches_alike(seed):
    """Where w = 0, no sample of the training samples' size is rejected, whatever rounding left in w; a real w still rejects."""
    rng = np.random.default_rng(seed)
    X, far = rng.normal(size=(60, 3)), rng.normal(scale=3.0, size=(30, 3))
    y = np.repeat([1, -1], [60, 30])
    centred = rk.OneClassSVM(rk.ReferenceKernel(rk.RBF(10.0), references="case1"), nu=0.3)
    fitted = centred.fit(X)
    assert fitted._doubts == ("degenerate",)
    assert (fitted.predict(X) == 1).all()
    grid = {"kernel__kernel__scale": [1.0, 10.0, 100.0], "nu": [0.1, 0.3, 0.5]}
    folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(y, y))
    both = np.vstack([X, far])
    ours = rk.OneClassGridSearch(centred, grid, cv=folds, refit=False, scoring="gmean").fit(both, y)
    theirs = GridSearchCV(centred, grid, cv=folds, refit=False, scoring=rk.metrics.gmean_scorer).fit(both, y)
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert (rk.OneClassSVM(rk.RBF(1.0), nu=0.3).fit(X).predict(X) == -1).any()


@every_seed
def test_one_class_svm_centred_on_its_targets_warns_that_it_is_degenerate(seed, samples, quiet):
    """w = 0 is told with the three ways out, and each of them fits without a warning (on a kernel wide enough for far samples)."""
    X, wide = samples(40, 3, seed), RBF(scale=10.0)
    with pytest.warns(rk.DegenerateSolutionWarning, match=r"optimum is w = 0.*center=False, references other than the targets, or SVDD"):
        rk.OneClassSVM(rk.NPT()).fit(X)
    quiet(rk.OneClassSVM(rk.NPT(wide, center=False)).fit, X)
    quiet(rk.OneClassSVM(rk.ReferenceKernel(wide, references="normal", random_state=seed)).fit, X)
    quiet(rk.SVDD(rk.NPT(wide)).fit, X)


@every_seed
@every_model
@pytest.mark.parametrize("n", [1, 2, 3, 50, 1500])
def test_certificate_is_within_the_tolerance(seed, make, n, samples):
    """duality_gap_ <= tol after every fit, one and two samples and working sets included."""
    model = make(nu=0.3).fit(samples(n, 4, seed))
    assert 0 <= model.duality_gap_ <= model.tol


@every_model
def test_seed_reaches_the_reference_kernel_that_has_none(make, samples):
    """random_state of the classifier is that of its reference kernel, unless this has its own; neither is changed."""
    X = samples(30, 3, 0)
    kernel, seeded = rk.ReferenceKernel(references="case2"), rk.ReferenceKernel(references="case2", random_state=4)
    expected = make(seeded).fit(X).decision_function(X)
    np.testing.assert_array_equal(make(kernel, random_state=4).fit(X).decision_function(X), expected)
    np.testing.assert_array_equal(make(seeded, random_state=9).fit(X).decision_function(X), expected)
    assert kernel.random_state is None
    assert not hasattr(kernel, "references_")


@every_model
@pytest.mark.parametrize("kernel", ["rbf", "linear", "cosine", rk.ReferenceKernel(references="case4", random_state=0)])
def test_clone_and_pickle_keep_the_decisions(make, kernel, samples):
    """A clone fitted on the same data, and a model sent through a file, decide as the original."""
    X, X_new = samples(40, 3, 0, offset=1.0), samples(20, 3, 1)
    model = make(kernel).fit(X)
    for copy in (clone(model).fit(X), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.decision_function(X_new), model.decision_function(X_new))
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()


@every_model
def test_fit_forgets_the_fit_before(make, samples):
    """A second fit gives what a fresh estimator gives."""
    X, other = samples(40, 3, 0), samples(60, 2, 1)
    np.testing.assert_array_equal(make().fit(other).fit(X).decision_function(X), make().fit(X).decision_function(X))


@every_model
def test_data_frames_name_the_features(make, samples):
    """A DataFrame sets feature_names_in_ and gives the decisions of its values; other names at predict are refused."""
    X = pd.DataFrame(samples(30, 2, 0), columns=["a", "b"])
    model = make().fit(X)
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.decision_function(X), make().fit(X.to_numpy()).decision_function(X.to_numpy()))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.rename(columns={"a": "c"}))


@every_seed
@every_model
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", rk.ReferenceKernel(references="case3", center=False, random_state=0)])
def test_sparse_equals_dense(seed, make, kernel, samples, same_decisions):
    """Sparse samples give the model of the same dense samples."""
    X = samples(50, 4, seed, offset=3.0)  # away from the origin, where the linear one-class SVM is degenerate
    X[np.abs(X) < 2.0] = 0.0

    class Densely:
        """The sparse model, asked about dense rows."""

        def decision_function(self, X):
            return make(kernel).fit(sp.csr_matrix(X)).decision_function(sp.csr_matrix(X))

    same_decisions(make(kernel).fit(X), Densely(), X, 1e-6)


@every_seed
def test_blocks_of_scores_do_not_change_them(seed, samples, monkeypatch):
    """Scores are computed in blocks of rows; any block size gives the same."""
    X = samples(60, 3, seed)
    model = rk.SVDD().fit(X)
    whole = model.score_samples(X)
    monkeypatch.setattr("refkernel._core.blocks.BLOCK_ENTRIES", 50)
    np.testing.assert_allclose(model.score_samples(X), whole, rtol=0, atol=1e-12)


def test_nu_is_a_tenth_when_neither_nu_nor_c_is_given(samples):
    """SVDD's default is nu = 0.1, and C = 1 / (nu n) is the same model."""
    X = samples(40, 3, 0)
    default = rk.SVDD().fit(X).decision_function(X)
    np.testing.assert_array_equal(rk.SVDD(nu=0.1).fit(X).decision_function(X), default)
    np.testing.assert_allclose(rk.SVDD(C=1 / 4).fit(X).decision_function(X), default, rtol=0, atol=1e-9)


def test_a_linear_model_of_sparse_rows_scores_dense_ones():
    """How samples are stored, at fit and later, does not change their scores."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    expected = rk.SVDD("linear").fit(X).decision_function(X)
    model = rk.SVDD("linear").fit(sp.csr_matrix(X))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-8)  # the solver's tolerance
    np.testing.assert_allclose(model.decision_function(sp.csr_matrix(X)), expected, atol=1e-8)


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("references", ["case2", "subset", "uniform"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("base", [RBF, rk.kernels.Laplacian])
def test_fit_warns_exactly_where_far_samples_are_accepted(base, center, references, scale):
    """What the warning says is what predict does with samples a million deviations away."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = rk.SVDD(rk.ReferenceKernel(base(scale=scale), references, center=center, random_state=0), nu=0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    warned = any(issubclass(w.category, rk.FarSamplesWarning) for w in caught)
    assert warned == (model.predict(1e6 * np.ones((1, 3)))[0] == 1)


def test_far_samples_are_warned_of_in_some_case_and_not_in_others():
    """The law above is not empty: a narrow reference kernel accepts them, a wide one does not, a plain one never."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.warns(rk.FarSamplesWarning, match="far from all references"):
        rk.SVDD(rk.ReferenceKernel(RBF(scale=0.3), "case2", random_state=0)).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rk.FarSamplesWarning)
        rk.SVDD(rk.ReferenceKernel(RBF(scale=10.0), "case2", random_state=0)).fit(X)
        rk.SVDD(RBF(scale=0.3)).fit(X)
        rk.SVDD(rk.ReferenceKernel("linear", "subset", random_state=0)).fit(X)


@pytest.mark.parametrize("model", [rk.SVDD(), rk.OneClassSVM(), rk.ESVDD(), rk.ReferenceResidual(references="subset", random_state=0)])
def test_fit_predict_knows_the_outliers(model):
    """fit_predict(X, y) is fit(X, y).predict(X): known outliers do not train."""
    rng = np.random.default_rng(0)
    X, y = np.vstack([rng.normal(size=(50, 3)), rng.normal(3.0, size=(5, 3))]), np.r_[np.ones(50), -np.ones(5)]
    np.testing.assert_array_equal(model.fit_predict(X, y), clone(model).fit(X, y).predict(X))


@pytest.mark.parametrize("model", [rk.SVDD("precomputed"), rk.OneClassSVM("precomputed")])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_fit_predict_of_a_kernel_matrix(model, kind):
    X = np.random.default_rng(0).normal(size=(30, 2))
    K = rk.RBF(1.0).fit(X)(X)
    np.testing.assert_array_equal(model.fit_predict(kind(K)), type(model)(rk.RBF(1.0)).fit(X).predict(X))


def test_a_weight_of_0_leaves_the_row_out_of_the_references_too():
    """Targets and outliers; reference_indices_ are rows of X as it was given."""
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(40, 3)), np.r_[np.ones(30), -np.ones(10)], np.ones(40)
    weight[[0, 1, 35]] = 0.0
    kept = weight > 0
    kernel = rk.ReferenceKernel(rk.RBF(scale=10.0), references="case5")
    model, without = rk.SVDD(kernel).fit(X, y, weight), rk.SVDD(kernel).fit(X[kept], y[kept])
    np.testing.assert_array_equal(model.decision_function(X), without.decision_function(X))
    np.testing.assert_array_equal(X[model.kernel_.reference_indices_], model.kernel_.references_)


def test_an_offset_that_drowns_the_samples_is_told_of():
    """On a linear kernel far from the origin rounding outgrows R²; and where all samples are equal nothing is wrong."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.warns(UserWarning, match="nearly alike"):
        rk.SVDD("linear").fit(X + 1e7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rk.SVDD("linear").fit(X + 1e4)
        rk.SVDD("linear").fit(np.full((5, 3), 1e5))


def test_text_labels_and_a_nu_of_nothing_are_refused():
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match="'-1' as text"):
        rk.SVDD().fit(X, ["1", "1", "1", "1", "1", "-1"])
    with pytest.raises(ValueError, match="too small to be a share"):
        rk.OneClassSVM(nu=1e-15).fit(X)
    with pytest.warns(UserWarning, match="taken as targets"):
        rk.SVDD().fit(X, np.array([1, None, "a", 1, 1, -1], dtype=object))


def test_a_data_frame_gives_no_warning_of_names():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rk.ReferenceResidual(random_state=0).fit(frame).predict(frame)


X_PLAIN = np.random.default_rng(0).normal(size=(12, 3))
WITH_NAN = np.where(np.eye(12, 3) > 0, np.nan, X_PLAIN)


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize(
    "X",
    [
        X_PLAIN,
        X_PLAIN.astype(np.float32),
        np.asfortranarray(X_PLAIN),
        X_PLAIN[::2],
        X_PLAIN.tolist(),
        pd.DataFrame(X_PLAIN, columns=["a", "b", "c"]),
        np.full((12, 3), 1e308),
        X_PLAIN[:, :2],
        X_PLAIN[0],
        X_PLAIN[:0],
        WITH_NAN,
        np.full((12, 3), np.inf),
    ],
    ids=["plain", "single", "fortran", "strided", "list", "frame", "overflowing-sum", "columns", "1-d", "empty", "nan", "inf"],
)
def test_rows_are_validated_as_by_scikit_learn(X, reset):
    """The short way for plain arrays accepts, converts, remembers and refuses exactly what ``validate_data`` does, in its words."""

    def answer(validate):
        model = rk.SVDD()
        model.n_features_in_ = 3
        try:
            found = validate(model)
        except ValueError as error:
            return str(error)
        return (
            found.dtype,
            found.flags.c_contiguous,
            found.tolist(),
            {**vars(model), "feature_names_in_": list(vars(model).get("feature_names_in_", []))},
        )

    assert answer(lambda model: validated(model, X, reset, False)) == answer(
        lambda model: validate_data(model, X, reset=reset, dtype=np.float64, order="C")
    )


@pytest.mark.parametrize("model", [rk.SVDD, rk.OneClassSVM])
def test_many_rows_are_scored_in_portions_with_the_bits_of_one_portion(model, samples, monkeypatch):
    """Features of all rows at once would take 8 GB for a million rows and 1,000 references."""
    fitted = model(rk.ReferenceKernel(rk.RBF(1.0), "case2", random_state=0)).fit(samples(60, 3, 0))
    new = samples(1_000, 3, 1)
    expected = fitted.score_samples(new)
    monkeypatch.setattr(_one_class, "MOST_FEATURES", 37 * fitted.kernel_.rank_)
    np.testing.assert_array_equal(fitted.score_samples(new), expected)


@pytest.mark.parametrize("model", [rk.SVDD(RBF(1.0)), rk.SVDD("linear"), rk.ESVDD()], ids=lambda model: repr(model))
def test_every_bound_of_at_least_one_gives_the_same_model(model, samples):
    """Weights sum to 1, so that C = 1 bounds nothing, and neither does any larger C."""
    X, Z = samples(60, 4, 0), 2.0 * samples(40, 4, 1)
    expected = clone(model).set_params(C=1.0).fit(X)
    for C in (1.5, 1e3, 1e10, 2e10, 3e11, 1e15, 1e100):
        found = clone(model).set_params(C=C).fit(X)
        np.testing.assert_allclose(found.decision_function(Z), expected.decision_function(Z), rtol=0, atol=1e-6)
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))


@pytest.mark.parametrize("C", [1e3, 1e10, 1e11, 1e12, 1e15])
def test_bounds_far_beyond_the_weights_change_nothing_where_outliers_repel(C, samples):
    """The bound of an outlier's weight is n C / q, far above the weights: tolerances follow the weights, not the bound."""
    X, y = samples(80, 3, 5), np.r_[np.ones(70), -np.ones(10)]
    expected, found = (rk.SVDD(C=bound, negatives="repel").fit(X, y) for bound in (1.0, C))
    assert abs(found.dual_coef_.sum() - 1.0) < 1e-9
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), rtol=0, atol=1e-6)
