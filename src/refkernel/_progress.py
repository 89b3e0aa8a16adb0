"""A progress bar in terminals and notebooks."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def progress(results: Iterable[T], total: int, verbose: int, desc: str = "folds") -> Iterable[T]:
    """The results as they come, with a progress bar in a terminal or a notebook."""
    if not verbose or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return results
    try:
        from tqdm.auto import tqdm
    except ImportError:
        warnings.warn("The progress bar needs tqdm: pip install refkernel[progress].", UserWarning, stacklevel=4)
        return results
    return tqdm(results, total=total, desc=desc, unit="task")
