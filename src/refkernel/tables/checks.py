"""What is wrong with the values of a table, or worth a note."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd

from .._encoding import by_columns
from ..exceptions import TableError
from .columns import Feature
from .wording import listed, named, option

MANY_DIFFERENT = 0.5
"""A text column with different values in more than this share of its rows names the rows and says little about them."""

FEW_ROWS = 10
"""In fewer rows than this, values all differ by chance."""


def missing_counts(X: pd.DataFrame) -> Counter[str]:
    """Missing values by column, for the columns that have some."""
    return Counter({str(name): int(count) for part in by_columns(X) for name, count in part.isna().sum().items() if count})


def missing_message(counts: Counter[str], rows: int, way_out: str) -> str:
    """What is missing where, and what to do."""
    return f"Missing values in {listed(counts)} of {rows:,} rows. {way_out}"


def check_finite(X: pd.DataFrame) -> None:
    """An error that names the columns with infinite values."""
    infinite = [np.isinf(numbers_of(part)).sum(axis=0) for part in by_columns(X)]
    counts = Counter({str(name): int(count) for found in infinite for name, count in found[found > 0].items()})
    if +counts:
        raise TableError(f"Infinite values in {listed(+counts)}. Replace them by finite numbers, or leave the cells empty (missing).")


def unseen(X: pd.DataFrame, features: list[Feature]) -> dict[str, Counter[str]]:
    """Categories that the model does not know, with their counts, by column."""
    found = {}
    for feature in features:
        if feature.categories is not None:
            values = X[feature.name].dropna()
            found[feature.name] = Counter(values[~values.isin(feature.categories)].tolist())
    return {name: counts for name, counts in found.items() if counts}


def row_names(X: pd.DataFrame) -> list[str]:
    """Columns that seem to name the rows: texts that nearly all differ, and whole numbers that count the rows."""
    if len(X) < FEW_ROWS:
        return []
    return [name for part in by_columns(X) for name in _names_of_rows(part)]


def _names_of_rows(X: pd.DataFrame) -> list[str]:
    values = numbers_of(X)
    counting = values.columns[(np.diff(values.to_numpy(), axis=0) == 1.0).all(axis=0)]
    naming = [name for name in X.columns.difference(values.columns, sort=False) if X[name].nunique() > MANY_DIFFERENT * len(X)]
    return [str(name) for name in X.columns if name in {*counting, *naming}]


def check_not_empty(X: pd.DataFrame) -> None:
    """An error for columns that have no value at all."""
    empty = [str(name) for part in by_columns(X) for name in part.columns[part.isna().all()]]
    if len(empty) == len(X.columns):
        raise TableError(f"All values of all {len(X):,} rows are missing: there is nothing to learn from.")
    if empty:
        raise TableError(f"No row has a value in {named(empty)}. Leave the empty columns out: {option('--drop', empty)}.")


def numbers_of(X: pd.DataFrame) -> pd.DataFrame:
    """The columns of numbers and dates."""
    return X.select_dtypes(np.float64)
