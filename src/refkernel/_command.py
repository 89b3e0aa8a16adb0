"""What the ``refkernel`` command starts: the command line, or the name of the extra that it needs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; where its packages are not installed, say which extra brings them."""
    try:
        from .cli import main as run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "refkernel":
            raise
        sys.exit(f"Error: the refkernel command needs {error.name}, which is not installed. Install it with: pip install 'refkernel[cli]'")
    run()
