"""Which reference strategy and classifier to use: one protocol compares all of them with the alternatives in scikit-learn."""

from .runner import Settings, run

__all__ = ["Settings", "run"]
