"""Kernels of the distance between two samples, and the one rule for their width."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import pairwise

from .._core import gaussian as _gaussian
from .._core.distances import MODERATE, DistancesTo, mean_l1_distance, neighbour_distances, root_l1_distances, root_mean_squared_distance
from .._core.file_rules import Number, Part, Rule, shown
from .._core.rows import TrainingRows
from .._core.types import MatrixLike, RandomStateLike
from .._core.validation import check_choice, check_positive, is_number
from .base import Kernel, check_columns
from .products import as_gamma

PER_NEIGHBOUR_DISTANCE = 0.35  # sigma over the distance to neighbours: real tables rank equally well from 0.25 to 0.35, and worse from 0.5
MOST_WIDTHS = 5.0  # 95 % of the rows have a neighbour within this many widths: farther away kernel values vanish, and nothing can be ranked
NO_WIDTH = "This {} has no width yet: call fit(X) first, or pass {}."
ROOT_ROWS = 1000  # rows whose mean root distance is measured: it takes all pairs


class Stationary(Kernel):
    """Common code of the stationary kernels: k(x, x) = 1, and a width that ``fit`` measures unless it is given."""

    _positive_definite = True
    _vanishes = True
    _precision = 1e-11  # squared distances come from products, and lose digits where rows are many widths apart

    def _learn(self, rows: TrainingRows, sample_weight: np.ndarray | None, random_state: RandomStateLike) -> None:
        check_choice("fit_on", self.fit_on, ("references", "training"))

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
        The rows whose distances a reference map measures: as in the authors' code, or as in the article's text.
    gamma : float, "scale" or "auto", optional
        scikit-learn's parameter for the width, instead of ``scale``: 1 / (2 sigma²), 1 / (d · variance of X) or 1 / d.

    Attributes
    ----------
    sigma_ : float or ndarray of shape (n_features,)
        The fitted width.

    Notes
    -----
    An array gives every feature its own width: k(x, z) = exp(-Σ_j (x_j - z_j)² / (2 sigma_j²)), where
    sigma_j² = scale_j · (mean squared distance). On standardised data ``RBF(scale=0.25)`` is scikit-learn's ``gamma="scale"``.

    Examples
    --------
    >>> import refkernel as rk
    >>> k = rk.RBF(scale=2.0).fit([[0.0], [1.0]])    # mean squared distance 1/2, so sigma² = 1
    >>> round(k.sigma_, 6)
    1.0
    >>> k([[0.0]], [[1.0]]).round(4)
    array([[0.6065]])
    """

    _file_rules: ClassVar[dict[str, Rule]] = {"sigma_": Part(object)}

    def __init__(
        self,
        scale: float | str | npt.ArrayLike | None = None,
        sigma: float | npt.ArrayLike | None = None,
        fit_on: str = "references",
        gamma: float | str | None = None,
    ) -> None:
        self.scale = scale
        self.sigma = sigma
        self.fit_on = fit_on
        self.gamma = gamma

    _narrow = property(lambda self: isinstance(self.scale, str) or (self.scale is None and self.sigma is None and self.gamma is None))

    # One width for all features, so moderate that distances in the data's own unit lose nothing.
    _shares_distances = property(lambda self: is_number(self.sigma_) and MODERATE[0] < self.sigma_ < MODERATE[1])

    def _learn(self, rows: TrainingRows, sample_weight: np.ndarray | None, random_state: RandomStateLike) -> None:
        super()._learn(rows, sample_weight, random_state)
        if self.sigma is not None and self.gamma is not None:
            raise ValueError(f"sigma={self.sigma!r} and gamma={self.gamma!r} are both given: pass one of them (gamma = 1 / (2 sigma²)).")
        self.sigma_: Any = _positive_or_one(self._sigma(rows, sample_weight))

    def _sigma(self, rows: TrainingRows, sample_weight: np.ndarray | None) -> Any:
        """The width: as given, or by the rule that ``scale`` stands for."""
        if self.sigma is not None:
            return _widths("sigma", self.sigma, rows.X.shape[1])
        if self.gamma is not None:
            return math.sqrt(0.5 / as_gamma(self.gamma, rows.X_targets))
        if self.scale is None or (isinstance(self.scale, str) and self.scale == "neighbours"):
            typical, seldom_exceeded = rows.measured(neighbour_distances, sample_weight)
            return max(PER_NEIGHBOUR_DISTANCE * typical, seldom_exceeded / MOST_WIDTHS)
        return np.sqrt(_widths("scale", self.scale, rows.X.shape[1])) * rows.measured(root_mean_squared_distance, sample_weight)

    _power_and_scale = property(lambda self: _measured(2.0, 1.0 if self.scale is None else self.scale, 2.0, (self.sigma, self.gamma)))

    def _in_map(self) -> "RBF":
        return self if self.scale is not None else RBF(1.0, self.sigma, self.fit_on, self.gamma)

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        sigma = self._width()
        if np.ndim(sigma):
            check_columns(X, Z)
            return RBF(sigma=1.0)(_divided(X, sigma), None if Z is None else _divided(Z, sigma))
        if sp.issparse(X) or sp.issparse(Z):
            check_columns(X, Z)
            return pairwise.rbf_kernel(X, Z, gamma=0.5 / sigma / sigma)
        X = np.asarray(X, dtype=np.float64)
        K = DistancesTo(X if Z is None else Z, _gaussian.per_unit(sigma), X.shape[0])(X)
        if Z is None:
            np.fill_diagonal(K, 0.0)
        return _gaussian.powers(K)

    def _against(self, Z: Any, rows: int) -> Callable[[Any], np.ndarray]:
        if sp.issparse(Z) or np.ndim(self._width()):
            return super()._against(Z, rows)
        distances, sparse = DistancesTo(Z, _gaussian.per_unit(self._width()), rows, and_zero=True), super()._against(Z, rows)
        return lambda X: sparse(X) if sp.issparse(X) else _gaussian.powers(distances(X))  # 2^0 = 1

    def _sums(self, X: Any, Z: Any, weights: np.ndarray) -> np.ndarray:
        if np.ndim(self._width()) or not (_is_compiled_for(X) and _is_compiled_for(Z)):
            return super()._sums(X, Z, weights)
        return _gaussian.sums(X, Z, self._width(), weights)

    def _of_squared_distances(self, negative: np.ndarray) -> np.ndarray:
        return _gaussian.exponentials(negative * (0.5 / float(self._width()) ** 2))

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """The fitted width is a positive number, or an array of them."""
        sigma = getattr(self, "sigma_", 1.0)
        widths = np.asarray(sigma) if is_number(sigma) or isinstance(sigma, np.ndarray) else np.empty(0, dtype=object)
        fits = widths.dtype.kind in "fiu" and widths.ndim <= 1 and bool((np.isfinite(widths) & (widths > 0)).all())
        return None if fits else f"sigma_ is not a positive number or an array of them: {shown(sigma)}"

    def _width(self) -> Any:
        sigma = getattr(self, "sigma_", self.sigma)
        if sigma is None:
            raise ValueError(NO_WIDTH.format("RBF", "sigma"))
        return sigma


def _divided(X: Any, widths: Any) -> Any:
    """Rows with every feature in units of its width."""
    return X.multiply(1.0 / np.asarray(widths)) if sp.issparse(X) else np.asarray(X, dtype=np.float64) / widths


class Laplacian(Stationary):
    """``k(x, z) = exp(-gamma Σ_j |x_j - z_j|^exponent)``: of L1 distances, or of root distances.

    Parameters
    ----------
    scale : float, default=1.0
        gamma = 1 / (scale · mean distance over all pairs that ``fit`` sees; of root distances over the pairs of at most 1,000 rows).
    gamma : float, "scale" or "auto", optional
        A fixed gamma, or scikit-learn's rules: "scale" is 1 / (d · variance of X), "auto" is 1 / d. ``scale`` is then not used.
    fit_on : {"references", "training"}, default="references"
        The rows whose distances a reference map measures.
    exponent : {1.0, 0.5}, default=1.0
        1 is the L1 distance. 0.5 adds up square roots: one large deviation counts less, many small ones more.

    Attributes
    ----------
    gamma_ : float
        The fitted gamma.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.kernels.Laplacian(gamma=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    >>> rk.kernels.Laplacian(gamma=1.0, exponent=0.5)([[0.0, 0.0]], [[4.0, 1.0]]).round(4)
    array([[0.0498]])
    """

    _file_rules: ClassVar[dict[str, Rule]] = {"exponent": Number(positive=True), "gamma_": Number(positive=True)}

    def __init__(self, scale: float = 1.0, gamma: float | str | None = None, fit_on: str = "references", exponent: float = 1.0) -> None:
        self.scale = scale
        self.gamma = gamma
        self.fit_on = fit_on
        self.exponent = exponent

    _accepts_sparse = property(lambda self: self.exponent == 1.0)

    _power_and_scale = property(lambda self: _measured(self.exponent, self.scale, 1.0, (self.gamma,)))

    def _learn(self, rows: TrainingRows, sample_weight: np.ndarray | None, random_state: RandomStateLike) -> None:
        super()._learn(rows, sample_weight, random_state)
        check_choice("exponent", self.exponent, (1.0, 0.5))
        if self.gamma is not None:
            self.gamma_ = as_gamma(self.gamma, rows.X_targets)
            return
        check_positive("scale", self.scale)
        mean = rows.measured(mean_l1_distance if self.exponent == 1.0 else _mean_root_distance, sample_weight)
        self.gamma_ = 1.0 / _positive_or_one(self.scale * mean)

    def __call__(self, X: MatrixLike, Z: MatrixLike | None = None) -> np.ndarray:
        gamma: Any = getattr(self, "gamma_", self.gamma)
        if not is_number(gamma):
            raise ValueError(NO_WIDTH.format("Laplacian", "gamma"))
        if self.exponent == 1.0:
            return pairwise.laplacian_kernel(_in_32_bits(X), _in_32_bits(Z), gamma=gamma)
        return np.exp(-gamma * _root_distances(X, X if Z is None else Z))


def _root_distances(X: MatrixLike, Z: MatrixLike) -> np.ndarray:
    """Σ_j sqrt(|x_j - z_j|) for every pair of rows."""
    A, B = (np.ascontiguousarray(rows, dtype=np.float64) for rows in (X, Z))
    check_columns(A, B)
    D = np.empty((len(A), len(B)))
    root_l1_distances(A, np.ascontiguousarray(B.T), D)
    return D


def _mean_root_distance(X: Any, sample_weight: np.ndarray | None = None) -> float:
    """The mean root distance over all (weighted) pairs of at most ``ROOT_ROWS`` rows, evenly spread."""
    rows = np.unique(np.linspace(0, len(X) - 1, ROOT_ROWS).astype(np.intp))
    weight = np.ones(rows.size) if sample_weight is None else sample_weight[rows]
    return float(weight @ _root_distances(X[rows], X[rows]) @ weight) / float(weight.sum()) ** 2


def _in_32_bits(X: Any) -> Any:
    """Sparse rows with the indices that scikit-learn's L1 distances take; other rows as they are."""
    if not sp.issparse(X):
        return X
    X = X.tocsr()
    return sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def _is_compiled_for(X: Any) -> bool:
    """Whether rows are dense, and their features so few that one compiled pass is faster than BLAS."""
    return isinstance(X, np.ndarray) and X.dtype == np.float64 and X.ndim == 2 and 0 < X.shape[1] <= _gaussian.MOST_COLUMNS and len(X) > 0


def _measured(power: float, scale: Any, factor: float, fixed: tuple[Any, ...]) -> tuple[float, float] | None:
    """``Kernel._power_and_scale`` of a kernel whose width is a scale times a mean; None if the width is fixed or has another rule."""
    fits = power in (0.5, 1.0, 2.0) and is_number(scale) and scale > 0 and all(width is None for width in fixed)
    return (power, factor * scale) if fits else None


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
    if not np.isfinite(width).all():
        raise ValueError("The distances between the samples overflow. Scale the data first, for example with TargetScaler.")
    return np.where(width > 0, width, 1.0) if np.ndim(width) else float(width) if width > 0 else 1.0
