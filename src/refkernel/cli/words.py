"""What the commands for tables say: notes, facts about a model, and what happened to a table."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from .._core.text import counted, named, option
from .._core.validation import OUTLIER
from .shared import console, errors, say, shown

if TYPE_CHECKING:
    from ..tabular.columns import ColumnProfile
    from ..tabular.detector import TableDetector
    from ..tabular.drift import Drift
    from ..tabular.scoring import SavedModel
    from ..tabular.summary import Watch

MOST_COLUMNS = 5  # columns that are named as first reasons
MOST_DRIFTED = 10  # columns that the terminal lists as drifted; the JSON file has all
LATER = 0.1  # the share of rows from later than training that is worth a note
PAIR_WIDTH = 18


def print_notes(notes: Iterable[str]) -> None:
    """Print notes, beside the output."""
    for note in notes:
        say(note, "[yellow]Note:[/] ", errors)


def print_score(watch: "Watch", explained: bool) -> None:
    """Print what happened to a table that was scored: notes, counts, labels, what training never had, drift, and the worst rows."""
    print_notes(score_notes(watch))
    if not watch.rows:
        return say("0 rows.")
    kinds = f"{counted(watch.rows - watch.outliers, 'target')}, {counted(watch.outliers, 'outlier')}"
    say(f"{counted(watch.rows, 'row')}: {kinds} ({100.0 * watch.outliers / max(watch.rows, 1):.1f} %).")
    if watch.reasons:
        say(f"First reason: {named(f'{name} ({count:,})' for name, count in watch.reasons.most_common(MOST_COLUMNS))}.")
    outside, drift = watch.monitor.outside() if explained else [], watch.drift()
    for line in outside:
        say(line)
    print_pairs({**_label_pairs(watch), **_column_pairs(watch, not outside), **_drift_pair(watch, drift)}, PAIR_WIDTH)
    if drift is not None and drift.drifted:
        _print_drifted(drift)
    if watch.worst_rows is not None:
        _print_worst(watch)


def score_notes(watch: "Watch") -> list[str]:
    """What a user should hear about a table that was scored."""
    notes = list(watch.notes)
    if watch.defused:
        verb = "begins" if watch.defused == 1 else "begin"
        notes.append(
            f"{counted(watch.defused, 'text')} {verb} like a formula, and an apostrophe now stands before it: no spreadsheet runs it. "
            "--keep-formulas leaves such texts unchanged."
        )
    if watch.extra:
        notes.append(f"Not used by the model, and kept: {named(watch.extra)}.")
    if watch.reordered:
        notes.append("The columns are in another order than in training: they are matched by name.")
    counts = watch.monitor.counts
    if filled := sorted(((count.missing, count.column.name) for count in counts if count.missing), key=lambda pair: -pair[0]):
        listed = named(f"{name} ({missing:,})" for missing, name in filled)
        notes.append(f"Missing values were filled, and marked as filled: {listed}. The column filled counts them in each row.")
    for count in (count for count in counts if count.unseen):
        levels = named(f"{value} ({rows:,})" for value, rows in count.unseen.most_common())
        meaning = "" if watch.violated[count.column.name] else " They count as rare ones."
        notes.append(f"Categories of {count.column.name} that training did not see: {levels}.{meaning}")
    for count in (count for count in counts if count.later > LATER * watch.rows):
        way_out = f"refkernel fit {option('--time-column', [count.column.name])} keeps the time out of the model"
        late = f"{count.column.name} is later than all of training in {count.later:,} of {counted(count.rows, 'row')}"
        notes.append(f"{late}, which is unusual for that alone: {way_out}.")
    notes += [_contradiction(count.column, watch) for count in counts if watch.violated[count.column.name]]
    return notes + model_notes(watch.saved)


def model_notes(saved: "SavedModel") -> list[str]:
    """What a user should know about a model whenever it is used."""
    from ..tabular.fitting import ACCEPTS_FAR

    return [ACCEPTS_FAR] if saved.model.card_["accepts_far"] else []


def _contradiction(column: "ColumnProfile", watch: "Watch") -> str:
    """What the rows contradict in one column."""
    violated, lacking = watch.violated[column.name], watch.lacking[column.name]
    rows = counted(violated, "row")
    if column.is_constant:
        return f"{column.name} was {column} in training. It is not in {rows}, which is reason enough to flag a row."
    causes = {
        "more missing cells than any training row" if column.missing else "it was never missing in training": lacking,
        "a category that training never had" if column.levels else f"a value far outside {column.normal}": violated - lacking,
    }
    why = " or ".join(f"{cause} ({count:,})" if count < violated else cause for cause, count in causes.items() if count)
    return f"{column.name} contradicts all of training in {rows}: {why}. That is reason enough to flag a row."


def _label_pairs(watch: "Watch") -> dict[str, str]:
    """How far training rows flatter the figures, and how well labels agree."""
    labels, pairs = watch.agreement(), {}
    if watch.flatters:
        share = 100 * (watch.trained_share or 0.0)
        which = "these rows trained the model" if share > 99.5 else f"about {share:.0f} % of these rows trained the model"
        pairs["not new"] = f"{which}. It flags fewer of them than of new rows: the figures here flatter it"
    if labels is None:
        return pairs
    normal = f"{labels['normal_rows']:,} rows with {labels['column']} = {labels['target']}"
    for title, name, which in (("false alarms", "false_alarm", normal), ("caught", "caught", f"{labels['other_rows']:,} other rows")):
        if labels[f"{name}_rate"] is not None:
            low, high = (100 * bound for bound in labels[f"{name}_interval"])
            pairs[title] = f"{100 * labels[f'{name}_rate']:.1f} % (90 % interval {low:.1f} to {high:.1f} %) of {which}"
    return pairs if labels["auroc"] is None else {**pairs, "AUROC": f"{labels['auroc']:.3f}"}


def _column_pairs(watch: "Watch", tell_outside: bool) -> dict[str, str]:
    """What training never had, and how much is missing; nothing where the model's file does not describe its columns."""
    counts = [count for count in watch.monitor.counts if count.column.rows]
    unlike = [count for count in sorted(counts, key=lambda count: -count.unlike) if count.unlike]
    outside = named(f"{count.column.name} ({count.unlike:,} of {count.rows:,} rows)" for count in unlike if not count.column.levels)
    unseen = named(f"{count.column.name} ({counted(count.unlike, 'row')})" for count in unlike if count.column.levels)
    pairs = {"outside training": f"values beyond the range in {outside}"} if outside and tell_outside else {}
    pairs |= {"never seen": f"categories that training did not have in {unseen}"} if unseen else {}
    if missing := sum(count.missing_share for count in counts):
        then = sum(count.column.missing_share for count in counts)
        pairs["missing"] = f"{100 * missing / len(counts):.2g} % of the cells; in training {100 * then / len(counts):.2g} %"
    return pairs


def _drift_pair(watch: "Watch", drift: "Drift | None") -> dict[str, str]:
    """What the tests found. Scores of training rows differ from those of left-out rows whatever happened, so they are not mentioned."""
    if drift is None:
        return {}
    found, differ = "none found in the columns", "but the scores differ"
    if drift.drifted:
        found = f"{counted(len(drift.drifted), 'column differs', 'columns differ')} from training"
        differ = "the scores differ too"
    scores = differ if drift.scores_found else "the scores are like training's"
    return {"drift": f"{found} {drift.rule}" + ("" if watch.flatters or drift.scores is None else f"; {scores}")}


def _print_drifted(drift: "Drift") -> None:
    table = Table("column", "differs by (points)", "corrected p", "outside", "missing")
    for column in drift.drifted[:MOST_DRIFTED]:
        p = "< 0.001" if column.corrected < 0.001 else f"{column.corrected:.3f}"
        count = column.count
        table.add_row(shown(column.name), f"{100 * column.difference:.1f}", p, f"{count.unlike:,}", f"{100 * count.missing_share:.2g} %")
    console.print(table)
    if len(drift.drifted) > MOST_DRIFTED:
        say(f"and {len(drift.drifted) - MOST_DRIFTED:,} more: --summary-json lists them all")


def _print_worst(watch: "Watch") -> None:
    rows = watch.worst_as_dicts()
    has_p, has_labels = rows[0]["p_value"] is not None, watch.labels is not None
    table = Table("row", "score", *["p-value"] * has_p, *["known as"] * has_labels, "decision", "reasons")
    for row, reasons in zip(rows, watch.worst_reasons, strict=True):
        p, known = ([f"{row['p_value']:.2g}"] if has_p else []), [shown(str(row["known"]))] * has_labels
        decision = "flagged" if row["label"] == OUTLIER else "accepted"
        table.add_row(f"{row['row']:,}", f"{row['score']:.4g}", *p, *known, decision, shown("\n".join(map(str, reasons))))
    console.print(table)


def print_fit(model: "TableDetector", out: object) -> None:
    """Print what a fit ended in."""
    card, kinds = model.card_, Counter(column.kind for column in model.columns_)
    left_out = card["rows"] - card["targets"] - card["outliers"]
    words = {"number": "numbers", "category": "categories", "date": "dates"}
    print_pairs(
        {
            "rows": _trained_rows(card) + (f", {left_out:,} left out" if left_out else ""),
            "features": ", ".join(counted(kinds[kind], kind, plural) for kind, plural in words.items() if kinds[kind] or kind == "number"),
            **_what_to_expect(card),
            **_facts(model),
            "file": str(out),
        }
    )


def identity(saved: "SavedModel", holds: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a saved model, by name."""
    card = saved.model.card_
    between = f" ({card['first_time']} … {card['last_time']})" if card["first_time"] else ""
    left_out = {"time column": card["time_column"] and card["time_column"] + between, "dropped": named(card["dropped"], 20)}
    rows = [f"{holds[f'{kind}_rows']:,} {kind} rows" for kind in ("training", "watched") if holds[f"{kind}_rows"]]
    rule = "" if card["target_column"] is None else f" (targets: {card['target_column']} = {card['target']})"
    bound, final = {}, saved.model._final
    if hasattr(final, "false_alarm_band"):
        high = ", ".join(f"{100 * end:.2g}" for end in final.false_alarm_band().at(p_value=(0.05, 0.1, 0.2))[1])
        bound["any threshold"] = f"flags at most {high} % of new normal rows where 5, 10, 20 % are expected (all together with 95 %)"
    return {
        "file": str(saved.path),
        **({"trained on": f"{card['file'] or 'a data frame'}: {_trained_rows(card)}{rule}"} if card["targets"] else {}),
        **{name: text for name, text in left_out.items() if text},
        **_what_to_expect(card),
        **bound,
        **_facts(saved.model, with_threshold=True),
        **({"holds": f"{' and '.join(rows)} of {named(holds['columns'])}: treat the file like these data"} if rows else {}),
        "made": card["created"],
        "versions": ", ".join(f"{name} {version}" for name, version in card["versions"].items()),
    }


def operation(found: Mapping[str, Any]) -> dict[str, str]:
    """What is known of a model in operation, by name."""
    interval = "{:.2g} to {:.2g} %".format(*(100 * end for end in found["flagged_interval"]))
    shown = {**found, "flagged_interval": interval, "drifted": named(found["drifted"]) or "none", "reviews": len(found["reviews"])}
    return {name.replace("_", " "): f"{value:.4g}" if isinstance(value, float) else value for name, value in shown.items()}


def _trained_rows(card: Mapping[str, Any]) -> str:
    return f"{counted(card['targets'], 'target')}, {counted(card['outliers'], 'known outlier')}"


def _what_to_expect(card: Mapping[str, Any]) -> dict[str, str]:
    """The model, and what new rows will meet; of a classifier, what training rows met too."""
    pairs = {"model": card["model"] if not card["choice"] else f"{card['model']}: {card['choice']}"}
    if card["search"]:
        found = card["search"]
        kind = "score {:.1f} % on made-up outliers" if found["made_up"] else "Gmean {:.1f} %"
        pairs["search"] = f"best of {found['candidates']}, {kind.format(100 * found['gmean'])} in validation"
    if card["accepted_targets"] is not None:
        pairs["targets accepted"] = f"{100 * card['accepted_targets']:.1f} % (of the training rows; expect fewer of new ones)"
    if card["false_alarm_rate"] is not None and card["false_alarm_interval"] is not None:
        low, high = (100 * bound for bound in card["false_alarm_interval"])
        text = f"{100 * card['false_alarm_rate']:.2g} % of new normal rows expected (90 % interval {low:.2g} to {high:.2g} %)"
        held_out = card["held_out_rows"]
        pairs["false alarms"] = text if held_out is None else f"{text}, measured on {counted(held_out, 'held-out row')}"
    for name, facts in (card["groups"] or {}).items():
        rate = "too few rows: the threshold of all rows" if facts is None else "{:.2g} % (90 % interval {:.2g} to {:.2g} %)"
        pairs[f"  {name}"] = rate.format(*(100 * number for number in facts or ()))
    if card["made_up_caught"] is not None:
        told = "" if card["made_up_auc"] is None else f", told apart with an AUROC of {card['made_up_auc']:.3f}"
        pairs["made-up outliers"] = f"{100 * card['made_up_caught']:.0f} % are caught{told}"
    if card["rejected_outliers"] is not None:
        pairs["outliers rejected"] = f"{100 * card['rejected_outliers']:.1f} % (of those in the table)"
    return pairs


def _facts(model: "TableDetector", with_threshold: bool = False) -> dict[str, str]:
    """What a detector knows of itself; not every kind has all of it."""
    final, pairs = model._final, dict[str, str]()
    kernel: Any = getattr(final, "kernel_", None)
    if hasattr(final, "support_"):
        pairs["support vectors"] = f"{final.support_.size:,}"
    if hasattr(kernel, "references_"):
        pairs["rank"] = f"{kernel.rank_:,} of {len(kernel.references_):,} references"
    if with_threshold and hasattr(final, "offset_"):
        pairs["threshold"] = f"score >= {final.offset_:.6g}"
    return {**pairs, "duality gap": f"{final.duality_gap_:.1e}"} if hasattr(final, "duality_gap_") else pairs


def print_pairs(pairs: Mapping[str, Any], width: int = 0) -> None:
    """Print facts, one a line."""
    width = width or max(map(len, pairs)) + 2
    for name, value in pairs.items():
        say(value, f"[bold]{name:<{width}}[/]")
