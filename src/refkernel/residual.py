"""Novelty by the residual: the part of a sample outside the span of the references, in the kernel's space."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ._params import NestedParams
from ._sklearn import LabelledOutlierMixin, validate_data
from ._training import TrainingRows, training_rows
from ._typing import MatrixLike, RandomStateLike
from ._validation import as_labels, check_nu, is_number
from .feature_map import ReferenceMap
from .kernels import KernelLike, as_kernel
from .references import GENERATED, ReferencesLike, Subset
from .sources import Source, as_source, is_source
from .sources.labels import Labels, in_source, sampled

__all__ = ["ReferenceResidual"]

MOST_REFERENCES = 300
"""References of a source by default: scoring a row costs their square. On five tables of 49,000 to 619,000 rows, 1,000 raise the AUROC by
0.000 to 0.028."""

WHOLE_SHARE = 1e-9
"""Shares (of weights, of variance) that differ by less than this differ only by rounding: 0.29 · 100 is 28.999999999999996."""


class ReferenceResidual(LabelledOutlierMixin, NestedParams):
    """Novelty detection by the residual of a reference map: kernel PCA's reconstruction error (Hoffmann, 2007).

    The score of a sample is minus its squared distance, in the kernel's space, from the span of the references
    (:meth:`ReferenceMap.residual`). The threshold rejects a share nu of the targets.

    A reference lies in the span, so its residual is about 0 and says nothing about new samples. The threshold is therefore measured
    on the targets that are not references, which is why only half of the targets are references by default. With
    ``references="training"`` no target is left, and ``rank`` must truncate the span, as Hoffmann does; more than a share nu of new
    targets is then rejected.

    Parameters
    ----------
    kernel : kernel object, str or callable, default="laplacian"
        The base kernel: see :mod:`refkernel.kernels`. Hoffmann's, and the default of reference maps, is "rbf"; the Laplacian kernel ranks
        better on ADBench's tables and on the article's tasks (``docs/which_one.md``).
    references : str, array of shape (m, n_features) or strategy, default="subset"
        Where the references come from: see :class:`ReferenceMap`. Known outliers cannot be among them: their residual would be 0.
        "subset" is half of the targets, or 300 rows of a source (:mod:`refkernel.sources`).
    nu : float in (0, 1], default=0.1
        The share of these targets to reject: as many as possible without exceeding nu, but never all.
    rank : int or float in (0, 1), optional
        Use only the leading principal components of the references: at most this many (int), or the fewest that hold this share of
        their variance (float). All by default.
    center : bool, default=True
        Centre in the kernel's space at the mean of the references.
    eigenvalue_floor : float, default=1e-6
        Eigenvalues of the references' (centred) kernel matrix below this are dropped.
    random_state : int, RandomState instance or None, default=None
        The source of everything random: which targets are references.

    Attributes
    ----------
    map_ : ReferenceMap
        The fitted map.
    rank_ : int
        The number of principal components in use.
    held_out_ : ndarray of int
        The rows of X that the threshold was measured on: the targets that are not references, or all targets if all are references.
    offset_ : float
        Minus the residual at the threshold, less a slack for rounding, so that samples on it count as inside;
        ``decision_function = score_samples - offset_``.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel import ReferenceResidual
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> ReferenceResidual(random_state=0).fit(X).predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        kernel: KernelLike = "laplacian",
        references: ReferencesLike = "subset",
        nu: float = 0.1,
        rank: float | None = None,
        center: bool = True,
        eigenvalue_floor: float = 1e-6,
        random_state: RandomStateLike = None,
    ) -> None:
        self.kernel = kernel
        self.references = references
        self.nu = nu
        self.rank = rank
        self.center = center
        self.eigenvalue_floor = eigenvalue_floor
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the map, and measure the threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which are left out; all other rows are targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weighs each target in the share nu, not in the references; a weight of 0 leaves the row out.

        Returns
        -------
        self
            The fitted detector.
        """
        nu = check_nu(self.nu)
        if is_source(X):
            return self._fit_source(as_source(X), Labels.of(len(as_source(X)), y, sample_weight), nu)
        samples = self._validated(X, reset=True)
        training, weight = training_rows(samples, y, sample_weight)
        if training.targets.size < 2:
            raise ValueError("The threshold needs targets besides the references, at least 2 in total; got 1 sample (n_samples = 1).")
        self._fit_map(self.references, training)
        self.held_out_ = self._held_out(training)
        score = -self.map_.residual(samples[self.held_out_], self.rank_)
        return self._set_threshold(score, weight[self.held_out_], samples[self.held_out_], nu)

    def _set_threshold(self, score: np.ndarray, weight: np.ndarray, samples: Any, nu: float) -> Self:
        """Reject a share nu of the weight; the slack for rounding follows the size of some samples."""
        size = np.median(np.abs(self.map_.kernel_.diag(samples)))
        self.offset_ = _quantile(score, weight, nu) - self.map_.precision * float(size)
        return self

    def _fit_source(self, source: Source, labels: Labels, nu: float) -> Self:
        """Draw the references from a sample of a source, and measure the threshold on all its other targets."""
        found, index = sampled(source, labels, self.random_state)
        self.n_features_in_ = source.n_columns
        is_default = isinstance(self.references, str) and self.references == "subset"
        references = Subset(max(1, min(MOST_REFERENCES, len(found) // 2))) if is_default else self.references
        self._fit_map(references, labels.chosen(index).training(found)[0])
        self.map_.reference_indices_ = in_source(self.map_.reference_indices_, index)
        training, weight = labels.training(range(len(source)))
        self.held_out_ = self._held_out(training)
        score = np.asarray(source.apply(self._score))[self.held_out_]
        return self._set_threshold(score, weight[self.held_out_], found, nu)

    def _fit_map(self, references: ReferencesLike, training: TrainingRows) -> None:
        reference_map = ReferenceMap(self.kernel, references, self.center, self.eigenvalue_floor, self.random_state)
        self.map_ = reference_map.resolve(training)
        self.rank_ = _components(self.rank, self.map_.eigenvalues_)

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        """Compute minus the residual of each sample; higher is more normal.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores.
        """
        check_is_fitted(self, "map_")
        return as_source(X).apply(self._score) if is_source(X) else self._score(X)

    def _score(self, X: MatrixLike) -> np.ndarray:
        return -self.map_.residual(self._validated(X, reset=False), self.rank_)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Compute ``score_samples(X) - offset_``: at least 0 for samples that are accepted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The decision values.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Label samples: +1 for targets, -1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples in rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            +1 where ``decision_function`` is at least 0, else -1.
        """
        return as_source(X).apply(self.predict) if is_source(X) else as_labels(self.decision_function(X) >= 0)

    def _held_out(self, training: TrainingRows) -> np.ndarray:
        """The targets that are not references; all targets if all are references and the truncated span leaves them a residual."""
        references = self.map_.reference_indices_[self.map_.reference_indices_ != GENERATED]
        known = np.isin(references, training.outliers).sum()
        if known:
            raise ValueError(
                f"references={self.references!r} holds {known} known outliers: a reference has no residual and counts as normal. "
                'Use references of targets, for example "subset".'
            )
        held_out = np.setdiff1d(training.targets, references)
        if held_out.size == 0 and self.rank_ == self.map_.rank_:
            raise ValueError(
                f"references={self.references!r} makes every target a reference, and rank={self.rank!r} truncates nothing: all residuals "
                'are 0, and there is no threshold. Use references="subset", or a lower rank such as 0.9.'
            )
        return held_out if held_out.size else training.targets

    def _validated(self, X: Any, reset: bool) -> Any:
        sparse = "csr" if as_kernel(self.kernel).accepts_sparse else False
        return validate_data(self, X, reset=reset, accept_sparse=sparse, dtype=np.float64, order="C")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = as_kernel(self.kernel).accepts_sparse
        return tags


def _components(rank: float | None, eigenvalues: np.ndarray) -> int:
    """How many of the eigenvalues, largest first, a rank stands for."""
    if rank is None:
        return eigenvalues.size
    if isinstance(rank, Integral) and not isinstance(rank, bool) and int(rank) >= 1:
        return min(int(rank), eigenvalues.size)
    if is_number(rank) and not isinstance(rank, Integral) and 0 < rank < 1:
        share = np.cumsum(eigenvalues) / eigenvalues.sum()
        return int(np.searchsorted(share, rank - WHOLE_SHARE)) + 1
    raise ValueError(f"rank={rank!r} must be an int >= 1 (components), a float in (0, 1) (a share of the variance) or None (all).")


def _quantile(score: np.ndarray, weight: np.ndarray, nu: float) -> float:
    """The largest of the scores below which lies at most a share nu of the weight."""
    order = np.argsort(score, kind="stable")
    up_to = np.cumsum(weight[order])
    first_inside = np.searchsorted(up_to, (nu + WHOLE_SHARE) * up_to[-1], side="right")
    return float(score[order[min(first_inside, order.size - 1)]])
