"""scikit-learn's own contract, for every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import refkernel as rk
from refkernel.kernels import RBF

INSIDE = "at the narrow default width every training row lies inside: predict, and its threshold, are for new rows"
COPIES = "the default threshold leaves out one row at a time, and of two copies one stays"

NARROW = {
    "check_outliers_train": INSIDE,
    "check_outliers_train(readonly_memmap=True)": INSIDE,
    "check_outliers_fit_predict": INSIDE,
    "check_sample_weight_equivalence_on_dense_data": COPIES,
    "check_sample_weight_equivalence_on_sparse_data": COPIES,
}
"""What the bare classifiers do otherwise, and why; with a kernel of a given width they pass every check."""


@parametrize_with_checks(
    [
        rk.ReferenceMap(),
        rk.NPT(),
        rk.SVDD(RBF(1.0)),
        rk.OneClassSVM(RBF(1.0)),
        rk.SVDD(RBF(1.0), negatives="repel"),
        rk.TargetScaler(),
        rk.TargetImputer(),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_checks([rk.SVDD(), rk.OneClassSVM(), rk.SVDD(negatives="repel")], expected_failed_checks=lambda estimator: NARROW)
def test_scikit_learn_checks_of_the_bare_defaults(estimator, check):
    check(estimator)
