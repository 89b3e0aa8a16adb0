"""Checks of the arrays inside a model file, before NumPy or SciPy opens them: the header must match the bytes."""

from __future__ import annotations

import io
from math import prod
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from ..exceptions import ModelFileError
from .sealed import check_size, unpack

__all__ = ["check_array", "check_sparse", "unpacked_size"]

KINDS = "biufcSU"
"""Booleans, numbers and texts. Python objects would be pickles; models use no other kinds."""

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}

SPARSE_FORMATS = ("csr", "csc")
SPARSE_PARTS = frozenset({"data.npy", "indices.npy", "indptr.npy", "shape.npy", "format.npy", "_is_array.npy"})


def check_array(path: Path, entry: str, content: bytes) -> None:
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


def check_sparse(path: Path, entry: str, content: bytes) -> None:
    """Raise unless an entry is a sparse matrix in SciPy's format, in one of two layouts, with sound arrays."""
    with ZipFile(io.BytesIO(content)) as archive:
        parts = unpack(path, archive, sum(part.file_size for part in archive.infolist()))
    if not set(parts) <= SPARSE_PARTS:
        raise ModelFileError(
            f"{path}: the sparse matrix {entry} holds {sorted(set(parts) - SPARSE_PARTS)[:3]}, which SciPy does not write."
        )
    for name, part in parts.items():
        check_array(path, f"{entry}/{name}", part)
    form = np.load(io.BytesIO(parts["format.npy"])).item()
    if (form.decode("ascii") if isinstance(form, bytes) else form) not in SPARSE_FORMATS:
        raise ModelFileError(f"{path}: the sparse matrix {entry} has the format {form!r}; models use {' and '.join(SPARSE_FORMATS)}.")


def unpacked_size(path: Path, content: bytes, limit: int) -> int:
    """The size of an entry in bytes. A sparse matrix is itself an archive, which may declare at most ``limit``."""
    if not content.startswith(b"PK"):
        return len(content)
    with ZipFile(io.BytesIO(content)) as archive:
        declared = sum(part.file_size for part in archive.infolist())
    check_size(path, declared, limit)
    return len(content) + declared
