"""Centring the references' kernel matrix, with references that repeat each other held once."""

from __future__ import annotations

import numpy as np

from .._jit import LOOP, njit


def distinct_rows(R: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Row numbers of the first of each distinct row, and for every row which of these it equals; None if no row repeats."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = R.sum(axis=1)
    order = sums.argsort()
    ordered = sums[order]
    alike = ~(ordered[:-1] < ordered[1:])  # equal rows have equal sums; true beside a NaN
    if not alike.any():
        return None
    known: dict[bytes, int] = {}
    first, doubtful = np.arange(len(R)), np.zeros(len(R), dtype=bool)
    doubtful[order[:-1][alike]] = doubtful[order[1:][alike]] = True
    for i in np.flatnonzero(doubtful).tolist():
        first[i] = known.setdefault((R[i] + 0.0).tobytes(), i)  # -0.0 is 0.0
    distinct = np.flatnonzero(first == np.arange(len(R)))
    return None if len(distinct) == len(R) else (distinct, np.searchsorted(distinct, first))


@njit(interpreted=LOOP)
def first_of_each(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The position of the first member of each group, and for every position which of these it belongs to."""
    least, most = 0, -1
    for g in groups:
        least, most = min(least, g), max(most, g)
    if least < 0:
        raise ValueError("Groups are numbers from 0 on.")
    place = np.empty(most + 1, np.intp)
    for g in groups:
        place[g] = -1
    first, which = np.empty(groups.size, np.intp), np.empty(groups.size, np.intp)
    found = 0
    for i in range(groups.size):
        if place[groups[i]] < 0:
            place[groups[i]], first[found] = found, i
            found += 1
        which[i] = place[groups[i]]
    return first[:found], which


@njit(interpreted=LOOP)
def column_means(K: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Column means of K, row i weighted by counts[i]."""
    mu = np.zeros(K.shape[1])
    m = 0.0
    for i in range(K.shape[0]):
        m += counts[i]
        for j in range(mu.size):
            mu[j] += counts[i] * K[i, j]
    for j in range(mu.size):
        mu[j] /= m
    return mu


@njit(fastmath={"reassoc"})  # lets sums use vector registers
def centred(K: np.ndarray, mu: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """W^½ JKJ W^½ for the symmetric K, given its column means and the count of each row (W).

    Each row is shifted by its own mean, so that it sums to 0 up to rounding. The loop that sums a row writes nothing: compiled code would
    otherwise sum in another order where arrays happen to lie side by side in memory.
    """
    roots = np.sqrt(counts)
    m = 0.0
    for i in range(counts.size):
        m += counts[i]
    Kc = np.empty(K.shape)
    for i in range(mu.size):
        for j in range(mu.size):
            Kc[i, j] = K[i, j] - mu[j]
        mean = 0.0
        for j in range(mu.size):
            mean += counts[j] * Kc[i, j]
        mean /= m
        for j in range(mu.size):
            Kc[i, j] = (Kc[i, j] - mean) * (roots[i] * roots[j])
    return Kc
