"""The `refkernel` command. Its modules are imported when it is run: they need the extra ``cli``."""

from __future__ import annotations

import logging
import sys
from typing import Any

__all__ = ["app", "main"]

NEEDED = ("typer", "rich", "click", "pandas", "skops")
"""What the extra ``cli`` installs."""


def main() -> None:
    """Entry point of the `refkernel` command."""
    try:
        command = _app()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        sys.exit(f'The refkernel command needs {error.name}, which is not installed: pip install "refkernel[cli]"')
    _show_log()
    command()


def _show_log() -> None:
    """What the library logs, one line each on stderr."""
    log = logging.getLogger("refkernel")
    log.addHandler(logging.StreamHandler())
    log.setLevel(logging.INFO)


def _app() -> Any:
    from . import tables, report, benchmark, study, experiments  # noqa: F401, I001 (they add their commands, which --help lists in this order)
    from .shared import app

    return app


def __getattr__(name: str) -> Any:
    """``app`` is imported when it is asked for."""
    if name == "app":
        return _app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
