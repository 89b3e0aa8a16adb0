"""Which reference strategy and which classifier is worth using: one protocol for all of them, and for what one would use instead."""

from .runner import Settings, run

__all__ = ["Settings", "run"]
