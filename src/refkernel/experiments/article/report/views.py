"""What the report shows, as plain values for its template. Numbers become text here; nothing is computed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ....datasets import list_tasks
from ...pages.texts import p_text, signed, tone_of, value_text
from ..protocol import classifier_name, variant_name
from ..tables import AVERAGE, ArticleTable
from .statements import FAILS, HOLDS, OPEN, Evidence, Finding

DATASETS = {task.name: task.dataset for task in list_tasks("authors")}
ARROWS = {"above": "▲", "below": "▼"}
MARKS = {HOLDS: "✓", FAILS: "✗", OPEN: "?"}


@dataclass(frozen=True)
class CellView:
    """One cell of a table: ours, the printed value, their difference; `tone` is same, above or below, outside: beyond the printed ±."""

    ours: str
    rank: str
    printed: str
    printed_rank: str
    difference: str
    tone: str
    outside: bool
    bold: bool
    printed_bold: bool
    sort: str


@dataclass(frozen=True)
class RowView:
    """A row of cells, with what filters look at."""

    label: str
    cells: list[CellView]
    data: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableView:
    """A table that can be sorted and filtered."""

    name: str
    title: str
    caption: str
    columns: list[str]
    rows: list[RowView]
    foot: list[RowView] = field(default_factory=list)
    data: dict[str, str] = field(default_factory=dict)


def table_view(table: ArticleTable, comparison: pd.DataFrame, averages: pd.DataFrame) -> TableView:
    """One of the article's tables with the printed values beside ours."""
    here = (comparison["classifier"] == table.classifier) & (comparison["route"] == table.route)
    cells = comparison[here].set_index(["task", "variant"])
    means = averages[(averages["classifier"] == table.classifier) & (averages["route"] == table.route)].assign(task=AVERAGE)
    cells = pd.concat([cells, means.set_index(["task", "variant"])])
    rows = [_row(table, cells, task) for task in table.gmean.index]
    title = f"{classifier_name(table.classifier)}, {table.route} route"
    return TableView(
        name=table.name,
        title=title,
        caption=table.caption + ".",
        columns=[variant_name(variant) for variant in table.gmean.columns],
        rows=rows[:-1],
        foot=rows[-1:],
        data={"classifier": table.classifier, "route": table.route},
    )


def averages_view(averages: pd.DataFrame, tables: Iterable[ArticleTable]) -> TableView:
    """The average rows of all tables as one table, means only."""
    variants = list(dict.fromkeys(averages["variant"]))
    rows = []
    for table in tables:
        here = (averages["classifier"] == table.classifier) & (averages["route"] == table.route)
        cells = averages.loc[here, ["variant", "gmean", "printed_gmean", "difference"]].set_index("variant")
        bold = table.bold.loc[AVERAGE].reindex(variants, fill_value=False)
        views = [_cell(_found(cells, variant), bool(bold[variant])) for variant in variants]
        rows.append(RowView(f"{classifier_name(table.classifier)}, {table.route}", views))
    return TableView(
        "averages", "Averages over tasks", "Average Gmean (%) over the tasks of this run.", [variant_name(v) for v in variants], rows
    )


def _row(table: ArticleTable, cells: pd.DataFrame, task: str) -> RowView:
    views = [_cell(_found(cells, (task, variant)), bool(table.bold.loc[task, variant])) for variant in table.gmean.columns]
    return RowView(str(task), views, {} if task == AVERAGE else {"dataset": dataset(task)})


def _found(cells: pd.DataFrame, key: Hashable) -> dict[Hashable, Any]:
    return cells.loc[key].to_dict() if key in cells.index else {}


def _cell(found: dict[Hashable, Any], bold: bool) -> CellView:
    mean, difference, within = (found.get(name, pd.NA) for name in ("gmean", "difference", "within"))
    tone = tone_of(difference)
    return CellView(
        ours=value_text(mean, found.get("std")) or "–",
        rank=value_text(found.get("rank")),
        printed=value_text(found.get("printed_gmean"), found.get("printed_std")),
        printed_rank=value_text(found.get("printed_rank")),
        difference="" if tone == "none" else "= 0.0" if tone == "same" else f"{ARROWS[tone]} {signed(difference)}",
        tone=tone,
        outside=bool(pd.notna(within) and not within),
        bold=bold,
        printed_bold=bool(pd.notna(known := found.get("printed_bold")) and known),
        sort="" if pd.isna(mean) else f"{mean:.4f}",
    )


def dataset(task: str) -> str:
    """The data set that a task belongs to."""
    return DATASETS.get(task, str(task).rstrip("0123456789"))


def evidence_text(item: Evidence) -> str:
    """A comparison in words."""
    names = f"{variant_name(item.variant)} − {variant_name(item.other) if item.other != 'base' or item.route == 'kernel' else 'NPT'}"
    ties = item.tasks - item.wins - item.losses
    score = f"higher on {item.wins}, lower on {item.losses}" + (f", equal on {ties}" if ties else "") + f" of {item.tasks} tasks"
    size = f"{signed(item.mean)} points (median {signed(item.median)})"
    return f"{classifier_name(item.classifier)}, {item.route}: {names} = {size}; {score}; {p_text(item.p)}"


def statement_view(here: Finding, article: Finding) -> dict[str, Any]:
    """A finding for the page, with what the same test says of the article's printed numbers on the same tasks."""
    shown = sorted(here.evidence, key=lambda item: (item.verdict != FAILS, item.verdict != OPEN, -item.p))
    return {
        "name": here.statement.name,
        "says": here.statement.says,
        "verdict": here.verdict,
        "mark": MARKS[here.verdict],
        "tone": {HOLDS: "holds", FAILS: "fails", OPEN: "open"}[here.verdict],
        "evidence": [(MARKS[item.verdict], item.verdict, evidence_text(item)) for item in shown],
        "missing": len(here.statement.pairs) - len(here.evidence),
        "article": article.verdict if article.evidence else "",
        "article_evidence": [evidence_text(item) for item in sorted(article.evidence, key=lambda item: -item.p)],
    }


def pair_view(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the comparison of two runs: average Gmean here, in the other run, and printed (None if it is not)."""
    return {
        **row,
        "classifier_name": classifier_name(row["classifier"]),
        "variant_name": variant_name(row["variant"]),
        "difference": signed(row["other"] - row["gmean"]),
        "printed_gmean": None if np.isnan(row["printed_gmean"]) else row["printed_gmean"],
    }
