"""TableDetector: a detector for data frames, from their cells to decisions, reasons and drift."""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._core.file_rules import FEATURES, Array, Part, Rule, missing_attribute
from .._core.types import RandomStateLike, StrPath
from .._core.unwrap import detector_of
from .._core.validation import OUTLIER
from ..detectors.auto import AutoDetector
from ..detectors.calibration.base import CalibratedMixin, Calibrating, SelectMixin, calibrating, group_names
from ..detectors.explain import Counterfactuals, Explanation, counterfactuals, explain
from ..detectors.explain.explanation import Explainer
from ..detectors.explain.normal import Normal
from ..detectors.explain.reasons import Reason, row_reasons
from ..export.sealed import mismatch
from .card import CARD, PERCENT, facts, found_scores, group_facts, seen_rows, versions
from .columns import CATEGORY, DATE, ColumnProfile
from .drift import Drift, DriftMonitor
from .encoder import Rows, TableEncoder
from .frames import check_names, kinds_of, times_of

FORMATS = ("date_format", "unit", "decimal", "unit_above")  # what a profile says about cells in files
READING: dict[str, Any] = {
    "header": (bool, None),
    "units_row": (bool, None),
    "skip_lines": (int, None),
    "missing": [str],
    "sheet": (str, None),
}
"""Reading options of ``refkernel fit`` that ``score`` reuses. Encoding, delimiter and decimal mark are recognised in each file."""


def _of_final(name: str, what: str) -> Any:
    """A property of the estimator that decides; a detector may lack it."""
    return property(lambda self: getattr(self._final, name), doc=what)


class TableDetector(CalibratedMixin, BaseEstimator):
    """A detector for tables of numbers, text, truth values, dates and missing cells: a TableEncoder and a detector in one.

    It is what ``refkernel fit`` saves. Frames of pandas and polars and tables of pyarrow are taken; columns are matched by name, in any
    order, and columns that were not there in ``fit`` are ignored.

    Parameters
    ----------
    detector : estimator, optional
        What scores the encoded rows. By default ``AutoDetector(false_alarm_rate)``.
    false_alarm_rate : float in (0, 1) or "balanced", default=0.05
        The share of new normal rows that may be flagged, for the default detector. Others have their own parameters.
    drop : sequence of str, default=()
        Columns to leave out.
    categorical : sequence of str, default=()
        Columns of numbers that are categories.
    time_column : str, optional
        The column that says when. It is left out, and pictures are drawn along it. Where rows that follow each other resemble each
        other, stretches of time are left out to calibrate.
    group_column : str, optional
        The column that names the group of each row, such as its machine. It is left out, and each group keeps the rate by itself.
    random_state : int, RandomState instance or None, default=0
        Passed to the default detector, and draws the made-up outliers of ``card_``.

    Attributes
    ----------
    columns_ : list of ColumnProfile
        What is known about each column.
    card_ : dict
        Facts for people and JSON: rows, the promised rate with its interval, what was chosen, versions.
    encoder_ : TableEncoder
        From the table to numbers.
    detector_ : estimator
        The fitted detector.
    offset_ : float
        ``decision_function = score_samples - offset_``.
    n_features_in_ : int
        The number of columns that are used.
    feature_names_in_ : ndarray of str
        Their names.
    percentiles_ : ndarray of shape (101,)
        Percentiles of the decision values of normal rows, left out where the detector is calibrated on such.
    seen_scores_ : ndarray
        Scores of some training rows, by which ``score`` recognises a table that trained the model.

    See Also
    --------
    AutoDetector : The default detector, for numbers.
    TableEncoder : The encoder alone, for pipelines.

    Notes
    -----
    A detector with a parameter ``units`` (``AutoDetector``) scales columns by itself, and gets the units of the encoded ones. For all
    others the encoder standardises.

    Examples
    --------
    >>> import numpy as np, pandas as pd, refkernel as rk
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"temperature": rng.normal(80.0, 4.0, 200), "machine": rng.choice(["press", "saw"], 200)})
    >>> model = rk.TableDetector().fit(table)
    >>> new = pd.DataFrame({"temperature": [81.0, 81.0, 120.0], "machine": ["saw", "lathe", "press"]})
    >>> model.predict(new)
    array([ 1, -1, -1])
    >>> [str(column) for column in model.columns_][1]
    '2: saw, press'
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        **FEATURES,
        "feature_names_in_": Array(("d",), dtype="O"),
        "encoder_": Part(TableEncoder),
        "percentiles_": Array((PERCENT.size,)),
        "seen_scores_": Array(("s",)),
    }

    def __init__(
        self,
        detector: Any = None,
        *,
        false_alarm_rate: float | str = 0.05,
        drop: Sequence[str] = (),
        categorical: Sequence[str] = (),
        time_column: str | None = None,
        group_column: str | None = None,
        random_state: RandomStateLike = 0,
    ) -> None:
        self.detector = detector
        self.false_alarm_rate = false_alarm_rate
        self.drop = drop
        self.categorical = categorical
        self.time_column = time_column
        self.group_column = group_column
        self.random_state = random_state

    def fit(self, X: Any, y: npt.ArrayLike | None = None) -> Self:
        """Learn what is normal in a table.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            Columns of numbers, text, truth values and dates.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers; all other rows are normal.

        Returns
        -------
        self
            The fitted detector.
        """
        frame = check_names(X)
        left_out = [*self.drop, *(name for name in (self.time_column, self.group_column) if name)]
        if absent := [name for name in (*left_out, *self.categorical) if name not in frame.columns]:
            raise ValueError(f"X has no column {absent[0]!r}, which drop, categorical, time_column or group_column names.")
        names = [name for name in frame.columns if name not in set(left_out)]
        if not names:
            raise ValueError("No column is left to learn from: all were dropped.")
        how: dict[str, Any] = {"time": times_of(frame, self.time_column)} if self.time_column else {}
        how |= {"groups": frame[self.group_column]} if self.group_column else {}
        self._fit(frame[names], y, dict.fromkeys(self.categorical, CATEGORY), how=how)
        if how.get("time") is not None:
            written = Normal(is_date=kinds_of(frame[[self.time_column]], None)[0] == DATE).written
            self.card_ |= {"first_time": written(how["time"].min()), "last_time": written(how["time"].max())}
        return self

    def _fit(
        self,
        X: Any,
        y: npt.ArrayLike | None,
        kinds: Any,
        profiles: Sequence[ColumnProfile] = (),
        how: Mapping[str, Any] = MappingProxyType({}),
    ) -> Self:
        """Fit to the columns that are used. ``profiles`` say how files write their cells, ``how`` holds groups and times."""
        labels = np.ones(len(X)) if y is None else np.where(np.asarray(y) == OUTLIER, OUTLIER, 1.0)
        if labels.shape != (len(X),):
            raise ValueError(f"y has {labels.size} labels, and X has {len(X)} rows.")
        detector = AutoDetector(self.false_alarm_rate, random_state=self.random_state) if self.detector is None else clone(self.detector)
        if "time" in how and how["time"] is None:
            warnings.warn(
                f"{self.time_column} holds text and not times, so the order of the rows does not count.", UserWarning, stacklevel=3
            )
        scales, kind = isinstance(detector, AutoDetector), type(detector).__name__
        if not scales and isinstance(detector_of(detector), SelectMixin):
            raise ValueError(
                f"{kind} would calibrate on rows that the encoder has seen, and break its promise: turn them round, as in "
                "rk.ConformalDetector(rk.TableDetector(rk.SVDD())), or pass rk.AutoDetector."
            )
        if "groups" in how and not scales:
            raise ValueError(f"{kind} keeps no rate for each group: group_column takes rk.AutoDetector.")
        self.encoder_: Any = TableEncoder(kinds, standardise=not scales).fit(X, labels)
        rows = self.encoder_.read(X)
        encoded, known = rows.encoded, labels == OUTLIER
        y = labels if known.any() else None
        if scales and detector.units is None:
            without = partial(self._without, rows.frame(), labels)
            detector.set_params(units=self.encoder_.units_)._fit(encoded, y, None, without, **how)
            self.detector_ = detector
        else:
            self.detector_ = detector.fit(encoded, y)
        self.n_features_in_, self.feature_names_in_ = self.encoder_.n_features_in_, self.encoder_.feature_names_in_
        self.formats_ = {p.name: formats for p in profiles if any(formats := [getattr(p, name) for name in FORMATS])}
        self._judge(encoded, known)
        return self

    def _without(self, X: Any, labels: np.ndarray, unseen: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
        """The rows as an encoder gives them that has not seen some of them, and its units."""
        seen = labels.copy()
        seen[unseen] = OUTLIER
        encoder = self.encoder_._fitted_without(X, seen)
        return lambda rows: encoder.read(X.iloc[rows]).encoded, encoder.units_

    def _judge(self, encoded: np.ndarray, known: np.ndarray) -> None:
        """Write the card, and keep scores of training rows that have no equal."""
        normal = encoded[~known]
        found, percentiles = facts(self.detector_, self._final, normal, encoded[known], self.random_state)
        self.percentiles_: Any = percentiles
        kept, others, alone, twice = seen_rows(normal)
        scores = [self.detector_.score_samples(normal[rows]) for rows in (kept, others) if rows.size]
        self.seen_scores_ = np.sort(scores[0]) if scores else np.empty(0)
        share = kept.size / max(alone, 1)
        if others.size:
            share += (1.0 - share) * found_scores(self.seen_scores_, scores[1]) / others.size
        self.card_ = {
            **dict.fromkeys(("file", "target_column", "target", "outlier")),
            "rows": known.size,
            "targets": int((~known).sum()),
            "outliers": int(known.sum()),
            "dropped": list(self.drop),
            "time_column": self.time_column,
            "group_column": self.group_column,
            **found,
            **versions(),
            "alone": alone,
            "twice": twice,
            "recognised": share,
        }

    @property
    def _final(self) -> Any:
        """The estimator that decides: the last step of a pipeline, the best of a search."""
        return detector_of(self.detector_)

    @property
    def steps(self) -> list[tuple[str, Any]]:
        """Encoder and detector, as a pipeline names them."""
        return [("columns", self.encoder_), ("model", self.detector_)]

    offset_: float = _of_final("offset_", "The lowest score of rows that are accepted.")
    false_alarm_rate_: float = _of_final("false_alarm_rate_", "The expected rate on new normal rows, of a detector that promises one.")
    false_alarm_interval_: tuple[float, float] = _of_final(
        "false_alarm_interval_", "The interval that holds the rate of this very threshold with probability 0.9."
    )
    calibration_: np.ndarray = _of_final(
        "calibration_", "Scores of left-out training rows, of a detector that has them: p-values compare with these."
    )
    calibration_indices_: np.ndarray = _of_final("calibration_indices_", "The row of X that each of these scores belongs to.")

    @property
    def columns_(self) -> list[ColumnProfile]:
        """What is known about each column."""
        check_is_fitted(self)
        how = {name: dict(zip(FORMATS, formats, strict=False)) for name, formats in self.formats_.items()}
        return [replace(column, **how[column.name]) if column.name in how else column for column in self.encoder_.columns]

    def read(self, X: Any) -> Rows:
        check_is_fitted(self)
        rows = self.encoder_.read(X)
        if not self.group_column or rows is X or isinstance(X, list):
            return rows
        frame = check_names(X)
        if self.group_column not in frame.columns:
            raise ValueError(f"X has no column {self.group_column!r}, which names the group of each row: the model keeps a rate for each.")
        return replace(rows, groups=group_names(frame[self.group_column], len(rows)))

    read.__doc__ = TableEncoder.read.__doc__

    def score_samples(self, X: Any) -> np.ndarray:
        return self.detector_.score_samples(self.read(X).encoded)

    def decision_function(self, X: Any, groups: Any = None) -> np.ndarray:  # type: ignore[override]
        rows = self.read(X)
        return super().decision_function(rows, rows.groups if groups is None else groups)

    def p_values(self, X: Any, groups: Any = None) -> np.ndarray:
        rows = self.read(X)
        calibrating(self.detector_)  # says what has p-values
        return super().p_values(rows, rows.groups if groups is None else groups)

    @property
    def group_names_(self) -> np.ndarray:  # type: ignore[override]
        """The names of the groups of ``group_column``."""
        return getattr(self._final, "group_names_", np.empty(0, dtype=object))

    def _wish(self) -> tuple[float, float | None]:
        return self._final._wish()

    def explain(self, X: Any, **options: Any) -> Explanation:
        """Explain the scores of rows: what each column adds.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            The columns of ``fit``, by name.
        **options
            ``groups`` and ``method`` of :func:`refkernel.explain`.

        Returns
        -------
        Explanation
            ``values``, ``baseline`` and ``names``.
        """
        return explain(self, self.read(X), **options)

    def reasons(self, X: Any, count: int = 3) -> list[list[Reason]]:
        """Say in words which cells count most against each row.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            The columns of ``fit``, by name.
        count : int, default=3
            How many cells of each row; those that count less than a tenth of the first are left out.

        Returns
        -------
        list of list of Reason
            For each row the strongest first: ``column``, ``value`` and ``why``.
        """
        return self._reasons(self.read(X), self.columns_, count)

    def _reasons(self, rows: Rows, columns: Sequence[ColumnProfile], count: int) -> list[list[Reason]]:
        explainer = Explainer(self)
        values = explainer.against(rows, count)
        normals = [column.normal for column in columns]
        return row_reasons(
            rows.names, values, rows.cells, normals, count, lambda chosen, worst: explainer.partners(rows.take(chosen), worst)
        )

    def counterfactuals(self, X: Any, **options: Any) -> Counterfactuals:
        """Find the nearest value of each column that would make a flagged row normal.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            The columns of ``fit``, by name.
        **options
            ``ranges`` of :func:`refkernel.counterfactuals`.

        Returns
        -------
        Counterfactuals
            The flagged rows, and the changes that suffice for each.
        """
        return counterfactuals(self, self.read(X).frame(), **options)

    def drift(self, X: Any) -> Drift:
        """Test whether rows are still like those of training.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            The columns of ``fit``, by name.

        Returns
        -------
        Drift
            A test of each column, and of the scores where the detector kept those of left-out rows.
        """
        rows, monitor = self.read(X), DriftMonitor(self.columns_, getattr(self, "calibration_", None))
        monitor.add(rows.cells, self.score_samples(rows))
        return monitor.drift()

    def with_false_alarm_rate(self, false_alarm_rate: float | str) -> Self:
        check_is_fitted(self)
        if not hasattr(self.detector_, "with_false_alarm_rate"):
            kind = type(self._final).__name__
            raise ValueError(f"{kind} promises no rate of false alarms; refkernel fit --model auto and rk.AutoDetector do.")
        other = self._with_detector(self.detector_.with_false_alarm_rate(false_alarm_rate))
        other.false_alarm_rate = false_alarm_rate
        return other

    def _with_detector(self, detector: Any) -> Self:
        """A copy with another threshold or other calibration rows."""
        other = copy.copy(self)
        other.detector_ = detector
        final = other._final
        changed: dict[str, Any] = {"threshold": float(final.offset_), "false_alarm_rate": float(final.false_alarm_rate_)}
        changed |= {"groups": group_facts(final), "false_alarm_interval": [float(end) for end in final.false_alarm_interval_]}
        other.card_ = {**self.card_, **changed}
        if hasattr(final, "calibration_"):
            other.percentiles_ = np.percentile(final.calibration_ - final.offset_, PERCENT)
        elif self.percentiles_ is not None:
            other.percentiles_ = self.percentiles_ + self.offset_ - final.offset_
        return other

    with_false_alarm_rate.__doc__ = AutoDetector.with_false_alarm_rate.__doc__

    def _calibrating(self) -> Calibrating:
        return calibrating(self.detector_)

    def _calibrated_on(self, held: Calibrating) -> Self:
        return self._with_detector(self.detector_._calibrated_on(held))

    def _judged(self, X: Any, draws: np.ndarray, groups: Any = None) -> tuple[np.ndarray, ...]:
        rows = self.read(X)
        return self.detector_._judged(rows.encoded, draws, rows.groups if groups is None else groups)

    def save(self, path: StrPath) -> Path:
        """Write the model to a file that ``refkernel.load`` and the ``refkernel`` command read.

        Parameters
        ----------
        path : path
            The file to write; one that exists is replaced.

        Returns
        -------
        Path
            The file.
        """
        from ..export.files import save

        return save(self, path)

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """The encoder takes the columns of the model, and the card has the form that ``fit`` gives it."""
        detector = getattr(self, "detector_", None)
        if not isinstance(detector, BaseEstimator) or missing_attribute(detector):
            return "detector_ is not a fitted detector"
        if getattr(detector, "n_features_in_", self.encoder_.units_.size) != self.encoder_.units_.size:
            return f"detector_ takes {detector.n_features_in_} columns, and encoder_ gives {self.encoder_.units_.size}"
        if list(self.encoder_.feature_names_in_) != list(self.feature_names_in_):
            return "encoder_ takes other columns"
        if (np.diff(self.percentiles_) < 0).any():
            return "percentiles_ are not rising"
        if not hasattr(self._final, "offset_"):
            return "detector_ has no threshold"
        problem = mismatch(getattr(self, "card_", None), CARD, "card_")
        if not problem and len((0, 1) if self.card_["false_alarm_interval"] is None else self.card_["false_alarm_interval"]) != 2:
            problem = "card_ has an interval without two ends"
        problem = problem or (mismatch(self.reading_, READING, "reading_") if hasattr(self, "reading_") else None)
        return problem or mismatch(getattr(self, "formats_", None), {str: [(str, bool, None)]}, "formats_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags
