"""The table of tasks, the function that loads one, and our own 70/30 splits of the embedded data."""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from numbers import Integral
from typing import Literal

import numpy as np

from .._core.types import StrPath
from .._core.validation import OUTLIER, check_choice
from ..preprocessing import TargetScaler
from . import published

TARGET = 1
TRAIN_SHARE = 0.7
N_SPLITS = 5
SPLITS = ("embedded", "authors")
SplitsName = Literal["embedded", "authors"]


@dataclass(frozen=True)
class Task:
    """Learn one class of a data set; samples of its other classes are outliers.

    Parameters
    ----------
    name, dataset, target : str
        The article's name for the task, such as "Seed2", its data set, and the class to learn.
    n_targets, n_outliers : int
        The number of samples, training and test together.
    n_features : int
        The number of features as published. Loading drops those that are constant in the training targets: 1 of Ion1, 2 of Ion2.
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
    X_train, y_train, X_test, y_test : ndarray
        Samples in rows, float64, standardised by the training targets; labels, +1 for targets, -1 for outliers.

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
    check_choice("splits", splits, SPLITS)
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
    DataError
        If an authors' file is missing in data_dir, truncated or changed; ``DownloadError`` if it could not be downloaded.

    Examples
    --------
    >>> from refkernel.datasets import load_task
    >>> task = load_task("Iris1", split=3)
    >>> (task.y_train == 1).sum().item(), (task.y_train == -1).sum().item()
    (35, 70)
    """
    known = [task.name for task in list_tasks(splits)]
    if name not in known and name in TASKS:
        raise ValueError(f'Task {name} is not embedded: load it with splits="authors". The embedded tasks are {", ".join(known)}.')
    if name not in known:
        raise ValueError(f'Unknown task {name!r}: with splits="{splits}" the tasks are {", ".join(known)}.')
    task = TASKS[name]
    if not isinstance(split, Integral) or isinstance(split, bool) or split not in range(N_SPLITS):
        raise ValueError(f"split={split!r} is unknown: {name} has the splits 0 to {N_SPLITS - 1}.")
    if splits == "authors":
        content = published.AUTHORS.content(task.authors_file, data_dir)
        return Split(task.name, int(split), *(a.copy() for a in published.authors_splits(content)[split]))
    if data_dir is not None:
        raise ValueError(
            f'data_dir={str(data_dir)!r} is only for the authors\' files, and splits="{splits}" does not read them: pass splits="authors".'
        )
    X, classes = embedded_data(task.dataset)
    y = np.where(classes == task.target, TARGET, OUTLIER)
    train, test = split_rows(classes, int(split))
    scaler = TargetScaler().fit(X[train], y[train])
    X_train, X_test = (np.ascontiguousarray(scaler.transform(X[rows])) for rows in (train, test))
    return Split(task.name, int(split), X_train, y[train], X_test, y[test])


@lru_cache
def embedded_data(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    """(X, classes) of a data set as published, read-only: X (n × d) float64, classes (n,) their names."""
    if dataset == "Iris":
        from sklearn.datasets import load_iris  # slow to import, and needed for three tasks only

        iris = load_iris()
        X, classes = np.array(iris.data, dtype=np.float64), iris.target_names[iris.target]
    else:
        text = (files(__package__) / "data" / f"{dataset.lower()}.csv").read_text(encoding="utf-8")
        cells = np.array([line.split(",") for line in text.splitlines()[1:]])
        X, classes = cells[:, :-1].astype(np.float64), cells[:, -1].copy()
    X.flags.writeable = classes.flags.writeable = False
    return X, classes


def split_rows(classes: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """(train, test): row numbers in data order; round(0.7 · size) rows of each class train (halves up).

    ``RandomState(split)`` permutes the rows of each class in turn, in alphabetical order, and the first rows train, whatever the target.
    """
    random = np.random.RandomState(split)  # its stream is frozen, while a Generator's may change with NumPy's version
    train = np.zeros(classes.size, dtype=bool)
    for name in np.unique(classes):
        rows = np.flatnonzero(classes == name)
        size = int(np.floor(TRAIN_SHARE * rows.size + 0.5 + 1e-9))  # 0.7 * 225 is 157.49999999999997
        train[random.permutation(rows)[:size]] = True
    return np.flatnonzero(train), np.flatnonzero(~train)
