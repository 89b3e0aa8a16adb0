"""The article's four tables from the rows of a run, and how they compare with the printed ones.

Deviations are over the runs of a cell, with n - 1 in the denominator; those, and ranks, of an average row are means over tasks.
"""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..._core.files import write_text
from ..._core.types import StrPath
from ...datasets import list_tasks
from .. import units
from ..statistics import markdown_table, value_text
from .protocol import ARTICLE_CLASSIFIERS, CLASSIFIER_NAMES, ROUTES, VARIANT_NAMES, VARIANTS, table_title, variant_name

ARTICLE_TASKS = tuple(task.name for task in list_tasks("authors"))
BLOCKS = {"M = N": ("base", "case1", "case2"), "M = ⌊N/2⌋": ("case3", "case4"), "M = N + T": ("case5", "case6", "case7")}
"""Variants with the same number of references: the article prints the best of each block in bold."""
AVERAGE = "Average"
COLUMN = ["classifier", "route", "variant"]
CELL = [*COLUMN, "task"]
MEASURES = ["gmean", "std", "rank"]
PLACES = {name: f"{place:02}" for place, name in enumerate((*ARTICLE_CLASSIFIERS, *ROUTES, *VARIANTS, *ARTICLE_TASKS))}
"""The article's order; what it does not have comes last, by name."""
ROUNDING = 1e-9  # slack for rounding when a difference is compared with the printed deviation


def read_rows(results_dir: StrPath) -> pd.DataFrame:
    """The runs of a results folder (rows.csv), checked for the columns that tables need."""
    return units.read_rows(results_dir, "reproduce", [*CELL, "gmean", "rank"])


def printed() -> pd.DataFrame:
    """The article's printed cells: classifier, route, variant, task, gmean, std, rank, bold. In our names, averages left out."""
    with files(__package__).joinpath("printed.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, comment="#")
    table["classifier"] = table["classifier"].map({name.replace("-", ""): code for code, name in CLASSIFIER_NAMES.items()})
    table["variant"] = table["variant"].map({name: code for code, name in VARIANT_NAMES.items()})
    table = table.rename(columns={"gmean_mean": "gmean", "gmean_std": "std"}).astype({"bold": bool})
    return table.loc[table["task"] != AVERAGE, [*CELL, *MEASURES, "bold"]].reset_index(drop=True)


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean and deviation of Gmean (percent), mean rank and number of runs of every cell, in the article's order."""
    cells = rows.assign(gmean=100.0 * rows["gmean"]).groupby(CELL)
    return _in_order(cells.agg(gmean=("gmean", "mean"), std=("gmean", "std"), rank=("rank", "mean"), runs=("gmean", "size")).reset_index())


def compare(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary beside the article's: printed_*, difference (ours - printed), within its deviation; <NA> where it has no cell."""
    article = printed().rename(columns={name: f"printed_{name}" for name in [*MEASURES, "bold"]})
    joined = _in_order(summary.merge(article, on=CELL, how="left"))
    joined["printed_bold"] = joined["printed_bold"].astype("boolean")
    joined["difference"] = joined["gmean"] - joined["printed_gmean"]
    within = (joined["difference"].abs() <= joined["printed_std"] + ROUNDING).astype("boolean")
    joined["within"] = within.mask(joined["difference"].isna())
    return joined


def averages(comparison: pd.DataFrame) -> pd.DataFrame:
    """Averages over tasks by classifier, route and variant: gmean, printed_gmean (of the tasks that were run), difference, tasks."""
    columns = comparison.groupby(COLUMN)
    table = columns[[*MEASURES, *(f"printed_{name}" for name in MEASURES), "difference"]].mean()
    table["tasks"] = columns.size()
    return _in_order(table.reset_index())


class Counts(NamedTuple):
    """`within` of `cells` lie within the printed ±; `columns` averages differ by `mean_difference` points (nan if none was printed)."""

    within: int
    cells: int
    columns: int
    mean_difference: float


def counts(comparison: pd.DataFrame) -> Counts:
    """The figures that sum up a comparison."""
    differences = averages(comparison)["difference"].dropna().abs()
    within = comparison["within"].dropna()
    return Counts(int(within.sum()), len(within), differences.size, float(differences.mean()) if differences.size else float("nan"))


@dataclass(frozen=True)
class ArticleTable:
    """One of the article's tables: tasks (and their average) × variants, nan for cells without a run. bold: best of its block."""

    classifier: str
    route: str
    gmean: pd.DataFrame
    std: pd.DataFrame
    rank: pd.DataFrame
    bold: pd.DataFrame

    @property
    def name(self) -> str:
        return f"{self.classifier}_{self.route}"

    @property
    def caption(self) -> str:
        what, base = ("kernel matrix ranks", "the base kernel") if self.route == "kernel" else ("feature space dimensions", "NPT as base")
        title = table_title(self.classifier, self.route)
        return f"Average Gmean (and {what}) for {title}: {base} and the cases of the reference {self.route}"

    def text(self, task: str, variant: str) -> str:
        """A cell as "mean ± std (rank)" in Markdown, bold with stars."""
        mean, std, rank = (float(frame.loc[task, variant]) for frame in (self.gmean, self.std, self.rank))
        value = value_text(mean, std)
        return (f"**{value}**" if self.bold.loc[task, variant] else value or "–") + ("" if np.isnan(rank) else f" ({rank:.1f})")


def article_tables(summary: pd.DataFrame) -> list[ArticleTable]:
    """The tables that have runs, in the article's order."""
    return [_article_table(part, *key) for key, part in summary.groupby(["classifier", "route"], sort=False)]


def best_of_blocks(gmean: pd.DataFrame) -> pd.DataFrame:
    """True where a value is, at the one decimal that is printed, the best of its row within its block; ties are all best."""
    shown = gmean.map(lambda value: float(f"{value:.1f}"))
    best = pd.DataFrame(False, index=gmean.index, columns=gmean.columns)
    for block in BLOCKS.values():
        members = [variant for variant in gmean.columns if variant in block]
        best[members] = shown[members].eq(shown[members].max(axis=1), axis=0)
    return best


def to_markdown(table: ArticleTable) -> str:
    """The table in Markdown."""
    variants = list(table.gmean.columns)
    rows = ([task, *(table.text(task, variant) for variant in variants)] for task in table.gmean.index)
    return f"{table.caption}\n\n" + markdown_table(["Data", *map(variant_name, variants)], rows)


def write_tables(results_dir: StrPath) -> list[Path]:
    """Write the article's tables as Markdown into tables/, and all their numbers as comparison.csv and averages.csv."""
    comparison = compare(summarise(read_rows(results_dir)))
    folder = Path(results_dir) / "tables"
    folder.mkdir(exist_ok=True)
    numbers = {"comparison.csv": comparison, "averages.csv": averages(comparison)}
    contents = {name: table.round(4).to_csv(index=False) for name, table in numbers.items()}
    contents |= {f"{table.name}.md": to_markdown(table) for table in article_tables(comparison)}
    return [write_text(folder / name, text) for name, text in contents.items()]


def _article_table(part: pd.DataFrame, classifier: str, route: str) -> ArticleTable:
    order, variants = sorted(set(part["task"]), key=_place), sorted(set(part["variant"]), key=_place)
    frames = [part.pivot(index="task", columns="variant", values=value).reindex(index=order, columns=variants) for value in MEASURES]
    gmean, std, rank = (pd.concat([frame, frame.mean().to_frame(AVERAGE).T]) for frame in frames)
    return ArticleTable(classifier, route, gmean, std, rank, best_of_blocks(gmean))


def _place(name: str) -> str:
    return PLACES.get(name, f"{len(PLACES)}{name}")


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values([name for name in CELL if name in table], key=lambda names: names.map(_place), ignore_index=True)
