"""AutoDetector: normal rows in, a calibrated detector out."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import betabinom
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import refkernel as rk
from refkernel._distances import l1_distances, nearest_l1, root_l1_distances
from refkernel._nearest import Screen, nearest_l1_screened
from refkernel.auto import detector as detector_module
from refkernel.auto.descriptions import RIDGE, Neighbours, Residuals
from refkernel.auto.evidence import Evidence
from refkernel.auto.views import ColumnView

every_seed = pytest.mark.parametrize("seed", range(3))


def columns(Z):
    return np.ascontiguousarray(Z.T)


@parametrize_with_checks(
    [rk.AutoDetector()],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": "weights other than 0 do not count: a row that repeats is a neighbour",
        "check_sample_weight_equivalence_on_sparse_data": "sparse rows are not taken",
        "check_outliers_train": "a training row is its own nearest row: predict is for new rows",
        "check_outliers_train(readonly_memmap=True)": "a training row is its own nearest row: predict is for new rows",
        "check_outliers_fit_predict": "fit_predict judges every training row as left out, predict judges new rows",
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_seed
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (7, 3, 2), (40, 2500, 5)])
def test_l1_distances_and_neighbours_are_those_of_a_naive_loop(seed, n, m, d):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    D = np.empty((n, m))
    l1_distances(X, columns(Z), D)
    np.testing.assert_allclose(D, cdist(X, Z, "cityblock"), rtol=1e-13)
    k = min(4, m)
    nearest, index = np.empty((n, k)), np.empty((n, k), dtype=np.intp)
    nearest_l1(X, columns(Z), np.full(n, -1), nearest, index)
    np.testing.assert_array_equal(nearest, np.sort(D, axis=1)[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(D, index, axis=1), nearest)


SCREENED = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "long tails": lambda rng, shape: rng.standard_cauchy(size=shape),
    "copies": lambda rng, shape: rng.integers(0, 3, size=shape).astype(float),
    "equal": lambda rng, shape: np.ones(shape),
}


@every_seed
@pytest.mark.parametrize("kind", SCREENED)
@pytest.mark.parametrize("d", [1, 4, 7, 30])
def test_a_screened_search_finds_the_same_rows_to_the_bit(seed, kind, d):
    """Samples among the rows, beside them and far beyond what 16 bits hold, against the plain search."""
    rng = np.random.default_rng(seed)
    Z = SCREENED[kind](rng, (3000, d))
    X = np.vstack([Z[:20], SCREENED[kind](rng, (20, d)), 1e6 * rng.normal(size=(3, d)), np.full((1, d), 1e308)])
    own = np.r_[np.arange(20), np.full(24, -1)]
    plain, screened = [(np.empty((44, 6)), np.empty((44, 6), dtype=np.intp)) for _ in range(2)]
    with np.errstate(over="ignore"):
        nearest_l1(X, columns(Z), own, *plain)
    Screen(columns(Z)).fit().nearest(X, own, *screened)
    for found, expected in zip(screened, plain, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_screened_search_equals_its_python_source():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(50, 5)), rng.normal(size=(4, 5))
    screen = Screen(columns(Z)).fit()
    ends = []
    for search in (nearest_l1_screened, nearest_l1_screened.py_func):
        D, index = np.empty((4, 2)), np.empty((4, 2), dtype=np.intp)
        search(X, columns(Z), screen._rounded(X), screen._whole, screen._step, np.full(4, -1), D, index)
        ends.append((D, index))
    for compiled, plain in zip(*ends, strict=True):
        np.testing.assert_array_equal(compiled, plain)


@every_seed
def test_root_distances_add_up_the_roots_of_the_columns(seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(7, 3)), rng.normal(size=(1100, 3))
    D = np.empty((7, 1100))
    root_l1_distances(X, columns(Z), D)
    np.testing.assert_allclose(D, np.sqrt(np.abs(X[:, None] - Z[None])).sum(axis=2), rtol=1e-13)


def test_many_rows_are_searched_by_a_screen_that_copies_and_files_do_not_hold(tmp_path, monkeypatch):
    monkeypatch.setattr("refkernel._nearest.FEWEST_ROWS", 50)
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(120, 3)), rng.normal(size=(30, 3))
    screened = rk.AutoDetector().fit(X)
    scores = screened.score_samples(new)
    rk.save(screened, tmp_path / "model.skops")
    np.testing.assert_array_equal(rk.load(tmp_path / "model.skops").score_samples(new), scores)
    monkeypatch.setattr("refkernel._nearest.FEWEST_ROWS", 5000)
    np.testing.assert_array_equal(rk.AutoDetector().fit(X).score_samples(new), scores)


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


@every_seed
def test_jitted_distances_equal_their_python_source(seed):
    rng = np.random.default_rng(seed)
    X, Z_columns = rng.normal(size=(4, 3)), rng.normal(size=(3, 9))
    ends = []
    for run in ((l1_distances, nearest_l1), (l1_distances.py_func, nearest_l1.py_func)):
        D, nearest, index = np.empty((4, 9)), np.empty((4, 2)), np.empty((4, 2), dtype=np.intp)
        run[0](X, Z_columns, D)
        run[1](X, Z_columns, np.array([0, -1, 3, 8]), nearest, index)
        ends.append((D, nearest, index))
    for compiled, plain in zip(*ends, strict=True):
        np.testing.assert_array_equal(compiled, plain)


@every_seed
@pytest.mark.parametrize("n", [2, 3, 6, 7, 30])
def test_a_left_out_row_scores_as_by_a_description_without_it(seed, n):
    """Every row, against a naive loop that fits on all others; the width and the floor of neighbours' distances are held."""
    Z = np.random.default_rng(seed).normal(size=(n, 3)).round(1)
    neighbours, residual = Neighbours(columns(Z)).fit(), Residuals(columns(Z), (0.5,)).fit()
    rows = np.arange(n)
    for i in rows:
        others = np.delete(Z, i, axis=0)
        C = np.exp(-cdist(others, others, "cityblock") / residual._widths[0]) + RIDGE * np.eye(n - 1)
        k = np.exp(-cdist(others, Z[[i]], "cityblock") / residual._widths[0])
        assert residual.left_out(rows)[0, i] == pytest.approx(1.0 - (k.T @ np.linalg.solve(C, k)).item(), abs=1e-9)
        assert neighbours.left_out(rows)[0, i] == pytest.approx(cdist(Z[[i]], others, "cityblock").min(), rel=1e-12)
        if n > 6:
            without = Neighbours(columns(others)).fit()
            without._floor = neighbours._floor
            if len(np.unique(cdist(Z, Z, "cityblock")[i])) == n:  # ties may be neighbours or not
                assert neighbours.left_out(rows)[1, i] == pytest.approx(without.score(Z[[i]])[1, 0], rel=1e-9)


def test_a_new_row_scores_by_the_formula():
    Z, X = (np.random.default_rng(s).normal(size=(40, 3)) for s in (0, 1))
    residual = Residuals(columns(Z), (0.5,)).fit()
    k = np.exp(-cdist(Z, X, "cityblock") / residual._widths[0])
    C = np.exp(-cdist(Z, Z, "cityblock") / residual._widths[0]) + RIDGE * np.eye(40)
    np.testing.assert_allclose(residual.score(X)[0], 1.0 - (k * np.linalg.solve(C, k)).sum(axis=0), atol=1e-10)


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
    detector = rk.AutoDetector(false_alarm_rate=0.01)
    assert detector.fit_predict(X)[7] == -1
    assert detector.calibration_[0] == detector._left_out_scores()[np.flatnonzero(detector._rows == 7)[0]]


def test_a_table_in_which_every_row_contradicts_all_others_says_nothing_by_it():
    detector = rk.AutoDetector(false_alarm_rate=0.1).fit(np.eye(40))
    assert np.isfinite(detector.score_samples(np.eye(40) + 1.0)).all()
    assert detector._lowest == 0.0


def test_a_column_that_was_constant_is_a_statement():
    """A set-point that was always 100 and becomes 130 is flagged, whatever the other columns say; a rounding of it is not."""
    X = np.column_stack([np.random.default_rng(0).normal(size=(100, 2)), np.full(100, 100.0)])
    model = rk.AutoDetector().fit(X)
    np.testing.assert_array_equal(model.predict([[0.0, 0.0, 100.0], [0.0, 0.0, 130.0], [0.0, 0.0, 100.0 + 1e-9]]), [1, -1, 1])
    assert ColumnView().fit(X).transform(np.array([[0.0, 0.0, 99.0]]))[0, 2] == -10.0


def test_evidence_grows_with_the_score_and_is_minus_the_log_of_a_p_value():
    held = np.array([0.0, 0.0, 1.0, 2.0])
    evidence = Evidence(held).fit()
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


def test_many_rows_are_all_used(monkeypatch):
    """Beyond the references, every row is a neighbour and calibrates: leaving out any region changes the answer there."""
    monkeypatch.setattr(detector_module, "MOST_REFERENCES", 50)
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(400, 2)), rng.normal(size=(8, 2)) * 0.01 + 6.0])
    model = rk.AutoDetector(0.01).fit(X)
    assert len(model.calibration_) == 408
    assert model.score_samples([[6.0, 6.0]])[0] > model.score_samples([[6.0, -6.0]])[0]
    assert rk.AutoDetector().fit(X).score_samples(X).shape == (408,)


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
    assert not np.isin(np.arange(380, 400), model._rows).any()


def test_few_equal_references_explain_no_more_than_the_ridge_allows():
    """c equal references explain c / (c + ridge) of a sample like them, and c - 1 of them that much less of each other."""
    Z = np.vstack([np.zeros((4, 2)), np.full((60, 2), 1e3)])
    residual = Residuals(columns(Z), (0.01,), ridge=8.0).fit()
    assert residual.score(np.zeros((1, 2)))[0, 0] == pytest.approx(1.0 - 4.0 / 12.0)
    assert residual.left_out(np.arange(1))[0, 0] == pytest.approx(1.0 - 3.0 / 11.0)


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
