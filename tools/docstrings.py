"""Validates the docstrings of the public names with numpydoc, and counts their examples: `python tools/docstrings.py`.

The settings are in pyproject.toml; tests/test_docs.py runs the examples.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import sys
import tomllib
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path

from numpydoc.validate import validate

import refkernel

SETTINGS = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["numpydoc_validation"]
CLASSES_ONLY = ("EX01",)
"""Checks for classes only: methods need no examples."""


def public_names() -> Iterator[tuple[str, bool]]:
    """Every public function, class and method by its path, and whether it is a class."""
    modules = [getattr(refkernel, name).__name__ for name in refkernel.__all__ if inspect.ismodule(getattr(refkernel, name))]
    for module in ("refkernel", *modules, "refkernel.export.onnx", "refkernel.export.files"):
        members = importlib.import_module(module)
        for name in members.__all__:
            member = getattr(members, name)
            if inspect.isfunction(member):
                yield f"{module}.{name}", False
            elif inspect.isclass(member) and not issubclass(member, Exception):
                yield f"{module}.{name}", True
                yield from ((f"{module}.{name}.{method}", False) for method in own_methods(member))


def own_methods(of: type) -> list[str]:
    """The public methods that this package defines and documents; an override without a docstring inherits one."""
    found = inspect.getmembers(of, lambda member: inspect.isfunction(member) or inspect.ismethod(member))
    own = {name: method for name, method in found if not name.startswith("_") and method.__module__.startswith("refkernel")}
    return [name for name, method in own.items() if method.__doc__ or not inspect.getdoc(method)]


def problems(name: str, is_class: bool) -> list[str]:
    """The problems that numpydoc finds, limited to the checks in the settings."""
    checks = [check for check in SETTINGS["checks"] if is_class or check not in CLASSES_ONLY]
    return [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code in checks]


def examples(names: Iterable[str]) -> list[int]:
    """The number of ``>>>`` in each docstring that has any; a docstring of two names counts once."""
    documented = {id(thing): inspect.getdoc(thing) or "" for thing in (attrgetter(name.partition(".")[2])(refkernel) for name in names)}
    counts = [len(doctest.DocTestParser().get_examples(text)) for text in documented.values()]
    return [count for count in counts if count]


def main() -> None:
    """Print every problem, and exit with 1 if there is one."""
    checked = list(public_names())
    found = [problem for name, is_class in checked for problem in problems(name, is_class)]
    counts = examples(name for name, _ in checked)
    print("\n".join([*found, f"{len(checked)} public docstrings checked, {len(found)} problems."]))
    print(f"{sum(counts)} statements of examples in {len(counts)} of them.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
