"""What the page says in words, and the summary as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from ..._files import write_text
from ..._typing import StrPath
from ..statistics import LEVEL, Comparison, RankComparison
from .findings import YARDSTICK

TUNED = (
    "This command tunes nothing. AutoDetector’s parts (L1 distances, the two views, the ridge, the widths) were picked by looking at 22 of "
    "ADBench’s tables, the article’s 14 tasks and 15 of scikit-learn’s, so figures on these are somewhat optimistic; the choice among "
    "seven averages of such parts was evaluated by leaving one table out. The neighbour width of SVDD was picked on the same tables; "
    "values around it do about as well."
)
"""Which constants were tuned on which tables."""
DECIMALS = {"auroc": 1, "rank": 2, "average_precision": 1, "gmean": 1, "wish": 0, "false_alarms": 1, "fit_seconds": 3, "score_seconds": 3}
HEADINGS = {
    "method": "Method",
    "auroc": "AUROC",
    "rank": "average rank",
    "average_precision": "average precision",
    "gmean": "Gmean",
    "wins": f"tables better than {YARDSTICK}",
    "losses": "worse",
    "wish": "targets to reject, %",
    "false_alarms": "new targets rejected, %",
    "fit_seconds": "fit, s",
    "score_seconds": "score, s",
    "failed": "failed",
}


def answer(table: pd.DataFrame, ranked: RankComparison | None, tested: str | None, found: list[Comparison]) -> list[str]:
    """The outcome in paragraphs: the best average and rank, then which differences are more than chance."""
    best = table.iloc[0]
    said = f"{best['method']} has the best average AUROC, {best['auroc']:.1f} %{_ahead(table)}."
    if ranked is not None:
        first, rank = ranked.ranks.index[0], ranked.ranks.iloc[0]
        who = "It also has" if first == best["method"] else f"{first} has"
        said += f" {who} the best average rank, {rank:.2f} among {len(ranked.ranks)} methods."
    return [said, _tested(table, tested, found)] if tested is not None and found else [said]


def _ahead(table: pd.DataFrame) -> str:
    if len(table) < 2:
        return ""
    second = table.iloc[1]
    return f", {table.iloc[0]['auroc'] - second['auroc']:.1f} points above {second['method']}"


def _tested(table: pd.DataFrame, tested: str, found: list[Comparison]) -> str:
    real = [c for c in found if c.corrected < LEVEL]
    own = table.loc[table["method"] == tested, "auroc"].iloc[0]
    if not real:
        return f"After Holm’s correction no method differs significantly from {tested} ({own:.1f} %)."
    better, worse = _names(c for c in real if c.mean > 0), _names(c for c in real if c.mean < 0)
    return (
        f"Compared with {tested} ({own:.1f} %), paired by table and after Holm’s correction: significantly better: {better}; "
        f"significantly worse: {worse}; undecided: {_names(c for c in found if c.corrected >= LEVEL)}."
    )


def _names(comparisons: Iterable[Comparison]) -> str:
    return ", ".join(c.method for c in comparisons) or "none"


def write_summary(table: pd.DataFrame, folder: StrPath) -> list[Path]:
    """Write summary.csv and summary.md."""
    return [
        write_text(Path(folder) / "summary.csv", table.to_csv(index=False, lineterminator="\n")),
        write_text(Path(folder) / "summary.md", _markdown(table)),
    ]


def _markdown(table: pd.DataFrame) -> str:
    lines = [[HEADINGS[name] for name in table], ["---"] + ["---:"] * (table.shape[1] - 1)]
    lines += [[cell_text(name, value) for name, value in row.items()] for row in table.to_dict("records")]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def cell_text(name: Hashable, value: Any) -> str:
    """A value of the summary as text."""
    if name in DECIMALS:
        return "–" if pd.isna(value) else f"{value:.{DECIMALS[name]}f}"
    return str(value)
