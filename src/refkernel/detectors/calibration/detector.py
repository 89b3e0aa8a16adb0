"""``ConformalDetector``: any detector, with a threshold that keeps a promise about new samples."""

import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..._core.file_rules import Array, Number, Part, Rule, Text
from ..._core.rows import training_rows
from ..._core.types import MatrixLike, RandomStateLike
from ..._core.unwrap import is_from, sign
from ..._core.validation import as_labels, check_choice, is_number
from ...classifiers.left_out import LeftOutModels
from .base import CALIBRATION_RULES, Calibrating, SelectMixin, places_in_time
from .held_out import HeldOut, HeldOutModels, Rows, by_folds
from .promise import Promise, p_values, promise, worth

METHODS = ("auto", "split", "cv", "loo")
SCORED_BY = ("auto", "folds", "full")

TIE = 1e-10  # scores that differ by less than this share differ only by rounding: equal samples may get different bits in different calls
MOST_LEFT_OUT = 1024  # with more targets "auto" is "cv": "loo" scores a new sample with as many models as there are targets
BLOCK_ENTRIES = 2**22  # differences of scores in memory at a time: 32 MB


class ConformalDetector(SelectMixin, MetaEstimatorMixin, BaseEstimator):
    """Any detector, with a guaranteed false-alarm rate on new samples.

    Training samples, scored by models that have not seen them, show how normal samples score. The p-value of a new sample is the share
    of those scores that are at most its own, and a sample is rejected if its p-value is at most ``false_alarm_rate``. The promise needs
    one assumption: new normal samples are exchangeable with the training targets. A poor estimator only misses more outliers.

    Parameters
    ----------
    estimator : estimator
        Any detector with ``fit`` and ``score_samples`` or ``decision_function``: those of this package, ``IsolationForest``,
        ``LocalOutlierFactor(novelty=True)``, pipelines, PyOD's detectors. It is cloned.
    false_alarm_rate : float in (0, 1), default=0.05
        The share of new normal samples that may be rejected. ``fit`` raises if the samples are too few: n promise at least 1 / (n + 1).
    method : {"auto", "loo", "cv", "split"}, default="auto"
        How samples are held out. "split": a random part calibrates, the rest trains. "cv": every fold is scored by a model of the other
        folds (CV+). "loo": every sample is scored by a model of all others (jackknife+), which takes n fits unless the estimator has a
        faster method, as SVDD and OneClassSVM have (not in a pipeline). "auto" is "loo" for these up to 1,024 targets, else "cv".
    confidence : float in (0, 1), optional
        The probability with which the threshold's own rate stays below ``false_alarm_rate``; by default the rate holds on average.
    cv : int, splitter or iterable of (train, test), default=10
        The folds of "cv". An int shuffles; a splitter or an iterable splits the targets and must test each of them once.
    calibration_size : float in (0, 1) or int, default=0.3
        The share or the number of the targets that calibrate in "split".
    scored_by : {"auto", "folds", "full"}, default="auto"
        What scores a new sample in "cv" and "loo". "folds", the default: every fitted model, each compared with the samples that it has
        not seen. "full": one model of all targets, compared with all held-out scores; cheaper, and the promise becomes approximate.
    higher_is : {"auto", "normal", "outlier"}, default="auto"
        What a high score of the estimator means: by default "outlier" for PyOD's detectors and "normal" for all others.
    known_outliers : {"auto", "pass", "drop"}, default="auto"
        What to do with rows labelled -1, which never calibrate: pass them to the estimator's ``fit(X, y)``, or drop them. "auto" passes
        them to detectors of this package only; most others ignore y and would learn them as normal.
    random_state : int, RandomState instance or None, default=None
        Draws the folds or the split. Seed the estimator by its own ``random_state``.
    n_jobs : int, optional
        Fits in parallel, through joblib. The results do not depend on it.
    verbose : int, default=0
        Shows a progress bar in a terminal or notebook (needs the extra ``progress``).

    Attributes
    ----------
    false_alarm_rate_ : float
        The promised rate: k / (n + 1) for a threshold at the k-th smallest of n scores, or the bound that holds with ``confidence``.
    false_alarm_interval_ : (float, float)
        The interval that contains the rate of this particular threshold with probability 0.9 (exact for "split" and continuous scores).
    offset_ : float
        The k-th smallest calibration score, less a slack for rounding; ``decision_function = score_samples - offset_``.
    calibration_rank_ : int
        The rank k of the threshold among the calibration scores.
    calibration_scores_, calibration_indices_ : array of shape (n,)
        The held-out scores, higher is more normal, and the row of X that each belongs to.
    models_ : HeldOut
        The models that score new samples.
    estimator_ : estimator
        Fitted on all targets. Present only with ``scored_by="full"``, or for an estimator with its own method to leave samples out.
    method_, scored_by_ : str
        The choice that "auto" led to.

    Notes
    -----
    With s_m(x) the score of x by model m, and m(i) the model that has not seen calibration sample i,

        p(x) = (1 + #{i : s_m(i)(x_i) <= s_m(i)(x)}) / (n + 1),

    where ties count in the sample's favour. "split": P(p <= a) <= a, exactly (Vovk, Gammerman and Shafer, 2005). "cv" and "loo" scored
    by folds: P(p <= a) <= 2a in general (and a term of order sqrt(1/n) for "cv"), about a in practice (Barber, Candès, Ramdas and
    Tibshirani, 2021). ``scored_by="full"``: if leaving one sample out barely changes the scores of the others. What ``select`` needs is
    proved for "split" (Bates et al., 2023) and measured for the others, as is ``confidence``: ``docs/promises.md`` has numbers.

    The decision value is the k-th largest difference between the sample's score and a calibration score by the same model.
    Weights go to the estimator's ``fit``; each row of positive weight calibrates once.

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
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        "models_": Part((HeldOutModels, LeftOutModels)),
        "estimator_": Part(object, optional=True),
        "method_": Text(METHODS),
        "scored_by_": Text(SCORED_BY),
        "calibration_indices_": Array(("n",), lowest=-1),
        "calibration_scores_": Array(("n",)),
        "calibration_rank_": Number(1),
        **CALIBRATION_RULES,
        "offset_": Number(),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """A detector of another library need not be an estimator of scikit-learn."""
        if self.calibration_rank_ > sizes["n"]:
            return f"calibration_rank_ is {self.calibration_rank_}; {sizes['n']} rows calibrate"
        held: Any = self.models_
        is_exact, d = isinstance(held, LeftOutModels), getattr(self, "n_features_in_", None)
        if (is_exact or self.scored_by_ == "full") and not hasattr(self, "estimator_"):
            return "estimator_ is missing"
        for model in [held.classifier] if is_exact else held.models:
            if getattr(model, "n_features_in_", d) != d:
                return f"n_features_in_ is {d}; models_ takes {model.n_features_in_}"
        return None if hasattr(self.estimator, "fit") else "estimator is not a detector"

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

    def fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        groups: npt.ArrayLike | None = None,
        time: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator without some samples, which calibrate.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which never calibrate.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the estimator; a weight of 0 leaves the sample out.
        groups : array-like of shape (n_samples,), optional
            The group of each sample, such as its machine. Each group keeps the rate by itself: pass ``groups`` to ``predict``, too.
        time : array-like of shape (n_samples,), optional
            Numbers or dates: stretches of time are left out together, by "cv" and "split".

        Returns
        -------
        self
            The fitted detector.
        """
        sign_ = self._checked()
        samples, labels = indexable(X if hasattr(X, "shape") else np.asarray(X), y)
        rows = self._rows(samples, labels, sample_weight)
        place = None if time is None else places_in_time(time, samples.shape[0])[rows.calibrating]
        has_loo = hasattr(self.estimator, "_leave_one_out")  # a pipeline has not: its other steps have seen the sample
        by_default = "loo" if has_loo and rows.calibrating.size <= MOST_LEFT_OUT and time is None else "cv"
        self.method_ = by_default if self.method == "auto" else self.method
        if time is not None and (self.method_ == "loo" or not isinstance(self.cv, Integral)):
            raise ValueError('time leaves out stretches of time, which takes method="cv" or "split" and a number of folds for cv.')
        self.scored_by_ = "folds" if self.scored_by == "auto" or self.method_ == "split" else self.scored_by
        self.__dict__.pop("estimator_", None)  # of an earlier fit by another method
        calibrating = self._split(rows, place) if self.method_ == "split" else np.arange(rows.calibrating.size)
        found = promise(calibrating.size, self.false_alarm_rate, self.confidence)  # before anything is fitted
        self.models_ = self._held_out(rows, calibrating, sign_, place)
        self.calibration_indices_, self.calibration_worth_ = rows.calibrating[calibrating], 1.0
        self.calibration_scores_ = np.asarray(self.models_.scores, dtype=np.float64)
        self._keep(found)
        if place is not None:
            self.calibration_worth_ = worth((self.calibration_scores_ <= self.offset_)[np.argsort(place[calibrating], kind="stable")])
            self._keep(found)
        self._learn_groups(groups, samples.shape[0], self.calibration_indices_)
        model = self.estimator_ if hasattr(self, "estimator_") else getattr(self.models_, "models", [None])[0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return self

    def p_values(self, X: MatrixLike, groups: npt.ArrayLike | None = None) -> np.ndarray:
        check_is_fitted(self, "calibration_rank_")
        S = self.models_.score_matrix(X)
        found = p_values(self._at_most(S), self._calibration_size())
        for rows, held, _ in self._by_group(groups, len(S)):
            found[rows] = p_values(self._at_most(S[rows], held), int(held.sum()))
        return found

    def decision_function(self, X: MatrixLike, groups: npt.ArrayLike | None = None) -> np.ndarray:  # type: ignore[override]
        check_is_fitted(self, "calibration_rank_")
        S = self.models_.score_matrix(X)
        decision = self._decision(S, self.calibration_rank_)
        for rows, held, kept in self._by_group(groups, len(S)):
            decision[rows] = self._decision(S[rows], kept.rank, held)
        return decision

    def _decision(self, S: np.ndarray, k: int, held: Any = slice(None)) -> np.ndarray:
        """The k-th largest difference between a row's score and one of the calibration rows ``held``, by the same model."""
        thresholds = [scores[:k] for scores in self._calibration(held)]
        kept = sum(scores.size for scores in thresholds)
        decision = np.empty(S.shape[0])
        step = max(1, BLOCK_ENTRIES // kept)
        for i in range(0, S.shape[0], step):
            differences = np.hstack([S[i : i + step, [number]] - scores for number, scores in enumerate(thresholds)])
            decision[i : i + step] = np.partition(differences, kept - k, axis=1)[:, kept - k]
        return decision

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        return self.decision_function(X) + self.offset_

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
        if not hasattr(self.estimator, "get_params"):
            raise TypeError(f"estimator={self.estimator!r} must derive from sklearn.base.BaseEstimator, which makes copies for the folds.")
        if get_tags(self.estimator).input_tags.pairwise:
            raise ValueError('ConformalDetector holds rows out, and kernel="precomputed" has none: pass samples and a kernel object.')
        return sign(self.estimator, self.higher_is)

    def _rows(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None) -> Rows:
        training, weight = training_rows(X, y, sample_weight)
        passed = self.known_outliers == "pass" or (self.known_outliers == "auto" and is_from(self.estimator, "refkernel"))
        outliers = training.outliers if passed else np.empty(0, dtype=np.intp)
        takes_weight = sample_weight is not None and has_fit_parameter(self.estimator, "sample_weight")
        if sample_weight is not None and not takes_weight and np.unique(weight[weight > 0]).size > 1:
            raise ValueError(
                f"{type(self.estimator).__name__}.fit takes no sample_weight, and the weights differ. Only rows of weight 0 can be "
                "left out; pass equal weights for the others."
            )
        return Rows(X, training.targets, outliers, weight if takes_weight else None)

    def _split(self, rows: Rows, place: np.ndarray | None) -> np.ndarray:
        """The positions among the targets that calibrate: the last ones in time, or drawn at random."""
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
        drawn = check_random_state(self.random_state).permutation(n)[:m] if place is None else np.argsort(place)[n - m :]
        return np.sort(drawn)

    def _held_out(self, rows: Rows, calibrating: np.ndarray, sign_: float, place: np.ndarray | None) -> HeldOut:
        everyone = np.arange(rows.calibrating.size)
        if self.method_ == "split":
            folds = [(np.setdiff1d(everyone, calibrating), calibrating)]
            fitted = by_folds(self.estimator, rows, folds, sign_)
            return HeldOutModels(fitted.models, fitted.scores[calibrating], fitted.model[calibrating], sign_, fitted.alone)
        exact = self.method_ == "loo" and hasattr(self.estimator, "_leave_one_out")
        if exact or self.scored_by_ == "full":
            self.estimator_ = rows.fitted(self.estimator, rows.calibrating)
        found: HeldOut
        if exact:
            found = rows.exactly_left_out(self.estimator_)
        else:
            found = by_folds(self.estimator, rows, self._folds(rows, place), sign_, self.n_jobs, self.verbose)
        if self.scored_by_ == "folds":
            return found
        return HeldOutModels([self.estimator_], found.scores, np.zeros(everyone.size, dtype=np.intp), sign_, getattr(found, "alone", False))

    def _folds(self, rows: Rows, place: np.ndarray | None) -> list[Any]:
        n = rows.calibrating.size
        if self.method_ == "loo":
            return [(np.delete(np.arange(n), i), np.array([i])) for i in range(n)]
        if isinstance(self.cv, Integral):
            if isinstance(self.cv, bool) or int(self.cv) < 2:
                raise ValueError(f"cv={self.cv!r} must be at least 2 folds, a splitter or an iterable of (train, test).")
            if place is not None:
                stretches = np.array_split(np.argsort(place), min(int(self.cv), n))
                return [(np.setdiff1d(place.argsort(), test), np.sort(test)) for test in stretches]
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
        self.false_alarm_interval_ = replace(found, worth=self.calibration_worth_).interval()
        self.offset_ = float(np.sort(np.concatenate(self._calibration()))[found.rank - 1])

    def _wish(self) -> tuple[float, float | None]:
        return self.false_alarm_rate, self.confidence

    def _calibrating(self) -> Calibrating:
        group = getattr(self, "calibration_groups_", np.full(self.calibration_scores_.size, -1))
        return Calibrating(self.calibration_scores_, self.calibration_indices_, self.models_.model, group)

    def _calibrated_on(self, held: Calibrating) -> Self:
        other, other.models_ = copy.copy(self), copy.copy(self.models_)
        other.calibration_scores_, other.calibration_indices_, other.models_.model, group = held
        if hasattr(self, "calibration_groups_"):
            other.calibration_groups_ = group
        other.models_.scores = held.scores
        other._keep(promise(held.scores.size, self.false_alarm_rate, self.confidence))
        return other

    def _judged(self, X: MatrixLike, draws: np.ndarray, groups: Any = None) -> tuple[np.ndarray, ...]:
        S, n = self.models_.score_matrix(X), self._calibration_size()
        at_most, model = self._at_most(S), self.models_.model[(draws * n).astype(np.intp)]
        p, labels = p_values(at_most, n), as_labels(at_most >= self.calibration_rank_)
        for rows, held, kept in self._by_group(groups, len(S)):
            at_most = self._at_most(S[rows], held)
            p[rows], labels[rows] = p_values(at_most, int(held.sum())), as_labels(at_most >= kept.rank)
        return S[np.arange(len(S)), model], model, p, labels

    def _at_most(self, S: np.ndarray, held: Any = slice(None)) -> np.ndarray:
        """For each row, the calibration rows that the model that has not seen them scores at most as high; S is ``score_matrix``."""
        counts = [np.searchsorted(scores, S[:, number], side="right") for number, scores in enumerate(self._calibration(held))]
        return np.sum(counts, axis=0)

    def _calibration(self, held: Any = slice(None)) -> list[np.ndarray]:
        """For each model, the sorted scores of the samples it has not seen, lowered so that ties count in a new sample's favour."""
        scores, models = self.calibration_scores_, self.models_.model.max() + 1
        lowered = (scores - TIE * np.maximum(np.abs(scores), np.median(np.abs(scores))))[held]
        model = self.models_.model[held]
        return np.split(lowered[np.lexsort((lowered, model))], np.cumsum(np.bincount(model, minlength=models))[:-1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags
