"""The picture of an explanation holds the explanation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import refkernel as rk

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from refkernel.plot import ExplanationDisplay  # noqa: E402


@pytest.fixture(autouse=True)
def _closed():
    yield
    matplotlib.pyplot.close("all")


def frame(n=60, d=4):
    return pd.DataFrame(np.random.default_rng(0).normal(size=(n, d)), columns=[f"c{j}" for j in range(d)])


@pytest.mark.parametrize("model", [rk.AutoDetector(), rk.SVDD(rk.RBF(1.0), nu=0.2)])
def test_bars_lead_from_the_baseline_to_the_score_of_the_row(model):
    X = frame()
    model.fit(X)
    display = ExplanationDisplay.from_estimator(model, X, row=3)
    why = rk.explain(model, X[3:4])
    widths = np.array([bar.get_width() for bar in display.bars_])
    np.testing.assert_allclose(np.sort(widths), np.sort(why.values[0]))
    assert (np.diff(np.abs(widths)) <= 0).all()
    assert display.bars_[0].get_x() == pytest.approx(why.baseline)
    assert display.bars_[-1].get_x() + widths[-1] == pytest.approx(model.score_samples(X)[3])
    assert display.threshold == pytest.approx(model.offset_)
    worst = int(np.abs(why.values[0]).argmax())
    assert display.ax_.get_yticklabels()[0].get_text() == f"c{worst} = {X.iloc[3, worst]:.4g}"


def test_features_beyond_the_limit_are_one_bar():
    values = np.array([-5.0, 0.1, 0.2, -3.0, 0.3])
    display = ExplanationDisplay(values=values, names=list("abcde"), baseline=1.0, most=3).plot()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["a", "d", "3 others"]
    assert display.bars_[-1].get_width() == pytest.approx(0.6)
    with pytest.raises(ValueError, match="most=0"):
        ExplanationDisplay(values=values, names=list("abcde"), baseline=1.0, most=0).plot()
