"""Words for messages: names, counts, and options that work when they are pasted."""

import csv
import shlex
from collections.abc import Iterable
from io import StringIO

from ..exceptions import _printable

SHOWN = 5  # values, or columns, that a message names


def named(names: Iterable[object], shown: int = SHOWN) -> str:
    """Some names for a message, which a terminal does not obey."""
    found = [_printable(str(name)) for name in names]
    return ", ".join(found[:shown]) + (f" and {len(found) - shown:,} more" if len(found) > shown else "")


def counted(count: int, thing: str, things: str | None = None) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def option(flag: str, names: Iterable[str]) -> str:
    """An option with a list of columns, as a shell takes it when it is pasted."""
    text = StringIO()
    csv.writer(text, lineterminator="").writerow(list(names))
    return f"{flag} {shlex.quote(text.getvalue())}"


def p_text(p: float) -> str:
    """A p-value as text."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def percent(share: float | None) -> str:
    """A share in percent, with as many digits as it can bear."""
    return "–" if share is None else f"{100 * share:.3g} %"
