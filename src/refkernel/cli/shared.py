"""What all commands share: the application, the two consoles, errors as messages, a bar for long runs, how files write tables."""

import csv
import re
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .. import __version__
from ..exceptions import DataError, ResultsError, _printable

STANDARD = Path("-")  # stands for standard input and output
COPY = re.compile(r"'?\S*[/\\]refkernel-[^/\\\s]+[/\\]stdin\.\w+'?")  # see as_input
FILE_STARTS = {b"PAR1": "parquet", b"PK\x03\x04": "xlsx"}  # how files begin that are not CSV, and how their names end

app = typer.Typer(
    help="One-class classification with reference kernels.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)
console = Console()
errors = Console(stderr=True)


def _say_version(wanted: bool) -> None:
    if wanted:
        say(f"refkernel {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_say_version)] = False,
) -> None:
    """One-class classification with reference kernels."""


@contextmanager
def clear_errors(stopped: str = "Stopped. Nothing was written.") -> Iterator[None]:
    """Errors that a user can fix are one message and exit code 1, not a traceback; a run that is stopped cleans up after itself."""
    in_main = threading.current_thread() is threading.main_thread()  # others cannot take signals
    before = signal.signal(signal.SIGTERM, _end) if in_main else None
    try:
        yield
    except (DataError, ResultsError, ImportError, ValueError, OSError) as error:
        say(error, "[bold red]Error:[/] ", errors)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        errors.print(stopped)
        raise typer.Exit(130) from error
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[..., None]]:
    """A bar on stderr, shown only in a terminal, and the function that moves it: ``completed``, ``total`` and ``description``."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    if not errors.is_terminal:  # some versions of rich print an empty line when a bar that is not shown stops
        yield lambda **changes: None
        return
    with Progress(*columns, console=errors, transient=True, speed_estimate_period=600) as bar:
        yield partial(bar.update, bar.add_task(name, total=None))


@contextmanager
def as_input(path: Path | None) -> Iterator[Path | None]:
    """The file to read, if there is one. Standard input (-) and pipes are copied to one, because tables are read more than once."""
    if path is None or not _is_stream(path):
        yield path
        return
    with TemporaryDirectory(prefix="refkernel-") as folder:
        with nullcontext(sys.stdin.buffer) if path == STANDARD else path.open("rb") as stream:
            start = stream.read(4)
            copy = Path(folder, f"stdin.{FILE_STARTS.get(start, 'csv')}")
            with copy.open("wb") as file:
                file.write(start)
                shutil.copyfileobj(stream, file)
        yield copy


@contextmanager
def as_output(path: Path) -> Iterator[Path]:
    """The file to write. Standard output (-) and pipes get it when it is whole, and words go to standard error."""
    if not _is_stream(path):
        yield path
        return
    with TemporaryDirectory(prefix="refkernel-") as folder:
        whole, console.stderr = Path(folder, "stdout.csv"), True
        try:
            yield whole
        finally:
            console.stderr = False
        with whole.open("rb") as file, nullcontext(sys.stdout.buffer) if path == STANDARD else path.open("wb") as stream:
            shutil.copyfileobj(file, stream)
            stream.flush()


def _is_stream(path: Path) -> bool:
    return path == STANDARD or (path.exists() and not path.is_file() and not path.is_dir())


def names(*texts: str) -> tuple[str, ...]:
    """The names in lists separated by commas; one that holds a comma is put in double quotes."""
    cells = [cell for text in texts for cell in next(csv.reader([text], skipinitialspace=True), [])]
    return tuple(name.strip() for name in cells if name.strip())


def shown(text: str) -> str:
    """Text for a console: markup and control characters are shown, and not obeyed."""
    return escape(_printable(text))


def say(text: object, before: str = "", to: Console = console) -> None:
    """Print a text as it is, after some markup; the copy of standard input is what was typed."""
    to.print(before + shown(COPY.sub("-", str(text))), highlight=False, soft_wrap=True)


OPTIONS: dict[str, Any] = {
    "delimiter": Annotated[str | None, typer.Option(help="Of a CSV file: one character, or tab. Recognised by default.")],
    "decimal": Annotated[str | None, typer.Option(help="Decimal mark: . or , (recognised by default).")],
    "encoding": Annotated[str | None, typer.Option(help="Of a CSV file, such as utf-16. By default UTF-8, or cp1252 where it is not.")],
    "header": Annotated[bool | None, typer.Option("--header/--no-header", help="Whether a line names the columns.")],
    "sheet": Annotated[str | None, typer.Option(help="Of an Excel file; the first by default.")],
    "skip_lines": Annotated[int | None, typer.Option(min=0, help="Lines above the header. Recognised by default.")],
    "units_row": Annotated[bool | None, typer.Option("--units-row/--no-units-row", help="Whether units stand under the header.")],
    "missing": Annotated[list[str] | None, typer.Option(help="Texts or numbers for missing cells, such as -9999,Bad; may be repeated.")],
}
"""The options that say how a file writes its table, for every command that reads one."""


def table_command(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command with these options, whose errors are clear. It gets them as ``options``, a ReadOptions."""

    @wraps(command)
    def run(**values: Any) -> None:
        found = {name: values.pop(name) for name in OPTIONS}
        found["delimiter"] = "\t" if found["delimiter"] in ("tab", "\\t") else found["delimiter"]
        found["missing"] = names(*(found["missing"] or ()))
        with clear_errors():
            from ..tabular.readers import ReadOptions

            values["options"] = ReadOptions(**found)
            with as_input(values["data"]) as values["data"]:
                command(**values)

    hints = get_type_hints(command, localns={"ReadOptions": Any}, include_extras=True) | OPTIONS  # a class that --help need not import
    own = [one.replace(annotation=hints[one.name]) for one in signature(command).parameters.values() if one.name != "options"]
    added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=hint) for name, hint in OPTIONS.items()]
    run.__signature__ = Signature([*own, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *added)}
    return app.command()(run)
