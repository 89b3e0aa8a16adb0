"""AutoDetector: normal rows in, a calibrated detector out."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import betabinom, norm, rankdata
from sklearn.base import clone
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import refkernel as rk
from refkernel._core import local_residuals as loops
from refkernel.detectors.auto import folds
from refkernel.detectors.auto.descriptions import Descriptions
from refkernel.detectors.auto.evidence import Evidence
from refkernel.detectors.auto.parts import LinearResidual, parts_for
from refkernel.detectors.auto.views import Bent, Columns, NormalScores, Standardised
from refkernel.detectors.local_references import RIDGE, KernelResidual, LocalReferences, Near

every_seed = pytest.mark.parametrize("seed", range(3))


def single(Z):
    return np.asarray(Z, dtype=np.float32)


@parametrize_with_checks(
    [rk.AutoDetector()],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": "weights other than 0 do not count: a row that repeats is seen by other folds",
        "check_sample_weight_equivalence_on_sparse_data": "weights other than 0 do not count: a row that repeats is seen by other folds",
        "check_outliers_train": "a training row is its own reference: predict is for new rows",
        "check_outliers_train(readonly_memmap=True)": "a training row is its own reference: predict is for new rows",
        "check_outliers_fit_predict": "fit_predict judges every training row as left out, predict judges new rows",
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def kernel(A, B, residual):
    """exp(-D / width), by SciPy and in double precision."""
    D = (np.abs(A[:, None] - B) ** residual.power).sum(axis=2)
    return np.exp(-D / residual.width_)


each_kernel = pytest.mark.parametrize(
    "residual",
    [KernelResidual(3.0, power=0.5), KernelResidual(0.3), KernelResidual(0.1, power=2.0)],
    ids=["roots", "differences", "squares"],
)


def scored(residual, Z, X, references=200):
    """The residuals of X by local references among Z, and the leaf of each."""
    tree = LocalReferences(references).fit(Z)
    near, leaf = Near(Z, tree), tree.leaves(X)
    near.fill(leaf)
    return residual.fit(Z).score(X, near, leaf), tree, leaf


@each_kernel
@every_seed
def test_a_residual_is_what_the_references_of_a_leaf_leave_of_a_sample(residual, seed):
    """1 - k'(K + ridge I)^-1 k with the references of the sample's leaf, in double precision by NumPy."""
    rng = np.random.default_rng(seed)
    Z, X = single(rng.normal(size=(300, 3))), single(1.5 * rng.normal(size=(40, 3)))
    found, tree, leaf = scored(clone(residual), Z, X, 60)
    residual = clone(residual).fit(Z)
    assert len(np.unique(leaf)) > 3
    for i, c in enumerate(leaf):
        R = Z[tree.members_[c]].astype(np.float64)
        k = kernel(X[[i]].astype(np.float64), R, residual)[0]
        explained = k @ np.linalg.solve(kernel(R, R, residual) + RIDGE * np.eye(60), k)
        assert found[i] == pytest.approx(-np.log(explained) if residual.is_narrow else 1.0 - explained, abs=1e-4)


@each_kernel
def test_few_rows_are_all_references(residual):
    rng = np.random.default_rng(0)
    Z, X = single(rng.normal(size=(90, 4))), single(rng.normal(size=(20, 4)))
    found, tree, _ = scored(clone(residual), Z, X)
    np.testing.assert_array_equal(tree.members_, np.arange(90)[None])
    residual = clone(residual).fit(Z)
    k = kernel(X.astype(np.float64), Z.astype(np.float64), residual)
    K = kernel(Z.astype(np.float64), Z.astype(np.float64), residual) + RIDGE * np.eye(90)
    explained = (k * np.linalg.solve(K, k.T).T).sum(axis=1)
    np.testing.assert_allclose(found, -np.log(explained) if residual.is_narrow else 1.0 - explained, atol=1e-3)


@every_seed
@pytest.mark.parametrize("kind", ["normal", "few values", "one-hot"])
def test_a_leaf_is_described_by_its_own_rows_and_those_nearest_to_its_box(seed, kind):
    rng = np.random.default_rng(seed)
    make = {
        "normal": lambda: rng.normal(size=(700, 4)),
        "few values": lambda: rng.integers(0, 9, size=(700, 5)),
        "one-hot": lambda: np.eye(9)[rng.integers(0, 9, size=(700, 3))].reshape(700, 27),
    }
    Z = single(np.unique(make[kind](), axis=0))
    tree = LocalReferences(80).fit(Z)
    leaf = tree.leaves(Z)
    assert set(leaf) == set(range(len(tree.members_)))
    for c, members in enumerate(tree.members_):
        own, others = np.flatnonzero(leaf == c), np.setdiff1d(np.arange(len(Z)), members)
        assert len(set(members)) == 80
        assert own.size <= 50
        assert set(own) <= set(members)
        low, high = Z[own].min(axis=0), Z[own].max(axis=0)
        away = np.maximum(np.maximum(low - Z, Z - high), 0.0).sum(axis=1)
        assert (
            away[members].max() <= away[others].min() + 0.1
        )  # rows equally near to the box come in the order of their distances to its centre


def test_a_tree_ends_where_rows_cannot_be_halved():
    """Sparse columns split off few rows at a time: the tree stays shallow, and every row has a leaf with references."""
    Z = single(np.unique((np.random.default_rng(0).random((900, 300)) < 0.004) * 1.0, axis=0))
    tree = LocalReferences(30).fit(Z)
    assert tree.members_.shape[1] == 30
    assert (tree.leaves(Z) < len(tree.members_)).all()


def test_threads_that_fill_a_leaf_at_the_same_time_write_the_same_bits():
    """The inverse Cholesky factor of one leaf, whatever threads work on others. Oracle of its values: the inverse of K + ridge I."""
    columns = single(np.random.default_rng(0).normal(size=(20, 200)))
    kernel = KernelResidual(1.0).fit(columns.T)

    def packed(_):
        found = np.empty(200 * 201 // 2, np.float32)
        kernel.factor(columns, found)
        return found

    alone = packed(0)
    with ThreadPoolExecutor(8) as pool:
        assert all(np.array_equal(found, alone) for found in pool.map(packed, range(32)))
    L = np.zeros((200, 200))
    L[np.tril_indices(200)] = alone
    K = np.exp(-np.abs(columns.T[:, None].astype(float) - columns.T).sum(axis=2) / kernel.width_) + RIDGE * np.eye(200)
    np.testing.assert_allclose(L.T @ L @ K, np.eye(200), atol=1e-4)


def test_kernel_values_fade_to_0():
    D, k = single([0.0, 1e-30, 80.0, 1e5, 1e30]), np.empty(5, np.float32)
    loops.kernel_values(D, 1.0, k)
    np.testing.assert_allclose(k, np.exp(-D.astype(np.float64)), rtol=1e-6, atol=1e-37)


@every_seed
def test_the_residual_of_a_linear_kernel_is_ledoit_and_wolfs_mahalanobis_distance(seed):
    rng = np.random.default_rng(seed)
    for n, d in ((200, 5), (20, 50)):
        Z = single(rng.normal(size=(n, d)) * np.linspace(1.0, 3.0, d))
        X = single(rng.normal(size=(10, d)))
        shrunk = LedoitWolf(assume_centered=True).fit(Z.astype(np.float64)).covariance_
        found = LinearResidual().fit(Z).score(X, Near(Z, LocalReferences().fit(Z)), np.zeros(10, np.intp))
        np.testing.assert_allclose(found, np.einsum("ij,ij->i", X, np.linalg.solve(shrunk, X.T.astype(np.float64)).T), rtol=1e-4)


def test_normal_scores_are_mid_ranks_through_the_normal_distribution():
    x = np.array([3.0, 1.0, 1.0, 2.0, 8.0, 3.0, 1.0])
    view = NormalScores().fit(x[:, None], Columns().fit(x[:, None]))
    z = norm.ppf((rankdata(x) - 0.5) / 7)
    expected = (z - z.mean()) / z.std()
    found = view.transform(x[:, None])[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    between, beyond = view.transform(np.array([[2.5], [9.0], [1e6], [-1e6]]))[:, 0].reshape(2, 2)
    assert between[0] == pytest.approx((found[3] + found[0]) / 2)
    assert found.max() < between[1] < beyond[0]
    assert beyond[1] < found.min()


@pytest.mark.parametrize("view", [Standardised, Bent, NormalScores])
def test_every_view_keeps_the_order_of_a_column(view):
    X = np.exp(np.random.default_rng(0).normal(size=(50, 1)))
    grid = np.linspace(-5.0, 50.0, 500)[:, None]
    assert (np.diff(view().fit(X, Columns().fit(X)).transform(grid)[:, 0]) > 0).all()


@every_seed
@pytest.mark.parametrize("values", [None, 4])
def test_the_evidence_against_a_left_out_row_is_that_of_all_others(seed, values):
    """Against a naive loop; with ties and without."""
    rng = np.random.default_rng(seed)
    for n in (2, 3, 10, 40):
        held = rng.normal(size=n) if values is None else rng.integers(0, values, size=n).astype(float)
        expected = [Evidence().fit(np.delete(held, i))(held[[i]])[0] for i in range(n)]
        np.testing.assert_allclose(Evidence.left_out(held), expected, atol=1e-12)


@every_seed
def test_what_differs_from_scores_that_repeat_by_rounding_has_their_evidence(seed):
    """Single precision adds up in another order elsewhere: equal rows get other last digits, there and among the rows themselves."""
    rng = np.random.default_rng(seed)
    levels = np.sort(rng.random(6))
    exact = rng.choice(levels, 200)
    for noise in (0.0, 1e-7):
        held = exact + noise * rng.choice([-1.0, 0.0, 1.0], 200)
        evidence = Evidence().fit(held)
        np.testing.assert_allclose(evidence(exact + 3e-7 * rng.uniform(-1, 1, 200)), Evidence().fit(exact)(exact), atol=1e-12)
        np.testing.assert_allclose(Evidence.left_out(held), Evidence.left_out(exact), atol=1e-12)
        assert (np.diff(evidence(np.linspace(0.0, 2.0, 5_000))) >= 0).all()


def test_the_evidence_of_scores_that_do_not_repeat_is_interpolated_between_them():
    """As by NumPy, to the bit; where scores are crowded, those of a stretch of 1e-5 are one, and not all of them."""
    held = np.sort(np.random.default_rng(0).random(300))
    x = np.linspace(0.0, held[-1], 1_000)
    np.testing.assert_array_equal(Evidence().fit(held)(x), np.interp(x, held, -np.log(np.arange(301, 1, -1) / 301), left=0.0))
    assert len(np.unique(Evidence().fit(held * 1e-4).value_)) >= 10


@pytest.mark.parametrize("most", [5000, 100])
def test_a_row_that_calibrates_was_not_seen_by_what_scores_it(most, monkeypatch):
    """In folds, and where some rows are left out: the rows of a description and those that it scores have nothing in common."""
    monkeypatch.setattr(folds, "MOST_IN_FOLDS", most)
    monkeypatch.setattr(folds, "FEWEST_LEFT_OUT", 40)
    X = np.random.default_rng(0).normal(size=(130, 3))
    seen = []

    class Spy(Descriptions):
        def fit(self, X, parts):
            self.seen = {row.tobytes() for row in X}
            return super().fit(X, parts)

        def score(self, X):
            seen.append(len(self.seen & {row.tobytes() for row in X}))
            return super().score(X)

    monkeypatch.setattr(folds, "Descriptions", Spy)
    _, _, held = folds.Training(X, None, parts_for(X), True, None, False).learn(np.arange(130), np.random.RandomState(0))
    assert seen == [0] * (10 if most == 5000 else 1)
    assert sorted(held.rows) == (list(range(130)) if most == 5000 else sorted(held.rows))
    assert len(held.rows) == (130 if most == 5000 else 40)


def test_copies_of_a_row_are_one_reference():
    X = np.random.default_rng(0).integers(0, 3, size=(60, 2)).astype(float)
    model = Descriptions().fit(X, parts_for(X))
    np.testing.assert_array_equal(np.unique(model.rows_, axis=0), np.unique(X, axis=0))
    assert len(model.rows_) == len(np.unique(X, axis=0))


LAWS = {
    "normal": lambda rng, n: rng.normal(size=(n, 5)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(size=(n, 2)),
    "lognormal": lambda rng, n: np.exp(2.0 * rng.normal(size=(n, 8))),
    "point masses": lambda rng, n: np.where(rng.random((n, 4)) < 0.7, 0.0, rng.normal(size=(n, 4))),
    "rare values": lambda rng, n: np.hstack([rng.normal(size=(n, 2)), rng.random((n, 40)) < 0.003]),
    "wide": lambda rng, n: rng.normal(size=(n, 120)),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [50, 120])
def test_few_rows_keep_the_promise(law, n):
    """The mean rate of several fits is at most 1.5 points above what they say, and three standard errors of that mean."""
    promised, delivered = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        model = rk.AutoDetector(0.1).fit(LAWS[law](rng, n))
        promised.append(model.false_alarm_rate_)
        delivered.append(np.mean(model.predict(LAWS[law](rng, 400)) == -1))
    assert np.mean(delivered) <= np.mean(promised) + 0.015 + 3.0 * np.sqrt(0.1 * 0.9 / n / 8)


@every_seed
def test_a_balanced_rate_is_higher_the_closer_outliers_are(seed):
    """Known outliers take the place of made-up ones: near ones ask for more rejections than far ones, and one half is the most."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))
    rates = []
    for shift in (0.0, 1.5, 3.0):
        y = np.r_[np.ones(200), -np.ones(50)]
        detector = rk.AutoDetector("balanced").fit(np.vstack([X, rng.normal(size=(50, 4)) + shift]), y)
        rates.append(detector.balanced_rate_)
        assert detector.false_alarm_rate_ == pytest.approx(detector.balanced_rate_, abs=1 / 200)
    assert 0.5 >= rates[0] > rates[1] > rates[2] > 0.0


def test_another_threshold_may_be_balanced_too():
    X = np.random.default_rng(0).normal(size=(80, 3))
    moved = rk.AutoDetector(0.05).fit(X).with_false_alarm_rate("balanced")
    assert moved.offset_ == rk.AutoDetector("balanced").fit(X).offset_
    with pytest.raises(ValueError, match="'equal' must be a number between 0 and 1, or \"balanced\""):
        moved.with_false_alarm_rate("equal")


def rare_words(n, seed):
    """Rows of a table with many columns that are nearly always 0, as counts of words are."""
    rng = np.random.default_rng(seed)
    return np.hstack([rng.normal(size=(n, 3)), rng.random((n, 400)) < 2e-4])


def test_new_normal_rows_that_contradict_constants_are_no_more_often_rejected_than_promised():
    """Every 13th new row holds a value that no training row has in its column, and so does a training row that is left out."""
    X, new = rare_words(600, 0), rare_words(3000, 1)
    detector = rk.AutoDetector(false_alarm_rate=0.01).fit(X)
    contradicts = (new != 0)[:, (X == 0).all(axis=0)].any(axis=1)
    assert contradicts.mean() > 0.05
    p = detector.p_values(new)
    for rate in (0.01, 0.05, 0.1):
        k = int(rate * 601)  # of 600 rows that calibrate and a new one, all equally likely to be among the k least normal
        assert (p <= rate).sum() <= betabinom(3000, k, 601 - k).ppf(0.999)
    assert p[contradicts].max() < p[~contradicts].max() / 5  # still a reason to be suspicious


def test_fit_predict_judges_rows_that_contradict_all_others_as_new_rows_are_judged():
    X = np.hstack([np.random.default_rng(0).normal(size=(200, 2)), np.zeros((200, 1))])
    X[7, 2] = 1.0
    assert rk.AutoDetector(false_alarm_rate=0.01).fit_predict(X)[7] == -1


def test_a_table_in_which_every_row_contradicts_all_others_says_nothing_by_it():
    detector = rk.AutoDetector(false_alarm_rate=0.1).fit(np.eye(40))
    assert np.isfinite(detector.score_samples(np.eye(40) + 1.0)).all()
    assert np.isfinite(detector.calibration_).all()


def test_a_column_that_was_constant_is_a_statement():
    """A set-point that was always 100 and becomes 130 is flagged, whatever the other columns say; a rounding of it is not."""
    X = np.column_stack([np.random.default_rng(0).normal(size=(100, 2)), np.full(100, 100.0)])
    model = rk.AutoDetector().fit(X)
    np.testing.assert_array_equal(model.predict([[0.0, 0.0, 100.0], [0.0, 0.0, 130.0], [0.0, 0.0, 100.0 + 1e-9]]), [1, -1, 1])
    row, Z = np.array([[0.0, 0.0, 99.0]]), np.zeros((1, 3))
    Columns().fit(X).fill(row, Z)
    assert Z[0, 2] == -10.0


def test_evidence_grows_with_the_score_and_is_minus_the_log_of_a_p_value():
    held = np.array([0.0, 0.0, 1.0, 2.0])
    evidence = Evidence().fit(held)
    np.testing.assert_allclose(np.exp(-evidence(np.array([-1.0, 0.0, 1.0, 2.0]))), [1.0, 1.0, 3 / 5, 2 / 5])
    values = evidence(np.linspace(-1, 9, 101))
    assert (np.diff(values) >= 0).all()
    assert (np.diff(values[40:]) > 0).all()


@every_seed
def test_new_normals_are_rejected_at_about_the_promised_rate(seed):
    """4,000 new normals of the same kind, within 4 deviations of a rate that 500 calibration rows promise."""
    rng = np.random.default_rng(seed)
    X, X_new = rng.normal(size=(500, 5)), rng.normal(size=(4000, 5))
    model = rk.AutoDetector().fit(X)
    for rate in (0.01, 0.05, 0.1):
        rejected = (model.with_false_alarm_rate(rate).predict(X_new) == -1).mean()
        assert rejected == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / 500) + 1 / 500)


@every_seed
def test_decisions_p_values_and_labels_agree(seed):
    rng = np.random.default_rng(seed)
    X, X_new = rng.normal(size=(120, 3)), 2.0 * rng.normal(size=(200, 3))
    model = rk.AutoDetector(0.1).fit(X)
    decision, p = model.decision_function(X_new), model.p_values(X_new)
    np.testing.assert_array_equal(decision, model.score_samples(X_new) - model.offset_)
    np.testing.assert_array_equal(model.predict(X_new) == -1, decision < 0)
    np.testing.assert_array_equal(p <= 0.1, decision < 0)
    assert (np.diff(p[np.argsort(decision)]) >= 0).all()
    assert model.select(X_new, fdr=0.2).dtype == bool
    low, high = model.false_alarm_interval_
    assert low < model.false_alarm_rate_ < high


def test_a_row_scores_the_same_alone_and_among_others_bit_for_bit():
    X = np.random.default_rng(0).normal(size=(700, 4))
    model = rk.AutoDetector().fit(X[:300])
    whole = model.score_samples(X)
    for rows in (slice(0, 1), slice(13, 14), slice(5, 40), slice(1, 700)):
        np.testing.assert_array_equal(model.score_samples(X[rows]), whole[rows])


def test_fit_predict_judges_training_rows_as_left_out():
    """A lone training row far from all others is an outlier among them, though predict would find its copy in training."""
    X = np.vstack([np.random.default_rng(0).normal(size=(100, 2)), [[9.0, 9.0]]])
    labels = rk.AutoDetector().fit_predict(X, np.r_[np.ones(50), -1, np.ones(50)])
    assert labels[-1] == -1
    assert labels.shape == (101,)
    assert (labels == -1).mean() <= 0.07
    assert rk.AutoDetector().fit(X).predict(X)[-1] == 1


def test_many_rows_are_left_out_to_calibrate_and_all_are_judged_unseen(monkeypatch):
    """More rows than folds take: some calibrate, the rest is described; fit_predict judges each by descriptions without it."""
    monkeypatch.setattr(folds, "MOST_IN_FOLDS", 300)
    monkeypatch.setattr(folds, "FEWEST_LEFT_OUT", 150)
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(999, 2)), [[9.0, 9.0]]])
    model = rk.AutoDetector(0.1)
    labels = model.fit_predict(X)
    assert len(model.calibration_) == 150
    assert (labels == -1).mean() == pytest.approx(0.1, abs=0.06)
    assert labels[-1] == -1


def test_known_outliers_choose_the_descriptions_and_are_not_normal():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 3)), rng.normal(size=(20, 3)) + 4.0])
    y = np.repeat([1, -1], [200, 20])
    model = rk.AutoDetector().fit(X, y)
    assert (model.predict(X[200:]) == -1).mean() > 0.9
    assert not np.isnan(model.results_["auc_known"]).any()
    assert np.isnan(rk.AutoDetector().fit(X[:200]).results_["auc_known"]).all()
    assert len({len(column) for column in model.results_.values()}) == 1


def test_contamination_leaves_out_unmarked_outliers():
    """Ten copies of an outlier vouch for each other; trimmed, they are outliers again."""
    rng = np.random.default_rng(0)
    normal, outliers = rng.normal(size=(300, 3)), 6.0 + 0.1 * rng.normal(size=(15, 3))
    X, new = np.vstack([normal, outliers]), np.vstack([rng.normal(size=(300, 3)), 6.0 + 0.1 * rng.normal(size=(50, 3))])
    labels = np.repeat([0, 1], [300, 50])
    naive, robust = (roc_auc_score(labels, -rk.AutoDetector(contamination=c).fit(X).score_samples(new)) for c in (0.0, 0.05))
    assert robust > 0.99 > naive
    assert "leaving out" in rk.AutoDetector(contamination="auto").fit(X).choice_


def with_a_cluster(seed, normals, outliers):
    """Normal rows in four columns, and outliers close together, three standard deviations away in each column."""
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(normals, 4)), 3.0 + 0.3 * rng.normal(size=(outliers, 4))]), np.repeat([0, 1], [normals, outliers])


@every_seed
@pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
def test_outliers_among_the_rows_do_not_hide_others_like_them(seed, share):
    """A cluster in training does not make its like look normal, and the threshold keeps its rate on new normal rows."""
    X, _ = with_a_cluster(seed, 400, round(share * 400 / (1 - share)))
    new, outlying = with_a_cluster(100 + seed, 2000, 100)
    model = rk.AutoDetector(contamination=share).fit(X)
    assert roc_auc_score(outlying, -model.score_samples(new)) > 0.98
    assert 0.02 < np.mean(model.predict(new[outlying == 0]) == -1) < 0.09
    assert np.mean(model.predict(new[outlying == 1]) == -1) > 0.9


def test_all_rows_but_the_contamination_calibrate():
    X, _ = with_a_cluster(0, 380, 20)
    model = rk.AutoDetector(contamination=0.05).fit(X)
    assert "leaving out 40 of 400" in model.choice_
    assert model.calibration_.size == 380


def test_few_equal_references_explain_no_more_than_the_ridge_allows():
    """c references at one place explain c / (c + ridge) of a sample there."""
    Z = single(np.vstack([1e-4 * np.arange(8.0).reshape(4, 2), 1e3 + np.arange(120.0).reshape(60, 2)]))
    residual = KernelResidual(0.01, ridge=8.0)
    assert scored(residual, Z, Z[:1])[0][0] == pytest.approx(1.0 - 4.0 / 12.0, abs=1e-3)


def test_a_robust_detector_survives_a_file(tmp_path):
    X, _ = with_a_cluster(0, 380, 20)
    model = rk.AutoDetector(contamination=0.05).fit(X)
    rk.save(model, tmp_path / "model.rk")
    np.testing.assert_array_equal(rk.load(tmp_path / "model.rk").decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"false_alarm_rate": 0.0}, "false_alarm_rate=0.0"),
        ({"false_alarm_rate": 1.5}, "false_alarm_rate=1.5"),
        ({"contamination": 0.5}, "contamination=0.5 must be a share"),
        ({"contamination": "some"}, "contamination='some' must be a share"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        rk.AutoDetector(**parameters).fit(np.eye(30))


def test_a_promise_that_the_rows_cannot_keep_is_said_with_the_one_they_can():
    X = np.random.default_rng(0).normal(size=(35, 2))
    with pytest.warns(UserWarning, match=r"35 normal rows promise no less than 2\.8 %"):
        model = rk.AutoDetector(0.01).fit(X)
    assert model.false_alarm_rate_ == pytest.approx(1 / 36)


@pytest.mark.parametrize(
    "X",
    [np.ones((30, 3)), np.repeat([[0.0], [1.0]], 20, axis=0), 1e300 * np.random.default_rng(0).normal(size=(40, 2)), np.eye(25, 400)],
    ids=["all equal", "two values", "huge", "wide"],
)
def test_odd_tables_give_finite_scores(X):
    model = rk.AutoDetector().fit(X)
    new = np.vstack([X[:2], X[:1] + 1.0, -1e306 * np.ones((1, X.shape[1]))])
    scores = model.score_samples(new)
    assert np.isfinite(scores).all()
    assert model.predict(new)[0] == 1
    assert model.predict(new)[3] == -1


@pytest.mark.parametrize(("d", "falls"), [(8, False), (12, True), (40, True)])
def test_columns_whose_variances_fall_share_a_unit(d, falls):
    """Scores of principal components do; not in another order, standardised, with units, or where few columns carry all variance."""
    pixels = load_digits().data
    Z = PCA(d).fit_transform(pixels[:600])
    views = {True: {"one scale, whitened"}, False: {part.view.name for part in parts_for(np.random.default_rng(0).normal(size=(50, 3)))}}
    assert {part.view.name for part in parts_for(Z)} == views[falls]
    others = (Z[:, np.random.default_rng(0).permutation(d)], Z / Z.std(axis=0), Z / 10.0 ** np.arange(d))
    assert all({part.view.name for part in parts_for(other)} == views[False] for other in others)
    assert {part.view.name for part in parts_for(Z, np.ones(d))} == views[False]


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e5, 1e200])
def test_the_unit_of_a_column_does_not_matter(unit):
    """Where the range is not within 1e-9 of 0, which counts as constant, a column may be in any unit."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(100, 2)) + 3.0, rng.normal(size=(50, 2)) * 2 + 3.0
    expected = rk.AutoDetector().fit(X).score_samples(new)
    np.testing.assert_allclose(rk.AutoDetector().fit(unit * X).score_samples(unit * new), expected, atol=1e-8)


def test_a_saved_detector_answers_as_before(tmp_path):
    pytest.importorskip("skops", reason="model files need the extra save")
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = rk.AutoDetector().fit(X)
    rk.save(model, tmp_path / "auto.rk")
    again = rk.load(tmp_path / "auto.rk")
    np.testing.assert_array_equal(again.score_samples(2 * X), model.score_samples(2 * X))
    np.testing.assert_array_equal(again.with_false_alarm_rate(0.2).predict(X), model.with_false_alarm_rate(0.2).predict(X))


def test_a_file_holds_rows_and_no_factors(tmp_path):
    """1,000 rows of 10 columns take less than 2 MB, and a loaded model that several threads use at first gives the same bits."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(1000, 10)), rng.normal(size=(400, 10))
    model = rk.AutoDetector().fit(X)
    path = rk.save(model, tmp_path / "auto.rk")
    assert path.stat().st_size < 2e6
    again = rk.load(path)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(again.score_samples, np.split(new, 20)))
    np.testing.assert_array_equal(np.concatenate(found), model.score_samples(new))


@pytest.mark.parametrize("form", ["csr_matrix", "csc_array", "coo_array"])
def test_sparse_rows_give_the_model_and_the_scores_of_the_same_rows_as_an_array(form, monkeypatch):
    """Whole words and rare ones; the oracle is the array. Blocks of a few rows score as all rows do."""
    rng = np.random.default_rng(0)
    X, new = (rng.poisson(0.3, size=(n, 12)).astype(float) for n in (80, 33))
    make = getattr(sp, form)
    detector, plain = rk.AutoDetector().fit(make(X)), rk.AutoDetector().fit(X)
    monkeypatch.setattr("refkernel._core.rows.AT_ONCE", 12 * 7)
    np.testing.assert_array_equal(detector.score_samples(make(new)), plain.score_samples(new))
    np.testing.assert_array_equal(detector.predict(make(new)), plain.predict(new))
    np.testing.assert_array_equal(rk.AutoDetector().fit_predict(make(X)), rk.AutoDetector().fit_predict(X))


def test_sparse_rows_that_would_fill_the_memory_are_refused_with_a_way_out():
    with pytest.raises(MemoryError, match=r"8 GB as an array of 1,000 × 1,000,000.*TruncatedSVD"):
        rk.AutoDetector().fit(sp.csr_matrix((1000, 1_000_000)))


def test_one_hot_columns_and_words_go_into_a_pipeline_as_scikit_learn_makes_them():
    from sklearn.compose import make_column_transformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    levels = rng.choice(["saw", "press", "drill"], (90, 3))
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [0, 1, 2]), sparse_threshold=1.0)
    assert set(make_pipeline(encoder, rk.AutoDetector()).fit(levels).predict(levels)) <= {-1, 1}
    texts = [" ".join(rng.choice(["pump", "valve", "hot", "cold", "leak"], 6)) for _ in range(90)]
    assert make_pipeline(TfidfVectorizer(), rk.AutoDetector()).fit(texts).predict(texts).shape == (90,)
