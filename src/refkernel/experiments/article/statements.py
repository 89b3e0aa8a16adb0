"""The article's statements, each as paired comparisons of task means, and what they say here.

A comparison is a Wilcoxon signed-rank test over tasks of d = mean Gmean of one variant - that of another, in points:

    above   d > 0          two-sided p; it fails if the mean d < 0 with p < 0.05
    below   d < 0          the same, the other way round
    equal   |d| < EQUAL    the larger p of two one-sided tests (TOST); it fails if |mean d| >= EQUAL with a two-sided p < 0.05
    cheap   d > -LITTLE    one-sided p; it fails if d < -LITTLE with p < 0.05

A statement holds if all its comparisons hold (so no correction for their number is needed), does not hold if one of them
fails, and is not decided otherwise, for example with too few tasks.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from ..statistics import LEVEL, differences, paired_p
from .protocol import ROUTES, VARIANTS

EQUAL = 1.0  # points of Gmean within which two methods count as equal: the article's own repetitions differ by more
LITTLE = 2.0  # points of Gmean that count as a small cost: a third of the usual deviation over runs in the printed tables
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
OTHERS = tuple(variant for variant in VARIANTS if variant != "case5")


class Statement(NamedTuple):
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


class Evidence(NamedTuple):
    """One comparison: the differences d by task in points, p and its verdict."""

    classifier: str
    route: str
    variant: str
    other: str
    d: np.ndarray
    p: float
    verdict: str


class Finding(NamedTuple):
    """A statement, its verdict and the evidence, the least clear first; no evidence if the run lacks what it needs."""

    statement: Statement
    verdict: str
    evidence: list[Evidence]


def findings(cells: pd.DataFrame, value: str = "gmean") -> list[Finding]:
    """All statements on the task means in column `value` of the cells (classifier, route, variant, task)."""
    means = cells.dropna(subset=[value]).pivot(index="task", columns=["classifier", "route", "variant"], values=value)
    return [_finding(statement, means) for statement in STATEMENTS]


def _finding(statement: Statement, means: pd.DataFrame) -> Finding:
    evidence = []
    for classifier, route, *pair in statement.pairs:
        one, other = ((classifier, route, variant) for variant in pair)
        d = differences(means[one], means[other]) if one in means and other in means else np.empty(0)
        if d.size:
            evidence.append(Evidence(*one, pair[1], d, *_tested(statement.kind, d)))
    evidence.sort(key=lambda item: (item.verdict != FAILS, item.verdict != OPEN, -item.p))
    verdicts = {item.verdict for item in evidence}
    if FAILS in verdicts:
        return Finding(statement, FAILS, evidence)
    return Finding(statement, HOLDS if verdicts == {HOLDS} and len(evidence) == len(statement.pairs) else OPEN, evidence)


def _tested(kind: str, d: np.ndarray) -> tuple[float, str]:
    """p and the verdict of a comparison."""
    mean, p = (-d if kind == "below" else d).mean(), paired_p(d)
    holds, fails = p < LEVEL and mean > 0, p < LEVEL and mean < 0
    if kind == "equal":
        fails, p = p < LEVEL and abs(mean) >= EQUAL, max(paired_p(d + EQUAL, "greater"), paired_p(d - EQUAL, "less"))
        holds = p < LEVEL
    elif kind == "cheap":
        fails, p = paired_p(d + LITTLE, "less") < LEVEL, paired_p(d + LITTLE, "greater")
        holds = p < LEVEL
    return p, HOLDS if holds else FAILS if fails else OPEN
