"""Kernels of the distance between two samples, and the one rule for their width."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import pairwise

from .. import _gaussian
from .._distances import MODERATE, DistancesTo, mean_l1_distance, neighbour_distances, root_mean_squared_distance
from .._training import TrainingRows
from .._typing import MatrixLike, RandomStateLike
from .._validation import check_choice, check_positive, is_number
from .base import Kernel, check_columns
from .products import as_gamma

__all__ = ["RBF", "Laplacian"]

NEIGHBOUR_RULE = "neighbours"

PER_NEIGHBOUR_DISTANCE = 0.35
"""sigma as a multiple of the distance to neighbours: real tables are ranked equally well from 0.25 to 0.35, and worse from 0.5 upwards."""

MOST_WIDTHS = 5.0
"""95 % of the rows have a neighbour within this many widths: farther away all kernel values vanish, and samples cannot be ranked."""

NO_WIDTH = "This {} has no width yet: call k = k.fit(X) first (fit returns the kernel to use), or pass {}."


class Stationary(Kernel):
    """Common code of the stationary kernels: k(x, x) = 1, and a width that ``resolve`` measures unless it is given."""

    positive_definite = True
    vanishes = True
    precision = 1e-11  # squared distances come from products, and lose digits where rows are many widths apart

    def resolve(self, rows: TrainingRows, sample_weight: np.ndarray | None = None, random_state: RandomStateLike = None) -> Kernel:
        check_choice("fit_on", self.fit_on, ("references", "training"))
        return self._resolved(rows, sample_weight)

    def _resolved(self, rows: TrainingRows, sample_weight: np.ndarray | None) -> Kernel:
        raise NotImplementedError

    def diag(self, X: MatrixLike) -> np.ndarray:
        return np.ones(np.shape(X)[0])


class RBF(Stationary):
    """k(x, z) = exp(-||x - z||² / (2 sigma²)).

    Parameters
    ----------
    scale : float, array-like of shape (n_features,), "neighbours" or None, default=None
        A number is the article's width rule: sigma² = scale · (mean squared distance over all pairs that ``fit`` sees).
        "neighbours" is a narrow width that follows the data: sigma = 0.35 · (median over rows of the root mean squared distance to the 5
        nearest rows), but wide enough that 95 % of the rows have a neighbour within 5 sigma. Repeated rows count once, and at most
        1,000 rows are measured.
        None is "neighbours" if a classifier uses this kernel directly, and 1.0 under a reference map.
    sigma : float or array-like of shape (n_features,), optional
        A fixed width; ``scale`` is then not used.
    fit_on : {"references", "training"}, default="references"
        The rows whose distances a reference map measures: the references (the authors' code) or the training
        samples (the article's text).
    gamma : float, "scale" or "auto", optional
        scikit-learn's parameter for the width: gamma = 1 / (2 sigma²); "scale" is 1 / (d · variance of X), "auto" is 1 / d.
        ``scale`` is then not used.

    Notes
    -----
    An array gives every feature its own width: k(x, z) = exp(-Σ_j (x_j - z_j)² / (2 sigma_j²)), where
    sigma_j² = scale_j · (mean squared distance), so equal entries are the same as one number.

    The relation to scikit-learn: the mean squared distance is 2 d v for d features of average variance v, so that ``scale`` stands
    for gamma = 1 / (4 d v scale). On standardised data ``RBF(scale=0.25)`` is ``gamma="scale"`` = 1 / d, and ``scale=1`` a quarter
    of that gamma.

    Examples
    --------
    >>> import refkernel as rk
    >>> k = rk.RBF(scale=2.0).fit([[0.0], [1.0]])    # mean squared distance 1/2, so sigma² = 1
    >>> round(k.sigma, 6)
    1.0
    >>> k([[0.0]], [[1.0]]).round(4)
    array([[0.6065]])
    """

    def __init__(
        self,
        scale: float | str | npt.ArrayLike | None = None,
        sigma: float | npt.ArrayLike | None = None,
        fit_on: str = "references",
        gamma: float | str | None = None,
    ) -> None:
        self.scale = scale
        self.sigma: Any = sigma  # a number after ``resolve``, or an array if the features have their own widths
        self.fit_on = fit_on
        self.gamma = gamma

    @property
    def narrow(self) -> bool:
        """Whether the width is a rule by name, before and after ``resolve``."""
        return isinstance(self.scale, str) or (self.scale is None and self.sigma is None and self.gamma is None)

    def _resolved(self, rows: TrainingRows, sample_weight: np.ndarray | None) -> RBF:
        if self.sigma is not None and self.gamma is not None:
            raise ValueError(f"sigma={self.sigma!r} and gamma={self.gamma!r} are both given: pass one of them (gamma = 1 / (2 sigma²)).")
        if self.sigma is not None:
            sigma = _widths("sigma", self.sigma, rows.X.shape[1])
            return self if sigma is self.sigma else self._of_sigma(sigma)
        if self.gamma is not None:
            return self._of_sigma(np.sqrt(0.5 / as_gamma(self.gamma, rows.X_targets)))
        if self.scale is None or (isinstance(self.scale, str) and self.scale == NEIGHBOUR_RULE):
            typical, seldom_exceeded = rows.measured(neighbour_distances, sample_weight)
            width = max(PER_NEIGHBOUR_DISTANCE * typical, seldom_exceeded / MOST_WIDTHS)
            return RBF(NEIGHBOUR_RULE, _positive_or_one(width), self.fit_on)
        scale = _widths("scale", self.scale, rows.X.shape[1])
        root = math.sqrt(scale) if isinstance(scale, float | int) else np.sqrt(scale)
        return self._of_sigma(root * rows.measured(root_mean_squared_distance, sample_weight))

    def _of_sigma(self, sigma: Any) -> RBF:
        return RBF(self.scale, _positive_or_one(sigma), self.fit_on)

    def in_map(self) -> RBF:
        return self if self.scale is not None else RBF(1.0, self.sigma, self.fit_on, self.gamma)

    @property
    def shares_distances(self) -> bool:
        """One width for all features, so moderate that distances in the data's own unit lose nothing."""
        return is_number(self.sigma) and MODERATE[0] < self.sigma < MODERATE[1]

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        unit, A, B = self._scaled(X, Z)
        if Z is None and _is_compiled_for(A):
            return _gaussian.matrix(A, unit)
        if sp.issparse(A) or sp.issparse(B):
            check_columns(A, B)
            return pairwise.rbf_kernel(A, B, gamma=0.5 / unit / unit)
        A = np.asarray(A, dtype=np.float64)
        K = DistancesTo(A if B is None else B, _gaussian.half_width(unit), A.shape[0])(A)
        if Z is None:
            np.fill_diagonal(K, 0.0)
        return _gaussian.powers(K)

    def against(self, Z: Any, rows: int) -> Callable[[Any], np.ndarray]:
        if sp.issparse(Z) or np.ndim(self._width()):
            return super().against(Z, rows)
        distances, sparse = DistancesTo(Z, _gaussian.half_width(self._width()), rows, and_zero=True), super().against(Z, rows)

        def values(X: Any) -> np.ndarray:
            if sp.issparse(X):
                return sparse(X)
            return _gaussian.powers(distances(X))  # 2^0 = 1

        return values

    def sums(self, X: Any, Z: Any, weights: np.ndarray) -> np.ndarray:
        if np.ndim(self._width()) or not (_is_compiled_for(X) and _is_compiled_for(Z)):
            return super().sums(X, Z, weights)
        return _gaussian.sums(X, Z, self._width(), weights)

    def features_against(self, X: Any, Z: Any, projection: np.ndarray, out: np.ndarray) -> np.ndarray:
        compiled = all(isinstance(A, np.ndarray) and A.dtype == np.float64 for A in (X, Z, projection, out)) and out.flags.carray
        if np.ndim(self._width()) or not compiled or type(self).against is not RBF.against:
            return super().features_against(X, Z, projection, out)
        return _gaussian.features(X, Z, self._width(), projection, out)

    def of_squared_distances(self, negative: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return _gaussian.exponentials(np.multiply(negative, 0.5 / float(self._width()) ** 2, out=out))

    def _width(self) -> Any:
        if self.sigma is None:
            raise ValueError(NO_WIDTH.format("RBF", "sigma"))
        return self.sigma

    def _scaled(self, X: Any, Z: Any) -> tuple[Any, Any, Any]:
        """(unit, X, Z), scaled so that distances in this unit are the kernel's."""
        sigma = self._width()
        if np.ndim(sigma) == 0:
            return sigma, X, Z
        check_columns(X, Z)
        per_unit = sp.diags_array(1.0 / np.asarray(sigma)) if sp.issparse(X) or sp.issparse(Z) else None
        X, Z = (A if A is None else A @ per_unit if per_unit is not None else np.asarray(A, dtype=np.float64) / sigma for A in (X, Z))
        return 1.0, X, Z


class Laplacian(Stationary):
    """k(x, z) = exp(-gamma ||x - z||_1).

    Parameters
    ----------
    scale : float, default=1.0
        gamma = 1 / (scale · mean L1 distance over all pairs that ``fit`` sees).
    gamma : float, "scale" or "auto", optional
        A fixed gamma, or scikit-learn's rules: "scale" is 1 / (d · variance of X), "auto" is 1 / d. ``scale`` is then not used.
    fit_on : {"references", "training"}, default="references"
        The rows whose distances a reference map measures.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.kernels.Laplacian(gamma=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    """

    def __init__(self, scale: float = 1.0, gamma: float | str | None = None, fit_on: str = "references") -> None:
        self.scale = scale
        self.gamma = gamma
        self.fit_on = fit_on

    def _resolved(self, rows: TrainingRows, sample_weight: np.ndarray | None) -> Laplacian:
        if self.gamma is not None:
            gamma = as_gamma(self.gamma, rows.X_targets)
            return self if gamma is self.gamma else Laplacian(self.scale, gamma, self.fit_on)
        check_positive("scale", self.scale)
        width = _positive_or_one(self.scale * rows.measured(mean_l1_distance, sample_weight))
        return Laplacian(self.scale, 1.0 / width, self.fit_on)

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        if not is_number(self.gamma):
            raise ValueError(NO_WIDTH.format("Laplacian", "gamma"))
        return pairwise.laplacian_kernel(_in_32_bits(X), _in_32_bits(Z), gamma=self.gamma)


def _in_32_bits(X: Any) -> Any:
    """Sparse rows with the indices that scikit-learn's L1 distances take; other rows as they are."""
    if not sp.issparse(X):
        return X
    X = X.tocsr()
    return sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def _is_compiled_for(X: Any) -> bool:
    """Whether rows are dense, and their features so few that one compiled pass is faster than BLAS."""
    return isinstance(X, np.ndarray) and X.dtype == np.float64 and X.ndim == 2 and 0 < X.shape[1] <= _gaussian.MOST_COLUMNS and len(X) > 0


def _widths(name: str, value: Any, d: int) -> Any:
    """A positive number, or an array of one for each of d features."""
    if isinstance(value, float) or np.ndim(value) == 0:
        check_positive(name, value)
        return value
    widths = np.asarray(value)
    if widths.dtype.kind not in "fiu" or widths.shape != (d,) or not (np.isfinite(widths) & (widths > 0)).all():
        raise ValueError(f"{name}={value!r} must be a positive number, or {d} of them: one for each feature.")
    return widths.astype(np.float64)


def _positive_or_one(width: Any) -> Any:
    """The width, or 1 where it is 0: all rows are equal then, and any width gives the same kernel."""
    if isinstance(width, float) and 0.0 < width < math.inf:
        return width
    if not np.isfinite(width).all():
        raise ValueError("The distances between the samples overflow. Scale the data first, for example with TargetScaler.")
    if np.ndim(width):
        return np.where(width > 0, width, 1.0)
    return float(width) if width > 0 else 1.0
