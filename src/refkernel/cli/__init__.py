"""The `refkernel` command."""

from . import experiments, study, tables
from .app import app

__all__ = ["app", "experiments", "main", "study", "tables"]


def main() -> None:
    """Entry point of the `refkernel` command."""
    app()
