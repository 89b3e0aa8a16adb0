"""AutoDetector's score feature by feature.

The score is minus the average evidence of its descriptions. Each description has a score of its own, and the evidence is a curve over it
that starts at 0.

- Neighbours: with the row's neighbours held fixed, both scores are weighted sums over features of |x_j - z_j|. These terms are the exact
  Shapley values.
- Residual of a Laplacian kernel: 1 - k'Mk is a sum over pairs of references. Its values are Aumann and Shapley's, in closed form (see
  ``loops.path_of_pairs``).

A description's evidence is shared in proportion to these values, so that all shares together are the score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from .._threads import share_rows
from ..auto import AutoDetector
from ..auto.descriptions import Neighbours, Residuals
from .loops import ABSOLUTE, LARGEST, ROOT, neighbour_terms, path_of_pairs

__all__ = ["AutoForm"]

Terms: TypeAlias = list[tuple[np.ndarray, np.ndarray]]
"""For each score of a description: what the features add to it (rows × features), and the score of each row."""


class AutoForm:
    """The score of a fitted AutoDetector, prepared for many calls."""

    baseline = 0.0
    """A row that agrees with its neighbours and with all references has no evidence against it."""

    def __init__(self, model: AutoDetector) -> None:
        self._model = model
        self._parts = [(v, described_by(part)) for v, part in model._parts]

    def path(self, X: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
        """What each feature adds to the score of each row (rows × count)."""
        model = self._model
        views = [np.clip(view.transform(X / model._unit), -LARGEST, LARGEST) for view in model._views]
        described = [found for v, terms_of in self._parts for found in terms_of(views[v], feature, count)]
        values = np.zeros((len(X), count))
        for number in np.flatnonzero(model._used):
            terms, score = described[number]
            total = terms.sum(axis=1)
            values -= terms * (model._evidence[number](score) / np.where(total == 0.0, 1.0, total))[:, None]
        values /= model._used.sum()
        return values + self._beyond(values.sum(axis=1), X / model._unit, feature, count)

    def _beyond(self, scores: np.ndarray, X: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
        """What contradicted constants take further from the scores, in equal parts (rows × count)."""
        cells = self._model._contradicted(X)
        contradicted = np.array([cells[:, feature == number].any(axis=1) for number in range(count)], dtype=np.float64).T
        missing = self._model._bounded(scores, cells) - scores
        return contradicted * (missing / np.maximum(contradicted.sum(axis=1), 1.0))[:, None]

    def shapley(self, X: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
        """Not known in polynomial time."""
        raise ValueError('method="shapley" is for models of one kernel. AutoDetector is explained by method="path".')

    def error_bound(self, count: int) -> float:
        """Nothing is approximated."""
        return 0.0


def described_by(part: Neighbours | Residuals) -> Callable[[np.ndarray, np.ndarray, int], Terms]:
    """The function from rows, the features of their columns and the number of features to the terms of a description."""
    return _of_neighbours(part) if isinstance(part, Neighbours) else _of_residuals(part)


def _of_neighbours(part: Neighbours) -> Callable[[np.ndarray, np.ndarray, int], Terms]:
    def terms_of(Z: np.ndarray, feature: np.ndarray, count: int) -> Terms:
        D, index = part._nearest(Z, np.full(len(Z), -1), part._k)
        nearest = np.zeros(D.shape)
        nearest[:, 0] = 1.0
        relative = 1.0 / np.sqrt(np.maximum(part._close[index], part._floor)) / D.shape[1]
        found = []
        for weight in (nearest, relative):
            terms = np.zeros((len(Z), count))
            neighbour_terms(Z, part.columns, index, weight, feature, terms)
            found.append((terms, (D * weight).sum(axis=1)))
        return found

    return terms_of


def _of_residuals(part: Residuals) -> Callable[[np.ndarray, np.ndarray, int], Terms]:
    """For every width, of distances or of their roots."""
    pairs = [-(inverse @ inverse.T) for inverse in part._roots]
    rates = [np.zeros((1, 3, len(part.columns))) for _ in part._widths]
    for rate, width in zip(rates, part._widths, strict=True):
        rate[0, ROOT if part.roots else ABSOLUTE] = 1.0 / width

    def terms_of(Z: np.ndarray, feature: np.ndarray, count: int) -> Terms:
        found = np.zeros((len(pairs), len(Z), count))

        def add(start: int, stop: int) -> None:
            for terms, rate, pair in zip(found, rates, pairs, strict=True):
                path_of_pairs(Z[start:stop], part.columns, rate, feature, pair, terms[start:stop])

        share_rows(add, len(Z)) if len(Z) > 1 else add(0, len(Z))
        return list(zip(found, part.score(Z), strict=True))

    return terms_of
