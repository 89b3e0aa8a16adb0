"""OneClassGridSearch against GridSearchCV, one process each, one BLAS thread each: `python benchmarks/bench_search.py`.

`--agreement` instead compares every fold score on 6 tasks × 7 cases × both classifiers × both routes. The row with n = 100 (Bank2)
needs the authors' data (REFKERNEL_DATA, or a download); without it the row is left out, with a message.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import time
import warnings
from pathlib import Path
from unittest import mock

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numba
import numpy as np
from scipy.linalg import lapack
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

import refkernel as rk
from refkernel._dual import path
from refkernel._factor import tridiagonal, whitening
from refkernel._jit import compiler
from refkernel.datasets import load_task
from refkernel.metrics import gmean_scorer
from refkernel.model_selection import grams

SCALES = [0.1, 1.0, 10.0, 100.0, 1000.0]
VALUES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
ROUNDS = 5
FITS = len(SCALES) * len(VALUES) * 5


def searched(classifier, references, route="kernel"):
    """An estimator of the article, and its grid."""
    name = classifier.__name__.lower()
    parameter = "C" if route == "mapping" and classifier is rk.SVDD else "nu"
    if route == "mapping":
        first = rk.NPT() if references is None else rk.ReferenceMap(references=references, random_state=0)
        scale, estimator = f"{type(first).__name__.lower()}__kernel__scale", make_pipeline(first, classifier("linear"))
    else:
        kernel = rk.RBF(1.0) if references is None else rk.ReferenceKernel(references=references, random_state=0)
        scale = f"{name}__kernel__scale" if references is None else f"{name}__kernel__kernel__scale"
        estimator = make_pipeline(classifier(kernel))
    return estimator, {scale: SCALES, f"{name}__{parameter}": VALUES}


def timed(search, X, y, seconds=0.0):
    """The fitted search and the median time of a run, over runs that take about ``seconds`` in total (at least one)."""
    times = []
    while not times or sum(times) < seconds:
        start = time.perf_counter()
        search.fit(X, y)
        times.append(time.perf_counter() - start)
    return search, float(np.median(times))


def pair(estimator, grid, X, y, rounds=1, seconds=0.0):
    """Both searches on the same folds, and their seconds in each round: in turn, so that changes in the machine's load affect both."""
    cv = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    ours = rk.OneClassGridSearch(estimator, grid, cv=cv, refit=False)
    theirs = GridSearchCV(estimator, grid, scoring=gmean_scorer, cv=cv, refit=False)
    times = [(timed(ours, X, y, seconds)[1], timed(theirs, X, y)[1]) for _ in range(rounds)]
    return ours, theirs, np.array(times)


def largest_difference(ours, theirs):
    names = [f"split{fold}_test_score" for fold in range(5)]
    return max(np.abs(ours.cv_results_[name] - theirs.cv_results_[name]).max() for name in names)


def copies(arguments):
    return [np.copy(a, order="K") if isinstance(a, np.ndarray) else a for a in arguments]


def with_itself(A):
    return np.matmul(A, A.T)  # BLAS computes each pair once


def lapack_eigenpairs(d, e, count):
    """The smallest eigenpairs of a tridiagonal matrix as LAPACK finds them fastest: one by one if they are few, else all together."""
    m = len(d)
    if count > 0.25 * m:
        lapack.dstevd(d, e)
        return
    if count > 0.05 * m:
        lam, block, split = lapack.dsterf(d, e)[0], np.ones(m, np.intc), np.full(m, m, np.intc)
    else:
        _, lam, block, split, _ = lapack.dstebz(d, e, 2, 0.0, 0.0, 1, count, 0.0, b"B")
    lapack.dstein(d, e, lam[:count], block, split)


@functools.cache
def compiled(function):
    """Of functions that are parts of jitted ones."""
    return function if hasattr(function, "py_func") else numba.njit(function)


def interpreted(module, names, recorder=None):
    """Patches by which these jitted functions of a module run as Python, or are recorded."""
    found = {name: getattr(module, name) for name in names}
    return [mock.patch.object(module, name, recorder(f) if recorder else f.py_func) for name, f in found.items()]


def recorded_calls(search, X, y):
    """The LAPACK and BLAS calls of a search, recorded in one run of it, and the calls of its compiled solver."""
    calls, solves = [], []

    def recorded_solve(*arguments):
        solves.append((solve, arguments, {}))
        solve(*arguments)

    def recorded(function):
        def record(*arguments):
            by_lapack = (*arguments[:-1], False) if isinstance(arguments[-1], bool) else arguments  # not our own strips
            calls.append((compiled(function), copies(by_lapack), {}))
            return function(*arguments)

        return record

    def by_lapack(find_eigenvectors):
        def record(d, e, lam):
            if lam.size > 0:  # our own lanes find them
                calls.append((lapack_eigenpairs, [d, e[: max(len(d) - 1, 1)], lam.size], {}))
            return find_eigenvectors(d, e, lam)

        return record

    def product(A, B):
        calls.append((np.matmul, [A, B], {}))

    class Recorded(whitening.Whitening):
        def _truncate(self, K, floor):
            super()._truncate(K, floor)
            if self._kept is None:
                product(self._dropped[:, self._first].T, self._dropped[:, self._first])
            else:
                calls.append((with_itself, [self._kept_first * self._sizes], {}))

        def with_first(self, K_ZR):
            if self._kept is not None:
                product(K_ZR, self._kept)
                product(K_ZR @ self._kept, self._kept_first.T)
            return super().with_first(K_ZR)

        def features(self, K_ZR):
            if self._kept is not None:
                product(K_ZR, self._kept)
            Phi = super().features(K_ZR)
            calls.append((with_itself, [Phi[:-tested]], {}))
            product(Phi[-tested:], Phi[:-tested].T)
            return Phi

    tested, n = max(len(test) for _, test in search.cv), round(0.8 * np.sum(y == 1))
    solve = path.solve_problems
    with contextlib.ExitStack() as patched:
        for patch in (
            *interpreted(whitening, ["prepared", "truncated", "centred_rows", "solved", "tridiagonal_form", "eigenpairs"]),
            *interpreted(whitening, ["cholesky", "solve_rows", "add_outer", "project_out", "times_vector"], recorded),
            *interpreted(tridiagonal, ["tridiagonalise", "turn"], recorded),
            *interpreted(tridiagonal, ["eigenvectors"], by_lapack),
            mock.patch.object(grams, "Whitening", Recorded),
            mock.patch.object(path, "solve_problems", recorded_solve),
        ):
            patched.enter_context(patch)
        clone(search).fit(X, y)
    m = max((len(arrays[0]) for call, arrays, _ in calls if call is whitening.cholesky), default=n)
    rng = np.random.default_rng(0)
    rows = n + tested + (m if calls else 0)
    for shapes, times in ((((rows, X.shape[1] + 2), (X.shape[1] + 2, m)), 5), (((len(VALUES), n), (n, tested)), 5 * len(SCALES))):
        calls.extend(times * [(np.matmul, [rng.normal(size=shape) for shape in shapes], {})])  # distances; decision values
    return calls, solves


def seconds_of(calls):
    calls = [(call, copies(arguments), options) for call, arguments, options in calls]  # some overwrite them
    start = time.perf_counter()
    for call, arguments, options in calls:
        call(*arguments, **options)
    return time.perf_counter() - start


def floors(search, X, y):
    """Medians of a search's seconds, of its LAPACK and BLAS calls alone, and of its solver's calls."""
    calls, solves = recorded_calls(search, X, y)
    return np.median([(timed(search, X, y)[1], seconds_of(calls), seconds_of(solves)) for _ in range(ROUNDS)], axis=0)


def bench_cost():
    print(f"Time per fit-and-score on the article's grid (5 scales × 6 values × 5 folds), medians of {ROUNDS} rounds, and its ratio to")
    print("GridSearchCV's; refitting the best adds a fit to both. × floor: over the same by LAPACK and BLAS alone, and that and its solver")
    print(
        f"{'task':>6} {'n':>4} {'case':>5} {'classifier':>11} {'ours µs':>8} {'theirs ms':>10} {'ratio':>7} {'refitted':>9} {'× floor':>8} "
        f"{'+ solver':>8}  by stage (%)"
    )
    ratios, refitted, all_rows = [], [], np.zeros(3)
    for task, splits in (("Iris1", "embedded"), ("Son1", "embedded"), ("Bank2", "authors"), ("Ion2", "embedded")):
        try:
            data = load_task(task, splits=splits)
        except (OSError, ImportError) as error:
            print(f"{task:>6} left out: {str(error).splitlines()[0]}")
            continue
        X, y = data.X_train, data.y_train
        for references in (None, "case2", "case5", "case7"):
            for classifier in (rk.SVDD, rk.OneClassSVM):
                ours, theirs, times = pair(*searched(classifier, references), X, y, ROUNDS, seconds=0.3)
                refit = clone(ours).set_params(refit=True).fit(X, y).refit_time_
                (a, b), ratio = np.median(times, axis=0), np.median(times[:, 1] / times[:, 0])
                ratios.append(ratio)
                refitted.append((ratio * a + refit) / (a + refit))
                total = sum(ours.stage_times_.values())
                where = ", ".join(f"{stage} {100 * seconds / total:.0f}" for stage, seconds in ours.stage_times_.items())
                whole, floor, solver = floors(ours, X, y)
                all_rows += whole, floor, solver
                print(
                    f"{task:>6} {np.sum(y == 1):>4} {references or 'base':>5} {classifier.__name__:>11} "
                    f"{1e6 * a / FITS:>8.0f} {1e3 * b / FITS:>10.2f} {f'1/{ratios[-1]:.0f}':>7} {f'1/{refitted[-1]:.0f}':>9} "
                    f"{whole / floor:>8.1f} {whole / (floor + solver):>8.1f}  {where}; differs by {largest_difference(ours, theirs):.0e}"
                )
    for name, values in (("", ratios), (", best refitted", refitted)):
        print(f"median ratio 1/{np.median(values):.0f}, worst 1/{min(values):.0f}{name}")
    whole, floor, solver = all_rows
    print(f"all rows together: {whole / floor:.1f} × floor, {whole / (floor + solver):.1f} × with the solver")


def bench_growth():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    print("\nHow the cost grows: OneClassGridSearch of SVDD, 3 folds, 5 scales (s)")
    sizes, counts = (50, 100, 200, 500, 1000, 2000), (1, 2, 5, 10, 20, 50)
    by_size, by_count = {}, {}
    for n in sizes:
        X, y = np.vstack([rng.normal(size=(n, 10)), rng.normal(scale=2, size=(n // 5, 10))]), np.r_[np.ones(n), -np.ones(n // 5)]
        for name, kernel, scale in (
            ("base", rk.RBF(1.0), "kernel__scale"),
            ("case2", rk.ReferenceKernel(references="case2"), "kernel__kernel__scale"),
        ):
            search = rk.OneClassGridSearch(rk.SVDD(kernel), {scale: SCALES, "nu": VALUES}, cv=3, random_state=0)
            by_size[name, n] = timed(search, X, y, seconds=0.1)[1]
        if n == 500:
            for count in counts:
                search = rk.OneClassGridSearch(
                    rk.SVDD(rk.RBF(1.0)), {"kernel__scale": SCALES, "nu": np.linspace(0.05, 0.6, count)}, cv=3, random_state=0
                )
                by_count[count] = timed(search, X, y, seconds=0.1)[1]
    print("  n        " + "".join(f"{n:>9}" for n in sizes))
    for name in ("base", "case2"):
        print(f"  {name:<9}" + "".join(f"{by_size[name, n]:>9.3f}" for n in sizes))
    print("  values of nu at n = 500, base\n           " + "".join(f"{count:>9}" for count in counts))
    print("           " + "".join(f"{by_count[count]:>9.3f}" for count in counts))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for name in ("base", "case2"):
        left.loglog(sizes, [by_size[name, n] for n in sizes], "o-", label=name)
    left.set(xlabel="targets n", ylabel="seconds", title="5 scales × 6 values × 3 folds")
    left.legend()
    right.plot(counts, [by_count[count] for count in counts], "o-")
    right.set(xlabel="values of nu", ylabel="seconds", title="n = 500, 5 scales × 3 folds", ylim=(0, None))
    drawing = Path(__file__).with_name("search_growth.png")
    figure.savefig(drawing, dpi=90)
    print(f"  drawn to {drawing.name}")


def nearest_to_zero(ours, theirs, X, y):
    """The largest, over candidates and folds whose scores differ, of the smallest absolute decision value."""
    nearest = 0.0
    for fold, (train, test) in enumerate(ours.cv):
        scores = [search.cv_results_[f"split{fold}_test_score"] for search in (ours, theirs)]
        for candidate in np.flatnonzero(np.abs(scores[0] - scores[1]) > 1e-12):
            model = clone(theirs.estimator).set_params(**ours.cv_results_["params"][candidate]).fit(X[train], y[train])
            nearest = max(nearest, np.abs(model.decision_function(X[test])).min())
    return nearest


def check_agreement():
    worst, compared, agreed = 0.0, 0, 0
    for task in ("Iris1", "Iris2", "Seed2", "Ion1", "Son1", "Son2"):
        data = load_task(task)
        for references in (None, *(f"case{k}" for k in range(1, 8))):
            for classifier in (rk.SVDD, rk.OneClassSVM):
                for route in ("kernel", "mapping"):
                    ours, theirs, _ = pair(*searched(classifier, references, route), data.X_train, data.y_train)
                    difference = largest_difference(ours, theirs)
                    same = ours.best_params_ == theirs.best_params_
                    compared, agreed, worst = compared + 1, agreed + (same and difference <= 1e-12), max(worst, difference)
                    if difference > 1e-12 or not same:
                        print(
                            f"  {task} {references or 'base'} {classifier.__name__} {route}: {difference:.1e}, same best {same}; "
                            f"decision values as near to 0 as {nearest_to_zero(ours, theirs, data.X_train, data.y_train):.0e}"
                        )
    print(f"{agreed} of {compared} searches: every fold score within 1e-12 of GridSearchCV's, and the same best parameters")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agreement", action="store_true")
    warnings.simplefilter("ignore")
    compiler.patience = 0.0  # small problems are measured too, compiled as they are in the long run
    first = load_task("Iris1")
    pair(*searched(rk.SVDD, "case2"), first.X_train, first.y_train)  # compiles what both use
    if parser.parse_args().agreement:
        check_agreement()
    else:
        bench_cost()
        bench_growth()
