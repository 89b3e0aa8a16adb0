"""``explain``: what each feature adds to the score of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import MatrixLike
from .._validation import check_choice
from ..auto import AutoDetector
from .auto import AutoForm
from .combination import Combination
from .comparison import Comparison
from .forms import ProductForm, form_of
from .sources import SHARED, sources_of, unwrapped

__all__ = ["Explanation", "explain"]

METHODS = ("auto", "shapley", "path")

SPARE = 1
"""Columns that are compared beyond those wanted: the largest difference is not always the strongest reason."""


@dataclass(frozen=True)
class Explanation:
    """What each feature adds to the score of each row: ``values.sum(axis=1) + baseline`` are the scores.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        Negative where a feature counts against the row.
    baseline : float
        The score with all features switched off.
    names : tuple of str
        The features.
    method : {"shapley", "path"}
        How the values were computed: see :func:`explain`.
    error_bound : float, default=0.0
        How far a value may be from the exact one, apart from rounding.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> why = rk.explain(rk.SVDD(rk.RBF(1.0)).fit(X), [[0.0, 4.0, 0.0]])
    >>> why.names[why.worst(1)[0, 0]]
    'x1'
    """

    values: np.ndarray
    baseline: float
    names: tuple[str, ...]
    method: str
    error_bound: float = 0.0

    @property
    def scores(self) -> np.ndarray:
        """The scores that are explained, to rounding."""
        return self.values.sum(axis=1) + self.baseline

    def worst(self, count: int) -> np.ndarray:
        """Find the features that count most against each row.

        Parameters
        ----------
        count : int
            How many; all features if there are fewer.

        Returns
        -------
        ndarray of int of shape (n_samples, count)
            Numbers of features, the worst first.
        """
        return np.argsort(self.values, axis=1, kind="stable")[:, : max(count, 0)]


def explain(model: Any, X: MatrixLike, *, groups: Mapping[str, Sequence[Any]] | None = None, method: str = "auto") -> Explanation:
    """Explain the scores of rows: what each feature adds to ``score_samples``.

    Switching a feature off means leaving it out of all comparisons: its factor in a kernel that is a product over features becomes 1. So
    the score of a set of features S is v(S) = Σ_i b_i Π_{j in S} k_j(x_j, x_ij), or a sum over pairs for reference kernels.

    Parameters
    ----------
    model : fitted detector
        ``SVDD``, ``OneClassSVM``, ``ReferenceResidual`` or ``AutoDetector``; a pipeline that ends in one, if its transformers work column
        by column (then the input's columns are explained); or a search over these.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_columns)
        The rows to explain.
    groups : mapping of str to sequence, optional
        Columns that count as one feature, by number or name: ``{"colour": [3, 4, 5]}``. Other columns are a feature each. Columns that a
        pipeline's one-hot encoder makes of one column always count as one.
    method : {"auto", "shapley", "path"}, default="auto"
        "shapley" gives exact Shapley values of v. "path" gives Aumann-Shapley values: all features are switched on together, by letting
        every distance grow from 0 to its actual size, and each feature gets what its own growth adds. They are also exact, cost about as
        much as a few scores, and tell features apart where a narrow kernel is nearly 0 for all of them. "auto" is "path" for
        ``AutoDetector``, which has no other, and "shapley" for all others.

    Returns
    -------
    Explanation
        ``values``, ``baseline`` and ``names``.

    See Also
    --------
    counterfactuals : The values that would make a row normal.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = rk.SVDD(rk.RBF(1.0)).fit(X)
    >>> why = rk.explain(model, [[0.0, 4.0, 0.0]])
    >>> why.values.round(2)
    array([[-0.26, -1.06, -0.2 ]])
    >>> bool(np.allclose(why.values.sum(axis=1) + why.baseline, model.score_samples([[0.0, 4.0, 0.0]])))
    True
    """
    return Explainer(model).explain(X, groups=groups, method=method)


class Explainer:
    """A fitted model, prepared to explain many blocks of rows."""

    def __init__(self, model: Any) -> None:
        check_is_fitted(model)
        self._model = model
        self._before, self._final = unwrapped(model)
        self._default = "path" if isinstance(self._final, AutoDetector) else "shapley"

    @cached_property
    def _form(self) -> AutoForm | ProductForm:
        return AutoForm(self._final) if self._default == "path" else form_of(self._final)

    @cached_property
    def _comparison(self) -> Comparison:
        return Comparison(self._final)

    @cached_property
    def _combination(self) -> Combination:
        return Combination(self._final)

    def explain(self, X: Any, *, groups: Mapping[str, Sequence[Any]] | None = None, method: str = "auto") -> Explanation:
        """Explain as :func:`explain` does."""
        check_choice("method", method, METHODS)
        method = self._default if method == "auto" else method
        names, feature_of = _features(names_of(self._model, X), groups or {})
        Z, feature, players = self._encoded(X, feature_of, len(names))
        values = getattr(self._form, method)(Z, feature, players)
        if players > len(names):
            values = _given_out(values, self._before[0].violations(X), feature_of)
        bound = self._form.error_bound(players) if method == "shapley" else 0.0
        return Explanation(values, self._form.baseline, names, method, bound)

    def against(self, X: Any, count: int) -> np.ndarray:
        """What counts against each row, column by column (rows × columns): negative where it does, the strongest lowest.

        The row is compared with the most similar normal rows. AutoDetector's values are such a comparison; of other models it is the one of
        :class:`Comparison`, for one column more than the ``count`` that are wanted.
        """
        if self._default == "path":
            return self.explain(X).values
        columns = np.arange(len(names_of(self._model, X)))
        Z, feature, players = self._encoded(X, columns, columns.size)
        values = self._comparison.values(Z, feature, players, count + SPARE)
        return _given_out(values, self._before[0].violations(X), columns) if players > columns.size else values

    def partners(self, X: Any, worst: np.ndarray) -> np.ndarray:
        """The column that the ``worst`` one of each row does not go with; -1 for rows without a worst one."""
        columns = np.arange(len(names_of(self._model, X)))
        Z, feature, _ = self._encoded(X, columns, columns.size)
        return self._combination.partners(Z, feature, columns.size, worst)

    def _sources(self, columns: int) -> np.ndarray:
        """The input column of each of the detector's columns."""
        source = np.arange(columns)
        for step in self._before:
            found = sources_of(step, source.size)
            source = np.where(found == SHARED, SHARED, source[found])
        return source

    def _encoded(self, X: Any, feature_of: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, int]:
        """The rows as the detector takes them, the feature of each of its columns, and the number of features, a shared one included."""
        Z = X
        for step in self._before:
            Z = step.transform(Z)
        Z = validate_data(self._final, Z.toarray() if sp.issparse(Z) else Z, reset=False, dtype=np.float64, order="C")
        source = self._sources(feature_of.size)
        is_shared = source == SHARED
        return Z, np.where(is_shared, count, feature_of[source]), count + bool(is_shared.any())


def _given_out(values: np.ndarray, owned: np.ndarray, feature_of: np.ndarray) -> np.ndarray:
    """The values without the last column, which goes in equal parts to the features of the columns that own it in each row.

    Where nobody owns it, all features share it: it is 0, unless references are drawn that differ there.
    """
    owners = np.zeros((len(values), values.shape[1] - 1))
    np.maximum.at(owners.T, feature_of, owned.T.astype(np.float64))
    nobody = ~owners.any(axis=1)
    owners[nobody] = 1.0
    return values[:, :-1] + owners * (values[:, -1] / owners.sum(axis=1))[:, None]


def names_of(model: Any, X: Any) -> list[str]:
    """The names of the input's columns: those seen in ``fit``, those of a data frame, or x0, x1, …"""
    known = getattr(model, "feature_names_in_", getattr(X, "columns", None))
    if known is not None:
        return [str(name) for name in known]
    count = getattr(model, "n_features_in_", None)
    return [f"x{number}" for number in range(np.shape(X)[1] if count is None else count)]


def _features(columns: list[str], groups: Mapping[str, Sequence[Any]]) -> tuple[tuple[str, ...], np.ndarray]:
    """The names of the features, and the number of each column's feature."""
    label = list(columns)
    taken: dict[int, str] = {}
    for name, members in groups.items():
        for member in members:
            number = _number(columns, member, name)
            if number in taken:
                raise ValueError(f"Column {columns[number]} is in the groups {taken[number]!r} and {name!r}: it can be in one only.")
            taken[number] = label[number] = str(name)
    clash = [name for name in groups if name in {columns[number] for number in range(len(columns)) if number not in taken}]
    if clash:
        raise ValueError(f"The group {clash[0]!r} has the name of a column that is not in it. Choose another name.")
    names = tuple(dict.fromkeys(label))
    if not groups and len(names) < len(columns):  # columns that share a name are features of their own
        return tuple(columns), np.arange(len(columns))
    position = {name: number for number, name in enumerate(names)}
    return names, np.array([position[name] for name in label], dtype=np.intp)


def _number(columns: list[str], member: Any, group: str) -> int:
    """The column that a member of a group stands for."""
    if isinstance(member, str) and member in columns:
        return columns.index(member)
    if not isinstance(member, str) and 0 <= int(member) < len(columns):
        return int(member)
    raise ValueError(f"The group {group!r} holds {member!r}, which is not one of the {len(columns)} columns.")
