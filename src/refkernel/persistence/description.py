"""The metadata of a model file, and the check of their form."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..exceptions import ModelFileError

__all__ = ["FORMAT", "check_metadata", "description"]

FORMAT = 1
"""The format that ``save`` writes, and the newest that ``load`` reads."""

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "skops")

METADATA = {
    "format": int,
    "package": str,
    "versions": {str: str},
    "created": str,
    "model": str,
    "n_features_in": (int, None),
    "feature_names_in": ([str], None),
    "other_types": [str],
    "about": dict,
}
"""The pattern of the metadata: see ``mismatch``."""


def description(model: Any) -> dict[str, Any]:
    """The metadata of a model, without what the user adds."""
    from .. import __version__  # looked up in the installed package, when it is first needed

    names = getattr(model, "feature_names_in_", None)
    n_features = getattr(model, "n_features_in_", None)
    return {
        "versions": {"python": platform.python_version(), "refkernel": __version__, **{name: version(name) for name in PACKAGES}},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": f"{type(model).__module__}.{type(model).__qualname__}",
        "n_features_in": None if n_features is None else int(n_features),
        "feature_names_in": None if names is None else [str(name) for name in names],
    }


def check_metadata(path: Path, metadata: Any) -> dict[str, Any]:
    """The metadata, after checking that they have the form that ``save`` gives them."""
    number = metadata["format"]
    if type(number) is int and number > FORMAT:
        made_by = dict(metadata["versions"]).get("refkernel")
        raise ModelFileError(
            f"{path} was saved by refkernel {made_by} in format {number}; this version reads formats up to {FORMAT}. Upgrade refkernel."
        )
    found = mismatch(metadata, METADATA)
    if found:
        raise ModelFileError(f"{path}: {found} in its metadata. The file is damaged or forged.")
    return metadata


def mismatch(value: Any, pattern: Any, where: str = "") -> str | None:
    """The first part of plain JSON that does not fit a pattern, in words; None if all of it fits.

    A pattern is a type (``float`` also takes whole numbers), None, a tuple of alternatives, ``[pattern]`` for a list, ``{str: pattern}``
    for a dict with any keys, or a dict of patterns by key, which allows further keys.
    """
    if isinstance(pattern, tuple):
        found = [mismatch(value, alternative, where) for alternative in pattern]
        return found[0] if all(found) else None
    if isinstance(pattern, list):
        return _first(value, where, list, lambda item: pattern[0], enumerate)
    if isinstance(pattern, dict):
        if isinstance(value, dict) and str not in pattern and not set(pattern) <= set(value):
            return f"{where or 'it'} lacks {sorted(set(pattern) - set(value))[0]!r}"
        return _first(value, where, dict, lambda key: pattern.get(str, pattern.get(key, object)), dict.items)
    if pattern is None:
        fits = value is None
    elif pattern is float:
        fits = isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < float("inf")
    else:
        fits = isinstance(value, pattern) and (pattern is not int or not isinstance(value, bool))
    return None if fits else _wrong(value, where)


def _first(
    value: Any, where: str, kind: type, pattern_of: Callable[[Any], Any], pairs: Callable[[Any], Iterable[tuple[Any, Any]]]
) -> str | None:
    if not isinstance(value, kind):
        return _wrong(value, where)
    found = (mismatch(item, pattern_of(key), f"{where}[{key!r}]" if where else str(key)) for key, item in pairs(value))
    return next((text for text in found if text), None)


def _wrong(value: Any, where: str) -> str:
    shown = repr(value)
    return f"{where or 'it'} is {shown if len(shown) <= 60 else shown[:57] + '...'}"
