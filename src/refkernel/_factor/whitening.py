"""The factorisation behind a search. Only inner products matter there, so the cheapest of three ways is used."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, lapack

from .centring import centred, column_means
from .checks import check_rank, check_references
from .tridiagonal import Tridiagonal, low_rank_eigenpairs

FEW_BELOW = 0.25
"""Project out the directions below the floor if they are at most this share of m; keep those above it otherwise."""

LARGE = 256
"""Look for a low rank first if there are more references than this."""


class Whitening:
    """The reference kernel's inner products, at the lowest cost.

    If M - floor·I (M = Kc_RR + c 11'/m, or K_RR without centring; c is the mean eigenvalue) has a Cholesky factor, all eigenvalues
    of M exceed the floor: nothing is truncated, and the features of Z are Kc_ZR L^-T with M = LL'. If a few eigenvalues are below
    the floor, their eigenvectors N are projected out of the rows of Kc_ZR, as centring projects out the constant, and
    M = Kc_RR + c NN'. Otherwise the eigenvectors above the floor are computed, and the features are those of the map.

    References that repeat each other are held once and weighted by their count: with W the diagonal matrix of the counts,
    W^½ Kc_RR W^½ has the nonzero eigenvalues of the full matrix, and Kc_ZR W^½ takes the place of Kc_ZR.

    Parameters
    ----------
    K_RR : array-like of shape (m, m)
        Kernel matrix of the distinct references.
    center : bool
        Whether to centre on the mean of the references.
    floor : float
        Eigenvalues below it are dropped.
    counts : ndarray of shape (m,), optional
        How often each reference occurs; once by default.
    first : slice or ndarray of int
        References whose inner products are wanted too.

    Attributes
    ----------
    rank : int
        The number of eigenvalues that are kept.
    whole : bool
        Whether nothing was truncated.
    K_first : ndarray
        Inner products of the ``first`` references with each other.
    """

    def __init__(
        self,
        K_RR: npt.ArrayLike,
        center: bool,
        floor: float,
        counts: np.ndarray | None = None,
        first: slice | np.ndarray = slice(0),
    ) -> None:
        K_RR = np.ascontiguousarray(K_RR, dtype=np.float64)
        self._roots = None if counts is None else np.sqrt(counts)
        m = len(K_RR) if counts is None else int(counts.sum())
        counts = _once_each(m) if counts is None else counts
        self.center, self._first, self._shares = center, first, counts / m
        self._dropped: np.ndarray | None = None
        self.mu = column_means(K_RR, counts) if center else np.zeros(len(K_RR))
        check_references(self.mu * m if center else K_RR, m, center)
        K = centred(K_RR, self.mu, counts) if center else K_RR * self._weights(1.0)
        self._L = _cholesky_above(K, self._weights(K.trace() / m / m) if center else 0.0, floor)
        self.whole = self._L is not None
        self.rank = len(K) - bool(center)
        if self.whole:
            self._set_first(K)
        else:
            self._truncate(K, floor)
        if self.rank == 0:
            check_rank(0, m, floor, np.linalg.eigvalsh(K)[-1])

    def _weights(self, size: float) -> Any:
        """size · W^½ 11' W^½, or a number if no reference repeats another."""
        return size if self._roots is None else np.outer(size * self._roots, self._roots)

    def _truncate(self, K: np.ndarray, floor: float) -> None:
        m = len(K)
        found = low_rank_eigenpairs(K, floor) if m > LARGE else None
        if found is None:
            tridiagonal = Tridiagonal(K, floor)
            self.rank = tridiagonal.above
            if 0 < m - self.rank <= FEW_BELOW * m:
                lam, N = tridiagonal.eigenpairs_below()
                M = (K.trace() / m * N) @ N.T
                M += K
                self._L, refused = lapack.dpotrf(M.T, lower=1, clean=0, overwrite_a=1)
                if not refused:
                    self._dropped = N
                    self._set_first(K, lam)
                    return
                self._L = None
            found = tridiagonal.eigenpairs_above()
        lam, self._U = found
        self.rank, self._sizes = lam.size, np.sqrt(lam)
        self._U_first = self._once(self._U[self._first].T).T
        Phi_first = self._U_first * self._sizes
        self.K_first = Phi_first @ Phi_first.T  # each pair once

    def _set_first(self, K: np.ndarray, dropped: np.ndarray | None = None) -> None:
        """K_first from K less the dropped eigenvalues' part."""
        first = self._first
        K_first = K[first][:, first].copy()
        if self._dropped is not None:
            N = self._dropped[first]
            K_first -= (N * dropped) @ N.T
        self.K_first = self._once(self._once(K_first).T)

    def features(self, K_ZR: np.ndarray) -> np.ndarray:
        """Phi(Z) from k(Z, R), in a basis that depends on what was truncated."""
        rows = self._rows(K_ZR)
        return (rows @ self._U) / self._sizes if self._L is None else self._solved(rows)

    @functools.cached_property
    def far(self) -> np.ndarray:
        """Phi of a sample whose kernel values against all references are 0."""
        return self.features(np.zeros((1, len(self.mu))))[0]

    def with_first(self, K_ZR: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inner products of Z with the first references, and of every z with itself, from k(Z, R).

        For a reference x, K(z, x) is Kc(z, x) projected onto the kept directions.
        """
        rows = self._rows(K_ZR)
        if self._L is None:
            along = rows @ self._U
            K_first, Phi = along @ self._U_first.T, along / self._sizes
        else:
            K_first, Phi = self._once(rows[:, self._first].copy()), self._solved(rows)
        return K_first, np.einsum("ij,ij->i", Phi, Phi)

    def _rows(self, K_ZR: np.ndarray) -> np.ndarray:
        """Kc_ZR W^½, with Kc_ZR = (K_ZR - 1 mu') J, or K_ZR itself without centring, less the dropped directions if they are few."""
        rows = K_ZR - self.mu
        if self.center:
            rows -= (rows @ self._shares)[:, None]
        if self._roots is not None:
            rows *= self._roots
        return rows if self._dropped is None else rows - (rows @ self._dropped) @ self._dropped.T

    def _once(self, columns: np.ndarray) -> np.ndarray:
        """Columns of the first references, each counted once."""
        return columns if self._roots is None else columns / self._roots[self._first]

    def _solved(self, rows: np.ndarray) -> np.ndarray:
        """rows L^-T."""
        return blas.dtrsm(1.0, self._L, np.asfortranarray(rows), side=1, lower=1, trans_a=1, overwrite_b=1)


@functools.lru_cache(maxsize=256)
def _once_each(m: int) -> np.ndarray:
    """The counts of m references that all differ."""
    return np.ones(m)


def _cholesky_above(K: np.ndarray, added: Any, floor: float) -> np.ndarray | None:
    """The lower Cholesky factor of M = K + added if M - floor·I is positive definite, and None otherwise."""
    M = K + added
    M.reshape(-1)[:: len(M) + 1] -= floor
    if lapack.dpotrf(M.T, lower=1, clean=0, overwrite_a=1)[1]:
        return None
    return lapack.dpotrf((K + added).T, lower=1, clean=0, overwrite_a=1)[0]
