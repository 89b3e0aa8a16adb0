"""Factorisations of the references' kernel matrix: one for the map, and cheaper ones where only inner products count.

Symbols as in ``feature_map``: ``K_RR`` (m × m), ``K_ZR = k(Z, R)``, ``mu`` the column means of K_RR, ``J = I - 11'/m``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from ._jit import njit
from ._validation import is_number
from .kernels.base import SYMMETRY_TOLERANCE

FEW_BELOW = 0.25
"""Share of m: up to so many directions below the floor are projected out; else those above it are kept."""

FEWEST_BELOW = 0.05
"""Share of m up to which eigenvectors are found one by one, and not all together."""

NEGLIGIBLE = 1e-17
"""A component of an eigenvector that is lost in the rounding of the others."""

LARGE = 256
"""References from which on it pays to look for a low rank first."""

PIVOT_TOLERANCE = 1e-12
"""A pivoted Cholesky factorisation stops at this share of the largest diagonal value, a little above rounding; what it leaves out of
m eigenvalues is at most m times that."""

LOW_RANK = 0.75
"""Share of m up to which a pivoted factor and a small eigendecomposition are cheaper than a whole one."""


@dataclass(frozen=True)
class Factor:
    """Phi(X) = [k(X, R), 1] projection: the centring and the whitening in one product."""

    eigenvalues: np.ndarray
    projection: np.ndarray


def factorise(K_RR, center, floor) -> Factor:
    """Centre, decompose and truncate the references' kernel matrix."""
    K_RR = np.asarray(K_RR, dtype=np.float64)
    m = K_RR.shape[0]
    check_references(K_RR, m, center)
    once = np.ones(m)
    mu = column_means(K_RR, once) if center else np.zeros(m)
    lam, U = scipy.linalg.eigh(centred(K_RR, mu, once) if center else K_RR, check_finite=False)
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

    If M - floor·I (M = Kc_RR + c 11'/m, or K_RR without centring; c is the mean eigenvalue) has a Cholesky factor, all eigenvalues
    of M exceed the floor: nothing is truncated, and features of Z are Kc_ZR L^-T with M = LL'. Where a few eigenvalues are below the
    floor, their eigenvectors N are taken out of the rows of Kc_ZR, as centring takes out the constant, and M = Kc_RR + c NN'. Else
    the eigenvectors above the floor are found, and the features are those of the map.

    Of references that repeat each other one is enough, if it counts for all: with W the diagonal matrix of the counts,
    W^½ Kc_RR W^½ has the eigenvalues of all references' matrix, but for zeros, and Kc_ZR W^½ takes the place of Kc_ZR.

    Parameters
    ----------
    K_RR : kernel matrix of the distinct references.
    counts : how often each occurs; None for once.
    first : slice or indices of references whose inner products are wanted too.

    Attributes
    ----------
    rank : int, the eigenvalues that are kept.
    whole : bool, whether nothing was truncated.
    K_first : inner products of the ``first`` references with each other.
    """

    def __init__(self, K_RR, center, floor, counts=None, first=slice(0)):
        K_RR = np.asarray(K_RR, dtype=np.float64)
        self._roots = None if counts is None else np.sqrt(counts)
        counts = np.ones(len(K_RR)) if counts is None else counts
        m = int(counts.sum())
        check_references(K_RR, m, center)
        self.center, self._first, self._dropped, self._shares = center, first, None, counts / m
        self.mu = column_means(K_RR, counts) if center else np.zeros(len(K_RR))
        weights = 1.0 if self._roots is None else np.outer(self._roots, self._roots)
        K = centred(K_RR, self.mu, counts) if center else K_RR * weights
        self._L = _cholesky_above(K + (K.trace() / m) * weights / m if center else K.copy(), floor)
        self.whole = self._L is not None
        self.rank = len(K) - bool(center)
        if self.whole:
            self._set_first(K)
        else:
            self._truncate(K, floor)
        if self.rank == 0:
            check_rank(0, m, floor, np.linalg.eigvalsh(K)[-1])

    def _truncate(self, K, floor):
        m = len(K)
        found = _low_rank_eigenpairs(K, floor) if m > LARGE else None
        if found is None:
            tridiagonal = Tridiagonal(K, floor)
            self.rank = tridiagonal.above
            if 0 < m - self.rank <= FEW_BELOW * m:
                lam, N = tridiagonal.eigenpairs_below()
                self._L, refused = lapack.dpotrf((K + (K.trace() / m * N) @ N.T).T, lower=1, clean=0)
                if not refused:
                    self._dropped = N
                    self._set_first(K, lam)
                    return
                self._L = None
            found = tridiagonal.eigenpairs_above()
        lam, self._U = found
        self.rank, self._sizes = lam.size, np.sqrt(lam)
        self._U_first = self._once(self._U[self._first].T).T
        self.K_first = (self._U_first * lam) @ self._U_first.T

    def _set_first(self, K, dropped=None):
        """K_first from K less the dropped eigenvalues' part."""
        K_first = K[self._first][:, self._first].copy()
        if self._dropped is not None:
            N = self._dropped[self._first]
            K_first -= (N * dropped) @ N.T
        self.K_first = self._once(self._once(K_first).T)

    def features(self, K_ZR):
        """Features of Z, of any basis, from k(Z, R)."""
        rows = self._rows(K_ZR)
        return (rows @ self._U) / self._sizes if self._L is None else self._solved(rows)

    def with_first(self, K_ZR) -> tuple[np.ndarray, np.ndarray]:
        """Inner products of Z with the first references, and of every z with itself, from k(Z, R).

        Of a reference x, K(z, x) is what the projection on the kept directions leaves of Kc(z, x).
        """
        rows = self._rows(K_ZR)
        if self._L is None:
            along = rows @ self._U
            K_first, Phi = along @ self._U_first.T, along / self._sizes
        else:
            K_first, Phi = self._once(rows[:, self._first]), self._solved(rows)
        return K_first, np.einsum("ij,ij->i", Phi, Phi)

    def _rows(self, K_ZR):
        """Kc_ZR W^½, with Kc_ZR = (K_ZR - 1 mu') J or K_ZR itself without centring, less the dropped directions where these are few."""
        rows = K_ZR - self.mu
        if self.center:
            rows -= (rows @ self._shares)[:, None]
        if self._roots is not None:
            rows *= self._roots
        return rows if self._dropped is None else rows - (rows @ self._dropped) @ self._dropped.T

    def _once(self, columns):
        """Columns of the first references, each counted once."""
        return columns if self._roots is None else columns / self._roots[self._first]

    def _solved(self, rows):
        """rows L^-T."""
        return lapack.dtrtrs(self._L, rows.T, lower=1)[0].T


class Tridiagonal:
    """A symmetric matrix as QTQ' with T tridiagonal, and its eigenpairs above and below a floor.

    ``above`` eigenvalues reach the floor, by the signs of a Sturm sequence. Where the spectrum decays, so does T along its diagonal,
    and the eigenvectors above the floor end in components that fall faster than geometrically: they are those of a leading block.
    """

    def __init__(self, K, floor):
        self._floor = floor
        self._reflectors, self._d, e, self._tau, _ = lapack.dsytrd(K.T, lower=1, lwork=32 * len(K))
        self._e = np.zeros(len(K))  # as long as d, as some routines want it
        self._e[:-1] = e
        self.above, self._block = leading_block(self._d, self._e, floor)

    def eigenpairs_above(self):
        """Eigenvalues that reach the floor, rising, and their eigenvectors."""
        if self.above == 0:
            return np.empty(0), np.empty((self._d.size, 0))
        for block in (self._block, self._d.size):
            lam, S, _ = lapack.dstevd(self._d[:block], self._e[: max(block - 1, 1)])
            kept = lam.size - np.searchsorted(lam, self._floor)
            if kept == self.above:
                break  # else one is within rounding of the floor, where the whole decides
        return lam[lam.size - kept :], self._turned(S[:, S.shape[1] - kept :])

    def eigenpairs_below(self):
        """The other eigenpairs, in any order."""
        m = self._d.size
        below = m - self.above
        e = self._e[: max(m - 1, 1)]
        failed = True
        if 0 < below <= FEWEST_BELOW * m:
            _, lam, block, split, failed = lapack.dstebz(self._d, e, 2, 0.0, 0.0, 1, below, 0.0, "B")  # 2: by their numbers
            if not failed:
                S, failed = lapack.dstein(self._d, e, lam[:below], block, split)
        if failed:
            lam, S, _ = lapack.dstevd(self._d, e)
        return lam[:below], self._turned(S[:, :below])

    def _turned(self, S):
        """QS, of S with zeros below it."""
        U = np.zeros((self._d.size, S.shape[1]), order="F")
        U[: len(S)] = S
        turns = min(len(S), self._tau.size)
        if turns:
            U[1:], _, _ = lapack.dormqr("L", "N", self._reflectors[1:, :turns], self._tau[:turns], U[1:], 32 * S.shape[1] + 65 * 64)
        return U


@njit(cache=True, nogil=True)
def leading_block(d, e, floor):
    """How many eigenvalues of a tridiagonal matrix reach the floor, and the size of the leading block that has their eigenvectors."""
    above, end = 0, 0
    pivots = np.empty(d.size)  # of floor·I - T, eliminated from its end: as many are negative as eigenvalues exceed the floor
    for i in range(d.size - 1, -1, -1):
        pivots[i] = floor - d[i]
        if i + 1 < d.size:
            pivots[i] -= e[i] * e[i] / pivots[i + 1]
        if pivots[i] == 0.0:
            pivots[i] = -np.finfo(np.float64).tiny
        if pivots[i] < 0.0:
            above += 1
            end = max(end, i + 1)
    component = 1.0  # bounds that of an eigenvector above the floor
    while 0 < end < d.size and component > NEGLIGIBLE:
        component *= abs(e[end - 1]) / pivots[end]
        end += 1
    return above, end


def distinct_rows(R) -> tuple[np.ndarray, np.ndarray] | None:
    """The numbers of the rows that repeat no earlier one, and for every row which of these it is; None where no row repeats."""
    with np.errstate(over="ignore", invalid="ignore"):
        _, group, sizes = np.unique(R.sum(axis=1), return_inverse=True, return_counts=True)
    if sizes.size == len(R):
        return None
    known: dict[int | bytes, int] = {}
    alike = sizes[group] > 1  # only rows of one sum can be
    which = np.array([known.setdefault((R[i] + 0.0).tobytes() if alike[i] else i, len(known)) for i in range(len(R))])  # -0.0 is 0.0
    return None if len(known) == len(R) else (np.unique(which, return_index=True)[1], which)


@njit(cache=True, nogil=True)
def column_means(K, counts):
    """Of the rows of K, each counted so often."""
    mu = np.zeros(K.shape[1])
    m = 0.0
    for i in range(K.shape[0]):
        m += counts[i]
        for j in range(mu.size):
            mu[j] += counts[i] * K[i, j]
    for j in range(mu.size):
        mu[j] /= m
    return mu


@njit(cache=True, nogil=True, fastmath={"reassoc"})  # lets sums use vector registers
def centred(K, mu, counts):
    """W^½ JKJ W^½ for the symmetric K, given its column means and how often each row counts (W).

    Rows are moved by their own mean, so that they sum to 0 as nearly as they can.
    """
    roots = np.sqrt(counts)
    m = counts.sum()
    Kc = np.empty(K.shape)
    for i in range(mu.size):
        mean = 0.0
        for j in range(mu.size):
            Kc[i, j] = K[i, j] - mu[j]
            mean += counts[j] * Kc[i, j]
        mean /= m
        for j in range(mu.size):
            Kc[i, j] = (Kc[i, j] - mean) * (roots[i] * roots[j])
    return Kc


def check_floor(floor) -> None:
    if not (is_number(floor) and floor >= 0):
        raise ValueError(f"eigenvalue_floor={floor!r} must be a number >= 0: eigenvalues below it are dropped.")


def check_references(K_RR, m, center) -> None:
    """Raise if the kernel matrix of m references cannot be factorised."""
    if not np.isfinite(K_RR.sum()):
        raise ValueError("The base kernel overflows or is NaN on the references. Scale the data first, for example with TargetScaler.")
    if center and m < 2:
        raise ValueError(
            f"Centring needs at least 2 references, and there is {m} (references='training' gives one for each of n_samples = {m}). "
            "Add references, or pass center=False."
        )


def check_rank(rank, m, floor, largest) -> None:
    if rank == 0:
        raise ValueError(
            f"No eigenvalue of the {m} references' kernel matrix reaches eigenvalue_floor={floor:g} (the largest is {largest:.3g}): "
            "for this kernel the references are all alike. Use other references, a narrower kernel, a lower floor or center=False."
        )


def _cholesky_above(M, floor):
    """The lower Cholesky factor of M if M - floor·I is positive definite, else None. Overwrites M."""
    diagonal = np.einsum("ii->i", M)
    diagonal -= floor
    if lapack.dpotrf(M.T, lower=1, clean=0)[1]:
        return None
    diagonal += floor
    return lapack.dpotrf(M.T, lower=1, clean=0, overwrite_a=1)[0]


def _low_rank_eigenpairs(Kc_RR, floor):
    """The eigenpairs above the floor from a pivoted Cholesky factor; None if its rank is not low, an eigenvalue is too close to the
    floor to tell, or the matrix is indefinite, so that the factor is not of all of it."""
    m = Kc_RR.shape[0]
    tolerance = PIVOT_TOLERANCE * max(Kc_RR.diagonal().max(), 0.0)
    left_out = 2 * m * tolerance
    if floor <= left_out:
        return None
    C, pivots, k, _ = lapack.dpstrf(Kc_RR.T, tol=tolerance, lower=1)
    if not 0 < k <= LOW_RANK * m:
        return None
    L = np.tril(C[:, :k])
    if np.abs(L @ L.T - Kc_RR[np.ix_(pivots - 1, pivots - 1)]).max() > left_out:
        return None
    lam, V = Tridiagonal(L.T @ L, floor - left_out).eigenpairs_above()
    if lam.size == 0 or lam[0] < floor + left_out:
        return None
    U = np.empty((m, lam.size))
    U[pivots - 1] = L @ (V / np.sqrt(lam))
    return lam, U
