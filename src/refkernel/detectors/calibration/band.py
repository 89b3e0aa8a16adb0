"""A band for the false-alarm rates of all thresholds at once: what holds for a threshold that was picked after looking."""

from functools import lru_cache

import numpy as np
from scipy.special import betainc, betaincinv

from .promise import check_rate

DRAWS = 4_000  # of n uniform numbers
MOST_PLACES = 400  # order statistics that the band is drawn through; the rate between two of them lies between theirs


class FalseAlarmBand:
    """Bounds of the false-alarm rate that hold for all thresholds together, with probability ``confidence`` over the calibration rows.

    Parameters
    ----------
    calibration : ndarray of shape (n,)
        Scores of normal rows that the model has not seen, in ascending order.
    confidence : float in (0, 1), default=0.95
        The probability that all bounds hold.

    Notes
    -----
    The rates at n order statistics are those of n uniform numbers. All of them get bounds of one level, the quantiles of their Beta
    distributions, and the level is such that all hold with the probability that is asked for: the band of equal local levels, a two-sided
    form of Berk and Jones' test (1979; Bates, Candès, Lei, Romano and Sesia, 2023). Ties make it conservative.

    Examples
    --------
    >>> import numpy as np
    >>> from refkernel.detectors.calibration import FalseAlarmBand
    >>> band = FalseAlarmBand(np.arange(1000.0))
    >>> [round(float(end), 3) for end in band.at(50.0)]  # 50 of 1,000 calibration rows are below
    [0.03, 0.077]
    """

    def __init__(self, calibration: np.ndarray, confidence: float = 0.95) -> None:
        check_rate("confidence", confidence)
        self.calibration = calibration
        self.confidence = confidence
        places, self._low, self._high = _bounds(len(calibration), confidence)
        self._places = places

    def at(self, threshold: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the bounds of the rate at which rows that score below a threshold are flagged.

        Parameters
        ----------
        threshold : float or ndarray
            Thresholds on the scores.

        Returns
        -------
        tuple of (ndarray, ndarray)
            The lower and the upper bounds.
        """
        below = np.searchsorted(self.calibration, threshold, side="left")
        low = np.concatenate([[0.0], self._low])[np.searchsorted(self._places, below, side="right")]
        high = np.concatenate([self._high, [1.0]])[np.searchsorted(self._places, below, side="right")]
        return low, high

    def wrong_share(self, scores: np.ndarray) -> np.ndarray:
        """Bound the share of normal rows among those that are called outliers, for every cut at once.

        Parameters
        ----------
        scores : ndarray of shape (m,)
            The scores of m new rows.

        Returns
        -------
        ndarray of shape (m,)
            For each row: the bound if it and all rows that score at most as high are called outliers. All bounds hold together with
            probability 1 - 2 (1 - ``confidence``): those of the band, and Massart's for the normal ones of the m rows.
        """
        called = np.searchsorted(np.sort(scores), scores, side="right")
        _, high = self.at(np.nextafter(scores, np.inf))
        normal = len(scores) * high + np.sqrt(-0.5 * len(scores) * np.log(1.0 - self.confidence))
        return np.minimum(1.0, normal / called)


@lru_cache(maxsize=16)
def _bounds(n: int, confidence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places k of n, and the bounds of the rate at the k-th smallest score."""
    spread = np.geomspace(1, n, MOST_PLACES).round()
    places = np.unique([*spread, *(n + 1 - spread)]).astype(np.intp)
    rng, levels = np.random.default_rng(0), np.empty(DRAWS)
    for i in range(DRAWS):
        steps = np.cumsum(rng.exponential(size=n + 1))
        p = betainc(places, n + 1 - places, steps[places - 1] / steps[-1])
        levels[i] = np.minimum(p, 1.0 - p).min()
    error = 2.0 * np.sqrt(confidence * (1.0 - confidence) / DRAWS)  # of a share of the draws
    local = np.quantile(levels, max(0.0, 1.0 - confidence - error))
    return places, betaincinv(places, n + 1 - places, local), betaincinv(places, n + 1 - places, 1.0 - local)
