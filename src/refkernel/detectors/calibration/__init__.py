"""Thresholds that promise something about new samples: p-values, false-alarm rates and false-discovery rates for any detector."""

from .band import FalseAlarmBand
from .detector import ConformalDetector
from .promise import Promise, least_rate, needed_samples, promise

__all__ = ["ConformalDetector", "FalseAlarmBand", "Promise", "least_rate", "needed_samples", "promise"]
__dir__ = __all__.copy
