"""Grid search for one-class classifiers."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import FitFailedWarning, UndefinedMetricWarning
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold, check_cv
from sklearn.utils import check_random_state, column_or_1d, indexable

from .._factor import distinct_rows
from .._one_class import DOUBTS
from .._progress import progress
from .._sklearn import BaseSearchCV
from .._threads import in_parallel, one_blas_thread
from .._typing import MatrixLike, RandomStateLike
from .._validation import OUTLIER
from .candidates import Alone, clone_values, plan
from .engine import Rows, Scores, Task, evaluate
from .made_up import with_made_up
from .scoring import LABEL_FREE, Scoring, as_scoring

__all__ = ["OneClassGridSearch"]


class OneClassGridSearch(BaseSearchCV):
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
        What scoring="label_free" makes outliers up by: a name or source of :mod:`refkernel.pseudo_outliers`, or rows to draw from.

    Attributes
    ----------
    cv_results_, best_params_, best_score_, best_index_, best_estimator_, n_splits_, refit_time_, scorer_
        As in ``GridSearchCV``. Times of shared work are split evenly between the candidates that share it.
        ``cv_results_["doubts"]`` names what a fit of the candidate would warn about on some fold ("degenerate", "indefinite",
        "far samples", "not converged"); degenerate candidates rank behind all others. With scoring="label_free",
        ``cv_results_["mean_accepted_normals"]`` and ``cv_results_["mean_rejected_made_up"]`` are shares of the test folds' targets and
        made-up outliers.
    stage_times_ : dict
        Seconds by stage, summed over all folds.

    Notes
    -----
    ``fit(X, y)``: rows with y = -1 are known outliers. Outliers of the training folds feed references that ask for them, and train
    only ``SVDD(negatives="repel")``. Scores use targets and outliers. A test fold without targets or without outliers cannot be
    scored by "gmean" and similar scores: its score is NaN, a warning names the fold, and means are taken over the other folds.

    scoring="label_free" needs no outlier. Outliers are made up once for each fold, from its training targets (as many as there are, at
    least 50 and at most 500), and join the test fold as outliers; known outliers in ``y`` count too. X must be dense and without
    missing values. The score is the mean of AUROC and Gmean: AUROC compares widths, Gmean thresholds. Measured for SVDD with 5 widths
    and 5 values of nu, on 13 tables of ADBench and the article's 14 tasks, the model chosen by AUROC alone has a test Gmean of 0.28 and
    0.41 (it accepts too few normals), by Gmean alone 0.70 and 0.74, by their mean 0.69 and 0.73. The mean chooses the better widths on
    ADBench: a test AUROC of 0.82, against 0.80 by Gmean. If the estimator has threshold="loo", narrow widths compete fairly: 0.87 and
    0.86, with a Gmean of 0.75 on both.

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
        y = y if y is None or _is_column(y) else column_or_1d(y)
        name = self._scoring_for(y)
        scoring = as_scoring(name)
        if name != LABEL_FREE:
            _check_kinds(y, scoring, name)
        random_state = check_random_state(self.random_state)
        splits = list(self._splitter(y, random_state).split(X, y, groups))
        candidates = list(ParameterGrid(self.param_grid))
        estimator = _seeded(self.estimator, random_state)
        task = Task(X, y, scoring, self.error_score, fit_params, groups=_groups(X))
        if name == LABEL_FREE:
            task, splits = with_made_up(task, splits, self.pseudo_outliers, estimator, random_state)
        undefined = _undefined_folds(task.y, splits, scoring)
        parts = [Alone(estimator, params, k) for k, params in enumerate(candidates)] if fit_params else plan(estimator, candidates)
        rows = self._evaluate(parts, task, splits)
        _report_failures(rows)
        self.scorer_ = scoring.scorer
        self.multimetric_ = False
        self.n_splits_ = len(splits)
        self.cv_results_ = _tabulate(candidates, rows, undefined, task.given is not None)
        _warn_about_doubts(list(self.cv_results_["doubts"]))
        self._choose(estimator, X, y, fit_params)
        return self

    def _scoring_for(self, y: Any) -> Any:
        """The scoring that was asked for, or the one that suits the data."""
        if self.scoring is not None:
            return self.scoring
        return LABEL_FREE if y is None or np.all(np.asarray(y) != OUTLIER) else "gmean"

    def _splitter(self, y: Any, random_state: np.random.RandomState) -> Any:
        if not isinstance(self.cv, int):
            return check_cv(self.cv, y)
        seed = random_state.randint(np.iinfo(np.int32).max)
        if y is None or np.all(np.asarray(y) != OUTLIER):
            return KFold(self.cv, shuffle=True, random_state=seed)
        return _ByKind(self.cv, seed)

    def _evaluate(self, parts: Sequence[Any], task: Task, splits: list[Any]) -> list[list[Rows]]:
        """The rows of all candidates, for every fold."""
        alone = effective_n_jobs(self.n_jobs) == 1
        tasks = [(fold, group) for fold in range(len(splits)) for group in ([parts] if alone else [[part] for part in parts])]
        remembered: dict[Any, Any] = {}
        arguments = ((group, task, *splits[fold], remembered) for fold, group in tasks)
        rows: list[list[Rows]] = [[] for _ in splits]
        self.stage_times_: dict[str, float] = {}
        with one_blas_thread():  # before any task begins: threads restore limits in any order, and must find this one
            done = itertools.starmap(evaluate, arguments) if alone else in_parallel(_evaluate_in_one_thread, arguments, self.n_jobs)
            for (fold, _), found in zip(tasks, progress(done, len(tasks), self.verbose), strict=True):
                rows[fold].extend(found.rows)
                for stage, seconds in found.stages.items():
                    self.stage_times_[stage] = self.stage_times_.get(stage, 0.0) + seconds
        return rows

    def _choose(self, estimator: Any, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        results = self.cv_results_
        self.best_index_ = int(self.refit(results)) if callable(self.refit) else int(results["rank_test_score"].argmin())
        self.best_score_ = float(results["mean_test_score"][self.best_index_])
        self.best_params_ = results["params"][self.best_index_]
        if self.refit:
            start = time.perf_counter()
            self.best_estimator_ = clone(estimator).set_params(**clone_values(self.best_params_)).fit(X, y, **fit_params)
            self.refit_time_ = time.perf_counter() - start
            if hasattr(self.best_estimator_, "feature_names_in_"):
                self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _groups(X: Any) -> np.ndarray | None:
    """A number for each row, the same for equal rows; None if no row repeats another, or if X is not an array of numbers."""
    found = distinct_rows(X) if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf" else None
    return None if found is None else found[1]


def _is_column(y: Any) -> bool:
    """Whether y is what ``column_or_1d`` makes of labels; to ask that function takes as long as to evaluate several small fits."""
    return isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biuf"


def _report_failures(rows: list[list[Rows]]) -> None:
    """Raise if every fit failed, and warn if some did, with each error and how often it happened."""
    failures = [found.failure for fold in rows for found in fold if found.failure]
    if not failures:
        return
    counts = {text: failures.count(text) for text in dict.fromkeys(failures)}
    total = sum(len(found.candidates) for fold in rows for found in fold)
    reasons = "\n".join(f"{count} of {total} fits failed with:\n{text}" for text, count in counts.items())
    if len(failures) == total:
        raise ValueError(f"All the {total} fits failed. Pass error_score='raise' to stop at the first.\n{reasons}")
    warnings.warn(f"{len(failures)} of {total} fits failed; their scores are error_score.\n{reasons}", FitFailedWarning, stacklevel=3)


def _warn_about_doubts(doubts: list[str]) -> None:
    """Give one warning for everything that fits of the candidates would warn about."""
    if not any(doubts):
        return
    counts = {name: sum(name in text.split(", ") for text in doubts) for name in DOUBTS}
    found = [f"{count} as {name!r}" for name, count in counts.items() if count]
    if found:
        worst = "degenerate" if counts["degenerate"] else next(name for name, count in counts.items() if count)
        warnings.warn(
            f"Of {len(doubts)} candidates, a fit would warn about {', '.join(found)}: see cv_results_['doubts'].",
            DOUBTS[worst][0],
            stacklevel=3,
        )


@dataclass(frozen=True)
class _ByKind:
    """The folds of a shuffled ``StratifiedKFold`` of targets and outliers, whatever labels the targets have."""

    n_splits: int
    random_state: int

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        is_outlier = np.asarray(y) == OUTLIER
        kinds = [is_outlier == is_outlier[0], is_outlier != is_outlier[0]]  # that of the first sample first
        counts = [np.count_nonzero(kind) for kind in kinds]
        if self.n_splits < 2 or self.n_splits > max(counts):
            yield from StratifiedKFold(self.n_splits).split(X, is_outlier)  # says what is wrong
        if self.n_splits > min(counts):
            warnings.warn(
                f"The smaller kind has only {min(counts)} samples, fewer than the {self.n_splits} folds of cv.", UserWarning, stacklevel=3
            )
        random = np.random.RandomState(self.random_state)
        sorted_kinds = np.repeat([0, 1], counts)
        fold_of = np.empty(len(is_outlier), dtype=np.intp)
        for k, kind in enumerate(kinds):
            sizes = [np.count_nonzero(sorted_kinds[fold :: self.n_splits] == k) for fold in range(self.n_splits)]
            folds = np.repeat(np.arange(self.n_splits), sizes)
            random.shuffle(folds)
            fold_of[kind] = folds
        for fold in range(self.n_splits):
            test = fold_of == fold
            yield np.flatnonzero(~test), np.flatnonzero(test)


def _evaluate_in_one_thread(*arguments: Any) -> Scores:
    """Run one task with one BLAS thread: matrices are small, and other tasks use the other cores."""
    with one_blas_thread():
        return evaluate(*arguments)


def _seeded(estimator: Any, random_state: np.random.RandomState) -> Any:
    """The estimator, or a copy, whose random parts all have a seed, so that all candidates of a fold use the same references.

    A part without a seed takes that of the part it belongs to, as in a fit; if that has none either, it takes one drawn here.
    """
    seed = random_state.randint(np.iinfo(np.int32).max)
    if isinstance(estimator, BaseEstimator):
        params = estimator.get_params()
        if not any(value is None and name.endswith("random_state") for name, value in params.items()):
            return estimator  # which the search does not change
    copy = clone(estimator)
    params = copy.get_params()
    for name in sorted(params, key=len):  # owners first
        *owners, last = name.split("__")
        if last == "random_state" and params[name] is None:
            inherited = params.get("__".join([*owners[:-1], last]))
            params[name] = seed if inherited is None or not owners else inherited
            (params["__".join(owners)] if owners else copy).random_state = params[name]
    return copy


def _check_kinds(y: Any, scoring: Scoring, name: Any) -> None:
    """Raise if the scoring needs outliers and there are none."""
    if scoring.needs_both and (y is None or np.all(np.asarray(y) != OUTLIER)):
        raise ValueError(
            f"scoring={name!r} needs known outliers, but there are none: pass y to fit with -1 for the rows of X that are outliers, "
            'or leave scoring out (or "label_free") to score by made-up outliers.'
        )


def _undefined_folds(y: Any, splits: list[Any], scoring: Scoring) -> list[int]:
    """The folds whose test part lacks targets or outliers although the scoring needs both: warn about some, raise for all."""
    if not scoring.needs_both:
        return []
    is_outlier = np.asarray(y) == OUTLIER
    undefined = [fold for fold, (_, test) in enumerate(splits) if is_outlier[test].all() or not is_outlier[test].any()]
    if len(undefined) == len(splits):
        raise ValueError("No test fold holds both targets and outliers, so none can be scored. Use fewer folds, or an int cv (stratified).")
    if undefined:
        warnings.warn(
            f"Test folds {undefined} lack targets or outliers and cannot be scored: their scores are NaN, means are over the other folds.",
            UndefinedMetricWarning,
            stacklevel=3,
        )
    return undefined


def _tabulate(candidates: list[dict[str, Any]], rows: list[list[Rows]], undefined: list[int], made_up: bool) -> dict[str, Any]:
    """``cv_results_`` with the keys of GridSearchCV, the doubts and shares; means are over the folds that can be scored."""
    measured = np.full((5 if made_up else 3, len(candidates), len(rows)), np.nan)
    fit_time, score_time, scores = measured[:3]
    doubts: list[dict[str, None]] = [{} for _ in candidates]
    for fold, parts in enumerate(rows):
        for found in parts:
            fit_time[found.candidates, fold], score_time[found.candidates, fold] = found.fit_time, found.score_time
            scores[found.candidates, fold] = found.scores
            if made_up:
                measured[3:, found.candidates, fold] = found.shares.T
            for candidate, names in zip(found.candidates, found.doubts, strict=True):
                if names:
                    doubts[candidate].update(dict.fromkeys(names))
    scores[:, undefined] = np.nan
    mean, std = measured.mean(axis=2), measured.std(axis=2)
    if undefined:
        defined = np.delete(measured[2:], undefined, axis=2)
        mean[2:], std[2:] = defined.mean(axis=2), defined.std(axis=2)
    results: dict[str, Any] = {}
    for k, name in enumerate(("fit_time", "score_time")):
        results[f"mean_{name}"], results[f"std_{name}"] = mean[k], std[k]
    for name in sorted({name for params in candidates for name in params}):
        column = np.empty(len(candidates), dtype=object)
        for number, params in enumerate(candidates):
            column[number] = params.get(name)  # one by one: a value may be an array
        results[f"param_{name}"] = np.ma.MaskedArray(column, np.array([name not in params for params in candidates]))
    results["params"] = candidates
    results |= {f"split{fold}_test_score": scores[:, fold] for fold in range(len(rows))}
    results["mean_test_score"], results["std_test_score"] = mean[2], std[2]
    if made_up:
        results["mean_accepted_normals"], results["mean_rejected_made_up"] = mean[3:]
    results["doubts"] = np.array([", ".join(names) for names in doubts], dtype=object)
    results["rank_test_score"] = _ranks(results["mean_test_score"], np.array(["degenerate" in names for names in doubts]))
    return results


def _ranks(mean: np.ndarray, degenerate: np.ndarray) -> np.ndarray:
    """1 for the best mean; degenerate candidates rank behind all others, and failed ones last."""
    known = mean[~np.isnan(mean)]
    if known.size == 0:
        return np.ones(mean.size, dtype=np.int32)
    worse = np.ptp(known) + 1.0
    keyed = np.where(np.isnan(mean), known.min() - 2.0 * worse, mean - worse * degenerate)
    return np.searchsorted(np.sort(-keyed), -keyed).astype(np.int32) + np.int32(1)
