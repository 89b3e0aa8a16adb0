"""TableEncoder: mixed columns to the numbers that a detector takes."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._core.file_rules import FEATURES, Array, Items, Number, Part, Rule
from .._core.validation import OUTLIER, listed
from .categories import CategoryPart
from .columns import CATEGORY, DATE, NUMBER, UNEXPECTED, ColumnProfile
from .frames import READERS, as_frame, check_names, kinds_of
from .numbers import DatePart, NumbersPart

FARTHER = 2.0  # a standardised column of n rows reaches at most sqrt(n) from 0: a contradiction is farther away than any two of them
FAR = 1e6  # at this many standard deviations an RBF kernel is 0 against all references, and decisions have reached their limit
VIOLATED = "violated"  # the last encoded column: how many cells contradict all of training. It is 0 in every training row.
SHARED = -1  # the source of an encoded column that belongs to some of the table's columns, other ones in each row
NAMES_ROWS = 0.5  # a column where this share of the texts is unlike all others names the rows


@dataclass(frozen=True)
class Rows:
    """Rows of a table, read and encoded once. A fitted TableEncoder takes them wherever it takes a data frame."""

    names: list[str]
    cells: list[np.ndarray]  # by column: numbers (dates: seconds since 1970) or text; NaN is missing
    encoded: np.ndarray
    missing: np.ndarray  # true for cells without a value (rows × columns)
    violations: np.ndarray  # true for cells that contradict all of training (rows × columns)
    groups: np.ndarray | None = None  # the group of each row, where a detector has them

    def __len__(self) -> int:
        return len(self.encoded)

    def take(self, chosen: np.ndarray) -> "Rows":
        cells = [column[chosen] for column in self.cells]
        groups = None if self.groups is None else self.groups[chosen]
        return Rows(self.names, cells, self.encoded[chosen], self.missing[chosen], self.violations[chosen], groups)

    def frame(self) -> Any:
        """The cells as a frame of pandas."""
        import pandas as pd

        return pd.DataFrame({name: pd.Series(cells, dtype=cells.dtype) for name, cells in zip(self.names, self.cells, strict=True)})

    def and_(self, other: "Rows") -> "Rows":
        cells = [np.concatenate(pair) for pair in zip(self.cells, other.cells, strict=True)]
        pairs = zip((self.encoded, self.missing, self.violations), (other.encoded, other.missing, other.violations), strict=True)
        encoded, missing, violations = map(np.concatenate, pairs)
        groups = None if self.groups is None else np.concatenate([self.groups, other.groups])
        return Rows(self.names, cells, encoded, missing, violations, groups)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a data frame of numbers, text, truth values, dates and missing cells as numbers, for a detector behind it in a pipeline.

    Numbers are standardised, categories become one column a level, dates become elapsed time and cycles. Rare levels share a column. A
    missing number is filled with the median, and a further column says so; more missing cells than any training row had contradict
    training, and so do new levels, other values of a constant, and numbers far outside of training's. The last encoded column counts
    contradictions, and is 0 for every training row. Its unit is so small that a row with a contradiction is farther away than any two
    training rows are from each other.

    Parameters
    ----------
    kinds : mapping or sequence of str, optional
        "number", "category" or "date" for each column, or by name for some of them: ``{"zip_code": "category"}``. Other columns follow
        their type: numbers, dates (those without a zone as UTC), and text and truth values as categories. Columns of numbers may be
        dates, in seconds since 1970.
    standardise : bool, default=True
        Whether encoded columns get a common scale. A detector that scales by itself needs none; ``units_`` are for it.

    Attributes
    ----------
    columns : list of ColumnProfile
        What training knew about each column.
    rows_ : int
        The number of normal training rows.
    kinds_ : ndarray of str
        The kind of each column.
    units_ : ndarray of shape (n_encoded,)
        The unit of each encoded column; NaN where a detector should standardise it, and 1 where the encoder did.
    most_missing_ : int
        The most missing cells in one training row.
    n_features_in_ : int
        The number of columns of the data frame.
    feature_names_in_ : ndarray of str
        Their names.

    See Also
    --------
    TableDetector : Encoder and detector in one.
    TargetImputer : Fills missing numbers only.

    Examples
    --------
    >>> import numpy as np, pandas as pd, refkernel as rk
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"temperature": rng.normal(80.0, 4.0, 200), "machine": rng.choice(["press", "saw"], 200)})
    >>> model = make_pipeline(rk.TableEncoder(), rk.SVDD()).fit(table)
    >>> new = pd.DataFrame({"temperature": [81.0, 81.0, 120.0], "machine": ["saw", "lathe", "press"]})
    >>> model.predict(new)
    array([ 1, -1, -1])
    >>> why = rk.explain(model, new)
    >>> [why.names[worst] for worst in why.worst(1)[1:, 0]]
    ['machine', 'temperature']
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        **FEATURES,
        "feature_names_in_": Array(("d",), dtype="O"),
        "kinds_": Array(("d",), dtype="UO"),
        "parts_": Items(Part((NumbersPart, CategoryPart))),
        "jump_": Number(positive=True),
        "most_missing_": Number(0),
        "rows_": Number(0),
    }

    def __init__(self, kinds: Mapping[str, str] | Sequence[str] | np.ndarray | None = None, *, standardise: bool = True) -> None:
        self.kinds = kinds
        self.standardise = standardise

    def fit(self, X: Any, y: npt.ArrayLike | None = None) -> Self:
        """Learn the columns from the normal rows.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_features)
            Columns of numbers, text, truth values and dates.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which do not count.

        Returns
        -------
        self
            The fitted encoder.
        """
        X = check_names(X)
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.kinds_ = kinds_of(X, self.kinds)
        normal = X if y is None else X[np.asarray(y) != OUTLIER]
        self.rows_ = len(normal)
        share = UNEXPECTED / max(1, list(self.kinds_).count(CATEGORY))
        kinds = {NUMBER: NumbersPart(self.standardise), DATE: DatePart(self.standardise), CATEGORY: CategoryPart(self.standardise, share)}
        places, values = self.places_, self._values(normal)
        if empty := [name for mine, v in zip(places, values, strict=True) for name in self.feature_names_in_[mine][(v != v).all(axis=0)]]:
            raise ValueError(f"No normal row has a value in {listed(empty)}: drop these columns.")
        self.parts_: list[Any] = [clone(kinds[self.kinds_[mine[0]]]).fit(v) for mine, v in zip(places, values, strict=True)]
        texts = [column for column in self.columns if column.kind == CATEGORY and (self.kinds is None or isinstance(self.kinds, Mapping))]
        if named := [column.name for column in texts if column.counts.count(1) > NAMES_ROWS * column.rows]:
            warnings.warn(
                f"Most cells of {listed(named)} are unlike all others, so that nothing can be learnt from them. Convert dates by "
                "pandas.to_datetime; drop columns that name the rows.",
                UserWarning,
                stacklevel=2,
            )
        if self.standardise and not any(part.units for part in self.parts_):
            raise ValueError(
                f"All {self.n_features_in_} columns are constant over the {len(normal)} normal rows: nothing is left to scale."
            )
        farther = FARTHER * float(np.sqrt(len(normal))) * (1 + sum(len(part.units) for part in self.parts_))
        self.jump_ = max(FAR, farther) if self.standardise else farther
        self.most_missing_ = int(sum((v != v).sum(axis=1) for v in values).max())
        return self

    def _fitted_without(self, X: Any, y: np.ndarray) -> "TableEncoder":
        """An encoder of fewer rows that expects the same of new rows, with the same levels alone, and contradictions as far away."""
        known = y != OUTLIER
        if (empty := X.columns[X[known].isna().all()]).size:  # values of other rows contradict
            X = X.copy()
            X.loc[known.argmax(), empty] = [0.0 if X[name].dtype == np.float64 else "" for name in empty]
        other = TableEncoder(self.kinds_, standardise=self.standardise).fit(X, y)
        for part, whole in zip(other.parts_, self.parts_, strict=True):
            vars(part).update({name: value for name, value in vars(whole).items() if name.startswith(("expects_", "own_"))})
        other.jump_ = self.jump_
        return other

    @property
    def places_(self) -> list[list[int]]:
        """The columns of each part: all numbers together, the others one by one."""
        numeric = [j for j, kind in enumerate(self.kinds_) if kind == NUMBER]
        return [*([numeric] if numeric else []), *([j] for j, kind in enumerate(self.kinds_) if kind != NUMBER)]

    @property
    def units_(self) -> np.ndarray:
        """The unit of each encoded column; NaN where a detector should standardise it."""
        units = np.array([*(unit for part in self.parts_ for unit in part.units), 1.0 / self.jump_])
        return np.ones(units.size) if self.standardise else units

    @property
    def columns(self) -> list[ColumnProfile]:
        """What training knew about each column."""
        check_is_fitted(self)
        found: dict[int, ColumnProfile] = {}
        for places, part in zip(self.places_, self.parts_, strict=True):
            found |= zip(places, part.profiles(self._names(places), self.rows_), strict=True)
        return [found[j] for j in sorted(found)]

    def column_sources(self) -> np.ndarray:
        """Find the column of the table that each encoded column comes from.

        Returns
        -------
        ndarray of int of shape (n_encoded,)
            The number of the column; -1 for the last one, which all columns share.
        """
        found = [
            np.array(places)[part.sources] if len(places) > 1 else np.repeat(places, len(part.units))
            for places, part in zip(self.places_, self.parts_, strict=True)
        ]
        return np.concatenate([*found, [SHARED]]).astype(np.intp)

    def transform(self, X: Any) -> np.ndarray:
        """Encode rows.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_features)
            The columns of ``fit``, by name.

        Returns
        -------
        ndarray of shape (n_samples, n_encoded)
            The encoded columns.
        """
        return self.read(X).encoded

    def read(self, X: Any) -> Rows:
        """Read and encode rows once, for all that is done with them.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_features), list of ndarray, or Rows
            The columns of ``fit``, by name; or the cells of each of them, as ``Rows`` has them.

        Returns
        -------
        Rows
            Their cells, encoded columns, and which cells are missing or contradict all of training. It is X if that was read before.
        """
        if isinstance(X, Rows):
            return X
        check_is_fitted(self)
        values, encoded = self._values(X), []
        missing, violations = np.empty((2, len(values[0]), self.n_features_in_), dtype=bool)
        cells: list[np.ndarray] = [np.empty(0)] * self.n_features_in_
        for places, part, mine in zip(self.places_, self.parts_, values, strict=True):
            missing[:, places], violations[:, places] = mine != mine, part.violated(mine)
            encoded.append(part.encode(mine))
            for j, column in zip(places, mine.T, strict=True):
                cells[j] = column
        violations |= missing & (missing.sum(axis=1) > self.most_missing_)[:, None]
        count = violations.sum(axis=1, dtype=np.float64)[:, None]
        encoded.append(count * self.jump_ if self.standardise else count)
        return Rows([str(name) for name in self.feature_names_in_], cells, np.hstack(encoded), missing, violations)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the encoded columns.

        Parameters
        ----------
        input_features : object, optional
            Not used.

        Returns
        -------
        ndarray of str
            The names, such as "colour: red".
        """
        named = [part.names(self._names(places)) for places, part in zip(self.places_, self.parts_, strict=True)]
        return np.array([*(name for names in named for name in names), VIOLATED], dtype=object)

    def _names(self, places: Sequence[int]) -> list[str]:
        return [str(self.feature_names_in_[j]) for j in places]

    def _values(self, X: Any) -> list[np.ndarray]:
        """What each part takes of the table: a matrix of floats, or of objects for categories."""
        named = [(places, self.feature_names_in_[places]) for places in self.places_]
        if isinstance(X, list):
            return [_finite(np.column_stack([X[j] for j in places]), names) for places, names in named]
        if (frame := as_frame(X)) is None:
            some = ", ".join(self._names(range(min(self.n_features_in_, 3))))
            raise TypeError(f"The model takes {self.n_features_in_} columns by name ({some}, …): pass a data frame.")
        there = set(frame.columns)
        if absent := [name for name in self.feature_names_in_ if name not in there]:
            raise ValueError(f"X lacks {len(absent)} of the {self.n_features_in_} columns of fit: {listed(absent)}.")
        return [_finite(READERS[self.kinds_[places[0]]](frame, names), names) for places, names in named]

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """Each part takes the columns of its kind."""
        if wrong := [kind for kind in self.kinds_ if kind not in READERS]:
            return f"kinds_ holds {str(wrong[0])[:60]!r}; it takes {', '.join(READERS)}"
        places = self.places_
        fits = len(self.parts_) == len(places) and all(
            part.kind == self.kinds_[j[0]] and len(j) == np.size(part.missing_) for j, part in zip(places, self.parts_, strict=False)
        )
        if not fits:
            return "parts_ does not fit the kinds of the columns"
        rows = [
            part.missing_ + (sum(part.counts_) if part.kind == CATEGORY else part.at_most_[np.cumsum(part.knot_counts_) - 1])
            for part in self.parts_
        ]
        return None if (np.hstack(rows) == self.rows_).all() else f"rows_ is {self.rows_}; parts_ counted others"

    def _graph(self, op: Any, X: Any) -> Any:
        """``transform`` in double precision, of one input for each column; see ``export.onnx_graph``."""
        found = [part.graph(op, [X[j] for j in places]) for places, part in zip(self.places_, self.parts_, strict=True)]
        missing = op.Sum(*(op.row_sums(gone) for _, _, gone in found))
        extra = op.Sum(*(op.row_sums(op.Mul(gone, op.Sub(op.numbers(1.0), contradicts))) for _, contradicts, gone in found))
        too_many = op.doubles(op.Greater(missing, op.numbers(float(self.most_missing_))))
        count = op.Add(op.Sum(*(op.row_sums(contradicts) for _, contradicts, _ in found)), op.Mul(too_many, extra))
        encoded = [column for columns, _, _ in found for column in columns]
        return op.Concat(*encoded, op.Mul(count, op.numbers(self.jump_)) if self.standardise else count, axis=1)

    def _graph_inputs(self) -> list[tuple[str, bool]]:
        return [(str(name), kind == CATEGORY) for name, kind in zip(self.feature_names_in_, self.kinds_, strict=True)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags


def _finite(values: np.ndarray, names: Any) -> np.ndarray:
    """The values, if none is infinite."""
    if values.dtype == np.float64 and np.isinf(values).any():
        found = [name for name, column in zip(names, values.T, strict=True) if np.isinf(column).any()]
        raise ValueError(f"Infinite values in {listed(found)}: correct these cells, or make them missing (NaN).")
    return values
