"""Dask collections: the same answer as on one machine, whatever the partitions, and lazy results."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import refkernel as rk

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

N = 40_000


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(N, 4)) + 3.0


@pytest.fixture(scope="module")
def model(X):
    return rk.SVDD(rk.ReferenceKernel(references=X[::1000]), nu=0.05)


def unknown(X):
    """Partitions of unknown and unequal lengths, one of them empty."""
    parts = [X[:5000], X[5000:5000], X[5000:25_000], X[25_000:]]
    delayed = [da.from_delayed(dask.delayed(part), (np.nan, X.shape[1]), X.dtype) for part in parts]
    return da.concatenate(delayed)


def frame(X):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    return dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=5)


COLLECTIONS = {
    "rows": lambda X: da.from_array(X, chunks=(7000, 4)),
    "columns": lambda X: da.from_array(X, chunks=(9000, 2)),
    "unknown": unknown,
    "frame": frame,
}


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_partitions_do_not_change_the_answer(X, model, kind):
    rows = COLLECTIONS[kind](X)
    expected = model.fit(X).decision_function(X)
    found = model.fit(rows)
    assert found.duality_gap_ <= 1e-6
    np.testing.assert_allclose(found.decision_function(X), expected, atol=1e-8)
    lazy = found.decision_function(rows)
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), expected, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.int16, np.float32, object])
def test_partitions_of_integers_and_objects_are_numbers(X, model, dtype):
    whole = np.round(4.0 * X)
    expected = model.fit(whole).decision_function(whole)
    found = model.fit(da.from_array(whole.astype(dtype), chunks=(7000, 4)))
    np.testing.assert_allclose(found.decision_function(whole), expected, atol=1e-8)


def test_residuals_of_a_collection_are_those_of_its_rows(X):
    detector = rk.ReferenceResidual("rbf", X[::1000], nu=0.05)
    expected = detector.fit(X).decision_function(X)
    found = detector.fit(unknown(X)).decision_function(unknown(X))
    np.testing.assert_allclose(found.compute(), expected, atol=1e-12)


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_results_are_lazy_and_those_of_the_rows(X, model, kind):
    rows = COLLECTIONS[kind](X)
    fitted = model.fit(X)
    for function in (fitted.predict, fitted.score_samples, fitted.decision_function):
        lazy = function(rows)
        assert isinstance(lazy, da.Array)
        np.testing.assert_array_equal(lazy.compute(), function(X))
    features = fitted.kernel_.fit(X)
    mapped = rk.ReferenceMap(references=X[::1000]).fit(X).transform(rows)
    np.testing.assert_allclose(mapped.compute(), features._features(X), atol=1e-12)


def test_labels_and_weights_may_be_dask_arrays(X, model):
    rng = np.random.default_rng(1)
    weight, y = rng.uniform(0.5, 2.0, N), np.where(rng.random(N) < 0.01, -1, 1)
    expected = model.fit(X, y, sample_weight=weight).decision_function(X)
    chunks = da.from_array(X, chunks=(7000, 4))
    found = model.fit(chunks, da.from_array(y, chunks=7000), sample_weight=da.from_array(weight, chunks=7000))
    np.testing.assert_allclose(found.decision_function(X), expected, atol=1e-8)


def test_a_pipeline_of_scaler_map_and_classifier(X):
    steps = rk.TargetScaler(), rk.ReferenceMap(references=rk.references.Subset(30), random_state=0), rk.OneClassSVM("linear", nu=0.05)
    rows = unknown(X)
    pipeline = make_pipeline(*steps).fit(rows)
    np.testing.assert_allclose(steps[0].mean_, X.mean(axis=0), rtol=1e-12)
    labels = pipeline.predict(rows)
    assert isinstance(labels, da.Array)
    np.testing.assert_array_equal(labels.compute(), pipeline.predict(X))


def test_auto_detector_learns_from_a_sample(X):
    rows = da.from_array(X[:4000], chunks=(1500, 4))
    detector = rk.AutoDetector().fit(rows)
    labels = detector.predict(rows)
    assert isinstance(labels, da.Array)
    np.testing.assert_array_equal(labels.compute(), rk.AutoDetector().fit(X[:4000]).predict(X[:4000]))


def test_a_missing_value_in_a_partition_is_named_by_its_row(X, model):
    spoilt = X.copy()
    spoilt[30_001, 1] = np.inf
    with pytest.raises(ValueError, match="Row 30,001 holds inf in column 1"):
        model.fit(da.from_array(spoilt, chunks=(7000, 4)))


def test_complex_and_masked_cells_of_a_partition_are_refused(X, model):
    rows = da.from_array(X[:3000], chunks=(1000, 4))
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.fit(rows + 1j)
    with pytest.raises(ValueError, match="holds nan"):
        model.fit(da.ma.masked_greater(rows, X[2500].max()))


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        yield client


def test_a_worker_that_dies_costs_time_and_not_the_answer(X, model, cluster, monkeypatch):
    from refkernel.large.smoothed_newton import Search

    expected = model.fit(X).decision_function(X)
    usual, killed = Search._pass, []

    def deadly(self, function, *state):
        if self.n == N and self.passes == 1 and not killed:  # between two passes over all rows
            killed.append(next(iter(cluster.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        return usual(self, function, *state)

    monkeypatch.setattr(Search, "_pass", deadly)
    found = model.fit(da.from_array(X, chunks=(5000, 4)))
    assert killed
    np.testing.assert_allclose(found.decision_function(X), expected, atol=1e-6)


def test_a_dask_data_frame_is_refused_by_a_table_detector_with_a_way_out():
    pd = pytest.importorskip("pandas")
    frame = pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame({"a": [1.0, 2.0, 3.0] * 9}), npartitions=2)
    with pytest.raises(TypeError, match=r"Dask data frame.*X\.compute\(\)"):
        rk.TableDetector().fit(frame)
