"""Checks that all rooms share: labels (-1 marks a known outlier, everything else is a target) and numbers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

OUTLIER = -1

MOST_LISTED = 10
"""Names that a message lists."""

LEAST_NU = 1e-9
"""For a smaller nu, nu n is lost in rounding."""


RARE = 0.3
"""If y holds two numbers, neither of them -1, and the rarer one marks less than this share of the rows, it looks like a label of
outliers, and that is an error. scikit-learn's checks fit every estimator with two about equally frequent numbers: a warning."""


def target_mask(X: Any, y: Any, warn: bool = True) -> np.ndarray:
    """True for the rows that are targets."""
    if y is None:
        return np.ones(X.shape[0], dtype=bool)
    if warn:
        y = column_or_1d(y)
        check_consistent_length(X, y)
        if y.dtype.kind in "OU" and any(isinstance(label, str) and label.strip() == str(OUTLIER) for label in y.tolist()):
            raise ValueError(
                "y holds '-1' as text, which is not an outlier's label: pass numbers, -1 for known outliers and +1 for targets."
            )
    is_target = np.asarray(y != OUTLIER, dtype=bool)
    if not is_target.any():
        raise ValueError("All labels are -1 (known outliers): at least one target is needed. Targets are labelled +1.")
    if warn and not np.isin(y[is_target], (1,)).all():
        found = set(y.tolist())
        rarer = min(np.count_nonzero(y == label) for label in found) / y.size
        unusual = sorted({label for label in y[is_target].tolist() if label != 1}, key=str)
        if len(found) == 2 and OUTLIER not in found and (y.dtype.kind not in "fiu" or rarer < RARE):
            shown = " and ".join(map(repr, sorted(found, key=str)))
            raise ValueError(
                f"y holds {shown}, and neither is -1: only -1 marks a known outlier. Pass -1 for outliers and +1 for targets, "
                "for example np.where(y == the value of targets, 1, -1); or leave y out if all rows are targets."
            )
        warnings.warn(f"Labels {unusual[:5]} in y are taken as targets: only -1 marks an outlier, +1 a target.", UserWarning, stacklevel=3)
    return is_target


def as_labels(is_target: np.ndarray) -> np.ndarray:
    """+1 for targets, -1 for outliers."""
    return np.where(is_target, 1, OUTLIER)


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number (a bool is not)."""
    return (type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))) and math.isfinite(value)


def check_positive(name: str, value: Any) -> None:
    """Raise unless the value is a positive number."""
    if not (is_number(value) and value > 0):
        raise ValueError(f"{name}={value!r} must be a positive number.")


def check_nu(nu: Any) -> float:
    """nu, after checking that it is a share that rounding does not lose."""
    if not (is_number(nu) and 0 < nu <= 1):
        raise ValueError(f"nu={nu!r} must be in (0, 1]: the share of targets that may be left outside.")
    if nu < LEAST_NU:
        raise ValueError(
            f"nu={nu!r} is below {LEAST_NU:g}, too small to be a share of the samples. To leave almost no target outside, use nu = 1 / n."
        )
    return float(nu)


def check_bound(C: Any, n: float) -> float:
    """C, after checking that the weights of n targets (or of that total weight), each at most C, can sum to 1."""
    check_positive("C", C)
    if C * n < 1.0 - 1e-12:
        raise ValueError(f"C={C:g} leaves the dual infeasible: {n:g} targets need C >= {1.0 / n:.3g}. Raise C, or pass nu instead.")
    return float(C)


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} must be one of {list(choices)}.")


def listed(names: Iterable[Any]) -> str:
    """Names of columns, as a message shows them."""
    found = [str(name) for name in names]
    more = f" and {len(found) - MOST_LISTED:,} more" if len(found) > MOST_LISTED else ""
    return ", ".join(found[:MOST_LISTED]) + more
