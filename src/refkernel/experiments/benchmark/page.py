"""The benchmark as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..._typing import StrPath
from ..pages import write_page
from ..pages.ranks import draw_ranks
from ..pages.texts import comparison_view, duration
from ..statistics import TIE_DECIMALS, RankComparison, compare_with
from ..units import read_run
from .findings import YARDSTICK, failures, promises, ranks, read_rows, subject, summary, table_means
from .methods import METHODS
from .texts import HEADINGS, TUNED, answer, cell_text, write_summary


def build_page(folder: StrPath, beside: Sequence[StrPath] = ()) -> Path:
    """Write the summary and the page of a run's folder, with the rows of other runs beside it, and return the page's path."""
    rows, run = read_rows(folder, beside), read_run(folder)
    table, means, ranked, tested = summary(rows), table_means(rows), ranks(rows), subject(rows)
    write_summary(table, folder)
    found = compare_with(means, tested)
    return write_page(
        Path(folder) / "benchmark.html",
        __package__,
        "benchmark.html",
        answer=answer(table, ranked, tested, found),
        tiles=_tiles(table, ranked, means, rows),
        headings=[HEADINGS[name] for name in table],
        averages=[_cells(row) for row in table.to_dict("records")],
        rank_figures=[] if ranked is None else [draw_ranks(ranked, "methods", "Average ranks by AUROC", unit="tables")],
        tested=tested,
        chosen_after=tested != METHODS["auto"].name,
        comparisons=[comparison_view(item, item.method) for item in found],
        yardstick=YARDSTICK,
        per_table=_per_table(rows, means, list(table["method"])),
        promises=[_promise_cells(row) for row in promises(rows).to_dict("records")],
        failures=failures(rows),
        most_rows=run.get("settings", {}).get("most_rows"),
        most_test_rows=run.get("settings", {}).get("most_test_rows"),
        seeds=int(rows["seed"].nunique()),
        notes=run.get("notes", []),
        tuned=TUNED,
        seconds=duration(run.get("seconds", 0.0)),
        versions={**run.get("versions", {}), **run.get("peers", {})},
        commit=run.get("commit", ""),
        finished=run.get("finished", False),
    )


def _tiles(table: pd.DataFrame, ranked: RankComparison | None, means: pd.DataFrame, rows: pd.DataFrame) -> list[tuple[str, str]]:
    """The numbers at the top: (value, what it is)."""
    best = table.iloc[0]
    tiles = [(f"{best['auroc']:.1f} %", f"best average AUROC: {best['method']}")]
    if ranked is not None:
        tiles.append((f"{ranked.ranks.iloc[0]:.2f}", f"best average rank: {ranked.ranks.index[0]}"))
    best = table.loc[table["gmean"].idxmax()]
    tiles.append((f"{best['gmean']:.1f} %", f"best average Gmean of decisions: {best['method']}"))
    return [*tiles, (f"{len(means)} × {rows['seed'].nunique()}", "tables × seeds")]


def _cells(row: dict[str, Any]) -> list[tuple[str, str]]:
    """(text, what to sort by) of each cell."""
    return [(cell_text(name, value), "" if pd.isna(value) else str(value)) for name, value in row.items()]


def _per_table(rows: pd.DataFrame, means: pd.DataFrame, order: list[str]) -> dict[str, Any]:
    """AUROC by table, the best of each table marked; (text, is the best, what to sort by)."""
    facts = rows.groupby("table", sort=False)[["n_train", "n_test", "outliers", "columns"]].first()
    best = means.max(axis=1).round(TIE_DECIMALS)
    found = []
    for table, values in means[order].iterrows():
        cells = [(f"{value:.1f}", round(value, TIE_DECIMALS) == best[table], f"{value:.4f}") for value in values]
        found.append((table, [f"{int(number):,}" for number in facts.loc[table]], cells))
    return {"columns": order, "rows": found}


def _promise_cells(row: dict[str, Any]) -> list[tuple[str, str]]:
    numbers = [(f"{row[name]:.{decimals}f}", str(row[name])) for name, decimals in (("wish", 0), ("mean", 1), ("missed", 1))]
    near, worst = (f"{row['near']} of {row['tables']}", str(row["near"])), (f"{row['worst_table']}: {row['worst']:.1f}", str(row["worst"]))
    return [(row["method"], row["method"]), *numbers, near, worst]
