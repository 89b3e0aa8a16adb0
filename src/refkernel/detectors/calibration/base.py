"""What detectors with a calibration set have in common: p-values, discoveries at a false-discovery rate, other calibration rows."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..._core.file_rules import Array, Items, Number, Rule
from ..._core.text import named
from ..._core.threshold import ThresholdMixin, finite_scores
from ..._core.unwrap import detector_of
from ..._core.validation import as_labels
from ...large import as_source, is_source
from .band import FalseAlarmBand
from .promise import ROUNDING, Promise, benjamini_hochberg, needed_samples, p_values, promise

NO_GROUP = ("", "nan", "NaN", "NaT", "None", "<NA>")

CALIBRATION_RULES: dict[str, Rule] = {
    "group_names_": Array(("groups",), dtype="O", optional=True),
    "calibration_groups_": Array(("n",), lowest=-1, below="groups", optional=True),
    "calibration_worth_": Number(positive=True, most=1.0),
    "false_alarm_rate_": Number(positive=True, most=1.0),
    "false_alarm_interval_": Items(Number(most=1.0), size=2),
}


class Calibrating(NamedTuple):
    """Rows that calibrate: scores, their numbers in X of ``fit`` (-1: other rows), the model that scored each, and its group (-1: none)."""

    scores: np.ndarray
    indices: np.ndarray
    model: np.ndarray
    group: np.ndarray

    def some(self, chosen: np.ndarray) -> "Calibrating":
        return Calibrating(*(values[chosen] for values in self))

    def and_(self, other: "Calibrating") -> "Calibrating":
        return Calibrating(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def group_names(groups: Any, count: int) -> np.ndarray:
    """The name of each row's group as text; "" for a row without one."""
    values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(values) != count:
        raise ValueError(f"groups has {len(values):,} values, and X has {count:,} rows.")
    texts = [str(int(value)) if isinstance(value, float) and value.is_integer() else str(value) for value in values]
    return np.array(["" if text in NO_GROUP else text for text in texts], dtype=object)


def places_in_time(time: Any, count: int) -> np.ndarray:
    """The place of each row in order of time; rows of one time keep their order."""
    when = np.asarray(time)
    if when.dtype.kind not in "biufM":
        try:
            when = np.array([np.datetime64(value) for value in when.tolist()])
        except (TypeError, ValueError) as error:
            raise ValueError(f"time must hold numbers or dates, one for each row: {error}") from error
    if when.shape != (count,):
        raise ValueError(f"time has {when.size:,} values, and X has {count:,} rows.")
    if (absent := when != when).any():
        raise ValueError(f"time has no value for row {absent.argmax()}: leave that row out, or pass no time.")
    place = np.empty(count, dtype=np.intp)
    place[np.argsort(when, kind="stable")] = np.arange(count)
    return place


class SelectMixin(ThresholdMixin):
    """``select``, ``groups_`` and ``with_outliers``. Besides what ``ThresholdMixin`` needs, a detector provides ``p_values`` and

    def _calibrating(self) -> Calibrating:       # the rows that calibrate
    def _calibrated_on(self, held) -> Self:      # a copy that other rows calibrate
    def _judged(self, X, draws, groups=None):    # (scores, model, p-values, labels) of new rows; draws in [0, 1) choose their models
    def _wish(self) -> tuple:                    # the rate to keep, and with which confidence
    """

    _wish: Callable[[], tuple[float, float | None]]

    @property
    def groups_(self) -> dict[str, Promise | None]:
        """What each group of ``fit(X, groups=…)`` is promised; None for groups of too few rows, which share the common threshold."""
        names = getattr(self, "group_names_", ())
        if not len(names):
            return {}
        group, (rate, confidence) = calibrating(self).group, self._wish()
        count, needed = np.bincount(group[group >= 0], minlength=len(names)).tolist(), needed_samples(rate, confidence)
        return {name: promise(n, rate, confidence) if n >= needed else None for name, n in zip(names, count, strict=True)}

    def _group_numbers(self, groups: Any, count: int) -> np.ndarray:
        """The number of each row's group; -1 for one that was not in ``fit``."""
        number = {name: place for place, name in enumerate(getattr(self, "group_names_", ()))}
        if not number:
            raise ValueError("The detector was fitted without groups: pass groups to fit, too.")
        return np.array([number.get(name, -1) for name in group_names(groups, count)], dtype=np.intp)

    def _by_group(self, groups: Any, count: int) -> Iterator[tuple[np.ndarray, np.ndarray, Promise]]:
        """(rows, True for those that calibrate them, promise) of each group that has a threshold of its own."""
        if groups is None:
            return
        number = self._group_numbers(groups, count)
        for place, kept in enumerate(self.groups_.values()):
            if kept is not None:
                yield np.flatnonzero(number == place), calibrating(self).group == place, kept

    def _learn_groups(self, groups: Any, count: int, rows: np.ndarray) -> None:
        """Note the groups of the rows that calibrate, and say which ones have too few."""
        for name in ("group_names_", "calibration_groups_"):
            self.__dict__.pop(name, None)
        if groups is None:
            return
        names = group_names(groups, count)
        of_row = names[rows]
        self.group_names_ = np.array(sorted(set(names) - {""}), dtype=object)
        self.calibration_groups_ = self._group_numbers(of_row, len(of_row)) if len(self.group_names_) else np.full(len(rows), -1)
        if few := [name for name, kept in self.groups_.items() if kept is None]:
            rate, needed = self._wish()[0], needed_samples(*self._wish())
            warnings.warn(
                f"Groups with fewer than the {needed} calibration rows that a rate of {100 * rate:.3g} % needs take the threshold of all "
                f"rows: {named(few)}.",
                UserWarning,
                stacklevel=4,
            )

    def p_values(self, X: Any, groups: Any = None) -> np.ndarray:
        """Compute the share of normal samples that look at least as unusual; small for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        groups : array-like of shape (n_samples,), optional
            The group of each row, after ``fit(X, groups=…)``: it is compared with calibration rows of its group. Rows of a group that has
            too few, or that ``fit`` did not see, are compared with all of them, and so are all rows by default.

        Returns
        -------
        ndarray of shape (n_samples,)
            (calibration rows that score at most as high + 1) / (n + 1), for n calibration rows.
        """
        raise NotImplementedError

    def select(self, X: Any, fdr: float = 0.1, groups: Any = None) -> np.ndarray:
        """Select the samples to call outliers, so that on average at most a share ``fdr`` of them is normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples, judged together by the rule of Benjamini and Hochberg (1995) on their ``p_values``.
        fdr : float in (0, 1), default=0.1
            The share of false discoveries.
        groups : array-like of shape (n_samples,), optional
            As ``p_values`` takes them.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
            True where a sample is called an outlier.
        """
        found = benjamini_hochberg(self.p_values(X) if groups is None else self.p_values(X, groups), fdr)
        n = self._calibration_size()
        if 1.0 / (n + 1) > fdr * (1.0 + ROUNDING):
            warnings.warn(
                f"select(fdr={fdr:g}) cannot select anything: {n} calibration rows give no p-value below 1/{n + 1} = {1 / (n + 1):.3g}. "
                f"Calibrate on at least {needed_samples(fdr)} rows, or raise fdr.",
                UserWarning,
                stacklevel=2,
            )
        return found

    def with_outliers(self, rows: npt.ArrayLike) -> Self:
        """Copy the detector without training rows that turned out to be outliers: they calibrate no longer, and nothing is fitted again.

        Parameters
        ----------
        rows : array-like of int
            Their numbers in X of ``fit``, found by looking at all rows that :func:`refkernel.suspects` lists. Normal rows must stay.

        Returns
        -------
        Self
            A copy with a higher threshold, which catches more outliers at the same rate of false alarms.
        """
        detector: Any = self
        held, outliers = calibrating(self), np.unique(np.asarray(rows, dtype=np.intp))
        if (absent := np.setdiff1d(outliers, held.indices[held.indices >= 0])).size:
            raise ValueError(f"Row {absent[0]} does not calibrate this detector. with_outliers takes row numbers that rk.suspects lists.")
        return detector._calibrated_on(held.some(~np.isin(held.indices, outliers)))

    def false_alarm_band(self, confidence: float = 0.95) -> FalseAlarmBand:
        """Bound the false-alarm rates of all thresholds together: what still holds for a threshold that was picked after looking.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            The probability that all bounds hold, over the rows that calibrate; at most 0.999.

        Returns
        -------
        FalseAlarmBand
            ``at(threshold)`` gives the bounds of the rate at which rows with a lower ``score_samples`` are flagged, ``at(p_value=p)`` for
            those with a p-value of at most p. Where folds calibrate, the lower bounds are 0; where several models score a row
            (ConformalDetector with "cv" or "loo"), thresholds must be p-values.
        """
        held, final = calibrating(self), detector_of(self)
        split = getattr(final, "_is_split", getattr(final, "method_", "") == "split")
        by, worth = "models" if held.model.any() else "split" if split else "folds", getattr(final, "calibration_worth_", 1.0)
        return FalseAlarmBand(np.sort(held.scores), confidence, scored_by=by, worth=worth)

    def _calibration_size(self) -> int:
        """The number of rows that calibrate."""
        return calibrating(self).scores.size


class CalibratedMixin(SelectMixin):
    """``p_values``, decisions and ``select`` by ``calibration_``: scores of normal rows that the model has not seen, in ascending order."""

    calibration_: np.ndarray

    def p_values(self: Any, X: Any, groups: Any = None) -> np.ndarray:
        if groups is None and is_source(X):
            return as_source(X).apply(self.p_values)
        return self.p_values_of(np.asarray(self.score_samples(X)), groups)

    def decision_function(self: Any, X: Any, groups: Any = None) -> np.ndarray:  # type: ignore[override]
        if groups is None:
            return super().decision_function(X)
        scores = np.asarray(self.score_samples(X))
        with np.errstate(over="ignore"):
            return finite_scores(scores - self._offsets(groups, len(scores)))

    def _offsets(self, groups: Any, count: int) -> np.ndarray:
        """The threshold of each row."""
        found = np.full(count, self.offset_)
        for rows, held, kept in self._by_group(groups, count):
            found[rows] = self.calibration_[held][kept.rank - 1]
        return found

    def p_values_of(self, score: np.ndarray, groups: Any = None) -> np.ndarray:
        """Compute the p-values that belong to scores of ``score_samples``.

        Parameters
        ----------
        score : ndarray of shape (n_samples,)
            Scores.
        groups : array-like of shape (n_samples,), optional
            As ``p_values`` takes them.

        Returns
        -------
        ndarray of shape (n_samples,)
            As ``p_values`` gives them for the samples themselves.
        """
        found = p_values(np.searchsorted(self.calibration_, score, side="right"), len(self.calibration_))
        for rows, held, _ in self._by_group(groups, len(score)):
            own = self.calibration_[held]
            found[rows] = p_values(np.searchsorted(own, score[rows], side="right"), own.size)
        return found

    def _calibrating(self) -> Calibrating:
        n = len(self.calibration_)
        indices, group = (getattr(self, name, np.full(n, -1)) for name in ("calibration_indices_", "calibration_groups_"))
        return Calibrating(self.calibration_, indices, np.zeros(n, dtype=np.intp), group)

    def _judged(self: Any, X: Any, draws: np.ndarray, groups: Any = None) -> tuple[np.ndarray, ...]:
        scores = self.score_samples(X)
        labels = as_labels(scores >= self._offsets(groups, len(scores)))
        return scores, np.zeros(len(scores)), self.p_values_of(scores, groups), labels


def calibrating(detector: Any) -> Calibrating:
    """The rows that calibrate a fitted detector; an error for one that none do."""
    kind = type(detector).__name__
    if not hasattr(detector, "_calibrating"):
        raise ValueError(f"{kind} has no calibration rows. Fit rk.AutoDetector, rk.TableDetector or rk.ConformalDetector({kind}()).")
    check_is_fitted(detector)
    return detector._calibrating()


def suspects(detector: Any, k: int = 20) -> np.ndarray:
    """List the training rows that are worth a look, because they may be outliers that nobody marked.

    Hidden outliers among the training rows lower the threshold, so that it catches less. Look at these rows, and pass those that are
    outliers to ``detector.with_outliers``: Bashari, Sesia and Romano (2025) prove that this label-trimming keeps the rate of false
    alarms, while leaving all of these rows out would not.

    Parameters
    ----------
    detector : fitted detector
        ``AutoDetector``, ``TableDetector`` or ``ConformalDetector``.
    k : int, default=20
        How many rows.

    Returns
    -------
    ndarray of int
        Their numbers in X of ``fit``, the most suspicious first: the lowest scores by models that have not seen the row.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> X[7], X[70] = 6.0, -5.0
    >>> detector = rk.AutoDetector().fit(X)
    >>> sorted(rk.suspects(detector, 2).tolist())
    [7, 70]
    >>> cleaner = detector.with_outliers([7, 70])
    >>> len(cleaner.calibration_)
    198
    """
    held = calibrating(detector)
    training = held.some(held.indices >= 0)
    return training.indices[np.argsort(training.scores, kind="stable")[:k]]
