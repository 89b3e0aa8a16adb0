"""Which detector to use where only normal rows are known: ours and the usual ones, by one protocol, on real tables."""

from .runner import Settings, run

__all__ = ["Settings", "run"]
