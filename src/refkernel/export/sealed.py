"""The file around a model: a zip archive whose comment ends in the SHA-256 of all bytes before it, and what it says about the model.

The checksum finds damage; a forger can compute it, so no size is believed: entries are unpacked in small steps, up to a limit.
"""

import hashlib
import io
import json
import platform
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo, is_zipfile

from .._core.validation import check_positive
from ..exceptions import ModelFileError

FORMAT = 1  # the format that ``save`` writes, and the newest that ``load`` reads
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "skops")

METADATA = {
    "format": int,
    "package": str,
    "versions": {str: str},
    "created": str,
    "model": str,
    "n_features_in": (int, None),
    "feature_names_in": ([str], None),
    "other_types": [str],
    "about": dict,
}
"""The pattern of the metadata: see ``mismatch``."""

ABOUT_ENTRY = "refkernel.json"
SCHEMA_ENTRY = "schema.json"
MARK = b"refkernel sha256 "
DIGEST_SIZE = 64  # the archive's comment is the mark and this many hexadecimal digits in all formats: a newer file is not a damaged one
MAX_BYTES = 2**31  # A model of 250 million numbers: beyond this a file is more likely wrong than large
SMALL_BYTES = 2**26
MAX_RATIO = 20  # above 64 MB, contents may be this many times the file; ``seal`` leaves uncompressed what would shrink more
SMALL_JSON_BYTES = 2**24
MAX_JSON_BYTES = 2**27
MAX_JSON_RATIO = 100  # of schema and metadata: Python needs 20 times their size; a search over 10,000 candidates: 23 MB, 50 times its file
STEP = 1 << 16  # bytes that are unpacked at a time


def seal(file: IO[bytes], entries: Iterable[tuple[str, bytes]]) -> None:
    """Write an archive of these entries that ends in the digest of all bytes before it, without holding it in memory."""
    with ZipFile(file, "w") as archive:
        for name, content in entries:  # rows of one-hot columns shrink to a tenth
            shrinks = name == SCHEMA_ENTRY or len(content) < MAX_RATIO * len(zlib.compress(content, 1))
            archive.writestr(name, content, ZIP_DEFLATED if shrinks else ZIP_STORED)
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
            self.metadata = _checked(path, json.loads(self._json(archive, ABOUT_ENTRY, "metadata")))

    def entries(self) -> dict[str, bytes]:
        """All entries but the metadata, unpacked."""
        with ZipFile(io.BytesIO(self._data)) as archive:
            schema = self._json(archive, SCHEMA_ENTRY, "schema")
            return unpack(self.path, archive, skipped=(ABOUT_ENTRY, SCHEMA_ENTRY)) | {SCHEMA_ENTRY: schema}

    def _json(self, archive: ZipFile, name: str, what: str) -> bytes:
        check_size(self.path, archive.getinfo(name).file_size, self._json_limit, what)
        return _unpacked(archive, archive.getinfo(name))


def description(model: Any) -> dict[str, Any]:
    """The metadata of a model, without what the user adds."""
    from .. import __version__  # looked up in the installed package, when it is first needed

    names, n_features = (getattr(model, name, None) for name in ("feature_names_in_", "n_features_in_"))
    return {
        "versions": {"python": platform.python_version(), "refkernel": __version__, **{name: version(name) for name in PACKAGES}},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": f"{type(model).__module__}.{type(model).__qualname__}",
        "n_features_in": None if n_features is None else int(n_features),
        "feature_names_in": None if names is None else [str(name) for name in names],
    }


def _checked(path: Path, metadata: Any) -> dict[str, Any]:
    """The metadata, after checking that they have the form that ``save`` gives them."""
    number = metadata["format"]
    if type(number) is int and number > FORMAT:
        made_by = dict(metadata["versions"]).get("refkernel")
        raise ModelFileError(
            f"{path} was saved by refkernel {made_by} in format {number}; this version reads formats up to {FORMAT}. Upgrade refkernel."
        )
    if found := mismatch(metadata, METADATA):
        raise ModelFileError(f"{path}: {found} in its metadata. The file is damaged or forged.")
    return metadata


def mismatch(value: Any, pattern: Any, where: str = "") -> str | None:
    """The first part of plain JSON that does not fit a pattern, in words; None if all of it fits.

    A pattern is a type (``float`` also takes whole numbers), None, a tuple of alternatives, ``[pattern]`` for a list, ``{str: pattern}``
    for a dict with any keys, or a dict of patterns by key, which allows further keys.
    """
    if isinstance(pattern, tuple):
        misfits = [mismatch(value, alternative, where) for alternative in pattern]
        return misfits[0] if all(misfits) else None
    if isinstance(pattern, list | dict) and isinstance(value, type(pattern)):
        items = dict(enumerate(value)) if isinstance(value, list) else value
        patterns = {str: pattern[0]} if isinstance(pattern, list) else pattern
        if lacking := sorted(set(patterns) - set(items) - {str}):
            return f"{where or 'it'} lacks {lacking[0]!r}"
        rest = patterns.get(str, object)
        found = (mismatch(item, patterns.get(key, rest), f"{where}[{key!r}]" if where else str(key)) for key, item in items.items())
        return next(filter(None, found), None)
    if pattern is None or isinstance(pattern, list | dict):
        fits = value is pattern
    elif pattern is float:
        fits = isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < float("inf")
    else:
        fits = isinstance(value, pattern) and (pattern is not int or not isinstance(value, bool))
    shown = repr(value)
    return None if fits else f"{where or 'it'} is {shown if len(shown) <= 60 else shown[:57] + '...'}"


def unpack(path: Path, archive: ZipFile, skipped: tuple[str, ...] = ()) -> dict[str, bytes]:
    """The entries of an archive by name; the sizes that they declare have been checked."""
    entries = [entry for entry in archive.infolist() if entry.filename not in skipped]
    if len({entry.filename for entry in entries}) < len(entries):
        raise ModelFileError(f"{path} has two entries with the same name. The file may be malicious.")
    return {entry.filename: _unpacked(archive, entry) for entry in entries}


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
            "skops or scikit-learn: see refkernel.export.files.read_about(path)."
        ) from error


def _unpacked(archive: ZipFile, entry: ZipInfo) -> bytes:
    """An entry, unpacked step by step: no more than its declared size is kept, and no step takes more than STEP."""
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ModelFileError(f"{archive.filename or 'The file'} is compressed in a way that refkernel.save never uses.")
    content = bytearray()
    with archive.open(entry) as file:
        while step := file.read(min(STEP, entry.file_size + 1 - len(content))):
            content += step
    if len(content) != entry.file_size:
        raise ModelFileError(f"The entry {entry.filename} declares {entry.file_size:,} bytes, which is not what it has.")
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
    body = data[:-DIGEST_SIZE]
    if body.endswith(MARK) and hashlib.sha256(body).hexdigest().encode() == data[-DIGEST_SIZE:]:
        return data
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
