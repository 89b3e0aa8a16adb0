"""Why rows are flagged, in words and in small tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from ..._core.distances import negative_squared_distances
from ...exceptions import _printable
from .normal import Normal, kept_rows

FILLER = 0.1  # A reason that counts less than this share of the first says nothing
AGAINST, FOR = "#d55e00", "#0072b2"
"""Colours of bars that stand out from light and dark pages, for eyes of all kinds."""

MOST_KEPT = 500  # rows among which the most similar one is searched
BLOCK = 4096  # rows that are compared at a time
ALIKE = 10.0  # A row that agrees in the worst feature first: differences there count this many times


@dataclass(frozen=True)
class Reason:
    """A cell that counts against its row: its column, its value, and what training had there (empty if that is unknown)."""

    column: str
    value: str
    normal: str  # what most of training had
    outside: bool  # whether training never had such a value
    weight: float  # what the cell adds to the row's score, negative
    why: str  # what is wrong with the value, in words; empty where nothing is known
    beside: str = ""  # the cell that it does not go with, where both are normal by themselves: ``bill_length_mm = 38.1``

    def __str__(self) -> str:
        return _printable(self.column + (f" = {self.value}" if self.value else "") + (f" ({self.why})" if self.why else ""))

    def as_dict(self) -> dict[str, Any]:
        """The reason in plain JSON."""
        return asdict(self)


def worst_features(values: np.ndarray, count: int) -> np.ndarray:
    """The numbers of the features that count most against each row (rows × count), worst first; -1 where there are no more."""
    found = np.argsort(values, axis=1, kind="stable")[:, : max(count, 0)]
    return np.where(np.take_along_axis(values, found, axis=1) < 0.0, found, -1)


def row_reasons(
    names: Sequence[str],
    values: np.ndarray,
    cells: Sequence[np.ndarray],
    normals: Sequence[Normal],
    count: int,
    find: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> list[list[Reason]]:
    """The cells that count most against each row, strongest first; ``find(rows, worst)`` gives features that do not go with these."""
    outside, unusual = ([test(*pair) for pair in zip(normals, cells, strict=True)] for test in (Normal.outside, Normal.unusual))
    worst, partners = worst_features(values, count), np.full(len(values), -1)
    if find is not None and len(names) > 1:
        # cells that stand out by themselves; dates are several features, and of some columns nothing is known
        apart = np.array([mine | (normal.is_date or not normal.most) for normal, mine in zip(normals, unusual, strict=True)])
        first = worst_features(values, 1)[:, 0]
        rows = np.flatnonzero((first >= 0) & ~apart[first, np.arange(len(first))])
        if rows.size:
            others = find(rows, first[rows])
            partners[rows] = np.where((others >= 0) & ~apart[others, rows], others, -1)
    found: list[list[Reason]] = []
    for row, (features, partner) in enumerate(zip(worst.tolist(), partners.tolist(), strict=True)):
        found.append([])
        for j in features:
            if j < 0 or values[row, j] > FILLER * values[row, features[0]]:
                break
            beside = f"{names[partner]} = {normals[partner].written(cells[partner][row])}" if partner >= 0 and not found[-1] else ""
            why = f"normal alone, but not in combination with {beside}" if beside else normals[j].why(bool(unusual[j][row]))
            value = normals[j].written(cells[j][row])
            found[-1].append(Reason(names[j], value, normals[j].most, bool(outside[j][row]), float(values[row, j]), why, beside))
    return found


class Html(str):
    """Markup, which is not escaped."""


def html_table(about: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table for a notebook, with everything escaped that is not ``Html``."""
    lines = [f"<table><caption style='text-align:left'>{escape(about)}</caption>"]
    for tag, row in [("th", names), *(("td", row) for row in rows)]:
        cells = (cell if isinstance(cell, Html) else escape(str(cell)) for cell in row)
        lines.append("<tr>" + "".join(f"<{tag} style='text-align:left'>{cell}</{tag}>" for cell in cells) + "</tr>")
    return "\n".join([*lines, "</table>"])


def html_bar(share: float) -> Html:
    """A bar from the middle of a track, to the left for a negative share of its half."""
    style = f"margin-left:{50 + 50 * min(share, 0.0):.1f}%;width:{50 * abs(share):.1f}%;background:{AGAINST if share < 0 else FOR}"
    return Html(f"<div style='width:12em;background:#8883'><div style='height:.8em;{style}'></div></div>")


class Comparison:
    """Rows beside the most similar normal row that their model keeps; rows are as the detector takes them, ``feature`` is each column's."""

    def __init__(self, final: Any) -> None:
        self._final = final
        self._comparable = getattr(final, "_comparable", np.asarray)  # columns on a common scale, or as they are
        rows = kept_rows(final)
        self._kept = self._comparable(rows[:: max(1, len(rows) // MOST_KEPT)])

    @cached_property
    def _accepted(self) -> tuple[np.ndarray, np.ndarray]:
        """Kept rows that the model accepts, and their scores."""
        rows = kept_rows(self._final)
        decisions = self._final.decision_function(rows)
        normal = np.flatnonzero(decisions >= 0) if (decisions >= 0).any() else decisions.argmax()[None]
        chosen = rows[normal[:: max(1, normal.size // MOST_KEPT)]]
        return chosen, self._final.score_samples(chosen)

    def values(self, X: np.ndarray, feature: np.ndarray, count: int, most: int) -> np.ndarray:
        """score(z with x_j) - score(z), z the accepted row most similar to x (rows × count); 0 beyond the ``most`` largest differences."""
        rows, scores = self._accepted
        values = np.zeros((len(X), count))
        for start in range(0, len(X), BLOCK):
            block = X[start : start + BLOCK]
            nearest = negative_squared_distances(block, rows).argmax(axis=1)
            Z = rows[nearest]
            order = np.argsort(-by_feature(np.square(block - Z), feature, count), axis=1, kind="stable")
            for compared in order[:, :most].T:
                changed = np.where(feature == compared[:, None], block, Z)
                values[start + np.arange(len(block)), compared] = self._final.score_samples(changed) - scores[nearest]
        return values

    def partners(self, X: np.ndarray, feature: np.ndarray, count: int, worst: np.ndarray) -> np.ndarray:
        """The feature in which x differs most from the kept row that is most like it in its worst one; -1 where ``worst`` is."""
        found = np.full(len(X), -1)
        for number in np.unique(worst[worst >= 0]):
            weight = np.where(feature == number, ALIKE, 1.0)
            mine = np.flatnonzero(worst == number)
            for start in range(0, len(mine), BLOCK):
                block = mine[start : start + BLOCK]
                Z = self._comparable(X[block])
                nearest = self._kept[negative_squared_distances(Z * weight, self._kept * weight).argmax(axis=1)]
                away = by_feature(np.abs(Z - nearest), feature, int(feature.max()) + 1)
                away[:, number] = -1.0
                found[block] = away[:, :count].argmax(axis=1)
        return found


def by_feature(values: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
    """The values of columns, added up by features (rows × count)."""
    total = np.zeros((len(values), count))
    np.add.at(total.T, feature, values.T)
    return total
