"""The benchmark: its protocol, its tables, rows that survive failures and interruptions, its statistics and its page."""

import dataclasses
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.covariance import ledoit_wolf
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from typer.testing import CliRunner

import refkernel as rk
from exact import read_csv
from refkernel.cli import app
from refkernel.datasets import DataError, DownloadError, published
from refkernel.exceptions import ResultsError
from refkernel.experiments.benchmark import methods, runner, tables
from refkernel.experiments.benchmark.methods import METHODS, Method
from refkernel.experiments.benchmark.page import (
    build_page,
    failures,
    margins_by_size,
    promises,
    ranks,
    read_rows,
    subject,
    summary,
    table_means,
)
from refkernel.experiments.benchmark.runner import Settings, run
from refkernel.experiments.benchmark.tables import Table, make_split, split_rows

FAST = ("svdd", "lof", "dte-np")


def write_table(folder, name, seed, n=60, outliers=8, d=3):
    """A table of normal draws, and outliers a few deviations away."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(n, d)), rng.normal(3.0, 1.5, size=(outliers, d))])
    np.savez(folder / f"{name}.npz", X=X, y=np.repeat([0, 1], [n, outliers]))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for seed, name in enumerate(("1_apples", "2_Pears", "plums")):
        write_table(folder, name, seed)
    return folder


SETTINGS = Settings(methods=FAST, seeds=2)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """A finished run."""
    out = tmp_path_factory.mktemp("benchmark")
    run(SETTINGS, out, data_dir=data)
    return out


# ---- the protocol


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("most_train", "most_test"), [(1000, 1000), (7, 5)])
def test_half_of_the_normals_train_and_no_outlier_does(seed, most_train, most_test):
    """Training and test rows are disjoint; without caps every normal row and every outlier is used, once."""
    is_outlier = np.arange(101) % 4 == 0
    train, test = split_rows(is_outlier, seed, most_train, most_test)
    assert not is_outlier[train].any()
    assert not set(train) & set(test)
    assert len(set(train)) == min(37, most_train)
    assert (len(set(test)), len(test)) == (min(38, most_test) + min(26, most_test),) * 2
    assert is_outlier[test].sum() == min(26, most_test)


def test_seeds_differ_and_repeat_and_a_smaller_cap_takes_a_part():
    is_outlier = np.arange(200) % 5 == 0
    draws = [split_rows(is_outlier, seed, 1000, 1000) for seed in range(5)]
    assert len({tuple(train) for train, _ in draws}) == 5
    for seed, (train, test) in enumerate(draws):
        again, few = split_rows(is_outlier, seed, 1000, 1000), split_rows(is_outlier, seed, 20, 10)
        np.testing.assert_array_equal(again[0], train)
        np.testing.assert_array_equal(again[1], test)
        np.testing.assert_array_equal(few[0], train[:20])
        assert set(few[1]) <= set(test)


def test_nothing_of_the_test_reaches_the_training_rows():
    """Whatever the outliers and the test rows are, the standardised training rows are the same."""
    rng = np.random.default_rng(0)
    X, is_outlier = rng.normal(size=(80, 3)) * [1, 10, 100], np.arange(80) % 4 == 0
    _, test = split_rows(is_outlier, 1, 100, 100)
    changed = X.copy()
    changed[test] = 1e6 * rng.normal(size=(len(test), 3))
    one, other = make_split(Table(X, is_outlier), 1), make_split(Table(changed, is_outlier), 1)
    np.testing.assert_array_equal(one.train, other.train)
    np.testing.assert_allclose(one.train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(one.train.std(axis=0), 1)
    np.testing.assert_array_equal(one.is_outlier, is_outlier[test])


class Recorder:
    """A method that keeps what it is trained on."""

    def fit(self, *args):
        self.args = args
        return self

    def score_samples(self, X):
        return X[:, 0]

    def predict(self, X):
        return np.where(X[:, 0] > 0, 1, -1)


def test_a_method_gets_normal_rows_and_nothing_else():
    """No label and no outlier; as they are for a method that scales them itself."""
    X, is_outlier = np.arange(90.0).reshape(30, 3), np.arange(30) % 3 == 0
    split = make_split(Table(X, is_outlier), 0)
    for raw in (False, True):
        model = Recorder()
        found = runner.measure(Method("m", "M", "-", lambda seed, model=model: model, raw=raw), split)
        (got,) = model.args
        np.testing.assert_array_equal(got, split.raw_train if raw else split.train)
        assert set(map(tuple, split.raw_train)) <= set(map(tuple, X[~is_outlier]))
        test = split.raw_test if raw else split.test
        assert found["auroc"] == roc_auc_score(split.is_outlier, -test[:, 0])
        assert found["average_precision"] == average_precision_score(split.is_outlier, -test[:, 0])
        assert found["accepted"] == (test[~split.is_outlier, 0] > 0).mean()
        assert found["gmean"] == pytest.approx(np.sqrt(found["accepted"] * found["rejected"]))


# ---- methods


def test_methods_are_what_users_would_write(data):
    """Rows of SVDD and of LOF are those of the estimators on standardised rows."""
    split = make_split(tables.read_table(data / "plums.npz"), 1)
    for key, model in (("svdd", rk.SVDD()), ("lof", LocalOutlierFactor(novelty=True, contamination=0.1))):
        found, model = runner.measure(METHODS[key], split), model.fit(split.train)
        assert found["auroc"] == pytest.approx(roc_auc_score(split.is_outlier, -model.score_samples(split.test)), abs=1e-12)
        assert found["accepted"] == (model.predict(split.test[~split.is_outlier]) == 1).mean()


@pytest.mark.parametrize("k", [1, 5])
def test_neighbour_distances_are_those_of_a_naive_loop(k):
    rng = np.random.default_rng(k)
    X, Z = rng.normal(size=(30, 3)), rng.normal(size=(10, 3))
    model = METHODS[f"knn{k}"].make(0).fit(X)
    distances = [np.sort(np.linalg.norm(X - z, axis=1))[:k].mean() for z in Z]
    np.testing.assert_allclose(model.score_samples(Z), np.negative(distances))
    own = [np.sort(np.linalg.norm(X - x, axis=1))[1 : k + 1].mean() for x in X]
    assert model.threshold_ == pytest.approx(np.quantile(own, 0.9))


def test_dte_np_is_the_mean_squared_distance_to_five_neighbours():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(30, 3)), rng.normal(size=(10, 3))
    squared = [np.sort(((X - z) ** 2).sum(axis=1))[:5].mean() for z in Z]
    np.testing.assert_allclose(METHODS["dte-np"].make(0).fit(X).score_samples(Z), np.negative(squared))


def test_the_linear_methods_are_those_of_numpy():
    """Mahalanobis' distance by the inverse of the shrunk covariance; the residual of the fewest components with 95 % of the variance."""
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(60, 4)) * [5, 2, 1, 0.1], rng.normal(size=(10, 4))
    C = ledoit_wolf(X)[0]
    centred = Z - X.mean(axis=0)
    np.testing.assert_allclose(
        METHODS["mahalanobis"].make(0).fit(X).score_samples(Z), -np.einsum("ij,jk,ik->i", centred, np.linalg.inv(C), centred)
    )
    _, s, V = np.linalg.svd(X - X.mean(axis=0))
    k = 1 + int(np.argmax(np.cumsum(s**2) / (s**2).sum() > 0.95))
    expected = -((centred @ V[k:].T) ** 2).sum(axis=1)
    np.testing.assert_allclose(METHODS["pca-residual"].make(0).fit(X).score_samples(Z), expected, atol=1e-12)


@pytest.mark.parametrize("copies", [1, 4])
def test_weighted_precision_is_that_of_a_tenth_of_outliers(copies):
    """Repeating every normal row changes nothing; with nine normal rows to an outlier it is the plain average precision."""
    rng = np.random.default_rng(2)
    outlying, normal = rng.normal(1.0, size=10), rng.normal(size=90)
    plain = average_precision_score(np.repeat([1, 0], [10, 90]), np.concatenate([outlying, normal]))
    scores = np.concatenate([outlying, np.repeat(normal, copies)])
    assert runner.weighted_precision(np.repeat([True, False], [10, 90 * copies]), scores) == pytest.approx(plain)


def test_without_pyod_its_methods_are_left_out_with_a_note(monkeypatch):
    monkeypatch.setattr(methods.importlib.util, "find_spec", lambda name: None)
    found, notes = methods.chosen()
    assert not any(method.package == "pyod" for method in found)
    assert any("PyOD ECOD" in note and "refkernel[benchmark]" in note for note in notes)
    with pytest.raises(ValueError, match=r"pyod-knn cannot run: PyOD is not installed"):
        methods.chosen(("pyod-knn",))
    with pytest.raises(ValueError, match=r"Unknown method 'best': choose from auto, svdd"):
        methods.chosen(("best",))


# ---- tables


def test_any_folder_of_tables_will_do(data):
    """Every .npz file is a table, ADBench's numbers are left out of the names, and capitals do not matter."""
    found = tables.find_tables(data)
    assert [source.name for source in found] == ["apples", "Pears", "plums"]
    assert [source.name for source in tables.chosen(found, ("pears",))] == ["Pears"]
    with pytest.raises(ValueError, match=r"Unknown table 'nuts': choose from apples, Pears, plums"):
        tables.chosen(found, ("nuts",))


def test_a_csv_file_is_the_table_of_its_arrays(data, tmp_path):
    """The column y holds the labels, wherever it stands; the other columns are those of X, in their order."""
    arrays = np.load(data / "plums.npz")
    frame = pd.DataFrame(arrays["X"], columns=["weight", "size", "sugar"])
    for place in (0, 2, 3):
        frame.assign(y=arrays["y"]).pipe(lambda f, k=place: f[np.roll(f.columns, k)]).to_csv(tmp_path / f"plums{place}.csv", index=False)
    for source in tables.find_tables(tmp_path):
        found = source.read()
        assert found.X.shape == arrays["X"].shape
        assert set(map(tuple, found.X.T.round(9))) == set(map(tuple, arrays["X"].T.round(9)))
        np.testing.assert_array_equal(found.is_outlier, arrays["y"] == 1)
    out = tmp_path / "out"
    told = CliRunner().invoke(app, ["benchmark", "--data-dir", str(tmp_path), "--methods", "knn1", "--seeds", "1", "--out", str(out)])
    assert told.exit_code == 0, told.output
    assert read_csv(out / "rows.csv")["table"].tolist() == ["plums0", "plums2", "plums3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "it has the columns a, b, and no column y"),
        ("a,y\nred,1\n", "holds 0 normal rows and 1 outliers"),
        ("a,y\n" + "1,0\n" * 9 + ",1\n", "nan in row 9, column 0 of X"),
        ("a,y\n" + "1,0\n" * 9 + "2,2\n", "the label 2.0 in y"),
        ("", "not a table"),
    ],
)
def test_a_csv_file_that_is_not_a_table_is_refused(tmp_path, text, said):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(DataError, match=said) as caught:
        tables.read_table(tmp_path / "bad.csv")
    assert "bad.csv" in str(caught.value)


def test_files_without_labels_are_left_out_and_named(data, tmp_path):
    """A folder of tables may hold a list of them; if no file has labels, that is an error when it is read."""
    shutil.copy(data / "plums.npz", tmp_path)
    (tmp_path / "about.csv").write_text("table,rows\nplums,40\n")
    with pytest.warns(UserWarning, match=r"Left out, without a column y: about\.csv"):
        assert [source.name for source in tables.find_tables(tmp_path)] == ["plums"]
    (tmp_path / "plums.npz").unlink()
    with pytest.raises(DataError, match="no column y"):
        tables.find_tables(tmp_path)[0].read()


def test_a_csv_file_as_people_have_it_is_the_table_of_its_plain_numbers(tmp_path):
    """Semicolons, decimal commas, a category, and labels in words: the oracle is the table written by hand."""
    rng = np.random.default_rng(0)
    x, colour, kind = rng.normal(size=40), rng.choice(["blue", "red"], 40), np.where(np.arange(40) % 8 == 3, "weed", "wheat")
    frame = pd.DataFrame({"x": [f"{value:.3f}".replace(".", ",") for value in x], "colour": colour, "kind": kind})
    frame.to_csv(tmp_path / "seeds.csv", sep=";", index=False)
    (source,) = tables.find_tables(tmp_path, labels="kind=wheat")
    found = source.read()
    np.testing.assert_allclose(found.X, np.column_stack([x.round(3), colour == "blue", colour == "red"]), atol=1e-12)
    np.testing.assert_array_equal(found.is_outlier, kind == "weed")
    command = ["benchmark", "--data-dir", str(tmp_path), "--labels", "kind=wheat", "--methods", "knn1", "--seeds", "1"]
    told = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert told.exit_code == 0, told.output
    with pytest.raises(DataError, match="no column kind2"):
        tables.read_table(tmp_path / "seeds.csv", "kind2=wheat")
    frame.loc[5, "kind"] = ""
    frame.to_csv(tmp_path / "seeds.csv", sep=";", index=False)
    with pytest.raises(DataError, match="the label nan"):
        tables.read_table(tmp_path / "seeds.csv", "kind=wheat")


class Trap:
    """Unpickling it is noticed."""

    def __reduce__(self):
        return (pytest.fail, ("a table was unpickled",))


GOOD = {"X": np.arange(40.0).reshape(20, 2), "y": np.arange(20) % 5 == 0}


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"X": np.array([[Trap()]] * 20, dtype=object), "y": GOOD["y"]}, "not a table"),
        ({"X": GOOD["X"]}, "not a table"),
        ({"X": np.array([["a"]] * 20), "y": GOOD["y"]}, "not a table"),
        ({**GOOD, "y": np.zeros(7)}, "shape"),
        ({**GOOD, "X": np.arange(20.0)}, "shape"),
        ({**GOOD, "X": np.where(np.arange(40).reshape(20, 2) == 7, np.nan, 1.0)}, "nan in row 3, column 1"),
        ({**GOOD, "y": np.repeat([1, -1], 10)}, "the label -1"),
        ({**GOOD, "y": np.zeros(20)}, "0 outliers"),
        ({**GOOD, "y": np.ones(20)}, "0 normal rows"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused_without_running_it(tmp_path, arrays, said):
    """The message names the file and what is wrong; pickles are never read."""
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=said) as caught:
        tables.read_table(tmp_path / "bad.npz")
    assert "bad.npz" in str(caught.value)


def test_damaged_and_missing_files_are_named(tmp_path):
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(DataError, match=r"cut\.npz"):
        tables.read_table(tmp_path / "cut.npz")
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"none.*holds no \.csv or \.npz file"):
        tables.find_tables(tmp_path / "none")
    with pytest.raises(ValueError, match="--embedded"):
        tables.find_tables(tmp_path, embedded=True)


def test_the_embedded_tables_need_nothing(monkeypatch):
    """17 tables with normal rows and outliers, without any folder."""
    monkeypatch.delenv("REFKERNEL_DATA", raising=False)
    found = tables.find_tables(embedded=True)
    assert len({source.name for source in found}) == len(found) == 17
    for source in found:
        X, is_outlier, _ = source.read()
        assert X.shape == (len(is_outlier), X.shape[1])
        assert 0 < is_outlier.sum() < len(is_outlier) - 8


def test_the_checksums_are_those_of_the_files():
    """Each file that REFKERNEL_DATA holds is the one that a download would accept."""
    folder = Path(os.environ.get("REFKERNEL_DATA", "-")) / "adbench"
    if not folder.is_dir():
        pytest.skip("ADBench's tables are found through REFKERNEL_DATA (a folder that holds them as adbench/), which is not set")
    assert sorted(path.name for path in folder.glob("*.npz")) == sorted(published.ADBENCH.digests)
    for name in published.ADBENCH.digests:
        published.ADBENCH.content(name)


# ---- the download


@pytest.fixture
def download(data, local_server, tmp_path, monkeypatch):
    """A server that has one table in place of ADBench's 22; ``mood`` says how it behaves."""
    content = (data / "plums.npz").read_bytes()
    server = local_server(content)
    digests = {"7_plums.npz": hashlib.sha256(content).hexdigest()}
    monkeypatch.setattr(tables, "ADBENCH", dataclasses.replace(published.ADBENCH, base_url=server.url, digests=digests))
    monkeypatch.setattr(published, "TIMEOUT", 0.2)
    monkeypatch.delenv("REFKERNEL_DATA", raising=False)
    monkeypatch.setenv("REFKERNEL_CACHE", str(tmp_path / "cache"))
    return server


def test_tables_are_downloaded_once(download):
    for _ in range(2):
        (source,) = tables.find_tables()
        assert source.name == "plums"
        assert source.read()[0].shape == (68, 3)
    assert download.asked == ["/7_plums.npz"]


@pytest.mark.parametrize("mood", ["404", "500", "cut", "cut, no length", "wrong bytes", "empty", "stalls"])
def test_a_download_that_fails_says_what_to_do_and_leaves_nothing(download, tmp_path, mood):
    """The command ends with one message that names the file, the page and the options."""
    download.mood = mood
    with pytest.raises(DownloadError, match=r"7_plums\.npz could not be downloaded") as caught:
        tables.find_tables()
    assert all(part in str(caught.value) for part in ("Minqi824/ADBench", "--data-dir", "REFKERNEL_DATA", "adbench/"))
    assert not list((tmp_path / "cache").rglob("*.npz"))
    told = CliRunner().invoke(app, ["benchmark", "--out", str(tmp_path / "out")])
    assert told.exit_code == 1
    download.mood = "good"
    assert len(tables.find_tables()) == 1


# ---- fixed splits


@pytest.fixture(scope="module")
def fixed(tmp_path_factory):
    """A folder with one table of each kind."""
    folder, rng = tmp_path_factory.mktemp("fixed"), np.random.default_rng(0)
    labels = np.arange(50) % 5 == 0
    test = rng.normal(size=(50, 3)) + 3.0 * labels[:, None]
    np.savez(folder / "figs.npz", train=rng.normal(size=(70, 3)), test=test, test_labels=labels, feature_names=np.array(["a", "b", "c"]))
    write_table(folder, "plums", seed=1)
    return folder


def test_a_fixed_split_is_taken_as_it_is(fixed):
    """All rows, in their order, whatever the seed; standardised by the training rows."""
    table = tables.read_table(fixed / "figs.npz")
    for seed in range(3):
        split = make_split(table, seed)
        np.testing.assert_array_equal(split.raw_train, table.train)
        np.testing.assert_array_equal(split.raw_test, table.X)
        np.testing.assert_array_equal(split.is_outlier, table.is_outlier)
        np.testing.assert_allclose(split.train.mean(axis=0), 0, atol=1e-12)


def test_caps_draw_rows_of_a_fixed_split_by_the_seed(fixed):
    table = tables.read_table(fixed / "figs.npz")
    one, again, other = make_split(table, 0, 20, 7), make_split(table, 0, 20, 7), make_split(table, 1, 20, 7)
    assert (len(one.train), (~one.is_outlier).sum(), one.is_outlier.sum()) == (20, 7, 7)
    np.testing.assert_array_equal(one.raw_train, again.raw_train)
    assert not np.array_equal(one.raw_train, other.raw_train)
    assert set(map(tuple, one.raw_train)) <= set(map(tuple, table.train))


def test_fixed_splits_run_once_and_others_with_every_seed(fixed, tmp_path):
    """The page says how each kind was split; a run goes on after any row."""
    settings = Settings(methods=("dte-np", "knn1"), seeds=2, max_train_rows=40)
    facts = run(settings, tmp_path, data_dir=fixed)
    rows = read_csv(tmp_path / "rows.csv")
    assert rows.groupby("table")["seed"].nunique().to_dict() == {"figs": 1, "plums": 2}
    assert (facts["fixed"], rows["n_train"].tolist()) == (1, [40] * 2 + [30] * 4)
    text = build_page(tmp_path).read_text(encoding="utf-8")
    assert "Fixed splits (1 tables): at most 40 training rows and\nall test rows." in text
    assert "half of them train (at most 40)" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"test": np.ones((50, 2))}, "the same columns"),
        ({"test_labels": np.zeros(50)}, "0 outliers"),
        ({"test_labels": np.ones(50)}, "0 normal rows"),
        ({"train": np.ones((2, 3))}, "2 rows to train on"),
        ({"train": np.full((70, 3), np.inf)}, "inf in row 0, column 0 of train"),
        ({"test_labels": np.full(50, 2)}, "the label 2 in test_labels"),
    ],
)
def test_a_fixed_split_that_cannot_be_used_is_refused(fixed, tmp_path, change, said):
    with np.load(fixed / "figs.npz") as arrays:
        np.savez(tmp_path / "bad.npz", **{**arrays, **change})
    with pytest.raises(DataError, match=said):
        tables.read_table(tmp_path / "bad.npz")


# ---- rows


def test_there_is_one_row_for_each_table_seed_and_method(folder):
    rows = read_csv(folder / "rows.csv")
    assert list(rows.columns) == list(runner.COLUMNS)
    assert len(rows) == 3 * 2 * 3
    assert not rows[["table", "seed", "method"]].duplicated().any()
    assert rows["error"].isna().all()
    assert (rows[["n_train", "n_test", "outliers", "columns"]] == [30, 38, 8, 3]).all(axis=None)
    facts = json.loads((folder / "run.json").read_text())
    assert facts["finished"]
    assert set(facts["settings"]["tables"]) == {"apples", "Pears", "plums"}


def without_seconds(folder):
    return read_csv(folder / "rows.csv").drop(columns=["fit_seconds", "score_seconds"])


def test_a_run_that_was_cut_off_continues_to_the_same_rows(folder, data, tmp_path):
    """After any number of whole or half rows, with any number of processes."""
    lines = (folder / "rows.csv").read_text().splitlines(keepends=True)
    (tmp_path / "run.json").write_text((folder / "run.json").read_text())
    (tmp_path / "rows.csv").write_text("".join(lines[:8]) + lines[8][:10])
    seen = []
    run(SETTINGS, tmp_path, data_dir=data, jobs=2, progress=lambda done, total: seen.append(done))
    pd.testing.assert_frame_equal(without_seconds(tmp_path), without_seconds(folder))
    assert seen == list(range(7, 19))


def test_other_settings_or_other_contents_are_refused(folder, data, tmp_path):
    with pytest.raises(ResultsError, match="max_train_rows None -> 10"):
        run(dataclasses.replace(SETTINGS, max_train_rows=10), folder, data_dir=data)
    for path in data.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    write_table(tmp_path, "plums", seed=99)
    with pytest.raises(ResultsError, match="other settings"):
        run(SETTINGS, folder, data_dir=tmp_path)
    for wrong in ({"seeds": 0}, {"max_train_rows": 3}, {"max_test_rows": 0}):
        with pytest.raises(ValueError, match="the minimum is"):
            run(Settings(**wrong), tmp_path / "out", data_dir=data)


class Broken(Recorder):
    def fit(self, X):
        if X.shape[1] == 3 and len(X) == 30:
            raise MemoryError('it needs\n  a, "larger" machine')
        return super().fit(X)


class Undefined(Recorder):
    def score_samples(self, X):
        return np.where(X[:, 0] > 1.5, np.nan, X[:, 0])


@pytest.fixture
def with_failures(data, tmp_path, monkeypatch):
    """A run in which one method raises, and one gives NaN."""
    for key, make in (("broken", Broken), ("undefined", Undefined)):
        monkeypatch.setitem(METHODS, key, Method(key, key.title(), "-", lambda seed, make=make: make()))
    run(Settings(methods=("knn1", "broken", "undefined"), seeds=2), tmp_path, data_dir=data)
    return tmp_path


def test_a_method_that_fails_is_recorded_and_is_the_last(with_failures):
    """Its error is in the rows, on one line; it counts as chance, and has the worst rank; the others are not disturbed."""
    rows = read_rows(with_failures)
    assert rows.groupby("method")["failed"].sum().to_dict() == {"broken": 6, "knn1": 0, "undefined": 6}
    assert ("Broken", 'MemoryError: it needs a, "larger" machine', 3) in failures(rows)
    assert any(name == "Undefined" and "scores are not finite" in error for name, error, _ in failures(rows))
    found = summary(rows).set_index("method")
    assert found.loc["Broken", ["auroc", "gmean"]].tolist() == [50.0, 0.0]
    assert found.loc["Broken", ["average_precision", "weighted_precision"]].tolist() == pytest.approx([100 * 8 / 38, 10.0])
    assert ranks(rows).to_dict() == {"kNN (k = 1)": 1.0, "Broken": 2.5, "Undefined": 2.5}
    assert set(promises(rows)["method"]) == {"kNN (k = 1)"}
    text = build_page(with_failures).read_text(encoding="utf-8")
    assert '| Broken | MemoryError: it needs a, "larger" machine | 3 |' in text


def test_a_failed_row_is_not_run_again(with_failures, data):
    before = (with_failures / "rows.csv").read_bytes()
    run(Settings(methods=("knn1", "broken", "undefined"), seeds=2), with_failures, data_dir=data)
    assert (with_failures / "rows.csv").read_bytes() == before


# ---- what the rows say


@pytest.fixture
def made_up(tmp_path):
    """Ten tables, two seeds: SVDD is 1 or 3 points above DTE-NP, LOF 2.5 or 7.5 below; SVDD rejects 12 % of normals, asked for 10."""
    gains = {"svdd": 0.02, "lof": -0.05, "dte-np": 0.0}
    rows = []
    for number in range(10):
        for seed in range(2):
            for method, gain in gains.items():
                auroc = 0.8 + 0.01 * number + gain * (1.5 if number % 2 else 0.5) + (0.01 if seed else -0.01)
                row = dict.fromkeys(runner.COLUMNS, "") | {"table": f"T{number}", "seed": seed, "method": method, "auroc": auroc}
                row |= {
                    "average_precision": 0.5,
                    "weighted_precision": 0.4,
                    "accepted": 0.88 if method == "svdd" else 0.9,
                    "rejected": 0.5,
                    "gmean": 0.7,
                    "wish": 0.1,
                }
                rows.append(row | {"n_train": 200, "n_test": 300, "outliers": 100, "columns": 4, "fit_seconds": 1.0, "score_seconds": 2.0})
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def test_averages_ranks_and_wins_are_those_worked_out_by_hand(made_up):
    rows = read_rows(made_up)
    found = summary(rows).set_index("method")
    assert list(found.index) == ["rk.SVDD", "DTE-NP", "LocalOutlierFactor"]
    assert found["auroc"].tolist() == pytest.approx([86.5, 84.5, 79.5])
    assert found["rank"].tolist() == [1.0, 2.0, 3.0]
    assert found["auroc_margin"].tolist() == pytest.approx([2.0, 0.0, -5.0])
    assert found["auroc_margin_error"].tolist() == pytest.approx([1.0 / 3, 0.0, 2.5 / 3])  # deviations of 1 and 2.5 (n - 1: times 10 / 9)
    assert found["auroc_error"]["DTE-NP"] == pytest.approx(np.std(np.arange(10), ddof=1) / np.sqrt(10))
    assert found["weighted_precision"].tolist() == pytest.approx([40.0] * 3)
    sizes = margins_by_size(rows, "rk.SVDD")
    assert [which for which, *_ in sizes] == ["1 to 200 training rows", "1 to 10 columns"]
    np.testing.assert_allclose([numbers for _, *numbers in sizes], [[10, 10, 2, 1 / 3]] * 2)
    assert found["false_alarms"].tolist() == pytest.approx([12.0, 10.0, 10.0])
    assert subject(rows) == "rk.SVDD"
    kept = promises(rows).set_index("method").loc["rk.SVDD"]
    assert (kept["wish"], kept["mean"], kept["missed"], kept["near"]) == (pytest.approx(10), pytest.approx(12), pytest.approx(2), 10)


def test_the_page_opens_with_the_answer(made_up):
    """Best average, best rank and what is significant (2 / 2^10, doubled by Holm) stand before all tables."""
    text = build_page(made_up).read_text(encoding="utf-8")
    header = text[: text.index("\n## ")]
    assert "rk.SVDD has the best average AUROC, 86.5 %, 2.0 points above DTE-NP." in header
    assert "It also has the best average rank, 1.00 among 3 methods." in header
    assert "significantly better: none; significantly worse: DTE-NP, LocalOutlierFactor; undecided: none." in header


def test_the_page_is_markdown_and_has_every_part(folder):
    """Each method and table is on it; the best of a table is bold; every line of a table has the columns of its heading."""
    text = build_page(folder).read_text(encoding="utf-8")
    rows = read_rows(folder)
    for name in [*rows["name"].unique(), *rows["table"].unique(), "average rank", "Holm", "ECOD", "within chance", "DTE-NP", "±"]:
        assert name in text
    assert f"**{table_means(rows).loc['plums'].max():.1f}**" in text
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert read_csv(folder / "summary.csv")["method"].tolist() == summary(rows)["method"].tolist()


def test_names_of_files_cannot_break_the_page(data, tmp_path):
    """A table's name is text: no bar ends its cell, and no tag begins in it."""
    (tmp_path / "in").mkdir()
    for name in ("a|b", "<script>x"):
        write_table(tmp_path / "in", name, seed=0)
    run(Settings(methods=("knn1", "dte-np"), seeds=1), tmp_path / "out", data_dir=tmp_path / "in")
    text = build_page(tmp_path / "out").read_text(encoding="utf-8")
    assert "a\\|b" in text
    assert "<script" not in text


def test_the_command_writes_all_its_files(data, tmp_path):
    """Tables and methods are chosen by name; the folder holds rows, facts, summaries and the page."""
    out = tmp_path / "out"
    args = [
        "benchmark",
        "--data-dir",
        str(data),
        "--tables",
        "plums,apples",
        "--methods",
        "knn1,dte-np,svdd",
        "--seeds",
        "1",
        "--jobs",
        "1",
    ]
    told = CliRunner().invoke(app, [*args, "--out", str(out)])
    assert told.exit_code == 0, told.output
    assert "rk.SVDD" in told.output
    assert {path.name for path in out.iterdir()} >= {"rows.csv", "run.json", "summary.csv", "benchmark.md"}
    assert set(read_csv(out / "rows.csv")["table"]) == {"apples", "plums"}


def test_a_folder_without_rows_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="refkernel benchmark"):
        read_rows(tmp_path)
