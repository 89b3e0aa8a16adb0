"""The compiled Gaussian: its powers of 2 against exact arithmetic, its sums and matrices against naive formulas."""

import decimal
import math

import numpy as np
import pytest

import refkernel as rk
from refkernel._core import gaussian as _gaussian

decimal.getcontext().prec = 40


def units_off(t):
    """The distance of ``powers`` from exact values, in units in the last place of these."""
    exact = [decimal.Decimal(2) ** decimal.Decimal(float(v)) for v in t]
    found = _gaussian.powers(t.copy())
    return [abs(decimal.Decimal(float(f)) - e) / decimal.Decimal(math.ulp(float(e))) for f, e in zip(found, exact, strict=True)]


@pytest.mark.parametrize("most", [1e-8, 1.0, 40.0, 1021.0])
def test_powers_are_within_two_units_in_the_last_place(most):
    """For arguments of every size that occurs, and at the ends of the intervals that the series covers."""
    rng = np.random.default_rng(0)
    halves = -np.arange(1000) - 0.5
    t = np.concatenate([-most * rng.random(4000), halves, np.nextafter(halves, 0.0), np.nextafter(halves, -np.inf)])
    assert max(units_off(t)) <= 2


@pytest.mark.parametrize("before", [0, 1, 2, 9])
def test_powers_end_where_they_should(before):
    """Exactly 1 at 0; exactly 0 far out, for infinite distances and for the difference of two overflows, wherever they stand."""
    ends = np.array(before * [-3.0] + [0.0, -0.0, 1e-300, 1e-13, np.inf, -1021.0, -1022.0, -1e6, -1e308, -np.inf, np.nan])
    np.testing.assert_array_equal(_gaussian.powers(ends), before * [0.125] + 5 * [1.0] + 6 * [0.0])


def test_powers_of_integers_are_exact_and_larger_steps_never_grow():
    """2^-k is a float for every k that is not cut off. Neighbouring floats may be out of order by rounding, but not steps of 0.01."""
    integers = -np.arange(1021.0)
    np.testing.assert_array_equal(_gaussian.powers(integers.copy()), np.ldexp(1.0, integers.astype(int)))
    curve = _gaussian.powers(-np.linspace(0.0, 1030.0, 100_001))
    assert (curve >= 0.0).all()
    assert (np.diff(curve) <= 0.0).all()


def test_exponentials_are_those_of_the_formula():
    """In place, in any memory order: within 1e-14, as an exponent of up to 40 is rounded to 7e-15."""
    t = -40.0 * np.random.default_rng(0).random((7, 5))
    t[2, 3] = -np.inf
    for given in (t.copy(), np.asfortranarray(t), np.pad(t, 1)[1:-1, 1:-1]):
        np.testing.assert_allclose(_gaussian.exponentials(given.copy(order="K")), np.exp(t), rtol=1e-14)
        np.testing.assert_allclose(_gaussian.exponentials(given), np.exp(t), rtol=1e-14)
    in_place = t.copy()
    assert _gaussian.exponentials(in_place) is in_place


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, float, int])
def test_widths_of_any_type_are_computed_in_double_precision(kind):
    """A width of 3 is the same number in every type: so are all values, to the bit."""
    rng = np.random.default_rng(0)
    X, Z, sigma = rng.normal(size=(30, 4)), rng.normal(size=(20, 4)), kind(3)
    for value in (
        lambda s: rk.RBF(sigma=s)(X),
        lambda s: rk.RBF(sigma=s)(X, Z),
        lambda s: rk.RBF(sigma=s)._against(Z, 30)(X),
        lambda s: rk.RBF(sigma=s)._of_squared_distances(-(X[:, :3] ** 2)),
        lambda s: _gaussian.sums(X, Z, s, np.ones(20)),
        lambda s: rk.ReferenceMap(rk.RBF(sigma=s), references=Z).fit(X).transform(X),
    ):
        np.testing.assert_array_equal(value(sigma), value(3.0))


@pytest.mark.parametrize("sigma", [1e-300, 1e300, 1.7e308])
def test_widths_near_the_ends_of_doubles_give_the_formula(sigma):
    """Distances of about a width, whatever its size: no overflow or underflow on the way."""
    U = np.random.default_rng(0).normal(size=(12, 3)) / 10.0
    expected = np.exp(-((U[:, None] - U[None]) ** 2).sum(axis=2) / 2.0)
    np.testing.assert_allclose(rk.RBF(sigma=sigma)(U * sigma), expected, rtol=1e-13)
    np.testing.assert_allclose(_gaussian.sums(U * sigma, U * sigma, sigma, np.ones(12)), expected.sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 3), (33, 4), (70, 5), (130, 32)])
def test_matrices_are_those_of_the_formula(n, d):
    """A diagonal of ones, and the naive value within rounding."""
    X = np.random.default_rng(n).normal(size=(n, d)) + 100.0
    K = rk.RBF(sigma=2.0)(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    np.testing.assert_allclose(K, np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 8.0), rtol=1e-12)


@pytest.mark.parametrize(("m", "d"), [(1, 1), (8, 2), (9, 7), (600, 4), (1030, 3)])
def test_sums_are_those_of_the_formula_and_do_not_depend_on_other_rows(m, d):
    """Landmarks in one chunk and in several: the naive sum within rounding, bit for bit the same alone and among others."""
    rng = np.random.default_rng(m)
    X, Z, weights = rng.normal(size=(40, d)), rng.normal(size=(m, d)), rng.random(m)
    found = _gaussian.sums(X, Z, 1.5, weights)
    np.testing.assert_allclose(found, np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2) / 4.5) @ weights, rtol=1e-12)
    for i in (0, 17, 39):
        np.testing.assert_array_equal(_gaussian.sums(X[i : i + 1], Z, 1.5, weights), found[i : i + 1])
    np.testing.assert_array_equal(_gaussian.sums(X[5:30], Z, 1.5, weights), found[5:30])


def test_sums_in_threads_are_those_of_one(monkeypatch):
    """Rows shared between threads get the same bits."""
    rng = np.random.default_rng(0)
    X, Z, weights = rng.normal(size=(300, 3)), rng.normal(size=(50, 3)), rng.random(50)
    alone = _gaussian.sums(X, Z, 1.0, weights)
    monkeypatch.setattr(_gaussian, "MANY_ENTRIES", 1)
    np.testing.assert_array_equal(_gaussian.sums(X, Z, 1.0, weights), alone)


@pytest.mark.parametrize(("m", "d", "rank"), [(1, 1, 1), (7, 3, 5), (100, 10, 1), (100, 10, 99), (130, 2, 129), (300, 40, 60)])
def test_features_are_those_of_the_formula_and_do_not_depend_on_other_rows(m, d, rank):
    """Blocks of several sizes: the naive product within rounding, and bit for bit the same alone, in any place and among others."""
    rng = np.random.default_rng(m)
    X, Z, P = rng.normal(size=(1000, d)) + 3.0, rng.normal(size=(m, d)) + 3.0, rng.normal(size=(m + 1, rank))
    kernel = rk.RBF(sigma=1.5)
    found = kernel._products(X, Z, P, np.empty((1000, rank)))
    K = np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2) / 4.5)
    np.testing.assert_allclose(found, np.column_stack([K, np.ones(1000)]) @ P, rtol=1e-12, atol=1e-12 * np.abs(P).sum(axis=0).max())
    for part in (slice(0, 1), slice(17, 18), slice(999, 1000), slice(5, 801), slice(50, 97)):
        np.testing.assert_array_equal(kernel._products(X[part], Z, P, np.empty_like(found[part])), found[part])


def test_features_go_wherever_an_array_can_be_written():
    """An output that is not aligned gets all values; one that is read-only is refused and stays as it is."""
    rng = np.random.default_rng(0)
    X, Z, P = rng.normal(size=(300, 3)), rng.normal(size=(20, 3)), rng.normal(size=(21, 4))
    kernel, expected = rk.RBF(sigma=1.0), np.empty((300, 4))
    kernel._products(X, Z, P, expected)
    unaligned = np.zeros(300 * 4 * 8 + 1, dtype=np.uint8)[1:].view(np.float64).reshape(300, 4)
    np.testing.assert_allclose(kernel._products(X, Z, P, unaligned), expected, rtol=0, atol=1e-13)  # sums of 21 terms of size 1
    frozen = np.zeros((300, 4))
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernel._products(X, Z, P, frozen)
    assert not frozen.any()


def test_a_kernel_that_overrides_rbf_keeps_its_own_features():
    """A subclass that redefines ``_against`` is mapped by its own values."""

    class Half(rk.RBF):
        def _against(self, Z, rows):
            values = super()._against(Z, rows)

            def halved(X):
                K = values(X)
                K[:, :-1] *= 0.5
                return K

            return halved

    X, P = np.random.default_rng(0).normal(size=(30, 2)), np.eye(6)[:, :5]
    half, whole = (k._products(X, X[:5], P, np.empty((30, 5))) for k in (Half(sigma=1.0), rk.RBF(sigma=1.0)))
    np.testing.assert_allclose(half, 0.5 * whole, rtol=1e-12)


def test_features_of_rows_that_overflow_are_those_of_a_far_row():
    """All kernel values of such a row are 0, and only the constant is left: neither NaN nor infinite."""
    Z, P = np.eye(3), np.arange(8.0).reshape(4, 2)
    X = np.array([[1e200, 0.0, 0.0], [-1e308, 1e308, 0.0], [0.0, 0.0, 50.0]])
    found = rk.RBF(sigma=1.0)._products(X, Z, P, np.empty((3, 2)))
    np.testing.assert_array_equal(found, np.tile(P[-1], (3, 1)))


def test_sums_of_rows_with_other_columns_are_refused():
    """Compiled code is never reached with shapes that do not fit."""
    with pytest.raises(ValueError, match=r"X has shape \(3, 2\)"):
        _gaussian.sums(np.zeros((3, 2)), np.zeros((4, 3)), 1.0, np.ones(4))
    with pytest.raises(ValueError, match=r"weights \(5,\)"):
        _gaussian.sums(np.zeros((3, 3)), np.zeros((4, 3)), 1.0, np.ones(5))


@pytest.mark.parametrize("d", [_gaussian.MOST_COLUMNS, _gaussian.MOST_COLUMNS + 1])
def test_few_and_many_features_give_one_kernel(d):
    """The compiled pass and the product by BLAS agree within the kernel's precision."""
    rng = np.random.default_rng(d)
    X, Z, weights = rng.normal(size=(20, d)), rng.normal(size=(30, d)), rng.random(30)
    kernel = rk.RBF(sigma=5.0)
    np.testing.assert_allclose(kernel._sums(X, Z, weights), kernel(X, Z) @ weights, rtol=kernel._precision)
    np.testing.assert_allclose(kernel(X), kernel(X, X.copy()), rtol=kernel._precision)
