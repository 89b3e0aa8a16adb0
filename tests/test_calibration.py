"""Thresholds with a promise: p-values, false-alarm rates, discoveries."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import beta, binom
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

import refkernel as rk
from refkernel.classifiers import left_out as _left_out
from refkernel.detectors.calibration import least_rate, needed_samples, promise
from refkernel.detectors.calibration.held_out import HeldOutModels
from refkernel.detectors.calibration.promise import benjamini_hochberg

METHODS = [("split", "auto"), ("cv", "folds"), ("cv", "full"), ("loo", "folds"), ("loo", "full")]
every_method = pytest.mark.parametrize(("method", "scored_by"), METHODS)


class FirstColumn(OutlierMixin, BaseEstimator):
    """Learns nothing: the score of a sample is its first value."""

    def fit(self, X, y=None):
        self.n_features_in_ = np.shape(X)[1]
        return self

    def score_samples(self, X):
        return np.asarray(X)[:, 0]


class Middle(OutlierMixin, BaseEstimator):
    """The score is minus the distance to the mean."""

    def fit(self, X, y=None, sample_weight=None):
        self.rows_ = np.array(X)
        self.y_ = y
        self.mean_ = np.average(X, axis=0, weights=sample_weight)
        return self

    def score_samples(self, X):
        return -np.linalg.norm(np.asarray(X) - self.mean_, axis=1)


class OutlierScores(BaseEstimator):
    """Scores the way PyOD does: a high value of decision_function is an outlier, and there is no score_samples."""

    def fit(self, X, y=None):
        self.mean_ = np.mean(X, axis=0)
        return self

    def decision_function(self, X):
        return np.linalg.norm(np.asarray(X) - self.mean_, axis=1)


class Shortcut(Middle):
    """Middle with a way of its own to leave one sample out."""

    def _leave_one_out(self, X, y=None, sample_weight=None):
        rows = np.arange(len(X)) if y is None else np.flatnonzero(np.asarray(y) != -1)
        models = [Middle().fit(np.delete(X, i, axis=0)) for i in rows]
        scores = np.array([model.score_samples(X[[i]])[0] for model, i in zip(models, rows, strict=True)])
        return HeldOutModels(models, scores, np.arange(rows.size), 1.0)


EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "a row calibrates once, whatever its weight: new samples come one by one",
    "check_sample_weight_equivalence_on_sparse_data": "a row calibrates once, whatever its weight: new samples come one by one",
}


@parametrize_with_checks(
    [
        rk.ConformalDetector(rk.SVDD(rk.RBF(1.0)), 0.3),
        rk.ConformalDetector(rk.SVDD(rk.RBF(1.0)), 0.3, scored_by="full"),
        rk.ConformalDetector(rk.OneClassSVM(rk.RBF(1.0)), 0.3, method="split", calibration_size=0.5),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES if estimator.method == "split" else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_classifiers_targets_are_left_out_once(monkeypatch):
    """The bare SVDD leaves samples out for a threshold of its own, which is not used here; its scores are the same."""
    calls = []
    leave_out = _left_out.leave_out
    monkeypatch.setattr(_left_out, "leave_out", lambda *args, **kwargs: calls.append(1) or leave_out(*args, **kwargs))
    X = np.random.default_rng(0).normal(size=(40, 2))
    bare = rk.ConformalDetector(rk.SVDD(), 0.3, method="loo").fit(X)
    assert len(calls) == 1
    classical = rk.ConformalDetector(rk.SVDD(threshold="training"), 0.3, method="loo").fit(X)
    np.testing.assert_array_equal(bare.calibration_scores_, classical.calibration_scores_)


# the promise, by arithmetic


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 0.29, 0.5])
@pytest.mark.parametrize("confidence", [None, 0.5, 0.9, 0.99])
def test_needed_samples_is_the_first_number_that_can_promise(rate, confidence):
    """One sample fewer is refused."""
    n = needed_samples(rate, confidence)
    assert promise(n, rate, confidence).rank == 1
    assert least_rate(n, confidence) <= rate * (1 + 1e-9)
    with pytest.raises(ValueError, match="promise"):
        promise(n - 1, rate, confidence)


def test_what_cannot_be_promised_is_said_with_the_number_that_can():
    """The message has the number of samples, the rate that they allow, and how many are needed."""
    with pytest.raises(ValueError, match=r"35 samples promise no less than 2\.8 %: false_alarm_rate=0\.01 needs 99\."):
        rk.ConformalDetector(rk.SVDD(), 0.01).fit(np.random.default_rng(0).normal(size=(35, 2)))
    with pytest.raises(ValueError, match=r"20 samples promise no less than 11 % with confidence 0\.9: false_alarm_rate=0\.05 needs 45\."):
        promise(20, 0.05, 0.9)


@pytest.mark.parametrize("n", [50, 99, 1000])
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3])
def test_the_confident_rank_is_the_largest_that_the_binomial_allows(n, rate):
    """P(Beta(k, n + 1 - k) <= rate) = P(Bin(n, rate) >= k) is at least the confidence for k, and less for k + 1."""
    found = promise(n, rate, 0.9)
    assert binom.sf(found.rank - 1, n, rate) >= 0.9 > binom.sf(found.rank, n, rate)
    assert found.rate <= rate
    assert math.isclose(beta.cdf(found.rate, found.rank, n + 1 - found.rank), 0.9, rel_tol=1e-6)
    assert found.rank < promise(n, rate).rank


@pytest.mark.parametrize("value", [0, 1, -0.1, 2, True, "0.1", None, np.nan])
def test_rates_outside_0_and_1_are_refused(value, samples):
    """The error names the value."""
    with pytest.raises(ValueError, match=r"false_alarm_rate=.* must be a number between 0 and 1"):
        rk.ConformalDetector(Middle(), value).fit(samples(50, 2, 0))
    if value is not None:
        with pytest.raises(ValueError, match="confidence="):
            rk.ConformalDetector(Middle(), confidence=value).fit(samples(50, 2, 0))
    with pytest.raises(ValueError, match="fdr="):
        benjamini_hochberg([0.5], value)


def test_benjamini_hochberg_is_the_naive_loop():
    """On random p-values with ties, the discoveries are those of the definition."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.integers(1, 40, size=rng.integers(1, 30)) / 40
        best = max((j for j in range(1, p.size + 1) if np.sort(p)[j - 1] <= 0.2 * j / p.size + 1e-12), default=0)
        expected = p <= np.sort(p)[best - 1] if best else np.zeros(p.size, dtype=bool)
        np.testing.assert_array_equal(benjamini_hochberg(p, 0.2), expected)
    assert benjamini_hochberg([], 0.1).shape == (0,)


# the promise, by simulation


def levels_reached(estimator, draw, levels, repetitions, n, **parameters):
    """The mean of P(p <= level) over repetitions of training and testing, and its standard error; 40 new samples each."""
    shares = []
    for i in range(repetitions):
        Z = draw(n + 40)
        p = rk.ConformalDetector(estimator, 0.2, random_state=i, **parameters).fit(Z[:n]).p_values(Z[n:])
        shares.append([np.mean(p <= level) for level in levels])
    return np.mean(shares, axis=0), np.std(shares, axis=0, ddof=1) / np.sqrt(repetitions)


@every_method
@pytest.mark.parametrize("estimator", [FirstColumn(), Middle(), rk.SVDD(rk.RBF(scale=0.1))], ids=repr)
def test_p_values_of_exchangeable_samples_are_uniform(method, scored_by, estimator):
    """P(p <= a) is a for "split" and at most a for the others, within 4 standard errors; and not far below it.

    Scored by the full model that is only so for small a, which thresholds are about.
    """
    rng = np.random.default_rng(0)
    levels = np.array([0.1, 0.2] if scored_by == "full" else [0.1, 0.2, 0.5])
    parameters = {"method": method, "scored_by": scored_by, "cv": 5, "calibration_size": 19}
    share, error = levels_reached(estimator, lambda n: rng.normal(size=(n, 2)), levels, 100, 39, **parameters)
    assert (share < levels + 4 * error).all()
    assert (share > (levels if method == "split" else 0.75 * levels) - 4 * error).all()


@pytest.mark.parametrize(("method", "scored_by"), [pair for pair in METHODS if pair[1] != "full"])
def test_p_values_are_conservative_where_scores_tie(method, scored_by):
    """On rows of three values, most of them tied, no level is exceeded."""
    rng = np.random.default_rng(1)
    levels = np.array([0.05, 0.1, 0.3])
    share, error = levels_reached(
        rk.SVDD(),
        lambda n: rng.choice([0.0, 1.0, 2.0], p=[0.15, 0.35, 0.5], size=(n, 1)),
        levels,
        100,
        40,
        method=method,
        scored_by=scored_by,
        calibration_size=0.5,
    )
    assert (share <= levels + 4 * error).all()


@pytest.mark.parametrize(("method", "slack"), [("split", 0.0), ("loo", 0.05)])
def test_the_rate_itself_stays_below_the_wish_with_the_confidence(method, slack):
    """Over training sets, the true rate of the threshold exceeds the wish in at most 1 - confidence of them."""
    repetitions, confidence, rate = 400, 0.9, 0.1
    rng = np.random.default_rng(0)
    kept = 0
    for i in range(repetitions):
        detector = rk.ConformalDetector(
            FirstColumn(), rate, confidence=confidence, method=method, scored_by="full", calibration_size=60, random_state=i
        ).fit(rng.uniform(size=(80, 1)))
        kept += detector.offset_ <= rate  # the score is uniform: its distribution function at the threshold is the threshold
    assert kept / repetitions >= confidence - slack - 3 * np.sqrt(confidence * (1 - confidence) / repetitions)


def test_the_interval_covers_the_rate():
    """Given the calibration scores, the rate lies in the interval as often as it says."""
    rng = np.random.default_rng(0)
    inside = 0
    for i in range(400):
        detector = rk.ConformalDetector(FirstColumn(), 0.1, method="split", calibration_size=50, random_state=i).fit(
            rng.uniform(size=(70, 1))
        )
        low, high = detector.false_alarm_interval_
        inside += low <= detector.offset_ <= high
    assert abs(inside / 400 - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 400)


@pytest.mark.parametrize("method", ["split", "cv"])
def test_false_discoveries_stay_below_the_share_asked_for(method):
    """On mixtures of normal samples and outliers, averaged over repetitions and within 3 standard errors; and outliers are found."""
    rng = np.random.default_rng(0)
    false, found = [], []
    for i in range(60):
        X, normal, outliers = rng.normal(size=(300, 2)), rng.normal(size=(90, 2)), rng.normal(size=(20, 2)) + 4.0
        detector = rk.ConformalDetector(Middle(), method=method, calibration_size=0.5, random_state=i).fit(X)
        chosen = detector.select(np.vstack([normal, outliers]), fdr=0.1)
        false.append(chosen[:90].sum() / max(1, chosen.sum()))
        found.append(chosen[90:].mean())
    assert np.mean(false) <= 0.1 + 3 * np.std(false) / np.sqrt(60)
    assert np.mean(found) > 0.5


# what the methods are


@pytest.mark.parametrize("seed", range(3))
@every_method
def test_p_values_are_those_of_a_naive_loop(method, scored_by, seed, samples):
    """Every calibration score is compared with the new score by the model that has not seen it."""
    X, new = samples(45, 3, seed), samples(12, 3, seed + 50)
    cv = KFold(5, shuffle=True, random_state=seed)
    detector = rk.ConformalDetector(Middle(), 0.1, method=method, scored_by=scored_by, cv=cv, random_state=seed).fit(X)
    held_out = detector.calibration_indices_
    if method == "split":
        folds = [(np.setdiff1d(np.arange(45), held_out), held_out)]
    else:
        folds = list((cv if method == "cv" else LeaveOneOut()).split(X))
    counts, differences = np.zeros(12), []
    for train, test in folds:
        model = Middle().fit(X[train])
        scoring = Middle().fit(X) if scored_by == "full" else model
        for c in model.score_samples(X[test]):
            counts += c <= scoring.score_samples(new)
            differences.append(scoring.score_samples(new) - c)
    np.testing.assert_allclose(detector.p_values(new), (1 + counts) / (held_out.size + 1), rtol=1e-12)
    k = math.floor(0.1 * (held_out.size + 1) + 1e-9)
    np.testing.assert_allclose(detector.decision_function(new), np.sort(differences, axis=0)[-k], atol=1e-8)


def test_all_methods_agree_on_an_estimator_that_learns_nothing(samples):
    """Models that do not depend on the training rows make "cv" and "loo" one and the same, scored either way."""
    X, new = samples(60, 2, 0), samples(30, 2, 1)
    p = [rk.ConformalDetector(FirstColumn(), method=m, scored_by=by, random_state=0).fit(X).p_values(new) for m, by in METHODS[1:]]
    for other in p[1:]:
        np.testing.assert_array_equal(other, p[0])


@every_method
def test_decisions_agree_with_p_values_and_rise_with_the_score(method, scored_by, samples):
    """A sample is rejected where p is at most the rate; the decision's sign says the same, and its order is that of the scores."""
    X, new = samples(80, 2, 0), 2 * samples(200, 2, 1)
    detector = rk.ConformalDetector(rk.SVDD(rk.RBF(1.0)), 0.1, method=method, scored_by=scored_by, random_state=0).fit(X)
    p, decision = detector.p_values(new), detector.decision_function(new)
    np.testing.assert_array_equal(detector.predict(new) == -1, p <= detector.false_alarm_rate_ + 1e-12)
    np.testing.assert_array_equal(detector.predict(new) == -1, decision < 0)
    np.testing.assert_allclose(detector.score_samples(new) - detector.offset_, decision, atol=1e-12)
    assert 0 < np.mean(p <= 0.1) < 1
    if scored_by != "folds":
        own = detector.models_.models[0].score_samples(new)
        np.testing.assert_allclose(detector.score_samples(new), own, atol=1e-12)
        assert (np.diff(p[np.argsort(own)]) >= 0).all()


@every_method
def test_a_duplicate_of_the_worst_calibration_sample_is_no_more_extreme_than_it(method, scored_by):
    """Ties count for the sample: with the lowest value shared by 20 % of the rows, it is never rejected at 5 %."""
    X = np.repeat([[0.0], [1.0], [1.1]], [20, 40, 40], axis=0)
    detector = rk.ConformalDetector(FirstColumn(), method=method, scored_by=scored_by, random_state=0).fit(X)
    assert detector.predict([[0.0]]) == [1]
    assert detector.p_values([[0.0]])[0] >= 0.1
    assert detector.predict([[-0.1]]) == [-1]


def test_rounding_does_not_break_ties():
    """A score a few units in the last place lower counts as equal, at any size of the scores."""
    for size in (1e-200, 1.0, 1e200):
        X = size * np.repeat([[0.3], [1.0]], [20, 60], axis=0)
        detector = rk.ConformalDetector(FirstColumn(), method="loo").fit(X)
        assert detector.predict([[0.3 * size * (1 - 1e-14)], [0.29 * size]]).tolist() == [1, -1]


def test_the_threshold_moves_without_fitting_again(samples):
    """What another rate gives is what fitting with it gives, and the first detector is left as it was."""
    X, new = samples(150, 3, 0), samples(100, 3, 1)
    detector = rk.ConformalDetector(rk.SVDD(), 0.05, random_state=0).fit(X)
    before = detector.predict(new)
    moved = detector.with_false_alarm_rate(0.2, confidence=0.8)
    again = rk.ConformalDetector(rk.SVDD(), 0.2, confidence=0.8, random_state=0).fit(X)
    np.testing.assert_array_equal(moved.predict(new), again.predict(new))
    assert moved.false_alarm_rate_ == again.false_alarm_rate_
    assert moved.models_ is detector.models_
    np.testing.assert_array_equal(detector.predict(new), before)
    with pytest.raises(ValueError, match=r"150 samples promise no less than 0\.66 %"):
        detector.with_false_alarm_rate(0.001)


# what can be wrapped


@pytest.mark.parametrize(
    "estimator",
    [
        rk.SVDD(),
        rk.OneClassSVM(),
        rk.ReferenceResidual(random_state=0),
        IsolationForest(n_estimators=20, random_state=0),
        LocalOutlierFactor(novelty=True),
        OneClassSVM(),
        EllipticEnvelope(random_state=0),
        make_pipeline(StandardScaler(), LocalOutlierFactor(novelty=True)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_any_detector_rejects_what_is_far_and_about_the_rate_of_what_is_not(estimator, samples):
    """Ours and scikit-learn's."""
    X, new = samples(200, 3, 0), samples(200, 3, 0) + 1e-3
    detector = rk.ConformalDetector(estimator, 0.1, cv=4, random_state=0).fit(X)
    assert detector.predict(1000 + new[:20]).tolist() == [-1] * 20
    assert np.mean(detector.predict(new) == -1) < 0.2
    assert detector.n_features_in_ == 3
    assert clone(detector).get_params()["cv"] == 4


def test_detectors_that_score_outliers_high_are_turned_round(samples):
    """Said by a word, or known from PyOD's classes."""
    X, new = samples(100, 2, 0), np.vstack([samples(20, 2, 1), 1000 + samples(20, 2, 1)])
    expected = rk.ConformalDetector(Middle(), random_state=0).fit(X)
    said = rk.ConformalDetector(OutlierScores(), higher_is="outlier", random_state=0).fit(X)
    pyod_like = type("KNN", (OutlierScores,), {"__module__": "pyod.models.knn"})
    known = rk.ConformalDetector(make_pipeline(StandardScaler(with_std=False), pyod_like()), random_state=0).fit(X)
    for detector in (said, known):
        np.testing.assert_allclose(detector.p_values(new), expected.p_values(new))
        np.testing.assert_allclose(detector.decision_function(new), expected.decision_function(new), atol=1e-8)


@every_method
def test_known_outliers_never_calibrate(method, scored_by, samples):
    """Rows labelled -1 have no calibration score; "pass" hands them with their labels to every fit, "drop" to none."""
    X = np.vstack([samples(50, 2, 0), 100 + samples(10, 2, 0)])
    y = np.r_[np.ones(50), -np.ones(10)]
    for choice, seen in (("pass", 10), ("drop", 0), ("auto", 0)):
        detector = rk.ConformalDetector(Middle(), 0.1, method=method, scored_by=scored_by, known_outliers=choice, random_state=0).fit(X, y)
        assert detector.calibration_indices_.max() < 50
        for model in detector.models_.models:
            assert (model.rows_ > 50).all(axis=1).sum() == seen
            assert (model.y_ is None) == (seen == 0)
            assert model.y_ is None or (model.y_ == -1).sum() == seen


def test_detectors_of_this_package_get_the_known_outliers(samples):
    """SVDD that repels outliers can be calibrated."""
    X, y = np.vstack([samples(60, 2, 0), 4 + samples(10, 2, 1)]), np.r_[np.ones(60), -np.ones(10)]
    repel = rk.ConformalDetector(rk.SVDD(negatives="repel"), 0.1, random_state=0).fit(X, y)
    plain = rk.ConformalDetector(rk.SVDD(), 0.1, random_state=0).fit(X, y)
    assert not np.array_equal(repel.calibration_scores_, plain.calibration_scores_)
    np.testing.assert_array_equal(
        plain.calibration_scores_, rk.ConformalDetector(rk.SVDD(), 0.1, random_state=0).fit(X[:60]).calibration_scores_
    )


@every_method
def test_rows_of_weight_0_are_left_out(method, scored_by, samples):
    """The detector is the one of the other rows, for estimators with weights and without."""
    X, new = samples(60, 2, 0), samples(20, 2, 1)
    weight = np.r_[np.ones(45), np.zeros(15)]
    for estimator in (Middle(), FirstColumn()):
        detector = rk.ConformalDetector(estimator, 0.1, method=method, scored_by=scored_by, random_state=0)
        left_out = clone(detector).fit(X, sample_weight=weight)
        np.testing.assert_allclose(left_out.p_values(new), detector.fit(X[:45]).p_values(new))


def test_weights_that_the_estimator_cannot_take_are_refused(samples):
    """The message names the estimator."""
    with pytest.raises(ValueError, match=r"FirstColumn.fit takes no sample_weight"):
        rk.ConformalDetector(FirstColumn(), 0.1).fit(samples(30, 2, 0), sample_weight=np.arange(30.0))
    with pytest.raises(ValueError, match="30 finite numbers"):
        rk.ConformalDetector(Middle(), 0.1).fit(samples(30, 2, 0), sample_weight=np.ones(7))


def test_sparse_rows_and_tables_pass_through(samples):
    """A sparse matrix in any format, and a DataFrame of mixed columns, reach the estimator as they are."""
    X = samples(60, 3, 0)
    dense = rk.ConformalDetector(rk.SVDD(), 0.1, random_state=0).fit(X).p_values(X[:9])
    np.testing.assert_allclose(
        rk.ConformalDetector(rk.SVDD(), 0.1, random_state=0).fit(sp.coo_array(X)).p_values(sp.csr_array(X[:9])), dense
    )
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "x", "y")}, index=np.arange(60) + 7)
    columns = make_column_transformer((OneHotEncoder(), ["b"]), remainder="passthrough")
    detector = rk.ConformalDetector(make_pipeline(columns, IsolationForest(random_state=0)), 0.1, cv=3, random_state=0).fit(table)
    assert detector.p_values(table.iloc[:4]).shape == (4,)
    assert detector.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("n", [40, 120])
@pytest.mark.parametrize("by", ["full", "folds"])
def test_an_estimator_with_its_own_way_is_left_out_by_it(n, by, samples):
    """Then "auto" means "loo"; the results are those of the naive loop, in a pipeline that is fitted n times too."""
    X, new = samples(n, 2, 0), samples(15, 2, 1)
    naive = rk.ConformalDetector(Middle(), 0.1, method="loo", scored_by=by).fit(X)
    own = rk.ConformalDetector(Shortcut(), 0.1, scored_by=by).fit(X)
    assert (own.method_, rk.ConformalDetector(Middle(), 0.1).fit(X).method_) == ("loo", "cv")
    np.testing.assert_allclose(own.decision_function(new), naive.decision_function(new), atol=1e-9)
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), Shortcut())
    piped = rk.ConformalDetector(pipeline, 0.1, method="loo", scored_by=by).fit(X)
    np.testing.assert_allclose(piped.p_values(new), naive.p_values(new))
    assert piped.n_features_in_ == 2


def test_a_pipeline_is_left_out_as_a_whole(samples):
    """With a scaler that has seen the row left out, 16 to 22 % of new heavy-tailed rows were rejected instead of 5 %."""
    rejected = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, new = rng.standard_t(1.5, size=(100, 50)), rng.standard_t(1.5, size=(300, 50))
        detector = rk.ConformalDetector(make_pipeline(rk.TargetScaler(), rk.SVDD(rk.RBF(1.0))), 0.05, method="loo").fit(X)
        rejected.append(np.mean(detector.predict(new) == -1))
    assert np.mean(rejected) < 0.08
    assert rk.ConformalDetector(make_pipeline(rk.TargetScaler(), rk.SVDD()), 0.1, random_state=0).fit(X).method_ == "cv"


def test_its_own_way_gets_the_known_outliers(samples):
    """They have no score of their own."""
    X, y = np.vstack([samples(40, 2, 0), 9 + samples(5, 2, 0)]), np.r_[np.ones(40), -np.ones(5)]
    assert rk.ConformalDetector(Shortcut(), 0.1, known_outliers="pass").fit(X, y).calibration_scores_.shape == (40,)


def test_results_do_not_depend_on_jobs(samples):
    """Two processes give what one gives."""
    X = samples(50, 2, 0)
    one, two = (rk.ConformalDetector(rk.SVDD(), 0.1, cv=4, random_state=0, n_jobs=jobs).fit(X) for jobs in (None, 2))
    np.testing.assert_array_equal(one.calibration_scores_, two.calibration_scores_)


def test_a_warning_of_every_fold_is_given_once(samples):
    """Ten fits that warn alike warn once."""

    class Warns(Middle):
        def fit(self, X, y=None):
            warnings.warn(f"{len(X)} rows", UserWarning, stacklevel=2)
            return super().fit(X)

    with pytest.warns(UserWarning, match="rows") as record:
        rk.ConformalDetector(Warns(), 0.1, random_state=0).fit(samples(55, 2, 0))
    assert len(record) == 1


def test_infinite_scores_are_compared_and_nan_is_refused(samples):
    """Minus infinity is the least normal of all scores."""

    class Log(FirstColumn):
        def score_samples(self, X):
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.log(np.asarray(X)[:, 0])

    X = np.r_[np.zeros(3), np.linspace(1, 2, 60)][:, None]
    detector = rk.ConformalDetector(Log(), 0.1, random_state=0).fit(X)
    assert np.isfinite(detector.decision_function([[0.0], [1.5]])).all()
    assert detector.predict([[0.0], [1.5]]).tolist() == [-1, 1]
    with pytest.raises(ValueError, match="gives NaN for 1 of 2 samples"):
        detector.predict([[-1.0], [1.0]])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"method": "jackknife"}, ValueError, "method='jackknife'"),
        ({"scored_by": "all"}, ValueError, "scored_by='all'"),
        ({"higher_is": "better"}, ValueError, "higher_is='better'"),
        ({"known_outliers": "train"}, ValueError, "known_outliers='train'"),
        ({"cv": 1}, ValueError, "cv=1 must be at least 2"),
        ({"cv": [(np.arange(10), np.arange(10, 40))]}, ValueError, "must test each of the 50 targets once"),
        ({"method": "split", "calibration_size": 50}, ValueError, "calibration_size=50 of 50 targets"),
        ({"method": "split", "calibration_size": 1.5}, ValueError, r"calibration_size=1\.5 must be"),
        ({"estimator": rk.SVDD("precomputed")}, ValueError, "precomputed"),
        ({"estimator": LocalOutlierFactor()}, TypeError, "novelty=True"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters, error, message, samples):
    """The error names the value and the way out."""
    with pytest.raises(error, match=message):
        rk.ConformalDetector(**{"estimator": Middle(), **parameters}).fit(samples(50, 2, 0))


def test_an_unfitted_detector_says_so(samples):
    """Every method that needs a fit."""
    detector = rk.ConformalDetector(Middle())
    for call in (detector.predict, detector.p_values, detector.decision_function, detector.score_samples, detector.select):
        with pytest.raises(NotFittedError):
            call(samples(3, 2, 0))
    with pytest.raises(NotFittedError):
        detector.with_false_alarm_rate(0.1)


@every_method
def test_a_saved_detector_gives_the_same_p_values(method, scored_by, samples, tmp_path):
    """What it holds are plain arrays and estimators."""
    X, new = samples(40, 2, 0), samples(10, 2, 1)
    detector = rk.ConformalDetector(rk.SVDD(), 0.1, method=method, scored_by=scored_by, cv=3, random_state=0).fit(X)
    loaded = rk.load(rk.save(detector, tmp_path / "model.rk"))
    np.testing.assert_array_equal(loaded.p_values(new), detector.p_values(new))
    np.testing.assert_array_equal(loaded.with_false_alarm_rate(0.3).predict(new), detector.with_false_alarm_rate(0.3).predict(new))


def test_select_says_if_so_few_rows_calibrate_that_it_can_select_nothing(samples):
    """10 rows give no p-value below 1/11: at fdr = 0.05 nothing can be selected, and the warning names the rows that would be enough."""
    X, far = samples(10, 2, 0), 100.0 + samples(5, 2, 1)
    detector = rk.ConformalDetector(Middle(), 0.2, method="loo").fit(X)
    with pytest.warns(UserWarning, match=r"10 calibration rows give no p-value below 1/11 = 0\.0909\. Calibrate on at least 19 rows"):
        assert not detector.select(far, fdr=0.05).any()
    assert detector.select(far, fdr=0.1).all()


class RanksItsBatch(BaseEstimator):
    """Scores as PyOD's ECOD: the share of training rows and of the rows scored together that are at most as far out."""

    def fit(self, X, y=None):
        self.away_ = np.abs(X).max(axis=1)
        return self

    def score_samples(self, X):
        away = np.abs(X).max(axis=1)
        both = np.concatenate([self.away_, away])
        return -np.array([np.mean(both <= value) for value in away])


@pytest.mark.parametrize("method", ["split", "cv", "loo"])
def test_a_detector_that_ranks_its_batch_scores_rows_one_by_one(method):
    """Many outliers in one batch would be ordinary among themselves."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(60, 2)), np.vstack([rng.normal(size=(20, 2)), rng.normal(size=(300, 2)) + 9.0])
    with pytest.warns(UserWarning, match="RanksItsBatch ranks a row among"):
        detector = rk.ConformalDetector(RanksItsBatch(), 0.1, method=method, random_state=0).fit(X)
    assert (detector.predict(new)[20:] == -1).all()
    np.testing.assert_array_equal(detector.predict(new), [detector.predict(row[None])[0] for row in new])


def test_what_cannot_be_copied_for_each_fold_is_named_with_a_way_out():
    class Plain:
        def fit(self, X, y=None):
            return self

        def score_samples(self, X):
            return -np.abs(X).sum(axis=1)

    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(TypeError, match=r"must derive from sklearn.base.BaseEstimator"):
        rk.ConformalDetector(Plain()).fit(X)
    with pytest.raises(TypeError, match=r"SVDD\(\)"):
        rk.ConformalDetector(rk.SVDD).fit(X)
