"""The authors' own code is the oracle: kernels, ranks and exact classifier outputs on three tasks."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import refkernel as rk

TASKS = ("iris_1", "seeds_2", "sonar_1")
REFERENCE_CASES = tuple(f"case{number}" for number in range(1, 8))
CASES = ("base", "npt", *REFERENCE_CASES)
SCALES = (0.1, 1.0, 10.0, 100.0, 1000.0)
CLASSIFIER_SCALES = (1.0, 10.0)
NUS = (0.1, 0.3, 0.5)

every_task = pytest.mark.parametrize("task", TASKS)


@pytest.fixture
def kernel_of(golden):
    """kernel_of(task, case, scale): the unfitted kernel of a golden case, with the references that it used."""

    def build(task, case, scale):
        base = rk.RBF(scale=scale)
        if case == "base":
            return base
        return rk.NPT(base) if case == "npt" else rk.ReferenceKernel(base, references=golden[task][f"{case}_R"])

    return build


@pytest.fixture
def problems(golden, kernel_of):
    """problems(task, case): (scale index, nu index, data of the case, kernel, nu) of each classifier problem."""

    def every(task, case):
        data = {name.removeprefix(f"{case}_"): a for name, a in golden[task].items()}
        np.testing.assert_array_equal(data["clf_svals"], CLASSIFIER_SCALES)
        np.testing.assert_array_equal(data["nus"], NUS)
        for s, scale in enumerate(CLASSIFIER_SCALES):
            for v, nu in enumerate(NUS):
                yield s, v, data, kernel_of(task, case, scale), nu

    return every


@every_task
@pytest.mark.parametrize("case", ["base", *REFERENCE_CASES])
@pytest.mark.parametrize("s", range(len(SCALES)))
def test_kernels_equal_those_of_the_authors(golden, kernel_of, task, case, s):
    """Kernel values, train and test, and the test diagonal agree with the authors' code to 1e-9."""
    data = golden[task]
    assert data["svals"][s] == SCALES[s]
    K = kernel_of(task, case, SCALES[s]).fit(data["Xtrain"])
    np.testing.assert_allclose(K(data["Xtrain"]), data[f"{case}_Ktrain"][s], rtol=0, atol=1e-9)
    np.testing.assert_allclose(K(data["Xtrain"], data["Xtest"]), data[f"{case}_Ktest"][s], rtol=0, atol=1e-9)
    np.testing.assert_allclose(K.diag(data["Xtest"]), data[f"{case}_Kself"][s], rtol=0, atol=1e-9)


@every_task
@pytest.mark.parametrize("s", range(len(SCALES)))
def test_map_inner_products_equal_those_of_the_authors(golden, task, s):
    """Inner products of NPT features agree with the authors' projections to 1e-9 (eigenvectors themselves have no sign)."""
    data = golden[task]
    npt = rk.NPT(rk.RBF(scale=SCALES[s])).fit(data["Xtrain"])
    train, test = npt.transform(data["Xtrain"]), npt.transform(data["Xtest"])
    np.testing.assert_allclose(train @ train.T, data["npt_Gtrain"][s], rtol=0, atol=1e-9)
    np.testing.assert_allclose(train @ test.T, data["npt_Gtest"][s], rtol=0, atol=1e-9)
    np.testing.assert_allclose((test**2).sum(axis=1), data["npt_Gself"][s], rtol=0, atol=1e-9)


@every_task
@pytest.mark.parametrize("case", ["npt", *REFERENCE_CASES])
def test_ranks_equal_those_of_the_authors(golden, kernel_of, task, case):
    """The eigenvalue floor keeps as many directions as the authors' code does, at every scale."""
    ranks = [kernel_of(task, case, scale).fit(golden[task]["Xtrain"]).rank_ for scale in SCALES]
    assert ranks == golden[task][f"{case}_rank"].tolist()


@every_task
@pytest.mark.parametrize("case", CASES)
def test_svdd_equals_the_exact_optimum(problems, quiet, task, case):
    """At the default tolerance R² and the squared distances of test samples agree with a high-precision QP to 1e-7."""
    for s, v, data, kernel, nu in problems(task, case):
        model = quiet(rk.SVDD(kernel, nu=nu).fit, data["Xtrain"])
        np.testing.assert_allclose(model.radius_**2, data["svdd_R2"][s, v], rtol=0, atol=1e-7)
        np.testing.assert_allclose(-model.offset_, data["svdd_R2"][s, v], rtol=0, atol=1e-7)
        np.testing.assert_allclose(-model.score_samples(data["Xtest"]), data["svdd_out"][s, v], rtol=0, atol=1e-7)


@every_task
@pytest.mark.parametrize("case", CASES)
def test_one_class_svm_equals_the_exact_optimum_or_warns_that_it_is_degenerate(problems, warned, task, case):
    """Decision values agree to 1e-5 where the optimum is not w = 0; exactly where it is, the specific warning is raised."""
    for s, v, data, kernel, nu in problems(task, case):
        model, categories = warned(rk.OneClassSVM(kernel, nu=nu).fit, data["Xtrain"])
        degenerate = bool(data["ocx_degenerate"][s, v])
        assert categories == [rk.DegenerateSolutionWarning] * degenerate, f"scale {CLASSIFIER_SCALES[s]}, nu {nu}"
        if not degenerate:
            np.testing.assert_allclose(model.decision_function(data["Xtest"]), data["ocx_dec"][s, v], rtol=0, atol=1e-5)
            np.testing.assert_allclose(model.offset_, data["ocx_rho"][s, v], rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore::refkernel.DegenerateSolutionWarning")  # a loose tolerance cannot rule w = 0 out
def test_libsvm_stopping_gives_the_labels_of_libsvm(problems):
    """LIBSVM's start and absolute tolerance of 1e-3 give its labels on at least 97 % of the samples that are not degenerate."""
    agree = []
    for task in TASKS:
        for case in CASES:
            for s, v, data, kernel, nu in problems(task, case):
                if not data["ocx_degenerate"][s, v]:
                    model = rk.OneClassSVM(kernel, nu=nu, stopping="libsvm", tol=1e-3).fit(data["Xtrain"])
                    agree.append(model.predict(data["Xtest"]) == data["oc_lab"][s, v, 0])
    assert len(agree) > 100
    assert np.concatenate(agree).mean() >= 0.97


@every_task
@pytest.mark.parametrize("case", REFERENCE_CASES)
def test_mapping_route_equals_kernel_route(problems, same_decisions, task, case):
    """A linear SVDD on the map and a kernel SVDD on its Gram matrix are one model for the same C."""
    for _, _, data, kernel, nu in problems(task, case):
        C = 1.0 / (nu * len(data["Xtrain"]))
        by_kernel = rk.SVDD(kernel, C=C).fit(data["Xtrain"])
        by_map = make_pipeline(rk.ReferenceMap(**kernel.get_params(deep=False)), rk.SVDD(kernel="linear", C=C)).fit(data["Xtrain"])
        same_decisions(by_kernel, by_map, data["Xtest"], 1e-9)
