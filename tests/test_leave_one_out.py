"""Targets left out one at a time, against naive loops of refits; and the threshold that follows new samples."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import refkernel as rk
from refkernel._core.gram import Cached, Dense, Features
from refkernel._core.leave_one_out import leave_folds_out, leave_out
from refkernel._core.problem import OCSVM, SVDD, DualProblem
from refkernel._core.solver import solve
from refkernel.classifiers.left_out import lower_quantile
from refkernel.kernels import RBF, Linear

TOL = 1e-12


class NarrowRBF(RBF):
    """A kernel that says of itself that its width follows the neighbours."""

    _narrow = True


def without(problem, keep):
    """The problem of the samples that are kept; upper bounds are raised where they would not do."""
    upper = problem.upper[keep] * max(1.0, problem.total / problem.upper[keep].sum())
    return DualProblem(problem.p[keep], problem.lower[keep], upper, problem.total)


def assert_equals_refits(K, problem, samples=None, rows=None, rtol=1e-8):
    """Each model left out is the optimum of its own problem: the same scores as a refit from scratch, and a small duality gap."""
    rows = Dense(K) if rows is None else rows
    whole = solve(problem, rows, tol=TOL)
    samples = np.flatnonzero((whole.b != 0) & (problem.upper > 0)) if samples is None else samples
    found = leave_out(problem, rows, whole.b, whole.G, samples, tol=TOL)
    everyone = np.arange(len(K))
    for number, i in enumerate(samples):
        keep = np.delete(everyone, i)
        refit = solve(without(problem, keep), Dense(K[np.ix_(keep, keep)]), tol=TOL)
        wanted, sums = K[:, keep] @ refit.b, K @ found.B[number]
        scale = max(np.ptp(wanted), 1e-3 * np.abs(wanted).max())
        np.testing.assert_allclose(sums, wanted, rtol=0, atol=rtol * scale)
        assert abs(found.sums[number] - wanted[i]) <= rtol * scale
        assert abs(found.quadratic[number] - refit.quadratic) <= rtol * max(scale, abs(refit.quadratic))
        assert found.B[number, i] == 0.0
        assert found.B[number].sum() == pytest.approx(problem.total, rel=1e-12)
    assert (found.gap <= 1e-9).all()
    assert found.converged.all()
    return found


@pytest.mark.parametrize("description", [SVDD, OCSVM], ids=lambda d: d.name)
@pytest.mark.parametrize("nu", [1 / 40, 0.1, 0.33, 0.7, 1.0])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_models_left_out_are_those_of_refits(description, nu, sigma, samples):
    X = samples(40, 3, 0)
    K = RBF(sigma=sigma)(X)
    assert_equals_refits(K, description.problem(np.diag(K), nu * 40, np.ones(40)))


@pytest.mark.parametrize("description", [SVDD, OCSVM], ids=lambda d: d.name)
@pytest.mark.parametrize("seed", range(3))
def test_so_are_those_of_weighted_samples(description, seed, samples):
    X, rng = samples(50, 2, seed), np.random.default_rng(seed)
    K, weight = RBF(sigma=0.7)(X), rng.uniform(0.2, 3.0, 50)
    assert_equals_refits(K, description.problem(np.diag(K), 0.15 * weight.sum(), weight))


@pytest.mark.parametrize("seed", range(3))
def test_so_are_those_beside_outliers_that_repel(seed, samples):
    X = samples(45, 2, seed)
    K, weight = RBF(sigma=0.8)(X), np.r_[np.ones(38), -np.ones(7)]
    found = assert_equals_refits(K, SVDD.problem(np.diag(K), 0.2 * 38, weight, 0.05))
    assert found.samples.max() < 38


@pytest.mark.parametrize("kernel", [RBF(sigma=0.5), Linear()], ids=["rbf", "linear"])
def test_so_are_those_of_duplicates(kernel, samples):
    """Copies leave the weights undetermined, and the scores as they are."""
    X = np.repeat(samples(15, 2, 0), 2, axis=0) + 1.0
    K = kernel(X)
    assert_equals_refits(K, SVDD.problem(np.diag(K).copy(), 0.2 * 30, np.ones(30)), rtol=1e-7)


def test_a_sample_without_weight_can_go_without_a_change(samples):
    X = samples(60, 2, 0)
    K = RBF(sigma=2.0)(X)
    problem = SVDD.problem(np.diag(K), 6.0, np.ones(60))
    whole = solve(problem, Dense(K), tol=TOL)
    idle = np.flatnonzero(whole.b == 0)[:5]
    found = leave_out(problem, Dense(K), whole.b, whole.G, idle, tol=TOL)
    np.testing.assert_allclose(found.B @ K, np.tile(K @ whole.b, (5, 1)), atol=1e-10)
    np.testing.assert_allclose(found.moved, 0.0, atol=1e-12)


def test_features_and_matrices_give_the_same_models(samples):
    Phi = samples(50, 4, 1)
    problem = SVDD.problem(np.einsum("ij,ij->i", Phi, Phi), 10.0, np.ones(50))
    assert_equals_refits(Phi @ Phi.T, problem, rows=Features(Phi))


def test_working_sets_give_the_same_models(samples):
    """Beyond the size at which K is held whole."""
    n = 1100
    X = samples(n, 3, 0)
    kernel = RBF(sigma=1.0)
    K = kernel(X)
    problem = SVDD.problem(np.ones(n), 0.05 * n, np.ones(n))
    rows = Cached(kernel, X, 200)
    whole = solve(problem, rows, tol=1e-10)
    chosen = np.flatnonzero(whole.b)[::20][:6]
    found = leave_out(problem, rows, whole.b, whole.G, chosen, tol=1e-10)
    for number, i in enumerate(chosen):
        keep = np.delete(np.arange(n), i)
        refit = solve(without(problem, keep), Dense(K[np.ix_(keep, keep)]), tol=1e-10)
        np.testing.assert_allclose(K @ found.B[number], K[:, keep] @ refit.b, rtol=0, atol=1e-7)
    assert found.converged.all()


def test_folds_left_out_are_refits_with_nu_held(samples):
    """Each target's sum under the model of the other folds, by refits on the matrix of those."""
    n = 1100
    X = samples(n, 3, 0)
    kernel = RBF(sigma=0.4)
    K = kernel(X)
    problem = SVDD.problem(np.ones(n), 0.1 * n, np.ones(n))
    rows = Cached(kernel, X, 200)
    whole = solve(problem, rows, tol=1e-8)
    found = leave_folds_out(problem, rows, whole.b, whole.G, tol=1e-8)
    np.testing.assert_array_equal(found.samples, np.arange(n))
    assert found.converged.all()
    for move in np.unique(found.moved):
        out = found.moved == move
        keep, m = np.flatnonzero(~out), np.count_nonzero(~out)
        assert m == pytest.approx(0.8 * n, abs=1)
        refit = solve(SVDD.problem(np.ones(m), 0.1 * m, np.ones(m)), Dense(K[np.ix_(keep, keep)]), tol=1e-8)
        np.testing.assert_allclose(found.sums[out], K[np.ix_(out, keep)] @ refit.b, rtol=0, atol=1e-4 * refit.quadratic)
        d = -whole.b
        d[keep] += refit.b
        assert move == pytest.approx(d @ K @ d, rel=1e-3)


def test_of_many_targets_the_first_folds_are_enough(samples, monkeypatch):
    """The threshold then is the quantile of their targets alone, which the models have not seen."""
    monkeypatch.setattr("refkernel._core.leave_one_out.ENOUGH_LEFT_OUT", 300)
    X = samples(1100, 3, 0)
    model = rk.SVDD(RBF(sigma=0.4), nu=0.1, threshold="loo").fit(X)
    problem = SVDD.problem(np.ones(1100), 110.0, np.ones(1100))
    rows = Cached(model.kernel_, X, 200)
    whole = solve(problem, rows)
    found = leave_folds_out(problem, rows, whole.b, whole.G, tol=1e-4)
    assert found.samples.size == 440
    scores = np.sort(2.0 * found.sums - 1.0 - whole.quadratic)  # all k(x, x) are 1: comparable by b'Kb of all
    assert model.offset_ == pytest.approx(scores[43], abs=1e-6)  # the 44th: floor(0.1 (440 + 1))


@pytest.mark.parametrize("targets", [2, 3, 4])
def test_few_targets_among_many_outliers_are_left_out_too(targets):
    """There are as many folds as targets; the outliers, which repel, make the problem large."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(targets, 3)), 3.0 * rng.normal(size=(1100, 3))])
    y = np.repeat([1, -1], [targets, 1100])
    assert np.isfinite(rk.SVDD(negatives="repel").fit(X, y).decision_function(X)).all()


@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
def test_threshold_loo_of_many_targets_rejects_about_nu_of_new_ones(make):
    Z = np.random.default_rng(0).normal(size=(3200, 3))
    model = make(rk.RBF(sigma=0.3), nu=0.1, threshold="loo").fit(Z[:1200])
    assert abs(np.mean(model.predict(Z[1200:]) == -1) - 0.1) < 0.035


def test_the_move_of_a_model_is_its_distance_in_the_kernels_space(samples):
    X = samples(40, 2, 3)
    K = RBF(sigma=0.5)(X)
    problem = OCSVM.problem(np.diag(K), 8.0, np.ones(40))
    whole = solve(problem, Dense(K), tol=TOL)
    found = leave_out(problem, Dense(K), whole.b, whole.G, np.flatnonzero(whole.b), tol=TOL)
    D = found.B - whole.b
    np.testing.assert_allclose(found.moved, np.einsum("ki,ij,kj->k", D, K, D), atol=1e-9 * found.moved.max())


def test_one_target_cannot_be_left_out():
    problem = SVDD.problem(np.ones(1), 1.0, np.ones(1))
    with pytest.raises(ValueError, match="1 target cannot be left out"):
        leave_out(problem, Dense(np.ones((1, 1))), np.ones(1), np.ones(1), [0])


def estimators():
    """Name -> (estimator with C as a share of n kept by hand, what to change for a refit without one of n targets)."""
    hold_nu = lambda model, n: {"nu": min(1.0, model.nu * n / (n - 1))}  # noqa: E731
    hold_C = lambda model, n: {}  # noqa: E731
    return {
        "SVDD, C": (rk.SVDD(rk.RBF(sigma=0.8), C=0.12, tol=TOL), hold_C),
        "SVDD, nu": (rk.SVDD(rk.RBF(sigma=0.3), nu=0.2, tol=TOL), hold_nu),
        "OneClassSVM": (rk.OneClassSVM(rk.RBF(sigma=0.8), nu=0.2, tol=TOL), hold_nu),
        "linear": (rk.SVDD("linear", nu=0.3, tol=TOL), hold_nu),
        "repel": (rk.SVDD(rk.RBF(sigma=0.8), C=0.12, negatives="repel", C_negative=0.1, tol=TOL), hold_C),
    }


@pytest.mark.parametrize("name", estimators())
def test_an_estimators_own_way_is_the_naive_loop_with_C_held(name, samples):
    X, new = samples(40, 2, 0), samples(25, 2, 1)
    y = np.r_[np.ones(36), -np.ones(4)]
    estimator, held = estimators()[name]
    own = estimator.fit(X, y)._leave_one_out(X, y)
    S = own.score_matrix(new)
    for i in range(36):
        keep = np.delete(np.arange(40), i)
        refit = type(estimator)(**estimator.get_params(deep=False)).set_params(**held(estimator, 36)).fit(X[keep], y[keep])
        wanted = refit.score_samples(new)
        scale = np.ptp(wanted)
        np.testing.assert_allclose(S[:, own.model[i]], wanted, rtol=0, atol=1e-8 * scale)
        assert abs(own.scores[i] - refit.score_samples(X[[i]])[0]) <= 1e-8 * scale


def test_weights_count_in_the_naive_loop_too(samples):
    X, weight = samples(30, 2, 5), np.random.default_rng(5).integers(0, 3, 30).astype(float)
    C = 2.0 / weight.sum()
    estimator = rk.SVDD(rk.RBF(sigma=0.7), C=C, tol=TOL).fit(X, sample_weight=weight)
    own = estimator._leave_one_out(X, sample_weight=weight)
    targets = np.flatnonzero(weight)
    assert own.scores.shape == targets.shape
    for number, i in enumerate(targets):
        refit = rk.SVDD(rk.RBF(sigma=0.7), C=C, tol=TOL).fit(X, sample_weight=np.where(np.arange(30) == i, 0.0, weight))
        assert own.scores[number] == pytest.approx(refit.score_samples(X[[i]])[0], abs=1e-8)


def test_reference_kernels_stay_as_they_are(samples):
    """References, width and map of all targets are held: the naive loop on the map's features."""
    X, new = samples(40, 2, 0), samples(10, 2, 1)
    model = rk.SVDD(rk.ReferenceKernel(rk.RBF(scale=10.0), references="case1", random_state=0), nu=0.2, tol=TOL).fit(X)
    own = model._leave_one_out(X)
    Phi, Phi_new = model.kernel_._features(X), model.kernel_._features(new)
    S = own.score_matrix(new)
    for i in range(40):
        refit = rk.SVDD("linear", C=1 / 8, tol=TOL).fit(np.delete(Phi, i, axis=0))
        np.testing.assert_allclose(S[:, own.model[i]], refit.score_samples(Phi_new), atol=1e-8 * np.ptp(S))


@pytest.mark.parametrize("estimator", [rk.SVDD(rk.RBF(sigma=0.5)), rk.OneClassSVM(rk.RBF(sigma=0.5))], ids=["svdd", "ocsvm"])
def test_conformal_detector_takes_it_by_default(estimator, samples, tmp_path):
    X, new = np.split(samples(560, 2, 0), [60])
    detector = rk.ConformalDetector(estimator, 0.1).fit(X)
    assert detector.method_ == "loo"
    assert type(detector.models_).__name__ == "LeftOutModels"
    assert np.mean(detector.predict(new) == -1) < 0.25
    again = pickle.loads(pickle.dumps(detector))
    np.testing.assert_array_equal(again.p_values(new), detector.p_values(new))
    rk.save(detector, tmp_path / "model.rk")
    np.testing.assert_array_equal(rk.load(tmp_path / "model.rk").p_values(new), detector.p_values(new))


def test_conformal_detector_takes_folds_where_targets_are_many(samples):
    assert rk.ConformalDetector(rk.SVDD(), cv=2).fit(samples(1030, 2, 0)).method_ == "cv"


def test_scores_of_a_row_do_not_depend_on_the_rows_beside_it(samples):
    X, new = samples(50, 3, 0), samples(70, 3, 1)
    own = rk.SVDD(rk.RBF(sigma=0.6)).fit(X)._leave_one_out(X)
    np.testing.assert_array_equal(own.score_matrix(new)[[7]], own.score_matrix(new[[7]]))


@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
@pytest.mark.parametrize("sigma", [0.1, 0.3, 3.0])
@pytest.mark.parametrize("nu", [0.05, 0.2])
def test_threshold_loo_rejects_about_nu_of_new_targets(make, sigma, nu):
    """On average over training sets, at widths where nearly all targets carry weight and where few do."""
    rates = []
    for seed in range(12):
        Z = np.random.default_rng(seed).normal(size=(1100, 2))
        rates.append(np.mean(make(rk.RBF(sigma=sigma), nu=nu, threshold="loo").fit(Z[:100]).predict(Z[100:]) == -1))
    assert abs(np.mean(rates) - nu) < 0.03 + 3 * np.std(rates) / np.sqrt(12)


def test_threshold_loo_does_not_depend_on_the_origin(samples):
    """A linear kernel far from 0: the threshold is one of distances to a centre."""
    X, new = samples(60, 2, 0), samples(200, 2, 1)
    near, far = (rk.SVDD("linear", nu=0.2, threshold="loo", tol=1e-10).fit(X + shift) for shift in (0.0, 100.0))
    assert near.offset_ == pytest.approx(far.offset_, rel=1e-5)
    assert np.mean(near.predict(new) == far.predict(new + 100.0)) > 0.99


@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
def test_threshold_auto_is_training_unless_the_kernel_is_narrow(make, samples):
    X = samples(40, 2, 0)
    offsets = {
        (kernel, threshold): make(NarrowRBF(sigma=0.5) if kernel == "narrow" else RBF(sigma=0.5), threshold=threshold).fit(X).offset_
        for kernel in ("plain", "narrow")
        for threshold in ("auto", "training", "loo")
    }
    assert offsets["plain", "auto"] == offsets["plain", "training"] == offsets["narrow", "training"]
    assert offsets["narrow", "auto"] == offsets["narrow", "loo"] == offsets["plain", "loo"] != offsets["plain", "training"]


@pytest.mark.parametrize("sigma", [0.2, 1.0])
@pytest.mark.parametrize("n", [60, 1100])
def test_both_classifiers_reject_the_same_where_the_diagonal_is_constant(sigma, n, samples):
    """They are one problem there, and so is what is compared; samples within rounding of the threshold aside."""
    X, new = np.split(samples(n + 300, 2, 0), [n])
    svdd, ocsvm = (make(RBF(sigma=sigma), nu=0.1, threshold="loo", tol=1e-9).fit(X) for make in (rk.SVDD, rk.OneClassSVM))
    assert np.count_nonzero(svdd.predict(new) != ocsvm.predict(new)) <= (0 if n <= 1024 else 3)


def test_threshold_moves_nothing_but_the_offset(samples):
    X, new = samples(40, 2, 0), samples(30, 2, 1)
    training, loo = (rk.SVDD(RBF(sigma=0.5), threshold=threshold).fit(X) for threshold in ("training", "loo"))
    np.testing.assert_array_equal(training.score_samples(new), loo.score_samples(new))
    np.testing.assert_array_equal(loo.predict(new) == 1, loo.decision_function(new) >= 0)
    assert training.radius_ == loo.radius_


@pytest.mark.parametrize("X", [np.zeros((1, 2)), np.zeros((2, 2)), np.zeros((9, 2)), np.eye(2)], ids=["one", "two", "equal", "apart"])
@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
@pytest.mark.parametrize("nu", [0.01, 1.0])
def test_threshold_loo_of_degenerate_targets_is_finite(make, X, nu):
    model = make(RBF(sigma=1.0), nu=nu, threshold="loo").fit(X)
    assert np.isfinite(model.offset_)
    if len(X) != 2 or X.any() == 0:
        assert (model.predict(X) == 1).all()


def test_unknown_threshold_is_refused(samples):
    with pytest.raises(ValueError, match="threshold='test'"):
        rk.SVDD(threshold="test").fit(samples(10, 2, 0))


def test_lower_quantile_is_an_order_statistic():
    scores = np.random.default_rng(0).permutation(99).astype(float)
    assert lower_quantile(scores, np.ones(99), 0.05) == 4.0
    assert lower_quantile(scores, np.ones(99), 0.001) == 0.0
    assert lower_quantile(scores, np.ones(99), 1.0) == 98.0


def test_lower_quantile_counts_by_weight():
    """Whole weights count as copies do, up to the one rank that n + 1 adds."""
    rng = np.random.default_rng(0)
    scores, weight = rng.normal(size=200), rng.integers(1, 4, 200)
    copies = np.sort(np.repeat(scores, weight))
    for nu in (0.05, 0.1, 0.5):
        k = int(nu * (copies.size + 1))
        assert copies[max(0, k - 6)] <= lower_quantile(scores, weight.astype(float), nu) <= copies[k + 6]


@pytest.mark.parametrize("threshold", ["loo", "auto"])
def test_a_search_scores_candidates_by_their_own_threshold(threshold, samples):
    """Shared paths know the training threshold only: a candidate whose threshold follows new samples runs alone."""
    X = np.vstack([samples(60, 2, 0), samples(20, 2, 1) + 3.0])
    y = np.r_[np.ones(60), -np.ones(20)]
    kernel = rk.RBF(sigma=0.3) if threshold == "loo" else NarrowRBF(sigma=0.3)
    search = rk.OneClassGridSearch(rk.SVDD(kernel, threshold=threshold), {"nu": [0.05, 0.2]}, cv=3, random_state=0).fit(X, y)
    alone = rk.OneClassGridSearch(rk.SVDD(kernel), {"nu": [0.05, 0.2], "threshold": ["loo"]}, cv=3, random_state=0).fit(X, y)
    shared = rk.OneClassGridSearch(rk.SVDD(kernel, threshold="training"), {"nu": [0.05, 0.2]}, cv=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    assert (search.cv_results_["mean_test_score"] != shared.cv_results_["mean_test_score"]).any()
    assert search.best_estimator_.offset_ == rk.SVDD(kernel, threshold="loo", **search.best_params_).fit(X[:60]).offset_
