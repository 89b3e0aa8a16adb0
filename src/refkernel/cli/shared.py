"""What all commands share: the application, the two consoles, errors as messages, a bar for long runs."""

from __future__ import annotations

import csv
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from types import FrameType, TracebackType
from typing import Annotated, Any, Self, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .. import __version__
from ..exceptions import DataError, ResultsError, printable

app = typer.Typer(help="One-class classification with reference kernels.", no_args_is_help=True, add_completion=False)
console = Console()
errors = Console(stderr=True)


def _say_version(wanted: bool) -> None:
    if wanted:
        console.print(f"refkernel {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_say_version)] = False,
) -> None:
    """One-class classification with reference kernels."""


T = TypeVar("T")

RESUMES = "Stopped. What was finished is kept: the same command continues from here."


class Splits(StrEnum):
    embedded = "embedded"
    authors = "authors"


class clear_errors:
    """Errors that a user can fix are one message and exit code 1, not a traceback; a run that is stopped cleans up after itself."""

    def __init__(self, stopped: str = "Stopped. Nothing was written.") -> None:
        self._stopped = stopped

    def __enter__(self) -> Self:
        self._in_main = threading.current_thread() is threading.main_thread()  # others cannot take signals
        self._before = signal.signal(signal.SIGTERM, _end) if self._in_main else None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._in_main:
            signal.signal(signal.SIGTERM, self._before)
        if isinstance(error, DataError | ResultsError | ImportError | ValueError | OSError):
            errors.print(f"[bold red]Error:[/] {shown(str(error))}", highlight=False, soft_wrap=True)
            raise typer.Exit(1) from error
        if isinstance(error, KeyboardInterrupt):
            errors.print(self._stopped)
            raise typer.Exit(130) from error


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def progress_bar(*columns: ProgressColumn, **options: Any) -> Iterator[Progress]:
    """A bar on stderr, shown only in a terminal. Elsewhere it is never started: some versions of rich print an empty line when it stops."""
    bar = Progress(*columns, console=errors, disable=not errors.is_terminal, **options)
    if bar.disable:
        yield bar
        return
    with bar:
        yield bar


def with_bar(name: str, call: Callable[[Callable[[int, int], None]], T]) -> T:
    """The result of ``call(progress)``, where ``progress(done, total)`` moves a bar; shown only in a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with progress_bar(*columns, speed_estimate_period=600) as bar:
        shown = bar.add_task(name, total=None)
        return call(lambda done, total: bar.update(shown, completed=done, total=total))


def names(*texts: str) -> tuple[str, ...]:
    """The names in lists separated by commas; one that holds a comma is put in double quotes."""
    cells = [cell for text in texts for cell in next(csv.reader([text], skipinitialspace=True), [])]
    return tuple(name.strip() for name in cells if name.strip())


def shown(text: str) -> str:
    """Text for a console: markup and control characters are shown, and not obeyed."""
    return escape(printable(text))
