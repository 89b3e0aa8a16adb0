"""AutoDetector: normal rows in, a calibrated detector out."""

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._core.distances import moderate_unit
from ..._core.file_rules import FEATURES, Array, Flag, Items, Number, Part, Rule, Text
from ..._core.rows import in_dense_blocks
from ..._core.types import RandomStateLike
from ..._core.validation import as_labels, is_number, validate_data
from ...large import as_source, is_source
from ..calibration.base import CALIBRATION_RULES, CalibratedMixin, Calibrating, places_in_time
from ..calibration.promise import Promise, check_rate, least_rate, needed_samples, promise, worth
from ..pseudo_outliers import as_pseudo_outliers
from .descriptions import Descriptions
from .evidence import Evidence, auroc, balanced_rate, standard_error
from .folds import HeldOut, Training, Without, averaged, rows_in_memory
from .parts import parts_for, robust_parts

SOURCES = ("permuted", "swapped", "pushed", "box", "noise")
RESEMBLE = 3  # the first of these resemble normal rows, and say which rate balances the errors; the others are told apart almost always
MADE_UP, MADE_UP_OF = 300, 1000  # made-up outliers of each source that the parts are tried on, made of up to this many rows
BALANCED = "balanced"  # stands for a rate that follows from the made-up outliers
LITTLE_WORTH = 0.6  # independent rows seem to be worth less than this in 1 of 20 tables only
CLEARLY_WORSE = 1.0  # with known outliers, parts worse than the best by more than this many standard errors of its AUROC are left out
TRIMMED = 2.0  # rows that are left out, as a multiple of the contamination: outliers are not exactly the least normal rows
TIE = 1e-6  # of samples that are bounded, those with more evidence against them still score lower, by this share of it
JUDGED_FOLDS = 5  # ``fit_predict`` judges the rows that are described, where these are many, in this many folds


class AutoDetector(CalibratedMixin, BaseEstimator):
    """A detector that needs no settings: fit it on normal rows, and it rejects about ``false_alarm_rate`` of new normal rows.

    A sample is described by what the training rows around it leave of it, 1 - k'(K + ridge I)^-1 k: its squared distance from the span of
    reference rows in the space of a Laplacian kernel, or the posterior variance of a Gaussian process with that kernel. The references are
    local: a tree halves the rows at medians, and a leaf is described by its own rows and those nearest to its box, 200 together. There are
    three such residuals, in three views of the columns: normal scores of ranks, standardised, and mixed of normal scores and bent tails;
    distances add up the columns' differences or their square roots. Where values repeat, one that was never seen counts by Good and
    Turing's estimate. From 50 columns on, the residual of a linear kernel joins, a shrunk Mahalanobis distance; columns that share a unit,
    as in embeddings, are whitened instead. Each residual r counts as evidence, -log of the share of normal rows with at least r; the
    evidence is averaged. The normal rows that this share and the threshold are taken from are training rows that the views, leaves and
    widths have not seen: ten folds, or rows left out where there are more than 5,000. A sample is rejected if at most a share
    ``false_alarm_rate`` of these rows has as much evidence against it (cross-conformal or split conformal prediction).

    Parameters
    ----------
    false_alarm_rate : float in (0, 1) or "balanced", default=0.05
        The share of new normal samples that ``predict`` may reject. "balanced" takes ``balanced_rate_``: the harder made-up outliers are
        to tell from normal rows, the more rows are rejected.
    contamination : float in [0, 0.5) or "auto", default=0.0
        The share of training rows that may be unmarked outliers. Above 0, the least normal rows (twice that share) are left out, and the
        rest is described coarsely: by wide residuals of the same references for all samples, with a ridge that grows with the share.
        The threshold ignores the least normal share of the rows, so every point that the share is too large costs about a point of false
        alarms. "auto" is 0.05.
    units : array-like of shape (n_features,), optional
        The difference that counts as one standard deviation, for each column whose scale is known, such as one-hot columns. NaN
        standardises the column. By default all columns are standardised. :class:`TableDetector` passes the units that it knows.
    random_state : int, RandomState instance or None, default=0
        Draws the folds, the rows to describe where there are many, and the made-up outliers of ``results_``.
    verbose : bool, default=False
        Shows a progress bar (needs the extra ``progress``).

    Attributes
    ----------
    choice_ : str
        What was chosen, in words.
    results_ : dict of lists
        A row for each residual: ``description``, ``view``, ``auc_made_up`` (normal rows that were left out against five kinds of
        made-up outliers, averaged), ``auc_known`` (against the known outliers in y; NaN without any) and ``used``.
    false_alarm_rate_ : float
        The expected rate on new normal samples; a little below ``false_alarm_rate``, because ranks are whole numbers.
    false_alarm_interval_ : tuple of float
        The interval that holds the rate of this very threshold with probability 0.9.
    balanced_rate_ : float
        The rate at which about as many outliers are missed as normal rows are rejected, judged by made-up outliers; see Notes.
    offset_ : float
        ``decision_function = score_samples - offset_``.
    calibration_ : ndarray
        The scores of the training rows that calibrate, by views, leaves, widths and evidence that have not seen them; in ascending order.
    calibration_indices_ : ndarray of int
        The row of X that each of these scores belongs to.
    calibration_worth_ : float
        How many independent rows a row that calibrates is worth: below 1 where ``fit`` got times, and neighbours resemble each other.
    groups_ : dict of str to Promise or None
        What each group is promised, if ``fit`` got groups.
    n_features_in_ : int
        The number of columns of the training rows.

    See Also
    --------
    ConformalDetector : The same promise for a detector of your own choice.
    TableDetector : Takes text, truth values, dates and missing cells in front of it.
    SVDD : One description, with its certificate.

    Notes
    -----
    A row that calibrates is scored by descriptions of fewer rows than a new one: the rate is kept, or slightly less is rejected.
    Up to 20,000 rows are described. Of more than 5,000 rows, a tenth, at least 2,000 and at most 10,000, calibrates. Of a source of more
    rows, 100,000 are drawn at random, and ``choice_`` says so. References are distinct rows: how often a row occurs does not count.

    A row that differs in a column that was constant in training is less normal than every row that calibrates without such a
    difference, so it gets the smallest possible p-value, unless rows that were left out differ as well.

    ``balanced_rate_`` is Phi(-z / sqrt(2)), z the mean of Phi^-1(AUROC) of left-out normal rows against five sources of made-up
    outliers (``rk.pseudo_outliers``), or against the known outliers in y; Phi is the normal distribution. It is the rate of
    equal errors if both kinds of scores were normal with one variance. ``docs/which_one.md`` says
    how the rule was picked, and what it is worth.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> detector = rk.AutoDetector().fit(X)
    >>> detector.predict([[0.0, 0.0, 0.0], [6.0, 0.0, 0.0]])
    array([ 1, -1])
    >>> detector.p_values([[6.0, 0.0, 0.0]]).round(3)
    array([0.01])
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        **FEATURES,
        "calibration_": Array(("n",)),
        "calibration_indices_": Array(("n",), lowest=-1, optional=True),
        "choice_": Text(),
        **CALIBRATION_RULES,
        **dict.fromkeys(("offset_", "balanced_rate_"), Number()),
        "_bounds": Array((3,)),
        "_weights": Array(("q",)),
        "_evidence": Items(Part(Evidence), size="q"),
        "_model": Part(Descriptions),
        "_is_split": Flag(),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """The descriptions are of all features, and each has its evidence."""
        if len(self._model.names) != sizes["q"] or not self._weights.sum() > 0 or (self._weights < 0).any():
            return f"_model has {len(self._model.names)} descriptions, not {sizes['q']}, or none has weight"
        return None if self._model.rows_.shape[1] == sizes["d"] else f"_model describes rows of {self._model.rows_.shape[1]} columns"

    def __init__(
        self,
        false_alarm_rate: float | str = 0.05,
        *,
        contamination: float | str = 0.0,
        units: npt.ArrayLike | None = None,
        random_state: RandomStateLike = 0,
        verbose: bool = False,
    ) -> None:
        self.false_alarm_rate = false_alarm_rate
        self.contamination = contamination
        self.units = units
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        groups: npt.ArrayLike | None = None,
        time: npt.ArrayLike | None = None,
    ) -> Self:
        """Describe and calibrate the normal rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which help to choose between the descriptions; all other rows are normal.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 0 leaves the row out; other weights do not count.
        groups : array-like of shape (n_samples,), optional
            The group of each row, such as its machine. Each group keeps the rate by itself: pass ``groups`` to ``predict``, too.
        time : array-like of shape (n_samples,), optional
            Numbers or dates. Where rows that follow each other resemble each other, stretches of time are left out instead of single
            rows, and ``false_alarm_interval_`` is as wide as that many independent rows would make it.

        Returns
        -------
        self
            The fitted detector.
        """
        self._fit(X, y, sample_weight, groups=groups, time=time)
        return self

    def _fit(
        self,
        X: Any,
        y: npt.ArrayLike | None,
        sample_weight: npt.ArrayLike | None,
        without: Without | None = None,
        groups: npt.ArrayLike | None = None,
        time: npt.ArrayLike | None = None,
    ) -> "_Judged":
        """Fit, and say what was made of the rows; ``without`` gives those of an encoder as one sees them that has not seen some of them."""
        _check_rate(self.false_alarm_rate)
        share = self._contamination()
        rows, number, given = rows_in_memory(self, X, y, sample_weight)[:3]
        n = number.size
        if n < 2:
            raise ValueError("AutoDetector compares rows with each other and needs at least 2 normal ones; got 1 sample (n_samples = 1).")
        random_state = check_random_state(self.random_state)
        units, normal = self._units(), rows.X_targets
        parts = robust_parts(share, n) if share else parts_for(normal / moderate_unit(normal, axis=0), units)
        self._weights = np.concatenate([part.weights for part in parts])
        count = 0 if time is groups is None else len(as_source(X)) if is_source(X) else rows.X.shape[0]
        place = None if time is None else places_in_time(time, count)[number]
        training = Training(normal, units, parts, share == 0, without and _renumbered(without, number), self.verbose, place)
        kept = self._trimmed(training, share, random_state) if share else np.arange(n)
        held, described = self._learn(training, kept, random_state)
        self._is_split = share == 0 and not np.isin(held.rows, described).any()
        readmitted = self._readmitted(training, kept, described, len(held.rows) / len(kept), share)
        self._judge(normal[kept], held, rows.X[rows.outliers], random_state)
        evidence = np.concatenate([held.evidence(self._weights), self._combined(readmitted.scores)])
        scores = self._bounded_among(-evidence, np.concatenate([held.contradicts, readmitted.contradicts]))
        calibrating = np.concatenate([held.rows, readmitted.rows])
        order = np.argsort(scores, kind="stable")
        self.calibration_, self.calibration_indices_, self.calibration_worth_ = scores[order], number[calibrating[order]], 1.0
        self._calibrate(stacklevel=4)
        if place is not None:
            self._count_independent(scores[np.argsort(place[calibrating], kind="stable")])
        self._learn_groups(groups, count, self.calibration_indices_)
        self.choice_ = self._in_words(len(described), len(kept), n, given)
        return _Judged(training, kept, rows.targets, calibrating, scores)

    def _learn(self, training: Training, rows: np.ndarray, random_state: np.random.RandomState) -> tuple[HeldOut, np.ndarray]:
        """Describe rows, and learn evidence from those that calibrate; also which rows are described."""
        self._model, described, held = training.learn(rows, random_state)
        self._evidence = [Evidence().fit(scores) for scores in held.scores]
        return held, described

    def _count_independent(self, in_time: np.ndarray) -> None:
        """Measure what a calibration row is worth, from their scores in order of time, and say so if that is little."""
        self.calibration_worth_ = worth(in_time <= self.offset_)
        self._calibrate()
        if self.calibration_worth_ < LITTLE_WORTH:
            warnings.warn(
                f"Rows that follow each other resemble each other: {len(in_time):,} calibration rows are worth about "
                f"{self.calibration_worth_ * len(in_time):,.0f} independent rows. The interval of the rate follows that.",
                UserWarning,
                stacklevel=5,
            )

    def _trimmed(self, training: Training, share: float, random_state: np.random.RandomState) -> np.ndarray:
        """The numbers of the rows without the least normal ones: twice the contamination, and at least 2 rows are left."""
        n = len(training.X)
        held, _ = self._learn(training, np.arange(n), random_state)
        evidence = self._combined(self._model.score(training.X))
        evidence[held.rows] = held.evidence(self._weights)
        return np.sort(np.argsort(evidence, kind="stable")[: max(2, n - round(TRIMMED * share * n))])

    def _readmitted(self, training: Training, kept: np.ndarray, described: np.ndarray, calibrating: float, share: float) -> HeldOut:
        """Normal rows that were left out with the outliers, but calibrate (a share, as of the others): else too many are rejected."""
        left_out = np.setdiff1d(np.arange(len(training.X)), kept)
        found = training.held_out(left_out, described, self._model)
        normals = max(0, len(left_out) - round(share * len(training.X)))
        order = np.argsort(self._combined(found.scores), kind="stable")
        return found.some(order[np.arange(0, normals, 1.0 / calibrating).astype(np.intp)])

    def _contamination(self) -> float:
        share: Any = 0.05 if isinstance(self.contamination, str) and self.contamination == "auto" else self.contamination
        if not (is_number(share) and 0 <= share < 0.5):
            raise ValueError(f'contamination={self.contamination!r} must be a share from 0 to below 0.5, or "auto".')
        return float(share)

    def _units(self) -> np.ndarray | None:
        if self.units is None:
            return None
        units = np.asarray(self.units, dtype=np.float64)
        if units.shape != (self.n_features_in_,) or not ((units > 0) | np.isnan(units)).all():
            raise ValueError(f"units={self.units!r} must be {self.n_features_in_} positive numbers or NaN, one for each column.")
        return units

    def _judge(self, normal: np.ndarray, held: HeldOut, outliers: np.ndarray, random_state: np.random.RandomState) -> None:
        """Try each part on made-up and known outliers; known outliers decide which parts are used."""
        if len(normal) > MADE_UP_OF:
            normal = normal[random_state.permutation(len(normal))[:MADE_UP_OF]]
        unit = self._model.unit_
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tables so small that made-up rows repeat training rows
            made_up = [as_pseudo_outliers(source).draw(normal / unit, MADE_UP, random_state) for source in SOURCES]
        against = np.split(self._model.score(np.vstack(made_up) * unit), len(SOURCES), axis=1)
        known = [self._model.score(outliers)] if len(outliers) else []
        self.results_ = {
            "description": [name for name, _ in self._model.names],
            "view": [view for _, view in self._model.names],
            "auc_made_up": [float(np.mean([auroc(mine, part[i]) for part in against])) for i, mine in enumerate(held.scores)],
            "auc_known": [auroc(*pair) for pair in zip(held.scores, known[0], strict=True)] if known else [np.nan] * len(held.scores),
        }
        if known:
            auc = np.array(self.results_["auc_known"])
            least = auc.max() - CLEARLY_WORSE * standard_error(auc.max(), len(held.rows), len(outliers))
            self._weights = np.where(auc >= least, self._weights, 0.0)
        self.results_["used"] = (self._weights > 0).tolist()
        evidence = held.evidence(self._weights)
        self.balanced_rate_ = balanced_rate([auroc(evidence, self._combined(scores)) for scores in known or against[:RESEMBLE]])

    def _calibrate(self, stacklevel: int = 3) -> None:
        n = len(self.calibration_)
        rate: Any = max(self.balanced_rate_, least_rate(n)) if self.false_alarm_rate == BALANCED else self.false_alarm_rate
        try:
            kept = replace(promise(n, rate), worth=self.calibration_worth_)
        except ValueError:
            kept = Promise(n, 1, least_rate(n), worth=self.calibration_worth_)
            warnings.warn(
                f"{n} normal rows promise no less than {100 * least_rate(n):.2g} %: false_alarm_rate={rate:g} needs "
                f"{needed_samples(rate)}. The lowest rate that can be promised is used.",
                UserWarning,
                stacklevel=stacklevel,
            )
        self.offset_ = float(self.calibration_[kept.rank - 1])
        self.false_alarm_rate_, self.false_alarm_interval_ = kept.rate, kept.interval()

    def fit_predict(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, **kwargs: Any) -> np.ndarray:
        """Fit, and label the training rows, each judged by descriptions that have not seen it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers.
        **kwargs
            Passed to ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            +1 for normal rows, -1 for outliers. Known outliers, and rows left out as contamination, are judged as new rows.
        """
        judged = self._fit(X, y, kwargs.pop("sample_weight", None), **kwargs)
        groups = kwargs.get("groups")
        labels = self.predict(X, groups=groups)
        if is_source(X):
            return labels  # the rows that are described are those of a sample
        offset = self._offsets(groups, len(labels))
        labels[judged.targets[judged.rows]] = as_labels(judged.scores >= offset[judged.targets[judged.rows]])
        others = np.setdiff1d(judged.kept, judged.rows)
        if others.size:
            held = judged.training.in_folds(others, JUDGED_FOLDS)
            scores = self._bounded(-self._combined(held.scores), held.contradicts)
            labels[judged.targets[held.rows]] = as_labels(scores >= offset[judged.targets[held.rows]])
        return labels

    def _wish(self) -> tuple[float, float | None]:
        return (self.balanced_rate_ if self.false_alarm_rate == BALANCED else float(self.false_alarm_rate)), None

    def _calibrated_on(self, held: Calibrating) -> Self:
        other, order = copy.copy(self), np.argsort(held.scores, kind="stable")
        other.calibration_, other.calibration_indices_ = held.scores[order], held.indices[order]
        if hasattr(self, "calibration_groups_"):
            other.calibration_groups_ = held.group[order]
        other._calibrate()
        return other

    def with_false_alarm_rate(self, false_alarm_rate: float | str) -> Self:
        """Copy the detector with another threshold; nothing is fitted again.

        Parameters
        ----------
        false_alarm_rate : float in (0, 1) or "balanced"
            The share of new normal samples that ``predict`` may reject.

        Returns
        -------
        Self
            A copy with that threshold.
        """
        check_is_fitted(self)
        _check_rate(false_alarm_rate)
        other = copy.copy(self)
        other.false_alarm_rate = false_alarm_rate
        other._calibrate()
        return other

    def score_samples(self, X: npt.ArrayLike) -> np.ndarray:
        if not isinstance(X, np.ndarray) and is_source(X):
            check_is_fitted(self)
            return as_source(X).apply(self.score_samples)
        if sp.issparse(X):
            return in_dense_blocks(self.score_samples, X)
        samples = self._checked(X)
        return self._bounded(0.0 - self._combined(self._model.score(samples)), self._model.contradicts(samples))

    def evidence(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute what each description says against each sample; ``results_`` names the descriptions, and their views.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_descriptions)
            -log of the share of normal rows that look as unusual in a view. ``score_samples`` is minus the weighted mean: 0 for the most
            normal, lower for less normal ones.
        """
        return np.column_stack([evidence(part) for evidence, part in zip(self._evidence, self._model.score(self._checked(X)), strict=True)])

    def _checked(self, X: Any) -> np.ndarray:
        """The samples as an array; a finite array of the right shape is taken as it is, since the general checks take longer than a row."""
        is_plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and len(X) > 0 and X.flags.c_contiguous
        if is_plain and X.shape[1] == vars(self).get("n_features_in_") and not hasattr(self, "feature_names_in_") and np.isfinite(X).all():
            return np.asarray(X)
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64, order="C"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _terms(self, X: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
        """What each feature adds to the score of each row (rows × count): evidence is shared as each feature adds to a part's score.

        Contradicted constants share in equal parts what they take further from the score.
        """
        values, cells = np.zeros((len(X), count)), self._model.contradicted(X)
        parts = zip(
            self._weights / self._weights.sum(), self._evidence, self._model.score(X), self._model.terms(X, feature, count), strict=True
        )
        for weight, evidence, score, terms in parts:
            total = terms.sum(axis=1)
            values -= terms * (weight * evidence(score) / np.where(total == 0.0, 1.0, total))[:, None]
        contradicted = np.array([cells[:, feature == number].any(axis=1) for number in range(count)], dtype=np.float64).T
        score = values.sum(axis=1)
        beyond = self._bounded(score, np.asarray(cells.any(axis=1))) - score
        return values + contradicted * (beyond / np.maximum(contradicted.sum(axis=1), 1.0))[:, None]

    def _kept_rows(self) -> np.ndarray:
        return self._model.kept_rows()

    def _comparable(self, X: np.ndarray) -> np.ndarray:
        return self._model.comparable(X)

    def _graph(self, op: Any, X: Any) -> Any:
        unit = self._model.unit_
        X = X if (unit == 1.0).all() else op.Div(X, unit)
        used = np.flatnonzero(self._weights)
        scores = self._model._graph(op, X, (self._weights > 0).tolist())
        evidence = [
            op.Mul(self._evidence[i]._graph(op, score), op.numbers(self._weights[i])) for i, score in zip(used, scores, strict=True)
        ]
        minus = op.Div(evidence[0] if len(evidence) == 1 else op.Sum(*evidence), op.numbers(-self._weights.sum()))
        lowest, usual, least = map(op.numbers, self._bounds)
        bound = op.Add(op.Where(op.LessOrEqual(minus, least), lowest, usual), op.Mul(minus, op.numbers(TIE)))
        bounded = op.Where(self._model.columns_._graph_contradicted(op, X), op.Min(minus, bound), minus)
        return op.Sub(bounded, op.numbers(self.offset_))

    def _combined(self, scores: np.ndarray) -> np.ndarray:
        """The mean evidence against samples, from their scores by each part."""
        return averaged([evidence(of_part) for evidence, of_part in zip(self._evidence, scores, strict=True)], self._weights)

    def _bounded_among(self, scores: np.ndarray, contradicts: np.ndarray) -> np.ndarray:
        """The scores of rows that calibrate, bounded as those of new rows are.

        A contradiction is as much evidence as it is rare: if k of the rows contradict, it counts as the evidence that k others exceed, and
        as the most of all where there is as much other evidence as against any of the k.
        """
        others, k = np.sort(scores[~contradicts]), np.count_nonzero(contradicts)
        bounds = [float(np.nextafter(others[place], -np.inf)) if place < others.size else 0.0 for place in (0, k)]
        self._bounds = np.array([*bounds, scores[contradicts].min(initial=0.0)])
        return self._bounded(scores, contradicts)

    def _bounded(self, scores: np.ndarray, contradicts: np.ndarray) -> np.ndarray:
        """The scores, those of samples with a contradicted cell bounded from above."""
        lowest, usual, least = self._bounds
        bound = np.where(scores <= least, lowest, usual) + TIE * scores
        return np.where(contradicts, np.minimum(scores, bound), scores)

    def _in_words(self, described: int, kept: int, drawn: int, given: int) -> str:
        used, all_ = np.count_nonzero(self._weights), len(self._weights)
        chosen = "" if used == all_ else f" that tell the known outliers best, of {all_}"
        left_out = f", after leaving out {drawn - kept:,} of {drawn:,}" if kept < drawn else ""
        sample = f", drawn at random from {given:,}" if drawn < given else ""
        return f"the average of {used} descriptions of {described:,} rows{sample}{chosen}{left_out}"


@dataclass(frozen=True)
class _Judged:
    """What a fit made of its normal rows: ``rows`` of them calibrate, by these scores; ``targets`` are their numbers in X."""

    training: Training
    kept: np.ndarray
    targets: np.ndarray
    rows: np.ndarray
    scores: np.ndarray


def _renumbered(without: Without, number: np.ndarray) -> Without:
    """The same for rows that are the given ones of the table."""

    def of_these(unseen: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray | None]:
        seen, units = without(number[unseen])
        return lambda rows: seen(number[rows]), units

    return of_these


def _check_rate(rate: Any) -> None:
    if isinstance(rate, str) and rate != BALANCED:
        raise ValueError(f'false_alarm_rate={rate!r} must be a number between 0 and 1, or "balanced".')
    if not isinstance(rate, str):
        check_rate("false_alarm_rate", rate)
