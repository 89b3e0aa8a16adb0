"""Novelty by the residual: what references leave of a sample, its squared distance from their span in the kernel's space.

The references are local, each leaf of a tree has its own, as in :class:`AutoDetector`; or one set serves all samples, by a reference map.
"""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core.factor import check_floor
from .._core.file_rules import FEATURES, Array, Number, OrNone, Part, Rule
from .._core.rows import TrainingRows, dense, in_dense_blocks, training_rows
from .._core.threshold import ThresholdMixin
from .._core.types import MatrixLike, RandomStateLike
from .._core.validation import as_labels, check_nu, is_number, validate_data
from ..kernels import KernelLike, as_kernel
from ..large import Source, as_source, is_source
from ..large.labels import Labels, in_source, sampled
from ..maps import ReferenceMap
from ..references import GENERATED, ReferencesLike, Subset
from ..references.base import NestedParams
from .auto.descriptions import Descriptions
from .auto.folds import Training, rows_in_memory
from .auto.parts import ViewParts
from .auto.views import OneScale
from .local_references import RIDGE, KernelResidual

LOCAL = "local"
MOST_REFERENCES = 1000  # of "subset" at most: scoring a row costs their square, and half of 100,000 rows would not fit into memory
WHOLE_SHARE = 1e-9  # shares (of weights, of variance) that differ by less differ only by rounding: 0.29 · 100 is 28.999999999999996


class ReferenceResidual(ThresholdMixin, NestedParams):
    """Novelty detection by what references leave of a sample: its squared distance from their span, in the kernel's space.

    The score of a sample is minus 1 - k'(K + ridge I)^-1 k, K the references' kernel matrix and k the sample's kernel values against
    them. It is also a Gaussian process's variance, and kernel PCA's reconstruction error (Hoffmann, 2007) where one truncated map serves
    all samples. The threshold rejects a share nu of targets that the references have not seen.

    Parameters
    ----------
    kernel : kernel object, str or callable, default="laplacian"
        The base kernel: see :mod:`refkernel.kernels`. The Laplacian kernel ranks better than Hoffmann's "rbf" (``docs/which_one.md``).
    references : "local", str, array of shape (m, n_features), strategy or None, default=None
        "local": a tree halves the targets, and a sample is compared with the 200 of its leaf and those nearest to the leaf's box, so
        its time hardly depends on the number of rows; for kernels "laplacian" and "rbf" whose ``scale`` is a number. Other references
        serve all samples, by a :class:`ReferenceMap`. Known outliers cannot be among them: their residual would be 0. "subset" is half
        of the targets here, and at most 1,000 of them. None is "local" where it can be, else "subset".
    nu : float in (0, 1], default=0.1
        The share of the targets to reject that the references have not seen: as many as possible without exceeding nu, but never all.
    rank : int or float in (0, 1), optional
        Of a map, use only the leading principal components of the references: at most this many (int), or the fewest that hold this
        share of their variance (float). All by default.
    center, eigenvalue_floor : as for :class:`ReferenceMap`
        Of a map: centring at the mean of the references, and the smallest eigenvalue that counts. Local references have neither.
    ridge : float, optional
        Regularises as in :meth:`ReferenceMap.residual`: directions in which the references barely vary count for less. 0.03 for local
        references, which need one, and 0 for a map.
    random_state : int, RandomState instance or None, default=None
        The source of everything random: folds, rows that are left out, which targets are references.

    Attributes
    ----------
    local_ : Descriptions or None
        The tree and its references, if they are local.
    map_, rank_ : ReferenceMap and int, or None
        Else the fitted map, and the number of principal components in use.
    held_out_ : ndarray of int
        The rows of X that the threshold was measured on. With local references, those of ten folds, each by the other nine: all targets;
        of more than 5,000 a tenth. With a map, the targets that are not references, or all targets if all are.
    offset_ : float
        The score at the threshold; ``decision_function = score_samples - offset_``.

    Notes
    -----
    Of up to 20,000 targets all distinct ones are local references, of more a sample. With the kernel "rbf" the score by local references
    is log(k'(K + ridge I)^-1 k): it ranks samples alike, and tells those that are far away apart.

    With ``references="training"`` no target is left for the threshold, and ``rank`` must truncate the span, as Hoffmann does; more than a
    share nu of new targets is then rejected.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> rk.ReferenceResidual(random_state=0).fit(X).predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    local_: Any
    map_: Any
    rank_: Any
    _file_rules: ClassVar[dict[str, Rule]] = {
        **FEATURES,
        "local_": OrNone(Part(Descriptions)),
        "map_": OrNone(Part(ReferenceMap)),
        "rank_": OrNone(Number(0)),
        "ridge": OrNone(Number()),
        "held_out_": Array(("h",), lowest=0),
        "offset_": Number(),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """Either references are local, and of all features, or the components that are used are the map's."""
        if (self.local_ is None) == (self.map_ is None) or (self.map_ is None) != (self.rank_ is None):
            return "local_ or map_ and rank_ must be given, and not both"
        if self.local_ is not None:
            fits = self.local_.rows_.shape[1] == sizes["d"] and len(self.local_.names) == 1
            return None if fits else f"local_ is not one description of {sizes['d']} columns"
        return None if self.rank_ <= self.map_.rank_ else f"rank_ is {self.rank_}; the map has {self.map_.rank_} components"

    def __init__(
        self,
        kernel: KernelLike = "laplacian",
        references: ReferencesLike | None = None,
        nu: float = 0.1,
        rank: float | None = None,
        center: bool = True,
        eigenvalue_floor: float = 1e-6,
        ridge: float | None = None,
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
        self._fit(X, y, sample_weight)
        return self

    def fit_predict(self, X: Any, y: npt.ArrayLike | None = None, **params: Any) -> np.ndarray:
        held = self._fit(X, y, **params)
        labels = self.predict(X)
        if held is not None and isinstance(labels, np.ndarray):  # a target is its own reference, but not in its fold
            labels[self.held_out_] = as_labels(held >= self.offset_)
        return labels

    def _fit(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> np.ndarray | None:
        """Fit; returns the scores of the rows ``held_out_`` by local references that are without them."""
        nu, part = check_nu(self.nu), self._local_part()
        check_floor(self.eigenvalue_floor)
        if part is not None:
            return self._fit_local(part, X, y, sample_weight, nu)
        if is_source(X):
            self._fit_source(as_source(X), Labels.of(len(as_source(X)), y, sample_weight), nu)
            return None
        samples = self._validated(X, reset=True)
        training, weight = training_rows(samples, y, sample_weight)
        _check_count(training.targets)
        self._fit_map(training)
        self.held_out_ = self._held_out(training)
        score = -self.map_.residual(samples[self.held_out_], self.rank_, self._map_ridge)
        self._set_threshold(score, weight[self.held_out_], samples[self.held_out_], nu)
        return None

    def _local_part(self) -> KernelResidual | None:
        """The residual of local references; None if a map is asked for, or needed."""
        wanted = isinstance(self.references, str) and self.references == LOCAL
        if self.references is not None and not wanted:
            return None
        found, ridge = as_kernel(self.kernel)._power_and_scale, RIDGE if self.ridge is None else self.ridge
        if found is not None and self.rank is None and is_number(ridge) and ridge > 0:
            power, scale = found
            return KernelResidual(scale, power, ridge)
        if wanted:
            raise ValueError(
                f'references="local" needs a kernel "laplacian" or "rbf" whose scale is a number, a ridge > 0 and no rank; got '
                f'kernel={self.kernel!r}, ridge={self.ridge!r} and rank={self.rank!r}. Use references="subset" for these.'
            )
        return None

    def _fit_local(self, part: KernelResidual, X: Any, y: Any, sample_weight: Any, nu: float) -> np.ndarray:
        rows, number, _, weight = rows_in_memory(self, X, y, sample_weight)
        _check_count(number)
        normal = np.asarray(rows.X_targets)
        training = Training(normal, None, (ViewParts(OneScale(), (part,)),), True, None, False)
        model, _, held = training.learn(np.arange(len(normal)), check_random_state(self.random_state))
        self.local_, self.map_, self.rank_ = model, None, None
        self.held_out_, scores = number[held.rows], -held.scores[0]
        self.offset_ = _quantile(scores, weight[held.rows], nu)
        return np.asarray(scores)

    def _fit_source(self, source: Source, labels: Labels, nu: float) -> None:
        """Draw the references from a sample of a source, and measure the threshold on all its other targets."""
        found, index = sampled(source, labels, self.random_state)
        self.n_features_in_ = source.n_columns
        self._fit_map(labels.chosen(index).training(found)[0])
        self.map_.reference_indices_ = in_source(self.map_.reference_indices_, index)
        training, weight = labels.training(range(len(source)))
        self.held_out_ = self._held_out(training)
        score = np.asarray(source.apply(self._score))[self.held_out_]
        self._set_threshold(score, weight[self.held_out_], found, nu)

    def _set_threshold(self, score: np.ndarray, weight: np.ndarray, samples: Any, nu: float) -> None:
        """Reject a share nu of the weight; the slack for rounding follows the size of some samples, so that those on it are inside."""
        size = np.median(np.abs(self.map_.kernel_.diag(samples)))
        self.offset_ = _quantile(score, weight, nu) - self.map_._precision * float(size)

    def _fit_map(self, training: TrainingRows) -> None:
        is_default = self.references is None or (isinstance(self.references, str) and self.references == "subset")
        references = Subset(max(1, min(MOST_REFERENCES, training.targets.size // 2))) if is_default else self.references
        reference_map = ReferenceMap(self.kernel, references, self.center, self.eigenvalue_floor, self.random_state)
        self.map_, self.local_ = reference_map._fitted(training), None
        self.rank_ = _components(self.rank, self.map_.eigenvalues_)

    @property
    def _map_ridge(self) -> float:
        return 0.0 if self.ridge is None else self.ridge

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        check_is_fitted(self, "offset_")
        return as_source(X).apply(self._score) if is_source(X) else self._score(X)

    def _score(self, X: MatrixLike) -> np.ndarray:
        if self.local_ is None:
            return -self.map_.residual(self._validated(X, reset=False), self.rank_, self._map_ridge)
        if sp.issparse(X):
            return in_dense_blocks(self._score, X)
        return -self.local_.score(validate_data(self, X, reset=False, dtype=np.float64, order="C"))[0]

    @property
    def _terms(self) -> Any:
        """What each feature adds to the scores by local references; those of a map are explained as sums of products."""
        return None if self.local_ is None else self._local_terms

    def _local_terms(self, X: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
        terms, scores = self.local_.terms(X, feature, count)[0], self.local_.score(X)[0]
        total = terms.sum(axis=1)
        return -terms * (scores / np.where(total == 0.0, 1.0, total))[:, None]

    def _kept_rows(self) -> np.ndarray:
        return dense(self.map_.references_) if self.local_ is None else self.local_.kept_rows()

    def _comparable(self, X: np.ndarray) -> np.ndarray:
        return X if self.local_ is None else self.local_.comparable(X)

    def _graph(self, op: Any, X: Any) -> Any:
        if self.local_ is None:
            raise ValueError('The residual of a map cannot be converted to ONNX; that of references="local" can.')
        (score,) = self.local_._graph(op, op.Div(X, self.local_.unit_), [True])
        return op.Sub(op.numbers(-self.offset_), score)

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
        if held_out.size == 0 and self.rank_ == self.map_.rank_ and not self._map_ridge:
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
        tags.input_tags.sparse = self._local_part() is not None or as_kernel(self.kernel)._accepts_sparse
        return tags


def _check_count(targets: np.ndarray) -> None:
    if targets.size < 2:
        raise ValueError("The threshold needs targets besides the references, at least 2 in total; got 1 sample (n_samples = 1).")


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
