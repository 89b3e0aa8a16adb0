"""``ConformalDetector``: any detector, with a threshold that keeps a promise about new samples."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._sklearn import LabelledOutlierMixin
from .._training import training_rows
from .._typing import MatrixLike, RandomStateLike
from .._validation import check_choice, is_number
from .held_out import HeldOut, HeldOutModels, Rows, by_folds, goes_own_way, has_own_way
from .promise import Promise, benjamini_hochberg, promise
from .scores import is_from, sign

__all__ = ["ConformalDetector"]

METHODS = ("auto", "split", "cv", "loo")
SCORED_BY = ("auto", "folds", "full")

TIE = 1e-10
"""Scores that differ by less than this share differ only by rounding: equal samples may get different bits in different calls."""

MOST_LEFT_OUT = 1024
"""With more targets "auto" is "cv": "loo" scores a new sample with as many models as there are targets."""

BLOCK_ENTRIES = 2**22
"""Differences of scores in memory at a time: 32 MB."""


class ConformalDetector(LabelledOutlierMixin, MetaEstimatorMixin, BaseEstimator):
    """Any detector, with a guaranteed false-alarm rate on new samples.

    It wraps any detector that scores new samples. Training samples, scored by models that have not seen them, show how normal samples
    score. The p-value of a new sample is the share of those scores that are at most its own, and a sample is rejected if its p-value
    is at most ``false_alarm_rate``. The promise needs one assumption: new normal samples are exchangeable with the training
    targets. It holds for any estimator, however poor; a poor one only misses more outliers.

    Parameters
    ----------
    estimator : estimator
        Any detector with ``fit`` and ``score_samples`` or ``decision_function``: those of this package, ``IsolationForest``,
        ``LocalOutlierFactor(novelty=True)``, pipelines, PyOD's detectors. It is cloned.
    false_alarm_rate : float in (0, 1), default=0.05
        The share of new normal samples that may be rejected. ``fit`` raises a ValueError if the samples are too few to promise it, and
        names the lowest rate that they can promise: 35 samples promise no less than 1/36.
    method : {"auto", "loo", "cv", "split"}, default="auto"
        How samples are held out. "split": a random part calibrates, the rest trains. "cv": every fold is scored by a model of the other
        folds (CV+). "loo": every sample is scored by a model of all others (jackknife+). That takes n fits unless the estimator has a
        faster method of its own. In a pipeline with fewer than 100 targets every step is still fitted n times, because a scaler that
        has seen the sample matters there. "auto" is "loo" for estimators with such a method and at most 1,024 targets, else "cv".
    confidence : float in (0, 1), optional
        By default the promise holds on average over training sets. With ``confidence=0.9`` the threshold is lowered until its
        own rate stays below ``false_alarm_rate`` with probability 0.9.
    cv : int, splitter or iterable of (train, test), default=10
        The folds of "cv". An int shuffles. A splitter or an iterable splits the targets (rows with y != -1 and a weight above 0,
        numbered in their order) and must test each of them once.
    calibration_size : float in (0, 1) or int, default=0.3
        The share or the number of the targets that calibrate in "split".
    scored_by : {"auto", "folds", "full"}, default="auto"
        What scores a new sample in "cv" and "loo". "folds": every fitted model, each compared with the samples that it has not seen;
        the proofs below need this. "full": one model of all targets, compared with all held-out scores; scoring costs one model
        instead of many, and the promise becomes approximate (see Notes). "auto" is "folds".
    higher_is : {"auto", "normal", "outlier"}, default="auto"
        What a high score of the estimator means. "auto" is "outlier" for PyOD's detectors and "normal", scikit-learn's convention, for
        all others.
    known_outliers : {"auto", "pass", "drop"}, default="auto"
        What to do with rows labelled -1, which never calibrate: pass them to the estimator's ``fit(X, y)`` in every fit, or drop
        them. "auto" passes them to detectors of this package only; most others ignore y and would learn them as normal.
    random_state : int, RandomState instance or None, default=None
        Draws the folds or the split. Seed the estimator by its own ``random_state``.
    n_jobs : int, optional
        Fits in parallel, through joblib. The results do not depend on it.
    verbose : int, default=0
        Shows a progress bar in a terminal or notebook (needs the extra ``progress``).

    Attributes
    ----------
    false_alarm_rate_ : float
        The promised rate, at most ``false_alarm_rate``: k / (n + 1) for a threshold at the k-th smallest of n scores. With
        ``confidence``, the bound that the rate stays below with that probability.
    false_alarm_interval_ : (float, float)
        The interval that contains the rate of this particular threshold with probability 0.9 (exact for "split" and continuous scores).
    offset_ : float
        The k-th smallest calibration score, less a slack for rounding; ``decision_function = score_samples - offset_``.
    calibration_rank_ : int
        The rank k of the threshold among the calibration scores.
    calibration_scores_ : array of shape (n,)
        The held-out scores, higher is more normal.
    calibration_indices_ : array of shape (n,)
        The row of X that each score belongs to.
    models_ : HeldOut
        The models that score new samples.
    estimator_ : estimator
        Fitted on all targets. Present only with ``scored_by="full"``, or for an estimator with its own method to leave samples out.
        SVDD and OneClassSVM get ``threshold="training"``: a threshold of their own by left-out samples would not be used.
    method_, scored_by_ : str
        The choice that "auto" led to.
    n_features_in_, feature_names_in_
        Taken from the estimator, if it has them.

    Notes
    -----
    **What is proved.** With s_m(x) the score of x by model m, and m(i) the model that has not seen calibration sample i,

        p(x) = (1 + #{i : s_m(i)(x_i) <= s_m(i)(x)}) / (n + 1),

    where ties count in the sample's favour. With "split" (Vovk et al., 2005) P(p <= a) <= a for every a, exactly, in finite samples.
    With "cv" and "loo" scored by folds, P(p <= a) <= 2a in general (up to a term of order sqrt(1/n) for "cv") and about a in
    practice (Barber et al., 2021). With ``scored_by="full"`` the promise holds if leaving one sample out barely changes the
    scores of the others. At small rates it held in every measurement, but p-values are not uniform, and ties (categories, duplicates) can
    break it; ``docs/promises.md`` has the numbers.

    **Confidence.** Given the calibration scores of a "split", the rate of a threshold at the k-th smallest is at most
    Beta(k, n + 1 - k); k is the largest rank for which this stays below ``false_alarm_rate`` with probability ``confidence``. "cv" and
    "loo" use the same rule as an approximation: their scores are dependent, and nothing is proved.

    **Discoveries.** ``select`` applies Benjamini and Hochberg (1995) to the p-values of one call. Those of "split" are positively
    dependent in the sense that it needs (Bates et al., 2023), so that the share of false discoveries is at most fdr on average; for
    "cv" and "loo" this is measured, not proved. p-values are multiples of 1 / (n + 1): j outliers among t samples can only be found
    where j >= t / (fdr (n + 1)).

    **Weights.** Rows of weight 0 are left out of everything. Other weights go to the estimator's ``fit``; each row calibrates once,
    regardless of its weight.

    References
    ----------
    Vovk, Gammerman and Shafer (2005). Algorithmic learning in a random world. Springer.
    Barber, Candès, Ramdas and Tibshirani (2021). Predictive inference with the jackknife+. Annals of Statistics 49.
    Bates, Candès, Lei, Romano and Sesia (2023). Testing for outliers with conformal p-values. Annals of Statistics 51.
    Benjamini and Hochberg (1995). Controlling the false discovery rate. Journal of the Royal Statistical Society B 57.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rng = np.random.default_rng(0)
    >>> X, new = rng.normal(size=(200, 2)), rng.normal(size=(1000, 2))
    >>> detector = rk.ConformalDetector(rk.SVDD(rk.RBF(1.0)), false_alarm_rate=0.1, random_state=0).fit(X)
    >>> bool(abs(np.mean(detector.predict(new) == -1) - 0.1) < 0.05)
    True
    >>> detector.p_values([[9.0, 9.0]]).round(3)
    array([0.005])
    >>> detector.select(np.vstack([new[:50], new[:20] + 9.0])).sum() >= 20
    np.True_
    """

    def __init__(
        self,
        estimator: Any,
        false_alarm_rate: float = 0.05,
        *,
        method: str = "auto",
        confidence: float | None = None,
        cv: Any = 10,
        calibration_size: float = 0.3,
        scored_by: str = "auto",
        higher_is: str = "auto",
        known_outliers: str = "auto",
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.false_alarm_rate = false_alarm_rate
        self.method = method
        self.confidence = confidence
        self.cv = cv
        self.calibration_size = calibration_size
        self.scored_by = scored_by
        self.higher_is = higher_is
        self.known_outliers = known_outliers
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the estimator as often as the method needs, and calibrate.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training samples, in whatever form the estimator takes.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which never calibrate; all other rows are targets.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the estimator's ``fit``; a weight of 0 leaves the row out.

        Returns
        -------
        self
            The calibrated detector.
        """
        sign_ = self._checked()
        samples, labels = indexable(X if hasattr(X, "shape") else np.asarray(X), y)
        rows = self._rows(samples, labels, sample_weight)
        self._choose(rows.calibrating.size)
        self.__dict__.pop("estimator_", None)  # of an earlier fit by another method
        calibrating = self._split(rows) if self.method_ == "split" else np.arange(rows.calibrating.size)
        found = promise(calibrating.size, self.false_alarm_rate, self.confidence)  # before anything is fitted
        self.models_ = self._held_out(rows, calibrating, sign_)
        self.calibration_indices_ = rows.calibrating[calibrating]
        self.calibration_scores_ = np.asarray(self.models_.scores, dtype=np.float64)
        self._keep(found)
        self._copy_features()
        return self

    def p_values(self, X: MatrixLike) -> np.ndarray:
        """Compute the p-value of each sample: the smaller, the less it is like the training targets.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Multiples of 1 / (n + 1), from 1 / (n + 1) to 1.
        """
        return (1.0 + self._counts(X)) / (self.calibration_scores_.size + 1.0)

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Label samples: +1 for those accepted, -1 for those rejected.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            -1 where the p-value is at most ``calibration_rank_`` / (n + 1), else +1.
        """
        return np.where(self._counts(X) >= self.calibration_rank_, 1, -1)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Compute by how much each score exceeds the threshold: at least 0 for samples that are accepted.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The k-th largest difference between the sample's score and a calibration score by the same model; with one model, the
            estimator's score less ``offset_``.
        """
        check_is_fitted(self, "calibration_rank_")
        k = self.calibration_rank_
        thresholds = [scores[:k] for scores in self._calibration()]
        kept = sum(scores.size for scores in thresholds)
        S = self.models_.score_matrix(X)
        decision = np.empty(S.shape[0])
        step = max(1, BLOCK_ENTRIES // kept)
        for i in range(0, S.shape[0], step):
            differences = np.hstack([S[i : i + step, [number]] - scores for number, scores in enumerate(thresholds)])
            decision[i : i + step] = np.partition(differences, kept - k, axis=1)[:, kept - k]
        return decision

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        """Compute ``decision_function(X) + offset_``: with one model, the estimator's own score; higher is more normal.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores.
        """
        return self.decision_function(X) + self.offset_

    def select(self, X: MatrixLike, fdr: float = 0.1) -> np.ndarray:
        """Select the samples to call outliers, so that on average at most a share ``fdr`` of them is normal.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            New samples, judged together.
        fdr : float in (0, 1), default=0.1
            The share of false discoveries.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
            True where a sample is called an outlier.
        """
        return benjamini_hochberg(self.p_values(X), fdr)

    def with_false_alarm_rate(self, false_alarm_rate: float, confidence: float | None = None) -> Self:
        """Copy the detector with another threshold, without refitting.

        Parameters
        ----------
        false_alarm_rate : float in (0, 1)
            The new false-alarm rate.
        confidence : float in (0, 1), optional
            As in the constructor.

        Returns
        -------
        ConformalDetector
            A copy that shares the fitted models.
        """
        check_is_fitted(self, "calibration_rank_")
        other = copy.copy(self)
        other.false_alarm_rate, other.confidence = false_alarm_rate, confidence
        other._keep(promise(self.calibration_scores_.size, false_alarm_rate, confidence))
        return other

    def _checked(self) -> float:
        """The sign of the estimator's scores, after checking the parameters."""
        for name, choices in (("method", METHODS), ("scored_by", SCORED_BY), ("known_outliers", ("auto", "pass", "drop"))):
            check_choice(name, getattr(self, name), choices)
        if get_tags(self.estimator).input_tags.pairwise:
            raise ValueError('ConformalDetector holds rows out, and kernel="precomputed" has none: pass samples and a kernel object.')
        return sign(self.estimator, self.higher_is)

    def _choose(self, n: int) -> None:
        by_default = "loo" if has_own_way(self.estimator) and n <= MOST_LEFT_OUT else "cv"
        self.method_ = by_default if self.method == "auto" else self.method
        self.scored_by_ = "folds" if self.scored_by == "auto" or self.method_ == "split" else self.scored_by

    def _rows(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None) -> Rows:
        training, weight = training_rows(X, y, sample_weight)
        passed = self.known_outliers == "pass" or (self.known_outliers == "auto" and is_from(self.estimator, "refkernel"))
        outliers = training.outliers if passed else np.empty(0, dtype=np.intp)
        return Rows(X, training.targets, outliers, self._passed_weight(weight, sample_weight))

    def _passed_weight(self, weight: np.ndarray, given: npt.ArrayLike | None) -> np.ndarray | None:
        if given is None or has_fit_parameter(self.estimator, "sample_weight"):
            return None if given is None else weight
        if np.unique(weight[weight > 0]).size > 1:
            raise ValueError(
                f"{type(self.estimator).__name__}.fit takes no sample_weight, and the weights differ. Only rows of weight 0 can be "
                "left out; pass equal weights for the others."
            )
        return None

    def _split(self, rows: Rows) -> np.ndarray:
        """The positions among the targets that calibrate."""
        n = rows.calibrating.size
        size: Any = self.calibration_size
        if isinstance(size, Integral) and not isinstance(size, bool):
            m = int(size)
        elif is_number(size) and 0 < size < 1:
            m = round(float(size) * n)
        else:
            raise ValueError(f"calibration_size={size!r} must be a share of the targets (a float in (0, 1)) or their number (an int).")
        if not 1 <= m < n:
            raise ValueError(f"calibration_size={size!r} of {n} targets leaves {m} to calibrate and {n - m} to train; both need 1 sample.")
        return np.sort(check_random_state(self.random_state).permutation(n)[:m])

    def _held_out(self, rows: Rows, calibrating: np.ndarray, sign_: float) -> HeldOut:
        everyone = np.arange(rows.calibrating.size)
        if self.method_ == "split":
            folds = [(np.setdiff1d(everyone, calibrating), calibrating)]
            fitted = by_folds(self.estimator, rows, folds, sign_)
            return HeldOutModels(fitted.models, fitted.scores[calibrating], fitted.model[calibrating], sign_)
        exact = self.method_ == "loo" and goes_own_way(self.estimator, rows.calibrating.size)
        if exact or self.scored_by_ == "full":
            self.estimator_ = rows.fitted(self.estimator, rows.calibrating)
        found: HeldOut
        if exact:
            found = rows.exactly_left_out(self.estimator_)
        else:
            found = by_folds(self.estimator, rows, self._folds(rows), sign_, self.n_jobs, self.verbose)
        if self.scored_by_ == "folds":
            return found
        return HeldOutModels([self.estimator_], found.scores, np.zeros(everyone.size, dtype=np.intp), sign_)

    def _folds(self, rows: Rows) -> list[Any]:
        n = rows.calibrating.size
        if self.method_ == "loo":
            return [(np.delete(np.arange(n), i), np.array([i])) for i in range(n)]
        if isinstance(self.cv, Integral):
            if isinstance(self.cv, bool) or int(self.cv) < 2:
                raise ValueError(f"cv={self.cv!r} must be at least 2 folds, a splitter or an iterable of (train, test).")
            splitter: Any = KFold(min(int(self.cv), n), shuffle=True, random_state=check_random_state(self.random_state))
        else:
            splitter = check_cv(self.cv)
        folds = [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(rows.part(rows.calibrating))]
        tested = np.bincount(np.concatenate([test for _, test in folds]), minlength=n)
        if tested.size != n or (tested != 1).any():
            raise ValueError(
                f"cv={self.cv!r} must test each of the {n} targets once; it tests them {tested.min()} to {tested.max()} times."
            )
        return folds

    def _keep(self, found: Promise) -> None:
        self.calibration_rank_ = found.rank
        self.false_alarm_rate_ = found.rate
        self.false_alarm_interval_ = found.interval()
        lowered = np.concatenate(self._calibration())
        self.offset_ = float(np.partition(lowered, found.rank - 1)[found.rank - 1])

    def _copy_features(self) -> None:
        model = self.estimator_ if hasattr(self, "estimator_") else getattr(self.models_, "models", [None])[0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def _calibration(self) -> list[np.ndarray]:
        """For each model, the sorted scores of the samples it has not seen, lowered so that ties count in a new sample's favour."""
        scores = self.calibration_scores_
        lowered = scores - TIE * np.maximum(np.abs(scores), np.median(np.abs(scores)))
        order = np.lexsort((lowered, self.models_.model))
        return np.split(lowered[order], np.cumsum(np.bincount(self.models_.model))[:-1])

    def _counts(self, X: MatrixLike) -> np.ndarray:
        """How many calibration scores are at most the sample's score by the same model."""
        check_is_fitted(self, "calibration_rank_")
        S = self.models_.score_matrix(X)
        counts = np.zeros(S.shape[0], dtype=np.intp)
        for number, scores in enumerate(self._calibration()):
            counts += np.searchsorted(scores, S[:, number], side="right")
        return counts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags
