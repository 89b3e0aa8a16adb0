"""A detector that needs no choice."""

from .detector import AutoDetector

__all__ = ["AutoDetector"]
