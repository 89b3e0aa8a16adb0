"""Runs the protocol: units in parallel, rows on disk as they come, a killed run continued where it was."""

from __future__ import annotations

import csv
import functools
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from .._threads import one_blas_thread
from ..datasets import load_task
from ..model_selection import Samples, decision_paths
from ..model_selection.engine import Clock
from ..model_selection.scoring import as_scoring, rates
from ..references import TrainingRows
from .protocol import EIGENVALUE_FLOOR, FOLDS, KERNELS, REFERENCES, SCALES, VALUES, Settings, Unit, formulations, source

KEYS = ("classifier", "route", "variant", "task", "split", "repeat")
COLUMNS = (*KEYS, "gmean", "tpr", "tnr", "scale", "parameter", "rank", "seed", "seconds")

GMEAN = as_scoring("gmean")

RANDOM = np.random.RandomState(0)
"""Seeded anew for every draw of references: making a new one costs ten times as much."""


class ResultsError(RuntimeError):
    """A results folder that cannot be used: the message says why and what to do."""


def run_unit(unit: Unit, settings: Settings, data_dir=None) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """The rows of one unit, and where the time went."""
    with one_blas_thread():
        start, clock = time.perf_counter(), Clock()
        data = load_task(unit.task, unit.split, splits=settings.splits, data_dir=data_dir)
        folds, seeds = unit.folds(len(data.y_train)), unit.seeds
        cells = settings.cells()
        needed = {source(*cell) for cell in cells}
        found: dict[tuple[str, str, str], dict[str, Any]] = {}
        for variant in dict.fromkeys(variant for _, _, variant in needed):
            pairs = sorted((c, r) for c, r, v in needed if v == variant)
            found |= _run_variant(folds, seeds, settings.solver, data, variant, pairs, clock)
        seconds = (time.perf_counter() - start) / len(cells)
    rows = []
    for classifier, route, variant in cells:
        result = found[source(classifier, route, variant)]
        facts = {"task": unit.task, "split": unit.split, "repeat": unit.repeat, "seed": int(seeds[0]), "seconds": round(seconds, 6)}
        rank = result["dimension"] if route == "mapping" else result["rank"]
        rows.append({"classifier": classifier, "route": route, "variant": variant, **facts, **result["scores"], "rank": rank})
    return rows, clock.stages


def _run_variant(folds, seeds, solver, data, variant, pairs, clock):
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
    best = [_first_best(means[:, k]) for k in range(len(pairs))]
    samples = _samples(data.X_train, data.y_train, data.X_test, variant, seeds[1 + FOLDS], clock)
    final = functools.cache(lambda s: _grams_and_ranks(samples, KERNELS[s]))
    return {
        (*pair, variant): _final(final(s), replace(work[pair], values=(VALUES[v],)), SCALES[s], data.y_test, clock)
        for pair, (s, v) in zip(pairs, best, strict=True)
    }


def _first_best(scores):
    """Where a table of mean scores (scales × values) is largest; of ties, which rounding must not break, the first."""
    return np.unravel_index(scores.round(12).argmax(), scores.shape)


def _samples(X, y, X_test, variant, seed, clock):
    rows = TrainingRows(X, np.flatnonzero(y == 1), np.flatnonzero(y == -1))
    strategy = REFERENCES[variant]
    reference = None
    if strategy is not None:
        RANDOM.seed(seed)
        reference = SimpleNamespace(references=strategy, center=True, eigenvalue_floor=EIGENVALUE_FLOOR, random_state=RANDOM)
    return Samples(rows, X_test, reference, clock=clock)


def _grams_and_ranks(samples, kernel):
    """The kernel matrices of the final fit; the rank of the training one, and the dimension of the map."""
    grams = samples.grams([kernel])
    rank = int(np.linalg.matrix_rank(grams.K[0], hermitian=True))
    samples.clock.lap("ranks")
    return grams, {"rank": rank, "dimension": samples.rank(kernel) or rank}


def _final(grams_and_ranks, formulation, scale, y_test, clock):
    """Fit on the whole training set with what validation chose, and test."""
    grams, ranks = grams_and_ranks
    (decisions,) = decision_paths(grams.K, [formulation], grams.K_test, grams.diag_test)
    clock.lap("solving")
    tpr, tnr = (float(rate[0]) for rate in rates(decisions[0], y_test == 1))
    scores = {"gmean": float(np.sqrt(tpr * tnr)), "tpr": tpr, "tnr": tnr, "scale": scale, "parameter": formulation.values[0]}
    return {"scores": scores, **ranks}


def run(
    settings: Settings, out, *, jobs=1, data_dir=None, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
    """Run what is not yet in the folder ``out``; returns the contents of its run.json.

    Rows are appended unit by unit, in one order whatever ``jobs``; ``progress(done, total)`` is called as units end.
    """
    out, settings = Path(out), settings.checked()
    units, cells = settings.units(), settings.cells()
    previous = _prepare(out, settings)
    done = _finished_units(out / "rows.csv", units, len(cells))
    progress(done, len(units))
    start, stages = time.perf_counter(), dict(previous.get("stages", {}))
    work = (delayed(run_unit)(unit, settings, data_dir) for unit in units[done:])
    with open(out / "rows.csv", "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        for number, (rows, spent) in enumerate(Parallel(n_jobs=jobs, return_as="generator", batch_size=1)(work), start=done + 1):
            writer.writerows(rows)
            file.flush()
            for stage, seconds in spent.items():
                stages[stage] = stages.get(stage, 0.0) + seconds
            progress(number, len(units))
    seconds = previous.get("seconds", 0.0) + time.perf_counter() - start if done < len(units) else previous.get("seconds", 0.0)
    fits = len(units) * len(cells) * (FOLDS * len(SCALES) * len(VALUES) + 1)
    facts = {
        **previous,
        "seconds": round(seconds, 3),
        "fits": fits,
        "stages": {k: round(v, 3) for k, v in stages.items()},
        "finished": True,
    }
    _write_json(out / "run.json", facts)
    return facts


def _prepare(out, settings):
    """The folder with its run.json; refused if it belongs to a run with other settings."""
    path = out / "run.json"
    try:
        out.mkdir(parents=True, exist_ok=True)
        if path.exists():
            return _matching(path, settings)
        if (out / "rows.csv").exists():
            raise ResultsError(f"{out} holds a rows.csv without its run.json: it cannot be continued. Name another folder with --out.")
        facts = {"settings": settings.as_json(), **_circumstances()}
        _write_json(path, facts)
        return facts
    except OSError as error:
        raise ResultsError(f"{out} cannot be written: {error}. Name another folder with --out.") from error


def _matching(path, settings):
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        before = facts["settings"]
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path} is damaged: {error}. Name another folder with --out, or delete this one.") from error
    now = settings.as_json()
    changed = [f"{name} {before.get(name)!r} -> {now[name]!r}" for name in now if before.get(name) != now[name]]
    if changed:
        raise ResultsError(f"{path.parent} holds a run with other settings ({'; '.join(changed)}). Name another folder with --out.")
    return facts


def _finished_units(path, units, size):
    """The number of units whose rows are all there; a last one that was cut off is removed."""
    if not path.exists():
        _write_text(path, ",".join(COLUMNS) + "\n")
        return 0
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    complete = [line for line in lines if line.endswith("\n")]
    if not complete or complete[0].strip() != ",".join(COLUMNS):
        raise ResultsError(f"{path} does not begin with the columns of this version. Name another folder with --out, or delete this one.")
    done = (len(complete) - 1) // size
    rows = list(csv.DictReader(complete[: 1 + done * size]))
    if done > len(units):
        raise ResultsError(f"{path} holds more rows than this run has. Name another folder with --out, or delete this one.")
    for number, row in enumerate(rows):
        unit = units[number // size]
        if None in row.values() or (row["task"], row["split"], row["repeat"]) != (unit.task, str(unit.split), str(unit.repeat)):
            raise ResultsError(f"{path} is damaged at line {number + 2}. Name another --out, or delete that line and all after it.")
    if len(lines) > 1 + done * size:
        _write_text(path, "".join(complete[: 1 + done * size]))
    return done


def _circumstances():
    packages = ("refkernel", "numpy", "scipy", "scikit-learn", "numba")
    return {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "commit": _commit(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _commit():
    """The commit of the checkout that this file is in, if it is in one."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def _write_json(path, facts):
    _write_text(path, json.dumps(facts, indent=2) + "\n")


def _write_text(path, text):
    """Write whole or not at all."""
    temporary = path.with_name(path.name + ".partial")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
