"""Tables that are read column by column give the models, notes and errors of tables in memory, and hold one column at a time."""

import errno
import os
import tempfile
import tracemalloc

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

from refkernel.exceptions import TableError
from refkernel.tables import CsvFormat, Recipe, Rows, fit_file, open_table, stored

N = 400


def table(n=N, numbers=3, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"x {j}": rng.normal(size=n).round(4) for j in range(numbers)})
    frame["price"] = np.array(["$1,234.50", "12", "7.5"])[rng.integers(0, 3, n)]
    frame["colour"] = np.array(["red", " green", "blue", "?"])[rng.integers(0, 4, n)]
    frame["is on"] = np.array(["TRUE", "false"])[rng.integers(0, 2, n)]
    frame["fixed"] = 7
    frame["when"] = (pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**7, n), unit="s")).strftime("%Y-%m-%d %H:%M:%S")
    frame["kind"] = np.array(["good", "good", "good", "bad", "unknown"])[np.arange(n) % 5]
    frame.loc[::7, "x 0"] = np.nan
    return frame


def written(frame, folder, ending):
    path = folder / f"table.{ending}"
    if ending == "parquet":
        frame.to_parquet(path, row_group_size=150)
    else:
        frame.to_csv(path, index=False)
    return path


def typed(frame):
    return frame.assign(when=pd.to_datetime(frame["when"]), colour=frame["colour"].astype("category"))


def both(path, monkeypatch, recipe, rows=Rows(), **options):  # noqa: B008 - frozen
    """What ``fit_file`` gives in memory and column by column."""
    found = []
    for most in (10**12, 0):
        monkeypatch.setattr(stored, "MOST_HELD_BYTES", most)
        found.append(fit_file(path, recipe, rows, CsvFormat(), **options))
    return found


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("outlier", [None, "bad"])
def test_a_table_on_disk_gives_the_model_of_one_in_memory(tmp_path, monkeypatch, ending, outlier):
    frame = table()
    path = written(typed(frame) if ending == "parquet" else frame, tmp_path, ending)
    rows = Rows("kind", "good", outlier)
    held, read = both(path, monkeypatch, Recipe(impute="median"), rows, drop=["x 1"])
    assert held.notes == read.notes
    assert held.about == read.about


@pytest.mark.parametrize("model", ["svdd", "ocsvm"])
def test_classifiers_on_disk_decide_as_in_memory(tmp_path, monkeypatch, model):
    path = written(table().drop(columns="kind"), tmp_path, "csv")
    held, read = both(path, monkeypatch, Recipe(model=model, references="case2", scale=10.0, impute="median"))
    for name in ("features", "columns", "recipe", "data"):
        assert held.about[name] == read.about[name]
    decisions = [found.about["training"]["decision_percentiles"] for found in (held, read)]
    np.testing.assert_allclose(*decisions, atol=1e-6)  # two optima, each with a gap of at most 1e-6
    assert held.about["training"]["false_alarm_rate"] == pytest.approx(read.about["training"]["false_alarm_rate"], abs=1e-2)


BAD = {
    "words among numbers": lambda frame: frame.assign(a=np.where(np.arange(len(frame)) == 377, "broken", frame["x 1"].astype(str))),
    "too many texts": lambda frame: pd.concat([frame.assign(name=[f"row {i} {k}" for i in range(len(frame))]) for k in range(3)]),
    "percent here and there": lambda frame: frame.assign(share=np.where(np.arange(len(frame)) % 2, "5 %", "5")),
    "an empty column": lambda frame: frame.assign(nothing=""),
    "infinite numbers": lambda frame: frame.assign(far=np.where(np.arange(len(frame)) == 9, "inf", "1")),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_table_on_disk_gives_the_error_of_one_in_memory(tmp_path, monkeypatch, kind):
    path = written(BAD[kind](table()), tmp_path, "csv")
    messages = []
    for most in (10**12, 0):
        monkeypatch.setattr(stored, "MOST_HELD_BYTES", most)
        with pytest.raises(TableError) as error:
            fit_file(path, Recipe(impute="median"), Rows(), CsvFormat())
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_memory_does_not_grow_with_the_number_of_columns(tmp_path):
    """The columns of 60 numbers need less than twice the memory of 6: one is held at a time."""
    peaks = []
    for numbers in (6, 60):
        path = written(table(20_000, numbers), tmp_path, "csv")
        raw = stored.RawColumns(open_table(path, CsvFormat()), lambda stage: None)
        tracemalloc.start()
        X = raw.learnt(".", (), [])
        assert sum(len(part) for part in X.by_columns()) == 20_000 * (numbers + 6)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.0 * peaks[0]


def test_progress_names_the_columns_and_the_share_that_was_read(tmp_path, monkeypatch):
    path = written(table(), tmp_path, "csv")
    monkeypatch.setattr(stored, "MOST_HELD_BYTES", 0)
    stages = []
    fit_file(path, Recipe(impute="median"), Rows(), CsvFormat(), progress=stages.append)
    assert any("100%, 400 rows" in stage for stage in stages)
    assert any("reading column 5 of 9, colour" in stage for stage in stages)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is always full")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_full_disk_is_named_and_leaves_no_file(tmp_path, monkeypatch, ending):
    path = written(table(60_000), tmp_path, ending)
    monkeypatch.setattr(stored, "MOST_HELD_BYTES", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **options: open("/dev/full", "w+b"))  # noqa: SIM115
    with pytest.raises(TableError, match=r"folder for temporary files .* is full after [\d,]+ rows? .*TMPDIR"):
        fit_file(path, Recipe(impute="median"), Rows(), CsvFormat())
    assert list(tmp_path.iterdir()) == [path]


def test_other_errors_of_the_disk_are_not_hidden():
    error = OSError(errno.EIO, "Input/output error")
    assert stored._disk_error(error, 3) is error


def test_what_needs_all_rows_in_memory_gets_them():
    assert not Recipe(model="svdd", references="none").reads_blocks
    assert not Recipe(model="svdd", search=True).reads_blocks
    assert Recipe().reads_blocks
    assert Recipe(model="ocsvm").reads_blocks
