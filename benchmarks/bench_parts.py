"""What each view of AutoDetector is worth: `python benchmarks/bench_parts.py FOLDER [FOLDER ...]`.

Folders of tables as `refkernel benchmark` takes them. One fit for each, at most 1,000 training rows and 1,000 test rows of each kind. The
evidence of its parts is averaged again without one view, and for one view alone. Printed: AUROC minus that of the mean squared distance to
five neighbours (DTE-NP) on standardised columns, average over the tables ± its standard error, for each kind of table: ordinary ones, those
of 50 columns or more, and those whose columns share a unit.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

import refkernel as rk
from refkernel.detectors.auto.parts import ONE_UNIT, ORDINARY, WIDE, parts_for
from refkernel.experiments.benchmark.tables import find_tables, make_split

MOST, NEIGHBOURS = 1_000, 5


def kind(parts):
    """The kind of a table, by its parts."""
    names = {id(ORDINARY): "ordinary columns", id(WIDE): "50 columns or more", id(ONE_UNIT): "columns that share a unit"}
    return names.get(id(parts), "columns that share a unit, few rows")


def variants(names, weights):
    """Name -> weights of the parts."""
    views = list(dict.fromkeys(names))
    of = {view: np.array([name == view for name in names]) for view in views}
    found = {"all": weights} | {f"without {view}": np.where(of[view], 0.0, weights) for view in views if len(views) > 1}
    return found | {f"{view} alone": np.where(of[view], weights, 0.0) for view in views if len(views) > 1}


def measured(source):
    """The kind of a table, and the AUROC of each variant minus that of DTE-NP."""
    split = make_split(source.read(), 0, MOST, MOST)
    parts = parts_for(split.raw_train)
    weights = np.concatenate([part.weights for part in parts])
    detector = rk.AutoDetector().fit(split.raw_train)
    titles = [
        f"{view} ({what.split(':')[0]})" for what, view in zip(detector.results_["description"], detector.results_["view"], strict=True)
    ]
    evidence = detector.evidence(split.raw_test)
    nearest = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(split.train))).fit(split.train).kneighbors(split.test)[0]
    peer = roc_auc_score(split.is_outlier, (nearest**2).mean(axis=1))
    found = {name: roc_auc_score(split.is_outlier, evidence @ used) - peer for name, used in variants(titles, weights).items()}
    return kind(parts), {"as it is": roc_auc_score(split.is_outlier, -detector.score_samples(split.raw_test)) - peer} | found


def main(folders):
    for folder in folders:
        gains = defaultdict(lambda: defaultdict(list))
        for source in find_tables(folder):
            of, found = measured(source)
            for name, gain in found.items():
                gains[of][name].append(100 * gain)
        for of, rows in gains.items():
            if len(rows["all"]) < 2:
                continue
            print(f"\n{folder}: {of}, {len(rows['all'])} tables\n")
            print("| parts | AUROC above DTE-NP | less than all |\n|---|---:|---:|")
            for name, values in rows.items():
                v, lost = np.array(values), np.array(values) - np.array(rows["all"])
                error = 1.0 / np.sqrt(len(v))
                print(
                    f"| {name} | {v.mean():+.2f} ± {v.std(ddof=1) * error:.2f} | {lost.mean():+.2f} ± {lost.std(ddof=1) * error:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
