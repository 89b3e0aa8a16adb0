"""Strategies that make new vectors: random draws, and the centres of clusters."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._validation import check_choice, check_positive, is_number
from .base import Strategy, at_most, float_rows, generated, known_outliers, moderate

CLUSTERING_STEPS = 30
"""Some thousand samples settle in fewer; on 100,000 ten times as many steps lower the squared distances by 0.6 %."""


class Normal(Strategy):
    """Independent draws of N(0, scale²) in every feature; meant for standardised data."""

    def __init__(self, size=1.0, scale=1.0):
        self.size = size
        self.scale = scale

    def draw(self, rows, random_state):
        check_positive("scale", self.scale)
        shape = (rows.count(self.size), rows.X.shape[1])
        return generated(self.scale * random_state.standard_normal(shape))


class NormalLike(Strategy):
    """Independent normal draws with the mean and the standard deviation (ddof = 1) of each feature (Raitoharju 2025).

    ``of`` says whose: "targets" or "negatives". One negative alone has no deviation: that of the targets is used. (The authors'
    code repeats the negative; a centred map on equal references would have no dimension left.)
    """

    def __init__(self, size=1.0, of="targets"):
        self.size = size
        self.of = of

    def draw(self, rows, random_state):
        check_choice("of", self.of, ("targets", "negatives"))
        indices = rows.targets if self.of == "targets" else known_outliers(rows)
        mean, std = _mean_and_std(_dense(rows, indices, "NormalLike"), ddof=1)
        if indices.size == 1:
            _, std = _mean_and_std(_dense(rows, rows.targets, "NormalLike"), ddof=1)
        return generated(mean + std * random_state.standard_normal((rows.count(self.size), mean.size)))


class Pushed(Strategy):
    """Draws z + by · sign(z), z ~ N(0, 1): pushed away from the centre of standardised data (Raitoharju 2025)."""

    def __init__(self, size=1.0, by=0.5):
        self.size = size
        self.by = by

    def draw(self, rows, random_state):
        if not (is_number(self.by) and self.by >= 0):
            raise ValueError(f"by={self.by!r} must be a number >= 0: how far draws are pushed from 0.")
        z = random_state.standard_normal((rows.count(self.size), rows.X.shape[1]))
        return generated(z + self.by * np.sign(z))


class Uniform(Strategy):
    """Uniform draws in the targets' bounding box, ``scale`` times as wide about its centre (artificial outliers: Tax & Duin 2001)."""

    def __init__(self, size=1.0, scale=1.0):
        self.size = size
        self.scale = scale

    def draw(self, rows, random_state):
        check_positive("scale", self.scale)
        X = _dense(rows, rows.targets, "Uniform")
        low, high = X.min(axis=0), X.max(axis=0)
        u = random_state.uniform(-0.5, 0.5, size=(rows.count(self.size), X.shape[1]))
        return generated(0.5 * (low + high) + self.scale * (high - low) * u)


class Shell(Strategy):
    """Draws around the targets, outside their distribution (conjectured to help the one-class SVM: Raitoharju & Iosifidis 2022).

    r = mean + radius · sqrt(d) · std ∘ u: mean and std (n in the denominator) of the targets by feature, d features
    that vary, u uniform on the unit sphere. The targets' own root mean squared distance ||(x - mean) / std|| is sqrt(d).
    The default is as far out as draws of N(0, 3²) on standardised data.
    """

    def __init__(self, size=1.0, radius=3.0):
        self.size = size
        self.radius = radius

    def draw(self, rows, random_state):
        check_positive("radius", self.radius)
        mean, std = _mean_and_std(_dense(rows, rows.targets, "Shell"), ddof=0)
        u = random_state.standard_normal((rows.count(self.size), mean.size)) * (std > 0)
        u /= np.maximum(np.linalg.norm(u, axis=1, keepdims=True), np.finfo(float).tiny)  # all 0 where no feature varies
        return generated(mean + self.radius * np.sqrt(np.count_nonzero(std)) * std * u)


class KMeans(Strategy):
    """Centroids of k-means on the targets: clustered Nyström (Zhang, Tsang & Kwok 2008)."""

    def __init__(self, size=0.5):
        self.size = size

    def draw(self, rows, random_state):
        from sklearn.cluster import KMeans as Clustering  # here, as it would make importing refkernel slower

        m = at_most(rows.targets, rows.count(self.size), f"KMeans(size={self.size!r})", "targets")
        clusters = Clustering(n_clusters=m, n_init=1, max_iter=CLUSTERING_STEPS, random_state=random_state)
        X, unit = moderate(float_rows(rows, rows.targets))
        return generated(clusters.fit(X).cluster_centers_ * unit)


def _dense(rows, indices, name):
    """The rows of these numbers in double precision, for a strategy that measures each feature."""
    if sp.issparse(rows.X):
        raise ValueError(
            f"{name} measures every feature and takes no sparse X. Pass X.toarray(), or references that take it: "
            "Subset, KMeans, LeverageScores, FarthestFirst."
        )
    return float_rows(rows, indices)


def _mean_and_std(X, ddof):
    """Mean and standard deviation of each feature; the deviation is exactly 0 where a feature is constant."""
    std = X.std(axis=0, ddof=min(ddof, X.shape[0] - 1))
    return X.mean(axis=0), np.where(np.ptp(X, axis=0) == 0, 0.0, std)
