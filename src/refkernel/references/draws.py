"""Strategies that make new vectors: random draws, and the centres of clusters."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._training import TrainingRows
from .._validation import check_choice, check_positive, is_number
from .base import References, Size, Strategy, at_most, float_rows, generated, known_outliers, moderate

__all__ = ["KMeans", "Normal", "NormalLike", "Pushed", "Shell", "Uniform"]

CLUSTERING_STEPS = 30
"""A few thousand samples need fewer steps; on 100,000, ten times as many lower the squared distances by only 0.6 %."""


class Normal(Strategy):
    """Independent draws from N(0, scale²) in every feature; meant for standardised data.

    Parameters
    ----------
    size : float, int or str, default=1.0
        The number of references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half".
    scale : float, default=1.0
        The standard deviation.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references=rk.references.Normal(0.5), random_state=0).fit(X).references_.shape
    (20, 3)
    """

    def __init__(self, size: Size = 1.0, scale: float = 1.0) -> None:
        self.size = size
        self.scale = scale

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        check_positive("scale", self.scale)
        shape = (rows.count(self.size), rows.X.shape[1])
        return generated(self.scale * random_state.standard_normal(shape))


class NormalLike(Strategy):
    """Independent normal draws with the mean and the standard deviation (ddof = 1) of each feature (Raitoharju 2025).

    A single outlier has no deviation, so the targets' deviation is used. (The authors' code repeats the outlier; a centred map on equal
    references would have no dimensions left.)

    Parameters
    ----------
    size : float, int or str, default=1.0
        The number of references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half".
    of : {"targets", "negatives"}, default="targets"
        The rows whose mean and deviation are used: targets or known outliers.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references=rk.references.NormalLike(), random_state=0).fit(X).references_.shape
    (40, 3)
    """

    def __init__(self, size: Size = 1.0, of: str = "targets") -> None:
        self.size = size
        self.of = of

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        check_choice("of", self.of, ("targets", "negatives"))
        indices = rows.targets if self.of == "targets" else known_outliers(rows)
        mean, std = _mean_and_std(_dense(rows, indices, "NormalLike"), ddof=1)
        if indices.size == 1:
            _, std = _mean_and_std(_dense(rows, rows.targets, "NormalLike"), ddof=1)
        return generated(mean + std * random_state.standard_normal((rows.count(self.size), mean.size)))


class Pushed(Strategy):
    """Draws z + by · sign(z), z ~ N(0, 1): pushed away from the centre of standardised data (Raitoharju 2025).

    Parameters
    ----------
    size : float, int or str, default=1.0
        The number of references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half".
    by : float, default=0.5
        How far each feature is pushed away from 0.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references=rk.references.Pushed(by=1.0), random_state=0).fit(X).references_.shape
    (40, 3)
    """

    def __init__(self, size: Size = 1.0, by: float = 0.5) -> None:
        self.size = size
        self.by = by

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        if not (is_number(self.by) and self.by >= 0):
            raise ValueError(f"by={self.by!r} must be a number >= 0: how far draws are pushed from 0.")
        z = random_state.standard_normal((rows.count(self.size), rows.X.shape[1]))
        return generated(z + self.by * np.sign(z))


class Uniform(Strategy):
    """Uniform draws in the targets' bounding box, widened about its centre (artificial outliers: Tax & Duin 2001).

    Parameters
    ----------
    size : float, int or str, default=1.0
        The number of references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half".
    scale : float, default=1.0
        The width of the box, as a multiple of the bounding box.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references=rk.references.Uniform(scale=2.0), random_state=0).fit(X).references_.shape
    (40, 3)
    """

    def __init__(self, size: Size = 1.0, scale: float = 1.0) -> None:
        self.size = size
        self.scale = scale

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        check_positive("scale", self.scale)
        X = _dense(rows, rows.targets, "Uniform")
        low, high = X.min(axis=0), X.max(axis=0)
        u = random_state.uniform(-0.5, 0.5, size=(rows.count(self.size), X.shape[1]))
        return generated(0.5 * (low + high) + self.scale * (high - low) * u)


class Shell(Strategy):
    """Draws around the targets, outside their distribution (conjectured to help the one-class SVM: Raitoharju & Iosifidis 2022).

    r = mean + radius · sqrt(d) · std ∘ u, with the mean and std (n in the denominator) of each feature over the targets, the number d
    of features that vary, and u uniform on the unit sphere. The targets' own root mean squared distance ||(x - mean) / std|| is
    sqrt(d).

    Parameters
    ----------
    size : float, int or str, default=1.0
        The number of references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half".
    radius : float, default=3.0
        The distance from the mean, as a multiple of the targets' root mean squared distance. The default is as far out as draws of
        N(0, 3²) on standardised data.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references=rk.references.Shell(10), random_state=0).fit(X).references_.shape
    (10, 3)
    """

    def __init__(self, size: Size = 1.0, radius: float = 3.0) -> None:
        self.size = size
        self.radius = radius

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        check_positive("radius", self.radius)
        mean, std = _mean_and_std(_dense(rows, rows.targets, "Shell"), ddof=0)
        u = random_state.standard_normal((rows.count(self.size), mean.size)) * (std > 0)
        u /= np.maximum(np.linalg.norm(u, axis=1, keepdims=True), np.finfo(float).tiny)  # all 0 if no feature varies
        return generated(mean + self.radius * np.sqrt(np.count_nonzero(std)) * std * u)


class KMeans(Strategy):
    """Centroids of k-means on the targets: clustered Nyström (Zhang, Tsang & Kwok 2008).

    Parameters
    ----------
    size : float, int or str, default=0.5
        The number of references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half".

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rk.ReferenceMap(references=rk.references.KMeans(10), random_state=0).fit(X).references_.shape
    (10, 3)
    """

    def __init__(self, size: Size = 0.5) -> None:
        self.size = size

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        from sklearn.cluster import KMeans as Clustering  # imported here, so that importing refkernel stays fast

        m = at_most(rows.targets, rows.count(self.size), f"KMeans(size={self.size!r})", "targets")
        clusters = Clustering(n_clusters=m, n_init=1, max_iter=CLUSTERING_STEPS, random_state=random_state)
        X, unit = moderate(float_rows(rows, rows.targets))
        return generated(clusters.fit(X).cluster_centers_ * unit)


def _dense(rows: TrainingRows, indices: np.ndarray, name: str) -> np.ndarray:
    """Training rows in double precision, for a strategy that measures each feature."""
    if sp.issparse(rows.X):
        raise ValueError(
            f"{name} measures every feature and does not take sparse X. Pass X.toarray(), or use references that take sparse X: "
            "Subset, KMeans, LeverageScores, FarthestFirst."
        )
    return float_rows(rows, indices)


def _mean_and_std(X: np.ndarray, ddof: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each feature; the deviation of a constant feature is exactly 0."""
    std = X.std(axis=0, ddof=min(ddof, X.shape[0] - 1))
    return X.mean(axis=0), np.where(np.ptp(X, axis=0) == 0, 0.0, std)
