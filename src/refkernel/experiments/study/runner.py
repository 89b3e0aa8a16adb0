"""The rows of the study: every method of one unit on the same folds, chosen by the same validation."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from ..._timing import Clock
from ..._training import TrainingRows
from ..._typing import StrPath
from ...datasets import Split, load_task
from ...ellipsoid import Ellipsoid
from ...feature_map import ReferenceKernel
from ...metrics import geometric_mean
from ...model_selection import Formulation, Samples, decision_paths
from ...model_selection.paths import solve_formulations
from ...model_selection.scoring import rates
from ..article.protocol import EIGENVALUE_FLOOR, Unit
from ..article.protocol import Settings as ArticleSettings
from ..selection import first_best, score_columns
from ..units import Progress, no_progress, run_units
from .baselines import BASELINES, Part
from .methods import ALL, FINE_KERNELS, FINE_SCALES, FINE_VALUES, GRIDS, STRATEGIES, Method, kernel_methods

Rates: TypeAlias = tuple[np.ndarray, np.ndarray]
"""TPR and TNR."""

KEYS = ("classifier", "references", "negatives", "grid", "task", "split", "repeat")
TOL = 1e-6
REGULARIZATION = 1e-3
"""Defaults of the estimators."""
COLUMNS = (*KEYS, "gmean", "tpr", "tnr", "validation", "scale", "parameter", "seed", "seconds")


@dataclass(frozen=True)
class Settings:
    """What decides the rows of a study."""

    splits: Literal["embedded", "authors"] = "embedded"
    tasks: tuple[str, ...] = ()
    splits_count: int = 5
    repeats: int = 1
    seed: int = 0

    def checked(self) -> Settings:
        """These settings with all tasks where none is named, or a clear error."""
        return Settings(**{**asdict(self), "tasks": self._as_article().checked().tasks})

    def units(self) -> list[Unit]:
        return self._as_article().units()

    def _as_article(self) -> ArticleSettings:
        return ArticleSettings(**asdict(self))


def run(
    settings: Settings, out: StrPath, *, jobs: int = 1, data_dir: StrPath | None = None, progress: Progress = no_progress
) -> dict[str, Any]:
    """Run the units that the folder ``out`` lacks, and return the contents of its run.json."""
    settings = settings.checked()
    size = len(GRIDS) * len(kernel_methods()) + sum(len(b.variants) * len(b.counts) for b in BASELINES)
    compute = functools.partial(run_unit, settings=settings, data_dir=data_dir)
    facts = {**asdict(settings), "tasks": list(settings.tasks)}
    return run_units(compute, settings.units(), size, COLUMNS, facts, out, jobs=jobs, progress=progress)


def run_unit(unit: Unit, settings: Settings, data_dir: StrPath | None = None) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """The rows of one unit, and the seconds of its stages."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # degenerate and tiny folds are part of the comparison
        data = load_task(unit.task, unit.split, splits=settings.splits, data_dir=data_dir)
        parts = _parts(unit, data)
        clock, rows = Clock(), []
        for method_rows in _kernel_rows(parts, clock):
            rows += method_rows
        for baseline in BASELINES:
            rows += baseline.rows(parts)
            clock.lap(baseline.name)
    facts = {**unit.key, "seed": int(unit.seeds[0])}
    return [{**row, **facts} for row in rows], clock.stages


def _parts(unit: Unit, data: Split) -> list[Part]:
    """The folds, and last the whole training set with the test set."""
    folds = unit.folds(len(data.y_train))
    cuts = [(data.X_train[a], data.y_train[a], data.X_train[b], data.y_train[b]) for a, b in folds]
    cuts.append((data.X_train, data.y_train, data.X_test, data.y_test))
    return [_part(*cut, int(seed)) for cut, seed in zip(cuts, unit.seeds[1:], strict=True)]


def _part(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, seed: int) -> Part:
    outliers = np.random.RandomState(seed).permutation(X[y == -1])
    return Part(X[y == 1], outliers, X_test, y_test == 1, seed)


def _kernel_rows(parts: list[Part], clock: Clock) -> Iterator[list[dict[str, Any]]]:
    """Rows of all classifiers on kernels, strategy by strategy."""
    by_source: dict[tuple[str, str], list[Method]] = {}
    for method in kernel_methods():
        by_source.setdefault((method.references, ALL if method.negatives == "0" else method.negatives), []).append(method)
    for (references, known), methods in by_source.items():
        start = time.perf_counter()
        found = [_decisions(part, references, known, {m.classifier for m in methods}, clock) for part in parts]
        tables = {m: [_rates(decided[m.classifier], part.is_target) for decided, part in zip(found, parts, strict=True)] for m in methods}
        seconds = (time.perf_counter() - start) / len(methods)
        clock.lap("scoring")
        for method in methods:
            yield [choose(method, grid, tables[method], seconds) for grid in GRIDS]


def choose(method: Method, grid: str, tables: list[Rates], seconds: float) -> dict[str, Any]:
    """The row of a method: what validation chose on a grid, and its rates on the test set, from (scales × values) tables of both."""
    scales, values = GRIDS[grid]
    validation = np.nanmean([geometric_mean(*table)[scales, values] for table in tables[:-1]], axis=0)
    s, v = first_best(validation)
    return {
        **asdict(method),
        "grid": grid,
        **score_columns(*(rate[scales, values][s, v] for rate in tables[-1])),
        "validation": float(validation[s, v]),
        "scale": FINE_SCALES[scales][s],
        "parameter": FINE_VALUES[values][v],
        "seconds": round(seconds, 6),
    }


def _rates(decisions: np.ndarray, is_target: np.ndarray) -> Rates:
    """TPR and TNR (scales × values) from decision values (scales × values × t)."""
    tpr, tnr = rates(decisions.reshape(-1, is_target.size), is_target)
    return tpr.reshape(decisions.shape[:2]), tnr.reshape(decisions.shape[:2])


def _decisions(part: Part, references: str, count: str, classifiers: set[str], clock: Clock) -> dict[str, np.ndarray]:
    """Decision values (scales × values × t) of each classifier; ``count`` outliers are known."""
    known = part.known(count)
    n, q = len(part.targets), len(known)
    rows = TrainingRows(np.concatenate([part.targets, known]), np.arange(n), np.arange(n, n + q))
    strategy = STRATEGIES[references]
    reference = None
    if strategy is not None:
        random = np.random.RandomState(part.seed)
        reference = ReferenceKernel(references=strategy, center=True, eigenvalue_floor=EIGENVALUE_FLOOR, random_state=random)
    samples = Samples(rows, np.concatenate([known, part.X_test]), reference, clock=clock)
    spaces = [samples.whole(kernel) for kernel in FINE_KERNELS]
    K_ZZ = np.stack([K for K, _ in spaces])
    found: dict[str, np.ndarray] = {}
    plain = [c for c in ("svdd", "ocsvm") if c in classifiers]
    if plain:
        found |= dict(zip(plain, _paths(K_ZZ, n, n + q, plain), strict=True))
        clock.lap("solving")
    if "svddneg" in classifiers:
        found["svddneg"] = _repelled(K_ZZ, n, q)
        clock.lap("solving with outliers")
    if "esvdd" in classifiers:
        K_ZZ = np.stack([_ellipsoidal(Phi, n) for _, Phi in spaces if Phi is not None])
        (found["esvdd"],) = _paths(K_ZZ, n, n + q, ["svdd"])
        clock.lap("ellipsoids")
    return found


def _paths(K_ZZ: np.ndarray, n: int, begin: int, classifiers: Sequence[str]) -> list[np.ndarray]:
    """Decision values on the samples from ``begin`` on, trained on the first n."""
    diag = K_ZZ.diagonal(axis1=1, axis2=2)[:, begin:]
    return decision_paths(K_ZZ[:, :n, :n], [Formulation(c, FINE_VALUES) for c in classifiers], K_ZZ[:, begin:, :n], diag)


def _repelled(K_ZZ: np.ndarray, n: int, q: int) -> np.ndarray:
    """Decision values (scales × values × t) of SVDDs that n targets attract and the next q samples repel, on those after."""
    known = n + q
    solved = solve_formulations(K_ZZ[:, :known, :known], [Formulation("svdd", FINE_VALUES, tol=TOL)], q)
    (decisions,) = solved.decisions(K_ZZ[:, known:, :known], K_ZZ.diagonal(axis1=1, axis2=2)[:, known:])
    return decisions


def _ellipsoidal(Phi: np.ndarray, n: int) -> np.ndarray:
    """Inner products after the map's features are whitened by the targets' covariance, as ``ESVDD`` does."""
    W = Ellipsoid.of(Phi[:n], np.ones(n), REGULARIZATION).whitened(Phi)
    return W @ W.T
