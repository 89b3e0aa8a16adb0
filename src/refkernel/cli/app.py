"""What all commands share: the application, the two consoles, and errors as messages."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.markup import escape

from ..datasets import DataError
from ..paper.rows import ResultsError

app = typer.Typer(help="One-class classification with reference kernels.", no_args_is_help=True, add_completion=False)
console = Console()
errors = Console(stderr=True)


class clear_errors:
    """Errors that a user can mend are one message and exit code 1, not a traceback."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, DataError | ResultsError | ImportError | ValueError | OSError):
            errors.print(f"[bold red]Error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
            raise typer.Exit(1) from error
        if isinstance(error, KeyboardInterrupt):
            errors.print("Stopped. What was finished is kept: the same command continues from here.")
            raise typer.Exit(130) from error
