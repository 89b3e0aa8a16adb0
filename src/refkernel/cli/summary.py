"""What score says about a table as a whole, for people in the terminal and for machines as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from .. import __version__
from .._files import write_text
from .._validation import OUTLIER
from .shared import console, shown

if TYPE_CHECKING:
    from ..tables.summary import Watch

MOST_COLUMNS = 10
"""Columns that the terminal lists; the JSON file has all."""

REASONS = 3


def summary_of(watch: Watch, data: Path) -> dict[str, Any]:
    """The whole summary in plain JSON."""
    detector, drift = watch.saved.detector, watch.drift()
    kinds = {feature.name: feature.kind for feature in watch.saved.features}
    flagged = int((watch.scores < detector.offset_).sum())
    return {
        "made_by": f"refkernel score {__version__}",
        "model": watch.saved.path.name,
        "table": data.name,
        "rows": watch.rows,
        "flagged": flagged,
        "flagged_share": flagged / watch.rows,
        "trained_share": watch.trained_share,
        "flatters": watch.flatters,
        "threshold": float(detector.offset_),
        "expected_false_alarm_rate": _plain(getattr(detector, "false_alarm_rate_", None)),
        "expected_false_alarm_interval": _plain(getattr(detector, "false_alarm_interval_", None)),
        "labels": watch.agreement(),
        "drift": None if drift is None else drift.as_dict(),
        "columns": [] if drift is None else [{**column.as_dict(), "kind": kinds[column.name]} for column in drift.columns],
        "worst": _worst(watch),
    }


def write_summary(path: Path, summary: dict[str, Any]) -> None:
    """The summary as a JSON file."""
    write_text(path, json.dumps(summary, indent=1, allow_nan=False, ensure_ascii=False) + "\n", "The summary")


def print_summary(summary: dict[str, Any], outside: bool = True) -> None:
    """The summary in a few lines; ``outside`` says whether values beyond training's range are to be told."""
    for name, text in [
        *_seen_lines(summary),
        *_label_lines(summary["labels"]),
        *_column_lines(summary, outside),
        *_drift_lines(summary["drift"], summary["flatters"]),
    ]:
        console.print(f"[bold]{name:<18}[/]{shown(text)}", highlight=False, soft_wrap=True)
    if summary["drift"] and summary["drift"]["columns"]:
        _print_drifted(summary)
    if summary["worst"]:
        _print_worst(summary["worst"])


def _seen_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    if not summary["flatters"]:
        return []
    share = 100 * summary["trained_share"]
    which = "these rows trained the model" if share > 99.5 else f"about {share:.0f} % of these rows trained the model"
    return [("not new", f"{which}. It flags fewer of them than of new rows: the figures here flatter it")]


def _label_lines(labels: dict[str, Any] | None) -> list[tuple[str, str]]:
    if not labels:
        return []
    normal, others = f"{labels['column']} = {labels['target']}", "other rows"
    lines = []
    if labels["false_alarm_rate"] is not None:
        lines.append(("false alarms", f"{_measured(labels, 'false_alarm')} of {labels['normal_rows']:,} rows with {normal}"))
    if labels["caught_rate"] is not None:
        lines.append(("caught", f"{_measured(labels, 'caught')} of {labels['other_rows']:,} {others}"))
    return lines if labels["auroc"] is None else [*lines, ("AUROC", f"{labels['auroc']:.3f}")]


def _measured(labels: dict[str, Any], name: str) -> str:
    low, high = (100 * bound for bound in labels[f"{name}_interval"])
    return f"{100 * labels[f'{name}_rate']:.1f} % (90 % interval {low:.1f} to {high:.1f} %)"


def _column_lines(summary: dict[str, Any], tell_outside: bool) -> list[tuple[str, str]]:
    from ..tables.wording import counted, named

    columns, rows = summary["columns"], summary["rows"]
    outside = sorted(((c.get("below_range", 0) + c.get("above_range", 0), c["name"]) for c in columns), reverse=True)
    outside = [(count, name) for count, name in outside if count]
    unseen = sorted(((c.get("unseen_rows", 0), c["name"]) for c in columns if c.get("unseen_rows")), reverse=True)
    missing = sum(c["missing"] for c in columns)
    lines = []
    if outside and tell_outside:
        lines.append(
            ("outside training", "values beyond the range in " + named(f"{name} ({count:,} of {rows:,} rows)" for count, name in outside))
        )
    if unseen:
        lines.append(
            (
                "never seen",
                "categories that training did not have in " + named(f"{name} ({counted(count, 'row')})" for count, name in unseen),
            )
        )
    if missing:
        then = sum(c["missing_share_training"] for c in columns) / len(columns)
        lines.append(("missing", f"{100 * missing / (rows * len(columns)):.2g} % of the cells; in training {100 * then:.2g} %"))
    return lines


def _drift_lines(drift: dict[str, Any] | None, flatters: bool) -> list[tuple[str, str]]:
    """What the tests found. Scores of training rows differ from those of left-out rows whatever happened, so they are not mentioned."""
    if drift is None:
        return []
    from ..tables.wording import counted

    columns, level = drift["columns"], f"({100 * drift['level']:g} % level, corrected for {counted(drift['tests'], 'test')})"
    tested = None if flatters else drift["scores"]
    scores = "" if tested is None else "; the scores differ too" if tested["drift"] else "; the scores are like training's"
    if not columns:
        scores = scores.replace("; the scores differ too", "; but the scores differ")
        return [("drift", f"none found in the columns {level}{scores}")]
    verb = "column differs" if len(columns) == 1 else "columns differ"
    return [("drift", f"{len(columns):,} {verb} from training {level}{scores}")]


def _print_drifted(summary: dict[str, Any]) -> None:
    table = Table("column", "differs by (points)", "corrected p", "outside", "missing")
    columns = {column["name"]: column for column in summary["columns"]}
    names = summary["drift"]["columns"]
    for name in names[:MOST_COLUMNS]:
        column = columns[name]
        outside = column.get("below_range", 0) + column.get("above_range", 0) + column.get("unseen_rows", 0)
        p = "< 0.001" if column["p_corrected"] < 0.001 else f"{column['p_corrected']:.3f}"
        table.add_row(shown(name), f"{100 * column['difference']:.1f}", p, f"{outside:,}", f"{100 * column['missing_share']:.2g} %")
    console.print(table)
    if len(names) > MOST_COLUMNS:
        console.print(f"and {len(names) - MOST_COLUMNS:,} more: --summary-json lists them all", highlight=False)


def _print_worst(worst: list[dict[str, Any]]) -> None:
    has_p = worst[0]["p_value"] is not None
    known = worst[0]["known"] is not None
    table = Table("row", "score", *(["p-value"] if has_p else []), *(["known as"] if known else []), "decision", "reasons")
    for item in worst:
        reasons = "\n".join(map(_reason, item["reasons"]))
        p = [f"{item['p_value']:.2g}"] if has_p else []
        label = [shown(item["known"])] if known else []
        decision = "flagged" if item["label"] == OUTLIER else "accepted"
        table.add_row(f"{item['row']:,}", f"{item['score']:.4g}", *p, *label, decision, shown(reasons))
    console.print(table)


def _reason(reason: dict[str, Any]) -> str:
    cell = f"{reason['column']} = {reason['value']}"
    return f"{cell} ({reason['why']})" if reason["why"] else cell


def _worst(watch: Watch) -> list[dict[str, Any]]:
    from ..tables.explaining import reasons_of

    kept = watch.worst_rows
    if kept is None:
        return []
    reasons = reasons_of(watch.saved, kept.X, REASONS)
    p_values = kept.answers.get("p_value")
    return [
        {
            "row": int(row),
            "score": float(kept.answers["score"].iloc[i]),
            "p_value": None if p_values is None else float(p_values.iloc[i]),
            "label": int(kept.answers["label"].iloc[i]),
            "known": None if watch.labels is None else str(kept.cells[watch.labels.column].iloc[i]),
            "reasons": [reason.as_dict() for reason in reasons[i]],
        }
        for i, row in enumerate(kept.rows)
    ]


def _plain(value: Any) -> Any:
    return None if value is None else [float(bound) for bound in value] if isinstance(value, tuple | list) else float(value)
