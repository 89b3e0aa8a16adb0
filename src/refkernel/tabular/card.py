"""The card of a model: what it was trained on, what it promises, and what to expect of it on new rows."""

import hashlib
import platform
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from .._core.unwrap import detector_of
from .._core.validation import OUTLIER
from ..detectors.calibration.promise import clopper_pearson
from ..detectors.explain.normal import kept_rows
from ..detectors.pseudo_outliers import as_pseudo_outliers
from .encoder import FAR

PERCENT = np.linspace(0.0, 100.0, 101)  # normality is linear between the percentiles of the training targets' decision values
CONFIDENCE = 0.9  # of the intervals of measured rates
FOLDS = 5
FEWEST_ROWS = 20  # with fewer targets, a fold says nothing
MOST_FOLDED = 5_000  # with more targets one fold is held out, and not all in turn: a fifth is enough there, and fits take long
MADE_UP, MADE_UP_KIND = 500, "permuted_and_box"  # values of different training rows, and rows drawn evenly from the box around them
MOST_KEPT = 1_000  # scores of training rows that a model keeps
CLOSE = 1e-9  # scores that differ by less than this share of the largest are the same: another processor rounds differently
FEWEST_ALONE = 0.05  # if fewer training rows than this share have no equal, and would have none among new rows, nothing can be said
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")

CARD = {
    **dict.fromkeys(("file", "file_sha256", "rows_sha256", "target_column", "target", "outlier"), (str, None)),
    **dict.fromkeys(("time_column", "group_column", "first_time", "last_time"), (str, None)),
    **dict.fromkeys(("rows", "targets", "outliers", "alone", "twice"), int),
    **dict.fromkeys(("model", "choice", "created"), str),
    **dict.fromkeys(("threshold", "recognised"), float),
    **dict.fromkeys(("accepted_targets", "rejected_outliers", "false_alarm_rate", "made_up_caught", "made_up_auc"), (float, None)),
    **dict.fromkeys(("held_out_rows", "seed"), (int, None)),
    "groups": {str: ([float], None)},
    "versions": {str: str},
    "settings": {str: str},
    "dropped": [str],
    "accepts_far": bool,
    "false_alarm_interval": ([float], None),
    "search": ({"candidates": int, "gmean": float, "made_up": bool}, None),
}
"""What a card says, as a pattern of ``export.sealed.mismatch``; docs/guide/deployment.md explains each key."""


def facts(detector: Any, final: Any, encoded: np.ndarray, outliers: np.ndarray, seed: Any) -> tuple[dict[str, Any], np.ndarray]:
    """(what the training ended in, percentiles of the decision values), from the normal rows and the known outliers as they were encoded.

    The detector is calibrated on left-out rows if it has ``calibration_``; of others, the training rows' own decision values are kept.
    """
    calibration = getattr(final, "calibration_", None)
    decisions = detector.decision_function(encoded) if calibration is None else calibration - final.offset_
    interval = getattr(final, "false_alarm_interval_", None)
    found = {
        "model": type(final).__name__,
        "choice": getattr(final, "choice_", None) or " ".join(repr(final).split()),
        "settings": {name: " ".join(repr(value).split()) for name, value in final.get_params(deep=False).items()},
        "seed": seed if isinstance(seed, int) else None,
        "rows_sha256": hashlib.sha256(np.concatenate([encoded, outliers]).data).hexdigest(),
        "threshold": float(final.offset_),
        "accepts_far": bool(detector.decision_function(np.full((1, encoded.shape[1]), FAR))[0] >= 0),
        "accepted_targets": None if calibration is not None else float((decisions >= 0).mean()),
        "rejected_outliers": float((detector.predict(outliers) == OUTLIER).mean()) if len(outliers) else None,
        "false_alarm_rate": float(final.false_alarm_rate_) if hasattr(final, "false_alarm_rate_") else None,
        "false_alarm_interval": None if interval is None else [float(end) for end in interval],
        "groups": group_facts(final),
        **dict.fromkeys(("file_sha256", "first_time", "last_time", "held_out_rows", "search")),
        **_made_up(detector, calibration, encoded, seed),
    }
    if hasattr(detector, "cv_results_"):
        candidates, best = len(detector.cv_results_["params"]), float(detector.best_score_)
        found["search"] = {"candidates": candidates, "gmean": best, "made_up": not len(outliers)}
    return found, np.percentile(decisions, PERCENT)


def group_facts(final: Any) -> dict[str, list[float] | None]:
    """The rate of each group and the ends of its interval; None where it has too few rows for a threshold of its own."""
    groups = getattr(final, "groups_", {})
    return {name: kept and [float(number) for number in (kept.rate, *kept.interval())] for name, kept in groups.items()}


def _made_up(detector: Any, calibration: np.ndarray | None, encoded: np.ndarray, seed: Any) -> dict[str, Any]:
    """The share of made-up outliers that is caught and, where training rows were scored as new ones, the AUROC against these."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tables so small that made-up rows repeat training rows
        try:
            rows = as_pseudo_outliers(MADE_UP_KIND).draw(encoded, MADE_UP, check_random_state(seed))
        except ValueError:  # no column varies
            return {"made_up_caught": None, "made_up_auc": None}
    scores = detector.score_samples(rows)
    auc = None if calibration is None else float(mannwhitneyu(calibration, scores).statistic / (calibration.size * scores.size))
    return {"made_up_caught": float((detector.predict(rows) == OUTLIER).mean()), "made_up_auc": auc}


def held_out(model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    """The share of targets that models fitted without them reject, with its exact interval; nothing for few rows."""
    if (targets := np.flatnonzero(y != OUTLIER)).size < FEWEST_ROWS:
        return {}
    folds = list(KFold(FOLDS, shuffle=True, random_state=model.random_state).split(targets))
    flagged = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said of the model itself
        for _, test in folds if targets.size <= MOST_FOLDED else folds[:1]:
            rest = np.setdiff1d(np.arange(len(y)), targets[test])
            try:
                encoded, _ = model._without(X, y, targets[test])
                fitted = clone(model.detector_).fit(encoded(rest), y[rest])
            except ValueError:  # too few rows for what the model wants; the model of all rows was fitted
                return {}
            flagged.append(fitted.predict(encoded(targets[test])) == OUTLIER)
    return {**measured_rate("false_alarm", np.concatenate(flagged)), "held_out_rows": int(sum(map(len, flagged)))}


def measured_rate(name: str, flagged: np.ndarray) -> dict[str, Any]:
    """A measured share and its exact interval (Clopper and Pearson), by the names ``name_rate`` and ``name_interval``."""
    count, n = int(flagged.sum()), flagged.size
    if not n:
        return {f"{name}_rate": None, f"{name}_interval": None}
    return {f"{name}_rate": count / n, f"{name}_interval": list(clopper_pearson(count, n, CONFIDENCE))}


def audit(model: Any, monitor: Any = None) -> dict[str, Any]:
    """What is known of a table detector, and of its monitor, in plain JSON: the card, its columns, and the rows that a file holds."""
    if not hasattr(model, "columns_"):
        return monitor.card_
    try:
        held = len(kept_rows(detector_of(model.detector_)))
    except TypeError:  # another library's detector
        held = None
    watched, columns = 0 if monitor is None else len(monitor.kept_), [column.as_dict() for column in model.columns_]
    holds = {"training_rows": held, "watched_rows": watched, "columns": list(map(str, model.feature_names_in_))}
    return {**model.card_, "operation": None, **getattr(monitor, "card_", {}), "columns": columns, "holds": holds}


def versions() -> dict[str, Any]:
    """When and with which libraries."""
    from .. import __version__

    found = {"python": platform.python_version(), "refkernel": __version__, **{name: version(name) for name in PACKAGES}}
    return {"created": datetime.now(UTC).isoformat(timespec="seconds"), "versions": found}


# Rows that have trained the model look more normal than new ones, and figures about them flatter it. A row is recognised by its score,
# which does not depend on the rows beside it, nor on how the table is written, sorted or cut.


def seen_rows(encoded: np.ndarray) -> tuple[np.ndarray, np.ndarray, int, int]:
    """(rows whose scores to keep, others like them, how many are alone, how many come twice): rows alone have no equal among the others."""
    hashes = [hash(row.tobytes()) for row in encoded + 0.0]  # -0.0 is 0.0
    _, equal, count = np.unique(hashes, return_inverse=True, return_counts=True)
    times = count[equal]
    alone = np.flatnonzero(times == 1)
    step = -(-alone.size // MOST_KEPT) or 1
    return alone[::step], alone[step // 2 :: step] if step > 1 else alone[:0], int(alone.size), int((times == 2).sum())


def found_scores(kept: np.ndarray, scores: np.ndarray) -> int:
    """How many of the scores are among those that are kept, which ascend."""
    if not kept.size:
        return 0
    reach = CLOSE * float(np.abs(kept).max())
    place = np.searchsorted(kept, scores - reach)
    return int((np.abs(kept[np.minimum(place, kept.size - 1)] - scores) <= reach).sum())


def trained_share(card: Mapping[str, Any], kept: np.ndarray, scores: np.ndarray) -> float | None:
    """The share of rows with these scores that have trained the model, from 0 to 1; None if it cannot be told.

    Of the targets, ``alone`` have no equal. A share ``recognised`` of these has a kept score: rows on the boundary share one. Of new
    rows, about as many are equal to a target that is alone as targets come twice (Good and Turing).
    """
    if not kept.size or not scores.size or not card["targets"] or not card["recognised"] > 0:
        return None
    by_chance, at_most = card["twice"] / card["targets"], card["alone"] / card["targets"]
    if at_most - by_chance < FEWEST_ALONE:
        return None
    found = found_scores(kept, scores) / card["recognised"] / scores.size
    return float(np.clip((found - by_chance) / (at_most - by_chance), 0.0, 1.0))
