"""How often the bounds of ``false_alarm_band`` hold at all thresholds together, by simulation: real detectors, and the band alone.

``python tests/bands.py`` prints the tables of docs/promises.md; tests/test_band.py takes a few of them.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import refkernel as rk
from refkernel.detectors.calibration import FalseAlarmBand

NEW_ROWS = 20_000
"""Rows that measure the rates of one fit: the standard error is 0.15 points at a rate of 5 %."""

SLACK = 3.0
"""Standard errors by which a measured rate may be beyond a bound: at thousands of thresholds some are, for the new rows alone."""

DETECTORS = {
    "AutoDetector, folds": lambda: rk.AutoDetector(0.2),
    'ConformalDetector(SVDD), "cv"': lambda: rk.ConformalDetector(rk.SVDD(), 0.2, method="cv", random_state=0),
    'ConformalDetector(SVDD), "loo"': lambda: rk.ConformalDetector(rk.SVDD(), 0.2, method="loo", random_state=0),
    'ConformalDetector(SVDD), "split"': lambda: rk.ConformalDetector(rk.SVDD(), 0.2, method="split", calibration_size=0.5, random_state=0),
}


def uniform(n: int, runs: int, confidence: float = 0.95) -> float:
    """The share of runs in which the band of n uniform scores holds the rate of every threshold, which is the threshold itself."""
    rng, held = np.random.default_rng(n), 0
    for _ in range(runs):
        u = np.sort(rng.random(n))
        cuts = np.concatenate([u, np.nextafter(u, 1.0)])
        low, high = FalseAlarmBand(u, confidence).at(cuts)
        held += bool(((low <= cuts) & (cuts <= high)).all())
    return held / runs


def wrong(n: int, m: int, outliers: int, runs: int, confidence: float = 0.95) -> float:
    """The share of runs in which the bound of the share of wrong calls holds at every cut of m rows, some of them clear outliers."""
    rng, held = np.random.default_rng(n + m), 0
    for _ in range(runs):
        scores = np.concatenate([rng.random(m - outliers), -1.0 - rng.random(outliers)])
        order = np.argsort(scores)
        share = np.cumsum(order < m - outliers) / np.arange(1, m + 1)
        held += bool((share <= FalseAlarmBand(np.sort(rng.random(n)), confidence).wrong_share(scores)[order] + 1e-12).all())
    return held / runs


def of_detector(make, n: int, runs: int, columns: int = 3, new_rows: int = NEW_ROWS) -> tuple[float, float, float]:
    """The shares of fits to n rows in which the lower, the upper, and the bounds of wrong calls hold, each at all thresholds.

    The latter are of 100 normal rows and 20 clear outliers; NaN where several models score a row.
    """
    held = np.zeros(3)
    for run in range(runs):
        rng = np.random.default_rng(run)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            detector = make().fit(rng.normal(size=(n, columns)))
        p, band = detector.p_values(rng.normal(size=(new_rows, columns))), detector.false_alarm_band()
        size = len(band.calibration)
        cuts = np.arange(1, size + 1) / (size + 1)
        rate = np.searchsorted(np.sort(p), cuts * (1 + 1e-9), side="right") / new_rows
        low, high = band.at(p_value=cuts)
        low, high = (end + side * SLACK * np.sqrt(end * (1 - end) / new_rows) for end, side in ((low, -1), (high, 1)))
        wrong = np.nan
        if band.scored_by != "models":
            normal = detector.score_samples(rng.normal(size=(100, columns)))
            scores = np.sort(np.concatenate([np.full(20, min(normal.min(), band.calibration[0]) - 1.0), normal]))
            share = np.maximum(np.arange(1, 121) - 20, 0) / np.arange(1, 121)
            wrong = (share <= band.wrong_share(scores) + 1e-12).all()
        held += (low <= rate).all(), (rate <= high).all(), wrong
    return tuple(map(float, held / runs))


def main(runs: int = 200) -> None:
    """Print the tables."""
    levels = (0.9, 0.95, 0.999)
    print("| n | 90 % | 95 % | 99.9 % |\n| --- | --- | --- | --- |")
    for n in (35, 100, 1_000, 10_000):
        print(f"| {n:,} | " + " | ".join(f"{uniform(n, 10 * runs, level):.1%}" for level in levels) + " |", flush=True)
    print("\n| n, m | 90 % | 95 % | 99.9 % |\n| --- | --- | --- | --- |")
    for n, m in ((35, 100), (200, 120), (1_000, 1_000), (10_000, 1_000)):
        print(f"| {n:,}, {m:,} | " + " | ".join(f"{wrong(n, m, 20, 10 * runs, level):.1%}" for level in levels) + " |", flush=True)
    print("\n| detector | rates, n = 60 | n = 200 | wrong calls, n = 60 | n = 200 |\n| --- | --- | --- | --- | --- |")
    for name, make in DETECTORS.items():
        found = [of_detector(make, n, runs) for n in (60, 200)]
        cells = [min(each[:2]) for each in found] + [each[2] for each in found]
        print(f"| {name} | " + " | ".join("" if np.isnan(cell) else f"{cell:.1%}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
