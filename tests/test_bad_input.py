"""Bad input: a clear error that names the value, the limit and the way out, or the right answer."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import refkernel as rk
from refkernel.kernels import Sigmoid

MODELS = [rk.SVDD(), rk.OneClassSVM()]
MAPS = [rk.ReferenceMap()]
ESTIMATORS = [*MODELS, *MAPS, rk.ReferenceKernel(), rk.TargetScaler()]

every_model = pytest.mark.parametrize("model", MODELS, ids=repr)
every_map = pytest.mark.parametrize("fitter", [*MAPS, rk.ReferenceKernel()], ids=repr)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


def apply(estimator, X):
    """The main result of any estimator on X."""
    for method in ("decision_function", "transform", "__call__"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X)
    raise AssertionError(f"{estimator!r} offers nothing to apply")


@every_estimator
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_nan_and_infinity_are_refused(estimator, value, word, samples):
    """Values that are no numbers are refused by fit and by whatever comes after it."""
    X = samples(10, 2, 0)
    fitted = clone(estimator).fit(X)
    X[3, 1] = value
    with pytest.raises(ValueError, match=word):
        clone(estimator).fit(X)
    with pytest.raises(ValueError, match=word):
        apply(fitted, X)


@every_estimator
@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.empty((0, 2)), r"0 sample\(s\)"),
        (np.empty((3, 0)), r"0 feature\(s\)"),
        ([], "Expected 2D array, got 1D array"),
        ([1.0, 2.0, 3.0], "Expected 2D array, got 1D array.*Reshape"),
        (np.zeros((2, 2, 2)), r"dim 3|3D|three"),
        ([["a", "b"], ["c", "d"]], "text in column 0, column 1|dtype='numeric' is not compatible|could not convert string to float"),
        (np.array([[1.0, None], [2.0, 3.0]], dtype=object), "NaN|NoneType"),
        (np.eye(3) * 1j, "Complex data not supported"),
    ],
)
def test_input_that_is_no_table_of_numbers_is_refused(estimator, X, words):
    """Empty, 1-D, 3-D, textual and complex input name what is wrong."""
    with pytest.raises((ValueError, TypeError), match=f"(?s){words}"):
        clone(estimator).fit(X)


@every_estimator
def test_wrong_number_of_features_is_refused(estimator, samples):
    """What was fitted on 3 features takes 3, and the error names both numbers and the estimator."""
    fitted = clone(estimator).fit(samples(10, 3, 0))
    with pytest.raises(ValueError, match=f"X has 2 features, but {type(estimator).__name__} is expecting 3 features"):
        apply(fitted, samples(10, 2, 0))


@every_estimator
def test_unfitted_estimator_says_so(estimator, samples):
    """Everything that needs a fit asks for one by name."""
    methods = ("predict", "decision_function", "score_samples", "transform", "kernel_matrix", "diag", "__call__")
    offered = [getattr(clone(estimator), method) for method in methods if hasattr(estimator, method)]
    assert offered
    for call in offered:
        with pytest.raises(NotFittedError, match=f"{type(estimator).__name__} instance is not fitted yet"):
            call(samples(4, 2, 0))


@every_estimator
@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.astype(np.int32),
        lambda X: X.astype(np.float32),
        lambda X: X.astype(object),
        lambda X: X.tolist(),
        pd.DataFrame,
        np.asfortranarray,
    ],
    ids=["int32", "float32", "object", "list", "DataFrame", "Fortran order"],
)
def test_any_table_of_numbers_gives_the_same_answer(estimator, convert):
    """Integers, float32, objects, lists and DataFrames of the same numbers are the same input."""
    X = np.random.default_rng(0).integers(-9, 9, (20, 3)).astype(float)
    expected, got = apply(clone(estimator).fit(X), X), apply(clone(estimator).fit(convert(X)), convert(X))
    products = got if np.ndim(got) == 1 else np.asarray(got, dtype=float) @ np.asarray(got, dtype=float).T  # eigenvectors have no sign
    # float32 input gives float32 output, of values up to about 10
    np.testing.assert_allclose(products, expected if np.ndim(expected) == 1 else expected @ expected.T, rtol=0, atol=2e-5)


@every_estimator
def test_read_only_and_strided_input_works(estimator):
    """Input that may not be written to, or is a view with gaps, is only read."""
    X = np.random.default_rng(0).normal(size=(40, 6))[::2, ::2]
    expected = apply(clone(estimator).fit(X.copy()), X.copy())
    X.flags.writeable = False
    np.testing.assert_allclose(apply(clone(estimator).fit(X), X), expected, rtol=0, atol=1e-9)


@every_model
def test_one_row_describes_itself(model):
    """One target is a legitimate description: it is inside, everything else outside."""
    fitted = clone(model).fit([[1.0, 2.0]])
    np.testing.assert_array_equal(fitted.predict([[1.0, 2.0], [1.5, 2.0], [9.0, 9.0]]), [1, -1, -1])


@every_model
@pytest.mark.parametrize("n", [2, 3, 50, 1500])
@pytest.mark.parametrize("row", [[1.0, 2.0], [0.0, 0.0], [1e8, -1e-8]])
def test_equal_rows_describe_one_point(model, n, row):
    """Any number of equal rows is that point: inside, and nothing else is; the radius is 0."""
    fitted = clone(model).fit(np.tile(row, (n, 1)))
    np.testing.assert_array_equal(fitted.predict([row, [row[0] + 1.0, row[1]], [9.0, 9.0]]), [1, -1, -1])
    assert getattr(fitted, "radius_", 0.0) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("n", [1, 2, 40])
@pytest.mark.parametrize("row", [[0.0, 0.0], [3.0, 4.0]])
def test_equal_rows_describe_one_point_for_the_linear_kernel(n, row):
    """A kernel matrix of equal entries, zero included, is solved: the ball is a point."""
    fitted = rk.SVDD("linear").fit(np.tile(row, (n, 1)))
    np.testing.assert_array_equal(fitted.predict([row, [row[0] + 0.1, row[1]]]), [1, -1])
    assert fitted.radius_ == pytest.approx(0.0, abs=1e-5)


def test_one_class_svm_of_the_origin_is_degenerate():
    """With the linear kernel and every target at the origin w = 0 is the only answer, and the warning says so."""
    with pytest.warns(rk.DegenerateSolutionWarning, match="w = 0"):
        rk.OneClassSVM("linear").fit(np.zeros((5, 2)))


@every_map
@pytest.mark.parametrize("n", [2, 10])
def test_centred_references_that_are_all_alike_are_refused(fitter, n):
    """Equal rows leave nothing after centring; the error names the floor and the ways out, and center=False works."""
    X = np.ones((n, 2))
    with pytest.raises(ValueError, match=rf"No eigenvalue of the {n} references.*eigenvalue_floor=1e-06.*all alike.*center=False"):
        clone(fitter).fit(X)
    K = rk.ReferenceKernel(center=False).fit(X)
    np.testing.assert_allclose(K(X), 1.0, rtol=1e-9)


@every_map
def test_centring_needs_two_references(fitter):
    """One row is refused with the limit and both ways out; center=False takes it."""
    with pytest.raises(
        ValueError, match=r"Centring needs at least 2 references, but there is only 1.*Add references, or pass center=False"
    ):
        clone(fitter).fit([[1.0, 2.0]])
    assert clone(fitter).set_params(center=False).fit([[1.0, 2.0]]).rank_ == 1


def test_scaling_needs_two_targets_and_a_feature_that_varies():
    """TargetScaler names what is missing: a second target row, or a feature that is not constant."""
    with pytest.raises(ValueError, match="at least 2 target rows; got 1"):
        rk.TargetScaler().fit([[1.0, 2.0]])
    with pytest.raises(ValueError, match="at least 2 target rows; got 1"):
        rk.TargetScaler().fit([[1.0, 2.0], [3.0, 4.0]], [1, -1])
    with pytest.raises(ValueError, match="All 2 features are constant over the 3 target rows"):
        rk.TargetScaler().fit(np.ones((3, 2)))


@every_model
def test_constant_features_change_nothing(model, samples, same_decisions):
    """A constant feature has no distance: the description is that of the other features."""
    X = samples(30, 2, 0)
    wide = clone(model).fit(np.column_stack([X, np.full(30, 1e6)]))
    decision = wide.decision_function(np.column_stack([X, np.full(30, 1e6)]))
    np.testing.assert_allclose(decision, clone(model).fit(X).decision_function(X), rtol=0, atol=1e-9 * max(1, np.ptp(decision)))


@every_model
@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("kernel", [rk.RBF(1.0), rk.ReferenceKernel(references="training", center=False)], ids=["RBF", "ReferenceKernel"])
def test_extreme_values_give_the_predictions_of_rescaled_data(model, unit, kernel, quiet, samples):
    """With the RBF's width rule a unit of 1e±300 changes no prediction and warns of nothing."""
    X, X_new = samples(40, 3, 0), samples(40, 3, 1) * 2
    plain, extreme = (quiet(clone(model).set_params(kernel=kernel).fit, X * u) for u in (1.0, unit))
    np.testing.assert_array_equal(quiet(extreme.predict, X_new * unit), plain.predict(X_new))


@every_model
@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian"])  # cosine and its like are scikit-learn's own functions
@pytest.mark.parametrize("unit", [1e-300, 1e300])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy may announce the overflow before the error does
def test_extreme_values_are_right_or_refused_by_every_kernel(model, kernel, unit, samples):
    """Where k(x, z) leaves the range of doubles there is an error with the way out, never a silent wrong answer."""
    X, X_new = samples(40, 3, 0, offset=3.0), samples(40, 3, 1)
    kernel_of = {"linear": "linear", "poly": rk.kernels.Polynomial(2, coef0=0.0), "laplacian": "laplacian"}
    plain = clone(model).set_params(kernel=kernel_of[kernel])
    try:
        extreme = clone(plain).fit(X * unit)
    except ValueError as error:
        assert "overflow" in str(error) or "underflow" in str(error) or "NaN or infinite" in str(error)  # noqa: PT017 (an error is one of two right outcomes)
        assert kernel in ("linear", "poly")
    else:
        np.testing.assert_array_equal(extreme.predict(X_new * unit), plain.fit(X).predict(X_new))


def polite(X, Z):
    return X @ Z.T


@pytest.mark.parametrize(
    "estimator", [rk.SVDD(polite), rk.OneClassSVM(polite), rk.ReferenceMap(polite), rk.TargetScaler()], ids=lambda e: type(e).__name__
)
def test_sparse_input_is_refused_where_a_kernel_cannot_take_it(estimator, samples):
    """Callables and the scaler take dense rows only; the error says what to do."""
    with pytest.raises(TypeError, match=r"Sparse data was passed.*dense data is required.*toarray"):
        estimator.fit(sp.csr_matrix(samples(10, 2, 0)))


@every_model
@pytest.mark.parametrize("nu", [0.0, -0.1, 1.0000001, 5, np.nan, np.inf, "0.1", True])
def test_nu_outside_its_range_is_refused(model, nu, samples):
    """nu is a share in (0, 1]; the error names the value and the range."""
    with pytest.raises(ValueError, match=rf"nu={nu!r} must be in \(0, 1\]"):
        clone(model).set_params(nu=nu).fit(samples(10, 2, 0))


def test_nu_is_needed_by_the_one_class_svm(samples):
    """The one-class SVM has no other parameter to fall back on."""
    with pytest.raises(ValueError, match=r"nu=None must be in \(0, 1\]"):
        rk.OneClassSVM(nu=None).fit(samples(10, 2, 0))


@pytest.mark.parametrize("C", [0.0999, 1e-3])
def test_c_below_one_over_n_is_refused(C, samples):
    """Too small a C leaves the dual infeasible; the error names C, n, the least C and the way out. The limit itself works."""
    with pytest.raises(ValueError, match=rf"C={C:g} leaves the dual infeasible: 10 targets need C >= 0\.1\. Raise C, or pass nu instead"):
        rk.SVDD(C=C).fit(samples(10, 2, 0))
    assert rk.SVDD(C=0.1).fit(samples(10, 2, 0)).support_.size == 10
    with pytest.raises(ValueError, match=r"7 targets need C >= 0\.143"):
        rk.SVDD(C=0.1).fit(samples(10, 2, 0), [1] * 7 + [-1] * 3)


@pytest.mark.parametrize("C", [0, -1.0, np.nan, "1"])
def test_c_that_is_no_positive_number_is_refused(C, samples):
    """C is a price: positive and finite."""
    with pytest.raises(ValueError, match=f"C={C!r} must be a positive number"):
        rk.SVDD(C=C).fit(samples(10, 2, 0))


def test_both_nu_and_c_are_refused(samples):
    """They are one parameter in two units."""
    with pytest.raises(ValueError, match=r"nu=0\.1 and C=0\.5 are both given: pass one of them"):
        rk.SVDD(nu=0.1, C=0.5).fit(samples(10, 2, 0))


@pytest.mark.parametrize(
    ("parameter", "value", "words"),
    [
        ("tol", 0.0, r"tol=0\.0 must be a positive number"),
        ("tol", -1e-3, r"tol=-0\.001 must be a positive number"),
        ("tol", "small", "tol='small' must be a positive number"),
        ("cache_size", 0, "cache_size=0 must be a positive number"),
        ("stopping", "never", "stopping='never' must be one of .*'relative', 'libsvm'"),
        ("max_iter", "many", "max_iter='many'"),
        ("max_iter", 1.5, r"max_iter=1\.5"),
        ("max_iter", None, "max_iter=None"),
        ("kernel", "gauss", "kernel='gauss' is not known"),
        ("kernel", None, "kernel=None is neither"),
    ],
)
@every_model
def test_impossible_solver_parameters_are_refused(model, parameter, value, words, samples):
    """Each names itself, its value and what is allowed."""
    with pytest.raises(ValueError, match=words):
        clone(model).set_params(**{parameter: value}).fit(samples(10, 2, 0))


@pytest.mark.parametrize("floor", [-1.0, np.nan, "low"])
@every_map
def test_impossible_eigenvalue_floor_is_refused(fitter, floor, samples):
    """Directions of negative eigenvalues cannot be whitened: the floor is a number >= 0."""
    with pytest.raises(ValueError, match=f"eigenvalue_floor={floor!r}"):
        clone(fitter).set_params(eigenvalue_floor=floor).fit(samples(10, 2, 0))


@every_estimator
def test_all_labels_outliers_is_refused(estimator, samples):
    """Without a target there is nothing to describe."""
    with pytest.raises(ValueError, match=r"All labels are -1.*at least one target is needed"):
        clone(estimator).fit(samples(6, 2, 0), -np.ones(6))


@every_estimator
def test_labels_other_than_plus_and_minus_one_are_targets_with_a_warning(estimator, samples):
    """Class labels 0 and 2 are taken as targets, and the warning names them."""
    X = samples(9, 2, 0)
    with pytest.warns(UserWarning, match=r"Labels \[0, 2\] in y are taken as targets: only -1 marks an outlier"):
        labelled = clone(estimator).fit(X, np.arange(9) % 3)
    np.testing.assert_array_equal(apply(labelled, X), apply(clone(estimator).fit(X), X))


@every_estimator
@pytest.mark.parametrize(("y", "words"), [([1, -1], "inconsistent numbers of samples"), (np.ones((6, 2)), "y should be a 1d array")])
def test_labels_of_the_wrong_shape_are_refused(estimator, y, words, samples):
    """One label for each row."""
    with pytest.raises(ValueError, match=words):
        clone(estimator).fit(samples(6, 2, 0), y)


@pytest.mark.parametrize("references", ["negatives", "case5", "case6", "case7"])
@pytest.mark.parametrize("y", [None, np.ones(6)], ids=["no y", "only targets"])
@pytest.mark.parametrize("wrap", [lambda k: k, rk.SVDD, rk.OneClassSVM], ids=["kernel", "SVDD", "OneClassSVM"])
def test_references_that_need_outliers_say_how_to_pass_them(references, y, wrap, samples):
    """Without a label -1 the error says that outliers are needed and how fit takes them."""
    with pytest.raises(ValueError, match=r"outlier.*pass y to fit with -1"):
        wrap(rk.ReferenceKernel(references=references)).fit(samples(6, 2, 0), y)


@pytest.mark.parametrize("wrap", [lambda k: k, rk.SVDD, rk.OneClassSVM], ids=["kernel", "SVDD", "OneClassSVM"])
@pytest.mark.parametrize(
    ("references", "words"),
    [
        (np.ones((4, 3)), "references have 3 features, the training samples 2"),
        (np.array([[0.0, np.nan], [1.0, 1.0]]), "NaN"),
        (np.ones(4), "Expected 2D array"),
        ("nearest", "references='nearest' is not known"),
        (np.ones((1, 2)), "at least 2 references, but there is only 1"),
        (rk.references.Subset(1), "at least 2 references, but there is only 1"),
        (None, "references=None|Expected 2D array"),
    ],
)
def test_impossible_references_are_refused(wrap, references, words, samples):
    """Wrong width, no numbers, no table, too few: each is named."""
    with pytest.raises((ValueError, TypeError), match=words):
        wrap(rk.ReferenceKernel(references=references)).fit(samples(6, 2, 0))


@every_model
@pytest.mark.parametrize(
    "weight",
    [np.ones(5), -np.ones(6), np.array([1, 1, 1, 1, 1, np.nan]), np.ones((6, 1)), 1.0],
    ids=["short", "negative", "NaN", "2-D", "scalar"],
)
def test_impossible_weights_are_refused(model, weight, samples):
    """Weights are one finite number >= 0 for each row."""
    with pytest.raises(ValueError, match="sample_weight must hold 6 finite numbers >= 0, one for each row of X"):
        clone(model).fit(samples(6, 2, 0), sample_weight=weight)


@every_model
def test_weights_that_leave_no_target_are_refused(model, samples):
    """All-zero weights, or weight on outliers only, describe nothing."""
    with pytest.raises(ValueError, match="at least one non-zero number among the targets"):
        clone(model).fit(samples(6, 2, 0), sample_weight=np.zeros(6))
    with pytest.raises(ValueError, match="at least one non-zero number among the targets"):
        clone(model).fit(samples(6, 2, 0), [1] * 3 + [-1] * 3, sample_weight=[0] * 3 + [1] * 3)


def nan_kernel(X, Z):
    return np.full((len(X), len(Z)), np.nan)


@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM, rk.ReferenceMap, lambda k: rk.SVDD(rk.NPT(k))])
def test_kernel_that_returns_nan_is_refused(make, samples):
    """NaN from the user's kernel is told as such, with the function's name."""
    with pytest.raises(ValueError, match=r"nan_kernel returned \d+ NaN or infinite values for finite input"):
        make(nan_kernel).fit(samples(6, 2, 0))


def skewed(X, Z):
    return X @ Z.T + 0.3 * (X[:, :1] - Z[:, :1].T)


@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM, rk.ReferenceMap])
def test_kernel_that_is_not_symmetric_warns_and_stays_defined(make, samples):
    """The symmetric part is used; what comes out is finite."""
    X = samples(20, 2, 0, offset=3.0)
    with pytest.warns(UserWarning, match="skewed is not symmetric: the mean of K and its transpose is used"):
        fitted = make(skewed).fit(X)
    assert np.isfinite(apply(fitted, X)).all()


@every_model
@pytest.mark.parametrize("seed", range(4))
def test_kernel_that_is_indefinite_warns_and_stays_defined(model, seed, samples):
    """A sigmoid kernel has no certified optimum; the warning says so and the model still separates near from far finitely."""
    X = samples(40, 3, seed)
    with pytest.warns(UserWarning, match="kernel is indefinite on the training samples: .* not a certified optimum"):
        fitted = clone(model).set_params(kernel=Sigmoid(gamma=1.0, coef0=-0.5), nu=0.3).fit(X)
    assert np.isfinite(fitted.decision_function(X)).all()
    assert np.isfinite(fitted.offset_)
    assert set(fitted.predict(X)) <= {-1, 1}


@every_model
def test_precomputed_matrix_that_is_no_kernel_is_told(model, samples):
    """Not square, not symmetric, not definite, NaN: errors or warnings that say which."""
    model = clone(model).set_params(kernel="precomputed", nu=0.5)
    with pytest.raises(ValueError, match=r"fit takes the square kernel matrix of the samples; X has shape \(4, 3\)"):
        clone(model).fit(np.ones((4, 3)))
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(np.full((3, 3), np.nan))
    with pytest.warns(UserWarning, match="precomputed kernel matrix is not symmetric"):
        clone(model).fit(np.array([[2.0, 0.5, 0.1], [0.4, 2.0, 0.2], [0.1, 0.2, 1.0]]))
    with pytest.warns(UserWarning, match="indefinite on the training samples"):
        clone(model).fit(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, -2.0], [3.0, -2.0, 0.5]]))


def test_precomputed_svdd_asks_for_the_test_diagonal(samples):
    """SVDD needs k(x, x) of new samples, which no matrix k(X, training) holds; the error says how to pass it."""
    X, X_new = samples(10, 2, 0), samples(4, 2, 1)
    model = rk.SVDD("precomputed").fit(X @ X.T)
    for method in (model.predict, model.decision_function, model.score_samples):
        with pytest.raises(ValueError, match=r"SVDD needs k\(x, x\) of the samples to score: pass diag, of shape \(n_samples,\)"):
            method(X_new @ X.T)
        with pytest.raises(ValueError, match=r"diag has shape \(3,\); \(4,\) was expected"):
            method(X_new @ X.T, diag=np.ones(3))
        with pytest.raises(ValueError, match=r"(?i)diag.*(NaN|finite)"):
            method(X_new @ X.T, diag=np.full(4, np.nan))
    rk.OneClassSVM("precomputed").fit(X @ X.T + 1).predict(X_new @ X.T + 1)
    with pytest.raises(ValueError, match="X has 2 features, but SVDD is expecting 10"):
        model.predict(X_new, diag=np.ones(4))


def test_masked_cells_are_missing_everywhere(samples):
    """What is behind a mask never counts: filled by an imputer, refused elsewhere."""
    X = np.ma.masked_array(samples(40, 3, 0), mask=np.zeros((40, 3), dtype=bool))
    X.data[3, 1], X.mask[3, 1] = 1e6, True
    plain = np.where(X.mask, np.nan, X.data)
    imputer = rk.TargetImputer().fit(X)
    np.testing.assert_array_equal(imputer.transform(X), rk.TargetImputer().fit(plain).transform(plain))
    with pytest.raises(ValueError, match="NaN"):
        rk.SVDD(rk.ReferenceKernel(references=X[:9])).fit(X.data[4:])
    with pytest.raises(ValueError, match="NaN"):
        rk.explain(rk.AutoDetector().fit(X.data[4:]), X)


@pytest.mark.parametrize("model", [rk.SVDD(), rk.AutoDetector(), rk.TargetScaler()], ids=repr)
def test_objects_that_are_complex_numbers_are_refused_by_name(model, samples):
    with pytest.raises(ValueError, match="X holds complex numbers in column 0, column 1"):
        clone(model).fit((samples(20, 2, 0) + 1j).astype(object))


EVIL = "\x1b[31m"


def test_names_and_cells_never_reach_a_terminal_as_commands(samples):
    """In what is shown, in reasons and in errors; the cells themselves stay as they are."""
    X = pd.DataFrame({f"a{EVIL}": samples(80, 1, 0)[:, 0], "k": ["x", f"y{EVIL}"] * 40})
    model = rk.TableDetector().fit(X)
    new = X[:2].assign(**{f"a{EVIL}": 99.0, "k": f"z{EVIL}"})
    shown = [repr(model.explain(new)), repr(model.counterfactuals(new)), str(model.columns_[0])]
    shown += [str(reason) for reasons in model.reasons(new) for reason in reasons]
    for bad in (new[["k"]], new.assign(**{f"a{EVIL}": np.inf})):
        with pytest.raises(ValueError, match=r"X lacks|Infinite values") as caught:
            model.predict(bad)
        shown.append(str(caught.value))
    with pytest.raises(TypeError, match="Columns that hold neither") as caught:
        rk.TableDetector().fit(X.assign(**{f"o{EVIL}": [{}] * 80}))
    shown.append(str(caught.value))
    assert not [text for text in shown if "\x1b" in text]
    assert sum(r"\x1b[31m" in text for text in shown) >= 6


def test_a_polynomial_near_overflow_ends(samples):
    """At 1e30 its values are 1e180: squares of them overflow. An answer or an error, within the moves of a small problem."""
    X = 1e30 * samples(300, 5, 0)
    for model in (rk.SVDD(rk.kernels.Polynomial(3), max_iter=200_000), rk.OneClassSVM(rk.kernels.Polynomial(3), max_iter=200_000)):
        try:
            assert np.isfinite(model.fit(X).decision_function(X)).all()
        except ValueError as error:
            assert "overflow" in str(error)  # noqa: PT017 - either is right


ENVIRONMENTS = {
    "warnings are errors": (["-W", "error"], {}),
    "without docstrings": (["-OO"], {}),
    "without a compiler": ([], {"NUMBA_DISABLE_JIT": "1"}),
    "without UTF-8": ([], {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_package_works_in_any_environment(name, tmp_path):
    """Fit, save, load, predict and a command, with column names that are not ASCII, in a process of its own."""
    options, variables = ENVIRONMENTS[name]
    pd.DataFrame({"größe": np.arange(40.0), "x": np.arange(40) % 7}).to_csv(tmp_path / "d.csv", index=False)
    code = """
        import sys
        import numpy as np, refkernel as rk
        X = np.random.default_rng(0).normal(size=(30, 2))
        for model in (rk.SVDD(), rk.AutoDetector(0.1)):
            fitted = rk.load(rk.save(model.fit(X), sys.argv[1] + "/m.rk"))
            if fitted.predict([[9.0, 9.0]])[0] != -1:
                raise SystemExit("wrong")
    """
    # a dependency may warn or lack its docstrings when it is imported by the commands
    command = [sys.executable, *([] if name == "warnings are errors" else options), "-m", "refkernel"]
    runs = (
        [sys.executable, *options, "-c", textwrap.dedent(code), str(tmp_path)],
        [*command, "fit", str(tmp_path / "d.csv"), "--model", "svdd", "--out", str(tmp_path / "d.rk")],
        [*command, "score", str(tmp_path / "d.rk"), str(tmp_path / "d.csv"), "--out", str(tmp_path / "s.csv")],
    )
    for arguments in runs:
        done = subprocess.run(arguments, env=os.environ | variables, capture_output=True, timeout=600)
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    assert (tmp_path / "s.csv").read_text(encoding="utf-8").startswith("größe,")
