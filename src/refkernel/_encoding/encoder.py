"""TableEncoder: mixed columns to the numbers that a detector takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import OUTLIER
from .column import CATEGORY, DATE, NUMBER, Column
from .parts import CategoryPart, DatePart, NumbersPart
from .portions import by_columns, by_rows

__all__ = ["TableEncoder", "dates_as_seconds"]

UNEXPECTED = 0.01
"""The share of new rows that may bring a category that was never seen and be flagged for it, over all columns."""

FARTHER = 2.0
"""A standardised column of n rows reaches at most sqrt(n) to each side of 0: a contradiction is farther away than any two of them."""

FAR = 1e6
"""At this many standard deviations an RBF kernel is 0 against all training rows and references, and decisions have reached their limit."""

VIOLATED = "violated"
"""The last encoded column: how many cells contradict all of training. It is 0 in every training row."""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a data frame, and count in each row the cells that contradict all training rows.

    Numbers stay as they are, categories become one column a level, dates become elapsed time and cycles. Rare levels share a column. A
    missing number is filled with the median, and a further column says so; more missing cells than any training row had contradict
    training. The last encoded column counts contradictions, and is 0 for every training row. Its unit is so small that a row with a
    contradiction is farther away than any two training rows are from each other.

    Parameters
    ----------
    kinds : sequence of str
        "number", "category" or "date" for each column. Dates are seconds since 1970, or pandas' dates, those without a zone as UTC.
    standardise : bool, default=False
        Whether encoded columns get a common scale here. AutoDetector scales by itself, and takes ``units_``.

    Attributes
    ----------
    columns : list of Column
        What training knew about each column.
    units_ : ndarray of shape (n_encoded,)
        The unit of each encoded column; NaN where a detector should standardise it.
    most_missing_ : int
        The most missing cells in one training row.
    """

    def __init__(self, kinds: Sequence[str] | np.ndarray, *, standardise: bool = False) -> None:
        self.kinds = kinds
        self.standardise = standardise

    def fit(self, X: Any, y: npt.ArrayLike | None = None) -> Self:
        """Learn the columns from the normal rows.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_features)
            Float columns (NaN: missing) and columns of text (NaN: missing).
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which do not count.

        Returns
        -------
        self
            The fitted encoder.
        """
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        if len(self.kinds) != self.n_features_in_:
            raise ValueError(f"kinds names {len(self.kinds)} columns, and X has {self.n_features_in_}.")
        normal = X if y is None else X[np.asarray(y) != OUTLIER]
        share = UNEXPECTED / max(1, list(self.kinds).count(CATEGORY))
        makers: dict[str, Callable[..., Any]] = {NUMBER: NumbersPart, DATE: DatePart, CATEGORY: partial(CategoryPart, unexpected=share)}
        self.parts_ = [self._learnt(normal, places, makers[self.kinds[places[0]]]) for places in self.places_]
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
        read = READERS[self.kinds[places[0]]]
        found = [make(self.standardise).fit(read(part)) for part in by_columns(X[self.feature_names_in_[places]])]
        return found[0] if len(found) == 1 else NumbersPart.joined(found)

    @property
    def places_(self) -> list[list[int]]:
        """The columns of each part: all numbers together, the others one by one."""
        numeric = [j for j, kind in enumerate(self.kinds) if kind == NUMBER]
        return [*([numeric] if numeric else []), *([j] for j, kind in enumerate(self.kinds) if kind != NUMBER)]

    @property
    def units_(self) -> np.ndarray:
        """The unit of each encoded column; NaN where a detector should standardise it."""
        return np.array([*(unit for part in self.parts_ for unit in part.units), 1.0 / self.jump_])

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
        return np.column_stack([*encoded, count * self.jump_ if self.standardise else count])

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
        return [READERS[self.kinds[places[0]]](X[self.feature_names_in_[places]]) for places in self.places_]

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


def _floats(part: Any) -> np.ndarray:
    return np.asarray(part.to_numpy(dtype=np.float64))


def _objects(part: Any) -> np.ndarray:
    return np.asarray(part.to_numpy(dtype=object))


def dates_as_seconds(part: Any) -> np.ndarray:
    """A column of dates as seconds since 1970."""
    (kind,), (name,) = part.dtypes, part.columns
    if kind.kind == "M":
        dates = part[name].dt.tz_convert(None) if getattr(kind, "tz", None) else part[name]
        dates = dates.to_numpy().astype("datetime64[us]")
        return np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / 1e6)[:, None]
    try:
        return _floats(part)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} holds dates: pass them as pandas.to_datetime makes them, or as seconds since 1970.") from error


READERS: dict[str, Callable[[Any], np.ndarray]] = {NUMBER: _floats, DATE: dates_as_seconds, CATEGORY: _objects}
"""From some columns of a kind to the matrix that its part takes."""
