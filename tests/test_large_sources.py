"""Rows that are read in blocks: the same answer as in memory, in bounded memory, and a message for everything unusable."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import refkernel as rk
from refkernel.large import rows
from refkernel.large.source import ArraySource, Source

N = 36_000


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(N, 4)) * [1.0, 2.0, 0.5, 1.0] + 3.0


@pytest.fixture(scope="module")
def references(X):
    return X[::900]


def as_blocks(X, sizes):
    ends = np.cumsum(sizes)
    return lambda: (X[end - size : end] for size, end in zip(sizes, ends, strict=True))


UNEQUAL = [1, 0, 20_000, 7_000, 0, N - 27_001]


def opened(kind, X, folder):
    if kind == "array":
        return rk.sources.open_source(X)
    if kind == "unequal blocks":
        return rk.sources.open_source(as_blocks(X, UNEQUAL))
    if kind == "list":
        return rk.sources.open_source([X[:100], X[100:]])
    if kind == "memmap":
        mapped = np.memmap(folder / "rows.bin", dtype=np.float64, mode="w+", shape=X.shape)
        mapped[:] = X
        return mapped
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parts = [X] if kind == "parquet file" else [X[:10_000], X[10_000:]]
    for number, part in enumerate(parts):
        table = pa.table({name: part[:, j] for j, name in enumerate("abcd")})
        parquet.write_table(table, folder / f"part{number}.parquet", row_group_size=5000)
    return rk.sources.open_source(folder / "part0.parquet" if kind == "parquet file" else folder)


KINDS = ["array", "unequal blocks", "list", "memmap", "parquet file", "parquet folder"]


@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
@pytest.mark.parametrize("kind", KINDS)
def test_a_source_gives_the_decisions_of_an_array(X, references, tmp_path, kind, make):
    model = make(rk.ReferenceKernel(references=references, center=make is rk.SVDD), nu=0.05, memory=1e-3)
    found = model.fit(opened(kind, X, tmp_path))
    expected = make(rk.ReferenceKernel(references=references, center=make is rk.SVDD), nu=0.05).fit(X)
    assert found.duality_gap_ <= 1e-6
    size = np.abs(expected.score_samples(X)).max()
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), rtol=0.0, atol=1e-8 * size)
    assert np.isin(found.support_, expected.support_).all()
    np.testing.assert_array_equal(found.support_vectors_, X[found.support_])


NO_ROOM = type("Usage", (), {"free": 10})


@pytest.mark.parametrize(("memory", "has_disk"), [(1000.0, True), (1.0, True), (1.0, False)])
def test_where_features_stay_does_not_change_the_answer(X, references, monkeypatch, memory, has_disk):
    expected = rk.SVDD(rk.ReferenceKernel(references=references)).fit(X)
    if not has_disk:
        monkeypatch.setattr("shutil.disk_usage", lambda path: NO_ROOM)
    monkeypatch.setattr("refkernel.large.source.room_for", lambda n, r, _: rows.room_for(n, r, memory))
    monkeypatch.setattr(rows, "HELD_ENTRIES", 1 << 14)
    found = rk.SVDD(rk.ReferenceKernel(references=references), memory=1.0).fit(X)
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-10)
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_allclose(found.dual_coef_, expected.dual_coef_, atol=1e-9)


def test_memory_and_the_disk_decide_where_features_stay(monkeypatch):
    assert type(rows.room_for(100_000, 100, 1000)) is np.ndarray
    assert type(rows.room_for(100_000, 100, 1)) is np.memmap
    monkeypatch.setattr("shutil.disk_usage", lambda path: NO_ROOM)
    assert rows.room_for(100_000, 100, 1) is None


FULL_DISK = """
import resource, sys
import numpy as np, refkernel as rk
X = np.random.default_rng(0).normal(size=(40_000, 4))
model = rk.SVDD(rk.ReferenceKernel(references=X[::900]), memory=1.0)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
print("fitted", model.fit(X).duality_gap_ <= 1e-6)
"""


@pytest.mark.parametrize("most", [1 << 20, 1 << 24])
@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system cannot reserve room for a file")
def test_a_disk_that_is_full_stops_no_fit_and_no_file_is_left(tmp_path, most):
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FULL_DISK, str(most)], env=environment, capture_output=True, text=True)
    assert run.stdout.strip() == "fitted True", run.stderr
    assert not list(tmp_path.iterdir())


def test_weights_and_known_outliers_count_as_in_memory(X, references):
    rng = np.random.default_rng(1)
    weight, y = rng.uniform(0.5, 2.0, N), np.where(rng.random(N) < 0.01, -1, 1)
    for negatives in ("ignore", "repel"):
        model = rk.SVDD(rk.ReferenceKernel(references=references), nu=0.05, negatives=negatives)
        found = model.fit(rk.sources.open_source(as_blocks(X, UNEQUAL)), y, sample_weight=weight).decision_function(X)
        expected = model.fit(X, y, sample_weight=weight).decision_function(X)
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_a_pipeline_reads_its_source_through_every_step(X):
    steps = rk.TargetScaler(), rk.ReferenceMap(references=rk.references.KMeans(30), random_state=0), rk.SVDD("linear", nu=0.05)
    pipeline = make_pipeline(*steps).fit(rk.sources.open_source(as_blocks(X, UNEQUAL)))
    scaler = rk.TargetScaler().fit(X)
    np.testing.assert_allclose(steps[0].mean_, scaler.mean_, rtol=1e-12)
    np.testing.assert_allclose(steps[0].scale_, scaler.scale_, rtol=1e-12)
    assert isinstance(steps[1].transform(rk.sources.open_source(X)), Source)
    source_labels = pipeline.predict(rk.sources.open_source(as_blocks(X, UNEQUAL)))
    np.testing.assert_array_equal(source_labels, pipeline.predict(X))
    assert np.mean(source_labels == -1) <= 0.05


def test_blocks_in_single_precision_and_integers_are_taken(X, references):
    model = rk.SVDD(rk.ReferenceKernel(references=references), nu=0.05)
    whole = np.round(4.0 * X)
    expected = model.fit(whole).decision_function(X)
    for dtype in (np.float32, np.int16, object):
        found = model.fit(rk.sources.open_source(as_blocks(whole.astype(dtype), UNEQUAL))).decision_function(X)
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_references_of_a_source_are_rows_of_it(X):
    model = rk.ReferenceMap(references=rk.references.Subset(25), random_state=0).fit(rk.sources.open_source(X))
    np.testing.assert_array_equal(model.references_, X[model.reference_indices_])


def test_a_missing_value_is_named_by_its_row(X):
    spoilt = X.copy()
    spoilt[31_234, 2] = np.nan
    with pytest.raises(ValueError, match="Row 31,234 holds nan in column 2"):
        rk.SVDD(rk.ReferenceKernel(references=X[:20])).fit(rk.sources.open_source(as_blocks(spoilt, UNEQUAL)))


def test_a_text_among_the_numbers_is_named_by_its_row(X):
    spoilt = X[:200].astype(object)
    spoilt[150, 1] = "n/a"
    with pytest.raises(ValueError, match="Row 150 holds 'n/a' in column 1"):
        rk.TargetScaler().fit(rk.sources.open_source([spoilt[:100], spoilt[100:]]))


def test_an_iterator_that_can_be_read_once_is_refused(X):
    with pytest.raises(ValueError, match="generator can be read only once"):
        rk.sources.open_source(X[i : i + 1000] for i in range(0, N, 1000))
    blocks = iter([X[:100], X[100:]])
    with pytest.raises(ValueError, match="must give the same rows every time"):
        rk.TargetScaler().fit(rk.sources.open_source(lambda: blocks))


def test_blocks_of_other_widths_are_refused(X):
    with pytest.raises(ValueError, match=r"from row 100 on has shape \(5, 3\)"):
        rk.TargetScaler().fit(rk.sources.open_source([X[:100], X[:5, :3]]))


def test_text_columns_of_a_parquet_file_are_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": [1.0, 2.0], "city": ["x", "y"]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"Column 'city' .* holds string"):
        rk.sources.open_source(tmp_path / "t.parquet")
    assert rk.sources.open_source(tmp_path / "t.parquet", columns=["a"]).shape == (2, 1)
    with pytest.raises(ValueError, match="no column 'b'"):
        rk.sources.open_source(tmp_path / "t.parquet", columns=["b"])


def test_a_plain_kernel_says_what_a_source_needs(X):
    with pytest.raises(ValueError, match="need a kernel with explicit features"):
        rk.SVDD("rbf").fit(rk.sources.open_source(X))
    with pytest.raises(ValueError, match=r'threshold="loo" .* needs X in memory'):
        rk.SVDD("linear", threshold="loo").fit(rk.sources.open_source(X))


def test_arrays_with_slices_are_read_in_slices(X, references):
    class OnDisk:
        """As Zarr and HDF5 arrays are: a shape, a dtype, slices."""

        def __init__(self, rows):
            self._rows, self.shape, self.dtype, self.largest = rows, rows.shape, rows.dtype, 0

        def __getitem__(self, part):
            found = self._rows[part]
            self.largest = max(self.largest, len(found))
            return found

    array = OnDisk(X)
    source = rk.sources.open_source(array)
    assert isinstance(source, ArraySource)
    found = rk.SVDD(rk.ReferenceKernel(references=references)).fit(source)
    expected = rk.SVDD(rk.ReferenceKernel(references=references)).fit(X)
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_residuals_of_a_source_are_those_of_its_rows(X, references, tmp_path, kind):
    """Given references, nothing depends on the sample: scores and threshold are those of the array."""
    y = np.where(np.arange(N) % 50 == 0, -1, 1)
    detector = rk.ReferenceResidual("rbf", references, nu=0.05)
    array = detector.fit(X, y)
    offset, scores = array.offset_, array.score_samples(X)
    source = opened(kind, X, tmp_path)
    read = detector.fit(source, y)
    assert read.offset_ == pytest.approx(offset, abs=1e-12)  # the slack for rounding is a share of a median over a sample
    np.testing.assert_allclose(read.score_samples(source), scores, atol=1e-12)
    np.testing.assert_array_equal(read.predict(source), read.predict(X))


def test_residuals_reject_their_share_of_a_source_and_keep_its_row_numbers(X):
    detector = rk.ReferenceResidual(references="subset", nu=0.05, random_state=0).fit(rk.sources.open_source(as_blocks(X, UNEQUAL)))
    indices = detector.map_.reference_indices_
    np.testing.assert_array_equal(detector.map_.references_, X[indices])
    held_out = np.setdiff1d(np.arange(N), indices)
    np.testing.assert_array_equal(detector.held_out_, held_out)
    rejected = np.mean(detector.predict(X[held_out]) == -1)
    assert 0.05 - 2 / held_out.size <= rejected <= 0.05


def test_complex_numbers_are_refused_as_for_arrays(X):
    """Their imaginary part was cut off."""
    model = rk.SVDD(rk.ReferenceKernel(references=X[:20]))
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.fit(X[:100] + 1j)
    for source in (rk.sources.open_source(X + 1j), rk.sources.open_source([X[:100], X[100:200] + 1j])):
        with pytest.raises(ValueError, match="Complex data not supported"):
            model.fit(source)


def test_masked_cells_are_missing_cells(X):
    """In a source, and in an array in memory; what is behind the mask is not used."""
    masked = np.ma.MaskedArray(X, mask=np.zeros(X.shape, dtype=bool))
    masked[150, 2] = np.ma.masked
    with pytest.raises(ValueError, match="Row 150 holds nan in column 2"):
        rk.TargetScaler().fit(rk.sources.open_source([masked[:100], masked[100:]]))
    with pytest.raises(ValueError, match="Row 150 holds nan in column 2"):
        rk.TargetScaler().fit(rk.sources.open_source(masked))
    for model in (rk.TargetScaler(), rk.SVDD("linear"), rk.ReferenceResidual()):
        with pytest.raises(ValueError, match=r"contains NaN: column 2 \(1 of 200 rows\)"):
            model.fit(masked[:200])
    assert rk.SVDD("linear").fit(masked[:100]).predict(X[:5]).shape == (5,)  # nothing is masked


def test_every_c_of_at_least_one_gives_one_model_of_a_source(X):
    """Bounds that the sum of the weights puts out of reach change nothing."""
    kernel = rk.ReferenceKernel(references=X[:20])
    one, many = (rk.SVDD(kernel, C=C).fit(rk.sources.open_source(X)).decision_function(X[:500]) for C in (1.0, 1e10))
    np.testing.assert_allclose(one, many, atol=1e-8 * np.abs(one).max())
