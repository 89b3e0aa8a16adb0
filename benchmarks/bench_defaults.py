"""Detectors with their defaults, on the article's tasks: `python benchmarks/bench_defaults.py`.

Average Gmean (%) over all tasks and splits; the authors' 14 tasks if REFKERNEL_DATA names their data, else the 10 embedded ones.
SVDD is also run with settings around its default, which should be no worse than they are.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

import refkernel as rk
from refkernel.datasets import N_SPLITS, list_tasks, load_task
from refkernel.metrics import gmean_score


def detectors():
    """Name -> a new detector; defaults are written as a user would write them."""
    return {
        "rk.SVDD()": rk.SVDD(),
        "rk.OneClassSVM()": rk.OneClassSVM(),
        "rk.ESVDD()": rk.ESVDD(),
        "rk.ReferenceResidual()": rk.ReferenceResidual(random_state=0),
        "sklearn OneClassSVM()": OneClassSVM(),
        "sklearn IsolationForest()": IsolationForest(random_state=0),
        "sklearn LocalOutlierFactor(novelty=True)": LocalOutlierFactor(novelty=True),
        "sklearn EllipticEnvelope()": EllipticEnvelope(random_state=0),
        **{
            f"SVDD, RBF(scale={scale:g}), nu={nu:g}": rk.SVDD(rk.RBF(scale=scale), nu=nu)
            for scale in (0.3, 3.0, 10.0)
            for nu in (0.05, 0.1, 0.2)
        },
        **{
            f"SVDD, case 2, RBF(scale={scale:g})": rk.SVDD(rk.ReferenceKernel(rk.RBF(scale=scale), "case2", random_state=0))
            for scale in (1.0, 3.0, 10.0)
        },
    }


def main():
    splits = "authors" if os.environ.get("REFKERNEL_DATA") else "embedded"
    scores: dict[str, list[float]] = {}
    for task in list_tasks(splits):
        for split in range(N_SPLITS):
            data = load_task(task.name, split, splits=splits)
            for name, model in detectors().items():
                predicted = model.fit(data.X_train[data.y_train == 1]).predict(data.X_test)
                scores.setdefault(name, []).append(gmean_score(data.y_test, predicted))
    print(f"Average Gmean (%) with nothing tuned, {len(list_tasks(splits))} tasks × {N_SPLITS} splits ({splits})")
    for name, values in sorted(scores.items(), key=lambda item: -np.mean(item[1])):
        print(f"  {100 * np.mean(values):5.1f}  {name}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
