"""The one-class SVM: the hyperplane that separates most of the targets from the origin."""

from __future__ import annotations

from ._dual.classifiers import OCSVM
from ._one_class import OneClassClassifier
from ._validation import check_nu


class OneClassSVM(OneClassClassifier):
    """One-class SVM: the hyperplane, in the kernel's space, that separates most of the targets from the origin.

    The same optimum as ``sklearn.svm.OneClassSVM``, on any kernel of this package and with a certificate.

    Parameters
    ----------
    kernel : str, kernel object, ReferenceKernel, ReferenceMap, callable or "precomputed", default="rbf"
        A name stands for the kernel with its default parameters: "rbf" is ``RBF()``, whose width follows the data.
    nu : float in (0, 1], default=0.1
        An upper bound on the share of targets left outside, a lower bound on that of support vectors.
    threshold : {"auto", "training", "loo"}, default="auto"
        "training" is the classical rule: rho, so that nu bounds the share of *training* targets outside.
        "loo" sets ``offset_`` so that about a share nu of *new* targets is rejected (at least 1 / (n + 1)): every target is scored by the
        exact model without it, at the price of a few fits; of more than 1,024 rows by a model of the other four fifths. "auto" is "loo"
        for kernels whose width follows the neighbours (``kernel_.narrow``), where nearly all targets carry weight and "training"
        rejects most new ones; else "training".
    tol, max_iter, cache_size, stopping, random_state
        As for :class:`SVDD`.

    Attributes
    ----------
    offset_ : float, rho (or by ``threshold="loo"``); ``decision_function = score_samples - offset_``.
    support_, support_vectors_, dual_coef_, duality_gap_, n_iter_, kernel_
        As for :class:`SVDD`.

    Warns
    -----
    DegenerateSolutionWarning
        When the optimum is w = 0, as for a kernel centred on its own training samples.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> rk.OneClassSVM(nu=0.1).fit(X).predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    classifier = OCSVM

    def __init__(
        self,
        kernel="rbf",
        *,
        nu=0.1,
        threshold="auto",
        tol=1e-6,
        max_iter=-1,
        cache_size=200,
        stopping="relative",
        random_state=None,
    ):
        self.kernel = kernel
        self.nu = nu
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.stopping = stopping
        self.random_state = random_state

    @staticmethod
    def solved_parameter(nu, C):
        """nu, the only one."""
        return "nu", nu

    def _check_params(self) -> None:
        super()._check_params()
        check_nu(self.nu)

    def _problem_maker(self, signed_weight):
        bound = check_nu(self.nu) * signed_weight.sum()
        return lambda diag: self.classifier.problem(diag, bound, signed_weight)
