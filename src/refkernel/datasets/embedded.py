"""The embedded data sets, and our own 70/30 splits of them."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import numpy as np

__all__ = ["raw", "split_rows"]

TRAIN_SHARE = 0.7


@lru_cache
def raw(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    """(X, classes) of a data set as published, read-only: X (n × d) float64, classes (n,) their names."""
    X, classes = _iris() if dataset == "Iris" else _csv(dataset)
    X.flags.writeable = classes.flags.writeable = False
    return X, classes


def split_rows(classes: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """(train, test): row numbers in data order, round(0.7 · size) rows of each class for training (halves up).

    ``RandomState(split)`` permutes the rows of each class in turn, the classes in alphabetical order, and the first rows of
    a permutation train. The targets play no part, so that all tasks of a data set share a split.
    """
    random = np.random.RandomState(split)  # its stream is frozen, while a Generator's may change with NumPy's version
    train = np.zeros(classes.size, dtype=bool)
    for name in np.unique(classes):
        rows = np.flatnonzero(classes == name)
        train[random.permutation(rows)[: _train_size(rows.size)]] = True
    return np.flatnonzero(train), np.flatnonzero(~train)


def _train_size(n: int) -> int:
    return int(np.floor(TRAIN_SHARE * n + 0.5 + 1e-9))  # 0.7 * 225 is 157.49999999999997


def _csv(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    text = (files(__package__) / "data" / f"{dataset.lower()}.csv").read_text(encoding="utf-8")
    cells = np.array([line.split(",") for line in text.splitlines()[1:]])
    return cells[:, :-1].astype(np.float64), cells[:, -1].copy()


def _iris() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_iris  # slow to import, and needed for three tasks only

    iris = load_iris()
    return np.array(iris.data, dtype=np.float64), iris.target_names[iris.target]
