"""The text of a file: its encoding, unpacked if it is compressed, in blocks, with a message for bytes that are not text."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from ..exceptions import TableError

SAMPLE_BYTES = 1 << 16
"""What the delimiter is judged by: enough for a header and some rows."""

BLOCK_BYTES = 1 << 21
"""Text in a block of rows: 2 MB hold some thousand rows."""

GZIP_MARK = b"\x1f\x8b"

BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed by gzip, by its first bytes."""
    with path.open("rb") as file:
        return file.read(len(GZIP_MARK)) == GZIP_MARK


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if it is compressed."""
    try:
        with gzip.open(path) if is_gzip(path) else path.open("rb") as file:
            yield file  # type: ignore[misc]
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is compressed by gzip and broken ({error}). Copy or write it again.") from error


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIOWrapper]:
    """The text of a file, unpacked if it is compressed."""
    with open_bytes(path) as file, TextIOWrapper(file, encoding=encoding, newline="") as text:
        yield text


def sample_of(path: Path, encoding: str) -> str:
    """The first whole lines of a file (its only line, if it has one)."""
    with open_bytes(path) as file:
        mark = file.read(2)
    if mark in BYTE_ORDER_MARKS and encoding == "utf-8-sig":
        raise TableError(f"{path} is not UTF-8 but UTF-16. Pass --encoding {BYTE_ORDER_MARKS[mark]}.")
    try:
        with open_text(path, encoding) as file:
            sample = file.read(SAMPLE_BYTES)
            if "\n" not in sample:  # thousands of columns
                sample += file.read(BLOCK_BYTES)
            rest = file.read(1)
    except UnicodeDecodeError as error:
        raise not_decoded(path, error, encoding) from error
    if not sample.strip():
        raise TableError(f"{path} holds nothing but white space. A table needs a header and rows.")
    if "\r" in sample and "\n" not in sample:
        raise TableError(f"{path} ends its lines with a carriage return alone, as old Macs did. Save it with line feeds (LF).")
    lines = sample.splitlines(keepends=True)
    return "".join(lines[:-1]) if len(lines) > 1 and rest else sample


def blocks_of_bytes(path: Path, encoding: str) -> Iterator[bytes]:
    """The bytes of a file, block by block, in an encoding where ASCII characters are single bytes."""
    wide = encoding.lower().replace("_", "-").startswith(("utf-16", "utf16", "utf-32", "utf32"))
    try:
        opened: Any = open_text(path, encoding) if wide else open_bytes(path)
        with opened as file:
            while block := file.read(BLOCK_BYTES):
                if block[-1:] in ("\r", b"\r"):  # its line feed may come next
                    block += file.read(1)
                yield block.encode() if wide else block
    except UnicodeDecodeError as error:
        raise not_decoded(path, error, encoding) from error


def lone_returns(text: Any) -> int:
    pair, one = (b"\r\n", b"\r") if isinstance(text, bytes) else ("\r\n", "\r")
    return text.count(one) - text.count(pair)


def encoding_of(name: str) -> str:
    try:
        "".encode(name)
    except LookupError as error:
        raise TableError(f"--encoding {name!r} is not known. Usual ones are utf-8, latin-1, cp1252 and utf-16.") from error
    return "utf-8-sig" if name.lower().replace("_", "-") in ("utf-8", "utf8") else name


def not_decoded(path: Path, error: UnicodeDecodeError, encoding: str) -> TableError:
    byte = error.object[error.start : error.start + 1].hex()
    return TableError(
        f"{path} is not {encoding.upper().removesuffix('-SIG')}: byte 0x{byte} is not one of its characters. "
        "Pass --encoding: cp1252 or latin-1 for Western European files, utf-16 for some exports."
    )
