"""The article's four tables from the rows of a run, and how they compare with the printed ones.

    rows.csv -> summarise -> compare -> averages, counts
                         -> article_table -> Markdown, LaTeX, CSV

`summarise` turns Gmean into percent. A deviation is taken over the runs of a cell, with n - 1 in the denominator (MATLAB's
``std``, which the authors used); a single run has none. The deviation and the rank in an average row are the means over the tasks,
as in the article.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from ..._files import write_text
from ..._typing import StrPath
from ...datasets import list_tasks
from .. import units
from .protocol import ARTICLE_CLASSIFIERS, CLASSIFIER_NAMES, ROUTES, VARIANT_NAMES, VARIANTS, table_title, variant_name

ARTICLE_TASKS = tuple(task.name for task in list_tasks("authors"))
BLOCKS = {"M = N": ("base", "case1", "case2"), "M = ⌊N/2⌋": ("case3", "case4"), "M = N + T": ("case5", "case6", "case7")}
"""Variants with the same number of references: the article prints the best of each block in bold."""
AVERAGE = "Average"
CELL = ["classifier", "route", "variant", "task"]
COLUMN = ["classifier", "route", "variant"]
MEASURES = ["gmean", "std", "rank"]
ROUNDING = 1e-9
"""Slack for rounding when a difference is compared with the printed deviation."""


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
    summary = cells.agg(gmean=("gmean", "mean"), std=("gmean", "std"), rank=("rank", "mean"), runs=("gmean", "size")).reset_index()
    return _in_order(summary)


def compare(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary beside the printed values: printed_*, difference (ours - printed), within = |difference| <= printed deviation.

    Cells that the article does not have keep missing values; within is missing (<NA>) there.
    """
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


@dataclass(frozen=True)
class Counts:
    """How close a run is to the printed tables: `within` of `cells` cells lie within the printed ±; the `columns` column averages
    differ from the printed ones by `mean_difference` points (absolute, on average; nan if none was printed)."""

    within: int
    cells: int
    columns: int
    mean_difference: float


def counts(comparison: pd.DataFrame) -> Counts:
    """The figures that sum up a comparison."""
    differences = averages(comparison)["difference"].dropna().abs()
    return Counts(
        within=int(comparison["within"].sum()),
        cells=int(comparison["within"].notna().sum()),
        columns=differences.size,
        mean_difference=float(differences.mean()) if differences.size else float("nan"),
    )


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

    def text(self, task: str, variant: str, strong: str = "{}", plus_minus: str = " ± ") -> str:
        """A cell as "mean ± std (rank)"; `strong` formats bold cells."""
        mean, std, rank = (float(frame.loc[task, variant]) for frame in (self.gmean, self.std, self.rank))
        if np.isnan(mean):
            return "–"
        value = f"{mean:.1f}" + ("" if np.isnan(std) else f"{plus_minus}{std:.1f}")
        return (strong.format(value) if self.bold.loc[task, variant] else value) + ("" if np.isnan(rank) else f" ({rank:.1f})")

    def texts(self, **style: str) -> pd.DataFrame:
        """All cells as text."""
        names = [variant_name(variant) for variant in self.gmean.columns]
        cells = [[self.text(task, variant, **style) for variant in self.gmean.columns] for task in self.gmean.index]
        return pd.DataFrame(cells, index=self.gmean.index.rename("Data"), columns=names)


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
    """The table in Markdown, bold with stars."""
    texts = table.texts(strong="**{}**")
    lines = [
        ["Data", *texts.columns],
        ["---", *["---:"] * texts.shape[1]],
        *([task, *row] for task, row in zip(texts.index, texts.values, strict=True)),
    ]
    return f"{table.caption}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def to_latex(table: ArticleTable) -> str:
    """The table as a LaTeX table*, with the article's blocks."""
    texts = table.texts(strong=r"\textbf{{{}}}", plus_minus=r"$\pm$").replace("–", "--")
    spans = [(name, sum(variant in block for variant in table.gmean.columns)) for name, block in BLOCKS.items()]
    spans = [(name.replace("⌊", r"\lfloor ").replace("⌋", r" \rfloor"), width) for name, width in spans if width]
    body = [" & ".join([task, *row]) + r" \\" for task, row in zip(texts.index, texts.values, strict=True)]
    return "\n".join(
        [
            r"\begin{table*}[htbp]",
            rf"\caption{{{table.caption}}}",
            r"\begin{center}",
            r"\begin{tabular}{|c||" + "||".join("|".join("c" * width) for _, width in spans) + "|}",
            r"\hline",
            " & " + " & ".join(rf"\multicolumn{{{width}}}{{c|}}{{${name}$}}" for name, width in spans) + r" \\",
            " & ".join(rf"\textbf{{{name}}}" for name in ["Data", *texts.columns]) + r" \\",
            r"\hline",
            *body[:-1],
            r"\hline",
            body[-1],
            r"\hline",
            r"\end{tabular}",
            r"\end{center}",
            r"\end{table*}",
            "",
        ]
    )


def write_tables(results_dir: StrPath) -> list[Path]:
    """Write the tables of a results folder into its folder tables/.

    Each of the article's tables as .csv (a star marks bold cells), .md and .tex; and as plain numbers, all cells beside the
    printed values (comparison.csv) and the column averages (averages.csv).
    """
    comparison = compare(summarise(read_rows(results_dir)))
    folder = Path(results_dir) / "tables"
    folder.mkdir(exist_ok=True)
    contents = {
        "comparison.csv": comparison.round(4).to_csv(index=False),
        "averages.csv": averages(comparison).round(4).to_csv(index=False),
    }
    for table in article_tables(comparison):
        contents[f"{table.name}.csv"] = table.texts(strong="{} *").to_csv()
        contents[f"{table.name}.md"] = to_markdown(table)
        contents[f"{table.name}.tex"] = to_latex(table)
    return [write_text(folder / name, text) for name, text in contents.items()]


def _article_table(part: pd.DataFrame, classifier: str, route: str) -> ArticleTable:
    tasks, variants = list(dict.fromkeys(part["task"])), list(dict.fromkeys(part["variant"]))
    order = _sorted(tasks, ARTICLE_TASKS)
    frames = [part.pivot(index="task", columns="variant", values=value).reindex(index=order, columns=variants) for value in MEASURES]
    gmean, std, rank = (pd.concat([frame, frame.mean().to_frame(AVERAGE).T]) for frame in frames)
    return ArticleTable(classifier, route, gmean, std, rank, best_of_blocks(gmean))


def _sorted(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Names in the order of `known`; others after them, by name."""
    return sorted(names, key=lambda name: (list(known).index(name) if name in known else len(known), str(name)))


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    orders = {"classifier": ARTICLE_CLASSIFIERS, "route": ROUTES, "variant": VARIANTS, "task": ARTICLE_TASKS}
    keys = [name for name in CELL if name in table]
    places = {name: {value: i for i, value in enumerate(_sorted(table[name].unique(), orders[name]))} for name in keys}
    return table.sort_values(keys, key=lambda column: column.map(places[column.name])).reset_index(drop=True)
