"""What a user should look at before fit: what each column is taken for, numbers that count rows, times, values for missing cells."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._core.text import counted, named, option
from .._core.types import StrPath
from ..detectors.explain.normal import Normal, written
from ..exceptions import TableError
from .columns import CATEGORY, DATE, ColumnProfile
from .readers import ReadOptions, open_table, read_whole
from .readers.values import CLOCK, MOSTLY
from .scoring import ADDED, FILLED, NORMALITY, P_VALUE
from .typed import failed_note, learn_column

NEARLY_ALL = 0.9  # numbers of which this share differs, and that are in order, count the rows or say when they were
FEW_ROWS, FEW_COUNTED = 10, 20  # in fewer rows, values all differ by chance; numbers fall into few rising sequences by chance
COUNTERS, FIRST = 3, 1_000  # the counters of so many production lines may be mixed in a column; that is seen in the first rows
REPEATS = 8.0  # whole numbers of which none repeats are names if chance would repeat this many: it repeats none in 1 of 3,000 columns
SINCE_1970 = (946_684_800.0, 2_051_222_400.0)  # from 2000 to 2034, in seconds

FEWEST_FAR, FEWEST_NEAR = 3, 10
"""A value far from the others stands for something else if it is there as often, and the others are so many different ones."""

NOTES = {
    "date": "Dates and times: {names}. Rows from later than training are unusual for that alone; {time} keeps a column out of the model.",
    "time": "Numbers that look like times since 1970: {shown}. {time} keeps a column out of the model.",
    "far": "A value far from all others: {shown}. If it stands for a missing cell, name it: --missing {first}.",
    "digits": "Taken as categories, though most of the texts begin with digits: {shown}.",
    "name": "{names} {seem} to name the rows rather than describe them. If so, leave {them} out: {drop}.",
}
NOTHING = ("", "")


@dataclass(frozen=True)
class Checked:
    """What ``refkernel fit`` would take a table for: a row for each column, notes, what it would stop at, rows, and options to give it."""

    columns: pd.DataFrame
    notes: list[str]
    problems: list[str]
    rows: int
    options: list[str]


def check_file(data: StrPath, options: ReadOptions = ReadOptions()) -> Checked:  # noqa: B008 (frozen)
    """Read a table as ``refkernel fit`` would, and say what it takes each column for, all problems at once, and what is suspicious."""
    table = open_table(Path(data), options)
    frame, own, failed = read_whole(table), own_columns(table.names), Counter[str]()
    notes, problems, lines, found = list[str](), list[str](), list[tuple[str, ...]](), dict[str, tuple[str, str]]()
    for name in table.names:
        column, unit, what = frame[name], table.units.get(name, ""), "left out: refkernel score added it"
        taken, there = "", column[column.notna() & (column.astype(str) != "")]
        try:
            if name not in own:
                profile, values = learn_column(column, table.marks, False, notes, failed)
                taken, unit, different = profile.kind, profile.unit or unit, len(set(values[values == values]))
                found[name] = _suspicion(profile, values) if different else NOTHING
                missing = f"{int((values != values).sum()):,} missing"
                alike = {0: "left out: no value", 1: "always the same"}.get(different, "" if missing == "0 missing" else missing)
                what = found[name][1] or alike
        except TableError as error:
            problems.append(str(error))
            taken, what = "?", "cannot be used: see below"
        lines.append((name, f"{taken} ({unit})" if unit else taken, " | ".join(map(str, there[:3])), what))
    names = {kind: [name for name, (other, _) in found.items() if other == kind] for kind in NOTES}
    advice = {"--time-column": (names["date"] + names["time"])[:1], "--drop": names["name"]}
    return Checked(
        pd.DataFrame(lines, columns=["column", "taken for", "first cells", "look at"]),
        [*table.notes, *notes, *failed_note(failed), *_told(found)],
        problems,
        len(frame),
        [option(flag, chosen) for flag, chosen in advice.items() if chosen],
    )


def column_notes(columns: Sequence[ColumnProfile], X: Any) -> list[str]:
    """What a user should know about the columns of a table, whose rows are all normal."""
    notes, known = list[str](), {column.name: column for column in columns}
    if missing := Counter({column.name: column.missing for column in columns if column.missing}):
        lacking = named(f"{name} ({count:,})" for name, count in missing.most_common())
        notes.append(
            f"Missing values in {lacking} of {len(X):,} rows. Numbers are filled with the median and marked as filled; "
            "missing categories count as one."
        )
    if constant := [column.name for column in columns if column.is_constant]:
        notes.append(f"Constant in the targets: {named(constant)}; rows that differ there will be flagged.")
    if empty := [f"{column.name} ({100 * column.missing_share:.0f} %)" for column in columns if column.missing_share > MOSTLY]:
        notes.append(f"Mostly missing: {named(empty)}. What the model learns from the few values there may be chance.")
    if units := [f"{column.name} ({column.unit})" for column in columns if column.unit]:
        notes.append(f"Numbers with units: {named(units)}. --categorical takes a column as text.")
    return notes + _told({str(name): _suspicion(known[str(name)], X[name].to_numpy()) for name in X.columns})


def _told(found: Mapping[str, tuple[str, str]]) -> list[str]:
    """A note for each kind of suspicion."""
    notes = []
    for kind in dict.fromkeys(kind for kind, _ in found.values() if kind):
        mine = {name: what for name, (other, what) in found.items() if other == kind}
        what = next(iter(mine.values()))
        seem, them = ("seems", "it") if len(mine) == 1 else ("seem", "them")
        options = {"drop": option("--drop", mine), "time": option("--time-column", list(mine)[:1]), "first": what.split()[0]}
        shown = named(f"{name} ({what})" for name, what in mine.items())
        notes.append(NOTES[kind].format(names=named(mine), shown=shown, seem=seem, them=them, **options))
    return notes


def _suspicion(column: ColumnProfile, values: np.ndarray) -> tuple[str, str]:
    """What is suspicious in a column, as a key of NOTES and in a few words; empty where nothing is."""
    if column.kind == DATE:
        is_moment = column.date_format not in CLOCK and len(np.unique(values[~np.isnan(values)])) > 1
        return ("date", "later rows will be unusual") if is_moment else NOTHING
    if column.kind == CATEGORY:
        if len(column.levels) > MOSTLY * len(values) and len(values) >= FEW_ROWS:
            return "name", f"{len(column.levels):,} different texts"
        digits = [level for level in column.levels if level[:1].isdigit()]
        return ("digits", f"such as {digits[0]}") if len(digits) > MOSTLY * len(column.levels) else NOTHING
    present, (low, high) = values[np.isfinite(values)], SINCE_1970
    if not present.size:
        return NOTHING
    for unit in (1.0, 1e3, 1e6, 1e9):  # of seconds, in the numbers
        if low * unit <= present.min() < present.max() <= high * unit:
            return "time", " to ".join(Normal(0.0, 0.0, is_date=True).written(end / unit) for end in (present.min(), present.max()))
    if len(present) >= NEARLY_ALL * len(values) and _counts_rows(present):
        return "name", "numbers that hardly repeat"
    for value in (present.min(), present.max()):
        others, count = present[present != value], int((present == value).sum())
        stands = count >= FEWEST_FAR or set(f"{abs(value):g}") == {"9"}
        if stands and len(np.unique(others)) >= FEWEST_NEAR and np.abs(others - value).min() > np.ptp(others):
            return "far", f"{written(value).replace(',', '')} in {counted(count, 'row')}"
    return NOTHING


def _counts_rows(present: np.ndarray) -> bool:
    """Whether numbers rise or fall from row to row, or are whole and all different where chance would repeat some."""
    n, different, step = len(present), len(np.unique(present)), np.diff(present)
    if n < FEW_ROWS or different < NEARLY_ALL * n:
        return False
    if (step >= 0).all() or (step <= 0).all():
        return True
    if n < FEW_COUNTED or (present != np.floor(present)).any():
        return False
    repeats = n * (n - 1) / (2.0 * (np.ptp(present) + 1.0))
    return (different == n and repeats >= REPEATS) or any(_rises(numbers[:FIRST].tolist()) for numbers in (present, -present))


def _rises(numbers: Iterable[float]) -> bool:
    """Whether numbers are at most COUNTERS rising sequences, mixed: patience sorting."""
    ends: list[float] = []  # of the sequences, the largest first
    for number in numbers:
        place = next((place for place, end in enumerate(ends) if end <= number), len(ends))
        ends[place : place + 1] = [number]
        if len(ends) > COUNTERS:
            return False
    return True


def own_columns(names: Iterable[str]) -> set[str]:
    """Columns that an earlier score seems to have added."""
    there = set(names)
    prefixes = [name.removesuffix(ADDED[0]) for name in there if name.endswith(ADDED[0])]
    added = (*ADDED, P_VALUE, FILLED, NORMALITY, *(f"reason_{number}" for number in range(1, len(there) + 1)))
    return {prefix + name for prefix in prefixes if all(prefix + name in there for name in ADDED) for name in added} & there
