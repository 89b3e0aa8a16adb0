"""Files published by others: found locally or downloaded, and never parsed or kept if their SHA-256 differs from the published one."""

import os
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from types import ModuleType

import numpy as np

from .._core.types import StrPath
from ..exceptions import DataError, DownloadError

TIMEOUT = 30  # seconds to wait for the server


@dataclass(frozen=True)
class PublishedFiles:
    """Files of one folder on the web (for programs: ``base_url``), with their SHA-256, and their ``folder`` in REFKERNEL_DATA."""

    what: str
    base_url: str
    page: str
    digests: dict[str, str]
    folder: str
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
        path = self.cache_folder() / name
        try:
            if path.is_file() and not self._is_published(name, path.read_bytes()):
                path.unlink(missing_ok=True)  # another process may have been faster
            if not path.is_file():
                pooch, known = self._pooch(), f"sha256:{self.digests[name]}"
                downloader = pooch.HTTPDownloader(timeout=TIMEOUT)  # the file gets its name only once its checksum is verified
                pooch.retrieve(self.base_url + name, known_hash=known, fname=name, path=path.parent, downloader=downloader)
        except (OSError, ValueError) as error:  # requests' errors are OSErrors, pooch's wrong checksum is a ValueError
            raise DownloadError(
                f"{name} could not be downloaded from {self.base_url} to {path.parent}: {str(error).rstrip('.')}. No broken file was kept. "
                f"Check the connection and that the folder can be written (REFKERNEL_CACHE names another) and try again, or {self.by_hand}."
            ) from error
        return path

    def cache_folder(self) -> Path:
        """The folder of these files in ``$REFKERNEL_CACHE``, or where pooch keeps a user's caches."""
        return Path(os.environ.get("REFKERNEL_CACHE") or self._pooch().os_cache("refkernel")) / self.cache

    def _local_path(self, name: str, data_dir: StrPath | None) -> Path | None:
        """The user's own copy of the file; None if it must come from the cache."""
        if data_dir is not None:
            if not (path := Path(data_dir) / name).is_file():
                what = f"data_dir={str(data_dir)!r} holds no {name}"
                raise DataError(f"{what}: pass the folder of the {path.suffix} files, or leave data_dir out.")
            return path
        folder = os.environ.get("REFKERNEL_DATA")
        path = Path(folder or "") / self.folder / name
        return path if folder and path.is_file() else None

    def _is_published(self, name: str, content: bytes) -> bool:
        return sha256(content).hexdigest() == self.digests[name]

    def _pooch(self) -> ModuleType:
        try:
            import pooch
        except ImportError as error:
            raise ImportError(f"{self.what} are downloaded with pooch: pip install refkernel[data]. Or {self.by_hand}.") from error
        return pooch


def _digests(name: str) -> dict[str, str]:
    """{file: SHA-256}, from a list of our data in the format of sha256sum."""
    text = (files(__package__) / "data" / f"{name}.sha256").read_text(encoding="utf-8")
    return {file: digest for digest, file in map(str.split, text.splitlines())}


def _github(repository: str, commit: str, folder: str) -> tuple[str, str]:
    """Where programs and people find a folder of a repository, at a commit."""
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}/", f"https://github.com/{repository}/tree/{commit}/{folder}"


AUTHORS = PublishedFiles(
    "The authors' splits",
    *_github("JenniRaitoharju/GeneralizedReferenceKernel", "d647efbf5d205614a7f6dbefb5772bcd8cc14f99", "Datasets"),
    _digests("authors"),
    folder="authors",
)
"""Splits of the article's 14 tasks (MIT licence)."""
ADBENCH = PublishedFiles(
    "ADBench's tables",
    *_github("Minqi824/ADBench", "3dac8221081e190f157d78e93bfa8867f90d0965", "adbench/datasets/Classical"),
    _digests("adbench"),
    folder="adbench",
    cache="adbench",
)
"""22 real tables with labelled outliers, most of them from UCI and ODDS (BSD-2-Clause)."""


@lru_cache(maxsize=len(AUTHORS.digests))
def authors_splits(content: bytes) -> list[tuple[np.ndarray, ...]]:
    """X_train, y_train, X_test, y_test of all splits in a file of the authors: samples in rows."""
    from scipy.io import loadmat  # slow to import, and needed for these files only

    mat = loadmat(BytesIO(content))
    kinds = [mat[f"{kind}5sets"].ravel() for kind in ("traindata", "trainlabels", "testdata", "testlabels")]
    return [(X.T, y.ravel().astype(np.int64), Z.T, z.ravel().astype(np.int64)) for X, y, Z, z in zip(*kinds, strict=True)]
