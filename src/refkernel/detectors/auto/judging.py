"""How well scores tell outliers from left-out normal rows, and which rate of false alarms that suggests."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

HIGHEST_RATE = 0.3  # beyond it more normal rows are lost than outliers are gained, on tables of 50 to 150 rows
HIGHEST_AUROC = 0.999  # beyond it, the made-up outliers are too far away to say anything about real ones; it stands for a rate of 1.4 %


def auroc(held: np.ndarray, outliers: np.ndarray) -> float:
    """The AUROC of scores of outliers against scores of left-out normal rows; higher scores are less normal."""
    return float(roc_auc_score(np.repeat([0, 1], [held.size, outliers.size]), np.concatenate([held, outliers])))


def balanced_rate(aurocs: Sequence[float]) -> float:
    """The rate at which outliers of these AUROCs are missed as often as normal rows are rejected: Phi(-mean(Phi^-1) / sqrt(2)).

    That is the rate of equal errors of two normal distributions with one variance.
    """
    return min(HIGHEST_RATE, float(norm.cdf(-np.mean(norm.ppf(np.clip(aurocs, 0.5, HIGHEST_AUROC))) / np.sqrt(2.0))))


def standard_error(auc: float, n: int, q: int) -> float:
    """The standard error of an AUROC on n normal samples and q outliers (Hanley and McNeil, 1982)."""
    first, second = auc / (2.0 - auc), 2.0 * auc**2 / (1.0 + auc)
    return float(np.sqrt((auc * (1.0 - auc) + (q - 1) * (first - auc**2) + (n - 1) * (second - auc**2)) / (n * q)))
