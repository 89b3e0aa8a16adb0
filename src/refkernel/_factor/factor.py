"""The factorisation behind the map: eigenvectors, whitened."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import scipy.linalg

from .._threads import one_blas_thread
from ..kernels.base import SYMMETRY_TOLERANCE
from .centring import centred, column_means
from .checks import check_rank, check_references


class Factorisation(Protocol):
    """What ``Factor`` and ``Whitening`` both offer. Their features may differ in basis, but have the same inner products."""

    @property
    def rank(self) -> int:
        """The number of eigenvalues that are kept."""

    def features(self, K_ZR: np.ndarray) -> np.ndarray:
        """Phi(Z) from k(Z, R)."""


@dataclass(frozen=True)
class Factor:
    """Phi(X) = [k(X, R), 1] projection: the centring and the whitening in one product."""

    eigenvalues: np.ndarray
    projection: np.ndarray

    @property
    def rank(self) -> int:
        """The number of eigenvalues that are kept, and of features."""
        return self.eigenvalues.size

    def features(self, K_ZR: np.ndarray) -> np.ndarray:
        """Phi(Z) from k(Z, R). The map itself adds the column of ones block by block."""
        return np.column_stack([K_ZR, np.ones(len(K_ZR))]) @ self.projection


Factor.__module__ = __package__  # model files hold the type's name, which must not depend on how this package is arranged


def factorise(K_RR: npt.ArrayLike, center: bool, floor: float) -> Factor:
    """Centre, decompose and truncate the references' kernel matrix."""
    K_RR = np.asarray(K_RR, dtype=np.float64)
    m = K_RR.shape[0]
    check_references(K_RR.sum(), m, center)
    once = np.ones(m)
    mu = column_means(K_RR, once) if center else np.zeros(m)
    with one_blas_thread():  # if other work shares the cores, two threads wait for each other
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
    return Factor(lam[kept], np.ascontiguousarray(np.vstack([projection, -mu @ projection])))  # in C order, products with rows are faster
