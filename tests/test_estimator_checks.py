"""scikit-learn's own contract, for every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import refkernel as rk


@parametrize_with_checks([rk.ReferenceMap(), rk.NPT(), rk.SVDD(), rk.OneClassSVM(), rk.TargetScaler(), rk.TargetImputer()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
