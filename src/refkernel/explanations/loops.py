"""Jitted loops over sums of products.

A product has a factor for each feature, f = exp(-e) with e = p u² + q u + r √u for u = |x - z|, summed over the feature's columns.
With ``c = f - 1``, computed without cancellation, a product of two products has c = c_r + c_s + c_r c_s.

``columns`` (d × m) holds the centres z, ``rate`` (kinds × 3 × d) the p, q and r of each kind of product, ``feature`` (d) the feature of
each column. Product number k · m + i has kind k and centre i. ``weight`` is what each product counts, ``pair`` (symmetric)
what each product of two products does. ``phi`` (rows × features) is what all of them add to.
"""

from __future__ import annotations

import numpy as np

from .._jit import njit

__all__ = [
    "BLOCK",
    "LARGEST",
    "add_path",
    "add_shapley",
    "all_exponents",
    "exponents",
    "neighbour_terms",
    "path_of_pairs",
    "path_of_sums",
    "shapley_of_pairs",
    "shapley_of_sums",
    "totals",
]

BLOCK = 32
"""Products that are treated side by side: their factors for 20 features stay in the nearest cache."""

ABSOLUTE, ROOT = 1, 2
"""Places of q and r in ``rate``."""

LARGEST = 1e280
"""Exponents count as at most this, so that sums and ratios of them are numbers."""


@njit()
def exponents(x: np.ndarray, columns: np.ndarray, rate: np.ndarray, feature: np.ndarray, begin: int, e: np.ndarray) -> None:
    """Fill e (features × products) for one kind of product and the centres from ``begin`` on. Mutates e."""
    for g in range(e.shape[0]):
        for b in range(e.shape[1]):
            e[g, b] = 0.0
    for j in range(x.size):
        sum_, column, v, p, q, r = e[feature[j]], columns[j, begin : begin + e.shape[1]], x[j], rate[0, j], rate[1, j], rate[2, j]
        for b in range(sum_.size):
            u = abs(v - column[b])
            sum_[b] = min(sum_[b] + (p * u + q) * u, LARGEST)
        if r > 0.0:
            for b in range(sum_.size):
                sum_[b] = min(sum_[b] + r * np.sqrt(abs(v - column[b])), LARGEST)


@njit()
def all_exponents(x: np.ndarray, columns: np.ndarray, rate: np.ndarray, feature: np.ndarray, e: np.ndarray) -> None:
    """Fill e (features × products) for all products. Mutates e."""
    m = columns.shape[1]
    for k in range(len(rate)):
        exponents(x, columns, rate[k], feature, 0, e[:, k * m : (k + 1) * m])


@njit(fastmath={"reassoc", "contract"})  # lets sums use vector registers
def add_shapley(
    c: np.ndarray,
    weight: np.ndarray,
    size: int,
    t: np.ndarray,
    w: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    integral: np.ndarray,
    phi: np.ndarray,
) -> None:
    """Add weight · c_g · ∫ Π_{l≠g} (1 + t c_l) dt to phi_g, for ``size`` products side by side. Mutates all arrays after w.

    The product without g is that of the factors before g and of those after it: nothing is divided.
    """
    features = c.shape[0]
    for g in range(features):
        for b in range(size):
            integral[g, b] = 0.0
    for q in range(t.size):
        for b in range(size):
            before[0, b], after[b] = 1.0, w[q]
        for g in range(features - 1):
            for b in range(size):
                before[g + 1, b] = before[g, b] * (1.0 + t[q] * c[g, b])
        for g in range(features - 1, -1, -1):
            for b in range(size):
                integral[g, b] += before[g, b] * after[b]
                after[b] *= 1.0 + t[q] * c[g, b]
    for g in range(features):
        total = 0.0
        for b in range(size):
            total += weight[b] * c[g, b] * integral[g, b]
        phi[g] += total


@njit()
def shapley_of_sums(
    X: np.ndarray,
    columns: np.ndarray,
    rate: np.ndarray,
    feature: np.ndarray,
    weight: np.ndarray,
    t: np.ndarray,
    w: np.ndarray,
    phi: np.ndarray,
) -> None:
    """Add the Shapley values of Σ_i weight_i Π_g f_ig to phi. Mutates phi."""
    features, m = phi.shape[1], columns.shape[1]
    c, before, integral = np.empty((features, BLOCK)), np.empty((features, BLOCK)), np.empty((features, BLOCK))
    after = np.empty(BLOCK)
    for i in range(X.shape[0]):
        for k in range(len(rate)):
            for begin in range(0, m, BLOCK):
                size = min(BLOCK, m - begin)
                exponents(X[i], columns, rate[k], feature, begin, c[:, :size])
                for g in range(features):
                    for b in range(size):
                        c[g, b] = np.expm1(-c[g, b])
                add_shapley(c, weight[k * m + begin :], size, t, w, before, after, integral, phi[i])


@njit()
def shapley_of_pairs(
    X: np.ndarray,
    columns: np.ndarray,
    rate: np.ndarray,
    feature: np.ndarray,
    pair: np.ndarray,
    t: np.ndarray,
    w: np.ndarray,
    phi: np.ndarray,
) -> None:
    """Add the Shapley values of Σ_rs pair_rs Π_g f_rg f_sg to phi. Mutates phi."""
    features, m = phi.shape[1], len(pair)
    single = np.empty((features, m))
    c, before, integral = np.empty((features, BLOCK)), np.empty((features, BLOCK)), np.empty((features, BLOCK))
    after, weight = np.empty(BLOCK), np.empty(BLOCK)
    for i in range(X.shape[0]):
        all_exponents(X[i], columns, rate, feature, single)
        for g in range(features):
            for r in range(m):
                single[g, r] = np.expm1(-single[g, r])
        for r in range(m):
            for begin in range(0, r + 1, BLOCK):
                size = min(BLOCK, r + 1 - begin)
                for b in range(size):
                    weight[b] = 2.0 * pair[r, begin + b]
                if begin + size == r + 1:
                    weight[size - 1] = pair[r, r]
                for g in range(features):
                    for b in range(size):
                        c[g, b] = single[g, r] + single[g, begin + b] * (1.0 + single[g, r])
                add_shapley(c, weight, size, t, w, before, after, integral, phi[i])


@njit(fastmath={"reassoc", "contract"})  # lets sums use vector registers
def totals(e: np.ndarray, total: np.ndarray, c: np.ndarray) -> None:
    """Fill total with the sums of e over features, and c with exp(-total) - 1. Mutates total and c."""
    for b in range(total.size):
        total[b] = 1.0 / LARGEST  # where all exponents are 0, c / total is -1
    for g in range(e.shape[0]):
        for b in range(total.size):
            total[b] += e[g, b]
    for b in range(total.size):
        c[b] = np.expm1(-total[b])


@njit(fastmath={"reassoc", "contract"})  # lets sums use vector registers
def add_path(e: np.ndarray, share: np.ndarray, phi: np.ndarray) -> None:
    """Add Σ_b share_b e_gb to phi_g. Mutates phi."""
    for g in range(e.shape[0]):
        added = 0.0
        for b in range(e.shape[1]):
            added += share[b] * e[g, b]
        phi[g] += added


@njit()
def path_of_sums(X: np.ndarray, columns: np.ndarray, rate: np.ndarray, feature: np.ndarray, weight: np.ndarray, phi: np.ndarray) -> None:
    """Add -Σ_i weight_i e_ig (1 - exp(-E_i)) / E_i to phi, E_i = Σ_g e_ig. Mutates phi."""
    features, m = phi.shape[1], columns.shape[1]
    e, total, share = np.empty((features, BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    for i in range(X.shape[0]):
        for k in range(len(rate)):
            for begin in range(0, m, BLOCK):
                size = min(BLOCK, m - begin)
                exponents(X[i], columns, rate[k], feature, begin, e[:, :size])
                totals(e[:, :size], total[:size], share[:size])
                for b in range(size):
                    share[b] *= weight[k * m + begin + b] / total[b]
                add_path(e[:, :size], share[:size], phi[i])


@njit(fastmath={"reassoc", "contract"})
def path_of_pairs(X: np.ndarray, columns: np.ndarray, rate: np.ndarray, feature: np.ndarray, pair: np.ndarray, phi: np.ndarray) -> None:
    """Add -Σ_rs pair_rs (e_rg + e_sg) (1 - exp(-E_r - E_s)) / (E_r + E_s) to phi. Mutates phi."""
    features, m = phi.shape[1], len(pair)
    e, total, c, share = np.empty((features, m)), np.empty(m), np.empty(m), np.empty(m)
    for i in range(X.shape[0]):
        all_exponents(X[i], columns, rate, feature, e)
        totals(e, total, c)
        for r in range(m):
            added, c_r, total_r = 0.0, c[r], total[r]
            for s in range(r):
                both = 2.0 * pair[r, s] * (c_r + c[s] * (1.0 + c_r)) / (total_r + total[s])
                share[s] += both
                added += both
            share[r] = added + pair[r, r] * c_r * (2.0 + c_r) / total_r
        add_path(e, share, phi[i])


@njit()
def neighbour_terms(
    Z: np.ndarray, columns: np.ndarray, index: np.ndarray, weight: np.ndarray, feature: np.ndarray, terms: np.ndarray
) -> None:
    """Add Σ_k weight_ik |z_ij - columns_j,index_ik| to terms_ig, g the feature of column j. Mutates terms."""
    for i in range(len(Z)):
        for k in range(index.shape[1]):
            if weight[i, k] > 0.0:
                for j in range(Z.shape[1]):
                    terms[i, feature[j]] += weight[i, k] * abs(Z[i, j] - columns[j, index[i, k]])
