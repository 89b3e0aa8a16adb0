"""TableEncoder: mixed columns to the numbers that a detector takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import OUTLIER, listed
from .column import CATEGORY, DATE, NUMBER, Column
from .encoded import Encoded
from .frames import READERS, check_names, kinds_of
from .parts import CategoryPart, DatePart, NumbersPart
from .portions import by_columns, by_rows

__all__ = ["TableEncoder"]

UNEXPECTED = 0.01
"""The share of new rows that may bring a category that was never seen and be flagged for it, over all columns."""

FARTHER = 2.0
"""A standardised column of n rows reaches at most sqrt(n) to each side of 0: a contradiction is farther away than any two of them."""

FAR = 1e6
"""At this many standard deviations an RBF kernel is 0 against all training rows and references, and decisions have reached their limit."""

VIOLATED = "violated"
"""The last encoded column: how many cells contradict all of training. It is 0 in every training row."""


NAMES_ROWS = 0.5
"""A column of texts of which this share is unlike all others names the rows."""


class TableEncoder(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg] # a frame would lose the units
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
        Whether encoded columns get a common scale. AutoDetector needs none: it scales by itself, and takes the units of categories from
        what ``transform`` returns.

    Attributes
    ----------
    columns : list of Column
        What training knew about each column.
    kinds_ : ndarray of str
        The kind of each column.
    units_ : ndarray of shape (n_encoded,)
        The unit of each encoded column; NaN where a detector should standardise it.
    most_missing_ : int
        The most missing cells in one training row.
    n_features_in_ : int
        The number of columns of the data frame.
    feature_names_in_ : ndarray of str
        Their names.

    See Also
    --------
    AutoDetector : The detector that needs no settings.
    TargetImputer : Fills missing numbers only.

    Notes
    -----
    ``refkernel fit`` uses this encoder. Behind it, a pipeline has ``predict``, ``decision_function`` and ``score_samples``. For p-values,
    pass its scores to the detector: ``model[-1].p_values_of(model.score_samples(X))``. ``explain``, ``counterfactuals``, ``save`` and
    ``to_onnx`` take the pipeline, and name the columns of the data frame.

    Examples
    --------
    >>> import numpy as np, pandas as pd, refkernel as rk
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"temperature": rng.normal(80.0, 4.0, 200), "machine": rng.choice(["press", "saw"], 200)})
    >>> model = make_pipeline(rk.TableEncoder(), rk.AutoDetector()).fit(table)
    >>> new = pd.DataFrame({"temperature": [81.0, 81.0, 120.0], "machine": ["saw", "lathe", "press"]})
    >>> model.predict(new)
    array([ 1, -1, -1])
    >>> why = rk.explain(model, new)
    >>> [why.names[worst] for worst in why.worst(1)[1:, 0]]
    ['machine', 'temperature']
    """

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
        check_names(X)
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.kinds_ = kinds_of(X, self.kinds)
        normal = X if y is None else X[np.asarray(y) != OUTLIER]
        share = UNEXPECTED / max(1, list(self.kinds_).count(CATEGORY))
        makers: dict[str, Callable[..., Any]] = {NUMBER: NumbersPart, DATE: DatePart, CATEGORY: partial(CategoryPart, unexpected=share)}
        self.parts_ = [self._learnt(normal, places, makers[self.kinds_[places[0]]]) for places in self.places_]
        if self.kinds is None:
            self._warn_about_names(len(normal))
        if self.standardise and not any(part.units for part in self.parts_):
            raise ValueError(
                f"All {self.n_features_in_} columns are constant over the {len(normal)} normal rows: nothing is left to scale."
            )
        farther = FARTHER * float(np.sqrt(len(normal))) * (1 + sum(len(part.units) for part in self.parts_))
        self.jump_ = max(FAR, farther) if self.standardise else farther
        self.most_missing_ = max(int(self.missing(rows).sum(axis=1).max()) for rows in by_rows(normal))
        return self

    def _learnt(self, X: Any, places: list[int], make: Callable[..., Any]) -> Any:
        """The part of some columns, from as many of them at a time as ``by_columns`` gives."""
        read = READERS[self.kinds_[places[0]]]
        found = [make(self.standardise).fit(_some(read(part), part.columns)) for part in by_columns(X[self.feature_names_in_[places]])]
        return found[0] if len(found) == 1 else NumbersPart.joined(found)

    def _warn_about_names(self, n: int) -> None:
        """Tell of columns of text that are dates or name the rows: nothing can be learnt from them."""
        texts = [(places, part) for places, part in zip(self.places_, self.parts_, strict=True) if isinstance(part, CategoryPart)]
        names = [self._names(places)[0] for places, part in texts if part.counts_.count(1) > NAMES_ROWS * n]
        if names:
            warnings.warn(
                f"Most cells of {listed(names)} are unlike all others, so that nothing can be learnt from them. Convert dates by "
                "pandas.to_datetime; drop columns that name the rows.",
                UserWarning,
                stacklevel=3,
            )

    @property
    def places_(self) -> list[list[int]]:
        """The columns of each part: all numbers together, the others one by one."""
        numeric = [j for j, kind in enumerate(self.kinds_) if kind == NUMBER]
        return [*([numeric] if numeric else []), *([j] for j, kind in enumerate(self.kinds_) if kind != NUMBER)]

    @property
    def units_(self) -> np.ndarray:
        """The unit of each encoded column; NaN where a detector should standardise it."""
        if not self.standardise:
            return np.array([*(unit for part in self.parts_ for unit in part.units), 1.0 / self.jump_])
        return np.array([*(unit for part in self.parts_ for unit in part.relative_units), 1.0])

    @property
    def columns(self) -> list[Column]:
        """What training knew about each column, and the encoded columns that belong to it."""
        check_is_fitted(self)
        found: dict[int, Column] = {}
        start = 0
        for places, part in zip(self.places_, self.parts_, strict=True):
            found |= zip(places, part.columns(self._names(places), start), strict=True)
            start += len(part.units)
        return [found[j] for j in sorted(found)]

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
        check_is_fitted(self)
        values = self._values(X)
        encoded = [part.encode(v) for part, v in zip(self.parts_, values, strict=True)]
        count = self._violations(values).sum(axis=1, dtype=np.float64)
        return Encoded.of(np.column_stack([*encoded, count * self.jump_ if self.standardise else count]), self.units_)

    def violations(self, X: Any) -> np.ndarray:
        """Find the cells that contradict all training rows.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_features)
            The columns of ``fit``, by name.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_features)
            True for another value of a constant, a number far outside of all training values, a missing cell where training had none, a
            category that was never seen where new ones are not to be expected, and all missing cells of a row with more of them than any
            training row.
        """
        check_is_fitted(self)
        return self._violations(self._values(X))

    def missing(self, X: Any) -> np.ndarray:
        """Find the cells without a value.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_features)
            The columns of ``fit``, by name.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_features)
            True for missing cells.
        """
        return self._missing(self._values(X))

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

    def _names(self, places: list[int]) -> list[str]:
        return [str(self.feature_names_in_[j]) for j in places]

    def _values(self, X: Any) -> list[np.ndarray]:
        """What each part takes of the table: a matrix of floats, or of objects for categories."""
        if not hasattr(X, "columns"):
            some = ", ".join(self._names([*range(min(self.n_features_in_, 3))]))
            raise TypeError(f"The model takes {self.n_features_in_} columns by name ({some}, …): pass a data frame.")
        absent = [name for name in self.feature_names_in_ if name not in X.columns]
        if absent:
            raise ValueError(f"X lacks {len(absent)} of the {self.n_features_in_} columns of fit: {absent[0]!r} is the first.")
        named = [(self.kinds_[places[0]], self.feature_names_in_[places]) for places in self.places_]
        return [_finite(READERS[kind](X[names]), names) for kind, names in named]

    def _missing(self, values: list[np.ndarray]) -> np.ndarray:
        return self._by_column([part.is_missing(v) for part, v in zip(self.parts_, values, strict=True)])

    def _violations(self, values: list[np.ndarray]) -> np.ndarray:
        found = self._by_column([part.violated(v) for part, v in zip(self.parts_, values, strict=True)])
        missing = self._missing(values)
        return found | (missing & (missing.sum(axis=1) > self.most_missing_)[:, None])

    def _by_column(self, found: list[np.ndarray]) -> np.ndarray:
        """What the parts found, in the order of the table's columns."""
        ordered = np.empty((len(found[0]), self.n_features_in_), dtype=bool)
        for places, mine in zip(self.places_, found, strict=True):
            ordered[:, places] = mine
        return ordered

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Also read files of earlier versions, where all kinds were given."""
        super().__setstate__({**state, "kinds_": state["kinds"]} if "parts_" in state and "kinds_" not in state else state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags


def _some(values: np.ndarray, names: Any) -> np.ndarray:
    """The values, if every column has some."""
    empty = [name for name, is_empty in zip(names, (values != values).all(axis=0), strict=True) if is_empty]
    if empty:
        raise ValueError(f"No normal row has a value in {listed(empty)}: drop these columns.")
    return _finite(values, names)


def _finite(values: np.ndarray, names: Any) -> np.ndarray:
    """The values, if none is infinite."""
    if values.dtype == np.float64 and np.isinf(values).any():
        found = [name for name, column in zip(names, values.T, strict=True) if np.isinf(column).any()]
        raise ValueError(f"X contains infinity in {listed(found)}: correct these cells, or make them missing (NaN).")
    return values
