"""Eigenpairs of tridiagonal matrices, side by side: matrices that are known to be hard, of every scale."""

import numpy as np
import pytest

from refkernel._factor import eigenpairs, tridiagonal_form
from refkernel._factor.lanes import eigenvectors, orthonormalise, smallest_eigenvalues
from refkernel._jit import compiler

EPS = np.finfo(float).eps


def between(rng, m):
    return rng.uniform(size=m - 1)


MATRICES = {
    "random": lambda m, rng: (rng.normal(size=m), rng.normal(size=m - 1)),
    "Clement": lambda m, rng: (np.zeros(m), np.sqrt(np.arange(1, m) * np.arange(m - 1, 0, -1))),
    "Laplace": lambda m, rng: (np.full(m, 2.0), np.full(m - 1, -1.0)),
    "no diagonal": lambda m, rng: (np.zeros(m), between(rng, m)),
    "in parts": lambda m, rng: (rng.normal(size=m), between(rng, m) * (between(rng, m) < 0.7)),
    "falling": lambda m, rng: (10.0 ** -np.linspace(0, 6, m), 10.0 ** -np.linspace(0, 6, m)[1:] * between(rng, m)),
    "rising": lambda m, rng: (10.0 ** np.linspace(-6, 0, m), 10.0 ** np.linspace(-6, 0, m)[:-1] * between(rng, m)),
    "diagonal": lambda m, rng: (np.arange(1.0, m + 1), np.zeros(m - 1)),
}


def matrix(name, m, scale=1.0):
    d, e = MATRICES[name](m, np.random.default_rng(m))
    return scale * d, np.append(scale * e, 1.0), np.diag(d) + np.diag(e, 1) + np.diag(e, -1)


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150, 1e305, 2.0**-1000])
@pytest.mark.parametrize("m", [2, 7, 40, 120])
@pytest.mark.parametrize("name", MATRICES)
def test_eigenpairs_are_those_of_the_dense_matrix(name, m, scale):
    """Below any floor and above it. Errors are a modest multiple of the size of the matrix times rounding, as LAPACK's."""
    d, e, T = matrix(name, m, scale)
    values = np.linalg.eigvalsh(T)
    rounding = 4 * EPS * (m + 10) * np.abs(T).max()
    for count in {0, 1, m // 4, m - 1, m}:
        floor = np.r_[values, values[-1] + 1.0][count]
        floor = 0.5 * (floor + values[count - 1]) if count > 0 else floor
        lam = smallest_eigenvalues(d, e, count, scale * floor) if floor > 0 else scale * values[:count]
        np.testing.assert_allclose(lam / scale, values[:count], rtol=0, atol=rounding)
        for some in (lam, scale * values[count:]):
            V, found = eigenvectors(d, e, some)
            assert found
            assert orthonormalise(V, True)
            np.testing.assert_allclose(V @ T, (some / scale)[:, None] * V, rtol=0, atol=rounding)
            np.testing.assert_allclose(V @ V.T, np.eye(some.size), rtol=0, atol=100 * EPS)


def test_a_matrix_of_one_row():
    """It is its own eigenvalue, and 1 the vector."""
    for value in (0.0, 3e-5):
        np.testing.assert_allclose(smallest_eigenvalues(np.array([value]), np.zeros(1), 1, 1e-3), [value], rtol=0, atol=EPS)
        assert eigenvectors(np.array([value]), np.zeros(1), np.array([value])) == (1.0, True)


def test_eigenvalues_far_below_zero_are_found():
    """A matrix that is not a kernel's: the bracket that suits kernels does not hold its eigenvalues."""
    d, e, T = matrix("random", 50)
    values = np.linalg.eigvalsh(T)
    assert values[10] < -1
    np.testing.assert_allclose(smallest_eigenvalues(d, e, 10, values[10] + 1e-9)[:10], values[:10], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["Wilkinson", "constant", "zero"])
def test_eigenvalues_that_rounding_cannot_tell_apart_are_said_to_be_too_near(name):
    """Wilkinson's matrix has pairs that agree to all digits; of an equal pair each vector may be any of a plane, and both the same."""
    d = {"Wilkinson": np.abs(np.arange(61.0) - 30), "constant": np.ones(61), "zero": np.zeros(61)}[name]
    e = np.full(61, 1.0 if name == "Wilkinson" else 0.0)
    lam = np.linalg.eigvalsh(np.diag(d) + np.diag(e[:-1], 1) + np.diag(e[:-1], -1))
    assert not orthonormalise(eigenvectors(d, e, lam)[0], True)
    assert orthonormalise(eigenvectors(d, e, lam[::2][-20:])[0], True) == (name == "Wilkinson")  # one of each pair


def test_between_two_all_but_equal_eigenvalues_nothing_is_found_and_lapack_helps():
    """Pairs of samples side by side, far from each other: the largest eigenvalue is double, and in every row of the tridiagonal matrix
    much may remain. A vector that is none of the matrix must not pass."""
    X = np.array([[x, y] for x in (0.0, 6.074612859160116) for y in (0.0, 2.0**-12)] + [[1000.0, 0.0], [1100.0, 0.0]])
    for order in np.random.default_rng(0).permuted(np.tile(np.arange(len(X)), (200, 1)), axis=1):
        K = np.exp(-((X[order][:, None] - X[order][None]) ** 2).sum(-1))
        lam, V = eigenpairs(tridiagonal_form(K, 1.5), True, True)
        np.testing.assert_allclose(lam, [2.0, 2.0], atol=1e-7)
        np.testing.assert_allclose(V @ K, lam[:, None] * V, rtol=0, atol=1e-13)
        np.testing.assert_allclose(V @ V.T, np.eye(2), rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", MATRICES)
def test_the_same_bits_interpreted_and_compiled(name, monkeypatch):
    """A first search interprets, later ones run compiled code."""
    monkeypatch.setattr(compiler, "patience", 0.0)
    d, e, T = matrix(name, 30)
    values = np.linalg.eigvalsh(T)
    arguments = d, e, 9, 0.5 * (values[8] + values[9])
    np.testing.assert_array_equal(smallest_eigenvalues(*arguments), smallest_eigenvalues.py_func(*arguments))
    for compiled, plain in zip(eigenvectors(d, e, values), eigenvectors.py_func(d, e, values), strict=True):
        np.testing.assert_array_equal(compiled, plain)
