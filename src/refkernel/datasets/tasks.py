"""The table of tasks, and the function that loads one."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np

from .._typing import StrPath
from .._validation import OUTLIER
from ..preprocessing import TargetScaler
from . import authors, embedded

__all__ = ["N_SPLITS", "SPLITS", "TASKS", "Split", "Task", "list_tasks", "load_task"]

TARGET = 1
N_SPLITS = 5
SPLITS = ("embedded", "authors")

SplitsName = Literal["embedded", "authors"]


@dataclass(frozen=True)
class Task:
    """Learn one class of a data set; samples of its other classes are outliers.

    Parameters
    ----------
    name : str
        The article's name for the task, such as "Seed2".
    dataset : str
        The data set.
    target : str
        The class to learn.
    n_targets, n_outliers : int
        The number of samples, training and test together.
    n_features : int
        The number of features as published. Those that are constant in the training targets are dropped on loading: 1 of Ion1,
        2 of Ion2.
    embedded : bool
        Whether the data come with this package.

    Examples
    --------
    >>> from refkernel.datasets import list_tasks
    >>> list_tasks()[0].target
    'setosa'
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
        """The name of the authors' file."""
        return f"{self.dataset.lower()}_targetclass_{self.name[-1]}.mat"


@dataclass(frozen=True, eq=False)
class Split:
    """One training/test split of a task.

    Parameters
    ----------
    name : str
        The name of the task.
    split : int
        The number of the split, from 0.
    X_train : ndarray of shape (n_train, n_features)
        Training samples in rows, float64, standardised by the training targets.
    y_train : ndarray of shape (n_train,)
        +1 for targets, -1 for outliers.
    X_test : ndarray of shape (n_test, n_features)
        Test samples in rows, standardised like the training samples.
    y_test : ndarray of shape (n_test,)
        +1 for targets, -1 for outliers.

    Examples
    --------
    >>> from refkernel.datasets import load_task
    >>> load_task("Iris1").X_test.shape
    (45, 4)
    """

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
    """List the tasks that ``load_task`` knows, in the article's order.

    Parameters
    ----------
    splits : {"embedded", "authors"}, default="embedded"
        The 10 tasks whose data come with this package, or all 14 of the authors.

    Returns
    -------
    list of Task
        The tasks.

    Examples
    --------
    >>> from refkernel.datasets import list_tasks
    >>> [task.name for task in list_tasks()][:4]
    ['Iris1', 'Iris2', 'Iris3', 'Seed1']
    """
    _check_splits(splits)
    return [task for task in TASKS.values() if task.embedded or splits == "authors"]


def load_task(name: str, split: int = 0, *, splits: SplitsName = "embedded", data_dir: StrPath | None = None) -> Split:
    """Load one split of one of the article's tasks, ready to train on.

    Parameters
    ----------
    name : str
        The task, such as "Seed2"; ``list_tasks(splits)`` lists them.
    split : int, default=0
        The number of the split, 0 to 4.
    splits : {"embedded", "authors"}, default="embedded"
        "embedded" for our own splits of the embedded data: 70 % of each class for training, drawn by
        ``numpy.random.RandomState(split)``, the same split for all tasks of a data set, with rows in their original order; standardised by
        ``TargetScaler``. "authors" for the splits that the article's authors published, taken as they are.
    data_dir : str or path, optional
        The folder of the authors' .mat files. By default ``$REFKERNEL_DATA/authors`` if the file is there, otherwise the user's cache
        (or the folder ``$REFKERNEL_CACHE``), into which it is downloaded. The SHA-256 is always checked.

    Returns
    -------
    Split
        The samples and labels, in new arrays.

    Raises
    ------
    ValueError
        If the task, the split or the kind of splits is unknown.
    DataError
        If an authors' file is missing in data_dir, truncated or changed; ``DownloadError`` if it could not be downloaded.
    ImportError
        If a download is needed and pooch is not installed.

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
        raise ValueError(
            f'data_dir={str(data_dir)!r} is only for the authors\' files, and splits="{splits}" does not read them: pass splits="authors".'
        )
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
        raise ValueError(f"splits={splits!r} is unknown: use one of {', '.join(SPLITS)}.")


def _find(name: str, splits: SplitsName) -> Task:
    known = [task.name for task in list_tasks(splits)]
    if name in known:
        return TASKS[name]
    if name in TASKS:
        raise ValueError(f'Task {name} is not embedded: load it with splits="authors". The embedded tasks are {", ".join(known)}.')
    raise ValueError(f'Unknown task {name!r}: with splits="{splits}" the tasks are {", ".join(known)}.')
