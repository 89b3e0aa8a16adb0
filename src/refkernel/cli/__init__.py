"""The `refkernel` command."""

from . import experiments
from .app import app

__all__ = ["app", "experiments", "main"]


def main() -> None:
    """Entry point of the `refkernel` command."""
    app()
