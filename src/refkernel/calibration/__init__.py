"""Thresholds that promise something about new samples: p-values, false-alarm rates and false-discovery rates for any detector."""

from .detector import ConformalDetector
from .promise import Promise, benjamini_hochberg, least_rate, needed_samples, promise

__all__ = ["ConformalDetector", "Promise", "benjamini_hochberg", "least_rate", "needed_samples", "promise"]


def __dir__() -> list[str]:
    return __all__
