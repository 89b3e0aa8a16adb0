"""The public surface: what ``refkernel`` and its public modules show, and what they no longer show."""

from inspect import signature

import pytest
from sklearn.base import BaseEstimator

import refkernel as rk

PUBLIC = {
    "": (
        "AutoDetector ConformalDetector Counterfactuals DegenerateSolutionWarning ESVDD Explanation FarSamplesWarning ModelFileError "
        "Monitor NPT OneClassGridSearch OneClassSVM RBF ReferenceKernel ReferenceMap ReferenceResidual SVDD TableDetector TableEncoder "
        "TargetImputer TargetScaler calibration compare counterfactuals datasets exceptions explain kernels load metrics "
        "model_selection plot pseudo_outliers read_about references report save sources suspects to_onnx windows "
    ),
    "calibration": "ConformalDetector FalseAlarmBand Promise least_rate needed_samples promise",
    "datasets": "DataError DownloadError N_SPLITS Split Task list_tasks load_task",
    "exceptions": "DataError DegenerateSolutionWarning DownloadError FarSamplesWarning ModelFileError ResultsError TableError",
    "kernels": "Function Kernel KernelLike Laplacian Linear Pairwise Polynomial Precomputed Product RBF Scaled Sigmoid Sum as_kernel",
    "metrics": "gmean_score gmean_scorer tpr_at_tnr_score tpr_at_tnr_scorer true_rates",
    "model_selection": "Formulation OneClassGridSearch decision_paths",
    "plot": "DecisionRegionDisplay ExplanationDisplay PathDisplay ScoreDistributionDisplay SeriesDisplay SpectrumDisplay",
    "pseudo_outliers": "Box Given NeighbourNoise PermutedColumns PseudoOutliers PushedOutward Sum SwappedColumns as_pseudo_outliers",
    "references": (
        "Auto FarthestFirst GENERATED Given KMeans LeverageScores Negatives Normal NormalLike Pushed References ReferencesLike Shell "
        "Strategy Subset Sum Training Uniform as_strategy case"
    ),
    "sources": "open_source",
}

REMOVED = {
    "": "StreamDetector stream",
    "calibration": "benjamini_hochberg",
    "exceptions": "printable",
    "model_selection": "Samples",
    "pseudo_outliers": "NAMES",
    "references": "CASES NAMES NEGATIVES_OPTIONS TrainingRows leverage_scores negatives_option",
    "sources": "open",
}

KERNEL_MEMBERS = "accepts_sparse against features landmarks narrow pairwise positive_definite precision resolve sums thread_safe vanishes"


@pytest.mark.parametrize("module", PUBLIC)
def test_public_modules_show_these_names(module):
    home = getattr(rk, module) if module else rk
    assert sorted(home.__all__) == sorted(PUBLIC[module].split())


@pytest.mark.parametrize("module", REMOVED)
def test_removed_names_are_gone(module):
    """Not only from ``__all__``: asking for them is an AttributeError."""
    home = getattr(rk, module) if module else rk
    for name in REMOVED[module].split():
        assert name not in home.__all__
        with pytest.raises(AttributeError):
            getattr(home, name)


def test_removed_members_are_gone():
    assert rk.NPT is rk.ReferenceMap
    assert not hasattr(rk.SVDD, "solved_parameter")
    assert not hasattr(rk.OneClassSVM, "solved_parameter")


def test_only_what_works_in_parallel_has_n_jobs():
    classes = [thing for name in rk.__all__ if isinstance(thing := getattr(rk, name), type) and issubclass(thing, BaseEstimator)]
    assert {thing.__name__ for thing in classes if "n_jobs" in signature(thing).parameters} == {"ConformalDetector", "OneClassGridSearch"}


@pytest.mark.parametrize(
    "kernel", [rk.RBF(), rk.kernels.Laplacian(), rk.kernels.Linear(), rk.RBF() + rk.kernels.Linear(), rk.ReferenceKernel()]
)
def test_kernels_show_fit_call_diag_and_their_parameters(kernel):
    inherited = {"get_params", "set_params", "get_metadata_routing", "set_fit_request"}
    shown = {name for name in dir(kernel) if not name.startswith("_")} - inherited
    assert shown <= {"fit", "diag", "fit_on", *kernel.get_params(deep=False)}
    assert not shown & set(KERNEL_MEMBERS.split())
