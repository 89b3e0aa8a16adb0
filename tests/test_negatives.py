"""SVDD that repels known outliers: the optimum of Tax and Duin's problem, and a boundary that tells both kinds apart."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

import refkernel as rk
from refkernel._core.problem import NEGATIVE_MARGIN, SVDD
from refkernel.kernels import RBF
from refkernel.metrics import gmean_scorer
from refkernel.model_selection.engine import Shared, plan

every_seed = pytest.mark.parametrize("seed", [0, 1, 2, 3])


@pytest.fixture
def ring():
    """ring(seed, n, q): n targets around a hole, q negatives in the hole; X, y in random order."""

    def draw(seed, n=90, q=8):
        rng = np.random.default_rng(seed)
        T = rng.normal(size=(4 * n, 2))
        T = T[(T**2).sum(axis=1) > 0.1][:n]
        X, y = np.vstack([T, 0.1 * rng.normal(size=(q, 2))]), np.repeat([1, -1], [n, q])
        order = rng.permutation(n + q)
        return X[order], y[order]

    return draw


def weights_of(model, n):
    b = np.zeros(n)
    b[model.support_] = model.dual_coef_[0]
    return b


def bounds_of(model, y, w=None):
    """(C w, C_negative w) of each row, by the documented rule."""
    w = np.ones(len(y)) if w is None else w
    C = model.C if model.C is not None else 1 / ((model.nu or 0.1) * w[y == 1].sum())
    return C * w, (C * w[y == 1].sum() / w[y == -1].sum() if model.C_negative is None else model.C_negative) * w


@every_seed
@pytest.mark.parametrize("scale", [0.1, 0.3, 1.0])
def test_negatives_amid_the_targets_are_rejected(seed, scale, ring):
    """Negatives in a hole of the targets are outside, free ones on the boundary included; the plain description accepts some."""
    X, y = ring(seed)
    model = rk.SVDD(RBF(scale), nu=0.05, negatives="repel").fit(X, y)
    assert (model.decision_function(X[y == -1]) < 0).all()
    assert (model.predict(X[y == -1]) == -1).all()
    assert (model.predict(X[y == 1]) == 1).mean() >= 0.85
    if scale == 1.0:
        assert (rk.SVDD(RBF(scale), nu=0.05).fit(X, y).predict(X[y == -1]) == 1).all()


@every_seed
@pytest.mark.parametrize("kernel", [RBF(0.3), RBF(1.0), rk.ReferenceKernel(RBF(0.3), references="case1"), "laplacian"])
@pytest.mark.parametrize("nu", [0.05, 0.2])
def test_on_the_boundary_targets_are_inside_and_negatives_outside(seed, kernel, nu, ring):
    """Samples with free weights have decision value 0 but for half the margin, on the side of their kind."""
    X, y = ring(seed)
    model = rk.SVDD(kernel, nu=nu, negatives="repel").fit(X, y)
    b, (upper, lower) = weights_of(model, len(y)), bounds_of(model, y)
    decision = model.decision_function(X)
    free = (b != 0) & (b < upper) & (b > -lower)
    assert (free & (y == 1)).any()
    half = 0.5 * NEGATIVE_MARGIN * np.median(model.kernel_.diag(X[y == 1]))
    if (b < 0).any():  # else it is the plain description, with its own slack
        np.testing.assert_allclose(decision[free & (y == 1)], half, rtol=0, atol=0.2 * half)  # scores are known to 1e-10
        np.testing.assert_allclose(decision[free & (y == -1)], -half, rtol=0, atol=0.2 * half)
    assert (b < 0).any() or kernel != "laplacian"
    np.testing.assert_array_equal(model.predict(X)[free], y[free])


@every_seed
@pytest.mark.parametrize("nu", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("C_negative", [None, 0.02])
def test_weights_and_distances_satisfy_the_kkt_conditions(seed, nu, C_negative, ring):
    """Signed weights within their bounds and of sum 1; each sample lies where its weight says, by plain distances in the kernel's space."""
    X, y = ring(seed)
    X[y == -1] += 0.5  # into the targets, so that some negatives stay inside
    k = RBF(sigma=1.0)
    model = rk.SVDD(k, nu=nu, C_negative=C_negative, negatives="repel").fit(X, y)
    b, (upper, lower) = weights_of(model, len(y)), bounds_of(model, y)
    assert b.sum() == pytest.approx(1.0, abs=1e-12)
    assert ((b[y == 1] >= 0) & (b[y == 1] <= upper[y == 1] * (1 + 1e-12))).all()
    assert ((b[y == -1] <= 0) & (b[y == -1] >= -lower[y == -1] * (1 + 1e-12))).all()
    K = k(X)
    distance2 = np.diagonal(K) - 2 * K @ b + b @ K @ b
    beyond = distance2 - model.radius_**2
    slack = 1e-7  # the solver's tolerance and the margin of 1e-8, of a kernel of size 1
    at_upper, at_lower = b >= upper * (1 - 1e-12), b <= -lower * (1 - 1e-12)
    assert (beyond[(y == 1) & (b == 0)] <= slack).all()
    assert (beyond[(y == 1) & at_upper] >= -slack).all()
    assert (beyond[(y == -1) & (b == 0)] >= -slack).all()
    assert (beyond[(y == -1) & at_lower] <= slack).all()
    assert np.abs(beyond[(b != 0) & ~at_upper & ~at_lower]).max() <= slack
    assert 0 <= model.duality_gap_ <= model.tol
    np.testing.assert_allclose(-model.score_samples(X), distance2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_objective_equals_that_of_scipy(seed):
    """SLSQP on Tax and Duin's dual itself (no margin) finds the same objective, to 1e-6 of it."""
    rng = np.random.default_rng(seed)
    n, q = int(rng.integers(4, 9)), int(rng.integers(1, 5))
    X, y = rng.normal(size=(n + q, 2)) + 1.0, np.repeat([1, -1], [n, q])
    X[y == -1] = X[y == 1].mean(axis=0) + 0.1 * rng.normal(size=(q, 2))  # amid the targets, so that they repel
    k = RBF(sigma=1.5) if seed % 2 else rk.kernels.Linear()
    w = rng.uniform(0.5, 2.0, n + q) if seed % 3 else np.ones(n + q)
    model = rk.SVDD(k, nu=0.3, negatives="repel", tol=1e-9).fit(X, y, w)
    upper, lower = bounds_of(model, y, w)
    upper[y == -1], lower[y == 1] = 0.0, 0.0
    K = k(X)
    p = -0.5 * np.diagonal(K)

    def objective(b):
        return 0.5 * b @ K @ b + p @ b

    theirs = minimize(
        objective,
        np.where(y == 1, upper / upper.sum(), 0.0),
        jac=lambda b: K @ b + p,
        method="SLSQP",
        bounds=list(zip(-lower, upper, strict=True)),
        constraints={"type": "eq", "fun": lambda b: b.sum() - 1.0, "jac": lambda b: np.ones((1, n + q))},
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    assert (weights_of(model, n + q) < 0).any()
    assert objective(weights_of(model, n + q)) == pytest.approx(theirs.fun, rel=1e-6)


def test_ball_in_the_plane_touches_the_negative_and_the_targets():
    """Linear kernel, hard bounds: the smallest ball through both targets that leaves the negative outside, by geometry."""
    X, y = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.5]]), np.array([1, 1, -1])
    model = rk.SVDD("linear", C=100.0, negatives="repel").fit(X, y)
    # centre (0, -t) with 1 + t² = (0.5 + t)²: t = 0.75
    np.testing.assert_allclose(model.dual_coef_[0] @ model.support_vectors_, [0.0, -0.75], atol=1e-6)
    assert model.radius_**2 == pytest.approx(1 + 0.75**2, rel=1e-6)
    np.testing.assert_array_equal(model.predict(X), y)
    np.testing.assert_array_equal(model.support_, [0, 1, 2])
    assert model.dual_coef_[0, 2] < 0


@every_seed
@pytest.mark.parametrize("kernel", ["rbf", "linear", rk.ReferenceKernel(references="case3", random_state=0)])
def test_without_negatives_it_is_svdd(seed, kernel, samples):
    """No row with y = -1, or none with a weight: the same numbers bit by bit."""
    X, w = samples(50, 3, seed), np.repeat([1.0, 0.0], [40, 10])
    plain, repelling = rk.SVDD(kernel).fit(X), rk.SVDD(kernel, negatives="repel").fit(X)
    np.testing.assert_array_equal(repelling.decision_function(X), plain.decision_function(X))
    y = np.where(w == 0, -1, 1)
    weightless = rk.SVDD(kernel, negatives="repel").fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(weightless.decision_function(X), rk.SVDD(kernel).fit(X, y).decision_function(X))


@every_seed
def test_negatives_that_are_outside_anyway_change_nothing(seed, samples, same_decisions):
    """Far negatives get no weight: the description is that of the targets."""
    X, y = samples(60, 3, seed), np.repeat([1, -1], [50, 10])
    X[y == -1] += 50.0
    repelling = rk.SVDD(nu=0.2, negatives="repel").fit(X, y)
    assert (y[repelling.support_] == 1).all()
    same_decisions(rk.SVDD(nu=0.2).fit(X, y), repelling, X, 1e-7)  # weights are known to about the solver's tolerance


def test_adapter_without_negatives_is_that_of_svdd():
    """Positive weights only: the same linear term and bounds."""
    diag, w = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.5, 2.0])
    plain, signed = SVDD.problem(diag, 1.0 / 0.6, w), SVDD.problem(diag, 1.0 / 0.6, w, 0.2)
    for name in ("p", "lower", "upper", "total"):
        np.testing.assert_array_equal(getattr(signed, name), getattr(plain, name))


@every_seed
def test_higher_price_leaves_fewer_negatives_inside(seed, ring):
    """C_negative trades negatives inside for targets outside: 0 is the plain description, more of it rejects more negatives."""
    X, y = ring(seed, q=20)
    X[y == -1] = 3 * X[y == -1] + 0.4
    inside = [
        (rk.SVDD(RBF(0.5), C=0.1, C_negative=price, negatives="repel").fit(X, y).predict(X[y == -1]) == 1).sum()
        for price in (1e-9, 1e-3, 1e-2, 1.0)
    ]
    assert inside[0] == (rk.SVDD(RBF(0.5), C=0.1).fit(X, y).predict(X[y == -1]) == 1).sum()
    assert inside == sorted(inside, reverse=True)
    assert inside[-1] < inside[0]


@every_seed
def test_default_price_weighs_both_kinds_alike(seed, ring):
    """C_negative=None is C n / q, with sums of sample weights where these are given; the same for nu and for C."""
    X, y = ring(seed)
    w = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
    n, q = w[y == 1].sum(), w[y == -1].sum()
    expected = rk.SVDD(C=5 / n, C_negative=5 / q, negatives="repel").fit(X, y, w).decision_function(X)
    for model in (rk.SVDD(C=5 / n, negatives="repel"), rk.SVDD(nu=0.2, negatives="repel")):
        np.testing.assert_allclose(model.fit(X, y, w).decision_function(X), expected, rtol=0, atol=1e-9)


@every_seed
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_integer_weights_stand_for_repeated_rows(seed, kernel, ring, same_decisions):
    """A weight of 2 is a row given twice, a weight of 0 a row left out, for targets and negatives."""
    X, y = ring(seed)
    w = np.random.default_rng(seed).integers(0, 4, len(y))
    model = rk.SVDD(kernel, nu=0.3, negatives="repel", threshold="training")
    repeated = rk.SVDD(kernel, nu=0.3, negatives="repel", threshold="training").fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    same_decisions(repeated, model.fit(X, y, sample_weight=w), X, 1e-6)


@every_seed
def test_every_way_to_give_the_kernel_is_one_description(seed, ring):
    """Kernel object, precomputed matrix and sparse samples agree; support_ names rows of the X that was passed."""
    X, y = ring(seed)
    k = RBF(sigma=0.7)
    by_object = rk.SVDD(k, negatives="repel").fit(X, y)
    by_matrix = rk.SVDD("precomputed", negatives="repel").fit(k(X), y)
    by_sparse = rk.SVDD(k, negatives="repel").fit(sp.csr_matrix(X), y)
    expected = by_object.decision_function(X)
    np.testing.assert_allclose(by_matrix.decision_function(k(X), diag=np.ones(len(X))), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(by_sparse.decision_function(sp.csr_matrix(X)), expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(X[by_object.support_], by_object.support_vectors_)
    assert (np.sign(by_object.dual_coef_[0]) == y[by_object.support_]).all()
    assert (y[by_object.support_] == -1).any()
    np.testing.assert_array_equal(rk.SVDD(k, negatives="repel").fit_predict(X, y), by_object.predict(X))


@every_seed
def test_order_of_the_rows_changes_nothing(seed, ring):
    """Targets and negatives may come in any order."""
    X, y = ring(seed)
    order = np.argsort(y, kind="stable")
    a, b = (rk.SVDD(RBF(0.3), negatives="repel").fit(X[rows], y[rows]) for rows in (slice(None), order))
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=0, atol=1e-8)  # the solver's tolerance


@every_seed
def test_references_get_their_negatives_too(seed, ring):
    """case5: the negatives are references and repel; the kernel's width is that of the kernel with "ignore"."""
    X, y = ring(seed, n=40, q=8)
    kernel = rk.ReferenceKernel(references="case5", random_state=0)
    ignoring, repelling = (rk.SVDD(kernel, nu=0.1, negatives=how).fit(X, y) for how in ("ignore", "repel"))
    np.testing.assert_array_equal(repelling.kernel_.references_, ignoring.kernel_.references_)
    assert repelling.kernel_.kernel_.sigma_ == ignoring.kernel_.kernel_.sigma_
    assert (y[ignoring.support_] == 1).all()
    assert (y[repelling.support_] == -1).any()
    assert (repelling.predict(X[y == -1]) == -1).all()


def test_working_sets_are_certified_too(samples):
    """3,000 rows, more than are solved as a whole: the gap is within the tolerance, both kinds on their sides of the boundary."""
    X, y = samples(3000, 2, 0), np.where(np.arange(3000) % 5 == 0, -1, 1)
    X[y == -1] *= 0.1
    model = rk.SVDD(RBF(1.0), nu=0.3, negatives="repel").fit(X, y)
    assert model.duality_gap_ <= model.tol
    assert model.dual_coef_.sum() == pytest.approx(1.0)
    b, (upper, lower) = weights_of(model, 3000), bounds_of(model, y)
    free = (b != 0) & (b < upper) & (b > -lower)
    assert {1, -1} <= set(y[b != 0])
    np.testing.assert_array_equal(model.predict(X)[free], y[free])


@pytest.mark.parametrize("route", ["kernel", "mapping"])
def test_search_equals_grid_search_cv(route, ring):
    """The shared search fits such candidates one by one: every fold score and the choice are GridSearchCV's."""
    X, y = ring(0, n=50, q=20)
    if route == "kernel":
        estimator, name = rk.SVDD(rk.ReferenceKernel(references="case5", random_state=0)), ""
        grid = {"negatives": ["ignore", "repel"], "nu": [0.1, 0.3], "kernel__kernel__scale": [0.3, 1.0]}
    else:
        name = "svdd__"
        estimator = make_pipeline(rk.TargetScaler(), rk.NPT(), rk.SVDD("linear", negatives="repel"))
        grid = {"svdd__negatives": ["ignore", "repel"], "svdd__nu": [0.1, 0.3], "svdd__C_negative": [None, 0.1]}
    cv = list(StratifiedKFold(3, shuffle=True, random_state=1).split(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = rk.OneClassGridSearch(estimator, grid, cv=cv).fit(X, y)
        expected = GridSearchCV(estimator, grid, cv=cv, scoring=gmean_scorer).fit(X, y)
    for fold in range(3):
        score = f"split{fold}_test_score"
        np.testing.assert_allclose(ours.cv_results_[score], expected.cv_results_[score], rtol=0, atol=1e-12)
    assert ours.best_params_ == expected.best_params_
    assert np.ptp(ours.cv_results_["mean_test_score"]) > 0
    assert ours.best_params_[f"{name}negatives"] == "repel"


def test_plan_shares_work_among_candidates_with_negatives_too():
    """In one grid over both, the plain candidates share their work, and those with negatives theirs."""
    candidates = [{"negatives": how, "nu": nu} for how in ("ignore", "repel") for nu in (0.1, 0.2)]
    parts = plan(rk.SVDD(RBF(1.0)), candidates)
    assert [type(part) for part in parts] == [Shared, Shared]
    assert [part.classifier.negatives for part in parts] == ["ignore", "repel"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"negatives": "repulse"}, r"negatives='repulse' must be one of \['ignore', 'repel'\]"),
        ({"negatives": None}, "negatives=None must be one of"),
        ({"negatives": "repel", "C_negative": 0.0}, r"C_negative=0\.0 must be a positive number"),
        ({"negatives": "repel", "C_negative": "1"}, "C_negative='1' must be a positive number"),
        ({"negatives": "repel", "C": 0.001}, r"C=0\.001 leaves the dual infeasible: 90 targets need C >= 0\.0111"),
        ({"negatives": "repel", "nu": 0.1, "C": 0.5}, r"nu=0\.1 and C=0\.5 are both given"),
    ],
)
def test_bad_parameters_are_refused(parameters, message, ring):
    """Each error names the value and the limit; the number of targets counts, not that of all rows."""
    with pytest.raises(ValueError, match=message):
        rk.SVDD(**parameters).fit(*ring(0))


def test_only_negatives_are_refused(ring):
    """A description needs a target."""
    X, _ = ring(0)
    with pytest.raises(ValueError, match="at least one target is needed"):
        rk.SVDD(negatives="repel").fit(X, -np.ones(len(X)))


def test_searches_with_outliers_that_repel_share_work_on_training_references():
    """References that are the targets hold no outliers: their matrix alone is not the one to solve."""
    rng = np.random.default_rng(0)
    X, y = np.vstack([rng.normal(size=(30, 2)), rng.normal(3.0, size=(9, 2))]), np.repeat([1, -1], [30, 9])
    model = rk.SVDD(rk.ReferenceKernel(references="training"), negatives="repel")
    grid = {"kernel__kernel__scale": [0.5, 2.0], "nu": [0.1, 0.3]}
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    search = rk.OneClassGridSearch(model, grid, error_score="raise", cv=folds, refit=False).fit(X, y)
    assert "alone" not in search.stage_times_
    alone = GridSearchCV(model, grid, scoring=gmean_scorer, cv=folds, refit=False).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], atol=1e-12)
