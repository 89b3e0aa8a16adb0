"""Files of strangers: no row is lost, and a small file that holds a giant table is refused before it fills the memory."""

import gzip
import re
import tracemalloc
import zipfile

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as parquet

from refkernel.exceptions import TableError
from refkernel.tabular import readers
from refkernel.tabular.readers import ReadOptions, excel, open_table, read_whole
from refkernel.tabular.readers.layout import checked_names


def workbook(path, rows, change=lambda sheet: sheet):
    """Write a workbook; ``change`` edits the XML of its sheet."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, change(text) if name.endswith("sheet1.xml") else text)
    return path


@pytest.mark.parametrize("stated", [b"A1:B6", b"A1", b"A1:A31", b"A1:XFD1048576"])
def test_all_rows_of_a_sheet_are_read_whatever_its_dimensions_state(stated, tmp_path):
    rows = [["a", "b"], *([i, 2.5 * i] for i in range(30))]
    path = workbook(tmp_path / "d.xlsx", rows, lambda sheet: re.sub(rb'dimension ref="[^"]*"', b'dimension ref="' + stated + b'"', sheet))
    assert read_whole(open_table(path, ReadOptions())).astype(float).to_numpy().tolist() == rows[1:]


def test_a_row_beyond_what_excel_allows_is_refused(tmp_path, monkeypatch):
    """openpyxl gives an empty row for each that is left out: for a row of number 10^15, forever."""
    monkeypatch.setattr(excel, "SHEET_ROWS", 1_000)
    far = workbook(tmp_path / "d.xlsx", [["a", "b"], [1, 2], [3, 4]], lambda sheet: sheet.replace(b'r="3"', b'r="1000000000000000"', 1))
    with pytest.raises(TableError, match="more than 1,000 rows"):
        read_whole(open_table(far, ReadOptions()))


def packed_parquet(path):
    parquet.write_table(pa.table({"x": np.zeros(20_000), "y": np.ones(20_000)}), path, compression="zstd")


def packed_csv(path):
    path.write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 50_000))


def packed_workbook(path):
    workbook(path, [["x", "y"], [1, 2]], lambda sheet: sheet.replace(b"<sheetData>", b"<sheetData>" + b" " * 200_000))


@pytest.mark.parametrize(("ending", "write"), [("parquet", packed_parquet), ("csv.gz", packed_csv), ("xlsx", packed_workbook)])
def test_a_table_of_many_times_its_file_is_refused_and_the_limit_can_be_raised(ending, write, tmp_path, monkeypatch):
    path = tmp_path / f"d.{ending}"
    write(path)
    monkeypatch.setattr(readers, "FREE_BYTES", 10_000)
    monkeypatch.setattr(readers, "MOST_UNPACKED", 3)
    with pytest.raises(TableError, match=r"more than 3 times the [\d,]+ bytes of its file.* REFKERNEL_MOST_UNPACKED"):
        read_whole(open_table(path, ReadOptions()))
    monkeypatch.setenv("REFKERNEL_MOST_UNPACKED", "2000")
    assert len(read_whole(open_table(path, ReadOptions())))
    monkeypatch.setenv("REFKERNEL_MOST_UNPACKED", "many")
    with pytest.raises(TableError, match="must be a whole number"):
        read_whole(open_table(path, ReadOptions()))


def test_a_parquet_file_of_kilobytes_and_20_million_rows_is_refused_at_once(tmp_path):
    """By what the file states: nothing of it is read."""
    rows = pa.table({"x": pa.DictionaryArray.from_arrays(np.zeros(1_000_000, dtype=np.int32), pa.array([1.5]))})
    with parquet.ParquetWriter(tmp_path / "d.parquet", rows.schema) as writer:
        for _ in range(20):
            writer.write_table(rows)
    with pytest.raises(TableError, match="REFKERNEL_MOST_UNPACKED"):
        open_table(tmp_path / "d.parquet", ReadOptions())


@pytest.mark.parametrize(("cell", "rows"), [("x" * 100_000, 20_000), (b"x" * 1_000_000, 100_000)])
def test_a_parquet_file_of_one_long_text_for_all_rows_is_refused_before_it_is_repeated(cell, rows, tmp_path):
    """A dictionary states its own size, and not that of the column: 2 and 100 GB in a file of 300 kB at most."""
    column = pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), pa.array([cell]))
    parquet.write_table(pa.table({"x": column}), tmp_path / "d.parquet", compression="zstd", store_schema=False)
    before = pa.total_allocated_bytes()
    with pytest.raises(TableError, match="REFKERNEL_MOST_UNPACKED"):
        read_whole(open_table(tmp_path / "d.parquet", ReadOptions()))
    assert pa.total_allocated_bytes() - before < 10_000_000


def test_a_gzip_file_of_few_long_lines_is_refused_by_its_letters(tmp_path, monkeypatch):
    """800 lines of 1 MB: 800 MB in 800 kB."""
    monkeypatch.setenv("REFKERNEL_MOST_UNPACKED", "100")
    path = tmp_path / "d.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"x,y\n")
        for _ in range(100):
            file.write(b"1," + b" " * 1_000_000 + b"2\n")
    with pytest.raises(TableError, match="REFKERNEL_MOST_UNPACKED"):
        list(open_table(path, ReadOptions())._lines())


def test_cells_that_a_workbook_leaves_out_count(tmp_path, monkeypatch):
    """A row with nothing but its last cell is as wide as all others."""
    monkeypatch.setattr(readers, "FREE_BYTES", 1_000_000)
    monkeypatch.setattr(readers, "MOST_UNPACKED", 20)
    monkeypatch.setattr(excel, "BLOCK_CELLS", 50_000)
    wide = [[f"c{j}" for j in range(400)], *([None] * 399 + [1.0] for _ in range(600))]
    path = workbook(tmp_path / "d.xlsx", wide)
    blocks = open_table(path, ReadOptions()).blocks()
    assert next(blocks).size <= 50_400
    with pytest.raises(TableError, match="REFKERNEL_MOST_UNPACKED"):
        list(blocks)


def test_names_that_repeat_are_numbered_in_time_that_grows_with_their_number():
    """By what it costs: 50,000 equal names would take 1.25e9 texts one after the other."""
    notes = []
    found = checked_names(["a", "a (3)", *["a"] * 50_000], notes)
    assert len(set(found)) == 50_002
    assert found[:5] == ["a", "a (3)", "a (2)", "a (4)", "a (5)"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_an_endless_line_is_refused_before_it_fills_the_memory(ending, tmp_path, monkeypatch):
    monkeypatch.setenv("REFKERNEL_MOST_LINE_BYTES", "3000000")
    text = b"x,y\n1,2\n3," + b"4" * 40_000_000
    (tmp_path / f"d.{ending}").write_bytes(text if ending == "csv" else gzip.compress(text, 1))
    tracemalloc.start()
    with pytest.raises(TableError, match=r"line 3: longer than 3,000,000 bytes.* REFKERNEL_MOST_LINE_BYTES"):
        read_whole(open_table(tmp_path / f"d.{ending}", ReadOptions()))
    assert tracemalloc.get_traced_memory()[1] < 30_000_000
    tracemalloc.stop()
