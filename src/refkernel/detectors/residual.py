"""Novelty by the residual: the part of a sample outside the span of the references, in the kernel's space."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._core.file_rules import FEATURES, Array, Number, Part, Rule
from .._core.rows import TrainingRows, training_rows
from .._core.threshold import ThresholdMixin
from .._core.types import MatrixLike, RandomStateLike
from .._core.validation import check_nu, is_number, validate_data
from ..kernels import KernelLike, as_kernel
from ..large import Source, as_source, is_source
from ..large.labels import Labels, in_source, sampled
from ..maps import ReferenceMap
from ..references import GENERATED, ReferencesLike, Subset
from ..references.base import NestedParams

MOST_REFERENCES = 1000  # by default at most: scoring a row costs their square, and half of 100,000 rows would not fit into memory
WHOLE_SHARE = 1e-9  # shares (of weights, of variance) that differ by less differ only by rounding: 0.29 · 100 is 28.999999999999996


class ReferenceResidual(ThresholdMixin, NestedParams):
    """Novelty detection by the residual of a reference map: kernel PCA's reconstruction error (Hoffmann, 2007).

    The score of a sample is minus its squared distance, in the kernel's space, from the span of the references
    (:meth:`ReferenceMap.residual`). The threshold rejects a share nu of the targets.

    A reference lies in the span, so the threshold is measured on the targets that are not references: by default half of them or more. With
    ``references="training"`` no target is left, and ``rank`` must truncate the span, as Hoffmann does; more than a share nu of new
    targets is then rejected.

    Parameters
    ----------
    kernel : kernel object, str or callable, default="laplacian"
        The base kernel: see :mod:`refkernel.kernels`. The Laplacian kernel ranks better than Hoffmann's "rbf" (``docs/which_one.md``).
    references : str, array of shape (m, n_features) or strategy, default="subset"
        Where the references come from: see :class:`ReferenceMap`. Known outliers cannot be among them: their residual would be 0.
        "subset" is half of the targets, and at most 1,000 of them.
    nu : float in (0, 1], default=0.1
        The share of these targets to reject: as many as possible without exceeding nu, but never all.
    rank : int or float in (0, 1), optional
        Use only the leading principal components of the references: at most this many (int), or the fewest that hold this share of
        their variance (float). All by default.
    center, eigenvalue_floor : as for :class:`ReferenceMap`
        Centring at the mean of the references, and the smallest eigenvalue that counts.
    ridge : float, default=0.0
        Regularises the map, as in :meth:`ReferenceMap.residual`: directions in which the references barely vary count for less.
    random_state : int, RandomState instance or None, default=None
        The source of everything random: which targets are references.

    Attributes
    ----------
    map_, rank_ : ReferenceMap, int
        The fitted map, and the number of principal components in use.
    held_out_ : ndarray of int
        The rows of X that the threshold was measured on: the targets that are not references, or all targets if all are references.
    offset_ : float
        Minus the residual at the threshold, less a slack for rounding, so that samples on it count as inside;
        ``decision_function = score_samples - offset_``.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> rk.ReferenceResidual(random_state=0).fit(X).predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        **FEATURES,
        "map_": Part(ReferenceMap),
        "rank_": Number(0),
        "ridge": Number(),
        "held_out_": Array(("h",), lowest=0),
        "offset_": Number(),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """The components that are used are the map's."""
        return None if self.rank_ <= self.map_.rank_ else f"rank_ is {self.rank_}; the map has {self.map_.rank_} components"

    def __init__(
        self,
        kernel: KernelLike = "laplacian",
        references: ReferencesLike = "subset",
        nu: float = 0.1,
        rank: float | None = None,
        center: bool = True,
        eigenvalue_floor: float = 1e-6,
        ridge: float = 0.0,
        random_state: RandomStateLike = None,
    ) -> None:
        self.kernel = kernel
        self.references = references
        self.nu = nu
        self.rank = rank
        self.center = center
        self.eigenvalue_floor = eigenvalue_floor
        self.ridge = ridge
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        nu = check_nu(self.nu)
        if is_source(X):
            return self._fit_source(as_source(X), Labels.of(len(as_source(X)), y, sample_weight), nu)
        samples = self._validated(X, reset=True)
        training, weight = training_rows(samples, y, sample_weight)
        if training.targets.size < 2:
            raise ValueError("The threshold needs targets besides the references, at least 2 in total; got 1 sample (n_samples = 1).")
        self._fit_map(training)
        self.held_out_ = self._held_out(training)
        score = -self.map_.residual(samples[self.held_out_], self.rank_, self.ridge)
        return self._set_threshold(score, weight[self.held_out_], samples[self.held_out_], nu)

    def _set_threshold(self, score: np.ndarray, weight: np.ndarray, samples: Any, nu: float) -> Self:
        """Reject a share nu of the weight; the slack for rounding follows the size of some samples."""
        size = np.median(np.abs(self.map_.kernel_.diag(samples)))
        self.offset_ = _quantile(score, weight, nu) - self.map_._precision * float(size)
        return self

    def _fit_source(self, source: Source, labels: Labels, nu: float) -> Self:
        """Draw the references from a sample of a source, and measure the threshold on all its other targets."""
        found, index = sampled(source, labels, self.random_state)
        self.n_features_in_ = source.n_columns
        self._fit_map(labels.chosen(index).training(found)[0])
        self.map_.reference_indices_ = in_source(self.map_.reference_indices_, index)
        training, weight = labels.training(range(len(source)))
        self.held_out_ = self._held_out(training)
        score = np.asarray(source.apply(self._score))[self.held_out_]
        return self._set_threshold(score, weight[self.held_out_], found, nu)

    def _fit_map(self, training: TrainingRows) -> None:
        is_default = isinstance(self.references, str) and self.references == "subset"
        references = Subset(max(1, min(MOST_REFERENCES, training.targets.size // 2))) if is_default else self.references
        reference_map = ReferenceMap(self.kernel, references, self.center, self.eigenvalue_floor, self.random_state)
        self.map_ = reference_map._fitted(training)
        self.rank_ = _components(self.rank, self.map_.eigenvalues_)

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        check_is_fitted(self, "map_")
        return as_source(X).apply(self._score) if is_source(X) else self._score(X)

    def _score(self, X: MatrixLike) -> np.ndarray:
        return -self.map_.residual(self._validated(X, reset=False), self.rank_, self.ridge)

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
        if held_out.size == 0 and self.rank_ == self.map_.rank_ and not self.ridge:
            raise ValueError(
                f"references={self.references!r} makes every target a reference, and rank={self.rank!r} truncates nothing: all residuals "
                'are 0, and there is no threshold. Use references="subset", or a lower rank such as 0.9.'
            )
        return held_out if held_out.size else training.targets

    def _validated(self, X: Any, reset: bool) -> Any:
        sparse = "csr" if as_kernel(self.kernel)._accepts_sparse else False
        return validate_data(self, X, reset=reset, accept_sparse=sparse, dtype=np.float64, order="C")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = as_kernel(self.kernel)._accepts_sparse
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
