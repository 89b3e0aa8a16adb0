"""Shapley and path values of sums of products, and the nodes of the integral over [0, 1].

A product has a factor for each feature, f = exp(-e) with e = p u² + q u + r √u for u = |x - z|, summed over the feature's columns.
With ``c = f - 1``, computed without cancellation, a product of two products has c = c_r + c_s + c_r c_s.

``columns`` (d × m) holds the centres z, ``rate`` (kinds × 3 × d) the p, q and r of each kind of product, ``feature`` (d) the feature of
each column. Product number k · m + i has kind k and centre i. ``weight`` is what each product counts, ``pair`` (symmetric)
what each product of two products does. ``phi`` (rows × features) is what all of them add to.
"""

import functools
from typing import TypeAlias

import numpy as np

from .jit import entry, njit

BLOCK = 32  # products that are treated side by side: their factors for 20 features stay in the nearest cache
TOGETHER = 1 << 16  # factors of products of two products that are computed together
TOLERANCE = 1e-15  # the largest error of an integral, whose value is at most 1: below rounding
Nodes: TypeAlias = tuple[np.ndarray, np.ndarray]  # and weights
LARGEST = 1e280  # exponents count as at most this, so that sums and ratios of them are numbers


def exponents(x: np.ndarray, columns: np.ndarray, rate: np.ndarray, feature: np.ndarray, features: int) -> np.ndarray:
    """e (features × products) of a row."""
    u = np.abs(x[:, None] - columns)
    e = np.zeros((features, len(rate), columns.shape[1]))
    with np.errstate(over="ignore"):
        for k, (p, q, r) in enumerate(rate[:, :, :, None]):
            terms = (p * u + q) * u + r * np.sqrt(u) if r.any() else (p * u + q) * u
            np.add.at(e[:, k], feature, np.minimum(terms, LARGEST))
    return np.minimum(e, LARGEST).reshape(features, -1)


@entry
@njit(fastmath={"reassoc", "contract"})  # lets sums use vector registers
def _add_shapley(c: np.ndarray, weight: np.ndarray, t: np.ndarray, w: np.ndarray, phi: np.ndarray) -> None:
    """Add Σ weight · c_g · ∫ Π_{l≠g} (1 + t c_l) dt to phi_g, for products (columns of c) side by side: no division. Mutates phi."""
    features, products = c.shape
    before, integral, after = np.empty((features, BLOCK)), np.empty((features, BLOCK)), np.empty(BLOCK)
    for begin in range(0, products, BLOCK):
        size = min(BLOCK, products - begin)
        integral[:] = 0.0
        for q in range(t.size):
            before[0], after[:] = 1.0, w[q]
            for g in range(features - 1):
                for b in range(size):
                    before[g + 1, b] = before[g, b] * (1.0 + t[q] * c[g, begin + b])
            for g in range(features - 1, -1, -1):
                for b in range(size):
                    integral[g, b] += before[g, b] * after[b]
                    after[b] *= 1.0 + t[q] * c[g, begin + b]
        for g in range(features):
            total = 0.0
            for b in range(size):
                total += weight[begin + b] * c[g, begin + b] * integral[g, b]
            phi[g] += total


def shapley_of_sums(
    X: np.ndarray, columns: np.ndarray, rate: np.ndarray, feature: np.ndarray, weight: np.ndarray, rule: Nodes, phi: np.ndarray
) -> None:
    """Add the Shapley values of Σ_i weight_i Π_g f_ig to phi. Mutates phi."""
    for x, row in zip(X, phi, strict=True):
        _add_shapley(np.expm1(-exponents(x, columns, rate, feature, row.size)), weight, *rule, row)


def shapley_of_pairs(
    X: np.ndarray, columns: np.ndarray, rate: np.ndarray, feature: np.ndarray, pair: np.ndarray, rule: Nodes, phi: np.ndarray
) -> None:
    """Add the Shapley values of Σ_rs pair_rs Π_g f_rg f_sg to phi. Mutates phi."""
    twice = 2.0 * np.tril(pair) - np.diag(pair.diagonal())
    for x, row in zip(X, phi, strict=True):
        c = np.expm1(-exponents(x, columns, rate, feature, row.size))
        step = max(TOGETHER // c.size, 1)
        for r in range(0, len(pair), step):
            rows, upto = slice(r, r + step), min(r + step, len(pair))
            both = c[:, rows, None] + c[:, None, :upto] * (1.0 + c[:, rows, None])
            _add_shapley(both.reshape(row.size, -1), twice[rows, :upto].ravel(), *rule, row)


def path_of_sums(X: np.ndarray, columns: np.ndarray, rate: np.ndarray, feature: np.ndarray, weight: np.ndarray, phi: np.ndarray) -> None:
    """Add -Σ_i weight_i e_ig (1 - exp(-E_i)) / E_i to phi, E_i = Σ_g e_ig. Mutates phi."""
    for x, row in zip(X, phi, strict=True):
        e = exponents(x, columns, rate, feature, row.size)
        total = e.sum(axis=0) + 1.0 / LARGEST  # where all exponents are 0, (exp(-E) - 1) / E is -1
        row += e @ (weight * np.expm1(-total) / total)


def path_of_pairs(X: np.ndarray, columns: np.ndarray, rate: np.ndarray, feature: np.ndarray, pair: np.ndarray, phi: np.ndarray) -> None:
    """Add ``path_of_exponents`` of each row to phi. Mutates phi."""
    for x, row in zip(X, phi, strict=True):
        row += path_of_exponents(exponents(x, columns, rate, feature, row.size), pair)


def path_of_exponents(e: np.ndarray, pair: np.ndarray) -> np.ndarray:
    """-Σ_rs pair_rs (e_gr + e_gs) (1 - exp(-E_r - E_s)) / (E_r + E_s) for each g."""
    total = e.sum(axis=0) + 1.0 / LARGEST
    c = np.expm1(-total)
    share = np.multiply.outer(c, 1.0 + c)
    share += c
    share /= np.add.outer(total, total)
    return 2.0 * (e @ np.einsum("rs,rs->r", pair, share))


@functools.cache
def nodes(features: int) -> Nodes:
    """Gauss-Legendre nodes on [0, 1] for products of ``features`` - 1 factors 1 - a t: exact, or about 6 √features below the tolerance."""
    exact = max(1, (features + 1) // 2)
    fewest = next(count for count in range(1, exact + 1) if error_bound(count, features) <= TOLERANCE)
    t, w = np.polynomial.legendre.leggauss(fewest)
    return 0.5 * (1.0 + t), 0.5 * w


def error_bound(count: int, features: int) -> float:
    """How far the integral by ``count`` nodes is from the true one, at most; 0 if they are enough to be exact.

    On the ellipse with foci 0 and 1 whose semi-axes sum to rho / 2, a product of n factors is at most (1 + (rho - 1)² / 4 rho)^n: Chebyshev
    coefficients of degree 2 · ``count`` and above, which shrink by 1 / rho, make the error.
    """
    if 2 * count >= features:
        return 0.0
    if count < 2:
        return 1.0
    rho = 1.0 + np.geomspace(1e-3, 1e3, 2000)
    logarithm = (features - 1) * np.log1p((rho - 1.0) ** 2 / (4.0 * rho)) - 2.0 * count * np.log(rho) - np.log1p(-(rho**-2.0))
    return float(32.0 / 15.0 * np.exp(logarithm.min()))
