"""What the rows of a study say, as a page in Markdown, which opens with the answer."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from ..._core.text import p_text
from ..._core.types import StrPath
from ...pages.html import write_markdown
from .. import units
from ..article.protocol import CLASSIFIER_NAMES
from ..statistics import LEVEL, Comparison, average_ranks, compare_with, comparison_table, markdown_table, value_text
from .methods import ALL, COUNTS, CURVES, GRIDS, TUNED, WITHOUT_OUTLIERS

METHOD = ["classifier", "references", "negatives", "grid"]
CHOSEN = "chosen by validation"  # validation also chooses strategy and classifier, run by run, among those that train without outliers
ARTICLE = {("ocsvm", "base"): 70.3, ("svdd", "case2"): 74.6}  # what the article reports for these: its best SVDD without outliers is case 2
PLAIN = ("ocsvm", "base")  # what a strategy must be better than: the one-class SVM on the plain kernel
METHOD_NAMES = {**CLASSIFIER_NAMES, "svddneg": "SVDD, outliers repel", "esvdd": "ESVDD", "SVC": "binary SVC"}
REFERENCE_NAMES = {"base": "plain kernel", "-": ""}
MOST_TESTED, MOST_RANKED = 12, 12  # methods in a table of tests, and in a table of ranks
SPLITS = {"authors": "the authors’ splits, ", "embedded": "our own splits of the embedded data, "}


def read_rows(folder: StrPath) -> pd.DataFrame:
    """The rows of a study, Gmean in percent, with the methods that validation chose."""
    rows = units.read_rows(folder, "reproduce study", [*METHOD, "gmean", "validation"], dtype={"negatives": str})
    rows = pd.concat([rows, _chosen(rows)], ignore_index=True)
    return rows.assign(**{name: 100.0 * rows[name] for name in ("gmean", "tpr", "tnr", "validation")})


def _chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """For each run and grid the row of the best validation score among methods whose training sees no outlier."""
    free = rows[(rows["negatives"] == "0") & (rows["references"].isin(list(WITHOUT_OUTLIERS)))]
    return free.loc[free.groupby(["grid", "task", "split", "repeat"])["validation"].idxmax()].assign(classifier=CHOSEN, references="-")


def task_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean Gmean over the runs of each task: tasks in rows, methods in columns."""
    return rows.pivot_table(index="task", columns=METHOD, values="gmean", aggfunc="mean", sort=False)


def method_name(classifier: str, references: str = "-", *_: str) -> str:
    """What tables and pages call a method."""
    name = METHOD_NAMES.get(classifier, classifier)
    references = REFERENCE_NAMES.get(references, references)
    return f"{name}, {references}" if references else name


def against(means: pd.DataFrame, classifier: str, references: str, grid: str) -> list[Comparison]:
    """Every method of a grid whose training sees no outlier against one of them, best first."""
    return compare_with(means[[m for m in means if m[2:] == ("0", grid)]], (classifier, references, "0", grid))


def averages(means: pd.DataFrame) -> pd.DataFrame:
    """Average over tasks of every method, best first."""
    return means.mean().rename("gmean").reset_index().sort_values("gmean", ascending=False, kind="stable", ignore_index=True)


def ranks(means: pd.DataFrame, grid: str) -> pd.Series | None:
    """Average ranks of the best methods of a grid, with the tuned baselines; no method that trains with outliers."""
    part = means[[m for m in means if m[2] == "0" and m[3] in (grid, TUNED)]].dropna()
    best, base = part.mean().sort_values(ascending=False).index[:MOST_RANKED], (*PLAIN, "0", grid)
    part = part[list(dict.fromkeys([*best, *([base] if base in part else [])]))]
    return average_ranks(part.set_axis([method_name(*m) for m in part], axis=1))


def build_page(folder: StrPath) -> Path:
    """Write the study.md of a study's folder, and return its path."""
    rows, run = read_rows(folder), units.read_run(folder)
    means = task_means(rows)
    table = averages(means)
    return write_markdown(
        Path(folder) / "study.md",
        __package__,
        "page.md",
        answer=answer(means, table),
        tasks=len(means),
        splits=SPLITS.get(run.get("settings", {}).get("splits"), ""),
        runs=rows.groupby(["task", "split", "repeat"]).ngroups,
        most_tested=MOST_TESTED,
        tests=list(_tests(means)),
        ranks=[
            (grid.title(), markdown_table(["Method", "Average rank"], ((name, f"{rank:.2f}") for name, rank in found.items())))
            for grid in GRIDS
            if (found := ranks(means, grid)) is not None
        ],
        known_outliers=known_outliers(means),
        averages=markdown_table(
            ["Method", "Known outliers", "Grid", "Average Gmean"],
            ([method_name(r.classifier, r.references), r.negatives, r.grid, f"{r.gmean:.1f}"] for r in table.itertuples()),
        ),
        provenance=units.provenance(run),
    )


def answer(means: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """Whether a strategy is better than the plain kernel without outliers, and what known outliers are worth."""
    found = {grid: [item for item in against(means, *PLAIN, grid) if item.method[0] != CHOSEN] for grid in GRIDS}
    said = [_of_grid(grid, items) for grid, items in found.items() if items]
    known, free = table[table["negatives"] != "0"], table[table["negatives"] == "0"]
    if known.empty or free.empty:
        return said
    best, most = known.iloc[0], free["gmean"].max()
    name = f"{method_name(best['classifier'], best['references'])}, {best['negatives']} known"
    return [*said, f"Trained with known outliers, the highest average is {best['gmean']:.1f} ({name}); without them it is {most:.1f}."]


def _of_grid(grid: str, found: list[Comparison]) -> str:
    best = found[0]
    better = [item for item in found if item.mean > 0 and item.corrected < LEVEL]
    plain = f"significantly better than {method_name(*PLAIN)} ({best.average - best.mean:.1f})"
    said = f"these are {plain}: {', '.join(method_name(*item.method) for item in better)}" if better else f"no method is {plain}"
    highest = f"The highest average is {best.average:.1f}, by {method_name(*best.method)} (corrected {p_text(best.corrected)})"
    return f"Trained without outliers, on the {grid} grid, {said}. {highest}."


def _tests(means: pd.DataFrame) -> Iterator[tuple[str, float, float, str]]:
    for (classifier, references), printed in ARTICLE.items():
        for grid in GRIDS:
            if (own := (classifier, references, "0", grid)) in means:
                table = comparison_table(against(means, classifier, references, grid)[:MOST_TESTED], lambda key: method_name(*key))
                yield f"{method_name(classifier, references)}, {grid} grid", means[own].mean(), printed, table


def known_outliers(means: pd.DataFrame, grid: str = "fine") -> str:
    """Averages of the methods that use known outliers, by their number, and of the plain kernels, which use none."""
    counts, average = [*map(str, COUNTS), ALL], means.mean()
    keys = [[(*method, count, grid) for count in counts] for method in CURVES] + [[("SVC", "-", count, TUNED) for count in counts]]
    keys += [[(*plain, "0", grid)] * len(counts) for plain in (PLAIN, ("svdd", "base"))]
    return markdown_table(["Method", *counts], ([method_name(*row[0]), *(value_text(average.get(key)) for key in row)] for row in keys))
