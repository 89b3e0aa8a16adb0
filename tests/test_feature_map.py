"""The generalized reference map and kernel: the equations, bounded memory, and life inside scikit-learn."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import refkernel as rk
from refkernel._core import blocks as _blocks
from refkernel.kernels import RBF, Laplacian, Linear, Pairwise, Polynomial, Sigmoid

KERNELS = [RBF(1.0), RBF(scale=0.1), RBF(sigma=2.0), Laplacian(), Linear(), Polynomial(2), Pairwise("cosine")]

every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
every_seed = pytest.mark.parametrize("seed", [0, 1, 2])


def naive_reference_kernel(k, R, X, Z, center, floor):
    """Kc_RX' pinv(Kc_RR) Kc_RZ as the article writes it, eigenvalues below the floor dropped; and the rank."""
    m = len(R)
    J = np.eye(m) - np.ones((m, m)) / m if center else np.eye(m)
    K_RR, K_RX, K_RZ = k(R, R), k(R, X), k(R, Z)
    mu = K_RR.mean(axis=1, keepdims=True) if center else np.zeros((m, 1))
    lam, U = np.linalg.eigh(J @ K_RR @ J)
    pinv = sum((np.outer(u, u) / value for value, u in zip(lam, U.T, strict=True) if value >= floor), np.zeros((m, m)))
    return (J @ (K_RX - mu)).T @ pinv @ (J @ (K_RZ - mu)), int((lam >= floor).sum())


@every_kernel
@every_seed
@pytest.mark.parametrize("center", [True, False])
def test_map_and_kernel_follow_the_equations(kernel, seed, center, samples):
    """Inner products of the map, the kernel, its diagonal and the rank are those of the article's formula with pinv."""
    X, Z, R = samples(15, 3, seed), samples(6, 3, seed + 50), samples(9, 3, seed + 100)
    fitted = rk.ReferenceMap(kernel, references=R, center=center).fit(X)
    expected, rank = naive_reference_kernel(kernel.fit(R), R, X, Z, center, 1e-6)
    tolerance = {"rtol": 1e-8, "atol": 1e-8 * np.abs(expected).max()}  # eigenvalues down to 1e-6 magnify rounding by up to 1e6
    np.testing.assert_allclose(fitted.transform(X) @ fitted.transform(Z).T, expected, **tolerance)
    np.testing.assert_allclose(fitted.kernel_matrix(X, Z), expected, **tolerance)
    assert fitted.rank_ == rank == fitted.eigenvalues_.size == fitted.transform(X).shape[1]
    K = rk.ReferenceKernel(kernel, references=R, center=center).fit(X)
    np.testing.assert_allclose(K(X, Z), expected, **tolerance)
    np.testing.assert_allclose(K(X), K(X, X), **tolerance)
    np.testing.assert_allclose(K.diag(Z), np.diagonal(K(Z)), **tolerance)


@pytest.mark.parametrize("floor", [1e-10, 1e-3, 0.5])
def test_eigenvalue_floor_is_absolute(floor, samples):
    """Exactly the eigenvalues that reach the floor are kept, largest first."""
    X = samples(20, 2, 0)
    fitted = rk.ReferenceMap(eigenvalue_floor=floor).fit(X)
    K, J = RBF(1.0).fit(X)(X), np.eye(20) - 1 / 20
    lam = np.linalg.eigvalsh(J @ K @ J)
    np.testing.assert_allclose(fitted.eigenvalues_, lam[lam >= floor][::-1], rtol=1e-6, atol=1e-14)
    assert (np.diff(fitted.eigenvalues_) <= 0).all()


@every_kernel
@every_seed
def test_references_equal_to_the_data_give_the_centred_kernel(kernel, seed, samples):
    """With R = X and nothing truncated the reference kernel is J k(X, X) J itself; without centring it is k(X, X)."""
    X = samples(10, 12, seed)
    K, J = kernel.fit(X)(X), np.eye(10) - 1 / 10
    # what falls under the floor of 1e-9 is all that may be missing
    centred = rk.ReferenceKernel(kernel, eigenvalue_floor=1e-9).fit(X)(X)
    np.testing.assert_allclose(centred, J @ K @ J, rtol=0, atol=1e-8 * max(1, np.abs(K).max()))
    plain = rk.ReferenceKernel(kernel, eigenvalue_floor=1e-9, center=False).fit(X)(X)
    np.testing.assert_allclose(plain, K, rtol=0, atol=1e-8 * max(1, np.abs(K).max()))


@every_seed
def test_centred_features_of_the_references_have_mean_zero_and_the_eigenvalues_as_scatter(seed, samples):
    """Phi(R)' Phi(R) = diag(eigenvalues_), and Phi(R) sums to 0: whitened coordinates in the kernel's space."""
    X, R = samples(12, 3, seed), samples(8, 3, seed + 9)
    fitted = rk.ReferenceMap(references=R).fit(X)
    Phi = fitted.transform(R)
    np.testing.assert_allclose(Phi.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(Phi.T @ Phi, np.diag(fitted.eigenvalues_), atol=1e-9)


@every_seed
@pytest.mark.parametrize("center", [True, False])
def test_npt_is_the_map_of_case_1(seed, center, samples):
    """references="training", which NPT is an alias of, and "case1" are one map, also when known outliers are in X."""
    X, y = samples(20, 3, seed), np.where(np.arange(20) % 5 == 0, -1, 1)
    maps = [rk.NPT(center=center), rk.ReferenceMap(center=center), rk.ReferenceMap(references="case1", center=center, random_state=3)]
    products = [m.fit(X, y).kernel_matrix(X) for m in maps]
    np.testing.assert_array_equal(products[0], products[1])
    np.testing.assert_array_equal(products[0], products[2])
    np.testing.assert_array_equal(maps[0].reference_indices_, np.flatnonzero(y == 1))


@pytest.mark.parametrize("entries", [1, 60, 1000])
@pytest.mark.parametrize("n", [1, 2, 137])
def test_transform_does_not_depend_on_the_block_size(entries, n, samples, monkeypatch):
    """Blocks are an implementation detail: any size gives the features of one block."""
    fitted = rk.ReferenceMap(references=samples(20, 3, 1)).fit(samples(30, 3, 0))
    X = samples(n, 3, 2)
    whole = fitted.transform(X)
    monkeypatch.setattr(_blocks, "BLOCK_ENTRIES", entries)
    # rounding differs with the shape of the matrix product, and whitening magnifies it by at most 1e3
    np.testing.assert_allclose(fitted.transform(X), whole, rtol=0, atol=1e-11)


def test_memory_of_transform_is_bounded_by_output_and_a_block():
    """200,000 rows need their features and a few MB, not 200,000 × m kernel values."""
    rng = np.random.default_rng(0)
    n, m = 200_000, 50
    fitted = rk.ReferenceMap(references=rng.normal(size=(m, 3))).fit(rng.normal(size=(10, 3)))
    X = rng.normal(size=(n, 3))
    fitted.transform(X[:100])
    tracemalloc.start()
    Phi = fitted.transform(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert Phi.shape == (n, fitted.rank_)
    assert peak < Phi.nbytes + 8e6  # the kernel values alone would be 80 MB


def test_float32_in_gives_float32_out(samples):
    """float32 input is not widened for the user, and is accurate to its own precision; integers give float64."""
    X = samples(40, 3, 0)
    double = rk.ReferenceMap(references="case3", random_state=0).fit(X)
    Phi = double.transform(X)
    single = rk.ReferenceMap(references="case3", random_state=0).fit(X.astype(np.float32)).transform(X.astype(np.float32))
    assert double.transform(X.astype(np.float32)).dtype == single.dtype == np.float32
    # inputs are rounded by 6e-8, which the whitening magnifies by up to 1 / sqrt(smallest eigenvalue)
    np.testing.assert_allclose(double.transform(X.astype(np.float32)), Phi, rtol=0, atol=1e-6 / np.sqrt(double.eigenvalues_[-1]))
    np.testing.assert_allclose(single @ single.T, Phi @ Phi.T, rtol=0, atol=1e-4)
    assert double.transform(np.ones((2, 3), dtype=int)).dtype == np.float64


@pytest.mark.parametrize("references", ["training", "case3", "case5", "case6"])
def test_sparse_equals_dense(references, samples):
    """A sparse X gives the kernel of the same dense X, for references taken from it and generated ones."""
    X, y = samples(30, 4, 0), np.where(np.arange(30) % 4 == 0, -1, 1)
    X[np.abs(X) < 0.5] = 0.0
    dense, sparse = (rk.ReferenceMap(references=references, random_state=0).fit(A, y).kernel_matrix(A) for A in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(sparse, dense, rtol=0, atol=1e-8)


def test_map_speaks_pandas(samples):
    """set_output gives a DataFrame with the index of the input and the names that get_feature_names_out promises."""
    X = pd.DataFrame(samples(15, 3, 0), columns=["a", "b", "c"], index=np.arange(15) + 100)
    fitted = rk.ReferenceMap().set_output(transform="pandas").fit(X)
    out = fitted.transform(X)
    names = [f"referencemap{i}" for i in range(fitted.rank_)]
    assert list(fitted.get_feature_names_out()) == list(out.columns) == names
    assert list(out.index) == list(X.index)
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(out.to_numpy(), rk.ReferenceMap().fit(X).transform(X))


def two_rings(n, seed):
    """Two classes that no line separates: circles of radius 1 and 3 with noise."""
    rng = np.random.default_rng(seed)
    angle, ring = rng.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    radius = 1 + 2 * ring + 0.1 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), ring


@pytest.mark.filterwarnings("ignore:Labels .* in y are taken as targets:UserWarning")  # class labels 0 and 1 are all targets here
@every_seed
def test_map_makes_rings_linear_for_logistic_regression(seed):
    """A linear classifier fails on two rings, and succeeds on their reference map."""
    X, y = two_rings(200, seed)
    X_new, y_new = two_rings(200, seed + 10)
    mapped = make_pipeline(rk.ReferenceMap(rk.RBF(scale=0.3), references="subset", random_state=seed), LogisticRegression()).fit(X, y)
    assert LogisticRegression().fit(X, y).score(X_new, y_new) < 0.7
    assert mapped.score(X_new, y_new) > 0.97


@every_seed
def test_map_makes_far_groups_compact_for_kmeans(seed):
    """K-means on the map of well separated groups finds them."""
    rng = np.random.default_rng(seed)
    group = np.arange(90) % 3
    X = np.array([[0, 0], [8, 0], [0, 8]])[group] + rng.normal(size=(90, 2))
    model = make_pipeline(rk.ReferenceMap(rk.RBF(scale=0.2)), KMeans(3, n_init=5, random_state=seed))
    found = model.fit_predict(X)
    table = np.array([[np.sum((group == g) & (found == f)) for f in range(3)] for g in range(3)])
    assert sorted(table.max(axis=1)) == [30, 30, 30]


def test_refit_and_clone_and_pickle_keep_the_map(samples):
    """One seed gives one map: refitted, cloned or pickled; and fit_transform is fit, then transform."""
    X = samples(25, 3, 0)
    fitted = rk.ReferenceMap(references="case4", random_state=7).fit(X)
    Phi = fitted.transform(X)
    for copy in (clone(fitted).fit(X), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(copy.transform(X), Phi)
    np.testing.assert_array_equal(clone(fitted).fit_transform(X), Phi)
    np.testing.assert_array_equal(fitted.fit(X).transform(X), Phi)


def test_fit_leaves_parameters_and_data_alone(samples):
    """fit decides in attributes with an underscore; constructor parameters and X stay."""
    X, kernel = samples(10, 2, 0), rk.RBF(scale=3.0)
    before = X.copy()
    fitted = rk.ReferenceMap(kernel, references="subset", random_state=0).fit(X)
    fitted.transform(X)
    np.testing.assert_array_equal(X, before)
    assert fitted.kernel is kernel
    assert not hasattr(kernel, "sigma_")
    assert fitted.references == "subset"
    assert fitted.kernel_.sigma_ is not None


@every_seed
def test_indefinite_kernel_warns_and_stays_defined(seed, samples):
    """A sigmoid kernel with negative eigenvalues warns with their range, and the positive part is used."""
    X = samples(20, 3, seed)
    with pytest.warns(UserWarning, match=r"indefinite on the references \(eigenvalues -.*negative directions are dropped"):
        fitted = rk.ReferenceMap(Sigmoid(gamma=1.0)).fit(X)
    assert (fitted.eigenvalues_ > 0).all()
    K = fitted.kernel_matrix(X)
    assert np.isfinite(K).all()
    assert np.linalg.eigvalsh(K).min() > -1e-9 * np.abs(K).max()


def skewed(X, Z):
    return X @ Z.T + 0.1 * (X[:, :1] - 2 * Z[:, :1].T)


def test_unsymmetric_callable_warns_and_its_symmetric_part_is_used(samples):
    """k(R, R) that differs from its transpose warns; the mean of both is decomposed."""
    X = samples(12, 3, 0)
    with pytest.warns(UserWarning, match="skewed is not symmetric: the mean"):
        K = rk.kernels.as_kernel(skewed)(X)
    np.testing.assert_allclose(K, 0.5 * (skewed(X, X) + skewed(X, X).T), rtol=1e-12)
    with pytest.warns(UserWarning, match="skewed is not symmetric"):
        fitted = rk.ReferenceMap(skewed).fit(X)
    assert np.isfinite(fitted.transform(X)).all()


def nan_kernel(X, Z):
    return np.full((len(X), len(Z)), np.nan)


def late_nan_kernel(X, Z):
    return np.where(X[:, :1] > 100, np.nan, X @ Z.T)


def test_callable_that_returns_nan_is_refused(samples):
    """NaN from a kernel is an error at fit and at transform, with the function's name and the count."""
    X = samples(8, 2, 0)
    with pytest.raises(ValueError, match="nan_kernel returned 64 NaN or infinite values"):
        rk.ReferenceMap(nan_kernel).fit(X)
    fitted = rk.ReferenceMap(late_nan_kernel).fit(X)
    with pytest.raises(ValueError, match="late_nan_kernel returned 8 NaN"):
        fitted.transform(np.array([[0.0, 0.0], [200.0, 0.0]]))


def test_callable_of_the_wrong_shape_is_refused(samples):
    """A callable must give one value for each pair; the error names both shapes."""
    with pytest.raises(ValueError, match=r"returned shape \(8,\); \(8, 8\) was expected"):
        rk.ReferenceMap(lambda X, Z: np.ones(len(X))).fit(samples(8, 2, 0))


def test_fit_draws_from_targets_only_unless_asked(samples):
    """Rows with y = -1 are no references of "training"; "case5" adds them."""
    X, y = samples(12, 2, 0), np.repeat([1, -1], 6)
    np.testing.assert_array_equal(rk.ReferenceMap().fit(X, y).references_, X[:6])
    np.testing.assert_array_equal(rk.ReferenceMap(references="case5").fit(X, y).references_, X)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_shared_between_threads_give_the_same_map(samples, monkeypatch, sparse):
    """Threads change how rows are shared out, not what is computed; a callable, which may not be thread-safe, runs in one."""
    X = samples(1000, 3, 0)
    X = sp.csr_array(np.where(X > 0, X, 0.0)) if sparse else X
    fitted = rk.ReferenceMap(references="case3", random_state=0).fit(X)
    expected = fitted.transform(X)
    monkeypatch.setattr(_blocks, "MANY_ENTRIES", 0)
    # products of other shapes are summed in another order: rounding, times the whitening of eigenvalues down to 1e-6
    np.testing.assert_allclose(fitted.transform(X), expected, rtol=0, atol=1e-9)
    assert not rk.kernels.Function(np.dot)._thread_safe


def test_references_that_do_not_fit_into_memory_say_what_to_do(samples, monkeypatch):
    """Before anything large is allocated; as a map and as a classifier's kernel."""
    monkeypatch.setattr("refkernel._core.factor.physical_memory", lambda: 2**20)
    X = samples(400, 2, 0)
    for model in (rk.ReferenceMap(), rk.SVDD(rk.ReferenceKernel())):
        with pytest.raises(MemoryError, match=r"400 references .*rk\.references\.Subset\(1000\).*make_pipeline\(rk\.ReferenceMap"):
            model.fit(X)
    rk.SVDD(rk.ReferenceKernel(references=rk.references.Subset(20), random_state=0)).fit(X)
