"""The table of the tasks, and how one is loaded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np

from .._validation import OUTLIER
from ..preprocessing import TargetScaler
from . import authors, embedded

TARGET = 1
N_SPLITS = 5
SPLITS = ("embedded", "authors")

SplitsName = Literal["embedded", "authors"]


@dataclass(frozen=True)
class Task:
    """Learn the class ``target`` of ``dataset``; its other samples are outliers.

    ``n_targets`` and ``n_outliers`` count training and test samples, ``n_features`` the features as published (those
    that are constant in the training targets are dropped on loading: 1 of Ion1, 2 of Ion2).
    """

    name: str
    dataset: str
    target: str
    n_targets: int
    n_outliers: int
    n_features: int
    embedded: bool

    @property
    def authors_file(self) -> str:
        """The authors' name for it."""
        return f"{self.dataset.lower()}_targetclass_{self.name[-1]}.mat"


@dataclass(frozen=True, eq=False)
class Split:
    """One training/test split of a task: rows are samples, float64, standardised by the training targets; y is +1 or -1 (outlier)."""

    name: str
    split: int
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


TASKS = {
    task.name: task
    for task in (
        Task("Iris1", "Iris", "setosa", 50, 100, 4, True),
        Task("Iris2", "Iris", "versicolor", 50, 100, 4, True),
        Task("Iris3", "Iris", "virginica", 50, 100, 4, True),
        Task("Seed1", "Seeds", "kama", 70, 140, 7, True),
        Task("Seed2", "Seeds", "rosa", 70, 140, 7, True),
        Task("Seed3", "Seeds", "canadian", 70, 140, 7, True),
        Task("Ion1", "Ionosphere", "bad", 126, 225, 34, True),
        Task("Ion2", "Ionosphere", "good", 225, 126, 34, True),
        Task("Son1", "Sonar", "rock", 97, 111, 60, True),
        Task("Son2", "Sonar", "mine", 111, 97, 60, True),
        Task("Bank1", "Bankruptcy", "bankrupt", 107, 143, 6, False),
        Task("Bank2", "Bankruptcy", "non-bankrupt", 143, 107, 6, False),
        Task("Happ1", "Happiness", "happy", 77, 66, 6, False),
        Task("Happ2", "Happiness", "unhappy", 66, 77, 6, False),
    )
}


def list_tasks(splits: SplitsName = "embedded") -> list[Task]:
    """The tasks that ``load_task`` knows with these splits, in the article's order: 10 embedded, or all 14 of the authors'.

    Examples
    --------
    >>> from refkernel.datasets import list_tasks
    >>> [task.name for task in list_tasks()][:4]
    ['Iris1', 'Iris2', 'Iris3', 'Seed1']
    """
    _check_splits(splits)
    return [task for task in TASKS.values() if task.embedded or splits == "authors"]


def load_task(name: str, split: int = 0, *, splits: SplitsName = "embedded", data_dir: str | os.PathLike | None = None) -> Split:
    """One split of one of the article's tasks, ready to train on.

    Parameters
    ----------
    name : the task, such as "Seed2"; ``list_tasks(splits)`` tells which there are.
    split : 0 to 4.
    splits : "embedded" for our own splits of the embedded data: 70 % of each class for training, drawn by
        ``numpy.random.RandomState(split)``, one split for all tasks of a data set, rows in the data's order; standardised by
        ``TargetScaler``. "authors" for the splits that the article's authors published, taken as they are.
    data_dir : the folder that holds the authors' .mat files. By default ``$REFKERNEL_DATA/authors``, where it holds them, else
        the user's cache (``$REFKERNEL_CACHE`` names another), into which they are downloaded. Their SHA-256 is always checked.

    Returns
    -------
    Split, with arrays of its own: X_train (n × d), y_train (n,), X_test, y_test, name, split.

    Raises
    ------
    ValueError : an unknown task, split or kind of splits.
    DataError : an authors' file is missing in data_dir, truncated or changed; DownloadError if it could not be downloaded.
    ImportError : a download is needed, and pooch is not there.

    Examples
    --------
    >>> from refkernel.datasets import load_task
    >>> task = load_task("Iris1", split=3)
    >>> (task.y_train == 1).sum().item(), (task.y_train == -1).sum().item()
    (35, 70)
    """
    _check_splits(splits)
    task = _find(name, splits)
    if not isinstance(split, Integral) or isinstance(split, bool) or split not in range(N_SPLITS):
        raise ValueError(f"split={split!r} is unknown: {name} has the splits 0 to {N_SPLITS - 1}.")
    if splits == "authors":
        arrays = authors.read_split(task.authors_file, int(split), data_dir)
        return Split(task.name, int(split), *(a.copy() for a in arrays))
    if data_dir is not None:
        raise ValueError(f'data_dir={str(data_dir)!r} holds the authors\' files, and splits="embedded" reads none: pass splits="authors".')
    return _embedded_split(task, int(split))


def _embedded_split(task: Task, split: int) -> Split:
    X, classes = embedded.raw(task.dataset)
    y = np.where(classes == task.target, TARGET, OUTLIER)
    train, test = embedded.split_rows(classes, split)
    scaler = TargetScaler().fit(X[train], y[train])
    X_train, X_test = (np.ascontiguousarray(scaler.transform(X[rows])) for rows in (train, test))
    return Split(task.name, split, X_train, y[train], X_test, y[test])


def _check_splits(splits: str) -> None:
    if splits not in SPLITS:
        raise ValueError(f"splits={splits!r} is unknown: it is one of {', '.join(SPLITS)}.")


def _find(name: str, splits: SplitsName) -> Task:
    known = [task.name for task in list_tasks(splits)]
    if name in known:
        return TASKS[name]
    if name in TASKS:
        raise ValueError(f'Task {name} is not embedded: load it with splits="authors". Embedded are {", ".join(known)}.')
    raise ValueError(f'Unknown task {name!r}: with splits="{splits}" there are {", ".join(known)}.')
