"""Fit, score and map against scikit-learn, side by side in one run: `python benchmarks/bench_fit.py`.

Times are medians of alternating runs, because machines are noisy; the ratio is what counts. Both
solve to a comparable violation of the optimality conditions (printed, as a share of the gradients' size).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.svm import OneClassSVM as SklearnOneClassSVM

import refkernel as rk

NU = 0.1
FEATURES = 10


def median_times(calls, seconds=2.0, rounds=3, in_a_row=1):
    """The median time of each call, run in turn so that noise affects all alike, for about ``seconds`` each and a minimum of rounds.

    Each is called ``in_a_row`` times, so that threads left spinning by BLAS, and memory left behind, affect only calls of the same kind.
    """
    times = {name: [] for name in calls}
    while len(times[next(iter(calls))]) < rounds * in_a_row or sum(times[next(iter(calls))]) < seconds:
        for name, call in calls.items():
            for _ in range(in_a_row):
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in times.items()}


def violation(model, X):
    """The largest violation of optimality over the training samples, as a share of the mean score."""
    score = model.score_samples(X)
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.ravel(model.dual_coef_)
    return max(score[alpha > 0].max() - score[alpha < 1].min(), 0.0) / np.abs(score).mean()


def bench_fit():
    print(f"Fit and decision_function, RBF of the article's width, nu = {NU}, d = {FEATURES} (ms)")
    print(f"{'n':>6} {'':>9} {'SVDD':>9} {'OneClassSVM':>12} {'sklearn':>9} {'SVDD ×':>7} {'OCSVM ×':>8}   violation ours, sklearn")
    for n in (100, 300, 500, 1_000, 3_000, 10_000):
        X = np.random.default_rng(n).normal(size=(n, FEATURES))
        sigma = rk.RBF(1.0).fit(X).sigma_
        models = {
            "svdd": rk.SVDD(rk.RBF(sigma=sigma), nu=NU),
            "ours": rk.OneClassSVM(rk.RBF(sigma=sigma), nu=NU),
            "sklearn": SklearnOneClassSVM(gamma=0.5 / sigma**2, nu=NU, tol=1e-6),
        }
        fit = median_times({name: partial(m.fit, X) for name, m in models.items()})
        score = median_times({name: partial(m.decision_function, X) for name, m in models.items()})
        kkt = f"   {violation(models['ours'], X):.0e}, {violation(models['sklearn'], X):.0e}"
        for what, t, note in (("fit", fit, kkt), ("decision", score, "")):
            row = [1e3 * t[name] for name in ("svdd", "ours", "sklearn")]
            print(f"{n:>6} {what:>9} {row[0]:>9.2f} {row[1]:>12.2f} {row[2]:>9.2f} {row[0] / row[2]:>7.2f} {row[1] / row[2]:>8.2f}{note}")


PEAK = """
import re, resource, pathlib, numpy as np
X = np.random.default_rng(0).normal(size=(20_000, 10))
import refkernel as rk
from sklearn.svm import OneClassSVM
model = {{"ours": rk.OneClassSVM(nu=0.1), "svdd": rk.SVDD(nu=0.1), "sklearn": OneClassSVM(nu=0.1, gamma=0.025)}}[{name!r}]
model.fit(X)
status = pathlib.Path("/proc/self/status")  # on Linux ru_maxrss would count the memory of the process that started this one
found = re.search(r"VmHWM:\\s+(\\d+)", status.read_text()) if status.exists() else None
print(int(found[1]) / 1024 if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def bench_memory():
    print("\nPeak memory of a process that fits n = 20,000 (MB, interpreter and libraries included)")
    for name in ("svdd", "ours", "sklearn"):
        run = subprocess.run([sys.executable, "-c", PEAK.format(name=name)], capture_output=True, text=True, check=True)
        print(f"  {name:>8} {float(run.stdout):>7.0f}")


def bench_map():
    X = np.random.default_rng(0).normal(size=(100_000, FEATURES))
    sigma = rk.RBF(1.0).fit(X).sigma_
    nystroem = Nystroem(gamma=0.5 / sigma**2, n_components=100, random_state=0).fit(X)
    reference_map = rk.ReferenceMap(rk.RBF(sigma=sigma), references=nystroem.components_).fit(X)
    times = median_times({"map": lambda: reference_map.transform(X), "nystroem": lambda: nystroem.transform(X)}, in_a_row=15)
    print("\nReferenceMap.transform against Nystroem.transform, same references, n = 100,000, d = 10, m = 100 (ms)")
    print(f"  ReferenceMap {1e3 * times['map']:.1f}, Nystroem {1e3 * times['nystroem']:.1f}, ratio {times['map'] / times['nystroem']:.2f}")


START = """
import time
start = time.perf_counter()
import {module}
imported = time.perf_counter() - start
if {fit}:
    import numpy as np
    start = time.perf_counter()
    {module}.SVDD().fit(np.random.default_rng(0).normal(size=(100, 10)))
    print(imported, time.perf_counter() - start)
else:
    print(imported, 0.0)
"""


def start_times(module, fit, cache):
    """Seconds of (import, first fit) in a new process; the best of five if nothing compiles."""
    command = [sys.executable, "-c", START.format(module=module, fit=fit)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(1 if fit else 5)]
    return min(tuple(map(float, run.stdout.split())) for run in runs)


def bench_start():
    print("\nImport and first call (s)")
    sklearn, ours = (start_times(module, False, "")[0] for module in ("sklearn.svm", "refkernel"))
    print(f"  import sklearn.svm {sklearn:.2f}, import refkernel {ours:.2f}, ratio {ours / sklearn:.2f}")
    with tempfile.TemporaryDirectory() as cache:
        compiling, cached = (start_times("refkernel", True, cache)[1] for _ in range(2))
    print(f"  first SVDD.fit: {compiling:.2f} compiling, {cached:.2f} from the cache")


if __name__ == "__main__":
    rk.SVDD().fit(np.eye(3))
    bench_fit()
    bench_memory()
    bench_map()
    bench_start()
