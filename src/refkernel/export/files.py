"""Model files that are safe to open: ``save``, ``load`` and ``read_about``.

A model file is a zip archive in the format of skops, which rebuilds objects from plain data. Two things are added: the entry
``refkernel.json`` says what the model is and what made it, and the archive's comment ends in the SHA-256 of all bytes before it, so that
no changed byte goes unnoticed. The checksum finds damage. Against forgery there are size limits (``sealed``), closed lists of what may be
rebuilt (``known``, ``schema``) and checks that the arrays fit together (``checks``). SECURITY.md states the promises.

Needs the extra ``save`` (skops).
"""

import io
import json
import re
import sys
import warnings
from collections.abc import Sequence
from inspect import isclass
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from zipfile import ZipFile

import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from .._core.files import replacing
from .._core.types import StrPath
from ..exceptions import ModelFileError, _printable
from .checks import check_model
from .known import known_types
from .schema import check_schema, nodes, unknown_names
from .sealed import ABOUT_ENTRY, FORMAT, SCHEMA_ENTRY, SealedFile, description, reading, seal

__all__ = ["ModelFileError", "known_types", "load", "read_about", "save"]
__dir__ = __all__.copy


class SavedModel(NamedTuple):
    """A model, and what its file says about it, as :func:`read_about` returns it."""

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
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = rk.save(rk.SVDD().fit(X), f"{folder}/model.rk", about={"source": "sensor 7"})
    ...     rk.load(path).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """
    skops_io = _skops_io()
    if hasattr(model, "fit") or not isinstance(model, BaseEstimator):  # a Monitor is not fitted
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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rk.load(rk.save(rk.SVDD().fit(np.eye(3)), f"{folder}/model.rk"))
    SVDD()
    """
    return open_model(path, trusted=trusted, max_bytes=max_bytes).model


def open_model(path: StrPath, *, trusted: Sequence[str] = (), max_bytes: int | None = None) -> SavedModel:
    """Load a model and its metadata as :func:`load` does, reading the file once."""
    skops_io = _skops_io()
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(f'trusted={trusted!r} must be a list of full names, such as ["module.Name"].')
    file = SealedFile(Path(path), max_bytes)
    try:
        return SavedModel(_built(file, skops_io, set(trusted)), file.metadata)
    except ModelFileError as error:
        from .. import __version__

        made_by = str(file.metadata["versions"].get("refkernel", ""))
        if _release(made_by) == _release(__version__):
            raise
        if _release(made_by) < _release(__version__):
            older = f"It was saved by refkernel {_printable(made_by)}, which is older than this one and may have had other classes"
            raise ModelFileError(f"{error} {older}: load it with that version, or fit the model again.") from error
        raise ModelFileError(
            f"{file.path} was saved by refkernel {_printable(made_by)}, which is newer than this one, and holds a model that this version "
            "cannot load. Upgrade refkernel."
        ) from error


def _release(text: str) -> tuple[int, ...]:
    """(1, 2, 3) of "1.2.3.dev4": development versions count as their release."""
    return tuple(int(number) for number in re.match(r"(\d{1,9}\.)*\d{0,9}", text).group().split(".") if number)  # type: ignore[union-attr]


def _built(file: SealedFile, skops_io: ModuleType, trusted: set[str]) -> Any:
    """The model of a file, after all checks."""
    with reading(file.path):
        entries = file.entries()
        schema = json.loads(entries[SCHEMA_ENTRY])
        names = check_schema(file.path, schema, entries, file.limit, trusted)
    made_with = file.metadata["versions"].get("scikit-learn")
    if made_with != sklearn.__version__:
        warnings.warn(
            f"{file.path} was saved with scikit-learn {_printable(str(made_with))}, but {sklearn.__version__} is installed: results may "
            "differ. Check them and save the model again, or fit it again.",
            UserWarning,
            stacklevel=4,
        )
    with reading(file.path):
        buffer = io.BytesIO()  # an archive for skops, written anew, so that no declared size differs from the content
        with ZipFile(buffer, "w") as archive:
            for name, content in entries.items():
                archive.writestr(name, content)
        with warnings.catch_warnings(action="ignore", category=InconsistentVersionWarning):  # reported above, without quoting the file
            model = skops_io.loads(buffer.getvalue(), trusted=names)
        check_model(file.path, model, file.metadata)
    return model


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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = rk.save(rk.SVDD().fit(np.eye(3)), f"{folder}/model.rk", about={"source": "sensor 7"})
    ...     rk.read_about(path)["about"]
    {'source': 'sensor 7'}
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


def _check_can_be_found(schema: Any, names: list[str]) -> None:
    """Raise unless every function and class of the user can be found by its name: the file stores nothing else about it."""
    for node in nodes(schema):
        module, name = node["__module__"], node["__class__"]
        found = getattr(sys.modules.get(module), name, None)
        is_found = id(found) == node["__id__"] if node["__loader__"] in ("FunctionNode", "TypeNode") else isclass(found)
        if f"{module}.{name}" in names and (module == "__main__" or not is_found):  # __main__ is a different module in every process
            raise ModelFileError(
                f"{module}.{name} cannot be saved with the model: the file stores only its name, and importing that does not give it back. "
                "Define it at the top level of a module (not in a script, notebook or function, and not as a lambda), preferably as a "
                'subclass of refkernel.kernels.Kernel if it is a kernel. Fit again, save, and load with trusted=["module.Name"].'
            )
