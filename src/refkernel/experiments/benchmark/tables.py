"""The tables of the benchmark: a folder of .npz files, ADBench's by download, or what comes with the packages."""

from __future__ import annotations

import functools
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np

from ..._typing import StrPath
from ...datasets import list_tasks
from ...datasets.adbench import FILES, downloaded_paths
from ...datasets.embedded import raw
from ...exceptions import DataError

LEAST_NORMALS = 8
"""Half of them train, and fewer than four rows describe nothing."""
DIGITS = (1, 3, 8)
"""Digits that serve as the normal class: an easy one, and two that resemble each other."""


@dataclass(frozen=True)
class Source:
    """A table that can be read when it is needed. ``digest`` tells one content from another."""

    name: str
    digest: str
    read: Callable[[], tuple[np.ndarray, np.ndarray]] = field(compare=False)


def find_tables(data_dir: StrPath | None = None, embedded: bool = False) -> list[Source]:
    """The embedded tables; otherwise the first found of ``data_dir``, ``$REFKERNEL_DATA/adbench`` and ADBench's download."""
    if embedded:
        if data_dir is not None:
            raise ValueError(f"data_dir={str(data_dir)!r} and --embedded exclude each other: pass one of them.")
        return _embedded()
    paths = _paths(data_dir)
    return sorted((_of_file(path) for path in paths), key=lambda source: source.name.lower())


def chosen(sources: list[Source], names: tuple[str, ...]) -> list[Source]:
    """The sources with these names, ignoring case; all if no name is given."""
    known = {source.name.lower(): source for source in sources}
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise ValueError(f"Unknown table {unknown[0]!r}: choose from {', '.join(source.name for source in sources)}.")
    return [known[name.lower()] for name in dict.fromkeys(names)] if names else sources


def read_npz(path: StrPath) -> tuple[np.ndarray, np.ndarray]:
    """(X, is_outlier) of a .npz file with X (n × d) and y (n; 1: outlier, 0: normal). Nothing in it is ever unpickled."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            X, y = np.asarray(arrays["X"], dtype=np.float64), np.asarray(arrays["y"]).ravel()
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path} is not a table: {error}. It must be a .npz file with numbers X (rows × columns) and y (1: outlier)."
        ) from error
    _check(path, X, y)
    return X, y == 1


def _check(path: StrPath, X: np.ndarray, y: np.ndarray) -> None:
    if X.ndim != 2 or X.shape[1] == 0 or y.shape != (len(X),):
        raise DataError(f"{path} holds X of shape {X.shape} and y of shape {y.shape}: X must be rows × columns, y one label for each row.")
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise DataError(f"{path} holds {X[row, column]} in row {row}, column {column} of X: remove or fill in what is missing.")
    others = sorted(set(np.unique(y).tolist()) - {0, 1})
    if others:
        raise DataError(f"{path} holds the label {others[0]!r} in y: 1 marks an outlier, 0 a normal row.")
    normals = int((y == 0).sum())
    if normals < LEAST_NORMALS or normals == len(y):
        raise DataError(f"{path} holds {normals} normal rows and {len(y) - normals} outliers: at least {LEAST_NORMALS} and 1 are needed.")


def _paths(data_dir: StrPath | None) -> list[Path]:
    if data_dir is not None:
        found = sorted(Path(data_dir).glob("*.npz"))
        if not found:
            raise DataError(
                f"data_dir={str(data_dir)!r} holds no .npz file: pass a folder of tables, or leave it out to download ADBench's."
            )
        return found
    folder = os.environ.get("REFKERNEL_DATA")
    return sorted((Path(folder) / FILES.folder).glob("*.npz") if folder else []) or downloaded_paths()


def _of_file(path: Path) -> Source:
    """The table of a file, named without the number that ADBench puts first."""
    number, _, rest = path.stem.partition("_")
    name = rest if number.isdigit() and rest else path.stem
    return Source(name, sha256(path.read_bytes()).hexdigest()[:16], functools.partial(read_npz, path))


def _embedded() -> list[Source]:
    ours = [Source(task.name, "embedded", functools.partial(_task, task.dataset, task.target)) for task in list_tasks()]
    theirs = {"Cancer": ("load_breast_cancer", 1)}  # benign
    theirs |= {f"Wine{k + 1}": ("load_wine", k) for k in range(3)} | {f"Digit{k}": ("load_digits", k) for k in DIGITS}
    return ours + [Source(name, "embedded", functools.partial(_sklearns, *args)) for name, args in theirs.items()]


def _task(dataset: str, target: str) -> tuple[np.ndarray, np.ndarray]:
    X, classes = raw(dataset)
    return X, classes != target


def _sklearns(loader: str, target: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    data = getattr(datasets, loader)()
    return np.asarray(data.data, dtype=np.float64), data.target != target
