"""``python -m refkernel`` is the `refkernel` command."""

from .cli import main

if __name__ == "__main__":
    main()
