"""What the cells of a column say: numbers in the ways people write them, texts, dates and times; an error where nobody can know."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype, is_object_dtype, is_string_dtype

from ..._core.text import option
from ...exceptions import TableError

MISSING = (
    *("", "na", "n/a", "#n/a", "<na>", "nan", "null", "nat", "?"),
    *("#nv", "#n/v", "#value!", "#wert!", "#div/0!", "#ref!", "#bezug!", "#name?", "#num!", "#zahl!", "#null!"),
)
"""Texts that stand for a missing value, in any case: among them the errors of spreadsheets in English and German."""

FAILED = {
    *("-", "--", "---", "----", "–", "—", "none", "missing", "n.a.", "k.a.", "k. a.", "no data", "nodata", "no value", "offline"),
    *("bad", "bad input", "invalid", "error", "fault", "failed", "out of service", "i/o timeout", "comm fail", "calc failed"),
    *("ungültig", "fehler", "störung"),
}
"""Texts that stand for a failed measurement where the other cells are numbers or dates, in any case. Elsewhere they are categories."""

EMPTY = FAILED | {*MISSING}  # what a cell of numbers, dates or units says that has no value

SWAPPED = str.maketrans(",.", ".,")
CURRENCY = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CNY|INR)"
LETTER = r"(?:[^\W\d_]|[°%‰$€£¥₹])"
UNIT = rf"(?:1/)?{LETTER}(?:{LETTER}|[/·*^.()-]| (?=[/·*])|(?<=[/·*]) ){{0,11}}[1-4]?"
"""What may stand behind a number: °C, kg/m3, 1/min, m³ / h."""

MARKED = re.compile(
    rf"(?P<sign>[+−-]?)\s*(?P<before>{CURRENCY})?\s*(?P<inner>[+−-]?)"
    r"(?P<whole>(?=\.\d)|\d+|[1-9]\d{0,2}(?:(?P<mark>[,'’\s])\d{3})(?:(?P=mark)\d{3})*)"
    rf"(?P<rest>\.\d+)?(?P<power>[eE][+-]?\d+)?\s*(?P<after>{UNIT})?"
)
"""A number as people write it, with a decimal point: $1,234.50, 12 %, 1'234, -€5, 80.38 °C."""

MOST_UNITS = 5  # texts behind the numbers of a column that are taken for units; where there are more, the cells are words such as 12A
CLOCK = ("%H:%M", "%H:%M:%S")
CLOCK_ORIGIN = -2208988800.0  # times of the day are read as of 1 January 1900

_DAYS = ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d.%m.%y")
_OF_DAY = (*CLOCK, "%H:%M:%S.%f", "%H:%M:%S,%f", "%H.%M", "%H.%M.%S", "%I:%M %p", "%I:%M:%S %p")
_TIMES = tuple(f"{before}{time}" for before in (" ", ", ") for time in _OF_DAY)
FORMATS = (
    *("ISO8601", *_DAYS, *(f"{day}{time}" for time in _TIMES for day in _DAYS)),
    *("%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%B %d, %Y", "%A, %d. %B %Y", "%A, %B %d, %Y", "%d. %B %Y", *CLOCK),
    *("%Y-%m-%d %H:%M:%S,%f", "%d-%b-%Y %H:%M", "%d-%b-%Y %H:%M:%S", "%d-%b-%y %H:%M:%S", "%d %b %Y %H:%M:%S"),
)
"""How dates and times are written, in the order in which they are tried."""

DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")  # A day in eight digits, such as 20241231
TRIED = 50  # about as many cells that a format of dates is tried on before the whole column is read by it
MOSTLY = 0.5  # A text column with at least this share of numbers, or dates, is meant to hold them: its other values are mistakes
NAMES_OF_MARKS = {".": "points", ",": "commas"}
OTHER = {".": ",", ",": "."}

COMMAS = re.compile(r"[1-9]\d{0,2},\d{3}")  # one thousand or a decimal comma: nobody can know


@dataclass(frozen=True)
class Marks:
    """How a file writes numbers and missing cells: the decimal mark, and texts in lower case that stand for missing cells too."""

    decimal: str = "."
    missing: frozenset[str] = frozenset()
    is_decided: bool = False  # whether the user or some cells say what the decimal mark is


@dataclass
class Numbers:
    """The numbers of a column, NaN for missing cells; which cells are wrong (no number) or unclear (1,234 may be one thousand or one point
    two); how many numbers have each unit (``""``: none); and how often each text stands for a failed measurement."""

    values: np.ndarray
    wrong: np.ndarray
    unclear: np.ndarray
    units: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    @property
    def unit(self) -> str:
        return next(filter(None, self.units), "")


def numbers(column: pd.Series, marks: Marks = Marks()) -> Numbers:  # noqa: B008 (frozen)
    """The numbers of a column of any type."""
    values = _arrow_numbers(column) if marks.decimal == "." else None
    if not is_text(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong, cells = np.zeros(len(column), dtype=bool), np.empty(0, dtype=object)
    if values is None:
        text = pd.Series(texts(column, marks.missing), dtype=object)
        if marks.decimal == ",":
            text = text.map(lambda cell: cell.translate(SWAPPED), na_action="ignore")
        parsed, cells = pd.to_numeric(text, errors="coerce").notna().to_numpy(), text.to_numpy()
        values, wrong = np.full(len(cells), np.nan), text.notna().to_numpy() & ~parsed
        values[parsed] = cells[parsed].astype(np.float64)
    if stated := [float(text) for text in marks.missing if is_number(text)]:
        values = np.where(np.isin(values, stated), np.nan, values)
    found = Numbers(values, wrong, np.zeros_like(wrong), +Counter({"": int(np.isfinite(values).sum())}))
    if wrong.any():
        _read_marked(found, cells, marks.decimal)
    return found


def _read_marked(numbers: Numbers, cells: np.ndarray, decimal: str) -> None:
    """Read the wrong cells that are numbers but for a unit, a currency or marks between thousands. Mutates ``numbers``."""
    values, units, has_unit, wrong = numbers.values, numbers.units, np.zeros_like(numbers.wrong), numbers.wrong.copy()
    known: dict[str, re.Match[str] | None] = {}
    for i in np.flatnonzero(wrong):
        cell = cells[i]
        found = known[cell] if cell in known else known.setdefault(cell, MARKED.fullmatch(cell))
        if found is None or (found["sign"] and found["inner"]):
            written = cell if decimal == "." else cell.translate(SWAPPED)
            wrong[i] = written.lower() not in FAILED
            numbers.failed[written] += not wrong[i]
            continue
        sign, whole = (found["sign"] or found["inner"]).replace("−", "-"), re.sub(r"\D", "", found["whole"])
        values[i] = float(f"{sign}{whole}{found['rest'] or ''}{found['power'] or ''}")
        unit = found["before"] or found["after"] or ""
        units[unit] += 1
        wrong[i], has_unit[i] = False, unit != ""
        numbers.unclear[i] = COMMAS.fullmatch(found["whole"]) and not found["rest"] and not re.fullmatch(CURRENCY, unit)
    if len(units) > MOST_UNITS:
        wrong |= has_unit
        values[has_unit], numbers.units = np.nan, +Counter({"": units[""]})
    if np.isfinite(values).any():  # else words among words
        numbers.wrong, numbers.failed = wrong, +numbers.failed
    else:
        numbers.failed.clear()


def reads_as_number(cell: str) -> bool:
    """Whether a cell is a number with either decimal mark."""
    return is_number(cell) or any(MARKED.fullmatch(text) is not None for text in (cell, cell.translate(SWAPPED)))


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def find_decimal(rows: Iterable[Sequence[str]]) -> str | None:
    """The decimal mark of which some cells leave no doubt, such as 0.5 or 1.012,00: that of more columns where both are there."""
    shown: dict[str, set[int]] = {".": set(), ",": set()}
    for row in rows:
        for place, cell in enumerate(row):
            for mark, places in shown.items():
                if mark in cell and place not in places and _shows(cell.strip() if mark == "." else cell.strip().translate(SWAPPED)):
                    places.add(place)
    return max(shown, key=lambda mark: len(shown[mark])) if any(shown.values()) else None


def _shows(cell: str) -> bool:
    """Whether a cell is a number whose point cannot separate thousands, or whose commas must."""
    found = MARKED.fullmatch(cell)
    if found is None or not found["rest"]:
        return found is not None and found["whole"].count(",") > 1
    return found["mark"] is not None or len(found["rest"]) != len(".123") or not 0 < len(found["whole"].lstrip("0")) < len("1234")


def check_units(name: str, found: Numbers, known: str | None = None) -> None:
    """An error where numbers have different units, or others than in training. 5 and 5 % may be a hundred times apart, 5 and $5 are not."""
    if len(found.units) > 1 and not (len(found.units) == 2 and "" in found.units and re.fullmatch(CURRENCY, found.unit)):
        parts = (
            f"{count:,}{'' if place else ' values'} {_with(unit, 'a unit', 'a percent sign')}"
            for place, (unit, count) in enumerate(found.units.most_common())
        )
        ways = f"Write all alike, or take the column as text ({option('--categorical', [name])})"
        raise TableError(f"Column {name} mixes {' and '.join(parts)}. {ways}.")
    if known is None or not found.units or found.unit == known or not ("%" in (found.unit, known) or (found.unit and known)):
        return
    now, then = _with(found.unit, "percent signs", "percent signs"), _with(known, "them", "them")
    raise TableError(f"Column {name} is written {now}, and was {then} in training. Write it as in training.")


def _with(unit: str, nothing: str, percent: str) -> str:
    return {"": f"without {nothing}", "%": f"with {percent}"}.get(unit, f"with {unit}")


def check_thousands(column: pd.Series, found: Numbers, marks: Marks) -> None:
    """An error where cells such as 1,234 may be thousands or decimals, and no other cell decides it."""
    plain = np.abs(found.values[np.isfinite(found.values) & ~found.unclear])
    if marks.is_decided or (plain.size and plain.max() < 1_000):
        return
    raise TableError(
        f"Column {column.name} holds {int(found.unclear.sum()):,} values such as {texts(column)[found.unclear][0]}, where "
        f"{OTHER[marks.decimal]!r} may be a decimal mark or separate thousands. Pass --decimal , or --decimal . to say which."
    )


def check_mark(column: pd.Series, wrong: np.ndarray, marks: Marks) -> None:
    """An error where what is wrong are numbers with the other decimal mark."""
    cells, other = texts(column, marks.missing), OTHER[marks.decimal]
    odd = cells[wrong]
    if not all(_has_decimals(cell, other) for cell in odd):
        return
    values, name, kind = f"{len(odd)} values such as {odd[0]}", str(column.name), NAMES_OF_MARKS[marks.decimal]
    if decided := sum(_has_decimals(cell, marks.decimal) for cell in cells[~wrong] if cell == cell):
        raise TableError(f"Column {name} mixes decimal commas and points: {values} and {decided} with {kind}. Write them all in one way.")
    advice = "Pass --decimal , to read them" if marks.decimal == "." else "Leave out --decimal, or pass --decimal ."
    if marks.is_decided:
        advice += f"; if other columns have decimal {kind}, {option('--categorical', [name])} takes this one as text"
    raise TableError(f"Column {name} has decimal {NAMES_OF_MARKS[other]}, in {values}. {advice}.")


def _has_decimals(cell: str, mark: str) -> bool:
    """Whether a cell is a number that has the mark."""
    return mark in cell and MARKED.fullmatch(cell if mark == "." else cell.translate(SWAPPED)) is not None


def texts(column: pd.Series, missing: Set[str] = frozenset()) -> np.ndarray:
    """The cells as text without white space around, NaN for missing ones: empty, among MISSING, or (in lower case) among ``missing``."""
    cells = pd.Series(column.to_numpy(dtype=object, na_value=np.nan), dtype=object)
    if not is_text(column):
        cells = cells.map(_text, na_action="ignore")
    cells = cells.map(str.strip, na_action="ignore")
    return cells.mask(cells.map(str.lower, na_action="ignore").isin({*MISSING, *missing}), np.nan).to_numpy(dtype=object)


def _text(cell: Any) -> str:
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell)).lower()
    return f"{cell:.17g}" if isinstance(cell, float) else str(cell)


def categories(column: pd.Series, missing: Set[str] = frozenset(), lower: bool = False) -> np.ndarray:
    """The cells as text; True, TRUE and true are one text if ``lower``."""
    cells = texts(column, missing)
    return pd.Series(cells, dtype=object).map(str.lower, na_action="ignore").to_numpy(dtype=object) if lower else cells


def is_text(column: pd.Series) -> bool:
    """Whether the cells are text."""
    return is_object_dtype(column) or is_string_dtype(column)


def is_plain(column: pd.Series) -> bool:
    """Whether the cells are text, numbers or truth values."""
    return is_text(column) or is_numeric_dtype(column) or is_bool_dtype(column)


def typed_seconds(column: pd.Series) -> np.ndarray | None:
    """Seconds since 1970 (or since midnight) of a column whose type is a date, a time or a duration; None for other types."""
    kind, is_moment = getattr(column.dtype, "pyarrow_dtype", None), is_datetime64_any_dtype(column)
    if kind is not None:
        import pyarrow as pa

        if pa.types.is_time(kind) or pa.types.is_duration(kind):
            unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
            whole = column.array.__arrow_array__().cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
            return pd.Series(whole.to_pandas()).to_numpy(dtype=np.float64, na_value=np.nan) / unit
        is_moment = is_moment or pa.types.is_temporal(kind)
    moments = pd.Series(column.to_numpy(dtype=object, na_value=None)) if is_moment else None
    return None if moments is None else _seconds(pd.to_datetime(moments, utc=True, errors="coerce"))


def find_format(cells: np.ndarray, day_first: bool = False) -> tuple[str | None, bool]:
    """(format, unclear): how most texts of a column are written as dates or times, or None; whether day and month may be the other way."""
    present = pd.Series(cells[cells == cells], dtype=object)
    some = present[:: max(1, len(present) // TRIED)]
    if not len(some) or sum(any(map(str.isdigit, cell)) for cell in some) < MOSTLY * len(some):
        return None, False
    forms = [form for form in FORMATS if any(_fits(cell, form) for cell in some[:3])]  # one of the three may be no date
    likely = [form for form in forms if _read_dates(some, form).notna().mean() >= MOSTLY]
    counts = {form: int(_read_dates(present, form).notna().sum()) for form in likely}
    fitting = [form for form, count in counts.items() if count == max(counts.values()) >= MOSTLY * len(present)]
    unclear = len(fitting) > 1 and fitting[0].startswith("%m/%d")
    return (fitting[unclear and day_first] if fitting else None), unclear


def _fits(text: str, form: str) -> bool:
    """Whether one date is written in a format: much faster than a try with pandas."""
    try:
        return form == "ISO8601" or bool(datetime.strptime(text, form))
    except ValueError:
        return False


def are_days_in_digits(column: pd.Series) -> bool:
    """Whether a column of text holds days in eight digits, such as 20241231, of at least two different days, and nothing else."""
    if not is_text(column) or DIGITS.fullmatch(next((cell for cell in column if isinstance(cell, str) and cell), "")) is None:
        return False
    found = {cell for cell in texts(column) if cell == cell}
    return len(found) > 1 and all(map(DIGITS.fullmatch, found)) and not dates(np.array(sorted(found), dtype=object), "ISO8601")[1].any()


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
    if not (isinstance(column.dtype, pd.ArrowDtype) and is_text(column)):
        return None
    import pyarrow as pa
    import pyarrow.compute as arrow

    text = column.array.__arrow_array__()
    try:
        values = arrow.cast(arrow.if_else(arrow.equal(text, ""), None, text), pa.float64())
    except pa.ArrowInvalid:
        return None
    return values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False)
