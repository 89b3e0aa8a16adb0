"""What does leaving every target out cost? `python benchmarks/bench_loo.py [--repeats 15]`.

The processor time of the exact leave-one-out of a classifier, all of its models solved, as a multiple of one warm fit in the same run
(the shortest of the repeats, fits and leave-one-outs in turn; two threads count twice), on Gaussian data of 5 features. The aim is at
most 3 fits at n = 100 and 10 at n = 1,000 where a fifth of the targets carry weight, and at most 40 where most do (narrow kernels).
"naive" is the number of refits that a loop over the targets with weight would take. With --large also the cost of ``threshold="loo"``
where folds are left out instead.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import refkernel as rk

CASES = (
    ("n = 100, a fifth with weight", 100, 3.0, 0.15, 3),
    ("n = 100, narrow", 100, 0.6, 0.1, 40),
    ("n = 1,000, a fifth with weight", 1000, 2.0, 0.2, 10),
    ("n = 1,000, most with weight", 1000, 0.4, 0.1, 40),
    ("n = 1,000, all with weight", 1000, 0.2, 0.1, 40),
)
"""Name, targets, width, nu, and the target for the ratio."""

LARGE = ((3000, 0.3), (6000, 0.3))
"""Targets and width of the fits of which only the threshold is timed."""


def seconds(work, clock=time.process_time) -> float:
    start = clock()
    work()
    return clock() - start


def shortest(repeats, *works):
    """The shortest time of each, run in turn after a first run that does not count: whatever else runs only adds to it."""
    for work in works:
        work()
    return np.min([[seconds(work) for work in works] for _ in range(repeats)], axis=0)


def ratio(make, n, sigma, nu, repeats):
    """Share of targets with weight, milliseconds of a fit and of leaving out, and their ratio."""
    X = np.random.default_rng(0).normal(size=(n, 5))
    model = make(rk.RBF(sigma=sigma), nu=nu).fit(X)
    fit, left_out = shortest(repeats, lambda: model.fit(X), lambda: model._leave_one_out(X))
    return model.support_.size / n, 1e3 * fit, 1e3 * left_out, left_out / fit


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--large", action="store_true", help="also time the threshold of thousands of targets")
    options = parser.parse_args()
    print(f"{'':34}{'':14}{'with weight':>12}{'fit, ms':>10}{'loo, ms':>10}{'ratio':>8}{'aim':>6}{'':>8}{'naive':>8}")
    for name, n, sigma, nu, aim in CASES:
        for make in (rk.SVDD, rk.OneClassSVM):
            share, fit, left_out, times = ratio(make, n, sigma, nu, options.repeats)
            line = f"{name:34}{make.__name__:14}{100 * share:>11.0f}%{fit:>10.2f}{left_out:>10.2f}{times:>8.1f}"
            print(f"{line}{aim:>6}{'met' if times <= aim else 'missed':>8}{share * n:>8.0f}", flush=True)
    for n, sigma in LARGE if options.large else ():
        X = np.random.default_rng(0).normal(size=(n, 5))
        training, loo = (rk.SVDD(rk.RBF(sigma=sigma), nu=0.1, threshold=threshold) for threshold in ("training", "loo"))
        fit, both = (seconds(lambda model=model, X=X: model.fit(X), time.perf_counter) for model in (training, loo))
        print(
            f'n = {n:,}: threshold="training" {fit:.1f} s, "loo" {both:.1f} s, {100 * training.support_.size / n:.0f} % with weight',
            flush=True,
        )


if __name__ == "__main__":
    main()
