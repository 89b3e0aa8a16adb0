"""Strategies by number and by name: the article's cases, the follow-up's options with known outliers, and ``Auto``."""

from dataclasses import replace

import numpy as np
from scipy.linalg import eigvalsh
from sklearn.base import clone

from .._core.factor import centred
from .._core.rows import TrainingRows
from .._core.threads import one_blas_thread
from .._core.validation import check_positive, is_number
from ..kernels import Kernel
from .base import NAMES, References, Strategy, kernel_matrix
from .strategies import FarthestFirst, KMeans, LeverageScores, Negatives, Normal, NormalLike, Pushed, Shell, Subset, Training, Uniform

SPECTRUM_ROWS = 1000  # rows whose kernel matrix shows how fast the spectrum decays: 8 MB, and a tenth of a second
CLUSTERED_ROWS = 5_000  # rows that centroids are computed from
PER_EIGENVALUE = 2  # references for each eigenvalue that counts: the span of references only approximates that of the leading eigenvectors
FEWEST = 10  # fewer references save no time


class Auto(Strategy):
    """Centroids of k-means, whose number follows from the kernel's spectrum.

    Two for each of the leading eigenvalues that make up a share ``explained`` of the spectrum of the centred kernel matrix of 1,000
    targets: at least 10, within ``most`` and ``memory``. ``ReferenceMap.choice_`` says which limit decided.

    Parameters
    ----------
    explained : float in (0, 1), default=0.99
        The share of the spectrum.
    most : int, default=1000
        The largest number of references.
    memory : float, default=512
        Room for the features of all targets in single precision, in MB.
    kernel : Kernel or "rbf", default="rbf"
        The kernel whose spectrum counts, resolved on the targets; "rbf" stands for ``RBF(scale=1)``.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> rk.ReferenceMap(references="auto", random_state=0).fit(X).choice_
    '20 references: 10 eigenvalues make up 99 % of the spectrum'
    """

    def __init__(self, explained: float = 0.99, most: int = 1000, memory: float = 512, kernel: Kernel | str = "rbf") -> None:
        self.explained = explained
        self.most = most
        self.memory = memory
        self.kernel = kernel

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        if not (is_number(self.explained) and 0 < self.explained < 1):
            raise ValueError(f"explained={self.explained!r} must be a share between 0 and 1.")
        check_positive("most", self.most)
        check_positive("memory", self.memory)
        n = rows.targets.size
        K = kernel_matrix(self.kernel, rows.X[_some(rows.targets, SPECTRUM_ROWS, random_state)].astype(np.float64))
        with one_blas_thread():
            lam = np.maximum(eigvalsh(centred(K, K.mean(axis=0))), 0.0)[::-1]
        k = int(np.searchsorted(np.cumsum(lam), self.explained * lam.sum())) + 1
        share = f"{k} eigenvalues make up {100 * self.explained:g} % of the spectrum"
        wishes = {
            share: max(PER_EIGENVALUE * k, FEWEST),
            f"most={self.most}, although {share}": int(self.most),
            f"memory={self.memory:g} MB for the features of {n:,} rows, although {share}": max(int(1e6 * self.memory / (4 * n)), 1),
            f"there are {n:,} targets, although {share}": n,
        }
        why = min(wishes, key=lambda reason: wishes[reason])
        pool = TrainingRows(rows.X, _some(rows.targets, CLUSTERED_ROWS, random_state), rows.outliers)
        m = min(wishes[why], pool.targets.size)
        return replace(KMeans(m).draw(pool, random_state), note=f"{m} references: {why}")


def _some(pool: np.ndarray, count: int, random_state: np.random.RandomState) -> np.ndarray:
    """At most this many of the row numbers, drawn at random."""
    return pool if pool.size <= count else np.sort(random_state.choice(pool, count, replace=False))


CASES = {
    1: Training(),
    2: Normal(),
    3: Subset(0.5),
    4: Normal(0.5),
    5: Training() + Negatives(),
    6: Training() + Normal("balanced"),
    7: Normal() + Normal("balanced"),
}
"""The article's seven ways to choose references."""

NEGATIVES_OPTIONS = {
    1: Training(),
    2: Training() + Negatives("outliers"),
    3: Negatives("outliers"),
    4: Normal() + NormalLike("outliers", of="negatives"),
    5: NormalLike(of="negatives") + NormalLike("outliers", of="negatives"),
    6: Pushed(by=0.5) + NormalLike("outliers", of="negatives"),
    7: Negatives("outliers") + NormalLike(of="negatives"),
    8: Negatives("outliers") + NormalLike(2.0, of="negatives"),
    9: Negatives("outliers") + NormalLike("rounded_half", of="negatives"),
}
"""The follow-up's nine ways to choose references with all known outliers."""

NAMES |= {
    "auto": Auto(),
    "training": Training(),
    "subset": Subset(),
    "normal": Normal(),
    "negatives": Negatives(),
    "kmeans": KMeans(),
    "leverage": LeverageScores(),
    "farthest": FarthestFirst(),
    "uniform": Uniform(),
    "shell": Shell(),
    "normal_like": NormalLike(),
    **{f"case{number}": strategy for number, strategy in CASES.items()},
    **{f"negatives{number}": strategy for number, strategy in NEGATIVES_OPTIONS.items()},
}


def case(number: int) -> Strategy:
    """Return the article's case 1 … 7.

    Parameters
    ----------
    number : int
        1 to 7, as in the article.

    Returns
    -------
    Strategy
        The references of that case.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.references.case(5)
    Sum(first=Training(), second=Negatives())
    """
    if number not in CASES:
        raise ValueError(f"case({number!r}): the article's cases are numbered 1 to 7.")
    return clone(CASES[number])
