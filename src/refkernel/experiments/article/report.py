"""A results folder as one self-contained HTML file, whose template draws the figures (extra ``report``: pandas, jinja2)."""

import json
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..._core.text import p_text
from ..._core.types import StrPath
from ...pages.html import write_page
from ..statistics import SAME, average_ranks, signed, value_text
from ..units import provenance, read_run
from .protocol import CLASSIFIER_NAMES, table_title, variant_name
from .statements import FAILS, HOLDS, OPEN, Evidence, Finding, findings
from .tables import AVERAGE, ArticleTable, Counts, article_tables, averages, compare, counts, read_rows, summarise

DECIDING_TASKS = 6  # with fewer tasks no two-sided test can decide at 0.05: all signs agree by chance with probability 2 / 2^5 = 0.0625
ARROWS = {"above": "▲", "below": "▼"}
MARKS = {HOLDS: "✓", FAILS: "✗", OPEN: "?"}
WORDS = {HOLDS: ("holds", "hold"), FAILS: ("does not hold", "do not hold"), OPEN: ("is not decided", "are not decided")}
"""What one statement does, and what several do."""


def build_report(results_dir: StrPath, out: StrPath | None = None) -> Path:
    """Write the report of a results folder, by default as its report.html, and return its path."""
    rows, run = read_rows(results_dir), read_run(results_dir)
    comparison = compare(summarise(rows))
    found = findings(comparison, "gmean")
    means, tasks = averages(comparison), comparison["task"].nunique()
    shown = means[["gmean", "printed_gmean"]].stack()
    return write_page(
        Path(results_dir) / "report.html" if out is None else Path(out),
        __package__,
        "report.html",
        settings={"splits": "", "solver": "", **run.get("settings", {})},
        answer=answer(counts(comparison), found),
        compared=bool(comparison["printed_gmean"].notna().any()),
        tables=[_table(table, comparison, means) for table in article_tables(comparison)],
        axis=(shown.min() - 2, shown.max() + 2),  # of all figures
        statements=list(zip(found, findings(comparison, "printed_gmean"), strict=True)),
        marks=MARKS,
        evidence_text=evidence_text,
        few_tasks=tasks if tasks < DECIDING_TASKS else 0,
        size=f"{int(comparison['runs'].sum()):,} runs in {len(comparison)} cells of {tasks} tasks",
        timed="stages" in run,
        provenance=provenance(run),
        run=json.dumps(run, indent=2, ensure_ascii=False) if run else "",
    )


def answer(counts: Counts, statements: list[Finding]) -> list[str]:
    """How many of the article's cells and statements this run confirms, in sentences."""
    said = []
    if counts.cells:
        share = 100.0 * counts.within / counts.cells
        cells = f"{counts.within} of the article’s {counts.cells} cells ({share:.0f} %) are met within their printed ±"
        said.append(f"{cells}; the {counts.columns} column averages differ by {counts.mean_difference:.2f} points on average.")
    found = Counter(item.verdict for item in statements if item.evidence)
    if parts := [f"{found[verdict]} {words[found[verdict] > 1]}" for verdict, words in WORDS.items() if found[verdict]]:
        listed = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
        said.append(f"Of {found.total()} statements of the article that this run can test, {listed}.")
    return said


def _table(table: ArticleTable, comparison: pd.DataFrame, means: pd.DataFrame) -> dict[str, Any]:
    """One of the article's tables with the printed values beside ours, the average last; and the average ranks of its columns."""
    both = pd.concat([comparison, means.assign(task=AVERAGE)])
    cells = both[(both["classifier"] == table.classifier) & (both["route"] == table.route)].set_index(["task", "variant"])
    found: dict[Hashable, dict[Hashable, Any]] = cells.to_dict("index")
    variants, ranks = list(table.gmean.columns), average_ranks(table.gmean.drop(AVERAGE))
    return {
        "name": table.name,
        "title": table_title(table.classifier, table.route),
        "caption": table.caption + ".",
        "columns": [variant_name(variant) for variant in variants],
        "rows": [(task, [_cell(found.get((task, v), {}), bool(table.bold.loc[task, v])) for v in variants]) for task in table.gmean.index],
        "ranks": [] if ranks is None else [(variant_name(str(variant)), f"{rank:.2f}") for variant, rank in ranks.items()],
    }


def _cell(found: dict[Hashable, Any], bold: bool) -> dict[str, Any]:
    """Ours, the printed value, their difference; `tone` is none, same, above or below; outside: beyond the printed ±."""
    value = {name: number for name, number in found.items() if not pd.isna(number)}
    mean, known, difference = value.get("gmean"), value.get("printed_gmean"), value.get("difference")
    tone = "none" if difference is None else "same" if abs(difference) < SAME else "above" if difference > 0 else "below"
    return {
        "mean": mean,
        "known": known,
        "ours": value_text(mean, value.get("std")) or "–",
        "rank": value_text(value.get("rank")),
        "printed": value_text(known, value.get("printed_std")),
        "printed_rank": value_text(value.get("printed_rank")),
        "difference": "" if difference is None else "= 0.0" if tone == "same" else f"{ARROWS[tone]} {signed(difference)}",
        "tone": tone,
        "outside": not value.get("within", True),
        "bold": bold,
        "printed_bold": bool(value.get("printed_bold")),
    }


def evidence_text(item: Evidence) -> str:
    """A comparison in words."""
    names = f"{variant_name(item.variant)} − {variant_name(item.other) if item.other != 'base' or item.route == 'kernel' else 'NPT'}"
    d, ties = item.d, int((item.d == 0).sum())
    score = f"higher on {(d > 0).sum()}, lower on {(d < 0).sum()}" + (f", equal on {ties}" if ties else "") + f" of {d.size} tasks"
    size = f"{signed(d.mean())} points (median {signed(np.median(d))})"
    return f"{CLASSIFIER_NAMES.get(item.classifier, item.classifier)}, {item.route}: {names} = {size}; {score}; {p_text(item.p)}"
