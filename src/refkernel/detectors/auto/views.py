"""Views: the same table as different sets of numbers. Each is a function of one column at a time, in units of about one deviation."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.covariance import ledoit_wolf_shrinkage

from ..._core.blocks import in_blocks
from ..._core.distances import squared_norms
from ..._core.file_rules import Array, Number, Part, Rule
from ..._core.local_residuals import normal_scores, unseen
from ..._core.threads import one_blas_thread

CONSTANT = 1e-9  # A column whose range is below this share of its size (at least 1) is constant
EQUAL = (
    5e-7  # values nearer to each other than this share of the largest in their column are equal: rounding in single precision, and of sines
)
CONSTANT_TOLERANCE = 1e-6  # A value differs from a constant where it is farther away than this share of its size (at least 1)
TAIL_WIDTH = 2.0 * np.sqrt(np.pi / 2.0)  # mean absolute deviations at which ``arcsinh`` bends: two standard deviations of a normal column
TENTHS = 2.0 * float(ndtri(0.9))  # standard deviations from the 10 % to the 90 % quantile of a normal column
MOST_SEEN_ONCE = 0.5  # A column repeats its values if at most this share of the rows has a value of its own

WHITENED_RIDGE, SMALLEST = 10.0, 1e-6  # axes with less variance than this many ridges count about equally; a ridge is at least this
LARGEST = 1e15  # deviations count as at most this many


class Columns(BaseEstimator):
    """Columns that no view learns: those with a unit, which is one deviation, and those that are constant in training.

    A constant column is 0, and ± sqrt(n) for a row that differs: n rows agree, and this one does not. Where columns share a unit, a
    constant one is like the others: few rows of an embedding leave many features at 0.
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("median_", "tolerance_", "per_unit_"), Array(("d",))),
        **dict.fromkeys(("fixed_", "constant_"), Array(("d",), dtype="b")),
        "jump_": Number(),
    }

    def __init__(self, units: np.ndarray | None = None, share_unit: bool = False) -> None:
        self.units = units
        self.share_unit = share_unit

    def fit(self, X: np.ndarray) -> Self:
        """Learn medians, and which columns are constant."""
        self.median_ = np.median(X, axis=0)
        size = np.maximum(1.0, np.abs(self.median_))
        given = np.zeros(X.shape[1], dtype=bool) if self.units is None else ~np.isnan(self.units)
        self.fixed_ = (np.ptp(X, axis=0) <= CONSTANT * size) & (not self.share_unit)
        self.constant_ = self.fixed_ & ~given
        self.tolerance_ = CONSTANT_TOLERANCE * size
        self.per_unit_ = np.zeros(X.shape[1]) if self.units is None else np.where(given, 1.0 / self.units, 0.0)
        self.jump_ = float(np.sqrt(len(X)))
        return self

    @property
    def learnt(self) -> np.ndarray:
        """True for columns that views learn."""
        return ~self.constant_ & (self.per_unit_ == 0.0)

    def fill(self, X: np.ndarray, Z: np.ndarray) -> None:
        """Write the columns that no view learns to Z. Mutates Z."""
        learnt = self.learnt
        if not learnt.all():
            own = np.flatnonzero(~learnt)
            away = X[:, own] - self.median_[own]
            jump = np.where(np.abs(away) > self.tolerance_[own], np.sign(away) * self.jump_, 0.0)
            Z[:, own] = np.where(self.constant_[own], jump, away * self.per_unit_[own])

    def _graph(self, op: Any, X: Any, Z: Any) -> Any:
        """Z with the columns that no view learns."""
        if self.learnt.all():
            return Z
        away = op.Sub(X, self.median_)
        jump = op.Where(op.Greater(op.Abs(away), self.tolerance_), op.Mul(op.Sign(away), op.numbers(self.jump_)), op.numbers(0.0))
        return op.Where(self.learnt[None], Z, op.Where(self.constant_[None], jump, op.Mul(away, self.per_unit_)))

    def _graph_contradicted(self, op: Any, X: Any) -> Any:
        """Whether each sample has a contradicted cell (n × 1)."""
        differs = op.Greater(op.Abs(op.Sub(X, self.median_)), np.where(self.fixed_, self.tolerance_, np.inf))
        return op.Greater(op.row_sums(op.doubles(differs)), op.numbers(0.0))

    def contradicted(self, X: np.ndarray) -> np.ndarray:
        """True where a cell differs from what all training rows have in its column (n × columns)."""
        return (np.abs(X - self.median_) > self.tolerance_) & self.fixed_


class View(BaseEstimator):
    """Columns centred and divided, then perhaps bent, centred and divided again. ``size`` holds a value for each column, in any view."""

    is_by_column = True
    size = property(attrgetter("width_"))
    _file_rules: ClassVar[dict[str, Rule]] = dict.fromkeys(("centre_", "width_"), Array(("d",)))

    def transform(self, X: np.ndarray) -> np.ndarray:
        """The rows in this view (n × columns)."""
        return (X - self.centre_) / self.width_

    def _graph(self, op: Any, X: Any) -> Any:
        return op.Div(op.Sub(X, self.centre_), self.width_)


class Standardised(View):
    """Every column with mean 0 and standard deviation 1."""

    name = "standardised"

    def fit(self, X: np.ndarray, columns: Columns) -> Self:
        """Learn means and standard deviations."""
        self.centre_, self.width_ = X.mean(axis=0), _positive(X.std(axis=0), columns)
        return self


class OneScale(View):
    """Columns centred, and all divided by one number: the root of their mean variance. For columns that share a unit."""

    name = "one scale"
    shares_unit = True

    def fit(self, X: np.ndarray, columns: Columns) -> Self:
        """Learn means, and the mean variance of the columns that vary."""
        variance = np.where(columns.learnt, X.var(axis=0), 0.0)
        self.centre_ = X.mean(axis=0)
        self.width_ = np.full(X.shape[1], np.sqrt(variance.sum() / max(1, np.count_nonzero(variance))) or 1.0)
        return self


class Bent(View):
    """arcsinh of the deviation from the median, standardised: long tails count by their logarithm."""

    name = "bent"
    _file_rules: ClassVar[dict[str, Rule]] = dict.fromkeys(("mean_", "std_"), Array(("d",)))

    def fit(self, X: np.ndarray, columns: Columns) -> Self:
        """Learn medians and mean absolute deviations, then means and standard deviations."""
        self.centre_ = columns.median_
        self.width_ = _positive(TAIL_WIDTH * np.abs(X - self.centre_).mean(axis=0), columns)
        Z = np.arcsinh(super().transform(X))
        self.mean_, self.std_ = Z.mean(axis=0), _positive(Z.std(axis=0), columns)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return (np.arcsinh(super().transform(X)) - self.mean_) / self.std_

    def _graph(self, op: Any, X: Any) -> Any:
        return op.Div(op.Sub(op.arcsinh(super()._graph(op, X)), self.mean_), self.std_)


class NormalScores(BaseEstimator):
    """Mid-ranks through the inverse of the normal distribution, standardised. Beyond the ends, the logarithm of the excess is added.

    Between the values seen in training the score is linear: it is a piecewise linear function of each column.
    """

    name = "normal scores"
    is_by_column = True
    size = property(attrgetter("unit_"))
    _file_rules: ClassVar[dict[str, Rule]] = {
        "start_": Array(("e",), lowest=0),
        **dict.fromkeys(("at_", "score_"), Array(("t",))),
        "unit_": Array(("d",)),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """Each column has a value."""
        start = self.start_
        fits = sizes["e"] == sizes["d"] + 1 and start[0] == 0 and start[-1] == sizes["t"] and (np.diff(start) > 0).all()
        return None if fits else "start_ does not divide at_ among the columns"

    def fit(self, X: np.ndarray, columns: Columns) -> Self:
        """Rank the values of each column."""
        d = X.shape[1]
        at, score, self.unit_ = [], [], np.ones(d)
        learnt = columns.learnt
        for j in range(d):
            if learnt[j]:
                x = np.sort(X[:, j])
                values, scores, self.unit_[j] = _scores(x)
            else:
                values, scores = columns.median_[[j]], np.zeros(1)
            at.append(values)
            score.append(scores)
        self.start_ = np.cumsum([0, *map(len, at)])
        self.at_, self.score_ = np.concatenate(at), np.concatenate(score)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        Z = np.empty(X.shape)
        normal_scores(np.ascontiguousarray(X), self.start_, self.at_, self.score_, self.unit_, Z)
        return Z

    def _graph(self, op: Any, X: Any) -> Any:
        tables = zip(np.split(self.at_, self.start_[1:-1]), np.split(self.score_, self.start_[1:-1]), self.unit_, strict=True)
        columns = [_column_graph(op, op.columns(X, np.array([j])), *table) for j, table in enumerate(tables)]
        return columns[0] if len(columns) == 1 else op.Concat(*columns, axis=1)


def _column_graph(op: Any, x: Any, at: np.ndarray, score: np.ndarray, unit: float) -> Any:
    """The normal scores of one column (n × 1)."""
    low, high, none, per_unit = op.numbers(at[0]), op.numbers(at[-1]), op.numbers(0.0), op.numbers(1.0 / unit)
    above, below = (op.Log(op.Add(op.Mul(op.Max(away, none), per_unit), op.numbers(1.0))) for away in (op.Sub(x, high), op.Sub(low, x)))
    return op.Add(op.interpolated(at, score, op.Min(op.Max(x, low), high)), op.Sub(above, below))


class Mixed(BaseEstimator):
    """Half normal scores, half bent deviations, standardised."""

    name = "mixed of normal scores and bent"
    is_by_column = True
    _file_rules: ClassVar[dict[str, Rule]] = {
        "scores_": Part(NormalScores),
        "bent_": Part(Bent),
        **dict.fromkeys(("mean_", "std_"), Array(("d",))),
    }

    @property
    def size(self) -> np.ndarray:
        """A value for each column."""
        return self.mean_ if self.scores_.size.size == self.bent_.size.size == self.mean_.size else self.mean_[:0]

    def fit(self, X: np.ndarray, columns: Columns) -> Self:
        self.scores_, self.bent_ = NormalScores().fit(X, columns), Bent().fit(X, columns)
        Z = self._sum(X)
        self.mean_, self.std_ = Z.mean(axis=0), _positive(Z.std(axis=0), columns)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return (self._sum(X) - self.mean_) / self.std_

    def _sum(self, X: np.ndarray) -> np.ndarray:
        return self.scores_.transform(X) + self.bent_.transform(X)

    def _graph(self, op: Any, X: Any) -> Any:
        return op.Div(op.Sub(op.Add(self.scores_._graph(op, X), self.bent_._graph(op, X)), self.mean_), self.std_)


class Unseen(BaseEstimator):
    """Where a column's values repeat, a value that was not seen counts by Good and Turing's estimate of its probability.

    That is -log((N + 1) / (n + 1)), N the number of values seen once. All values seen, and those of columns with many others that were seen
    once, are 0. Values that differ by rounding in single precision are equal.
    """

    name = "values not seen"
    is_by_column = False
    size = property(attrgetter("evidence_"))
    _file_rules: ClassVar[dict[str, Rule]] = {
        "start_": Array(("e",), lowest=0),
        "at_": Array(("t",)),
        **dict.fromkeys(("near_", "evidence_"), Array(("d",))),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """Each column has its values."""
        start = self.start_
        fits = sizes["e"] == sizes["d"] + 1 and start[0] == 0 and start[-1] == sizes["t"]
        return None if fits and (np.diff(start) >= (self.evidence_ > 0)).all() else "start_ does not divide at_ among the columns"

    def fit(self, X: np.ndarray, columns: Columns) -> Self:
        """Collect the values of the columns in which they repeat."""
        n, d = X.shape
        self.evidence_, self.near_, at = np.zeros(d), np.zeros(d), []
        for j in range(d):
            values, count = np.unique(as_single(X[:, j]), return_counts=True)
            once = np.count_nonzero(count == 1)
            repeats = once <= MOST_SEEN_ONCE * n
            self.evidence_[j] = -np.log((once + 1.0) / (n + 1.0)) if repeats else 0.0
            self.near_[j] = EQUAL * np.abs(values).max()
            at.append(values if repeats else values[:0])
        self.start_, self.at_ = np.cumsum([0, *map(len, at)]), np.concatenate(at).astype(np.float64)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """The evidence of each cell (n × columns)."""
        Z = np.empty(X.shape)
        unseen(np.ascontiguousarray(X), self.start_, self.at_, self.near_, self.evidence_, Z)
        return Z

    def _graph(self, op: Any, X: Any) -> Any:
        found = [op.Mul(op.columns(X, np.zeros(1)), op.numbers(0.0))]
        for j in np.flatnonzero(self.evidence_):
            at, x = self.at_[self.start_[j] : self.start_[j + 1]], op.columns(X, np.array([j]))
            above = op.rows_below(at, x)
            away = op.Min(*(op.Abs(op.Sub(x, op.Gather(values, above, axis=0))) for values in (np.r_[at[0], at], np.r_[at, at[-1]])))
            is_far = op.Greater(away, op.numbers(self.near_[j]))
            found.append(op.Where(is_far, op.numbers(self.evidence_[j]), op.numbers(0.0)))
        return op.Concat(*found, axis=1)


class Whitened(OneScale):
    """One scale for all columns, then Z (C + 10 λ I)^-power: C is the covariance, λ the ridge that Ledoit and Wolf's shrinkage stands for.

    The last column is what is left of a sample beyond the span of the training rows, in the same unit.
    """

    name = "one scale, whitened"
    is_by_column = False
    _file_rules: ClassVar[dict[str, Rule]] = {"V_": Array(("r", "d")), "factor_": Array(("r",)), "beyond_": Number(positive=True)}

    def __init__(self, power: float = 0.25) -> None:
        self.power = power

    def fit(self, X: np.ndarray, columns: Columns) -> Self:
        """Learn the scale and the principal axes."""
        super().fit(X, columns)
        variance, shrinkage, self.V_ = principal_axes(super().transform(X))
        ridge = WHITENED_RIDGE * shrinkage / max(1.0 - shrinkage, SMALLEST)
        self.factor_, self.beyond_ = (variance + ridge) ** -self.power, float(max(ridge, SMALLEST) ** -self.power)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """The rows in this view (n × axes + 1)."""

        def make(rows: int) -> Callable[[Any], np.ndarray]:
            def of_block(block: np.ndarray) -> np.ndarray:
                Z = super(Whitened, self).transform(block)
                along = Z @ self.V_.T
                beyond = np.sqrt(np.maximum(squared_norms(Z) - squared_norms(along), 0.0))
                return np.column_stack([along * self.factor_, self._beyond * beyond])

            return of_block

        return in_blocks(make, X, np.empty((len(X), len(self.V_) + 1)), len(self.V_) + 1)

    @property
    def _beyond(self) -> float:
        """0 if nothing is beyond the span: what is left there is rounding."""
        return 0.0 if len(self.V_) == self.V_.shape[1] else self.beyond_

    def mixed(self, X: np.ndarray, i: int, references: np.ndarray) -> np.ndarray:
        """What each column adds to the squared distances of row i (references × columns): δ_j (Aδ)_j for each difference δ."""
        delta = super().transform(X[[i]]) - (references[:, :-1] / self.factor_) @ self.V_
        along = delta @ self.V_.T
        return delta * ((along * self.factor_**2) @ self.V_ + self._beyond**2 * (delta - along @ self.V_))

    def _graph(self, op: Any, X: Any) -> Any:
        Z = super()._graph(op, X)
        along = op.MatMul(Z, np.ascontiguousarray(self.V_.T))
        left = op.Sqrt(op.Max(op.Sub(op.row_norms(Z), op.row_norms(along)), op.numbers(0.0)))
        return op.Concat(op.Mul(along, self.factor_), op.Mul(left, op.numbers(self._beyond)), axis=1)


def principal_axes(Z: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """The variances of centred rows along their principal axes, Ledoit and Wolf's (2004) shrinkage, and the axes (r × columns)."""
    with one_blas_thread():
        shrinkage = float(ledoit_wolf_shrinkage(Z, assume_centered=True)) if len(Z) > 1 else 1.0
        _, root, V = np.linalg.svd(Z, full_matrices=False)
    return root**2 / len(Z), shrinkage, V


def _scores(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The values of a sorted column, their scores, and a robust deviation, which is the unit beyond the ends."""
    n = len(x)
    first = np.concatenate([[0], np.flatnonzero(x[1:] > x[:-1]) + 1])
    count = np.diff(np.append(first, n))
    z = ndtri((first + count / 2.0) / n)
    z -= count @ z / n
    low, high = x[int(0.1 * (n - 1))], x[int(np.ceil(0.9 * (n - 1)))]
    return x[first], z / (np.sqrt(count @ z**2 / n) or 1.0), float((high - low) / TENTHS or x.std() or 1.0)


def _positive(values: np.ndarray, columns: Columns) -> np.ndarray:
    """The values; 1 where a column is not learnt or has none."""
    return np.where((values > 0) & columns.learnt, values, 1.0)


def single_graph(op: Any, Z: Any) -> Any:
    """As ``as_single``."""
    return op.single(op.Min(op.Max(Z, op.numbers(-LARGEST)), op.numbers(LARGEST)))


def as_single(Z: np.ndarray) -> Any:
    """The rows in single precision, with values so large that sums of them overflow cut off."""
    return np.clip(Z, -LARGEST, LARGEST).astype(np.float32)
