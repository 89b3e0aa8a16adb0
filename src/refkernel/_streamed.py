"""Fit a classifier on rows that are read in blocks: references from a sample, the optimum from all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from ._dual.classifiers import negative_margin
from ._dual.problem import SUM_PRECISION, Solution
from ._dual.sources import Features
from ._explicit.optimum import Optimum
from ._explicit.passes import Carrying, carrying
from ._explicit.search import Search
from ._explicit.solver import FEASIBLE, sample_start
from ._explicit.terms import Terms
from .kernels.base import Kernel
from .sources import Source
from .sources.labels import SAMPLED_ROWS, Labels, in_source, sampled
from .sources.local import ArraySource

Fit: TypeAlias = tuple[Solution, Features, np.ndarray]


def has_features(kernel: Kernel) -> bool:
    """Whether a kernel may have explicit features: reading in blocks needs them."""
    return type(kernel).features is not Kernel.features


@dataclass(frozen=True)
class Fitted:
    """An optimum with its problem, the features of the sample that it was started from, and rows with weight."""

    best: Optimum
    terms: Terms
    sample: Features
    kept: Carrying


def fit_source(model: Any, source: Source, y: Any, sample_weight: Any, kernel: Kernel) -> Fit:
    """Fit a classifier on a source, after its parameters were checked. Of the rows with weight, it keeps those on the boundary."""
    if not has_features(kernel):
        raise ValueError(
            f"Rows that are read in blocks need a kernel with explicit features, and {kernel} has none: use "
            "rk.ReferenceKernel(references=rk.references.Subset(500)), or a ReferenceMap before a linear kernel."
        )
    if model.threshold == "loo":
        raise ValueError('threshold="loo" leaves single rows out and needs X in memory: use threshold="training" for a source.')
    n = len(source)
    labels = Labels.of(n, y, sample_weight)
    X, index = sampled(source, labels, model.random_state)
    training, weight = labels.chosen(index).training(X)
    model.n_features_in_ = source.n_columns
    model.kernel_ = kernel.resolve(training, weight[training.targets], model.random_state)
    drawn = getattr(model.kernel_, "reference_indices_", None)
    if drawn is not None:
        model.kernel_.reference_indices_ = in_source(drawn, index)
    found = _fitted(model, source, n, labels.signed(model), X, index, keep_all=False)
    return _stored(model, found, source.rows_at(found.kept.index), X)


def fit_large(model: Any, X: np.ndarray, used: np.ndarray, signed_weight: np.ndarray) -> Fit:
    """The rest of a fit on an array in memory whose features in double precision would exceed ``model.memory``."""
    signed = None
    if used.size < len(X) or (signed_weight != 1.0).any():
        signed = np.zeros(len(X))
        signed[used] = signed_weight
    index = np.sort(check_random_state(0).choice(used, min(SAMPLED_ROWS, used.size), replace=False))
    found = _fitted(model, ArraySource(X), len(X), signed, X[index], index, keep_all=True)
    return _stored(model, found, X[found.kept.index], X[index])


def _terms(model: Any, signed: np.ndarray | None, n: int, diag_targets: np.ndarray) -> Terms:
    """The problem in a few numbers, from the problem of one target and one outlier that stand for all."""
    targets = float(n) if signed is None else float(signed[signed > 0].sum())
    outliers = 0.0 if signed is None else float(signed[signed < 0].sum())
    totals = np.array([targets, outliers]) if outliers else np.array([targets])
    problem = model._problem_maker(totals)(np.zeros(totals.size))
    if problem.total >= (1.0 - SUM_PRECISION) * problem.upper[0]:
        raise ValueError("nu=1 gives every row the same weight, and a description of the mean alone. Use nu < 1 for rows read in blocks.")
    lower = problem.lower[1] / outliers if outliers else 0.0
    margin = negative_margin(diag_targets) if outliers else 0.0
    return Terms(model.classifier.linear_share, margin, lower, problem.upper[0] / targets, problem.total, float(problem.upper[0]))


def _fitted(model: Any, source: Source, n: int, signed: np.ndarray | None, X: np.ndarray, index: np.ndarray, keep_all: bool) -> Fitted:
    """The optimum of all rows, from a start on the sample X. Keeps all rows with weight, or those on the boundary."""
    Phi = np.asarray(model.kernel_.features(X), dtype=np.float64)
    weight = None if signed is None else signed[index]
    seen = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
    targets = Phi if weight is None else Phi[weight > 0]
    terms = _terms(model, signed, n, np.einsum("ij,ij->i", targets, targets))
    rows = source.feature_rows(model.kernel_.features_into, Phi.shape[1], terms, signed, model.memory, model.kernel_.thread_safe)
    try:  # a cluster computes features while this process looks for a start
        near = terms.near(Phi[seen], None if weight is None else weight[seen], index[seen])
        start = sample_start(near, terms.total, terms.upper, model.tol)
        best = Search(rows, terms.total, n if signed is None else int(np.count_nonzero(signed)), start, model.tol).optimum()
        kept = best.boundary()
        if keep_all:
            kept = (rows.reduce(carrying, best.screen, best.near is None) + best.left()).sorted()
    finally:
        rows.close()
    return Fitted(best, terms, Features(Phi), kept)


def _stored(model: Any, found: Fitted, vectors: np.ndarray, X: np.ndarray) -> Fit:
    """Set the fitted attributes; return what warnings are judged by: the solution, and the sample's features and rows."""
    best, description = found.best, model.classifier
    feasible = abs(best.carried.b - found.terms.total) <= FEASIBLE * best.carried.weights
    certificate = best.gap, best.quadratic, best.scale, best.size_of_sums, best.shortfall, best.passes
    solution = Solution(best.b, np.empty(0), best.point.rho, *certificate, bool(feasible and best.gap <= model.tol), np.inf)
    model.support_, model.dual_coef_, model.support_vectors_ = found.kept.index, found.kept.b[None, :], vectors
    model._normal, model._quadratic = best.point.w, best.quadratic
    model.n_iter_, model.duality_gap_ = best.passes, best.gap
    boundary = float(description.threshold(best.point.rho, best.quadratic))
    if description.uses_diag:
        model._margin = found.terms.margin if best.carried.weights > best.carried.b * (1.0 + SUM_PRECISION) else None
        model.radius_ = float(np.sqrt(abs(boundary)))
    model.offset_ = boundary - model._slack(solution)
    return solution, found.sample, X
