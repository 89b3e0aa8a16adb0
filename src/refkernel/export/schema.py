"""The schema of a model file, which describes its objects, and its arrays. All of it is checked before anything is built.

skops rebuilds an object by the kind of its node. Some kinds call what the file names: these are accepted only for names that the reader
trusts, and no name for a kind that it was not listed for. The header of an array must match its bytes.
"""

import io
from collections.abc import Iterator
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from ..exceptions import ModelFileError
from .known import CONTAINERS, functions, objects
from .sealed import check_size, unpack

OLDEST_PROTOCOL = 2  # nodes of older protocols of skops are built by other rules; no version of this package has written them
KINDS = "biufcSU"  # booleans, numbers and texts. Python objects would be pickles; models use no other kinds.
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
SPARSE_FORMATS = ("csr", "csc")
SPARSE_PARTS = frozenset({"data.npy", "indices.npy", "indptr.npy", "shape.npy", "format.npy", "_is_array.npy"})
UNCOMPARED = ("__id__", "file")  # skops gives some objects a new number each time it meets them; their contents are compared instead


def nodes(state: Any) -> Iterator[dict[str, Any]]:
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


def unknown_names(schema: Any) -> list[str]:
    """Full names that are not in the closed lists for the kind of node that holds them."""
    known = CONTAINERS | {"ObjectNode": objects(), "FunctionNode": functions()}
    return sorted({_name(node) for node in nodes(schema) if _name(node) not in known.get(node["__loader__"], ())})


def check_schema(path: Path, schema: Any, entries: dict[str, bytes], limit: int, trusted: set[str]) -> list[str]:
    """Raise unless the objects are safe to build; return the names that building them needs."""
    if type(schema["protocol"]) is not int or schema["protocol"] < OLDEST_PROTOCOL:
        raise ModelFileError(f"{path} uses protocol {schema['protocol']!r} of skops; models use {OLDEST_PROTOCOL} or later.")
    check_size(path, _array_bytes(schema, entries), limit)
    if unknown := sorted(set(unknown_names(schema)) - trusted):
        raise ModelFileError(
            f"{path} holds {', '.join(unknown)}, which this package does not know to be safe. The file may be malicious; nothing in it was "
            f"run. If you know who made it and that these names belong to the model, use load(path, trusted={unknown!r})."
        )
    _check_keys(path, schema, trusted)
    _fingerprint(path, schema, {})
    for entry, kind in {(node["file"], node["__loader__"]) for node in nodes(schema) if "file" in node}:
        if kind == "NdArrayNode":
            _check_array(path, entry, entries[entry])
        elif kind == "SparseMatrixNode":
            _check_sparse(path, entry, entries[entry])
    return sorted({_name(node) for node in nodes(schema)})


def _name(node: dict[str, Any]) -> str:
    """The full name of the type, function or method that a node stands for."""
    name = f"{node['__module__']}.{node['__class__']}"
    return f"{name}.{node['content']['func']}" if node["__loader__"] == "MethodNode" else name


def _check_keys(path: Path, schema: Any, trusted: set[str]) -> None:
    """Raise unless dict keys are converted by types: skops calls what converts them."""
    for node in nodes(schema):
        if node["__loader__"] == "DictNode":
            keys = node["key_types"]
            called = keys["content"] if keys["__loader__"] == "ListNode" else [keys]
            for kind in called:
                if kind["__loader__"] != "TypeNode" and _name(kind) not in trusted:
                    raise ModelFileError(f"{path} would call {_name(kind)} to make the key of a dict. The file may be malicious.")
        if node["__loader__"] == "DTypeNode" and node["content"]["__loader__"] != "NdArrayNode":
            raise ModelFileError(f"{path} builds a dtype from {_name(node['content'])}. The file may be malicious.")


def _fingerprint(path: Path, state: Any, seen: dict[Any, bytes]) -> bytes:
    """A digest of a state. skops builds only the first of the nodes that share an id, so they must all be equal."""
    if isinstance(state, dict):
        parts = [part for key in sorted(state) if key not in UNCOMPARED for part in (key.encode(), _fingerprint(path, state[key], seen))]
    elif isinstance(state, list):
        parts = [_fingerprint(path, value, seen) for value in state]
    else:
        parts = [repr(state).encode()]
    digest = blake2b(digest_size=16)
    for part in (type(state).__name__.encode(), *parts):
        digest.update(len(part).to_bytes(8, "little") + part)
    found = digest.digest()
    if isinstance(state, dict) and "__loader__" in state and state.get("__id__") and seen.setdefault(state["__id__"], found) != found:
        raise ModelFileError(f"{path} describes one object in two ways, as a file made to exhaust the memory would. It may be malicious.")
    return found


def _array_bytes(schema: Any, entries: dict[str, bytes]) -> int:
    """The total size in bytes of the arrays to build; nodes with the same id share one array."""
    sizes: dict[Any, int] = {}
    for node in nodes(schema):
        if "file" in node:
            one = node.get("__id__") or object()  # without an id it is alone
            sizes[one] = max(_unpacked_size(entries[node["file"]]), sizes.get(one, 0))
    return sum(sizes.values())


def _check_array(path: Path, entry: str, content: bytes) -> None:
    """Raise unless an entry is one array in NumPy's format, as long as its header says."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in HEADERS:
        raise ModelFileError(f"{path}: the array {entry} is in version {version} of NumPy's format; models use 1.0 and 2.0.")
    shape, _, dtype = HEADERS[version](stream)
    if dtype.hasobject:
        raise ModelFileError(f"{path}: the array {entry} holds pickled objects, which are never opened (allow_pickle=False).")
    if dtype.kind not in KINDS:
        raise ModelFileError(f"{path}: the array {entry} has the type {dtype}, which models do not use.")
    count: int = prod(map(int, shape))
    declared, found = count * dtype.itemsize, len(content) - stream.tell()
    if declared != found or min(shape, default=0) < 0 or (dtype.itemsize == 0 and count):
        raise ModelFileError(
            f"{path}: the array {entry} of shape {shape} and type {dtype} should have {declared:,} bytes but has {found:,}."
        )


def _check_sparse(path: Path, entry: str, content: bytes) -> None:
    """Raise unless an entry is a sparse matrix in SciPy's format, in one of two layouts, with sound arrays."""
    with ZipFile(io.BytesIO(content)) as archive:
        parts = unpack(path, archive)
    if not set(parts) <= SPARSE_PARTS:
        raise ModelFileError(
            f"{path}: the sparse matrix {entry} holds {sorted(set(parts) - SPARSE_PARTS)[:3]}, which SciPy does not write."
        )
    for name, part in parts.items():
        _check_array(path, f"{entry}/{name}", part)
    form = np.load(io.BytesIO(parts["format.npy"])).item()
    if (form.decode("ascii") if isinstance(form, bytes) else form) not in SPARSE_FORMATS:
        raise ModelFileError(f"{path}: the sparse matrix {entry} has the format {form!r}; models use {' and '.join(SPARSE_FORMATS)}.")


def _unpacked_size(content: bytes) -> int:
    """The size of an entry in bytes. A sparse matrix is itself an archive, with the size that it declares."""
    if not content.startswith(b"PK"):
        return len(content)
    with ZipFile(io.BytesIO(content)) as archive:
        return len(content) + sum(part.file_size for part in archive.infolist())
