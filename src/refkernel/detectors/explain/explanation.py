"""``explain``: what each feature adds to the score of a row.

Models of one kernel are explained as sums of products (``product_form``). Another detector explains itself by three methods, beside its
arithmetic; X is as the detector takes it, in double precision::

    def _terms(self, X, feature, count):  # what each feature adds to score_samples (rows × count), feature[j] is that of column j
    def _kept_rows(self):                 # the training rows that it keeps, in the units of its input
    def _comparable(self, X):             # the columns on a common scale, on which rows are compared
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from ..._core.text import counted
from ..._core.types import MatrixLike
from ..._core.unwrap import unwrap
from ..._core.validation import check_choice, validate_data
from .normal import SHARED, Normal, in_order, models_inside, names_of, normals_of_model, sources_of
from .product_form import ProductForm, form_of
from .reasons import Comparison, html_bar, html_table, row_reasons

METHODS = ("auto", "shapley", "path")
SPARE = 1  # columns that are compared beyond those wanted: the largest difference is not always the strongest reason
SHOWN_ROWS, SHOWN_FEATURES = 5, 8  # rows, and features of each, that a notebook or a terminal shows


@dataclass(frozen=True, repr=False)
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
    cells : sequence of ndarray, optional
        For each feature the cells of the rows, for words and tables.
    normals : sequence of Normal, optional
        What the model knows of each feature in training.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> why = rk.explain(rk.SVDD(rk.RBF(1.0)).fit(X), [[0.0, 4.0, 0.0]])
    >>> why.names[why.worst(1)[0, 0]]
    'x1'
    >>> why.sentences(1)[0][0][:14]
    'x1 = 4 (normal'
    """

    values: np.ndarray
    baseline: float
    names: tuple[str, ...]
    method: str
    error_bound: float = 0.0
    cells: Sequence[np.ndarray] = ()
    normals: Sequence[Normal] = ()

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

    def sentences(self, count: int = 3) -> list[list[str]]:
        """Say which features count most against each row.

        Parameters
        ----------
        count : int, default=3
            How many features of each row; those that count less than a tenth of the first are left out.

        Returns
        -------
        list of list of str
            For each row the strongest first, such as ``x1 = 4 (normal: -2.1 … 2.2)``.
        """
        return [[str(reason) for reason in mine] for mine in row_reasons(self.names, self.values, *self._columns, count)]

    def to_frame(self) -> Any:
        """Give the values as a data frame.

        Returns
        -------
        DataFrame of shape (n_samples, n_features)
            The values, by the names of the features.
        """
        import pandas as pd

        return pd.DataFrame(self.values, columns=list(self.names))

    def __repr__(self) -> str:
        few, rows = self._first(), len(self.values)
        about = f'Explanation of {counted(rows, "row")} by {counted(len(self.names), "feature")} ("{self.method}")'
        found = enumerate(zip(few.scores, few.sentences(), strict=True))
        lines = [about, *(f"row {row}, score {score:.4g}: {'; '.join(why)}" for row, (score, why) in found)]
        return "\n".join([*lines, f"and {rows - SHOWN_ROWS:,} more"] if rows > SHOWN_ROWS else lines)

    def _repr_html_(self) -> str:
        few, tables = self._first(), []
        (cells, normals), width = few._columns, float(np.abs(few.values).max(initial=0.0)) or 1.0
        for row, (values, score) in enumerate(zip(few.values, few.scores, strict=True)):
            lines: list[Any] = []
            for j in np.argsort(-np.abs(values), kind="stable")[:SHOWN_FEATURES]:
                cell, bar = normals[j].written(cells[j][row]), html_bar(values[j] / width)
                lines.append((self.names[j], cell, normals[j].most, f"{values[j]:+.3g}", bar))
            about = f"row {row}: score {score:.4g}" + (f", {self.baseline:.4g} with all features off" if self.baseline else "")
            tables.append(html_table(about, ("feature", "value", "normal", "adds to the score", ""), lines))
        return "".join(tables)

    @property
    def _columns(self) -> tuple[Sequence[np.ndarray], Sequence[Normal]]:
        """Cells and what is normal of each feature, empty where they are not given."""
        features = len(self.names)
        return self.cells or [np.full(len(self.values), "", dtype=object)] * features, self.normals or [Normal()] * features

    def _first(self) -> "Explanation":
        """The rows that are shown."""
        return replace(self, values=self.values[:SHOWN_ROWS], cells=[column[:SHOWN_ROWS] for column in self.cells])


def explain(model: Any, X: MatrixLike, *, groups: Mapping[str, Sequence[Any]] | None = None, method: str = "auto") -> Explanation:
    """Explain the scores of rows: what each feature adds to ``score_samples``.

    Switching a feature off means leaving it out of all comparisons: its factor in a kernel that is a product over features becomes 1. So
    the score of a set of features S is v(S) = Σ_i b_i Π_{j in S} k_j(x_j, x_ij), or a sum over pairs for reference kernels.

    Parameters
    ----------
    model : fitted detector
        ``SVDD``, ``OneClassSVM``, ``ReferenceResidual`` or ``AutoDetector``; a pipeline that ends in one, if its transformers work column
        by column (then the input's columns are explained); a search over these; or a ``ConformalDetector`` around one, by the mean score
        of its models.
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
        ``values``, ``baseline`` and ``names``; ``sentences()`` says them in words, and a notebook shows them as a table.

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
    found = Explainer(model).explain(X, groups=groups, method=method)
    cells, normals = _seen(model, X, _features(names_of(model, X), groups or {})[1])
    return replace(found, cells=cells, normals=normals)


class Explainer:
    """A fitted model, prepared to explain many blocks of rows."""

    def __init__(self, model: Any) -> None:
        check_is_fitted(model)
        self._model = model
        self._before, self._final = unwrap(model)
        self._terms = getattr(self._final, "_terms", None)

    @cached_property
    def _form(self) -> ProductForm:
        return form_of(self._final)

    @cached_property
    def _comparison(self) -> Comparison:
        return Comparison(self._final)

    def explain(self, X: Any, *, groups: Mapping[str, Sequence[Any]] | None = None, method: str = "auto") -> Explanation:
        """Explain as :func:`explain` does, without cells and what is normal in them."""
        if inside := [Explainer(make_pipeline(*self._before, model)) for model in models_inside(self._final)]:
            found = [each.explain(X, groups=groups, method=method) for each in inside]
            values, baseline = (np.mean([getattr(each, name) for each in found], axis=0) for name in ("values", "baseline"))
            return replace(found[0], values=values, baseline=float(baseline))
        check_choice("method", method, METHODS)
        if method == "auto":
            method = "shapley" if self._terms is None else "path"
        if self._terms is not None and method == "shapley":
            raise ValueError(f'method="shapley" is for models of one kernel. {type(self._final).__name__} is explained by method="path".')
        names, feature_of = _features(names_of(self._model, X), groups or {})
        Z, feature, players = self._encoded(X, feature_of, len(names))
        values = (self._terms or getattr(self._form, method))(Z, feature, players)
        if players > len(names):
            values = _given_out(values, self._before[0].read(X).violations, feature_of)
        bound = self._form.error_bound(players) if method == "shapley" else 0.0
        baseline = self._form.baseline if self._terms is None else 0.0
        return Explanation(values, baseline, names, method, bound)

    def against(self, X: Any, count: int) -> np.ndarray:
        """What counts against each row beside the most similar normal rows (rows × columns): negative, the strongest lowest."""
        if self._terms is not None:
            return self.explain(X).values
        columns = np.arange(len(names_of(self._model, X)))
        Z, feature, players = self._encoded(X, columns, columns.size)
        values = self._comparison.values(Z, feature, players, count + SPARE)
        return _given_out(values, self._before[0].read(X).violations, columns) if players > columns.size else values

    def partners(self, X: Any, worst: np.ndarray) -> np.ndarray:
        """The column that the ``worst`` one of each row does not go with; -1 for rows without a worst one."""
        columns = np.arange(len(names_of(self._model, X)))
        Z, feature, _ = self._encoded(X, columns, columns.size)
        return self._comparison.partners(Z, feature, columns.size, worst)

    def _encoded(self, X: Any, feature_of: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, int]:
        """The rows as the detector takes them, the feature of each of its columns, and the number of features, a shared one included."""
        Z, source = X, np.arange(feature_of.size)
        for step in self._before:
            found = sources_of(step, source.size)
            Z, source = step.transform(Z), np.where(found == SHARED, SHARED, source[found])
        Z = validate_data(self._final, Z.toarray() if sp.issparse(Z) else Z, reset=False, dtype=np.float64, order="C")
        is_shared = source == SHARED
        return Z, np.where(is_shared, count, feature_of[source]), count + bool(is_shared.any())


def _seen(model: Any, X: Any, feature_of: np.ndarray) -> tuple[list[np.ndarray], list[Normal]]:
    """The cells of each feature, and what is normal there; of columns that belong together a text, and nothing."""
    X = in_order(model, X)
    columns = [X.iloc[:, j] for j in range(X.shape[1])] if hasattr(X, "iloc") else (X.toarray() if sp.issparse(X) else X).T
    cells = [np.asarray(it) if isinstance(it.dtype, np.dtype) else it.to_numpy(dtype=object, na_value=np.nan) for it in columns]
    try:
        normals = normals_of_model(model)
    except (TypeError, ValueError):  # of a transformer that cannot be undone
        normals = [Normal()] * len(cells)
    features = [np.flatnonzero(feature_of == number) for number in range(feature_of.max() + 1)]
    for mine in features:
        if mine.size > 1:
            together = [", ".join(map(Normal().written, row)) for row in zip(*(cells[j] for j in mine), strict=True)]
            cells[mine[0]], normals[mine[0]] = np.array(together, dtype=object), Normal()
    return [cells[mine[0]] for mine in features], [normals[mine[0]] for mine in features]


def _given_out(values: np.ndarray, owned: np.ndarray, feature_of: np.ndarray) -> np.ndarray:
    """The values without the last column, which goes in equal parts to the features that own it in each row; to all if none does."""
    owners = np.zeros((len(values), values.shape[1] - 1))
    np.maximum.at(owners.T, feature_of, owned.T.astype(np.float64))
    owners[~owners.any(axis=1)] = 1.0
    return values[:, :-1] + owners * (values[:, -1] / owners.sum(axis=1))[:, None]


def _features(columns: list[str], groups: Mapping[str, Sequence[Any]]) -> tuple[tuple[str, ...], np.ndarray]:
    """The names of the features, and the number of each column's feature."""
    label = list(columns)
    taken: dict[int, str] = {}
    for name, members in groups.items():
        for member in members:
            number = columns.index(member) if member in columns else member
            if isinstance(number, str) or not 0 <= int(number) < len(columns):
                raise ValueError(f"The group {name!r} holds {member!r}, which is not one of the {len(columns)} columns.")
            if number in taken:
                raise ValueError(f"Column {columns[number]} is in the groups {taken[number]!r} and {name!r}: it can be in one only.")
            taken[number] = label[number] = str(name)
    if clash := [name for name in groups if name in {columns[number] for number in range(len(columns)) if number not in taken}]:
        raise ValueError(f"The group {clash[0]!r} has the name of a column that is not in it. Choose another name.")
    names = tuple(dict.fromkeys(label))
    if not groups and len(names) < len(columns):  # columns that share a name are features of their own
        return tuple(columns), np.arange(len(columns))
    position = {name: number for number, name in enumerate(names)}
    return names, np.array([position[name] for name in label], dtype=np.intp)
