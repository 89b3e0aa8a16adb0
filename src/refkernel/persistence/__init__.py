"""Model files that are safe to open: ``save``, ``load`` and ``read_about``.

A model file is a zip archive in the format of skops, which rebuilds objects from plain data. Two things are added: the entry
``refkernel.json`` says what the model is and what made it, and the archive's comment ends in the SHA-256 of all bytes before it, so that
no changed byte goes unnoticed. The checksum finds damage. Against forgery there are size limits (``sealed``), closed lists of what may be
rebuilt (``known``, ``schema``) and checks that the arrays fit together (``checks``). SECURITY.md states the promises.

Needs the extra ``save`` (skops).
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import isclass
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from .._files import replacing
from .._typing import StrPath
from ..exceptions import ModelFileError, printable
from .checks import check_model
from .description import FORMAT, description
from .known import INTERNAL_TYPES, known_types
from .schema import check_schema, nodes, unknown_names, with_current_names
from .sealed import ABOUT_ENTRY, SCHEMA_ENTRY, SealedFile, reading, seal

__all__ = ["INTERNAL_TYPES", "ModelFileError", "SavedModel", "known_types", "load", "open_model", "read_about", "save"]


@dataclass(frozen=True)
class SavedModel:
    """A model, and what its file says about it.

    Parameters
    ----------
    model : estimator
        The model.
    metadata : dict
        As :func:`read_about` returns it.

    Examples
    --------
    >>> import tempfile, numpy as np, refkernel as rk
    >>> from refkernel.persistence import open_model
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = rk.save(rk.SVDD().fit(np.eye(3)), f"{folder.name}/model.rk")
    >>> open_model(path).metadata["model"]
    'refkernel.svdd.SVDD'
    >>> folder.cleanup()
    """

    model: Any
    metadata: dict[str, Any]


def save(model: BaseEstimator, path: StrPath, *, about: dict[str, Any] | None = None) -> Path:
    """Write a fitted estimator or pipeline to a file, whole or not at all.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package or of scikit-learn, or a pipeline or search made of them.
    path : path
        The file to write; one that exists is replaced.
    about : dict, optional
        Anything to keep with the model, as plain JSON: strings, numbers, booleans, None, lists, and dicts with string keys.

    Returns
    -------
    Path
        The file.

    Notes
    -----
    A model that uses your own function or class as a kernel or scorer can be saved if that is defined at the top level of a module, where
    it can be found again by its name. ``load`` needs the name in ``trusted``.

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
        archive = ZipFile(io.BytesIO(skops_io.dumps(model)))
    except Exception as error:
        raise ModelFileError(f"This {type(model).__name__} holds something that cannot be saved: {error}") from error
    schema = json.loads(archive.read(SCHEMA_ENTRY))
    other_types = unknown_names(schema)
    _check_can_be_found(schema, other_types)
    metadata = {"format": FORMAT, "package": "refkernel", **description(model), "other_types": other_types, "about": about}
    entries = ((name, archive.read(name)) for name in archive.namelist())
    with replacing(path, "The model") as temporary, open(temporary, "x+b") as file:
        seal(file, chain(entries, [(ABOUT_ENTRY, json.dumps(metadata, indent=1).encode())]))
    return Path(path)


def load(path: StrPath, *, trusted: Sequence[str] = (), max_bytes: int | None = None) -> Any:
    """Rebuild the model from a file that ``save`` wrote. No code from the file runs.

    Parameters
    ----------
    path : path
        The file.
    trusted : list of str
        Full names ("module.Name") of types and functions to accept besides those that :func:`known_types` lists. They are imported and may
        be called: list only what you trust.
    max_bytes : int, optional
        Accept contents up to this size. By default 2 GB, and above 64 MB no more than 20 times the size of the file.

    Returns
    -------
    estimator
        The model; its results are those of the saved one, bit for bit, with the same versions of the libraries.

    Raises
    ------
    ModelFileError
        If the file does not exist, is damaged, is not a model file, is too new or too large, or holds types that are not known to be safe.

    Warns
    -----
    UserWarning
        If the file was saved with another version of scikit-learn.

    Examples
    --------
    >>> import tempfile, numpy as np, refkernel as rk
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = rk.save(rk.AutoDetector().fit(np.random.default_rng(0).normal(size=(50, 2))), f"{folder.name}/model.rk")
    >>> rk.load(path).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    >>> folder.cleanup()
    """
    return open_model(path, trusted=trusted, max_bytes=max_bytes).model


def open_model(path: StrPath, *, trusted: Sequence[str] = (), max_bytes: int | None = None) -> SavedModel:
    """Load a model and its metadata, reading the file once.

    Parameters
    ----------
    path : path
        The file.
    trusted : list of str
        As for :func:`load`.
    max_bytes : int, optional
        As for :func:`load`.

    Returns
    -------
    SavedModel
        ``model`` and ``metadata``.

    Examples
    --------
    >>> import tempfile, numpy as np, refkernel as rk
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = rk.save(rk.SVDD().fit(np.eye(3)), f"{folder.name}/model.rk")
    >>> rk.persistence.open_model(path).model
    SVDD()
    >>> folder.cleanup()
    """
    skops_io = _skops_io()
    trusted_names = _checked_names(trusted)
    file = SealedFile(Path(path), max_bytes)
    with reading(file.path):
        entries = file.entries()
        schema = with_current_names(json.loads(entries[SCHEMA_ENTRY]))
        names = check_schema(file.path, schema, entries, file.limit, trusted_names)
    _warn_of_other_version(file.path, file.metadata["versions"].get("scikit-learn"))
    with reading(file.path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)  # reported above, once, without quoting the file
            model = skops_io.loads(_archive(entries | {SCHEMA_ENTRY: json.dumps(schema).encode()}), trusted=names)
        check_model(file.path, model, file.metadata)
    return SavedModel(model, file.metadata)


def read_about(path: StrPath, *, max_bytes: int | None = None) -> dict[str, Any]:
    """Read what a model file says about itself, without building the model.

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
        and ``feature_names_in`` (None if the model has none), ``other_types`` (the names that ``load`` needs in ``trusted``), and the
        user's ``about``. All of this is what the file claims; nothing proves it.

    Examples
    --------
    >>> import tempfile, numpy as np, refkernel as rk
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = rk.save(rk.SVDD().fit(np.eye(3)), f"{folder.name}/model.rk", about={"source": "sensor 7"})
    >>> facts = rk.read_about(path)
    >>> facts["model"], facts["n_features_in"], facts["about"]
    ('refkernel.svdd.SVDD', 3, {'source': 'sensor 7'})
    >>> folder.cleanup()
    """
    return SealedFile(Path(path), max_bytes).metadata


def _skops_io() -> ModuleType:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError('Model files need skops: pip install "refkernel[save]".') from error
    return skops.io


def _checked_about(about: dict[str, Any] | None) -> dict[str, Any]:
    """The user's dict, after checking that a round trip through JSON does not change it."""
    about = {} if about is None else about
    try:
        is_plain = isinstance(about, dict) and json.loads(json.dumps(about, allow_nan=False)) == about
    except (TypeError, ValueError):
        is_plain = False
    if not is_plain:
        raise ValueError(
            f"about={about!r} is not plain JSON: pass a dict of strings, finite numbers, booleans, None, lists and dicts, with string "
            "keys (no tuples, arrays or dates)."
        )
    return about


def _checked_names(trusted: Sequence[str]) -> set[str]:
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(f'trusted={trusted!r} must be a list of full names, such as ["module.Name"].')
    return set(trusted)


def _check_can_be_found(schema: Any, names: list[str]) -> None:
    """Raise unless every function and class of the user can be found by its name: the file stores nothing else about it."""
    for node in nodes(schema):
        module, name = node["__module__"], node["__class__"]
        if f"{module}.{name}" in names and not _is_found(node, module, name):
            raise ModelFileError(
                f"{module}.{name} cannot be saved with the model: the file stores only its name, and importing that does not give it back. "
                "Define it at the top level of a module (not in a script, notebook or function, and not as a lambda), preferably as a "
                'subclass of refkernel.kernels.Kernel if it is a kernel. Fit again, save, and load with trusted=["module.Name"].'
            )


def _is_found(node: dict[str, Any], module: str, name: str) -> bool:
    found = getattr(sys.modules.get(module), name, None)
    if module == "__main__":  # a different module in every process
        return False
    return id(found) == node["__id__"] if node["__loader__"] in ("FunctionNode", "TypeNode") else isclass(found)


def _warn_of_other_version(path: Path, made_with: str | None) -> None:
    if made_with != sklearn.__version__:
        warnings.warn(
            f"{path} was saved with scikit-learn {printable(str(made_with))}, but {sklearn.__version__} is installed: results may differ. "
            "Check them and save the model again, or fit it again.",
            UserWarning,
            stacklevel=4,
        )


def _archive(entries: dict[str, bytes]) -> bytes:
    """The entries as an archive for skops. It is written anew, so that no declared size differs from the content."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def __dir__() -> list[str]:
    return __all__
