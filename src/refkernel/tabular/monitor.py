"""``Monitor``: a detector in operation. Rows come in batches, the promise is watched, and reviewed rows renew it."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from .._core.file_rules import Array, Flag, Items, Number, Part, Rule, Text
from .._core.text import counted, named, percent
from .._core.validation import OUTLIER, check_positive
from ..detectors.calibration.base import Calibrating, calibrating
from ..detectors.calibration.promise import check_rate, clopper_pearson
from ..detectors.explain import explain
from ..detectors.explain.normal import Normal
from ..detectors.martingale import ConformalMartingale
from ..exceptions import ModelFileError
from ..export.files import load
from ..export.sealed import mismatch
from .columns import CATEGORY, DATE
from .drift import LEVEL, DriftMonitor
from .frames import READERS

GAP = 3  # flagged rows at most this far apart are one episode: at a rate of 5 %, one false alarm in seven has another one so near
FEWEST_KEPT = 1_000  # rows that are kept by default, at least: they promise rates down to 0.1 %

CONFIDENCE, REASONS = 0.9, 2

SCORE, MODEL, P_VALUE, LABEL, TIME, STATUS, CELLS = range(7)  # the columns of ``kept_``; the cells come last

WAITING, NORMAL, ANOMALY, TRAINED = 0, 1, -1, 2
"""The status of a kept row: not reviewed; normal, so that it calibrates; an anomaly; normal, and trained on by ``refit``."""


class Episode(NamedTuple):
    """Neighbouring flagged rows, which are one event: rows ``first`` to ``last`` and their times, and the reasons of the ``worst``."""

    first: int
    last: int
    flagged: int
    worst: int
    p_value: float
    times: tuple[float, ...]
    reasons: tuple[str, ...]


class MonitorUpdate(NamedTuple):
    """What a batch brought; ``rows`` are the numbers by which ``review`` knows the rows, and ``text`` says what to know now."""

    labels: np.ndarray
    p_values: np.ndarray
    rows: np.ndarray
    episodes: list[Episode]
    alarm: bool
    text: str


class Monitor(BaseEstimator):
    """Watches a fitted detector in operation: whether its promise still holds, what it flagged, and what reviews say of that.

    Rows are numbered from 0 in the order in which they are watched. The state is saved by :func:`save`, and :func:`load` resumes it.

    Parameters
    ----------
    detector : fitted detector
        ``TableDetector``, ``AutoDetector`` or ``ConformalDetector``.
    level : float in (0, 1), default=0.05
        The probability of an alarm, ever, while rows stay like those that calibrate. Each review begins anew.
    window : int, optional
        How many of the newest rows are kept for ``review`` and ``refit``, and calibrate at most after a review. By default as many as
        calibrate ``detector``, at least 1,000.
    random_state : int, default=0
        Breaks ties between scores.

    Attributes
    ----------
    detector_ : fitted detector
        What judges rows: ``detector``, until ``review`` or ``refit`` renew it.
    evidence_, alarm_ : float, bool
        How strongly rows are less normal than those that calibrate, and whether that reached 1 / level since the last review. Without a
        change the evidence stays near 1 or below. It is a conformal test martingale, a mixture of power bets (Vovk, Nouretdinov and
        Gammerman, 2003) on each score's rank among the calibration scores and all later ones.
    flagged_share_, flagged_interval_ : float, (float, float)
        The share of rows flagged since the last review and its 90 % interval; the promise is ``detector_.false_alarm_rate_``.
    episodes_ : list of Episode
        The flagged rows since the last review: neighbours are one episode, with its times, its worst row and the reasons for it.
    drifted_ : dict
        Columns of a table that differ from training, each with ``rows_`` when that was found. The u-th update after a review tests its
        rows, and all kept rows since then, by Holm's rule at the level 0.025 / (u (u + 1)) each; all levels add up to 0.05.
    rows_, start_ : int
        The number of rows so far, and of those that are reviewed.
    history_, reviews_ : ndarray of shape (n_updates, 5), ndarray of shape (n_reviews, 3)
        For each update: rows and flagged rows since the last review, logarithm of the highest evidence, ``rows_``, the last time. For
        each review: ``rows_``, normal rows and anomalies.

    See Also
    --------
    suspects : Training rows that may be hidden outliers.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rng = np.random.default_rng(1)
    >>> monitor = rk.Monitor(rk.AutoDetector().fit(rng.normal(size=(300, 2))))
    >>> monitor.update(rng.normal(size=(100, 2))).alarm
    False
    >>> today = monitor.update(rng.normal(1.0, 1.0, size=(100, 2)))
    >>> today.alarm
    True
    >>> monitor.review(anomalies=today.rows[:3]).alarm_
    False
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("detector_", "base_"), Part(BaseEstimator)),
        "martingale_": Part(ConformalMartingale),
        **dict.fromkeys(("rows_", "start_", "flagged_", "updates_", "window_"), Number(0)),
        "peak_": Number(),
        "dated_": Flag(),
        "fingerprint_": Text(),
        "kept_": Array(("m", "k"), finite=False),
        "levels_": Items(Items(Text()), size="c"),
        "history_": Array(("u", 5), finite=False),
        "reviews_": Array(("r", 3)),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """Categories are found by their numbers."""
        if sizes["k"] != CELLS + sizes["c"] or not self.start_ <= self.rows_ >= len(self.kept_):
            return "kept_ does not fit levels_ or rows_"
        return mismatch(getattr(self, "drifted_", None), {str: int}, "drifted_")

    def __init__(self, detector: Any, level: float = 0.05, *, window: int | None = None, random_state: int = 0) -> None:
        self.detector = detector
        self.level = level
        self.window = window
        self.random_state = random_state

    @property
    def _is_table(self) -> bool:
        return hasattr(self.detector, "columns_")

    def _check(self) -> None:
        """Check the parameters and begin, if that was not done."""
        if hasattr(self, "rows_"):
            return
        check_rate("level", self.level)
        n, columns = calibrating(self.detector).scores.size, self.detector.n_features_in_
        self.window_ = max(n, FEWEST_KEPT) if self.window is None else int(self.window)
        check_positive("window", self.window_)
        self.base_, self.fingerprint_, self.dated_, self.rows_ = self.detector, fingerprint(self.detector), False, 0
        self.kept_, self.levels_ = np.empty((0, CELLS + columns)), [list[str]() for _ in range(columns)]
        self.history_, self.reviews_ = np.empty((0, 5)), np.empty((0, 3))
        self._begin(self.detector)

    def _begin(self, detector: Any) -> None:
        """Watch a detector from here on."""
        self.detector_, self.martingale_ = detector, ConformalMartingale(calibrating(detector).scores)
        self.start_, self.flagged_, self.updates_, self.peak_ = self.rows_, 0, 0, 0.0
        self.drifted_: dict[str, int] = {}
        self._tell()

    def _tell(self) -> None:
        """What users read of the counts."""
        rows, evidence = self.rows_ - self.start_, self.martingale_.evidence
        self.evidence_, self.alarm_ = _power(evidence), bool(self.peak_ >= -np.log(self.level))
        self.flagged_share_ = self.flagged_ / rows if rows else float("nan")
        self.flagged_interval_ = clopper_pearson(self.flagged_, rows, CONFIDENCE) if rows else (0.0, 1.0)

    def update(self, X: Any, time: Any = None) -> MonitorUpdate:
        """Judge a batch of new rows, and say what to know now.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows as ``detector`` takes them, none of them twice. A batch may be empty.
        time : array-like of shape (n_samples,), optional
            Dates or numbers: rows are watched in that order, and batches must follow each other. By default the ``time_column`` of a
            ``TableDetector``, if X has it; else rows come in their order.

        Returns
        -------
        MonitorUpdate
            ``labels``, ``p_values``, ``rows`` (their numbers), ``episodes`` that reach into the batch, ``alarm``; as text what to know.
        """
        self._check()
        first, count = self.rows_, X.shape[0] if hasattr(X, "shape") else len(X)
        when, order = self._in_time(X, time, count)
        labels, p_values = self._watch(X, when, order) if count else (np.empty(0, dtype=int), np.empty(0))
        episodes = self._episodes(first)
        return MonitorUpdate(labels, p_values, first + np.argsort(order), episodes, self.alarm_, self._summary(first, episodes))

    def review(self, anomalies: npt.ArrayLike = ()) -> Self:
        """Say which of the rows since the last review were anomalies, and calibrate anew.

        All other rows of that time join the calibration, and not only those that were flagged in error: rows that are chosen by their
        scores are not exchangeable with new ones. Where more than ``window`` rows would calibrate, the oldest leave.

        Parameters
        ----------
        anomalies : array-like of int or bool, default=()
            The numbers of the anomalies, as ``update`` gave them in ``rows``; or a truth value for each row since the last review.

        Returns
        -------
        self
            ``detector_`` has the new threshold; evidence, alarm, drift and counts begin anew.
        """
        self._check()
        places, status = self._places(anomalies), self.kept_[:, STATUS].copy()
        status[status == WAITING], status[places] = NORMAL, ANOMALY
        reviewed, own = self.kept_[status == NORMAL], calibrating(self.base_)
        joined = Calibrating(reviewed[:, SCORE], np.full(len(reviewed), -1), reviewed[:, MODEL].astype(np.intp), np.full(len(reviewed), -1))
        stay = np.random.default_rng(self.random_state).permutation(own.scores.size)[: max(0, self.window_ - len(reviewed))]
        detector = self.base_._calibrated_on(own.some(np.sort(stay)).and_(joined))
        self.kept_[:, STATUS] = status
        self.reviews_ = np.vstack([self.reviews_, [self.rows_, self.rows_ - self.start_ - places.size, places.size]])
        self._begin(detector)
        return self

    def refit(self) -> Self:
        """Learn anew from the reviewed rows that are kept: normal ones are described and calibrate, anomalies are known outliers.

        Returns
        -------
        self
            ``detector_`` was fitted again, with the same parameters.
        """
        self._check()
        if self.rows_ > self.start_ or not len(self.kept_):
            raise ValueError(f"refit learns from reviewed rows, and {counted(self.rows_ - self.start_, 'row')} wait: review them first.")
        X, status = self._kept_rows(np.arange(len(self.kept_))), self.kept_[:, STATUS]
        y = np.where(status == ANOMALY, OUTLIER, 1) if (status == ANOMALY).any() else None
        base = clone(self.base_)
        if self._is_table:
            base._fit(X.frame(), y, dict(zip(X.names, self.base_.encoder_.kinds_, strict=True)), self.base_.columns_)
        else:
            base.fit(X, y)
        self.base_, status[status == NORMAL] = base, TRAINED
        self._begin(base)
        return self

    @property
    def episodes_(self) -> list[Episode]:
        """The flagged rows since the last review; neighbours are one episode."""
        return self._episodes(self.start_)

    def _watch(self, X: Any, when: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(labels, p-values) of rows, which are then watched in the given order."""
        draws = np.random.Generator(np.random.PCG64(self.random_state).advance(2 * self.rows_)).random((order.size, 2))
        X = self.detector_.read(X) if self._is_table else X
        scores, model, p_values, labels = self.detector_._judged(X, draws[:, 0])
        rows = np.column_stack([scores, model, p_values, labels, when, np.full(order.size, WAITING), *self._coded(X)])[order]
        evidence = self.martingale_.add(rows[:, SCORE], draws[:, 1])
        self.kept_ = np.concatenate([self.kept_, rows])[-self.window_ :]
        self.rows_, self.updates_ = self.rows_ + order.size, self.updates_ + 1
        self.flagged_, self.peak_ = self.flagged_ + int((labels == OUTLIER).sum()), max(self.peak_, float(evidence.max()))
        now = [self.rows_ - self.start_, self.flagged_, evidence.max(), self.rows_, rows[-1, TIME]]
        self.history_ = np.vstack([self.history_, now])
        if self._is_table:
            waiting, level = np.flatnonzero(self.kept_[:, STATUS] == WAITING), LEVEL / (2 * self.updates_ * (self.updates_ + 1))
            for places in (waiting, waiting[-order.size :]):
                drift = DriftMonitor(self.detector_.columns_)
                drift.add(self._kept_rows(places).cells)
                found = [column.name for column in drift.drift().drifted if column.corrected <= level]
                self.drifted_ = dict.fromkeys(found, self.rows_) | self.drifted_
        self._tell()
        return labels, p_values

    def _in_time(self, X: Any, time: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The times of rows, NaN where none are known, and the order in which to watch the rows."""
        column = getattr(self.detector, "time_column", None)
        if time is None and column is not None and column in getattr(X, "columns", ()):
            time = X[column]
        if time is None or not count:
            return np.full(count, np.nan), np.arange(count)
        when, dated = _seconds(time)
        if when.shape != (count,):
            raise ValueError(f"time has {counted(when.size, 'value')}, and X has {counted(count, 'row')}.")
        if np.isnan(when).any():
            raise ValueError(f"time has no value for row {np.isnan(when).argmax()} of the batch: leave that row out, or pass no time.")
        last, written = (self.history_[-1, -1] if len(self.history_) else np.nan), Normal(is_date=dated).written
        if when.min() < last:
            seen = f"The batch begins at {written(when.min())}, and rows until {written(last)} were watched already."
            raise ValueError(f"{seen} Watch each row once, and batches in order of time; leave out rows that came late.")
        self.dated_ = dated
        return when, np.argsort(when, kind="stable")

    def _coded(self, X: Any) -> Any:
        """The columns of rows as numbers: categories by their places in ``levels_``."""
        if not self._is_table:
            return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64).T
        columns = list(X.cells)
        for j in np.flatnonzero(self.detector.encoder_.kinds_ == CATEGORY):
            self.levels_[j] += sorted({cell for cell in columns[j] if cell == cell} - set(self.levels_[j]))
            place = {level: number for number, level in enumerate(self.levels_[j])}
            columns[j] = [place.get(cell, np.nan) for cell in columns[j]]
        return columns

    def _kept_rows(self, places: np.ndarray) -> Any:
        """Kept rows as the detector takes them."""
        cells, names = self.kept_[places, CELLS:], getattr(self.detector_, "feature_names_in_", None)
        if not self._is_table:
            return cells if names is None else _frame(cells, names)
        columns = list(cells.T)
        for j in np.flatnonzero(self.detector.encoder_.kinds_ == CATEGORY):
            texts = np.array([*self.levels_[j], np.nan], dtype=object)
            columns[j] = texts[np.where(np.isnan(columns[j]), -1, columns[j]).astype(np.intp)]
        return self.detector_.read(columns)

    def _places(self, anomalies: npt.ArrayLike) -> np.ndarray:
        """The places in ``kept_`` of the rows that a review names."""
        given, since, gone = np.asarray(anomalies), self.rows_ - self.start_, self.rows_ - len(self.kept_)
        if not since:
            raise ValueError("No row was watched since the last review: update first.")
        if given.dtype == bool:
            if given.shape != (since,):
                raise ValueError(f"anomalies has {counted(given.size, 'truth value')}; {counted(since, 'row')} wait for the review.")
            given = self.start_ + np.flatnonzero(given)
        oldest, numbers = max(self.start_, gone), np.unique(given.astype(np.float64))
        wrong = numbers[~((numbers >= oldest) & (numbers < self.rows_) & (numbers % 1 == 0))]
        if wrong.size:
            older = f" Older ones left the window of {self.window_:,} rows: review sooner, or raise window." if gone > self.start_ else ""
            waiting = f"rows {oldest} to {self.rows_ - 1} do, numbered as in update(…).rows"
            raise ValueError(f"Row {wrong[0]:g} does not wait for a review: {waiting}.{older}")
        return (numbers - gone).astype(np.intp)

    def _episodes(self, first: int) -> list[Episode]:
        """The episodes since the last review that reach to the row ``first`` or beyond."""
        gone, p = self.rows_ - len(self.kept_), self.kept_[:, P_VALUE]
        flagged = np.flatnonzero((self.kept_[:, STATUS] == WAITING) & (self.kept_[:, LABEL] == OUTLIER))
        groups = np.split(flagged, np.flatnonzero(np.diff(flagged) > GAP) + 1)
        groups = [group for group in groups if group.size and group[-1] + gone >= first]
        worst, found = np.array([group[p[group].argmin()] for group in groups], dtype=np.intp), []
        for group, row, reasons in zip(groups, worst, self._reasons(worst), strict=True):
            times = tuple(float(time) for time in self.kept_[group[[0, -1]], TIME] if not np.isnan(time))
            rows = int(group[0] + gone), int(group[-1] + gone), group.size, int(row + gone)
            found.append(Episode(*rows, float(p[row]), times, tuple(map(str, reasons))))
        return found

    def _reasons(self, places: np.ndarray) -> Sequence[Sequence[Any]]:
        """The strongest reasons of kept rows; none where the model's kind cannot be explained."""
        if not places.size:
            return []
        rows, detector = self._kept_rows(places), self.detector_
        try:
            return detector.reasons(rows, REASONS) if self._is_table else explain(detector, rows).sentences(REASONS)
        except (TypeError, ValueError):  # a detector of another library, a kernel of another kind
            return [()] * places.size

    def _summary(self, first: int, episodes: Sequence[Episode]) -> str:
        """What the rows from a number on brought, in three lines: counts beside the promise, the worst episode, evidence and drift."""
        rows, since = self.rows_ - first, self.rows_ - self.start_
        flagged = int((self.kept_[-rows:, LABEL] == OUTLIER).sum()) if rows else 0
        low, high = (f"{100 * end:.2g}" for end in self.flagged_interval_)
        share = f"; since the last review {percent(self.flagged_share_)} of {since:,} (90 % interval {low} to {high} %)" if since else ""
        promised = f"promised {percent(self.detector_.false_alarm_rate_)}"
        worst = min(episodes, key=lambda episode: (episode.p_value, -episode.flagged), default=None)
        alarm = f"ALARM: rows are less normal than those that calibrate (evidence {_power(self.peak_):.3g}). " if self.alarm_ else ""
        drifted = f" Columns that differ from training: {named(self.drifted_)}." if self.drifted_ else ""
        return (
            f"{counted(rows, 'row')}: {flagged:,} flagged in {counted(len(episodes), 'episode')}{share}; {promised}.\n"
            f"{f'Worst: {self._described(worst)}' if worst else 'No episode'}.\n"
            f"{alarm}Evidence {'now ' * self.alarm_}{self.evidence_:.3g}, alarm at {1 / self.level:.3g}.{drifted}"
        )

    def _described(self, episode: Episode) -> str:
        """An episode in a line."""
        rows = f"rows {episode.first} to {episode.last}, {episode.flagged} flagged" if episode.flagged > 1 else f"row {episode.first}"
        when = " to ".join(dict.fromkeys(map(Normal(is_date=self.dated_).written, episode.times)))
        reasons = f": {'; '.join(episode.reasons)}" if episode.reasons else ""
        return f"{rows}{f' ({when})' if when else ''}, p = {episode.p_value:.2g}{reasons}"


def load_state(path: Path, detector: Any = None) -> Monitor:
    """The monitor whose state is in a file; it must belong to the detector, if one is given."""
    monitor = load(path)
    if not isinstance(monitor, Monitor):
        raise ModelFileError(f"{path} holds a {type(monitor).__name__}, and not the state of a monitor. Name another file.")
    if detector is not None and fingerprint(detector) not in (monitor.fingerprint_, fingerprint(monitor.detector_)):
        raise ModelFileError(f"{path} watches another model than this one. Pass the model that it began with, or begin a new state.")
    return monitor


def fingerprint(detector: Any) -> str:
    """SHA-256 of the calibration scores: no two models share them."""
    return hashlib.sha256(np.asarray(calibrating(detector).scores, dtype=np.float64).tobytes()).hexdigest()


def _power(logarithm: float) -> float:
    return float(np.exp(min(logarithm, 700.0)))


def _seconds(time: Any) -> tuple[np.ndarray, bool]:
    """Times as numbers (dates: seconds since 1970), and whether they are dates."""
    if np.asarray(time).dtype.kind in "iuf":
        return np.asarray(time, dtype=np.float64), False
    return READERS[DATE](_frame(np.asarray(time, dtype=object)[:, None], ["time"]).infer_objects(), ["time"])[:, 0], True


def _frame(cells: np.ndarray, names: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(cells, columns=list(names))
