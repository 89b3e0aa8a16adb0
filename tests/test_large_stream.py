"""Streams: exact over all rows seen, in bounded memory, with a certificate that counts what was forgotten."""

from __future__ import annotations

import numpy as np
import pytest

import refkernel as rk

N = 6000


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(N, 3))


def stream_of(make, X, **params):
    kernel = rk.ReferenceKernel(references=X[:30], center=make is rk.SVDD)
    return rk.StreamDetector(make(kernel, nu=0.0701), random_state=0, **params)


def seen(stream, X, step=500):
    for start in range(0, len(X), step):
        stream.partial_fit(X[start : start + step])
    return stream


@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
def test_a_stream_that_holds_all_rows_is_the_fit_of_them(X, make):
    stream = seen(stream_of(make, X, checkpoint=N), X)
    expected = stream.estimator.fit(X)
    assert stream.forgotten_gap_ == 0.0
    size = np.abs(expected.score_samples(X)).max()
    np.testing.assert_allclose(stream.decision_function(X), expected.decision_function(X), rtol=0.0, atol=1e-8 * size)


@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
def test_a_small_checkpoint_gives_the_fit_of_all_rows_to_its_certificate(X, make):
    stream = seen(stream_of(make, X, checkpoint=1500), X)
    expected = stream.estimator.fit(X)
    assert stream.n_held_ == 1500
    assert stream.n_seen_ == N
    assert stream.duality_gap_ < 1e-3
    size = np.abs(expected.score_samples(X)).max()
    np.testing.assert_allclose(stream.decision_function(X), expected.decision_function(X), rtol=0.0, atol=0.01 * size)


@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_is_never_better_than_the_truth(seed):
    """After a drift, forgotten rows may be at the wrong bound: the gap computed with all rows must not exceed the certificate."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(2000, 3)), rng.normal(size=(2000, 3)) + np.array([1.0, 0.0, 0.0])])
    stream = seen(stream_of(rk.SVDD, X, checkpoint=600), X, step=400)
    Phi = stream.kernel_.features(X)
    diag = np.einsum("ij,ij->i", Phi, Phi)
    # weights of all rows: those of held rows, and the bound of their side for forgotten ones
    u = 1.0 / (0.0701 * len(X))
    held = stream._number
    w, G = stream._w, Phi @ stream._w - 0.5 * diag
    primal = 0.5 * w @ w - stream._rho + u * np.maximum(stream._rho - G, 0.0).sum()
    outside = [group for group in stream._groups if not group.inside]
    linear = -0.5 * (stream._b @ diag[held] + u * sum(group.diag for group in outside))
    dual = 0.5 * w @ w + linear
    sizes = -2.0 * linear
    assert (primal + dual) / (0.5 * abs(sizes - w @ w)) <= stream.duality_gap_ * (1.0 + 1e-6) + 1e-9


def test_a_window_is_the_fit_of_the_last_rows(X):
    stream = seen(stream_of(rk.SVDD, X, checkpoint=N), X).forget(window=2000)
    expected = stream.estimator.fit(X[-2000:])
    np.testing.assert_allclose(stream.decision_function(X), expected.decision_function(X), atol=1e-8)


def test_decay_is_a_weight(X):
    stream = stream_of(rk.SVDD, X, checkpoint=N).partial_fit(X[:3000]).forget(decay=0.25).partial_fit(X[3000:])
    expected = stream.estimator.fit(X, sample_weight=np.repeat([0.25, 1.0], 3000))
    np.testing.assert_allclose(stream.decision_function(X), expected.decision_function(X), atol=1e-8)


def test_a_window_forgets_a_drift_and_keeps_its_memory(X):
    shifted = X + np.array([4.0, 0.0, 0.0])
    stream = stream_of(rk.SVDD, np.vstack([X[:15], shifted[:15]]), checkpoint=800)
    for rows in (X, shifted):
        for start in range(0, N, 500):
            stream.partial_fit(rows[start : start + 500]).forget(window=2000)
    assert stream.n_held_ <= 800
    assert len(stream._groups) <= 34
    assert np.mean(stream.predict(shifted) == 1) > 0.85
    assert np.mean(stream.predict(X) == 1) < 0.5


def test_what_a_stream_cannot_take_is_said(X):
    with pytest.raises(ValueError, match="needs a kernel with explicit features"):
        rk.StreamDetector(rk.SVDD()).partial_fit(X)
    with pytest.raises(ValueError, match="checkpoint=1 must be at least 2"):
        stream_of(rk.SVDD, X, checkpoint=1).partial_fit(X)
    stream = stream_of(rk.SVDD, X).partial_fit(X[:100])
    with pytest.raises(ValueError, match="window=0"):
        stream.forget(window=0)
    with pytest.raises(ValueError, match="decay=2"):
        stream.forget(decay=2)


def test_a_missing_value_is_named_by_its_row_in_the_stream_and_changes_nothing(X):
    stream = stream_of(rk.SVDD, X).partial_fit(X[:100])
    expected = stream.decision_function(X)
    spoilt = X[100:200].copy()
    spoilt[41, 2] = np.nan
    with pytest.raises(ValueError, match="Row 141 holds nan in column 2"):
        stream.partial_fit(spoilt)
    assert stream.n_seen_ == 100
    np.testing.assert_array_equal(stream.decision_function(X), expected)
