"""``Monitor``: a detector in operation. Rows come in batches, the promise is watched, and reviewed rows renew it."""

import copy
import hashlib
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from .._core.file_rules import Array, Flag, Items, Number, Part, Rule, Text
from .._core.text import counted, named, percent
from .._core.validation import OUTLIER
from ..detectors.calibration.base import Calibrating, calibrating
from ..detectors.calibration.promise import check_rate, clopper_pearson
from ..detectors.explain.normal import Normal
from ..detectors.martingale import ConformalMartingale
from ..exceptions import ModelFileError
from ..export.files import load
from ..export.sealed import mismatch
from .columns import CATEGORY, DATE
from .comparison import GAP, reasons_of
from .drift import LEVEL, DriftMonitor
from .frames import READERS, as_frame

FEWEST_KEPT = 1_000  # rows that are kept by default, at least: they promise rates down to 0.1 %
CONFIDENCE, REASONS = 0.9, 2
UNDONE = 3  # reviews that can be undone: a mistake is noticed within a few

SCORE, MODEL, P_VALUE, LABEL, TIME, STATUS, ROW, GROUP, CELLS = range(9)  # the columns of ``kept_``; the cells come last

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
        How many of the newest rows are kept for ``review`` and ``refit``, and calibrate at most after a review. Up to as many older rows
        are kept if they were flagged and wait for a review. By default as many as calibrate ``detector``, at least 1,000.
    random_state : int, default=0
        Breaks ties between scores.

    Attributes
    ----------
    detector_ : fitted detector
        What judges rows: ``detector``, until ``review`` or ``refit`` renew it.
    evidence_, alarm_ : float, bool
        How strongly rows are less normal than those that calibrate (1 or below without a change), and whether that reached 1 / level
        since the last review: a conformal test martingale of power bets (Vovk, Nouretdinov and Gammerman, 2003) on ranks of scores.
    flagged_share_, flagged_interval_ : float, (float, float)
        The share of rows flagged since the last review and its 90 % interval; the promise is ``detector_.false_alarm_rate_``.
    episodes_ : list of Episode
        The flagged rows since the last review: neighbours are one episode, with its times, its worst row and the reasons for it.
    drifted_ : dict
        Columns of a table that differ from training, each with ``rows_`` when that was found. The u-th update after a review tests its
        rows, and all kept rows since then, by Holm's rule at the level 0.025 / (u (u + 1)) each; all levels add up to 0.05.
    rows_, start_ : int
        The number of rows so far, and of those that are reviewed.
    history_, reviews_ : ndarray of shape (n_updates, 5), ndarray of shape (n_reviews, 4)
        For each update: rows and flagged rows since the last review, logarithm of the highest evidence, ``rows_``, the last time. For
        each review: ``rows_``, normal rows that joined the calibration, anomalies, and the rate that is promised from then on.
    card_ : dict
        The card of ``detector_``, if it has one, and as ``operation`` what happened since, in plain JSON.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rng = np.random.default_rng(1)
    >>> monitor = rk.Monitor(rk.AutoDetector().fit(rng.normal(size=(300, 2))))
    >>> today = monitor.update(rng.normal(1.0, 1.0, size=(100, 2)))
    >>> today.alarm
    True
    >>> monitor.review(anomalies=today.rows[:3]).alarm_
    False
    """

    _file_rules: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("detector", "detector_", "base_"), Part(BaseEstimator)),
        "level": Number(positive=True, most=1.0),
        "martingale_": Part(ConformalMartingale),
        "window_": Number(1),
        "dated_": Flag(),
        **dict.fromkeys(("fingerprint_", "digest_"), Text()),
        "kept_": Array(("m", "k"), finite=False),
        "levels_": Items(Items(Text()), size="c"),
        "groups_": Items(Text()),
        "history_": Array(("u", 5), finite=False),
        "reviews_": Array(("r", 4)),
        "before_": Items(Part(BaseEstimator)),
    }

    def _file_problem(self, sizes: dict[str, int]) -> str | None:
        """Categories are found by their numbers, and rows by theirs."""
        numbered = sizes["k"] == CELLS + sizes["c"] and (np.diff(self.kept_[:, ROW], prepend=-1.0, append=self.rows_) > 0).all()
        known = np.isfinite(self.history_[:, :4]).all() and all(isinstance(before, Monitor) for before in self.before_)
        if not numbered or not known or self.start_ > self.rows_:
            return "kept_, levels_, history_, reviews_ and before_ do not fit together"
        return mismatch(getattr(self, "drifted_", None), {str: int}, "drifted_")

    def __init__(self, detector: Any, level: float = 0.05, *, window: int | None = None, random_state: int = 0) -> None:
        self.detector = detector
        self.level = level
        self.window = window
        self.random_state = random_state

    def _begun(self) -> Self:
        """The monitor, after checking its parameters and beginning, if that was not done."""
        if hasattr(self, "kept_"):
            return self
        check_rate("level", self.level)
        if self.window is not None and (isinstance(self.window, bool) or not isinstance(self.window, Integral) or self.window < 1):
            raise ValueError(f"window={self.window!r} must be a whole number of rows, at least 1.")
        n, columns = calibrating(self.detector).scores.size, self.detector.n_features_in_
        self.window_ = max(n, FEWEST_KEPT) if self.window is None else int(self.window)
        self.base_, self.fingerprint_, self.dated_, self.digest_ = self.detector, fingerprint(self.detector), False, ""
        self.kept_, self.levels_ = np.empty((0, CELLS + columns)), [list[str]() for _ in range(columns)]
        self.groups_ = [str(name) for name in getattr(self.detector, "group_names_", ())]
        self.history_, self.reviews_ = np.empty((0, 5)), np.empty((0, 4))
        self.before_: list[Any] = []
        return self._watching(self.detector)

    def _watching(self, detector: Any) -> Self:
        """The monitor, which watches a detector from here on."""
        self.detector_, self.martingale_ = detector, ConformalMartingale(calibrating(detector).scores)
        self.drifted_: dict[str, int] = {}
        return self

    rows_ = property(lambda self: int(self._begun().history_[-1:, 3].sum()))
    start_ = property(lambda self: int(self._begun().reviews_[-1:, 0].sum()))
    evidence_ = property(lambda self: _power(self._begun().martingale_.evidence))
    alarm_ = property(lambda self: bool(self._peak >= -np.log(self.level)))
    flagged_share_ = property(lambda self: self._flagged / self._waiting if self._waiting else float("nan"))
    flagged_interval_ = property(lambda self: clopper_pearson(self._flagged, self._waiting, CONFIDENCE) if self._waiting else (0.0, 1.0))
    episodes_ = property(lambda self: self._episodes(self.start_))
    _since = property(lambda self: self._begun().history_[self.history_[:, 3] > self.start_])  # updates after the last review
    _waiting = property(lambda self: self.rows_ - self.start_)
    _flagged = property(lambda self: int(self._since[-1:, 1].sum()))
    _found = property(lambda self: np.flatnonzero((self._begun().kept_[:, STATUS] == WAITING) & (self.kept_[:, LABEL] == OUTLIER)))
    _is_table = property(lambda self: hasattr(self.detector, "columns_"))
    _peak = property(lambda self: float(self._since[:, 2].max(initial=0.0)))

    @property
    def card_(self) -> dict[str, Any]:
        """What the model promised, and what happened since."""
        detector, written, times = self._begun().detector_, Normal(is_date=self.dated_).written, self.history_[:, 4]
        first, last = (None if not np.isfinite(times).any() else written(float(end(times))) for end in (np.nanmin, np.nanmax))
        reviews = [dict(zip(("rows", "normal", "anomalies", "false_alarm_rate"), row, strict=True)) for row in self.reviews_.tolist()]
        now = {"rows": self.rows_, "rows_since_review": self._waiting, "flagged_since_review": self._flagged}
        now |= {"flagged_interval": list(map(float, self.flagged_interval_)), "false_alarm_rate": float(detector.false_alarm_rate_)}
        now |= {"evidence": self.evidence_, "highest_evidence_since_review": _power(self._peak), "alarm": self.alarm_}
        now |= {"highest_evidence": _power(self.history_[:, 2].max(initial=0.0)), "level": float(self.level)}
        now |= {"drifted": dict(self.drifted_), "updates": len(self.history_), "first_update": first, "last_update": last}
        now |= {"window": self.window_, "kept_rows": len(self.kept_), "model": fingerprint(detector), "reviews": reviews}
        return {**getattr(detector, "card_", {}), "operation": now}

    def update(self, X: Any, time: Any = None, groups: Any = None) -> MonitorUpdate:
        """Judge a batch of new rows, and say what to know now.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows as ``detector`` takes them, none of them twice: the last batch again is refused. A batch may be empty.
        time : array-like of shape (n_samples,), optional
            Dates or numbers: rows are watched in that order, and batches must follow each other. By default the ``time_column`` of a
            ``TableDetector``, if X has it; else rows come in their order.
        groups : array-like of shape (n_samples,), optional
            The group of each row, where ``detector`` was fitted with groups; a ``TableDetector`` reads its ``group_column``.

        Returns
        -------
        MonitorUpdate
            ``labels``, ``p_values``, ``rows`` (their numbers), ``episodes`` that reach into the batch, ``alarm``; as text what to know.
        """
        first, frame = self.rows_, as_frame(X)
        X = X if frame is None else frame
        count = X.shape[0] if hasattr(X, "shape") else len(X)
        when, order, dated = self._in_time(X, time, count)
        labels, p_values = self._watch(X, when, order, dated, groups) if count else (np.empty(0, dtype=int), np.empty(0))
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
        places, waits = self._places(anomalies), self.kept_[:, STATUS] == WAITING
        recent, status = self.kept_[:, ROW] >= self.rows_ - self.window_, self.kept_[:, STATUS].copy()
        status[waits & recent], status[places] = NORMAL, ANOMALY
        reviewed, own = self.kept_[status == NORMAL], calibrating(self.base_)
        nowhere, names = np.full(len(reviewed), -1), self._names(reviewed)
        group = nowhere if names is None else self.base_._group_numbers(names, len(names))
        joined = Calibrating(reviewed[:, SCORE], nowhere, reviewed[:, MODEL].astype(np.intp), group)
        stay = np.random.default_rng(self.random_state).permutation(own.scores.size)[: max(0, self.window_ - len(reviewed))]
        detector = self.base_._calibrated_on(own.some(np.sort(stay)).and_(joined))
        before = copy.copy(self)  # without the cells of rows
        before.kept_, before.levels_, before.before_ = self.kept_[:, :CELLS].copy(), [], []
        self.before_ = [*self.before_, before][-UNDONE:]
        told = [self.rows_, int((waits & (status == NORMAL)).sum()), places.size, detector.false_alarm_rate_]
        self.kept_[:, STATUS], self.reviews_ = status, np.vstack([self.reviews_, told])
        self.kept_ = self.kept_[recent]  # older ones were kept because they were flagged: a biased choice
        return self._watching(detector)

    def undo(self) -> Self:
        """Go back to before the last review, as if it had not been; up to three times. A ``refit`` since then is undone, too.

        Returns
        -------
        self
            ``detector_`` is the one before. The rows of that review wait for one again, with those since, which it judges now.
        """
        if not self._begun().before_:
            raise ValueError(f"There is no review to go back to: the last {UNDONE} can be undone, each once.")
        *self.before_, old = self.before_
        kept, until, later = self.kept_.copy(), self.rows_, self.kept_[:, ROW] >= old.rows_
        kept[~later, STATUS] = old.kept_[np.isin(old.kept_[:, ROW], kept[~later, ROW]), STATUS]
        for name in ("base_", "detector_", "martingale_", "drifted_", "history_", "reviews_"):
            setattr(self, name, getattr(old, name))
        self.kept_, rows = kept[~later], kept[later]
        if len(rows):
            draws, X = self._draws(old.rows_, until - old.rows_)[rows[:, ROW].astype(np.intp) - old.rows_], self._kept_rows(rows)
            rows[:, : LABEL + 1] = np.column_stack(self.detector_._judged(X, draws[:, 0], self._names(rows)))
            self._take(X, rows, draws[:, 1], until)
        return self

    def refit(self) -> Self:
        """Learn anew from the reviewed rows that are kept: normal ones are described and calibrate, anomalies are known outliers.

        Returns
        -------
        self
            ``detector_`` was fitted again, with the same parameters.
        """
        if self._waiting:
            raise ValueError(f"refit learns from reviewed rows, and {counted(self._waiting, 'row')} wait: review them first.")
        status = self.kept_[:, STATUS]
        if (status == ANOMALY).all():
            raise ValueError(f"refit learns from normal rows, and none of {counted(len(status), 'row')} kept is: review more rows.")
        X = self._kept_rows(self.kept_)
        y = np.where(status == ANOMALY, OUTLIER, 1) if (status == ANOMALY).any() else None
        base, names = clone(self.base_), self._names(self.kept_)
        how: dict[str, Any] = {} if names is None else {"groups": names}
        if self._is_table:
            how |= {"time": self.kept_[:, TIME]} if np.isfinite(self.kept_[:, TIME]).all() else {}
            base._fit(X.frame(), y, dict(zip(X.names, self.base_.encoder_.kinds_, strict=True)), self.base_.columns_, how)
        else:
            base.fit(X, y, **how)
        self.base_, status[status == NORMAL], self.reviews_[-1, 3] = base, TRAINED, base.false_alarm_rate_
        return self._watching(base)

    def _names(self, kept: np.ndarray) -> np.ndarray | None:
        """The names of the groups of kept rows; None where the detector has no groups."""
        return np.array([*self.groups_, ""], dtype=object)[kept[:, GROUP].astype(np.intp)] if self.groups_ else None

    def _watch(self, X: Any, when: np.ndarray, order: np.ndarray, dated: bool, groups: Any) -> tuple[np.ndarray, np.ndarray]:
        """(labels, p-values) of rows, which are then watched in the given order."""
        first, draws = self.rows_, self._draws(self.rows_, order.size)
        X = self.detector_.read(X) if self._is_table else X
        number = np.argsort(order)
        groups = X.groups if self._is_table and groups is None else groups
        group = np.full(order.size, -1) if groups is None else self.detector._group_numbers(groups, order.size)
        _, _, p_values, labels = judged = self.detector_._judged(X, draws[number, 0], groups)
        rows = np.column_stack([*judged, when, np.full(order.size, WAITING), first + number, group, *self._coded(X)])[order]
        cells = np.ascontiguousarray(rows[:, [TIME, *range(CELLS, rows.shape[1])]])
        digest = hashlib.sha256(cells.tobytes()).hexdigest()
        if digest == self.digest_ and (not np.isnan(when[0]) or len({row.tobytes() for row in cells}) > 1):
            known = "" if np.isfinite(when[0]) else " If they are new rows that happen to be equal, pass their times."
            raise ValueError(f"The batch is the one before again, {counted(order.size, 'row')}: each row is watched once.{known}")
        self.digest_, self.dated_ = digest, dated
        self._take(X, rows, draws[:, 1], first + order.size)
        return labels, p_values

    def _take(self, X: Any, rows: np.ndarray, draws: np.ndarray, until: int) -> None:
        """Note rows in the form of ``kept_``, which the detector takes as X: evidence, counts, what is kept, and drift."""
        evidence, flagged = self.martingale_.add(rows[:, SCORE], draws).max(), self._flagged + int((rows[:, LABEL] == OUTLIER).sum())
        self.history_ = np.vstack([self.history_, [until - self.start_, flagged, evidence, until, rows[-1, TIME]]])
        kept = np.concatenate([self.kept_, rows])
        recent = kept[:, ROW] >= until - self.window_
        older = np.flatnonzero(~recent & (kept[:, STATUS] == WAITING) & (kept[:, LABEL] == OUTLIER))[-self.window_ :]
        self.kept_ = kept[np.sort(np.concatenate([older, np.flatnonzero(recent)]))]
        if self._is_table:
            waiting, updates = kept[recent & (kept[:, STATUS] == WAITING)], len(self._since)
            for cells in (self._kept_rows(waiting).cells, X.cells):
                drift = DriftMonitor(self.detector_.columns_)
                drift.add(cells)
                found = [column.name for column in drift.drift().drifted if column.corrected <= LEVEL / (2 * updates * (updates + 1))]
                self.drifted_ = dict.fromkeys(found, until) | self.drifted_

    def _draws(self, first: int, count: int) -> np.ndarray:
        """Two numbers in [0, 1) for each row from a number on, always the same."""
        return np.random.Generator(np.random.PCG64(self.random_state).advance(2 * first)).random((count, 2))

    def _in_time(self, X: Any, time: Any, count: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """The times of rows, NaN where none are known, the order in which to watch the rows, and whether times are dates."""
        column, last = getattr(self.detector, "time_column", None), float(np.fmax.reduce(self._begun().history_[:, 4], initial=-np.inf))
        if time is None and column is not None and column in getattr(X, "columns", ()):
            time = X[column]
        if count and time is None and last > -np.inf:
            raise ValueError(f"X has no times, and earlier batches had: pass them as time{f', or the column {column}' if column else ''}.")
        if time is None or not count:
            return np.full(count, np.nan), np.arange(count), self.dated_
        if np.ndim(time) != 1 or len(time) != count:
            given = f"has {counted(len(time), 'value')}" if np.ndim(time) == 1 else f"is {time!r}"
            raise ValueError(f"time {given}, and X has {counted(count, 'row')}: pass one time for each row.")
        when, dated = _seconds(time)
        if not np.isfinite(when).all():
            row = np.isfinite(when).argmin()
            raise ValueError(f"time has no finite value for row {row} of the batch (the first is 0): fill it in, or leave that row out.")
        if dated != self.dated_ and last > -np.inf:
            raise ValueError(
                f"time holds {'dates' if dated else 'numbers'}, and earlier batches had the other: pass the same kind of times."
            )
        written = Normal(is_date=dated).written
        if when.min() < last:
            seen = f"The batch begins at {written(when.min())}, and rows until {written(last)} were watched already."
            raise ValueError(f"{seen} Watch each row once, and batches in order of time; leave out rows that came late.")
        return when, np.argsort(when, kind="stable"), dated

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

    def _kept_rows(self, kept: np.ndarray) -> Any:
        """Kept rows as the detector takes them."""
        cells, names = kept[:, CELLS:], getattr(self.detector_, "feature_names_in_", None)
        if not self._is_table:
            import pandas as pd

            return cells if names is None else pd.DataFrame(cells, columns=list(names))
        columns = list(cells.T)
        for j in np.flatnonzero(self.detector.encoder_.kinds_ == CATEGORY):
            texts = np.array([*self.levels_[j], np.nan], dtype=object)
            columns[j] = texts[np.where(np.isnan(columns[j]), -1, columns[j]).astype(np.intp)]
        return self.detector_.read(columns)

    def _places(self, anomalies: npt.ArrayLike) -> np.ndarray:
        """The places in ``kept_`` of the rows that a review names."""
        given, since = np.asarray(anomalies), self._waiting
        if not since:
            raise ValueError("No row was watched since the last review: update first.")
        if given.dtype == bool:
            if given.shape != (since,):
                raise ValueError(f"anomalies has {counted(given.size, 'truth value')}; {counted(since, 'row')} wait for the review.")
            given = self.start_ + np.flatnonzero(given)
        try:
            numbers = np.unique(given.astype(object).astype(np.float64))
        except ValueError as error:
            raise ValueError(f"anomalies are numbers of rows, as in update(…).rows or in the column watched_row: {error}.") from error
        if (wrong := numbers[~np.isin(numbers, self.kept_[self.kept_[:, STATUS] == WAITING, ROW])]).size:
            oldest = max(self.start_, self.rows_ - self.window_)
            older = f" Others that were not flagged left the window of {self.window_:,} rows: review sooner." * (oldest > self.start_)
            raise ValueError(f"Row {wrong[0]:g} does not wait for a review: rows {oldest} to {self.rows_ - 1} do.{older}")
        return np.flatnonzero(np.isin(self.kept_[:, ROW], numbers))

    def _flagged_rows(self, time: str, further: Sequence[Any]) -> tuple[Any, Any]:
        """The flagged rows since the last review: as the detector takes them, and as a frame by number, with ``further`` columns."""
        import pandas as pd

        kept = self.kept_[self._found]
        rows, number = self._kept_rows(kept), pd.Index(kept[:, ROW].astype(np.intp), name="watched_row")
        found = rows.frame().set_axis(number)
        for j in np.flatnonzero(self.detector.encoder_.kinds_ == DATE):
            found[found.columns[j]] = pd.to_datetime(found.iloc[:, j], unit="s")
        if np.isfinite(kept[:, TIME]).any():
            found.insert(0, time, pd.to_datetime(kept[:, TIME], unit="s").as_unit("s") if self.dated_ else kept[:, TIME])
        found = found.join(pd.concat(further).drop(columns=time, errors="ignore")) if further else found
        return rows, found.assign(p_value=kept[:, P_VALUE]).reset_index()

    def _episodes(self, first: int) -> list[Episode]:
        """The episodes since the last review that reach to the row ``first`` or beyond."""
        flagged, p, number = self._found, self.kept_[:, P_VALUE], self.kept_[:, ROW].astype(np.intp)
        groups = np.split(flagged, np.flatnonzero(np.diff(number[flagged]) > GAP) + 1)
        groups = [group for group in groups if group.size and number[group[-1]] >= first]
        worst, found = np.array([group[p[group].argmin()] for group in groups], dtype=np.intp), []
        why = reasons_of(self.detector_, self._kept_rows(self.kept_[worst]), REASONS) if worst.size else []
        for group, row, reasons in zip(groups, worst, why, strict=True):
            times = tuple(float(time) for time in self.kept_[group[[0, -1]], TIME] if not np.isnan(time))
            rows = int(number[group[0]]), int(number[group[-1]]), group.size, int(number[row])
            found.append(Episode(*rows, float(p[row]), times, tuple(map(str, reasons))))
        return found

    def _summary(self, first: int, episodes: Sequence[Episode]) -> str:
        """What the rows from a number on brought, in three lines: counts beside the promise, the worst episode, evidence and drift."""
        rows, since = self.rows_ - first, self._waiting
        flagged = self._flagged - int(self._since[self._since[:, 3] <= first][-1:, 1].sum())
        low, high = (f"{100 * end:.2g}" for end in self.flagged_interval_)
        share = f"; since the last review {percent(self.flagged_share_)} of {since:,} (90 % interval {low} to {high} %)" if since else ""
        worst = min(episodes, key=lambda episode: (episode.p_value, -episode.flagged), default=None)
        alarm = f"ALARM: rows are less normal than those that calibrate (evidence {_power(self._peak):.3g}). " if self.alarm_ else ""
        drifted = f" Columns that differ from training: {named(self.drifted_)}." if self.drifted_ else ""
        lost = since - int((self.kept_[:, STATUS] == WAITING).sum())
        gone = f" {counted(lost, 'row')} ({self._flagged - self._found.size:,} flagged) left the window of {self.window_:,}." * bool(lost)
        return (
            f"{counted(rows, 'row')}: {flagged:,} flagged in {counted(len(episodes), 'episode')}{share}; "
            f"promised {percent(self.detector_.false_alarm_rate_)}.\n"
            f"{f'Worst: {self._described(worst)}' if worst else 'No episode'}.\n"
            f"{alarm}Evidence {'now ' * self.alarm_}{self.evidence_:.3g}, alarm at {1 / self.level:.3g}.{drifted}{gone}"
        )

    def _described(self, episode: Episode) -> str:
        """An episode in a line."""
        rows = f"rows {episode.first} to {episode.last}, {episode.flagged} flagged" if episode.flagged > 1 else f"row {episode.first}"
        when = " to ".join(dict.fromkeys(map(Normal(is_date=self.dated_).written, episode.times)))
        return f"{rows}{f' ({when})' if when else ''}, p = {episode.p_value:.2g}{': ' * bool(episode.reasons)}{'; '.join(episode.reasons)}"


def load_state(path: Path, detector: Any = None) -> Monitor:
    """The monitor whose state is in a file; it must belong to the detector, if one is given."""
    if not isinstance(monitor := load(path), Monitor):
        raise ModelFileError(f"{path} holds a {type(monitor).__name__}, and not the state of a monitor. Name another file.")
    if detector is not None and fingerprint(detector) not in (monitor.fingerprint_, fingerprint(monitor.detector_)):
        other = f"{path} watches another model than this one, or the same one at another rate"
        raise ModelFileError(f"{other}. Pass the model that it began with, or the one of its last review; or begin a new state.")
    return monitor


def fingerprint(detector: Any) -> str:
    """SHA-256 of the calibration scores and the promised rate: no two models share them."""
    return hashlib.sha256(np.append(calibrating(detector).scores, detector.false_alarm_rate_).astype(np.float64).tobytes()).hexdigest()


def _power(logarithm: float) -> float:
    return float(np.exp(min(logarithm, 700.0)))


def _seconds(time: Any) -> tuple[np.ndarray, bool]:
    """Times as numbers (dates: seconds since 1970), and whether they are dates."""
    import pandas as pd

    if (values := np.asarray(time)).dtype.kind in "iuf":
        return values.astype(np.float64), False
    values = values.astype("datetime64[us]" if values.dtype.kind == "M" else object)  # finer ones are whole numbers as objects
    return READERS[DATE]({"time": pd.Series(values.astype(object)).infer_objects()}, ["time"])[:, 0], True
