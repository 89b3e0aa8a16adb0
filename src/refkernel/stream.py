"""A description of a stream: exact over all rows that were seen, in bounded memory."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._blocks import times
from ._distances import squared_norms
from ._dual.certificate import SCALE_FLOOR
from ._dual.problem import DualProblem
from ._dual.solver import solve
from ._dual.sources import Features
from ._explicit.solver import solve_features, takes_over
from ._forgotten import Forgotten
from ._left_out import finite_scores
from ._one_class import OneClassClassifier
from ._sklearn import validate_data
from ._streamed import has_features
from ._training import TrainingRows
from ._typing import RandomStateLike
from ._validation import as_labels, is_number
from .kernels import as_kernel
from .sources.base import checked_block

__all__ = ["StreamDetector"]

INTERIOR = 0.1
"""The share of the rows that are held that is drawn from the interior; all others are those nearest to the boundary."""

MOST_GROUPS = 16
"""Groups of forgotten rows on each side; the two oldest are merged if there are more."""


class StreamDetector(OutlierMixin, BaseEstimator):
    """SVDD or a one-class SVM of a stream, behind a map that the first rows fix.

    It holds ``checkpoint`` rows: those nearest to the boundary, which may still change their weight, and some of the interior. Of the
    others it remembers sums and how far from the boundary they were. ``duality_gap_`` counts what they could cost at most at the
    present boundary: if it is small, the description is that of all rows seen.

    Parameters
    ----------
    estimator : SVDD or OneClassSVM
        The classifier; its kernel needs explicit features (``ReferenceKernel``, ``ReferenceMap`` or "linear").
    checkpoint : int, default=20000
        Rows that are held between calls.
    random_state : int, RandomState instance or None, default=None
        Draws the rows of the interior that are held.

    Attributes
    ----------
    duality_gap_ : float
        The certificate over all rows seen: the relative duality gap, with what forgotten rows may add.
    forgotten_gap_ : float
        The part of it that forgotten rows may add at most.
    n_seen_ : int
        The number of rows seen.
    n_held_ : int
        The number of rows held.
    offset_ : float
        ``decision_function = score_samples - offset_``.
    kernel_ : Kernel
        The kernel, resolved on the first rows.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rows = np.random.default_rng(0).normal(size=(5000, 2))
    >>> kernel = rk.ReferenceKernel(references=rk.references.Subset(40), random_state=0)
    >>> stream = rk.StreamDetector(rk.SVDD(kernel, nu=0.1), checkpoint=1000, random_state=0)
    >>> for start in range(0, 5000, 500):
    ...     stream = stream.partial_fit(rows[start : start + 500])
    >>> stream.n_seen_, stream.n_held_, bool(stream.duality_gap_ < 1e-3)
    (5000, 1000, True)
    """

    n_seen_: int
    _Phi: np.ndarray
    _weight: np.ndarray
    _number: np.ndarray
    _groups: list[Forgotten]

    def __init__(self, estimator: OneClassClassifier, checkpoint: int = 20_000, random_state: RandomStateLike = None) -> None:
        self.estimator = estimator
        self.checkpoint = checkpoint
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Start anew with the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : Any
            Not used.

        Returns
        -------
        self
            The fitted detector.
        """
        if hasattr(self, "n_seen_"):
            del self.n_seen_
        return self.partial_fit(X)

    def partial_fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Add rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The next rows of the stream.
        y : Any
            Not used.

        Returns
        -------
        self
            The detector of all rows so far.
        """
        first = not hasattr(self, "n_seen_")
        found = validate_data(self, X, reset=first, dtype=np.float64, order="C", ensure_all_finite=False)
        samples = checked_block(found, 0 if first else self.n_seen_, None)
        if first:
            self._begin(samples)
        Phi = np.asarray(self.kernel_.features(samples), dtype=np.float64)
        self._Phi = np.vstack([self._Phi, Phi]) if self.n_seen_ else Phi
        self._weight = np.concatenate([self._weight, np.ones(len(Phi))])
        self._number = np.concatenate([self._number, np.arange(self.n_seen_, self.n_seen_ + len(Phi))])
        self.n_seen_ += len(Phi)
        self._solve()
        if len(self._Phi) > self.checkpoint:
            self._trim()
        return self

    def forget(self, *, window: int | None = None, decay: float | None = None) -> Self:
        """Forget old rows, or let all rows count less.

        Parameters
        ----------
        window : int, optional
            Keep the last ``window`` rows. Rows that are no longer held are forgotten in the groups that they were put aside in: a group
            goes when its last row does.
        decay : float in (0, 1], optional
            Multiply the weight of all rows seen so far, so that rows to come count more.

        Returns
        -------
        self
            The detector of what is left.
        """
        check_is_fitted(self, "n_seen_")
        if window is not None:
            if window < 1:
                raise ValueError(f"window={window!r} must be at least 1: the number of rows to keep.")
            oldest = self.n_seen_ - window
            kept = self._number >= oldest
            self._Phi, self._weight, self._number = self._Phi[kept], self._weight[kept], self._number[kept]
            self._groups = [group for group in self._groups if group.last >= oldest]
        if decay is not None:
            if not (is_number(decay) and 0 < decay <= 1):
                raise ValueError(f"decay={decay!r} must be a share in (0, 1].")
            self._weight = decay * self._weight
            self._groups = [group.decayed(decay) for group in self._groups]
        self._solve()
        return self

    def score_samples(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute the raw score of each sample; higher is more normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores, as ``estimator`` defines them. A row's score does not depend on the rows beside it.
        """
        check_is_fitted(self, "n_seen_")
        samples: np.ndarray = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        with np.errstate(over="ignore", invalid="ignore"):
            Phi = np.asarray(self.kernel_.features(samples), dtype=np.float64)
            return finite_scores(self.estimator.classifier.score(times(Phi, self._w), squared_norms(Phi), float(self._w @ self._w)))

    def decision_function(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute ``score_samples(X) - offset_``: at least 0 for samples that are accepted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The decision values.
        """
        return finite_scores(self.score_samples(X) - self.offset_)

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """Label samples: +1 for targets, -1 for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            +1 where ``decision_function`` is at least 0, else -1.
        """
        return as_labels(self.decision_function(X) >= 0)

    def _begin(self, X: np.ndarray) -> None:
        kernel = as_kernel(self.estimator.kernel)
        if not has_features(kernel):
            raise ValueError(f"A stream needs a kernel with explicit features, and {kernel} has none: use rk.ReferenceKernel or 'linear'.")
        if self.checkpoint < 2:
            raise ValueError(f"checkpoint={self.checkpoint!r} must be at least 2: the number of rows that are held.")
        self._model = clone(self.estimator)
        self._model._check_params()
        self.kernel_ = kernel.resolve(TrainingRows.of(X), None, self.estimator.random_state)
        self._random = check_random_state(self.random_state)
        self._weight, self._number, self.n_seen_ = np.empty(0), np.empty(0, dtype=np.intp), 0
        self._groups = []

    def _solve(self) -> None:
        """The optimum of the rows that are held, with the forgotten ones at their bounds; and the certificate of all."""
        outside = [group for group in self._groups if not group.inside]
        fixed = sum(float(group.weight.sum()) for group in outside)
        everything = float(self._weight.sum()) + sum(float(group.weight.sum()) for group in self._groups)
        whole = self._model._problem_maker(np.array([everything]))(np.zeros(1))
        u = whole.upper[0] / everything
        rows = Features(self._Phi)
        beyond = u * sum((group.phi for group in outside), start=np.zeros(self._Phi.shape[1]))
        classifier = self._model.classifier
        p = classifier.linear_share * rows.diag + self._Phi @ beyond
        problem = DualProblem(p, np.zeros(rows.n), u * self._weight, whole.total - u * fixed)
        tol = self._model.tol
        found = solve_features(problem, rows, tol) if takes_over(*self._Phi.shape) else solve(problem, rows, tol=tol)
        self._w, self._rho = beyond + found.b @ self._Phi, found.rho
        self._b, self._G, self._total = found.b, found.G, whole.total
        v, sigma = self._w / whole.total, found.rho / whole.total
        lost = u * whole.total * sum(group.loss(v, sigma) for group in self._groups)
        sizes = float(found.b @ rows.diag) + u * sum(group.diag for group in outside)
        quadratic = float(self._w @ self._w)
        scale = 0.5 * max(abs(whole.total * sizes - quadratic), SCALE_FLOOR * whole.total * sizes)
        self.forgotten_gap_ = lost / scale if scale > 0.0 else 0.0
        self.duality_gap_ = (found.gap * found.scale / scale if scale > 0.0 else 0.0) + self.forgotten_gap_
        slack = float(classifier.slack(found.size_of_sums, found.shortfall, self.kernel_.precision))
        self.offset_ = float(classifier.threshold(found.rho, quadratic)) - slack
        self.n_held_ = rows.n

    def _trim(self) -> None:
        """Put aside the rows that are farthest from the boundary, except for some of the interior."""
        distance = np.abs(self._G - self._rho)
        order = np.argsort(distance, kind="stable")
        nearest = int((1.0 - INTERIOR) * self.checkpoint)
        held = np.zeros(len(order), dtype=bool)
        held[order[:nearest]] = True
        held[self._random.permutation(order[nearest:])[: self.checkpoint - nearest]] = True
        v, sigma = self._w / self._total, self._rho / self._total
        for inside in (True, False):
            gone = np.flatnonzero(~held & ((self._rho < self._G) == inside))
            if gone.size:
                slack, last = distance[gone] / self._total, int(self._number[gone].max())
                self._groups.append(Forgotten.of(inside, v, sigma, slack, self._weight[gone], self._Phi[gone], last))
        self._Phi, self._weight, self._number = self._Phi[held], self._weight[held], self._number[held]
        self._b, self._G = self._b[held], self._G[held]
        self.n_held_ = len(self._Phi)
        for inside in (True, False):
            same = [group for group in self._groups if group.inside == inside]
            if len(same) > MOST_GROUPS:
                others = [group for group in self._groups if group.inside != inside]
                self._groups = [same[0].merged(same[1]), *same[2:], *others]
