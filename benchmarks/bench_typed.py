"""What users type, with nothing chosen, beside what they would use instead: `python benchmarks/bench_typed.py [largest n] [--plot]`.

Processor seconds of fit and milliseconds of score_samples for each of 10,000 new rows, d = 20, n = 100 … 100,000 (or the largest n given),
and peak memory of the fit; in brackets the multiple of IsolationForest in the same run. AutoDetector is also fitted on a source, whose
blocks are made when they are read, and on a Dask array. A detector is not run with more rows if that would take more than LONGEST seconds,
as its last two sizes show. Each fit runs in a process of its own, after one of 100 rows that compiles. Last: one row of an array at a time,
and of a table with categories. `--plot` draws typed.png.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
COLUMNS, NEW_ROWS, LONGEST = 20, 10_000, 60.0
NAMES = (
    "IsolationForest()",
    "LocalOutlierFactor(novelty=True)",
    "sklearn OneClassSVM()",
    "rk.AutoDetector()",
    "rk.ReferenceResidual()",
    "rk.SVDD()",
    "rk.AutoDetector(), source",
    "rk.AutoDetector(), Dask array",
)
BLOCK = 100_000  # rows of a block of a source or a Dask array


def detector(name):
    """The detector of a name."""
    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import LocalOutlierFactor
    from sklearn.svm import OneClassSVM

    import refkernel as rk

    made = (
        IsolationForest(random_state=0),
        LocalOutlierFactor(novelty=True),
        OneClassSVM(),
        rk.AutoDetector(),
        rk.ReferenceResidual(random_state=0),
    )
    return (*made, rk.SVDD(), rk.AutoDetector(), rk.AutoDetector())[NAMES.index(name)]


def given(name, n):
    """The training rows as a detector takes them."""
    blocks = [(min(BLOCK, n - start), start) for start in range(0, n, BLOCK)]
    if "source" in name:
        import refkernel as rk

        return rk.sources.open_source(lambda: (rows(*block) for block in blocks))
    if "Dask" in name:
        import dask
        import dask.array as da

        dask.config.set(scheduler="single-threaded")
        return da.concatenate([da.from_delayed(dask.delayed(rows)(*block), (block[0], COLUMNS), float) for block in blocks])
    return rows(n)


def rows(n, seed=0):
    """n rows of two clusters in 20 correlated columns."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(1).normal(size=(COLUMNS, COLUMNS)) / 4 + np.eye(COLUMNS)
    return rng.normal(size=(n, COLUMNS)) @ mixing + 3.0 * rng.integers(2, size=(n, 1))


def seconds(name, n, queue):
    """Fit and score seconds of the processor, and the fit's peak in MB above that of a fit of 100 rows; into the queue."""
    warnings.simplefilter("ignore")
    model, X, new = detector(name), given(name, n), rows(NEW_ROWS, 2)
    detector(name).fit(rows(100)).score_samples(new[:10])
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    model.fit(X)
    fitted, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    model.score_samples(new)
    queue.put((fitted, (time.process_time() - start) / NEW_ROWS * 1e3, (peak - before) / 1024))


def apart(name, n):
    """`seconds` in a process of its own; None if it did not finish (no memory)."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=seconds, args=(name, n, queue))
    process.start()
    while process.is_alive() and queue.empty():
        time.sleep(0.05)
    found = queue.get(timeout=10) if not queue.empty() or process.exitcode == 0 else None
    process.join()
    return found


def one_row():
    """Milliseconds of one row at a time, n = 1,000: of an array, and of a table with three categories."""
    import pandas as pd
    from sklearn.ensemble import IsolationForest

    import refkernel as rk

    X, rng = rows(1_000), np.random.default_rng(0)
    frame = pd.DataFrame(X[:, :13], columns=[f"x{j}" for j in range(13)]).assign(
        **{f"c{j}": rng.integers(100, size=1_000).astype(str) for j in range(3)}
    )
    for name, model, data, times in (
        ("IsolationForest()", IsolationForest(random_state=0), X, 100),
        ("rk.AutoDetector()", rk.AutoDetector(), X, 1_000),
        ("rk.TableDetector()", rk.TableDetector(), frame, 100),
    ):
        model.fit(data)
        single = [data[i : i + 1] for i in range(times)]
        model.score_samples(single[0])
        start = time.process_time()
        for row in single:
            model.score_samples(row)
        print(f"  {(time.process_time() - start) / times * 1e3:8.2f} ms  {name}")


def draw(found):
    """typed.png: seconds of fit, milliseconds of a row, and memory against n."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained")
    for axis, place, label in zip(axes, range(3), ("fit (processor seconds)", "score (ms a row)", "memory of the fit (MB)"), strict=True):
        for number, name in enumerate(NAMES):
            points = [(n, facts[place]) for (of, n), facts in found.items() if of == name and facts[place] > 0]
            if not points:
                continue
            axis.loglog(
                *zip(*points, strict=True),
                color=f"C{number}",
                marker="o",
                ms=4,
                lw=2.2 if "Auto" in name else 1.2,
                ls="-" if name.startswith("rk") else "--",
                label=name,
            )
        axis.set(xlabel="training rows", ylabel=label)
        axis.grid(color="0.9")
    axes[2].set_ylim(bottom=1.0)  # less is the noise of the measurement
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig("typed.png", dpi=150)


def main(largest=100_000, plot=False):
    found, given_up = {}, set()
    for n in (n for n in SIZES if n <= largest):
        print(f"n = {n:,}: fit (s), score (ms a row), memory (MB)", flush=True)
        for name in NAMES:
            facts = None if name in given_up else apart(name, n)
            if facts is None:
                print(f"  {'not run' if name in given_up else 'failed':>40}  {name}", flush=True)
                given_up.add(name)
                continue
            found[name, n] = facts
            peer = found["IsolationForest()", n]
            print(
                "  " + "  ".join(f"{f:10.3f} ({f / max(p, 1e-9):6.1f} x)" for f, p in zip(facts[:2], peer, strict=False)),
                f"{facts[2]:8.0f}  {name}",
                flush=True,
            )
            before = found.get((name, n // 10), facts)[0]
            if facts[0] * max(facts[0] / max(before, 1e-3), 1.0) > LONGEST:
                given_up.add(name)
    print("One row at a time, n = 1,000:")
    one_row()
    if plot:
        draw(found)
        print(f"Drawing: {Path('typed.png').resolve()}")


if __name__ == "__main__":
    sizes = [int(float(text)) for text in sys.argv[1:] if text != "--plot"]
    main(*sizes, plot="--plot" in sys.argv)
