"""What the cells of a column say: numbers in the ways people write them, texts, dates and times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype, is_object_dtype, is_string_dtype

try:
    import pyarrow as pa
    import pyarrow.compute as arrow
except ImportError:  # the extra parquet; numbers are then read by pandas
    pa = None

MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "nat", "?")
"""Texts that stand for a missing value, in any case."""

SWAPPED = str.maketrans(",.", ".,")

CURRENCY = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CNY|INR)"
MARKED = re.compile(
    rf"(?P<sign>[+-]?)\s*{CURRENCY}?\s*(?P<inner>[+-]?)(?P<whole>\d+|\d{{1,3}}(?:(?P<mark>[,'’\s])\d{{3}})(?:(?P=mark)\d{{3}})*)"
    rf"(?P<rest>\.\d+)?\s*(?P<after>%|{CURRENCY})?"
)
"""A number as people write it, with a decimal point: $1,234.50, 12 %, 1'234, -€5."""

COMMAS = re.compile(r"[+-]?\d{1,3},\d{3}")
"""One thousand or a decimal comma: nobody can know."""

FORMATS = (
    "ISO8601",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d.%m.%Y",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%d %b %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%H:%M",
    "%H:%M:%S",
)
"""How dates and times are written, in the order in which they are tried."""

DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
"""A day in eight digits, such as 20241231."""

CLOCK = ("%H:%M", "%H:%M:%S")
CLOCK_ORIGIN = -2208988800.0
"""Times of the day are read as of 1 January 1900."""

TRIED = 50
"""Cells that a format of dates is tried on before the whole column is read by it."""

BOOLEANS = frozenset({"true", "false"})


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column: NaN for missing cells. ``wrong``, ``percent``, ``thousands`` and ``unclear`` mark cells."""

    values: np.ndarray
    wrong: np.ndarray
    """Neither missing nor a number."""
    percent: np.ndarray
    unclear: np.ndarray
    """Such as 1,234, which may be one thousand or one point two."""
    clear: np.ndarray
    """Such as 1,234,567 or $1,234.50: thousands beyond doubt."""


def numbers(column: pd.Series, decimal: str = ".") -> Numbers:
    """The numbers of a column of any type."""
    nothing = np.zeros(len(column), dtype=bool)
    if not is_text(column):
        return Numbers(column.to_numpy(dtype=np.float64, na_value=np.nan), nothing, nothing, nothing, nothing)
    fast = _arrow_numbers(column) if decimal == "." else None
    if fast is not None:
        return Numbers(fast, nothing, nothing, nothing, nothing)
    text = pd.Series(texts(column), dtype=object)
    if decimal == ",":
        text = text.map(lambda cell: cell.translate(SWAPPED), na_action="ignore")
    parsed = pd.to_numeric(text, errors="coerce").notna().to_numpy()
    cells = text.to_numpy()
    values = np.full(len(cells), np.nan)
    values[parsed] = cells[parsed].astype(np.float64)
    wrong = text.notna().to_numpy() & ~parsed
    return _with_marks(cells, values, wrong) if wrong.any() else Numbers(values, nothing, nothing, nothing, nothing)


def _with_marks(cells: np.ndarray, values: np.ndarray, wrong: np.ndarray) -> Numbers:
    """Read the cells that are numbers but for a currency, a percent sign or marks between thousands. Mutates values and wrong."""
    percent, unclear, clear = (np.zeros(len(cells), dtype=bool) for _ in range(3))
    known: dict[str, re.Match[str] | None] = {}
    for i in np.flatnonzero(wrong):
        cell = cells[i]
        found = known[cell] if cell in known else known.setdefault(cell, MARKED.fullmatch(cell))
        if found is None or (found["sign"] and found["inner"]):
            continue
        whole = re.sub(r"\D", "", found["whole"])
        values[i] = float(f"{found['sign'] or found['inner']}{whole}{found['rest'] or ''}")
        wrong[i], percent[i] = False, found["after"] == "%"
        unclear[i] = COMMAS.fullmatch(cell) is not None
        clear[i] = found["mark"] is not None and not unclear[i]
    return Numbers(values, wrong, percent, unclear, clear)


def texts(column: pd.Series) -> np.ndarray:
    """The cells as text without white space around, NaN for missing ones."""
    cells = pd.Series(column.to_numpy(dtype=object, na_value=np.nan), dtype=object)
    if not is_text(column):
        cells = cells.map(_text, na_action="ignore")
    cells = cells.map(str.strip, na_action="ignore")
    return cells.mask(cells.map(str.lower, na_action="ignore").isin(MISSING), np.nan).to_numpy(dtype=object)


def _text(cell: Any) -> str:
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell)).lower()
    return f"{cell:.17g}" if isinstance(cell, float) else str(cell)


def categories(column: pd.Series, lower: bool = False) -> np.ndarray:
    """The cells as text; True, TRUE and true are one text if ``lower``."""
    cells = texts(column)
    return pd.Series(cells, dtype=object).map(str.lower, na_action="ignore").to_numpy(dtype=object) if lower else cells


def are_booleans(cells: np.ndarray) -> bool:
    """Whether the texts are true and false, in any case."""
    found = {cell.lower() for cell in set(cells[cells == cells])}
    return bool(found) and found <= BOOLEANS


def is_text(column: pd.Series) -> bool:
    """Whether the cells are text."""
    return is_object_dtype(column) or is_string_dtype(column)


def is_plain(column: pd.Series) -> bool:
    """Whether the cells are text, numbers or truth values."""
    return is_text(column) or is_numeric_dtype(column) or is_bool_dtype(column)


def typed_seconds(column: pd.Series) -> np.ndarray | None:
    """Seconds since 1970 (or since midnight) of a column whose type is a date, a time or a duration; None for other types."""
    kind = getattr(column.dtype, "pyarrow_dtype", None)
    if kind is not None and (pa.types.is_time(kind) or pa.types.is_duration(kind)):
        unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        whole = column.array.__arrow_array__().cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
        return pd.Series(whole.to_pandas()).to_numpy(dtype=np.float64, na_value=np.nan) / unit
    if is_datetime64_any_dtype(column) or (kind is not None and pa.types.is_temporal(kind)):
        return _seconds(pd.to_datetime(pd.Series(column.to_numpy(dtype=object, na_value=None)), utc=True, errors="coerce"))
    return None


def find_format(cells: np.ndarray) -> tuple[str | None, bool]:
    """(format, unclear): how all texts of a column are written as dates or times, or None; whether day and month may be the other way."""
    present = pd.Series(cells[cells == cells], dtype=object)
    if not len(present) or not present.iloc[0][:1].isalnum() or not any(letter.isdigit() for letter in present.iloc[0]):
        return None, False
    fitting = [form for form in FORMATS if _read_dates(present[:TRIED], form).notna().all() and _read_dates(present, form).notna().all()]
    if not fitting:
        return None, False
    return fitting[0], len(fitting) > 1 and fitting[0].startswith("%m/%d")


def are_days_in_digits(column: pd.Series) -> bool:
    """Whether a column of text holds days in eight digits, such as 20241231, of at least two different days, and nothing else."""
    if not is_text(column) or DIGITS.fullmatch(next((cell for cell in column if isinstance(cell, str) and cell), "")) is None:
        return False
    found = {cell for cell in texts(column) if cell == cell}
    return len(found) > 1 and all(map(DIGITS.fullmatch, found))


def dates(cells: np.ndarray, form: str) -> tuple[np.ndarray, np.ndarray]:
    """(seconds since 1970, wrong) of texts in a format; NaN for missing cells."""
    found = _read_dates(pd.Series(cells, dtype=object), form)
    seconds = _seconds(found)
    return seconds - CLOCK_ORIGIN if form in CLOCK else seconds, found.isna().to_numpy() & (cells == cells)


def _read_dates(cells: pd.Series, form: str) -> pd.Series:
    return pd.to_datetime(cells, format=form, errors="coerce", utc=True)


def _seconds(moments: pd.Series) -> np.ndarray:
    whole = moments.astype("datetime64[us, UTC]")
    return np.where(whole.isna(), np.nan, whole.astype("int64") / 1e6)


def _arrow_numbers(column: pd.Series) -> np.ndarray | None:
    """The numbers of a column that Arrow holds as text, if every cell is one or empty; else None."""
    if pa is None or not isinstance(column.dtype, pd.ArrowDtype):
        return None
    text = column.array.__arrow_array__()
    try:
        values = arrow.cast(arrow.if_else(arrow.equal(text, ""), None, text), pa.float64())
    except pa.ArrowInvalid:
        return None
    return values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False)
