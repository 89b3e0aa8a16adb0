"""A results folder as one self-contained HTML file: rows -> tables and plot data -> figures -> page.

Needs the extra ``report`` (pandas, matplotlib, jinja2).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ...._typing import StrPath
from ...pages import write_page
from ...pages.ranks import draw_ranks
from ...pages.svg import Drawing
from ...pages.texts import duration
from ...processes import in_processes
from ...units import read_run
from ..protocol import classifier_name, table_title, variant_name
from ..tables import article_tables, averages, compare, counts, read_rows, summarise
from . import figures, plot_data, views
from .answer import answer
from .statements import findings

__all__ = ["build_report"]

DECIDING_TASKS = 6
"""With fewer tasks no two-sided test can decide at 0.05: all signs agree by chance with probability 2 / 2^5 = 0.0625."""


def build_report(results_dir: StrPath, out: StrPath | None = None, compare_with: StrPath | None = None, jobs: int = 1) -> Path:
    """Write the report of a results folder and return its path.

    Parameters
    ----------
    results_dir : path
        A folder with rows.csv and, if possible, run.json, as ``refkernel reproduce`` leaves it.
    out : path, optional
        The file to write; ``report.html`` in the results folder by default.
    compare_with : path, optional
        Another results folder (say, of another solver), whose averages are shown beside these.
    jobs : int
        Processes that draw the figures.
    """
    rows, run = read_rows(results_dir), read_run(results_dir)
    comparison = compare(summarise(rows))
    statements = _statements(comparison)
    return write_page(
        Path(results_dir) / "report.html" if out is None else Path(out),
        __package__,
        "report.html",
        settings={"splits": "", "solver": "", **run.get("settings", {})},
        **_headline(comparison, run),
        **_tables(comparison),
        **_figures(rows, comparison, run, jobs),
        statements=statements,
        answer=answer(counts(comparison), statements),
        few_tasks=comparison["task"].nunique() if comparison["task"].nunique() < DECIDING_TASKS else 0,
        other=_other(comparison, run, compare_with) if compare_with is not None else None,
        provenance=_provenance(rows, run),
    )


def _headline(comparison: pd.DataFrame, run: dict[str, Any]) -> dict[str, Any]:
    """The numbers at the top: (value, what it is)."""
    total = counts(comparison)
    tiles = []
    if total.cells:
        tiles.append((f"{total.within} of {total.cells}", "cells within the article’s ±"))
        tiles.append((f"{total.mean_difference:.2f}", f"points between our column averages and the article’s (mean of {total.columns})"))
    tiles.append((f"{int(comparison['runs'].sum()):,}", f"runs in {len(comparison)} cells of {comparison['task'].nunique()} tasks"))
    seconds, fits = run.get("seconds"), run.get("fits")
    if seconds:
        tiles.append((duration(seconds), "wall time" + (f" for {fits:,} fits" if fits else "")))
    if seconds and fits:
        tiles.append((f"{fits / seconds:,.0f}", "fits per second"))
    return {"tiles": tiles, "counts": total}


def _tables(comparison: pd.DataFrame) -> dict[str, Any]:
    means, tables = averages(comparison), article_tables(comparison)
    return {
        "averages": views.averages_view(means, tables),
        "tables": [views.table_view(table, comparison, means) for table in tables],
        "filters": {
            "classifier": {code: classifier_name(code) for code in dict.fromkeys(comparison["classifier"])},
            "route": {code: code for code in dict.fromkeys(comparison["route"])},
            "dataset": {name: name for name in dict.fromkeys(map(views.dataset, comparison["task"]))},
        },
    }


def _figures(rows: pd.DataFrame, comparison: pd.DataFrame, run: dict[str, Any], jobs: int) -> dict[str, Any]:
    """Every list of figures by its name in the page, drawn in parallel."""
    means = averages(comparison)
    pairs = list(dict.fromkeys(zip(means["classifier"], means["route"], strict=True)))
    stages = {name: seconds for name, seconds in run.get("stages", {}).items() if isinstance(seconds, int | float)}
    calls: dict[str, list[tuple[Any, ...]]] = {
        "choice_figures": [(figures.draw_choices, *pair, shares) for pair, shares in plot_data.chosen_parameters(rows).items()],
        "region_figures": [(_draw_regions, name) for name in ("svdd", "ocsvm")],
        "spectrum_figures": [(figures.draw_spectrum, scale, spectrum) for scale, spectrum in plot_data.spectra().items()],
        "average_figures": [(figures.draw_averages, means, *pair) for pair in pairs],
        "rank_figures": [
            (draw_ranks, ranks, "-".join(pair), table_title(*pair), variant_name)
            for pair, ranks in plot_data.rank_comparisons(comparison).items()
        ],
        "stage_figures": [(figures.draw_stages, stages)] if stages else [],
    }
    drawn = in_processes(_drawn, [call for part in calls.values() for call in part], jobs)
    return {name: [next(drawn) for _ in part] for name, part in calls.items()}


def _drawn(call: tuple[Any, ...]) -> Drawing:
    draw, *args = call
    return draw(*args)


def _draw_regions(name: str) -> Drawing:
    return figures.draw_regions(plot_data.regions(name))


def _statements(comparison: pd.DataFrame) -> list[dict[str, Any]]:
    pairs = zip(findings(comparison, "gmean"), findings(comparison, "printed_gmean"), strict=True)
    return [views.statement_view(here, article) for here, article in pairs]


def _other(comparison: pd.DataFrame, run: dict[str, Any], folder: StrPath) -> dict[str, Any]:
    """Averages of this run and another over the cells that both have."""
    theirs = compare(summarise(read_rows(folder)))
    keys = ["classifier", "route", "variant", "task"]
    both = comparison.merge(theirs[[*keys, "gmean"]].rename(columns={"gmean": "other"}), on=keys)
    means = both.groupby(keys[:3], sort=False)[["gmean", "other", "printed_gmean"]].mean().reset_index()
    return {
        "names": [_solver_name(run, "this run"), _solver_name(read_run(folder), "the other run")],
        "counts": [counts(comparison), counts(theirs)],
        "rows": [views.pair_view(row) for row in means.to_dict("records")],
    }


def _solver_name(run: dict[str, Any], default: str) -> str:
    solver = run.get("settings", {}).get("solver")
    return f"{default} (solver {solver})" if solver else default


def _provenance(rows: pd.DataFrame, run: dict[str, Any]) -> dict[str, dict[str, str]]:
    """How the run was made, by topic."""
    topics = {key.capitalize(): run[key] for key in ("settings", "versions", "machine") if run.get(key)}
    source = {"Commit": run["commit"]} if run.get("commit") else {}
    if "seed" in rows:
        source["Seeds"] = f"{rows['seed'].nunique()} different ones, recorded in rows.csv"
    if source:
        topics["Source"] = source
    named = {topic: values if isinstance(values, dict) else {topic: values} for topic, values in topics.items()}
    return {topic: {str(key): _plain(value) for key, value in values.items()} for topic, values in named.items()}


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
