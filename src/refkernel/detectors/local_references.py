"""Local references: rows in the leaves of a tree, each leaf with its references. ``Z`` (n × d): distinct rows in single precision."""

from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from scipy.linalg import lapack
from sklearn.base import BaseEstimator

from .._core import local_residuals as loops
from .._core.file_rules import Array, Number, Rule
from .._core.shapley import path_of_exponents, path_of_pairs
from .._core.threads import in_threads, one_blas_thread

REFERENCES = 200  # references of a leaf. With twice as many, no collection of tables gains more than 0.2 points of AUROC.
OWN = 0.625  # A leaf holds at most this share of its references itself; the others are those nearest to its box
TRIED_COLUMNS = 5  # A leaf that has one value in each of the columns that spread most is not split
UNBALANCED = 4  # splits beyond those that halve the rows down to the size of a leaf: columns with few values split off little at a time
INWARD = 1e-3  # rows that are equally near to a leaf's box come in the order of their distances from its centre, with this weight
SPREAD_DIGITS = 5  # columns that spread equally are taken in their order: rounding errors must not decide
PAIRS, SHIFTS = 1000, 8  # the mean distance is that of up to this many rows from as many others, this many times
KERNELS = {0.5: "Laplacian kernel of root distances", 1.0: "Laplacian kernel", 2.0: "Gaussian kernel"}  # their names, by power
RATES = {2.0: 0, 1.0: 1, 0.5: 2}  # where ``path_of_pairs`` expects the rates of each power
RIDGE = 0.03  # noise on the kernel's diagonal, as a share of it: only what differs from the references by more than this stands out
LEAST_EXPLAINED = 1e-80  # what is explained of a sample at least: its logarithm is finite
MANY_ROWS = 2000  # from here on, rows are shared between threads
Mixing: TypeAlias = Callable[[int, np.ndarray], np.ndarray] | None


class LocalReferences(BaseEstimator):
    """Halve the rows at medians until a leaf holds at most OWN · ``references`` rows; the rows nearest to its box fill it up.

    With fewer rows than ``references``, all are the references of a single leaf.
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        "references": Number(1),
        "column_": Array(("k",), lowest=0),
        "at_": Array(("k",)),
        "child_": Array(("k", 2), lowest=-(1 << 31)),
        "members_": Array(("l", "m"), lowest=0),
    }

    def __init__(self, references: int = REFERENCES) -> None:
        self.references = references

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """The children of a node come after it, and each leaf has references, in ascending order."""
        k, leaves = sizes["k"], sizes["l"]
        if sizes["m"] > self.references or (np.diff(self.members_) <= 0).any():
            return f"members_ is not at most {self.references} different rows for each leaf"
        fits = (self.child_ < k) & (self.child_ >= -leaves) & ((self.child_ < 0) | (self.child_ > np.arange(k)[:, None]))
        return None if fits.all() and leaves == k + 1 and sizes["m"] else "child_ is not a tree of these leaves"

    def fit(self, Z: np.ndarray) -> Self:
        """Grow the tree, and find the references of each leaf."""
        n, m = len(Z), min(self.references, len(Z))
        most = n if m == n else max(1, int(OWN * m))
        depth = np.log2(n / most) + UNBALANCED
        columns: list[int] = []
        at: list[float] = []
        child: list[list[int]] = []
        leaves: list[np.ndarray] = []
        waiting: list[tuple[np.ndarray, int, int, int]] = [(np.arange(n), 0, -1, 0)]
        while waiting:
            rows, level, parent, side = waiting.pop()
            split = _split(Z, rows) if len(rows) > most and level < depth else None
            if parent >= 0:
                child[parent][side] = -len(leaves) - 1 if split is None else len(columns)
            if split is None:
                leaves.append(rows)
                continue
            column, value = split
            below = Z[rows, column] < value
            waiting += [(rows[~below], level + 1, len(columns), 1), (rows[below], level + 1, len(columns), 0)]
            columns.append(column)
            at.append(value)
            child.append([0, 0])
        self.column_, self.at_ = np.array(columns, dtype=np.int32), np.array(at, dtype=np.float32)
        self.child_ = np.array(child, dtype=np.int32).reshape(-1, 2)
        self.members_ = np.array([_around(Z, rows, m) for rows in leaves], dtype=np.int32)
        return self

    def leaves(self, Z: np.ndarray) -> np.ndarray:
        """The number of the leaf of each row."""
        leaf = np.empty(len(Z), dtype=np.intp)
        loops.leaves_of(Z, self.column_, self.at_, self.child_, leaf)
        return leaf

    def _graph(self, op: Any, Z: Any) -> Any:
        """The number of each sample's leaf (n × 1): the one whose every node on the way from the root sends the sample there."""
        leaves = len(self.members_)
        if leaves == 1:
            return op.whole(op.Mul(op.columns(Z, np.zeros(1)), np.zeros(1, dtype=np.float32)))
        agrees, right = np.zeros((len(self.at_), leaves), dtype=np.float32), np.zeros(leaves, dtype=np.float32)
        depth = np.zeros(leaves, dtype=np.float32)
        ways: list[tuple[int, list[tuple[int, int]]]] = [(0, [])]
        while ways:
            node, way = ways.pop()
            if node >= 0:
                ways += [(int(self.child_[node, side]), [*way, (node, side)]) for side in (0, 1)]
                continue
            for above, side in way:
                agrees[above, -node - 1] = -1.0 if side else 1.0
            right[-node - 1], depth[-node - 1] = sum(side for _, side in way), len(way)
        below = op.single(op.Less(op.columns(Z, self.column_), self.at_))
        return op.ArgMax(op.Add(op.MatMul(below, agrees), right - depth), axis=1, keepdims=1)


def _split(Z: np.ndarray, rows: np.ndarray) -> tuple[int, float] | None:
    """The column that spreads most, and a value between those nearest to its median; None if these columns have one value each."""
    spread = np.round(Z[rows].std(axis=0), SPREAD_DIGITS)
    for j in np.argsort(-spread, kind="stable")[:TRIED_COLUMNS]:
        x = np.sort(Z[rows, j])
        first = np.flatnonzero(x[1:] > x[:-1]) + 1  # where a new value begins
        if first.size:
            cut = first[np.abs(first - len(rows) / 2).argmin()]
            low, high = x[cut - 1], x[cut]
            middle = np.float32(low + (high - low) / 2)
            return int(j), float(middle if low < middle <= high else high)
    return None


def _around(Z: np.ndarray, rows: np.ndarray, m: int) -> np.ndarray:
    """A leaf's own rows, then those nearest to the box around them: m rows, in their order."""
    if m == len(Z):
        return np.arange(m)
    own, away = Z[rows], np.empty(len(Z), dtype=np.float32)
    loops.box_distances(Z, own.min(axis=0), own.max(axis=0), own.mean(axis=0), INWARD, away)
    away[rows] = -1.0
    return np.sort(np.argpartition(away, m - 1)[:m])


class KernelResidual(BaseEstimator):
    """What the references leave of a sample: 1 - k'(K + ridge I)^-1 k for k = exp(-D / width), D = Σ_j |x_j - r_j|^power.

    It is the squared distance from the references' span in the kernel's space, with a ridge; also a Gaussian process's variance. ``scale``
    is the width as a multiple of the mean D between rows. With a power of ½, many small differences weigh more than few large ones.
    """

    is_local = True
    _file_rules: ClassVar[dict[str, Rule]] = dict.fromkeys(("width_", "scale", "ridge", "power"), Number(positive=True))

    def __init__(self, scale: float, power: float = 1.0, ridge: float = RIDGE) -> None:
        self.scale = scale
        self.power = power
        self.ridge = ridge

    @property
    def is_narrow(self) -> bool:
        """Whether -log(1 - residual) is the score: a Gaussian kernel explains so little of far samples that the residual is 1 for all."""
        return self.power == 2.0

    @property
    def name(self) -> str:
        """What the score is."""
        return f"residual of a {KERNELS[self.power]}, scale {self.scale:g}"

    def fit(self, Z: np.ndarray) -> Self:
        """Measure the width on distinct rows: pairs that are far apart in the order of the rows, evenly spread."""
        Z = Z[:: max(1, len(Z) // PAIRS)]
        shifts = sorted({round(number * len(Z) / (SHIFTS + 1)) for number in range(1, SHIFTS + 1)} - {0})
        distances = [(np.abs(Z - np.roll(Z, shift, axis=0)) ** self.power).sum(axis=1, dtype=np.float64) for shift in shifts]
        self.width_ = self.scale * ((float(np.mean(distances)) if shifts else 0.0) or 1.0)
        return self

    def factor(self, columns: np.ndarray, packed: np.ndarray) -> None:
        """Fill ``packed`` with the inverse Cholesky factor of one leaf. Mutates packed."""
        K = np.empty((columns.shape[1], columns.shape[1]))
        loops.kernel_matrix(columns, self.power, 1.0 / self.width_, self.ridge, K)
        with one_blas_thread():
            U, _ = lapack.dpotrf(K.T, overwrite_a=1)  # the lower triangle of K, in the order of Fortran
            packed[:] = lapack.dtrtri(U, overwrite_c=1)[0].T[np.tri(len(K), dtype=bool)]

    def score(self, Z: np.ndarray, near: "Near", leaf: np.ndarray) -> np.ndarray:
        """The residuals of samples in these leaves."""
        out, order = np.empty(len(Z)), np.argsort(leaf, kind="stable")
        factors = near.factors(self, leaf)

        def work(start: int, stop: int) -> None:
            loops.explained(Z, order[start:stop], leaf, near.columns, factors, self.power, 1.0 / self.width_, out)

        in_threads(work, len(Z)) if len(Z) >= MANY_ROWS else work(0, len(Z))
        return -np.log(np.maximum(out, LEAST_EXPLAINED)) if self.is_narrow else 1.0 - out

    def _graph(self, op: Any, Z: Any, leaf: Any, near: "Near") -> Any:
        everywhere = np.arange(len(near.columns))
        near.fill(everywhere)
        packed = near.factors(self, everywhere)
        inverses = np.zeros((len(packed), near.columns.shape[2], near.columns.shape[2]), dtype=np.float32)
        inverses[:, *np.tril_indices(inverses.shape[1])] = packed
        explained = op.locally_explained(Z, leaf, near.columns, inverses, self.power, self.width_)
        if self.is_narrow:
            return op.Mul(op.Log(op.Max(explained, op.numbers(LEAST_EXPLAINED))), op.numbers(-1.0))
        return op.Sub(op.numbers(1.0), explained)

    def terms(self, Z: np.ndarray, near: "Near", leaf: np.ndarray, feature: np.ndarray, count: int, mixed: Mixing = None) -> np.ndarray:
        """Aumann and Shapley's values of the residuals; ``mixed(i, references)``: what columns add to distances in a mixed view."""
        terms, packed = np.zeros((len(Z), count)), near.factors(self, leaf)
        rate = np.zeros((1, 3, Z.shape[1]))
        rate[0, RATES[self.power]] = 1.0 / self.width_
        for c in np.unique(leaf):
            rows, columns = np.flatnonzero(leaf == c), near.columns[c].astype(np.float64)
            inverse = np.zeros((columns.shape[1], columns.shape[1]))
            inverse[np.tril_indices(len(inverse))] = packed[c]
            pairs, found = inverse.T @ inverse, np.zeros((len(rows), count))
            if mixed is None:
                path_of_pairs(Z[rows].astype(np.float64), columns, rate, feature, -pairs, found)
            else:
                for place, i in enumerate(rows):
                    added = path_of_exponents(mixed(int(i), columns.T).T / self.width_, -pairs)
                    found[place] = np.bincount(feature, weights=added, minlength=count)
            terms[rows] = found
        return terms


class Near:
    """References and factors of leaves that samples fell into; threads may fill a leaf at the same time, as they write the same bits."""

    def __init__(self, Z: np.ndarray, references: LocalReferences) -> None:
        leaves, m = references.members_.shape
        self._Z, self._members = Z, references.members_
        self.columns = np.empty((leaves, Z.shape[1], m), dtype=np.float32)
        self._filled = np.zeros(leaves, dtype=bool)
        self._factors: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._made: dict[int, Any] = {}

    def fill(self, leaf: np.ndarray) -> None:
        """Lay out the references of these leaves, column by column."""
        for c in _missing(self._filled, leaf):
            self.columns[c] = self._Z[self._members[c]].T
            self._filled[c] = True

    def once(self, kernel: Any, make: Callable[[np.ndarray], Any]) -> Any:
        """What a kernel makes of all rows, when it is first needed."""
        if id(kernel) not in self._made:
            self._made[id(kernel)] = make(self._Z)
        return self._made[id(kernel)]

    def factors(self, kernel: Any, leaf: np.ndarray) -> np.ndarray:
        """The factors of a kernel, one row for each leaf; those of these leaves are filled."""
        if id(kernel) not in self._factors:
            leaves, _, m = self.columns.shape
            empty = np.empty((leaves, m * (m + 1) // 2), dtype=np.float32), np.zeros(leaves, dtype=bool)
            self._factors.setdefault(id(kernel), empty)
        packed, filled = self._factors[id(kernel)]
        for c in _missing(filled, leaf):
            kernel.factor(self.columns[c], packed[c])
            filled[c] = True
        return packed


def _missing(filled: np.ndarray, leaf: np.ndarray) -> np.ndarray:
    return leaf[:0] if filled.all() else np.unique(leaf[~filled[leaf]])
