"""What the rows of a benchmark say, as a page in Markdown, which opens with the answer, and its averages as CSV."""

import itertools
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..._core.files import write_text
from ..._core.types import StrPath
from ...pages.html import write_markdown
from .. import units
from ..statistics import LEVEL, TIE_DECIMALS, Comparison, average_ranks, compare_with, comparison_table, markdown_table, signed, value_text
from .methods import METHODS
from .runner import OUTLIER_SHARE
from .tables import MAX_TEST_ROWS, MAX_TRAIN_ROWS

YARDSTICK = METHODS["dte-np"].name  # margins, wins and losses are against the best plain method of published comparisons
SIZES = {"n_train": ("training rows", (200, 1_000)), "columns": ("columns", (10, 50))}  # limits between small, medium and large tables
LAST = -1.0  # stands for the AUROC of a method that failed when methods are ranked
NUMBERS = ("auroc", "average_precision", "weighted_precision", "accepted", "rejected", "gmean", "fit_seconds", "score_seconds")
MOST_NAMED = 40  # tables that the page lists one by one; the rows of longer runs are in rows.csv
HEADINGS = {
    "method": "Method",
    "auroc": "AUROC",
    "auroc_margin": f"AUROC − {YARDSTICK}",
    "weighted_precision": "weighted AP",
    "weighted_precision_margin": f"weighted AP − {YARDSTICK}",
    "rank": "average rank",
    "average_precision": "AP",
    "gmean": "Gmean",
    "wish": "normals to reject",
    "false_alarms": "new normals rejected",
    "fit_seconds": "fit, s",
    "score_seconds": "score, s",
    "failed": "failed",
}
"""Columns of the table of averages; those with a standard error have it beside them."""
DECIMALS = {"rank": 2, "wish": 0, "fit_seconds": 3, "score_seconds": 3}


def read_rows(folder: StrPath) -> pd.DataFrame:
    """The rows of a run, measures in percent. A method that ``failed`` counts as one that gives all rows one score and accepts them."""
    texts = {"error": str, "table": str}  # a table may be called NA
    rows = units.read_rows(folder, "benchmark", ["table", "seed", "method", *NUMBERS], dtype=texts, keep_default_na=False)
    rows = rows.assign(**{name: pd.to_numeric(rows[name], errors="coerce") for name in NUMBERS})
    rows["failed"] = rows["error"] != ""
    share = rows["outliers"] / rows["n_test"]
    for name, value in {"auroc": 0.5, "average_precision": share, "weighted_precision": OUTLIER_SHARE, "gmean": 0.0}.items():
        rows[name] = 100.0 * rows[name].where(~rows["failed"], value)
    rows["false_alarms"] = 100.0 * (1.0 - rows["accepted"])
    rows["wish"] = 100.0 * rows["wish"]
    rows["name"] = [METHODS[key].name for key in rows["method"]]
    return rows


def table_means(rows: pd.DataFrame, measure: str = "auroc") -> pd.DataFrame:
    """Means over seeds: tables in rows, methods in columns. Tables that lack a method (the run was stopped) are left out."""
    return rows.pivot_table(index="table", columns="name", values=measure, aggfunc="mean", sort=False).dropna()


def ranks(rows: pd.DataFrame) -> pd.Series | None:
    """Average ranks by AUROC; a method that failed on a table with any seed is the last there."""
    means = table_means(rows)
    failed = rows.pivot_table(index="table", columns="name", values="failed", aggfunc="max", sort=False).reindex_like(means)
    return average_ranks(means.mask(failed.astype(bool), LAST))


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each method, the best average AUROC first; errors are over tables, margins paired differences to the yardstick."""
    found, ranked = pd.DataFrame(index=table_means(rows).columns), ranks(rows)
    for name in ("auroc", "weighted_precision"):
        means = table_means(rows, name).reindex(columns=found.index)
        found[name], found[f"{name}_error"] = means.mean(), means.sem()
        if YARDSTICK in means:
            margins = means.sub(means[YARDSTICK], axis=0)
            found[f"{name}_margin"], found[f"{name}_margin_error"] = margins.mean(), margins.sem()
    found["rank"] = np.nan if ranked is None else ranked
    for name in ("average_precision", "gmean"):
        found[name] = table_means(rows, name).mean()
    by_name = rows.groupby("name", sort=False)
    found["wish"] = by_name["wish"].first()
    found["false_alarms"] = rows.groupby(["name", "table"])["false_alarms"].mean().groupby("name").mean()
    found["fit_seconds"], found["score_seconds"] = by_name["fit_seconds"].mean(), by_name["score_seconds"].mean()
    found["failed"] = by_name["failed"].sum()
    return found.sort_values("auroc", ascending=False, kind="stable").rename_axis("method").reset_index()


def margins_by_size(rows: pd.DataFrame, method: str | None) -> list[tuple[str, int, int, float, float]]:
    """(which tables, how many, on how many it is better, mean, error): a method's margin over the yardstick by the size of tables."""
    means = table_means(rows)
    if YARDSTICK not in means or method in (None, YARDSTICK):
        return []
    margin = means[method] - means[YARDSTICK]
    facts = rows.groupby("table", sort=False)[list(SIZES)].first().reindex(margin.index)
    found = []
    for name, (words, edges) in SIZES.items():
        for low, high in itertools.pairwise((0, *edges, np.inf)):
            if len(part := margin[(facts[name] > low) & (facts[name] <= high)]):
                limit = f"more than {low:,}" if high == np.inf else f"{low + 1:,} to {high:,}"
                found.append((f"{limit} {words}", len(part), int((part > 0).sum()), part.mean(), part.sem()))
    return found


def promises(rows: pd.DataFrame) -> pd.DataFrame:
    """Shares of normal test rows to reject and rejected, in percent; near: within 2 sqrt(p (1 - p) (1 / n_train + 1 / n_test))."""
    found = []
    for name, part in rows[~rows["failed"]].groupby("name", sort=False):
        tables = part.groupby("table", sort=False)[["false_alarms", "wish", "n_train", "n_test", "outliers"]].mean()
        wish, rejected = tables["wish"].iloc[0], tables["false_alarms"]
        missed, p = (rejected - wish).abs(), wish / 100
        slack = 200 * np.sqrt(p * (1 - p) * (1 / tables["n_train"] + 1 / (tables["n_test"] - tables["outliers"])))
        found.append((name, wish, rejected.mean(), missed.mean(), int((missed <= slack).sum()), len(tables), rejected[missed.idxmax()]))
    names = ["method", "wish", "mean", "missed", "near", "tables", "worst"]
    return pd.DataFrame(found, columns=names).sort_values("missed", kind="stable", ignore_index=True)


def failures(rows: pd.DataFrame) -> list[tuple[str, str, int]]:
    """(method, what it said, on how many tables) for each failure, the most frequent first."""
    part = rows.loc[rows["failed"], ["name", "error", "table"]].drop_duplicates()
    counts = part.groupby(["name", "error"], sort=False).size().sort_values(ascending=False, kind="stable")
    return [(name, error, int(count)) for (name, error), count in counts.items()]


def subject(rows: pd.DataFrame) -> str | None:
    """The method that the others are tested against: AutoDetector, or if it was not run, the best of ours by average AUROC."""
    if "auto" in set(rows["method"]):
        return METHODS["auto"].name
    ours = [name for name in summary(rows)["method"] if name in {m.name for m in METHODS.values() if m.package == "refkernel"}]
    return ours[0] if ours else None


def build_page(folder: StrPath) -> Path:
    """Write summary.csv and benchmark.md of a run's folder, and return the page's path."""
    rows, run = read_rows(folder), units.read_run(folder)
    table, means, tested = summary(rows), table_means(rows), subject(rows)
    write_text(Path(folder) / "summary.csv", table.to_csv(index=False, lineterminator="\n"))
    found, settings = compare_with(means, tested), run.get("settings", {})
    shown = [name for name in HEADINGS if name in table]
    where = [[which, n, f"{better} of {n}", signed(mean, error)] for which, n, better, mean, error in margins_by_size(rows, tested)]
    promised = [
        [r.method, f"{r.wish:.0f}", f"{r.mean:.1f}", f"{r.missed:.1f}", f"{r.near} of {r.tables}", f"{r.worst:.1f}"]
        for r in promises(rows).itertuples()
    ]
    return write_markdown(
        Path(folder) / "benchmark.md",
        __package__,
        "page.md",
        answer=answer(table, tested, found),
        finished=run.get("finished", False),
        tables=len(means),
        averages=markdown_table(
            [HEADINGS[name] for name in shown], ([cell_text(name, row) for name in shown] for row in table.to_dict("records"))
        ),
        tested=tested,
        chosen_after=tested != METHODS["auto"].name,
        yardstick=YARDSTICK,
        where=markdown_table(["Tables of", "tables", "better", "margin"], where) if where else "",
        tests=comparison_table(found, unit="Tables") if found else "",
        promises=markdown_table(["Method", "asked for", "rejected", "missed by", "within chance", "worst table"], promised),
        by_table=_by_table(rows, means, list(table["method"])) if len(means) <= MOST_NAMED else "",
        failures=markdown_table(["Method", "what it said", "tables"], failed) if (failed := failures(rows)) else "",
        seeds=int(rows["seed"].nunique()),
        free=rows["table"].nunique() > run.get("fixed", 0),
        fixed=run.get("fixed", 0),
        max_train_rows=settings.get("max_train_rows"),
        max_test_rows=settings.get("max_test_rows"),
        defaults=(MAX_TRAIN_ROWS, MAX_TEST_ROWS),
        notes=run.get("notes", []),
        provenance=units.provenance(run),
    )


def answer(table: pd.DataFrame, tested: str | None, found: list[Comparison]) -> list[str]:
    """The outcome in paragraphs: the best average and rank, then which differences are more than chance."""
    best, first = table.iloc[0], table.sort_values("rank", kind="stable").iloc[0]
    ahead = f", {best['auroc'] - table.iloc[1]['auroc']:.1f} points above {table.iloc[1]['method']}" if len(table) > 1 else ""
    said = [f"{best['method']} has the best average AUROC, {best['auroc']:.1f} %{ahead}."]
    if pd.notna(first["rank"]):
        who = "It also has" if first["method"] == best["method"] else f"{first['method']} has"
        said[0] += f" {who} the best average rank, {first['rank']:.2f} among {len(table)} methods."
    if found:
        own = table.loc[table["method"] == tested, "auroc"].iloc[0]
        kinds: dict[str, list[str]] = {"significantly better": [], "significantly worse": [], "undecided": []}
        for c in found:
            kinds["undecided" if c.corrected >= LEVEL else f"significantly {'better' if c.mean > 0 else 'worse'}"].append(c.method)
        parts = "; ".join(f"{kind}: {', '.join(names) or 'none'}" for kind, names in kinds.items())
        said.append(f"Compared with {tested} ({own:.1f} %), paired by table and after Holm’s correction: {parts}.")
    return said


def cell_text(name: str, row: dict[Hashable, Any]) -> str:
    """A value of the summary as text, with its standard error if it has one."""
    value, error = row[name], row.get(f"{name}_error")
    if name in ("method", "failed"):
        return str(value)
    if pd.isna(value):
        return "–"
    if name.endswith("margin"):
        return "" if row["method"] == YARDSTICK else signed(value, error)
    return f"{value:.{DECIMALS[name]}f}" if name in DECIMALS else value_text(value, error)


def _by_table(rows: pd.DataFrame, means: pd.DataFrame, order: list[str]) -> str:
    """AUROC by table, the best of each table bold."""
    facts = rows.groupby("table", sort=False)[["n_train", "n_test", "outliers", "columns"]].first()
    lines = []
    for table, values in means[order].round(TIE_DECIMALS).iterrows():
        cells = [f"**{value:.1f}**" if value == values.max() else f"{value:.1f}" for value in values]
        lines.append([table, *cells, *(f"{int(number):,}" for number in facts.loc[table])])
    return markdown_table(["Table", *order, "training rows", "test rows", "outliers", "columns"], lines)
