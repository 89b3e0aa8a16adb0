"""What a fit promises, over kernels, sizes and far-away rows: a certificate or a warning, nu's bound, finite scores, the same row the same
answer."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM as LibSVM

import refkernel as rk
from refkernel.kernels import RBF, Laplacian, Linear, Polynomial
from refkernel.model_selection import Formulation, decision_paths

KERNELS = {"rbf": RBF(1.0), "narrow": RBF(0.01), "linear": Linear(), "polynomial": Polynomial(), "laplacian": Laplacian()}


def fitted(model, X):
    """The fitted model, and whether it warned that it did not converge."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        model.fit(X)
    return model, any(issubclass(w.category, ConvergenceWarning) for w in record)


def with_a_far_row(distance, n=60):
    return np.vstack([np.random.default_rng(0).normal(size=(n, 3)) + 5, [[distance] * 3]])


@pytest.mark.parametrize("distance", [1e3, 1e5, 3e5, 1e6, 1e8, 1e12])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(3, gamma=1.0, coef0=1.0)], ids=["linear", "polynomial"])
def test_a_far_row_leaves_the_others_their_description(kernel, distance):
    """However far one row is, the one-class SVM is certified, or says that it is not; its answers for the others are LIBSVM's."""
    X = with_a_far_row(distance)
    model, warned = fitted(rk.OneClassSVM(kernel, nu=0.3), X)
    assert model.duality_gap_ <= model.tol or warned
    if warned:
        return
    K = kernel.fit(X)(X)
    theirs = LibSVM(kernel="precomputed", nu=0.3, tol=1e-9).fit(K / np.median(np.diagonal(K)))
    decision = theirs.decision_function(K / np.median(np.diagonal(K)))
    clear = np.abs(decision) > 1e-5 * np.median(np.abs(decision))
    np.testing.assert_array_equal(model.predict(X)[clear], np.where(decision >= 0, 1, -1)[clear])
    assert 0.2 <= (model.predict(X) == -1).mean() <= 0.3
    if isinstance(kernel, Linear):
        assert model.predict([[0.0, 0.0, 0.0]])[0] == -1


@pytest.mark.parametrize("distance", [3e1, 5e2, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("towards", [-1.0, 1.0])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2, gamma=1.0), Polynomial(3, gamma=1.0, coef0=1.0), RBF(1.0)], ids=str)
@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
def test_only_samples_at_their_bound_lie_outside_however_far_one_is(make, kernel, towards, distance):
    """A far row may need a weight of 1e-16 to be on the boundary: without it the fit would put outside a row that has no weight at all."""
    for seed in range(3):
        rng, nu = np.random.default_rng(seed), 0.05
        X = rng.integers(-2, 3, size=(150, 1)).astype(float)
        X[rng.integers(150)] = towards * distance
        model, warned = fitted(make(kernel, nu=nu, threshold="training"), X)
        b, K = np.zeros(150), model.kernel_(X, X)
        b[model.support_] = model.dual_coef_[0]
        below = b < (1.0 if make is rk.OneClassSVM else 1.0 / (nu * 150))
        rounding = 1e-13 * (np.abs(K) @ b)  # of sums of 150 terms, in any order
        assert warned or (model.decision_function(X)[below] >= -(2.0 if make is rk.SVDD else 1.0) * rounding[below]).all()


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
def test_a_fit_is_certified_or_warns_and_keeps_the_bound_of_nu(make, kernel, unit):
    """nu bounds the share of training targets outside from above and that of support vectors from below, within one sample."""
    for seed, (n, d, nu) in enumerate([(40, 2, 0.1), (150, 5, 0.02), (90, 3, 0.5)]):
        X = unit * np.random.default_rng(seed).normal(size=(n, d))
        model, warned = fitted(make(KERNELS[kernel], nu=nu, threshold="training"), X)
        assert model.duality_gap_ <= model.tol or warned
        assert (model.predict(X) == -1).mean() <= nu + 1 / n
        assert model.support_.size / n >= nu - 1 / n


def spread_rows(shape, n, d, rng):
    """Samples whose scales are up to 1e12 apart, or that coincide, or that lie far from the origin."""
    X = rng.normal(size=(n, d))
    if shape == "columns":
        return X * np.logspace(-6, 6, d)
    if shape == "rows":
        return X * np.logspace(-6, 6, n)[rng.permutation(n), None]
    if shape == "clusters":
        return X * rng.choice([1e-6, 1.0, 1e6], size=(n, 1)) + 5
    if shape == "far":
        X[rng.integers(n, size=2)] *= 1e12
        return X
    return {"plain": X, "offset": 1e-3 * X + 1e3, "grid": np.round(X)}[shape]


def certified_by_libsvm(K, nu):
    """LIBSVM's decision values for a one-class SVM, its Kb, and whether the duality gap computed here certifies them to 1e-8."""
    n = len(K)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap decides
            theirs = LibSVM(kernel="precomputed", nu=nu, tol=1e-9, max_iter=100_000).fit(K)
    except ValueError:  # "not finite": K spans more than its arithmetic
        return None, None, False
    b = np.zeros(n)
    b[theirs.support_] = theirs.dual_coef_[0]
    g = K @ b
    near = np.sort(g)[max(0, int(nu * n) - 3) : int(nu * n) + 4]  # the best rho is a quantile of g
    primal = min(0.5 * b @ g - rho * nu * n + np.maximum(rho - g, 0.0).sum() for rho in near)
    return theirs.decision_function(K), g, primal + 0.5 * b @ g <= 1e-8 * b @ g


@pytest.mark.filterwarnings("ignore::refkernel.DegenerateSolutionWarning")
@pytest.mark.parametrize("shape", ["plain", "columns", "rows", "clusters", "far", "offset", "grid"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_laws_of_a_fit_over_scales_1e12_apart_and_sizes_to_2000(kernel, shape):
    """gap <= tol or a warning; finite scores; nu's bounds within one sample; LIBSVM's decisions wherever both are certified."""
    for seed, (n, d, nu) in enumerate([(5, 1, 0.9), (37, 3, 0.5), (100, 1, 0.5), (130, 10, 0.2), (600, 2, 0.05), (2000, 4, 0.01)]):
        X = spread_rows(shape, n, d, np.random.default_rng(seed))
        for make in (rk.SVDD, rk.OneClassSVM):
            model, warned = fitted(make(KERNELS[kernel], nu=nu, threshold="training"), X)
            decision = model.decision_function(X)
            assert np.isfinite(decision).all()
            assert model.support_.size / n >= nu - 1 / n
            if warned:
                continue
            assert model.duality_gap_ <= model.tol
            assert (model.predict(X) == -1).mean() <= nu + 1 / n
        K = model.kernel_(X, X)
        theirs, g, certified = certified_by_libsvm(K / (np.median(np.diagonal(K)) or 1.0), nu)
        if certified and not warned:
            # w differs by sqrt(2 · 1e-8) = 1.4e-4 of its length at most, and far less in directions that data determine
            clear = np.abs(theirs) > 1e-4 * np.maximum(np.median(np.abs(g)), np.abs(g))
            np.testing.assert_array_equal((decision >= 0)[clear], (theirs >= 0)[clear])


@pytest.mark.parametrize("kernel", ["rbf", "narrow", "laplacian"])
@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
def test_rows_on_the_boundary_are_inside_whatever_their_rounding(make, kernel):
    """Where most rows repeat, hundreds lie on the boundary: a threshold one rounding too high would flag them all."""
    for seed in range(12):
        X = np.round(np.random.default_rng(seed).normal(size=(600, 1 + seed % 2)))
        model, warned = fitted(make(KERNELS[kernel], nu=0.05, threshold="training"), X)
        assert warned or (model.predict(X) == -1).mean() <= 0.05 + 1 / 600


@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
@pytest.mark.parametrize(("n", "nu"), [(900, 0.01), (900, 0.3), (2000, 0.01)])
def test_the_bound_of_nu_holds_with_many_free_weights(make, n, nu):
    """Newton steps stop at 256 free weights; what pair moves leave there must not put free samples outside."""
    X = np.random.default_rng(0).normal(size=(n, 50))
    model, _ = fitted(make(Polynomial(), nu=nu), X)
    assert (model.predict(X) == -1).mean() <= nu + 1 / n


@pytest.mark.parametrize(
    "model",
    [
        rk.ESVDD(),
        rk.SVDD("linear"),
        rk.OneClassSVM("linear"),
        rk.SVDD(RBF(1.0)),
        rk.SVDD("poly"),
        rk.ReferenceResidual(random_state=0),
        rk.ReferenceResidual(Polynomial(2, gamma=1.0), random_state=0),
        rk.SVDD(rk.ReferenceKernel(Polynomial(), random_state=0)),
        rk.AutoDetector(),
        make_pipeline(rk.TargetScaler(), rk.SVDD()),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'kernel', '')}",
)
def test_scores_of_finite_samples_are_finite(model):
    rng = np.random.default_rng(0)
    for X in (np.full((20, 1), 3e168), rng.normal(size=(30, 1)), 1e150 * rng.normal(size=(30, 1))):
        try:
            fit, _ = fitted(model, X)
        except ValueError as error:
            assert any(part in str(error) for part in ("Scale the data", "all alike", "nothing is left to scale"))  # noqa: PT017 (either may come, or none)
            continue
        decision = fit.decision_function([[0.0], [1e300], [-1e300], [1.7e308]])
        assert np.isfinite(decision).all()


MODELS = {
    "SVDD, narrow": lambda: rk.SVDD(RBF(0.05)),
    "SVDD, linear": lambda: rk.SVDD("linear"),
    "one-class SVM": lambda: rk.OneClassSVM(RBF(1.0)),
    "case 2, SVDD": lambda: rk.SVDD(rk.ReferenceKernel(references="case2", random_state=0)),
    "case 2, one-class SVM": lambda: rk.OneClassSVM(rk.ReferenceKernel(references="case2", random_state=0)),
    "laplacian": lambda: rk.SVDD("laplacian"),
    "polynomial": lambda: rk.OneClassSVM("poly"),
    "residual": lambda: rk.ReferenceResidual(random_state=0),
    "ellipsoid": lambda: rk.ESVDD(),
    "product": lambda: rk.OneClassSVM(RBF(1.0) * Laplacian()),
    "a kernel of scikit-learn": lambda: rk.SVDD("cosine"),
    "auto": lambda: rk.AutoDetector(),
    "conformal": lambda: rk.ConformalDetector(rk.SVDD(rk.ReferenceKernel(references="subset", random_state=0)), 0.1),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_row_scores_the_same_alone_and_among_ten_thousand_bit_for_bit(name, monkeypatch):
    """In any block, in several threads at once, in either memory order, as part of any table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 7))
    model = MODELS[name]().fit(X[:120])
    whole = model.score_samples(X)
    for rows in (slice(0, 1), slice(9_999, 10_000), slice(17, 18), slice(100, 613), slice(3, 10_000), slice(None, None, 97)):
        np.testing.assert_array_equal(model.score_samples(X[rows]), whole[rows])
    np.testing.assert_array_equal(model.score_samples(np.asfortranarray(X[:700])), whole[:700])
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(lambda _: model.score_samples(X[:600]), range(8)):
            np.testing.assert_array_equal(scores, whole[:600])
    monkeypatch.setattr("refkernel._core.blocks.MANY_ENTRIES", 1)  # rows shared between threads from the first
    np.testing.assert_array_equal(model.score_samples(X[:3000]), whole[:3000])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("d", [2, 40])  # compiled loops measure few features, BLAS many
@pytest.mark.parametrize("name", MODELS)
def test_a_row_scores_the_same_beside_rows_far_away_bit_for_bit(name, d):
    """Training rows among them, whose distance from themselves is rounding: far rows beside them must not change how it is treated."""
    X = np.random.default_rng(0).normal(size=(100, d))
    model = MODELS[name]().fit(X[:60])
    beside = model.decision_function(np.vstack([X, 1e3 * X, 1e200 * X[:3]]))
    assert np.isfinite(beside).all()
    np.testing.assert_array_equal(beside[:100], model.decision_function(X))
    np.testing.assert_array_equal(beside[:100], [model.decision_function(row[None])[0] for row in X])


@pytest.mark.parametrize("m", [60, 128, 250, 252, 2500])
@pytest.mark.parametrize("d", [3, 40])
def test_a_row_scores_the_same_in_every_place_of_a_block_bit_for_bit(d, m):
    """BLAS may take the last rows of a block by other instructions; for 250 references it did, with AVX-512."""
    X = np.random.default_rng(0).normal(size=(m + 1, d))
    features = rk.ReferenceMap(references=X[:-1]).fit(X[:-1]).transform(np.repeat(X[-1:], 1100, axis=0))
    np.testing.assert_array_equal(features, np.repeat(features[:1], 1100, axis=0))


@pytest.mark.parametrize("n", [1, 4, 600, 1000])
@pytest.mark.parametrize(("d_X", "d_Z"), [(5000, 2), (1, 3), (3, 1)])
@pytest.mark.parametrize("kernel", [RBF(sigma=1.0), RBF(sigma=[1.0, 2.0]), Laplacian(gamma=1.0), Linear(), Polynomial(gamma=1.0)], ids=str)
def test_kernels_refuse_samples_of_different_widths(kernel, n, d_X, d_Z):
    """No compiled loop and no product is reached with shapes that do not fit."""
    with pytest.raises(ValueError):
        kernel(np.ones((n, d_X)), np.ones((4, d_Z)))


@pytest.mark.parametrize("X", [[[1.0], [-1e29]], [[1.0], [1.5], [1.2], [2.0], [-1e25]]])
def test_libsvm_rule_refuses_kernels_that_overflow_in_single_precision(X):
    """Their gradients may be finite all the same; pair moves would then get nowhere, forever."""
    with pytest.raises(ValueError, match="overflows in single precision"):
        rk.OneClassSVM("linear", nu=0.5, stopping="libsvm").fit(X)
    K = np.array(X) @ np.array(X).T
    with pytest.raises(ValueError, match="overflows in single precision"):
        decision_paths(K, [Formulation("ocsvm", [0.5], stopping="libsvm")], K, K.diagonal())
