"""The `refkernel` command."""

from . import benchmark, experiments, study, tables
from .app import app

__all__ = ["app", "benchmark", "experiments", "main", "study", "tables"]


def main() -> None:
    """Entry point of the `refkernel` command."""
    app()
