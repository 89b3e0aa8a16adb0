"""The commands as a shell meets them: pipes, encodings, tables without rows, files that name themselves, and what is written in words."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("skops")
pytest.importorskip("pyarrow")

from typer.testing import CliRunner

import refkernel as rk
from exact import read_csv
from refkernel.cli import app


def run(*arguments, code=0):
    """Run a command; its output, notes included."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def in_shell(*arguments, code=0, **options):
    """Run a command in a process of its own, with bytes for input and output."""
    command = [sys.executable, "-m", "refkernel", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, **options)
    assert result.returncode == code, result.stderr
    return result


def boilers(n=60, seed=0):
    """Pressure in hundreds, a temperature, a line with a letter that is not ASCII, and an hour of the day."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"Druck": rng.normal(1_016.0, 8.0, n).round(1), "Temperatur": rng.normal(80.0, 2.0, n).round(2)})
    frame["Kühlung"] = np.array(["Öl", "Luft"])[np.arange(n) % 2]
    frame["Schicht"] = [f"{hour:02d}:{minute:02d}" for hour, minute in zip(rng.integers(6, 18, n), rng.integers(0, 60, n), strict=True)]
    return frame


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    """german.csv as a German spreadsheet writes it, the model of it, and new.csv with a far value in the first row."""
    folder = tmp_path_factory.mktemp("plant")
    new = boilers(20, 1)
    new.loc[0, ["Druck", "Temperatur"]] = [2_345.5, 180.25]
    for name, frame in (("german.csv", boilers()), ("new.csv", new)):
        frame.to_csv(folder / name, sep=";", decimal=",", index=False, encoding="cp1252")
    run("fit", folder / "german.csv", "--out", folder / "m.rk", "--encoding", "cp1252", "--decimal", ",")
    return folder


# Pipes


def test_a_dash_is_standard_input_and_output_and_words_go_to_standard_error(plant):
    options = ("--encoding", "cp1252", "--decimal", ",", "--explain", 1)
    run("score", plant / "m.rk", plant / "new.csv", "--out", plant / "out.csv", *options)
    text = (plant / "new.csv").read_bytes()
    piped = in_shell("score", plant / "m.rk", "-", "--out", "-", *options, input=text, cwd=plant)
    assert piped.stdout == (plant / "out.csv").read_bytes()
    assert b"20 rows" in piped.stderr
    assert not (plant / "-").exists()


def test_a_model_is_fitted_to_standard_input_of_any_kind(plant, tmp_path):
    boilers().to_parquet(tmp_path / "table.parquet")
    scores = []
    for name, options in (("german.csv", ("--encoding", "cp1252", "--decimal", ",")), ("table.parquet", ())):
        text = (plant / name if name == "german.csv" else tmp_path / name).read_bytes()
        result = CliRunner().invoke(app, ["fit", "-", "--out", str(tmp_path / "m.rk"), "--drop", "Schicht", *options], input=text)
        assert result.exit_code == 0, result.output
        scores.append(rk.load(tmp_path / "m.rk").score_samples(boilers(10, 2)))
    np.testing.assert_array_equal(*scores)


def test_words_return_to_standard_output_after_a_run_that_wrote_there(plant):
    options = ("--encoding", "cp1252", "--decimal", ",")
    assert CliRunner().invoke(app, ["score", str(plant / "m.rk"), str(plant / "new.csv"), "--out", "-", *options]).exit_code == 0
    assert "20 rows" in run("score", plant / "m.rk", plant / "new.csv", "--out", plant / "again.csv", *options)


# Outputs and inputs


def test_no_output_replaces_another_or_an_input(plant, tmp_path):
    model, data, out = plant / "m.rk", plant / "new.csv", tmp_path / "x.html"
    before = model.read_bytes(), data.read_bytes()
    for arguments in (
        ("score", model, data, "--out", out, "--summary-json", out),
        ("score", model, data, "--out", out, "--summary-json", tmp_path / "." / "x.html"),
        ("score", model, data, "--out", "-", "--summary-json", "-"),
        ("score", model, data, "--out", out, "--summary-json", model),
        ("score", model, data, "--out", data),
        ("fit", data, "--out", out, "--out-report", out),
        ("fit", data, "--out", tmp_path / "m.rk", "--out-report", data),
    ):
        assert "Error:" in run(*arguments, code=1)
    assert before == (model.read_bytes(), data.read_bytes())
    assert not list(tmp_path.iterdir())


# Tables without rows, incomplete rows, tables that were scored before


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_without_rows_is_done(ending, plant, tmp_path):
    empty = boilers(0)
    if ending == "csv":
        empty.to_csv(tmp_path / "none.csv", index=False)
    else:
        empty.to_parquet(tmp_path / "none.parquet")
    arguments = (plant / "m.rk", tmp_path / f"none.{ending}", "--out", tmp_path / f"out.{ending}", "--explain", 2, "--worst", 3)
    output = run("score", *arguments, "--summary-json", tmp_path / "s.json")
    assert "0 rows." in output
    summary = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert (summary["rows"], summary["flagged"], summary["flagged_share"], summary["worst"]) == (0, 0, None, [])
    found = read_csv(tmp_path / "out.csv") if ending == "csv" else pd.read_parquet(tmp_path / "out.parquet")
    assert list(found.columns[-7:]) == ["score", "decision", "label", "p_value", "filled", "reason_1", "reason_2"]
    assert len(found) == 0


def test_one_incomplete_row_of_a_batch_is_flagged_with_its_reason(plant, tmp_path):
    rows = boilers(20, 3)
    rows.loc[7, "Temperatur"] = np.nan
    rows.to_csv(tmp_path / "batch.csv", index=False)
    run("score", plant / "m.rk", tmp_path / "batch.csv", "--out", tmp_path / "out.csv", "--explain", 1, "--decimal", ".")
    scored = read_csv(tmp_path / "out.csv")
    assert scored["label"][7] == -1
    assert scored["reason_1"][7].startswith("Temperatur = missing")


def test_columns_of_an_earlier_score_are_left_out_of_a_model(plant, tmp_path):
    """Also where one of them says which rows to keep; columns of such a name in another table are columns like others."""
    boilers().to_csv(tmp_path / "train.csv", index=False)
    run("score", plant / "m.rk", tmp_path / "train.csv", "--out", tmp_path / "s.csv", "--explain", 1, "--prefix", "old_", "--decimal", ".")
    for options in ((), ("--target-column", "old_label", "--target", "1")):
        output = run("fit", tmp_path / "s.csv", "--out", tmp_path / "m.rk", *options)
        assert "Columns that refkernel score adds to a table are left out: old_score, old_decision" in output
        assert list(rk.load(tmp_path / "m.rk").feature_names_in_) == list(boilers())
    boilers().assign(score=np.arange(60) % 7).to_csv(tmp_path / "own.csv", index=False)
    run("fit", tmp_path / "own.csv", "--out", tmp_path / "m.rk")
    assert "score" in rk.load(tmp_path / "m.rk").feature_names_in_


# What is written


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-8", "utf-8-sig", "utf-16"])
def test_scores_are_written_as_the_table_was(encoding, plant, tmp_path):
    """Encoding with its mark, delimiter and decimal mark; what an encoding lacks is replaced, and no cell of the table changes."""
    rows = boilers(20, 1)
    rows.loc[0, "Druck"] = 2_345.5
    rows.to_csv(tmp_path / "new.csv", sep=";", decimal=",", index=False, encoding=encoding)
    written = () if encoding.startswith("utf-8") else ("--encoding", encoding)
    run("score", plant / "m.rk", tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--explain", 1, "--decimal", ",", *written)
    raw = (tmp_path / "out.csv").read_bytes()
    marks = {"utf-8-sig": b"\xef\xbb\xbf", "utf-16": "x".encode("utf-16")[:2]}
    assert raw.startswith(marks.get(encoding, b"Druck;"))
    assert raw.count(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")
    text = raw.decode(encoding)
    assert text.startswith("Druck;Temperatur;Kühlung;Schicht;score;decision;label;p_value;filled;reason_1")
    found = read_csv(tmp_path / "out.csv", sep=";", decimal=",", encoding=encoding)
    pd.testing.assert_frame_equal(found[list(rows)], rows, check_dtype=False)
    assert found["score"].dtype == np.float64
    assert found["reason_1"][0].startswith("Druck = 2346 (normal: ")


def test_numbers_in_words_have_the_decimal_mark_of_the_table_and_numbers_in_json_are_numbers(plant, tmp_path):
    frame = boilers(20, 1)
    frame.loc[0, "Temperatur"] = 180.25
    texts = {}
    for mark, separator in ((",", ";"), (".", ",")):
        frame.to_csv(tmp_path / "new.csv", sep=separator, decimal=mark, index=False)
        arguments = (plant / "m.rk", tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--explain", 1, "--worst", 1)
        run("score", *arguments, "--summary-json", tmp_path / "s.json", "--decimal", mark)
        texts[mark] = read_csv(tmp_path / "out.csv", sep=separator, decimal=mark)["reason_1"][0]
        [worst] = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["worst"]
        assert worst["reasons"][0]["column"] == "Temperatur"
        assert worst["reasons"][0]["value"] == 180.25
    assert texts[","].startswith("Temperatur = 180,2")
    assert re.sub(r"(?<=\d),(?=\d)", ".", texts[","]) == texts["."]


def test_a_time_stamp_that_moved_on_is_told_again_with_its_remedy_and_a_time_of_day_is_not(plant, tmp_path):
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60), unit="h")
    boilers().assign(when=when).to_csv(tmp_path / "train.csv", index=False)
    boilers(20, 1).assign(when=when[:20] + pd.Timedelta("90D"), Schicht="23:30").to_csv(tmp_path / "new.csv", index=False)
    run("fit", tmp_path / "train.csv", "--out", tmp_path / "m.rk")
    output = run("score", tmp_path / "m.rk", tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert "when is later than all of training in 20 of 20 rows" in output
    assert "--time-column when" in output
    assert "Schicht is later" not in output
    boilers(20, 1).assign(when=when[:20]).to_csv(tmp_path / "new.csv", index=False)
    assert "is later than" not in run("score", tmp_path / "m.rk", tmp_path / "new.csv", "--out", tmp_path / "out.csv")


def test_a_time_of_day_is_written_as_one(plant, tmp_path):
    late = boilers(20, 1)
    late.loc[3, "Schicht"] = "23:30"
    late.to_csv(tmp_path / "new.csv", index=False)
    output = run("inspect", plant / "m.rk")
    low, high = boilers()["Schicht"].min(), boilers()["Schicht"].max()
    assert f"{low} … {high}" in output
    assert "1970" not in output
    run("score", plant / "m.rk", tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--explain", 1, "--decimal", ".")
    assert "1970" not in "".join(read_csv(tmp_path / "out.csv")["reason_1"].dropna())
    (column,) = (column for column in rk.load(plant / "m.rk").columns_ if column.name == "Schicht")
    assert column.normal.written(23.5 * 3_600) == "23:30"
    assert column.normal.written(3_661.0) == "01:01:01"


def test_what_a_terminal_cannot_show_is_replaced_and_never_lost(plant, tmp_path):
    """ASCII for output, in a table, in the name of a model and in an error."""
    model = tmp_path / "Kühlung.rk"
    model.write_bytes((plant / "m.rk").read_bytes())
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = in_shell("inspect", model, env=environment)
    assert rb"K\xfchlung" in shown.stdout
    assert b"Temperatur" in shown.stdout
    assert rb"K\xfchl" in in_shell("inspect", tmp_path / "Kühl.rk", env=environment, code=1).stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux may names of files be any bytes")
def test_files_whose_names_are_no_text_are_read_and_written(plant, tmp_path):
    folder = os.fsencode(tmp_path)
    with open(folder + b"/\xff.csv", "wb") as file:
        file.write((plant / "new.csv").read_bytes())
    data, model, out, summary = (os.fsdecode(folder + name) for name in (b"/\xff.csv", b"/\xff.rk", b"/out\xff.csv", b"/s\xff.json"))
    options = ("--encoding", "cp1252", "--decimal", ",")
    run("fit", data, "--out", model, *options)
    run("inspect", model)
    run("score", model, data, "--out", out, "--summary-json", summary, *options)
    about = json.loads(Path(summary).read_text(encoding="utf-8"))
    assert about["rows"] == 20
    assert about["scores"] == r"out\udcff.csv"
    assert about["scores_sha256"] == hashlib.sha256(Path(out).read_bytes()).hexdigest()
    page, report, plot = (os.fsdecode(folder + name) for name in (b"/p\xff.html", b"/r\xff.html", b"/q\xff.html"))
    run("fit", data, "--out", model, "--out-report", page, *options)
    run("report", model, data, "--out", report, *options)
    run("plot", model, data, "--out", plot, *options)
    for path in (page, report, plot):
        assert r"\udcff" in Path(path).read_text(encoding="utf-8")
