"""TableEncoder: mixed columns to the numbers that a detector takes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import OUTLIER
from .column import CATEGORY, DATE, NUMBER, Column
from .parts import CategoryPart, DatePart, NumberPart

__all__ = ["TableEncoder"]

PARTS: dict[str, type] = {NUMBER: NumberPart, CATEGORY: CategoryPart, DATE: DatePart}

VIOLATED = "violated"
"""The last encoded column: how many cells contradict all of training. It is 0 in every training row."""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a data frame, and count in each row the cells that contradict all training rows.

    Numbers stay as they are, categories become one column a level, dates become elapsed time and cycles. Rare levels share a column. A
    missing number is filled with the median, and a further column says so; more missing cells than any training row had contradict
    training. The last encoded column counts contradictions, and is 0 for every training row: a detector that takes constant columns as
    statements flags all others.

    Parameters
    ----------
    kinds : list of str
        "number", "category" or "date" for each column. Dates are seconds since 1970.
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

    def __init__(self, kinds: list[str], *, standardise: bool = False) -> None:
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
        columns = self._values(normal)
        self.parts_ = [PARTS[kind](self.standardise).fit(values) for kind, values in zip(self.kinds, columns, strict=True)]
        self.jump_ = float(np.sqrt(len(normal))) if self.standardise else 1.0
        self.most_missing_ = int(self._missing(columns).sum(axis=1).max())
        return self

    @property
    def units_(self) -> np.ndarray:
        """The unit of each encoded column; NaN where a detector should standardise it."""
        return np.array([*(unit for part in self.parts_ for unit in part.units), np.nan])

    @property
    def columns(self) -> list[Column]:
        """What training knew about each column, and the encoded columns that belong to it."""
        check_is_fitted(self)
        found, start = [], 0
        for name, part in zip(self.feature_names_in_, self.parts_, strict=True):
            stop = start + len(part.units)
            found.append(part.column(str(name), tuple(range(start, stop))))
            start = stop
        return found

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
        columns = self._values(X)
        encoded = [column for part, values in zip(self.parts_, columns, strict=True) for column in part.encode(values)]
        count = self._violations(columns).sum(axis=1, dtype=np.float64)
        return np.column_stack([*encoded, (count > 0) * self.jump_ if self.standardise else count])

    def violations(self, X: Any) -> np.ndarray:
        """Find the cells that contradict all training rows.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_features)
            The columns of ``fit``, by name.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_features)
            True for another value of a constant, a missing cell where training had none, a category that was never seen where new ones
            are not to be expected, and all missing cells of a row with more of them than any training row.
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
        named = zip(self.feature_names_in_, self.parts_, strict=True)
        return np.array([*(encoded for name, part in named for encoded in part.names(str(name))), VIOLATED], dtype=object)

    def _values(self, X: Any) -> list[np.ndarray]:
        """Each column as an array: floats, and objects of categories."""
        types = {kind: object if kind == CATEGORY else np.float64 for kind in PARTS}
        return [X[name].to_numpy(dtype=types[kind]) for name, kind in zip(self.feature_names_in_, self.kinds, strict=True)]

    def _missing(self, columns: list[np.ndarray]) -> np.ndarray:
        return np.column_stack([part.is_missing(values) for part, values in zip(self.parts_, columns, strict=True)])

    def _violations(self, columns: list[np.ndarray]) -> np.ndarray:
        found = np.column_stack([part.violated(values) for part, values in zip(self.parts_, columns, strict=True)])
        missing = self._missing(columns)
        return found | (missing & (missing.sum(axis=1) > self.most_missing_)[:, None])
