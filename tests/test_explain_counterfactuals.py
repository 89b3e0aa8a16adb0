"""Values that would make a row normal: each is accepted by the model, and none nearer is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import refkernel as rk
from refkernel.detectors.explain import Change

MODELS = [
    rk.SVDD(rk.RBF(1.0), nu=0.1),
    rk.OneClassSVM("laplacian", nu=0.1),
    rk.SVDD(rk.ReferenceKernel(rk.RBF(10.0), "subset", random_state=0), nu=0.1),
    rk.ReferenceResidual(random_state=0),
    rk.AutoDetector(),
    make_pipeline(rk.TargetScaler(), rk.SVDD(rk.RBF(1.0), nu=0.1)),
]


def data(n=80, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X[:, 2] += X[:, 1]
    return X


def with_value(x, j, value):
    changed = np.array(x)
    changed[j] = value
    return changed


@pytest.mark.parametrize("model", MODELS)
def test_every_value_is_accepted_and_a_nearer_one_is_not(model):
    model.fit(data())
    new = np.vstack([data(5, seed=1), [[0.0, 4.0, 0.0], [5.0, 0.0, 0.0], [0.0, -2.5, 2.5]]])
    found = rk.counterfactuals(model, new)
    np.testing.assert_array_equal(found.rows, np.flatnonzero(model.decision_function(new) < 0))
    assert sum(map(len, found.changes)) > 0
    for row, changes in zip(found.rows, found.changes, strict=True):
        for change in changes:
            j = int(change.name[1:])
            assert change.low <= change.nearest <= change.high
            assert change.value == new[row, j]
            ends = np.array([with_value(new[row], j, value) for value in (change.low, change.nearest, change.high)])
            assert (model.decision_function(ends) >= 0).all()
            nearer = change.nearest + np.linspace(0.02, 0.98, 25) * (new[row, j] - change.nearest)
            rejected = model.decision_function([with_value(new[row], j, value) for value in nearer]) < 0
            assert rejected.all()


def test_the_interval_of_a_ball_is_what_geometry_says():
    """One-class SVM with a linear kernel accepts w·x >= rho: the boundary along each column is known."""
    X = data() + 5.0
    model = rk.OneClassSVM("linear", nu=0.1).fit(X)
    x = np.array([-3.0, 5.0, 5.0])
    w = model.dual_coef_[0] @ model.support_vectors_
    assert model.decision_function([x])[0] < 0
    for change in rk.counterfactuals(model, [x], ranges={"x0": (0.0, 20.0), "x1": (0.0, 20.0), "x2": (0.0, 20.0)}).changes[0]:
        j = int(change.name[1:])
        boundary = (model.offset_ - w @ x + w[j] * x[j]) / w[j]
        assert boundary <= change.nearest <= boundary + 0.01


def test_rows_that_are_accepted_are_passed_over():
    model = rk.SVDD(rk.RBF(1.0)).fit(data())
    found = rk.counterfactuals(model, [[0.0, 0.0, 0.0]])
    assert found.rows.size == 0
    assert found.sentences() == []


def test_a_row_that_is_wrong_in_two_columns_says_that_none_suffices():
    found = rk.counterfactuals(rk.AutoDetector().fit(data()), [[8.0, 8.0, -8.0]])
    assert found.changes == [[]]
    assert found.sentences() == [["no single feature suffices"]]


def test_an_accepted_window_between_the_values_tried_first_is_found():
    """A narrow window at 0.51 of the range, narrower than the distance of two values of the grid."""

    class Window(IsolationForest):
        def decision_function(self, X):
            return 0.02 - np.abs(X[:, 0] - 0.51)

    model = Window(n_estimators=2).fit(np.random.default_rng(0).random((20, 1)))
    change = rk.counterfactuals(model, [[3.0]], ranges={"x0": (0.0, 1.0)}).changes[0][0]
    assert 0.529 < change.nearest <= 0.53
    assert 0.49 <= change.low < 0.492


def test_a_broken_constant_is_normal_at_its_constant():
    X = data()
    X[:, 1] = 100.0
    change = rk.counterfactuals(rk.AutoDetector().fit(X), [[0.0, 130.0, 0.0]]).changes[0][0]
    assert (change.name, change.nearest) == ("x1", 100.0)
    assert str(change) == "accepted if x1 were 100"


def test_categories_are_tried_one_by_one():
    rng = np.random.default_rng(0)
    colour = np.repeat(["red", "green"], 50)
    X = pd.DataFrame({"size": np.where(colour == "red", 0.0, 9.0) + 0.3 * rng.normal(size=100), "colour": colour})
    encoder = ColumnTransformer([("c", OneHotEncoder(sparse_output=False), ["colour"]), ("n", "passthrough", ["size"])])
    model = Pipeline([("columns", encoder), ("model", rk.AutoDetector())]).fit(X)
    row = pd.DataFrame({"size": [9.0], "colour": ["red"]})
    found = rk.counterfactuals(model, row, ranges={"size": (-1.0, 10.0), "colour": ["green", "red"]})
    by_name = {change.name: change for change in found.changes[0]}
    assert by_name["colour"].levels == ("green",)
    assert str(by_name["colour"]) == "accepted if colour were green in combination with the other values"
    assert by_name["size"].nearest < 2.0


def test_ranges_that_are_not_known_or_not_ranges_are_refused():
    model = rk.SVDD(rk.RBF(1.0)).fit(data())
    with pytest.raises(ValueError, match="names 'y', which is not one of the 3 columns"):
        rk.counterfactuals(model, data(1), ranges={"y": (0.0, 1.0)})
    with pytest.raises(ValueError, match="the lower first"):
        rk.counterfactuals(model, data(1), ranges={"x0": (1.0, 0.0)})
    with pytest.raises(TypeError, match="IsolationForest keeps no training rows"):
        rk.counterfactuals(IsolationForest(n_estimators=2).fit(data()), data(1))


def test_what_cannot_be_undone_needs_ranges():
    class NoWayBack(PCA):
        inverse_transform = property()  # as a transformer without that method

    model = make_pipeline(NoWayBack(), rk.SVDD(rk.RBF(1.0))).fit(data())
    with pytest.raises(TypeError, match="cannot be undone"):
        rk.counterfactuals(model, data(1))
    assert rk.counterfactuals(model, [[6.0, 0.0, 0.0]], ranges={f"x{j}": (-2.0, 2.0) for j in range(3)}).rows.size == 1


def test_sentences_name_the_nearer_end_first():
    assert str(Change("t", 97.0, 83.1, 70.2, 83.1)) == "accepted if t were <= 83.1 (and >= 70.2)"
    assert str(Change("t", 12.0, 70.2, 70.2, 83.1)) == "accepted if t were >= 70.2 (and <= 83.1)"
