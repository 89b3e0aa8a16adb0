"""The tables of the benchmark, and their splits. Nothing of an outlier is seen before the test, and no method gets a label."""

import functools
import os
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from ..._core.text import named
from ..._core.types import StrPath
from ...datasets.published import ADBENCH
from ...datasets.tasks import embedded_data, list_tasks
from ...exceptions import DataError
from ...tabular.readers import ReadOptions, open_table, read_whole
from ...tabular.readers.values import numbers
from ...tabular.summary import label_kinds
from ...tabular.typed import learn

LEAST_TRAINING_ROWS = 4
MAX_TRAIN_ROWS = 5_000
MAX_TEST_ROWS = 10_000  # caps for tables without a fixed split; of the test rows, this many of each kind
DIGITS = (1, 3, 8)  # digits that serve as the normal class: an easy one, and two that resemble each other
FIXED, FREE = ("train", "test", "test_labels"), ("X", "y")  # what a file with a fixed split holds, and what another one holds
FILES = (".csv", ".npz")


class Table(NamedTuple):
    """Rows X and which of them are outliers. With a fixed split ``train`` holds the training rows, and X the test rows."""

    X: np.ndarray
    is_outlier: np.ndarray
    train: np.ndarray | None = None


@dataclass(frozen=True)
class Source:
    """A table that is read when it is needed. ``digest`` tells one content from another; ``fixed``: its split is given."""

    name: str
    digest: str
    read: Callable[[], Table] = field(compare=False)
    fixed: bool = False


@dataclass(frozen=True, eq=False)
class Split:
    """Training rows (all of them normal) and test rows, as they are and standardised."""

    train: np.ndarray
    test: np.ndarray
    raw_train: np.ndarray
    raw_test: np.ndarray
    is_outlier: np.ndarray
    seed: int


def split_rows(is_outlier: np.ndarray, seed: int, max_train: int, max_test: int) -> tuple[np.ndarray, np.ndarray]:
    """(train, test): row numbers. The first half of the normal rows (rounded down) trains, the rest tests.

    ``RandomState(seed)`` permutes the normal rows, then the outliers, then the test rows; caps take the first of each permutation.
    """
    random = np.random.RandomState(seed)  # its stream is frozen, while a Generator's may change with NumPy's version
    normals, outliers = random.permutation(np.flatnonzero(~is_outlier)), random.permutation(np.flatnonzero(is_outlier))
    half = len(normals) // 2
    return normals[:half][:max_train], random.permutation(np.concatenate([normals[half:][:max_test], outliers[:max_test]]))


def _drawn(random: np.random.RandomState, rows: np.ndarray, most: int | None) -> np.ndarray:
    """All rows, or as many as the cap allows."""
    return rows if most is None or len(rows) <= most else np.sort(random.permutation(rows)[:most])


def make_split(table: Table, seed: int, max_train: int | None = None, max_test: int | None = None) -> Split:
    """The rows of a table for one seed. By default fixed splits are taken whole, and others capped."""
    if table.train is None:
        train, test = split_rows(table.is_outlier, seed, max_train or MAX_TRAIN_ROWS, max_test or MAX_TEST_ROWS)
        raw_train = table.X[train]
    else:
        random = np.random.RandomState(seed)
        raw_train = table.train[_drawn(random, np.arange(len(table.train)), max_train)]
        kinds = (np.flatnonzero(table.is_outlier == kind) for kind in (False, True))
        test = np.sort(np.concatenate([_drawn(random, rows, max_test) for rows in kinds]))
    scaler = StandardScaler().fit(raw_train)  # a column that is constant in training is centred and keeps its unit
    raw_test = table.X[test]
    return Split(scaler.transform(raw_train), scaler.transform(raw_test), raw_train, raw_test, table.is_outlier[test], seed)


def find_tables(data_dir: StrPath | None = None, embedded: bool = False, labels: str = "") -> list[Source]:
    """The embedded tables; otherwise the first found of ``data_dir``, ``$REFKERNEL_DATA/adbench`` and ADBench's download."""
    if embedded:
        if data_dir is not None:
            raise ValueError(f"data_dir={str(data_dir)!r} and --embedded exclude each other: pass one of them.")
        return _embedded()
    return sorted((_of_file(path, labels) for path in _paths(data_dir, labels)), key=lambda source: source.name.lower())


def chosen(sources: list[Source], names: tuple[str, ...]) -> list[Source]:
    """The sources with these names, ignoring case; all if no name is given."""
    known = {source.name.lower(): source for source in sources}
    if unknown := [name for name in names if name.lower() not in known]:
        raise ValueError(f"Unknown table {unknown[0]!r}: choose from {', '.join(source.name for source in sources)}.")
    return [known[name.lower()] for name in dict.fromkeys(names)] if names else sources


def read_table(path: Path, labels: str = "") -> Table:
    """The table of a .csv or .npz file. Labels are 1 for outliers, 0 for normal rows. Nothing in it is ever unpickled."""
    try:
        names, arrays = (FREE, _csv(path, labels)) if path.suffix == ".csv" else _npz(path)
        *rows, kinds = arrays
        rows = [np.asarray(X, dtype=np.float64) for X in rows]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path} is not a table: {error}. It must be a .csv file with a column y (1: outlier, 0: normal) or --labels, a .npz file with "
            "numbers X (rows × columns) and y, or one with a fixed split: train (normal rows), test and test_labels."
        ) from error
    y = kinds.ravel()
    _check(path, names, rows, y)
    return Table(rows[-1], y == 1, rows[0] if names == FIXED else None)


def _npz(path: Path) -> tuple[tuple[str, ...], list[np.ndarray]]:
    with np.load(path, allow_pickle=False) as arrays:
        names = FIXED if FIXED[0] in arrays else FREE
        return names, [arrays[name] for name in names]


def _csv(path: Path, labels: str) -> list[np.ndarray]:
    """Numbers, dates in seconds, and a column of 0 and 1 for each category; labels by a column y, or by "column=value of normal rows"."""
    name, _, normal = (labels or "y=").partition("=")
    frame = read_whole(table := open_table(path, ReadOptions()))
    if name not in frame:
        raise ValueError(f"it has the columns {named(frame.columns)}, and no column {name}")
    _, rows = learn(frame.drop(columns=name), table.marks, (), [])
    y = np.array([np.nan, 0.0, 1.0])[label_kinds(frame[name], normal)] if labels else numbers(frame[name], table.marks).values
    return [pd.get_dummies(rows, dtype=float).to_numpy(dtype=np.float64), y]


def _check(path: StrPath, names: tuple[str, ...], rows: list[np.ndarray], y: np.ndarray) -> None:
    for name, X in zip(names, rows, strict=False):
        if X.ndim != 2 or X.shape[1] == 0:
            raise DataError(f"{path} holds {name} of shape {X.shape}: it must be rows × columns.")
        if not np.isfinite(X).all():
            row, column = np.argwhere(~np.isfinite(X))[0]
            raise DataError(f"{path} holds {X[row, column]} in row {row}, column {column} of {name}: remove or fill in what is missing.")
    if y.shape != (len(rows[-1]),) or rows[0].shape[1] != rows[-1].shape[1]:
        shapes = ", ".join(f"{name} of shape {part.shape}" for name, part in zip(names, [*rows, y], strict=True))
        raise DataError(f"{path} holds {shapes}: each row needs one label, and all rows the same columns.")
    if others := sorted(set(np.unique(y).tolist()) - {0, 1}):
        raise DataError(f"{path} holds the label {others[0]!r} in {names[-1]}: 1 marks an outlier, 0 a normal row.")
    normals, outliers = int((y == 0).sum()), int((y == 1).sum())
    train = normals // 2 if len(rows) == 1 else len(rows[0])
    if train < LEAST_TRAINING_ROWS or not normals or not outliers:
        raise DataError(
            f"{path} holds {normals} normal rows and {outliers} outliers to test, and {train} rows to train on: at least 1 of each kind "
            f"and {LEAST_TRAINING_ROWS} to train on are needed."
        )


def _paths(data_dir: StrPath | None, labels: str) -> list[Path]:
    if data_dir is not None:
        if not (found := sorted(path for path in Path(data_dir).glob("*") if path.suffix in FILES)):
            raise DataError(f"{data_dir} holds no {' or '.join(FILES)} file: name a folder of tables, or none to download ADBench's.")
        label = (labels or "y").partition("=")[0]
        others = [path for path in found if path.suffix == ".csv" and label not in open_table(path, ReadOptions()).names]
        if 0 < len(others) < len(found):
            names = named([path.name for path in others])
            warnings.warn(f"Left out, without a column {label}: {names}.", UserWarning, stacklevel=4)
            found = [path for path in found if path not in others]
        return found
    folder = os.environ.get("REFKERNEL_DATA")
    return sorted((Path(folder) / ADBENCH.folder).glob("*.npz") if folder else []) or list(map(ADBENCH.cached_path, ADBENCH.digests))


def _of_file(path: Path, labels: str) -> Source:
    """The table of a file, named without the number that ADBench puts first."""
    number, _, rest = path.stem.partition("_")
    name = rest if number.isdigit() and rest else path.stem
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()[:16]
    fixed = zipfile.is_zipfile(path) and f"{FIXED[0]}.npy" in zipfile.ZipFile(path).namelist()
    return Source(name, digest, functools.partial(read_table, path, labels), fixed)


def _embedded() -> list[Source]:
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine

    tables: dict[str, Any] = {task.name: (functools.partial(embedded_data, task.dataset), task.target) for task in list_tasks()}
    tables["Cancer"] = functools.partial(load_breast_cancer, return_X_y=True), 1  # benign
    tables |= {f"Wine{k + 1}": (functools.partial(load_wine, return_X_y=True), k) for k in range(3)}
    tables |= {f"Digit{k}": (functools.partial(load_digits, return_X_y=True), k) for k in DIGITS}
    return [Source(name, "embedded", functools.partial(_one_class, *of)) for name, of in tables.items()]


def _one_class(load: Callable[[], Any], target: Any) -> Table:
    X, classes = load()
    return Table(np.asarray(X, dtype=np.float64), classes != target)
