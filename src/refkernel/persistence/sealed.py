"""The file around a model: a zip archive whose comment ends in the SHA-256 of all bytes before it.

The checksum finds damage. A forger can compute it too, so nothing here believes what the archive says about its sizes: entries are
unpacked in small steps, up to a limit.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo, is_zipfile

from .._validation import check_positive
from ..exceptions import ModelFileError
from .description import check_metadata

__all__ = ["ABOUT_ENTRY", "SCHEMA_ENTRY", "SealedFile", "check_size", "reading", "seal", "unpack"]

ABOUT_ENTRY = "refkernel.json"
SCHEMA_ENTRY = "schema.json"

MARK = b"refkernel sha256 "
DIGEST_SIZE = 64
"""The archive's comment is the mark and this many hexadecimal digits. Later formats keep this, so that a newer file is not taken for a
damaged one."""

MAX_BYTES = 2**31
"""A model of 250 million numbers: beyond this a file is more likely wrong than large."""

SMALL_BYTES = 2**26
MAX_RATIO = 20
"""Above 64 MB, contents may be this many times larger than the file: arrays are stored uncompressed, only the schema is compressed."""

SMALL_JSON_BYTES = 2**24
MAX_JSON_BYTES = 2**27
MAX_JSON_RATIO = 100
"""Limits of the schema, which describes the objects, and of the metadata. Python needs up to 20 times their size to hold them. The
schema of a search over 10,000 candidates takes 23 MB, and a fiftieth of that in the file."""

STEP = 1 << 16
"""Bytes that are unpacked at a time."""


def seal(file: IO[bytes], entries: Iterable[tuple[str, bytes]]) -> None:
    """Write an archive of these entries that ends in the digest of all bytes before it, without holding it in memory."""
    with ZipFile(file, "w") as archive:
        for name, content in entries:  # numbers barely shrink; the schema does
            archive.writestr(name, content, ZIP_DEFLATED if name == SCHEMA_ENTRY else ZIP_STORED)
        archive.comment = MARK + bytes(DIGEST_SIZE)
    file.seek(-DIGEST_SIZE, io.SEEK_END)
    file.truncate()
    file.seek(0)
    file.write(hashlib.file_digest(file, "sha256").hexdigest().encode())  # type: ignore[arg-type]


class SealedFile:
    """An undamaged model file of a plausible size: its metadata, and its other entries on request."""

    def __init__(self, path: Path, max_bytes: int | None = None):
        if max_bytes is not None:
            check_positive("max_bytes", max_bytes)
        self.path, self._data = path, _read(path, max_bytes or MAX_BYTES)
        size = len(self._data)
        self.limit = max_bytes or min(MAX_BYTES, max(SMALL_BYTES, MAX_RATIO * size))
        self._json_limit = max_bytes or min(MAX_JSON_BYTES, max(SMALL_JSON_BYTES, MAX_JSON_RATIO * size))
        with reading(path), ZipFile(io.BytesIO(self._data)) as archive:
            check_size(path, sum(entry.file_size for entry in archive.infolist()), self.limit)
            self.metadata = check_metadata(path, json.loads(self._json(archive, ABOUT_ENTRY, "metadata")))

    def entries(self) -> dict[str, bytes]:
        """All entries but the metadata, unpacked."""
        with ZipFile(io.BytesIO(self._data)) as archive:
            schema = self._json(archive, SCHEMA_ENTRY, "schema")
            return unpack(self.path, archive, self.limit, skipped=(ABOUT_ENTRY, SCHEMA_ENTRY)) | {SCHEMA_ENTRY: schema}

    def _json(self, archive: ZipFile, name: str, what: str) -> bytes:
        check_size(self.path, archive.getinfo(name).file_size, self._json_limit, what)
        return _unpacked(archive, archive.getinfo(name), self._json_limit)


def unpack(path: Path, archive: ZipFile, limit: int, skipped: tuple[str, ...] = ()) -> dict[str, bytes]:
    """The entries of an archive by name, or an error before more than ``limit`` bytes exist."""
    entries = [entry for entry in archive.infolist() if entry.filename not in skipped]
    if len({entry.filename for entry in entries}) < len(entries):
        raise ModelFileError(f"{path} has two entries with the same name. The file may be malicious.")
    if any(entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for entry in archive.infolist()):
        raise ModelFileError(f"{path} is compressed in a way that refkernel.save never uses. The file may be malicious.")
    check_size(path, sum(entry.file_size for entry in entries), limit)
    return {entry.filename: _unpacked(archive, entry, limit) for entry in entries}


def check_size(path: Path, size: int, limit: int, what: str = "contents") -> None:
    """Raise if the contents are larger than the limit."""
    if size > limit:
        raise ModelFileError(
            f"The {what} of {path} would take {size:,} bytes; at most {limit:,} are expected. The file may be designed to exhaust "
            f"memory. If you know who made it, pass max_bytes={size}."
        )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Report whatever goes wrong inside a damaged or forged file as a ModelFileError."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{path} cannot be read as a model ({type(error).__name__}: {error}). It is damaged or forged, or needs another version of "
            "skops or scikit-learn: see refkernel.persistence.read_about(path)."
        ) from error


def _unpacked(archive: ZipFile, entry: ZipInfo, limit: int) -> bytes:
    """An entry, unpacked step by step: no more than its declared size is kept, and no step takes more than STEP."""
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ModelFileError(f"{archive.filename or 'The file'} is compressed in a way that refkernel.save never uses.")
    content = bytearray()
    with archive.open(entry) as file:
        while step := file.read(min(STEP, limit + 1 - len(content))):
            content += step
    if len(content) != entry.file_size:
        raise ModelFileError(f"The entry {entry.filename} has {len(content):,} bytes but declares {entry.file_size:,}.")
    return bytes(content)


def _read(path: Path, limit: int) -> bytes:
    if not path.exists():
        raise ModelFileError(f"{path} does not exist (the current folder is {Path.cwd()}).")
    if not path.is_file():
        raise ModelFileError(f"{path} is not a file. Pass the model file itself, as save returned it.")
    check_size(path, path.stat().st_size, limit)
    data = path.read_bytes()
    if not data.startswith(b"PK"):
        kind = "looks like a pickle, which could run any code and is never loaded" if data.startswith(b"\x80") else "is not a zip archive"
        raise ModelFileError(f"{path} {kind}. Model files are written by refkernel.save; save the model again with it.")
    _check_seal(path, data)
    return data


def _check_seal(path: Path, data: bytes) -> None:
    if data[:-DIGEST_SIZE].endswith(MARK) and _digest(data[:-DIGEST_SIZE]) == data[-DIGEST_SIZE:]:
        return
    with reading(path):
        names = ZipFile(io.BytesIO(data)).namelist() if is_zipfile(io.BytesIO(data)) else [ABOUT_ENTRY]
    if ABOUT_ENTRY in names:
        raise ModelFileError(f"{path} is damaged: it was cut short or some of its bytes changed (the checksum is wrong). Copy it again.")
    if SCHEMA_ENTRY in names:
        raise ModelFileError(
            f"{path} is a skops file, but was not written by refkernel.save. Load it with skops.io.load, and save it again with refkernel."
        )
    raise ModelFileError(
        f"{path} is a zip archive, but not a model file: it has no {ABOUT_ENTRY}. Model files are written by refkernel.save."
    )


def _digest(body: bytes | memoryview) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
