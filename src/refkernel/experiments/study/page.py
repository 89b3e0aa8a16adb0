"""The study as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ..._typing import StrPath
from ...plot.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from ..pages import write_page
from ..pages.ranks import draw_ranks
from ..pages.svg import FAINT, INK, Drawing, canvas, styled, to_svg
from ..pages.texts import comparison_view, duration
from ..units import read_run
from .answer import answer
from .baselines import DEFAULT, TUNED
from .findings import ARTICLE, CHOSEN, Curve, against, averages, curves, method_name, ranks, read_rows, task_means
from .methods import GRIDS

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
MARKS = "osD^vP"


def build_page(folder: StrPath, out: StrPath | None = None) -> Path:
    """Write the page of a study's folder and return its path."""
    rows = read_rows(folder)
    means = task_means(rows)
    run = read_run(folder)
    table = averages(means)
    return write_page(
        Path(folder) / "study.html" if out is None else Path(out),
        __package__,
        "study.html",
        splits=run.get("settings", {}).get("splits", ""),
        tasks=list(means.index),
        runs=int(rows.groupby(["task", "split", "repeat"]).ngroups),
        answer=answer(means, table),
        tiles=_tiles(table),
        rank_figures=[draw_ranks(found, f"methods-{grid}", f"{grid} grid") for grid in GRIDS if (found := ranks(means, grid)) is not None],
        curve_figures=[draw_curves(shown)] if (shown := curves(means)) else [],
        comparisons=[_comparison_table(means, *other, grid) for other in ARTICLE for grid in GRIDS],
        averages=[_average_view(row) for row in table.itertuples()],
        per_task=_per_task(means, table),
        seconds=duration(run.get("seconds", 0.0)),
        stages=sorted(run.get("stages", {}).items(), key=lambda item: -item[1]),
    )


def _tiles(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The numbers at the top: (value, what it is)."""
    tiles = []
    for grid in GRIDS:
        free = table[(table["negatives"] == "0") & (table["grid"] == grid)]
        best = free[free["classifier"] != CHOSEN].iloc[0]
        name = method_name(best.classifier, best.references)
        tiles.append((f"{best.gmean:.1f}", f"best without outliers in training, {grid} grid: {name}"))
    known = table[table["negatives"] != "0"].iloc[0]
    tiles.append((f"{known.gmean:.1f}", f"best with them: {method_name(known.classifier, known.references)} ({known.negatives} known)"))
    return tiles


def _comparison_table(means: pd.DataFrame, classifier: str, references: str, grid: str) -> dict[str, Any]:
    found = against(means, classifier, references, grid)
    own = (classifier, references, "0", grid)
    return {
        "name": f"{classifier}-{references}-{grid}",
        "title": f"Against {method_name(classifier, references)}, {grid} grid",
        "own": f"{means[own].mean():.1f}" if own in means else "–",
        "article": ARTICLE[classifier, references],
        "rows": [comparison_view(item, method_name(*item.method[:2])) for item in found],
    }


def _average_view(row: Any) -> dict[str, str]:
    return {
        "name": method_name(row.classifier, row.references),
        "negatives": row.negatives,
        "grid": row.grid,
        "gmean": f"{row.gmean:.1f}",
        "sort": f"{row.gmean:.4f}",
    }


def _per_task(means: pd.DataFrame, table: pd.DataFrame, most: int = 15) -> dict[str, Any]:
    """Task means of the best methods of the fine grid and of the tuned baselines, without outliers in training."""
    kept = table[(table["negatives"] == "0") & table["grid"].isin(["fine", TUNED, DEFAULT])].head(most)
    methods = [tuple(row) for row in kept[["classifier", "references", "negatives", "grid"]].itertuples(index=False)]
    return {
        "columns": [method_name(*m[:2]) + ("" if m[3] in ("fine", TUNED) else " (default)") for m in methods],
        "rows": [(task, [f"{means.loc[task, m]:.1f}" for m in methods]) for task in means.index],
    }


def draw_curves(found: list[Curve]) -> Drawing:
    """Gains over the plain one-class SVM by number of known outliers."""
    with styled():
        figure, axes = canvas(3.6)
        axes.axhline(0.0, color=FAINT, lw=1)
        for number, curve in enumerate(found):
            x = [k + 0.07 * (number - len(found) / 2) for k in range(len(curve.counts))]
            style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)]}
            axes.errorbar(x, curve.gain, yerr=curve.half, ms=5, lw=1.4, elinewidth=0.8, capsize=2, label=curve.name, **style)
        axes.set_xticks(range(len(found[0].counts)), found[0].counts)
        axes.set(xlabel="known outliers that training may use", ylabel="points of Gmean above\nthe plain one-class SVM")
        axes.spines[:].set_color(INK)
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        text = f"Mean difference over tasks with a 95 % interval. {'; '.join(map(_in_words, found))}."
        caption = "Bars: 95 % intervals of the paired difference over tasks."
        return Drawing(to_svg(figure, "curves", "Gain by number of known outliers", text), caption)


def _in_words(curve: Curve) -> str:
    points = zip(curve.counts, curve.gain, curve.half, strict=True)
    return f"{curve.name}: " + ", ".join(f"{count}: {gain:+.1f} ± {half:.1f}" for count, gain, half in points)
