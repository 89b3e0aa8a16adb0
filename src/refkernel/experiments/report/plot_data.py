"""What the figures show, as numbers: average ranks, spectra, decision regions, chosen parameters. Nothing is drawn here."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, studentized_range
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA

import refkernel as rk

from ..article.tables import VARIANTS

LEVEL = 0.05
SCALES = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""The article's widths of the base kernel."""
NU = 0.1
REGION_SCALE = 1.0
GRID = 90
"""Grid points a side for decision regions: curves look smooth, the file stays small."""
MARGIN = 0.08
TIE = 9
"""Decimals at which task means are compared: NPT and case 1 differ by rounding only."""


@dataclass(frozen=True)
class RankComparison:
    """Friedman average ranks (1 is best) of variants over tasks, Nemenyi's critical difference, the Friedman test's p.

    groups: largest runs of variants, in the order of their ranks, that span less than the critical difference.
    """

    classifier: str
    route: str
    ranks: pd.Series
    tasks: int
    critical_difference: float
    p: float
    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Regions:
    """Decision values of the variants of a classifier on a grid, and the samples: X (n × 2), is_target."""

    classifier: str
    x1: np.ndarray
    x2: np.ndarray
    values: dict[str, np.ndarray]
    X: np.ndarray
    is_target: np.ndarray


def rank_comparisons(summary: pd.DataFrame) -> list[RankComparison]:
    """One comparison for each classifier and route with three variants and two tasks or more."""
    parts = summary.groupby(["classifier", "route"], sort=False)
    tables = {tuple(key): part.pivot(index="task", columns="variant", values="gmean").dropna() for key, part in parts}
    return [_rank_comparison(c, r, table) for (c, r), table in tables.items() if table.shape[0] >= 2 and table.shape[1] >= 3]


def _rank_comparison(classifier: str, route: str, gmean: pd.DataFrame) -> RankComparison:
    gmean = gmean.round(TIE)
    ranks = gmean.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    cd = critical_difference(gmean.shape[1], gmean.shape[0])
    varies = bool((gmean.nunique(axis=1) > 1).any())
    p = float(friedmanchisquare(*gmean.to_numpy().T).pvalue) if varies else 1.0
    return RankComparison(classifier, route, ranks, gmean.shape[0], cd, p, groups_within(ranks, cd))


def critical_difference(k: int, n: int) -> float:
    """Nemenyi's critical difference of average ranks for k variants and n tasks: q sqrt(k (k + 1) / (6 n))."""
    q = studentized_range.ppf(1 - LEVEL, k, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * n)))


def groups_within(ranks: pd.Series, cd: float) -> tuple[tuple[str, ...], ...]:
    """Maximal runs of two or more sorted ranks that differ by less than cd."""
    values, names = ranks.to_numpy(), list(ranks.index)
    ends = np.searchsorted(values, values + cd)
    runs = [(i, end) for i, end in enumerate(ends) if end - i > 1 and (i == 0 or end > ends[i - 1])]
    return tuple(tuple(names[i:end]) for i, end in runs)


def iris_task() -> tuple[np.ndarray, np.ndarray]:
    """Iris2, standardised by its target class: y = 1 for versicolor, -1 for its neighbours on either side."""
    iris = load_iris()
    y = np.where(iris.target == 1, 1, -1)
    return rk.TargetScaler().fit(iris.data, y).transform(iris.data), y


def spectra() -> dict[float, dict[str, np.ndarray]]:
    """Eigenvalues, largest first, of the centred kernel matrix of the references, by scale and case; of the plain one for the base."""
    X, y = iris_task()
    return {scale: {variant: _spectrum(X, y, scale, variant) for variant in VARIANTS} for scale in SCALES}


def _spectrum(X: np.ndarray, y: np.ndarray, scale: float, variant: str) -> np.ndarray:
    if variant == "base":
        model = rk.ReferenceMap(kernel=rk.RBF(scale=scale), references="case1", center=False)
    else:
        model = rk.ReferenceMap(kernel=rk.RBF(scale=scale), references=variant, random_state=0)
    return np.sort(model.fit(X, y).eigenvalues_)[::-1]


def regions(classifier: str) -> Regions:
    """Decision values of all variants on the first two principal components of Iris2."""
    X4, y = iris_task()
    X = PCA(2, svd_solver="full").fit_transform(X4)
    X = rk.TargetScaler().fit(X, y).transform(X)
    low, high = X.min(axis=0), X.max(axis=0)
    x1, x2 = (np.linspace(a - MARGIN * (b - a), b + MARGIN * (b - a), GRID) for a, b in zip(low, high, strict=True))
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x1, x2)])
    values = {variant: _decisions(classifier, variant, X, y, grid).reshape(GRID, GRID) for variant in VARIANTS}
    return Regions(classifier, x1, x2, values, X, y == 1)


def _decisions(classifier: str, variant: str, X: np.ndarray, y: np.ndarray, grid: np.ndarray) -> np.ndarray:
    base = rk.RBF(scale=REGION_SCALE)
    kernel = base if variant == "base" else rk.ReferenceKernel(kernel=base, references=variant, random_state=0)
    model = {"svdd": rk.SVDD, "ocsvm": rk.OneClassSVM}[classifier](kernel, nu=NU)
    with warnings.catch_warnings():  # the report explains the degenerate one-class SVM itself
        warnings.simplefilter("ignore", rk.DegenerateSolutionWarning)
        warnings.simplefilter("ignore", rk.FarSamplesWarning)  # and the regions show it
        return model.fit(X, y).decision_function(grid)


def chosen_parameters(rows: pd.DataFrame) -> dict[tuple[str, str], dict[str, pd.DataFrame]]:
    """Share of runs that chose each scale (rows) and parameter (columns), by (classifier, route) and variant."""
    if not {"scale", "parameter"} <= set(rows) or rows[["scale", "parameter"]].isna().all(axis=None):
        return {}
    scales, parameters = sorted(rows["scale"].dropna().unique()), sorted(rows["parameter"].dropna().unique())
    shares: dict[tuple[str, str], dict[str, pd.DataFrame]] = {}
    for (classifier, route, variant), part in rows.groupby(["classifier", "route", "variant"], sort=False):
        share = pd.crosstab(part["scale"], part["parameter"], normalize=True).reindex(index=scales, columns=parameters, fill_value=0.0)
        shares.setdefault((classifier, route), {})[variant] = share
    return shares
