"""The factorisation behind a search. Only inner products matter there, so the cheapest of three ways is used."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from .._jit import DRIVER, njit
from .._jit.lapack import add_outer, project_out, times_vector
from .._jit.products import add_multiple, shift_and_scale
from .._threads import small_products_are_fast
from .centring import centred, column_means
from .checks import check_rank, check_references
from .triangular import cholesky, solve_rows
from .tridiagonal import eigenpairs, low_rank_eigenpairs, tridiagonal_form

FEW_BELOW = 0.25
"""Project out the directions below the floor if they are at most this share of m; keep those above it otherwise."""

LARGE = 256
"""Look for a low rank first if there are more references than this."""

NONE = np.empty((0, 0))
"""No directions."""


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
        K_RR, center, floor = np.ascontiguousarray(K_RR, dtype=np.float64), bool(center), float(floor)
        m = len(K_RR) if counts is None else int(counts.sum())
        self._roots = None if counts is None else np.sqrt(counts)
        self.center, self._first, self._counts = center, first, _once_each(m) if counts is None else counts
        total, self.mu, K, self._U, self.whole = prepared(K_RR, self._counts, center, floor, small_products_are_fast())
        check_references(total, m, center)
        self.rank, self._dropped = len(K) - center, NONE
        self._kept: np.ndarray | None = None
        if self.whole:
            self._set_first(K)
        else:
            self._truncate(K, floor)
        if self.rank == 0:
            check_rank(0, m, floor, np.linalg.eigvalsh(K)[-1])

    def _truncate(self, K: np.ndarray, floor: float) -> None:
        found = low_rank_eigenpairs(K, floor) if len(K) > LARGE else None
        if found is None:
            lam, V, self._U, few = truncated(K, floor, small_products_are_fast())
            if few:
                self.rank, self._dropped = len(K) - len(V), V
                self._set_first(K, lam)
                return
        else:
            lam, V = found
        self.rank, self._kept, self._sizes = lam.size, V.T, np.sqrt(lam)
        self._kept_first = self._once(V[:, self._first]).T
        Phi_first = self._kept_first * self._sizes
        self.K_first = Phi_first @ Phi_first.T  # each pair once

    def _set_first(self, K: np.ndarray, dropped: np.ndarray | None = None) -> None:
        """K_first from K less the dropped eigenvalues' part."""
        first = self._first
        K_first = K[first][:, first].copy()
        if dropped is not None:
            V = self._dropped[:, first]
            K_first -= (V.T * dropped) @ V
        self.K_first = self._once(self._once(K_first).T)

    def features(self, K_ZR: np.ndarray) -> np.ndarray:
        """Phi(Z) from k(Z, R), in a basis that depends on what was truncated."""
        rows = self._rows(K_ZR)
        return solved(rows, self._U, small_products_are_fast()).T if self._kept is None else (rows @ self._kept) / self._sizes

    def with_first(self, K_ZR: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inner products of Z with the first references, and of every z with itself, from k(Z, R).

        For a reference x, K(z, x) is Kc(z, x) projected onto the kept directions.
        """
        rows = self._rows(K_ZR)
        if self._kept is None:
            Phi = solved(rows, self._U, small_products_are_fast()).T
            return self._once(rows[:, self._first]), np.einsum("ij,ij->i", Phi, Phi)
        along = rows @ self._kept
        Phi = along / self._sizes
        return along @ self._kept_first.T, np.einsum("ij,ij->i", Phi, Phi)

    def _rows(self, K_ZR: np.ndarray) -> np.ndarray:
        """Kc_ZR W^½, with Kc_ZR = (K_ZR - 1 mu') J, or K_ZR itself without centring, less the dropped directions if they are few."""
        return centred_rows(np.ascontiguousarray(K_ZR, dtype=np.float64), self.mu, self._counts, self.center, self._dropped)

    def _once(self, columns: np.ndarray) -> np.ndarray:
        """Columns of the first references, each counted once."""
        return columns if self._roots is None else columns / self._roots[self._first]


@functools.lru_cache(maxsize=256)
def _once_each(m: int) -> np.ndarray:
    """The counts of m references that all differ."""
    return np.ones(m)


@njit(interpreted=DRIVER)
def prepared(
    K_RR: np.ndarray, counts: np.ndarray, center: bool, floor: float, strips: bool
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, bool]:
    """The sum of all kernel values, mu, W^½ Kc_RR W^½, and the upper triangular U with U'U = M if M - floor·I is positive definite."""
    m, total, roots = 0.0, 0.0, np.sqrt(counts)
    for i in range(counts.size):
        m += counts[i]
    if center:
        mu = column_means(K_RR, counts)
        K = centred(K_RR, mu, counts)
        for i in range(counts.size):
            total += m * mu[i]
    else:
        mu, K, sums = np.zeros(counts.size), K_RR.copy(), np.empty(counts.size)
        times_vector(K_RR, np.ones(counts.size), sums)
        for i in range(counts.size):
            shift_and_scale(K[i], 0.0, roots[i] * roots)
            total += sums[i]
    trace = 0.0
    for i in range(counts.size):
        trace += K[i, i]
    M = K.copy()
    for i in range(counts.size if center else 0):
        add_multiple(M[i], trace / m / m * roots[i], roots)
    U = M.copy()
    for i in range(counts.size):
        U[i, i] -= floor
    if not cholesky(U, strips):
        return total, mu, K, U, False
    return total, mu, K, M, cholesky(M, strips)


@njit(interpreted=DRIVER)
def truncated(K: np.ndarray, floor: float, strips: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Either the few eigenpairs below the floor, and U with U'U = K + c NN'; or the eigenpairs above it, without U."""
    m = len(K)
    T = tridiagonal_form(K, floor)
    few = 0 < m - T.above <= FEW_BELOW * m
    while True:  # twice if rounding leaves no U
        lam, V = eigenpairs(T, not few, strips)
        if not few:
            return lam, V, np.empty((0, 0)), False
        U, trace = K.copy(), 0.0
        for i in range(m):
            trace += K[i, i]
        add_outer(trace / m, V, U)
        if cholesky(U, strips):
            return lam, V, U, True
        few = False


@njit(interpreted=DRIVER)
def centred_rows(K_ZR: np.ndarray, mu: np.ndarray, counts: np.ndarray, center: bool, dropped: np.ndarray) -> np.ndarray:
    """(K_ZR - 1 mu') J W^½, or K_ZR W^½ without centring, less the dropped directions (in rows)."""
    rows, m, roots, means = K_ZR.copy(), 0.0, np.sqrt(counts), np.zeros(len(K_ZR))
    for i in range(counts.size):
        m += counts[i]
    for i in range(len(rows)):
        add_multiple(rows[i], -1.0, mu)
    if center:
        times_vector(rows, counts / m, means)
    for i in range(len(rows)):
        shift_and_scale(rows[i], means[i], roots)
    if len(dropped) > 0:
        project_out(dropped, rows)
    return rows


@njit(interpreted=DRIVER)
def solved(rows: np.ndarray, U: np.ndarray, strips: bool) -> np.ndarray:
    """rows U^-1, by columns."""
    columns = rows.T.copy()
    solve_rows(U, columns, strips)
    return columns
