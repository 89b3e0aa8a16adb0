"""The rows of the benchmark: one for each table, seed and method."""

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

from ..._core.types import StrPath
from ...metrics import geometric_mean
from ..units import run_units
from . import methods, tables
from .methods import METHODS, Method
from .tables import Source, Split, Table, make_split

MEASURES = ("auroc", "average_precision", "weighted_precision", "accepted", "rejected", "gmean")
"""weighted_precision: average precision as if OUTLIER_SHARE of the test rows were outliers. accepted: the share of normal test rows that
are accepted. rejected: the share of outliers that are rejected."""
FACTS = ("n_train", "n_test", "outliers", "columns")
COLUMNS = ("table", "seed", "method", *MEASURES, "wish", "fit_seconds", "score_seconds", *FACTS, "error")
OUTLIER_SHARE = 0.1  # average precision depends on the share of outliers, which differs between tables; weights make it the same
MOST_LETTERS = 300  # the length to which the text of an error is cut


@dataclass(frozen=True)
class Settings:
    """What decides the rows: tables and methods by name (all if none), seeds, and caps (fixed splits have none by default)."""

    tables: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    seeds: int = 3
    max_train_rows: int | None = None
    max_test_rows: int | None = None
    embedded: bool = False
    labels: str = ""  # of .csv tables: the column, and its value for normal rows


@dataclass(frozen=True)
class Unit:
    """One method on one table with one seed."""

    table: str
    seed: int
    method: str

    @property
    def key(self) -> dict[str, Any]:
        return asdict(self)


def run(settings: Settings, out: StrPath, *, data_dir: StrPath | None = None, **how: Any) -> dict[str, Any]:
    """Run the units that the folder ``out`` lacks, by ``jobs`` and ``progress`` of ``run_units``, and return what is in its run.json."""
    for name, least in (("seeds", 1), ("max_train_rows", 4), ("max_test_rows", 1)):
        given = getattr(settings, name)
        if given is not None and given < least:
            raise ValueError(f"{name}={given} is too small: the minimum is {least}.")
    sources = tables.chosen(tables.find_tables(data_dir, settings.embedded, settings.labels), settings.tables)
    compared, notes = methods.chosen(settings.methods)
    splits = [(source.name, seed) for source in sources for seed in range(1 if source.fixed else settings.seeds)]
    units = [Unit(*split, method.key) for split in splits for method in compared]
    by_name = {source.name: source for source in sources}
    if len(by_name) < len(sources):
        raise ValueError("Two tables have the same name: rename one of the files.")
    chosen = {"tables": {source.name: source.digest for source in sources}, "methods": [method.key for method in compared]}
    compute = functools.partial(run_unit, settings=settings, sources=by_name)
    peers = {"pyod": version("pyod")} if any(method.package == "pyod" for method in compared) else {}
    about = {"notes": notes, "peers": peers, "fixed": sum(source.fixed for source in sources)}
    return run_units(compute, units, 1, COLUMNS, asdict(settings) | chosen, out, facts=about, **how)


def run_unit(unit: Unit, settings: Settings, sources: Mapping[str, Source]) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """The row of a unit; a method that fails is a row with the error's text."""
    method = METHODS[unit.method]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        split = _split(sources[unit.table], unit.seed, settings.max_train_rows, settings.max_test_rows)
        start = time.perf_counter()
        try:
            _warm_up(method)
            found = measure(method, split)
        except Exception as error:  # any failure of a method is a result
            found = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:MOST_LETTERS]}
        spent = time.perf_counter() - start
    facts = {"wish": method.wish, "n_train": len(split.train), "n_test": len(split.test)}
    facts |= {"outliers": int(split.is_outlier.sum()), "columns": split.train.shape[1]}
    return [{**unit.key, **facts, **found}], {method.name: spent}


@functools.lru_cache(maxsize=1)  # the methods of a table and a seed follow each other
def _split(source: Source, seed: int, max_train: int | None, max_test: int | None) -> Split:
    return make_split(source.read(), seed, max_train, max_test)


def measure(method: Method, split: Split) -> dict[str, Any]:
    """Fit on the training rows, score and judge the test rows."""
    train, test = (split.raw_train, split.raw_test) if method.raw else (split.train, split.test)
    model = method.make(split.seed)
    start = time.process_time()
    model.fit(train)
    fitted = time.process_time()
    scores = np.asarray(method.score(model, test), dtype=np.float64)
    scored = time.process_time()
    accepted = np.asarray(method.accept(model, test, scores), dtype=bool)
    if not np.isfinite(scores).all():
        raise ValueError(f"{int((~np.isfinite(scores)).sum())} of {len(scores)} scores are not finite")
    tpr, tnr = float(accepted[~split.is_outlier].mean()), float((~accepted[split.is_outlier]).mean())
    return {
        "auroc": float(roc_auc_score(split.is_outlier, -scores)),
        "average_precision": float(average_precision_score(split.is_outlier, -scores)),
        "weighted_precision": weighted_precision(split.is_outlier, -scores),
        "accepted": tpr,
        "rejected": tnr,
        "gmean": float(geometric_mean(tpr, tnr)),
        "fit_seconds": round(fitted - start, 6),
        "score_seconds": round(scored - fitted, 6),
        "error": "",
    }


def weighted_precision(is_outlier: np.ndarray, outlyingness: np.ndarray) -> float:
    """Average precision with weights that give the outliers OUTLIER_SHARE of the total."""
    share = is_outlier.mean()
    weights = np.where(is_outlier, OUTLIER_SHARE / share, (1 - OUTLIER_SHARE) / (1 - share))
    return float(average_precision_score(is_outlier, outlyingness, sample_weight=weights))


@functools.cache
def _warm_up(method: Method) -> None:
    """Import and compile what the method needs, once a process, before its seconds are taken; if it fails, it will fail again."""
    X = np.random.RandomState(0).normal(size=(200, 3))
    with suppress(Exception):
        measure(method, make_split(Table(X, np.arange(200) % 8 == 0), 0))
