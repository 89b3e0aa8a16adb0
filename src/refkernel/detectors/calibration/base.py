"""What detectors with a calibration set have in common: p-values, discoveries at a false-discovery rate, other calibration rows."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..._core.threshold import ThresholdMixin
from ..._core.validation import as_labels
from ...large import as_source, is_source
from .band import FalseAlarmBand
from .promise import ROUNDING, benjamini_hochberg, needed_samples, p_values


class Calibrating(NamedTuple):
    """Rows that calibrate: their scores, their numbers in X of ``fit`` (-1: other rows), and the number of the model that scored each."""

    scores: np.ndarray
    indices: np.ndarray
    model: np.ndarray

    def some(self, chosen: np.ndarray) -> Calibrating:
        """Some of the rows."""
        return Calibrating(*(values[chosen] for values in self))

    def and_(self, other: Calibrating) -> Calibrating:
        """These rows and others."""
        return Calibrating(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class SelectMixin(ThresholdMixin):
    """``select`` and ``with_outliers``. Besides what ``ThresholdMixin`` needs, a detector provides ``p_values`` and

    def _calibrating(self) -> Calibrating:       # the rows that calibrate
    def _calibrated_on(self, held) -> Self:      # a copy that other rows calibrate
    def _judged(self, X, draws) -> tuple:        # (scores, model, p-values, labels) of new rows; draws in [0, 1) choose their models
    """

    def p_values(self, X: Any) -> np.ndarray:
        """Compute the share of normal samples that look at least as unusual; small for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            (calibration rows that score at most as high + 1) / (n + 1), for n calibration rows.
        """
        raise NotImplementedError

    def select(self, X: Any, fdr: float = 0.1) -> np.ndarray:
        """Select the samples to call outliers, so that on average at most a share ``fdr`` of them is normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples, judged together by the rule of Benjamini and Hochberg (1995) on their ``p_values``.
        fdr : float in (0, 1), default=0.1
            The share of false discoveries.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
            True where a sample is called an outlier.
        """
        found = benjamini_hochberg(self.p_values(X), fdr)
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
        absent = np.setdiff1d(outliers, held.indices[held.indices >= 0])
        if absent.size:
            raise ValueError(f"Row {absent[0]} does not calibrate this detector. with_outliers takes row numbers that rk.suspects lists.")
        return detector._calibrated_on(held.some(~np.isin(held.indices, outliers)))

    def false_alarm_band(self, confidence: float = 0.95) -> FalseAlarmBand:
        """Bound the false-alarm rates of all thresholds together: what still holds for a threshold that was picked after looking.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            The probability that all bounds hold, over the rows that calibrate.

        Returns
        -------
        FalseAlarmBand
            ``at(threshold)`` gives the bounds of the rate at which rows with a lower ``score_samples`` are flagged.
        """
        return FalseAlarmBand(np.sort(self._calibrating().scores), confidence)

    def _calibration_size(self) -> int:
        """The number of rows that calibrate."""
        return calibrating(self).scores.size


class CalibratedMixin(SelectMixin):
    """``p_values``, ``p_values_of`` and ``select`` by a calibration set.

    A detector provides ``fit``, ``score_samples``, ``offset_`` (the threshold) and ``calibration_``: the scores of normal rows that the
    model has not seen, in ascending order.
    """

    calibration_: np.ndarray

    def p_values(self, X: Any) -> np.ndarray:
        if is_source(X):
            return as_source(X).apply(self.p_values)
        detector: Any = self
        return self.p_values_of(detector.score_samples(X))

    def p_values_of(self, score: np.ndarray) -> np.ndarray:
        """Compute the p-values that belong to scores of ``score_samples``.

        Parameters
        ----------
        score : ndarray of shape (n_samples,)
            Scores.

        Returns
        -------
        ndarray of shape (n_samples,)
            As ``p_values`` gives them for the samples themselves.
        """
        return p_values(np.searchsorted(self.calibration_, score, side="right"), len(self.calibration_))

    def _calibrating(self) -> Calibrating:
        n = len(self.calibration_)
        return Calibrating(self.calibration_, getattr(self, "calibration_indices_", np.full(n, -1)), np.zeros(n, dtype=np.intp))

    def _judged(self, X: Any, draws: np.ndarray) -> tuple[np.ndarray, ...]:
        detector: Any = self
        scores = detector.score_samples(X)
        return scores, np.zeros(len(scores)), self.p_values_of(scores), as_labels(scores >= self.offset_)


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
