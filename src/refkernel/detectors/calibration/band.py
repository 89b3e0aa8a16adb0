"""A band for the false-alarm rates of all thresholds at once: what holds for a threshold that was picked after looking."""

from functools import lru_cache

import numpy as np
from scipy.special import betainc, betaincinv, xlogy

from .promise import ROUNDING, check_rate

DRAWS = 4_000  # of the rates at all places
MOST_PLACES = 400  # order statistics that the band is drawn through; the rate between two of them lies between theirs
MOST_CONFIDENCE = 0.999  # the highest that so many draws can show


class FalseAlarmBand:
    """Bounds of the false-alarm rate that hold for all thresholds together, with probability ``confidence`` over the calibration rows.

    Parameters
    ----------
    calibration : ndarray of shape (n,)
        Scores of normal rows that the model has not seen, in ascending order.
    confidence : float in (0, 0.999], default=0.95
        The probability that all bounds hold.
    scored_by : {"split", "folds", "models"}, default="split"
        What scored the rows. Those of folds look less normal than new ones: there are no lower bounds. Where several models score each new
        row, thresholds must be p-values.
    worth : float, default=1.0
        How many independent rows each row counts for.

    Notes
    -----
    The rates at n order statistics are those of n uniform numbers. All of them get bounds of one level, the quantiles of their Beta
    distributions, and the level is such that all hold with the probability that is asked for: the band of equal local levels, a two-sided
    form of Berk and Jones' test (1979; Bates, Candès, Lei, Romano and Sesia, 2023). Ties make it conservative. ``docs/promises.md`` has
    measurements; this is not proved for folds.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.detectors.calibration import FalseAlarmBand
    >>> band = FalseAlarmBand(np.arange(1000.0))
    >>> [round(float(end), 3) for end in band.at(50.0)]  # 50 of 1,000 calibration rows are below
    [0.03, 0.077]
    """

    def __init__(self, calibration: np.ndarray, confidence: float = 0.95, *, scored_by: str = "split", worth: float = 1.0) -> None:
        check_rate("confidence", confidence)
        if confidence > MOST_CONFIDENCE:
            raise ValueError(f"confidence={confidence!r} is above {MOST_CONFIDENCE}, the most that {DRAWS:,} draws can show: lower it.")
        self.calibration, self.confidence, self.scored_by, self.worth = calibration, confidence, scored_by, worth
        self._places, low, high = _bounds(len(calibration), confidence, worth)
        self._low, self._high = np.concatenate([[0.0], low * (scored_by == "split")]), np.concatenate([high, [1.0]])

    def at(self, threshold: float | np.ndarray = 0.0, *, p_value: float | np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Compute the bounds of the rate at which rows are flagged.

        Parameters
        ----------
        threshold : float or ndarray
            Rows that score below it are flagged.
        p_value : float or ndarray, optional
            Or rows with a p-value of at most this.

        Returns
        -------
        tuple of (ndarray, ndarray)
            The lower and the upper bounds.
        """
        if p_value is None:
            place = self._place(threshold)
            return self._low[place], self._high[place]
        rank = np.floor(np.asarray(p_value) * (len(self.calibration) + 1) + ROUNDING).astype(np.intp)  # of the score that they are below
        equal = np.searchsorted(self.calibration, np.append(self.calibration, np.inf)[np.maximum(rank - 1, 0)])  # not below: not flagged
        low, high = (np.searchsorted(self._places, below, side="right") for below in (equal, rank - 1))
        return self._low[low], np.where(rank < 1, 0.0, self._high[high])

    def wrong_share(self, scores: np.ndarray) -> np.ndarray:
        """Bound the share of normal rows among those that are called outliers, for every cut at once.

        Parameters
        ----------
        scores : ndarray of shape (m,)
            The scores of m new rows.

        Returns
        -------
        ndarray of shape (m,)
            For each row: the bound if it and all rows that score at most as high are called outliers. All hold together with probability
            ``confidence``, by draws from the joint distribution of normal rows' ranks (Song, Jin and Candès, 2026).
        """
        ordered, called = np.sort(scores), np.arange(1, len(scores) + 1)
        most = np.append(_most_below(len(self.calibration), len(scores), self.confidence, self.worth), len(scores))
        normal = most[self._place(np.nextafter(ordered, np.inf))]
        normal = called + np.minimum.accumulate(np.minimum(normal - called, 0))  # a cut adds at most as many as it calls more
        return (normal / called)[np.searchsorted(ordered, scores, side="right") - 1]

    def _place(self, threshold: float | np.ndarray) -> np.ndarray:
        """The number of the bound at a threshold."""
        if self.scored_by == "models":
            raise ValueError('Several models score each row: pass p_value=…, not a score of theirs, or fit with method="split".')
        return np.searchsorted(self._places, np.searchsorted(self.calibration, threshold), side="right")


def _rates(n: int, worth: float) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of n, close to each other at both ends, and draws of the rates there (draws × ranks): of n uniform numbers in their order."""
    spread = np.geomspace(1, n, MOST_PLACES).round()
    places = np.unique([*spread, *(n + 1 - spread)]).astype(np.intp)
    steps = worth * np.diff(places, prepend=0, append=n + 1)
    ends = np.cumsum(np.random.default_rng(0).standard_gamma(steps, (DRAWS, steps.size)), axis=1)
    return places, ends[:, :-1] / ends[:, -1:]


def _quantile(values: np.ndarray, share: float) -> float:
    """The value below which this share of the draws lies, and two standard errors of the share more."""
    return float(np.quantile(values, min(1.0, share + 2.0 * np.sqrt(share * (1.0 - share) / DRAWS))))


@lru_cache(maxsize=16)
def _bounds(n: int, confidence: float, worth: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places k of n, and the bounds of the rate at the k-th smallest score."""
    places, rates = _rates(n, worth)
    a, b = worth * places, worth * (n + 1 - places)
    p = betainc(a, b, rates)
    local = -_quantile(-np.minimum(p, 1.0 - p).min(axis=1), confidence)
    return places, betaincinv(a, b, local), betaincinv(a, b, 1.0 - local)


@lru_cache(maxsize=16)
def _most_below(n: int, m: int, confidence: float, worth: float) -> np.ndarray:
    """For each place k of n: how many of m more normal rows may be below the k-th smallest score, for all k together."""
    places, rates = _rates(n, worth)
    below = np.cumsum(np.random.default_rng(1).multinomial(m, np.diff(rates, prepend=0.0, append=1.0)), axis=1)[:, :-1]
    usual = _quantile(_excess(places, n, below, m).max(axis=1), confidence)
    low, high = np.zeros(len(places), dtype=np.intp), np.full(len(places), m)  # the largest number that is usual, by halving
    while (low < high).any():
        middle = (low + high + 1) // 2
        fits = _excess(places, n, middle, m) <= usual
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    return low


def _excess(k: np.ndarray, n: int, v: np.ndarray, m: int) -> np.ndarray:
    """Berk and Jones' statistic of two samples, where v of m and k of n are: the log of the likelihood ratio; 0 if v / m <= k / n."""
    found = xlogy(k, k / n) + xlogy(n - k, 1 - k / n) + xlogy(v, v / max(m, 1)) + xlogy(m - v, 1 - v / max(m, 1))
    both = (k + v) / (n + m)
    return np.where(v * n > k * m, found - xlogy(k + v, both) - xlogy(n + m - k - v, 1 - both), 0.0)
