"""OneClassGridSearch against GridSearchCV, one process each, one BLAS thread each: `python benchmarks/bench_search.py`.

`--agreement` instead compares every fold score on 6 tasks × 7 cases × both classifiers × both routes. The row with n = 100 (Bank2)
needs the authors' data (REFKERNEL_DATA, or a download); without it the row is left out, with a message.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

import refkernel as rk
from refkernel.datasets import load_task
from refkernel.metrics import gmean_scorer

SCALES = [0.1, 1.0, 10.0, 100.0, 1000.0]
VALUES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
ROUNDS = 5
FITS = len(SCALES) * len(VALUES) * 5


def searched(classifier, references, route="kernel"):
    """An estimator of the article, and its grid."""
    name = classifier.__name__.lower()
    parameter = "C" if route == "mapping" and classifier is rk.SVDD else "nu"
    if route == "mapping":
        first = rk.ReferenceMap(references="training") if references is None else rk.ReferenceMap(references=references, random_state=0)
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


def bench_cost():
    print(f"Time per fit-and-score on the article's grid (5 scales × 6 values × 5 folds), medians of {ROUNDS} rounds, and its ratio to")
    print("GridSearchCV's; refitting the best adds a fit to both")
    print(
        f"{'task':>6} {'n':>4} {'case':>5} {'classifier':>11} {'ours µs':>8} {'theirs ms':>10} {'ratio':>7} {'refitted':>9}  by stage (%)"
    )
    ratios, refitted = [], []
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
                print(
                    f"{task:>6} {np.sum(y == 1):>4} {references or 'base':>5} {classifier.__name__:>11} "
                    f"{1e6 * a / FITS:>8.0f} {1e3 * b / FITS:>10.2f} {f'1/{ratios[-1]:.0f}':>7} {f'1/{refitted[-1]:.0f}':>9} "
                    f" {where}; differs by {largest_difference(ours, theirs):.0e}"
                )
    for name, values in (("", ratios), (", best refitted", refitted)):
        print(f"median ratio 1/{np.median(values):.0f}, worst 1/{min(values):.0f}{name}")


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
    first = load_task("Iris1")
    pair(*searched(rk.SVDD, "case2"), first.X_train, first.y_train)  # compiles what both use
    if parser.parse_args().agreement:
        check_agreement()
    else:
        bench_cost()
        bench_growth()
