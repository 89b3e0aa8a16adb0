"""The schema of a model file, which describes its objects. It is checked as a whole before anything is built.

skops rebuilds an object by the kind of its node. Most kinds hold plain values or set attributes; some call what the file names. Those
are accepted only for names that the reader trusts, and no name is accepted for a kind that it was not listed for.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..exceptions import ModelFileError
from .arrays import check_array, check_sparse, unpacked_size
from .known import CONTAINERS, current_names, functions, objects
from .sealed import check_size

__all__ = ["check_schema", "nodes", "unknown_names", "with_current_names"]

OLDEST_PROTOCOL = 2
"""Nodes of older protocols of skops are built by other rules; no version of this package has written them."""

ARRAY_CHECKS = {"NdArrayNode": check_array, "SparseMatrixNode": check_sparse}

UNCOMPARED = ("__id__", "file")
"""skops gives some objects a new number each time it meets them; their contents are compared instead."""


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


def with_current_names(schema: Any) -> Any:
    """Replace the modules of this package's types by those they live in today. Mutates the schema."""
    homes = current_names()
    for node in nodes(schema):
        if str(node["__module__"]).partition(".")[0] == "refkernel" and node["__class__"] in homes:
            node["__module__"] = homes[node["__class__"]].rpartition(".")[0]
    return schema


def check_schema(path: Path, schema: Any, entries: dict[str, bytes], limit: int, trusted: set[str]) -> list[str]:
    """Raise unless the objects are safe to build; return the names that building them needs."""
    if type(schema["protocol"]) is not int or schema["protocol"] < OLDEST_PROTOCOL:
        raise ModelFileError(f"{path} uses protocol {schema['protocol']!r} of skops; models use {OLDEST_PROTOCOL} or later.")
    check_size(path, _array_bytes(path, schema, entries, limit), limit)
    unknown = sorted(set(unknown_names(schema)) - trusted)
    if unknown:
        raise ModelFileError(
            f"{path} holds {', '.join(unknown)}, which this package does not know to be safe. The file may be malicious; nothing in it was "
            f"run. If you know who made it and that these names belong to the model, use load(path, trusted={unknown!r})."
        )
    _check_keys(path, schema, trusted)
    _fingerprint(path, schema, {})
    for entry, kind in {(node["file"], node["__loader__"]) for node in nodes(schema) if "file" in node}:
        if kind in ARRAY_CHECKS:
            ARRAY_CHECKS[kind](path, entry, entries[entry])
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


def _array_bytes(path: Path, schema: Any, entries: dict[str, bytes], limit: int) -> int:
    """The total size in bytes of the arrays to build; nodes with the same id share one array."""
    shared: dict[Any, int] = {}
    alone = 0
    for node in nodes(schema):
        if "file" in node:
            size = unpacked_size(path, entries[node["file"]], limit)
            if node.get("__id__"):
                shared[node["__id__"]] = max(size, shared.get(node["__id__"], 0))
            else:
                alone += size
    return alone + sum(shared.values())
