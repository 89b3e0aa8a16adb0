"""Fits with explicit features: on rows that are read in blocks (references from a sample, the optimum from all rows), or in memory."""

from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from .._core.distances import squared_norms
from .._core.gram import Features
from .._core.problem import SUM_PRECISION, DualProblem, Solution, negative_margin
from .._core.solver import solve
from ..kernels.base import Kernel
from .block_sums import Point, carrying
from .labels import SAMPLED_ROWS, Labels, in_source, sampled
from .rows import Rows, Terms
from .smoothed_newton import FEASIBLE, MANY, SAMPLE, Guess, Search, solve_held
from .source import ArraySource, Source

Fit: TypeAlias = tuple[Solution, Features, np.ndarray]
LEAST_SPREAD = 1e-4  # if a sample's gradients are all alike (w = 0), those of all rows may still differ by this share of their terms
ROWS_PER_FEATURE = 100  # with fewer rows for each feature, Newton steps cost more than the pair moves that they save


def has_features(kernel: Kernel) -> bool:
    """Whether a kernel may have explicit features: reading in blocks needs them."""
    return type(kernel)._features is not Kernel._features


def fit_source(model: Any, source: Source, y: Any, sample_weight: Any, kernel: Kernel) -> Fit:
    """Fit a classifier on a source, after its parameters were checked. Of the rows with weight, it keeps those on the boundary."""
    if not has_features(kernel):
        raise ValueError(
            f"Rows that are read in blocks need a kernel with explicit features, and {kernel} has none: use "
            "rk.ReferenceKernel(references=rk.references.Subset(500)), or a ReferenceMap before a linear kernel."
        )
    if model.threshold == "loo":
        raise ValueError('threshold="loo" leaves single rows out and needs X in memory: use threshold="training" for a source.')
    labels = Labels.of(len(source), y, sample_weight)
    X, index = sampled(source, labels, model.random_state)
    training, weight = labels.chosen(index).training(X)
    model.n_features_in_ = source.n_columns
    model.kernel_ = kernel._fitted(training, weight[training.targets], model.random_state)
    if (drawn := getattr(model.kernel_, "reference_indices_", None)) is not None:
        model.kernel_.reference_indices_ = in_source(drawn, index)
    return _fit(model, source, labels.signed(model), X, index, None)


def fit_large(model: Any, X: np.ndarray, used: np.ndarray, signed_weight: np.ndarray) -> Fit:
    """The rest of a fit on an array in memory whose features in double precision would exceed ``model.memory``."""
    signed = None
    if used.size < len(X) or (signed_weight != 1.0).any():
        signed = np.zeros(len(X))
        signed[used] = signed_weight
    index = np.sort(check_random_state(0).choice(used, min(SAMPLED_ROWS, used.size), replace=False))
    return _fit(model, ArraySource(X), signed, X[index], index, X)


def _terms(model: Any, signed: np.ndarray | None, n: int, diag_targets: np.ndarray) -> Terms:
    """The problem in a few numbers."""
    targets = float(n) if signed is None else float(signed[signed > 0].sum())
    outliers = 0.0 if signed is None else float(signed[signed < 0].sum())
    bound, lower = model._bounds(np.array([targets, outliers]) if outliers else np.array([targets]))
    total, upper = model.classifier.scaled(bound)
    if total >= (1.0 - SUM_PRECISION) * upper * targets:
        raise ValueError("nu=1 gives every row the same weight, and a description of the mean alone. Use nu < 1 for rows read in blocks.")
    margin = negative_margin(diag_targets) if outliers else 0.0
    return Terms(model.classifier.linear_share, margin, lower, upper, float(total), float(upper * targets), float(total - lower * outliers))


def _fit(model: Any, source: Source, signed: np.ndarray | None, X: np.ndarray, index: np.ndarray, whole: np.ndarray | None) -> Fit:
    """Fit from a start on the sample X; return the solution, the sample's features and rows. Without ``whole``, only free rows are kept."""
    n = len(source)
    Phi = np.asarray(model.kernel_._features(X), dtype=np.float64)
    weight = None if signed is None else signed[index]
    seen = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
    targets = Phi if weight is None else Phi[weight > 0]
    terms = _terms(model, signed, n, squared_norms(targets))
    rows = source.feature_rows(model.kernel_._features, Phi.shape[1], terms, signed, model.memory, model.kernel_._thread_safe)
    near = terms.rows(Phi[seen], squared_norms(Phi[seen]), None if weight is None else weight[seen], index[seen])
    start = sample_start(near, terms.total, terms.upper, model.tol)  # a cluster computes features at the same time
    best = Search(rows, terms.total, n if signed is None else int(np.count_nonzero(signed)), start, model.tol).optimum()
    support, b = best.left(free=True)
    if whole is not None:
        parts = (*rows.reduce(carrying, best.screen, best.near is None), best.left())
        support, b = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(support, kind="stable")
        support, b = support[order], b[order]
    del rows  # what they keep may be as large as all other data
    feasible = abs(best.carried.b - terms.total) <= FEASIBLE * best.carried.weights
    certificate = best.gap, best.quadratic, best.scale, best.size_of_sums, best.shortfall, best.passes
    solution = Solution(best.b, np.empty(0), best.point.rho, *certificate, bool(feasible and best.gap <= model.tol), np.inf)
    model.support_, model.dual_coef_ = support, b[None, :]
    model.support_vectors_ = source.rows_at(support) if whole is None else whole[support]
    model._normal, model._quadratic = best.point.w, best.quadratic
    model.n_iter_, model.duality_gap_ = best.passes, best.gap
    boundary = float(model.classifier.threshold(best.point.rho, best.quadratic))
    if model.classifier.uses_diag:
        model._margin = terms.margin if best.carried.weights > best.carried.b * (1.0 + SUM_PRECISION) else None
        model.radius_ = float(np.sqrt(abs(boundary)))
    model.offset_ = boundary - model._slack(solution)
    return solution, Features(Phi), X


def takes_over(n: int, r: int) -> bool:
    """Whether passes over the features are faster than pair moves: always at least as fast from about 30,000 rows on."""
    return n > max(MANY, ROWS_PER_FEATURE * r)


def solve_features(problem: DualProblem, rows: Features, tol: float = 1e-6) -> Solution:
    """As ``_core.solver.solve``, for features in memory."""
    if problem.total >= (1.0 - SUM_PRECISION) * problem.upper.sum():
        return solve(problem, rows, tol=tol)  # every weight is at its bound, so no sample lies on the boundary
    held, (n, r) = Rows.of(rows.Phi, rows.diag, problem), rows.Phi.shape
    if n <= max(MANY, 8 * r):
        return solve_held(problem, rows, cold_start(held, problem.total), tol)
    sample = held.chosen(np.sort(np.random.RandomState(0).choice(n, SAMPLE, replace=False)))
    return solve_held(problem, rows, sample_start(sample, problem.total, float(held.upper.sum()), tol), tol)


def cold_start(rows: Rows, total: float) -> Guess:
    """Equal weights, and a band as wide as the mean distance from the boundary."""
    w = rows.upper * (total / rows.upper.sum()) @ rows.Phi
    G = rows.gradient(w)
    order = np.argsort(G, kind="stable")
    reached = np.cumsum(rows.upper[order]) + rows.lower.sum() - np.cumsum(rows.lower[order])
    rho = float(G[order[min(int(np.searchsorted(reached, total)), len(order) - 1)]])  # up to there, upper bounds sum to the total
    return Guess(Point(w, rho), float(np.abs(G - rho).mean()) or 1.0, rows.Phi[:SAMPLE])


def sample_start(sample: Rows, total: float, most: float, tol: float) -> Guess:
    """The optimum of a sample, its bounds raised so that the upper ones sum to ``most``; the band is as wide as that is uncertain."""
    raised = most / sample.upper.sum()
    rows = Rows.of(sample.Phi, sample.diag, DualProblem(sample.p, sample.lower * raised, sample.upper * raised, total))
    point = Search(rows, total, len(rows.p), cold_start(rows, total), tol).optimum().point
    spread = max(float(np.std(rows.gradient(point.w))), LEAST_SPREAD * abs(total) * float(rows.diag.mean()))
    return Guess(point, spread * np.sqrt((point.w.size + 1.0) / len(rows.p)) or 1.0, rows.Phi)
