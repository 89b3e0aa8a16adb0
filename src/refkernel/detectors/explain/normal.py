"""The columns of a model's input: their names, what is normal in each, and which of them a transformer's output comes from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder

from ..._core.unwrap import unwrap
from ...classifiers.base import OneClassClassifier
from ...preprocessing import TargetScaler
from ...references import GENERATED
from ..calibration import ConformalDetector

SHARED = -1  # the source of a column that belongs to some of the input's columns, other ones in each row
SHOWN_LEVELS = 3  # levels that a text names
MIDDLE = 0.01, 0.99  # most numbers are between these quantiles
DAY = 86_400.0


@dataclass(frozen=True)
class Normal:
    """What training had in one column: numbers from ``low`` to ``high`` (dates: seconds since 1970), or ``levels``; or nothing is known."""

    low: float | None = None
    high: float | None = None
    levels: tuple[str, ...] = ()
    is_date: bool = False
    typical: float | None = None  # the median
    middle: tuple[float, float] | None = None  # the range of the numbers without 1 % on each side; the whole range if it is not given
    decimal: str = "."  # the mark that numbers are written with

    @property
    def is_clock(self) -> bool:
        """Whether dates are times of the day."""
        return self.is_date and self.low is not None and self.high is not None and 0.0 <= self.low <= self.high < DAY

    @property
    def usual(self) -> tuple[Any, Any]:
        """The range of most numbers."""
        return self.middle or (self.low, self.high)

    @property
    def most(self) -> str:
        """What most of training had, as text."""
        return self._text(*self.usual)

    def __str__(self) -> str:
        return self._text(self.low, self.high)

    def _text(self, low: Any, high: Any) -> str:
        if low is None:
            more = len(self.levels) - SHOWN_LEVELS
            return ", ".join(self.levels[:SHOWN_LEVELS]) + (f" and {more:,} more" if more > 0 else "")
        low, high = self.written(low), self.written(high)
        return low if low == high else f"{low} … {high}"

    def written(self, value: Any) -> str:
        """A cell of this column as text."""
        if value is None or value != value:
            return "missing"
        if self.levels or not isinstance(value, int | float | np.number):
            return str(value)
        if self.is_date:
            return _written_date(float(value), self.is_clock)
        text = written(float(value))
        return text.replace(",", "").replace(".", ",") if self.decimal == "," else text  # 1.016 beside decimal commas would be unclear

    def outside(self, cells: np.ndarray) -> np.ndarray:
        """True for cells that training did not have: beyond its range, other levels; missing ones are not."""
        return self._beyond(cells, self.low, self.high)

    def unusual(self, cells: np.ndarray) -> np.ndarray:
        """True for cells that most of training did not have, missing ones included."""
        missing = cells != cells if cells.dtype.kind == "f" else np.array([cell is None or cell != cell for cell in cells], dtype=bool)
        return missing | self._beyond(cells, *self.usual)

    def _beyond(self, cells: np.ndarray, low: Any, high: Any) -> np.ndarray:
        if low is not None:
            numbers = np.asarray(cells, dtype=np.float64)
            return (numbers < low) | (numbers > high)
        known = set(self.levels)
        return np.array([bool(known) and cell == cell and cell is not None and cell not in known for cell in cells.tolist()], dtype=bool)

    def why(self, unusual: bool) -> str:
        """What is wrong with a cell, in words."""
        if not unusual:
            return self.most and f"within {self.most}" + ("; its hour, weekday or season may be unusual" if self.is_date else "")
        return self.most and f"normal: {self.most}" + (f", extremes {self}" if str(self) != self.most else "")


def written(value: float) -> str:
    """A number with four significant digits, all digits before the point, and thousands separated: 6,300 or 0.1234."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size != 0.0 and not 1e-4 <= size < 1e9:
        return f"{value:.4g}"
    text = f"{value:,.{max(0, 3 - math.floor(math.log10(size or 1.0)))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _written_date(seconds: float, is_clock: bool = False) -> str:
    """A moment, or the time of the day where training had nothing else."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return written(seconds)
    if is_clock and 0.0 <= seconds < DAY:
        return f"{moment:%H:%M}" if seconds % 60 == 0 else f"{moment:%H:%M:%S}"
    return f"{moment:%Y-%m-%d}" if seconds % DAY == 0 else f"{moment:%Y-%m-%d %H:%M}"


def normals_of_model(model: Any) -> list[Normal]:
    """What is normal for each input column, by what a fitted model keeps of its training rows."""
    before, _ = unwrap(model)
    if before and hasattr(before[0], "read"):  # it encodes a table, and knows its columns
        return [column.normal for column in before[0].columns]
    rows = kept_rows(model)
    ends = np.quantile(rows, (0.0, 1.0, 0.5, *MIDDLE), axis=0)
    return [Normal(low, high, typical=typical, middle=(first, last)) for low, high, typical, first, last in ends.T.tolist()]


def kept_rows(model: Any) -> np.ndarray:
    """Training rows that a model keeps, or draws like them, in the units of its input."""
    before, final = unwrap(model)
    if hasattr(final, "_kept_rows"):
        rows = np.asarray(final._kept_rows())
    elif isinstance(final, ConformalDetector):
        rows = np.vstack([kept_rows(inner) for inner in models_inside(final)])
    elif not isinstance(final, OneClassClassifier):
        raise TypeError(f"{type(final).__name__} keeps no training rows: pass ranges={{name: (low, high), …}}.")
    else:
        kernel, rows = final.kernel_, dense(final.support_vectors_)
        if hasattr(kernel, "reference_indices_"):
            rows = np.vstack([rows, dense(kernel.references_)[kernel.reference_indices_ != GENERATED]])
    for step in reversed(before):
        if not hasattr(step, "inverse_transform"):
            raise TypeError(
                f"{type(step).__name__} cannot be undone, so the ranges of its input are not known. Pass them: "
                "ranges={name: (low, high), …}, or levels for categories."
            )
        rows = step.inverse_transform(rows)
    return rows


def models_inside(final: Any) -> list[Any]:
    """The fitted models that score new rows in a ConformalDetector; none in another detector."""
    if not isinstance(final, ConformalDetector):
        return []
    return [final.estimator_] if hasattr(final, "estimator_") else vars(final.models_)["models"]


def dense(rows: Any) -> np.ndarray:
    """Rows in double precision, dense."""
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)


def in_order(model: Any, X: Any) -> Any:
    """The columns of a data frame that the model was fitted on, in that order, if all of them are there; those of a table as it is read."""
    before, _ = unwrap(model)
    if before and hasattr(before[0], "read"):  # it encodes a table
        return before[0].read(X).frame()
    X = X if hasattr(X, "shape") else np.asarray(X)
    names = getattr(model, "feature_names_in_", None)
    return X if names is None or not hasattr(X, "columns") or not set(names) <= set(X.columns) else X[list(names)]


def names_of(model: Any, X: Any) -> list[str]:
    """The names of the input's columns: those seen in ``fit``, those of a data frame, or x0, x1, …"""
    known = getattr(model, "feature_names_in_", getattr(X, "columns", None))
    if known is not None:
        return [str(name) for name in known]
    count = getattr(model, "n_features_in_", None)
    return [f"x{number}" for number in range(np.shape(X)[1] if count is None else count)]


def sources_of(step: Any, columns: int) -> np.ndarray:
    """The number of the input column of each output column; a transformer of your own says it by a method ``column_sources``."""
    if hasattr(step, "column_sources"):
        return np.asarray(step.column_sources(), dtype=np.intp)
    if isinstance(step, str):
        return np.arange(columns if step == "passthrough" else 0)
    if isinstance(step, TargetScaler):
        return np.flatnonzero(step.kept_)
    if isinstance(step, SelectorMixin):
        return step.get_support(indices=True)
    if isinstance(step, SimpleImputer):
        filled = np.array([step.keep_empty_features or value == value for value in step.statistics_])  # NaN where nothing was seen
        marked = step.indicator_.features_ if step.add_indicator else np.empty(0, dtype=np.intp)
        return np.concatenate([np.flatnonzero(filled), marked])
    if isinstance(step, OneHotEncoder):
        return np.repeat(np.arange(columns), step._n_features_outs)  # nothing public counts columns after drop and min_frequency
    if isinstance(step, Pipeline):
        found = np.arange(columns)
        for _, inner in step.steps:
            found = found if inner is None else found[sources_of(inner, found.size)]
        return found
    if isinstance(step, ColumnTransformer):
        found = np.arange(step.n_features_in_)
        names = {name: number for number, name in enumerate(getattr(step, "feature_names_in_", ()))}
        full = [part for part in step.transformers_ if step.output_indices_[part[0]].stop > step.output_indices_[part[0]].start]
        chosen = [(inner, found[_places(places, names)]) for _, inner, places in full]
        return np.concatenate([numbers[sources_of(inner, numbers.size)] for inner, numbers in chosen])
    keeps = isinstance(step, OneToOneFeatureMixin) and not isinstance(step, Normalizer)  # whose columns depend on all others
    if keeps or (isinstance(step, FunctionTransformer) and (step.func is None or step.feature_names_out == "one-to-one")):
        return np.arange(columns)
    raise TypeError(
        f"{type(step).__name__} may mix columns, so its input cannot be explained. Explain what it returns: "
        "rk.explain(pipeline[-1], pipeline[:-1].transform(X))."
    )


def _places(chosen: Any, names: Mapping[str, int]) -> Any:
    """What a part of a ColumnTransformer was given, as an index: a slice, a mask or numbers."""
    if isinstance(chosen, slice):
        return chosen
    chosen = np.atleast_1d(np.asarray(chosen))
    return chosen if chosen.dtype.kind in "biu" else [names[name] for name in chosen]
