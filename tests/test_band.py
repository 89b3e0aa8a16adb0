"""Bounds of the false-alarm rate that hold at all thresholds at once: what a slider may say."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bands
import refkernel as rk
from refkernel.cli import app
from refkernel.detectors.auto import folds
from refkernel.detectors.calibration import FalseAlarmBand
from refkernel.pages import charts
from refkernel.plot import ScoreDistributionDisplay
from refkernel.tabular.scoring import SavedModel

RUNS = 600


@pytest.mark.parametrize("n", [35, 300, 3_000, 10_000])
def test_all_bounds_hold_together_with_the_confidence_whatever_the_distribution(n):
    """Coverage over all thresholds is at least 95 %: fewer than 92.5 % of 600 runs would be a chance of 1 in 100. Ties only help."""
    rng = np.random.default_rng(n)
    smooth = rounded = by_rank = 0
    ranks = np.arange(1, n + 1)
    for _ in range(RUNS):
        u = np.sort(rng.random(n))  # the rate of a threshold is the threshold
        cuts = np.concatenate([u, np.nextafter(u, 1.0), np.linspace(0.0, 1.0, 300)])
        low, high = FalseAlarmBand(u).at(cuts)
        smooth += ((low <= cuts) & (cuts <= high)).all()
        low, high = FalseAlarmBand(u).at(
            p_value=ranks / (n + 1)
        )  # rows below the k-th smallest score have a p-value of at most k / (n + 1)
        by_rank += ((low <= u) & (u <= high)).all()
        cuts = np.arange(21) / 20
        low, high = FalseAlarmBand(np.floor(u * 20) / 20).at(cuts)
        rounded += ((low <= cuts + 1e-12) & (cuts <= high + 1e-12)).all()
    assert min(smooth, rounded, by_rank) >= 0.925 * RUNS


def test_a_high_confidence_holds_too():
    """99.9 %: more than 8 failures in 2,000 runs would be a chance of 1 in 1,000. What cannot be shown is refused."""
    assert bands.uniform(200, 2_000, 0.999) >= 1 - 8 / 2_000
    with pytest.raises(ValueError, match=r"confidence=0\.9999 is above 0\.999"):
        FalseAlarmBand(np.arange(9.0), 0.9999)


def test_the_band_is_about_as_narrow_as_one_interval_with_a_correction():
    """At 5 % of 1,000 rows, the interval of this very threshold at 99.8 % is as wide: not more than 3.2 standard errors on each side."""
    low, high = FalseAlarmBand(np.arange(1_000.0)).at(50.0)
    error = np.sqrt(0.05 * 0.95 / 1_000)
    assert 0.05 - 3.2 * error < low < 0.05 < high < 0.05 + 4.5 * error


@pytest.mark.parametrize(("n", "m", "outliers"), [(35, 100, 0), (200, 120, 20), (1_000, 1_000, 0), (3_000, 400, 100)])
def test_the_share_of_wrong_calls_is_bounded_at_every_cut_with_the_confidence(n, m, outliers):
    """80 %, where half of what may fail would be seen: fewer than 76 % of 600 runs would be a chance of 1 in 100."""
    assert bands.wrong(n, m, outliers, RUNS, 0.8) >= 0.76


def test_the_bound_of_wrong_calls_is_near_what_no_bound_can_beat():
    """200 rows calibrate: one normal row of 100 is below all of them with probability 1/3, six with 1/1000. So 20 calls may hold a few."""
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(size=100), rng.normal(-9.0, 1.0, 20)])
    bound = np.sort(FalseAlarmBand(np.sort(rng.normal(size=200))).wrong_share(scores)[100:])
    assert 3 / 20 < bound[0] < 7 / 20
    tied = FalseAlarmBand(np.arange(50.0)).wrong_share(np.repeat([-1.0, 20.0], [90, 10]))
    assert (tied[:90] == tied[0]).all()
    assert tied[0] < 0.2
    assert FalseAlarmBand(np.arange(50.0)).wrong_share(np.empty(0)).shape == (0,)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_a_confidence_is_a_share(confidence):
    with pytest.raises(ValueError, match="confidence"):
        FalseAlarmBand(np.arange(9.0), confidence)


FITS = 40
"""Fits of each detector. With bounds that hold in 95 % of them, fewer than 34 would be a chance of 1 in 300; the seeds are fixed."""


def _of_few_left_out(monkeypatch):
    monkeypatch.setattr(folds, "MOST_IN_FOLDS", 100)
    monkeypatch.setattr(folds, "FEWEST_LEFT_OUT", 100)


@pytest.mark.parametrize("name", bands.DETECTORS)
def test_the_bounds_of_real_detectors_hold_at_all_thresholds(name):
    found = bands.of_detector(bands.DETECTORS[name], 60, FITS, new_rows=4_000)
    assert np.nanmin(found) >= 34 / FITS


def test_the_bounds_of_an_auto_detector_hold_on_both_sides_where_rows_are_left_out(monkeypatch):
    _of_few_left_out(monkeypatch)
    found = bands.of_detector(rk.AutoDetector, 200, FITS, new_rows=4_000)
    assert min(found) >= 34 / FITS
    low, high = rk.AutoDetector().fit(np.random.default_rng(0).normal(size=(200, 3))).false_alarm_band().at(p_value=0.5)
    assert 0.3 < low < 0.5 < high < 0.7


def test_folds_promise_upper_bounds_only():
    """A row that calibrates is scored by descriptions of fewer rows than a new one, which looks more normal."""
    X = np.random.default_rng(0).normal(size=(150, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    for detector, rows in ((rk.AutoDetector(), X), (rk.TableDetector(), frame)):
        fitted = detector.fit(rows)
        low, high = fitted.false_alarm_band().at(fitted.offset_)
        assert low == 0.0
        assert fitted.false_alarm_rate_ < high < 0.2
    fitted = rk.ConformalDetector(rk.SVDD(), 0.1, method="split", random_state=0).fit(X)
    low, high = fitted.false_alarm_band().at(fitted.offset_)
    assert 0.0 < low < fitted.false_alarm_rate_ < high


@pytest.mark.parametrize("method", ["cv", "loo"])
def test_where_several_models_score_a_row_thresholds_are_p_values(method):
    """Cuts of their scores are no order statistics of the calibration scores; asking for one names what to ask for."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    detector = rk.ConformalDetector(rk.SVDD(), 0.1, method=method, random_state=0).fit(X)
    band = detector.false_alarm_band()
    low, high = band.at(p_value=np.array([0.0, 0.1, 1.0]))
    assert low.tolist() == [0.0, 0.0, 0.0]
    assert high[0] == 0.0
    assert 0.1 < high[1] < 0.4
    assert high[2] == 1.0
    for ask in (band.at, band.wrong_share):
        with pytest.raises(ValueError, match="pass p_value="):
            ask(np.zeros(3))
    one = rk.ConformalDetector(rk.SVDD(), 0.1, method=method, scored_by="full", random_state=0).fit(X)
    assert one.false_alarm_band().at(one.offset_)[1] < 0.4


def test_files_know_whether_rows_were_left_out(tmp_path, monkeypatch):
    _of_few_left_out(monkeypatch)
    for n in (60, 200):
        model = rk.AutoDetector(0.2).fit(np.random.default_rng(0).normal(size=(n, 3)))
        loaded = rk.load(rk.save(model, tmp_path / "model.rk"))
        bounds = [float(end) for end in loaded.false_alarm_band().at(model.offset_)]
        assert bounds == [float(end) for end in model.false_alarm_band().at(model.offset_)]
        assert (bounds[0] > 0) == (n == 200)


# What shows it


@pytest.fixture(scope="module")
def shown():
    """A table model, and new rows of which 20 are clear outliers."""
    rng = np.random.default_rng(0)
    model = rk.TableDetector(false_alarm_rate=0.1).fit(pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc")))
    return model, pd.DataFrame(np.vstack([rng.normal(size=(100, 3)), rng.normal(5.0, 1.0, (20, 3))]), columns=list("abc"))


def test_the_slider_shows_the_band_and_the_share_of_wrong_calls_at_each_step(shown):
    model, rows = shown
    scores = model.score_samples(rows)
    found = charts.thresholds(SavedModel(Path("model.rk"), model), scores, None)["steps"]
    band = model.false_alarm_band()
    for step in found:
        assert (step["low"], step["high"]) == tuple(float(end) for end in band.at(step["score"]))
        below = scores < step["score"]
        assert step["wrong"] == (band.wrong_share(scores)[below][scores[below].argmax()] if below.any() else None)
    assert min(step["wrong"] for step in found if step["wrong"] is not None) < 0.5


def test_the_page_calls_a_90_percent_interval_what_is_one(shown, tmp_path):
    model, rows = shown
    low, high = model.false_alarm_interval_
    rk.report(model, rows).save(tmp_path / "page.html")
    assert f"90 % interval {100 * low:.2g} to {100 * high:.2g} %" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_inspect_and_plots_show_the_upper_bound(shown, tmp_path):
    model, rows = shown
    high = 100 * model.false_alarm_band().at(model.offset_)[1]
    label = ScoreDistributionDisplay.from_estimator(model, rows).threshold_.get_label()
    assert label == f"threshold: rejects at most\n{high:.3g} % of new normal rows (95 %)"
    assert ScoreDistributionDisplay.from_estimator(rk.SVDD().fit(rows), rows).threshold_.get_label() == "threshold"
    result = CliRunner().invoke(app, ["inspect", str(model.save(tmp_path / "model.rk"))], env={"COLUMNS": "200"})
    five, ten, twenty = 100 * model.false_alarm_band().at(p_value=(0.05, 0.1, 0.2))[1]
    written = " ".join(result.output.split())
    assert f"flags at most {five:.2g}, {ten:.2g}, {twenty:.2g} % of new normal rows where 5, 10, 20 % are expected" in written
