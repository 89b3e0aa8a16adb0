"""Windows of a series as rows of a table, so that detectors of rows find stretches of time."""

from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .._core.validation import listed
from .frames import as_frame

BANDS = ("slow", "medium", "fast")  # thirds of the octaves between one period in a window and one in two rows
MOST_CORRELATED = 10  # with more columns, their correlations would outnumber all other features
WHOLE = 2  # a window that lasts longer than this many usual ones spans a gap in time: its course is none
AT_ONCE = 1 << 22  # cells of windows that are transformed together: 32 MB


def windows(frame: Any, length: int, step: int | None = None, *, time: str | None = None) -> Any:
    """Describe each window of a multivariate series by a few features, as a row of a table.

    Detectors see each row of a table on its own. In a series, what is wrong is often not a value but its course: a stuck sensor, a new
    vibration, two signals that no longer move together. A row of the result describes ``length`` successive rows.

    Parameters
    ----------
    frame : DataFrame or array-like of shape (n_samples, n_columns)
        The series, in the order of time: columns of numbers.
    length : int
        The rows of a window, at least 4: about as long as what you look for, or as a period of what is normal.
    step : int, optional
        The rows from one window to the next. By default half a window, so that whatever is shorter lies well inside one of them; for
        training, take ``step=length``: windows that share rows are not independent examples.
    time : str, optional
        The column that says when, or else the index. It may not decrease, and gives each window its interval. Windows that last more than
        twice as long as the median one span a gap, and are left out.

    Returns
    -------
    DataFrame of shape (n_windows, n_features)
        For each column its ``mean``, ``min``, ``max`` and ``slope`` (the change over the window by least squares), and its standard
        deviation around that line in three bands of the spectrum (``slow``, ``medium``, ``fast``); for each pair of up to 10 columns
        their ``correlation``. Missing cells make the features of their column missing. The index holds intervals: the first and the
        last row, or time, of each window.

    See Also
    --------
    TableDetector : Fit it on windows of normal operation.
    plot.SeriesDisplay : Draws a series and its flagged windows.

    Examples
    --------
    >>> import numpy as np, pandas as pd, refkernel as rk
    >>> t, rng = np.arange(3000), np.random.default_rng(0)
    >>> series = pd.DataFrame({"flow": np.sin(t / 5) + rng.normal(0, 0.1, 3000)})
    >>> model = rk.TableDetector().fit(rk.windows(series[:2000], 50, step=50))
    >>> series.loc[2500:2560, "flow"] = 0.3  # stuck, at a normal value
    >>> new = rk.windows(series[2000:], 50)
    >>> new.index[model.score_samples(new).argmin()]
    Interval(2500, 2549, closed='both')
    """
    import pandas as pd

    if (table := as_frame(frame)) is None:
        X = np.asarray(frame)
        table = pd.DataFrame(X.reshape(len(X), -1), columns=[f"x{j}" for j in range(X[:1].size)])
    for name, value, least in (("length", length, 4), ("step", 1 if step is None else step, 1)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name}={value!r} must be a whole number of rows, at least {least}.")
    if time is not None and time not in table.columns:
        raise ValueError(f"The series has no column {time!r}: time names the column that says when. It has {listed(list(table.columns))}.")
    when = table.index if time is None else table[time]
    if not pd.Index(when).is_monotonic_increasing:
        raise ValueError("The rows are not in the order of time: sort them first, frame.sort_values(…).")
    table = table.drop(columns=[] if time is None else [time])
    if texts := [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]:
        raise TypeError(f"Windows are described by numbers, and these columns hold none: {listed(texts)}. Drop them, or encode them first.")
    moments, starts = np.asarray(when), np.arange(0, len(table) - length + 1, step or length // 2)
    if starts.size:
        lasts = moments[starts + length - 1] - moments[starts]
        starts = starts[lasts <= WHOLE * np.sort(lasts)[lasts.size // 2]]
    names, features = list(table.columns), np.empty((starts.size, 0))
    X = table.to_numpy(dtype=np.float64, na_value=np.nan)
    if starts.size:
        cut = sliding_window_view(X, length, axis=0)
        per = max(1, AT_ONCE // (length * max(1, X.shape[1])))
        features = np.concatenate([_features(cut[starts[i : i + per]]) for i in range(0, starts.size, per)])
    columns = [f"{name} {feature}" for name in names for feature in ("mean", "min", "max", "slope", *BANDS)]
    if len(names) <= MOST_CORRELATED:
        columns += [f"{a} ~ {b} correlation" for a, b in combinations(names, 2)]
    index = pd.IntervalIndex.from_arrays(moments[starts], moments[starts + length - 1], closed="both")
    return pd.DataFrame(features.reshape(starts.size, len(columns)), columns=columns, index=index)


def _features(W: np.ndarray) -> np.ndarray:
    """The features of windows (windows × columns × length), one row each."""
    length = W.shape[2]
    t = np.linspace(-0.5, 0.5, length)
    mean = W.mean(axis=2)
    slope = (W - mean[..., None]) @ t / (t @ t)
    rest = W - mean[..., None] - slope[..., None] * t
    power = 2.0 * np.abs(np.fft.rfft(rest)[..., 1:] / length) ** 2
    power[..., -1] /= 1.0 + (length % 2 == 0)  # the highest frequency of an even number of rows has no negative twin
    octave = np.log2(np.arange(1, power.shape[2] + 1)) / np.log2(power.shape[2] + 1)
    bands = [np.sqrt(power[..., (octave >= low) & (octave < low + 1 / 3)].sum(axis=2)) for low in (0.0, 1 / 3, 2 / 3)]
    found = np.stack([mean, W.min(axis=2), W.max(axis=2), slope, *bands], axis=2).reshape(len(W), -1)
    if W.shape[1] > MOST_CORRELATED:
        return found
    first, second = np.triu_indices(W.shape[1], 1)
    deviation = W - mean[..., None]
    product = (deviation[:, first] * deviation[:, second]).sum(axis=2)
    size = np.sqrt((deviation[:, first] ** 2).sum(axis=2) * (deviation[:, second] ** 2).sum(axis=2))
    return np.hstack([found, np.divide(product, size, out=np.where(np.isnan(product), np.nan, 0.0), where=size > 0)])
