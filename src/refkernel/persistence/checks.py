"""Checks that the parts of a loaded model fit together: shapes, types and index ranges, before anything is computed.

``RULES`` holds a rule for each attribute. A shape is a tuple of sizes; a size is a number or a name, and a name must stand for the same
number throughout an object: ``d`` is the number of features. Classes are identified by name, since a file can only hold known ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from inspect import Parameter, signature
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import OneHotEncoder

from .._encoding import CATEGORY, DATE, NUMBER
from ..exceptions import ModelFileError

__all__ = ["check_model"]

KINDS = (NUMBER, CATEGORY, DATE)
"""What the columns of a TableEncoder can be."""

MT19937_WORDS = 624
"""The length of a RandomState's key: positions run from 0 to this, and NumPy does not check them."""


@dataclass(frozen=True)
class Array:
    """An array of this shape: floats (finite by default), integers >= ``lowest`` if that is given, or booleans for ``dtype="b"``."""

    shape: tuple[int | str, ...]
    lowest: int | None = None
    dtype: str = "f"
    finite: bool = True

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        kinds = "iu" if self.lowest is not None else self.dtype
        if not (isinstance(value, np.ndarray) or sp.issparse(value)) or value.dtype.kind not in kinds:
            return f"is not an array of type {kinds!r}: {_shown(value)}"
        if value.ndim != len(self.shape) or any(not _fits(*pair, sizes) for pair in zip(self.shape, value.shape, strict=True)):
            return f"has the shape {value.shape}; {tuple(sizes.get(size, size) for size in self.shape)} was expected"  # type: ignore[arg-type]
        data = value.data if sp.issparse(value) else value
        if self.lowest is not None and value.size and value.min() < self.lowest:
            return f"holds {value.min()}, below {self.lowest}"
        return None if not self.finite or np.isfinite(data).all() else "holds values that are not finite"


@dataclass(frozen=True)
class Number:
    """A finite number, or an integer >= ``lowest`` if that is given. ``size`` is the name of the size that it defines."""

    lowest: int | None = None
    size: str | None = None

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        kind: Any = Real if self.lowest is None else Integral
        if isinstance(value, bool | np.bool_) or not isinstance(value, kind) or not np.isfinite(float(value)):
            return f"is not a {'finite number' if self.lowest is None else 'whole number'}: {_shown(value)}"
        if self.lowest is not None and value < self.lowest:
            return f"is {value}, below {self.lowest}"
        return None if self.size is None or _fits(self.size, int(value), sizes) else f"is {value}, not {sizes[self.size]}"


@dataclass(frozen=True)
class Items:
    """A list whose items all obey one rule, or are all among some texts."""

    each: Array | Number | tuple[str, ...] | None = None

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        if not isinstance(value, list | tuple):
            return f"is not a list: {_shown(value)}"
        if self.each is None or isinstance(self.each, tuple):
            wrong = [item for item in value if not isinstance(item, str) or (self.each is not None and item not in self.each)]
            return f"holds {_shown(wrong[0])}" if wrong else None
        return next((f"holds an item that {found}" for found in (self.each.problem(item, sizes) for item in value) if found), None)


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        return None if isinstance(value, bool | np.bool_) else f"is neither True nor False: {_shown(value)}"


@dataclass(frozen=True)
class Part:
    """A kernel or a map: an object, or a function or name that stands for one."""

    def problem(self, value: Any, sizes: dict[str, int]) -> str | None:
        if not isinstance(value, BaseEstimator | str) and not callable(value):
            return f"is not a kernel: {_shown(value)}"
        found = getattr(value, "n_features_in_", None)
        return None if found is None or "d" not in sizes or found == sizes["d"] else f"takes {found} features, not {sizes['d']}"


Rule = Array | Number | Items | Flag | Part

FEATURES: dict[str, Rule] = {"n_features_in_": Number(1, size="d")}
"""Checked first, on every object that has the attribute: it defines ``d``."""

RULES: dict[str, dict[str, Rule]] = {
    "support": {
        "support_": Array(("s",), lowest=0),
        "dual_coef_": Array((1, "s")),
        "support_vectors_": Array(("s", "d")),
        "offset_": Number(),
        "radius_": Number(),
        "duality_gap_": Number(),
    },
    "kernel": {"kernel_": Part()},
    "references": {
        "references_": Array(("m", "d")),
        "reference_indices_": Array(("m",), lowest=-1),
        "eigenvalues_": Array(("r",)),
        "rank_": Number(0, size="r"),
    },
    "residual": {"map_": Part(), "rank_": Number(0), "held_out_": Array(("h",), lowest=0), "offset_": Number()},
    "ellipsoid": {"covariance_": Array(("d", "d")), "center_": Array(("d",))},
    "scaler": {"kept_": Array(("d",), dtype="b"), "mean_": Array(("k",)), "scale_": Array(("k",))},
    "shape": {"mean": Array(("e",)), "covariance": Array(("e", "e")), "L": Array(("e", "e"))},
    "auto": {
        "calibration_": Array(("n",)),
        "offset_": Number(),
        "_used": Array(("q",), dtype="b"),
        "_unit": Array(("d",)),
        "_alone": Array(("n",), dtype="b"),
    },
    "view": {
        **dict.fromkeys(("median_", "tolerance_", "width_", "mean_", "std_"), Array(("v",))),
        **dict.fromkeys(("constant_", "fixed_"), Array(("v",), dtype="b")),
        "jump_": Number(),
    },
    "evidence": {"_at": Array(("t",)), "_value": Array(("t",)), "_unit": Number()},
    "columns": {"columns": Array(("c", "m"))},
    "neighbours": {"_close": Array(("m",)), "_floor": Number()},
    "residuals": {"scales": Items(Number()), "_widths": Items(Number()), "_roots": Items(Array(("m", "m")))},
    "encoder": {"jump_": Number(), "most_missing_": Number(0)},
    "numbers": {
        **dict.fromkeys(("missing_", "median_", "minimum_", "maximum_", "mean_", "std_"), Array(("p",))),
        "constant_": Array(("p",), dtype="b"),
        "quantiles_": Array((5, "p")),
        "limits_": Array((2, "p"), finite=False),
    },
    "cycles": {"cycles_": Items(("hour", "weekday", "month")), "spreads_": Items(Number())},
    "category": {
        "missing_": Number(),
        "levels_": Items(),
        "own_": Items(),
        "counts_": Items(Number(0)),
        **dict.fromkeys(("has_missing_", "has_pool_", "expects_new_", "is_constant_", "has_new_"), Flag()),
    },
    "factor": {"eigenvalues": Array(("r",)), "projection": Array(("p", "r"))},
}

RULES_OF = {
    "SVDD": ("support", "kernel"),
    "OneClassSVM": ("support", "kernel"),
    "ESVDD": ("support", "ellipsoid"),
    "ReferenceMap": ("references", "kernel"),
    "NPT": ("references", "kernel"),
    "ReferenceKernel": ("references", "kernel"),
    "ReferenceResidual": ("residual",),
    "TargetScaler": ("scaler",),
    "Factor": ("factor",),
    "Ellipsoid": ("shape",),
    "AutoDetector": ("auto",),
    "ColumnView": ("view",),
    "Evidence": ("evidence",),
    "Neighbours": ("columns", "neighbours"),
    "Residuals": ("columns", "residuals"),
    "TableEncoder": ("encoder",),
    "NumbersPart": ("numbers",),
    "DatePart": ("numbers", "cycles"),
    "CategoryPart": ("category",),
}
"""The rules for each class. A fitted object has all of the attributes, except perhaps the OPTIONAL ones."""

OPTIONAL = {"radius_", "duality_gap_", "fixed_"}

INNER = {"Factor", "ColumnView", "Evidence", "Neighbours", "Residuals", "NumbersPart", "DatePart", "CategoryPart"}
"""Parts that are in a model only when it is fitted, and do not count features."""


def check_model(path: Path, model: Any, metadata: dict[str, Any]) -> None:
    """Raise for the first part of a model that does not fit the rest."""
    for name, part in parts(model):
        _add_new_parameters(part)
        problem = _problem(part)
        if problem:
            raise ModelFileError(
                f"{path} holds a model whose parts do not fit together: {name + '.' if name else ''}{problem}. The file is damaged or "
                f"forged, or refkernel {metadata['versions'].get('refkernel')}, which saved it, stored models differently: fit it again."
            )
    claimed = metadata["n_features_in"]
    if claimed is not None and getattr(model, "n_features_in_", claimed) != claimed:
        raise ModelFileError(
            f"{path} claims to hold a model of {claimed} features, but its model has {model.n_features_in_}. It is damaged or forged."
        )


def parts(model: Any) -> Iterator[tuple[str, Any]]:
    """Every object inside a model, with the path of attribute names that leads to it."""
    waiting, seen = [("", model)], {id(model)}
    while waiting:
        name, value = waiting.pop()
        yield name, value
        for key, inner in _inside(value):
            if id(inner) not in seen and not isinstance(inner, str | int | float | None):
                seen.add(id(inner))
                waiting.append((f"{name}.{key}" if name else str(key), inner))


def _inside(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list | tuple | set) or (isinstance(value, np.ndarray) and value.dtype == object and value.ndim):
        return enumerate(value)
    return vars(value).items() if hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value) else ()


def _add_new_parameters(part: Any) -> None:
    """Give parameters that did not exist when the part was saved their defaults. Mutates the part."""
    if isinstance(part, BaseEstimator) and type(part).__module__.partition(".")[0] == "refkernel":
        for name, parameter in signature(type(part).__init__).parameters.items():
            if not hasattr(part, name) and parameter.default is not Parameter.empty:
                setattr(part, name, clone(parameter.default, safe=False))


def _problem(part: Any) -> str | None:
    if sp.issparse(part):
        part.check_format(full_check=True)
        return None
    if isinstance(part, np.random.RandomState):
        position = part.get_state(legacy=False)["state"]["pos"]
        return None if 0 <= position <= MT19937_WORDS else f"random state has the position {position}, beyond {MT19937_WORDS}"
    if isinstance(part, OneHotEncoder):
        return _encoder_problem(part)
    if isinstance(part, BaseEstimator) or type(part).__name__ in RULES_OF:
        return _attribute_problem(part)
    return None


def _attribute_problem(part: Any) -> str | None:
    rules = dict(FEATURES)
    for group in RULES_OF.get(type(part).__name__, ()):
        rules |= RULES[group]
    held = vars(part)
    sizes: dict[str, int] = {}
    fitted = any(name.endswith("_") and not name.startswith("_") for name in held) or type(part).__name__ in INNER
    for name, rule in rules.items():
        if name in held:
            if name == "support_vectors_" and _is_precomputed(part):
                rule = Array((0, "d"))
            problem = rule.problem(held[name], sizes)
            if problem:
                return f"{name} {problem}"
        elif fitted and name not in OPTIONAL and (name != "n_features_in_" or _takes_samples(part)):
            return f"{name} is missing"
    return _names_problem(held, sizes) or _index_problem(part, held, sizes)


def _names_problem(held: dict[str, Any], sizes: dict[str, int]) -> str | None:
    names = held.get("feature_names_in_")
    if names is None or "d" not in sizes:
        return None
    is_list = isinstance(names, np.ndarray) and names.shape == (sizes["d"],) and all(isinstance(name, str) for name in names)
    return None if is_list else f"feature_names_in_ is not {sizes['d']} names"


def _index_problem(part: Any, held: dict[str, Any], sizes: dict[str, int]) -> str | None:
    if _is_precomputed(part) and held["support_"].size and held["support_"].max() >= sizes["d"]:
        return f"support_ holds {held['support_'].max()}; there are {sizes['d']} training samples"
    if "kept_" in held and "mean_" in held and held["kept_"].sum() != held["mean_"].size:
        return f"mean_ has {held['mean_'].size} values, but {held['kept_'].sum()} features are kept"
    factor = held.get("_factor")
    if factor is not None and "r" in sizes and getattr(factor, "projection", np.empty((0, 0))).shape != (sizes["m"] + 1, sizes["r"]):
        return f"_factor is not a projection of {sizes['m']} references to {sizes['r']} features"
    if "_at" in held and not held["_at"].size:
        return "_at is empty"
    if type(part).__name__ == "AutoDetector" and "d" in sizes:
        return _views_problem(held, sizes["d"])
    return _kinds_problem(part, sizes["d"]) if type(part).__name__ == "TableEncoder" and "d" in sizes else None


def _views_problem(held: dict[str, Any], features: int) -> str | None:
    """An AutoDetector's descriptions name their views by number, and views take all features."""
    views, described = held.get("_views"), held.get("_parts")
    if not isinstance(held.get("_evidence"), list):
        return "_evidence is not a list"
    if not isinstance(views, list) or any(np.shape(vars(view).get("median_", 0)) != (features,) for view in views):
        return f"_views is not a list of views of {features} features"
    fits = isinstance(described, list) and all(isinstance(item, tuple | list) and len(item) == 2 for item in described)
    if not fits or any(v not in range(len(views)) for v, _ in described or ()):
        return f"_parts is not a list of descriptions of {len(views)} views"
    return None


def _kinds_problem(encoder: Any, features: int) -> str | None:
    """Each part of a TableEncoder takes the columns of its kind."""
    kinds, found = vars(encoder).get("kinds_", ()), vars(encoder).get("parts_")
    if np.ndim(kinds) != 1 or len(kinds) != features or any(kind not in KINDS for kind in kinds):
        return f"kinds_ is not {features} of {', '.join(KINDS)}"
    if "feature_names_in_" not in vars(encoder):
        return "feature_names_in_ is missing"
    places = encoder.places_
    fits = isinstance(found, list) and len(found) == len(places)
    if not fits or any(len(j) != np.size(vars(part).get("missing_")) for j, part in zip(places, found, strict=True)):
        return "parts_ does not fit the kinds of the columns"
    return None


def _encoder_problem(encoder: OneHotEncoder) -> str | None:
    """A OneHotEncoder writes columns by index without checking: the columns must exist."""
    held = vars(encoder)
    if "categories_" not in held:
        return None
    outs = encoder._compute_n_features_outs()
    if list(held.get("_n_features_outs", outs)) != list(outs) or any(out < 0 for out in outs):
        return f"_n_features_outs is {held['_n_features_outs']}; its categories give {outs}"
    for mapping, categories in zip(held.get("_default_to_infrequent_mappings") or [], held["categories_"], strict=False):
        if mapping is not None and not ((mapping >= 0) & (mapping < max(1, len(categories)))).all():
            return "_default_to_infrequent_mappings points outside the categories"
    return None


def _is_precomputed(part: Any) -> bool:
    kernel = vars(part).get("kernel_")
    return (isinstance(kernel, str) and kernel == "precomputed") or type(kernel).__name__ == "Precomputed"


def _takes_samples(part: Any) -> bool:
    return type(part).__name__ in RULES_OF and type(part).__name__ not in INNER


def _fits(expected: int | str, size: int, sizes: dict[str, int]) -> bool:
    return size == (expected if isinstance(expected, int) else sizes.setdefault(expected, size))


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text[:60]
