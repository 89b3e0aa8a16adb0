"""Grid search for one-class classifiers."""

import functools
import itertools
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import FitFailedWarning, UndefinedMetricWarning
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold, check_cv
from sklearn.utils import check_random_state, column_or_1d, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._core.file_rules import Part, Rule
from .._core.progress import progress
from .._core.threads import in_parallel, one_blas_thread
from .._core.threshold import ThresholdMixin
from .._core.types import MatrixLike, RandomStateLike
from .._core.validation import OUTLIER
from ..classifiers.base import DOUBTS
from .engine import Alone, Rows, Task, configured, evaluate, plan
from .scoring import LABEL_FREE, Scoring, as_scoring, with_made_up


def _of_best(method: str) -> Any:
    """A method of the refitted best estimator; it is there if the estimator has it, and an AttributeError says why not."""

    def exists(search: Any) -> bool:
        if not search.refit:
            raise AttributeError(f"{method} needs an estimator that was fitted on all data. Pass refit=True.")
        getattr(getattr(search, "best_estimator_", search.estimator), method)
        return True

    @functools.wraps(getattr(ThresholdMixin, method))
    def call(self: Any, X: MatrixLike, **params: Any) -> np.ndarray:
        check_is_fitted(self)
        return getattr(self.best_estimator_, method)(X, **params)

    return available_if(exists)(call)


class OneClassGridSearch(MetaEstimatorMixin, BaseEstimator):
    """Exhaustive search over a grid, at a fraction of ``GridSearchCV``'s cost and with its answers.

    Candidates share what they have in common: preprocessing, references and distances are computed once for each fold, one
    factorisation for each base kernel, and all values of nu or C are solved as a path on one kernel matrix. Candidates that share
    nothing run one by one.

    Parameters
    ----------
    estimator : SVDD, OneClassSVM, or a Pipeline that ends in one
        The estimator to tune; it is cloned, not changed.
    param_grid : dict or list of dicts
        Parameter names and the values to try, as for ``GridSearchCV``.
    scoring : str or callable, optional
        "gmean", "balanced_accuracy", "tpr_at_tnr", "roc_auc", "average_precision", "label_free", any scikit-learn scorer or its name.
        By default "gmean" with known outliers and "label_free" without: see Notes.
    cv : int, splitter or iterable of (train, test), default=5
        An int asks for that many random folds, stratified by kind (targets, outliers).
    refit : bool or callable, default=True
        Fit ``best_estimator_`` on all data. A callable gets ``cv_results_`` and returns the best index.
    n_jobs : int, optional
        Folds in parallel, through joblib. The results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Shuffles the folds if ``cv`` is an int, and seeds every random part of the estimator that has no ``random_state``.
    verbose : int, default=0
        If not 0, show a progress bar in a terminal or notebook (needs the extra ``progress``).
    error_score : "raise" or float, default=nan
        The score of a candidate whose fit fails on a fold, with a ``FitFailedWarning`` that says why; "raise" raises the error.
        If every fit fails, ``fit`` raises.
    pseudo_outliers : str, source or array of shape (m, n_features), default="permuted_and_box"
        What scoring="label_free" makes outliers up by: a name or source of ``rk.pseudo_outliers``, or rows to draw from.

    Attributes
    ----------
    cv_results_, best_params_, best_score_, best_index_, best_estimator_, n_splits_, refit_time_, scorer_
        As in ``GridSearchCV``; candidates that share work share its time evenly. ``cv_results_["doubts"]`` names what a fit of the
        candidate would warn about on some fold ("degenerate", "indefinite", "far samples", "not converged"); degenerate candidates rank
        behind all others. With scoring="label_free", ``cv_results_["mean_accepted_normals"]`` and
        ``cv_results_["mean_rejected_made_up"]`` are shares of the test folds' targets and made-up outliers.
    stage_times_ : dict
        Seconds by stage, summed over all folds.

    Notes
    -----
    ``fit(X, y)``: rows with y = -1 are known outliers. Outliers of the training folds feed references that ask for them, and train
    only ``SVDD(negatives="repel")``. Scores use targets and outliers. A test fold without targets or without outliers cannot be
    scored by "gmean" and similar scores: its score is NaN, a warning names the fold, and means are taken over the other folds.

    scoring="label_free" needs no outlier. Outliers are made up once for each fold, from its training targets (as many as there are, at
    least 50 and at most 500), and join the test fold as outliers; known outliers in ``y`` count too. X must be dense and without
    missing values. The score is the mean of AUROC, which compares widths, and Gmean, which compares thresholds: either alone chooses
    worse models. With threshold="loo", narrow widths compete fairly.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(60, 2)), rng.normal(scale=4.0, size=(30, 2))])
    >>> y = np.r_[np.ones(60), -np.ones(30)]
    >>> grid = {"kernel__scale": [0.1, 1.0, 10.0], "nu": [0.05, 0.1, 0.2]}
    >>> search = rk.OneClassGridSearch(rk.SVDD(rk.RBF()), grid, random_state=0).fit(X, y)
    >>> len(search.cv_results_["params"]), search.best_score_ > 0.6
    (9, True)

    Without a known outlier:

    >>> search = rk.OneClassGridSearch(rk.SVDD(rk.RBF()), grid, random_state=0).fit(X[:60])
    >>> "mean_rejected_made_up" in search.cv_results_
    True
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        "estimator": Part(BaseEstimator, fitted=False),
        "best_estimator_": Part(BaseEstimator, optional=True),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """A search that was fitted has its best model."""
        is_there = hasattr(self, "best_estimator_") or not (self.refit and hasattr(self, "cv_results_"))
        return None if is_there else "best_estimator_ is missing"

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        scoring: str | Callable[..., float] | None = None,
        cv: Any = 5,
        refit: bool | Callable[[dict[str, Any]], int] = True,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
        error_score: float | str = np.nan,
        pseudo_outliers: Any = "permuted_and_box",
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.error_score = error_score
        self.pseudo_outliers = pseudo_outliers

    def fit(self, X: MatrixLike, y: npt.ArrayLike | None = None, *, groups: npt.ArrayLike | None = None, **fit_params: Any) -> Self:
        """Score every candidate on every fold, and refit the best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Targets and known outliers.
        y : array-like of shape (n_samples,), optional
            -1 for outliers, +1 for targets.
        groups : array-like of shape (n_samples,), optional
            Passed to a ``cv`` splitter that keeps groups together.
        **fit_params
            Passed to the estimator's ``fit``; arrays with one value for each sample are cut to the fold. Candidates then share no work.

        Returns
        -------
        self
            The search, with ``best_estimator_`` fitted on all data.
        """
        if self.error_score != "raise" and not isinstance(self.error_score, Real):
            raise ValueError(f'error_score={self.error_score!r} must be a number or "raise".')
        X, y = indexable(X, y)
        y = None if y is None else column_or_1d(y)
        has_outliers = y is not None and bool(np.any(y == OUTLIER))
        name = self.scoring if self.scoring is not None else "gmean" if has_outliers else LABEL_FREE
        scoring = as_scoring(name)
        if scoring.needs_both and not has_outliers and name != LABEL_FREE:
            raise ValueError(
                f"scoring={name!r} needs known outliers, but there are none: pass y to fit with -1 for the rows of X that are outliers, "
                'or leave scoring out (or "label_free") to score by made-up outliers.'
            )
        random_state = check_random_state(self.random_state)
        splits = self._splits(X, y, groups, has_outliers, random_state)
        candidates = list(ParameterGrid(self.param_grid))
        estimator = _seeded(self.estimator, random_state)
        task = Task(X, y, scoring, self.error_score, fit_params)
        if name == LABEL_FREE:
            task, splits = with_made_up(task, splits, self.pseudo_outliers, estimator, random_state)
        undefined = _undefined_folds(task.y, splits, scoring)
        parts = [Alone(estimator, params, k) for k, params in enumerate(candidates)] if fit_params else plan(estimator, candidates)
        rows = self._evaluate(parts, task, splits)
        _report_failures(rows)
        self.scorer_ = scoring.scorer
        self.multimetric_ = False
        self.n_splits_ = len(splits)
        self.cv_results_ = results = _tabulate(candidates, rows, undefined, task.given is not None)
        _warn_about_doubts(list(results["doubts"]))
        self.best_index_ = int(self.refit(results) if callable(self.refit) else results["rank_test_score"].argmin())
        self.best_score_, self.best_params_ = float(results["mean_test_score"][self.best_index_]), candidates[self.best_index_]
        if self.refit:
            start = time.perf_counter()
            self.best_estimator_ = configured(estimator, self.best_params_).fit(X, y, **fit_params)
            self.refit_time_ = time.perf_counter() - start
            if hasattr(self.best_estimator_, "feature_names_in_"):
                self.feature_names_in_ = self.best_estimator_.feature_names_in_
        return self

    predict, decision_function, score_samples = map(_of_best, ("predict", "decision_function", "score_samples"))

    def score(self, X: MatrixLike, y: npt.ArrayLike | None = None) -> float:
        """Score the best estimator on labelled samples, by the scoring of the search.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,), optional
            -1 marks outliers.

        Returns
        -------
        float
            The score.
        """
        if not self.refit:
            raise AttributeError(f"This search has refit={self.refit!r}: nothing was fitted on all data. Pass refit=True.")
        check_is_fitted(self)
        return self.scorer_(self.best_estimator_, X, y)

    @property
    def n_features_in_(self) -> int:
        """The number of features that the best estimator was fitted on."""
        return self.best_estimator_.n_features_in_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.input_tags.pairwise, tags.input_tags.sparse = inner.input_tags.pairwise, inner.input_tags.sparse
        return tags

    def _splits(self, X: Any, y: Any, groups: Any, has_outliers: bool, random_state: np.random.RandomState) -> list[Any]:
        if not isinstance(self.cv, int):
            return list(check_cv(self.cv, y).split(X, y, groups))
        folds = StratifiedKFold if has_outliers else KFold
        shuffled = folds(self.cv, shuffle=True, random_state=random_state.randint(np.iinfo(np.int32).max))
        return list(shuffled.split(X, np.asarray(y) == OUTLIER if has_outliers else None))

    def _evaluate(self, parts: Sequence[Any], task: Task, splits: list[Any]) -> list[list[Rows]]:
        """The rows of all candidates, for every fold."""
        alone = effective_n_jobs(self.n_jobs) == 1
        tasks = [(fold, group) for fold in range(len(splits)) for group in ([parts] if alone else [[part] for part in parts])]
        remembered: dict[Any, Any] = {}
        arguments = ((group, task, *splits[fold], remembered) for fold, group in tasks)
        rows: list[list[Rows]] = [[] for _ in splits]
        stages: Any = Counter()
        with one_blas_thread():  # before any task begins: threads restore limits in any order, and must find this one
            done = itertools.starmap(evaluate, arguments) if alone else in_parallel(evaluate, arguments, self.n_jobs)
            for (fold, _), (found, seconds) in zip(tasks, progress(done, len(tasks), self.verbose), strict=True):
                rows[fold].extend(found)
                stages.update(seconds)
        self.stage_times_ = dict(stages)
        return rows


def _report_failures(rows: list[list[Rows]]) -> None:
    """Raise if every fit failed, and warn if some did, with each error and how often it happened."""
    failures = Counter(found.failure for fold in rows for found in fold if found.failure)
    if not failures:
        return
    failed, total = failures.total(), sum(len(found.candidates) for fold in rows for found in fold)
    reasons = "\n".join(f"{count} of {total} fits failed with:\n{text}" for text, count in failures.items())
    if failed == total:
        raise ValueError(f"All the {total} fits failed. Pass error_score='raise' to stop at the first.\n{reasons}")
    warnings.warn(f"{failed} of {total} fits failed; their scores are error_score.\n{reasons}", FitFailedWarning, stacklevel=3)


def _warn_about_doubts(doubts: list[str]) -> None:
    """Give one warning for everything that fits of the candidates would warn about."""
    if counts := Counter(name for text in doubts for name in text.split(", ") if name):
        worst = "degenerate" if "degenerate" in counts else next(name for name in DOUBTS if name in counts)
        found = ", ".join(f"{counts[name]} as {name!r}" for name in DOUBTS if name in counts)
        message = f"Of {len(doubts)} candidates, a fit would warn about {found}: see cv_results_['doubts']."
        warnings.warn(message, DOUBTS[worst][0], stacklevel=3)


def _seeded(estimator: Any, random_state: np.random.RandomState) -> Any:
    """A copy of the estimator whose random parts all have a seed: that of what they belong to, as in a fit, or one drawn here."""
    seed, copy = random_state.randint(np.iinfo(np.int32).max), clone(estimator)
    params = copy.get_params()
    for name in sorted(params, key=len):  # owners first
        *owners, last = name.split("__")
        if last == "random_state" and params[name] is None:
            inherited = params.get("__".join([*owners[:-1], last]))
            params[name] = seed if inherited is None or not owners else inherited
            (params["__".join(owners)] if owners else copy).random_state = params[name]
    return copy


def _undefined_folds(y: Any, splits: list[Any], scoring: Scoring) -> list[int]:
    """The folds whose test part lacks targets or outliers although the scoring needs both: warn about some, raise for all."""
    if not scoring.needs_both:
        return []
    is_outlier = np.asarray(y) == OUTLIER
    undefined = [fold for fold, (_, test) in enumerate(splits) if is_outlier[test].all() or not is_outlier[test].any()]
    if len(undefined) == len(splits):
        raise ValueError("No test fold holds both targets and outliers, so none can be scored. Use fewer folds, or an int cv (stratified).")
    if undefined:
        message = f"Test folds {undefined} lack targets or outliers and cannot be scored: their scores are NaN, means are over the others."
        warnings.warn(message, UndefinedMetricWarning, stacklevel=3)
    return undefined


def _tabulate(candidates: list[dict[str, Any]], rows: list[list[Rows]], undefined: list[int], made_up: bool) -> dict[str, Any]:
    """``cv_results_`` with the keys of GridSearchCV, the doubts and shares; means are over the folds that can be scored."""
    measured = np.full((5, len(candidates), len(rows)), np.nan)
    fit_time, score_time, scores, *shares = measured
    doubts: list[dict[str, None]] = [{} for _ in candidates]
    for fold, parts in enumerate(rows):
        for found in parts:
            fit_time[found.candidates, fold], score_time[found.candidates, fold] = found.fit_time, found.score_time
            scores[found.candidates, fold] = found.scores
            shares[0][found.candidates, fold], shares[1][found.candidates, fold] = found.shares.T
            for candidate, names in zip(found.candidates, found.doubts, strict=True):
                doubts[candidate].update(dict.fromkeys(names))
    scores[:, undefined] = np.nan
    scored = np.delete(measured[2:], undefined, axis=2) if undefined else measured[2:]
    results: dict[str, Any] = _mean_and_std("fit_time", fit_time) | _mean_and_std("score_time", score_time)
    for name in sorted({name for params in candidates for name in params}):
        column = np.empty(len(candidates), dtype=object)
        for number, params in enumerate(candidates):
            column[number] = params.get(name)  # one by one: a value may be an array
        results[f"param_{name}"] = np.ma.MaskedArray(column, np.array([name not in params for params in candidates]))
    results["params"] = candidates
    results |= {f"split{fold}_test_score": scores[:, fold] for fold in range(len(rows))}
    results |= _mean_and_std("test_score", scored[0])
    if made_up:
        results["mean_accepted_normals"], results["mean_rejected_made_up"] = scored[1:].mean(axis=2)
    results["doubts"] = np.array([", ".join(names) for names in doubts], dtype=object)
    results["rank_test_score"] = _ranks(results["mean_test_score"], np.array(["degenerate" in names for names in doubts]))
    return results


def _mean_and_std(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"mean_{name}": values.mean(axis=1), f"std_{name}": values.std(axis=1)}


def _ranks(mean: np.ndarray, degenerate: np.ndarray) -> np.ndarray:
    """1 for the best mean; degenerate candidates rank behind all others, and failed ones last."""
    known = mean[~np.isnan(mean)]
    if known.size == 0:
        return np.ones(mean.size, dtype=np.int32)
    worse = np.ptp(known) + 1.0
    keyed = np.where(np.isnan(mean), known.min() - 2.0 * worse, mean - worse * degenerate)
    return np.searchsorted(np.sort(-keyed), -keyed).astype(np.int32) + np.int32(1)
