"""Forged model files: every attribute of every saved object, in a dozen ways, is refused with a message, or the model works.

What a stranger's file may not do is crash the interpreter, hang, ask for terabytes, or give a model that fails with a traceback from inside
when it is shown, scores, explains or is converted. The ordinary suite tries a sample; ``REFKERNEL_FORGE=all`` tries everything.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections import Counter

import numpy as np
import pytest

import refkernel as rk
from refkernel.exceptions import ModelFileError
from refkernel.export.checks import check_model, parts
from saved_models import MODELS, answers, fitted, new_rows

pytest.importorskip("skops")

ALL = os.environ.get("REFKERNEL_FORGE") == "all"

SHARE = 1.0 if ALL else 0.03
"""The share of the forged attributes that are tried."""

GAPS = ("(Pipeline): deleted",)
"""A pipeline that lacks a parameter fails where it is shown: files of an older scikit-learn may lack one, and go on scoring."""

HUGE = 2**40


class Deleted:
    """Stands for an attribute that is not there."""


def forged(value):
    """A dozen other values for one."""
    yield "deleted", Deleted
    yield "None", None
    yield "text", "x"
    yield "number", -1.5
    yield "2^40", HUGE
    yield "empty list", []
    yield "NaN", float("nan")
    if isinstance(value, np.ndarray):
        yield "no axis", np.zeros((), dtype=value.dtype if value.dtype != object else float)
        yield "empty", np.empty((0,) * max(value.ndim, 1))
        yield "one more axis", value[None]
        yield "longer", np.concatenate([value, value]) if value.ndim else value
        yield "shorter", value[:-1] if value.ndim else value
        if value.dtype.kind == "f":
            yield "integers", np.zeros(value.shape, dtype=np.int64)
            yield "NaN inside", np.where(np.arange(value.size).reshape(value.shape) == 0, np.nan, value)
            yield "minus", -value
            yield "zeros", np.zeros_like(value)
            yield "huge values", np.full_like(value, 0.1 * np.finfo(value.dtype).max)
            yield "complex", value.astype(complex)
            yield "single", value.astype(np.float32)
        elif value.dtype.kind in "iu":
            yield "floats", value.astype(float)
            yield "minus", -value - 2
            yield "beyond", value.astype(np.int64) + HUGE
        elif value.dtype.kind == "b":
            yield "inverted", ~value
            yield "floats", value.astype(float)
    elif isinstance(value, bool):
        yield "inverted", not value
    elif isinstance(value, int | float | np.number):
        yield "zero", type(value)(0)
        yield "minus", -value
        yield "infinite", float("inf")
        yield "array", np.zeros(3)
    elif isinstance(value, list | tuple):
        yield "longer", type(value)([*value, *value])
        yield "shorter", type(value)([*value][:-1])
        yield "other items", type(value)([7] * len(value))
    elif isinstance(value, str):
        yield "another text", value + "x"
    elif isinstance(value, dict):
        yield "empty dict", {}
    else:
        yield "another object", rk.RBF(sigma=1.0)


def places(model):
    """(object, name of its attribute) of everything of this package and of what it holds in a model."""
    for name, part in parts(model):
        if hasattr(part, "__dict__") and not isinstance(part, type):
            for attribute in sorted(vars(part)):
                yield name, part, attribute


def outcome(model, metadata, X):
    """What becomes of a forged model: refused, works, says why not, or a traceback from inside."""
    try:
        check_model("model.rk", model, metadata)
    except ModelFileError:
        return "refused", ""
    except Exception as error:  # ``load`` calls it damaged or forged, as it does with everything that goes wrong while it reads
        return "refused", f"{type(error).__name__}"
    said = ""
    for use in (repr, lambda model: answers(model, X), _predicted(X), _explained(X), _converted):
        try:
            use(model)
        except (ValueError, TypeError) as error:
            if _is_from_inside(error):
                return "fails inside", "".join(traceback.format_exception(error)[-2:])
            said = str(error)
        except Exception as error:
            return "fails inside", "".join(traceback.format_exception(error)[-2:])
    return ("says why", said) if said else ("works", "")


def _is_from_inside(error):
    """Whether the last frame is not a check of ours: messages that are written for users are raised by a ``raise`` in this package."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return not (
        ("refkernel" in frame.filename or "saved_models" in frame.filename or "sklearn" in frame.filename) and "raise" in (frame.line or "")
    )


def _predicted(X):
    return lambda model: model.predict(X) if hasattr(model, "predict") else None


def _explained(X):
    return lambda model: rk.explain(model, X) if hasattr(model, "score_samples") else None


def _converted(model):
    return rk.to_onnx(model) if ALL and hasattr(model, "predict") else None


def cases(model, rng):
    """(what is forged, outcome, detail) for a sample of the forged attributes; the model is as before after each of them."""
    metadata = {"versions": {"refkernel": rk.__version__}, "n_features_in": getattr(model, "n_features_in_", None)}
    X = new_rows(model)
    saved = {id(part): (part, dict(vars(part))) for _, part, _ in places(model)}
    for name, part, attribute in list(places(model)):
        for way, value in forged(vars(part)[attribute]):
            if rng.random() >= SHARE or (not ALL and way == "single"):  # numba compiles for another type
                continue
            if value is Deleted:
                del vars(part)[attribute]
            else:
                vars(part)[attribute] = value
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    found, detail = outcome(model, metadata, X)
            finally:
                for changed, held in saved.values():  # what was computed from forged attributes goes too
                    vars(changed).clear()
                    vars(changed).update(held)
            yield f"{name}.{attribute} ({type(part).__name__}): {way}", found, detail


@pytest.mark.parametrize("name", MODELS)
def test_a_forged_attribute_is_refused_or_does_no_harm(name, tmp_path):
    """Counted by outcome; what fails inside is listed."""
    model = rk.load(rk.save(fitted(name), tmp_path / "model.rk"))  # nothing but what a file holds
    before = answers(fitted(name), new_rows(model))
    counts, failures = Counter(), []
    for case, found, detail in cases(model, np.random.default_rng(len(name))):
        counts[found] += 1
        if found == "fails inside" and not any(gap in case for gap in GAPS):
            failures.append(f"{case}\n{detail}")
    np.testing.assert_array_equal(answers(model, new_rows(model)), before)
    print(name, dict(counts))
    assert not failures, f"{len(failures)} of {sum(counts.values())}:\n" + "\n".join(failures[:20])
