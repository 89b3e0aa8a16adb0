"""The article's statements, each as paired comparisons of task means, and what they say here.

A comparison is a Wilcoxon signed-rank test over tasks of d = mean Gmean of one variant - that of another, in points:

    above   d > 0          two-sided p; it fails if the mean d < 0 with p < 0.05
    below   d < 0          the same, the other way round
    equal   |d| < EQUAL    the larger p of two one-sided tests (TOST); it fails if |mean d| >= EQUAL with a two-sided p < 0.05
    cheap   d > -LITTLE    one-sided p; it fails if d < -LITTLE with p < 0.05

A statement holds if all its comparisons hold (so no correction for their number is needed), does not hold if one of them
fails, and is not decided otherwise, for example with too few tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...statistics import LEVEL, differences, paired_p
from ..protocol import ROUTES, VARIANTS

EQUAL = 1.0
"""Points of Gmean within which two methods count as equal: the article's own repetitions differ by more."""
LITTLE = 2.0
"""Points of Gmean that count as a small cost: a third of the usual deviation over runs in the printed tables."""
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
OTHERS = tuple(variant for variant in VARIANTS if variant != "case5")


@dataclass(frozen=True)
class Statement:
    """What the article says, and the comparisons (classifier, route, variant, other variant) of one kind that decide it."""

    name: str
    says: str
    kind: str
    pairs: tuple[tuple[str, str, str, str], ...]


STATEMENTS = (
    Statement(
        "Random references help SVDD",
        "Case 2 (as many random references as samples) is better than the base.",
        "above",
        tuple(("svdd", route, "case2", "base") for route in ROUTES),
    ),
    Statement(
        "The one-class SVM suffers from centring",
        "Case 1 (the centred kernel) is worse than the base kernel. Only the kernel route can tell: in the other the base is centred too.",
        "below",
        (("ocsvm", "kernel", "case1", "base"),),
    ),
    Statement(
        "Case 5 is best for the one-class SVM",
        "References that include known outliers are better than every other variant.",
        "above",
        tuple(("ocsvm", route, "case5", other) for route in ROUTES for other in OTHERS),
    ),
    Statement(
        "NPT equals case 1",
        f"In the mapping route the base (NPT) and case 1 are the same map; “equal” means within {EQUAL:g} point of Gmean.",
        "equal",
        tuple((classifier, "mapping", "case1", "base") for classifier in ("svdd", "ocsvm")),
    ),
    Statement(
        "Fewer references cost little",
        f"For SVDD, half as many references (case 3 against 1, case 4 against 2) lose less than {LITTLE:g} points of Gmean.",
        "cheap",
        tuple(("svdd", route, *pair) for route in ROUTES for pair in (("case3", "case1"), ("case4", "case2"))),
    ),
)


@dataclass(frozen=True)
class Evidence:
    """One comparison over `tasks` tasks: mean and median difference in points, wins (d > 0), losses, p and its verdict."""

    classifier: str
    route: str
    variant: str
    other: str
    tasks: int
    mean: float
    median: float
    wins: int
    losses: int
    p: float
    verdict: str


@dataclass(frozen=True)
class Finding:
    """A statement, its verdict and the evidence; no evidence if the run lacks what it needs."""

    statement: Statement
    verdict: str
    evidence: tuple[Evidence, ...]


def findings(cells: pd.DataFrame, value: str = "gmean") -> list[Finding]:
    """All statements on the task means in column `value` of the cells (classifier, route, variant, task)."""
    means = cells.dropna(subset=[value]).pivot(index="task", columns=["classifier", "route", "variant"], values=value)
    return [_finding(statement, means) for statement in STATEMENTS]


def _finding(statement: Statement, means: pd.DataFrame) -> Finding:
    evidence = tuple(filter(None, (_evidence(statement.kind, means, *pair) for pair in statement.pairs)))
    verdicts = {item.verdict for item in evidence}
    if FAILS in verdicts:
        return Finding(statement, FAILS, evidence)
    complete = len(evidence) == len(statement.pairs)
    return Finding(statement, HOLDS if complete and verdicts == {HOLDS} else OPEN, evidence)


def _evidence(kind: str, means: pd.DataFrame, classifier: str, route: str, variant: str, other: str) -> Evidence | None:
    columns = [(classifier, route, variant), (classifier, route, other)]
    if any(column not in means for column in columns):
        return None
    d = differences(means[columns[0]], means[columns[1]])
    if not d.size:
        return None
    p, holds, fails = KINDS[kind](d)
    verdict = HOLDS if holds else FAILS if fails else OPEN
    return Evidence(
        classifier, route, variant, other, d.size, d.mean(), float(np.median(d)), int((d > 0).sum()), int((d < 0).sum()), p, verdict
    )


def _above(d: np.ndarray) -> tuple[float, bool, bool]:
    p = paired_p(d)
    return p, bool(p < LEVEL and d.mean() > 0), bool(p < LEVEL and d.mean() < 0)


def _below(d: np.ndarray) -> tuple[float, bool, bool]:
    return _above(-d)


def _equal(d: np.ndarray) -> tuple[float, bool, bool]:
    p = max(paired_p(d + EQUAL, "greater"), paired_p(d - EQUAL, "less"))
    return p, bool(p < LEVEL), bool(abs(d.mean()) >= EQUAL and paired_p(d) < LEVEL)


def _cheap(d: np.ndarray) -> tuple[float, bool, bool]:
    p = paired_p(d + LITTLE, "greater")
    return p, bool(p < LEVEL), bool(paired_p(d + LITTLE, "less") < LEVEL)


KINDS: dict[str, Callable[[np.ndarray], tuple[float, bool, bool]]] = {"above": _above, "below": _below, "equal": _equal, "cheap": _cheap}
