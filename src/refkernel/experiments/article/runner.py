"""Runs the protocol: one unit, or all of them."""

from __future__ import annotations

import functools
import time
from dataclasses import replace
from typing import Any

import numpy as np

from ..._threads import one_blas_thread
from ..._timing import Clock
from ..._training import TrainingRows
from ..._typing import StrPath
from ...datasets import Split, load_task
from ...feature_map import ReferenceKernel
from ...kernels import Kernel
from ...model_selection import Formulation, Samples, decision_paths
from ...model_selection.grams import Grams
from ...model_selection.scoring import as_scoring, rates
from ..selection import first_best, score_columns
from ..units import Progress, no_progress, run_units
from .protocol import EIGENVALUE_FLOOR, FOLDS, KERNELS, REFERENCES, SCALES, VALUES, Fold, Settings, Unit, formulations, source

KEYS = ("classifier", "route", "variant", "task", "split", "repeat")
COLUMNS = (*KEYS, "gmean", "tpr", "tnr", "scale", "parameter", "rank", "seed", "seconds")

GMEAN = as_scoring("gmean")


def run_unit(unit: Unit, settings: Settings, data_dir: StrPath | None = None) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """The rows of one unit, and the seconds of its stages."""
    with one_blas_thread():
        start, clock = time.perf_counter(), Clock()
        data = load_task(unit.task, unit.split, splits=settings.splits, data_dir=data_dir)
        cells = settings.cells()
        needed, folds = {source(*cell) for cell in cells}, unit.folds(len(data.y_train))
        found: dict[tuple[str, str, str], dict[str, Any]] = {}
        for variant in dict.fromkeys(variant for _, _, variant in needed):
            pairs = sorted((c, r) for c, r, v in needed if v == variant)
            found |= _run_variant(unit.seeds, folds, settings.solver, data, variant, pairs, clock)
        seconds = (time.perf_counter() - start) / len(cells)
    facts = {**unit.key, "seed": int(unit.seeds[0]), "seconds": round(seconds, 6)}
    rows = []
    for classifier, route, variant in cells:
        result = found[source(classifier, route, variant)]
        rank = result["dimension"] if route == "mapping" else result["rank"]
        rows.append({"classifier": classifier, "route": route, "variant": variant, **facts, **result["scores"], "rank": rank})
    return rows, clock.stages


def _run_variant(
    seeds: np.ndarray, folds: list[Fold], solver: str, data: Split, variant: str, pairs: list[tuple[str, str]], clock: Clock
) -> dict[tuple[str, str, str], dict[str, Any]]:
    """{(classifier, route, variant): result} for the (classifier, route) pairs, all on the same folds and references."""
    work = {pair: formulations(pair[1], solver)[pair[0]] for pair in pairs}
    scores = np.zeros((FOLDS, len(SCALES), len(pairs), len(VALUES)))
    for fold, (train, test) in enumerate(folds):
        y_test = data.y_train[test]
        samples = _samples(data.X_train[train], data.y_train[train], data.X_train[test], variant, seeds[1 + fold], clock)
        grams = samples.grams(KERNELS)
        decisions = np.concatenate(decision_paths(grams.K, list(work.values()), grams.K_test, grams.diag_test), axis=1)
        clock.lap("solving")
        scores[fold] = GMEAN.of_decisions(decisions.reshape(-1, y_test.size), None, y_test).reshape(scores.shape[1:])
        clock.lap("scoring")
    means = np.nanmean(scores, axis=0)
    best = [first_best(means[:, k]) for k in range(len(pairs))]
    samples = _samples(data.X_train, data.y_train, data.X_test, variant, seeds[1 + FOLDS], clock)
    final = functools.cache(lambda s: _grams_and_ranks(samples, KERNELS[s]))
    return {
        (*pair, variant): _final(final(s), replace(work[pair], values=(VALUES[v],)), SCALES[s], data.y_test, clock)
        for pair, (s, v) in zip(pairs, best, strict=True)
    }


def _samples(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, variant: str, seed: int, clock: Clock) -> Samples:
    rows = TrainingRows(X, np.flatnonzero(y == 1), np.flatnonzero(y == -1))
    strategy = REFERENCES[variant]
    reference = None
    if strategy is not None:
        reference = ReferenceKernel(references=strategy, center=True, eigenvalue_floor=EIGENVALUE_FLOOR, random_state=int(seed))
    return Samples(rows, X_test, reference, clock=clock)


def _grams_and_ranks(samples: Samples, kernel: Kernel) -> tuple[Grams, dict[str, int]]:
    """The kernel matrices of the final fit; the rank of the training one, and the dimension of the map."""
    grams = samples.grams([kernel])
    rank = int(np.linalg.matrix_rank(grams.K[0], hermitian=True))
    dimension = samples.rank(kernel) or rank
    samples.clock.lap("ranks")
    return grams, {"rank": min(rank, dimension), "dimension": dimension}  # what exceeds the dimension is rounding


def _final(
    grams_and_ranks: tuple[Grams, dict[str, int]], formulation: Formulation, scale: float, y_test: np.ndarray, clock: Clock
) -> dict[str, Any]:
    """Fit on the whole training set with what validation chose, and test."""
    grams, ranks = grams_and_ranks
    (decisions,) = decision_paths(grams.K, [formulation], grams.K_test, grams.diag_test)
    clock.lap("solving")
    tpr, tnr = rates(decisions[0], y_test == 1)
    return {"scores": {**score_columns(tpr[0], tnr[0]), "scale": scale, "parameter": formulation.values[0]}, **ranks}


def run(
    settings: Settings, out: StrPath, *, jobs: int = 1, data_dir: StrPath | None = None, progress: Progress = no_progress
) -> dict[str, Any]:
    """Run the units that the folder ``out`` lacks, and return the contents of its run.json."""
    settings = settings.checked()
    units, cells = settings.units(), settings.cells()
    compute = functools.partial(run_unit, settings=settings, data_dir=data_dir)
    facts = {"fits": len(units) * len(cells) * (FOLDS * len(SCALES) * len(VALUES) + 1)}
    return run_units(compute, units, len(cells), COLUMNS, settings.as_json(), out, jobs=jobs, progress=progress, facts=facts)
