"""AutoDetector: normal rows in, a calibrated detector out."""

from __future__ import annotations

import copy
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._encoding import Encoded
from .._progress import progress
from .._sklearn import validate_data
from .._training import TrainingRows, training_rows
from .._typing import RandomStateLike
from .._validation import as_labels, is_number
from ..calibration import benjamini_hochberg, least_rate, needed_samples, promise
from ..calibration.promise import Promise, check_rate
from ..pseudo_outliers import as_pseudo_outliers
from ..sources import as_source, is_source
from ..sources.labels import Labels, sampled
from .descriptions import Neighbours, Residuals
from .evidence import Evidence
from .judging import auroc, balanced_rate, standard_error
from .trimming import robust_ridge, trimmed
from .views import KINDS, ColumnView

__all__ = ["AutoDetector"]

PLAIN, BENT = range(len(KINDS))
SCALES, ROOT_SCALES = (0.1, 1.0), (1.0, 3.0)
"""Widths of the residuals of distances and of root distances, as multiples of the mean distance."""

STEPS = ((PLAIN, None, ()), (PLAIN, False, SCALES), (PLAIN, True, ROOT_SCALES), (BENT, None, ()), (BENT, False, SCALES))
"""(view, roots, scales): neighbours where roots is None, else residuals."""

ROBUST_STEPS = ((PLAIN, False, (1.0,)), (PLAIN, True, ROOT_SCALES), (BENT, False, (1.0,)))
"""Where outliers may be among the rows: one that was not left out is near all outliers like it, and a narrow kernel sees little else."""

MOST_REFERENCES = 1000
"""References of a residual: its matrix holds 8 MB, its cost grows with their cube, and twice as many rank no table better."""

MOST_NEIGHBOURS = 100_000
"""Neighbours are searched among at most this many rows; the time grows with their square."""

MOST_CALIBRATING = 10_000
"""At most this many rows calibrate: they promise rates down to 1 / 10,000."""

SOURCES = ("permuted", "box", "swapped", "pushed", "noise")
MADE_UP = 500
"""Made-up outliers of each source that the descriptions are tried on."""

BALANCED = "balanced"
"""Stands for a rate that follows from the made-up outliers."""

CLEARLY_WORSE = 1.0
"""With known outliers, descriptions worse than the best by more than this many standard errors of its AUROC are left out."""


class AutoDetector(OutlierMixin, BaseEstimator):
    """A detector that needs no settings: fit it on normal rows, and it rejects about ``false_alarm_rate`` of new normal rows.

    Every sample is described ten times: by its distance to the nearest training row, by its distance to five of them relative to how
    close these are to each other, and by the residual of a Laplacian kernel of two widths, in two views of the columns (standardised
    as they are, and with their tails bent); and by the residual of a kernel of two widths on the roots of the columns' differences.
    Each score is turned into evidence by the scores of the training rows that were left out, and the evidence is averaged. The same
    left-out rows calibrate the threshold.

    Parameters
    ----------
    false_alarm_rate : float in (0, 1) or "balanced", default=0.05
        The share of new normal samples that ``predict`` may reject. "balanced" takes ``balanced_rate_``: the harder made-up outliers are
        to tell from normal rows, the more rows are rejected.
    contamination : float in [0, 0.5) or "auto", default=0.0
        The share of training rows that may be unmarked outliers. Above 0, the least normal rows (twice that share) are left out of
        the descriptions, which become coarser: wide residuals with a ridge that grows with the share. The threshold ignores the
        least normal share of the rows, so every point that the share is too large costs about a point of false alarms. "auto" is 0.05.
    units : array-like of shape (n_features,), optional
        The difference that counts as one standard deviation, for each column whose scale is known, such as one-hot columns. NaN
        standardises the column. By default all columns are standardised, except behind a :class:`TableEncoder`, which knows the units.
    random_state : int, RandomState instance or None, default=None
        Draws the references where there are many rows, and the made-up outliers of ``results_``. None is seed 0, so
        that the result is the same every time.
    n_jobs : int, optional
        Not used: rows are always shared between the cores. Kept for scikit-learn's conventions.
    verbose : bool, default=False
        Shows a progress bar (needs the extra ``progress``).

    Attributes
    ----------
    choice_ : str
        What was chosen, in words.
    results_ : dict of lists
        A row for each description: ``description``, ``view``, ``auc_made_up`` (left-out normals against five kinds of
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
        The scores of the training rows that calibrate, each left out of what describes it, in ascending order.
    n_features_in_ : int
        The number of columns of the training rows.

    See Also
    --------
    ConformalDetector : The same promise for a detector of your own choice.
    TableEncoder : Takes text, truth values, dates and missing cells in front of it.
    SVDD : One description, with its certificate.

    Notes
    -----
    ``p_values`` compares a sample with the left-out training rows. Scaling, widths and neighbours are learnt from all rows, so
    the promise is approximate. On real tables of at least 35 rows it held within two percentage points.

    The references of the residuals are at most 1,000 rows, drawn at random. Neighbours are searched among all rows (up to 100,000), and
    up to 10,000 rows calibrate (a few more with contamination). Scaling uses all rows. With contamination there are no neighbours. Of a
    source of more rows, 100,000 are drawn at random, and ``choice_`` says so.

    A row that differs in a column that was constant in training is less normal than every row that calibrates, so it gets the
    smallest possible p-value.

    ``balanced_rate_`` is Phi(-z / sqrt(2)), z the mean of Phi^-1(AUROC) of left-out normal rows against five sources of made-up
    outliers (:mod:`refkernel.pseudo_outliers`), or against the known outliers in y; Phi is the normal distribution. It is the rate of
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
    array([0.005])
    """

    def __init__(
        self,
        false_alarm_rate: float | str = 0.05,
        *,
        contamination: float | str = 0.0,
        units: npt.ArrayLike | None = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.false_alarm_rate = false_alarm_rate
        self.contamination = contamination
        self.units = units
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Describe and calibrate the normal rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers, which help to choose between the descriptions; all other rows are normal.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 0 leaves the row out; other weights do not count.

        Returns
        -------
        self
            The fitted detector.
        """
        _check_rate(self.false_alarm_rate)
        share = self._contamination()
        rows, given = self._training_rows(X, y, sample_weight)
        if rows.targets.size < 2:
            raise ValueError("AutoDetector compares rows with each other and needs at least 2 normal ones; got 1 sample (n_samples = 1).")
        random_state = check_random_state(0 if self.random_state is None else self.random_state)
        self._unit, normal = _moderate(rows.X_targets)
        units = self._units(X.units if isinstance(X, Encoded) and self.units is None else self.units)
        kept = np.arange(len(normal)) if share == 0 else trimmed(normal, share, random_state)
        described = np.ascontiguousarray(normal) if share == 0 else normal[kept]
        calibrating = kept[self._learn(described, units, share, random_state)]
        if len(kept) < len(normal):
            calibrating = np.concatenate([calibrating, self._readmitted(normal, kept, share)])
        self._alone = self._left_out_contradicts(normal, kept)[calibrating]
        self._rows = rows.targets[calibrating]
        self._judge(described, rows.X[rows.outliers] / self._unit, random_state)
        self._calibrate()
        self.choice_ = self._in_words(len(kept), rows.targets.size, given)
        return self

    def _training_rows(self, X: Any, y: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None) -> tuple[TrainingRows, int]:
        """The rows in memory; of a source, a sample of as many rows as neighbours are searched among. Also how many normal rows X has."""
        if not is_source(X):
            rows = training_rows(validate_data(self, X, dtype=np.float64), y, sample_weight)[0]
            return rows, rows.targets.size
        source = as_source(X)
        labels = Labels.of(len(source), y, sample_weight)
        found, index = sampled(source, labels, 0 if self.random_state is None else self.random_state, MOST_NEIGHBOURS)
        self.n_features_in_ = source.n_columns
        return labels.chosen(index).training(found)[0], len(source) if labels.kind is None else int((labels.kind == 1).sum())

    def _contamination(self) -> float:
        share: Any = 0.05 if isinstance(self.contamination, str) and self.contamination == "auto" else self.contamination
        if not (is_number(share) and 0 <= share < 0.5):
            raise ValueError(f'contamination={self.contamination!r} must be a share from 0 to below 0.5, or "auto".')
        return float(share)

    def _units(self, given: Any) -> np.ndarray | None:
        """The units of the columns, each divided as the column is."""
        if given is None:
            return None
        units = np.asarray(given, dtype=np.float64)
        if units.shape != (self.n_features_in_,) or not ((units > 0) | np.isnan(units)).all():
            raise ValueError(f"units={given!r} must be {self.n_features_in_} positive numbers or NaN, one for each column.")
        return units / self._unit

    def _learn(self, normal: np.ndarray, units: np.ndarray | None, share: float, random_state: np.random.RandomState) -> np.ndarray:
        """Learn views and descriptions; return the numbers of the rows that calibrate, each left out of what describes it."""
        n = len(normal)
        chosen = np.arange(n) if n <= MOST_NEIGHBOURS else np.sort(random_state.permutation(n)[:MOST_NEIGHBOURS])
        described = normal if n <= MOST_NEIGHBOURS else normal[chosen]
        shuffled = random_state.permutation(len(described))
        references, others = np.sort(shuffled[:MOST_REFERENCES]), np.sort(shuffled[MOST_REFERENCES:MOST_CALIBRATING])
        self._views = [ColumnView(kind, units).fit(normal) for kind in KINDS]
        self._parts: list[tuple[int, Any]] = []
        held = []
        steps = ROBUST_STEPS if share else STEPS
        ridge = robust_ridge(share, len(references))
        for v, roots, scales in progress(steps, len(steps), self.verbose, "descriptions"):
            in_view = self._views[v].transform
            if roots is None:
                part: Any = Neighbours(np.ascontiguousarray(in_view(described).T)).fit()
                held.append(part.left_out(np.concatenate([references, others])))
            else:
                part = Residuals(np.ascontiguousarray(in_view(described[references]).T), scales, roots, ridge).fit()
                held.append(np.hstack([part.left_out(np.arange(len(references))), part.score(in_view(described[others]))]))
            part.forget()
            self._parts.append((v, part))
        self._held = np.vstack(held)
        self._evidence = [Evidence(scores).fit() for scores in self._held]
        self._used = np.ones(len(self._held), dtype=bool)
        return chosen[np.concatenate([references, others])]

    def _readmitted(self, normal: np.ndarray, kept: np.ndarray, share: float) -> np.ndarray:
        """Let normal rows calibrate that were left out with the outliers: all but the least normal share of the rows. Return their numbers.

        Without them the threshold would follow the most normal rows, and reject more new ones than promised. Where a sample of the rows
        calibrates, as large a sample of these joins it.
        """
        left_out = np.setdiff1d(np.arange(len(normal)), kept)
        scores = self._part_scores(normal[left_out])
        normals = len(left_out) - round(share * len(normal))
        every = len(kept) / self._held.shape[1]
        chosen = np.argsort(self._combined(scores), kind="stable")[np.arange(0, normals, every).astype(np.intp)]
        self._held = np.hstack([self._held, scores[:, chosen]])
        return left_out[chosen]

    def _left_out_contradicts(self, normal: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """True for rows with a cell that contradicts all other rows that are described, as a new row may contradict all of them."""
        contradicts = np.empty(len(normal), dtype=bool)
        contradicts[kept] = self._views[PLAIN].alone(normal[kept])
        left_out = np.setdiff1d(np.arange(len(normal)), kept)
        contradicts[left_out] = self._contradicted(normal[left_out]).any(axis=1)
        return contradicts

    def _judge(self, normal: np.ndarray, outliers: np.ndarray, random_state: np.random.RandomState) -> None:
        """Try each description on made-up and known outliers; known outliers decide which descriptions are used."""
        if len(normal) > MOST_REFERENCES:
            normal = normal[random_state.permutation(len(normal))[:MOST_REFERENCES]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tables so small that made-up rows repeat training rows
            made_up = [as_pseudo_outliers(source).draw(normal, MADE_UP, random_state) for source in SOURCES]
        against = np.split(self._part_scores(np.vstack(made_up)), len(SOURCES), axis=1)
        known_scores = [self._part_scores(outliers)] if len(outliers) else []
        names = [(name, self._views[v].kind) for v, part in self._parts for name in part.names]
        self.results_ = {
            "description": [name for name, _ in names],
            "view": [view for _, view in names],
            "auc_made_up": [float(np.mean([auroc(held, part[i]) for part in against])) for i, held in enumerate(self._held)],
            "auc_known": [auroc(*pair) for scores in known_scores for pair in zip(self._held, scores, strict=True)],
        }
        if known_scores:
            known = np.array(self.results_["auc_known"])
            self._used = known >= known.max() - CLEARLY_WORSE * standard_error(known.max(), self._held.shape[1], len(outliers))
        else:
            self.results_["auc_known"] = [float("nan")] * len(names)
        self.results_["used"] = self._used.tolist()
        held = self._combined(self._held)
        self.balanced_rate_ = balanced_rate([auroc(held, self._combined(scores)) for scores in known_scores or against])

    def _calibrate(self) -> None:
        self.calibration_ = np.sort(self._left_out_scores())
        n = len(self.calibration_)
        rate: Any = max(self.balanced_rate_, least_rate(n)) if self.false_alarm_rate == BALANCED else self.false_alarm_rate
        try:
            kept = promise(n, rate)
        except ValueError:
            kept = Promise(n, 1, least_rate(n))
            warnings.warn(
                f"{n} normal rows promise no less than {100 * least_rate(n):.2g} %: false_alarm_rate={rate:g} needs "
                f"{needed_samples(rate)}. The lowest rate that can be promised is used.",
                UserWarning,
                stacklevel=3,
            )
        self.offset_ = float(self.calibration_[kept.rank - 1])
        self.false_alarm_rate_, self.false_alarm_interval_ = kept.rate, kept.interval()

    def fit_predict(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, **kwargs: Any) -> np.ndarray:
        """Fit, and label the training rows, each judged by all others.

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
            +1 for normal rows, -1 for outliers. Rows that do not calibrate (known outliers, rows left out as contamination, and all
            but 10,000 of many rows) are judged as new rows.
        """
        self.fit(X, y, **kwargs)
        labels = self.predict(X)
        if is_source(X):
            return labels  # the rows that calibrate are those of a sample
        labels[self._rows] = as_labels(self._left_out_scores() >= self.offset_)
        return labels

    def with_false_alarm_rate(self, false_alarm_rate: float | str) -> Self:
        """Copy the detector with another threshold; nothing is fitted again.

        Parameters
        ----------
        false_alarm_rate : float in (0, 1) or "balanced"
            The share of new normal samples that ``predict`` may reject.

        Returns
        -------
        AutoDetector
            A copy with that threshold.
        """
        check_is_fitted(self)
        _check_rate(false_alarm_rate)
        other = copy.copy(self)
        other.false_alarm_rate = false_alarm_rate
        other._calibrate()
        return other

    def score_samples(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute minus the average evidence against each sample: 0 for the most normal, lower for less normal ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores. A row's score does not depend on the rows beside it.
        """
        check_is_fitted(self)
        if is_source(X):
            return as_source(X).apply(self.score_samples)
        samples: np.ndarray = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        with np.errstate(over="ignore"):
            samples = samples / self._unit
            return self._bounded(0.0 - self._combined(self._part_scores(samples)), self._contradicted(samples))

    def decision_function(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute ``score_samples(X) - offset_``: at least 0 for samples that are accepted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The decision values.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """Label samples: +1 for normal, -1 for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            -1 where the p-value is at most the false-alarm rate, else +1.
        """
        if is_source(X):
            return as_source(X).apply(self.predict)
        return as_labels(self.decision_function(X) >= 0)

    def p_values(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute the share of normal samples that look at least as unusual; small for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            (rows that score as low + 1) / (n + 1), by the n rows that calibrate.
        """
        if is_source(X):
            return as_source(X).apply(self.p_values)
        return self.p_values_of(self.score_samples(X))

    def p_values_of(self, score: np.ndarray) -> np.ndarray:
        """Compute the p-values that belong to scores of ``score_samples``.

        Parameters
        ----------
        score : ndarray of shape (n_samples,)
            Scores.

        Returns
        -------
        ndarray of shape (n_samples,)
            As ``p_values`` gives them for the samples themselves.
        """
        return (np.searchsorted(self.calibration_, score, side="right") + 1.0) / (len(self.calibration_) + 1.0)

    def select(self, X: npt.ArrayLike, fdr: float = 0.1) -> np.ndarray:
        """Call as many samples outliers as possible, so that at most a share ``fdr`` of these calls is expected to be wrong.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        fdr : float in (0, 1), default=0.1
            The false-discovery rate, by Benjamini and Hochberg's rule on ``p_values``.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
            True where a sample is called an outlier.
        """
        return benjamini_hochberg(self.p_values(X), fdr)

    def _part_scores(self, X: np.ndarray) -> np.ndarray:
        """The score of every sample by every description (descriptions × n); X in moderate units."""
        views = [view.transform(X) for view in self._views]
        most = np.finfo(np.float64).max
        return np.nan_to_num(np.vstack([part.score(views[v]) for v, part in self._parts]), nan=most, posinf=most)

    def _contradicted(self, X: np.ndarray) -> np.ndarray:
        """True for cells that differ from a column that was constant in training; X in moderate units."""
        return self._views[PLAIN].contradicted(X)

    def _left_out_scores(self) -> np.ndarray:
        """The scores of the rows that calibrate, each left out. Those that contradict all others are bounded as new rows are."""
        scores = -self._combined(self._held)
        return np.where(self._alone, scores + _just_below(scores[~self._alone]), scores)

    @property
    def _lowest(self) -> float:
        """Just less normal than every row that calibrates without contradicting all others."""
        return _just_below(self.calibration_[np.count_nonzero(self._alone) :])

    def _bounded(self, scores: np.ndarray, contradicted: np.ndarray) -> np.ndarray:
        """The scores; those of samples with a contradicted cell begin at ``_lowest`` instead of 0."""
        return np.where(contradicted.any(axis=1), scores + self._lowest, scores)

    def _combined(self, scores: np.ndarray) -> np.ndarray:
        evidence = [evidence(row) for evidence, row, used in zip(self._evidence, scores, self._used, strict=True) if used]
        return sum(evidence[1:], start=evidence[0]) / len(evidence)  # NumPy would sum a single sample in another order

    def _in_words(self, kept: int, drawn: int, given: int) -> str:
        used, all_ = int(self._used.sum()), len(self._used)
        chosen = "" if used == all_ else f" that tell the known outliers best, of {all_}"
        left_out = f", after leaving out {drawn - kept:,} of {drawn:,}" if kept < drawn else ""
        sample = f", drawn at random from {given:,}" if drawn < given else ""
        among = f" (neighbours are searched among {MOST_NEIGHBOURS:,} of them)" if kept > MOST_NEIGHBOURS else ""
        return f"the average of {used} descriptions of {kept:,} rows{among}{sample}{chosen}{left_out}"


def _just_below(scores: np.ndarray) -> float:
    """The number before the smallest score; 0 if there is none to compare with."""
    return float(np.nextafter(scores.min(), -np.inf)) if scores.size else 0.0


def _moderate(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(unit, X / unit): a power of two near the size of each column, so that squares neither overflow nor vanish."""
    size = np.abs(X).max(axis=0)
    unit = np.exp2(np.floor(np.log2(np.where(size > 0, size, 1.0))))
    unit = np.where((size > 1e100) | ((size < 1e-100) & (size > 0)), unit, 1.0)
    return unit, X if (unit == 1.0).all() else X / unit


def _check_rate(rate: Any) -> None:
    if isinstance(rate, str) and rate != BALANCED:
        raise ValueError(f'false_alarm_rate={rate!r} must be a number between 0 and 1, or "balanced".')
    if not isinstance(rate, str):
        check_rate("false_alarm_rate", rate)
