"""TableDetector: a detector for data frames of any library, the same object in Python and by the refkernel command."""

import hashlib
import json
import pickle

import numpy as np
import pytest

pytest.importorskip("pandas")

import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError

import refkernel as rk
from refkernel.detectors.auto import folds

PARAMS = {"detector", "false_alarm_rate", "drop", "categorical", "time_column", "group_column", "random_state"}


def visits(n=200, seed=0):
    """Numbers, text, truth values, dates, missing cells, a code, a constant, and a column that names the rows."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "temperature": rng.normal(80.0, 4.0, n).round(2),
            "count": rng.integers(0, 9, n),
            "machine": rng.choice(["press", "saw", "drill"], n),
            "code": rng.choice([10115, 20095, 80331], n),
            "open": rng.random(n) < 0.6,
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 100 * 24, n), unit="h"),
            "set_point": 100.0,
        }
    )
    frame.loc[rng.random(n) < 0.1, "temperature"] = np.nan
    frame.loc[rng.random(n) < 0.1, "machine"] = None
    return frame


def spoilt(frame):
    """Rows of which each has one wrong cell, and the columns of these cells."""
    rows = frame.dropna().head(4).reset_index(drop=True).astype({"code": object})
    rows.loc[0, "temperature"], rows.loc[1, "machine"], rows.loc[2, "set_point"], rows.loc[3, "code"] = 80_000.0, "lathe", 130.0, 50000
    return rows, ["temperature", "machine", "set_point", "code"]


@pytest.fixture(scope="module")
def model():
    return rk.TableDetector(drop=["id"], categorical=["code"]).fit(visits())


def test_wrong_cells_are_flagged_and_named_in_numbers_and_in_words(model):
    rows, names = spoilt(visits())
    assert model.predict(rows).tolist() == [-1] * 4
    why = model.explain(rows)
    assert [why.names[worst] for worst in why.worst(1)[:, 0]] == names
    np.testing.assert_allclose(why.scores, model.score_samples(rows), rtol=1e-9)
    assert [reasons[0].column for reasons in model.reasons(rows, 1)] == names
    found = model.counterfactuals(rows)
    assert found.rows.tolist() == [0, 1, 2, 3]
    assert [changes[0].name for changes in found.changes] == names
    np.testing.assert_array_equal(rk.explain(model, rows).values, why.values)


def test_parameters_are_stored_cloned_and_set_as_scikit_learn_does():
    model = rk.TableDetector(rk.SVDD(nu=0.2), drop=["id"], random_state=3)
    assert set(model.get_params(deep=False)) == PARAMS
    copied = clone(model)
    assert copied.get_params()["detector__nu"] == 0.2
    assert copied.set_params(detector__nu=0.3).detector.nu == 0.3
    assert model.detector.nu == 0.2
    assert "TableDetector(detector=SVDD(nu=0.2), drop=['id'], random_state=3)" in " ".join(repr(model).split())
    with pytest.raises(NotFittedError):
        model.predict(visits(3))
    frame = visits()
    before = frame.copy()
    fitted = clone(model).fit(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert model.get_params()["detector"] is model.detector
    assert not hasattr(fitted.detector, "support_")
    assert fitted.feature_names_in_.tolist() == [name for name in frame.columns if name != "id"]
    assert fitted.n_features_in_ == 7


def test_the_four_outlier_equations_hold(model):
    new = visits(60, seed=1)
    decision = model.decision_function(new)
    np.testing.assert_array_equal(decision, model.score_samples(new) - model.offset_)
    np.testing.assert_array_equal(model.predict(new), np.where(decision >= 0, 1, -1))
    np.testing.assert_array_equal(model.predict(new) == -1, model.p_values(new) <= model.card_["false_alarm_rate"] + 1e-12)
    assert set(np.unique(clone(model).fit_predict(new))) <= {-1, 1}
    assert (model.select(spoilt(visits())[0], 0.2)).all()


def test_columns_are_taken_by_name_in_any_order_extra_ones_are_ignored_and_missing_ones_named(model):
    new = visits(30, seed=1)
    shuffled = new[new.columns[::-1]].assign(note="never seen")
    np.testing.assert_array_equal(model.score_samples(shuffled), model.score_samples(new))
    with pytest.raises(ValueError, match="lacks 2 of the 7 columns of fit: machine, when"):
        model.predict(new.drop(columns=["machine", "when"]))
    with pytest.raises(TypeError, match=r"takes 7 columns by name \(temperature, count, machine, …\)"):
        model.predict(new.to_numpy())
    with pytest.raises(TypeError, match="pass a data frame"):
        rk.TableDetector().fit(new.to_numpy())
    with pytest.raises(ValueError, match="no column 'colour'"):
        rk.TableDetector(drop=["colour"]).fit(new)
    with pytest.raises(ValueError, match="all were dropped"):
        rk.TableDetector(drop=list(new.columns)).fit(new)
    with pytest.raises(ValueError, match="y has 3 labels"):
        rk.TableDetector().fit(new, [1, 1, 1])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_give_the_model_and_the_scores_of_pandas(library, model):
    pytest.importorskip("narwhals")
    module = pytest.importorskip(library)
    convert = module.from_pandas if library == "polars" else module.Table.from_pandas
    train, new = visits(), visits(40, seed=1)
    np.testing.assert_array_equal(model.score_samples(convert(new)), model.score_samples(new))
    other = clone(model).fit(convert(train))
    assert [column.as_dict() for column in other.columns_] == [column.as_dict() for column in model.columns_]
    np.testing.assert_array_equal(other.score_samples(new), model.score_samples(convert(new)))


def test_a_detector_that_scales_by_itself_gets_the_units_and_others_standardised_columns(model):
    """Oracle: encoder and detector by hand."""
    train, new = visits().drop(columns="id"), visits(40, seed=1)
    kinds = {"code": "category"}
    encoder = rk.TableEncoder(kinds, standardise=False).fit(train)
    by_hand = rk.AutoDetector(units=encoder.units_, random_state=0).fit(encoder.transform(train))
    residuals = [detector._model.score(encoder.transform(new)) for detector in (model.detector_, by_hand)]  # only calibration differs
    np.testing.assert_array_equal(*residuals)
    encoder = rk.TableEncoder(kinds).fit(train)
    by_hand = rk.SVDD().fit(encoder.transform(train))
    found = rk.TableDetector(rk.SVDD(), categorical=["code"]).fit(train)
    np.testing.assert_array_equal(found.score_samples(new), by_hand.score_samples(encoder.transform(new)))


@pytest.mark.parametrize("most", [5000, 100])
def test_a_row_that_calibrates_was_not_seen_by_the_encoder_of_its_scores(most, monkeypatch):
    """In folds, and where some rows are left out: in a column of names of which each row has its own, all of them are new."""
    monkeypatch.setattr(folds, "MOST_IN_FOLDS", most)
    monkeypatch.setattr(folds, "FEWEST_LEFT_OUT", 40)
    held_out, found = folds.Training.held_out, []
    monkeypatch.setattr(folds.Training, "held_out", lambda *args: found.append(held_out(*args)) or found[-1])
    train = visits(120).assign(name=[f"n{i}" for i in range(120)])
    with pytest.warns(UserWarning, match="unlike all others"):
        model = rk.TableDetector(drop=["id"]).fit(train)
    assert all(fold.contradicts.all() for fold in found)
    assert len(model.calibration_) == sum(len(fold.rows) for fold in found) == (120 if most == 5000 else 40)
    assert set(model.calibration_indices_) == {row for fold in found for row in fold.rows}


def orders(n, seed):
    """Every fifth row brings a customer whom nobody has seen; there have been three lines for years."""
    rng = np.random.default_rng(seed)
    customer = np.where(rng.random(n) < 0.2, [f"new {i} of {seed}" for i in range(n)], rng.choice([f"c{i}" for i in range(20)], n))
    temperature = 80 + rng.normal(size=n)
    columns = {"customer": customer, "line": rng.choice(["a", "b", "c"], n), "temperature": temperature}
    return pd.DataFrame({**columns, "flow": 2 * temperature + 0.3 * rng.normal(size=n), "amount": rng.lognormal(3, 1, n)})


def test_a_level_never_seen_is_evidence_as_far_as_that_is_rare():
    """New customers are as normal as all others, a fourth line is flagged at once, and so is a strange row of a new customer."""
    flagged, is_new = np.zeros(3), []
    for seed in range(3):
        model, new = rk.TableDetector().fit(orders(300, seed)), orders(1_000, 100 + seed)
        is_new, label = new["customer"].str.startswith("new"), model.predict(new)
        flagged += [np.mean(label[is_new] == -1), np.mean(label == -1), np.mean(model.predict(new.assign(line="d")[:100]) == -1)]
        strange = new[is_new].assign(flow=new["flow"] + 4.0)
        assert np.mean(model.predict(strange) == -1) > 0.9
        drift = model.drift(new)
        assert not drift.scores_found
        assert "customer" not in [column.name for column in drift.drifted]
    assert flagged[0] / 3 < 0.1
    assert flagged[1] / 3 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 900)
    assert flagged[2] == 3.0


def test_a_column_with_values_in_one_row_is_no_obstacle():
    """The fold of that row knows nothing of the column."""
    train = visits(100).assign(remark=["late", *[None] * 99], extra=[np.nan] * 99 + [3.0])
    model = rk.TableDetector(drop=["id"]).fit(train)
    assert (model.predict(visits(300, seed=1).assign(remark=None, extra=np.nan)) == -1).mean() < 0.12


def test_known_outliers_reach_the_detector_and_teach_the_columns_nothing():
    train, (rows, _) = visits(), spoilt(visits())
    y = np.r_[np.ones(len(train)), -np.ones(len(rows))]
    both = pd.concat([train, rows.astype(train.dtypes)], ignore_index=True)
    model = rk.TableDetector(drop=["id"], categorical=["code"]).fit(both, y)
    alone = rk.TableDetector(drop=["id"], categorical=["code"]).fit(train)
    assert [str(column) for column in model.columns_] == [str(column) for column in alone.columns_]
    assert (model.card_["targets"], model.card_["outliers"], model.card_["rejected_outliers"]) == (200, 4, 1.0)


def test_detectors_without_a_promise_have_no_p_values_and_every_detector_fits():
    train, new = visits().drop(columns="id"), visits(20, seed=1)
    for detector in (rk.SVDD(), rk.OneClassSVM(), rk.ReferenceResidual(random_state=0), IsolationForest(n_estimators=5, random_state=0)):
        model = rk.TableDetector(detector).fit(train)
        assert model.predict(new).shape == (20,)
        with pytest.raises(ValueError, match="has no calibration rows"):
            model.p_values(new)
        assert model.card_["model"] == type(detector).__name__
        assert model.card_["false_alarm_rate"] is None or hasattr(detector, "false_alarm_rate_") or hasattr(model.detector_, "calibration_")
    with pytest.raises(ValueError, match="promises no rate"):
        rk.TableDetector(rk.SVDD()).fit(train).with_false_alarm_rate(0.1)


def test_another_threshold_is_that_of_a_model_fitted_with_it(model):
    moved, fitted = model.with_false_alarm_rate(0.2), clone(model).set_params(false_alarm_rate=0.2).fit(visits())
    assert moved.offset_ == fitted.offset_
    assert moved.card_["false_alarm_rate"] == fitted.card_["false_alarm_rate"] > model.card_["false_alarm_rate"]
    np.testing.assert_allclose(moved.percentiles_, fitted.percentiles_, atol=1e-12)


def test_drift_is_found_in_the_column_that_changed(model):
    new = visits(300, seed=1)
    assert model.drift(new).drifted == []
    assert [column.name for column in model.drift(new.assign(temperature=new["temperature"] + 4.0)).drifted] == ["temperature"]


def test_rows_that_were_read_once_are_taken_by_every_method(model):
    new = visits(30, seed=1)
    rows = model.read(new)
    for method in ("score_samples", "decision_function", "predict", "p_values"):
        np.testing.assert_array_equal(getattr(model, method)(rows), getattr(model, method)(new))
    np.testing.assert_array_equal(model.explain(rows).values, model.explain(new).values)
    part = rows.take(np.array([3, 7]))
    np.testing.assert_array_equal(model.score_samples(part), model.score_samples(new)[[3, 7]])
    np.testing.assert_array_equal(part.and_(part).encoded, rows.encoded[[3, 7, 3, 7]])


def test_the_card_and_the_profiles_are_plain_json_and_true(model):
    assert json.loads(json.dumps(model.card_, allow_nan=False)) == model.card_
    profiles = {column.name: column for column in model.columns_}
    train = visits()
    assert profiles["temperature"].missing == train["temperature"].isna().sum()
    assert (profiles["temperature"].minimum, profiles["temperature"].maximum) == (train["temperature"].min(), train["temperature"].max())
    assert dict(zip(profiles["machine"].levels, profiles["machine"].counts, strict=True)) == train["machine"].value_counts().to_dict()
    assert str(profiles["set_point"]) == "always 100"
    assert [profiles[name].kind for name in ("code", "open", "when", "count")] == ["category", "category", "date", "number"]
    assert model.card_["rows"] == 200
    assert model.card_["dropped"] == ["id"]


def test_a_saved_model_comes_back_whole(model, tmp_path):
    pytest.importorskip("skops")
    new = visits(30, seed=1)
    for found in (rk.load(model.save(tmp_path / "m.rk")), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(found.score_samples(new), model.score_samples(new))
        assert found.card_ == model.card_
        assert [column.as_dict() for column in found.columns_] == [column.as_dict() for column in model.columns_]
        assert found.get_params(deep=False).keys() == PARAMS


def test_python_and_the_command_make_and_take_the_same_model(model, tmp_path):
    pytest.importorskip("typer")
    pytest.importorskip("skops")
    from typer.testing import CliRunner

    from exact import read_csv
    from refkernel.cli import app

    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output

    train, new = visits(), visits(50, seed=1)
    train.to_csv(tmp_path / "train.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    run("fit", tmp_path / "train.csv", "--out", tmp_path / "shell.rk", "--drop", "id", "--categorical", "code")
    model.save(tmp_path / "python.rk")
    shell = rk.load(tmp_path / "shell.rk")
    assert isinstance(shell, rk.TableDetector)
    np.testing.assert_array_equal(shell.score_samples(new), model.score_samples(new))
    same = {"created", "file", "file_sha256"}
    assert shell.card_["file_sha256"] == hashlib.sha256((tmp_path / "train.csv").read_bytes()).hexdigest()
    assert {k: v for k, v in shell.card_.items() if k not in same} == {k: v for k, v in model.card_.items() if k not in same}
    assert [str(column) for column in shell.columns_] == [str(column) for column in model.columns_]
    for file in ("shell.rk", "python.rk"):
        run("score", tmp_path / file, tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--proba-like", "--explain", 1)
        scored = read_csv(tmp_path / "out.csv")
        np.testing.assert_allclose(scored["score"], model.score_samples(new), rtol=1e-12)
        np.testing.assert_array_equal(scored["label"], model.predict(new))


def test_forged_parts_of_a_file_are_refused(model, tmp_path):
    pytest.importorskip("skops")

    def forged(change):
        copied = pickle.loads(pickle.dumps(model))
        change(copied)
        with pytest.raises(rk.ModelFileError, match="forged"):
            rk.load(copied.save(tmp_path / "forged.rk"))

    forged(lambda m: setattr(m, "percentiles_", m.percentiles_[::-1].copy()))
    forged(lambda m: setattr(m, "percentiles_", m.percentiles_[:5]))
    forged(lambda m: setattr(m, "formats_", {"count": [1.5]}))
    forged(lambda m: setattr(m, "detector_", rk.AutoDetector()))
    forged(lambda m: setattr(m, "card_", {}))
    forged(lambda m: setattr(m, "seen_scores_", "abc"))
    forged(lambda m: setattr(m.encoder_.parts_[0], "knots_", m.encoder_.parts_[0].knots_[::-1].copy()))
    forged(lambda m: setattr(m.encoder_.parts_[0], "knot_counts_", m.encoder_.parts_[0].knot_counts_ + 1))


def test_a_row_with_a_missing_cell_where_training_had_none_is_flagged(model):
    rows = visits().dropna().head(20).astype({"count": float})
    rows["count"] = np.nan
    assert (model.predict(rows) == -1).all()
    assert model.read(rows).violations[:, list(model.feature_names_in_).index("count")].all()
