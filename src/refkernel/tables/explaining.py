"""The reasons of rows: of flagged ones, block by block, as columns of the table that ``score`` writes, and of the worst ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from .._encoding import Column
from ..exceptions import ModelFileError
from ..explanations.explanation import Explainer
from ..explanations.normal import Normal
from ..explanations.ranges import normal_of
from ..explanations.reasons import OutsideRanges, Reason, combined, reasons, row_reasons, worst_features

__all__ = ["Explaining", "reason_names", "reasons_of"]


def reason_names(count: int) -> list[str]:
    """The columns that hold the reasons."""
    return [f"reason_{number}" for number in range(1, count + 1)]


def reasons_of(saved: Any, X: pd.DataFrame, count: int = 3) -> list[list[Reason]]:
    """For each row the cells that lower its score most, the strongest first; none where the model's kind cannot be explained."""
    names, explainer = [column.name for column in saved.columns], Explainer(saved.model)
    try:
        values = explainer.against(X, count)
    except TypeError:  # a detector or a transformer of another library
        return [[] for _ in range(len(X))]
    cells, normals = [X[name].to_numpy() for name in names], [normal_of(column) for column in saved.columns]
    return row_reasons(names, values, cells, normals, count, _partners(explainer, X, values, cells, usual_in(saved.columns)))


def usual_in(columns: list[Column]) -> list[Normal | None]:
    """What most of training had in each column."""
    return [normal_of(column, bulk=True) for column in columns]


def _partners(explainer: Explainer, X: pd.DataFrame, values: np.ndarray, cells: list[np.ndarray], usual: list[Normal | None]) -> np.ndarray:
    return combined(values, cells, usual, lambda rows, worst: explainer.partners(X.iloc[rows], worst))


class Explaining:
    """Adds the ``count`` strongest reasons to each flagged row, and counts rows outside training's ranges."""

    def __init__(self, saved: Any, count: int, prefix: str = "") -> None:
        self.count = count
        self.first: Counter[str] = Counter()
        """How often each column is the first reason."""
        self._added = [prefix + name for name in reason_names(count)]
        self._columns = [column.name for column in saved.columns]
        self._normals = [normal_of(column) for column in saved.columns]
        self._usual = usual_in(saved.columns)
        self._outside = OutsideRanges(self._columns, self._normals)
        self._explainer = Explainer(saved.model)
        self._path = saved.path

    def add_to(self, rows: pd.DataFrame, X: pd.DataFrame, label: np.ndarray) -> pd.DataFrame:
        """The rows of a block with their reasons; those that are not flagged have none."""
        self._outside.add([X[name].to_numpy() for name in self._columns])
        texts = np.full((len(X), self.count), "", dtype=object)
        flagged = np.flatnonzero(label == -1)
        if flagged.size:
            texts[flagged] = self._of_flagged(X.iloc[flagged])
        return rows.assign(**dict(zip(self._added, texts.T, strict=True)))

    def _of_flagged(self, X: pd.DataFrame) -> np.ndarray:
        try:
            values = self._explainer.against(X, self.count)
        except TypeError as error:  # a detector or a transformer of another library
            raise ModelFileError(f"--explain: {self._path}: {error}") from error
        first = worst_features(values, 1)[:, 0]
        self.first.update({self._columns[number]: int((first == number).sum()) for number in np.unique(first[first >= 0])})
        cells = [X[name].to_numpy() for name in self._columns]
        partners = _partners(self._explainer, X, values, cells, self._usual)
        return reasons(self._columns, values, cells, self._normals, self.count, partners)

    def notes(self) -> list[str]:
        """What a user should hear of whole columns."""
        return self._outside.notes()
