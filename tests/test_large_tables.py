"""Tables with more cells than memory should hold train on rows that are drawn at random."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

import refkernel as rk
from refkernel.tabular import fitting
from refkernel.tabular.fitting import TrainingLabels, fit_file
from refkernel.tabular.readers import ReadOptions, open_table, read_sample


def written(frame, folder, ending):
    path = folder / f"table.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_row_is_drawn_with_the_same_probability_and_in_its_order(tmp_path, ending, monkeypatch):
    """40,000 rows in several blocks: each of 8 parts is drawn in proportion, and the mean of 200 draws is that of all rows."""
    path = written(pd.DataFrame({"x": np.arange(40_000)}), tmp_path, ending)
    counts = np.zeros(8)
    for seed in range(20):
        frame, total = read_sample(open_table(path, ReadOptions()), 100, seed, lambda stage: None)
        rows = frame["x"].astype(int).to_numpy()
        assert total == 40_000
        assert len(rows) == 100
        assert (np.diff(rows) > 0).all()
        counts += np.histogram(rows, np.linspace(0, 40_000, 9))[0]
    expected = 20 * 100 / 8
    assert np.square(counts - expected).sum() / expected < 24.3  # the 0.999 quantile of chi-squared with 7 degrees of freedom


def test_a_table_of_more_cells_trains_on_some_of_its_rows_and_says_so(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=5_000), "kind": np.where(np.arange(5_000) % 2, "good", "bad")})
    path = written(frame, tmp_path, "csv")
    monkeypatch.setattr(fitting, "MOST_CELLS", 4_000)
    heard = []
    model = rk.TableDetector()
    notes = fit_file(model, path, TrainingLabels("kind", "good"), progress=heard.append)
    assert any("2,000 rows of 5,000 train" in note for note in notes)
    assert model.card_["rows"] == 5_000
    assert 900 < model.card_["targets"] < 1_100
    assert any("100%" in stage for stage in heard)
    again = rk.TableDetector()
    fit_file(again, path, TrainingLabels("kind", "good"))
    assert (again.calibration_ == model.calibration_).all()


def test_smaller_tables_are_read_whole(tmp_path):
    path = written(pd.DataFrame({"x": np.random.default_rng(0).normal(size=300)}), tmp_path, "csv")
    model = rk.TableDetector()
    notes = fit_file(model, path)
    assert model.card_["targets"] == 300
    assert not any("drawn" in note for note in notes)
