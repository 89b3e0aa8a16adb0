"""Factorisations of the references' kernel matrix: one for the map, and cheaper ones where only inner products count.

Symbols as in ``feature_map``: ``K_RR`` (m × m), ``K_ZR = k(Z, R)``, ``mu`` the column means of K_RR, ``J = I - 11'/m``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from .kernels import SYMMETRY_TOLERANCE

PIVOT_TOLERANCE = 1e-14
"""A pivoted Cholesky factorisation stops here (times the largest diagonal): what it leaves out is rounding."""

LOW_RANK = 0.75
"""Share of m up to which a pivoted factor and a small eigendecomposition are cheaper than a whole one."""


@dataclass(frozen=True)
class Factor:
    """Phi(X) = k(X, R) projection - offset: the centring and the whitening in one product."""

    eigenvalues: np.ndarray
    projection: np.ndarray
    offset: np.ndarray


def factorise(K_RR, center, floor) -> Factor:
    """Centre, decompose and truncate the references' kernel matrix."""
    m = check_references(K_RR, center)
    mu = K_RR.mean(axis=0) if center else np.zeros(m)
    lam, U = scipy.linalg.eigh(centred(K_RR, mu) if center else K_RR, check_finite=False)
    if lam[0] < -SYMMETRY_TOLERANCE * max(abs(lam[-1]), abs(lam[0])):
        warnings.warn(
            f"The base kernel is indefinite on the references (eigenvalues {lam[0]:.3g} … {lam[-1]:.3g}): negative directions are dropped.",
            UserWarning,
            stacklevel=3,
        )
    kept = np.flatnonzero(lam >= floor)[::-1]
    check_rank(kept.size, m, floor, lam[-1])
    projection = np.ascontiguousarray(U[:, kept] / np.sqrt(lam[kept]))
    if center:
        projection -= projection.mean(axis=0)
    return Factor(lam[kept], projection, mu @ projection)


def whitened(K_RR, K_ZR, center, floor) -> tuple[np.ndarray, int]:
    """Features of Z whose inner products are the reference kernel, and the kernel's rank: no more work than that needs.

    If M - floor·I (M = Kc_RR + 11'/m, or K_RR without centring) has a Cholesky factor, all eigenvalues of M exceed the
    floor: nothing is truncated, and the features are Kc_ZR L^-T with M = LL'. Else the spectrum decays: a pivoted Cholesky
    factor and a small eigendecomposition, or a whole one where neither proves that the rank is the same.
    """
    m = check_references(K_RR, center)
    if center:
        mu = K_RR.mean(axis=0)
        Kc_RR = centred(K_RR, mu)
        Kc_ZR = K_ZR - mu
        Kc_ZR -= Kc_ZR.mean(axis=1)[:, None]
        M = Kc_RR + 1.0 / m
    else:
        Kc_RR, Kc_ZR, M = K_RR, K_ZR, K_RR
    L = _cholesky_above(M, floor)
    if L is not None:
        Phi, _ = lapack.dtrtrs(L, Kc_ZR.T, lower=1)
        return Phi.T, m - int(center)
    lam, U = _eigenpairs(Kc_RR, floor)
    return Kc_ZR @ (U / np.sqrt(lam)), lam.size


def centred(K, mu) -> np.ndarray:
    """J K J, given the column means of the symmetric K."""
    return K - mu - (mu - mu.mean())[:, None]


def check_references(K_RR, center) -> int:
    """m, if K_RR can be factorised."""
    m = K_RR.shape[0]
    if not np.isfinite(K_RR).all():
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
    """The lower Cholesky factor of M if M - floor·I is positive definite, else None."""
    shifted = M.copy()
    shifted.flat[:: M.shape[0] + 1] -= floor
    _, refused = lapack.dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)
    if refused:
        return None
    L, _ = lapack.dpotrf(M.T, lower=1, clean=0)
    return L


def _eigenpairs(Kc_RR, floor):
    """The eigenvalues that reach the floor, and their eigenvectors."""
    m = Kc_RR.shape[0]
    tolerance = PIVOT_TOLERANCE * max(float(Kc_RR.diagonal().max()), 0.0)
    C, pivots, k, _ = lapack.dpstrf(Kc_RR.T, tol=tolerance, lower=1)
    if 0 < k <= LOW_RANK * m:
        L = np.tril(C[:, :k])
        lam, V = scipy.linalg.eigh(L.T @ L, check_finite=False, overwrite_a=True, driver="evd")
        left_out = (m - k) * tolerance + PIVOT_TOLERANCE * lam[-1]
        if not ((lam >= floor - left_out) & (lam < floor + left_out)).any():
            kept = lam >= floor
            check_rank(int(kept.sum()), m, floor, lam[-1])
            U = np.empty((m, int(kept.sum())))
            U[pivots - 1] = L @ (V[:, kept] / np.sqrt(lam[kept]))
            return lam[kept], U
    lam, U = scipy.linalg.eigh(Kc_RR, check_finite=False, driver="evd")
    kept = lam >= floor
    check_rank(int(kept.sum()), m, floor, lam[-1])
    return lam[kept], U[:, kept]
