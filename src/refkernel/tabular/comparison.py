"""Two models on the same rows: what changes when one replaces the other."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


def compare(old: Any, new: Any, X: Any, X_new: Any = None) -> Any:
    """Compare the answers of two fitted detectors row by row, before one replaces the other.

    Parameters
    ----------
    old, new : fitted detectors
        Each with ``predict`` and ``p_values``.
    X : DataFrame or array-like of shape (n_samples, n_features)
        Rows that both take.
    X_new : DataFrame or array-like of shape (n_samples, n_features), optional
        The same rows as the new detector takes them, if its columns are others.

    Returns
    -------
    DataFrame of shape (n_samples, 5)
        ``label_old``, ``p_value_old``, ``label_new``, ``p_value_new``, and ``change``: "flagged" where only the new detector flags the row,
        "accepted" where only the old one did, and empty elsewhere. The index is that of X.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> old, new = rk.AutoDetector().fit(X[:100]), rk.AutoDetector().fit(X)
    >>> found = rk.compare(old, new, [[0.0, 0.0], [9.0, 0.0]])
    >>> found.change.tolist(), found.label_new.tolist()
    (['', ''], [1, -1])
    """
    import pandas as pd

    check_is_fitted(old)
    check_is_fitted(new)
    rows = (X, X if X_new is None else X_new)
    answers = [(np.asarray(model.predict(part)), np.asarray(model.p_values(part))) for model, part in zip((old, new), rows, strict=True)]
    (was, p_was), (is_now, p_now) = answers
    change = np.select([is_now < was, is_now > was], ["flagged", "accepted"], "")
    found = {"label_old": was, "p_value_old": p_was, "label_new": is_now, "p_value_new": p_now, "change": change}
    return pd.DataFrame(found, index=X.index if isinstance(X, pd.DataFrame) else None)
