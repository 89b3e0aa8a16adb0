"""The parts of an AutoDetector: views of the columns, and what describes a sample in each.

A new view or part is a class and a line in one of the lists. A part has a ``name``; ``is_local`` if it uses the references of leaves;
``fit(Z)`` on the distinct rows in its view; ``score(Z, near, leaf)``, larger for samples that are less normal; ``terms``, what each feature
adds to the score; and ``_graph``, the score as an ONNX graph.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from ..._core.blocks import in_blocks
from ..._core.distances import squared_norms
from ..._core.file_rules import Rule
from ..local_references import REFERENCES, RIDGE, KernelResidual, Near
from .views import SMALLEST, Bent, Mixed, NormalScores, OneScale, Standardised, Unseen, Whitened, principal_axes


class LinearResidual(BaseEstimator):
    """What a linear kernel leaves of a sample, with a ridge: x'(S + ridge I)^-1 x, a shrunk Mahalanobis distance.

    S and the ridge are Ledoit and Wolf's (2004): (1 - δ) times the covariance, and δ times its mean eigenvalue.
    """

    name = "residual of a linear kernel: Mahalanobis distance by a shrunk covariance"
    is_local = False
    _file_rules: ClassVar[dict[str, Rule]] = {}

    def fit(self, Z: np.ndarray) -> Self:
        return self

    def factor(self, Z: np.ndarray) -> tuple[float, np.ndarray]:
        """a and B of the score a ||x||² - ||Bx||²."""
        variance, shrinkage, V = principal_axes(Z.astype(np.float64))
        ridge = max(shrinkage, SMALLEST) * (variance.sum() / Z.shape[1] or 1.0)
        kept = (1.0 - shrinkage) * variance
        return 1.0 / ridge, np.sqrt(kept / (kept + ridge) / ridge)[:, None] * V

    def score(self, Z: np.ndarray, near: Near, leaf: np.ndarray) -> np.ndarray:
        a, B = near.once(self, self.factor)

        def make(rows: int) -> Callable[[Any], np.ndarray]:
            def of_block(block: np.ndarray) -> np.ndarray:
                X = block.astype(np.float64)
                return a * squared_norms(X) - squared_norms(X @ B.T)

            return of_block

        return in_blocks(make, Z, np.empty(len(Z)), len(B))

    def terms(self, Z: np.ndarray, near: Near, leaf: np.ndarray, feature: np.ndarray, count: int, mixed: Any = None) -> np.ndarray:
        """What each feature adds to the distances (rows × count): z_j (Az)_j, Aumann and Shapley's values of z'Az."""
        a, B = near.once(self, self.factor)
        X, terms = Z.astype(np.float64), np.zeros((len(Z), count))
        np.add.at(terms.T, feature, (X * (a * X - (X @ B.T) @ B)).T)
        return terms

    def _graph(self, op: Any, Z: Any, leaf: Any, near: Near) -> Any:
        a, B = near.once(self, self.factor)
        X = op.doubles(Z)
        return op.Sub(op.Mul(op.row_norms(X), op.numbers(a)), op.row_norms(op.MatMul(X, np.ascontiguousarray(B.T))))


class LargestCell(BaseEstimator):
    """The largest value of a sample's cells, in a view in which they are evidence."""

    name = "the largest evidence of a value that was not seen, by Good and Turing"
    is_local = False
    _file_rules: ClassVar[dict[str, Rule]] = {}

    def fit(self, Z: np.ndarray) -> Self:
        return self

    def score(self, Z: np.ndarray, near: Near, leaf: np.ndarray) -> np.ndarray:
        return Z.max(axis=1).astype(np.float64)

    def terms(self, Z: np.ndarray, near: Near, leaf: np.ndarray, feature: np.ndarray, count: int, mixed: Any = None) -> np.ndarray:
        """The features of the cells with the largest value share it (rows × count)."""
        values, terms = Z.max(axis=1, keepdims=True), np.zeros((len(Z), count))
        shares = np.equal(Z, values)
        np.add.at(terms.T, feature, (shares * values / shares.sum(axis=1, keepdims=True)).T)
        return terms

    def _graph(self, op: Any, Z: Any, leaf: Any, near: Near) -> Any:
        return op.ReduceMaxApi18(Z, axes=[1], keepdims=1)


@dataclass(frozen=True)
class ViewParts:
    """A view, the parts that describe samples in it, the weight of each (one for all, or one for each), and the references of a leaf."""

    view: BaseEstimator
    parts: tuple[Any, ...]
    weight: float | tuple[float, ...] = 1.0
    references: int = REFERENCES

    @property
    def weights(self) -> np.ndarray:
        """The weight of each part."""
        return np.broadcast_to(np.asarray(self.weight, dtype=np.float64), len(self.parts))


ORDINARY = (
    ViewParts(NormalScores(), (KernelResidual(3.0, power=0.5),)),
    ViewParts(Standardised(), (KernelResidual(0.3),)),
    ViewParts(Mixed(), (KernelResidual(0.3),)),
    ViewParts(Unseen(), (LargestCell(),), weight=0.5),
)
"""Three views and Good and Turing's estimate: the best average over 369 real tables among those that cost as little."""

WIDE = (
    ViewParts(NormalScores(), (KernelResidual(3.0, power=0.5),)),
    ViewParts(Standardised(), (KernelResidual(0.3),)),
    ViewParts(Mixed(), (KernelResidual(0.3), LinearResidual()), weight=(1.0, 3.0)),
    ViewParts(Unseen(), (LargestCell(),), weight=0.5),
)
"""With many columns, their covariance says what local references cannot: it counts as much as these together. (With a weight of 1, the
AUROC is 2.8 ± 1.5 lower on 13 tables of OddBench, 0.2 ± 0.2 on 16 embeddings that were standardised, and level on 11 other tables.)"""

MANY = 1000  # references of a leaf in a whitened view: boxes of many columns say little about which rows are nearest
ONE_UNIT = (ViewParts(Whitened(0.25), (KernelResidual(0.1, power=2.0),), references=MANY),)
ONE_UNIT_FEW_ROWS = (
    ViewParts(OneScale(), (LinearResidual(),)),
    ViewParts(Whitened(0.5), (KernelResidual(0.1, power=2.0),), references=MANY),
)
"""Embeddings, pixels, scores of principal components: columns that share a unit are not standardised one by one."""

MANY_COLUMNS = 50  # from here on the covariance says what local references cannot
ROWS_PER_COLUMN = 3  # with fewer rows the covariance says more than neighbours do: 16 embeddings, and texts in 384 dimensions

FEWEST_EFFECTIVE, MOST_EFFECTIVE = 8.0, 0.98
"""Many columns share a unit if their variances v make at least this many columns, (Σ v)² / Σ v², and at most this share of all: columns
that were standardised before have one variance, which says nothing about their units."""

FEWEST_FALLING, FALLING, FEWEST_EFFECTIVE_FALLING = 10, 0.9, 4.0
"""So do fewer columns if variances fall from column to column, as those of principal components do: by the rank correlation with the
columns' order. Of 275 real tables with 8 columns or more one is above (0.92), and gains 4 points of AUROC by it."""

ROBUST_REFERENCES = 500
"""References where outliers may be among the rows. They are the same for all samples: around a cluster of outliers, all local ones
could be outliers."""

ROBUST_RIDGE = 0.5  # the ridge, as a share of the outliers expected among the references: those not left out explain less of their like


def robust_parts(share: float, rows: int) -> tuple[ViewParts, ...]:
    """Wide kernels with a large ridge, for rows with a share of unmarked outliers: c equal references explain c / (c + ridge) of a sample.

    A narrow kernel would see little but an outlier that was not left out.
    """
    ridge = max(RIDGE, ROBUST_RIDGE * share * min(rows, ROBUST_REFERENCES))
    return (
        ViewParts(Standardised(), (KernelResidual(3.0, 0.5, ridge),)),
        ViewParts(Bent(), (KernelResidual(1.0, 1.0, ridge),)),
        ViewParts(NormalScores(), (KernelResidual(3.0, 0.5, ridge),)),
    )


def parts_for(X: np.ndarray, units: np.ndarray | None = None) -> tuple[ViewParts, ...]:
    """The parts for a table."""
    variance = X.var(axis=0)
    variance = variance[variance > 0.0]
    if units is None and _share_unit(variance):
        return ONE_UNIT if len(X) >= ROWS_PER_COLUMN * variance.size else ONE_UNIT_FEW_ROWS
    return WIDE if variance.size >= MANY_COLUMNS else ORDINARY


def _share_unit(variance: np.ndarray) -> bool:
    """Whether columns of these variances share a unit."""
    d = variance.size
    effective = np.square(variance.sum()) / np.square(variance).sum() if d >= FEWEST_FALLING else 0.0
    if not FEWEST_EFFECTIVE_FALLING <= effective <= MOST_EFFECTIVE * d:
        return False
    falls = np.corrcoef(np.argsort(np.argsort(-variance, kind="stable")), np.arange(d))[0, 1] >= FALLING
    return bool(falls or (d >= MANY_COLUMNS and effective >= FEWEST_EFFECTIVE))


VIEWS = (Bent, Mixed, NormalScores, OneScale, Standardised, Unseen, Whitened)
KINDS = (KernelResidual, LargestCell, LinearResidual)  # the types that a file may hold
