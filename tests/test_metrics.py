"""gmean: the geometric mean of the shares of accepted targets and rejected outliers."""

import math

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer, recall_score

import refkernel as rk
from refkernel.metrics import gmean_score, true_rates


@pytest.mark.parametrize("seed", range(5))
def test_gmean_is_the_root_of_tpr_times_tnr(seed):
    """Against loops that count, and against scikit-learn's recall of each class."""
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.choice([-1, 1], 40), rng.choice([-1, 1], 40)
    hits = {kind: sum(t == p == kind for t, p in zip(y_true, y_pred, strict=True)) for kind in (-1, 1)}
    tpr, tnr = hits[1] / sum(y_true == 1), hits[-1] / sum(y_true == -1)
    assert true_rates(y_true, y_pred) == pytest.approx((tpr, tnr))
    assert gmean_score(y_true, y_pred) == pytest.approx(math.sqrt(tpr * tnr))
    assert gmean_score(y_true, y_pred) ** 2 == pytest.approx(recall_score(y_true, y_pred) * recall_score(y_true, y_pred, pos_label=-1))


@pytest.mark.parametrize(
    ("y_pred", "expected"), [([1, 1, -1, -1], 1.0), ([-1, -1, 1, 1], 0.0), ([1, 1, 1, 1], 0.0), ([-1] * 4, 0.0), ([1, -1, -1, 1], 0.5)]
)
def test_gmean_of_known_predictions(y_pred, expected):
    """1 for perfect, 0 for one-sided predictions; lists are as good as arrays, and the result is a float."""
    score = gmean_score([1, 1, -1, -1], y_pred)
    assert score == pytest.approx(expected)
    assert type(score) is float


@pytest.mark.parametrize(("y_true", "absent"), [([1, 1], r"outliers \(-1\)"), ([-1, -1], r"targets \(\+1\)")])
def test_gmean_of_one_kind_is_undefined_and_says_so(y_true, absent):
    """NaN, with a warning that names the kind that is absent."""
    with pytest.warns(UndefinedMetricWarning, match=f"y_true has no {absent}"):
        assert math.isnan(gmean_score(y_true, [1, -1]))


def test_lengths_must_agree():
    """A prediction for each label."""
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        gmean_score([1, -1, 1], [1, -1])


def test_gmean_works_as_a_scorer(samples):
    """make_scorer(gmean_score) scores an estimator as its predictions are scored."""
    X, y = samples(40, 2, 0), np.repeat([1, -1], [30, 10])
    X[y == -1] += 4
    model = rk.SVDD().fit(X, y)
    assert make_scorer(gmean_score)(model, X, y) == gmean_score(y, model.predict(X)) > 0.5
