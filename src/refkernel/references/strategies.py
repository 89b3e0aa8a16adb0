"""Strategies that choose training rows (all of them, at random, by their position), and those that make new vectors."""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky, lapack
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._core.distances import moderate
from .._core.rows import TrainingRows
from .._core.validation import check_choice, check_positive, is_number
from ..kernels import Kernel
from .base import References, Size, Sized, Strategy, generated, kernel_matrix, known_outliers, members, with_size

SCORED_TARGETS = 4000  # leverage scores need the targets' kernel matrix and its inverse: 128 MB each for this many, and a few seconds
CLUSTERING_STEPS = 30  # A few thousand samples need fewer steps; on 100,000, ten times as many lower the squared distances by only 0.6 %


class Training(Strategy):
    """The target training samples: with centring this is NPT.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.references.Training()
    Training()
    """

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        return members(rows, rows.targets)


@with_size
class Subset(Sized):
    """A random part of the target training samples, drawn without replacement (Nyström)."""

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        return members(rows, np.sort(random_state.choice(rows.targets, self._count(rows, rows.targets), replace=False)))


@with_size
class Negatives(Sized):
    """Known outliers, drawn without replacement."""

    def __init__(self, size: Size = "balanced") -> None:
        self.size = size

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        m = self._count(rows, known_outliers(rows), "outliers")
        return members(rows, np.sort(random_state.choice(rows.outliers, m, replace=False)))


@with_size
class LeverageScores(Sized):
    """Targets drawn without replacement, one after the other, by their ridge leverage scores (Alaoui & Mahoney 2015).

    l_i = (K (K + n ridge I)^-1)_ii with K = k(X, X) of the n targets: large for a target that is unlike the others. The scores
    are exact for up to 4,000 targets. With more, 4,000 are first drawn uniformly, and scores and references come from these.

    Parameters
    ----------
    kernel : Kernel or "rbf", default="rbf"
        The kernel, which is resolved on the targets; "rbf" stands for ``RBF()``.
    ridge : float, default=1e-3
        Directions with less than this share of the kernel's mean diagonal count for little.
    """

    def __init__(self, size: Size = 0.5, kernel: Kernel | str = "rbf", ridge: float = 1e-3) -> None:
        self.size = size
        self.kernel = kernel
        self.ridge = ridge

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        check_positive("ridge", self.ridge)
        pool, kind = rows.targets, "targets"
        if pool.size > SCORED_TARGETS:
            pool, kind = random_state.choice(pool, SCORED_TARGETS, replace=False), f"targets (scored: a random part of {pool.size})"
        m = self._count(rows, pool, kind)
        scores = leverage_scores(kernel_matrix(self.kernel, rows.X[pool].astype(np.float64)), self.ridge)
        with np.errstate(divide="ignore"):  # a target with score 0 comes last
            arrivals = random_state.standard_exponential(pool.size) / scores  # the first is i with probability l_i / sum(l)
        return members(rows, np.sort(pool[np.argsort(arrivals)[:m]]))


@with_size
class FarthestFirst(Sized):
    """Targets in greedy order: a random one, then always the one farthest from those before it (Gonzalez 1985)."""

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        m = self._count(rows, rows.targets)
        X = moderate(rows.X[rows.targets].astype(np.float64))[0]
        X = X if sp.issparse(X) else X - X.mean(axis=0)  # distances from inner products then lose no digits
        norms = row_norms(X, squared=True)
        nearest = np.full(rows.targets.size, np.inf)
        chosen = [random_state.randint(rows.targets.size)]
        while len(chosen) < m:
            i = chosen[-1]
            products = safe_sparse_dot(X, X[[i]].T, dense_output=True).ravel()
            np.minimum(nearest, norms + norms[i] - 2.0 * products, out=nearest)
            nearest[i] = -np.inf  # never chosen again, even if all others equal it
            chosen.append(int(np.argmax(nearest)))
        return members(rows, rows.targets[chosen])


@with_size
class Normal(Strategy):
    """Independent draws from N(0, scale²) in every feature; meant for standardised data.

    Parameters
    ----------
    scale : float, default=1.0
        The standard deviation.
    """

    def __init__(self, size: Size = 1.0, scale: float = 1.0) -> None:
        self.size = size
        self.scale = scale

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        check_positive("scale", self.scale)
        return generated(self.scale * random_state.standard_normal((rows.count(self.size), rows.X.shape[1])))


@with_size
class NormalLike(Strategy):
    """Independent normal draws with the mean and the standard deviation (ddof = 1) of each feature (Raitoharju 2025).

    A single outlier has no deviation, so the targets' is used. (The authors' code repeats it, which leaves a centred map no dimensions.)

    Parameters
    ----------
    of : {"targets", "negatives"}, default="targets"
        The rows whose mean and deviation are used: targets or known outliers.
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


@with_size
class Pushed(Strategy):
    """Draws z + by · sign(z), z ~ N(0, 1): pushed away from the centre of standardised data (Raitoharju 2025).

    Parameters
    ----------
    by : float, default=0.5
        How far each feature is pushed away from 0.
    """

    def __init__(self, size: Size = 1.0, by: float = 0.5) -> None:
        self.size = size
        self.by = by

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        if not (is_number(self.by) and self.by >= 0):
            raise ValueError(f"by={self.by!r} must be a number >= 0: how far draws are pushed from 0.")
        z = random_state.standard_normal((rows.count(self.size), rows.X.shape[1]))
        return generated(z + self.by * np.sign(z))


@with_size
class Uniform(Strategy):
    """Uniform draws in the targets' bounding box, widened about its centre (artificial outliers: Tax & Duin 2001).

    Parameters
    ----------
    scale : float, default=1.0
        The width of the box, as a multiple of the bounding box.
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


@with_size
class Shell(Strategy):
    """Draws around the targets, outside their distribution (conjectured to help the one-class SVM: Raitoharju & Iosifidis 2022).

    r = mean + radius · sqrt(d) · std ∘ u, with the mean and std (n in the denominator) of each feature over the targets, the number d
    of features that vary, and u uniform on the unit sphere; sqrt(d) is the root mean squared ||(x - mean) / std|| of the targets.

    Parameters
    ----------
    radius : float, default=3.0
        The distance from the mean, as a multiple of the targets' root mean squared distance.
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


@with_size
class KMeans(Sized):
    """Centroids of k-means on the targets: clustered Nyström (Zhang, Tsang & Kwok 2008)."""

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        from sklearn.cluster import KMeans as Clustering  # imported here, so that importing refkernel stays fast

        clusters = Clustering(n_clusters=self._count(rows, rows.targets), n_init=1, max_iter=CLUSTERING_STEPS, random_state=random_state)
        X, unit = moderate(rows.X[rows.targets].astype(np.float64))
        return generated(clusters.fit(X).cluster_centers_ * unit)


def leverage_scores(K: npt.ArrayLike, ridge: float) -> np.ndarray:
    """l_i = (K (K + n ridge I)^-1)_ii = 1 - n ridge ((K + n ridge I)^-1)_ii, from 0 to 1."""
    A = np.array(K, dtype=np.float64, order="F")
    n = A.shape[0]
    A.flat[:: n + 1] += n * ridge
    try:
        L = cholesky(A, lower=True, overwrite_a=True)
    except LinAlgError as error:
        raise ValueError(
            f"ridge={ridge:g} leaves K + n·ridge·I indefinite: the kernel matrix K of {n} targets has an eigenvalue "
            f"below -n·ridge = {-n * ridge:.3g}. Raise ridge, or use a positive definite kernel."
        ) from error
    L_inverse, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
    return np.maximum(1.0 - n * ridge * np.einsum("ij,ij->j", L_inverse, L_inverse), 0.0)


def _dense(rows: TrainingRows, indices: np.ndarray, name: str) -> np.ndarray:
    """Training rows in double precision, for a strategy that measures each feature."""
    if sp.issparse(rows.X):
        raise ValueError(
            f"{name} measures every feature and does not take sparse X. Pass X.toarray(), or use references that take sparse X: "
            "Subset, KMeans, LeverageScores, FarthestFirst."
        )
    return rows.X[indices].astype(np.float64)


def _mean_and_std(X: np.ndarray, ddof: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each feature; the deviation of a constant feature is exactly 0."""
    std = X.std(axis=0, ddof=min(ddof, X.shape[0] - 1))
    return X.mean(axis=0), np.where(np.ptp(X, axis=0) == 0, 0.0, std)
