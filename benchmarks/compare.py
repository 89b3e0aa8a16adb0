"""Another checkout against this one, in turn in one run: `python benchmarks/compare.py OTHER/src [--rounds 6]`.

Fits, searches and scores of the other benchmarks, each checkout in processes of its own. The first round compiles and is not counted.
Times are processor times: best of a process, median over rounds. What counts is the ratio, and its median for each kind.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[1] / "src"
SECONDS = 0.15
"""Each call is repeated for about this long (at least three times)."""


def workloads():
    """{(kind, name): call}."""
    import refkernel as rk
    from refkernel.datasets import load_task

    calls = {}
    for n in (100, 300, 1_000, 3_000, 10_000):
        X = np.random.default_rng(n).normal(size=(n, 10))
        for make in (rk.SVDD, rk.OneClassSVM):
            model = make(rk.RBF(scale=1.0), nu=0.1).fit(X)
            calls["fit", f"{make.__name__} n = {n}"] = lambda model=model, X=X: model.fit(X)
            for rows in (1, 10_000):
                Z = np.random.default_rng(1).normal(size=(rows, 10))
                calls["score", f"{make.__name__} n = {n}, {rows} rows"] = lambda model=model, Z=Z: model.decision_function(Z)
    grid = {"kernel__kernel__scale": [0.1, 1.0, 10.0, 100.0, 1000.0], "nu": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
    for task in ("Iris1", "Seed2", "Son1", "Ion2"):
        data = load_task(task)
        for references in (None, "case2", "case5", "case7"):
            for make in (rk.SVDD, rk.OneClassSVM):
                kernel = rk.RBF(1.0) if references is None else rk.ReferenceKernel(references=references, random_state=0)
                values = {name.replace("kernel__kernel", "kernel") if references is None else name: v for name, v in grid.items()}
                search = rk.OneClassGridSearch(make(kernel), values, cv=5, refit=False, random_state=0)
                calls["search", f"{task} {references} {make.__name__}"] = lambda s=search, d=data: s.fit(d.X_train, d.y_train)
    return calls


def measure():
    """Print the best processor time of every call, in ms, as JSON."""
    warnings.simplefilter("ignore")
    found = {}
    for (kind, name), call in workloads().items():
        times = []
        call()
        while len(times) < 3 or sum(times) < SECONDS:
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
        found[f"{kind}: {name}"] = 1e3 * min(times)
    print(json.dumps(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", nargs="?", help="the src folder of the other checkout")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    if options.other is None:
        measure()
        return
    times = {folder: [] for folder in (options.other, str(HERE))}
    for _ in range(1 + options.rounds):
        for folder, found in times.items():
            environment = {**os.environ, "PYTHONPATH": folder, "OPENBLAS_NUM_THREADS": "1"}
            run = subprocess.run([sys.executable, __file__], env=environment, stdout=subprocess.PIPE, text=True, check=True)
            found.append(json.loads(run.stdout))
    before, after = ({name: np.median([row[name] for row in found[1:]]) for name in found[0]} for found in times.values())
    ratios = {}
    for name in before:
        ratios.setdefault(name.split(":")[0], []).append(after[name] / before[name])
        print(f"{name:<45}{before[name]:>10.3f} -> {after[name]:>8.3f} ms{after[name] / before[name]:>8.2f}")
    for kind, values in ratios.items():
        print(f"{kind}: median {np.median(values):.2f}, best {min(values):.2f}, worst {max(values):.2f}")


if __name__ == "__main__":
    main()
