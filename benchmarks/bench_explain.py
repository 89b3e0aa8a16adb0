"""Exact Shapley values against shap's sampling explainer, and the price of `score --explain`: `python benchmarks/bench_explain.py`.

Both explain the same game: the score of an SVDD when some features are switched off. shap draws subsets, and is given as much time as the
exact values take, and more; what counts is its error. shap must be installed. The second part scores a table with and without reasons, in
turn, in one run; what counts is the ratio. The third part spoils one cell of each row, and counts how often that cell is the first reason
of the rows that are flagged since.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.pipeline import make_pipeline

import refkernel as rk
from refkernel.detectors.explain.explanation import Explainer
from refkernel.tabular.fitting import fit_file
from refkernel.tabular.readers import ReadOptions, open_table
from refkernel.tabular.scoring import load_table_model, score_file

TRAINING_ROWS = 500
ROUNDS = 5
SAMPLES = (100, 300, 1_000, 3_000, 10_000, 30_000)
"""Evaluations that shap may use for a row."""

COLUMNS = 20
REASONS = 3


class Game:
    """The score of one row with some features switched off, as shap calls it: rows of 0 and 1 in, scores out."""

    def __init__(self, model, x):
        Z, b = model.support_vectors_, model.dual_coef_[0]
        self._exponents = 0.5 * ((x - Z) / model.kernel_.sigma_) ** 2
        self._b, self._constant = 2.0 * b, -1.0 - model._quadratic

    def __call__(self, on):
        return np.exp(-np.asarray(on, dtype=np.float64) @ self._exponents.T) @ self._b + self._constant


def fastest(call):
    """The result and the least seconds of some calls."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return result, min(times)


def bench_shap(features, rows):
    """Errors of the sampling explainer as it gets more time, in shares of the largest value of the row."""
    import shap

    rng = np.random.default_rng(0)
    model = rk.SVDD(rk.RBF(1.0), nu=0.2).fit(rng.normal(size=(TRAINING_ROWS, features)))
    new = 1.5 * rng.normal(size=(rows, features))
    exact, seconds = fastest(lambda: rk.explain(model, new).values)
    print(f"{features} features, {model.support_.size} support vectors: exact values take {1e3 * seconds / rows:.2f} ms a row")
    everything, nothing = np.ones((1, features)), np.zeros((1, features))
    for count in SAMPLES:
        errors, times = [], []
        for x, phi in zip(new, exact, strict=True):
            game = Game(model, x)
            np.random.seed(0)  # noqa: NPY002 (shap's explainer draws from there)
            start = time.perf_counter()
            found = shap.SamplingExplainer(game, nothing).shap_values(everything, nsamples=count, silent=True)
            times.append(time.perf_counter() - start)
            errors.append(np.abs(np.ravel(found) - phi).max() / np.abs(phi).max())
        ratio = np.mean(times) * rows / seconds
        error = f"{100 * np.mean(errors):.2g} % (worst row {100 * max(errors):.2g} %)"
        print(f"  shap, {count:>6,} samples: {ratio:>8.1f} × the time, error {error}")


def make_table(path, rows, seed):
    names = [f"x{number}" for number in range(COLUMNS)]
    pd.DataFrame(np.random.default_rng(seed).normal(size=(rows, COLUMNS)), columns=names).to_csv(path, index=False, float_format="%.6f")


def bench_score(rows, model):
    """Seconds of `refkernel score` without and with reasons, in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_table(folder / "train.csv", 4 * TRAINING_ROWS, 1)
        make_table(folder / "new.csv", rows, 2)
        detector = rk.SVDD(rk.ReferenceKernel(rk.RBF(10.0), "subset", random_state=0)) if model == "svdd" else None
        fitted = rk.TableDetector(detector)
        fit_file(fitted, folder / "train.csv")
        saved = load_table_model(fitted.save(folder / "model.rk"))
        times = {0: [], REASONS: []}
        for _ in range(3):
            for count in times:
                start = time.perf_counter()
                result = score_file(saved, open_table(folder / "new.csv", ReadOptions()), folder / "out.csv", explain=count)
                times[count].append(time.perf_counter() - start)
    plain, explained = (min(found) for found in times.values())
    share = 100 * result.outliers / result.rows
    print(
        f"{model}: {rows:,} rows × {COLUMNS} columns scored in {plain:.2f} s, with {REASONS} reasons of the {share:.1f} % that are flagged "
        f"in {explained:.2f} s: {explained / plain:.2f} × as long"
    )


def spoilt(rows, training, kind, rng):
    """Rows with one spoilt cell each, and the columns of these cells."""
    columns, each = rng.integers(0, rows.shape[1], len(rows)), np.arange(len(rows))
    rows = rows.copy()
    if kind == "ten times as large":
        rows[each, columns] *= 10.0
    else:  # 4 deviations away
        rows[each, columns] += rng.choice([-4.0, 4.0], len(rows)) * training.std(axis=0)[columns]
    return rows, columns


def bench_reasons():
    """How often the spoilt cell is the first reason, and among the first three, of the rows that are flagged since."""
    for name, found in {"breast cancer": load_breast_cancer(), "wine": load_wine()}.items():
        rng = np.random.default_rng(0)
        X = rng.permutation(found.data[found.target == 1])
        training, new = X[: len(X) // 2], X[len(X) // 2 :]
        models = {
            "AutoDetector": rk.AutoDetector(),
            "SVDD, references": make_pipeline(
                rk.TargetScaler(), rk.SVDD(rk.ReferenceKernel(rk.RBF(10.0), "case2", random_state=0), nu=0.1)
            ),
            "one-class SVM": make_pipeline(rk.TargetScaler(), rk.OneClassSVM(rk.RBF(1.0), nu=0.1)),
        }
        for kind in ("ten times as large", "4 deviations away"):
            rows, columns = spoilt(new, training, kind, rng)
            for what, model in models.items():
                flagged = (model.fit(training).predict(rows) == -1) & (model.predict(new) == 1)
                if not flagged.any():
                    continue
                against = Explainer(model).against(rows[flagged], REASONS)
                place = (against < against[np.arange(len(against)), columns[flagged]][:, None]).sum(axis=1)
                shares = f"first {100 * np.mean(place == 0):3.0f} %, among three {100 * np.mean(place < 3):3.0f} %"
                print(f"{name}, a cell {kind}; {what}: {flagged.sum()} of {len(rows)} rows flagged since; {shares}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20, help="rows that shap explains")
    parser.add_argument("--scored", type=int, default=20_000, help="rows of the table that is scored")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        for features in (10, 20, 50):
            bench_shap(features, arguments.rows)
    except ImportError as error:
        print(f"No comparison with shap: {error}")
    for model in ("auto", "svdd"):
        bench_score(arguments.scored, model)
    bench_reasons()


if __name__ == "__main__":
    main()
