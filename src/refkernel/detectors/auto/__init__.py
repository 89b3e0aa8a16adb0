"""AutoDetector: a detector that needs no settings."""

from .detector import AutoDetector

__all__ = ["AutoDetector"]
