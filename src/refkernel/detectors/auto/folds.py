"""Training rows, scored by descriptions that have not seen them: in folds, or of many rows by leaving some of them out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..._core.progress import progress
from ..._core.rows import TrainingRows, dense, training_rows
from ..._core.validation import validate_data
from ...large import as_source, is_source
from ...large.labels import Labels, sampled
from .descriptions import Descriptions, keys
from .evidence import Evidence
from .parts import ViewParts

FOLDS = 10  # each fold is scored by what the other nine describe. With fewer folds, new rows would look more normal than these.
MOST_IN_FOLDS = 5000  # of more rows, some are left out instead: the same promise for a tenth of the time

FEWEST_LEFT_OUT, LEFT_OUT, MOST_LEFT_OUT = 2000, 0.1, 10_000
"""The share of the rows that is left out, and limits of their number: 10,000 rows promise rates down to 1 / 10,000."""

GAP = 0.5  # of the length of a stretch of time: rows as near to it are not described either
MOST_READ = 100_000  # rows that are drawn from a source: more than are described and calibrate
MOST_DESCRIBED = 20_000  # rows that are described: with more, leaves get smaller, and no table that we know of is ranked better

Without: TypeAlias = Callable[[np.ndarray], tuple[Callable[[np.ndarray], np.ndarray], np.ndarray | None]]
"""The table as those see it who have not seen some of its rows: a function from numbers of rows to rows, and the units of the columns."""


def rows_in_memory(detector: Any, X: Any, y: Any, sample_weight: Any) -> tuple[TrainingRows, np.ndarray, int, np.ndarray]:
    """The rows that a detector learns from; of a source, a sample.

    Also the numbers in X of the normal ones, how many normal rows X has, and the weights of the normal ones.
    """
    if not is_source(X):
        rows, weight = training_rows(validate_data(detector, dense(X), dtype=np.float64), y, sample_weight)
        return rows, rows.targets, rows.targets.size, weight[rows.targets]
    source = as_source(X)
    labels = Labels.of(len(source), y, sample_weight)
    found, index = sampled(source, labels, detector.random_state, MOST_READ)
    detector.n_features_in_ = source.n_columns
    rows, weight = labels.chosen(index).training(found)
    given = len(source) if labels.kind is None else int((labels.kind == 1).sum())
    return rows, index[rows.targets], given, weight[rows.targets]


@dataclass(frozen=True)
class HeldOut:
    """Rows that calibrate, scored by descriptions that have not seen them."""

    rows: np.ndarray
    scores: np.ndarray  # parts × rows
    contradicts: np.ndarray  # whether each differs in a column that all described rows agree in
    is_copy: np.ndarray  # whether another fold has its equal

    @classmethod
    def joined(cls, parts: "Sequence[HeldOut]") -> "HeldOut":
        return cls(*(np.concatenate(fields, axis=-1) for fields in zip(*(vars(part).values() for part in parts), strict=True)))

    def some(self, places: np.ndarray) -> "HeldOut":
        return HeldOut(*(field[..., places] for field in vars(self).values()))

    def evidence(self, weights: np.ndarray) -> np.ndarray:
        """The mean evidence against each row, by all others."""
        return averaged([Evidence.left_out(scores) for scores in self.scores], weights)


def averaged(evidence: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """The weighted mean of some evidence, added in its order."""
    found = [weight * each for weight, each in zip(weights.tolist(), evidence, strict=True) if weight]
    return sum(found[1:], start=found[0]) / weights.sum()  # NumPy would sum a single sample in another order


@dataclass(frozen=True, eq=False)
class Training:
    """Normal rows X, and the parts that describe them."""

    X: np.ndarray
    units: np.ndarray | None
    parts: Sequence[ViewParts]
    is_local: bool
    without: Without | None  # the rows as an encoder gives them that has not seen some
    verbose: bool
    place: np.ndarray | None = None  # of each row in time, if that counts: stretches of time are left out together then

    def learn(self, rows: np.ndarray, random_state: np.random.RandomState) -> tuple[Descriptions, np.ndarray, HeldOut]:
        """Descriptions of some rows, which of them are described, and those that calibrate."""
        rows = random_state.permutation(rows)
        if len(rows) <= MOST_IN_FOLDS:
            described = np.sort(rows)
            model, held = self._describe(self.X[described], self.units), self.in_folds(rows, FOLDS)
            return model, described, self._as_copies(held, model)
        left_out = int(np.clip(LEFT_OUT * len(rows), FEWEST_LEFT_OUT, MOST_LEFT_OUT))
        unseen = rows[:left_out]
        if self.place is not None:
            unseen = np.concatenate([stretch[: left_out // FOLDS] for stretch in self._folds(rows, FOLDS)])
        described = np.sort(rows[~np.isin(rows, unseen)][:MOST_DESCRIBED])
        model = self._describe(self.X[described], self.units)
        return model, described, self.held_out(np.sort(unseen), described, model)

    def _folds(self, rows: np.ndarray, count: int) -> list[np.ndarray]:
        """The rows in so many parts: stretches of time, if time counts."""
        if self.place is None:
            return [rows[number::count] for number in range(count)]
        return np.array_split(rows[np.argsort(self.place[rows], kind="stable")], count)

    def _near(self, part: np.ndarray) -> np.ndarray:
        """A part, and with a stretch of time also what resembles its ends: half as many rows on either side."""
        if self.place is None:
            return part
        first, last = self.place[part[[0, -1]]]
        gap = GAP * (last - first)
        return np.flatnonzero((self.place >= first - gap) & (self.place <= last + gap))

    def in_folds(self, rows: np.ndarray, folds: int) -> HeldOut:
        """Every row, scored by descriptions of those in the other folds."""
        parts = self._folds(rows, min(folds, len(rows)))
        shown = progress(parts, len(parts), self.verbose, "folds")
        return HeldOut.joined([self.held_out(np.sort(part), np.setdiff1d(rows, self._near(part))) for part in shown])

    def held_out(self, rows: np.ndarray, others: np.ndarray, model: Descriptions | None = None) -> HeldOut:
        """Some rows, scored by descriptions of others: by ``model`` if it describes them as those see them who have not seen the rows."""
        seen, units = (self.X.__getitem__, self.units) if self.without is None else self.without(rows)
        X, Z = seen(rows), seen(others)
        known = set(keys(Z)) if model is None else set()
        if model is None or not np.array_equal(Z, self.X[others]):
            model = self._describe(Z, units)
        return HeldOut(rows, model.score(X), model.contradicts(X), np.array([key in known for key in keys(X)], dtype=bool))

    def _describe(self, X: np.ndarray, units: np.ndarray | None) -> Descriptions:
        return Descriptions(units, self.is_local).fit(X, self.parts)

    def _as_copies(self, held: HeldOut, model: Descriptions) -> HeldOut:
        """Rows with a copy in another fold score at least as new copies do; differences between folds would decide otherwise."""
        scores = held.scores.copy()
        if held.is_copy.any():
            scores[:, held.is_copy] = np.maximum(scores[:, held.is_copy], model.score(self.X[held.rows[held.is_copy]]))
        return HeldOut(held.rows, scores, held.contradicts, held.is_copy)
