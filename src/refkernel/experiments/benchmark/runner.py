"""The rows of the benchmark: one for each table, seed and method."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits

from ..._typing import StrPath
from ...metrics import geometric_mean
from ..units import Progress, no_progress, run_units
from . import methods, tables
from .methods import METHODS, Method
from .protocol import MOST_TEST_ROWS, MOST_TRAINING_ROWS, Split, make_split

MEASURES = ("auroc", "average_precision", "accepted", "rejected", "gmean")
"""accepted: the share of normal test rows that are accepted. rejected: the share of outliers that are rejected."""
FACTS = ("n_train", "n_test", "outliers", "columns")
COLUMNS = ("table", "seed", "method", *MEASURES, "wish", "fit_seconds", "score_seconds", *FACTS, "error")
MOST_LETTERS = 300
"""The length to which the text of an error is cut."""


@dataclass(frozen=True)
class Settings:
    """What decides the rows: the tables and methods by name (all if none is given), the number of seeds, and the caps."""

    tables: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    seeds: int = 3
    most_rows: int = MOST_TRAINING_ROWS
    most_test_rows: int = MOST_TEST_ROWS
    embedded: bool = False

    def checked(self) -> Settings:
        """These settings, or a clear error."""
        for name, least in (("seeds", 1), ("most_rows", 4), ("most_test_rows", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)} is too small: the minimum is {least}.")
        return self


@dataclass(frozen=True)
class Unit:
    """One method on one table with one seed."""

    table: str
    seed: int
    method: str

    @property
    def key(self) -> dict[str, Any]:
        return asdict(self)


def run(
    settings: Settings,
    out: StrPath,
    *,
    jobs: int = 1,
    data_dir: StrPath | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Run the units that the folder ``out`` lacks, and return the contents of its run.json."""
    settings = settings.checked()
    sources = tables.chosen(tables.find_tables(data_dir, settings.embedded), settings.tables)
    compared, notes = methods.chosen(settings.methods)
    units = [Unit(source.name, seed, method.key) for source in sources for seed in range(settings.seeds) for method in compared]
    by_name = {source.name: source for source in sources}
    if len(by_name) < len(sources):
        raise ValueError("Two tables have the same name: rename one of the files.")
    facts = {
        **asdict(settings),
        "tables": {source.name: source.digest for source in sources},
        "methods": [method.key for method in compared],
    }
    compute = functools.partial(run_unit, settings=settings, sources=by_name)
    peers = {"pyod": version("pyod")} if any(method.package == "pyod" for method in compared) else {}
    return run_units(compute, units, 1, COLUMNS, facts, out, jobs=jobs, progress=progress, facts={"notes": notes, "peers": peers})


def run_unit(unit: Unit, settings: Settings, sources: Mapping[str, tables.Source]) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """The row of a unit; a method that fails is a row with the error's text."""
    method = METHODS[unit.method]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        split = _split(sources[unit.table], unit.seed, settings.most_rows, settings.most_test_rows)
        start = time.perf_counter()
        found = _measured(method, split)
        spent = time.perf_counter() - start
    facts = {"wish": method.wish, "n_train": len(split.train), "n_test": len(split.test)}
    facts |= {"outliers": int(split.is_outlier.sum()), "columns": split.train.shape[1]}
    return [{**unit.key, **facts, **found}], {method.name: spent}


@functools.lru_cache(maxsize=1)  # the methods of a table and a seed follow each other
def _split(source: tables.Source, seed: int, most_rows: int, most_test_rows: int) -> Split:
    return make_split(*source.read(), seed, most_rows, most_test_rows)


def _measured(method: Method, split: Split) -> dict[str, Any]:
    columns = split.train.shape[1]
    if method.most_columns is not None and columns > method.most_columns:
        return {"error": f"not run: {columns} columns are more than the {method.most_columns} that it can take in reasonable time"}
    try:
        _warm_up(method)
        return measure(method, split)
    except Exception as error:  # any failure of a method is a result
        return {"error": " ".join(f"{type(error).__name__}: {error}".split())[:MOST_LETTERS]}


def measure(method: Method, split: Split) -> dict[str, Any]:
    """Fit on the training rows, score and judge the test rows."""
    train, test = (split.raw_train, split.raw_test) if method.raw else (split.train, split.test)
    model = method.make(split.seed)
    start = time.perf_counter()
    model.fit(train)
    fitted = time.perf_counter()
    scores = np.asarray(method.score(model, test), dtype=np.float64)
    scored = time.perf_counter()
    accepted = np.asarray(method.accept(model, test, scores), dtype=bool)
    if not np.isfinite(scores).all():
        raise ValueError(f"{int((~np.isfinite(scores)).sum())} of {len(scores)} scores are not finite")
    tpr, tnr = float(accepted[~split.is_outlier].mean()), float((~accepted[split.is_outlier]).mean())
    return {
        "auroc": float(roc_auc_score(split.is_outlier, -scores)),
        "average_precision": float(average_precision_score(split.is_outlier, -scores)),
        "accepted": tpr,
        "rejected": tnr,
        "gmean": float(geometric_mean(tpr, tnr)),
        "fit_seconds": round(fitted - start, 6),
        "score_seconds": round(scored - fitted, 6),
        "error": "",
    }


@functools.cache
def _warm_up(method: Method) -> None:
    """Import and compile what the method needs, once a process, before its seconds are taken; if it fails, it will fail again."""
    X = np.random.RandomState(0).normal(size=(200, 3))
    with suppress(Exception):
        measure(method, make_split(X, np.arange(200) % 8 == 0, 0, 200, 200))
