"""Files published by others: found locally or downloaded, and checked against their SHA-256.

A file whose bytes differ from the published ones is never parsed, and never stays in the cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from .._typing import StrPath
from ..exceptions import DataError, DownloadError

__all__ = ["PublishedFiles"]

TIMEOUT = 30
"""Seconds to wait for the server."""


@dataclass(frozen=True)
class PublishedFiles:
    """Files of one folder on the web.

    what : their name in messages. base_url, page : where programs and people find them. digests : {name: SHA-256}.
    folder : their folder in ``$REFKERNEL_DATA``. cache : their folder in the cache. suffix : how their names end.
    """

    what: str
    base_url: str
    page: str
    digests: Mapping[str, str]
    folder: str
    suffix: str
    cache: str = "."

    @property
    def by_hand(self) -> str:
        """How to get the files without our download."""
        where = f"(data_dir=, --data-dir, or REFKERNEL_DATA with them in {self.folder}/)"
        return f"get the files by hand from {self.page} and pass their folder {where}"

    def content(self, name: str, data_dir: StrPath | None = None) -> bytes:
        """The verified bytes of a file: from data_dir, else REFKERNEL_DATA, else the cache, else downloaded into it."""
        path = self._local_path(name, data_dir) or self.cached_path(name)
        content = path.read_bytes()
        if not self._is_published(name, content):
            raise DataError(
                f"{path} is truncated or changed: its {len(content)} bytes have SHA-256 {sha256(content).hexdigest()[:12]}…, the published "
                f"file has {self.digests[name][:12]}…. Replace it, or remove it and leave data_dir and REFKERNEL_DATA unset to download it."
            )
        return content

    def cached_path(self, name: str) -> Path:
        """The file in the cache, downloaded if it is missing or damaged."""
        path = cache_folder(self._pooch) / self.cache / name
        try:
            if path.is_file() and not self._is_published(name, path.read_bytes()):
                path.unlink(missing_ok=True)  # another process may have been faster
            if not path.is_file():
                self._download(name, path.parent)
        except (OSError, ValueError) as error:  # requests' errors are OSErrors, pooch's wrong checksum is a ValueError
            raise DownloadError(
                f"{name} could not be downloaded from {self.base_url} to {path.parent}: {str(error).rstrip('.')}. No broken file was kept. "
                f"Check the connection and that the folder can be written (REFKERNEL_CACHE names another) and try again, "
                f"or {self.by_hand}."
            ) from error
        return path

    def _local_path(self, name: str, data_dir: StrPath | None) -> Path | None:
        """The user's own copy of the file; None if it must come from the cache."""
        if data_dir is not None:
            path = Path(data_dir) / name
            if not path.is_file():
                raise DataError(
                    f"data_dir={str(data_dir)!r} holds no {name}: pass the folder of the {self.suffix} files, or leave data_dir out."
                )
            return path
        folder = os.environ.get("REFKERNEL_DATA")
        path = Path(folder or "") / self.folder / name
        return path if folder and path.is_file() else None

    def _is_published(self, name: str, content: bytes) -> bool:
        return sha256(content).hexdigest() == self.digests[name]

    def _download(self, name: str, folder: Path) -> None:
        """Download the file into the folder; it gets its name only once its checksum is verified."""
        pooch = self._pooch()
        downloader = pooch.HTTPDownloader(timeout=TIMEOUT)
        pooch.retrieve(self.base_url + name, known_hash=f"sha256:{self.digests[name]}", fname=name, path=folder, downloader=downloader)

    def _pooch(self) -> ModuleType:
        try:
            import pooch
        except ImportError as error:
            raise ImportError(f"{self.what} are downloaded with pooch: pip install refkernel[data]. Or {self.by_hand}.") from error
        return pooch


def cache_folder(pooch: Callable[[], ModuleType]) -> Path:
    """``$REFKERNEL_CACHE``, or where ``pooch()`` keeps a user's caches."""
    return Path(os.environ.get("REFKERNEL_CACHE") or pooch().os_cache("refkernel"))
