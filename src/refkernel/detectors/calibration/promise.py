"""What n calibration samples can promise: which order statistic to put a threshold at, and which discoveries to report.

With s_(1) <= … <= s_(n) the calibration scores, rejecting below s_(k) rejects a new exchangeable sample with probability at most
k / (n + 1). Given continuous calibration scores, that rate itself is distributed as Beta(k, n + 1 - k).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binomtest, false_discovery_control

from ..._core.validation import is_number

STRETCHES = 15  # of time: enough to measure a variance, and long enough to hold what resembles each other
ROUNDING = 1e-9  # counts that differ by less than this differ only by rounding: 0.29 · 100 is 28.999999999999996


@dataclass(frozen=True)
class Promise:
    """A threshold at the ``rank``-th smallest of ``n`` calibration scores, and the false-alarm ``rate`` that follows from it.

    Parameters
    ----------
    n : int
        The number of calibration scores.
    rank : int
        The threshold is the score of this rank; 1 is the smallest.
    rate : float
        The false-alarm rate. Without ``confidence`` it is the expected rate, over training data and new samples; with it, a bound that
        the rate of this threshold stays below with that probability.
    confidence : float in (0, 1), optional
        The probability with which the bound holds.
    worth : float, default=1.0
        How many independent samples a calibration sample counts for: below 1 where neighbours in time resemble each other.

    Examples
    --------
    >>> from refkernel.detectors.calibration import Promise
    >>> low, high = Promise(n=99, rank=5, rate=0.05).interval(0.9)
    >>> round(low, 3), round(high, 3)
    (0.02, 0.09)
    """

    n: int
    rank: int
    rate: float
    confidence: float | None = None
    worth: float = 1.0

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Compute the interval that contains the rate of this threshold with probability ``level``.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            The probability; the rest is divided equally between both sides.

        Returns
        -------
        tuple of (float, float)
            The lower and the upper end.
        """
        tail = (1.0 - level) / 2.0
        low, high = beta.ppf([tail, 1.0 - tail], self.worth * self.rank, self.worth * (self.n + 1 - self.rank))
        return float(low), float(high)


def promise(n: int, rate: float, confidence: float | None = None) -> Promise:
    """Find the highest threshold that keeps a false-alarm rate.

    Parameters
    ----------
    n : int
        The number of calibration scores.
    rate : float in (0, 1)
        The false-alarm rate to keep.
    confidence : float in (0, 1), optional
        Keep the rate of the threshold itself below ``rate`` with this probability, and on average too.

    Returns
    -------
    Promise
        The rank of the threshold among the calibration scores, and the promised rate, at most ``rate``.

    Examples
    --------
    >>> from refkernel.detectors.calibration import promise
    >>> promise(99, 0.05)
    Promise(n=99, rank=5, rate=0.05, confidence=None, worth=1.0)
    """
    check_rate("false_alarm_rate", rate)
    most = math.floor(rate * (n + 1) + ROUNDING)
    if confidence is None:
        rank, promised = most, most / (n + 1)
    else:
        check_rate("confidence", confidence)
        ranks = np.arange(1, most + 1)
        rank = int(np.count_nonzero(beta.cdf(rate, ranks, n + 1 - ranks) >= confidence))  # falls as the rank rises
        promised = float(beta.ppf(confidence, rank, n + 1 - rank)) if rank else 0.0
    if rank == 0:
        with_what = "" if confidence is None else f" with confidence {confidence:g}"
        raise ValueError(
            f"{n} sample{'s' * (n != 1)} promise{'s' * (n == 1)} no less than {100 * least_rate(n, confidence):.2g} %{with_what}: "
            f"false_alarm_rate={rate:g} needs {needed_samples(rate, confidence)}. Raise false_alarm_rate, or calibrate on more samples."
        )
    return Promise(n, rank, promised, confidence)


def least_rate(n: int, confidence: float | None = None) -> float:
    """Compute the lowest false-alarm rate that n calibration samples can promise.

    Parameters
    ----------
    n : int
        The number of calibration samples.
    confidence : float in (0, 1), optional
        See :func:`promise`.

    Returns
    -------
    float
        1 / (n + 1), or 1 - (1 - confidence)^(1/n) if that is more.

    Examples
    --------
    >>> from refkernel.detectors.calibration import least_rate
    >>> round(least_rate(35), 4), round(least_rate(35, confidence=0.9), 4)
    (0.0278, 0.0637)
    """
    if n < 1:
        return 1.0
    on_average = 1.0 / (n + 1)
    return on_average if confidence is None else max(on_average, -math.expm1(math.log1p(-confidence) / n))


def needed_samples(rate: float, confidence: float | None = None) -> int:
    """Compute the number of calibration samples that a false-alarm rate needs.

    Parameters
    ----------
    rate : float in (0, 1)
        The false-alarm rate.
    confidence : float in (0, 1), optional
        See :func:`promise`.

    Returns
    -------
    int
        The smallest n for which :func:`promise` does not raise.

    Examples
    --------
    >>> from refkernel.detectors.calibration import needed_samples
    >>> needed_samples(0.01), needed_samples(0.01, confidence=0.9)
    (99, 230)
    """
    check_rate("false_alarm_rate", rate)
    on_average = math.ceil(1.0 / rate - 1.0 - ROUNDING)
    if confidence is None:
        return on_average
    check_rate("confidence", confidence)
    return max(on_average, math.ceil(math.log1p(-confidence) / math.log1p(-rate) - ROUNDING))


def worth(below: np.ndarray) -> float:
    """How many independent samples each sample is worth, from which of them, in order of time, are below a threshold; at most 1.

    In stretches of time the counts of independent samples vary binomially. How much more these vary is the design effect (Kish, 1965).
    """
    share, stretches = below.mean(), [part for part in np.array_split(below, STRETCHES) if part.size]
    if not 0.0 < share < 1.0 or len(stretches) < 2:
        return 1.0
    varied = sum((part.sum() - share * part.size) ** 2 / part.size for part in stretches) / (len(stretches) - 1)
    return min(1.0, float(share * (1.0 - share) / varied)) if varied else 1.0


def benjamini_hochberg(p_values: npt.ArrayLike, fdr: float) -> np.ndarray:
    """The discoveries by the rule of Benjamini and Hochberg (1995): True where a share fdr of false ones is allowed on average."""
    check_rate("fdr", fdr)
    p = np.asarray(p_values, dtype=np.float64)
    return false_discovery_control(p) <= fdr * (1.0 + ROUNDING) if p.size else np.zeros(0, dtype=bool)


def p_values(at_most: npt.ArrayLike, n: int) -> np.ndarray:
    """The conformal p-values of samples, given how many of n calibration scores are at most their own."""
    return (1.0 + np.asarray(at_most)) / (n + 1.0)


def holm(p: Sequence[float]) -> list[float]:
    """The p-values of several tests, corrected for their number by Holm's step-down rule (1979)."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty(values.size)
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, values[order] * np.arange(values.size, 0, -1)))
    return corrected.tolist()


def clopper_pearson(count: int, n: int, confidence: float) -> tuple[float, float]:
    """The exact confidence interval of a share, by Clopper and Pearson (1934)."""
    found = binomtest(count, n).proportion_ci(confidence)
    return float(found.low), float(found.high)


def check_rate(name: str, value: Any) -> None:
    """Raise unless the value is a number between 0 and 1."""
    if not (is_number(value) and 0 < value < 1):
        raise ValueError(f"{name}={value!r} must be a number between 0 and 1.")
