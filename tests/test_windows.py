"""Windows of a series as rows of a table: what their features are, and that flagged windows point back to the series."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import refkernel as rk


def test_features_are_those_of_plain_numpy():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)).cumsum(axis=0), columns=["a", "b"])
    found = rk.windows(frame, 16, 8)
    for place, (_, row) in enumerate(found.iterrows()):
        part = frame.iloc[8 * place : 8 * place + 16]
        assert row["a mean"] == pytest.approx(part.a.mean())
        assert (row["b min"], row["b max"]) == (part.b.min(), part.b.max())
        t = np.linspace(-0.5, 0.5, 16)
        assert row["a slope"] == pytest.approx(np.polyfit(t, part.a, 1)[0])
        assert row["a ~ b correlation"] == pytest.approx(np.corrcoef(part.a, part.b)[0, 1])
        residual = part.b - np.polyval(np.polyfit(t, part.b, 1), t)
        bands = np.square(row[["b slow", "b medium", "b fast"]]).sum()
        assert bands == pytest.approx(residual.var(ddof=0))  # Parseval's identity


def test_a_swing_is_in_the_band_of_its_period():
    t = np.arange(64)
    found = rk.windows(np.column_stack([np.sin(2 * np.pi * t / period) for period in (32, 9, 3)]), 64)
    strongest = [max(("slow", "medium", "fast"), key=lambda band: found[f"x{j} {band}"].iloc[0]) for j in range(3)]
    assert strongest == ["slow", "medium", "fast"]


def test_windows_know_their_first_and_last_time():
    when = pd.date_range("2026-01-01", periods=100, freq="min")
    found = rk.windows(pd.DataFrame({"when": when, "x": np.arange(100.0)}), 10, 5, time="when")
    assert found.index[1].left == when[5]
    assert found.index[1].right == when[14]
    assert len(found) == 19


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("as_index", [False, True])
def test_no_window_spans_a_gap_in_time(zone, as_index):
    """A window that spans a night without rows is left out; one missing minute does not count as a gap."""
    when = pd.date_range("2026-01-01", periods=100, freq="min", tz=zone)
    when = when[:20].append(when[21:60]).append(when[60:] + pd.Timedelta("12h"))
    frame = pd.DataFrame({"x": np.arange(99.0)}, index=when)
    found = rk.windows(frame, 10, 1) if as_index else rk.windows(frame.rename_axis("when").reset_index(), 10, 1, time="when")
    assert len(found) == 99 - 9 - 9
    assert found.index.length.max() == pd.Timedelta("10min")
    assert len(rk.windows(frame.reset_index(drop=True), 10, 1)) == 90


def test_a_stuck_sensor_is_found_that_single_rows_cannot_show():
    rng = np.random.default_rng(1)
    t = np.arange(4000)
    series = np.column_stack([np.sin(t / 7), np.cos(t / 11)]) + rng.normal(0, 0.1, (4000, 2))
    series[3200:3400, 0] = 0.3
    normal, new = rk.windows(series[:2500], 40, step=40), rk.windows(series[2500:], 40)
    stuck = np.array([window.left >= 700 and window.right < 900 for window in new.index])
    inside = np.array([window.overlaps(pd.Interval(700, 899, closed="both")) for window in new.index])
    scores = rk.TableDetector().fit(normal).score_samples(new)
    assert roc_auc_score(stuck[stuck | ~inside], -scores[stuck | ~inside]) > 0.99
    rows = rk.AutoDetector().fit(series[:2500]).score_samples(series[2500:])
    assert roc_auc_score((np.arange(1500) >= 700) & (np.arange(1500) < 900), -rows) < 0.9


def test_windows_that_do_not_overlap_keep_the_rate_that_overlapping_ones_break():
    """At 20 % asked, over 40 series of independent rows."""
    rates = {None: [], 20: []}
    for seed in range(40):
        series = np.random.default_rng(seed).normal(size=(1500, 2))
        new = rk.windows(series[1000:], 20, 20)
        for step, found in rates.items():
            found.append(np.mean(rk.AutoDetector(0.2).fit(rk.windows(series[:1000], 20, step)).predict(new) == -1))
    spread = {step: np.std(found) / np.sqrt(len(found)) for step, found in rates.items()}
    assert abs(np.mean(rates[20]) - 0.2) < 3 * spread[20]
    assert np.mean(rates[None]) - 0.2 > 3 * spread[None]


def test_missing_cells_constants_and_short_series_give_rows_or_none():
    frame = pd.DataFrame({"a": [1.0] * 30, "b": np.arange(30.0)})
    frame.loc[3, "b"] = np.nan
    found = rk.windows(frame, 10)
    assert np.isnan(found["b mean"].iloc[0])
    assert found["a ~ b correlation"].iloc[-1] == 0.0  # a constant goes with nothing
    assert np.isfinite(found.iloc[2:]).all().all()
    assert rk.windows(frame[:5], 10).shape == (0, found.shape[1])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"length": 2}, ValueError, "length=2 must be a whole number of rows, at least 4"),
        ({"length": 10.5}, ValueError, "length=10.5 must be a whole number"),
        ({"length": None}, ValueError, "length=None must be a whole number"),
        ({"step": 0}, ValueError, "step=0 must be a whole number of rows, at least 1"),
        ({"step": 2.5}, ValueError, "step=2.5 must be a whole number"),
        ({"time": "when"}, ValueError, "no column 'when'"),
        ({"time": "b"}, ValueError, "not in the order of time"),
    ],
)
def test_bad_input_is_named(change, error, message):
    frame = pd.DataFrame({"a": np.arange(30.0), "b": -np.arange(30.0)})
    with pytest.raises(error, match=message):
        rk.windows(frame, **{"length": 10, **change})


def test_texts_are_named():
    with pytest.raises(TypeError, match="machine"):
        rk.windows(pd.DataFrame({"x": range(9), "machine": ["saw"] * 9}), 4)


def test_the_picture_shows_flagged_windows_as_one_stretch():
    pytest.importorskip("matplotlib").use("agg")
    series = pd.DataFrame({"flow": np.random.default_rng(0).normal(size=600)})
    series.loc[500:550, "flow"] += 8
    model = rk.TableDetector().fit(rk.windows(series[:400], 20))
    display = rk.plot.SeriesDisplay.from_estimator(model, rk.windows(series, 20), series)
    start, end = display.stretches_[-1]
    assert start <= 500
    assert end >= 550
