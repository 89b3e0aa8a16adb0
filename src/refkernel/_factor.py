"""Factorisations of the references' kernel matrix: one for the map, and cheaper ones where only inner products count.

Symbols as in ``feature_map``: ``K_RR`` (m × m), ``K_ZR = k(Z, R)``, ``mu`` the column means of K_RR, ``J = I - 11'/m``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numba import njit
from scipy.linalg import lapack

from .kernels import SYMMETRY_TOLERANCE

PIVOT_TOLERANCE = 1e-12
"""A pivoted Cholesky factorisation stops here: what it leaves out of m eigenvalues, at most m times this, is far below
any sensible floor, and above the rounding of kernel values near 1."""

LOW_RANK = 0.75
"""Share of m up to which a pivoted factor and a small eigendecomposition are cheaper than a whole one."""

FEW_PIVOTS = 0.2
"""Share of m: where more pivots than these are above the floor in any order, the rank is hardly ever low."""


@dataclass(frozen=True)
class Factor:
    """Phi(X) = [k(X, R), 1] projection: the centring and the whitening in one product."""

    eigenvalues: np.ndarray
    projection: np.ndarray


def factorise(K_RR, center, floor) -> Factor:
    """Centre, decompose and truncate the references' kernel matrix."""
    m = check_references(K_RR, center)
    mu = column_means(K_RR) if center else np.zeros(m)
    lam, U = scipy.linalg.eigh(centred(K_RR, mu, 0.0) if center else K_RR, check_finite=False)
    if lam[0] < -SYMMETRY_TOLERANCE * max(abs(lam[-1]), abs(lam[0])):
        warnings.warn(
            f"The base kernel is indefinite on the references (eigenvalues {lam[0]:.3g} … {lam[-1]:.3g}): negative directions are dropped.",
            UserWarning,
            stacklevel=3,
        )
    kept = np.flatnonzero(lam >= floor)[::-1]
    check_rank(kept.size, m, floor, lam[-1])
    projection = U[:, kept] / np.sqrt(lam[kept])
    if center:
        projection -= projection.mean(axis=0)
    return Factor(lam[kept], np.vstack([projection, -mu @ projection]))


class Whitening:
    """The reference kernel's inner products, with no more work than they need.

    If M - floor·I (M = Kc_RR + 11'/m, or K_RR without centring) has a Cholesky factor, all eigenvalues of M exceed the
    floor: nothing is truncated, and features of Z are Kc_ZR L^-T with M = LL'. Else the spectrum decays: a pivoted Cholesky
    factor and a small eigendecomposition, or a whole one where the former does not prove that the rank is the same.

    References that repeat an earlier one, and so have its kernel values, would let no Cholesky factor be: M is then that of the
    ``distinct`` ones, still centred by all. Weighing each by its repetitions, as all references together do, only raises
    eigenvalues, so the proof holds.

    Parameters
    ----------
    distinct : the numbers of the references that repeat no earlier one; None for all.

    Attributes
    ----------
    rank : int, the eigenvalues that are kept.
    whole : bool, whether nothing was truncated.
    """

    def __init__(self, K_RR, center, floor, distinct=None):
        m = check_references(K_RR, center)
        self.center = center
        self.mu = column_means(K_RR)
        self._distinct = distinct
        M = centred(K_RR, self.mu, 1.0 / m) if center else K_RR.copy()
        self._L, passed = _cholesky_above(M if distinct is None else M[np.ix_(distinct, distinct)], floor)
        self.whole = self._L is not None
        self.rank, largest = (m if distinct is None else distinct.size) - int(center), 0.0
        if not self.whole:
            lam, U = _eigenpairs(centred(K_RR, self.mu, 0.0) if center else K_RR, floor, passed <= FEW_PIVOTS * m)
            self.rank, largest = lam.size, float(lam.max(initial=0.0))
            self._projection = U / np.sqrt(lam)
        check_rank(self.rank, m, floor, largest)

    def centred_rows(self, K_ZR):
        """Kc_ZR = (K_ZR - 1 mu') J; K_ZR itself without centring."""
        if not self.center:
            return K_ZR
        Kc_ZR = K_ZR - self.mu
        Kc_ZR -= np.add.reduce(Kc_ZR, axis=1, keepdims=True) / self.mu.size
        return Kc_ZR

    def features(self, Kc_ZR):
        """Features of Z, of any basis."""
        if self.whole:
            Phi, _ = lapack.dtrtrs(self._L, Kc_ZR.T if self._distinct is None else Kc_ZR.T[self._distinct], lower=1)
            return Phi.T
        return Kc_ZR @ self._projection


def distinct_rows(R) -> np.ndarray | None:
    """The numbers of the rows that repeat no earlier one; None where no row does."""
    first = {row.tobytes(): number for number, row in reversed(list(enumerate(R + 0.0)))}  # -0.0 is 0.0
    return np.sort(np.fromiter(first.values(), np.intp)) if len(first) < len(R) else None


@njit(cache=True, nogil=True)
def column_means(K):
    m = K.shape[0]
    mu = np.zeros(K.shape[1])
    for i in range(m):
        for j in range(mu.size):
            mu[j] += K[i, j]
    for j in range(mu.size):
        mu[j] /= m
    return mu


@njit(cache=True, nogil=True)
def centred(K, mu, common):
    """J K J + common 11', given the column means of the symmetric K."""
    m = mu.size
    mean = 0.0
    for i in range(m):
        mean += mu[i] / m
    Kc = np.empty_like(K)
    for i in range(m):
        shift = mean + common - mu[i]
        for j in range(m):
            Kc[i, j] = (K[i, j] - mu[j]) + shift
    return Kc


def check_references(K_RR, center) -> int:
    """m, if K_RR can be factorised."""
    m = K_RR.shape[0]
    if not np.isfinite(K_RR.sum()):
        raise ValueError("The base kernel overflows or is NaN on the references. Scale the data first, for example with TargetScaler.")
    if center and m < 2:
        raise ValueError(
            f"Centring needs at least 2 references, and there is {m} (references='training' gives one for each of n_samples = {m}). "
            "Add references, or pass center=False."
        )
    return m


def check_rank(rank, m, floor, largest) -> None:
    if rank == 0:
        raise ValueError(
            f"No eigenvalue of the {m} references' kernel matrix reaches eigenvalue_floor={floor:g} (the largest is {largest:.3g}): "
            "for this kernel the references are all alike. Use other references, a narrower kernel, a lower floor or center=False."
        )


def _cholesky_above(M, floor):
    """The lower Cholesky factor of M if M - floor·I is positive definite, else None; and how many pivots were. Overwrites M."""
    diagonal = np.einsum("ii->i", M)
    diagonal -= floor
    _, refused = lapack.dpotrf(M.T, lower=1, clean=0)
    if refused:
        return None, refused - 1
    diagonal += floor
    return lapack.dpotrf(M.T, lower=1, clean=0, overwrite_a=1)[0], M.shape[0]


def _eigenpairs(Kc_RR, floor, perhaps_low_rank):
    """The eigenvalues that reach the floor, and their eigenvectors."""
    found = _low_rank_eigenpairs(Kc_RR, floor) if perhaps_low_rank else None
    if found is not None:
        return found
    lam, U, _ = lapack.dsyevd(Kc_RR.T, lower=1)
    first = np.searchsorted(lam, floor)
    return lam[first:], U[:, first:]


def _low_rank_eigenpairs(Kc_RR, floor):
    """The same from a pivoted Cholesky factor; None if its rank is not low, an eigenvalue is too close to the floor to tell, or the
    matrix is indefinite, so that the factor is not of all of it."""
    m = Kc_RR.shape[0]
    C, pivots, k, _ = lapack.dpstrf(Kc_RR.T, tol=PIVOT_TOLERANCE, lower=1)
    if not 0 < k <= LOW_RANK * m:
        return None
    L = np.tril(C[:, :k])
    if np.abs(L @ L.T - Kc_RR[np.ix_(pivots - 1, pivots - 1)]).max() > 2 * m * PIVOT_TOLERANCE * max(1.0, L[0, 0] ** 2):
        return None
    lam, V, _ = lapack.dsyevd(L.T @ L, lower=1, overwrite_a=1)
    left_out = 2 * m * PIVOT_TOLERANCE
    below, first = np.searchsorted(lam, (floor - left_out, floor + left_out))
    if below != first:
        return None
    U = np.empty((m, k - first))
    U[pivots - 1] = L @ (V[:, first:] / np.sqrt(lam[first:]))
    return lam[first:], U
