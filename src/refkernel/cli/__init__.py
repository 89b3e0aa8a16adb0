"""The `refkernel` command."""

from . import experiments, own_data, study
from .app import app

__all__ = ["app", "experiments", "main", "own_data", "study"]


def main() -> None:
    """Entry point of the `refkernel` command."""
    app()
