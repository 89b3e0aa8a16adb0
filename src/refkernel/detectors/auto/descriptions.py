"""All descriptions of one set of rows: views, local references and parts, learnt from these rows alone."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..._core.distances import moderate_unit
from ..._core.file_rules import Array, Flag, Items, Part, Rule
from ..local_references import LocalReferences, Near
from .parts import KINDS, MANY, ROBUST_REFERENCES, VIEWS, ViewParts
from .views import Columns, as_single, single_graph

MOST_LEAVES = 100  # leaves that a row is a reference of, on average: splits end long before


def keys(X: np.ndarray) -> list[bytes]:
    """A key for each row, the same for equal rows."""
    return [row.tobytes() for row in X + 0.0]  # -0.0 becomes 0.0


class Description(BaseEstimator):
    """One view of the rows: its leaves and their references, and the parts that use them."""

    _file_rules: ClassVar[dict[str, Rule]] = {"view": Part(VIEWS), "references": Part(LocalReferences), "parts": Items(Part(KINDS))}

    def __init__(self, view: Any, references: LocalReferences, parts: list[Any]) -> None:
        self.view = view
        self.references = references
        self.parts = parts

    def fit(self, X: np.ndarray, columns: Columns, rows: np.ndarray) -> Self:
        """Learn the view from all rows, the rest from the distinct ones."""
        self.view.fit(X, columns)
        Z = self.seen(rows, columns)
        if not self._is_local:
            self.references.references = len(Z)
        self.references.fit(Z)
        for part in self.parts:
            part.fit(Z)
        self._near = Near(Z, self.references)
        return self

    def seen(self, X: np.ndarray, columns: Columns) -> np.ndarray:
        """Rows in this view, in single precision."""
        Z = self.view.transform(X)
        if self.view.is_by_column:
            columns.fill(X, Z)
        return as_single(Z)

    @property
    def _is_local(self) -> bool:
        return any(part.is_local for part in self.parts)

    def placed(self, X: np.ndarray, columns: Columns, rows: np.ndarray) -> tuple[np.ndarray, Near, np.ndarray]:
        """Samples in this view, what is near them, and their leaves."""
        Z, near = self.seen(X, columns), self.near(columns, rows)
        leaf = self.references.leaves(Z)
        if self._is_local:
            near.fill(leaf)
        return Z, near, leaf

    def near(self, columns: Columns, rows: np.ndarray) -> Near:
        """References and factors; laid out anew after a file was loaded."""
        if not hasattr(self, "_near"):
            self._near = Near(self.seen(rows.astype(np.float64), columns), self.references)
        return self._near

    def __getstate__(self) -> dict[str, Any]:
        """Copies and files do not hold what follows from the rows."""
        return {name: value for name, value in super().__getstate__().items() if name != "_near"}


class Descriptions(BaseEstimator):
    """What the parts say about samples, in a table whose distinct rows are the references. Columns of extreme size get moderate units."""

    _file_rules: ClassVar[dict[str, Rule]] = {
        "unit_": Array(("d",)),
        "columns_": Part(Columns),
        "rows_": Array(("n", "d")),
        "described_": Items(Part(Description)),
        "is_local": Flag(),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """All views are of the columns of the rows, and the references are among them."""
        n, d = sizes["n"], sizes["d"]
        views = [self.columns_.median_, *(described.view.size for described in self.described_)]
        if not self.described_ or any(np.size(view) != d for view in views):
            return f"described_ is not a list of views of {d} columns"
        for described in self.described_:
            tree, columns = described.references, len(getattr(described.view, "V_", range(d - 1))) + 1
            most = MANY if described._is_local else n  # factors take the square of it
            if tree.members_.max() >= n or (tree.column_ >= columns).any() or tree.members_.shape[1] > most:
                return f"described_ names rows or columns beyond the {n} × {d} of rows_, or more than {most} references for a leaf"
            if tree.members_.size > MOST_LEAVES * n:
                return f"described_ has {len(tree.members_)} leaves; {n} rows have fewer"
        return None

    def __init__(self, units: np.ndarray | None = None, is_local: bool = True) -> None:
        self.units = units
        self.is_local = is_local

    def fit(self, X: np.ndarray, parts: Sequence[ViewParts]) -> Self:
        """Describe rows."""
        self.unit_ = moderate_unit(X, axis=0)
        X = X / self.unit_
        share_unit = any(getattr(of_view.view, "shares_unit", False) for of_view in parts)
        self.columns_ = Columns(None if self.units is None else self.units / self.unit_, share_unit).fit(X)
        first: dict[bytes, int] = {}
        rows = X[[first.setdefault(key, i) == i for i, key in enumerate(keys(X))]]
        if not self.is_local:
            rows = rows[np.unique(np.linspace(0, len(rows) - 1, ROBUST_REFERENCES).astype(np.intp))]
        exact = rows.astype(np.float32)
        self.rows_ = exact if (exact == rows).all() else rows
        self.described_ = []
        for of_view in parts:
            references = LocalReferences(of_view.references if self.is_local else len(rows))
            described = Description(clone(of_view.view), references, [clone(part) for part in of_view.parts])
            self.described_.append(described.fit(X, self.columns_, rows))
        return self

    @property
    def names(self) -> list[tuple[str, str]]:
        """The part and the view of each score."""
        return [(part.name, described.view.name) for described in self.described_ for part in described.parts]

    def score(self, X: np.ndarray) -> np.ndarray:
        """The score of every sample by every part (parts × n)."""
        X, found = self._moderate(X), []
        for described in self.described_:
            placed = described.placed(X, self.columns_, self.rows_)
            found += [part.score(*placed) for part in described.parts]
        return np.array(found)

    def terms(self, X: np.ndarray, feature: np.ndarray, count: int) -> list[np.ndarray]:
        """What each feature adds to the score of each sample, for every part (rows × count); ``feature`` is that of each column."""
        X, found = self._moderate(X), []
        for described in self.described_:
            placed = described.placed(X, self.columns_, self.rows_)
            mixed = partial(described.view.mixed, X) if hasattr(described.view, "mixed") else None
            found += [part.terms(*placed, feature, count, mixed) for part in described.parts]
        return found

    def kept_rows(self) -> np.ndarray:
        """The distinct training rows that are references."""
        return self.rows_.astype(np.float64) * self.unit_

    def comparable(self, X: np.ndarray) -> np.ndarray:
        """Rows in the first view: on its scale columns are compared."""
        return self.described_[0].seen(self._moderate(X), self.columns_).astype(np.float64)

    def _moderate(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.asarray(X / self.unit_)

    def _graph(self, op: Any, X: Any, used: Sequence[bool]) -> list[Any]:
        """The scores of the parts that are used, a node (n × 1) in double precision for each; X in moderate units."""
        found, left = [], list(used)
        for described in self.described_:
            wanted = [part for part in described.parts if left.pop(0)]
            if wanted:
                near = described.near(self.columns_, self.rows_)
                Z = described.view._graph(op, X)
                Z = single_graph(op, self.columns_._graph(op, X, Z) if described.view.is_by_column else Z)
                leaf = described.references._graph(op, Z)
                found += [op.doubles(part._graph(op, Z, leaf, near)) for part in wanted]
        return found

    def contradicted(self, X: np.ndarray) -> np.ndarray:
        """True for cells that differ from a column that was constant in training."""
        return self.columns_.contradicted(self._moderate(X))

    def contradicts(self, X: np.ndarray) -> np.ndarray:
        """True for samples with such a cell."""
        return np.asarray(self.contradicted(X).any(axis=1))
