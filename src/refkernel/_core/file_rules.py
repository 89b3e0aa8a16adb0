"""Rules for the attributes of loaded objects: types, shapes and ranges, before anything is computed with them.

A class that model files hold says what its attributes must be, beside the code that uses them::

    _file_rules: ClassVar[dict[str, Rule]] = {"offset_": Number(), "support_vectors_": Array(("s", "d"))}

Rules of base classes apply too. A shape is a tuple of sizes; a size is a number or a name, and a name must stand for the same number
throughout an object: ``d`` is ``n_features_in_``. A fitted object must have all attributes whose rule is not ``optional``. What spans
attributes is a method, which is called after all rules held::

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        return None if self.low <= self.high else f"low is {self.low}, above high"

``export.checks`` applies the rules to every object in a file, and a class with rules may be in a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

MOST = 2**32  # nothing counts more rows or columns: what takes time or memory for each of them would not end


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What an attribute must be. A fitted object may lack it if it is ``optional``."""

    optional: bool = False

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        """What is wrong with a value, as the end of a sentence; None if nothing is. Adds the names of sizes that it meets."""
        raise NotImplementedError


@dataclass(frozen=True)
class Array(Rule):
    """An array of this shape: floats (finite by default), integers >= ``lowest`` if that is given, booleans or texts for other dtypes.

    ``below`` is the name of a size, known from a rule before this one: the integers are places among that many.
    Compiled code takes these numbers only: signed, of 4 or 8 bytes in this machine's order. ``sparse`` matrices are taken where it says so.
    """

    shape: tuple[int | str, ...]
    lowest: int | None = None
    dtype: str = "f"
    finite: bool = True
    sparse: bool = False
    below: str | None = None

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        kinds = "i" if self.lowest is not None else self.dtype
        if not (type(value) is np.ndarray or (self.sparse and sp.issparse(value))) or value.dtype.kind not in kinds:
            return f"is not an array of type {kinds!r}: {shown(value)}"
        if value.dtype.kind in "if" and (value.dtype.itemsize not in (4, 8) or not value.dtype.isnative):
            return f"has the type {value.dtype.str}, not numbers of 4 or 8 bytes in this machine's order"
        if value.ndim != len(self.shape) or any(not _fits(*pair, sizes) for pair in zip(self.shape, value.shape, strict=True)):
            return f"has the shape {value.shape}; {tuple(sizes.get(size, size) for size in self.shape)} was expected"  # type: ignore[arg-type]
        if self.dtype == "O" and not all(isinstance(name, str) for name in value):
            return "holds other things than texts"
        data = value.data if sp.issparse(value) else value
        if self.lowest is not None and value.size and value.min() < self.lowest:
            return f"holds {value.min()}, below {self.lowest}"
        if self.below and value.size and value.max() >= sizes.get(self.below, 0):
            return f"holds {value.max()}, and there are {sizes.get(self.below, 0)}"
        return None if not self.finite or kinds != "f" or np.isfinite(data).all() else "holds values that are not finite"


@dataclass(frozen=True)
class Number(Rule):
    """A finite number up to ``most``, or an integer >= ``lowest`` if that is given. ``size`` is the name of the size that it defines."""

    lowest: int | None = None
    size: str | None = None
    positive: bool = False
    most: float | None = None

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        kind: Any = int | np.int32 | np.int64 if self.lowest is not None else int | float | np.int32 | np.int64 | np.float32
        if isinstance(value, bool) or not isinstance(value, kind) or not abs(value) < np.inf:
            return f"is not a {'finite number' if self.lowest is None else 'whole number'}: {shown(value)}"
        if self.lowest is not None and value < self.lowest:
            return f"is {value}, below {self.lowest}"
        if self.positive and value <= 0:
            return f"is {value}, not positive"
        most = self.most or (np.inf if self.lowest is None else MOST)
        if value > most:
            return f"is {value}, above {most:g}"
        return None if self.size is None or _fits(self.size, int(value), sizes) else f"is {value}, not {sizes[self.size]}"


@dataclass(frozen=True)
class Flag(Rule):
    """True or False."""

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        return None if isinstance(value, bool | np.bool_) else f"is neither True nor False: {shown(value)}"


@dataclass(frozen=True)
class Text(Rule):
    """A text, one of ``among`` if that is given."""

    among: tuple[str, ...] = ()

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        is_text = isinstance(value, str) and (not self.among or value in self.among)
        return None if is_text else f"is not {'one of ' + ', '.join(self.among) if self.among else 'a text'}: {shown(value)}"


@dataclass(frozen=True)
class Part(Rule):
    """An object of this type, fitted by default; without a type any estimator, function or name."""

    type: type | tuple[type, ...] | None = None
    fitted: bool = True

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        if self.type is not None and not isinstance(value, self.type):
            return f"is not of the right type: {shown(value)}"
        if self.type is None and not isinstance(value, BaseEstimator | str) and not callable(value):
            return f"is not a kernel: {shown(value)}"
        if self.fitted and (missing := missing_attribute(value)):
            return f"lacks {missing}"
        found = getattr(value, "n_features_in_", None)
        return None if found is None or found == sizes.setdefault("d", found) else f"takes {found} features, not {sizes['d']}"


@dataclass(frozen=True)
class Items(Rule):
    """A list or tuple whose items obey one rule; ``size`` is its length, or the name of a size that it defines."""

    each: Rule
    size: int | str | None = None

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        if not isinstance(value, list | tuple):
            return f"is not a list: {shown(value)}"
        if self.size is not None and not _fits(self.size, len(value), sizes):
            return f"has {len(value)} items, not {sizes.get(self.size, self.size)}"  # type: ignore[arg-type]
        return next((f"holds an item that {found}" for found in (self.each.problem(item, sizes) for item in value) if found), None)


@dataclass(frozen=True)
class OrNone(Rule):
    """None, or what another rule says."""

    rule: Rule

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        return None if value is None else self.rule.problem(value, sizes)


FEATURES: dict[str, Rule] = {"n_features_in_": Number(1, size="d"), "feature_names_in_": Array(("d",), dtype="O", optional=True)}
"""For the rules of a class that counts features. Others may have the attribute, and it is checked first wherever it is."""


def rules_of(kind: type) -> Mapping[str, Rule]:
    """The rules of a class and of its base classes."""
    found: dict[str, Rule] = {}
    for base in reversed(kind.__mro__):
        found |= vars(base).get("_file_rules", {})
    return found


def missing_attribute(value: Any) -> str | None:
    """The first attribute that a fitted object of this type must have and this one lacks."""
    held = getattr(value, "__dict__", {})
    return next((name for name, rule in rules_of(type(value)).items() if not rule.optional and name not in held), None)


def shown(value: Any) -> str:
    """A value in an error: plain values as they are, others by their type."""
    return (repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__)[:60]


def _fits(expected: int | str, size: int, sizes: dict[str, int]) -> bool:
    return size == (expected if isinstance(expected, int) else sizes.setdefault(expected, size))
