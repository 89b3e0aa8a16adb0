"""The `refkernel` command."""

from . import experiments, own_data
from .app import app

__all__ = ["app", "experiments", "main", "own_data"]


def main() -> None:
    """Entry point of the `refkernel` command."""
    app()
