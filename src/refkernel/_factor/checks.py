"""Checks of references and their kernel matrix before it is factorised."""

from __future__ import annotations

import math
from typing import Any

from .._validation import is_number


def check_floor(floor: Any) -> None:
    """Raise unless the floor is a number >= 0."""
    if not (is_number(floor) and floor >= 0):
        raise ValueError(f"eigenvalue_floor={floor!r} must be a number >= 0: eigenvalues below it are dropped.")


def check_references(total: float, m: int, center: bool) -> None:
    """Raise if the kernel matrix of m references, whose values sum to ``total``, cannot be factorised."""
    if not math.isfinite(total):
        raise ValueError("The base kernel overflows or is NaN on the references. Scale the data first, for example with TargetScaler.")
    if center and m < 2:
        raise ValueError(
            f"Centring needs at least 2 references, but there is only {m} (references='training' gives one for each of n_samples = {m}). "
            "Add references, or pass center=False."
        )


def check_rank(rank: int, m: int, floor: float, largest: float) -> None:
    """Raise if no eigenvalue of the m references' kernel matrix is kept."""
    if rank == 0:
        raise ValueError(
            f"No eigenvalue of the {m} references' kernel matrix reaches eigenvalue_floor={floor:g} (the largest is {largest:.3g}): "
            "for this kernel the references are all alike. Use other references, a narrower kernel, a lower floor or center=False."
        )
