"""A search that meets trouble: doubtful candidates, failing fits, groups, weights, every joblib backend."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, GroupKFold

import refkernel as rk
from refkernel.kernels import RBF, Sigmoid
from refkernel.metrics import gmean_scorer


@pytest.fixture
def data(samples):
    X = samples(60, 3, 0)
    X[45:] *= 3.0
    return X, np.r_[np.ones(45), -np.ones(15)]


def test_degenerate_candidates_are_marked_and_never_win_against_others(data):
    """A one-class SVM on a kernel centred on its samples scores by noise, which may look best."""
    grid = {"kernel__center": [True, False], "nu": [0.1, 0.5]}
    search = rk.OneClassGridSearch(rk.OneClassSVM(rk.ReferenceKernel(RBF(1.0))), grid, cv=3, random_state=0, refit=False)
    with pytest.warns(rk.DegenerateSolutionWarning, match="2 as 'degenerate'"):
        search.fit(*data)
    centred = np.array([params["kernel__center"] for params in search.cv_results_["params"]])
    np.testing.assert_array_equal(["degenerate" in doubts for doubts in search.cv_results_["doubts"]], centred)
    assert search.cv_results_["rank_test_score"][centred].min() > search.cv_results_["rank_test_score"][~centred].max()
    assert search.best_params_["kernel__center"] is False


@pytest.mark.parametrize("scale", [0.01, 10.0])
def test_far_samples_are_marked_where_a_fit_would_warn(data, scale):
    X, y = data
    model = rk.SVDD(rk.ReferenceKernel(RBF(scale), references="case2", random_state=0))
    search = rk.OneClassGridSearch(model, {"nu": [0.1]}, cv=[(np.arange(45), np.arange(45, 60)), (np.arange(45), np.arange(30, 60))])
    with np.testing.suppress_warnings() as heard:
        told = heard.record(rk.FarSamplesWarning)
        model.fit(X[:45])
        warned = len(told) > 0
        search.set_params(scoring="accuracy", refit=False).fit(X, y)
    assert ("far samples" in search.cv_results_["doubts"][0]) == warned


def test_indefinite_kernels_are_marked(data):
    search = rk.OneClassGridSearch(rk.SVDD(Sigmoid(gamma=5.0, coef0=0.0)), {"nu": [0.3]}, cv=3, random_state=0, refit=False)
    with pytest.warns(UserWarning, match="'indefinite'"):
        search.fit(*data)
    assert "indefinite" in search.cv_results_["doubts"][0]


def test_a_candidate_that_fails_scores_error_score_and_the_others_as_ever(data):
    """C = 0.001 is infeasible for 30 targets; GridSearchCV treats it the same."""
    grid = {"C": [0.001, 0.1, 0.2]}
    cv = [(np.r_[:30, 45:50], np.r_[30:45, 50:60])]
    ours = rk.OneClassGridSearch(rk.SVDD(RBF(1.0)), grid, cv=cv, refit=False)
    with pytest.warns(FitFailedWarning, match=r"(?s)1 of 3 fits failed.*C=0\.001 leaves the dual infeasible"):
        ours.fit(*data)
    with pytest.warns(FitFailedWarning):
        theirs = GridSearchCV(rk.SVDD(RBF(1.0)), grid, cv=cv, scoring=gmean_scorer, refit=False).fit(*data)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(ours.cv_results_["rank_test_score"], theirs.cv_results_["rank_test_score"])
    with pytest.warns(FitFailedWarning):
        assert ours.set_params(error_score=-1.0).fit(*data).cv_results_["mean_test_score"][0] == -1.0
    with pytest.raises(ValueError, match="infeasible"):
        ours.set_params(error_score="raise").fit(*data)
    with pytest.raises(ValueError, match=r"(?s)All the 1 fits failed.*infeasible"):
        ours.set_params(error_score=np.nan, param_grid={"C": [0.001]}).fit(*data)
    with pytest.raises(ValueError, match="error_score='no'"):
        ours.set_params(error_score="no").fit(*data)


def test_groups_and_fit_parameters_are_passed_on(data):
    X, y = data
    groups, weight = np.arange(60) % 5, np.random.default_rng(0).uniform(0.1, 2.0, 60)
    grid = {"nu": [0.1, 0.3]}
    ours = rk.OneClassGridSearch(rk.SVDD(RBF(1.0)), grid, cv=GroupKFold(5)).fit(X, y, groups=groups, sample_weight=weight)
    theirs = GridSearchCV(rk.SVDD(RBF(1.0)), grid, cv=GroupKFold(5), scoring=gmean_scorer).fit(X, y, groups=groups, sample_weight=weight)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(ours.best_estimator_.dual_coef_, theirs.best_estimator_.dual_coef_)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_every_backend_gives_the_same_scores(data, backend):
    search = rk.OneClassGridSearch(rk.SVDD(RBF(1.0)), {"nu": [0.1, 0.3]}, cv=3, random_state=0, refit=False)
    expected = search.fit(*data).cv_results_["mean_test_score"]
    with parallel_config(backend=backend, n_jobs=2):
        np.testing.assert_array_equal(search.set_params(n_jobs=2).fit(*data).cv_results_["mean_test_score"], expected)


@pytest.mark.parametrize("bad", [{"tol": -1.0}, {"nu": 2.0}, {"negatives": "push"}, {"stopping": "soon"}, {"cache_size": 0}])
def test_parameters_are_checked_before_references_are_drawn(bad, data):
    """A strategy that would take hours is not asked."""

    class Slow(rk.references.Strategy):
        def draw(self, rows, random_state):
            raise AssertionError("drawn before the parameters were checked")

    with pytest.raises(ValueError, match=f"{next(iter(bad))}="):
        rk.SVDD(rk.ReferenceKernel(references=Slow()), **bad).fit(*data)


@pytest.mark.parametrize("labels", [np.r_[np.zeros(45), np.ones(15)], np.array(["ok"] * 45 + ["bad"] * 15), np.arange(60) < 45])
@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM, rk.AutoDetector, rk.TargetScaler, rk.ReferenceMap, rk.ESVDD])
def test_two_labels_without_minus_one_are_refused_and_the_message_says_what_to_pass(make, labels, data):
    with pytest.raises(ValueError, match=r"neither is -1.*Pass -1 for outliers and \+1 for targets"):
        make().fit(data[0], labels)
    make().fit(data[0], data[1])
