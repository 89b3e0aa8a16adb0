"""What the rows of a study say: averages, paired tests, ranks, and curves over the number of known outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import t

from ..._typing import StrPath
from .. import units
from ..article.protocol import CLASSIFIER_NAMES
from ..statistics import LEVEL, Comparison, RankComparison, compare_ranks, compare_with
from .baselines import TUNED
from .methods import ALL, COUNTS, CURVES, WITHOUT_OUTLIERS

MethodKey: TypeAlias = tuple[str, str, str, str]
METHOD = ["classifier", "references", "negatives", "grid"]
CHOSEN = "chosen by validation"
"""Validation also chooses the strategy and the classifier, run by run, among those that train without outliers."""
RANKED = 12
"""Methods in a critical-difference diagram; with more it becomes unreadable."""
ARTICLE = {("ocsvm", "base"): 70.3, ("svdd", "case2"): 74.6}
"""What the article reports for the base kernel's one-class SVM, and for its best SVDD without outliers."""
METHOD_NAMES = {**CLASSIFIER_NAMES, "svddneg": "SVDD, outliers repel", "esvdd": "ESVDD"}
REFERENCE_NAMES = {"base": "plain kernel", "-": ""}


def read_rows(folder: StrPath) -> pd.DataFrame:
    """The rows of a study, Gmean in percent, with the methods that validation chose."""
    rows = units.read_rows(folder, "study", [*METHOD, "gmean", "validation"], dtype={"negatives": str})
    rows = pd.concat([rows, _chosen(rows)], ignore_index=True)
    return rows.assign(**{name: 100.0 * rows[name] for name in ("gmean", "tpr", "tnr", "validation")})


def _chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """For each run and grid the row of the best validation score among methods whose training sees no outlier."""
    free = rows[(rows["negatives"] == "0") & (rows["references"].isin(list(WITHOUT_OUTLIERS)))]
    best = free.loc[free.groupby(["grid", "task", "split", "repeat"])["validation"].idxmax()]
    return best.assign(classifier=CHOSEN, references="-")


def task_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean Gmean over the runs of each task: tasks in rows, methods in columns."""
    return rows.pivot_table(index="task", columns=METHOD, values="gmean", aggfunc="mean", sort=False)


def method_name(classifier: str, references: str = "-") -> str:
    """What tables and pages call a method."""
    name = METHOD_NAMES.get(classifier, classifier)
    references = REFERENCE_NAMES.get(references, references)
    return f"{name}, {references}" if references else name


def against(means: pd.DataFrame, classifier: str, references: str, grid: str) -> list[Comparison]:
    """Every method of a grid whose training sees no outlier against one of them, best first."""
    return compare_with(means[[m for m in means if m[2:] == ("0", grid)]], (classifier, references, "0", grid))


def averages(means: pd.DataFrame) -> pd.DataFrame:
    """Average over tasks of every method, best first."""
    table = means.mean().rename("gmean").reset_index()
    return table.sort_values("gmean", ascending=False, kind="stable").reset_index(drop=True)


def ranks(means: pd.DataFrame, grid: str) -> RankComparison | None:
    """Average ranks of the best methods of a grid, with the tuned baselines; no method that trains with outliers."""
    part = means[[m for m in means if m[2] == "0" and m[3] in (grid, TUNED)]].dropna()
    best = part.mean().sort_values(ascending=False).index[:RANKED]
    base = ("ocsvm", "base", "0", grid)
    part = part[list(dict.fromkeys([*best, *([base] if base in part else [])]))]
    part.columns = [method_name(*m[:2]) for m in part]
    return compare_ranks(part)


@dataclass(frozen=True)
class Curve:
    """By number of known outliers: the average Gmean, and how much above the plain one-class SVM, ± a 95 % interval over tasks."""

    name: str
    counts: list[str]
    mean: np.ndarray
    gain: np.ndarray
    half: np.ndarray


def curves(means: pd.DataFrame, grid: str = "fine") -> list[Curve]:
    """Methods that use known outliers, by their number, and the plain SVDD, which uses none."""
    counts = [*map(str, COUNTS), ALL]
    methods = {method_name(c, r): [(c, r, count, grid) for count in counts] for c, r in CURVES}
    methods["binary SVC"] = [("SVC", "-", count, TUNED) for count in counts]
    methods[method_name("svdd", "base")] = [("svdd", "base", "0", grid)] * len(counts)
    base = ("ocsvm", "base", "0", grid)
    return [_curve(means, name, found, base, counts) for name, found in methods.items() if all(m in means for m in (*found, base))]


def _curve(means: pd.DataFrame, name: str, methods: list[MethodKey], base: MethodKey, counts: list[str]) -> Curve:
    values = np.column_stack([means[m] for m in methods])
    gains, tasks = values - means[[base]].to_numpy(), len(values)
    half = t.ppf(1 - LEVEL / 2, tasks - 1) * gains.std(axis=0, ddof=1) / np.sqrt(tasks) if tasks > 1 else np.zeros(len(counts))
    return Curve(name, counts, values.mean(axis=0), gains.mean(axis=0), half)
