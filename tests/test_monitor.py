"""A detector in operation: the promise is watched at a proven level, and reviews renew it."""

import json
import re
import shlex
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.pipeline import make_pipeline

import operation
import refkernel as rk
from refkernel.detectors.martingale import HIGH, LOW, ConformalMartingale
from refkernel.exceptions import ModelFileError
from refkernel.tabular.monitor import GAP, LABEL, P_VALUE, ROW, load_state

DAY = 120


def table(rows=400, seed=0, first=0, shift=0.0):
    """Rows of a plant: a time, a machine, two numbers of which one is missing now and then."""
    rng = np.random.default_rng(seed)
    machine = rng.choice(["saw", "press"], rows)
    frame = pd.DataFrame({"when": pd.date_range("2026-01-01", periods=rows, freq="h") + pd.Timedelta(hours=first), "machine": machine})
    frame["temperature"] = 80.0 + shift + 4.0 * rng.normal(size=rows) + 3.0 * (machine == "saw")
    frame["flow"] = np.where(rng.random(rows) < 0.03, np.nan, rng.gamma(3.0, 1.0, rows))
    return frame


@pytest.fixture(scope="module")
def detector():
    return rk.TableDetector(time_column="when").fit(table())


@pytest.fixture(scope="module")
def auto():
    return rk.AutoDetector().fit(np.random.default_rng(0).normal(size=(200, 3)))


def split(**options):
    model = make_pipeline(rk.TargetScaler(), rk.ESVDD())
    return rk.ConformalDetector(model, method="split", calibration_size=0.5, random_state=0, **options)


def test_the_evidence_is_the_mean_of_all_bets_from_all_beginnings():
    """Oracle: naive ranks, and a loop over the bets and the rows at which they begin."""
    rng = np.random.default_rng(0)
    calibration, scores, draws = rng.integers(0, 8, 15).astype(float), rng.integers(0, 8, 40).astype(float), rng.random(40)
    seen, p = calibration.tolist(), []
    for score, draw in zip(scores, draws, strict=True):
        lower, equal = sum(other < score for other in seen), sum(other == score for other in seen)
        p.append((lower + draw * (equal + 1)) / (len(seen) + 1))
        seen.append(score)
    p = np.array(p)
    bets = np.array([e * p ** (e - 1) for e in LOW] + [e * (1 - p) ** (e - 1) for e in HIGH])
    expected = []
    for t in range(1, 41):
        capital = [(1 / np.log2(k + 1) - 1 / np.log2(k + 2)) * np.mean([bet[k - 1 : t].prod() for bet in bets]) for k in range(1, t + 1)]
        expected.append(1 / np.log2(t + 2) + sum(capital))
    whole, parts = ConformalMartingale(calibration), ConformalMartingale(calibration)
    np.testing.assert_allclose(np.exp(whole.add(scores, draws)), expected, rtol=1e-9)
    for some in np.array_split(np.arange(40), 7):
        parts.add(scores[some], draws[some])
    assert parts.evidence == pytest.approx(whole.evidence, rel=1e-9)


def test_many_rows_are_ranked_as_one_after_the_other(monkeypatch):
    rng = np.random.default_rng(1)
    calibration, scores, draws = rng.normal(size=30), rng.normal(size=1_300).round(1), rng.random(1_300)
    at_once = ConformalMartingale(calibration).add(scores, draws)
    monkeypatch.setattr("refkernel.detectors.martingale.TOGETHER", 1)
    np.testing.assert_allclose(ConformalMartingale(calibration).add(scores, draws), at_once, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", operation.SCORES)
def test_without_a_change_an_alarm_ever_is_at_most_as_probable_as_the_level(name):
    """300 runs of 400 rows at the level 0.2, n = 20: more alarms than this limit happen once in 10,000 tests if the law holds."""
    limit = binom.ppf(0.9999, 300, 0.2) / 300
    assert operation.alarms(operation.SCORES[name], 20, 400, 300, level=0.2) <= limit


def test_a_bet_that_is_too_generous_breaks_that_law():
    """The test above can fail: with p-values that count ties against a row, it does."""
    draw, alarms = operation.SCORES["two values"], 0
    for run in range(50):
        rng = np.random.default_rng(run)
        evidence = ConformalMartingale(draw(rng, 20)).add(draw(rng, 400), np.zeros(400))
        alarms += evidence.max() >= -np.log(0.2)
    assert alarms / 50 > 0.9


@pytest.mark.parametrize(("n", "at", "most"), [(50, 0, 100), (200, 0, 40), (200, 1_000, 100), (1_000, 1_000, 100)])
def test_a_shift_of_one_deviation_is_found_within_some_rows(n, at, most):
    """Medians of 200 runs are 25, 9, 35 and 30 rows (docs/measured/operation.md)."""
    assert float(operation.delay(operation.ours, n, "shift", 1.0, at, 20).partition(" ")[0]) <= most


def test_a_changed_column_gives_an_alarm_and_is_named():
    """Two runs; the medians are in docs/measured/operation.md."""
    (alarm, named), wrong = operation.column_delays(3, 4.0, 2)
    assert float(alarm) <= 30
    assert float(named) == 100
    assert wrong == 0


def test_folds_that_calibrate_give_no_more_alarms():
    """Rows that are scored by folds look less normal than new ones. 16 fits: more than 4 alarms happen once in 1,000 tests."""
    assert operation.alarms_of_auto(60, 3, 1_000, 16) <= 4 / 16


@pytest.mark.parametrize("method", ["split", "cv", "loo"])
def test_labels_and_p_values_are_those_of_the_detector(method, auto):
    rng = np.random.default_rng(2)
    X, new = rng.integers(0, 5, (80, 2)).astype(float), rng.integers(0, 6, (50, 2)).astype(float)
    conformal = rk.ConformalDetector(rk.SVDD(), 0.1, method=method, random_state=0).fit(X)
    for fitted, rows in ((conformal, new), (auto, rng.normal(size=(50, 3)))):
        seen = rk.Monitor(fitted).update(rows)
        np.testing.assert_array_equal(seen.labels, fitted.predict(rows))
        np.testing.assert_allclose(seen.p_values, fitted.p_values(rows))


def test_batches_of_any_size_give_the_same_evidence_labels_and_episodes(detector):
    new = pd.concat([table(60, 1, 400), table(60, 2, 460, shift=8.0)], ignore_index=True)
    whole, parts = rk.Monitor(detector), rk.Monitor(detector)
    labels = whole.update(new).labels
    found = [parts.update(new.iloc[some]) for some in np.split(np.arange(DAY), [0, 1, 50, 90])]
    np.testing.assert_array_equal(np.concatenate([each.labels for each in found]), labels)
    assert parts.evidence_ == pytest.approx(whole.evidence_, rel=1e-9)
    assert (parts.alarm_, parts.flagged_share_) == (whole.alarm_, whole.flagged_share_)
    assert parts.episodes_ == whole.episodes_


def test_a_state_that_was_saved_goes_on_as_if_it_had_not_been(detector, tmp_path):
    """Also with categories that training never had, missing cells, a review and a new fit."""
    first, second = table(DAY, 3, 400), table(DAY, 4, 600, shift=3.0)
    first.loc[[3, 4], "machine"], first.loc[5, "machine"], first.loc[6, "flow"] = "lathe", None, np.nan
    stays, goes = rk.Monitor(detector), rk.Monitor(detector)
    for act in (
        lambda monitor: monitor.update(first),
        lambda monitor: monitor.review([3, 10]),
        lambda monitor: monitor.update(second),
        lambda monitor: monitor.review().refit(),
        lambda monitor: monitor.update(table(50, 5, 800)),
    ):
        act(stays)
        act(goes)
        goes = rk.load(rk.save(goes, tmp_path / "plant.state"))
        assert (goes.evidence_, goes.alarm_, goes.drifted_) == (stays.evidence_, stays.alarm_, stays.drifted_)
        assert goes.episodes_ == stays.episodes_
        np.testing.assert_array_equal(goes.detector_.calibration_, stays.detector_.calibration_)


def test_neighbouring_flagged_rows_are_one_episode(auto):
    """Oracle: a loop over the rows."""
    rng = np.random.default_rng(6)
    rows = np.where(rng.random((300, 1)) < 0.15, 9.0 + rng.random((300, 1)), 0.0) * np.ones(3) + rng.normal(scale=0.1, size=(300, 3))
    monitor = rk.Monitor(auto)
    seen = monitor.update(rows)
    expected, last = [], -GAP - 1
    for row in np.flatnonzero(seen.labels == -1).tolist():
        if row - last > GAP:
            expected.append([])
        expected[-1].append(row)
        last = row
    assert [(e.first, e.last, e.flagged) for e in seen.episodes] == [(rows[0], rows[-1], len(rows)) for rows in expected]
    for episode, mine in zip(seen.episodes, expected, strict=True):
        assert episode.worst in mine
        assert episode.p_value == seen.p_values[mine].min()
        assert episode.reasons[0].startswith(("x0 = ", "x1 = ", "x2 = "))


def test_an_episode_goes_on_in_the_next_batch(auto):
    monitor = rk.Monitor(auto)
    (first,) = monitor.update(np.full((2, 3), 9.0)).episodes
    (second,) = monitor.update(np.vstack([np.full((1, 3), 9.0), np.zeros((9, 3))])).episodes
    assert (first.first, first.last, second.first, second.last, second.flagged) == (0, 1, 0, 2, 3)
    assert monitor.update(np.zeros((5, 3))).episodes == []


def test_a_column_that_drifts_is_named_and_others_are_not(detector):
    monitor = rk.Monitor(detector)
    for day in range(6):
        monitor.update(table(DAY, 10 + day, 400 + day * DAY))
    assert monitor.drifted_ == {}
    monitor.update(table(DAY, 20, 2_000, shift=6.0))
    assert monitor.drifted_ == {"temperature": 7 * DAY}
    monitor.review()
    assert monitor.drifted_ == {}


def test_all_rows_of_a_period_but_its_anomalies_join_the_calibration(auto):
    """Also those that were not flagged."""
    rng, monitor = np.random.default_rng(7), rk.Monitor(auto)
    for _ in range(2):
        new = rng.normal(size=(100, 3))
        seen = monitor.update(new)
        anomalies = np.argsort(seen.p_values)[:3]
        before = monitor.detector_.calibration_
        monitor.review(seen.rows[anomalies])
        joined = auto.score_samples(np.delete(new, anomalies, axis=0))
        np.testing.assert_array_equal(monitor.detector_.calibration_, np.sort(np.concatenate([before, joined])))
    kept = rk.calibration.promise(394, 0.05)
    assert monitor.detector_.offset_ == monitor.detector_.calibration_[kept.rank - 1]
    assert monitor.detector_.false_alarm_rate_ == kept.rate
    np.testing.assert_array_equal(monitor.reviews_[:, :3], [[100, 97, 3], [200, 97, 3]])
    assert monitor.reviews_[-1, 3] == kept.rate
    assert (monitor.evidence_, monitor.alarm_, np.isnan(monitor.flagged_share_)) == (1.0, False, True)
    assert (monitor.detector, monitor.rows_, monitor.start_) == (auto, 200, 200)


@pytest.mark.parametrize("window", [50, 250])
def test_the_oldest_rows_leave_where_more_than_the_window_would_calibrate(auto, window):
    rng, monitor = np.random.default_rng(8), rk.Monitor(auto, window=window)
    new = rng.normal(size=(120, 3))
    for some in np.split(new, 3):
        monitor.update(some)
        monitor.review()
    calibration, newest = monitor.detector_.calibration_, auto.score_samples(new[-window:])
    assert calibration.size == window
    assert np.isin(newest, calibration).all()
    assert np.isin(np.setdiff1d(calibration, newest), auto.calibration_).all()


def test_a_row_that_came_by_any_model_calibrates_by_the_same_model():
    """Folds: the p-values after a review are those of a detector that was calibrated by hand."""
    rng = np.random.default_rng(9)
    fitted = rk.ConformalDetector(rk.ESVDD(), 0.1, method="cv", cv=4, random_state=0).fit(rng.normal(size=(60, 2)))
    monitor, new = rk.Monitor(fitted), rng.normal(size=(40, 2))
    monitor.update(new)
    after = monitor.review(np.array([0, 5])).detector_
    kept = np.delete(new, [0, 5], axis=0)
    S, model = after.models_.score_matrix(kept), after.models_.model[-38:]
    np.testing.assert_allclose(after.calibration_scores_[-38:], S[np.arange(38), model])
    assert set(model.tolist()) == {0, 1, 2, 3}
    assert after.predict(new).shape == (40,)


@pytest.mark.parametrize(("name", "runs"), [("ConformalDetector (ESVDD, split)", 40), ("AutoDetector", 4)])
def test_after_three_reviews_the_rate_is_kept_where_it_was_off_by_ten_points(name, runs):
    """The short form of the simulation in docs/measured/operation.md; a run's rate has a standard deviation of 1.5 points."""
    unreviewed, reviewed = operation.reviewed(name, runs).mean(axis=0)
    assert unreviewed >= 0.15
    assert abs(reviewed - 0.05) <= 0.01 + 3 * 0.015 / np.sqrt(runs)


def test_refit_learns_what_reviews_call_normal(detector):
    """A machine that training never had is normal after it. Oracle: a fit by hand on the same rows, in the same units."""
    new = table(300, 11, 400)
    new.loc[new["machine"] == "saw", "machine"] = "lathe"
    new.loc[:4, "temperature"] = 200.0
    monitor = rk.Monitor(detector)
    monitor.update(new)
    monitor.review(np.arange(300) < 5)
    lathe = table(40, 12, 800).assign(machine="lathe")
    assert (monitor.detector_.predict(lathe) == 1).mean() < 0.9
    monitor.refit()
    by_hand = rk.TableDetector(time_column="when").fit(new, np.where(np.arange(300) < 5, -1, 1))
    np.testing.assert_allclose(monitor.detector_.score_samples(lathe), by_hand.score_samples(lathe), rtol=1e-9)
    assert (monitor.detector_.predict(lathe) == 1).mean() > 0.9
    again = monitor.update(lathe)
    assert (again.rows[0], monitor.start_) == (300, 300)


def test_rows_that_a_refit_learnt_do_not_calibrate_by_their_old_scores(auto):
    rng = np.random.default_rng(13)
    monitor = rk.Monitor(auto)
    monitor.update(rng.normal(size=(150, 3)))
    monitor.review().refit()
    described = monitor.detector_.calibration_
    monitor.update(rng.normal(size=(30, 3)))
    assert monitor.review().detector_.calibration_.size == described.size + 30


def test_rows_are_watched_in_the_order_of_their_time(auto):
    rng = np.random.default_rng(14)
    X, time = rng.normal(size=(60, 3)), rng.permutation(60)
    sorted_, mixed = rk.Monitor(auto), rk.Monitor(auto)
    expected = sorted_.update(X[np.argsort(time)], np.arange(60))
    seen = mixed.update(X, time)
    assert mixed.evidence_ == sorted_.evidence_
    assert mixed.episodes_ == sorted_.episodes_
    np.testing.assert_array_equal(seen.rows, time)
    np.testing.assert_array_equal(seen.labels, expected.labels[time])


@pytest.mark.parametrize(
    ("time", "written"),
    [
        (pd.date_range("2026-01-01", periods=3, tz="Europe/Berlin"), "2025-12-31 23:00 to 2026-01-02 23:00"),
        (np.array(["2026-01-01", "2026-01-02", "2026-01-03"], dtype="datetime64[D]"), "2026-01-01 to 2026-01-03"),
        ([pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-02"), pd.Timestamp("2026-01-03")], "2026-01-01 to 2026-01-03"),
        ([5, 6, 7], "5 to 7"),
    ],
)
def test_dates_of_all_kinds_and_numbers_are_times(auto, time, written):
    assert f"rows 0 to 2, 3 flagged ({written})" in rk.Monitor(auto).update(np.full((3, 3), 9.0), time).text


def test_an_empty_batch_changes_nothing(detector, auto):
    for fitted, rows in ((detector, table(30, 1, 400)), (auto, np.random.default_rng(0).normal(size=(30, 3)))):
        monitor = rk.Monitor(fitted)
        assert monitor.update(rows[:0]).text.startswith("0 rows: 0 flagged in 0 episodes; promised")
        monitor.update(rows)
        evidence = monitor.evidence_
        empty = monitor.update(rows[:0])
        assert (empty.labels.size, empty.rows.size, empty.episodes, monitor.evidence_, monitor.rows_) == (0, 0, [], evidence, 30)
        assert monitor.update(rows[:1].assign(when=pd.Timestamp("2030-01-01")) if fitted is detector else rows[:1]).labels.shape == (1,)


MISTAKES = {
    "a row that was never watched": (lambda monitor: monitor.review([60]), "Row 60 does not wait for a review: rows 0 to 59 do"),
    "a row between two": (lambda monitor: monitor.review([1.5]), "Row 1.5 does not wait"),
    "a negative row": (lambda monitor: monitor.review([-1]), "Row -1 does not wait"),
    "a wrong number of truth values": (lambda monitor: monitor.review(np.ones(3, dtype=bool)), "3 truth values; 60 rows wait"),
    "a row of an older review": (lambda monitor: monitor.review().review([0]), "No row was watched since the last review"),
    "refit before a review": (lambda monitor: monitor.refit(), "60 rows wait: review them first"),
    "too few times": (lambda monitor: monitor.update(np.zeros((2, 3)), [100]), "time has 1 value, and X has 2 rows"),
    "a missing time": (lambda monitor: monitor.update(np.zeros((2, 3)), [100, np.nan]), "no finite value for row 1"),
    "an infinite time": (lambda monitor: monitor.update(np.zeros((2, 3)), [100, np.inf]), "no finite value for row 1"),
    "one time for all rows": (lambda monitor: monitor.update(np.zeros((2, 3)), "2026-03-01"), "time is '2026-03-01', and X has 2 rows"),
    "dates after numbers": (
        lambda monitor: monitor.update(np.zeros((1, 3)), [pd.Timestamp("2026-01-01")]),
        "time holds dates, and earlier",
    ),
    "no times after times": (lambda monitor: monitor.update(np.zeros((2, 3))), "X has no times, and earlier batches had"),
    "refit with anomalies only": (lambda monitor: monitor.review(np.arange(60)).refit(), "none of 60 rows kept is"),
    "undo before a review": (lambda monitor: monitor.undo(), "no review to go back to: the last 3"),
    "a batch from the past": (lambda monitor: monitor.update(np.zeros((2, 3)), [10, 11]), "begins at 10, and rows until 59"),
    "NaN": (lambda monitor: monitor.update(np.full((2, 3), np.nan), [100, 101]), "NaN"),
    "a missing column": (lambda monitor: monitor.update(np.zeros((2, 2)), [100, 101]), "2 features"),
}


def test_the_same_batch_again_is_refused_and_changes_nothing(detector, auto):
    """With times, also equal ones; and without, unless all its rows are the same: a machine that is off."""
    rng = np.random.default_rng(0)
    for fitted, X, time in ((auto, rng.normal(size=(9, 3)), None), (auto, np.zeros((9, 3)), [5] * 9), (detector, table(9, 1, 400), None)):
        monitor = rk.Monitor(fitted)
        monitor.update(X, time)
        before = monitor.evidence_, monitor.rows_, len(monitor.history_)
        for _ in range(2):
            with pytest.raises(ValueError, match=r"the one before again|were watched already"):
                monitor.update(X, time)
            assert (monitor.evidence_, monitor.rows_, len(monitor.history_)) == before
            monitor.review() if monitor.start_ < monitor.rows_ else None
            before = monitor.evidence_, monitor.rows_, len(monitor.history_)
    monitor = rk.Monitor(auto)
    for _ in range(3):
        monitor.update(np.zeros((9, 3)))
    assert monitor.rows_ == 27


def test_a_batch_without_times_does_not_open_the_way_for_old_rows(auto):
    """The last time known counts."""
    monitor = rk.Monitor(auto)
    monitor.update(np.zeros((3, 3)), [4, 5, 6])
    monitor.history_[-1, 4] = np.nan  # a state of a version that took such batches
    monitor.history_ = np.vstack([[[1, 0, 0.0, 1, 6.0]], monitor.history_])
    with pytest.raises(ValueError, match="rows until 6 were watched"):
        monitor.update(np.ones((1, 3)), [5])


def test_the_time_column_of_any_frame_counts(detector):
    """pandas, polars and pyarrow give the same state."""
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    new = table(30, 1, 400)
    monitors = [rk.Monitor(detector) for _ in range(3)]
    for monitor, frame in zip(monitors, (new, pl.from_pandas(new), pa.Table.from_pandas(new)), strict=True):
        monitor.update(frame)
        assert monitor.history_.tolist() == monitors[0].history_.tolist()
        assert np.isfinite(monitor.history_[-1, 4])
        with pytest.raises(ValueError, match="were watched already"):
            monitor.update(frame)


def test_nanoseconds_are_dates(auto):
    text = rk.Monitor(auto).update(np.full((2, 3), 9.0), np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[ns]")).text
    assert "(2026-01-01 to 2026-01-02)" in text


def test_what_is_known_can_be_read_before_the_first_update(auto):
    monitor = rk.Monitor(auto)
    assert (monitor.evidence_, monitor.alarm_, monitor.episodes_, monitor.rows_, monitor.flagged_interval_) == (
        1.0,
        False,
        [],
        0,
        (0.0, 1.0),
    )
    with pytest.raises(ValueError, match="not fitted"):
        rk.Monitor(rk.AutoDetector()).evidence_  # noqa: B018


def test_counts_of_a_batch_larger_than_the_window_are_those_of_its_labels(auto):
    """And no flagged row of it is lost, though only the newest rows calibrate."""
    monitor, X = rk.Monitor(auto, window=50), np.random.default_rng(3).normal(size=(400, 3))
    seen = monitor.update(X)
    flagged = seen.rows[seen.labels == -1]
    assert seen.text.startswith(f"400 rows: {flagged.size} flagged in {len(seen.episodes)} episodes")
    assert seen.episodes[0].first == flagged[0]
    assert sum(episode.flagged for episode in seen.episodes) == flagged.size
    lost = 350 - (flagged < 350).sum()
    assert f"{lost} rows (0 flagged) left the window of 50." in seen.text
    monitor.review(flagged)  # also the oldest
    normal = 50 - (flagged >= 350).sum()
    np.testing.assert_array_equal(monitor.reviews_[0, :3], [400, normal, flagged.size])
    calibration, newest = monitor.detector_.calibration_, np.setdiff1d(np.arange(350, 400), flagged)
    assert np.isin(auto.score_samples(X[newest]), calibration).all()
    assert not np.isin(auto.score_samples(X[:350]), calibration).any()


def test_flagged_rows_that_left_the_window_never_calibrate(auto):
    """They were kept for their scores. Oracle: the calibration without them."""
    monitor, X = rk.Monitor(auto, window=50), np.random.default_rng(3).normal(size=(400, 3))
    monitor.update(X)
    monitor.review()
    assert not np.isin(auto.score_samples(X[:350]), monitor.detector_.calibration_).any()
    assert len(monitor.kept_) == 50


@pytest.mark.parametrize("refit", [False, True])
def test_undo_is_as_if_the_review_had_not_been(detector, auto, refit, tmp_path):
    """Oracle: a monitor without it, which took the rows since as one batch."""
    rng = np.random.default_rng(4)
    for fitted, first, second in (
        (auto, rng.normal(size=(90, 3)), rng.normal(0.5, 1.0, (60, 3))),
        (detector, table(90, 5, 400), table(60, 6, 600, 3.0)),
    ):
        with_, without = rk.Monitor(fitted), rk.Monitor(fitted)
        for monitor in (with_, without):
            monitor.update(first)
        with_.review([1, 2])
        if refit:
            with_.refit()
        for part in (second[:25], second[25:]):
            with_.update(part)
        with_ = rk.load(rk.save(with_, tmp_path / "plant.state")).undo()
        labels = without.update(second).labels
        np.testing.assert_allclose(with_.history_, without.history_)
        np.testing.assert_allclose(with_.kept_, without.kept_)
        assert (with_.evidence_, with_.episodes_) == (pytest.approx(without.evidence_), without.episodes_)
        np.testing.assert_array_equal(with_.detector_.predict(second), labels)
        assert (with_.start_, with_.rows_, len(with_.reviews_)) == (0, 150, 0)
        with_.review([1, 2, 3])
        np.testing.assert_array_equal(with_.detector_.calibration_, without.review([1, 2, 3]).detector_.calibration_)


def test_three_reviews_can_be_undone(auto):
    rng, monitor, offsets = np.random.default_rng(5), rk.Monitor(auto), []
    for _ in range(4):
        offsets.append(monitor.evidence_ and monitor.detector_.offset_)
        monitor.update(rng.normal(size=(40, 3)))
        monitor.review()
    for offset in offsets[:0:-1]:
        assert monitor.undo().detector_.offset_ == offset
    assert (monitor.start_, monitor.rows_) == (40, 160)
    with pytest.raises(ValueError, match="no review to go back to"):
        monitor.undo()


def test_the_card_says_what_happened_in_plain_json(detector):
    monitor = rk.Monitor(detector)
    monitor.update(table(50, 7, 400))
    monitor.review([3])
    monitor.update(table(40, 8, 500, shift=12.0))
    card = json.loads(json.dumps(monitor.card_, allow_nan=False))
    assert card == monitor.card_
    assert {key: value for key, value in card.items() if key != "operation"} == monitor.detector_.card_
    now = card["operation"]
    assert (now["rows"], now["rows_since_review"], now["alarm"], now["last_update"]) == (90, 40, True, "2026-01-23 11:00")
    rate = monitor.detector_.false_alarm_rate_
    assert now["reviews"] == [{"rows": 50.0, "normal": 49.0, "anomalies": 1.0, "false_alarm_rate": rate}]


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained_and_changes_nothing(auto, name):
    act, message = MISTAKES[name]
    monitor = rk.Monitor(auto)
    monitor.update(np.random.default_rng(0).normal(size=(60, 3)), np.arange(60))
    before = monitor.evidence_, monitor.rows_, monitor.kept_.copy(), monitor.martingale_.rows
    with pytest.raises(ValueError, match=message):
        act(monitor)
    if name not in ("a row of an older review", "refit with anomalies only"):
        assert (monitor.evidence_, monitor.rows_, monitor.martingale_.rows) == (before[0], before[1], before[3])
        np.testing.assert_array_equal(monitor.kept_, before[2])


def test_a_review_of_rows_that_left_the_window_says_so(auto):
    monitor = rk.Monitor(auto, window=20)
    monitor.update(np.zeros((50, 3)))
    with pytest.raises(ValueError, match=r"rows 30 to 49 do.*left the window of 20 rows: review sooner"):
        monitor.review([10])
    assert monitor.review([30]).detector_.calibration_.size == 20


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda auto: rk.Monitor(rk.SVDD().fit(np.eye(3))), "SVDD has no calibration rows"),
        (lambda auto: rk.Monitor(rk.AutoDetector()), "not fitted"),
        (lambda auto: rk.Monitor(auto, level=1.5), "level=1.5"),
        *((lambda auto, window=window: rk.Monitor(auto, window=window), f"window={window}") for window in (0, 2.7, True)),
    ],
)
def test_what_cannot_be_watched_is_refused(auto, make, message):
    with pytest.raises(ValueError, match=message):
        make(auto).update(np.zeros((1, 3)))


def test_the_state_of_another_model_is_refused(auto, tmp_path):
    monitor = rk.Monitor(auto)
    monitor.update(np.zeros((5, 3)))
    monitor.review()
    path = rk.save(monitor, tmp_path / "plant.state")
    assert load_state(path, auto).rows_ == load_state(path, monitor.detector_).rows_ == 5
    with pytest.raises(ModelFileError, match="watches another model"):
        load_state(path, rk.AutoDetector(random_state=1).fit(np.random.default_rng(1).normal(size=(50, 3))))
    with pytest.raises(ModelFileError, match="not the state of a monitor"):
        load_state(rk.save(auto, tmp_path / "model.rk"), auto)
    with pytest.raises(ModelFileError, match="the same one at another rate"):
        load_state(path, auto.with_false_alarm_rate(0.2))


def test_suspects_are_the_training_rows_with_the_lowest_held_out_scores(detector):
    rng = np.random.default_rng(15)
    X = rng.normal(size=(150, 2))
    X[3], X[90] = 7.0, -6.0
    for fitted in (rk.AutoDetector().fit(X), rk.ConformalDetector(rk.SVDD(rk.RBF(3.0)), method="loo").fit(X)):
        assert set(rk.suspects(fitted, 2).tolist()) == {3, 90}
        assert rk.suspects(fitted).shape == (20,)
        after = fitted.with_outliers([3, 90])
        assert after._calibration_size() == 148
        assert not np.isin([3, 90], rk.suspects(after, 148)).any()
        assert after.offset_ >= fitted.offset_
        assert fitted._calibration_size() == 150
        with pytest.raises(ValueError, match="Row 3 does not calibrate"):
            after.with_outliers([3])
    frame = table()
    frame.loc[17, "temperature"] = 200.0
    fitted = rk.TableDetector(time_column="when").fit(frame)
    assert rk.suspects(fitted, 1).tolist() == [17]
    after = fitted.with_outliers([17])
    assert after.card_["threshold"] == after.offset_ > fitted.offset_
    with pytest.raises(ValueError, match="no calibration rows"):
        rk.suspects(rk.SVDD().fit(X))


def test_with_outliers_catches_more_at_the_promised_rate():
    """Means of 40 runs; a run's rate has a standard deviation of 1.5 points."""
    before, caught, after, caught_after = operation.trimmed(40).mean(axis=0)
    assert before < 0.03
    assert abs(after - 0.05) <= 0.01
    assert caught_after > caught + 0.05


class TestCommands:
    """``refkernel watch``, ``review`` and ``report --state``."""

    @pytest.fixture
    def run(self, tmp_path, monkeypatch):
        pytest.importorskip("typer")
        from typer.testing import CliRunner

        from refkernel.cli import app

        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "300")

        def run(*words, code=0):
            done = CliRunner().invoke(app, [str(word) for word in words])
            assert done.exit_code == code, done.output
            return done.output

        return run

    @pytest.fixture
    def plant(self, detector, tmp_path):
        detector.save(tmp_path / "model.rk")
        days = [table(DAY, 30, 400), table(DAY, 31, 520), table(DAY, 32, 640, shift=12.0), table(DAY, 33, 760, shift=12.0)]
        days[1].loc[50:60, "temperature"] = 300.0
        for number, day in enumerate(days):
            day.assign(order=f"A{number}").to_csv(tmp_path / f"day{number}.csv", index=False)
        return tmp_path

    def test_a_week_in_the_shell_is_that_in_python(self, run, plant, detector):
        monitor = rk.Monitor(detector)
        said = run("watch", "model.rk", "day0.csv", "--state", "plant.state", "--out", "flagged.csv")
        assert said.strip() == monitor.update(pd.read_csv("day0.csv", parse_dates=["when"])).text
        seen = monitor.update(pd.read_csv("day1.csv", parse_dates=["when"]))
        run("watch", "model.rk", "day1.csv", "--state", "plant.state", "--out", "flagged.csv", code=3 if seen.alarm else 0)
        flagged = pd.read_csv("flagged.csv")
        both = pd.concat([pd.read_csv("day0.csv"), pd.read_csv("day1.csv")], ignore_index=True)
        rows = monitor.kept_[monitor.kept_[:, LABEL] == -1]
        assert flagged["watched_row"].tolist() == rows[:, ROW].tolist()  # of both days
        assert set(seen.rows[seen.labels == -1]) < set(flagged["watched_row"])
        np.testing.assert_allclose(flagged["p_value"], rows[:, P_VALUE])
        for name in ("when", "machine", "temperature", "flow"):
            expected = both[name].iloc[flagged["watched_row"]].tolist()
            assert flagged[name].tolist() == (pytest.approx(expected, nan_ok=True) if name in ("temperature", "flow") else expected)
        assert flagged["order"].isna().tolist() == (flagged["watched_row"] < DAY).tolist()  # the state keeps the model's columns
        broken = flagged[flagged["temperature"] == 300.0]
        assert len(broken) == 11
        assert broken["reason_1"].str.startswith("temperature = 300").all()
        broken.to_csv("rows.csv", index=False)
        assert "229 normal rows, 11 anomalies." in run("review", "plant.state", "--anomalies", "rows.csv", "--out", "new.rk")
        assert rk.load("new.rk").offset_ == monitor.review(broken["watched_row"]).detector_.offset_
        assert "ALARM" in run("watch", "model.rk", "day2.csv", "--state", "plant.state", "--out", "flagged.csv", code=3)
        run("review", "plant.state", "--no-anomalies", "--refit")
        assert "ALARM" not in run("watch", "new.rk", "day3.csv", "--state", "plant.state", "--out", "flagged.parquet", code=1)
        assert "ALARM" not in run("watch", "model.rk", "day3.csv", "--state", "plant.state", "--out", "flagged.parquet")
        page = (plant / run("report", "--state", "plant.state", "--out", "page.html").split()[-1]).read_text(encoding="utf-8")
        assert "<h1>plant.state</h1>" in page
        assert page.count("<polyline") == 4  # two curves, two levels
        assert re.findall(r'scope="row" data-sort="240.0">2026-01-27 15:00<', page)  # and not "row 240"
        assert page.count('<th scope="row"') >= 2 + len(rk.load("plant.state").episodes_)

    def test_a_state_is_never_half_written(self, run, plant, monkeypatch):
        run("watch", "model.rk", "day0.csv", "--state", "plant.state", "--out", "flagged.csv")
        before = (plant / "plant.state").read_bytes()

        def full(*arguments):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("refkernel.export.files.seal", full)
        assert "No space left" in run("watch", "model.rk", "day1.csv", "--state", "plant.state", "--out", "flagged.csv", code=1)
        assert (plant / "plant.state").read_bytes() == before
        assert [file.name for file in plant.iterdir() if file.name.endswith(".part")] == []

    def test_two_at_once_do_not_mix(self, run, plant):
        from refkernel.experiments.units import only_writer

        run("watch", "model.rk", "day0.csv", "--state", "plant.state", "--out", "flagged.csv")
        before = (plant / "plant.state").read_bytes()
        with only_writer(plant, ".plant.state.lock"):
            run("watch", "model.rk", "day1.csv", "--state", "plant.state", "--out", "flagged.csv", code=1)
            run("review", "plant.state", "--no-anomalies", code=1)
            run("watch", "model.rk", "day1.csv", "--state", "other.state", "--out", "flagged.csv", code=3)
        assert (plant / "plant.state").read_bytes() == before

    def test_an_anomaly_of_an_earlier_day_reaches_the_review(self, run, plant):
        """A broken day 1, two days without one, and a review by the recipe of the guide. Oracle: the calibration has none of the rows."""
        for day in (1, 2):
            run("watch", "model.rk", f"day{day}.csv", "--state", "plant.state", "--out", "flagged.csv", code=3)
        flagged = pd.read_csv("flagged.csv")
        flagged[flagged["temperature"] == 300.0].to_csv("rows.csv", index=False)
        assert "229 normal rows, 11 anomalies" in run("review", "plant.state", "--anomalies", "rows.csv")
        assert "rows 0 to 239 wait for one" in run("review", "plant.state", "--undo")
        assert "240 normal rows" in run("review", "plant.state", "--no-anomalies")

    def test_a_second_run_of_many_blocks_is_refused(self, run, plant, monkeypatch):
        table(300, 40).drop(columns="when").to_csv("many.csv", index=False)
        run("fit", "many.csv", "--out", "undated.rk")
        monkeypatch.setattr("refkernel.tabular.readers.csv.BLOCK_BYTES", 1_000)
        run("watch", "undated.rk", "many.csv", "--state", "undated.state", "--out", "flagged.csv")
        before = (plant / "undated.state").read_bytes()
        assert "the one before again" in run("watch", "undated.rk", "many.csv", "--state", "undated.state", "--out", "flagged.csv", code=1)
        assert (plant / "undated.state").read_bytes() == before

    def test_options_of_a_new_state_are_said_to_be_ignored_later(self, run, plant):
        run("watch", "model.rk", "day0.csv", "--state", "plant.state", "--out", "flagged.csv", "--level", 0.01)
        said = run("watch", "model.rk", "day1.csv", "--state", "plant.state", "--out", "flagged.csv", "--level", 0.1, "--window", 9, code=3)
        assert "--level 0.1 is for a new state: plant.state keeps 0.01" in said
        assert "--window 9 is for a new state" in said

    def test_inspect_knows_a_state_and_prints_an_audit(self, run, plant, detector):
        run("watch", "model.rk", "day1.csv", "--state", "plant.state", "--out", "flagged.csv", code=3)
        said = run("inspect", "plant.state")
        for words in (
            f"rows {DAY}",
            "alarm True",
            "time column when",
            "400 training rows and 120 watched rows of machine, temperature, flow",
        ):
            assert words in " ".join(said.split())
        audit = json.loads(run("inspect", "plant.state", "--json"))
        assert audit["operation"] == load_state("plant.state").card_["operation"]
        assert audit["holds"] == {"training_rows": 400, "watched_rows": DAY, "columns": ["machine", "temperature", "flow"]}
        alone = json.loads(run("inspect", "model.rk", "--json"))
        assert {key: alone[key] for key in detector.card_} == detector.card_
        assert (alone["operation"], alone["seed"], alone["settings"]["false_alarm_rate"]) == (None, 0, "0.05")
        run("fit", "day0.csv", "--out", "shell.rk", "--time-column", "when", "--drop", "order")
        assert "time column when (2026-01-17 16:00 … 2026-01-22 15:00)" in " ".join(run("inspect", "shell.rk").split())
        shell = json.loads(run("inspect", "shell.rk", "--json"))
        assert (shell["first_time"], shell["last_time"]) == ("2026-01-17 16:00", "2026-01-22 15:00")
        X = np.random.default_rng(0).normal(size=(60, 3))
        monitor = rk.Monitor(rk.AutoDetector().fit(X))
        monitor.update(X)
        rk.save(monitor, "plain.state")
        assert json.loads(run("inspect", "plain.state", "--json"))["operation"]["rows"] == 60
        assert "highest evidence" in run("inspect", "plain.state")

    def test_a_backtest_counts_what_a_monitor_would_have_flagged(self, run, plant, detector):
        """Oracle: labels and episodes of detectors with these rates."""
        new = table(600, 41, 400)
        new.sample(frac=1.0, random_state=0).to_csv("past.csv", index=False)
        run("score", "model.rk", "past.csv", "--out", "scored.csv", "--backtest", "--summary-json", "summary.json")
        found = json.loads(Path("summary.json").read_text(encoding="utf-8"))["backtest"]
        assert [each["rate"] for each in found] == [0.01, 0.02, 0.05, 0.1]
        for each in found:
            monitor = rk.Monitor(detector.with_false_alarm_rate(each["rate"]))
            seen = monitor.update(new)
            assert each["flagged"] == (seen.labels == -1).sum()
            assert each["episodes"] == len(seen.episodes)
            assert each["episodes_a_week"] == pytest.approx(len(seen.episodes) / (599 / 168))
        run("fit", "past.csv", "--out", "undated.rk", "--drop", "when")
        said = run("score", "undated.rk", "past.csv", "--out", "scored.csv", "--backtest", "--time-column", "when")
        assert "in 3.57 weeks" in said
        run("fit", "past.csv", "--out", "svdd.rk", "--model", "svdd", "--time-column", "when")
        for words, message in (
            (("undated.rk", "past.csv"), "needs a date in each row"),
            (("undated.rk", "past.csv", "--time-column", "flow"), "or in --time-column"),
            (("svdd.rk", "past.csv"), "no rows calibrate svdd.rk"),
        ):
            assert message in run("score", *words, "--out", "scored.csv", "--backtest", code=1)

    def test_the_shell_part_of_the_guide_can_be_followed(self, run):
        """All blocks of the guide, in an empty folder: each command works, and only watch may end with 3."""
        guide = Path(__file__).parent.parent / "docs" / "guide" / "in_operation.md"
        names, codes = {}, []
        for kind, block in re.findall(r"^```(python|console)\n(.*?)^```", guide.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            if kind == "python":
                exec(block, names)
                continue
            for line in re.findall(r"^\$ (.*)", block, re.MULTILINE):
                command, *words = shlex.split(line, comments=True)
                if command != "refkernel":
                    subprocess.run(line, shell=True, check=True)
                    continue
                codes.append(3 if words[0] == "watch" and "day2.csv" in words else 0)
                run(*words, code=codes[-1])
        assert 3 in codes
        assert Path("plant.html").exists()

    def test_mistakes_are_explained(self, run, plant, detector):
        Path("wrong.csv").write_text("watched_row\n3\nabc\n")
        Path("empty.csv").write_text("watched_row,x\n,1\n")
        detector.with_false_alarm_rate(0.1).save("other.rk")
        rk.save(rk.AutoDetector().fit(table()[["temperature"]]), "plain.rk")
        table(9, 1, 900).drop(columns="when").to_csv("nodate.csv", index=False)
        table(9, 1, 900).assign(when=lambda frame: frame["when"].where(frame.index != 1)).to_csv("hole.csv", index=False)
        run("watch", "model.rk", "day1.csv", "--state", "plant.state", "--out", "flagged.csv", code=3)
        for words, message in (
            (("watch", "model.rk", "day0.csv", "--state", "plant.state", "--out", "flagged.csv"), "were watched already"),
            (("watch", "model.rk", "day2.csv", "--state", "model.rk", "--out", "flagged.csv"), "would be lost"),
            (("watch", "model.rk", "day2.csv", "--state", "day0.csv", "--out", "flagged.csv"), "not a zip archive"),
            (("review", "plant.state"), "--no-anomalies"),
            (("watch", "plain.rk", "day2.csv", "--state", "new.state", "--out", "flagged.csv"), "plain.rk holds no TableDetector"),
            (("review", "plant.state", "--undo"), "no review to go back to"),
            (("review", "plant.state", "--no-anomalies", "--out", "plant.state"), "Choose another name"),
            (("review", "plant.state", "--anomalies", "wrong.csv"), "column watched_row: could not convert string to float: 'abc'"),
            (("review", "plant.state", "--anomalies", "empty.csv"), "column watched_row: could not convert string to float: ''"),
            (("watch", "other.rk", "day2.csv", "--state", "plant.state", "--out", "flagged.csv"), "at another rate"),
            (("watch", "model.rk", "nodate.csv", "--state", "plant.state", "--out", "flagged.csv"), "or the column when"),
            (("watch", "model.rk", "hole.csv", "--state", "plant.state", "--out", "flagged.csv"), "no finite value for row 1"),
            (("review", "plant.state", "--anomalies", "day0.csv"), "no column watched_row"),
            (("report",), "--state"),
        ):
            assert message in run(*words, code=1)


def test_warnings_of_few_rows_are_said_once_a_review(auto):
    """A window that cannot promise the rate."""
    monitor = rk.Monitor(auto, window=10)
    monitor.update(np.zeros((20, 3)))
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        monitor.review()
    assert [warning.category for warning in raised] == [UserWarning]
    assert monitor.detector_.false_alarm_rate_ == pytest.approx(1 / 11)
