"""What the study compares: reference strategies × classifiers, baselines, and how many known outliers training may see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels import RBF
from ...references import FarthestFirst, KMeans, LeverageScores, Normal, Shell, Uniform, case, negatives_option

FINE_SCALES = tuple(float(f"{s:.4g}") for s in 10.0 ** np.arange(-2, 3.1, 0.5))
"""Half decades from 0.01 to 1000; every second one, starting at 0.1, is the article's."""
FINE_VALUES: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
FINE_KERNELS = tuple(RBF(scale=scale) for scale in FINE_SCALES)
GRIDS: dict[str, tuple[slice, slice]] = {
    "article": (slice(2, None, 2), slice(2, None)),
    "fine": (slice(None), slice(None)),
}
"""The scales and values of nu of each grid: the article's is part of the fine one."""

WITHOUT_OUTLIERS = {
    "base": None,
    **{f"case{k}": case(k) for k in (1, 2, 3, 4, 6, 7)},
    "kmeans": KMeans(0.5),
    "leverage": LeverageScores(0.5),
    "farthest": FarthestFirst(0.5),
    "uniform": Uniform(1.0),
    "uniform2": Uniform(1.0, scale=2.0),
    "normal3": Normal(1.0, scale=3.0),
    "shell": Shell(1.0),
}
"""Strategies whose references hold no outlier. (Those like the targets are case 2 here: the data are standardised.)"""
WITH_OUTLIERS = {"case5": case(5), **{f"negatives{k}": negatives_option(k) for k in range(2, 10)}}
"""Strategies that use known outliers. (The follow-up's first option is case 1.)"""
STRATEGIES = {**WITHOUT_OUTLIERS, **WITH_OUTLIERS}

ALL = "all"
COUNTS = (1, 3, 10)
"""Numbers of known outliers that training may use, apart from none and all."""
CURVES = (("ocsvm", "case5"), ("ocsvm", "negatives2"), ("ocsvm", "negatives7"), ("svddneg", "base"))
"""Methods that are run with each count; the binary SVC is another."""


@dataclass(frozen=True)
class Method:
    """A classifier on a reference strategy ("-": none) and the number of outliers it may train with ("0", "1", … "all")."""

    classifier: str
    references: str
    negatives: str


def kernel_methods() -> list[Method]:
    """All classifiers on all strategies; ESVDD needs a map, so it does not run on the plain kernel."""
    found = []
    for name in STRATEGIES:
        known = ALL if name in WITH_OUTLIERS else "0"
        found += [Method("svdd", name, known), Method("ocsvm", name, known), Method("svddneg", name, ALL)]
        if name != "base":
            found.append(Method("esvdd", name, known))
    return found + [Method(*pair, str(count)) for count in COUNTS for pair in CURVES]
