"""The article's one-class SVM experiments against a straightforward scikit-learn implementation, in one run.

Subset: tasks Iris1, Seed2 and Son1, one split, one repetition, all eight variants, both routes (16 cells and 2,416 fits per task);
scikit-learn has no SVDD. Both use one process and one BLAS thread, and the same folds. Run with `python benchmarks/bench_paper.py`.
`--whole` times `refkernel reproduce --splits authors` instead, with its report, in a new process; the authors' data must be there.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import OneClassSVM

from refkernel.datasets import load_task
from refkernel.experiments.article.protocol import ROUTES, SCALES, VALUES, VARIANTS, Settings, Unit, run_unit
from refkernel.metrics import gmean_scorer

TASKS = ("Iris1", "Seed2", "Son1")


class PlainReferenceSVM(OutlierMixin, BaseEstimator):
    """What a user of scikit-learn would write: a Nyström-like centred map by `eigh`, then OneClassSVM, precomputed or linear."""

    def __init__(self, variant="case1", route="kernel", scale=1.0, nu=0.1, random_state=0):
        self.variant = variant
        self.route = route
        self.scale = scale
        self.nu = nu
        self.random_state = random_state

    def fit(self, X, y):
        targets, outliers = X[y == 1], X[y == -1]
        self.R_ = self._references(targets, outliers, np.random.RandomState(self.random_state))
        self.gamma_ = 1.0 / (2.0 * self.scale * euclidean_distances(self.R_, squared=True).mean())
        K_RR = rbf_kernel(self.R_, gamma=self.gamma_)
        self.mu_ = K_RR.mean(axis=0)
        J = np.eye(len(self.R_)) - 1.0 / len(self.R_)
        values, vectors = np.linalg.eigh(J @ K_RR @ J)
        self.projection_ = J @ vectors[:, values >= 1e-6] / np.sqrt(values[values >= 1e-6])
        self.train_ = self._features(targets)
        precomputed = self.route == "kernel"
        self.svm_ = OneClassSVM(kernel="precomputed" if precomputed else "linear", nu=self.nu)
        self.svm_.fit(self.train_ @ self.train_.T if precomputed else self.train_)
        return self

    def _references(self, X, N, rng):
        n, d = X.shape
        T = min(n, len(N))
        return {
            "base": lambda: X,
            "case1": lambda: X,
            "case2": lambda: rng.standard_normal((n, d)),
            "case3": lambda: X[rng.choice(n, n // 2, replace=False)],
            "case4": lambda: rng.standard_normal((n // 2, d)),
            "case5": lambda: np.vstack([X, N[rng.choice(len(N), T, replace=False)]]),
            "case6": lambda: np.vstack([X, rng.standard_normal((T, d))]),
            "case7": lambda: rng.standard_normal((n + T, d)),
        }[self.variant]()

    def _features(self, X):
        if self.variant == "base" and self.route == "kernel":
            return rbf_kernel(X, self.R_, gamma=self.gamma_)
        return (rbf_kernel(X, self.R_, gamma=self.gamma_) - self.mu_) @ self.projection_

    def predict(self, X):
        Phi = self._features(X)
        return self.svm_.predict(Phi @ self.train_.T if self.route == "kernel" else Phi)


class PlainKernelSVM(PlainReferenceSVM):
    """The plain base kernel."""

    def fit(self, X, y):
        targets = X[y == 1]
        gamma = 1.0 / (2.0 * self.scale * euclidean_distances(targets, squared=True).mean())
        self.svm_ = OneClassSVM(kernel="rbf", gamma=gamma, nu=self.nu).fit(targets)
        return self

    def predict(self, X):
        return self.svm_.predict(X)


def plain(task):
    """All cells of one unit with GridSearchCV."""
    unit, data = Unit(task, 0, 0, 0), load_task(task)
    folds = unit.folds(len(data.y_train))
    for route in ROUTES:
        for variant in VARIANTS:
            make = PlainKernelSVM if (route, variant) == ("kernel", "base") else PlainReferenceSVM
            search = GridSearchCV(make(variant, route), {"scale": SCALES, "nu": VALUES}, scoring=gmean_scorer, cv=folds)
            search.fit(data.X_train, data.y_train).predict(data.X_test)


def ours(task):
    run_unit(Unit(task, 0, 0, 0), Settings(tasks=(task,), classifiers=("ocsvm",)).checked())


def bench_whole():
    """The command as users run it: seconds from start to report, processor seconds, and those of the fits by stage."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-c", "from refkernel.cli import main; main()", "reproduce", "--splits", "authors", "--out", name]
        environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            print(f"The whole article was left out: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
            return
        run = json.loads((Path(name) / "run.json").read_text())
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"The whole article, with its report: {seconds:.1f} s, {spent:.1f} s of all processors; fits {run['seconds']:.1f} s")
    print("fits by stage (s, all processes together): " + ", ".join(f"{stage} {found:.1f}" for stage, found in run["stages"].items()))


def bench_subset():
    ours("Iris1")
    fits = len(ROUTES) * len(VARIANTS) * (5 * len(SCALES) * len(VALUES) + 1)
    print(f"{'task':>6} {'refkernel s':>12} {'scikit-learn s':>15} {'ratio':>6}   µs per fit, ours and theirs")
    for task in TASKS:
        times = {}
        for name, call, repeats in (("ours", ours, 3), ("plain", plain, 1)):
            spent = []
            for _ in range(repeats):
                start = time.perf_counter()
                call(task)
                spent.append(time.perf_counter() - start)
            times[name] = min(spent)
        ratio = times["plain"] / times["ours"]
        each = ", ".join(f"{1e6 * times[name] / fits:.0f}" for name in ("ours", "plain"))
        print(f"{task:>6} {times['ours']:>12.3f} {times['plain']:>15.2f} {ratio:>5.0f}×   {each}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whole", action="store_true")
    warnings.simplefilter("ignore")
    bench_whole() if parser.parse_args().whole else bench_subset()
