"""ESVDD: SVDD in the metric of the targets' own covariance, and what follows from that."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import refkernel as rk
from refkernel.classifiers.ellipsoid import ESVDD

every_seed = pytest.mark.parametrize("seed", [0, 1, 2])


def covariance(X, regularization, w=None):
    """The regularised covariance, by NumPy."""
    E = np.cov(X.T, bias=True, aweights=w).reshape(X.shape[1], X.shape[1])
    return E + regularization * np.linalg.eigvalsh(E).mean() * np.eye(len(E))


@every_seed
@pytest.mark.parametrize("regularization", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("parameter", [{"nu": 0.2}, {"C": 0.05}, {}])
def test_it_is_svdd_with_the_inner_product_of_the_covariance(seed, regularization, parameter, samples):
    """SVDD on the precomputed matrix X E^-1 X' gives the same decision values, radius and support."""
    X, X_new = samples(60, 4, seed, offset=3.0), samples(30, 4, seed + 10, offset=3.0)
    model = ESVDD(regularization=regularization, **parameter).fit(X)
    P = np.linalg.inv(covariance(X, regularization))
    K, K_new = X @ P @ X.T, X_new @ P @ X.T
    ball = rk.SVDD("precomputed", **parameter).fit(K)
    expected = ball.decision_function(K_new, diag=np.einsum("ij,jk,ik->i", X_new, P, X_new))
    # uncentred inner products are larger, and with them both the rounding and the slack at the boundary
    np.testing.assert_allclose(model.decision_function(X_new), expected, rtol=0, atol=1e-7 * np.diagonal(K).max())
    assert model.radius_ == pytest.approx(ball.radius_, rel=1e-6)
    np.testing.assert_array_equal(model.support_, ball.support_)
    np.testing.assert_allclose(model.covariance_, covariance(X, regularization), rtol=1e-9, atol=1e-12)


@every_seed
def test_scores_are_mahalanobis_distances_from_the_centre(seed, samples):
    """score = -(x - c)' E^-1 (x - c); c is the weighted mean of the support vectors; free ones lie at R."""
    X, X_new = samples(70, 3, seed, offset=-5.0), samples(20, 3, seed + 10)
    model = ESVDD(nu=0.2).fit(X)
    np.testing.assert_allclose(model.center_, model.dual_coef_[0] @ model.support_vectors_, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    from_centre = X_new - model.center_
    np.testing.assert_allclose(
        -model.score_samples(X_new), (from_centre @ np.linalg.inv(model.covariance_) * from_centre).sum(axis=1), rtol=1e-8
    )
    free = model.dual_coef_[0] < (1 - 1e-9) / (0.2 * 70)
    assert free.any()
    np.testing.assert_allclose(-model.score_samples(model.support_vectors_[free]), model.radius_**2, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(model.support_vectors_[free]), 1)


@pytest.mark.parametrize("seed", range(4))
def test_radius_equals_that_of_the_primal_problem_solved_by_scipy(seed, samples):
    """Without slack: SLSQP over the centre and R² finds the same ellipsoid."""
    X = samples(12, 2, seed)
    model = ESVDD(C=1.0, regularization=0.0).fit(X)
    P = np.linalg.inv(np.cov(X.T, bias=True))

    def room(v):
        return v[2] - np.einsum("ij,jk,ik->i", X - v[:2], P, X - v[:2])

    start = np.array([*X.mean(axis=0), 100.0])
    theirs = minimize(lambda v: v[2], start, method="SLSQP", constraints={"type": "ineq", "fun": room}, options={"ftol": 1e-14})
    assert model.radius_**2 == pytest.approx(theirs.fun, rel=1e-6)
    np.testing.assert_allclose(model.center_, theirs.x[:2], atol=1e-5)  # flat around the optimum: known to sqrt of the objective's digits


@every_seed
@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_any_invertible_affine_map_gives_the_same_predictions(seed, nu, samples):
    """Without regularisation scores do not see the map, however it stretches (by up to 1e4) and shifts."""
    X, X_new = samples(80, 4, seed), samples(100, 4, seed + 10) * 1.5
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    A, shift = Q * [1e-2, 1.0, 10.0, 1e2] @ np.linalg.qr(rng.normal(size=(4, 4)))[0], rng.normal(size=4)
    plain, mapped = (ESVDD(nu=nu, regularization=0.0).fit(Z) for Z in (X, X @ A + shift))
    expected = plain.score_samples(X_new)
    # the covariance has a condition of 1e8 or a little more, which costs as many of the 16 digits
    np.testing.assert_allclose(mapped.score_samples(X_new @ A + shift), expected, rtol=1e-6)
    clear = np.abs(plain.decision_function(X_new)) > 1e-6 * np.abs(expected)
    assert clear.sum() > 90
    np.testing.assert_array_equal(mapped.predict(X_new @ A + shift)[clear], plain.predict(X_new)[clear])
    assert {-1, 1} == set(plain.predict(X_new))


@every_seed
def test_linear_svdd_is_not_invariant(seed, samples):
    """The law above can fail: a stretched feature changes SVDD's predictions, and those of a heavily regularised ESVDD."""
    X, X_new = samples(80, 4, seed), samples(200, 4, seed + 10) * 1.5
    for make in (lambda: rk.SVDD("linear"), lambda: ESVDD(regularization=1e6)):
        plain, stretched = make().fit(X), make().fit(X * [100, 1, 1, 1])
        assert (plain.predict(X_new) != stretched.predict(X_new * [100, 1, 1, 1])).any()


@every_seed
@pytest.mark.parametrize("regularization", [0.0, 1e-3, 1.0])
def test_on_isotropic_targets_it_is_linear_svdd(seed, regularization, samples):
    """A covariance of s² I: the same weights, and scores divided by s² (1 + regularization)."""
    X = samples(50, 3, seed)
    X = X - X.mean(axis=0)
    X = X @ np.linalg.inv(np.linalg.cholesky(X.T @ X / 50)).T * 2.0  # s² = 4
    ellipsoid, ball = ESVDD(nu=0.2, regularization=regularization).fit(X), rk.SVDD("linear", nu=0.2).fit(X)
    X_new = samples(40, 3, seed + 10) * 3
    expected = ball.decision_function(X_new) / (4.0 * (1 + regularization))
    np.testing.assert_allclose(ellipsoid.decision_function(X_new), expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_allclose(ellipsoid.center_, ball.dual_coef_[0] @ ball.support_vectors_, atol=1e-7)


@every_seed
def test_much_regularisation_is_linear_svdd(seed, samples):
    """Towards infinity the shape is a ball: predictions of SVDD with the linear kernel."""
    X, X_new = samples(60, 3, seed), samples(100, 3, seed + 10) * 1.5
    np.testing.assert_array_equal(ESVDD(nu=0.2, regularization=1e9).fit(X).predict(X_new), rk.SVDD("linear", nu=0.2).fit(X).predict(X_new))


@every_seed
def test_integer_weights_stand_for_repeated_rows(seed, samples, same_decisions):
    """In the covariance and in the bounds; a weight of 0 leaves a row out."""
    X, w = samples(50, 3, seed), np.random.default_rng(seed).integers(0, 4, 50)
    same_decisions(ESVDD(nu=0.3).fit(np.repeat(X, w, axis=0)), ESVDD(nu=0.3).fit(X, sample_weight=w), X, 1e-6)


@every_seed
def test_known_outliers_are_left_out(seed, samples):
    """Rows with y = -1 change neither the covariance nor the description; support_ indexes the X that was passed."""
    X, y = samples(60, 3, seed), np.where(np.arange(60) % 4 == 1, -1, 1)
    X[y == -1] += 9.0
    with_outliers, without = ESVDD().fit(X, y), ESVDD().fit(X[y == 1])
    np.testing.assert_array_equal(with_outliers.decision_function(X), without.decision_function(X))
    np.testing.assert_array_equal(with_outliers.support_, np.flatnonzero(y == 1)[without.support_])
    np.testing.assert_array_equal(ESVDD().fit_predict(X, y), with_outliers.predict(X))


@every_seed
@pytest.mark.parametrize("nu", [0.05, 0.2, 0.6])
def test_nu_bounds_the_share_outside_and_the_gap_is_certified(seed, nu, samples):
    """As for SVDD: at most nu outside, at least nu with a weight, a duality gap within tol."""
    X = samples(101, 3, seed)
    model = ESVDD(nu=nu).fit(X)
    assert (model.predict(X) == -1).mean() <= nu
    assert model.support_.size / 101 >= nu - 1e-12
    assert 0 <= model.duality_gap_ <= model.tol
    assert model.dual_coef_.sum() == pytest.approx(1.0)


@every_seed
def test_after_a_reference_map_it_is_an_ellipsoid_in_the_kernels_space(seed, samples):
    """A pipeline of map and ESVDD: SVDD on the map's features in the metric of their covariance, outliers in y included."""
    X, y = samples(60, 3, seed), np.repeat([1, -1], [50, 10])
    X[y == -1] += 4.0
    model = make_pipeline(rk.ReferenceMap(references="case4", random_state=0), ESVDD(nu=0.1)).fit(X, y)
    Phi = model[0].transform(X)
    P = np.linalg.inv(covariance(Phi[y == 1], 1e-3))
    K = Phi @ P @ Phi.T
    expected = rk.SVDD("precomputed", nu=0.1).fit(K, y).decision_function(K, diag=np.diagonal(K))
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=0, atol=1e-6 * np.ptp(expected))
    assert (model.predict(X[y == -1]) == -1).all()


def test_equal_targets_are_a_point(quiet):
    """No spread has no shape: radius 0, the targets inside, everything else outside."""
    model = quiet(ESVDD().fit, np.full((5, 2), 3.3))
    np.testing.assert_array_equal(model.predict([[3.3, 3.3], [3.3, 3.4]]), [1, -1])
    assert model.radius_ == 0.0
    np.testing.assert_array_equal(model.center_, [3.3, 3.3])


def test_clone_pickle_and_data_frames(samples):
    """A clone, a copy through a file and a DataFrame of the same values decide alike."""
    X = samples(40, 2, 0)
    model = ESVDD(nu=0.2).fit(X)
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = clone(model).fit(frame)
    assert list(named.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(named.decision_function(frame), model.decision_function(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"regularization": -1.0}, r"regularization=-1\.0 must be a number >= 0"),
        ({"regularization": None}, "regularization=None must be a number >= 0"),
        ({"nu": 0.0}, r"nu=0\.0 must be in \(0, 1\]"),
        ({"nu": 0.1, "C": 1.0}, r"nu=0\.1 and C=1\.0 are both given"),
        ({"C": 1e-3}, r"C=0\.001 leaves the dual infeasible: 30 targets need"),
        ({"tol": 0.0}, r"tol=0\.0 must be a positive number"),
        ({"max_iter": -2}, "max_iter=-2 must be an int >= 0"),
    ],
)
def test_bad_parameters_are_refused(parameters, message, samples):
    """Each error names the value and the limit."""
    with pytest.raises(ValueError, match=message):
        ESVDD(**parameters).fit(samples(30, 3, 0))


@pytest.mark.parametrize("case", ["fewer targets than features", "dependent feature", "constant feature"])
def test_singular_covariance_without_regularisation_is_refused(case, samples):
    """The error names the sizes and the way out, and regularisation is one; units of features do not matter."""
    X = samples(5, 8, 0) if case == "fewer targets than features" else samples(30, 3, 0) * [1e-9, 1.0, 1e9]
    ESVDD(regularization=0.0).fit(samples(30, 3, 0) * [1e-9, 1.0, 1e9])
    if case == "dependent feature":
        X = np.column_stack([X, X[:, 1] + 2e9 * X[:, 0]])
    if case == "constant feature":
        X[:, 1] = 7.0
    with pytest.raises(ValueError, match=rf"regularization=0 leaves the covariance of {len(X)} targets in {X.shape[1]} features singular"):
        ESVDD(regularization=0.0).fit(X)
    ESVDD().fit(X)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_covariance_beyond_double_precision_is_refused(factor, samples):
    """Neither infinite nor vanished squares pass for a shape."""
    with pytest.raises(ValueError, match=r"covariance of the targets overflows or underflows\. Scale the data"):
        ESVDD().fit(samples(30, 3, 0) * factor)


@parametrize_with_checks([ESVDD(), ESVDD(nu=0.5, regularization=1.0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
