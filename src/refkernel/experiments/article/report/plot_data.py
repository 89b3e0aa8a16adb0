"""What the figures show, as numbers: average ranks, spectra, decision regions, chosen parameters. Nothing is drawn here."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA

import refkernel as rk

from ...._validation import as_labels
from ...statistics import RankComparison, compare_ranks
from ..protocol import SCALES, VARIANTS

REGION_NU, REGION_SCALE = 0.1, 1.0
"""The page names both."""
GRID = 90
"""Grid points a side for decision regions: curves look smooth, the file stays small."""
MARGIN = 0.08


@dataclass(frozen=True)
class Regions:
    """Decision values of the variants of a classifier on a grid, and the samples: X (n × 2), is_target."""

    classifier: str
    x1: np.ndarray
    x2: np.ndarray
    values: dict[str, np.ndarray]
    X: np.ndarray
    is_target: np.ndarray


def rank_comparisons(summary: pd.DataFrame) -> dict[tuple[str, str], RankComparison]:
    """By classifier and route; left out with fewer than three variants or two tasks."""
    parts = summary.groupby(["classifier", "route"], sort=False)
    found = {tuple(key): compare_ranks(part.pivot(index="task", columns="variant", values="gmean")) for key, part in parts}
    return {key: comparison for key, comparison in found.items() if comparison is not None}


def iris_task() -> tuple[np.ndarray, np.ndarray]:
    """Iris2, standardised by its target class: y = 1 for versicolor, -1 for its neighbours on either side."""
    iris = load_iris()
    y = as_labels(iris.target == 1)
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
    model = {"svdd": rk.SVDD, "ocsvm": rk.OneClassSVM}[classifier](kernel, nu=REGION_NU)
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
