"""The study: its rows against the estimators that a user would fit, its statistics against hand-made cases, its page."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import refkernel as rk
from exact import read_csv
from refkernel.classifiers.ellipsoid import ESVDD
from refkernel.datasets import load_task
from refkernel.detectors.calibration.promise import holm
from refkernel.exceptions import ResultsError
from refkernel.experiments.article.protocol import Settings
from refkernel.experiments.study.methods import FINE_SCALES, FINE_VALUES, GRIDS, STRATEGIES, WITH_OUTLIERS, kernel_methods
from refkernel.experiments.study.page import CHOSEN, against, averages, build_page, known_outliers, ranks, read_rows, task_means
from refkernel.experiments.study.runner import run
from refkernel.metrics import gmean_score

SETTINGS = Settings(tasks=("Iris3",), splits_count=1, repeats=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished study of one run."""
    out = tmp_path_factory.mktemp("study")
    run(SETTINGS, out)
    return out


@pytest.fixture(scope="module")
def rows(folder):
    return read_csv(folder / "rows.csv", dtype={"negatives": str})


def row_of(rows, **values):
    found = rows.loc[np.logical_and.reduce([rows[name] == value for name, value in values.items()])]
    assert len(found) == 1
    return found.iloc[0]


def test_the_articles_grid_is_part_of_the_fine_one():
    """The article's scales and values are those that its slices take."""
    scales, values = GRIDS["article"]
    assert FINE_SCALES[scales] == (0.1, 1.0, 10.0, 100.0, 1000.0)
    assert FINE_VALUES[values] == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def test_every_method_has_one_row_on_each_grid(rows):
    """No method is missing or twice, rates and their mean agree, and choices lie on their grid."""
    keys = rows[["classifier", "references", "negatives", "grid"]]
    assert not keys.duplicated().any()
    for method in kernel_methods():
        for grid, (scales, values) in GRIDS.items():
            row = row_of(rows, classifier=method.classifier, references=method.references, negatives=method.negatives, grid=grid)
            assert float(row["scale"]) in FINE_SCALES[scales]
            assert float(row["parameter"]) in FINE_VALUES[values]
    np.testing.assert_allclose(rows["gmean"], np.sqrt(rows["tpr"] * rows["tnr"]), atol=1e-12)
    assert {m.classifier for m in kernel_methods()} == {"svdd", "ocsvm", "svddneg", "esvdd"}
    assert {m.references for m in kernel_methods()} == set(STRATEGIES)


@pytest.mark.parametrize(
    ("classifier", "references"),
    [
        ("svdd", "base"),
        ("ocsvm", "base"),
        ("svdd", "case1"),
        ("svddneg", "base"),
        ("svddneg", "case1"),
        ("esvdd", "case1"),
        ("ocsvm", "negatives3"),
    ],
)
def test_rows_are_what_the_estimators_give(rows, classifier, references):
    """A row's test score is that of the estimator with the chosen parameters (strategies without chance, so that draws are no matter)."""
    negatives = "all" if classifier == "svddneg" or references in WITH_OUTLIERS else "0"
    row = row_of(rows, classifier=classifier, references=references, negatives=negatives, grid="fine")
    base, nu = rk.RBF(scale=float(row["scale"])), float(row["parameter"])
    kernel = base if references == "base" else rk.ReferenceKernel(base, references)
    model = {
        "svdd": lambda: rk.SVDD(kernel, nu=nu),
        "ocsvm": lambda: rk.OneClassSVM(kernel, nu=nu),
        "svddneg": lambda: rk.SVDD(kernel, nu=nu, negatives="repel"),
        "esvdd": lambda: make_pipeline(rk.ReferenceMap(base, references), ESVDD(nu=nu)),
    }[classifier]()
    task = load_task("Iris3")
    model.fit(task.X_train, task.y_train)
    # one test sample of 30 on the boundary may fall on either side by rounding: then the score moves by more than this
    assert gmean_score(task.y_test, model.predict(task.X_test)) == pytest.approx(row["gmean"], abs=1e-9)


def test_baselines_are_scikit_learns(rows):
    """Default rows are the defaults of scikit-learn's estimators."""
    task = load_task("Iris3")
    targets = task.X_train[task.y_train == 1]
    svc = SVC().fit(task.X_train, task.y_train)
    row = row_of(rows, classifier="SVC", negatives="all", grid="default")
    assert gmean_score(task.y_test, svc.predict(task.X_test)) == pytest.approx(row["gmean"], abs=1e-9)
    seed = int(SETTINGS.checked().units()[0].seeds[-1])
    forest = IsolationForest(random_state=seed).fit(targets)
    row = row_of(rows, classifier="IsolationForest", grid="default")
    assert gmean_score(task.y_test, forest.predict(task.X_test)) == pytest.approx(row["gmean"], abs=1e-9)


def test_a_finished_study_is_not_run_again_and_not_mixed(folder):
    """The same command leaves the rows alone; other settings are refused."""
    before = (folder / "rows.csv").read_bytes()
    run(SETTINGS, folder)
    assert (folder / "rows.csv").read_bytes() == before
    with pytest.raises(ResultsError, match="other settings"):
        run(Settings(tasks=("Iris3",), splits_count=2, repeats=1), folder)


def test_chosen_rows_have_the_best_validation_score(folder):
    """The method that chooses by validation is the one with the highest score among those whose training sees no outlier."""
    found = read_rows(folder)
    for grid in GRIDS:
        chosen = row_of(found, classifier=CHOSEN, grid=grid)
        free = found[(found["negatives"] == "0") & (found["grid"] == grid) & (found["classifier"] != CHOSEN)]
        assert chosen["validation"] == free["validation"].max()
        assert chosen["gmean"] in set(free.loc[free["validation"] == chosen["validation"], "gmean"])


def test_holms_correction_on_a_textbook_case():
    """p = 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02 (worked out by hand)."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.fixture
def made_up():
    """Means of ten tasks: one method is 3 points above the plain one-class SVM everywhere, one is the same, one below."""
    level = np.linspace(50, 95, 10)
    gains = {("svdd", "case2"): 3.0, ("svdd", "base"): 0.0, ("svdd", "case1"): -2.0, ("ocsvm", "base"): 0.0}
    columns = {(c, r, "0", "fine"): level + gain for (c, r), gain in gains.items()}
    for q, gain in {"1": 1.0, "3": 2.0, "10": 3.0, "all": 4.0}.items():
        columns["svddneg", "base", q, "fine"] = level + gain
    return pd.DataFrame(columns, index=[f"T{k}" for k in range(10)]).rename_axis("task")


def test_differences_and_their_tests(made_up):
    """A gain on all ten tasks is real after correction (p = 2 / 2^10, times three), no gain is not."""
    found = {item.method[:2]: item for item in against(made_up, "ocsvm", "base", "fine")}
    best = found["svdd", "case2"]
    assert (best.mean, best.wins, best.losses) == (pytest.approx(3.0), 10, 0)
    assert best.p == pytest.approx(2 / 2**10)
    assert best.corrected == pytest.approx(6 / 2**10)
    assert found["svdd", "base"].corrected == 1.0
    assert found["svdd", "case1"].mean == pytest.approx(-2.0)
    order = list(averages(made_up)["gmean"])
    assert order == sorted(order, reverse=True)


def test_known_outliers_are_listed_by_their_number(made_up):
    """Averages over tasks; the same for all numbers where none is used, and nothing where the run has no such method."""
    text = known_outliers(made_up)
    assert "| SVDD, outliers repel, plain kernel | 73.5 | 74.5 | 75.5 | 76.5 |" in text
    assert "| OC-SVM, plain kernel | 72.5 | 72.5 | 72.5 | 72.5 |" in text
    assert "| binary SVC |  |  |  |  |" in text


def test_ranks_put_the_best_first(made_up):
    """The method that is best on every task has rank 1."""
    found = ranks(made_up, "fine")
    assert found.index[0] == "SVDD, case2"
    assert found.iloc[0] == 1.0


def test_the_page_is_markdown_with_every_method(folder):
    """All methods are on it, numbers are those of the rows, and every line of a table has the columns of its heading."""
    text = build_page(folder).read_text(encoding="utf-8")
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    best = averages(task_means(read_rows(folder))).iloc[0]
    assert f"{best['gmean']:.1f}" in text
    for name in (
        "SVDD, outliers repel, plain kernel",
        "ESVDD, kmeans",
        "IsolationForest",
        "binary SVC",
    ):
        assert name in text
    assert json.loads((folder / "run.json").read_text())["finished"]


def test_the_page_opens_with_the_answer(folder):
    """Before any table: whether a method beats the plain kernel on each grid, and what known outliers are worth."""
    text = build_page(folder).read_text(encoding="utf-8")
    opening = text[: text.index("\n## ")]
    assert [f"Trained without outliers, on the {grid} grid," in opening for grid in GRIDS] == [True] * len(GRIDS)
    best = averages(task_means(read_rows(folder)))
    assert f"{best[best['negatives'] == '0']['gmean'].max():.1f}" in opening
    assert f"{best[best['negatives'] != '0']['gmean'].max():.1f}" in opening


def test_a_folder_without_rows_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="refkernel reproduce study"):
        read_rows(tmp_path)
