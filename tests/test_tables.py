"""The commands fit, score, inspect and plot on a user's own tables: what they write is right, and bad input gets a message that helps."""

import cProfile
import csv
import gzip
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("skops")
pytest.importorskip("pyarrow")

import pyarrow as pa
from sklearn.pipeline import make_pipeline
from typer.main import get_command
from typer.testing import CliRunner

import refkernel as rk
from exact import read_csv
from refkernel.cli import app
from refkernel.cli.tables import SEARCHED_NUS, SEARCHED_SCALES
from refkernel.datasets.tasks import embedded_data
from refkernel.experiments.article import protocol
from refkernel.export.files import load, save
from refkernel.tabular import fitting
from refkernel.tabular.readers import ReadOptions, open_table, read_whole
from refkernel.tabular.readers import csv as csv_table
from refkernel.tabular.readers import values as cells
from refkernel.tabular.readers.csv import find_delimiter
from refkernel.tabular.scoring import load_table_model, normality

SEEDS = ["area", "perimeter", "compactness", "kernel_length", "kernel_width", "asymmetry", "groove_length"]


def run(*arguments):
    """Run a command that must succeed; its output, notes included."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments, nothing_at=()):
    """Run a command that must refuse without a traceback; its message. No output file, whole or half, may be left."""
    before = {path.name for out in nothing_at for path in out.parent.iterdir()}
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: "), result.output
    assert {path.name for out in nothing_at for path in out.parent.iterdir()} == before
    return result.output


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def normal_rows(n=40, seed=0, names="abc"):
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(n, len(names))).round(4), columns=list(names))


@pytest.fixture
def table(tmp_path):
    """A CSV file of 40 rows and three columns of numbers, and where its model goes."""
    path = tmp_path / "data.csv"
    normal_rows().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The model of the table of ``normal_rows``, fitted once."""
    folder = tmp_path_factory.mktemp("fitted")
    normal_rows().to_csv(folder / "data.csv", index=False)
    run("fit", folder / "data.csv", "--out", folder / "model.rk")
    return folder / "model.rk"


@pytest.fixture
def model(fitted, tmp_path):
    """A copy of the fitted model beside the files of the test."""
    return Path(shutil.copy(fitted, tmp_path))


@pytest.fixture
def seeds(tmp_path):
    X, classes = embedded_data("Seeds")
    pd.DataFrame(X, columns=SEEDS).assign(variety=classes).to_csv(tmp_path / "seeds.csv", index=False)
    return tmp_path / "seeds.csv"


@pytest.fixture
def mixed(tmp_path):
    """Numbers, categories, missing values of both, and a column that names the rows."""
    rng = np.random.default_rng(0)
    frame = normal_rows(60, names="ab").assign(colour=rng.choice(["red", "green"], 60), id=[f"row {i}" for i in range(60)])
    frame.loc[[3, 4], "a"], frame.loc[5, "colour"] = np.nan, np.nan
    frame.to_csv(tmp_path / "mixed.csv", index=False)
    return tmp_path / "mixed.csv"


# What is written is right


def test_scores_of_the_file_are_those_of_the_model_in_memory(seeds, tmp_path):
    """Oracle: the loaded pipeline on the data frame that pandas reads."""
    out = tmp_path / "scores.csv"
    run("fit", seeds, "--out", tmp_path / "m.rk", "--target-column", "variety", "--target", "kama", "--outlier", "other")
    run("score", tmp_path / "m.rk", seeds, "--out", out)
    scored, model, X = read_csv(out), load(tmp_path / "m.rk"), read_csv(seeds)[SEEDS]
    np.testing.assert_array_equal(scored["score"], model.score_samples(X))
    np.testing.assert_allclose(scored["decision"], model.decision_function(X), rtol=0, atol=1e-15)  # one subtraction of numbers below 1
    np.testing.assert_array_equal(scored["label"], model.predict(X))
    assert 0.8 < (scored["label"][read_csv(seeds)["variety"] == "kama"] == 1).mean() <= 1.0


def test_all_input_cells_are_kept_as_they_are_written(model, tmp_path):
    """Digits, quotes, order of rows and columns, and columns that the model does not use."""
    text = 'note,c,a,b\n"x, ""y""",1.500,2e0,-0.0\nplain,+1, 2.25 ,3\n"two\nlines",1,2,3\n'
    run("score", model, write(tmp_path / "new.csv", text), "--out", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["note", "c", "a", "b", "score", "decision", "label", "p_value", "filled"]
    assert [row[:4] for row in rows[1:]] == [
        ['x, "y"', "1.500", "2e0", "-0.0"],
        ["plain", "+1", " 2.25 ", "3"],
        ["two\nlines", "1", "2", "3"],
    ]


def test_the_order_of_columns_does_not_matter_and_extra_ones_are_said(table, model, tmp_path):
    frame = read_csv(table)
    frame[["c", "a", "b"]].assign(extra="x").to_csv(tmp_path / "other.csv", index=False)
    run("score", model, table, "--out", tmp_path / "one.csv")
    output = run("score", model, tmp_path / "other.csv", "--out", tmp_path / "two.csv")
    assert output.count("kept: extra") == 1
    assert output.count("another order than in training: they are matched by name") == 1
    np.testing.assert_array_equal(read_csv(tmp_path / "one.csv")["score"], read_csv(tmp_path / "two.csv")["score"])


def test_parquet_and_csv_give_the_same_scores(table, model, tmp_path):
    frame = read_csv(table).assign(kind=pd.Categorical(["x", "y"] * 20), when=pd.Timestamp("2024-01-01"))
    frame.to_parquet(tmp_path / "data.parquet")
    run("score", model, tmp_path / "data.parquet", "--out", tmp_path / "out.parquet")
    run("score", model, tmp_path / "data.parquet", "--out", tmp_path / "from_parquet.csv")
    run("score", model, table, "--out", tmp_path / "to.parquet")
    run("score", model, table, "--out", tmp_path / "out.csv")
    expected = read_csv(tmp_path / "out.csv")
    for name in ("out.parquet", "to.parquet"):
        found = pd.read_parquet(tmp_path / name)
        np.testing.assert_array_equal(found["score"], expected["score"])
        assert found["a"].dtype == np.float64
    assert (pd.read_parquet(tmp_path / "out.parquet")["when"] == pd.Timestamp("2024-01-01")).all()
    np.testing.assert_array_equal(read_csv(tmp_path / "from_parquet.csv")["score"], expected["score"])
    run("fit", tmp_path / "data.parquet", "--out", tmp_path / "p.rk", "--drop", "when,kind")
    np.testing.assert_array_equal(load(tmp_path / "p.rk").decision_function(frame[list("abc")]), expected["decision"])


def test_a_rate_that_training_cannot_promise_is_noted_when_scoring(table, tmp_path, recwarn):
    run("fit", table, "--out", tmp_path / "m.rk", "--false-alarm-rate", 0.1)
    output = run("score", tmp_path / "m.rk", table, "--out", tmp_path / "s.csv", "--false-alarm-rate", 0.001)
    assert "Note:" in output
    assert "promise no less than" in output
    assert not recwarn.list  # a warning would name a line of the code


def test_blocks_do_not_change_the_result(table, model, tmp_path, monkeypatch):
    """A file that is read in many blocks gives the bytes of one that is read at once."""
    frame = normal_rows(3_000, seed=1)
    frame.to_csv(tmp_path / "many.csv", index=False)
    run("score", model, tmp_path / "many.csv", "--out", tmp_path / "once.csv")
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 2_000)
    assert len(list(open_table(tmp_path / "many.csv", ReadOptions()).blocks())) > 10
    run("score", model, tmp_path / "many.csv", "--out", tmp_path / "blocks.csv")
    once, blocks = read_csv(tmp_path / "once.csv"), read_csv(tmp_path / "blocks.csv")
    pd.testing.assert_frame_equal(once, blocks, rtol=0, atol=1e-12)  # BLAS rounds products of other shapes in another order


def test_a_csv_file_is_not_read_ahead_of_what_is_scored(tmp_path):
    """Whatever the size of a file, Arrow holds two blocks of it."""
    line = b"123.456,234.567,345.678\n"
    (tmp_path / "long.csv").write_bytes(b"a,b,c\n" + line * 800_000)  # 19 MB
    before, held, rows = pa.total_allocated_bytes(), [], 0
    for block in open_table(tmp_path / "long.csv", ReadOptions()).blocks():
        held.append(pa.total_allocated_bytes() - before)
        rows += len(block)
    assert rows == 800_000
    assert max(held) < 10e6  # two blocks of 2 MB, texts and their places


@pytest.mark.parametrize("columns", [3, 5_000])
def test_rows_of_any_length_are_read(columns, tmp_path, monkeypatch):
    """Rows of 20 bytes, and of 30 KB: longer than a block, and than what the delimiter is judged by."""
    monkeypatch.setattr(csv_table, "SAMPLE_BYTES", 10_000)
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 20_000)
    rows = np.random.default_rng(0).integers(0, 10**5, size=(7, columns))
    pd.DataFrame(rows, columns=[f"c{number}" for number in range(columns)]).to_csv(tmp_path / "wide.csv", index=False)
    found = pd.concat(open_table(tmp_path / "wide.csv", ReadOptions()).blocks(), ignore_index=True)
    np.testing.assert_array_equal(found.to_numpy(dtype=np.int64), rows)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory that a process may take")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_square_of_the_number_of_columns(ending, tmp_path):
    """Two rows of 20,000 columns are read in 2 GB of memory; the way to pandas of pyarrow 17 (see ``make oldest``) to 21 takes more."""
    wide = pd.DataFrame(np.arange(40_000).reshape(2, 20_000), columns=[f"c{number}" for number in range(20_000)])
    path = tmp_path / f"wide.{ending}"
    wide.to_csv(path, index=False) if ending == "csv" else wide.to_parquet(path)
    code = """if True:
        import sys, resource
        from pathlib import Path
        from refkernel.tabular.readers import ReadOptions
        from refkernel.tabular.readers import open_table
        resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
        print(sum(map(len, open_table(Path(sys.argv[1]), ReadOptions()).blocks())))"""
    found = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert found.stdout == "2\n", found.stderr


@pytest.mark.parametrize("seed", range(8))
def test_cells_are_those_of_pythons_csv_module(seed, tmp_path, monkeypatch):
    """Quotes, delimiters, line ends of both kinds and letters of several bytes, in blocks that end anywhere."""
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 50)
    rng = np.random.default_rng(seed)
    alphabet = ["a", "é", "€", '"', ",", ";", "\n", "\r\n", "\r", " ", "5", "."]
    rows = [["".join(rng.choice(alphabet, rng.integers(6))) or "x" for _ in range(3)] for _ in range(60)]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";", quoting=seed % 2, lineterminator="\n" if seed % 4 == 1 else "\r\n")
    writer.writerows([["a", "b", 'c "d"'], *rows])
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        (tmp_path / "d.csv").write_bytes(text.getvalue().encode(encoding))
        found = read_whole(open_table(tmp_path / "d.csv", ReadOptions(delimiter=";", encoding=encoding)))
        assert list(found.columns) == ["a", "b", 'c "d"']
        assert found.to_numpy().tolist() == rows


def test_normality_is_the_share_of_training_targets_with_a_lower_decision(table, tmp_path):
    """Monotone, in [0, 1], 0 and 1 beyond the training targets, and within 1/n + 1 % of the counted share on them."""
    model = tmp_path / "svdd.rk"
    run("fit", table, "--out", model, "--model", "svdd")
    run("score", model, table, "--out", tmp_path / "out.csv", "--proba-like")
    out = read_csv(tmp_path / "out.csv").sort_values("decision")
    assert (np.diff(out["normality"]) >= 0).all()
    decision = out["decision"].to_numpy()
    below, up_to = (np.searchsorted(decision, decision + tie) / len(out) for tie in (-1e-9, 1e-9))  # those on the boundary are ties
    slack = 1 / len(out) + 0.01  # percentiles are 1 % apart
    assert (out["normality"] >= below - slack).all()
    assert (out["normality"] <= up_to + slack).all()
    percentiles = load(model).percentiles_
    np.testing.assert_array_equal(normality(np.array([-1e9, 1e9]), percentiles), [0.0, 1.0])


def test_known_outliers_teach_the_encoder_nothing(tmp_path):
    """Medians, levels and ranges are those of the targets, whatever the outliers are."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(np.vstack([rng.normal(size=(60, 2)), rng.normal(8.0, size=(200, 2))]), columns=["a", "b"])
    frame = frame.assign(colour="red", kind=["t"] * 60 + ["o"] * 200)
    frame.loc[60:, "colour"] = "green"
    frame.loc[:20, "a"], frame.loc[5, "colour"] = np.nan, np.nan
    frame.to_csv(tmp_path / "data.csv", index=False)
    options = ["--target-column", "kind", "--target", "t"]
    run("fit", tmp_path / "data.csv", "--out", tmp_path / "with.rk", *options, "--outlier", "other")
    found = {column.name: column for column in load_table_model(tmp_path / "with.rk").columns}
    targets = frame[:60]
    assert (found["b"].minimum, found["b"].maximum) == (targets["b"].min(), targets["b"].max())
    assert found["a"].quantiles[2] == pytest.approx(targets["a"].median(), rel=1e-12)
    assert found["a"].missing == 21
    assert found["colour"].levels == ("red",)


# Which rows train


def test_targets_known_outliers_and_rows_left_out_are_counted(seeds, tmp_path):
    out = tmp_path / "m.rk"
    by = ("--target-column", "variety", "--target", "kama")
    assert "140 rows with another variety are left out" in run("fit", seeds, "--out", out, *by)
    assert "70 targets, 140 known outliers" in run("fit", seeds, "--out", out, *by, "--outlier", "other")
    assert "70 targets, 70 known outliers, 70 left out" in run("fit", seeds, "--out", out, *by, "--outlier", "rosa")


def test_outliers_do_not_move_the_description_of_the_targets(seeds, tmp_path):
    """With references that are drawn, a model with known outliers equals the one without them."""
    by = ("--target-column", "variety", "--target", "kama")
    by = (*by, "--model", "svdd")
    run("fit", seeds, "--out", tmp_path / "a.rk", *by)
    run("fit", seeds, "--out", tmp_path / "b.rk", *by, "--outlier", "other")
    X = read_csv(seeds)[SEEDS]
    a, b = (load(tmp_path / name).decision_function(X) for name in ("a.rk", "b.rk"))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)  # rows that stand elsewhere are summed in another order


def test_the_search_tunes_scale_and_nu_with_known_outliers_or_without(seeds, tmp_path):
    out = tmp_path / "m.rk"
    by = ("--target-column", "variety", "--target", "kama")
    for options in ([], ["--outlier", "other"], ["--outlier", "other", "--references", "none", "--model", "ocsvm"]):
        output = run("fit", seeds, "--out", out, *by, "--search", *options)
        assert f"best of {len(SEARCHED_NUS) * len(SEARCHED_SCALES)}" in output
        assert ("on made-up outliers" in output) == (not options)
        fitted = load(out)
        assert fitted.detector_.best_params_["nu"] in SEARCHED_NUS
        assert fitted.detector_.best_params_["kernel__scale"] in SEARCHED_SCALES
        assert fitted.card_["accepted_targets"] > 0.7
    assert fitted.card_["rejected_outliers"] > 0.7


def test_the_search_without_outliers_takes_categories_and_missing_values(mixed, tmp_path):
    output = run("fit", mixed, "--out", tmp_path / "m.rk", "--drop", "id", "--search")
    assert "on made-up outliers" in output
    run("score", tmp_path / "m.rk", mixed, "--out", tmp_path / "out.csv")


def test_the_same_seed_gives_the_same_model_and_another_seed_another(table, tmp_path):
    decisions = []
    for seed in (0, 0, 1):
        run("fit", table, "--out", tmp_path / "m.rk", "--seed", seed, "--model", "svdd", "--references", "case2", "--scale", 10)
        decisions.append(load(tmp_path / "m.rk").decision_function(read_csv(table)))
    np.testing.assert_array_equal(decisions[0], decisions[1])
    assert (decisions[0] != decisions[2]).any()


def test_options_of_the_command_are_arguments_of_the_classes(table, tmp_path):
    """Oracle: the same detectors in Python, on the frame that pandas reads."""
    frame = read_csv(table)
    for options, detector in (
        ([], None),
        (["--model", "svdd"], rk.SVDD()),
        (["--model", "ocsvm", "--nu", 0.2], rk.OneClassSVM(nu=0.2)),
        (["--scale", 2.0], rk.SVDD(rk.RBF(2.0))),
        (["--references", "case2", "--scale", 10], rk.SVDD(rk.ReferenceKernel(rk.RBF(10.0), "case2"), random_state=0)),
    ):
        run("fit", table, "--out", tmp_path / "m.rk", *options)
        found, expected = load(tmp_path / "m.rk"), rk.TableDetector(detector).fit(frame)
        np.testing.assert_array_equal(found.score_samples(frame), expected.score_samples(frame))
        assert found.offset_ == expected.offset_


def test_a_model_that_accepts_far_samples_is_said_by_every_command(seeds, tmp_path):
    """Scale 1 on drawn references does, the defaults do not; the oracle is a row a million times larger than any other."""
    by = ("--target-column", "variety", "--target", "kama")
    far = read_csv(seeds)[SEEDS].head(1) * 1e6
    for options, accepts in ((["--references", "case2"], True), (["--model", "svdd"], False), (["--scale", 1], False)):
        outputs = [run("fit", seeds, "--out", tmp_path / "m.rk", *by, *options), run("inspect", tmp_path / "m.rk")]
        outputs.append(run("score", tmp_path / "m.rk", seeds, "--out", tmp_path / "out.csv"))
        assert [("accepts rows that are far" in output) for output in outputs] == [accepts] * 3
        assert (load(tmp_path / "m.rk").predict(far)[0] == 1) == accepts


# Looking at a model


def test_inspect_says_what_the_model_is(mixed, tmp_path):
    run("fit", mixed, "--out", tmp_path / "m.rk", "--drop", "id", "--nu", 0.2, "--references", "case2", "--scale", 10)
    output, model = run("inspect", tmp_path / "m.rk"), load(tmp_path / "m.rk")
    for text in (
        "SVDD(kernel=ReferenceKernel(",
        "nu=0.2",
        "mixed.csv: 60 targets",
        "scikit-learn",
        f"{model.offset_:.6g}",
        "green, red",
    ):
        assert text in output
    assert re.search(rf"support vectors +{model.detector_.support_.size}\n", output)
    assert re.search(rf"rank +{model.detector_.kernel_.rank_} of 60", output)


def test_a_model_saved_in_python_can_be_scored_and_inspected(table, tmp_path):
    """Any classifier of this package that was fitted on a data frame; not one that knows no names."""
    frame = read_csv(table)
    save(rk.SVDD().fit(frame), tmp_path / "own.rk")
    run("score", tmp_path / "own.rk", table, "--out", tmp_path / "out.csv")
    np.testing.assert_array_equal(read_csv(tmp_path / "out.csv")["score"], load(tmp_path / "own.rk").score_samples(frame))
    assert "SVDD" in run("inspect", tmp_path / "own.rk")
    assert "--proba-like needs" in refused("score", tmp_path / "own.rk", table, "--out", tmp_path / "n.csv", "--proba-like")
    save(rk.SVDD().fit(frame.to_numpy()), tmp_path / "nameless.rk")
    assert "which columns" in refused("score", tmp_path / "nameless.rk", table, "--out", tmp_path / "n.csv")


def test_plot_writes_pictures_that_stand_alone(mixed, tmp_path):
    pytest.importorskip("matplotlib")
    run("fit", mixed, "--out", tmp_path / "m.rk", "--drop", "id")
    run("plot", tmp_path / "m.rk", mixed, "--out", tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    run("plot", tmp_path / "m.rk", mixed, "--out", tmp_path / "p.html", "--features", "b,a")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert not re.findall(r'(?:src|href)="(?!#)', page.replace("xlink:href", "href"))
    out = tmp_path / "q.svg"
    assert "two different numeric columns of the model: a, b" in refused(
        "plot", tmp_path / "m.rk", mixed, "--out", out, "--features", "a,colour", nothing_at=[out]
    )
    assert ".png" in refused("plot", tmp_path / "m.rk", mixed, "--out", tmp_path / "p.pdf")


# Bad input gets a message that says what to do

BAD_TABLES = {
    "empty file": ("", "is empty"),
    "white space": ("\n \n", "white space"),
    "header only": ("a,b\n", "no rows"),
    "header and no line end": ("a,b", "no rows"),
    "one row": ("a,b\n1,2\n", "at least 2"),
    "cut in a row": ("a,b\n1,2\n3,4\n5", "line 4: 1 cells, but the header has 2. The file was cut off there"),
    "cut in a quote": ('a,b\n1,2\n3,"x', "ends inside a quoted cell"),
    "a cell too many": ("a,b\n1,2\n3,4,5\n", "line 3: 3 cells, but the header has 2"),
    "decimal commas": ("a;b;c\n1,5;2.5;1.5\n2,5;3;2\n,5;4;1\n", "Column a has decimal commas, in 3 values such as 1,5. Pass --decimal ,"),
    "mixed marks": ("a;b\n1,5;2\n2.5;3\n3;4\n", "Column a mixes decimal commas and points"),
    "some text": ("a,b\n1,2\n2,oops\n3,4\n", "the first is 'oops' in row 2 after the header"),
    "all missing": ("a,b\n,\nNA,?\n", "All values of all 2 rows are missing"),
    "infinities": ("a,b\n1,inf\n2,3\n4,-Infinity\n", "Infinite values in b (2)"),
    "old Mac": ("a,b\r1,2\r3,4\r", "as old Macs did"),
    "spaces": ("a b\n1 2.5\n3 4\n", "pass --delimiter ' '"),
    "all constant": ("a,b\n1,2\n1,2\n1,2\n", "constant"),
}


def test_a_compressed_table_is_read_and_written(table, model, tmp_path):
    """The scores are those of the plain file; a broken archive is refused."""
    packed = gzip.compress(table.read_bytes())
    (tmp_path / "data.csv.gz").write_bytes(packed)
    run("score", model, table, "--out", tmp_path / "plain.csv")
    run("score", model, tmp_path / "data.csv.gz", "--out", tmp_path / "out.csv.gz")
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()) == (tmp_path / "plain.csv").read_bytes()
    (tmp_path / "broken.csv.gz").write_bytes(packed[:-20])
    assert "broken" in refused("score", model, tmp_path / "broken.csv.gz", "--out", tmp_path / "no.csv")


def test_the_version_is_said():
    assert run("--version").strip() == f"refkernel {rk.__version__}"


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_refused_with_a_way_out(name, tmp_path):
    text, message = BAD_TABLES[name]
    out = tmp_path / "m.rk"
    assert message in refused("fit", write(tmp_path / "bad.csv", text), "--out", out, "--model", "svdd", nothing_at=[out])


def test_a_file_in_another_encoding_is_read_and_the_note_names_the_option(tmp_path):
    text = "größe,b\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(30))
    (tmp_path / "late.csv").write_bytes(b"a,b\n" + b"1,2\n" * 60_000 + "é,2\n".encode("latin-1"))
    for encoding in ("cp1252", "utf-16"):
        (tmp_path / "data.csv").write_bytes(text.encode(encoding))
        for options in ([], ["--encoding", encoding]):
            output = run("fit", tmp_path / "data.csv", "--out", tmp_path / "m.rk", *options)
            assert ("is read as cp1252 (Western European). --encoding" in output) == (encoding == "cp1252" and not options)
            assert list(load(tmp_path / "m.rk").feature_names_in_) == ["größe", "b"]
    assert "byte 0xe9" in refused("fit", tmp_path / "late.csv", "--out", tmp_path / "m.rk")
    assert "not known" in refused("fit", tmp_path / "data.csv", "--out", tmp_path / "m.rk", "--encoding", "klingon")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter, tmp_path):
    """Also where cells hold other delimiters inside quotes or decimal commas."""
    text = delimiter.join(["a", "b", "c"]) + "\n" + delimiter.join(['"1,5;|"', "2", "3"]) + "\n"
    assert find_delimiter(text) == delimiter
    normal_rows().to_csv(tmp_path / "d.csv", sep=delimiter, index=False)
    expected = normal_rows()
    found = read_whole(open_table(tmp_path / "d.csv", ReadOptions()))
    np.testing.assert_array_equal(np.column_stack([cells.numbers(found[name]).values for name in "abc"]), expected)


def test_a_wrong_delimiter_is_said(table, tmp_path):
    message = refused("fit", table, "--out", tmp_path / "m.rk", "--delimiter", ";")
    assert "a comma gives 3" in message
    assert "one character" in refused("fit", table, "--out", tmp_path / "m.rk", "--delimiter", ";;")


@pytest.mark.parametrize("options", [[], ["--decimal", ","]])
def test_decimal_commas_are_read_and_written(options, table, model, tmp_path):
    """The scores are those of the same numbers with points, and added columns have commas too."""
    frame = read_csv(table)
    frame.to_csv(tmp_path / "commas.csv", sep=";", decimal=",", index=False)
    run("score", model, table, "--out", tmp_path / "points.csv")
    run("score", model, tmp_path / "commas.csv", "--out", tmp_path / "out.csv", *options)
    pd.testing.assert_frame_equal(
        read_csv(tmp_path / "out.csv", sep=";", decimal=","), read_csv(tmp_path / "points.csv"), rtol=1e-12, check_dtype=False
    )
    assert "Leave out --decimal" in refused("score", model, table, "--out", tmp_path / "o.csv", "--decimal", ",")


def test_columns_that_the_model_needs_and_the_table_lacks_are_listed(model, tmp_path):
    out = tmp_path / "out.csv"
    message = refused("score", model, write(tmp_path / "new.csv", "b,d\n1,2\n"), "--out", out, nothing_at=[out])
    assert "lacks 2 of the 3 columns of model.rk: a, c. It has b, d." in message


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("oops", "'oops' in row 2,001 after the header"),
        ("inf", "Infinite values in c"),
        ("1,5", "--decimal"),
    ],
)
def test_a_bad_cell_late_in_a_file_leaves_nothing_half_written(cell, message, model, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 2_000)
    text = "a,b,c\n" + "1,2.5,3\n" * 2_000 + f'1,2.5,"{cell}"\n1,2.5,3\n'
    out = tmp_path / "out.csv"
    assert message in refused("score", model, write(tmp_path / "new.csv", text), "--out", out, nothing_at=[out])


def test_added_columns_never_replace_a_column_of_the_table(table, model, tmp_path):
    run("score", model, table, "--out", tmp_path / "once.csv")
    assert "--prefix" in refused("score", model, tmp_path / "once.csv", "--out", tmp_path / "twice.csv")
    run("score", model, tmp_path / "once.csv", "--out", tmp_path / "twice.csv", "--prefix", "new_")
    twice = read_csv(tmp_path / "twice.csv")
    np.testing.assert_array_equal(twice["score"], twice["new_score"])


def test_output_paths_that_cannot_be_written_are_refused_before_any_work(table, model, tmp_path):
    absent = tmp_path / "no" / "out.csv"
    for command in (["fit", table], ["score", model, table]):
        assert "does not exist" in refused(*command, "--out", absent)
        assert "is a folder" in refused(*command, "--out", tmp_path)
    before = table.read_bytes(), model.read_bytes()
    picture = Path(shutil.copy(table, tmp_path / "table.png"))
    for command in (["fit", table], ["score", model, table]):
        assert "is a file that is read" in refused(*command, "--out", table)
    assert "is a file that is read" in refused("score", model, table, "--out", model)
    assert "is a file that is read" in refused("plot", model, picture, "--out", picture)
    assert before == (table.read_bytes(), model.read_bytes())
    assert not absent.parent.exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_permission_is_refused(table, model, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "no permission" in refused("score", model, table, "--out", closed / "out.csv")


def test_a_run_that_is_ended_leaves_nothing_half_written(table, model, tmp_path):
    """SIGTERM, as a batch system sends it, when some rows are written."""
    code = """if True:
        import os, signal
        from pathlib import Path
        from refkernel.cli import app
        from refkernel.tabular.writing import CsvWriter
        write = CsvWriter.write
        def ended(self, block):
            write(self, block)
            assert list(Path().glob(".*.part"))
            os.kill(os.getpid(), signal.SIGTERM)
        CsvWriter.write = ended
        app()"""
    command = [sys.executable, "-c", code, "score", str(model), str(table), "--out", "out.csv"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 143, process.stderr
    assert not list(tmp_path.glob("*out.csv*"))
    assert not list(tmp_path.glob(".*.part"))


def test_a_broken_model_file_is_refused(table, model, tmp_path):
    broken = tmp_path / "broken.rk"
    broken.write_bytes(model.read_bytes()[:-100])
    out = tmp_path / "out.csv"
    assert "damaged" in refused("score", broken, table, "--out", out, nothing_at=[out])
    assert "not a zip archive" in refused("inspect", table)
    assert "does not exist" in refused("inspect", tmp_path / "absent.rk")


def test_columns_of_no_use_are_told_of(tmp_path):
    """Constant ones, texts that name the rows, and numbers that count them; none of these is an error."""
    frame = normal_rows().assign(constant=1, name=[f"n{i}" for i in range(40)], number=np.arange(40))
    frame.to_csv(tmp_path / "d.csv", index=False)
    output = run("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk")
    assert "Constant in the targets: constant; rows that differ there will be flagged." in output
    assert "--drop name,number" in output
    for drop in (("--drop", "constant,name,number"), ("--drop", "constant", "--drop", "name,number")):
        output = run("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk", *drop)
        assert "Note" not in output


def test_too_many_categories_are_refused(tmp_path):
    pd.DataFrame({"a": np.arange(1_200) % 7, "id": [f"n{i}" for i in range(1_200)]}).to_csv(tmp_path / "d.csv", index=False)
    assert "--drop id" in refused("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk")


def test_parquet_columns_of_lists_are_refused(tmp_path):
    normal_rows().assign(parts=[[1, 2]] * 40).to_parquet(tmp_path / "d.parquet")
    assert "--drop parts" in refused("fit", tmp_path / "d.parquet", "--out", tmp_path / "m.rk")
    write(tmp_path / "no.parquet", "a,b\n1,2\n")
    assert "not a Parquet file" in refused("fit", tmp_path / "no.parquet", "--out", tmp_path / "m.rk")


def test_wrong_options_name_the_values_that_there_are(seeds, tmp_path):
    base = ("fit", seeds, "--out", tmp_path / "m.rk")
    assert "kama (70)" in refused(*base, "--target-column", "variety")
    assert "kama (70)" in refused(*base, "--target-column", "variety", "--target", "kamma")
    assert "both 'kama'" in refused(*base, "--target-column", "variety", "--target", "kama", "--outlier", "kama")
    assert "--target-column" in refused(*base, "--target", "kama")
    assert "has no column sort" in refused(*base, "--target-column", "sort", "--target", "kama")
    assert "has no column x" in refused(*base, "--drop", "x")
    assert "'svdd', 'ocsvm'" in refused(*base, "--model", "svm")
    assert "'case2'" in refused(*base, "--references", "case9")
    assert "--outlier" in refused(*base, "--drop", "variety", "--references", "case5")
    assert "nu=2.0" in refused(*base, "--nu", 2)


# Large files


def test_the_benchmark_scores_every_row_in_a_process_of_its_own(tmp_path, capsys):
    """On a small file: the numbers of rows and the memory come from the process that did the work."""
    script = Path(__file__).parents[1] / "benchmarks" / "bench_score.py"
    spec = importlib.util.spec_from_file_location("bench_score", script)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    bench.bench_file(tmp_path, 3_000)
    printed = capsys.readouterr().out
    assert "3,000 rows × 20 columns" in printed
    assert 50 < int(re.search(r"peak memory (\d+) MB", printed)[1]) < bench.MOST_MEGABYTES
    assert len(read_csv(tmp_path / "scores.csv")) == 3_000


def test_what_a_model_says_of_itself_is_plain_json(model):
    fitted = load(model)
    assert json.loads(json.dumps(fitted.card_, allow_nan=False)) == fitted.card_
    profiles = [column.as_dict() for column in fitted.columns_]
    assert json.loads(json.dumps(profiles, allow_nan=False)) == profiles
    assert [profile["name"] for profile in profiles] == list("abc")


def test_missing_cells_are_filled_and_told_of(tmp_path):
    write(tmp_path / "d.csv", "a,b\n1,2\n,4\n3,NA\n5,?\n6,1\n")
    assert "Missing values in b (2), a (1) of 5 rows" in run("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk")


# Models of every kind, and forged ones: D13 to D15 of the review

KINDS = {
    "SVDD": lambda: rk.SVDD(),
    "OneClassSVM": lambda: rk.OneClassSVM(),
    "ESVDD": lambda: rk.ESVDD(),
    "ReferenceResidual": lambda: rk.ReferenceResidual(random_state=0),
    "ReferenceMap": lambda: make_pipeline(rk.TargetScaler(), rk.ReferenceMap(random_state=0), rk.SVDD("linear")),
    "NPT": lambda: make_pipeline(rk.NPT(), rk.OneClassSVM("linear")),
    "AutoDetector": lambda: rk.AutoDetector(),
    "ConformalDetector": lambda: rk.ConformalDetector(rk.SVDD(), 0.1),
    "OneClassGridSearch": lambda: rk.OneClassGridSearch(rk.SVDD(), {"nu": [0.1, 0.3]}, cv=2, random_state=0),
    "search of a pipeline": lambda: rk.OneClassGridSearch(
        make_pipeline(rk.TargetScaler(), rk.SVDD()), {"svdd__nu": [0.1, 0.3]}, cv=2, random_state=0
    ),
    "pipeline of a search": lambda: make_pipeline(
        rk.TargetScaler(), rk.OneClassGridSearch(rk.SVDD(), {"nu": [0.1, 0.3]}, cv=2, random_state=0)
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_undamaged_models_of_every_kind_are_inspected_and_scored(kind, table, tmp_path):
    """D14: written by save, fitted on a data frame; scores are those of the model in memory."""
    frame, y = read_csv(table), np.r_[np.ones(30), -np.ones(10)]
    model = KINDS[kind]().fit(frame, y)
    save(model, tmp_path / "own.rk")
    assert "versions" in run("inspect", tmp_path / "own.rk")
    run("score", tmp_path / "own.rk", table, "--out", tmp_path / "out.csv")
    np.testing.assert_array_equal(read_csv(tmp_path / "out.csv")["score"], model.score_samples(frame))
    np.testing.assert_array_equal(read_csv(tmp_path / "out.csv")["label"], model.predict(frame))


def test_a_model_that_gives_no_scores_is_inspected_and_says_so_when_it_should_score(table, tmp_path):
    save(rk.ReferenceMap(random_state=0).fit(read_csv(table)), tmp_path / "map.rk")
    assert "ReferenceMap" in run("inspect", tmp_path / "map.rk")
    assert "gives no scores" in refused("score", tmp_path / "map.rk", table, "--out", tmp_path / "out.csv")


@pytest.mark.parametrize("key", ["rows", "targets", "dropped", "choice", "threshold", "false_alarm_interval", "versions", "accepts_far"])
def test_every_forged_value_of_a_card_is_refused_or_harmless(key, model, tmp_path):
    """Each value of what fit wrote, replaced by others: inspect ends in a message, never in a traceback."""
    forged = tmp_path / "forged.rk"
    for value in (None, [], "x", {"a": 1}, 1e308, -1):
        fitted = load(model)
        fitted.card_[key] = value
        fitted.save(forged)
        result = CliRunner().invoke(app, ["inspect", str(forged)])
        assert result.exit_code in (0, 1), (key, value, result.exception)
        assert result.exit_code == 0 or "forged" in result.output
    del fitted.card_[key]
    fitted.save(forged)
    assert "forged" in refused("inspect", forged)


def test_names_that_the_model_does_not_take_are_refused(model, tmp_path):
    """An encoder of other columns than those of the model would feed it other numbers of them."""
    fitted = load(model)
    fitted.encoder_.feature_names_in_ = np.array(["a", "b", "x"], dtype=object)
    fitted.save(tmp_path / "forged.rk")
    assert "other columns" in refused("inspect", tmp_path / "forged.rk")


def test_terminal_escapes_are_shown_and_not_run(table, model, tmp_path):
    """D15: in what a model file says, in column names, in cells, in errors."""
    evil = "\x1b[2J\x1b]0;owned\x07"
    fitted = load(model)
    fitted.card_["created"] = f"today{evil}"
    fitted.save(model)
    for text in (
        run("inspect", model),
        run("score", model, write(tmp_path / "new.csv", f"a,b,c,x{evil}\n1,2,3,4\n"), "--out", tmp_path / "out.csv"),
        refused("score", model, write(tmp_path / "bad.csv", f"a,b,c{evil}\n1,2,3\n"), "--out", tmp_path / "n.csv"),
        refused("fit", write(tmp_path / "cell.csv", f"a,b\n1,2\n2,{evil}\n3,4\n"), "--out", tmp_path / "m.rk"),
    ):
        assert "\x1b" not in text
        assert "\x07" not in text
        assert r"\x1b[2J" in text


# Tables that lost rows, or would harm: D16 of the review


def lines(count, start=0):
    return "".join(f"{i % 7}.5,{i % 5}\n" for i in range(start, start + count))


BROKEN_LINES = {
    "a lone carriage return": ("a,b\n1,2\n3,4\r5,6\n7,8\n", "line 3: a carriage return without a line feed"),
    "a lone carriage return late": ("a,b\n" + lines(20_000) + "3,4\r5,6\n", "carriage return"),
    "a carriage return in the header": ("a,b\rc,d\n1,2\n3,4\n", "its first line ends in a carriage return"),
    "NUL as a name": ("a,\0\n1,2\n3,4\n", "NUL characters"),
    "NUL in a cell": ("a,b\n" + lines(40_000) + "1,\0\n", "NUL characters"),
    "an unclosed quote": ("a,b\n" + lines(40) + '"1,2\n' + lines(20), "line 42: ends inside a quoted cell"),
    "an unclosed quote counts what it swallows": ("a,b\n" + lines(40) + '1,"2\n' + lines(20), "would swallow 20 more lines"),
    "text behind a quote": ('a,b\n1,"2\n3,4\n5,"6\n7,8\n', "line 2: ',' expected after '\"'"),
    "numbers for names": ("5.1,3.5\n4.9,3.0\n4.7,3.2\n", "--no-header if it is a row"),
    "whole numbers for names": ("1,2,3\n4,5,6\n7,8,9\n", "--header if these are the names"),
    "decimals and a text": ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "--no-header"),
    "Excel": ("PK\x03\x04 anything", "end its name in .xlsx"),
}


@pytest.mark.parametrize("name", BROKEN_LINES)
def test_no_line_is_lost_in_silence(name, tmp_path):
    """Each is refused, with the line where there is one and the way out."""
    text, message = BROKEN_LINES[name]
    path, out = tmp_path / "bad.csv", tmp_path / "m.rk"
    path.write_bytes(text.encode())
    assert message in refused("fit", path, "--out", out, nothing_at=[out])


def test_rows_inside_a_quoted_cell_are_said(tmp_path):
    """Two stray quotes make one cell of several lines, which is a valid file: nobody can know, so a note asks."""
    text = "a,note\n" + "".join(f"{i % 7},x\n" for i in range(30)) + '1,"two\n3,y\n4,z"\n' + "".join(f"{i % 5},x\n" for i in range(9))
    output = run("fit", write(tmp_path / "d.csv", text), "--out", tmp_path / "m.rk")
    assert re.search(r"2 lines inside quoted cells look like rows", output)
    assert "40 targets" in output


def test_a_file_without_a_header_loses_no_row(tmp_path):
    """--no-header reads the first line as a row, and names the columns by their place; --header reads it as names."""
    write(tmp_path / "d.csv", lines(40))
    assert "40 targets" in run("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk", "--no-header")
    assert list(load(tmp_path / "m.rk").feature_names_in_) == ["column 1", "column 2"]
    run("score", tmp_path / "m.rk", tmp_path / "d.csv", "--out", tmp_path / "out.csv", "--no-header")
    assert len(read_csv(tmp_path / "out.csv")) == 40
    assert "39 targets" in run("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk", "--header")


FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\tx"]


def test_formulas_are_defused_in_csv_output_and_numbers_are_not(model, tmp_path):
    """An apostrophe stands before each, also in a name; --keep-formulas turns that off."""
    harmless = ["-1.5", "+2", "-1e-3", "plain", "a=b"]
    frame = pd.DataFrame({"a": -1.5, "b": 2.0, "c": 3.0, "=note": FORMULAS + harmless})
    frame.to_csv(tmp_path / "new.csv", index=False)
    output = run("score", model, tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert "5 texts begin like a formula" in output
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0][3] == "'=note"
    assert [row[3] for row in rows[1:]] == [f"'{text}" for text in FORMULAS] + harmless
    assert {row[0] for row in rows[1:]} == {"-1.5"}
    run("score", model, tmp_path / "new.csv", "--out", tmp_path / "kept.csv", "--keep-formulas")
    with (tmp_path / "kept.csv").open(newline="") as file:
        assert [row[3] for row in csv.reader(file)] == ["=note", *FORMULAS, *harmless]


def test_the_cost_of_a_wide_table_is_linear_in_its_columns(tmp_path):
    """No step may visit every column for every other: 8 times the columns would then take up to 64 times as many calls, not 8 times."""

    def calls(columns):
        rng = np.random.default_rng(0)
        pd.DataFrame(rng.normal(size=(12, columns)).round(3)).add_prefix("c").to_csv(tmp_path / "d.csv", index=False)
        with cProfile.Profile() as profile:
            run("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk")
            run("score", tmp_path / "m.rk", tmp_path / "d.csv", "--out", tmp_path / "out.csv")
        return sum(entry.callcount for entry in profile.getstats())

    calls(2)  # compiles
    assert calls(400) < 12 * calls(50)


# The command itself


def test_advice_works_when_pasted(tmp_path):
    """A column whose name needs quotes in a shell, and one with a comma."""
    names = [f"n{i}" for i in range(40)]
    normal_rows().assign(**{"Individual ID": names, "last, first": names}).to_csv(tmp_path / "d.csv", index=False)
    output = run("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk")
    advice = shlex.split(re.search(r"--drop .*'", output)[0])
    run("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk", *advice)
    assert list(load(tmp_path / "m.rk").feature_names_in_) == list("abc")


def test_all_columns_that_cannot_be_used_are_reported_at_once(tmp_path):
    many = [f"n{i}" for i in range(1_200)]
    pd.DataFrame({"a": np.arange(1_200) % 7, "id": many, "code": many, "b": [*range(1_199), "oops"]}).to_csv(
        tmp_path / "d.csv", index=False
    )
    message = refused("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk")
    assert "3 columns cannot be used" in message
    assert all(f"Column {name}" in message for name in ("id", "code", "b"))


def test_one_is_singular_and_two_are_plural(tmp_path):
    frame = pd.DataFrame({"a": np.arange(30) % 7, "k": ["x", "y"] * 15})
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert "1 number, 1 category" in run("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk")
    frame.assign(b=frame["a"] ** 2, k2=frame["k"]).to_csv(tmp_path / "d.csv", index=False)
    assert "2 numbers, 2 categories" in run("fit", tmp_path / "d.csv", "--out", tmp_path / "m.rk")


def test_a_model_file_is_read_once_per_command(model, table, tmp_path, monkeypatch):
    """One reading, one hash, for inspect and for score."""
    from refkernel.export import sealed

    reads, original = [], sealed._read
    monkeypatch.setattr(sealed, "_read", lambda *args: reads.append(args) or original(*args))
    run("inspect", model)
    assert len(reads) == 1
    run("score", model, table, "--out", tmp_path / "out.csv")
    assert len(reads) == 2


def test_the_base_install_names_the_extra(tmp_path):
    """Without typer the command ends in one line, not in a traceback."""
    code = "import sys; sys.modules['typer'] = None; from refkernel.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True)
    assert result.returncode == 1
    assert 'pip install "refkernel[cli]"' in result.stderr
    assert "Traceback" not in result.stderr


def test_help_states_the_defaults_there_are():
    """The texts are written out, so that --help imports nothing heavy; they must follow the constants."""
    text = run("fit", "--help")
    for value in ("auto", "none", fitting.OTHER, "0.1"):
        assert value in text
    defaults = {parameter.name: parameter.default for parameter in get_command(app).commands["reproduce"].params}
    assert defaults["classifiers"] == ",".join(protocol.ARTICLE_CLASSIFIERS)
    for name in ("variants", "routes"):
        assert defaults[name] == ",".join(getattr(protocol, name.upper()))


def test_help_imports_no_command():
    """Tables, experiments and their libraries are imported by the command that needs them."""
    code = """import sys
from refkernel.cli import app
try:
    app(["--help"])
except SystemExit:
    print(sorted(name for name in sys.modules if name.startswith(("refkernel.tabular", "refkernel.experiments", "skops"))))"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip().endswith("[]")


def commands(group=None, words=()):
    """(words, command) of every command, also of those in groups."""
    group = group or get_command(app)
    yield words, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*words, name))


@pytest.mark.parametrize("words", [words for words, _ in commands()], ids=" ".join)
def test_help_fits_a_terminal_and_names_every_option_in_full(words):
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= 80
    assert "<bool>" not in result.output
    assert "..." not in result.output.replace("[ARGS]...", "")
    options = [name for parameter in dict(commands())[words].params for name in parameter.opts if name.startswith("--")]
    assert [name for name in options if not re.search(rf"{name}\b", result.output)] == []
