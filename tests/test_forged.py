"""Forged model files: every attribute of every saved object, in two dozen ways, is refused with a message, or the model works.

What a stranger's file may not do is crash the interpreter, hang, ask for terabytes, or give a model that fails with a traceback from inside
when it is shown, scores, explains or is converted. Each case runs in a process of its own, with limits.
The ordinary suite tries a sample; ``REFKERNEL_FORGE=all`` tries everything.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

import refkernel as rk
from refkernel.exceptions import ModelFileError
from refkernel.export.checks import check_model, parts
from saved_models import MODELS, answers, fitted, new_rows

pytest.importorskip("skops")
resource = pytest.importorskip("resource", reason="cases are forked, with limits")

ALL = os.environ.get("REFKERNEL_FORGE") == "all"

SHARE = 1.0 if ALL else 0.015
"""The share of the forged attributes that are tried."""

GAPS = ("(Pipeline): deleted",)
"""A pipeline that lacks a parameter fails where it is shown: files of an older scikit-learn may lack one, and go on scoring."""

HUGE = 2**40

SECONDS, BYTES = 60, 2**33
"""No case takes a tenth of these; what a hang or a request for terabytes exceeds."""


class Deleted:
    """Stands for an attribute that is not there."""


def forged(value):
    """Two dozen other values for one."""
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
            with np.errstate(all="ignore"):
                yield "half", value.astype(np.float16)
            yield "long", value.astype(np.longdouble)
            yield "the other byte order", value.astype(value.dtype.newbyteorder())
            yield "masked", np.ma.masked_array(value, mask=True)
            yield "sparse", sp.csr_array(np.atleast_2d(value)) if value.ndim in (1, 2) else value
        elif value.dtype.kind in "iu":
            yield "floats", value.astype(float)
            yield "minus", -value - 2
            yield "beyond", value.astype(np.int64) + HUGE
            yield "one beyond", np.where(np.arange(value.size).reshape(value.shape) == 1, HUGE, value)
            for kind in ("u1", "u4", "u8", "i1", "i2"):
                with np.errstate(all="ignore"):
                    yield f"{kind} that wraps", np.where(np.arange(value.size).reshape(value.shape) == 1, 2**31 - 1, value).astype(kind)
            yield "the other byte order", value.astype(value.dtype.newbyteorder())
            yield "wide", np.zeros((1, 300_000), dtype=value.dtype)
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
    """(what is forged, outcome, detail) for a sample of the forged attributes; the model stays as it is."""
    for name, part, attribute in list(places(model)):
        for way, value in forged(vars(part)[attribute]):
            if rng.random() >= SHARE or (not ALL and way == "single"):  # numba compiles for another type
                continue
            yield f"{name}.{attribute} ({type(part).__name__}): {way}", *in_a_fork(model, part, attribute, value)


def in_a_fork(model, part, attribute, value):
    """The outcome of one change, or that it crashed: in a process of its own, which changes nothing here."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other threads wait for work; none holds a lock
        child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
            metadata, X = (
                {"versions": {"refkernel": rk.__version__}, "n_features_in": getattr(model, "n_features_in_", None)},
                new_rows(model),
            )
            vars(part).pop(attribute, None)
            if value is not Deleted:
                vars(part)[attribute] = value
            warnings.simplefilter("ignore")
            with np.errstate(all="ignore"):
                found, detail = outcome(model, metadata, X)
            os.write(into, json.dumps([found, detail[-2000:]]).encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as stream:
        said = stream.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(said) if said else ("crashes", f"status {status}: {signal.Signals(os.WTERMSIG(status)).name if status else 'silent'}")


@pytest.mark.parametrize("name", MODELS)
def test_a_forged_attribute_is_refused_or_does_no_harm(name, tmp_path):
    """Counted by outcome; what fails inside is listed."""
    model = rk.load(rk.save(fitted(name), tmp_path / "model.rk"))  # nothing but what a file holds
    counts, failures = Counter(), []
    for case, found, detail in cases(model, np.random.default_rng(len(name))):
        counts[found] += 1
        if found in ("fails inside", "crashes") and not any(gap in case for gap in GAPS):
            failures.append(f"{case}\n{detail}")
    np.testing.assert_array_equal(answers(model, new_rows(model)), answers(fitted(name), new_rows(model)))
    print(name, dict(counts))
    assert not failures, f"{len(failures)} of {sum(counts.values())}:\n" + "\n".join(failures[:20])


HIDDEN = ("_file_problem", "predict", "fit", "__sklearn_tags__", "_near", "name", "is_local", "_file_rules", "__getstate__", "_pairwise")
"""Methods, class attributes and caches: no file of ours has them in an object."""


@pytest.mark.parametrize("name", MODELS)
def test_no_attribute_hides_a_method_or_brings_a_cache(name, tmp_path):
    """An object of this package with an attribute of another name than it keeps is refused, whatever the value."""
    model = rk.load(rk.save(fitted(name), tmp_path / "model.rk"))
    ours = {type(part): part for _, part in parts(model) if type(part).__module__.startswith("refkernel") and vars(part)}
    for part in ours.values():
        for attribute in set(HIDDEN) - set(vars(part)):
            if hasattr(type(part), attribute) or attribute == "_near":
                vars(part)[attribute] = np.sign
                with pytest.raises(ModelFileError, match=attribute):
                    check_model("model.rk", model, {"versions": {}, "n_features_in": None})
                del vars(part)[attribute]


def _automatic(change):
    """An AutoDetector after a change to the first of its views and the references in it."""
    model = rk.AutoDetector().fit(np.random.default_rng(0).normal(size=(60, 3)))
    described = model._model.described_[0]
    change(described.view, described.references)
    return model


def _far(view, references):
    view.start_ = view.start_ + HUGE


def _wraps(view, references):
    view.start_ = np.where(np.arange(view.start_.size) == 1, 2**31 - 1, view.start_).astype(np.uint32)


def _repeats(view, references):
    references.members_ = np.zeros((1, 300_000), dtype=np.int32)


def _is_wide(view, references):
    references.references, references.members_ = 10**6, np.arange(300_000, dtype=np.int32)[None]


@pytest.mark.parametrize("change", [_far, _wraps, _repeats, _is_wide])
def test_a_file_that_would_crash_or_ask_for_terabytes_is_refused(change, tmp_path):
    """Through a real file, in a process that may crash."""
    path = rk.save(_automatic(change), tmp_path / "forged.rk")
    code = f"import refkernel as rk\ntry:\n    rk.load({str(path)!r})\nexcept rk.ModelFileError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    assert "do not fit together" in done.stdout
