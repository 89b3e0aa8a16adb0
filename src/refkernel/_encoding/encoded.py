"""Encoded rows that know the unit of each column."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Encoded"]


class Encoded(np.ndarray):
    """What a TableEncoder returns: an array whose ``units`` AutoDetector takes, as it standardises all other columns by itself.

    Arrays that are computed from it, parts of it included, are ordinary ones: their ``units`` are None.
    """

    units: np.ndarray | None = None

    @classmethod
    def of(cls, rows: np.ndarray, units: np.ndarray) -> Encoded:
        """The rows, with the units of their columns."""
        found = rows.view(cls)
        found.units = units
        return found

    def __reduce__(self) -> Any:
        return Encoded.of, (np.asarray(self), self.units)
