"""Planes through the samples: of two features, or of two principal components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from .marks import Samples

__all__ = ["Plane", "like", "names_of", "plane_of", "ranges"]

MARGIN = 0.12
"""The share of the data's range added on each side: room for a boundary outside the samples."""


@dataclass(frozen=True)
class Plane:
    """The points origin + p · axes of the samples' space; ``note`` says in words which plane it is."""

    origin: np.ndarray
    axes: np.ndarray
    labels: tuple[str, str]
    note: tuple[str, ...] = ()

    def project(self, X: np.ndarray) -> np.ndarray:
        """The coordinates (n × 2) of samples projected onto the plane."""
        return (X - self.origin) @ self.axes.T

    def lift(self, P: np.ndarray) -> np.ndarray:
        """The samples (n × d) at coordinates of the plane."""
        return self.origin + P @ self.axes


def plane_of(samples: Samples, features: Sequence[str | int] | None, names: list[str]) -> Plane:
    """The plane of two features, or of two principal components if X has more and none are named."""
    d = samples.values.shape[1]
    if d < 2:
        raise ValueError(f"A plane needs at least 2 features; X has {d}. See ScoreDistributionDisplay for the decision values alone.")
    if features is None and d > 2:
        return _principal_plane(samples.values)
    numbers = [0, 1] if features is None else _numbers(features, names)
    origin = np.median(samples.values[samples.is_target], axis=0)
    origin[numbers] = 0.0
    note = () if d == 2 else ("other features at the targets' median",)
    return Plane(origin, np.eye(d)[numbers], (names[numbers[0]], names[numbers[1]]), note)


def _principal_plane(X: np.ndarray) -> Plane:
    if X.shape[0] < 2:
        raise ValueError("Principal components need at least 2 samples; X has 1. Pass features, two names or numbers.")
    pca = PCA(2, svd_solver="full").fit(X)
    first, second = (f"component {k} ({100 * share:.0f} % of the variance)" for k, share in enumerate(pca.explained_variance_ratio_, 1))
    return Plane(pca.mean_, pca.components_, (first, second), ("plane of two principal components",))


def _numbers(features: Any, names: list[str]) -> list[int]:
    """Two different column numbers from names or numbers."""
    numbers = [_number(feature, names) for feature in ([features] if isinstance(features, str | Integral) else features)]
    if len(numbers) != 2 or numbers[0] == numbers[1]:
        raise ValueError(f"features={features!r} must be two different names or numbers: the axes of the plane.")
    return numbers


def _number(feature: Any, names: list[str]) -> int:
    if feature in names:
        return names.index(feature)
    if isinstance(feature, Integral) and 0 <= int(feature) < len(names):
        return int(feature)
    raise ValueError(f"X has no feature {feature!r}. Use two of the names {names}, or numbers from 0 to {len(names) - 1}.")


def names_of(model: Any, X: Any) -> list[str]:
    """The features' names: from a data frame, from the model's fit, or numbers."""
    names = X.columns if hasattr(X, "columns") else getattr(model, "feature_names_in_", None)
    d = np.shape(X)[1]
    return [str(name) for name in names] if names is not None and len(names) == d else [f"feature {i}" for i in range(d)]


def like(X: Any, values: np.ndarray) -> Any:
    """Values as a data frame with the columns of X if X is one."""
    return type(X)(dict(zip(X.columns, values.T, strict=True))) if hasattr(X, "columns") else values


def ranges(P: np.ndarray, grid: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of a grid over points of the plane and the margin around them."""
    low, high = P.min(axis=0), P.max(axis=0)
    margin = MARGIN * np.where(high > low, high - low, 1.0)
    return np.linspace(low[0] - margin[0], high[0] + margin[0], grid), np.linspace(low[1] - margin[1], high[1] + margin[1], grid)
