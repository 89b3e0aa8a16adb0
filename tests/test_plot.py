"""Pictures: what is drawn is what the model says, at the coordinates where it is."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDOneClassSVM
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay, PathDisplay, ScoreDistributionDisplay, SpectrumDisplay
from refkernel.plot.style import MARKS

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (after the backend is chosen)

GRID = 60
"""Points along an axis: enough for a boundary of some hundred vertices, and quick."""

EXACT = {"rtol": 1e-9, "atol": 1e-9}
"""Coordinates of order 1 that pass through a few products lose no more than some 1e-15; anything larger is another point."""


@pytest.fixture(autouse=True)
def closed():
    """No figure outlives its test, or is there before it."""
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def moons():
    """Two moons of targets, and six outliers between and around them: X, y."""
    targets, _ = make_moons(60, noise=0.1, random_state=0)
    outliers = np.array([[0.4, 0.3], [0.5, 0.1], [0.6, 0.35], [-0.6, -0.5], [1.6, 0.8], [-1.2, 1.0]])
    order = np.random.default_rng(0).permutation(66)  # support_ and reference_indices_ must be row numbers, not target numbers
    return np.vstack([targets, outliers])[order], np.r_[np.ones(60), -np.ones(6)][order]


@pytest.fixture(scope="module")
def iris():
    """The iris data as a frame; versicolor are the targets."""
    data = load_iris(as_frame=True)
    return data.data, np.where(data.target == 1, 1, -1)


def on_kernel(references):
    return make_pipeline(rk.TargetScaler(), rk.SVDD(rk.ReferenceKernel(rk.RBF(0.3), references=references, random_state=0)))


def on_map(references):
    return make_pipeline(rk.TargetScaler(), rk.ReferenceMap(rk.RBF(0.3), references=references, random_state=0), rk.SVDD("linear"))


MODELS = {
    "SVDD": rk.SVDD(rk.RBF(0.1)),
    "OneClassSVM": rk.OneClassSVM(rk.RBF(0.1)),
    "kernel, case 2": on_kernel("case2"),
    "kernel, case 5": on_kernel("case5"),
    "map, case 6": on_map("case6"),
}
every_model = pytest.mark.parametrize("name", MODELS)


def drawn(display, kind):
    """The points of one kind as they stand in the axes."""
    return np.asarray(display.marks_[kind].get_offsets())


def same_points(got, expected):
    """The same points in any order."""
    assert got.shape == expected.shape
    np.testing.assert_allclose(got[np.lexsort(got.T)], expected[np.lexsort(expected.T)], **EXACT)


DISPLAYS = {
    "region": lambda X, y, **options: DecisionRegionDisplay.from_estimator(on_kernel("case6").fit(X, y), X, y, grid=GRID, **options),
    "spectrum": lambda X, y, **options: SpectrumDisplay.from_estimator(on_kernel("case2").fit(X, y), **options),
    "scores": lambda X, y, **options: ScoreDistributionDisplay.from_estimator(on_kernel("case2").fit(X, y), X, y, **options),
    "path": lambda X, y, **options: PathDisplay.from_estimator(rk.SVDD(), X, y, values=[0.1, 0.5], **options),
}
every_display = pytest.mark.parametrize("make", DISPLAYS.values(), ids=DISPLAYS)


@every_display
def test_displays_draw_into_the_axes_they_are_given_and_else_into_their_own(make, moons, quiet):
    """ax_ and figure_ are those given, no other figure appears, plot draws again, and nothing warns."""
    figure, ax = plt.subplots(layout="constrained")
    display = quiet(make, *moons, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert quiet(display.plot) is display
    assert display.ax_ is not ax
    assert display.figure_ is display.ax_.figure


@every_display
def test_axes_are_named_and_the_legend_covers_no_data(make, moons):
    """Both axes have a label, there is a title, and the legend stands right of the axes and inside the figure."""
    display = make(*moons)
    assert display.ax_.get_xlabel()
    assert display.ax_.get_ylabel()
    assert display.ax_.get_title()
    display.figure_.canvas.draw()
    legend, axes = display.ax_.get_legend().get_window_extent(), display.ax_.get_window_extent()
    assert legend.x0 >= axes.x1
    assert legend.x1 <= display.figure_.bbox.x1
    assert make(*moons, legend=False).ax_.get_legend() is None


@every_display
def test_without_matplotlib_the_error_says_what_to_install(make, moons, monkeypatch):
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "refkernel\[plot\]"'):
        make(*moons)


def test_importing_the_module_needs_no_matplotlib():
    """matplotlib is loaded when something is drawn, not before."""
    code = "import sys; sys.modules['matplotlib'] = None; import refkernel.plot"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_marks_differ_without_colour():
    """No two kinds of points have the same shape and size."""
    assert len({(style["marker"], style["s"]) for style in MARKS.values()}) == len(MARKS)


@every_model
def test_boundary_separates_decision_signs(name, moons):
    """A grid step from the drawn line, uphill the model accepts and downhill it rejects."""
    X, y = moons
    model = clone(MODELS[name]).fit(X, y)
    display = DecisionRegionDisplay.from_estimator(model, X, y, grid=150)
    V = np.vstack(display.boundary_.allsegs[0])
    assert len(V) > 100
    step = np.array([np.diff(display.x1)[0], np.diff(display.x2)[0]])
    slope = np.column_stack([model.decision_function(V + 0.1 * step * e) - model.decision_function(V - 0.1 * step * e) for e in np.eye(2)])
    uphill = slope / np.linalg.norm(slope, axis=1, keepdims=True) * step  # in units of the grid, as the slope
    assert (model.decision_function(V + uphill) > 0).all()
    assert (model.decision_function(V - uphill) < 0).all()


@every_model
def test_shown_decisions_are_the_models(name, moons):
    """decisions[i, j] is the model's decision value at (x1[j], x2[i])."""
    X, y = moons
    model = clone(MODELS[name]).fit(X, y)
    display = DecisionRegionDisplay.from_estimator(model, X, y, grid=GRID)
    at = [(0, 0), (3, 50), (31, 7), (59, 59)]
    expected = model.decision_function([[display.x1[j], display.x2[i]] for i, j in at])
    np.testing.assert_allclose([display.decisions[i, j] for i, j in at], expected, rtol=1e-6)  # a product of other row blocks rounds anew


@every_model
def test_samples_and_support_vectors_stand_at_their_rows(name, moons):
    """Targets, known outliers and support vectors have the coordinates of the rows of X that they are."""
    X, y = moons
    model = clone(MODELS[name]).fit(X, y)
    display = DecisionRegionDisplay.from_estimator(model, X, y, grid=GRID)
    final = model[-1] if hasattr(model, "steps") else model
    same_points(drawn(display, "targets"), X[y == 1])
    same_points(drawn(display, "known outliers"), X[y == -1])
    same_points(drawn(display, "support vectors"), X[final.support_])


@pytest.mark.parametrize("make", [on_kernel, on_map])
@pytest.mark.parametrize("references", [f"case{number}" for number in range(1, 8)])
def test_references_stand_where_they_are(make, references, moons):
    """Rows of X at their rows; generated ones where the scaler would have found them; no kind without members."""
    X, y = moons
    model = make(references).fit(X, y)
    fitted = model[1].kernel_ if make is on_kernel else model[1]
    display = DecisionRegionDisplay.from_estimator(model, X, y, grid=GRID)
    generated = fitted.reference_indices_ < 0
    rows = X[fitted.reference_indices_[~generated]]
    moved = X[y == 1].mean(axis=0) + fitted.references_[generated] * X[y == 1].std(axis=0, ddof=1)
    for kind, expected in {"references": rows, "generated references": moved}.items():
        assert (kind in display.marks_) == (len(expected) > 0)
        if len(expected):
            same_points(drawn(display, kind), expected)


def test_other_scalers_are_undone_too(moons):
    """Whatever has an inverse brings generated references back."""
    X, _ = moons
    model = make_pipeline(StandardScaler(), rk.ReferenceMap(references=[[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]]), rk.SVDD("linear")).fit(X)
    display = DecisionRegionDisplay.from_estimator(model, X, grid=GRID)
    same_points(drawn(display, "generated references"), X.mean(axis=0) + np.array([[0, 0], [1, 2], [2, 0]]) * X.std(axis=0))


def test_features_that_the_scaler_dropped_come_back_as_they_were(moons):
    """A generated reference has the targets' constant value in a feature that the map never saw."""
    X, y = moons
    X = np.column_stack([X, np.where(y == 1, 7.0, 9.0)])
    display = DecisionRegionDisplay.from_estimator(on_kernel("case2").fit(X, y), X, y, features=(0, 2), grid=GRID)
    assert (drawn(display, "generated references")[:, 1] == 7.0).all()


def test_other_samples_than_the_training_ones_are_never_taken_for_them(moons):
    """With as many other rows, support vectors and references keep their places where steps can be undone, and else are left out."""
    X, y = moons
    other = X[::-1] + 0.05
    scaled, mapped = on_kernel("case3").fit(X, y), on_map("case3").fit(X, y)
    display = DecisionRegionDisplay.from_estimator(scaled, other, y[::-1], grid=GRID)
    same_points(drawn(display, "targets"), other[y[::-1] == 1])
    same_points(drawn(display, "support vectors"), X[scaled[-1].support_])
    same_points(drawn(display, "references"), X[scaled[-1].kernel_.reference_indices_])
    display = DecisionRegionDisplay.from_estimator(mapped, other, y[::-1], grid=GRID)
    assert "support vectors" not in display.marks_
    same_points(drawn(display, "references"), X[mapped[1].reference_indices_])


def test_rows_of_weight_zero_move_no_reference(moons):
    """References of a fit that left rows out stand at the rows that remained."""
    X, y = moons
    weight = np.arange(len(X)) % 3 > 0
    model = rk.SVDD(rk.ReferenceKernel(references="training")).fit(X, y, sample_weight=weight.astype(float))
    display = DecisionRegionDisplay.from_estimator(model, X, y, grid=GRID)
    same_points(drawn(display, "references"), X[(y == 1) & weight])
    same_points(drawn(display, "support vectors"), X[model.support_])


def test_plane_of_two_features_leaves_the_others_at_the_targets_median(iris, quiet):
    """Features by name or by number; the frame's names reach the model and the axes."""
    X, y = iris
    model = on_kernel("case3").fit(X, y)
    display = quiet(DecisionRegionDisplay.from_estimator, model, X, y, features=("petal width (cm)", 0), grid=GRID)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("petal width (cm)", "sepal length (cm)")
    assert "median" in display.ax_.get_title()
    same_points(drawn(display, "support vectors"), X.to_numpy()[model[-1].support_][:, [3, 0]])
    at = np.median(X[y == 1], axis=0)
    at[[3, 0]] = display.x1[5], display.x2[40]
    expected = model.decision_function(pd.DataFrame([at], columns=X.columns))
    np.testing.assert_allclose(display.decisions[40, 5], expected[0], rtol=1e-6)


def test_plane_of_principal_components_is_that_of_the_covariance(iris, quiet):
    """Marks are projections on its two largest eigenvectors, labels their shares, decisions those of the lifted grid."""
    X, y = iris
    model = on_kernel("case2").fit(X, y)
    display = quiet(DecisionRegionDisplay.from_estimator, model, X, y, grid=GRID)
    lam, U = np.linalg.eigh(np.cov(X.to_numpy().T))
    axes, mean = U[:, [3, 2]], X.to_numpy().mean(axis=0)
    expected = (X.to_numpy()[y == 1] - mean) @ axes
    axes = axes * np.sign((drawn(display, "targets") * expected).sum(axis=0))  # an eigenvector has no sign of its own
    same_points(drawn(display, "targets"), (X.to_numpy()[y == 1] - mean) @ axes)
    assert f"{100 * lam[3] / lam.sum():.0f} %" in display.ax_.get_xlabel()
    assert f"{100 * lam[2] / lam.sum():.0f} %" in display.ax_.get_ylabel()
    lifted = mean + axes @ [display.x1[9], display.x2[33]]
    decision = model.decision_function(pd.DataFrame([lifted], columns=X.columns))
    np.testing.assert_allclose(display.decisions[33, 9], decision[0], rtol=1e-6)


@pytest.mark.parametrize(("shift", "region"), [(-10.0, False), (10.0, True)])
def test_a_plane_on_one_side_of_the_boundary_has_no_line(shift, region, moons, quiet):
    """All accepted is all shaded, all rejected is not shaded, and neither warns."""
    x = np.linspace(0, 1, 5)
    display = DecisionRegionDisplay(x1=x, x2=x, decisions=np.outer(x, x) + shift, marks={"targets": moons[0]})
    quiet(display.plot)
    assert display.boundary_ is None
    assert (display.region_ is not None) == region


def test_any_outlier_detector_and_any_search_can_be_shown(moons):
    """Models without support vectors show what they have; a search shows its best estimator."""
    X, y = moons
    forest = DecisionRegionDisplay.from_estimator(IsolationForest(n_estimators=10, random_state=0).fit(X), X, y, grid=GRID)
    assert set(forest.marks_) == {"targets", "known outliers"}
    search = rk.OneClassGridSearch(on_kernel("case2"), {"svdd__nu": [0.1, 0.3]}, cv=3, random_state=0).fit(X, y)
    shown = DecisionRegionDisplay.from_estimator(search, X, y, grid=GRID)
    same_points(drawn(shown, "support vectors"), X[search.best_estimator_[-1].support_])
    assert SpectrumDisplay.from_estimator(search).eigenvalues.size == search.best_estimator_[-1].kernel_.rank_


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.zeros((5, 3)), {}, "X has 3 features; SVDD was fitted on 2"),
        (None, {"features": (0, 2)}, "no feature 2.*from 0 to 1"),
        (None, {"features": ("a", 0)}, "no feature 'a'"),
        (None, {"features": (0,)}, "two different"),
        (None, {"features": (1, 1)}, "two different"),
        (None, {"features": 0}, "two different"),
        (None, {"grid": 1}, "grid=1 must be an int >= 2"),
    ],
)
def test_a_plane_that_cannot_be_is_refused(X, options, message, moons):
    """The error names what was asked for and what there is."""
    model = rk.SVDD().fit(moons[0])
    with pytest.raises(ValueError, match=message):
        DecisionRegionDisplay.from_estimator(model, moons[0] if X is None else X, **options)


def test_models_that_cannot_be_drawn_are_refused(moons):
    """Not fitted, one feature, a kernel matrix, no decisions, no reference map: each error says so."""
    X, y = moons
    for make in (DecisionRegionDisplay, ScoreDistributionDisplay):
        with pytest.raises(NotFittedError, match=r"SVDD.*not fitted"):
            make.from_estimator(rk.SVDD(), X)
        with pytest.raises(NotFittedError, match=r"Pipeline.*not fitted"):
            make.from_estimator(on_map("case1"), X)
        with pytest.raises(ValueError, match="ReferenceMap has no decision_function"):
            make.from_estimator(rk.ReferenceMap().fit(X), X)
    with pytest.raises(NotFittedError, match=r"ReferenceKernel.*not fitted"):
        SpectrumDisplay.from_estimator(rk.ReferenceKernel())
    with pytest.raises(ValueError, match="SVDD has no ReferenceMap or ReferenceKernel"):
        SpectrumDisplay.from_estimator(rk.SVDD().fit(X))
    with pytest.raises(ValueError, match="at least 2 features; X has 1"):
        DecisionRegionDisplay.from_estimator(rk.SVDD().fit(X[:, :1]), X[:, :1])
    with pytest.raises(ValueError, match=r"precomputed.*no plane"):
        DecisionRegionDisplay.from_estimator(rk.OneClassSVM("precomputed").fit(X @ X.T + 1), X @ X.T + 1)
    with pytest.raises(ValueError, match="bins=0 must be an int >= 1"):
        ScoreDistributionDisplay.from_estimator(rk.SVDD().fit(X), X, y, bins=0)


@pytest.mark.parametrize("wrap", ["map", "kernel", "classifier", "pipeline"])
def test_spectrum_is_that_of_the_references_kernel_matrix(wrap, samples):
    """The line holds the eigenvalues of J K J above the floor, largest first, wherever the map is found."""
    X = samples(30, 2, 0)
    options = {"kernel": rk.RBF(sigma=1.0), "eigenvalue_floor": 1e-3}
    model = {
        "map": rk.ReferenceMap(**options),
        "kernel": rk.ReferenceKernel(**options),
        "classifier": rk.SVDD(rk.ReferenceKernel(**options)),
        "pipeline": make_pipeline(rk.ReferenceMap(**options), rk.SVDD("linear")),
    }[wrap].fit(X)
    display = SpectrumDisplay.from_estimator(model)
    J = np.eye(30) - 1 / 30
    lam = np.linalg.eigvalsh(J @ rk.RBF(sigma=1.0)(X) @ J)[::-1]
    expected = lam[lam >= 1e-3]
    np.testing.assert_allclose(display.line_.get_ydata(), expected, rtol=1e-8)  # absolute errors of 1e-15 on values from 1e-3
    np.testing.assert_array_equal(display.line_.get_xdata(), np.arange(1, expected.size + 1))
    assert set(display.floor_line_.get_ydata()) == {1e-3}
    assert display.ax_.get_yscale() == "log"
    assert display.ax_.get_title() == f"rank {expected.size} of 30 references"


def test_spectrum_without_a_floor_has_no_line_for_it(samples, quiet):
    """A floor of 0 is nowhere on a logarithmic axis."""
    fitted = rk.ReferenceMap(rk.kernels.Linear(), references="case4", eigenvalue_floor=0.0, random_state=0).fit(samples(12, 8, 0))
    assert quiet(SpectrumDisplay.from_estimator, fitted).floor_line_ is None


def test_score_distribution_counts_what_predict_says(moons):
    """Legend counts are those of predict, and the bars on each side of the threshold hold exactly the accepted and the rejected."""
    X, y = moons
    model = on_kernel("case2").fit(X, y)
    display = ScoreDistributionDisplay.from_estimator(model, X, y)
    accepted = model.predict(X) == 1
    t, o = accepted[y == 1].sum(), (~accepted[y == -1]).sum()
    assert display.histograms_["targets"].get_label() == f"targets: {t} of 60 accepted"
    assert display.histograms_["outliers"].get_label() == f"outliers: {o} of 6 rejected"
    for kind, share in {"targets": t / 60, "outliers": 1 - o / 6}.items():
        bars = display.histograms_[kind].get_data()
        assert 0.0 in bars.edges
        np.testing.assert_allclose(bars.values[bars.edges[:-1] >= 0].sum(), 100 * share, **EXACT)
        np.testing.assert_allclose(bars.values.sum(), 100.0, **EXACT)
    assert set(display.threshold_.get_xdata()) == {0.0}


def test_without_labels_all_samples_are_targets(moons):
    """No y, no outliers in the picture."""
    X, _ = moons
    display = ScoreDistributionDisplay.from_estimator(rk.SVDD().fit(X), X)
    assert list(display.histograms_) == ["targets"]
    assert "of 66 accepted" in display.histograms_["targets"].get_label()


@pytest.mark.parametrize("decisions", [[0.0], [0.0, 0.0], [5.0, 5.0], [-1e9, 1e-9], [-1.0, 0.0], [1e6, 1e6 + 1e-3], [-0.3, 0.6, 0.9]])
@pytest.mark.parametrize("bins", [1, 7, 30])
def test_every_decision_value_is_in_a_bin(decisions, bins):
    """Also equal values, values on an edge, and values far from the threshold."""
    values = np.array(decisions)
    display = ScoreDistributionDisplay(decisions=values, is_target=np.ones(values.size, dtype=bool), bins=bins).plot()
    bars = display.histograms_["targets"].get_data()
    np.testing.assert_allclose(bars.values.sum(), 100.0, **EXACT)
    np.testing.assert_allclose(bars.values[bars.edges[:-1] >= 0].sum(), 100 * np.mean(values >= 0), **EXACT)
    assert display.histograms_["targets"].get_label() == f"targets: {np.sum(values >= 0)} of {values.size} accepted"


@pytest.mark.parametrize("model", [rk.SVDD(C=0.5), rk.OneClassSVM(), on_map("case2")], ids=["SVDD", "OneClassSVM", "map"])
def test_nu_lies_between_rejected_targets_and_support_vectors(model, moons):
    """The theory's line, with no exception along the whole default path; the bound drawn is nu itself."""
    X, y = moons
    display = PathDisplay.from_estimator(model, X, y)
    rounding = 1e-9  # shares are k / 60, nu are k / 20: equal ones may differ in the last digit
    np.testing.assert_allclose(display.values, np.arange(1, 21) / 20)
    np.testing.assert_array_equal(display.lines_["bound by theory"].get_ydata(), display.values)
    assert (display.rejected <= display.values + rounding).all()
    assert (display.support >= display.values - rounding).all()


def test_repelled_negatives_raise_the_bound_of_the_path(moons):
    """Target weights then sum to 1 + s, each at most 1 / (nu n): the bound nu (1 + s) still lies between both shares, and nu does not."""
    X, y = moons
    display = PathDisplay.from_estimator(rk.SVDD(rk.RBF(1.0), negatives="repel"), X, y, values=[0.1, 0.2, 0.4])
    assert (display.rejected > display.values).all()
    assert (display.rejected <= display.bound + 1e-9).all()
    assert (display.support >= display.bound - 1e-9).all()
    weight = rk.SVDD(rk.RBF(1.0), nu=0.2, negatives="repel").fit(X, y).dual_coef_[0]
    np.testing.assert_allclose(display.bound[1], 0.2 * weight[weight > 0].sum(), rtol=1e-6)  # weights sum to 1 as far as tol goes


def test_path_is_what_single_fits_give(moons):
    """Shares and rates at one nu are those of a fit by hand, and the model that was given stays as it was."""
    X, y = moons
    model = on_kernel("case2").fit(X, y)
    before = model.decision_function(X)
    display = PathDisplay.from_estimator(model, X, y, values=[0.4, 0.1])
    by_hand = clone(model).set_params(svdd__nu=0.4).fit(X, y)
    accepted = by_hand.decision_function(X) >= 0
    tpr, tnr = accepted[y == 1].mean(), (~accepted[y == -1]).mean()
    np.testing.assert_array_equal(display.values, [0.1, 0.4])
    shown = {name: line.get_ydata()[1] for name, line in display.lines_.items()}
    expected = {
        "support vectors (share of targets)": by_hand[-1].support_.size / 60,
        "bound by theory": 0.4,
        "rejected targets (share)": 1 - tpr,
        "TPR on the given samples": tpr,
        "TNR on the given samples": tnr,
        "Gmean on the given samples": np.sqrt(tpr * tnr),
    }
    assert shown == pytest.approx(expected)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_path_of_C_is_the_path_of_nu_on_another_axis(moons):
    """C = 1 / (nu n) gives the same shares, in reverse, under the bound 1 / (n C)."""
    X, _ = moons
    by_nu = PathDisplay.from_estimator(rk.SVDD(nu=0.2), X, values=[0.1, 0.3, 0.9])
    by_C = PathDisplay.from_estimator(rk.SVDD(nu=0.2), X, parameter="C", values=1 / (66 * np.array([0.1, 0.3, 0.9])))
    for name in ("bound", "rejected", "support"):
        np.testing.assert_allclose(getattr(by_C, name), getattr(by_nu, name)[::-1], **EXACT)
    assert by_C.ax_.get_xscale() == "log"
    assert by_C.ax_.get_xlabel() == "C"
    np.testing.assert_allclose(PathDisplay.from_estimator(rk.SVDD(), X, parameter="C").bound, np.arange(20, 0, -1) / 20)


def test_rates_are_drawn_only_with_outliers(moons):
    """Without outliers there is no TNR to show."""
    display = PathDisplay.from_estimator(rk.SVDD(), moons[0], values=[0.1, 0.5])
    assert display.tnr is None
    assert len(display.lines_) == 3


def test_all_fits_of_a_path_see_the_same_references(moons):
    """A model without random_state draws them anew for each display, and once for all its values."""
    X, y = moons
    model = make_pipeline(rk.TargetScaler(), rk.SVDD(rk.ReferenceKernel(references="case4")))
    displays = [PathDisplay.from_estimator(model, X, y, values=[0.1, 0.1, 0.1]) for _ in range(8)]
    for name in ("rejected", "support", "tnr"):
        assert all(np.ptp(getattr(display, name)) == 0 for display in displays)
    assert len({(display.support[0], display.rejected[0], display.tnr[0]) for display in displays}) > 1
    assert model[-1].kernel.random_state is None


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (rk.OneClassSVM(), {"parameter": "C"}, "OneClassSVM has no C"),
        (rk.SVDD(), {"parameter": "scale"}, "parameter='scale' must be one of"),
        (IsolationForest(), {}, "IsolationForest has no nu"),
        (SGDOneClassSVM(), {"values": [0.5]}, "SGDOneClassSVM has no support vectors"),
        (rk.SVDD(), {"values": []}, "at least one nu"),
        (rk.SVDD(), {"values": [0.1, 1.5]}, "nu=1.5 must be in"),
        (rk.SVDD(), {"values": [0.001], "parameter": "C"}, "66 targets need C >= 0.0152"),
    ],
)
def test_a_path_that_cannot_be_is_refused(model, options, message, moons):
    """The error names the value and the limit."""
    with pytest.raises(ValueError, match=message):
        PathDisplay.from_estimator(model, moons[0], **options)


def test_a_picture_has_one_colour_for_flagged_rows_and_marks_those_that_stand_at_its_edge(tmp_path):
    """Drawn by the command's own figure: rows over time, and the plane."""
    pd, to_rgba = pytest.importorskip("pandas"), pytest.importorskip("matplotlib.colors").to_rgba
    from refkernel.plot.style import BLUE, ORANGE
    from refkernel.tabular.drawing import draw
    from refkernel.tabular.scoring import SavedModel

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
    model = rk.TableDetector().fit(frame)
    frame.iloc[[3, 5]] = 1e3, -1e3
    figure = draw(SavedModel(tmp_path / "m.rk", model), model.read(frame), None, ("when", np.arange(200)))
    over_time, plane = figure.axes[1:3]
    colours = {tuple(colour) for colour in over_time.collections[0].get_facecolors()}
    assert colours == {to_rgba(BLUE), to_rgba(ORANGE)}
    drawn = {mark.get_label(): mark for mark in plane.collections if "(" in str(mark.get_label())}
    assert len(drawn["beyond the edge (2)"].get_offsets()) == 2
    flagged = next(mark for label, mark in drawn.items() if label.startswith("flagged rows"))
    assert tuple(flagged.get_facecolors()[0]) == to_rgba(ORANGE)
    assert "beyond the edge (2)" in [text.get_text() for text in plane.get_legend().get_texts()]
