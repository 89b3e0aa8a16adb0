"""Bounds of the false-alarm rate that hold at all thresholds at once: what a slider may say."""

import numpy as np
import pytest

import refkernel as rk
from refkernel.detectors.calibration import FalseAlarmBand

RUNS = 600


def test_all_bounds_hold_together_with_the_confidence_whatever_the_distribution():
    """Coverage over all thresholds is at least 95 %: fewer than 92.5 % of 600 runs would be a chance of 1 in 100. Ties only help."""
    for n in (35, 300, 3_000):
        rng = np.random.default_rng(n)
        smooth = rounded = 0
        for _ in range(RUNS):
            u = np.sort(rng.random(n))  # the rate of a threshold is the threshold
            cuts = np.concatenate([u, np.nextafter(u, 1.0), np.linspace(0.0, 1.0, 300)])
            low, high = FalseAlarmBand(u).at(cuts)
            smooth += ((low <= cuts) & (cuts <= high)).all()
            cuts = np.arange(21) / 20
            low, high = FalseAlarmBand(np.floor(u * 20) / 20).at(cuts)
            rounded += ((low <= cuts + 1e-12) & (cuts <= high + 1e-12)).all()
        assert smooth >= 0.925 * RUNS
        assert rounded >= 0.925 * RUNS


def test_the_band_is_about_as_narrow_as_one_interval_with_a_correction():
    """At 5 % of 1,000 rows, the interval of this very threshold at 99.8 % is as wide: not more than 3.2 standard errors on each side."""
    low, high = FalseAlarmBand(np.arange(1_000.0)).at(50.0)
    error = np.sqrt(0.05 * 0.95 / 1_000)
    assert 0.05 - 3.2 * error < low < 0.05 < high < 0.05 + 4.5 * error


def test_the_share_of_wrong_calls_is_bounded_at_every_cut():
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        calibration = np.sort(rng.normal(size=400))
        scores = np.concatenate([rng.normal(size=200), rng.normal(-5.0, 1.0, size=100)])
        order = np.argsort(scores)
        share = np.cumsum(order < 200) / np.arange(1, 301)
        wrong += (share > FalseAlarmBand(calibration).wrong_share(scores)[order] + 1e-12).any()
    assert wrong <= 0.1 * 200
    assert FalseAlarmBand(calibration).wrong_share(scores)[order][:100].min() < 0.6  # and it says something


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_a_confidence_is_a_share(confidence):
    with pytest.raises(ValueError, match="confidence"):
        FalseAlarmBand(np.arange(9.0), confidence)


def test_detectors_have_the_band_of_their_calibration_scores():
    X = np.random.default_rng(0).normal(size=(150, 3))
    detector = rk.AutoDetector().fit(X)
    low, high = detector.false_alarm_band().at(detector.offset_)
    assert low < detector.false_alarm_rate_ < high
    split = rk.ConformalDetector(rk.SVDD(), 0.1, method="split", random_state=0).fit(X)
    low, high = split.false_alarm_band().at(split.offset_)
    assert low < split.false_alarm_rate_ < high
