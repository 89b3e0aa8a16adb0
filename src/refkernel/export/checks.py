"""Checks that the parts of a loaded model fit together, by the rules that stand beside each class (``_core.file_rules``)."""

from collections.abc import Iterable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from .._core.file_rules import FEATURES, missing_attribute, rules_of
from ..exceptions import ModelFileError

SCIKIT_LEARN_KEEPS = ("_fill_dtype", "_fit_dtype", "_metadata_request", "_sklearn_output_config")  # in estimators, and in its imputer

MT19937_WORDS = 624  # the length of a RandomState's key: positions run from 0 to this, and NumPy does not check them


def check_model(path: Path, model: Any, metadata: dict[str, Any]) -> None:
    """Raise for the first part of a model that does not fit the rest."""
    for name, part in parts(model):
        if problem := _problem(part):
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
    """Every object inside a model after what it holds, with the path of attribute names that leads to it."""
    waiting, seen = [("", model, False)], set[int]()
    while waiting:
        name, value, is_done = waiting.pop()
        if is_done:
            yield name, value
        elif id(value) not in seen:
            seen.add(id(value))
            waiting.append((name, value, True))
            held = [(f"{name}.{key}" if name else str(key), inner, False) for key, inner in _inside(value)]
            waiting += [entry for entry in held if not isinstance(entry[1], str | int | float | None)]


def _inside(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list | tuple | set) or (isinstance(value, np.ndarray) and value.dtype == object and value.ndim):
        return enumerate(value)
    return vars(value).items() if hasattr(value, "__dict__") and not isinstance(value, type) else ()


def _hidden(part: Any) -> str | None:
    """The first attribute that would hide what the type of an object has, or that only this library could have computed."""
    home, held = type(part).__module__.partition(".")[0], vars(part) if hasattr(part, "__dict__") and not isinstance(part, type) else {}
    if home == "sklearn":
        return next((name for name in held if callable(getattr(type(part), name, None))), None)
    declared = {*rules_of(type(part)), *signature(type(part)).parameters} if home == "refkernel" else set(held)
    others = [name for name in held if name not in declared]
    return next((name for name in others if hasattr(type(part), name) or (name[:1] == "_" and name not in SCIKIT_LEARN_KEEPS)), None)


def _problem(part: Any) -> str | None:
    if name := _hidden(part):
        return f"{name} is not an attribute that {type(part).__name__} keeps"
    if sp.issparse(part):
        part.check_format(full_check=True)
        return None
    if isinstance(part, np.random.RandomState):
        position = part.get_state(legacy=False)["state"]["pos"]
        return None if 0 <= position <= MT19937_WORDS else f"random state has the position {position}, beyond {MT19937_WORDS}"
    if isinstance(part, OneHotEncoder):
        return _encoder_problem(part)
    problem = _attribute_problem(part) if isinstance(part, BaseEstimator) or rules_of(type(part)) else None
    return problem or (_steps_problem(part.steps) if isinstance(part, Pipeline) else None)


def _attribute_problem(part: Any) -> str | None:
    """What is wrong with the attributes of an object. One that is not fitted has only those of its constructor."""
    held = vars(part)
    parameters = [*signature(type(part)).parameters] if isinstance(part, BaseEstimator) else []
    missing = next((name for name in parameters if name not in held), None)
    lacking = missing_attribute(part)
    if not isinstance(part, BaseEstimator) or not set(held) <= set(parameters):
        missing = missing or lacking
    if missing and type(part).__module__.partition(".")[0] == "refkernel":  # an older scikit-learn may lack a parameter of today's
        return f"{missing} is missing"
    sizes: dict[str, int] = {}
    for name, rule in {**FEATURES, **rules_of(type(part))}.items():
        if name in held and (problem := rule.problem(held[name], sizes)):
            return f"{name} {problem}"
    across = getattr(type(part), "_file_problem", None)
    return across(part, sizes) if across and not lacking else None


def _steps_problem(steps: Any) -> str | None:
    is_list = isinstance(steps, list) and steps and all(isinstance(step, tuple | list) and len(step) == 2 for step in steps)
    fits = is_list and all(step in (None, "passthrough") or hasattr(step, "transform") for _, step in steps[:-1])
    return None if fits else "steps is not a list of names, transformers and a last estimator"


def _encoder_problem(encoder: OneHotEncoder) -> str | None:
    """A OneHotEncoder writes columns by private indices without checking, and shows them nowhere: the columns must exist."""
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
