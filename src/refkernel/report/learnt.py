"""What the page says a model has learnt: the choice, the promise, what it was trained on, and its columns."""

from __future__ import annotations

from typing import Any

from .._encoding import Column
from ..explanations.ranges import normal_of
from ..tables import TableModel
from ..tables.columns import Feature
from ..tables.wording import counted, named
from .words import percent

__all__ = ["features_of", "learnt_of"]


def learnt_of(saved: TableModel) -> list[tuple[str, str]]:
    """Facts about a model, by name."""
    about, detector = saved.about, saved.detector
    data, training = about.get("data"), about.get("training") or {}
    lines = [("kind", type(detector).__name__)]
    if "choice" in training:
        lines.append(("choice", training["choice"]))
    elif training:
        lines.append(("choice", f"nu = {training['nu']:g}, scale = {training['scale']:g}, references: {about['recipe']['references']}"))
    if training:
        lines += [("promise", _promise(training)), ("made-up outliers", _made_up(training))]
    if training.get("rejected_outliers") is not None:
        lines.append(("known outliers", f"{percent(training['rejected_outliers'])} of those in the training table are rejected"))
    if data:
        rule = "" if data["target_column"] is None else f" with {data['target_column']} = {data['target']}"
        known = f", {counted(data['outliers'], 'known outlier')}" if data["outliers"] else ""
        lines.append(("trained on", f"{data['file']}: {counted(data['targets'], 'normal row')}{rule}{known}"))
        if data["dropped"]:
            lines.append(("left out", named(data["dropped"], 20)))
    lines.append(("threshold", f"score ≥ {detector.offset_:.6g}"))
    versions = ", ".join(f"{name} {version}" for name, version in saved.metadata["versions"].items())
    return [*lines, ("made", saved.metadata["created"]), ("versions", versions)]


def _promise(training: dict[str, Any]) -> str:
    if training.get("false_alarm_rate") is None:
        return f"none: {percent(training['accepted_targets'])} of the training rows are accepted, and of new ones probably fewer"
    low, high = training["false_alarm_interval"]
    rate, interval = percent(training["false_alarm_rate"]), f"{100 * low:.2g} and {100 * high:.2g} %"
    if "choice" not in training:
        return f"none. {rate} of {training['held_out_rows']:,} held-out training rows were flagged (90 % interval: between {interval})"
    return (
        f"{rate} of new normal rows are flagged, expected; with a probability of 90 % the rate of this threshold is between {interval}. "
        "It holds as long as new normal rows are like those of training."
    )


def _made_up(training: dict[str, Any]) -> str:
    caught, auc = training.get("made_up_caught"), training.get("made_up_auc")
    texts = [] if caught is None else [f"{percent(caught)} are caught"]
    texts += [] if auc is None else [f"told from left-out training rows with an AUROC of {auc:.3f}"]
    return ", ".join(texts) or "not tried"


def features_of(saved: TableModel) -> list[dict[str, Any]]:
    """A row of the page's table for each column of the model."""
    return [_feature(feature, column) for feature, column in zip(saved.features, saved.columns, strict=True)]


def _feature(feature: Feature, column: Column) -> dict[str, Any]:
    normal = normal_of(column, bulk=True)
    if normal is None:
        return _bare(feature)
    share = column.missing
    base = {"name": column.name, "kind": feature.kind, "missing": percent(share), "missing_sort": share, "normal": str(normal)}
    if normal.typical is None:
        return base | {"range": counted(len(column.levels), "level"), "median": "", "median_sort": ""}
    return base | {"range": str(normal_of(column)), "median": normal.written(normal.typical), "median_sort": normal.typical}


def _bare(feature: Feature) -> dict[str, Any]:
    normal = "" if feature.categories is None else named(feature.categories)
    unknown = {"range": "", "median": "", "median_sort": "", "missing": "", "missing_sort": ""}
    return {"name": feature.name, "kind": feature.kind, "normal": normal, **unknown}
