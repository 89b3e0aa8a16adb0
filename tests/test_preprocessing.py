"""TargetScaler: standardise by the targets, drop what is constant in them."""

import statistics

import numpy as np
import pandas as pd
import pytest
from sklearn.base import OneToOneFeatureMixin

import refkernel as rk

every_seed = pytest.mark.parametrize("seed", [0, 1, 2])


@every_seed
def test_targets_have_mean_zero_and_deviation_one_with_n_minus_1(seed, samples):
    """Mean and deviation (ddof = 1) of the targets alone scale all rows, by the standard library's own formulas."""
    X, y = samples(30, 3, seed, offset=5.0), np.where(np.arange(30) % 3 == 0, -1, 1)
    out = rk.TargetScaler().fit(X, y).transform(X)
    for j in range(3):
        column = X[y == 1, j].tolist()
        expected = (X[:, j] - statistics.fmean(column)) / statistics.stdev(column)
        np.testing.assert_allclose(out[:, j], expected, rtol=1e-10, atol=1e-12)


@every_seed
def test_without_labels_all_rows_are_targets(seed, samples):
    """y=None standardises by every row."""
    out = rk.TargetScaler().fit_transform(samples(20, 4, seed))
    np.testing.assert_allclose(out.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(out.std(axis=0, ddof=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 7.0, 0.1, 1e300, 1e-300, -3e8])
def test_features_constant_in_the_targets_are_dropped(value, samples):
    """A feature that only outliers vary is dropped, whatever its value; the kept ones are told and named."""
    X, y = samples(20, 3, 0), np.repeat([1, -1], [15, 5])
    X[y == 1, 1] = value
    scaler = rk.TargetScaler().fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert scaler.kept_.tolist() == [True, False, True]
    assert scaler.get_feature_names_out().tolist() == ["a", "c"]
    assert scaler.mean_.shape == scaler.scale_.shape == (2,)
    expected = rk.TargetScaler().fit(X[:, [0, 2]], y).transform(X[:, [0, 2]])
    np.testing.assert_array_equal(scaler.transform(pd.DataFrame(X, columns=["a", "b", "c"])), expected)


def test_a_feature_that_varies_little_is_kept(samples):
    """Small is not constant: a deviation of 1e-9 of the value is information."""
    X = samples(20, 2, 0)
    X[:, 1] = 1.0 + 1e-9 * X[:, 1]
    assert rk.TargetScaler().fit(X).kept_.tolist() == [True, True]


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e150, 1e300])
def test_scaling_is_free_of_units(unit, quiet, samples):
    """Data in any unit come out the same, without overflow."""
    X = samples(20, 3, 0)
    X /= np.abs(X).max()
    out = quiet(rk.TargetScaler().fit_transform, X * unit)
    np.testing.assert_allclose(out, rk.TargetScaler().fit_transform(X), rtol=1e-9, atol=1e-12)


def test_float32_stays_float32_and_is_computed_in_double(samples):
    """The input's precision is kept; mean and deviation are those of the doubles."""
    X = samples(500, 2, 0, offset=1000.0).astype(np.float32)
    out = rk.TargetScaler().fit_transform(X)
    assert out.dtype == np.float32
    assert rk.TargetScaler().fit(X).inverse_transform(out).dtype == np.float32
    # the input is known to 6e-5 (1000 · 2^-24), the deviations are about 1
    np.testing.assert_allclose(out, rk.TargetScaler().fit_transform(X.astype(float)), rtol=0, atol=1e-5)


def test_set_output_gives_named_columns(samples):
    """pandas output carries the names of the kept features."""
    X = pd.DataFrame(samples(10, 2, 0), columns=["a", "b"]).assign(constant=1.0)
    out = rk.TargetScaler().set_output(transform="pandas").fit_transform(X)
    assert list(out.columns) == ["a", "b"]


def test_fit_leaves_the_data_alone(samples):
    """Neither fit nor transform writes into X."""
    X = samples(10, 2, 0)
    before = X.copy()
    rk.TargetScaler().fit_transform(X)
    np.testing.assert_array_equal(X, before)


@every_seed
@pytest.mark.parametrize("constant", [0.0, 0.1, -1.7e308])
def test_inverse_transform_gives_the_targets_back_with_every_feature(seed, constant, samples):
    """Kept features return to their units; dropped ones to the value that all targets have, bit for bit."""
    X, y = samples(20, 4, seed, offset=5.0), np.repeat([1, -1], [15, 5])
    X[:, [1, 3]] = constant, 7.0
    X[y == -1, 1] = 3.0
    scaler = rk.TargetScaler().fit(X, y)
    found = scaler.inverse_transform(scaler.transform(X))
    np.testing.assert_allclose(found[:, [0, 2]], X[:, [0, 2]], rtol=1e-12)
    np.testing.assert_array_equal(found[y == 1][:, [1, 3]], X[y == 1][:, [1, 3]])
    np.testing.assert_array_equal(scaler.constants_, [constant, 7.0])


def test_inverse_transform_refuses_samples_that_transform_cannot_have_made(samples):
    X = samples(10, 3, 0)
    X[:, 1] = 1.0
    with pytest.raises(ValueError, match=r"X has 3 features; inverse_transform expects the 2 that transform returns"):
        rk.TargetScaler().fit(X).inverse_transform(X)


def test_a_scaler_that_drops_features_does_not_claim_one_to_one_names():
    assert not isinstance(rk.TargetScaler(), OneToOneFeatureMixin)
