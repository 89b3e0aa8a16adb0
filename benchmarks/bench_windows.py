"""Faults in a simulated pump loop, on windows and on single rows: `python benchmarks/bench_windows.py`.

Five signals of 9,000 rows: a load that swings and wanders, a temperature that follows it, a vibration, a noise and a voltage. The first
6,000 rows train, in windows that do not overlap. Each fault lasts 300 of the last 3,000 rows. AUROC of windows of 60 rows that lie
mostly in the fault (of rows, for single rows) against all others, mean of four draws; and the share of normal windows that AutoDetector
flags at a rate of 5 %.
"""

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

import refkernel as rk

LENGTH, TRAIN, FAULT = 60, 6_000, slice(1_200, 1_500)


def loop(rng, n=9_000):
    """The signals without a fault."""
    t = np.arange(n)
    load = np.sin(2 * np.pi * t / 600) + 0.3 * np.cumsum(rng.normal(0, 0.02, n))
    vibration = np.abs(load) + rng.normal(0, 0.1, n) + 0.3 * np.sin(2 * np.pi * t / 9)
    noise = [rng.normal(0, scale, n) for scale in (0.1, 0.2, 0.3, 1.0)]
    return np.column_stack([load + noise[0], 20 + 2 * load + noise[1], vibration, noise[2], 220 + noise[3]])


def stuck(X, rng):
    X[:, 1] = X[0, 1]


def new_vibration(X, rng):
    X[:, 2] += 0.25 * np.sin(2 * np.pi * np.arange(len(X)) / 4)


def decoupled(X, rng):
    X[:, 1] = 20 + 2 * np.sin(2 * np.pi * np.arange(len(X)) / 600 + 2) + rng.normal(0, 0.2, len(X))


def leak(X, rng):
    X[:, 0] -= np.linspace(0, 0.8, len(X))


def noisier(X, rng):
    X[:, 3] *= 2


def measured(fault, seed):
    """AUROC of AutoDetector and IsolationForest on windows, of both on rows; and the share of normal windows that is flagged."""
    rng = np.random.default_rng(seed)
    X = loop(rng)
    train, new = X[:TRAIN], X[TRAIN:].copy()
    fault(new[FAULT], rng)
    A, B = rk.windows(train, LENGTH, LENGTH).to_numpy(), rk.windows(new, LENGTH)
    inside = np.array([min(w.right, FAULT.stop - 1) - max(w.left, FAULT.start) + 1 > LENGTH / 2 for w in B.index])
    rows = (np.arange(len(new)) >= FAULT.start) & (np.arange(len(new)) < FAULT.stop)
    B = B.to_numpy()
    detector, forest = rk.AutoDetector().fit(A), IsolationForest(random_state=0)
    of_windows = [roc_auc_score(inside, -model.score_samples(B)) for model in (detector, forest.fit(A))]
    of_rows = [roc_auc_score(rows, -model.fit(train).score_samples(new)) for model in (rk.AutoDetector(), forest)]
    return [*of_windows, *of_rows, np.mean(detector.predict(B[~inside]) == -1)]


if __name__ == "__main__":
    print(
        "| fault | AutoDetector, windows | IsolationForest, windows | AutoDetector, rows | IsolationForest, rows | normal windows flagged |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for fault in (stuck, new_vibration, decoupled, leak, noisier):
        found = 100 * np.mean([measured(fault, seed) for seed in range(4)], axis=0)
        print(f"| {fault.__name__.replace('_', ' ')} | " + " | ".join(f"{value:.0f}" for value in found) + " |")
