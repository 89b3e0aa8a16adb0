"""What the commands for tables say: notes, and facts about a model."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console

from .shared import console, errors, shown

if TYPE_CHECKING:
    from .._encoding import Column
    from ..tables import Scored, TableModel


def say(text: str, to: Console = console) -> None:
    """Print a text as it is."""
    to.print(shown(text), highlight=False, soft_wrap=True)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes, beside the output."""
    for note in notes:
        errors.print(f"[yellow]Note:[/] {shown(note)}", highlight=False, soft_wrap=True)


@contextmanager
def notes_for_warnings() -> Iterator[None]:
    """Print warnings as notes, without the place in the code that they come from."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    print_notes(dict.fromkeys(str(warning.message) for warning in caught))


def counted(count: int, thing: str, things: str | None = None) -> str:
    """``1 row``, ``2 rows``."""
    from ..tables import wording

    return wording.counted(count, thing, things)


def score_notes(result: Scored, saved: TableModel) -> list[str]:
    """What a user should hear about a table that was scored."""
    from ..tables.wording import named

    notes = list(result.notes)
    if result.defused:
        verb = "begins" if result.defused == 1 else "begin"
        notes.append(
            f"{counted(result.defused, 'text')} {verb} like a formula, and an apostrophe now stands before it: no spreadsheet runs it. "
            "--keep-formulas leaves such texts unchanged."
        )
    if result.extra:
        notes.append(f"Not used by the model, and kept: {named(result.extra)}.")
    if result.reordered:
        notes.append("The columns are in another order than in training: they are matched by name.")
    if result.filled:
        counts = Counter(result.filled).most_common()
        listed = named(f"{name} ({count:,})" for name, count in counts)
        marked = "" if saved.encoder is None else ", and marked as filled"
        notes.append(f"Missing values were filled{marked}: {listed}. The column filled counts them in each row.")
    for name, unknown in result.unseen.items():
        seen = named(f"{value} ({count:,})" for value, count in unknown.most_common())
        meaning = "" if result.violated[name] else " They count as rare ones."
        notes.append(f"Categories of {name} that training did not see: {seen}.{meaning}")
    notes += [_contradiction(column, result) for column in saved.columns if result.violated[column.name]]
    return notes + model_notes(saved)


def model_notes(saved: TableModel) -> list[str]:
    """What a user should know about a model whenever it is used."""
    notes = [far_note()] if saved.accepts_far else []
    if saved.encoder is None and "made_by" in saved.about:
        notes.append(
            "Version 0.1 made this model: it takes new categories, changed constants and missing cells for normal. Fit it again to have "
            "them flagged."
        )
    return notes


def far_note() -> str:
    """The warning for models that accept everything far away."""
    from ..tables.fitting import ACCEPTS_FAR

    return ACCEPTS_FAR


def _contradiction(column: Column, result: Scored) -> str:
    """What the rows contradict in one column."""
    from ..explanations.ranges import normal_of

    violated = result.violated[column.name]
    rows = counted(violated, "row")
    if column.kind == "constant":
        value = column.levels[0] if column.levels else f"{column.minimum:g}"
        return f"{column.name} was always {value} in training. It is not in {rows}, which is reason enough to flag a row."
    why = [
        *(["it was never missing in training"] if not column.missing and result.filled[column.name] else []),
        *(["more missing cells than any training row"] if column.missing and result.filled[column.name] else []),
        *(["a category that training never had"] if result.unseen.get(column.name) else []),
        *([f"a value far outside {normal_of(column)}"] if not column.levels and violated > result.filled[column.name] else []),
    ]
    return f"{column.name} contradicts all of training in {rows}: {' or '.join(why)}. That is reason enough to flag a row."


def print_fit(about: Mapping[str, Any], out: object) -> None:
    """Print what a fit ended in."""
    data, training, features = about["data"], about["training"], about["features"]
    left_out = data["rows"] - data["targets"] - data["outliers"]
    categories = sum(feature["categories"] is not None for feature in features)
    dates = sum(feature["date_format"] is not None for feature in features)
    pairs = {
        "rows": _trained_rows(data) + (f", {left_out:,} left out" if left_out else ""),
        "features": counted(len(features) - categories - dates, "number")
        + (f", {counted(categories, 'category', 'categories')}" if categories else "")
        + (f", {counted(dates, 'date')}" if dates else ""),
        "model": _recipe(about),
        **_what_to_expect(training),
        **_rejected(training),
        **_certificate(training),
        "file": str(out),
    }
    print_pairs(pairs)


def _what_to_expect(training: Mapping[str, Any]) -> dict[str, str]:
    """What new rows will meet; of a classifier, what training rows met too."""
    found = _false_alarms(training) | _made_up(training)
    if "choice" in training:
        return found
    return {
        "support vectors": f"{training['support_vectors']:,}",
        **_rank(training),
        "targets accepted": f"{100 * training['accepted_targets']:.1f} % (of the training rows; expect fewer of new ones)",
        **found,
    }


def _false_alarms(training: Mapping[str, Any]) -> dict[str, str]:
    if training.get("false_alarm_rate") is None:
        return {}
    low, high = (100 * bound for bound in training["false_alarm_interval"])
    text = f"{100 * training['false_alarm_rate']:.2g} % of new normal rows expected (90 % interval {low:.2g} to {high:.2g} %)"
    held_out = training.get("held_out_rows")
    return {"false alarms": text if held_out is None else f"{text}, measured on {counted(held_out, 'held-out row')}"}


def _made_up(training: Mapping[str, Any]) -> dict[str, str]:
    caught, auc = training.get("made_up_caught"), training.get("made_up_auc")
    texts = [] if caught is None else [f"{100 * caught:.0f} % are caught"]
    texts += [] if auc is None else [f"told apart with an AUROC of {auc:.3f}"]
    return {"made-up outliers": ", ".join(texts)} if texts else {}


def _certificate(training: Mapping[str, Any]) -> dict[str, str]:
    return {"duality gap": f"{training['duality_gap']:.1e}"} if "duality_gap" in training else {}


def _trained_rows(data: Mapping[str, Any]) -> str:
    return f"{counted(data['targets'], 'target')}, {counted(data['outliers'], 'known outlier')}"


def identity(saved: TableModel) -> dict[str, Any]:
    """What is known of a saved model, by name."""
    about, detector = saved.about, saved.detector
    pairs = {"file": str(saved.path), "model": type(detector).__name__}
    if "recipe" in about:
        data, training = about["data"], about["training"]
        rule = "" if data["target_column"] is None else f" (targets: {data['target_column']} = {data['target']})"
        pairs |= {
            "model": _recipe(about),
            "trained on": f"{data['file']}: {_trained_rows(data)}{rule}",
            "missing values": f"filled with the {about['recipe']['impute']}, and marked as filled" if saved.imputes else "refused",
            **{name: text for name, text in _what_to_expect(training).items() if name != "support vectors"},
            **_rejected(training),
        }
    return {
        **pairs,
        **_facts(detector),
        "made": saved.metadata["created"],
        "versions": ", ".join(f"{name} {version}" for name, version in saved.metadata["versions"].items()),
    }


def _facts(detector: Any) -> dict[str, str]:
    """What a detector knows of itself; not every kind has all of it."""
    texts = {
        "support vectors": ("support_", lambda rows: f"{rows.size:,}"),
        "threshold": ("offset_", lambda offset: f"score >= {offset:.6g}"),
        "duality gap": ("duality_gap_", lambda gap: f"{gap:.1e}"),
    }
    return {name: text(getattr(detector, attribute)) for name, (attribute, text) in texts.items() if hasattr(detector, attribute)}


def _recipe(about: Mapping[str, Any]) -> str:
    from ..tables.recipe import AUTO, AUTO_REFERENCES

    recipe, training, found = about["recipe"], about["training"], about["search"]
    if "choice" in training:
        return f"auto: {training['choice']}"
    name = {"svdd": "SVDD", "ocsvm": "one-class SVM"}.get(recipe["model"], recipe["model"])
    references = f"{AUTO} ({AUTO_REFERENCES})" if recipe["references"] == AUTO else recipe["references"]
    text = f"{name}, nu = {training['nu']:g}, scale = {training['scale']:g}, references: {references}"
    return text if found is None else f"{text}; best of {found['candidates']}, {_search_score(found)}"


def _search_score(found: Mapping[str, Any]) -> str:
    if found.get("made_up"):
        return f"score {100 * found['gmean']:.1f} % on made-up outliers in validation"
    return f"Gmean {100 * found['gmean']:.1f} % in validation"


def _rank(training: Mapping[str, Any]) -> dict[str, str]:
    return (
        {}
        if training["rank"] is None or training["references"] is None
        else {"rank": f"{training['rank']:,} of {training['references']:,} references"}
    )


def _rejected(training: Mapping[str, Any]) -> dict[str, str]:
    share = training["rejected_outliers"]
    return {} if share is None else {"outliers rejected": f"{100 * share:.1f} % (of those in the table)"}


def print_pairs(pairs: Mapping[str, Any]) -> None:
    """Print facts, one a line."""
    width = max(map(len, pairs)) + 2
    for name, value in pairs.items():
        console.print(f"[bold]{name:<{width}}[/]{shown(str(value))}", highlight=False, soft_wrap=True)
