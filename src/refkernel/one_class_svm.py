"""The one-class SVM: the hyperplane that separates most of the targets from the origin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._dual.classifiers import OCSVM
from ._dual.problem import DualProblem
from ._one_class import OneClassClassifier
from ._typing import RandomStateLike
from ._validation import check_nu
from .kernels import KernelLike

__all__ = ["OneClassSVM"]


class OneClassSVM(OneClassClassifier):
    """One-class SVM: the hyperplane, in the kernel's space, that separates most of the targets from the origin.

    It has the same optimum as ``sklearn.svm.OneClassSVM``, takes any kernel of this package, and comes with a certificate.

    Parameters
    ----------
    kernel : str, kernel object, ReferenceKernel, ReferenceMap, callable or "precomputed", default="rbf"
        A name stands for the kernel with its default parameters: "rbf" is ``RBF()``, whose width follows the data.
    nu : float in (0, 1], default=0.1
        An upper bound on the share of training targets left outside, and a lower bound on the share of support vectors.
    threshold : {"auto", "training", "loo"}, default="auto"
        "training" is the classical rule: the threshold is rho, so nu bounds the share of *training* targets outside.
        "loo" sets ``offset_`` so that about a share nu of *new* targets is rejected (at least 1 / (n + 1)). It scores every target with
        the exact model fitted without it, which costs a few fits; with more than 1,024 rows, with a model fitted on the other four
        fifths. "auto" is "loo" for kernels whose width follows the neighbours (``kernel_.narrow``), because nearly all targets carry
        weight there and "training" would reject most new ones. For other kernels "auto" is "training".
    tol : float, default=1e-6
        Relative duality gap at which the solver stops.
    max_iter : int, default=-1
        Limit on the solver's moves; -1 is max(10 million, 100 n).
    cache_size : float, default=200
        Memory for kernel rows, in MB.
    stopping : {"relative", "libsvm"}, default="relative"
        "libsvm" starts and stops as LIBSVM does, with ``tol`` an absolute violation (LIBSVM's default is 1e-3).
    memory : float, default=512
        Explicit features that would take more than this many MB are kept in single precision, in a temporary file, or not at all, and
        the optimum is found in passes over them. It does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Passed to a reference kernel that has none of its own.

    Attributes
    ----------
    offset_ : float
        rho (with ``threshold="loo"``, the score that a share nu of new targets falls below), less a slack for rounding, so that
        samples on the boundary count as inside; ``decision_function = score_samples - offset_``.
    support_, support_vectors_, dual_coef_, duality_gap_, n_iter_, kernel_
        As for :class:`SVDD`.

    Warns
    -----
    DegenerateSolutionWarning
        If the optimum is w = 0, as for a kernel centred on its own training samples.

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
        kernel: KernelLike = "rbf",
        *,
        nu: float = 0.1,
        threshold: str = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: float = 200,
        stopping: str = "relative",
        memory: float = 512,
        random_state: RandomStateLike = None,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.stopping = stopping
        self.memory = memory
        self.random_state = random_state

    @staticmethod
    def solved_parameter(nu: float, C: float | None) -> tuple[str, float]:
        """Tell which parameter bounds the share of targets outside: nu, the only one here.

        Parameters
        ----------
        nu : float
            The parameter nu.
        C : float or None
            Not used: only SVDD has a parameter C.

        Returns
        -------
        tuple of (str, float)
            "nu" and its value.
        """
        return "nu", nu

    def _check_params(self) -> None:
        super()._check_params()
        check_nu(self.nu)

    def _problem_maker(self, signed_weight: np.ndarray) -> Callable[[np.ndarray], DualProblem]:
        bound = check_nu(self.nu) * signed_weight.sum()
        return lambda diag: self.classifier.problem(diag, bound, signed_weight)
