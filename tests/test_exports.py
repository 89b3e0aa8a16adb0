"""Twelve exports as plants, laboratories and offices write them, each of a real table, read by the commands that a person would type.

The oracle is the same table written plainly: the model of an export gives the scores of the model of the plain file.
"""

import re
import shlex

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("skops")
pytest.importorskip("pyarrow")

from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from typer.testing import CliRunner

from exact import read_csv
from refkernel.cli import app
from refkernel.datasets.tasks import embedded_data
from refkernel.tabular.checking import check_file
from refkernel.tabular.readers import ReadOptions, open_table, read_whole
from refkernel.tabular.scoring import load_table_model


def run(line, folder, code=0):
    """A command as it is typed in a folder: its output, notes and errors included."""
    arguments = [str(folder / word) if re.search(r"\.(csv|xlsx|rk|txt|json|parquet)$", word) else word for word in shlex.split(line)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def table(load, columns, rows=150):
    """Some columns of a table of scikit-learn."""
    data = load()
    return pd.DataFrame(data.data, columns=data.feature_names).iloc[:rows, :columns].round(4)


def seeds():
    X, _ = embedded_data("Seeds")
    return pd.DataFrame(X[:140], columns=["area", "perimeter", "compactness", "length", "width", "asymmetry", "groove"])


def german(value, digits=2, unit=""):
    return f"{value:,.{digits}f}{unit}".translate(str.maketrans(",.", ".,"))


def lines(*rows, end="\r\n", delimiter=";"):
    return "".join(delimiter.join(map(str, row)) + end for row in rows)


def agrees(plain, folder, name, options="", score_options=None):
    """The scores of an export's rows are those of the plain table's; what fit and score said."""
    plain.to_csv(folder / "plain.csv", index=False)
    run("fit plain.csv --out plain.rk --model svdd", folder)
    run("score plain.rk plain.csv --out plain_scores.csv", folder)
    said = run(f"fit {name} --out m.rk --model svdd {options}", folder)
    said += run(f"score m.rk {name} --out scores.csv {options if score_options is None else score_options}", folder)
    assert [column.name for column in load_table_model(folder / "m.rk").columns] == list(plain.columns)
    scored = read_whole(open_table(folder / "scores.csv", ReadOptions()))["score"].astype(str).str.replace(",", ".").astype(float)
    np.testing.assert_allclose(scored, read_csv(folder / "plain_scores.csv")["score"], rtol=1e-9, atol=1e-12)
    return said


def test_1_a_control_system_with_titles_units_failed_sensors_and_a_delimiter_at_the_end(tmp_path):
    """German, cp1252; the scores are written as the export was."""
    frame = seeds().round(2).rename(columns={"area": "Kühlwasser", "perimeter": "Druck"})[["Kühlwasser", "Druck", "width"]]
    rows = [[german(a, 2, " °C"), german(b, 2, " bar"), german(c), ""] for a, b, c in frame.to_numpy()]
    rows[3][0], rows[4][0], rows[5][1], rows[6][2] = "---", "#NV", "Bad", "Bad"
    for row, column in ((3, 0), (4, 0), (5, 1), (6, 2)):
        frame.iloc[row, column] = np.nan
    titles = "Anlage;Kessel 3\r\nSchicht: früh\r\n\r\nvon;01.02.2024 00:00\r\n"
    text = titles + lines(["Kühlwasser", "Druck", "width", ""], ["°C", "bar", "", ""], *rows)
    (tmp_path / "export.csv").write_bytes(text.encode("cp1252"))
    said = agrees(frame, tmp_path, "export.csv")
    for note in (
        "is read as cp1252 (Western European). --encoding",
        "4 lines left out: 'Anlage Kessel 3', 'Schicht: früh' and 1 more. --skip-lines",
        "Line 6 is read as a row of units: Kühlwasser (°C), Druck (bar). --no-units-row",
        "decimal commas",
        "Read as missing cells, in columns of numbers or dates: 'Bad' (2), '---' (1)",
        "No row has a value in column 4",
    ):
        assert note in said
    assert str(load_table_model(tmp_path / "m.rk").columns[1]).endswith(" bar")
    written = (tmp_path / "scores.csv").read_bytes().decode("cp1252")
    assert written.startswith("Kühlwasser;Druck;width;column 4;score;decision")
    assert re.search(r"80,38 °C|\d,\d\d °C;\d+,\d\d bar;\d,\d\d;;-?\d+,\d+;", written)


def test_2_numbers_with_thousands_and_decimal_commas_and_nothing_else(tmp_path):
    """1.012,00 in a file whose other column is text: no option is needed; one row alone is read as training was."""
    frame = table(load_wine, 13, 120)[["proline"]].assign(line=["Linie A", "Linie B"] * 60)
    rows = [[german(value), line] for value, line in frame.to_numpy()]
    (tmp_path / "export.csv").write_text(lines(["proline", "line"], *rows))
    agrees(frame, tmp_path, "export.csv")
    (tmp_path / "one.csv").write_text("proline;line\n1.065;Linie A\n")
    run("score m.rk one.csv --out one_score.csv", tmp_path)
    assert "1.065;Linie A" in (tmp_path / "one_score.csv").read_text()
    saved = load_table_model(tmp_path / "m.rk")
    opened = open_table(tmp_path / "one.csv", ReadOptions())
    assert saved.rows_of(read_whole(opened), opened.marks).cells[0].tolist() == [1065.0]


def test_3_a_spreadsheet_saved_as_csv_whose_titles_are_as_wide_as_the_table(tmp_path):
    """With a byte order mark, which the scores keep, and Excel's sep= line."""
    frame = table(load_iris, 4)
    rows = [[german(value, 1) for value in row] for row in frame.to_numpy()]
    text = "sep=;\r\n" + lines(["Messreihe Ä", "", "", ""], ["", "", "", ""], ["Datum:", "3.5.2024", "", ""], list(frame), *rows)
    (tmp_path / "export.csv").write_bytes(text.encode("utf-8-sig"))
    said = agrees(frame, tmp_path, "export.csv", score_options="--skip-lines 4")
    assert "--skip-lines sets their number" in said
    assert (tmp_path / "scores.csv").read_bytes().startswith(b"\xef\xbb\xbfsepal")


def test_4_a_historian_with_words_for_failed_sensors_and_minus_9999(tmp_path):
    """-9999 is a number until the user says otherwise, and a note asks."""
    frame = table(load_diabetes, 10)[["age", "bmi", "bp"]]
    written = frame.astype(object).assign(
        when=pd.date_range("2024-01-01 06:00", periods=len(frame), freq="7min").strftime("%m/%d/%Y %H:%M")
    )
    for row, word in ((2, "I/O Timeout"), (9, "No Data"), (30, "Bad Input")):
        frame.loc[row, "bmi"], written.loc[row, "bmi"] = np.nan, word
    frame.loc[frame.index % 20 == 7, "bp"] = np.nan
    written["bp"] = frame["bp"].fillna(-9999).astype(object)
    written.to_csv(tmp_path / "export.csv", index=False)
    assert "A value far from all others: bp (-9999 in 8 rows)" in run("check export.csv", tmp_path)
    said = agrees(frame, tmp_path, "export.csv", "--missing -9999 --time-column when", "--missing -9999")
    assert "far from all others" not in said
    assert "'I/O Timeout' (1)" in said


def test_5_unicode_text_of_excel(tmp_path):
    """UTF-16, tabs, decimal commas."""
    frame = table(load_breast_cancer, 5)
    rows = [[str(value).replace(".", ",") for value in row] for row in frame.to_numpy()]
    (tmp_path / "export.txt").write_bytes(lines(list(frame), *rows, delimiter="\t").encode("utf-16"))
    agrees(frame, tmp_path, "export.txt")
    assert (tmp_path / "scores.csv").read_bytes().decode("utf-16").startswith("mean radius\tmean texture")


def test_6_names_that_repeat_under_a_row_of_groups(tmp_path):
    """Two reactors with the same sensors."""
    frame = table(load_wine, 6)
    rows = frame.astype(str).to_numpy().tolist()
    text = lines(["Reactor 1", "", "", "Reactor 2", "", ""], ["T", "P", "F"] * 2, ["[°C]", "[bar]", "[m³/h]"] * 2, *rows, delimiter=",")
    (tmp_path / "export.csv").write_text(text, encoding="utf-8")
    frame.columns = ["T", "P", "F", "T (2)", "P (2)", "F (2)"]
    said = agrees(frame, tmp_path, "export.csv")
    assert "Names that repeat are numbered, from left to right: T (2), P (2), F (2)." in said
    assert "T (°C), P (bar), F (m³/h), T (2) (°C), P (2) (bar)" in said


def test_7_an_offices_list_with_prices_shares_and_spaces_between_thousands(tmp_path):
    frame = table(load_wine, 13)[["alcohol", "magnesium", "proline", "flavanoids"]]
    rows = [
        [f"{a:.2f} %", f"€ {1000 * b:,.2f}", f"{c * 100:,.0f}".replace(",", "\u202f"), f"\u2212{d} m³ / h"]
        for a, b, c, d in frame.to_numpy()
    ]
    (tmp_path / "export.csv").write_text(lines(list(frame), *rows), encoding="utf-8")
    plain = frame.assign(magnesium=frame["magnesium"] * 1000, proline=frame["proline"] * 100, flavanoids=-frame["flavanoids"])
    said = agrees(plain, tmp_path, "export.csv")
    assert "Numbers with units: alcohol (%), magnesium (€), flavanoids (m³ / h)" in said
    (tmp_path / "other.csv").write_text(lines(list(frame), *rows).replace("m³ / h", "l/min"), encoding="utf-8")
    assert "Column flavanoids is written with l/min, and was with m³ / h" in run("score m.rk other.csv --out x.csv", tmp_path, 1)


def test_8_german_dates_of_many_forms(tmp_path):
    """Short years, milliseconds after a comma, a day that may be a month, a time of day: none becomes a category."""
    frame = table(load_iris, 2)
    moments = pd.date_range("2024-02-01 00:00", periods=len(frame), freq="31min")
    written = pd.DataFrame(
        {
            "short": moments.strftime("%d.%m.%y"),
            "exact": moments.strftime("%d.%m.%Y %H:%M:%S,250"),
            "slashes": (moments.floor("D") - pd.Timedelta("1D") * (moments.day - 1) + pd.Timedelta("1D") * (moments.day % 9)).strftime(
                "%d/%m/%Y"
            ),
            "clock": moments.strftime("%H:%M"),
            "value": [german(value) for value in frame.iloc[:, 0]],
        }
    )
    written.loc[5, "exact"] = "---"
    written.to_csv(tmp_path / "export.csv", sep=";", index=False)
    said = run("fit export.csv --out m.rk --model svdd", tmp_path)
    columns = load_table_model(tmp_path / "m.rk").columns
    assert [column.kind for column in columns] == ["date"] * 4 + ["number"]
    assert "Column slashes: dates such as 02/02/2024 are read as day/month/year" in said
    assert "Dates and times: short, exact, slashes. Rows from later" in said
    assert (columns[0].minimum, columns[1].minimum % 60) == (moments[0].floor("D").timestamp(), 0.25)
    assert columns[1].missing == 1
    assert "--time-column short" in run("check export.csv", tmp_path)


def test_9_serial_numbers_counters_and_clocks_are_said_and_measurements_are_not(tmp_path):
    """Gaps, two lines in one column, shuffled numbers, unix times of two kinds, texts that nearly all differ."""
    rng = np.random.default_rng(0)
    frame = table(load_breast_cancer, 8, 300)
    n = len(frame)
    on_a = rng.random(n) < 0.6
    suspicious = {
        "serial": 500_000 + np.cumsum(rng.integers(1, 9, n)),
        "two lines": np.where(on_a, 10_000 + np.cumsum(on_a), 900_000 - 1 + np.cumsum(~on_a)),
        "shuffled": rng.permutation(np.arange(4 * n))[:n],
        "unix": 1_700_000_000 + np.cumsum(rng.integers(0, 90, n)),
        "millis": 1_700_000_000_000 + rng.integers(0, 10**9, n),
        "batch": [f"{rng.integers(100, 999)}-{i}" for i in range(n)],
    }
    frame.assign(**suspicious).to_csv(tmp_path / "export.csv", index=False)
    found = check_file(tmp_path / "export.csv")
    looks = dict(zip(found.columns["column"], found.columns["look at"], strict=True))
    assert {name for name, what in looks.items() if what} == set(suspicious)
    assert looks["unix"].startswith("2023-11-14 22:1")
    said = run("fit export.csv --out m.rk --model svdd", tmp_path)
    assert "serial, two lines, shuffled, batch seem to name the rows" in said.replace(" and ", ", ")
    assert "Numbers that look like times since 1970: unix (2023-11-14 22:1" in said
    kept = run("fit export.csv --out m.rk --model svdd --drop 'serial,two lines,shuffled,unix,millis,batch'", tmp_path)
    assert "Note" not in kept


def test_10_a_workbook_with_titles_units_texts_for_numbers_and_a_wrong_dimension(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    import zipfile

    frame = seeds().round(2)[["area", "perimeter", "width"]]
    book = openpyxl.Workbook()
    rows = [["Report of line 3"], [], [None, "created", "3 May"], list(frame), ["mm²", "mm", None]]
    rows += [[german(a, 2, " mm²"), b, c] for a, b, c in frame.to_numpy().tolist()]
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "whole.xlsx")
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as source, zipfile.ZipFile(tmp_path / "export.xlsx", "w") as out:
        for name in source.namelist():
            out.writestr(name, re.sub(rb'dimension ref="[^"]*"', b'dimension ref="A1:C9"', source.read(name)))
    said = agrees(frame, tmp_path, "export.xlsx")
    assert "Line 5 is read as a row of units: area (mm²), perimeter (mm)" in said
    assert (tmp_path / "scores.csv").read_bytes().startswith(b"\xef\xbb\xbfarea;perimeter;width;score")


def test_11_a_table_that_was_scored_before(tmp_path):
    """The columns of an earlier score teach nothing, and both commands say so."""
    frame = table(load_iris, 4)
    frame.to_csv(tmp_path / "first.csv", index=False)
    run("fit first.csv --out first.rk", tmp_path)
    run("score first.rk first.csv --out export.csv --explain 1 --prefix rk_", tmp_path)
    found = check_file(tmp_path / "export.csv").columns.set_index("column")["look at"]
    assert all(("refkernel score added it" in what) == name.startswith("rk_") for name, what in found.items())
    assert "Columns that refkernel score adds to a table are left out: rk_score, rk_decision" in run("fit export.csv --out m.rk", tmp_path)
    run("score m.rk export.csv --out s.csv --prefix new_", tmp_path)
    scored = read_csv(tmp_path / "s.csv")
    np.testing.assert_array_equal(scored["new_score"], scored["rk_score"])


def test_12_where_there_is_doubt_all_problems_come_in_one_message(tmp_path):
    """Mixed units, words among numbers, thousands or decimals, infinite numbers: one run names them, and the options that help."""
    frame = table(load_wine, 5)
    written = frame.astype(object).set_axis(list("abcde"), axis=1)
    written["a"] = [f"{value} {'psi' if i % 30 == 4 else 'bar'}" for i, value in enumerate(frame.iloc[:, 0])]
    written.loc[10, "b"], written.loc[20, "c"] = "oops", "inf"
    written["d"] = [f"{1 + i % 7},{100 + i}" for i in range(len(frame))]
    written["e"] = [f"{i % 90}{'abc'[i % 3]}" for i in range(len(frame))]
    written.to_csv(tmp_path / "export.csv", sep=";", index=False)
    for command in ("check export.csv", "fit export.csv --out m.rk"):
        said = run(command, tmp_path, 1)
        assert "Column a mixes 145 values with bar and 5 with psi. Write all alike, or take the column as text (--categorical a)" in said
        assert "Column b should be numeric, but 1 of 150 values are not numbers: the first is 'oops' in row 11" in said
        assert "--missing" in said
        assert "Infinite values in c (1)" in said
        assert "Column e mixes" in said
    assert not (tmp_path / "m.rk").exists()
    ok = run("fit export.csv --out m.rk --model svdd --missing oops,inf --categorical a,e", tmp_path)
    assert "Column d: 1,100 is read as 1100, because other columns have decimal points" in ok
    (tmp_path / "ragged.csv").write_text("a;b\n1;2\n3;4;5\n6;7\n8\n", encoding="utf-8")
    assert "line 3: 3 cells, but the header has 2" in (said := run("fit ragged.csv --out m.rk", tmp_path, 1))
    assert "Lines 5 differ, too" in said
    assert "--skip-lines" in said


def test_an_incomplete_row_of_a_nightly_batch_is_flagged_with_its_reason_and_no_rows_are_0_rows(tmp_path):
    frame = seeds().round(2)
    rows = [[german(value) for value in row] for row in frame.to_numpy()]
    header = [*frame], ["mm²", "mm", "%", "mm", "mm", "", "mm"]
    (tmp_path / "train.csv").write_text("Line 3\n" + lines(*header, *rows), encoding="utf-8")
    run("fit train.csv --out m.rk", tmp_path)
    (tmp_path / "night.csv").write_text("Line 3\n" + lines(*header, [*rows[0][:2], "", *rows[0][3:]], rows[1]), encoding="utf-8")
    assert "2 rows: 1 target, 1 outlier" in run("score m.rk night.csv --out s.csv --explain 1", tmp_path)
    first = (tmp_path / "s.csv").read_text(encoding="utf-8").splitlines()[1]
    assert "compactness = missing" in first
    (tmp_path / "empty.csv").write_text("Line 3\n" + lines(*header), encoding="utf-8")
    for out in ("s.csv", "s.parquet"):
        assert "0 rows" in run(f"score m.rk empty.csv --out {out} --summary-json s.json", tmp_path)
    assert (tmp_path / "s.csv").read_text(encoding="utf-8").startswith("area;perimeter;")
    assert "no rows" in run("fit empty.csv --out n.rk", tmp_path, 1)


def test_faults_in_the_training_table_can_be_allowed_for(tmp_path):
    """--contamination of the command is that of AutoDetector."""
    import refkernel as rk

    frame = seeds()
    frame.iloc[::35] *= 3.0
    frame.to_csv(tmp_path / "d.csv", index=False)
    run("fit d.csv --out m.rk --contamination 0.03", tmp_path)
    expected = rk.TableDetector(rk.AutoDetector(0.05, contamination=0.03, random_state=0)).fit(frame)
    np.testing.assert_array_equal(rk.load(tmp_path / "m.rk").score_samples(frame), expected.score_samples(frame))
    assert "--contamination is for --model auto" in run("fit d.csv --out m.rk --model svdd --contamination 0.03", tmp_path, 1)


@pytest.mark.parametrize("units", [["Flow [l/min]", "°C", "kg [dry]"], ["[bar]", "(°C)", "m³/(h·m²)"], ["%", "°C", "rel."]])
def test_a_model_takes_its_own_training_file_whatever_stands_in_its_row_of_units(tmp_path, units):
    frame = seeds().iloc[:, :3].round(3)
    cells = frame.astype(str).to_numpy()
    cells[:, 2] = [f"{cell} %" if "rel." in units else cell for cell in cells[:, 2]]
    (tmp_path / "d.csv").write_text(lines(list(frame), units, *cells), encoding="utf-8")
    run("fit d.csv --out m.rk --model svdd", tmp_path)
    assert "140 rows" in run("score m.rk d.csv --out s.csv", tmp_path)
    (tmp_path / "none.csv").write_text(lines(list(frame), units), encoding="utf-8")
    assert "0 rows" in run("score m.rk none.csv --out s.csv", tmp_path)
    other = [units[0], "°F", units[2]]
    (tmp_path / "other.csv").write_text(lines(list(frame), other, *cells), encoding="utf-8")
    assert "is in °F, and was in °C in training" in run("score m.rk other.csv --out s.csv", tmp_path, 1)
    assert "[bar]" not in run("inspect m.rk", tmp_path)


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("titles", [1, 3, 8])
@pytest.mark.parametrize("delimiter", [";", ","])
def test_a_small_batch_under_titles_is_read_by_the_columns_of_the_model(tmp_path, rows, titles, delimiter):
    frame = seeds().iloc[:, :3]
    frame.to_csv(tmp_path / "train.csv", index=False)
    run("fit train.csv --out m.rk --model svdd", tmp_path)
    above = "".join(f"Line {number}: shift of the night\n" for number in range(titles))
    (tmp_path / "night.csv").write_text(above + frame[:rows].to_csv(index=False, sep=delimiter), encoding="utf-8")
    assert f"{rows} row" in run("score m.rk night.csv --out s.csv", tmp_path)
    assert read_csv(tmp_path / "s.csv", sep=delimiter).columns.tolist()[:4] == [*frame, "score"]


@pytest.mark.parametrize(
    ("form", "seconds"),
    [
        ("%d-%b-%Y %H:%M:%S", True),
        ("%m/%d/%Y %I:%M:%S %p", True),
        ("%Y-%m-%d %H:%M:%S,000", True),
        ("%d/%m/%Y %H.%M.%S", True),
        ("%A, %d. %B %Y", False),
    ],
)
@pytest.mark.parametrize("odd", [None, "32.10.2025", "Mean"])
def test_dates_of_an_export_are_dates_and_a_cell_that_is_none_is_named(tmp_path, form, seconds, odd):
    """The oracle is pandas' own format."""
    moments = pd.date_range("2025-10-24 21:00", periods=80, freq="3h11min7s")
    written = pd.Series(moments.strftime(form), dtype=object)
    if odd:
        written[77] = odd
    pd.DataFrame({"when": written, "x": np.arange(80.0) % 7}).to_csv(tmp_path / "d.csv", index=False, sep=";")
    if odd:
        said = run("check d.csv", tmp_path, 1)
        assert f"1 of 80 values are not dates: the first is '{odd}' in row 78" in said
        assert f"--missing {odd}" in said
        run(f"fit d.csv --out m.rk --model svdd --missing {odd}", tmp_path)
    else:
        run("fit d.csv --out m.rk --model svdd", tmp_path)
    when = load_table_model(tmp_path / "m.rk").columns[0]
    assert (when.kind, when.missing) == ("date", 0 if odd is None else 1)
    assert when.minimum == (moments if seconds else moments.floor("D"))[0].timestamp()


def test_lines_above_a_header_are_counted_whatever_its_cells_hold(tmp_path):
    (tmp_path / "d.csv").write_text(
        'Plant 7;;\nExport;;\n"Flow\n[bar]";"T\n[°C]";kg\n' + "".join(f"{i % 7},5;{i % 5},25;1,{i % 3}\n" for i in range(30))
    )
    assert "Above the header, 2 lines left out: 'Plant 7', 'Export'." in run("check d.csv", tmp_path)


def test_a_point_that_may_separate_thousands_is_said(tmp_path):
    (tmp_path / "d.csv").write_text("line;count\n" + "".join(f"L{i % 3};15.{400 + i}\n" for i in range(40)), encoding="utf-8")
    assert "15.400 is read with a decimal point: no cell decides it. --decimal , reads 15400." in run("fit d.csv --out m.rk", tmp_path)
    run("fit d.csv --out comma.rk --decimal ,", tmp_path)
    assert [load_table_model(tmp_path / name).columns[1].minimum for name in ("m.rk", "comma.rk")] == [15.4, 15400.0]
    assert "decimal point" not in run("score comma.rk d.csv --out s.csv", tmp_path)


def test_numbers_of_a_file_with_decimal_commas_are_shown_without_marks_between_thousands(tmp_path):
    frame = table(load_wine, 13, 150)[["proline", "flavanoids"]]
    (tmp_path / "d.csv").write_text(lines(list(frame), *[[german(value) for value in row] for row in frame.to_numpy()]))
    run("fit d.csv --out m.rk", tmp_path)
    said = run("inspect m.rk", tmp_path)
    assert "278 … 1680" in said
    assert "0,34 … " in said


def test_a_dash_is_a_file_for_no_command_but_score(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seeds().to_csv("d.csv", index=False)
    run("fit d.csv --out m.rk --model svdd", tmp_path)
    for line in (
        "fit d.csv --out -",
        "score m.rk d.csv --out s.csv --summary-json -",
        "compare m.rk m.rk d.csv --out -",
        "watch m.rk d.csv --state p.state --out -",
        "watch m.rk d.csv --state - --out w.csv",
    ):
        assert "- is standard output" in run(line, tmp_path, 1)
    assert not (tmp_path / "-").exists()
    text = (tmp_path / "d.csv").read_bytes()
    result = CliRunner().invoke(app, ["check", "-"], input=text)
    assert "refkernel fit - --out model.rk" in result.output
    assert "-, line 3" in CliRunner().invoke(app, ["check", "-"], input=b"a,b\n1,2\n3\n").output


def test_score_reads_as_fit_was_told_to_unless_it_is_told_otherwise(tmp_path):
    frame = seeds().iloc[:, :3].round(2).astype(object)
    frame.iloc[::9, 0] = "<0,05"
    (tmp_path / "d.csv").write_text("3;4\n" + lines(list(frame), *frame.to_numpy()), encoding="utf-8")
    said = run("fit d.csv --out m.rk --skip-lines 1", tmp_path, 1)
    way_out = "--missing '\"<0,05\"'"
    assert way_out in said
    run(f"fit d.csv --out m.rk --skip-lines 1 {way_out}", tmp_path)
    (tmp_path / "new.csv").write_text(lines(list(frame), *frame[:20].to_numpy()), encoding="utf-8")
    assert "Read as fit was told to: missing ['<0,05']" in run("score m.rk new.csv --out s.csv", tmp_path)
    run("score m.rk d.csv --out s.csv", tmp_path)
    assert "'<0,05' in row 1" in run("score m.rk new.csv --out s.csv --missing Bad", tmp_path, 1)
    (tmp_path / "bare.csv").write_text(lines(*frame.to_numpy()), encoding="utf-8")
    run(f"fit bare.csv --out bare.rk --no-header {way_out}", tmp_path)
    assert "140 rows" in run("score bare.rk bare.csv --out s.csv", tmp_path)


def test_a_contradiction_names_its_own_cause_and_counts_each(tmp_path):
    """180 °C is too far, whatever else is missing in the file."""
    frame = seeds().iloc[:, :3].round(3)
    frame.iloc[5, 0] = np.nan
    frame.to_csv(tmp_path / "d.csv", index=False)
    run("fit d.csv --out m.rk", tmp_path)
    frame.iloc[[7], 0], frame.iloc[9, [0, 1]] = 1e4, np.nan
    frame.to_csv(tmp_path / "new.csv", index=False)
    said = run("score m.rk new.csv --out s.csv", tmp_path)
    found = re.search(r"area contradicts all of training in (\S+) rows?: (.*?)\. That", said)
    assert "a value far outside" in found[2]
    first = frame.copy()
    first.iloc[9, :2] = 14.0
    first.to_csv(tmp_path / "new.csv", index=False)
    said = run("score m.rk new.csv --out s.csv", tmp_path)
    assert "area contradicts all of training in 1 row: a value far outside" in said
