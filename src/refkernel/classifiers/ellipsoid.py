"""ESVDD: the ellipsoid around most of the targets, on explicit features."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack, solve_triangular
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._core.blocks import in_blocks
from .._core.file_rules import FEATURES, Array, Number, Part, Rule
from .._core.rows import training_rows
from .._core.threshold import ThresholdMixin
from .._core.validation import OUTLIER, is_number, validate_data
from .svdd import SVDD

SINGULAR = 1e-12  # A feature counts as dependent on those before it if less than this share of its variance is its own


@dataclass(frozen=True)
class Ellipsoid:
    """The mean and the regularised covariance E = LL' of some targets: (x - mean)' E^-1 (x - mean) is a squared distance."""

    _file_rules: ClassVar[dict[str, Rule]] = {"mean": Array(("e",)), "covariance": Array(("e", "e")), "L": Array(("e", "e"))}

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        return None if np.diagonal(self.L).all() else "L is singular"

    mean: np.ndarray
    covariance: np.ndarray
    L: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, weight: np.ndarray, regularization: float) -> "Ellipsoid":
        """The weighted mean and regularised covariance of the rows of X; E = I if all rows are equal: any shape describes them."""
        mean = X[0] + np.average(X - X[0], axis=0, weights=weight)  # exact for equal rows; rows far from the origin lose no digits
        centred, n, d = X - mean, *X.shape
        if not centred.any():
            return cls(mean, np.eye(d), np.eye(d))
        with np.errstate(over="ignore", invalid="ignore"):
            E = (centred * (weight / weight.sum())[:, None]).T @ centred
            mean_eigenvalue = np.trace(E) / d
        if not (np.isfinite(E).all() and 0 < mean_eigenvalue < np.inf):
            raise ValueError("The covariance of the targets overflows or underflows. Scale the data first, for example with TargetScaler.")
        E[np.diag_indices_from(E)] += regularization * mean_eigenvalue
        L, refused = lapack.dpotrf(E, lower=1, clean=1)
        if refused or (np.diagonal(L) ** 2 <= SINGULAR * np.diagonal(E)).any():
            raise ValueError(
                f"regularization={regularization:g} leaves the covariance of {n} targets in {d} features singular: it has no inverse. "
                "Raise regularization, or drop features that depend on others."
            )
        return cls(mean, E, L)

    def whitened(self, X: np.ndarray) -> np.ndarray:
        """(X - mean) L^-T: its inner products are those of E^-1. A row's result does not depend on the other rows."""

        def solved(block: np.ndarray) -> np.ndarray:
            return solve_triangular(self.L, (block - self.mean).T, lower=True, check_finite=False).T

        return in_blocks(lambda rows: solved, X, np.empty(X.shape), X.shape[1])


class ESVDD(ThresholdMixin, BaseEstimator):
    """Ellipsoidal support vector data description: the smallest ellipsoid of the targets' own shape around most of them.

        min R² + C Σ ξ_i   subject to   (x_i - c)' E^-1 (x_i - c) <= R² + ξ_i,  ξ_i >= 0

    E is the covariance of the targets, so that this is SVDD after whitening. It needs explicit features, and works on X as it is;
    after a :class:`ReferenceMap` in a pipeline it is an ellipsoid in the kernel's space.

    Parameters
    ----------
    nu, C : as for :class:`SVDD`
        One of them; nu = 0.1 if neither is given.
    regularization : float >= 0, default=1e-3
        E is the covariance plus regularization times its mean eigenvalue times I. Towards 0 the description follows any invertible
        affine map of X; towards infinity it is SVDD with the linear kernel.
    tol, max_iter : as for :class:`SVDD`
        When the solver stops.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,)
        The centre c.
    covariance_ : ndarray of shape (n_features, n_features)
        The regularised covariance E, with n (the sum of weights) in the denominator.
    radius_ : float
        R.
    offset_ : float
        -R², less a slack for rounding, so that samples on the boundary count as inside;
        ``decision_function = score_samples - offset_``, and ``score_samples`` is -(x - c)' E^-1 (x - c).
    support_, support_vectors_, dual_coef_, duality_gap_, n_iter_
        As for :class:`SVDD`.

    Notes
    -----
    With as many features as targets (as after ``ReferenceMap()``), the covariance alone puts every target at the same distance from
    the mean, and only the regularisation tells them apart. Use fewer references than targets, or raise ``regularization``.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel import ESVDD
    >>> X = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 100.0]
    >>> ESVDD(nu=0.1, regularization=0.0).fit(X).predict([[0.0, 100.0], [5.0, 0.0]])
    array([ 1, -1])
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        **FEATURES,
        "support_": Array(("s",), lowest=0),
        "dual_coef_": Array((1, "s")),
        "support_vectors_": Array(("s", "d")),
        "offset_": Number(),
        "radius_": Number(optional=True),
        "duality_gap_": Number(optional=True),
        "covariance_": Array(("d", "d")),
        "center_": Array(("d",)),
        "_ellipsoid": Part(Ellipsoid),
        "_ball": Part(SVDD),
    }

    def __init__(
        self, *, nu: float | None = None, C: float | None = None, regularization: float = 1e-3, tol: float = 1e-6, max_iter: int = -1
    ) -> None:
        self.nu = nu
        self.C = C
        self.regularization = regularization
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        if not (is_number(self.regularization) and self.regularization >= 0):
            raise ValueError(f"regularization={self.regularization!r} must be a number >= 0: a share of the covariance's mean eigenvalue.")
        samples: np.ndarray = validate_data(self, X, dtype=np.float64)
        rows, weight = training_rows(samples, y, sample_weight)
        targets, target_weight = samples[rows.targets], weight[rows.targets]
        self._ellipsoid = Ellipsoid.of(targets, target_weight, self.regularization)
        self.covariance_ = self._ellipsoid.covariance
        is_outlier = np.isin(np.arange(samples.shape[0]), rows.outliers)
        ball = SVDD("linear", nu=self.nu, C=self.C, tol=self.tol, max_iter=self.max_iter)
        self._ball = ball.fit(self._ellipsoid.whitened(samples), np.where(is_outlier, OUTLIER, 1), weight)
        self.center_ = self._ellipsoid.mean + self._ellipsoid.L @ (self._ball.dual_coef_[0] @ self._ball.support_vectors_)
        self.support_vectors_ = samples[self._ball.support_]
        for name in ("radius_", "offset_", "support_", "dual_coef_", "duality_gap_", "n_iter_"):
            setattr(self, name, getattr(self._ball, name))
        return self

    def score_samples(self, X: npt.ArrayLike) -> np.ndarray:
        check_is_fitted(self)
        samples: np.ndarray = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        with np.errstate(over="ignore", invalid="ignore"):
            W = self._ellipsoid.whitened(samples)
        far = ~np.isfinite(W).all(axis=1)
        return np.where(far, -np.finfo(np.float64).max, self._ball.score_samples(np.where(far[:, None], 0.0, W)))
