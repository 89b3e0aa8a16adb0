"""The residual of a reference map is a distance from a span, and novelty detection follows from it."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import refkernel as rk
from refkernel._core import blocks as _blocks
from refkernel.detectors.residual import ReferenceResidual
from refkernel.kernels import RBF, Laplacian, Linear, Pairwise, Polynomial
from refkernel.metrics import gmean_scorer

every_seed = pytest.mark.parametrize("seed", [0, 1, 2])
centred_or_not = pytest.mark.parametrize("center", [True, False])


def distance_from_span(K_RR, K_XR, diag, center):
    """min over a of ||phi(x) - Σ a_r phi(r)||² (Σ a = 1 if centred): the normal equations in raw kernel values, no eigenvectors."""
    m = len(K_RR)
    if not center:
        A = np.linalg.solve(K_RR, K_XR.T)
        return diag - np.sum(K_XR.T * A, axis=0)
    system = np.block([[K_RR, np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
    A = np.linalg.solve(system, np.vstack([K_XR.T, np.ones(len(K_XR))]))[:m]
    return diag - 2 * np.sum(K_XR.T * A, axis=0) + np.sum(A * (K_RR @ A), axis=0)


@every_seed
@centred_or_not
@pytest.mark.parametrize("kernel", [RBF(0.3), RBF(1.0), Laplacian(), Pairwise("laplacian"), Polynomial(2)], ids=repr)
def test_residual_is_the_squared_distance_from_the_span(seed, center, kernel, samples):
    """Least squares in the kernel's space, solved from raw kernel values, gives the same; nothing is truncated."""
    R, X = samples(8, 6, seed), samples(30, 6, seed + 10) * 1.5
    reference_map = rk.ReferenceMap(kernel, references=R, center=center, eigenvalue_floor=1e-9).fit(X)
    assert reference_map.rank_ == 8 - center
    k = reference_map.kernel_
    expected = distance_from_span(k(R), k(X, R), k.diag(X), center)
    residual = reference_map.residual(X)
    assert expected.max() > 0.01
    # the smallest eigenvalue here is above 1e-4 of the largest value: rounding is below 1e-10 of it
    np.testing.assert_allclose(residual, expected, rtol=0, atol=1e-9 * np.abs(k.diag(X)).max())


@every_seed
@centred_or_not
def test_residual_of_the_linear_kernel_is_that_of_least_squares(seed, center, samples):
    """The span is a plane of the input space: np.linalg.lstsq on the samples themselves."""
    R, X = samples(4, 7, seed, offset=1.0), samples(20, 7, seed + 10)
    origin = R.mean(axis=0) if center else np.zeros(7)
    nearest = (R - origin).T @ np.linalg.lstsq((R - origin).T, (X - origin).T, rcond=None)[0]
    residual = rk.ReferenceMap("linear", references=R, center=center).fit(X).residual(X)
    np.testing.assert_allclose(residual, ((X - origin - nearest.T) ** 2).sum(axis=1), rtol=1e-9)


@every_seed
@centred_or_not
@pytest.mark.parametrize("kernel", [RBF(0.1), Laplacian(), Linear()], ids=repr)
def test_residual_is_zero_on_the_references_when_nothing_is_truncated(seed, center, kernel, samples):
    """A reference lies in the span of the references; a sample that is none does not."""
    X = samples(12, 14, seed)
    reference_map = rk.ReferenceMap(kernel, references=X[:8], center=center, eigenvalue_floor=1e-9).fit(X)
    residual, size = reference_map.residual(X), reference_map.kernel_.diag(X).max()
    assert residual[:8].max() <= 1e-12 * size
    assert residual[8:].min() > 1e-3 * size


@every_seed
@centred_or_not
@pytest.mark.parametrize("floor", [1e-6, 1e-2, 0.5])
def test_residuals_of_the_references_sum_to_the_truncated_eigenvalues(seed, center, floor, samples):
    """What the map loses of its references is what the floor drops, and no single one loses more than the floor."""
    R = samples(30, 2, seed)
    reference_map = rk.ReferenceMap(references=R, center=center, eigenvalue_floor=floor).fit(R)
    K, J = reference_map.kernel_(R), np.eye(30) - (1 / 30 if center else 0)
    lam = np.linalg.eigvalsh(J @ K @ J)
    residual = reference_map.residual(R)
    assert residual.sum() == pytest.approx(lam[lam < floor].sum(), abs=1e-8)  # 30 residuals, each known to 1e-16 / 1e-6
    assert residual.max() <= floor + 1e-9


@every_seed
@centred_or_not
@pytest.mark.parametrize("rank", [0, 1, 5, 14])
def test_rank_takes_the_leading_features_only(seed, center, rank, samples):
    """With rank q, the later features are part of the residual; with 0 it is the centred k(x, x) itself."""
    R, X = samples(15, 3, seed), samples(20, 3, seed + 10)
    reference_map = rk.ReferenceMap(references=R, center=center, eigenvalue_floor=0.0 if not center else 1e-9).fit(X)
    k = reference_map.kernel_
    norm2 = 1 - 2 * k(X, R).mean(axis=1) + k(R).mean() if center else np.ones(20)
    Phi = reference_map.transform(X)[:, :rank]
    np.testing.assert_allclose(reference_map.residual(X, rank), norm2 - (Phi**2).sum(axis=1), rtol=0, atol=1e-9)


@every_seed
@centred_or_not
def test_residual_is_non_negative_and_falls_with_more_references(seed, center, samples):
    """A larger span is nearer to every sample; rounding never makes a distance negative."""
    X, R = samples(200, 2, seed), samples(40, 2, seed + 10)
    k = RBF(sigma=0.5)
    small, large = (rk.ReferenceMap(k, references=R[:m], center=center, eigenvalue_floor=1e-9).fit(X).residual(X) for m in (15, 40))
    assert small.min() >= 0
    assert large.min() >= 0
    assert (large <= small + 1e-6).all()  # eigenvalues down to 1e-9: residuals are known to 1e-7
    assert large.mean() < 0.7 * small.mean()
    wide = rk.ReferenceMap(RBF(scale=1000.0), references=R, center=center, eigenvalue_floor=0.0 if center else 1e-12).fit(X)
    assert wide.residual(X).min() >= 0


@every_seed
def test_far_away_the_residual_is_one_plus_the_distance_of_the_span_from_the_origin(seed, samples):
    """RBF: a far sample is orthogonal to all references; 1 + 1 / (1' K_RR^-1 1), at most 1 + mean K_RR; 1 without centring."""
    R = samples(10, 4, seed)
    far = np.array([[1e3, -1e3, 1e3, 1e3], [1e6, 0.0, 0.0, 0.0]])
    centred, plain = (rk.ReferenceMap(RBF(0.5), references=R, center=center).fit(R) for center in (True, False))
    K_RR = centred.kernel_(R)
    expected = 1 + 1 / np.linalg.solve(K_RR, np.ones(10)).sum()
    np.testing.assert_allclose(centred.residual(far), expected, rtol=1e-9)
    assert 1 < expected <= 1 + K_RR.mean()
    np.testing.assert_allclose(plain.residual(far), 1.0, rtol=1e-12)


@every_seed
@centred_or_not
def test_residual_of_sparse_and_single_precision_samples(seed, center, samples):
    """Sparse samples give the residuals of the dense ones; float32 samples those of their values, in float64."""
    X = samples(40, 3, seed)
    X[np.abs(X) < 0.5] = 0.0
    expected = rk.ReferenceMap(references=X[:15], center=center).fit(X).residual(X)
    sparse = rk.ReferenceMap(references=sp.csr_matrix(X[:15]), center=center).fit(sp.csr_matrix(X))
    np.testing.assert_allclose(sparse.residual(sp.csr_matrix(X)), expected, rtol=0, atol=1e-9)
    single = X.astype(np.float32)
    fitted = rk.ReferenceMap("poly", center=center, eigenvalue_floor=1e-2).fit(single[:15])
    assert fitted.residual(single).dtype == np.float64
    np.testing.assert_array_equal(fitted.residual(single), fitted.residual(single.astype(np.float64)))


@every_seed
def test_blocks_and_threads_do_not_change_the_residual(seed, samples, monkeypatch):
    """Any block size, and rows shared between threads, give the same."""
    X = samples(301, 3, seed)
    reference_map = rk.ReferenceMap(references="case4", random_state=seed).fit(X[:60])
    expected = reference_map.residual(X)
    for name, value in (("BLOCK_ENTRIES", 100), ("MANY_ENTRIES", 1)):
        monkeypatch.setattr(_blocks, name, value)
        np.testing.assert_allclose(reference_map.residual(X), expected, rtol=0, atol=1e-9)  # eigenvalues down to 1e-6 magnify rounding


def test_residual_needs_memory_for_a_block_only(samples):
    """20,000 × 400 kernel values would be 64 MB; a block is 1 MB."""
    X = samples(20_000, 3, 0)
    reference_map = rk.ReferenceMap(references=X[:400]).fit(X[:500])
    tracemalloc.start()
    reference_map.residual(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16e6


@pytest.mark.parametrize("rank", [-1, 1.5, 2.0, "2", 100, True])
def test_residual_refuses_a_rank_that_the_map_does_not_have(rank, samples):
    """The error names the value and the limit."""
    X = samples(20, 2, 0)
    reference_map = rk.ReferenceMap(references=X[:5]).fit(X)
    with pytest.raises(ValueError, match=r"rank=.* must be an int from 0 to 4, the number of features of the map; or None"):
        reference_map.residual(X, rank)


@every_seed
@pytest.mark.parametrize("nu", [0.02, 0.1, 0.29, 0.5, 1.0])
@pytest.mark.parametrize("n", [40, 101, 200])
def test_at_most_nu_of_the_held_out_targets_is_rejected_and_no_more_would_fit(seed, nu, n, samples):
    """The number rejected is floor(nu · held out), by counting (all but one for nu = 1); references are inside."""
    X = samples(n, 3, seed)
    model = ReferenceResidual(references="subset", nu=nu, random_state=seed).fit(X)
    held_out = n - n // 2
    assert model.held_out_.size == held_out
    rejected = (model.predict(X[model.held_out_]) == -1).sum()
    assert rejected == min(int(np.floor(nu * held_out + 1e-9)), held_out - 1)
    references = np.setdiff1d(np.arange(n), model.held_out_)
    np.testing.assert_array_equal(X[references], model.map_.references_)
    assert (model.predict(X[references]) == 1).all() or nu == 1.0


@every_seed
def test_the_target_at_the_threshold_is_inside_whatever_the_rounding(seed, samples):
    """It is inside by 1e-12 of k(x, x), more than what sums in another order change: in one batch and row by row."""
    X = samples(100, 3, seed)
    model = ReferenceResidual(references="subset", random_state=seed).fit(X)
    held_out = X[model.held_out_]
    decision = model.decision_function(held_out)
    at_threshold = np.argmin(np.where(decision >= 0, decision, np.inf))
    assert decision[at_threshold] == pytest.approx(1e-12, abs=5e-13)
    np.testing.assert_array_equal([model.predict(x[None])[0] for x in held_out], model.predict(held_out))


@pytest.mark.parametrize("nu", [0.1, 0.3])
def test_about_nu_of_new_targets_is_rejected(nu, samples):
    """1,000 training targets and 5,000 new ones of the same kind: within 4 deviations of a share measured on 500."""
    X, X_new = samples(6000, 3, 0)[:1000], samples(6000, 3, 0)[1000:]
    model = ReferenceResidual(RBF(0.3), nu=nu, random_state=0).fit(X)
    assert (model.predict(X_new) == -1).mean() == pytest.approx(nu, abs=4 * np.sqrt(nu * (1 - nu) / 500))


@every_seed
def test_decision_is_score_minus_offset_and_score_minus_the_residual(seed, samples):
    """scikit-learn's outlier equations, and the map's own residual."""
    X, X_new = samples(60, 3, seed), samples(60, 3, seed + 5) * 2
    model = ReferenceResidual(references="subset", random_state=seed).fit(X)
    np.testing.assert_array_equal(model.score_samples(X_new), -model.map_.residual(X_new))
    np.testing.assert_array_equal(model.decision_function(X_new), model.score_samples(X_new) - model.offset_)
    np.testing.assert_array_equal(model.predict(X_new), np.where(model.decision_function(X_new) >= 0, 1, -1))
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.predict(X))
    by_hand = rk.ReferenceMap("laplacian", references="subset", random_state=seed).fit(X)
    np.testing.assert_array_equal(by_hand.residual(X_new), -model.score_samples(X_new))
    assert {-1, 1} == set(model.predict(X_new))


@every_seed
@pytest.mark.parametrize("rank", [5, 0.6, 0.95])
def test_truncated_kernel_pca_has_the_reconstruction_error_of_its_components(seed, rank, samples):
    """references="training" and a rank: Hoffmann's error from an eigendecomposition of our own, at the training samples."""
    X = samples(50, 3, seed)
    model = ReferenceResidual("rbf", references="training", rank=rank).fit(X)
    K, J = RBF(1.0).fit(X)(X), np.eye(50) - 1 / 50
    lam, U = np.linalg.eigh(J @ K @ J)
    lam, U = lam[::-1], U[:, ::-1]
    q = rank if rank == 5 else next(q for q in range(1, 50) if lam[:q].sum() >= rank * lam[lam >= 1e-6].sum())
    assert model.rank_ == q
    np.testing.assert_allclose(-model.score_samples(X), (U[:, q:] ** 2) @ lam[q:], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.held_out_, np.arange(50))
    assert (model.predict(X) == -1).sum() == 5


@every_seed
def test_integer_weights_stand_for_repeated_samples_in_the_threshold(seed, samples):
    """Given references: a weight of 2 counts a held-out target twice, a weight of 0 leaves it out."""
    X, R, w = samples(50, 3, seed), samples(20, 3, seed + 10), np.random.default_rng(seed).integers(0, 4, 50)
    weighted = ReferenceResidual(references=R, nu=0.2).fit(X, sample_weight=w)
    repeated = ReferenceResidual(references=R, nu=0.2).fit(np.repeat(X, w, axis=0))
    assert weighted.offset_ == pytest.approx(repeated.offset_, abs=1e-9)
    without = ReferenceResidual(nu=0.2, random_state=seed).fit(X, sample_weight=np.minimum(w, 1))
    removed = ReferenceResidual(nu=0.2, random_state=seed).fit(X[w > 0])
    np.testing.assert_array_equal(without.decision_function(X), removed.decision_function(X))
    np.testing.assert_array_equal(without.held_out_, np.flatnonzero(w > 0)[removed.held_out_])


@every_seed
def test_known_outliers_are_left_out(seed, samples):
    """Rows with y = -1 change nothing; held_out_ names rows of the X that was passed."""
    X, y = samples(60, 3, seed), np.where(np.arange(60) % 4 == 1, -1, 1)
    X[y == -1] += 6.0
    with_outliers = ReferenceResidual(references="subset", random_state=seed).fit(X, y)
    assert (y[with_outliers.held_out_] == 1).all()
    assert (with_outliers.predict(X[y == -1]) == -1).all()
    np.testing.assert_array_equal(clone(with_outliers).fit_predict(X, y), with_outliers.predict(X))
    in_front = np.argsort(y != 1, kind="stable")
    assert np.isin(with_outliers.map_.references_, X[y == 1]).all()
    again = ReferenceResidual(references=with_outliers.map_.references_).fit(X[in_front], y[in_front])
    np.testing.assert_array_equal(again.score_samples(X), with_outliers.score_samples(X))


@every_seed
def test_outliers_among_correlated_targets_are_found(seed, samples):
    """Samples off a curve are rejected though they lie within the range of every feature; SVDD on the inputs accepts them."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-3, 3, 300)
    X = np.column_stack([t, np.sin(2 * t)]) + 0.03 * rng.normal(size=(300, 2))
    off = np.column_stack([np.linspace(-2.5, 2.5, 20), -np.sin(2 * np.linspace(-2.5, 2.5, 20))])
    off = off[np.abs(off[:, 1]) > 0.6]
    assert (ReferenceResidual(RBF(0.05), nu=0.05, random_state=seed).fit(X).predict(off) == -1).all()
    assert (rk.SVDD("linear", nu=0.05).fit(X).predict(off) == 1).all()


def test_nested_parameters_reach_the_map_and_defaults_stay(samples):
    """A grid over the kernel's width and nu; the shared default kernel is not changed."""
    X, y = samples(60, 2, 0), np.repeat([1, -1], [40, 20])
    X[y == -1] *= 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grid = {"kernel__scale": [0.1, 1.0], "nu": [0.1, 0.3], "references__size": [0.3, 0.6]}
        search = GridSearchCV(
            ReferenceResidual(references="subset", random_state=0), grid, cv=StratifiedKFold(3), scoring=gmean_scorer
        ).fit(X, y)
        local = GridSearchCV(ReferenceResidual(), {"kernel__scale": [0.1, 1.0]}, cv=StratifiedKFold(3), scoring=gmean_scorer).fit(X, y)
    assert min(search.best_score_, local.best_score_) > 0.5
    assert ReferenceResidual().kernel == "laplacian"


def test_clone_pickle_sparse_and_data_frames(samples):
    """A clone, a copy through a file, sparse rows and a DataFrame of the same values decide alike."""
    X = samples(40, 2, 0)
    model = ReferenceResidual(random_state=0).fit(X)
    expected = model.decision_function(X)
    named = clone(model).fit(pd.DataFrame(X, columns=["a", "b"]))
    assert list(named.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(named.decision_function(pd.DataFrame(X, columns=["a", "b"])), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), expected)
    sparse = clone(model).fit(sp.csr_matrix(X))
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"nu": 0.0}, r"nu=0\.0 must be in \(0, 1\]"),
        ({"rank": 0}, r"rank=0 must be an int >= 1"),
        ({"rank": 1.0}, r"rank=1\.0 must be .* a float in \(0, 1\)"),
        ({"rank": True}, r"rank=True must be"),
        ({"rank": "all"}, r"rank='all' must be"),
        ({"references": "training"}, r"references='training' makes every target a reference, and rank=None truncates nothing.*subset"),
        ({"references": "training", "rank": 1000}, r"rank=1000 truncates nothing"),
        ({"references": "case5"}, r"references='case5' holds 10 known outliers: a reference has no residual"),
        ({"references": "nowhere"}, r"references='nowhere' is not known"),
        ({"eigenvalue_floor": -1.0}, r"eigenvalue_floor=-1\.0 must be a number >= 0"),
        ({"kernel": "nothing"}, r"kernel='nothing' is not known"),
    ],
)
def test_bad_parameters_are_refused(parameters, message, samples):
    """Each error names the value, the limit and the way out."""
    with pytest.raises(ValueError, match=message):
        ReferenceResidual(**parameters).fit(samples(40, 3, 0), np.repeat([1, -1], [30, 10]))


@every_seed
@pytest.mark.parametrize(("kernel", "power"), [("laplacian", 1.0), (Laplacian(3.0, exponent=0.5), 0.5), ("rbf", 2.0)], ids=str)
def test_local_references_leave_what_a_map_with_a_ridge_leaves(seed, kernel, power, samples):
    """Up to 200 rows are the references of one leaf: the residual is that of a map without centring, in double precision."""
    X, new = samples(80, 3, seed), samples(40, 3, seed + 10) * 1.5
    model = ReferenceResidual(kernel, ridge=0.1, random_state=seed).fit(X)
    (described,) = model.local_.described_
    width, unit = described.parts[0].width_, float(described.view.width_[0])
    same = RBF(sigma=unit * np.sqrt(width / 2.0)) if power == 2.0 else Laplacian(gamma=1.0 / (width * unit**power), exponent=power)
    residual = rk.ReferenceMap(same, references=X, center=False, eigenvalue_floor=0.0).fit(X).residual(new, ridge=0.1)
    left = 1.0 - np.exp(model.score_samples(new)) if power == 2.0 else -model.score_samples(new)
    np.testing.assert_allclose(left, residual, atol=2e-5)  # sums of 80 products in single precision, over a ridge of 0.1
    assert model.map_ is None
    assert model.rank_ is None


def test_the_width_of_local_references_is_that_of_the_kernel(samples):
    """The mean distance is of pairs of rows, so the width is the kernel's to a few percent."""
    X = samples(500, 4, 0)
    for kernel in (Laplacian(0.3), Laplacian(2.0, exponent=0.5)):
        found = ReferenceResidual(kernel).fit(X).local_.described_[0]
        expected = 1.0 / kernel.fit(X).gamma_ / found.view.width_[0] ** kernel.exponent
        assert found.parts[0].width_ == pytest.approx(expected, rel=0.05)
    found = ReferenceResidual(RBF(0.5)).fit(X).local_.described_[0]
    assert found.parts[0].width_ == pytest.approx(2.0 * (RBF(0.5).fit(X).sigma_ / found.view.width_[0]) ** 2, rel=0.05)


@pytest.mark.parametrize("n", [300, 6000])
def test_local_references_reject_about_nu_of_new_targets(n, samples):
    """Ten folds, or rows left out: within 4 standard deviations of a share measured on the rows that calibrate."""
    X = samples(n + 4000, 3, 0)
    model = ReferenceResidual(nu=0.1, random_state=0).fit(X[:n])
    held_out = n if n < 5000 else 2000
    assert model.held_out_.size == held_out
    assert (model.predict(X[n:]) == -1).mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / held_out) + 4 * np.sqrt(0.09 / 4000))
    labels = clone(model).fit_predict(X[:n])
    assert (labels[model.held_out_] == -1).sum() == int(0.1 * held_out)


def test_local_references_leave_known_outliers_and_weights_of_0_out(samples):
    X, y, w = samples(90, 3, 0), np.repeat([1, -1, 1], 30), np.repeat([1.0, 1.0, 0.0], 30)
    X[30:60] += 6.0
    model = ReferenceResidual(random_state=0).fit(X, y, w)
    assert (model.predict(X[30:60]) == -1).all()
    np.testing.assert_array_equal(np.sort(model.held_out_), np.arange(30))
    np.testing.assert_array_equal(model.score_samples(X), ReferenceResidual(random_state=0).fit(X[:30]).score_samples(X))


def test_local_references_are_explained_saved_and_read_in_blocks(samples, tmp_path):
    """Values sum to the scores, a constant column adds nothing; a file and sparse rows give the same scores, to the bit."""
    X, new = samples(700, 4, 0), samples(20, 4, 1) * 2.0
    X[:, 3] = new[:, 3] = 2.0
    model = ReferenceResidual(random_state=0).fit(X)
    why = rk.explain(model, new)
    np.testing.assert_allclose(why.scores, model.score_samples(new), rtol=1e-9)
    assert (why.values[:, 3] == 0.0).all()
    loaded = rk.load(rk.save(model, tmp_path / "model.rk"))
    np.testing.assert_array_equal(loaded.score_samples(new), model.score_samples(new))
    np.testing.assert_array_equal(model.score_samples(sp.csr_matrix(new)), model.score_samples(new))
    np.testing.assert_array_equal(model.score_samples(rk.sources.open_source([new[:7], new[7:]])), model.score_samples(new))
    np.testing.assert_array_equal([model.score_samples(row[None])[0] for row in new], model.score_samples(new))


@pytest.mark.parametrize(
    ("parameters", "is_local"),
    [
        ({}, True),
        ({"kernel": "rbf", "ridge": 0.1}, True),
        ({"kernel": RBF(sigma=1.0)}, False),
        ({"kernel": RBF("neighbours")}, False),
        ({"kernel": Laplacian(gamma=1.0)}, False),
        ({"kernel": Polynomial(2)}, False),
        ({"kernel": RBF() + Laplacian()}, False),
        ({"rank": 0.9}, False),
        ({"ridge": 0.0}, False),
        ({"references": "subset"}, False),
    ],
)
def test_references_are_local_where_they_can_be(parameters, is_local, samples):
    """By default; asked for where they cannot be, the error names what stands against them."""
    X = samples(40, 3, 0)
    assert (ReferenceResidual(**parameters).fit(X).map_ is None) == is_local
    if not is_local and "references" not in parameters:
        with pytest.raises(ValueError, match=r'references="local" needs a kernel "laplacian" or "rbf" whose scale is a number.*"subset"'):
            ReferenceResidual(references="local", **parameters).fit(X)


@pytest.mark.parametrize("references", [None, "subset"])
def test_a_fit_that_fails_leaves_the_model_before_it(references, samples):
    """Bad rows are refused before anything is replaced."""
    X = samples(60, 3, 0)
    model = ReferenceResidual(references=references, random_state=0).fit(X)
    expected = model.score_samples(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((60, 3), np.nan))
    np.testing.assert_array_equal(model.score_samples(X), expected)


@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
def test_local_references_as_an_onnx_graph(kernel, samples):
    """Equal decisions; a map says that it has no graph."""
    onnxruntime = pytest.importorskip("onnxruntime")
    X, new = samples(600, 3, 0), samples(200, 3, 1) * 1.5
    model = ReferenceResidual(kernel, random_state=0).fit(X)
    session = onnxruntime.InferenceSession(rk.to_onnx(model, new).SerializeToString(), providers=["CPUExecutionProvider"])
    label, scores = session.run(None, {session.get_inputs()[0].name: new})
    decision = model.decision_function(new)
    np.testing.assert_allclose(scores[:, 0], decision, atol=1e-4 * np.ptp(decision))  # single precision in both, in another order
    clear = np.abs(decision) > 1e-4 * np.ptp(decision)
    np.testing.assert_array_equal(label[clear, 0], model.predict(new)[clear])
    with pytest.raises(ValueError, match="of a map cannot be converted"):
        rk.to_onnx(ReferenceResidual(references="subset").fit(X), new)


WEIGHTS = "sample weights weigh the threshold, not the draw of the references"
OWN = "a target is its own reference, and fit_predict judges it without: predict is for new rows"


@parametrize_with_checks(
    [ReferenceResidual(random_state=0), ReferenceResidual(references="subset", random_state=0)],
    expected_failed_checks=lambda estimator: (
        {
            "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
            "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
        }
        | (
            dict.fromkeys(("check_outliers_fit_predict", "check_outliers_train", "check_outliers_train(readonly_memmap=True)"), OWN)
            if not estimator.references
            else {}
        )
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("center", [True, False])
def test_the_ridge_is_that_of_kernel_ridge_regression(center, samples):
    """kc(x, x) - k_x'(Kc + ridge I)^-1 k_x by a solve; ridge 0 is the plain residual, and explanations follow."""
    X, new, ridge = samples(25, 3, 0), samples(6, 3, 1), 0.3
    fitted = rk.ReferenceMap(rk.kernels.Laplacian(), references="subset", center=center, random_state=0).fit(X)
    R, k = fitted.references_, fitted.kernel_
    J = np.eye(len(R)) - (1.0 / len(R) if center else 0.0)
    mean = k(R).mean(axis=0) if center else np.zeros(len(R))
    K, kx = J @ k(R) @ J, (k(new, R) - mean) @ J
    norm2 = k.diag(new) + (k(R).mean() - 2.0 * k(new, R).mean(axis=1) if center else 0.0)
    expected = norm2 - np.einsum("ij,ji->i", kx, np.linalg.solve(K + ridge * np.eye(len(R)), kx.T))
    np.testing.assert_allclose(fitted.residual(new, ridge=ridge), expected, rtol=1e-9)
    np.testing.assert_array_equal(fitted.residual(new, ridge=0.0), fitted.residual(new))
    model = ReferenceResidual(center=center, ridge=ridge, random_state=0).fit(X)
    explained = rk.explain(model, new)
    np.testing.assert_allclose(explained.values.sum(axis=1) + explained.baseline, model.score_samples(new), atol=1e-9)
    with pytest.raises(ValueError, match="ridge=-1"):
        fitted.residual(new, ridge=-1)
