"""Data frames made of Arrow's columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd


def arrow_frame(columns: Sequence[Any], names: Sequence[str]) -> pd.DataFrame:
    """A data frame that holds these columns as they are.

    In pyarrow 17 to 21, the memory that ``Table.to_pandas`` needs grows with the square of the number of columns: over 20 GB for 60,000.
    """
    held = {name: pd.arrays.ArrowExtensionArray(column) for name, column in zip(names, columns, strict=True)}
    return pd.DataFrame(held, copy=False)
