"""Many rows: map + classifier, plain kernels, memory, Dask, real tables, in one run: `python benchmarks/bench_large.py [part ...]`.

What counts is the ratio of two times taken in turn on the same machine (the best of some rounds); peak memory is that of a new process.
Parts: map, growth, memory, plain, busy, references, dask (needs the extra), tables (needs REFKERNEL_DATA), files (refkernel fit).
Only if they are named: auto (AutoDetector on the tables), huge (n = 1e7), plot (draws what growth wrote to growth.csv).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDOneClassSVM
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM as SklearnOneClassSVM

import refkernel as rk

NU = 0.1
FEATURES = 10
REFERENCES = 100


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, FEATURES))


def best_costs(calls, rounds):
    """(seconds, processor seconds) of the quickest round of each call, in turn."""
    best = dict.fromkeys(calls, (np.inf, np.inf))
    for _ in range(rounds):
        for name, call in calls.items():
            start, used = time.perf_counter(), time.process_time()
            call()
            best[name] = min(best[name], (time.perf_counter() - start, time.process_time() - used))
    return best


def best_times(calls, rounds):
    """The best time of each call, in turn."""
    return {name: seconds for name, (seconds, _) in best_costs(calls, rounds).items()}


def objective(w, rho, Phi):
    """½ ||w||² - rho + mean (rho - w · phi)₊ / nu, scikit-learn's one-class SVM in the primal."""
    return 0.5 * w @ w - rho + np.maximum(rho - Phi @ w, 0.0).mean() / NU


def bench_map():
    print(f"Map + classifier, m = {REFERENCES}, d = {FEATURES}, nu = {NU}, against Nystroem + SGDOneClassSVM on the same features")
    print(f"{'n':>9} {'OneClassSVM':>12} {'SVDD':>8} {'sklearn':>8} {'OCSVM ×':>8} {'SVDD ×':>7}   {'gap':>7}   objective ours, sklearn")
    for n, rounds in ((100_000, 7), (1_000_000, 3)):
        X = rows(n)
        sigma = rk.RBF(1.0).fit(X[:20_000]).sigma_
        nystroem = Nystroem(gamma=0.5 / sigma**2, n_components=REFERENCES, random_state=0).fit(X)
        kernel = rk.ReferenceKernel(rk.RBF(sigma=sigma), references=nystroem.components_, center=False)
        theirs = make_pipeline(nystroem, SGDOneClassSVM(nu=NU, random_state=0))
        ocsvm, svdd = rk.OneClassSVM(kernel, nu=NU), rk.SVDD(kernel, nu=NU)
        models = {"ocsvm": ocsvm, "svdd": svdd, "sklearn": theirs}
        t = best_times({name: partial(model.fit, X) for name, model in models.items()}, rounds)
        w, scale = ocsvm._normal, 1.0 / (NU * n)
        ours = objective(scale * w, scale * ocsvm.offset_, ocsvm.kernel_._features(X))
        sgd = theirs[-1]
        found = objective(sgd.coef_.ravel(), sgd.offset_[0], nystroem.transform(X))
        print(
            f"{n:>9,} {t['ocsvm']:>12.2f} {t['svdd']:>8.2f} {t['sklearn']:>8.2f} {t['ocsvm'] / t['sklearn']:>8.2f} "
            f"{t['svdd'] / t['sklearn']:>7.2f}   {max(ocsvm.duality_gap_, svdd.duality_gap_):>7.0e}   {ours:.8f}, {found:.8f}",
            flush=True,
        )


def bench_growth():
    print(f"\nGrowth: seconds to fit SVDD behind a map of m references, d = {FEATURES} (best of 3)")
    measured = []
    for title, sizes in (
        ("n", [(n, REFERENCES) for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)]),
        ("m", [(100_000, m) for m in (100, 300, 1000, 2000)]),
    ):
        print(f"  {title:>9} {'seconds':>9} {'processor s':>11} {'us a row':>9} {'passes':>7} {'gap':>8}")
        for n, m in sizes:
            X = rows(n)
            model = rk.SVDD(rk.ReferenceKernel(references=X[:m]), nu=NU)
            seconds, used = best_costs({"fit": partial(model.fit, X)}, 3 if n * m <= 10**7 else 1)["fit"]
            size = n if title == "n" else m
            print(
                f"  {size:>9,} {seconds:>9.3f} {used:>11.3f} {1e6 * used / n:>9.2f} {model.n_iter_:>7} {model.duality_gap_:>8.0e}",
                flush=True,
            )
            measured.append(f"{title},{size},{used:.4f}")
    GROWTH.write_text("\n".join(["grows,size,processor_seconds", *measured]) + "\n")


GROWTH = Path("growth.csv")


def draw_growth():
    """growth.csv as growth.png: processor seconds against n and against m, with lines of slope 1 and 2."""
    import matplotlib.pyplot as plt

    grows, sizes, seconds = np.loadtxt(GROWTH, delimiter=",", skiprows=1, dtype=str, unpack=True)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for ax, what, label, slope in zip(axes, "nm", ("rows n, 100 references", "references m, n = 100,000"), (1, 2), strict=True):
        x, t = sizes[grows == what].astype(float), seconds[grows == what].astype(float)
        ax.loglog(x, t, "o-", label="measured")
        ax.loglog(x, t[-1] * (x / x[-1]) ** slope, "--", color="grey", label=f"slope {slope}")
        ax.set(xlabel=label, ylabel="processor seconds to fit SVDD")
        ax.legend()
    figure.savefig(GROWTH.with_suffix(".png"), dpi=120)
    print(GROWTH.with_suffix(".png"))


FRESH = """
import os, re, sys, time, warnings, pathlib, numpy as np
warnings.simplefilter("ignore")
sys.path.insert(0, {here!r})
from bench_large import NU, REFERENCES, rows
what, n, path, memory = {what!r}, {n}, {path!r}, {memory}
if what == "sklearn":
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDOneClassSVM
    from sklearn.pipeline import make_pipeline
    model = make_pipeline(Nystroem(gamma=0.025, n_components=REFERENCES, random_state=0), SGDOneClassSVM(nu=NU, random_state=0))
else:
    import refkernel as rk
    kernel = rk.ReferenceKernel(rk.RBF(gamma=0.025), references=rk.references.Subset(REFERENCES), random_state=0)
    model = rk.SVDD(kernel, nu=NU, memory=memory)
X = np.load(path, mmap_mode="r") if path else rows(n)
start = time.perf_counter()
model.fit(X)
seconds = time.perf_counter() - start
status = pathlib.Path("/proc/self/status").read_text()
peak = int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024
print(f"{{seconds:.1f}} s, {{peak:.0f}} MB", getattr(model, "duality_gap_", ""))
"""


def fresh(what, n, path="", memory=512):
    code = FRESH.format(here=str(Path(__file__).parent), what=what, n=n, path=str(path), memory=memory)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def saved(n, folder):
    """A .npy file of n rows, written in parts."""
    path = Path(folder) / f"{n}.npy"
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n, FEATURES))
    for start in range(0, n, 1_000_000):
        stop = min(start + 1_000_000, n)
        out[start:stop] = rows(stop - start, seed=start)
    out.flush()
    return path


def bench_memory(n=1_000_000):
    print(f"\nPeak memory of a new process that fits n = {n:,} (time, memory, gap)", flush=True)
    print(f"  Nystroem + SGDOneClassSVM, array  {fresh('sklearn', n)}", flush=True)
    print(f"  SVDD, array                       {fresh('ours', n)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = saved(n, folder)
        print(f"  SVDD, memory map, memory=200      {fresh('ours', n, path, 200)}", flush=True)


def bench_huge(n=10_000_000):
    print(f"\nn = {n:,} from a memory map, memory=512", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print(f"  SVDD  {fresh('ours', n, saved(n, folder), 512)}", flush=True)


BUSY = "while True:\n    sum(range(10**6))"


PLAIN = ((3_000, NU), (10_000, NU), (30_000, NU), (30_000, 0.01), (100_000, 0.01))
"""(n, nu): at n = 100,000 and nu = 0.1 LIBSVM takes 13 minutes."""


def bench_plain(problems=PLAIN, busy=False):
    print(f"\nPlain RBF kernel, d = {FEATURES}{', while another process keeps a core busy' if busy else ''} (s)")
    print(f"{'n':>9} {'nu':>5} {'SVDD':>18}{'OneClassSVM':>18}{'LIBSVM':>18}   ratios; processor seconds in brackets")
    other = subprocess.Popen([sys.executable, "-c", BUSY]) if busy else None
    try:
        for n, nu in problems:
            X = rows(n)
            sigma = rk.RBF(1.0).fit(X).sigma_
            models = {
                "svdd": rk.SVDD(rk.RBF(sigma=sigma), nu=nu),
                "ocsvm": rk.OneClassSVM(rk.RBF(sigma=sigma), nu=nu),
                "libsvm": SklearnOneClassSVM(gamma=0.5 / sigma**2, nu=nu, tol=1e-6),
            }
            t = best_costs({name: partial(model.fit, X) for name, model in models.items()}, max(45_000 // n, 1))
            costs = "".join(f"{f'{seconds:.3f} ({used:.3f})':>18}" for seconds, used in t.values())
            ratios = [t[name][k] / t["libsvm"][k] for k in range(2) for name in ("svdd", "ocsvm")]
            print(f"{n:>9,} {nu:>5} {costs}   {ratios[0]:.2f}, {ratios[1]:.2f} ({ratios[2]:.2f}, {ratios[3]:.2f})", flush=True)
    finally:
        if other is not None:
            other.terminate()
            other.wait()


def bench_references(n=1_000_000, m=200):
    print(
        f"\nReferences at n = {n:,}, m = {m}, d = {FEATURES}, 50 clusters: mean residual on 20,000 held-out rows (what the map cannot see)"
    )
    rng = np.random.default_rng(0)
    centres = 4.0 * rng.normal(size=(50, FEATURES))
    share = rng.dirichlet(np.full(50, 0.3))
    X = centres[rng.choice(50, n, p=share)] + rng.normal(size=(n, FEATURES))
    new = centres[rng.choice(50, 20_000, p=share)] + rng.normal(size=(20_000, FEATURES))
    sigma = float(rk.RBF(1.0).fit(X[:20_000]).sigma_)
    source = rk.sources.open_source(X)
    strategies = rk.references.Subset(m), rk.references.KMeans(m), rk.references.LeverageScores(m), rk.references.FarthestFirst(m)
    uniform = None
    for strategy in strategies:
        start = time.perf_counter()
        fitted = rk.ReferenceMap(rk.RBF(sigma=0.3 * sigma), references=strategy, random_state=0).fit(source)
        seconds = time.perf_counter() - start
        residual = fitted.residual(new).mean()
        uniform = uniform or residual
        print(f"  {type(strategy).__name__:>16} {residual:.4f} ({residual / uniform:.2f} × uniform), {seconds:.2f} s", flush=True)


def bench_dask(n=1_000_000):
    import dask.array as da
    from distributed import Client, LocalCluster

    print(f"\nDask: a LocalCluster of two processes with one thread each, n = {n:,}")
    references = rows(REFERENCES, seed=1)
    model = rk.SVDD(rk.ReferenceKernel(rk.RBF(gamma=0.025), references=references), nu=NU)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        X = da.random.default_rng(0).normal(size=(n, FEATURES), chunks=(n // 16, FEATURES)).persist()
        local = X.compute()
        new = rows(1000, seed=2)
        found = {}
        calls = {"dask": lambda: found.update(dask=model.fit(X).decision_function(new))}
        calls["local"] = lambda: found.update(local=model.fit(local).decision_function(new))
        t = best_times(calls, 3)
        before = peak_memory()
        model.fit(X)
        print(f"  Dask {t['dask']:.2f} s, local {t['local']:.2f} s, ratio {t['dask'] / t['local']:.2f}")
        print(f"  largest difference of decisions {np.abs(found['dask'] - found['local']).max():.1e}")
        print(f"  growth of the client's peak memory by one more fit: {peak_memory() - before:.0f} MB", flush=True)


def mixed_table(n, seed=0):
    """15 numbers, one with missing cells, 4 categories and a date."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    columns = {f"x{j}": rng.normal(size=n).round(4) * (j + 1) for j in range(12)}
    columns |= {f"i{j}": rng.integers(0, 500, n) for j in range(2)}
    columns |= {f"c{j}": np.array([f"level {k}" for k in range(5 + 5 * j)])[rng.integers(0, 5 + 5 * j, n)] for j in range(4)}
    columns["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300 * 86_400, n), unit="s")
    frame = pd.DataFrame(columns | {"amount": np.exp(rng.normal(size=n)).round(3)})
    frame.loc[rng.random(n) < 0.02, "x3"] = np.nan
    return frame


FIT = "from refkernel.cli import main; main()"
WATCHED = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, capture_output=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{time.perf_counter() - start:.0f} s, {used.ru_utime + used.ru_stime:.0f} processor s, {used.ru_maxrss / 1024:,.0f} MB")
"""


def bench_files(n=1_000_000):
    """The command itself, on a CSV and a Parquet file of n rows and 20 mixed columns."""
    print(f"\nrefkernel fit on a file of {n:,} rows and 20 columns: time and peak memory", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        frame = mixed_table(n)
        frame.to_parquet(f"{folder}/big.parquet", row_group_size=100_000)
        frame.to_csv(f"{folder}/big.csv", index=False)
        for name in ("big.parquet", "big.csv"):
            for model in ("auto", "svdd"):
                fit = ["fit", f"{folder}/{name}", "--out", f"{folder}/m.rk", "--model", model]
                watched = [sys.executable, "-c", WATCHED, sys.executable, "-c", FIT, *fit]
                run = subprocess.run(watched, capture_output=True, text=True, check=True)
                print(f"  {name:>12} --model {model:<5} {run.stdout.strip()}", flush=True)


def peak_memory():
    """The peak memory of this process in MB; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


TABLE = """
import re, sys, time, warnings, pathlib, numpy as np
warnings.simplefilter("ignore")
import refkernel as rk
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
what, path, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
kernel = rk.ReferenceKernel(rk.RBF(scale=0.1), references=rk.references.KMeans(200), center=False, random_state=0)
models = {
    "IsolationForest": lambda: IsolationForest(random_state=0),
    "ReferenceResidual": lambda: make_pipeline(rk.TargetScaler(), rk.ReferenceResidual(random_state=0)),
    "OneClassSVM": lambda: make_pipeline(rk.TargetScaler(), rk.OneClassSVM(kernel, nu=0.05)),  # far from all references its score is 0
    "AutoDetector": rk.AutoDetector,
}
data = np.load(path)
X, y = data["X"].astype(np.float64), data["y"]
normal = X[y == 0][::2]
start = time.perf_counter()
model = models[what]().fit(normal if what == "IsolationForest" else rk.sources.open_source(normal))
fitted = time.perf_counter() - start
some = np.arange(len(X)) if len(X) <= most else np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))
start = time.perf_counter()
auroc = roc_auc_score(y[some], -model.score_samples(X[some]))
scored = time.perf_counter() - start
peak = int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024
print(f"{auroc:.3f}  fit {fitted:6.1f} s  score {len(some):,} rows {scored:6.1f} s  {peak:,.0f} MB")
"""
LARGE_TABLES = ("skin", "http", "donors", "smtp", "shuttle")


def bench_tables(models=("ReferenceResidual", "OneClassSVM", "IsolationForest"), most=10**9):
    """Half of the normal rows for training, all rows scored, each model in a process of its own."""
    folder = Path(os.environ.get("REFKERNEL_DATA", "")) / "adbench"
    print("\nReal tables: AUROC, seconds, peak memory of a new process")
    for name in LARGE_TABLES:
        path = next(iter(sorted(folder.glob(f"*_{name}.npz"))), None)
        if path is None:
            print(f"  {name}: not found in {folder}")
            continue
        for model in models:
            run = subprocess.run([sys.executable, "-c", TABLE, model, path, str(most)], capture_output=True, text=True, check=True)
            print(f"  {name:>8} {model:>18}  {run.stdout.strip()}", flush=True)


PARTS = {
    "map": bench_map,
    "growth": bench_growth,
    "memory": bench_memory,
    "plain": bench_plain,
    "busy": lambda: bench_plain(busy=True),
    "references": bench_references,
    "dask": bench_dask,
    "files": bench_files,
    "tables": bench_tables,
    "auto": lambda: bench_tables(("AutoDetector",)),
    "plot": draw_growth,
    "huge": bench_huge,
}

SLOW = ("huge", "auto", "plot")
"""Parts that run only if they are named."""

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rk.SVDD().fit(np.eye(3))
    for part in sys.argv[1:] or [name for name in PARTS if name not in SLOW]:
        PARTS[part]()
