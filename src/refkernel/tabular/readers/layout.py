"""Where the table begins in an export: lines above its header, a row of units under it, an empty column at its end, names that repeat."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ..._core.text import counted, named
from ...exceptions import TableError
from . import ReadOptions, Table
from .values import EMPTY, MISSING, find_decimal, is_number, reads_as_number

NUMBER_WORDS = ("inf", "infinity", "nan")  # words that Python reads as numbers, and that may name a column
BODY = 50  # rows whose cells say which columns are numeric

_WORD = (
    r"(?:°C|°F|°|%|‰|pp[mb]|rpm|psig?|[UI]?/?min|d|t|pH|Stk|pcs|in|ft|lb|mmHg|VA|var|"
    r"[kMGmµμnhcd]?(?:Wh|Pa|bar|barg|Hz|Nm|mol|Ohm|eq|VA|[mgsAVWJNlLKΩSTFhC]))(?:\^?-?[1-3²³])?"
)
UNIT = re.compile(rf"(?:1/)?{_WORD}(?:\s?[/·*.]\s?{_WORD})*")  # units that leave no doubt: °C, kPa, m³/h
LONGEST_UNIT = 12


def find_layout(table: Table, lines: Sequence[tuple[int, list[str]]], options: ReadOptions) -> int:
    """The line that the header (or the units) end in; sets the names and units of ``table``, and notes what was assumed.

    ``lines`` are the first rows that are not blank: the number of the line that each ends in, and its cells.
    """
    rows, skipped = [(line, cells) for line, cells in lines if line > (options.skip_lines or 0)], options.skip_lines or 0
    if not rows:
        raise TableError(f"{table.path} has no header after {counted(skipped, 'line')}. A table needs one line of names, and rows.")
    counts = Counter(len(cells) for _, cells in rows)
    width = max(counts, key=lambda cells: (counts[cells], cells))
    if options.header is False:
        table.names = checked_names([""] * len(rows[0][1]), table.notes)
        return skipped
    known = find_header(rows, options.wanted)
    start = known if known is not None else _header(rows, width) if options.skip_lines is None else 0
    if start:
        titles = named((repr(" ".join(filter(None, map(str.strip, cells)))) for _, cells in rows[:start]), 2)
        table.notes.append(f"Above the header, {counted(rows[start - 1][0], 'line')} left out: {titles}. --skip-lines sets their number.")
    header, body = rows[start][1], [cells for _, cells in rows[start + 1 :]]
    width = max(map(len, body), default=width) if known else width
    if options.header is None and known is None:
        _ask_for_header(header, table)
    if body and width == len(header) + 1 and not any(len(cells) == len(header) or cells[-1].strip() for cells in body):
        header = [*header, ""]  # a delimiter at the end of each row
    if body and not any(cell.strip() for cell in header[width:]):
        header = header[:width]
    table.names = checked_names(header, table.notes)
    found = zip(table.names, map(_bare, body[0] if body else ()), strict=False)
    units = {name: unit for name, unit in found if unit.lower() not in EMPTY}
    wanted = {name: unit for name, unit in options.wanted.items() if unit}
    are_units = bool(body) and ((bool(wanted) and wanted.items() <= units.items()) or _are_units(body[0], body[1:BODY]))
    if not body or not (are_units if options.units_row is None else options.units_row):
        return rows[start][0]
    table.units = units
    shown = named(f"{name} ({unit})" for name, unit in table.units.items())
    table.notes.append(f"Line {rows[start + 1][0]} is read as a row of units: {shown}. --no-units-row reads it as values.")
    return rows[start + 1][0]


def find_header(rows: Sequence[tuple[int, list[str]]], wanted: Mapping[str, str]) -> int | None:
    """The number of the first row that names all columns of a model; None where no row does."""
    return next((i for i, (_, cells) in enumerate(rows) if wanted and wanted.keys() <= set(checked_names(cells, []))), None)


def _header(rows: Sequence[tuple[int, list[str]]], width: int) -> int:
    """The number of the row that names the columns: the first, or one that stands under what are surely titles and above numbers."""
    for start, (_, cells) in enumerate(rows):
        most = max(width // 2, min(2, width - 1) if len(cells) != width else 0)  # filled cells of a title, or of a name and its value
        if sum(bool(cell.strip()) for cell in cells) > most and not cells[0].lower().startswith("sep="):
            under = [row for _, row in rows[start + 1 : start + 5]]
            fills = bool(under) and all(map(str.strip, under[0])) and not all(map(str.strip, cells))
            if fills and _are_names(under[0], under[1:], width) and not _are_units(under[0], under[1:]):
                return start + 1
            return start if _are_names(cells, under, width) else 0
    return 0


def _are_names(cells: list[str], under: Sequence[list[str]], width: int) -> bool:
    """Whether cells may be a header: no values, above numbers, units or nothing."""
    numbers = any(cell.lstrip("+-−$€£ ")[:1].isdigit() for row in under[:3] for cell in row)
    fits = len(cells) in (width, width - 1) and (numbers or not under or _are_units(under[0], under[1:]))
    return fits and not any(_is_value(cell) or cell.strip().lower() in MISSING[1:] for cell in cells)


def _are_units(row: list[str], body: Sequence[list[str]]) -> bool:
    """Whether a row under the header holds units: some that are known, and no number in columns whose other cells are numbers."""
    columns = [[cells[j] for cells in body if j < len(cells) and cells[j].strip().lower() not in EMPTY] for j in range(len(row))]
    numeric = [cell for cell, column in zip(row, columns, strict=True) if 2 * sum(map(reads_as_number, column)) > len(column) - (not body)]
    units = [unit for cell in numeric if (unit := _bare(cell)).lower() not in EMPTY]
    known = [unit for unit in units if UNIT.fullmatch(unit) and (body or not unit.isalpha() or len(unit) > 1)]
    odd = [unit for unit in units if len(unit) > LONGEST_UNIT or (not body and unit not in known)]
    return bool(known) and not odd and not any(map(reads_as_number, row))


def _bare(cell: str) -> str:
    """A unit without brackets around it."""
    found = cell.strip()
    inner = found[1:-1]
    return inner.strip() if found[:1] + found[-1:] in ("[]", "()", "{}") and not set(inner) & set("[](){}") else found


def checked_names(header: Sequence[str], notes: list[str]) -> list[str]:
    """Stripped names; a column without one is called by its number, and names that repeat are numbered."""
    found = [name.strip() or f"column {number}" for number, name in enumerate(header, start=1)]
    names, there, last = dict[str, None](), set(found), Counter[str]()
    for name in found:
        new = name
        while new in names or (new != name and new in there):
            last[name] += 1
            new = f"{name} ({last[name] + 1})"
        names[new] = None
    if twice := [name for name in names if name not in there]:
        notes.append(f"Names that repeat are numbered, from left to right: {named(twice)}.")
    return list(names)


def _ask_for_header(header: list[str], table: Table) -> None:
    """An error for a first line that seems to be a row: all cells are numbers, or some have decimals."""
    cells = [cell.strip() for cell in header if cell.strip()]
    found = [cell for cell in cells if _is_value(cell)]
    if found and (len(found) == len(cells) or any(not cell.lstrip("+-").isdigit() and cell.lower() not in NUMBER_WORDS for cell in found)):
        raise TableError(
            f"{table.path}: the first line holds numbers ({', '.join(found[:3])}), where names of columns are expected. Pass --no-header "
            "if it is a row (columns are then called column 1, column 2, …), or --header if these are the names."
        )


def _is_value(cell: str) -> bool:
    """Whether a cell cannot be a name: it is a number, with a unit only if it has decimals (10min, 50% and 2020 (1) may be names)."""
    return is_number(cell) or find_decimal([[cell]]) is not None
