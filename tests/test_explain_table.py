"""``refkernel score --explain``: reasons of flagged rows in a user's own table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import refkernel as rk
from exact import read_csv
from refkernel.detectors.explain.explanation import Explainer
from refkernel.detectors.explain.normal import written
from refkernel.detectors.explain.reasons import Comparison
from refkernel.tabular.fitting import fit_file
from refkernel.tabular.readers import ReadOptions, open_table
from refkernel.tabular.scoring import load_table_model, score_file

pytest.importorskip("skops")
pytest.importorskip("typer")


def penguins(n, seed):
    rng = np.random.default_rng(seed)
    island = rng.choice(["Biscoe", "Dream", "Torgersen"], n)
    mass = rng.normal(4200.0, 500.0, n).round()
    return pd.DataFrame({"island": island, "bill_mm": rng.normal(44.0, 4.0, n).round(1), "body_mass_g": mass, "setpoint": 100})


DETECTORS = {
    "auto": None,
    "svdd": rk.SVDD(rk.RBF(1.0)),
    "references": rk.SVDD(rk.ReferenceKernel(rk.RBF(10.0), "case2", random_state=0)),
    "ocsvm": rk.OneClassSVM(rk.RBF(1.0)),
}


@pytest.fixture(scope="module", params=DETECTORS.values(), ids=DETECTORS)
def saved(request, tmp_path_factory):
    """A model of refkernel fit, of each kind."""
    folder = tmp_path_factory.mktemp("explain")
    penguins(200, 0).to_csv(folder / "train.csv", index=False)
    return fitted_file(request.param, folder)


def fitted_file(detector, folder):
    """The model of train.csv, by way of a file."""
    model = rk.TableDetector(detector)
    fit_file(model, folder / "train.csv")
    return load_table_model(model.save(folder / "model.rk"))


def scored(saved, table, tmp_path, **options):
    table.to_csv(tmp_path / "new.csv", index=False)
    result = score_file(saved, open_table(tmp_path / "new.csv", ReadOptions()), tmp_path / "scores.csv", **options)
    return result, read_csv(tmp_path / "scores.csv", keep_default_na=False)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("bill_mm", 90.0, "bill_mm = 90 (normal: "),
        ("setpoint", 130, "setpoint = 130 (normal: 100)"),
        ("island", "Rome", "island = Rome (normal: "),
        ("body_mass_g", 4.2, "body_mass_g = 4.2 (normal: "),
    ],
)
def test_the_cell_that_was_spoilt_is_the_first_reason(saved, tmp_path, column, value, reason):
    table = penguins(20, 1).astype({column: object})
    table.loc[7, column] = value
    _, written = scored(saved, table, tmp_path, explain=2)
    assert written.loc[7, "label"] == -1
    assert written.loc[7, "reason_1"].startswith(reason)


def test_only_flagged_rows_have_reasons_and_they_name_ranges(saved, tmp_path):
    result, written = scored(saved, penguins(150, 2), tmp_path, explain=3)
    flagged = written["label"] == -1
    assert 0 < flagged.sum() < 150
    assert (written.loc[~flagged, ["reason_1", "reason_2", "reason_3"]] == "").all(axis=None)
    assert (
        written.loc[flagged, "reason_1"].str.fullmatch(r"\w+ = \S+ \((normal:|within|normal alone, but not in combination with) .+\)").all()
    )
    assert sum(result.reasons.values()) == flagged.sum()


def test_reasons_change_nothing_else_and_do_not_depend_on_the_rows_beside(saved, tmp_path):
    table = penguins(60, 3)
    _, with_reasons = scored(saved, table, tmp_path, explain=2)
    _, without = scored(saved, table, tmp_path)
    pd.testing.assert_frame_equal(with_reasons[without.columns], without)
    flagged = np.flatnonzero(with_reasons["label"] == -1)
    _, alone = scored(saved, table.iloc[flagged[:1]], tmp_path, explain=2)
    assert alone.loc[0, ["reason_1", "reason_2"]].tolist() == with_reasons.loc[flagged[0], ["reason_1", "reason_2"]].tolist()


def test_a_column_in_another_unit_is_named_for_the_whole_table(saved, tmp_path):
    table = penguins(133, 4)
    table["body_mass_g"] /= 1000.0
    result, written = scored(saved, table, tmp_path, explain=1)
    [note] = result.monitor.outside()
    assert note.startswith("body_mass_g: all 133 rows outside ")
    assert "times smaller than in training. Another unit?" in note
    assert (written["label"] == -1).all()
    assert result.reasons.most_common(1)[0] == ("body_mass_g", 133)


def test_the_command_prints_what_stands_out(saved, tmp_path):
    from typer.testing import CliRunner

    from refkernel.cli import app

    table = penguins(20, 1)
    table["body_mass_g"] /= 1000.0
    table.to_csv(tmp_path / "new.csv", index=False)
    arguments = ["score", str(saved.path), str(tmp_path / "new.csv"), "--out", str(tmp_path / "o.csv"), "--explain", "3", "--prefix", "rk_"]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    assert "body_mass_g: all 20 rows outside" in found.output
    assert "First reason:" in found.output
    assert {"rk_reason_1", "rk_reason_3"} <= set(read_csv(tmp_path / "o.csv").columns)


def test_a_reason_column_that_is_there_already_is_refused(saved, tmp_path):
    table = penguins(5, 1).assign(reason_2="x")
    with pytest.raises(rk.exceptions.TableError, match="reason_2"):
        scored(saved, table, tmp_path, explain=2)
    scored(saved, table, tmp_path, explain=1)


def test_values_of_a_table_model_sum_to_its_scores_and_contradictions_go_to_their_columns(saved):
    X = penguins(30, 5).astype({"setpoint": float})
    X.loc[0, "setpoint"] = 130.0
    X.loc[1, ["setpoint", "island"]] = [130.0, "Rome"]
    why = rk.explain(saved.model, X)
    assert why.names == tuple(X.columns)
    np.testing.assert_allclose(why.scores, saved.model.score_samples(X), atol=1e-9 * max(1.0, abs(why.baseline)))
    assert why.values[0, 3] != 0.0
    if not hasattr(
        getattr(saved.model.detector_, "kernel_", None), "references_"
    ):  # its references are draws, which differ in every column
        assert (why.values[2:, 3] == 0.0).all()


def test_a_comparison_puts_cells_of_the_row_into_the_most_similar_normal_row():
    X = np.random.default_rng(0).normal(size=(80, 2))
    model = rk.SVDD(rk.RBF(1.0), nu=0.1).fit(X)
    x = np.array([[1.0, 5.0]])
    normal = model.support_vectors_[model.decision_function(model.support_vectors_) >= 0]
    z = normal[np.square(normal - x).sum(axis=1).argmin()]
    expected = model.score_samples([[x[0, 0], z[1]], [z[0], x[0, 1]]]) - model.score_samples([z])
    np.testing.assert_allclose(Comparison(model).values(x, np.arange(2), 2, 2), [expected], atol=1e-12)
    assert (Comparison(model).values(x, np.arange(2), 2, 1) != 0.0).sum() == 1


def test_a_kernel_that_is_no_product_is_compared_too():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = make_pipeline(StandardScaler(), rk.OneClassSVM("poly", nu=0.1)).fit(X)
    assert Explainer(model).against(np.array([[0.0, 9.0, 0.0]]), 2).shape == (1, 3)


def test_a_detector_of_another_library_says_that_it_cannot_be_explained():
    with pytest.raises(TypeError, match="IsolationForest"):
        Explainer(IsolationForest(n_estimators=2).fit(np.eye(3))).against(np.eye(3), 2)


def test_a_table_model_says_which_value_or_level_would_be_normal(saved):
    X = penguins(4, 1).astype({"setpoint": float})
    X.loc[0, "setpoint"], X.loc[1, "island"], X.loc[2, "bill_mm"] = 130.0, "Rome", 90.0
    found = rk.counterfactuals(saved.model, X)
    changes = dict(zip(found.rows.tolist(), found.changes, strict=True))
    assert changes[0][0].name == "setpoint"
    assert changes[0][0].nearest == 100.0
    assert changes[1][0].name == "island"
    assert set(changes[1][0].levels) <= {"Biscoe", "Dream", "Torgersen"}
    assert changes[2][0].name == "bill_mm"
    assert changes[2][0].nearest < 60.0


def two_species(n, seed):
    """Small birds with deep bills and large ones with flat bills, as in the Palmer archipelago; all columns follow the species."""
    rng = np.random.default_rng(seed)
    large = rng.random(n) < 0.5
    centre = np.where(large[:, None], [47.5, 15.0, 217.0, 5_080.0], [38.8, 18.3, 190.0, 3_700.0])
    values = centre + rng.normal(size=(n, 4)) * [2.8, 1.1, 6.5, 480.0]
    names = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    return pd.DataFrame(values.round(1), columns=names), large


@pytest.mark.parametrize("model", ["auto", "svdd"])
def test_a_broken_combination_of_normal_values_is_named_with_both_columns(model, tmp_path):
    """The flipper of a large bird on a small one: reasons name the flipper and a column of the bird, and no range that is satisfied."""
    train, _ = two_species(300, 0)
    train.to_csv(tmp_path / "train.csv", index=False)
    saved = fitted_file(DETECTORS[model], tmp_path)
    rows, large = two_species(100, 1)
    rows = rows[~large].assign(flipper_length_mm=219.0)
    bulk = train.quantile([0.02, 0.98])
    rows = rows[((rows >= bulk.iloc[0]) & (rows <= bulk.iloc[1])).all(axis=1)]  # single values are clearly normal
    _, found = scored(saved, rows, tmp_path, explain=2)
    flagged = found[found["label"] == -1]
    assert len(flagged) >= 0.5 * len(rows)
    first = flagged["reason_1"]
    assert first.str.contains("normal alone, but not in combination with ").mean() >= 0.9
    assert first.str.contains("flipper_length_mm = 219").mean() >= 0.9
    change = rk.counterfactuals(saved.model, rows.iloc[flagged.index[:5]]).sentences()
    assert all(any("flipper_length_mm" in text and "in combination with the other values" in text for text in texts) for texts in change)


@pytest.mark.parametrize("model", ["auto", "svdd"])
def test_a_value_that_is_unusual_by_itself_is_not_called_a_combination(model, tmp_path):
    train, _ = two_species(300, 0)
    train.to_csv(tmp_path / "train.csv", index=False)
    saved = fitted_file(DETECTORS[model], tmp_path)
    rows = two_species(30, 1)[0].assign(body_mass_g=9_000.0)
    _, found = scored(saved, rows, tmp_path, explain=2)
    assert found["reason_1"].str.startswith("body_mass_g = 9,000 (normal: ").all()


@pytest.mark.parametrize("model", ["auto", "svdd"])
def test_one_fault_in_training_does_not_make_its_sensor_normal_everywhere(model):
    """A wind of 1,048 in training, 98 % of which is below 26: 60 is said to be outside of what is normal."""
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"wind": np.abs(9.0 * rng.normal(size=400)), "temperature": rng.normal(80.0, 4.0, 400)})
    train.loc[7, "wind"] = 1_048.0
    detector = rk.TableDetector(DETECTORS[model]).fit(train)
    ((first, *_),) = detector.reasons(pd.DataFrame({"wind": [60.0], "temperature": [80.0]}))
    assert first.column == "wind"
    low, high = np.quantile(train["wind"], [0.01, 0.99])
    assert float(first.normal.split(" … ")[1]) == pytest.approx(high, rel=1e-3)
    assert first.why == f"normal: {first.normal}, extremes {written(train['wind'].min())} … 1,048"
    assert detector.explain(pd.DataFrame({"wind": [60.0], "temperature": [80.0]})).normals[0].usual == pytest.approx((low, high))


def test_a_calibrated_table_detector_has_reasons():
    detector = rk.ConformalDetector(rk.TableDetector(rk.SVDD(rk.RBF(1.0))), method="cv", cv=3, random_state=0).fit(penguins(200, 0))
    why = rk.explain(detector, penguins(1, 1).assign(bill_mm=90.0))
    assert why.names[why.worst(1)[0, 0]] == "bill_mm"
