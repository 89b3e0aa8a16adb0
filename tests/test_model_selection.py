"""The shared search gives GridSearchCV's answers, and says clearly what it cannot score."""

import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import Parallel, parallel_config
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.metrics import make_scorer, recall_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

import refkernel as rk
from refkernel._core.factor import Whitening, factorise
from refkernel._core.rows import TrainingRows
from refkernel.metrics import gmean_scorer, tpr_at_tnr_score, tpr_at_tnr_scorer
from refkernel.model_selection import Formulation, decision_paths
from refkernel.model_selection.engine import Alone, Rows, Shared, plan
from refkernel.model_selection.grams import Samples
from refkernel.model_selection.search import _tabulate

SCALES = [0.1, 1.0, 10.0, 100.0, 1000.0]
VALUES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


@pytest.fixture(params=[0, 1])
def data(request):
    """40 targets around the origin and 25 wider outliers, some rows repeated."""
    rng = np.random.default_rng(request.param)
    X = np.vstack([rng.normal(size=(38, 3)), rng.normal(scale=2.5, size=(25, 3))])
    X = np.vstack([X[:2], X])
    y = np.r_[np.ones(40, int), -np.ones(25, int)]
    order = rng.permutation(len(y))
    return X[order], y[order]


NEAR = 1e-7
"""A decision this close to 0, as a share of their range, has no determined sign: kernels agree to 1e-8 where eigenvalues reach 1e-6."""


def features(factor, K_ZR):
    """Phi(Z) from k(Z, R), for the map's factorisation."""
    return np.column_stack([K_ZR, np.ones(len(K_ZR))]) @ factor.projection


def assert_same_search(estimator, grid, X, y, scoring="gmean", theirs=gmean_scorer, **options):
    """Every fold score equal to 1e-12 (but where rounding decides a sign), the same keys, ranks and best parameters."""
    cv = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = rk.OneClassGridSearch(estimator, grid, cv=cv, scoring=scoring, **options).fit(X, y)
        expected = GridSearchCV(estimator, grid, cv=cv, scoring=theirs).fit(X, y)
    assert set(ours.cv_results_) == {*expected.cv_results_, "doubts"}
    names = [f"split{fold}_test_score" for fold in range(4)]
    found, wanted = (np.array([search.cv_results_[name] for name in names]) for search in (ours, expected))
    undetermined = ~np.isclose(found, wanted, rtol=0, atol=1e-12)
    for fold, candidate in np.argwhere(undetermined):
        train, test = cv[fold]
        model = clone(estimator).set_params(**ours.cv_results_["params"][candidate])
        decisions = quietly(model.fit, X[train], y[train]).decision_function(X[test])
        assert np.abs(decisions).min() <= NEAR * np.ptp(decisions), "scores differ, though every decision is clear of 0"
    if not undetermined.any() and not any("degenerate" in doubts for doubts in ours.cv_results_["doubts"]):
        assert ours.best_params_ == expected.best_params_
        np.testing.assert_array_equal(ours.cv_results_["rank_test_score"], expected.cv_results_["rank_test_score"])
    return ours


@pytest.mark.parametrize("classifier", [rk.SVDD, rk.OneClassSVM])
@pytest.mark.parametrize("references", [None, "case1", "case2", "case3", "case4", "case5", "case6", "case7"])
@pytest.mark.parametrize("route", ["kernel", "mapping"])
def test_search_equals_grid_search_cv(data, classifier, references, route):
    """Sharing work changes no fold score and no choice: all cases, both classifiers, both routes, on the article's grid."""
    X, y = data
    parameter = "C" if route == "mapping" and classifier is rk.SVDD else "nu"
    if classifier is rk.OneClassSVM and (references == "case1" or (references is None and route == "mapping")):
        # The optimum is w = 0 and every decision value within rounding of 0, which the law leaves out: uncentred, it holds.
        centred = {"center": False}
    else:
        centred = {}
    name = "svdd" if classifier is rk.SVDD else "oneclasssvm"
    if references is None and route == "mapping":
        estimator = make_pipeline(rk.TargetScaler(), rk.ReferenceMap(**centred), classifier("linear"))
        names = ["referencemap__kernel__scale", f"{name}__{parameter}"]
    elif route == "mapping":
        estimator = make_pipeline(
            rk.TargetScaler(), rk.ReferenceMap(references=references, random_state=3, **centred), classifier("linear")
        )
        names = ["referencemap__kernel__scale", f"{name}__{parameter}"]
    else:
        kernel = rk.RBF(1.0) if references is None else rk.ReferenceKernel(references=references, random_state=3, **centred)
        estimator = make_pipeline(rk.TargetScaler(), classifier(kernel))
        scale = "kernel__scale" if references is None else "kernel__kernel__scale"
        names = [f"{name}__{scale}", f"{name}__{parameter}"]
    assert_same_search(estimator, {names[0]: [0.1, 10.0, 1000.0], names[1]: [0.1, 0.3, 0.6]}, X, y)


@pytest.mark.parametrize(
    ("scoring", "theirs"),
    [
        ("balanced_accuracy", "balanced_accuracy"),
        ("roc_auc", "roc_auc"),
        ("average_precision", "average_precision"),
        ("tpr_at_tnr", tpr_at_tnr_scorer),
        ("accuracy", "accuracy"),
        (make_scorer(recall_score, pos_label=-1), make_scorer(recall_score, pos_label=-1)),
    ],
)
def test_every_kind_of_scoring_equals_grid_search_cv(data, scoring, theirs):
    """Built-in names, scikit-learn's names and scorers see the same labels and decision values as a fitted model gives."""
    assert_same_search(rk.SVDD(rk.RBF(1.0)), {"kernel__scale": [0.1, 1.0], "nu": [0.1, 0.3]}, *data, scoring=scoring, theirs=theirs)


def test_grids_that_mix_structures_equal_grid_search_cv(data):
    """A list of grids over kernels, references, widths, C and nu, and over the classifier itself."""
    estimator = make_pipeline(rk.TargetScaler(), rk.SVDD(rk.ReferenceKernel(random_state=0)))
    grid = [
        {
            "svdd__kernel__references": ["case2", "case5", rk.references.Subset(0.7)],
            "svdd__kernel__kernel__scale": [1.0, 10.0],
            "svdd__nu": [0.1, 0.2],
        },
        {"svdd__kernel": [rk.RBF(1.0), rk.kernels.Laplacian(), "linear", "cosine"], "svdd__C": [0.1, 0.5]},
        {"svdd__kernel__kernel": [rk.kernels.Polynomial(), rk.RBF(fit_on="training")], "svdd__kernel__center": [True, False]},
        {"svdd": [rk.OneClassSVM(nu=0.2)]},
        {"targetscaler": ["passthrough", StandardScaler()], "svdd__nu": [0.1, 0.2]},
    ]
    assert_same_search(estimator, grid, *data)


@pytest.mark.parametrize("references", [None, "case1", "case3"])
def test_libsvm_stopping_is_kept_by_the_search(data, references):
    """The article's start and stopping rule give the same scores through the shared path, where warm starts must not be used.

    Kernel values rounded to single precision, as LIBSVM holds them, make its answers the same for kernels that differ by rounding.
    """
    kernel = rk.RBF(1.0) if references is None else rk.ReferenceKernel(references=references, random_state=0)
    scale = "kernel__scale" if references is None else "kernel__kernel__scale"
    estimator = rk.OneClassSVM(kernel, stopping="libsvm", tol=1e-3)
    assert_same_search(estimator, {scale: [1.0, 100.0], "nu": VALUES}, *data)


def test_sparse_samples_are_searched_one_by_one(data):
    """What cannot share still runs, with the same answer."""
    X, y = data
    assert_same_search(
        rk.SVDD(rk.RBF(1.0)), {"kernel__scale": [1.0, 10.0], "nu": [0.1, 0.2]}, sp.csr_array(np.where(np.abs(X) > 1, X, 0.0)), y
    )


def test_candidates_along_scale_and_nu_are_one_group():
    """The plan puts the whole article grid into one group with one axis for each scale."""
    grid = [{"svdd__kernel__kernel__scale": s, "svdd__nu": nu} for s in SCALES for nu in VALUES]
    (group,) = plan(make_pipeline(rk.TargetScaler(), rk.SVDD(rk.ReferenceKernel())), grid)
    assert isinstance(group, Shared)
    assert [axis.values for axis in group.axes] == [VALUES] * 5
    assert [axis.kernel.scale for axis in group.axes] == SCALES
    (alone,) = plan(rk.SVDD("precomputed"), [{"nu": 0.1}])
    assert isinstance(alone, Alone)


@pytest.mark.parametrize("center", [True, False])
def test_cheap_factorisation_equals_eigh_on_all_golden_scales(golden, center):
    """The Cholesky certificate gives the kernel of the eigendecomposition to 1e-8, and its rank."""
    cheap = 0
    for task in golden.values():
        Z = np.vstack([task["Xtrain"], task["Xtest"]])
        for case in range(1, 8):
            R = np.ascontiguousarray(task[f"case{case}_R"])
            for scale, rank in zip(SCALES, task[f"case{case}_rank"], strict=True):
                k = rk.RBF(scale=scale).fit(R)
                whitening, factor = Whitening(k(R), center, 1e-6), factorise(k(R), center, 1e-6)
                ours = whitening.features(k(Z, R))
                theirs = features(factor, k(Z, R))
                np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, rtol=0, atol=1e-8)
                assert whitening.rank == factor.eigenvalues.size
                assert not center or whitening.rank == rank
                cheap += whitening.whole
    assert cheap > 40  # about half of the grid is certified by Cholesky


@pytest.mark.parametrize(
    ("m", "scale", "below"),
    [
        (60, 1.0, (0, 0)),
        (300, 1.0, (0, 0.05)),
        (60, 10.0, (0.05, 0.25)),
        (60, 100.0, (0.25, 1)),
        (300, 100.0, (0.5, 1)),
    ],
    ids=["whole", "a few below", "more below", "a few above", "low rank"],
)
def test_every_factorisation_gives_the_inner_products_of_the_map(m, scale, below):
    """Whole, or with the directions above the floor: features, inner products with the first references and of these with each other are
    those of eigh, to the rounding that eigenvalues down to 1e-6 magnify."""
    rng = np.random.default_rng(0)
    R, Z = rng.normal(size=(m, 6)), rng.normal(size=(25, 6))
    k = rk.RBF(scale=scale).fit(R)
    whitening, factor = Whitening(k(R), True, 1e-6, first=20), factorise(k(R), True, 1e-6)
    assert below[0] * m <= m - 1 - whitening.rank <= below[1] * m
    ours, theirs = whitening.features(k(Z, R)), features(factor, k(Z, R))
    first = features(factor, k(R[:20], R))
    K_first, diag = whitening.with_first(k(Z, R))
    for found, expected in (
        (ours @ ours.T, theirs @ theirs.T),
        (whitening.K_first, first @ first.T),
        (K_first, theirs @ first.T),
        (diag, np.sum(theirs**2, axis=1)),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_a_floor_within_rounding_leaves_no_cholesky_factor(seed):
    """Where eigenvalues that cannot be told from 0 reach the floor, the eigenvectors are used: nothing is lost of the kernel."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(60, 60)))[0]
    K = (Q * np.r_[np.linspace(1, 2, 50), np.zeros(10)]) @ Q.T
    Phi = Whitening(0.5 * (K + K.T), False, 0.0).features(K)
    np.testing.assert_allclose(Phi @ Phi.T, K, rtol=0, atol=1e-12)  # a hundred times the rounding of 60 terms near 1


@pytest.mark.parametrize("center", [True, False])
def test_references_that_repeat_change_no_inner_product_but_their_weight(center):
    """References that occur two and three times, also among the first: the inner products and the rank are those of the map."""
    rng = np.random.default_rng(0)
    R, Z = rng.normal(size=(40, 6)), rng.normal(size=(15, 6))
    R = R[np.r_[7, 7, 3, 20, :40]]
    k = rk.RBF(scale=0.5).fit(R)
    whitening, factor = Whitening(k(R), center, 1e-6, 8), factorise(k(R), center, 1e-6)
    assert whitening.rank == factor.eigenvalues.size == 40 - center
    Phi_Z, Phi_first = (features(factor, k(A, R)) for A in (Z, R[:8]))
    K_first, diag = whitening.with_first(k(Z, R))
    for found, expected in (
        (K_first, Phi_Z @ Phi_first.T),
        (diag, np.sum(Phi_Z**2, axis=1)),
        (whitening.K_first, Phi_first @ Phi_first.T),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)  # rounding, times the whitening of eigenvalues down to 1e-6


@pytest.mark.parametrize("references", [None, "training", "case2", "case5"])
@pytest.mark.parametrize("classifier", [rk.SVDD, rk.OneClassSVM])
def test_rows_that_repeat_are_searched_as_by_scikit_learn(references, classifier):
    """With two thirds of all targets repeated: GridSearchCV's answers."""
    rng = np.random.default_rng(3)
    X = np.vstack([np.repeat(rng.normal(size=(20, 3)), 3, axis=0), rng.normal(scale=2.5, size=(25, 3))])
    y = np.repeat([1, -1], [60, 25])
    kernel = rk.RBF(1.0) if references is None else rk.ReferenceKernel(references=references, random_state=0)
    name = "kernel__scale" if references is None else "kernel__kernel__scale"
    assert_same_search(classifier(kernel), {name: [0.3, 1.0, 30.0], "nu": [0.1, 0.3, 0.7]}, X, y)


@pytest.mark.parametrize("splits", [list, np.array, lambda rows: np.isin(np.arange(85), rows)], ids=["lists", "arrays", "masks"])
def test_repeated_rows_and_splits_of_every_kind(splits):
    """Row numbers as lists and arrays, and masks: the same folds, and the shared work that makes a search fast."""
    rng = np.random.default_rng(3)
    X = np.vstack([np.repeat(rng.normal(size=(20, 3)), 3, axis=0), rng.normal(scale=2.5, size=(25, 3))])
    y, cv = (
        np.repeat([1, -1], [60, 25]),
        [(np.flatnonzero(np.arange(85) % 3 != k), np.flatnonzero(np.arange(85) % 3 == k)) for k in range(3)],
    )
    found = [
        rk.OneClassGridSearch(rk.SVDD(rk.RBF(1.0)), {"nu": [0.1, 0.3]}, cv=given, error_score="raise").fit(X, y)
        for given in (cv, [(splits(train), splits(test)) for train, test in cv])
    ]
    np.testing.assert_array_equal(*(search.cv_results_["mean_test_score"] for search in found))


@pytest.mark.parametrize("floor", [0, 1, np.float32(1e-6), np.int64(1)])
def test_a_floor_may_be_any_number(floor):
    """Compiled code meets a float, whatever the user wrote."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    K = rk.RBF(scale=1.0).fit(X)(X)
    assert Whitening(K, np.True_, floor).rank == Whitening(K, True, float(floor)).rank


def test_no_test_samples_are_no_error(capfd):
    """LAPACK would complain about arrays of no size."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert Samples(TrainingRows.of(X), X[:0], rk.ReferenceKernel()).grams([rk.RBF(scale=0.1)]).K_test.shape == (1, 0, 30)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("center", [True, False])
def test_factorisations_do_not_depend_on_the_order_in_memory(center):
    """A user's function may return a transposed matrix: the floor cuts the same eigenvalues."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    K = rk.RBF(scale=1.0).fit(X)(X)
    J = np.eye(30) - center / 30
    floor = np.sqrt(np.prod(np.linalg.eigvalsh(J @ K @ J)[14:16]))  # between two eigenvalues
    by_rows, by_columns = (Whitening(A, center, floor) for A in (K, np.asfortranarray(K)))
    assert by_rows.rank == by_columns.rank == factorise(K, center, floor).eigenvalues.size < 29
    np.testing.assert_array_equal(by_rows.features(K), by_columns.features(K))


@pytest.mark.parametrize("center", [True, False])
def test_kernels_that_overflow_in_sum_only_are_refused(center):
    """Each value and each mean is finite, but not their sum: the scale of the factorisation would be infinite."""
    K = np.diag(np.full(40, 1e307))
    with pytest.raises(ValueError, match="overflows"):
        Whitening(K, center, 1e-6)


def test_factorisations_are_told_apart_by_kernel(data):
    """Kernels that come and go, and may get each other's place in memory, never get each other's factorisation."""
    X, y = data
    rows = TrainingRows(X, np.flatnonzero(y == 1), np.flatnonzero(y == -1))
    samples = Samples(rows, X[:5], rk.ReferenceKernel(references="case5"))
    for scale in 4 * SCALES:
        model = quietly(rk.SVDD(rk.ReferenceKernel(rk.RBF(scale=scale), references="case5")).fit, X, y)
        expected = model.kernel_(X[y == 1])
        np.testing.assert_allclose(samples.grams([rk.RBF(scale=scale)]).K[0], expected, rtol=0, atol=1e-8)


class Overlap(rk.kernels.Kernel):
    """How many features agree: a kernel whose matrix holds integers."""

    def __call__(self, X, Z=None):
        return (X[:, None] == (X if Z is None else Z)[None]).sum(axis=2)

    def diag(self, X):
        return np.full(len(X), X.shape[1])


class InFloats(Overlap):
    """The same in floats."""

    def __call__(self, X, Z=None):
        return super().__call__(X, Z).astype(float)


def test_kernel_matrices_of_integers_are_factorised_as_numbers():
    """The map, the search's factorisation, and both again in floats agree."""
    X = np.random.default_rng(0).integers(0, 3, size=(30, 5)).astype(float)
    maps = [rk.ReferenceMap(kernel).fit(X) for kernel in (Overlap(), InFloats())]
    assert maps[0].rank_ == maps[1].rank_ == Whitening(Overlap()(X), True, 1e-6).rank
    np.testing.assert_array_equal(maps[0].transform(X), maps[1].transform(X))


@pytest.mark.parametrize("m", [30, 300], ids=["Cholesky", "low rank"])
@pytest.mark.parametrize("size", [1e-14, 1.0, 1e14])
def test_factorisations_do_not_depend_on_the_kernels_unit(size, m):
    """A kernel and a floor that are many times smaller or larger give the same inner products, in their unit."""
    rng = np.random.default_rng(0)
    R, Z = rng.normal(size=(m, 4)), rng.normal(size=(10, 4))
    k = rk.RBF(sigma=2.0 if m == 30 else 20.0)
    expected = Whitening(k(R), True, 1e-6)
    assert expected.whole == (m == 30)
    found = Whitening(size * k(R), True, size * 1e-6)
    assert found.rank == expected.rank
    Phi, unit = found.features(size * k(Z, R)), expected.features(k(Z, R))
    np.testing.assert_allclose(Phi @ Phi.T / size, unit @ unit.T, rtol=0, atol=1e-8)


def test_a_tiny_floor_keeps_tiny_directions():
    """Two directions above a floor that is far below rounding of 1."""
    X = np.random.default_rng(0).normal(size=(300, 2)) * [4e-6, 1e-7]
    assert Whitening(X @ X.T, True, 1e-15).rank == factorise(X @ X.T, True, 1e-15).eigenvalues.size == 2


def test_references_of_other_shapes_and_the_same_numbers_are_told_apart():
    """Draws of n × 2 and n/2 × 4 from one seed have the same bytes."""
    grid = {"pca__n_components": [2, 4], "svdd__kernel__references": ["case2", "case4"], "svdd__nu": [0.1]}
    X, y = np.random.default_rng(0).normal(size=(55, 4)), np.r_[np.ones(40), -np.ones(15)]
    estimator = make_pipeline(PCA(), rk.SVDD(rk.ReferenceKernel(random_state=0)))
    assert_same_search(estimator, grid, X, y)


@pytest.mark.parametrize(
    "estimator",
    [
        rk.SVDD(rk.ReferenceKernel(eigenvalue_floor=-1)),
        rk.SVDD(rk.ReferenceKernel(eigenvalue_floor="a")),
        rk.SVDD(rk.RBF(scale=0)),
        rk.SVDD(rk.RBF(scale="a")),
        rk.SVDD(rk.RBF(fit_on="nothing")),
        rk.SVDD(tol=-1),
        rk.OneClassSVM(max_iter=2.5),
        rk.OneClassSVM(cache_size=-1),
        rk.SVDD(rk.ReferenceKernel(rk.RBF(sigma=1e-3), references=np.full((4, 5), 1e3), center=False)),
    ],
    ids=lambda estimator: str(estimator).split("(", 1)[1][:40],
)
def test_what_a_fit_refuses_the_search_refuses(estimator, data):
    """With the same words."""
    X, y = data
    X = np.hstack([X, X])[:, :5]
    with pytest.raises(ValueError) as refused:
        estimator.fit(X, y)
    with pytest.raises(ValueError) as refused_too:
        rk.OneClassGridSearch(estimator, {"nu": [0.1, 0.3]}, cv=3, refit=False, error_score="raise").fit(X, y)
    assert str(refused_too.value) == str(refused.value)


@pytest.mark.parametrize("unit", [1e-170, 1e-155, 1e154, 1e170])
def test_samples_of_any_size_are_searched(unit, data):
    """Where squares of samples overflow or vanish, as GridSearchCV."""
    X, y = data
    assert_same_search(rk.SVDD(rk.RBF(1.0)), {"kernel__scale": [1.0, 10.0], "nu": [0.1, 0.3]}, unit * X, y)


def test_blas_is_limited_before_any_thread_begins_and_freed_after_all(data, monkeypatch):
    """Threads that limit it on their own restore each other's limits in any order; what they find and leave is the search's."""
    X, y = data
    met = []

    def limits():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    def watched(**options):
        met.append(limits())
        return Parallel(**options)

    monkeypatch.setattr("refkernel._core.threads.Parallel", watched)
    with threadpool_limits(2, user_api="blas"), parallel_config("threading"):
        rk.OneClassGridSearch(rk.SVDD(), {"nu": [0.1]}, cv=3, refit=False, n_jobs=3).fit(X, y)
        met.append(limits())
    assert met == [{1}, {2}]


def test_indefinite_kernels_factorise_as_eigh_does():
    """The rank is the number of eigenvalues above the floor."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        R = rng.normal(size=(11, 2))
        k = rk.kernels.Sigmoid().fit(R)
        factor = quietly(factorise, k(R), True, 1e-6)
        assert Whitening(k(R), True, 1e-6).rank == factor.eigenvalues.size


def test_references_that_are_all_equal_are_refused(data):
    """One distinct reference has no direction left after centring; the search says so, as a fit does."""
    X, y = data
    estimator = rk.SVDD(rk.ReferenceKernel(references=np.ones((5, X.shape[1]))))
    with pytest.raises(ValueError, match="No eigenvalue"):
        estimator.fit(X[y == 1])
    with pytest.raises(ValueError, match="No eigenvalue"):
        rk.OneClassGridSearch(estimator, {"nu": [0.1, 0.3]}, cv=3, refit=False).fit(X, y)


def test_reference_kernels_of_every_kind_are_searched_as_by_grid_search(data):
    """NPT, which has no random_state; a RandomState instance; a seed that only the classifier has; sparse references."""
    X, y = data
    cv = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    sparse = rk.references.Given(sp.csr_array(np.eye(X.shape[1])))
    for estimator in (
        rk.SVDD(rk.NPT()),
        rk.SVDD(rk.ReferenceKernel(references="case4", random_state=np.random.RandomState(0))),
        rk.SVDD(rk.ReferenceKernel(references="case4"), random_state=3),
        rk.SVDD(rk.ReferenceKernel("laplacian", references=rk.references.Training() + sparse)),
        rk.SVDD(rk.ReferenceKernel(references=rk.references.Training() + sparse)),
    ):
        ours, theirs = (
            quietly(search(estimator, {"nu": [0.1, 0.3]}, scoring=gmean_scorer, cv=cv).fit, X, y)
            for search in (rk.OneClassGridSearch, GridSearchCV)
        )
        np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_kernel_matrices_are_cut_by_rows_and_columns(data):
    """kernel="precomputed", as GridSearchCV does it."""
    X, y = data
    K, grid = rk.RBF(1.0).fit(X)(X), {"nu": [0.1, 0.3]}
    ours, theirs = (
        search(rk.OneClassSVM("precomputed"), grid, scoring=gmean_scorer, cv=StratifiedKFold(3)).fit(K, y)
        for search in (rk.OneClassGridSearch, GridSearchCV)
    )
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])


def test_nan_is_refused_by_the_search_and_by_the_paths(data):
    """The shared work sees what each fit would have refused."""
    X, y = data
    X = X.copy()
    X[3, 0] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        rk.OneClassGridSearch(rk.OneClassSVM(rk.RBF(sigma=1.0)), {"nu": [0.1, 0.3]}, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="overflows or is NaN"):
        decision_paths(np.full((4, 4), np.nan), [Formulation("svdd", [0.5])], np.ones((1, 4)), np.ones(1))


def quietly(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


def test_decision_paths_equal_the_estimators(data):
    """The layer below the estimators gives their decision values, for several formulations on one matrix, in any order of values."""
    X, y = data
    X, T = X[y == 1], X[y == -1]
    k = rk.RBF(scale=2.0).fit(X)
    values = [0.5, 0.1, 0.3]
    formulations = [Formulation("svdd", values), Formulation("svdd", values, "C"), Formulation("ocsvm", values)]
    models = [
        [rk.SVDD(k, nu=v) for v in values],
        [rk.SVDD(k, C=v) for v in values],
        [rk.OneClassSVM(k, nu=v) for v in values],
    ]
    for found, row in zip(decision_paths(k(X), formulations, k(T, X), k.diag(T)), models, strict=True):
        # optima agree to the solver's tolerance, which Newton steps make much smaller than tol = 1e-6
        np.testing.assert_allclose(found, [m.fit(X).decision_function(T) for m in row], rtol=0, atol=1e-9)


def test_decision_paths_of_a_stack_are_those_of_its_matrices(data):
    """Several kernels at once give, to the last bit, what each gives alone."""
    X, y = data
    X, T = X[y == 1], X[y == -1]
    kernels = [rk.RBF(scale=scale).fit(X) for scale in SCALES]
    formulations = [Formulation("svdd", [0.1, 0.4]), Formulation("ocsvm", [0.5, 0.2], stopping="libsvm", tol=1e-3)]
    alone = [decision_paths(k(X), formulations, k(T, X), k.diag(T)) for k in kernels]
    K, K_test, diag = (np.stack(parts) for parts in zip(*[(k(X), k(T, X), k.diag(T)) for k in kernels], strict=True))
    for number, found in enumerate(decision_paths(K, formulations, K_test, diag)):
        np.testing.assert_array_equal(found, [parts[number] for parts in alone])


def test_a_search_in_small_stacks_is_the_same(data, monkeypatch):
    """How many kernel matrices are held at a time changes nothing."""
    X, y = data
    search = rk.OneClassGridSearch(
        rk.SVDD(), [{"kernel__scale": SCALES, "nu": VALUES}, {"kernel__scale": [2.0], "nu": [0.3]}], random_state=0
    )
    expected = search.fit(X, y).cv_results_["mean_test_score"]
    monkeypatch.setattr("refkernel.model_selection.engine.STACK_ENTRIES", 1)
    np.testing.assert_array_equal(clone(search).fit(X, y).cv_results_["mean_test_score"], expected)


def test_a_search_warns_where_fits_do_not_finish(data):
    """max_iter is heard in a search as it is in a fit."""
    X, y = data
    with pytest.warns(ConvergenceWarning, match="2 as 'not converged'"):
        rk.OneClassGridSearch(rk.OneClassSVM(rk.RBF(1.0), max_iter=1), {"nu": [0.3, 0.5]}, refit=False).fit(X, y)


@pytest.mark.parametrize("change", [{"stopping": "soon"}, {"classifier": "svm"}, {"parameter": "gamma"}])
def test_formulations_refuse_what_they_do_not_know(change):
    with pytest.raises(ValueError, match="must be one of"):
        Formulation(**{"classifier": "svdd", "values": [0.1], **change})


def test_results_do_not_depend_on_jobs_or_backend(data):
    """One process, two processes and two threads: bit-equal scores."""
    X, y = data
    search = rk.OneClassGridSearch(
        make_pipeline(rk.TargetScaler(), rk.SVDD(rk.ReferenceKernel(references="case2"))),
        {"svdd__kernel__references": ["case2", "case7"], "svdd__kernel__kernel__scale": SCALES, "svdd__nu": VALUES},
        random_state=0,
    )
    expected = search.fit(X, y).cv_results_
    runs = [clone(search).set_params(n_jobs=2).fit(X, y)]
    with parallel_config(backend="threading"):
        runs.append(clone(search).set_params(n_jobs=2).fit(X, y))
    for run in runs:
        for fold in range(5):
            np.testing.assert_array_equal(run.cv_results_[f"split{fold}_test_score"], expected[f"split{fold}_test_score"])


def test_random_state_makes_the_search_repeatable(data):
    """An int decides folds and references; another int gives others."""
    X, y = data
    search = rk.OneClassGridSearch(rk.SVDD(rk.ReferenceKernel(references="case2")), {"nu": VALUES}, random_state=0)
    first, again, other = search.fit(X, y), clone(search).fit(X, y), clone(search).set_params(random_state=1).fit(X, y)
    np.testing.assert_array_equal(first.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"])
    assert not np.array_equal(first.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(first.decision_function(X), again.decision_function(X))


def test_search_behaves_like_its_best_estimator(data):
    """predict, decision_function, score_samples and score go through the refitted best; refit may be False or a callable."""
    X, y = data
    search = rk.OneClassGridSearch(rk.SVDD(rk.RBF(1.0)), {"nu": VALUES}, random_state=0).fit(X, y)
    for method in ("predict", "decision_function", "score_samples"):
        np.testing.assert_array_equal(getattr(search, method)(X), getattr(search.best_estimator_, method)(X))
    assert search.score(X, y) == rk.metrics.gmean_score(y, search.predict(X))
    assert search.n_splits_ == 5
    assert pd.DataFrame(search.cv_results_).shape[0] == len(VALUES)
    chosen = rk.OneClassGridSearch(rk.SVDD(), {"nu": VALUES}, refit=lambda results: 2, random_state=0).fit(X, y)
    assert chosen.best_params_ == {"nu": VALUES[2]} == {"nu": chosen.best_estimator_.nu}
    unfitted = rk.OneClassGridSearch(rk.SVDD(), {"nu": VALUES}, refit=False, random_state=0).fit(X, y)
    assert not hasattr(unfitted, "best_estimator_")


def test_data_without_outliers_is_refused_where_the_scoring_needs_them(data):
    """gmean without outliers has no meaning; a scorer that needs targets only works."""
    X, y = data
    for labels in (None, np.ones(len(y))):
        with pytest.raises(ValueError, match=r"needs known outliers.*y to fit with -1"):
            rk.OneClassGridSearch(rk.SVDD(), {"nu": VALUES}, scoring="gmean").fit(X, labels)
    accepted = rk.OneClassGridSearch(rk.SVDD(), {"nu": VALUES}, scoring=lambda m, X, y: (m.predict(X) == 1).mean(), random_state=0)
    assert accepted.fit(X[y == 1]).best_score_ > 0.6


def test_folds_that_lack_a_kind_are_named_and_left_out_of_the_means(data):
    """A test fold without outliers is neither a silent 0 nor a silent NaN."""
    X, y = data
    order = np.argsort(-y, kind="stable")
    X, y = X[order], y[order]
    with pytest.warns(UndefinedMetricWarning, match=r"Test folds \[0, 1"):
        search = rk.OneClassGridSearch(rk.SVDD(), {"nu": VALUES}, cv=KFold(4)).fit(X, y)
    assert np.isnan(search.cv_results_["split0_test_score"]).all()
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    with pytest.raises(ValueError, match="No test fold holds both"):
        rk.OneClassGridSearch(rk.SVDD(), {"nu": VALUES}, cv=[(np.arange(40), np.arange(5))]).fit(X, y)


def test_times_are_means_over_all_folds_and_scores_over_those_that_can_be_scored():
    """A fold that cannot be scored was fitted all the same."""
    rows = [[Rows([0], np.array([score]), seconds, 2.0 * seconds, [()])] for score, seconds in ((0.5, 1.0), (0.9, 2.0), (0.7, 6.0))]
    results = _tabulate([{"nu": 0.1}], rows, undefined=[1], made_up=False)
    assert results["mean_fit_time"] == [3.0]
    assert results["mean_score_time"] == [6.0]
    assert results["mean_test_score"] == pytest.approx([0.6])
    assert results["std_test_score"] == pytest.approx([0.1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"param_grid": {"nu": [0.1, 2.0]}}, r"nu=2\.0 must be in \(0, 1\]"),
        ({"param_grid": {"C": [0.001]}}, "leaves the dual infeasible"),
        ({"param_grid": {"width": [1.0]}}, "Invalid parameter"),
        ({"scoring": "gmeen"}, "gmeen"),
        ({"scoring": 3}, "must be one of"),
    ],
)
def test_bad_settings_are_refused_clearly(data, change, message):
    """A value outside its range, an unknown parameter or scoring: named in the error."""
    settings = {"param_grid": {"nu": [0.1]}, **change}
    with pytest.raises(ValueError, match=message):
        rk.OneClassGridSearch(rk.SVDD(), error_score="raise", **settings).fit(*data)


def test_a_parameter_that_the_classifier_lacks_is_refused(data):
    """A one-class SVM has no C: as GridSearchCV does, the search says so before it scores anything, not only when it refits."""
    for estimator, name in ((rk.OneClassSVM(), "C"), (make_pipeline(rk.OneClassSVM()), "oneclasssvm__C")):
        with pytest.raises(ValueError, match="Invalid parameter 'C'"):
            rk.OneClassGridSearch(estimator, {name: [0.1, 0.2]}, refit=False).fit(*data)


def test_tpr_at_tnr_agrees_with_a_naive_threshold_search():
    """The largest TPR over all thresholds that reject at least the asked share of outliers."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, score = rng.choice([-1, 1], 30), rng.normal(size=30).round(1)
        thresholds = [t for t in score if (score[y == -1] <= t).mean() >= 0.8]
        naive = max((score[y == 1] > t).mean() for t in thresholds)
        assert tpr_at_tnr_score(y, score, tnr=0.8) == pytest.approx(naive)


INTERRUPTED = """
import pathlib, signal, sys
import numpy as np, refkernel as rk
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit it as ignored
rng = np.random.default_rng(0)
X = np.vstack([rng.normal(size=(600, 5)), rng.normal(scale=3, size=(100, 5))])
y = np.r_[np.ones(600), -np.ones(100)]
grid = {"kernel__kernel__scale": np.geomspace(0.1, 100, 400), "nu": np.linspace(0.05, 0.6, 10)}
working = pathlib.Path(sys.argv[1])
def score(model, X, y):
    working.touch()
    return 0.5
rk.OneClassGridSearch(rk.SVDD(rk.ReferenceKernel(references="case2", random_state=0)), grid, scoring=score, n_jobs=2).fit(X, y)
"""


def test_interrupting_leaves_no_workers_behind(tmp_path):
    """Ctrl-C ends the search and its worker processes."""
    working = tmp_path / "working"
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(working)], stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and not working.exists():
        time.sleep(0.05)
    assert process.poll() is None, "the search ended before a worker had scored anything"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) != 0
    deadline = time.monotonic() + 20
    while _group_is_alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not _group_is_alive(process.pid)


def _group_is_alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


MADE_UP = 50
"""How many outliers a fold of at most 50 training targets makes up: all rows of a source with as many."""


def _naive_label_free(estimator, grid, X, y, cv, made_up):
    """Fold scores, accepted normals and rejected made-up outliers (3 × folds × candidates) of one fit at a time."""
    labels = np.ones(len(X)) if y is None else y
    rows = []
    for train, test in cv:
        of_fold = []
        for params in ParameterGrid(grid):
            model = clone(estimator).set_params(**{name: clone(value, safe=False) for name, value in params.items()})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(_take(X, train), None if y is None else y[train])
            held, made = model.decision_function(_take(X, test)), model.decision_function(made_up)
            truth, decisions = np.r_[labels[test], -np.ones(len(made_up))], np.r_[held, made]
            score = 0.5 * (roc_auc_score(truth, decisions) + rk.metrics.gmean_score(truth, np.where(decisions >= 0, 1, -1)))
            of_fold.append((score, np.mean(held[labels[test] == 1] >= 0), np.mean(made < 0)))
        rows.append(of_fold)
    return np.moveaxis(np.array(rows), 2, 0)


def _take(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


@pytest.mark.parametrize("known", [False, True], ids=["no outlier known", "some known"])
@pytest.mark.parametrize("frame", [False, True], ids=["array", "frame"])
def test_label_free_search_equals_a_naive_loop(data, known, frame):
    """Shared candidates, pipelines and candidates alone score held-out targets against made-up outliers as single fits do."""
    X, rows = np.unique(data[0], axis=0, return_index=True)  # a test row that equals a support vector has a decision of 0, of either sign
    y = data[1][rows]
    X, y = (X, y) if known else (X[y == 1], None)
    made_up = np.random.default_rng(5).normal(scale=2.0, size=(MADE_UP, 3))
    if frame:
        X, made_up = (pd.DataFrame(rows, columns=["a", "b", "c"]) for rows in (X, made_up))
    cv = list(KFold(4, shuffle=True, random_state=1).split(X))
    estimator = make_pipeline(rk.TargetScaler(), rk.SVDD(rk.RBF(1.0)))
    grid = [
        {"svdd__kernel__scale": [0.5, 2.0], "svdd__nu": [0.1, 0.3]},
        {"svdd__kernel": [rk.ReferenceKernel(references="case2", random_state=0)], "svdd__nu": [0.1, 0.3]},
        {"svdd": [IsolationForest(n_estimators=20, random_state=0), rk.SVDD(rk.RBF(1.0), threshold="loo")]},
    ]
    search = rk.OneClassGridSearch(estimator, grid, cv=cv, scoring="label_free", pseudo_outliers=made_up, random_state=0, refit=False)
    quietly(search.fit, X, y)
    scores, accepted, rejected = _naive_label_free(estimator, grid, X, y, cv, made_up)
    found = search.cv_results_
    np.testing.assert_allclose([found[f"split{fold}_test_score"] for fold in range(4)], scores, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["mean_test_score"], scores.mean(axis=0), rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["mean_accepted_normals"], accepted.mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["mean_rejected_made_up"], rejected.mean(axis=0), rtol=0, atol=1e-12)


def test_outliers_are_made_up_once_for_each_fold_from_its_training_targets(data):
    """Neither test rows nor known outliers leak into them, nor does the number of candidates or workers matter."""
    X, y = data
    cv = list(KFold(3, shuffle=True, random_state=0).split(X))

    asked = []

    class Recorded(rk.pseudo_outliers.Box):
        """Keeps what it was asked."""

        def draw(self, X, n, random_state=None):
            asked.append((X, n))
            return super().draw(X, n, random_state)

    options = {"cv": cv, "scoring": "label_free", "pseudo_outliers": Recorded(), "random_state": 0}
    first = rk.OneClassGridSearch(rk.SVDD(rk.RBF(1.0)), {"nu": VALUES}, **options).fit(X, y)
    assert len(asked) == 3
    for (train, _), (rows, n) in zip(cv, asked, strict=True):
        np.testing.assert_array_equal(rows, X[train][y[train] == 1])
        assert n == 50
    again = rk.OneClassGridSearch(rk.SVDD(rk.RBF(1.0)), {"nu": VALUES[::-1]}, n_jobs=2, **options).fit(X, y)
    for name in ("mean_test_score", "mean_accepted_normals", "mean_rejected_made_up"):
        np.testing.assert_array_equal(first.cv_results_[name], again.cv_results_[name][::-1])


def test_the_scoring_follows_the_labels(data):
    """By default: gmean where y holds outliers, made-up outliers where it holds none; the refit sees the given rows only."""
    X, y = data
    grid = {"kernel__scale": [0.5, 2.0], "nu": [0.1, 0.3]}
    search = rk.OneClassGridSearch(rk.SVDD(rk.RBF(1.0)), grid, random_state=0)
    labelled, asked = search.fit(X, y).cv_results_, clone(search).set_params(scoring="gmean").fit(X, y).cv_results_
    np.testing.assert_array_equal(labelled["mean_test_score"], asked["mean_test_score"])
    assert "mean_rejected_made_up" not in labelled
    targets = X[y == 1]
    for labels in (None, np.ones(len(targets))):
        search.fit(targets, labels)
        assert np.isfinite(search.cv_results_["mean_rejected_made_up"]).all()
        alone = rk.SVDD(rk.RBF(1.0)).set_params(**search.best_params_).fit(targets)
        np.testing.assert_array_equal(search.decision_function(X), alone.decision_function(X))
    assert 0.5 < search.score(X, y) <= 1.0
    with pytest.raises(ValueError, match="pass y to score with -1"):
        search.score(targets)


def test_label_free_search_takes_tables_with_categories():
    """Outliers are made up before preprocessing: encoders see columns of the kinds they were fitted on."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=60), "kind": pd.Categorical(rng.choice(["a", "b"], 60)), "name": rng.choice(["x", "y"], 60)})
    encoder = ColumnTransformer([("numbers", StandardScaler(), ["size"]), ("kinds", OneHotEncoder(sparse_output=False), ["kind", "name"])])
    search = rk.OneClassGridSearch(make_pipeline(encoder, rk.SVDD(rk.RBF(1.0))), {"svdd__nu": [0.1, 0.3]}, cv=3, random_state=0).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_weights_are_cut_to_the_fold_with_made_up_outliers_too(data):
    """Made-up rows have no weight; the given rows keep theirs."""
    X = data[0][data[1] == 1]
    weight = np.random.default_rng(0).uniform(0.5, 1.0, len(X))
    options = {"random_state": 0, "cv": 3, "error_score": "raise"}
    weighted = rk.OneClassGridSearch(rk.SVDD(rk.RBF(1.0)), {"nu": [0.2, 0.4]}, **options).fit(X, sample_weight=weight)
    equal = rk.OneClassGridSearch(rk.SVDD(rk.RBF(1.0)), {"nu": [0.2, 0.4]}, **options).fit(X)
    assert not np.allclose(weighted.cv_results_["mean_test_score"], equal.cv_results_["mean_test_score"])


def test_what_outliers_cannot_be_made_up_from_is_said(data):
    """Sparse samples, kernel values, an unknown source, labels that mark nothing."""
    X, y = data
    targets, grid = X[y == 1], {"nu": [0.1, 0.3]}
    with pytest.raises(ValueError, match=r"X is sparse: pass X.toarray\(\)"):
        rk.OneClassGridSearch(rk.SVDD(), grid).fit(sp.csr_array(targets))
    with pytest.raises(ValueError, match="X holds kernel values"):
        rk.OneClassGridSearch(rk.SVDD("precomputed"), grid).fit(targets @ targets.T)
    with pytest.raises(ValueError, match="pseudo_outliers='boxes' is not known"):
        rk.OneClassGridSearch(rk.SVDD(), grid, pseudo_outliers="boxes").fit(targets)
    with pytest.raises(ValueError, match="y holds 0 and 1, and neither is -1"):
        rk.OneClassGridSearch(rk.SVDD(), grid).fit(X, np.r_[np.zeros(2, int), np.ones(len(X) - 2, int)])


@pytest.mark.parametrize("seed", range(4))
def test_folds_by_kind_are_those_of_a_stratified_k_fold(seed):
    """An int cv gives scikit-learn's shuffled stratified folds of targets and outliers, whichever comes first."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1, -1], [rng.integers(20, 60), rng.integers(7, 30)]))
    X = rng.normal(size=(y.size, 2)) * np.where(y == 1, 1.0, 3.0)[:, None]
    drawn = np.random.RandomState(seed).randint(np.iinfo(np.int32).max)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=drawn).split(X, y == -1))
    search = rk.OneClassGridSearch(rk.SVDD(rk.RBF(1.0)), {"nu": [0.1, 0.5]}, random_state=seed, refit=False)
    ours, theirs = (clone(search).set_params(cv=cv).fit(X, y).cv_results_ for cv in (5, folds))
    for fold in range(5):
        np.testing.assert_array_equal(ours[f"split{fold}_test_score"], theirs[f"split{fold}_test_score"])
