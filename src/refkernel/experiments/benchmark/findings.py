"""What the rows of a benchmark say: averages, ranks, paired tests, and how far the decisions are from the promise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..._typing import StrPath
from ...exceptions import ResultsError
from .. import units
from ..statistics import RankComparison, compare_ranks, differences
from ..units import read_run
from .methods import METHODS

YARDSTICK = METHODS["knn1"].name
"""Wins and losses are counted against the plainest method of all, which is hard to beat."""
LAST = -1.0
"""Stands for the AUROC of a method that failed when methods are ranked."""
NUMBERS = ("auroc", "average_precision", "accepted", "rejected", "gmean", "fit_seconds", "score_seconds")
SAME_RUN = ("tables", "seeds", "most_rows", "most_test_rows")
"""Settings that two runs must share to be compared."""


def read_rows(folder: StrPath, beside: Sequence[StrPath] = ()) -> pd.DataFrame:
    """The rows of a run, measures in percent, with those of other runs on the same tables.

    A method that failed counts as one that gives every row the same score and accepts it: AUROC 50, average precision the share of
    outliers, Gmean 0; ``failed`` says so.
    """
    rows = pd.concat([_read(each) for each in (folder, *beside)], ignore_index=True)
    _check_same(folder, beside, rows)
    rows["failed"] = rows["error"] != ""
    chance = {"auroc": 0.5, "average_precision": rows["outliers"] / rows["n_test"], "gmean": 0.0}
    for name, value in chance.items():
        rows[name] = 100.0 * rows[name].where(~rows["failed"], value)
    rows["false_alarms"] = 100.0 * (1.0 - rows["accepted"])
    rows["wish"] = 100.0 * rows["wish"]
    rows["name"] = [METHODS[key].name for key in rows["method"]]
    return rows


def _read(folder: StrPath) -> pd.DataFrame:
    texts = {"error": str, "table": str}  # a table may be called NA
    rows = units.read_rows(folder, "benchmark", ["table", "seed", "method", *NUMBERS], dtype=texts, keep_default_na=False)
    return rows.assign(**{name: pd.to_numeric(rows[name], errors="coerce") for name in NUMBERS})


def _check_same(folder: StrPath, beside: Sequence[StrPath], rows: pd.DataFrame) -> None:
    settings = read_run(folder).get("settings", {})
    for other in beside:
        theirs = read_run(other).get("settings", {})
        changed = [name for name in SAME_RUN if theirs.get(name) != settings.get(name)]
        if changed:
            raise ResultsError(f"{other} and {folder} are runs with different {', '.join(changed)}: they cannot be compared.")
    if rows.duplicated(["table", "seed", "method"]).any():
        twice = sorted(set(rows.loc[rows.duplicated(["table", "seed", "method"]), "method"]))
        raise ResultsError(f"Two of the runs hold the method {twice[0]}: leave it out of one of them (--methods).")


def table_means(rows: pd.DataFrame, measure: str = "auroc") -> pd.DataFrame:
    """Means over seeds: tables in rows, methods in columns. Tables that lack a method (the run was stopped) are left out."""
    return rows.pivot_table(index="table", columns="name", values=measure, aggfunc="mean", sort=False).dropna()


def ranks(rows: pd.DataFrame) -> RankComparison | None:
    """Average ranks by AUROC; a method that failed on a table with any seed is the last there."""
    means = table_means(rows)
    failed = rows.pivot_table(index="table", columns="name", values="failed", aggfunc="max", sort=False).reindex_like(means)
    return compare_ranks(means.mask(failed.astype(bool), LAST))


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each method, the best average AUROC first."""
    means = table_means(rows)
    ranked = ranks(rows)
    found = pd.DataFrame({"auroc": means.mean()})
    found["rank"] = ranked.ranks if ranked is not None else np.nan
    for name in ("average_precision", "gmean"):
        found[name] = table_means(rows, name).mean()
    if YARDSTICK in means:
        d = {name: differences(means[name], means[YARDSTICK]) for name in means}
        found["wins"] = pd.Series({name: int((values > 0).sum()) for name, values in d.items()})
        found["losses"] = pd.Series({name: int((values < 0).sum()) for name, values in d.items()})
    by_name = rows.groupby("name", sort=False)
    found["wish"] = by_name["wish"].first()
    found["false_alarms"] = rows.groupby(["name", "table"])["false_alarms"].mean().groupby("name").mean()
    found["fit_seconds"], found["score_seconds"] = by_name["fit_seconds"].mean(), by_name["score_seconds"].mean()
    found["failed"] = by_name["failed"].sum()
    return found.sort_values("auroc", ascending=False, kind="stable").rename_axis("method").reset_index()


def promises(rows: pd.DataFrame) -> pd.DataFrame:
    """By method: the share of normal test rows that was to be rejected, and the share that was, in percent.

    near: the number of tables whose share is within two standard deviations, sqrt(p (1 - p) (1 / n_train + 1 / n_test)), of the requested
    share: the error by chance of a threshold taken from n_train rows and measured on n_test others.
    """
    found = []
    for name, part in rows[~rows["failed"]].groupby("name", sort=False):
        tables = part.groupby("table", sort=False)[["false_alarms", "wish", "n_train", "n_test", "outliers"]].mean()
        p, missed = tables["wish"] / 100, tables["false_alarms"] - tables["wish"]
        slack = 200 * np.sqrt(p * (1 - p) * (1 / tables["n_train"] + 1 / (tables["n_test"] - tables["outliers"])))
        worst = missed.abs().idxmax()
        found.append(
            {
                "method": name,
                "wish": tables["wish"].iloc[0],
                "mean": tables["false_alarms"].mean(),
                "missed": missed.abs().mean(),
                "near": int((missed.abs() <= slack).sum()),
                "tables": len(tables),
                "worst_table": worst,
                "worst": tables.loc[worst, "false_alarms"],
            }
        )
    return pd.DataFrame(found).sort_values("missed", kind="stable").reset_index(drop=True)


def failures(rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    """(method, table, what it said) for each failure, seeds taken together."""
    part = rows.loc[rows["failed"], ["name", "table", "error"]].drop_duplicates()
    return list(part.itertuples(index=False, name=None))


def subject(rows: pd.DataFrame) -> str | None:
    """The method that the others are tested against: AutoDetector, or if it was not run, the best of ours by average AUROC."""
    if "auto" in set(rows["method"]):
        return METHODS["auto"].name
    ours = [name for name in summary(rows)["method"] if name in {m.name for m in METHODS.values() if m.package == "refkernel"}]
    return ours[0] if ours else None
