"""Score a large CSV file with `refkernel score`'s own function: `python benchmarks/bench_score.py [--rows 1000000] [--explain 3]`.

Prints where the time goes (reading, computing, writing), rows per second, and the peak memory of a process that does only this. Then the
same decisions computed by ONNX Runtime in float32 and by this package, in turn, in one run; the ratio is what counts. With `--explain` the
file is scored without and with that many reasons of each flagged row, in turn, and the ratio of the times is printed instead.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

import refkernel as rk
from refkernel.references import Subset
from refkernel.tabular.readers import ReadOptions, open_table
from refkernel.tabular.scoring import load_table_model, score_file

FEATURES, REFERENCES, TRAINING_ROWS = 20, 100, 2_000
NAMES = [f"x{number}" for number in range(FEATURES)]
WRITTEN_ROWS = 50_000
"""Rows of the file that are generated at a time."""

MOST_MEGABYTES = 500
"""A file of any size is scored in less memory than this."""

COMPARED_ROWS = 200_000
ROUNDS = 5


def make_table(path, rows):
    """A CSV file of normal draws with six digits, as instruments write them."""
    rng = np.random.default_rng(0)
    for start in range(0, rows, WRITTEN_ROWS):
        block = pd.DataFrame(rng.normal(size=(min(WRITTEN_ROWS, rows - start), FEATURES)), columns=NAMES)
        block.to_csv(path, mode="a", header=start == 0, index=False, float_format="%.6f")


def make_model(path):
    """A saved model as `refkernel fit` makes them, on 100 references."""
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(TRAINING_ROWS, FEATURES)), columns=NAMES)
    kernel = rk.ReferenceKernel(rk.RBF(10.0), Subset(REFERENCES), random_state=0)
    model = rk.TableDetector(rk.SVDD(kernel, nu=0.1)).fit(X)
    model.save(path)
    return model


def score_alone(model, table, out, explain):
    """In this process: seconds, rows, flagged ones, and the peak memory in MB."""
    saved = load_table_model(Path(model))
    start = time.perf_counter()
    result = score_file(saved, open_table(Path(table), ReadOptions()), Path(out), explain=explain)
    seconds = time.perf_counter() - start
    found = {"rows": result.rows, "flagged": result.outliers, "seconds": seconds, "peak": peak_megabytes()}
    print(json.dumps(found))


def peak_megabytes():
    """The peak memory of this process. (On Linux ru_maxrss would count the memory of the process that started it.)"""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def bench_file(folder, rows, explain=0):
    table, model = folder / "table.csv", folder / "model.rk"
    make_table(table, rows)
    make_model(model)
    seconds = [bench_process(model, table, folder / "scores.csv", count) for count in ((0, explain, 0) if explain else (0,))]
    if explain:
        print(f"--explain {explain} takes {seconds[1] / np.mean(seconds[::2]):.2f} times as long as scoring (before and after it)")


def bench_process(model, table, out, explain):
    """The seconds of a process that does only this."""
    command = [sys.executable, __file__, "--explain", str(explain), "--alone", str(model), str(table), str(out)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    total, size = found["seconds"], table.stat().st_size / 1e6
    reasons = f", {found['flagged']:,} of them flagged, with {explain} reasons each," if explain else ""
    print(f"{found['rows']:,} rows × {FEATURES} columns ({size:.0f} MB){reasons} scored on {REFERENCES} references in {total:.2f} s")
    print(f"{found['rows'] / total:,.0f} rows a second, peak memory {found['peak']:.0f} MB (limit {MOST_MEGABYTES} MB)")
    if found["peak"] > MOST_MEGABYTES:
        sys.exit(f"The peak memory of {found['peak']:.0f} MB is over the limit of {MOST_MEGABYTES} MB.")
    return total


def bench_onnx(rows):
    """Computing only: scaler and classifier on arrays, ours in float64 and ONNX Runtime in float32."""
    try:
        import onnxruntime

        from refkernel.export.onnx import to_onnx
    except ImportError as error:
        print(f"No comparison with ONNX Runtime: {error}")
        return
    X = np.random.default_rng(2).normal(size=(rows, FEATURES))
    kernel = rk.ReferenceKernel(rk.RBF(10.0), Subset(REFERENCES), random_state=0)
    model = Pipeline([("scale", rk.TargetScaler()), ("model", rk.SVDD(kernel, nu=0.1))]).fit(X[:TRAINING_ROWS])
    X32 = X.astype(np.float32)
    session = onnxruntime.InferenceSession(to_onnx(model, X32[:1]).SerializeToString(), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    calls = {"ours, float64": partial(model.decision_function, X), "ONNX Runtime, float32": partial(session.run, ["scores"], {name: X32})}
    times = {what: [] for what in calls}
    for _ in range(ROUNDS):
        for what, call in calls.items():
            start = time.perf_counter()
            call()
            times[what].append(time.perf_counter() - start)
    ours, theirs = (min(values) for values in times.values())
    for what, values in times.items():
        print(f"{what:<22} {rows / min(values):>12,.0f} rows a second")
    difference = np.abs(np.ravel(session.run(["scores"], {name: X32})[0]) - model.decision_function(X)).max()
    print(f"ours takes {ours / theirs:.2f} of ONNX Runtime's time; decisions differ by {difference:.1e} at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--alone", nargs=3, metavar=("MODEL", "TABLE", "OUT"), help="score in this process (used by the benchmark itself)")
    parser.add_argument("--explain", type=int, default=0, help="compare with this many reasons of each flagged row")
    arguments = parser.parse_args()
    if arguments.alone:
        score_alone(*arguments.alone, arguments.explain)
        return
    with tempfile.TemporaryDirectory() as folder:
        bench_file(Path(folder), arguments.rows, arguments.explain)
    if not arguments.explain:
        bench_onnx(min(arguments.rows, COMPARED_ROWS))


if __name__ == "__main__":
    main()
