"""Model files that are safe to open: ``save``, ``load`` and ``read_about``.

A model file is a zip archive in the format of skops, which rebuilds objects from plain data and runs no code of the file. Two things
are added. The entry ``refkernel.json`` says what the model is and what made it. The archive's comment ends in the SHA-256 of all
bytes before it, so that no changed byte goes unseen. The checksum finds damage; against forgery there is the list of known types.

Needs the extra ``save`` (skops).
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import platform
import sys
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, is_zipfile

import scipy.sparse as sp
import sklearn.model_selection
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils.validation import check_is_fitted

from . import metrics
from ._factor import Factor
from ._validation import check_positive
from .exceptions import ModelFileError

FORMAT = 1
"""The format that ``save`` writes, and the newest that ``load`` reads."""

ABOUT_ENTRY = "refkernel.json"
SCHEMA_ENTRY = "schema.json"

MARK = b"refkernel sha256 "
DIGEST_SIZE = 64
"""The archive's comment is the mark and this many hexadecimal digits. Later formats keep this, so that damage is told from novelty."""

MAX_BYTES = 2**31
"""A model of 250 million numbers: beyond it a file is more likely wrong than large."""

MAX_SCHEMA_BYTES = 2**27
"""The schema, which describes the objects, is opened whole, at up to 20 times its size. That of a search of 10 000 candidates has 23 MB."""

SMALL_BYTES = 2**26
MAX_RATIO = 100
"""Beyond 64 MB, contents may be this many times larger than the file. The schema of a search shrinks to a fiftieth;
zeros, to a thousandth."""

OWN_OTHERS = (Factor, metrics.gmean_score, metrics.tpr_at_tnr_score)
"""What models of this package hold besides estimators, kernels and strategies."""

INTERNAL_TYPES = frozenset(
    {"numpy.dtype", "sklearn.metrics._scorer._PassthroughScorer", "sklearn.compose._column_transformer._RemainderColsList"}
)
"""Types of the libraries that no public name leads to, or not by the name that skops gives them."""

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "skops")


def save(model, path, *, about=None) -> Path:
    """Write a fitted estimator or pipeline to a file, whole or not at all.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package or of scikit-learn, or a pipeline or search of such.
    path : path
        The file to write; one that exists is replaced.
    about : dict, optional
        Anything to keep with the model that is plain JSON: strings, numbers, booleans, None, lists and dicts with strings as keys.

    Returns
    -------
    Path
        The file.

    Notes
    -----
    A model whose kernel or scoring is a function or a class of your own can be saved if that is at the top level of a module, where it is
    found again by its name. ``load`` asks for its name in ``trusted``.

    Examples
    --------
    >>> import tempfile, numpy as np, refkernel as rk
    >>> from refkernel.persistence import load, read_about, save
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = save(rk.SVDD().fit(X), f"{folder.name}/model.rk", about={"source": "sensor 7"})
    >>> load(path).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    >>> read_about(path)["about"]
    {'source': 'sensor 7'}
    >>> folder.cleanup()
    """
    skops_io = _skops_io()
    check_is_fitted(model)
    about = _checked_about(about)
    try:
        data = skops_io.dumps(model)
    except Exception as error:
        raise ModelFileError(f"This {type(model).__name__} holds something that cannot be saved: {error}") from error
    other_types = sorted(set(skops_io.get_untrusted_types(data=data)) - known_types())
    _check_can_be_found(data, other_types)
    metadata = {"format": FORMAT, "package": "refkernel", **_description(model), "other_types": other_types, "about": about}
    return _write_whole(Path(path), _sealed(data, metadata))


def load(path, *, trusted: Sequence[str] = (), max_bytes: int | None = None) -> Any:
    """Rebuild the model of a file that ``save`` has written. No code of the file runs.

    Parameters
    ----------
    path : path
        The file.
    trusted : list of str
        Full names ("module.Name") of types and functions to accept besides those of this package, scikit-learn, NumPy and SciPy. They are
        imported, and may be called: list only what you know.
    max_bytes : int, optional
        Accept contents up to this size. By default 2 GB, and above 64 MB no more than 100 times the size of the file.

    Returns
    -------
    estimator
        The model; its results are those of the saved one, bit for bit, with the same versions of the libraries.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, not a model file, too new, too large, or holds types that are not known to be safe.

    Warns
    -----
    UserWarning
        If another version of scikit-learn made the file.
    """
    skops_io = _skops_io()
    trusted_names = _checked_names(trusted)
    path, data = Path(path), _read(Path(path), max_bytes)
    with _damage(path), ZipFile(io.BytesIO(data)) as archive:
        metadata = _metadata(path, archive)
        _check_schema(path, archive, _limit(len(data), max_bytes), max_bytes or MAX_SCHEMA_BYTES)
    accepted = known_types() | trusted_names
    with _damage(path):
        unknown = sorted(set(skops_io.get_untrusted_types(data=data)) - accepted)
    if unknown:
        raise ModelFileError(
            f"{path} holds {', '.join(unknown)}, which this package does not know to be safe. The file may be malicious: nothing of it was "
            f"run. If you know who made it and that these belong to the model, use load(path, trusted={unknown!r})."
        )
    _warn_of_other_version(path, metadata["versions"].get("scikit-learn"))
    with _damage(path):
        return skops_io.loads(data, trusted=sorted(accepted))


def read_about(path, *, max_bytes: int | None = None) -> dict[str, Any]:
    """What a model file says about itself, without building the model.

    Parameters
    ----------
    path : path
        The file.
    max_bytes : int, optional
        As for :func:`load`.

    Returns
    -------
    dict
        ``format``, ``package``, ``versions`` (of python and the libraries), ``created`` (UTC), ``model`` (its class), ``n_features_in``
        and ``feature_names_in`` (None where the model has none), ``other_types`` (what ``load`` wants in ``trusted``), and the user's
        ``about``. All of it is what the file claims.
    """
    path, data = Path(path), _read(Path(path), max_bytes)
    with _damage(path), ZipFile(io.BytesIO(data)) as archive:
        return _metadata(path, archive)


def known_types() -> frozenset[str]:
    """Full names of what a model may hold besides the types that skops itself knows: nothing that does anything when it is built."""
    modules = [(name, module) for name, module in list(sys.modules.items()) if name.partition(".")[0] == "refkernel"]
    own = {f"{module}.{name}" for module, found in modules for name, value in vars(found).items() if _is_own(value)}
    return _library_types() | own


def _is_own(value) -> bool:
    """Whether this is an estimator, kernel or strategy of this package, whose constructors only store, or one of OWN_OTHERS."""
    if any(value is other for other in OWN_OTHERS):
        return True
    return inspect.isclass(value) and issubclass(value, BaseEstimator) and value.__module__.partition(".")[0] == "refkernel"


@cache
def _library_types() -> frozenset[str]:
    """The same of scikit-learn, NumPy and SciPy: splitters, scorers, column selectors, sparse matrices, dtypes."""
    splitters = [value for value in vars(sklearn.model_selection).values() if inspect.isclass(value) and hasattr(value, "split")]
    scorers = [get_scorer(name) for name in get_scorer_names()]
    scoring = [type(scorer) for scorer in scorers] + [scorer._score_func for scorer in scorers]
    sparse = [value for value in vars(sp).values() if inspect.isclass(value) and issubclass(value, sp.spmatrix | sp.sparray)]
    named = [*splitters, *scoring, *sparse, make_column_selector]
    return frozenset({f"{value.__module__}.{value.__name__}" for value in named} | INTERNAL_TYPES)


def _skops_io():
    try:
        import skops.io
    except ImportError as error:
        raise ImportError('Model files need skops: pip install "refkernel[save]".') from error
    return skops.io


def _checked_about(about) -> dict:
    """The user's dict, if it comes back from JSON as it is."""
    about = {} if about is None else about
    try:
        is_plain = isinstance(about, dict) and json.loads(json.dumps(about, allow_nan=False)) == about
    except (TypeError, ValueError):
        is_plain = False
    if not is_plain:
        raise ValueError(
            f"about={about!r} is not plain JSON: pass a dict of strings, finite numbers, booleans, None, lists and dicts, with strings as "
            "keys (no tuples, arrays or dates)."
        )
    return about


def _checked_names(trusted) -> set[str]:
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(f'trusted={trusted!r} must be a list of full names, such as ["module.Name"].')
    return set(trusted)


def _description(model) -> dict[str, Any]:
    from . import __version__  # not there yet while the package is being imported

    names = getattr(model, "feature_names_in_", None)
    n_features = getattr(model, "n_features_in_", None)
    return {
        "versions": {"python": platform.python_version(), "refkernel": __version__, **{name: version(name) for name in PACKAGES}},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": f"{type(model).__module__}.{type(model).__qualname__}",
        "n_features_in": None if n_features is None else int(n_features),
        "feature_names_in": None if names is None else [str(name) for name in names],
    }


def _check_can_be_found(data, names) -> None:
    """Every function and class of the user must be what its name finds in its module: the file holds no more than the name."""
    with ZipFile(io.BytesIO(data)) as archive:
        nodes = list(_nodes(json.loads(archive.read(SCHEMA_ENTRY))))
    for node in nodes:
        module, name = node["__module__"], node["__class__"]
        if f"{module}.{name}" in names and not _is_found(node, module, name):
            raise ModelFileError(
                f"{module}.{name} cannot be saved with the model: the file keeps only its name, and by that name it cannot be found again. "
                "Define it at the top level of a module of its own (not in a script, notebook or function, and no lambda), best as a "
                'subclass of refkernel.kernels.Kernel if it is a kernel, fit again, and load with trusted=["module.Name"].'
            )


def _is_found(node, module, name) -> bool:
    found = getattr(sys.modules.get(module), name, None)
    if module == "__main__":  # another one in every session
        return False
    return id(found) == node["__id__"] if node["__loader__"] in ("FunctionNode", "TypeNode") else inspect.isclass(found)


def _nodes(state) -> Iterator[dict]:
    """The descriptions of all objects in a schema."""
    waiting = [state]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "__loader__" in value:
                yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _sealed(data, metadata) -> bytes:
    """The archive with its metadata, and a comment that ends in the digest of all that is before."""
    buffer = io.BytesIO()
    with ZipFile(io.BytesIO(data)) as model, ZipFile(buffer, "w") as archive:
        for entry in model.namelist():  # numbers hardly shrink; the schema does, to a fiftieth
            archive.writestr(entry, model.read(entry), ZIP_DEFLATED if entry == SCHEMA_ENTRY else ZIP_STORED)
        archive.writestr(ABOUT_ENTRY, json.dumps(metadata, indent=1))
        archive.comment = MARK + bytes(DIGEST_SIZE)
    body = buffer.getvalue()[:-DIGEST_SIZE]
    return body + _digest(body)


def _digest(body) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _write_whole(path, data) -> Path:
    """Write beside the file and then take its place, so that nobody ever meets a half."""
    beside = path.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        with open(beside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise OSError(error.errno, f"The model was not saved: {error.strerror}", str(path)) from error
    finally:
        with suppress(OSError):  # of the first error, or because it has moved
            beside.unlink()
    return path


def _read(path, max_bytes) -> bytes:
    """The bytes of an undamaged model file of a plausible size."""
    if not path.exists():
        raise ModelFileError(f"{path} does not exist (the current folder is {Path.cwd()}).")
    if not path.is_file():
        raise ModelFileError(f"{path} is not a file. Pass the model file itself, as save returned it.")
    if max_bytes is not None:
        check_positive("max_bytes", max_bytes)
    _check_size(path, path.stat().st_size, max_bytes or MAX_BYTES)
    data = path.read_bytes()
    if not data.startswith(b"PK"):
        kind = "looks like a pickle, which could run any code and is never loaded" if data.startswith(b"\x80") else "is no zip archive"
        raise ModelFileError(f"{path} {kind}. Model files are written by refkernel.save; save the model again with it.")
    _check_seal(path, data)
    with _damage(path), ZipFile(io.BytesIO(data)) as archive:
        _check_size(path, _unpacked_size(path, archive), _limit(len(data), max_bytes))
    return data


def _check_seal(path, data) -> None:
    if data[:-DIGEST_SIZE].endswith(MARK) and _digest(data[:-DIGEST_SIZE]) == data[-DIGEST_SIZE:]:
        return
    with _damage(path):
        names = ZipFile(io.BytesIO(data)).namelist() if is_zipfile(io.BytesIO(data)) else [ABOUT_ENTRY]
    if ABOUT_ENTRY in names:
        raise ModelFileError(f"{path} is damaged: it is cut short, or bytes of it have changed (its checksum is wrong). Copy it again.")
    if SCHEMA_ENTRY in names:
        raise ModelFileError(
            f"{path} is a skops file, but none of refkernel.save. Load it with skops.io.load, and save it again with this."
        )
    raise ModelFileError(f"{path} is a zip archive, but no model file: it has no {ABOUT_ENTRY}. Model files are written by refkernel.save.")


def _limit(size, max_bytes) -> int:
    """The size up to which the contents of a file of this size are unpacked."""
    return max_bytes or min(MAX_BYTES, max(SMALL_BYTES, MAX_RATIO * size))


def _check_size(path, size, limit, what="contents") -> None:
    if size > limit:
        raise ModelFileError(
            f"The {what} of {path} would take {size:,} bytes, and no more than {limit:,} are expected: the file may be made to exhaust the "
            f"memory. If you know who made it, pass max_bytes={size}."
        )


def _unpacked_size(path, archive) -> int:
    """The sum of the declared sizes, which zipfile never exceeds for these methods of compression."""
    entries = archive.infolist()
    if any(entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for entry in entries):
        raise ModelFileError(f"{path} is compressed in a way that refkernel.save never uses. The file may be malicious.")
    return sum(entry.file_size for entry in entries)


def _metadata(path, archive) -> dict[str, Any]:
    metadata = json.loads(archive.read(ABOUT_ENTRY))
    number, versions = metadata["format"], dict(metadata["versions"])
    if number > FORMAT:
        raise ModelFileError(
            f"{path} was made by refkernel {versions.get('refkernel')}, format {number}; this version reads formats up to {FORMAT}: "
            "upgrade refkernel."
        )
    return metadata


def _check_schema(path, archive, limit, schema_limit) -> None:
    """A small schema can ask for much: the same entry many times, archives inside, objects that hold each other over and over."""
    _check_size(path, archive.getinfo(SCHEMA_ENTRY).file_size, schema_limit, "schema")
    schema = json.loads(archive.read(SCHEMA_ENTRY))
    _check_size(path, _read_size(path, archive, _nodes(schema)), limit)
    _count_nodes(path, schema, {})


def _read_size(path, archive, nodes) -> int:
    """The bytes that the nodes read; those of one id share what they read."""
    shared: dict[Any, int] = {}
    alone = 0
    for node in nodes:
        if "file" in node:
            size, number = _array_size(path, archive, node["file"]), node.get("__id__")
            if number:
                shared[number] = max(size, shared.get(number, 0))
            else:
                alone += size
    return alone + sum(shared.values())


def _array_size(path, archive, entry) -> int:
    """The size of an entry; for sparse matrices, which are archives themselves, that of the arrays in it."""
    with archive.open(entry) as file:
        if file.read(2) != b"PK":
            return archive.getinfo(entry).file_size
    with ZipFile(io.BytesIO(archive.read(entry))) as arrays:
        return archive.getinfo(entry).file_size + _unpacked_size(path, arrays)


def _count_nodes(path, state, counts) -> int:
    """The nodes in a state. Of those with one id, skops takes the first for all: if all are as large, its walk is as short as this one."""
    if isinstance(state, list):
        return sum(_count_nodes(path, value, counts) for value in state)
    if not isinstance(state, dict):
        return 0
    is_node = "__loader__" in state
    count = is_node + sum(_count_nodes(path, value, counts) for value in state.values())
    if is_node and counts.setdefault(state.get("__id__") or id(state), count) != count:
        raise ModelFileError(f"{path} describes one object in two ways, as a file made to exhaust the memory would. It may be malicious.")
    return count


def _warn_of_other_version(path, made_with) -> None:
    if made_with != sklearn.__version__:
        warnings.warn(
            f"{path} was made with scikit-learn {made_with}, and this is {sklearn.__version__}: results may differ. Check "
            "them and save the model again, or fit it anew.",
            UserWarning,
            stacklevel=3,
        )


@contextmanager
def _damage(path):
    """Whatever goes wrong inside a file that another program has written, or forged, is told in one way."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{path} cannot be read as a model ({type(error).__name__}: {error}). It is damaged or forged, or needs another version of "
            "skops or scikit-learn: see refkernel.persistence.read_about(path)."
        ) from error
