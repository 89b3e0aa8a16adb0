"""Factorisations of the references' kernel matrix: for the map and, at a lower cost, for inner products. Symbols as in ``maps``."""

import math
import os
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy.linalg import lapack

from .file_rules import Array, Rule
from .threads import one_blas_thread
from .validation import SYMMETRY_TOLERANCE, is_number

MATRICES = 3  # A kernel matrix, its centred copy and its eigenvectors exist at the same time


@dataclass(frozen=True)
class Factor:
    """Phi(X) = [k(X, R), 1] projection: the centring and the whitening in one product."""

    eigenvalues: np.ndarray
    projection: np.ndarray

    _file_rules: ClassVar[dict[str, Rule]] = {"eigenvalues": Array(("r",)), "projection": Array(("p", "r"))}


def factorise(K_RR: npt.ArrayLike, center: bool, floor: float) -> Factor:
    """Centre, decompose and truncate the references' kernel matrix."""
    K_RR = np.asarray(K_RR, dtype=np.float64)
    m = K_RR.shape[0]
    check_references(K_RR.sum(), m, center)
    mu = K_RR.mean(axis=0) if center else np.zeros(m)
    with one_blas_thread():  # if other work shares the cores, two threads wait for each other
        lam, U = scipy.linalg.eigh(centred(K_RR, mu) if center else K_RR, check_finite=False)
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
    return Factor(lam[kept], np.ascontiguousarray(np.vstack([projection, -mu @ projection])))  # in C order, products with rows are faster


class Whitening:
    """The reference kernel's inner products, at the lowest cost; ``K_first`` are those among the ``first`` references.

    If M - floor·I (M = Kc_RR + c 11'/m, or K_RR without centring; c is the mean eigenvalue) has a Cholesky factor, all eigenvalues of M
    exceed the floor: the ``whole`` ``rank`` is kept, and the features of Z are Kc_ZR U^-1 with M = U'U. Otherwise the eigenvectors above
    the floor are computed, and the features are those of the map.
    """

    def __init__(self, K_RR: npt.ArrayLike, center: bool, floor: float, first: int = 0) -> None:
        K_RR = np.ascontiguousarray(K_RR, dtype=np.float64)
        m = len(K_RR)
        self.mu = K_RR.mean(axis=0)
        check_references(m * self.mu.sum(), m, center)
        self.center, self._first, self.rank = center, first, m - center
        K = centred(K_RR, self.mu) if center else K_RR
        M = K + K.trace() / m / m if center else K.copy()
        at = np.arange(m)
        M[at, at] -= floor
        _, fails = lapack.dpotrf(M, lower=1, clean=0, overwrite_a=0)
        if not fails:
            M[at, at] += floor
            self._L, fails = lapack.dpotrf(M, lower=1, clean=0)
        self.whole = not fails
        if self.whole:
            self.K_first = K[:first, :first]
            return
        lam, V, _ = lapack.dsyevd(K, lower=1)
        kept = lam >= floor
        self.rank = int(np.count_nonzero(kept))
        check_rank(self.rank, m, floor, lam[-1])
        self._kept, self._sizes = np.ascontiguousarray(V[:, kept]), np.sqrt(lam[kept])
        Phi_first = self._kept[:first] * self._sizes
        self.K_first = Phi_first @ Phi_first.T  # each pair once

    def features(self, K_ZR: np.ndarray) -> np.ndarray:
        """Phi(Z) from k(Z, R), in a basis that depends on what was truncated."""
        rows = self._rows(K_ZR)
        return self._solved(rows) if self.whole else (rows @ self._kept) / self._sizes

    def with_first(self, K_ZR: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inner products of Z with the first references (projected onto kept directions), and of every z with itself, from k(Z, R)."""
        rows = self._rows(K_ZR)
        if self.whole:
            Phi = self._solved(rows)
            return rows[:, : self._first], np.einsum("ij,ij->i", Phi, Phi)
        along = rows @ self._kept
        Phi = along / self._sizes
        return along @ self._kept[: self._first].T, np.einsum("ij,ij->i", Phi, Phi)

    def _rows(self, K_ZR: np.ndarray) -> np.ndarray:
        """Kc_ZR = (K_ZR - 1 mu') J, or K_ZR itself without centring."""
        return centred(K_ZR, self.mu) if self.center else K_ZR

    def _solved(self, rows: np.ndarray) -> np.ndarray:
        """rows L'^-1."""
        return scipy.linalg.blas.dtrsm(1.0, self._L, rows.T, lower=1).T


def centred(K: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """(K - 1 mu') J: JKJ for a symmetric K and its column means. Each row is shifted by its own mean, and sums to 0 up to rounding."""
    Kc = K - mu
    Kc -= Kc.mean(axis=1, keepdims=True)
    return Kc


def check_floor(floor: Any) -> None:
    """Raise unless the floor is a number >= 0."""
    if not (is_number(floor) and floor >= 0):
        raise ValueError(f"eigenvalue_floor={floor!r} must be a number >= 0: eigenvalues below it are dropped.")


def check_references(total: float, m: int, center: bool) -> None:
    """Raise if the kernel matrix of m references, whose values sum to ``total``, cannot be factorised."""
    if not math.isfinite(total):
        raise ValueError("The base kernel overflows or is NaN on the references. Scale the data first, for example with TargetScaler.")
    if center and m < 2:
        raise ValueError(
            f"Centring needs at least 2 references, but there is only {m} (references='training' gives one for each of n_samples = {m}). "
            "Add references, or pass center=False."
        )


def check_rank(rank: int, m: int, floor: float, largest: float) -> None:
    """Raise if no eigenvalue of the m references' kernel matrix is kept."""
    if rank == 0:
        raise ValueError(
            f"No eigenvalue of the {m} references' kernel matrix reaches eigenvalue_floor={floor:g} (the largest is {largest:.3g}): "
            "for this kernel the references are all alike. Use other references, a narrower kernel, a lower floor or center=False."
        )


def check_matrices(m: int) -> None:
    """Raise a MemoryError that names ways out if the kernel matrix of m references cannot be factorised on this machine."""
    needed, present = 8.0 * MATRICES * m**2, physical_memory()
    if present is not None and needed > present:
        raise MemoryError(
            f"Factorising the kernel matrix of {m:,} references takes about {needed / 1e9:.0f} GB, and this machine has "
            f"{present / 1e9:.0f} GB. Use fewer references: references=rk.references.Subset(1000) in ReferenceKernel or ReferenceMap, or a "
            'pipeline such as make_pipeline(rk.ReferenceMap(references="auto"), rk.SVDD("linear")).'
        )


def physical_memory() -> int | None:
    """Bytes of memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
