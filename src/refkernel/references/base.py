"""The base of all strategies: their contract, sums, and what users may pass instead of a strategy."""

import copy
import inspect
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_array, check_random_state

from .._core.distances import moderate
from .._core.rows import HOW_TO_PASS_OUTLIERS, TrainingRows
from .._core.types import MatrixLike, RandomStateLike
from .._core.validation import QuickParams, unmasked
from ..kernels import RBF, Kernel, as_kernel

Size: TypeAlias = float | int | str
"""How many references: a fraction of the targets (float), a count (int), "balanced", "outliers" or "rounded_half"."""

S = TypeVar("S", bound="Strategy")
GENERATED = -1  # the index of a reference vector that is not a training row


@dataclass(frozen=True)
class References:
    """References, and where each comes from.

    Parameters
    ----------
    vectors : ndarray or sparse matrix of shape (m, n_features)
        The references, in rows.
    indices : ndarray of shape (m,)
        The training row that each vector is; ``GENERATED`` (-1) for a vector that is not a training row.
    note : str, default=""
        What the strategy decided on its own, in words.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rk.references.References(np.eye(3), np.full(3, rk.references.GENERATED)).indices
    array([-1, -1, -1])
    """

    vectors: Any
    indices: np.ndarray
    note: str = ""


class Strategy(QuickParams):
    """The base class of all strategies: a subclass needs one method, ``draw``.

    ``a + b`` draws the references of a, then those of b.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> class Corners(rk.references.Strategy):
    ...     def draw(self, rows, random_state):
    ...         low, high = rows.X.min(axis=0), rows.X.max(axis=0)
    ...         return rk.references.References(np.vstack([low, high]), np.full(2, rk.references.GENERATED))
    >>> rk.ReferenceMap(references=Corners() + "training").fit(np.eye(3)).references_.shape
    (5, 3)
    """

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        """Draw the references for one fit.

        Parameters
        ----------
        rows : TrainingRows
            The training rows: ``rows.X``, and the row numbers ``rows.targets`` and ``rows.outliers``.
        random_state : RandomState
            The source of everything random.

        Returns
        -------
        References
            The vectors, and the training row that each one is.
        """
        raise NotImplementedError(f"{type(self).__name__} draws nothing: define draw(self, rows, random_state), which returns References.")

    def __add__(self, other: "ReferencesLike") -> "Sum":
        return Sum(self, as_strategy(other))


def with_size(strategy: type[S]) -> type[S]:
    """Complete the docstring of a strategy by what all with a size share: that parameter, the first, and an example."""
    summary, _, others = inspect.cleandoc(strategy.__doc__ or "").partition("\n\nParameters\n----------\n")
    default, name = inspect.signature(strategy).parameters["size"].default, strategy.__name__
    strategy.__doc__ = SIZED.format(summary=summary, default=default, others=f"\n{others}" if others else "", name=name)
    return strategy


SIZED = """{summary}

Parameters
----------
size : float, int or str, default={default!r}
    The number of references: see :mod:`refkernel.references`.{others}

Examples
--------
>>> import refkernel as rk
>>> rk.references.{name}(10)
{name}(size=10)
"""


class Sized(Strategy):
    """A strategy with a size, which a pool of training rows may limit."""

    def __init__(self, size: Size = 0.5) -> None:
        self.size = size

    def _count(self, rows: TrainingRows, pool: np.ndarray, kind: str = "targets") -> int:
        """The number of references, after checking that the pool holds as many."""
        m = rows.count(self.size)
        if m > pool.size:
            raise ValueError(f"{type(self).__name__}(size={self.size!r}) asks for {m} of {pool.size} {kind}. Lower size.")
        return m


class Sum(Strategy):
    """The references of ``first`` followed by those of ``second``: what ``first + second`` returns.

    Parameters
    ----------
    first, second : Strategy
        The two strategies.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.references.Training() + rk.references.Normal(10)
    Sum(first=Training(), second=Normal(size=10))
    """

    def __init__(self, first: Strategy, second: Strategy) -> None:
        self.first = first
        self.second = second

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        a, b = drawn(self.first, rows, random_state), drawn(self.second, rows, random_state)
        parts = [a.vectors, b.vectors]
        vectors = sp.vstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.vstack(parts)
        return References(vectors, np.concatenate([a.indices, b.indices]))


class Given(Strategy):
    """Your own references, used as they are.

    Parameters
    ----------
    R : array-like or sparse matrix of shape (m, n_features)
        The references, in the units of the samples that the map is fitted on.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rk.ReferenceMap(references=rk.references.Given([[0.0], [1.0]])).fit(np.eye(3, 1)).rank_
    1
    """

    def __init__(self, R: MatrixLike) -> None:
        self.R = R

    def draw(self, rows: TrainingRows, random_state: np.random.RandomState) -> References:
        return generated(check_array(unmasked(self.R), accept_sparse="csr", dtype=np.float64, input_name="R"))


NAMES: dict[str, Strategy] = {}  # strategies by name. ``named`` fills it: it imports the strategies, which import this module.
ReferencesLike: TypeAlias = str | Strategy | MatrixLike
"""What users may pass as references: a name, a strategy, or the vectors themselves."""


def as_strategy(references: ReferencesLike) -> Strategy:
    """Convert a name or an array to a strategy.

    Parameters
    ----------
    references : str, Strategy or array-like of shape (m, n_features)
        What the parameter ``references`` of a map takes.

    Returns
    -------
    Strategy
        The strategy that it stands for; a strategy is returned unchanged.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.references.as_strategy("case3")
    Subset()
    """
    if isinstance(references, str):
        if references not in NAMES:
            raise ValueError(f"references={references!r} is not known. Use one of {sorted(NAMES)}, a strategy or an array.")
        return copy.deepcopy(NAMES[references])
    if isinstance(references, type) or not (hasattr(references, "draw") or np.ndim(references)):
        way_out = f" Pass an object: {references.__name__}()." if isinstance(references, type) else ""
        raise ValueError(f"references={references!r} is neither a name, a strategy object nor an array of references.{way_out}")
    return references if hasattr(references, "draw") else Given(references)  # type: ignore[return-value]


def drawn(references: ReferencesLike, rows: TrainingRows, random_state: RandomStateLike) -> References:
    """The references of one fit, after checking what the strategy returned."""
    strategy = as_strategy(references)
    found: Any = strategy.draw(rows, check_random_state(random_state))
    if not isinstance(found, References):
        raise TypeError(
            f"{type(strategy).__name__}.draw returned {type(found).__name__}, not References(vectors, indices): the vectors in rows, and "
            "the training row that each one is, GENERATED (-1) for none."
        )
    (m, d), indices = np.shape(found.vectors), np.size(found.indices)
    if m != indices:
        raise ValueError(f"{type(strategy).__name__}.draw returned {m} references with {indices} indices: one for each was expected.")
    if d != rows.X.shape[1]:
        raise ValueError(f"The references have {d} features, the training samples {rows.X.shape[1]}.")
    return found


def members(rows: TrainingRows, indices: np.ndarray) -> References:
    """Training rows as references."""
    return References(rows.X[indices], indices)


def generated(R: Any) -> References:
    """New vectors as references."""
    return References(R, np.full(R.shape[0], GENERATED))


def known_outliers(rows: TrainingRows) -> np.ndarray:
    """The row numbers of the outliers; raise if there are none."""
    if rows.outliers.size == 0:
        raise ValueError(f"These references need known outliers, but fit got none: {HOW_TO_PASS_OUTLIERS}.")
    return rows.outliers


def kernel_matrix(kernel: Kernel | str, X: Any) -> np.ndarray:
    """K of a kernel resolved on X; "rbf" is the RBF kernel whose sigma² is the mean squared distance."""
    if not isinstance(kernel, Kernel) and not (isinstance(kernel, str) and kernel == "rbf"):
        raise ValueError(f'kernel={kernel!r} must be "rbf" or a kernel object, such as refkernel.kernels.Laplacian() or Function(f).')
    return RBF(scale=1.0).fit(moderate(X)[0])(moderate(X)[0]) if isinstance(kernel, str) else kernel._fitted(TrainingRows.of(X))(X)


class NestedParams(QuickParams):
    """``set_params`` copies a nested object before it changes it, because defaults are shared by all instances."""

    def set_params(self, **params: Any) -> Self:
        nested = {name: value for name, value in params.items() if "__" in name}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        for name in {name.partition("__")[0] for name in nested} & set(BY_NAME) & set(self.get_params(deep=False)):
            setattr(self, name, clone(BY_NAME[name](getattr(self, name)), safe=False))
        return super().set_params(**nested)


BY_NAME = {"kernel": as_kernel, "references": as_strategy}
"""Parameters that users may give by name; ``kernel__scale`` then means the scale of what the name stands for."""
