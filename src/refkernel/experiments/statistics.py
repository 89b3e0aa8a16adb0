"""Paired comparisons of methods over tasks, and how all pages write them. Tables of means have tasks in rows and methods in columns."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from .._core.text import p_text
from ..detectors.calibration.promise import holm

LEVEL = 0.05  # the level of every test
TIE_DECIMALS = 9  # task means that agree to this many decimals differ by rounding only
SAME = 0.05  # differences below this are shown as 0.0
TAG = re.compile(r"<(?=[a-zA-Z/!])")  # where an HTML tag may begin


def differences(one: pd.Series, other: pd.Series) -> np.ndarray:
    """one - other on the tasks that both have; 0 where they differ by rounding only."""
    d = (one - other).dropna().to_numpy()
    return np.where(np.abs(d) < 10.0**-TIE_DECIMALS, 0.0, d)


def paired_p(d: np.ndarray, alternative: str = "two-sided") -> float:
    """The exact p-value of Wilcoxon's signed-rank test, zeros left out: the rank sum's distribution is a product of polynomials."""
    d = np.round(d, TIE_DECIMALS)
    d = d[d != 0]
    halves = np.rint(2 * rankdata(np.abs(d))).astype(int)  # tied ranks are multiples of a half
    share = np.ones(1)
    for rank in halves:
        share = (np.append(share, np.zeros(rank)) + np.append(np.zeros(rank), share)) / 2
    positive = int(halves[d > 0].sum())
    greater, less = float(share[positive:].sum()), float(share[: positive + 1].sum())
    return min(1.0, {"greater": greater, "less": less, "two-sided": 2 * min(greater, less)}[alternative])


@dataclass(frozen=True)
class Comparison:
    """A method against another over tasks: its average, the mean difference, wins, losses, p, and p corrected by Holm's rule."""

    method: Any
    average: float
    mean: float
    wins: int
    losses: int
    p: float
    corrected: float


def compare_with(means: pd.DataFrame, other: Any) -> list[Comparison]:
    """Every other column of a table against the column ``other``, the best first; empty if the table has no such column."""
    if other not in means:
        return []
    d = {m: differences(means[m], means[other]) for m in means if m != other}
    p = {m: paired_p(values) for m, values in d.items()}
    corrected = dict(zip(p, holm(list(p.values())), strict=True))
    found = [Comparison(m, means[m].mean(), v.mean(), int((v > 0).sum()), int((v < 0).sum()), p[m], corrected[m]) for m, v in d.items()]
    return sorted(found, key=lambda c: -c.mean)


def average_ranks(means: pd.DataFrame) -> pd.Series | None:
    """Average ranks (1 is best) over the tasks that all methods have, the best first; None for fewer than three methods or two tasks."""
    means = means.dropna().round(TIE_DECIMALS)
    enough = means.shape[0] >= 2 and means.shape[1] >= 3
    return means.rank(axis=1, ascending=False).mean().sort_values(kind="stable") if enough else None


def value_text(mean: Any, std: Any = None) -> str:
    """A mean, with its deviation if there is one; nothing if there is no mean."""
    return "" if pd.isna(mean) else f"{mean:.1f}" + ("" if pd.isna(std) else f" ± {std:.1f}")


def signed(value: float, error: Any = None) -> str:
    """A difference with its sign, one decimal, with a real minus sign; +0.0 for what rounds to zero. With its error if there is one."""
    return f"{0.0 if abs(value) < SAME else value:+.1f}".replace("-", "−") + ("" if pd.isna(error) else f" ± {error:.1f}")


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; all columns but the first are aligned to the right. Bars and tags in cells are escaped."""
    lines = [[_cell(text) for text in headings], ["---", *["---:"] * (len(headings) - 1)]]
    lines += [[_cell(text) for text in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    return " ".join(TAG.sub("&lt;", str(value)).replace("|", "\\|").split())


def comparison_table(found: Iterable[Comparison], name: Callable[[Any], str] = str, unit: str = "Tasks") -> str:
    """Comparisons with one method as a Markdown table; significant ones are bold."""
    rows = []
    for c in found:
        p, corrected = (p_text(value).removeprefix("p ").removeprefix("= ") for value in (c.p, c.corrected))
        shown = f"**{corrected}**" if c.corrected < LEVEL else corrected
        rows.append([name(c.method), f"{c.average:.1f}", signed(c.mean), f"{c.wins} : {c.losses}", p, shown])
    return markdown_table(["Method", "Average", "Difference", f"{unit} better : worse", "p", "corrected p"], rows)
