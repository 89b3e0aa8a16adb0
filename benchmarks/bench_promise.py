"""Is the false-alarm rate kept on new targets? `REFKERNEL_DATA=<folder> python benchmarks/bench_promise.py [--rows 300] [--seeds 2]`.

ADBench's tables by the clean protocol: half of the targets train (at most --rows), the others test. For each detector and
method: the share of rejected test targets (%) at rates of 1, 5 and 10 %, averaged over the tables, next to the average promise; how
many tables deviate by more than 3 standard errors of training and test (Beta and binomial); false discoveries and outliers found by
select(fdr=0.1) on test rows of which at most a tenth are outliers; and seconds. A rate that a table's rows cannot promise is left out.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import refkernel as rk
from refkernel.detectors.calibration import least_rate

RATES = (0.01, 0.05, 0.1)
MOST_TEST_ROWS = 2000
MOST_FEATURES = 300
"""Wider tables are left out, to keep this quick."""


def detectors():
    """Name -> a detector, and the methods to try it with."""
    methods = ({"method": "split"}, {"method": "cv"}, {"method": "cv", "scored_by": "full"})
    return {
        "rk.SVDD()": (rk.SVDD(), (*methods, {"method": "loo"})),
        "rk.SVDD(RBF(scale=0.03))": (rk.SVDD(rk.RBF(scale=0.03)), (*methods, {"method": "loo"})),
        "IsolationForest()": (IsolationForest(n_estimators=50, random_state=0), methods),
        "LocalOutlierFactor()": (LocalOutlierFactor(novelty=True), methods),
    }


def tables(folder):
    """Name, targets and outliers of every table, without constant columns."""
    for path in sorted(Path(folder, "adbench").glob("*.npz")):
        with np.load(path) as data:
            X, y = data["X"].astype(np.float64), data["y"]
        if X.shape[1] <= MOST_FEATURES:
            X = X[:, np.ptp(X, axis=0) > 0]
            yield path.stem, X[y == 0], X[y == 1]


def one_split(normals, outliers, rows, seed):
    """Training rows, test targets, test outliers."""
    rng = np.random.default_rng(seed)
    normals, outliers = rng.permutation(normals), rng.permutation(outliers)
    half = len(normals) // 2
    return normals[:half][:rows], normals[half:][:MOST_TEST_ROWS], outliers[:MOST_TEST_ROWS]


def measured(estimator, parameters, train, normals, outliers, seed):
    """One row of figures: (rejected, promised, deviation in standard errors) by rate, discoveries, seconds."""
    start = time.perf_counter()
    detector = rk.ConformalDetector(make_pipeline(StandardScaler(), estimator), 0.3, random_state=seed, **parameters).fit(train)
    n = detector.calibration_scores_.size
    by_rate = {}
    for rate in RATES:
        if least_rate(n) <= rate:
            promised = (moved := detector.with_false_alarm_rate(rate)).false_alarm_rate_
            rejected = float(np.mean(moved.predict(normals) == -1))
            error = np.sqrt(promised * (1 - promised) * (1 / (n + 2) + 1 / len(normals)))
            by_rate[rate] = rejected, promised, (rejected - promised) / error
    few = max(1, min(len(outliers), len(normals) // 9))
    chosen = detector.select(np.vstack([normals, outliers[:few]]), fdr=0.1)
    false = chosen[: len(normals)].sum() / max(1, chosen.sum())
    return by_rate, false, chosen[len(normals) :].mean(), time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    if not os.environ.get("REFKERNEL_DATA"):
        raise SystemExit("REFKERNEL_DATA must name a folder that holds adbench/*.npz (X, y), ADBench's classical tables.")
    data = list(tables(os.environ["REFKERNEL_DATA"]))
    print(f"{len(data)} tables, at most {options.rows} training rows, {options.seeds} seeds: rejected / promised (%), [deviating tables]")
    print(f"{'detector':26}{'method':10}" + "".join(f"{f'{100 * rate:g} %':>20}" for rate in RATES) + f"{'false':>9}{'found':>8}{'s':>8}")
    for name, (estimator, methods) in detectors().items():
        for parameters in methods:
            found = [
                [measured(estimator, parameters, *one_split(N, A, options.rows, seed), seed) for seed in range(options.seeds)]
                for _, N, A in data
            ]
            print(f"{name:26}{'/'.join(parameters.values()):10}" + line(found), flush=True)


def line(found):
    """The figures of all tables in one line."""
    text = ""
    for rate in RATES:
        cells = [[row[0][rate] for row in table if rate in row[0]] for table in found]
        cells = [np.mean(cell, axis=0) * [1, 1, np.sqrt(len(cell))] for cell in cells if cell]
        if not cells:
            text += f"{'-':>20}"
            continue
        rejected, promised, _ = 100 * np.mean(cells, axis=0)
        text += f"{f'{rejected:.1f} / {promised:.1f} [{sum(abs(z) > 3 for *_, z in cells)} of {len(cells)}]':>20}"
    false, power, seconds = np.mean([row[1:] for table in found for row in table], axis=0)
    return text + f"{100 * false:>8.1f}%{100 * power:>7.0f}%{seconds:>8.2f}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
