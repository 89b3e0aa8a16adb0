"""score sums a table up: labels, the worst rows, values that training never had, drift; in words and as JSON."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

pytest.importorskip("typer")
pytest.importorskip("skops")

from typer.testing import CliRunner

import refkernel as rk
from exact import read_csv
from refkernel.cli import app
from refkernel.detectors.explain import explain
from refkernel.exceptions import TableError
from refkernel.tabular.scoring import load_table_model
from refkernel.tabular.summary import Kept, Watch, labels_for


def table(n, seed, outliers=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": np.arange(n), "width": rng.normal(10, 1, n).round(4), "height": rng.normal(5, 0.5, n).round(4)})
    frame["colour"] = rng.choice(["red", "green"], n)
    frame["state"] = "good"
    frame.loc[: outliers - 1, ["width", "state"]] = [30.0, "bad"]
    return frame


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """model.rk of 200 good rows, new.csv of 20 bad rows and 80 good ones."""
    folder = tmp_path_factory.mktemp("summary")
    table(200, 0).to_csv(folder / "train.csv", index=False)
    table(100, 1, outliers=20).to_csv(folder / "new.csv", index=False)
    run("fit", folder / "train.csv", "--target-column", "state", "--target", "good", "--drop", "id", "--out", folder / "model.rk")
    return folder


def scored(folder, data="new.csv", *options):
    summary = folder / "summary.json"
    text = run("score", folder / "model.rk", folder / data, "--out", folder / "out.csv", "--summary-json", summary, *options)
    return text, json.loads(summary.read_text()), read_csv(folder / "out.csv")


def test_rates_and_auroc_of_labels_are_those_of_the_written_scores(folder):
    text, summary, out = scored(folder)
    labels, good = summary["labels"], out["state"] == "good"
    assert labels["false_alarm_rate"] == pytest.approx((out["label"][good] == -1).mean())
    assert labels["caught_rate"] == pytest.approx((out["label"][~good] == -1).mean())
    assert labels["auroc"] == pytest.approx(roc_auc_score(good, out["score"]))
    assert summary["flagged"] == (out["label"] == -1).sum()
    exact = binomtest(int((out["label"][good] == -1).sum()), int(good.sum())).proportion_ci(0.9, "exact")
    assert labels["false_alarm_interval"] == pytest.approx([exact.low, exact.high])
    for part in ("false alarms", "caught", f"AUROC {labels['auroc']:.3f}"):
        assert part in text


def test_a_label_column_of_another_name_is_named_and_wrong_ones_are_refused(folder, tmp_path):
    saved = load_table_model(folder / "model.rk")
    table(60, 2, outliers=10).rename(columns={"state": "verdict"}).to_csv(folder / "renamed.csv", index=False)
    assert scored(folder, "renamed.csv")[1]["labels"] is None
    assert scored(folder, "renamed.csv", "--target-column", "verdict", "--target", "good")[1]["labels"]["other_rows"] == 10
    with pytest.raises(TableError, match="no column verdict"):
        labels_for(saved, ["state"], "verdict", "good")
    with pytest.raises(TableError, match="needs --target"):
        labels_for(saved, ["verdict"], "verdict")
    with pytest.raises(TableError, match="name it by --target-column"):
        labels_for(saved, ["state"], None, "good")


def test_rows_without_a_label_count_for_neither_rate(folder):
    frame = table(50, 3, outliers=5)
    frame.loc[10:19, "state"] = ""
    frame.to_csv(folder / "gaps.csv", index=False)
    labels = scored(folder, "gaps.csv")[1]["labels"]
    assert (labels["normal_rows"], labels["other_rows"], labels["rows_without_label"]) == (35, 5, 10)


def test_the_worst_rows_come_first_by_their_place_in_the_table(folder):
    text, summary, out = scored(folder, "new.csv", "--worst", "7")
    expected = np.argsort(out["score"].to_numpy(), kind="stable")[:7] + 1
    assert [item["row"] for item in summary["worst"]] == expected.tolist()
    assert all(item["reasons"][0]["column"] == "width" for item in summary["worst"])
    assert "width = 30" in text
    assert scored(folder)[1]["worst"] == []


def test_what_training_never_had_is_counted_by_column(folder):
    frame = table(100, 4).astype({"width": object})
    frame.loc[:2, "colour"] = "ultraviolet"
    frame.loc[:4, "width"] = 99.0
    frame.to_csv(folder / "odd.csv", index=False)
    text, summary, _ = scored(folder, "odd.csv")
    columns = {column["name"]: column for column in summary["columns"]}
    train = read_csv(folder / "train.csv")["width"]
    assert columns["width"]["above_range"] == (frame["width"].astype(float) > train.max()).sum()
    assert columns["width"]["below_range"] == (frame["width"].astype(float) < train.min()).sum()
    assert columns["width"]["range_training"] == [train.min(), train.max()]
    assert columns["colour"]["unseen"] == {"ultraviolet": 3}
    assert "outside training" in text
    assert "never seen" in text


def test_drift_is_found_in_a_table_of_others_and_not_in_one_like_training(folder):
    table(300, 5).to_csv(folder / "alike.csv", index=False)
    moved = table(300, 6)
    moved["height"] += 1.0
    moved.to_csv(folder / "moved.csv", index=False)
    alike, text = scored(folder, "alike.csv")[1]["drift"], scored(folder, "moved.csv")[0]
    assert not alike["drift"]
    assert alike["tests"] == 4  # three columns and the scores
    assert scored(folder, "moved.csv")[1]["drift"]["columns"] == ["height"]
    assert "1 column differs from training" in text


def test_rows_that_are_kept_are_spread_evenly_whatever_the_blocks(folder):
    saved = load_table_model(folder / "model.rk")
    kept = []
    for blocks in (1, 9):
        watch = Watch(saved, worst=5, spread=100)
        frame = table(1_234, 7)
        for part in np.array_split(np.arange(len(frame)), blocks):
            block = frame.iloc[part].reset_index(drop=True)
            watch.add(block, saved.model.read(block), pd.DataFrame({"score": block["width"], "label": 1}))
        kept.append(watch)
    assert kept[0].spread_rows.rows.tolist() == kept[1].spread_rows.rows.tolist()
    assert set(np.diff(kept[0].spread_rows.rows)) == {16}
    assert 50 <= len(kept[0].spread_rows.rows) <= 100
    assert kept[0].worst_rows.rows.tolist() == kept[1].worst_rows.rows.tolist()
    assert isinstance(kept[0].spread_rows, Kept)


def test_the_first_reason_is_the_cell_that_training_never_had(folder):
    saved = load_table_model(folder / "model.rk")
    new = pd.DataFrame({"width": [30.0, 10.0, 10.0], "height": [5.0, -9.0, 5.0], "colour": pd.Series(["red", "red", "blue"], dtype=object)})
    reasons = saved.model.reasons(new, 1)
    assert [row[0].column for row in reasons] == ["width", "height", "colour"]
    assert all(row[0].outside for row in reasons)
    assert [row[0].weight for row in reasons] == pytest.approx(explain(saved.model, new).values.min(axis=1))


def test_a_model_that_cannot_be_explained_has_no_reasons(folder):
    train = read_csv(folder / "train.csv").drop(columns=["id", "state"])
    saved = replace(load_table_model(folder / "model.rk"), model=rk.TableDetector(IsolationForest(n_estimators=2)).fit(train))
    assert saved.reasons(saved.model.read(train.head(3))) == [[], [], []]


@pytest.mark.parametrize("model", ["auto", "svdd"])
def test_rows_that_trained_the_model_are_recognised_and_new_ones_are_not(model, tmp_path):
    """Sorted otherwise, in another file, with another number of digits, and among as many new rows."""
    train, new = table(200, 0).drop(columns="state"), table(200, 1).drop(columns="state")
    train.to_csv(tmp_path / "train.csv", index=False)
    run("fit", tmp_path / "train.csv", "--drop", "id", "--model", model, "--out", tmp_path / "model.rk")
    train[::-1].to_csv(tmp_path / "again.csv", index=False, float_format="%.6f")
    new.to_csv(tmp_path / "new.csv", index=False)
    pd.concat([train, new]).to_csv(tmp_path / "both.csv", index=False)
    for data, share, words in (
        ("again.csv", 1.0, "not new these rows trained the model"),
        ("both.csv", 0.5, "about 50 % of these rows trained the model"),
    ):
        text, summary, _ = scored(tmp_path, data)
        assert words in text
        assert "flatter it" in text
        assert summary["trained_share"] == pytest.approx(share, abs=0.02)
    text, summary, _ = scored(tmp_path, "new.csv")
    assert summary["trained_share"] == 0.0
    assert "flatter" not in text


def test_of_many_training_rows_a_sample_is_enough_to_recognise_them(tmp_path):
    train = table(3_000, 0).drop(columns="state")
    train.to_csv(tmp_path / "train.csv", index=False)
    run("fit", tmp_path / "train.csv", "--drop", "id", "--model", "svdd", "--references", "none", "--out", tmp_path / "model.rk")
    assert len(load_table_model(tmp_path / "model.rk").model.seen_scores_) == 1_000
    pd.concat([train[::2], table(1_500, 1)]).to_csv(tmp_path / "half.csv", index=False)
    assert scored(tmp_path, "half.csv")[1]["trained_share"] == pytest.approx(0.5, abs=0.05)  # about 3 standard errors of 500 found rows


def test_a_table_of_few_different_rows_is_not_taken_for_the_training_table(tmp_path):
    """New rows are equal to training rows there, because all rows are."""
    rng = np.random.default_rng(0)
    for name in ("train.csv", "new.csv"):
        pd.DataFrame({"a": rng.integers(0, 5, 400), "b": rng.choice(["x", "y", "z"], 400)}).to_csv(tmp_path / name, index=False)
    run("fit", tmp_path / "train.csv", "--out", tmp_path / "model.rk")
    text, summary, _ = scored(tmp_path, "new.csv")
    assert summary["trained_share"] is None
    assert "flatter" not in text
