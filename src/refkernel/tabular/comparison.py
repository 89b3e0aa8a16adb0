"""What a model will change, before it goes into operation: beside another one, and on past rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core.validation import safe_indexing
from ..detectors.calibration.promise import ROUNDING, needed_samples
from ..detectors.explain import explain
from .frames import as_frame

GAP = 3  # flagged rows at most this far apart are one episode: at a rate of 5 %, one false alarm in seven has another one so near
RATES = (0.01, 0.02, 0.05, 0.1)  # at which past alarms are counted


def compare(old: Any, new: Any, X: Any) -> Any:
    """Compare the answers of two fitted detectors row by row, before one replaces the other.

    Parameters
    ----------
    old, new : fitted detectors
        Each with ``predict``.
    X : DataFrame or array-like of shape (n_samples, n_features)
        Rows that both take.

    Returns
    -------
    DataFrame of shape (n_samples, 7)
        ``label_old``, ``p_value_old``, ``label_new``, ``p_value_new`` (NaN for a model without p-values), and ``change``: "flagged"
        where only the new detector flags the row, "accepted" where only the old one did, and empty elsewhere. For rows that change,
        ``reason_old`` and ``reason_new`` are the first reasons of both. The index is that of X.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> old, new = rk.AutoDetector().fit(X[:100]), rk.AutoDetector().fit(X)
    >>> found = rk.compare(old, new, [[0.0, 0.0], [9.0, 0.0]])
    >>> found.change.tolist(), found.label_new.tolist()
    (['', ''], [1, -1])
    """
    frame = as_frame(X)
    X = np.asarray(X) if frame is None else frame
    found = changes((old, new), (X, X))
    return found if frame is None else found.set_index(frame.index)


def changes(models: Sequence[Any], rows: Sequence[Any]) -> Any:
    """``compare``, with the rows as each of the two models takes them."""
    import pandas as pd

    (was, p_was), (is_now, p_now) = (_answers(model, X) for model, X in zip(models, rows, strict=True))
    change = np.select([is_now < was, is_now > was], ["flagged", "accepted"], "")
    found = {"label_old": was, "p_value_old": p_was, "label_new": is_now, "p_value_new": p_now, "change": change}
    changed = np.flatnonzero(change != "")
    for name, model, X in zip(("reason_old", "reason_new"), models, rows, strict=True):
        found[name] = np.full(len(was), "", dtype=object)
        if changed.size:
            found[name][changed] = [str(mine[0]) if mine else "" for mine in reasons_of(model, safe_indexing(X, changed), 1)]
    return pd.DataFrame(found)


def reasons_of(model: Any, X: Any, count: int) -> Sequence[Sequence[Any]]:
    """The strongest reasons of rows; none where the model's kind cannot be explained."""
    try:
        return model.reasons(X, count) if hasattr(model, "reasons") else explain(model, X).sentences(count)
    except (TypeError, ValueError):  # a detector of another library, a kernel of another kind
        return [()] * len(X)


def _answers(model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Labels and p-values of rows; these are NaN for a model that has none."""
    check_is_fitted(model)
    if not len(X):
        return np.empty(0, dtype=int), np.empty(0)
    try:
        return np.asarray(model.predict(X)), model.p_values(X)
    except (AttributeError, ValueError):
        return np.asarray(model.predict(X)), np.full(len(X), np.nan)


def backtest(p: np.ndarray, when: np.ndarray, calibrate: int) -> list[dict[str, Any]]:
    """Flagged rows and episodes at some rates, in all and a week, by p-values and dates; None where too few rows calibrate."""
    weeks, p, found = float(np.ptp(when) / np.timedelta64(7, "D")), p[np.argsort(when, kind="stable")], []
    for rate in RATES:
        flagged = np.flatnonzero(p <= rate * (1 + ROUNDING))
        counts = {"flagged": flagged.size, "episodes": int((np.diff(flagged, prepend=-GAP - 1) > GAP).sum())}
        told = counts | {f"{name}_a_week": count / weeks for name, count in counts.items()}
        found.append({"rate": rate, "weeks": weeks, **(told if calibrate >= needed_samples(rate) else dict.fromkeys(told))})
    return found
