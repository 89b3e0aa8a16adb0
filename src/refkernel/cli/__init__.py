"""The `refkernel` command. Its modules are imported when it is run: they need the extra ``cli``."""

import logging
import sys
from io import TextIOWrapper
from typing import Any

__all__ = ["app", "main"]

NEEDED = ("typer", "rich", "click", "pandas", "pyarrow", "skops")  # what the extra ``cli`` installs


def main() -> None:
    """Entry point of the `refkernel` command."""
    try:
        command = _app()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        sys.exit(f'The refkernel command needs {error.name}, which is not installed: pip install "refkernel[cli]"')
    log = logging.getLogger("refkernel")  # one line each on stderr
    log.addHandler(logging.StreamHandler())
    log.setLevel(logging.INFO)
    for stream in (sys.stdout, sys.stderr):  # what an encoding lacks is spelt out
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    command()


def _app() -> Any:
    from . import tables, watch, experiments  # noqa: F401, I001 (--help lists their commands in this order)
    from .shared import app

    return app


def __getattr__(name: str) -> Any:
    """``app`` is imported when it is asked for."""
    if name == "app":
        return _app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
