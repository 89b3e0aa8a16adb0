"""The rows of the study: every method of one unit on the same folds, chosen by the same validation."""

import functools
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..._core.progress import Clock
from ..._core.rows import TrainingRows
from ..._core.types import StrPath
from ...classifiers.ellipsoid import Ellipsoid
from ...datasets import Split, load_task
from ...metrics import geometric_mean
from ...model_selection import Formulation, decision_paths
from ...model_selection.grams import Samples
from ...model_selection.paths import solve_formulations
from ...model_selection.scoring import rates
from ..article.protocol import Settings, Unit, first_best, reference_kernel, score_columns
from ..units import run_units
from .methods import ALL, BASELINES, DEFAULT, FINE_KERNELS, FINE_SCALES, FINE_VALUES, GRIDS, STRATEGIES, Method, kernel_methods

SETTINGS = ("splits", "tasks", "splits_count", "repeats", "seed")  # what decides the rows of a study, of the article's settings
KEYS = ("classifier", "references", "negatives", "grid", "task", "split", "repeat")
TOL = 1e-6
REGULARIZATION = 1e-3  # defaults of the estimators
CANDIDATES = np.arange(len(FINE_SCALES) * len(FINE_VALUES)).reshape(len(FINE_SCALES), -1)
GRID_CANDIDATES = {grid: CANDIDATES[slices].ravel() for grid, slices in GRIDS.items()}
"""The numbers of each grid's candidates among those of the fine one, scale by scale."""
COLUMNS = (*KEYS, "gmean", "tpr", "tnr", "validation", "scale", "parameter", "seed", "seconds")


@dataclass(frozen=True)
class Part:
    """One training and test set: a fold of the validation, or the whole. ``outliers`` are in random order."""

    targets: np.ndarray
    outliers: np.ndarray
    X_test: np.ndarray
    is_target: np.ndarray
    seed: int

    def known(self, count: str) -> np.ndarray:
        """The outliers that training may use: "all", or this many."""
        return self.outliers if count == ALL else self.outliers[: int(count)]


def run(settings: Settings, out: StrPath, *, data_dir: StrPath | None = None, **how: Any) -> dict[str, Any]:
    """Run the units that the folder ``out`` lacks, by ``jobs`` and ``progress`` of ``run_units``, and return what is in its run.json."""
    settings = settings.checked(data_dir)
    size = len(GRIDS) * len(kernel_methods()) + sum(len(b.variants) * len(b.counts) for b in BASELINES)
    compute = functools.partial(run_unit, settings=settings, data_dir=data_dir)
    return run_units(compute, settings.units(), size, COLUMNS, {name: getattr(settings, name) for name in SETTINGS}, out, **how)


def run_unit(unit: Unit, settings: Settings, data_dir: StrPath | None = None) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """The rows of one unit, and the seconds of its stages."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # degenerate and tiny folds are part of the comparison
        data = load_task(unit.task, unit.split, splits=settings.splits, data_dir=data_dir)
        parts, clock = _parts(unit, data), Clock()
        rows = [*_kernel_rows(parts, clock), *_baseline_rows(parts, clock)]
    return [{**row, **unit.key, "seed": int(unit.seeds[0])} for row in rows], clock.stages


def _parts(unit: Unit, data: Split) -> list[Part]:
    """The folds, and last the whole training set with the test set."""
    cuts = [(data.X_train[a], data.y_train[a], data.X_train[b], data.y_train[b]) for a, b in unit.folds(len(data.y_train))]
    cuts.append((data.X_train, data.y_train, data.X_test, data.y_test))
    return [
        Part(X[y == 1], np.random.RandomState(seed).permutation(X[y == -1]), X_test, y_test == 1, int(seed))
        for (X, y, X_test, y_test), seed in zip(cuts, unit.seeds[1:], strict=True)
    ]


def _kernel_rows(parts: list[Part], clock: Clock) -> Iterator[dict[str, Any]]:
    """Rows of all classifiers on kernels, strategy by strategy."""
    by_source: dict[tuple[str, str], list[Method]] = {}
    for method in kernel_methods():
        by_source.setdefault((method.references, ALL if method.negatives == "0" else method.negatives), []).append(method)
    for (references, known), methods in by_source.items():
        start = time.perf_counter()
        found = [_decisions(part, references, known, {m.classifier for m in methods}, clock) for part in parts]
        seconds = (time.perf_counter() - start) / len(methods)
        for method in methods:
            decisions = [decided[method.classifier].reshape(-1, part.is_target.size) for decided, part in zip(found, parts, strict=True)]
            for best, row in _chosen(method, decisions, parts, GRID_CANDIDATES, seconds):
                scale, value = divmod(best, len(FINE_VALUES))
                yield {**row, "scale": FINE_SCALES[scale], "parameter": FINE_VALUES[value]}
        clock.lap("scoring")


def _baseline_rows(parts: list[Part], clock: Clock) -> Iterator[dict[str, Any]]:
    """Rows of all alternatives, for each number of known outliers, by default and tuned."""
    for baseline in BASELINES:
        for count in baseline.counts:
            start = time.perf_counter()
            decisions = [baseline.decide(part.targets, part.known(count), part.X_test, part.seed) for part in parts]
            seconds = (time.perf_counter() - start) / len(baseline.variants)
            candidates = {variant: np.arange(1 if variant == DEFAULT else len(decisions[0])) for variant in baseline.variants}
            for _, row in _chosen(Method(baseline.name, "-", count), decisions, parts, candidates, seconds):
                yield {**row, "scale": "", "parameter": ""}
        clock.lap(baseline.name)


def _chosen(
    method: Method, decisions: list[np.ndarray], parts: list[Part], grids: Mapping[str, np.ndarray], seconds: float
) -> Iterator[tuple[int, dict[str, Any]]]:
    """For each of ``grids`` the candidate of ``decisions`` (candidates × t, by part) that validation chose, and its test rates."""
    tables = [rates(values, part.is_target) for values, part in zip(decisions, parts, strict=True)]
    validation = np.nanmean([geometric_mean(*table) for table in tables[:-1]], axis=0)
    for grid, candidates in grids.items():
        best = int(candidates[first_best(validation[candidates])[0]])
        scores = {**score_columns(*(rate[best] for rate in tables[-1])), "validation": float(validation[best])}
        yield best, {**asdict(method), "grid": grid, **scores, "seconds": round(seconds, 6)}


def _decisions(part: Part, references: str, count: str, classifiers: set[str], clock: Clock) -> dict[str, np.ndarray]:
    """Decision values (scales × values × t) of each classifier; ``count`` outliers are known."""
    known = part.known(count)
    n, q = len(part.targets), len(known)
    rows = TrainingRows(np.concatenate([part.targets, known]), np.arange(n), np.arange(n, n + q))
    random = np.random.RandomState(part.seed)
    samples = Samples(rows, np.concatenate([known, part.X_test]), reference_kernel(STRATEGIES[references], random), clock=clock)
    spaces = [samples.whole(kernel) for kernel in FINE_KERNELS]
    K_ZZ = np.stack([K for K, _ in spaces])
    found: dict[str, np.ndarray] = {}
    if plain := [c for c in ("svdd", "ocsvm") if c in classifiers]:
        found |= dict(zip(plain, _paths(K_ZZ, n, n + q, plain), strict=True))
        clock.lap("solving")
    if "svddneg" in classifiers:  # n targets attract, the next q samples repel
        solved = solve_formulations(K_ZZ[:, : n + q, : n + q], [Formulation("svdd", FINE_VALUES, tol=TOL)], q)
        (found["svddneg"],) = solved.decisions(K_ZZ[:, n + q :, : n + q], K_ZZ.diagonal(axis1=1, axis2=2)[:, n + q :])
        clock.lap("solving with outliers")
    if "esvdd" in classifiers:
        white = [Ellipsoid.of(Phi[:n], np.ones(n), REGULARIZATION).whitened(Phi) for _, Phi in spaces if Phi is not None]  # as in ESVDD
        (found["esvdd"],) = _paths(np.stack([W @ W.T for W in white]), n, n + q, ["svdd"])
        clock.lap("ellipsoids")
    return found


def _paths(K_ZZ: np.ndarray, n: int, begin: int, classifiers: Sequence[str]) -> list[np.ndarray]:
    """Decision values on the samples from ``begin`` on, trained on the first n."""
    diag = K_ZZ.diagonal(axis1=1, axis2=2)[:, begin:]
    return decision_paths(K_ZZ[:, :n, :n], [Formulation(c, FINE_VALUES) for c in classifiers], K_ZZ[:, begin:, :n], diag)
