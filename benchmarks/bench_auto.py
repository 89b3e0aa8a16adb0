"""What AutoDetector promises, measured: `python benchmarks/bench_auto.py tables|tasks|contamination|large`.

tables: ADBench's tables by the clean protocol (half of the normal rows train, at most --most-rows of them; --most-rows 0 takes all). The
share of new normal rows that wishes of 1, 5 and 10 % reject; and false discoveries of select(fdr=0.1) on draws of 450 new normal rows
and 50 outliers. A rate whose threshold is the k-th of n calibrating rows is distributed as Beta(k, n + 1 - k), so the rejected rows of t
new ones follow a beta-binomial distribution: a table is off where its count lies outside the central part of it, at a level of 5 %
divided by the number of tables and seeds (Bonferroni). Tables with fewer than 500 training rows are shown, not judged.

tasks: the article's tasks (REFKERNEL_DATA: the authors' splits; else the embedded ones): AUROC, rejected new normals and Gmean of
decisions. No label is used for anything but the test.

contamination: outliers among the training rows, against IsolationForest and kNN. Half of the outliers (at most 1,000) may hide among the
training rows, the other half tests; a share that needs more outliers than a table has is left out for this table.

large: seconds at n = 1,000 and 100,000, d = 20; in brackets those of all processors together.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import betabinom
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

import refkernel as rk
from refkernel.datasets import N_SPLITS, list_tasks, load_task
from refkernel.detectors.calibration.promise import benjamini_hochberg, least_rate
from refkernel.experiments.benchmark.tables import chosen, find_tables, split_rows
from refkernel.metrics import gmean_score

RATES = (0.01, 0.05, 0.1)
LEVEL = 0.05
JUDGED = 500
"""Tables of at least this many training rows are judged."""

FDR, NORMALS, OUTLIERS, DRAWS = 0.1, 450, 50, 20
SHARES = (0.0, 0.01, 0.05, 0.1)
MOST_TEST_ROWS = 10_000
MOST_WITH_CONTAMINATION = 1000
"""Test rows of each kind beside contaminated training rows, for which there are more detectors to fit."""


def rejections(detector, normals):
    """By rate: rejected rows, rows, the expected rate, and the probability of a count so far out (two-sided)."""
    n, t, found = detector.calibration_.size, len(normals), {}
    score = detector.score_samples(normals)
    for rate in RATES:
        if least_rate(n) <= rate:
            moved = detector.with_false_alarm_rate(rate)
            count, rank = int((score < moved.offset_).sum()), round(moved.false_alarm_rate_ * (n + 1))
            law = betabinom(t, rank, n + 1 - rank)
            found[rate] = count, t, moved.false_alarm_rate_, min(1.0, 2.0 * min(law.cdf(count), law.sf(count - 1)))
    return found


def discoveries(detector, normals, outliers, seed):
    """The average share of false discoveries and of outliers found, over draws."""
    if len(normals) < NORMALS or len(outliers) < OUTLIERS or detector.calibration_.size < JUDGED:
        return None
    rng = np.random.default_rng(seed)
    p = [detector.p_values(rows) for rows in (normals, outliers)]
    found = []
    for _ in range(DRAWS):
        mixed = np.concatenate([rng.choice(p[0], NORMALS, replace=False), rng.choice(p[1], OUTLIERS, replace=False)])
        called = benjamini_hochberg(mixed, FDR)
        found.append((called[:NORMALS].sum() / max(1, called.sum()), called[NORMALS:].mean()))
    return np.mean(found, axis=0)


def tables(options):
    sources = chosen(find_tables(), tuple(options.tables.split(",")) if options.tables else ())
    rows, discovered = [], {}
    for source in sources:
        X, is_outlier, _ = source.read()
        for seed in range(options.seeds):
            train, test = split_rows(is_outlier, seed, options.most_rows or len(X), MOST_TEST_ROWS)
            detector = rk.AutoDetector(0.3).fit(X[train])
            normals, outliers = X[test][~is_outlier[test]], X[test][is_outlier[test]]
            found = rejections(detector, normals)
            rows += [(source.name, seed, len(train), rate, *values) for rate, values in found.items()]
            shares = discoveries(detector, normals, outliers, seed)
            if shares is not None:
                discovered.setdefault(source.name, []).append(shares)
            shown = "  ".join(f"{100 * rate:g} %: {100 * c / t:5.2f} (p {p:.3f})" for rate, (c, t, _, p) in found.items())
            fdr = "" if shares is None else f"  false {100 * shares[0]:5.1f} %, found {100 * shares[1]:5.1f} %"
            print(f"{source.name:14}{seed:2} n = {len(train):7,}  {shown}{fdr}", flush=True)
    promised(rows)
    if discovered:
        means = np.array([np.mean(values, axis=0) for values in discovered.values()])
        error = means[:, 0].std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
        print(
            f"select(fdr={FDR:g}) on {len(means)} tables: false discoveries {100 * means[:, 0].mean():.1f} ± {100 * error:.1f} % "
            f"(at most {100 * FDR * NORMALS / (NORMALS + OUTLIERS):.0f} expected), outliers found {100 * means[:, 1].mean():.1f} %"
        )


def promised(rows):
    """One line for each rate."""
    for rate in RATES:
        part = [row for row in rows if row[3] == rate]
        by_table = {}
        for name, _, _, _, count, t, _, _ in part:
            by_table.setdefault(name, []).append(count / t)
        means = np.array([np.mean(values) for values in by_table.values()])
        judged = [row for row in part if row[2] >= JUDGED]
        off = [f"{row[0]} {row[1]}" for row in judged if row[-1] < LEVEL / len(judged)]
        loose = sum(row[-1] < LEVEL for row in judged)
        print(
            f"wish {100 * rate:g} %: {100 * means.mean():.2f} % rejected on average of {len(means)} tables; of {len(judged)} tables and "
            f"seeds with n >= {JUDGED}, off: {len(off)} {off or ''}; outside the plain 95 % interval: {loose} "
            f"(expected {LEVEL * len(judged):.0f})"
        )


def detectors():
    """Name -> a new detector, for the tasks."""
    nus = {"nu": [0.02, 0.05, 0.1, 0.2, 0.3, 0.4]}
    return {
        'rk.AutoDetector("balanced")': lambda: rk.AutoDetector("balanced"),
        "rk.AutoDetector()": lambda: rk.AutoDetector(),
        "rk.AutoDetector(0.1)": lambda: rk.AutoDetector(0.1),
        "rk.AutoDetector(0.2)": lambda: rk.AutoDetector(0.2),
        "rk.OneClassGridSearch(rk.SVDD(), nu)": lambda: rk.OneClassGridSearch(rk.SVDD(), nus, random_state=0),
        "rk.SVDD()": lambda: rk.SVDD(),
        "rk.ReferenceResidual()": lambda: rk.ReferenceResidual(random_state=0),
        "IsolationForest(contamination=0.1)": lambda: IsolationForest(contamination=0.1, random_state=0),
    }


def tasks(options):
    splits = "authors" if os.environ.get("REFKERNEL_DATA") else "embedded"
    print(f"{len(list_tasks(splits))} tasks × {N_SPLITS} splits ({splits}), %: AUROC, new normals rejected, Gmean")
    for name, make in detectors().items():
        found = []
        for task in list_tasks(splits):
            for split in range(N_SPLITS):
                data = load_task(task.name, split, splits=splits)
                model = make().fit(data.X_train[data.y_train == 1])
                predicted, normal = model.predict(data.X_test), data.y_test == 1
                found.append((roc_auc_score(normal, model.decision_function(data.X_test)), np.mean(predicted[normal] == -1)))
                found[-1] += (gmean_score(data.y_test, predicted),)
        print(f"{name:40}" + "".join(f"{100 * value:8.1f}" for value in np.mean(found, axis=0)), flush=True)


def nearest(train, test, k):
    scaler = StandardScaler().fit(train)
    distances, _ = NearestNeighbors(n_neighbors=k).fit(scaler.transform(train)).kneighbors(scaler.transform(test))
    return distances.mean(axis=1)


def robust_scorers():
    """Name -> what fits on training rows with a known share of outliers, and returns the test rows' scores and decisions (or None)."""

    def auto(known):
        def score(train, test, share):
            detector = rk.AutoDetector(contamination=share if known is None else known).fit(train)
            found = detector.decision_function(test)
            return found, found < 0

        return score

    def by_neighbours(k):
        return lambda train, test, share: (-nearest(train, test, min(k, len(train))), None)

    return {
        "AutoDetector()": auto(0.0),
        "AutoDetector(contamination=share)": auto(None),
        'AutoDetector(contamination="auto")': auto("auto"),
        "IsolationForest()": lambda train, test, share: (IsolationForest(random_state=0).fit(train).score_samples(test), None),
        "kNN (k = 1)": by_neighbours(1),
        "kNN (k = 5, mean)": by_neighbours(5),
        "kNN (k = 20, mean)": by_neighbours(20),
    }


def contamination(options):
    sources = chosen(find_tables(), tuple(options.tables.split(",")) if options.tables else ())
    jobs = (delayed(contaminated_table)(source, seed, options.most_rows) for source in sources for seed in range(options.seeds))
    print(
        "AUROC and, in brackets, share of new normal rows rejected at a false-alarm rate of 5 %, in percent:", ", ".join(robust_scorers())
    )
    found = {}
    for table, seed, share, values in itertools.chain.from_iterable(Parallel(n_jobs=options.jobs, return_as="generator_unordered")(jobs)):
        found.setdefault(share, {}).setdefault(table, []).append(values)
        print(f"{table:14}{seed:2}{100 * share:4g} %  {in_percent(values)}", flush=True)
    for share, tables in sorted(found.items()):
        means = np.mean([np.mean(values, axis=0) for values in tables.values()], axis=0)
        print(f"mean of {len(tables):2} tables{100 * share:4g} %  {in_percent(means)}")


def in_percent(values):
    return "  ".join(f"{100 * auc:5.1f} {'' if np.isnan(rejected) else f'({100 * rejected:4.1f})':6}" for auc, rejected in values)


def contaminated_table(source, seed, most_rows):
    """(table, seed, share, (AUROC, share of rejected normal rows or NaN) of every detector) for every share."""
    warnings.simplefilter("ignore")
    X, is_outlier, _ = source.read()
    rows = []
    for share, (train, test, outlying) in contaminated(X, is_outlier, seed, most_rows or len(X)):
        values = []
        for score in robust_scorers().values():
            found, rejected = score(X[train], X[test], share)
            values.append((roc_auc_score(outlying, -found), np.nan if rejected is None else rejected[~outlying].mean()))
        rows.append((source.name, seed, share, values))
    return rows


def contaminated(X, is_outlier, seed, most):
    """(share, (train, test, is_outlier of test)): half of the outliers may hide among the training rows, the other half test."""
    train, test = split_rows(is_outlier, seed, most, 2 * MOST_WITH_CONTAMINATION)
    normals, outliers = test[~is_outlier[test]][:MOST_WITH_CONTAMINATION], test[is_outlier[test]]
    hidden, tested = outliers[: len(outliers) // 2], outliers[len(outliers) // 2 :]
    everything = np.concatenate([normals, tested])
    for share in SHARES:
        count = round(share * len(train) / (1.0 - share))
        if count <= len(hidden) and (count or not share):
            yield share, (np.concatenate([train, hidden[:count]]), everything, is_outlier[everything])


def large(options):
    for n in (1000, 100_000):
        rng = np.random.default_rng(0)
        X, new = rng.normal(size=(n, 20)), rng.normal(size=(10_000, 20))
        rk.AutoDetector().fit(X[:5000]).score_samples(new[:100])
        clocks = [both()]
        detector = rk.AutoDetector().fit(X)
        clocks.append(both())
        detector.score_samples(new)
        clocks.append(both())
        fit, score = np.diff(clocks, axis=0)
        print(f"n = {n:,}, d = 20: fit {fit[0]:.2f} s ({fit[1]:.2f}), scoring 10,000 rows {score[0]:.2f} s ({score[1]:.2f})", flush=True)


def both():
    return time.perf_counter(), time.process_time()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tables", "tasks", "contamination", "large"))
    parser.add_argument("--most-rows", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tables", default="")
    parser.add_argument("--jobs", type=int, default=1, help="processes of the part contamination")
    options = parser.parse_args()
    {"tables": tables, "tasks": tasks, "contamination": contamination, "large": large}[options.what](options)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
