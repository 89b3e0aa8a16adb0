"""The commands for a user's own data: fit, score, inspect and plot."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from .shared import app, clear_errors, console, errors, names, shown

Delimiter = Annotated[str | None, typer.Option(help="Of a CSV file: one character, or tab. Detected by default.")]
Decimal = Annotated[str, typer.Option(help="Decimal mark of a CSV file: . or ,")]
Encoding = Annotated[str, typer.Option(help="Of a CSV file, such as utf-8, cp1252 or utf-16.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first line of a CSV file names the columns; asked where it holds numbers."),
]
ModelFile = Annotated[Path, typer.Argument(help="A file of refkernel fit.")]


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file, one row a sample, with a header.")],
    out: Annotated[Path, typer.Option(help="Where the model goes, for example model.rk.")],
    target_column: Annotated[
        str | None, typer.Option(help="Column that tells targets from others. Without it all rows are targets.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Its value for targets.")] = None,
    outlier: Annotated[
        str | None, typer.Option(help="Its value for known outliers, or 'other'. By default other rows are left out.")
    ] = None,
    drop: Annotated[str, typer.Option(help="Columns to leave out, separated by commas.")] = "",
    categorical: Annotated[str, typer.Option(help="Columns of numbers that are categories, separated by commas.")] = "",
    model: Annotated[
        str | None, typer.Option(help="auto (nothing to choose), svdd or ocsvm. Default: auto, or svdd with an option of it.")
    ] = None,
    false_alarm_rate: Annotated[float, typer.Option(help="Share of new normal rows that may be flagged; for --model auto.")] = 0.05,
    references: Annotated[str, typer.Option(help="auto (case2), none, training, subset, normal, case1 … case7, …")] = "auto",
    nu: Annotated[float | None, typer.Option(help="Share of targets that may be left outside; 0.1 by default.")] = None,
    scale: Annotated[float | None, typer.Option(help="Width of the kernel; by default 10 for svdd with references, else 1.")] = None,
    search: Annotated[bool, typer.Option(help="Tune scale and nu, where they are not given. Needs known outliers.")] = False,
    seed: Annotated[int, typer.Option(help="Decides references and folds.")] = 0,
    impute: Annotated[
        str | None, typer.Option(help="'median' fills missing values (categories: most frequent), now and when scoring.")
    ] = None,
    out_report: Annotated[Path | None, typer.Option(help="Also write a page about the model and this table: see refkernel report.")] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    header: Header = None,
) -> None:
    """Learn what is normal from a table, and save the model."""
    with clear_errors():
        from ..persistence import save
        from ..tables import Recipe, Rows, fit_file
        from ..tables.writing import check_writable

        check_writable(out, data)
        if out_report is not None:
            check_writable(out_report, data, out)
        if model is None:
            model = "svdd" if search or references != "auto" or nu is not None or scale is not None else "auto"
        recipe = Recipe(model, references, nu, scale, search, seed, impute, false_alarm_rate)
        rows = Rows(target_column, target, outlier)
        fitted = fit_file(data, recipe, rows, _form(delimiter, decimal, encoding, header), names(drop), names(categorical))
        save(fitted.model, out, about=fitted.about)
        _notes(fitted.notes)
        _print_fit(fitted.about, out)
        if out_report is not None:
            _write_report(out, data, out_report, _form(delimiter, decimal, encoding, header))


@app.command()
def score(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file with the model's columns; others are kept.")],
    out: Annotated[Path, typer.Option(help="CSV or Parquet file for the table with the scores.")],
    proba_like: Annotated[
        bool, typer.Option("--proba-like", help="Add normality: the share of training targets with a lower decision value, 0 to 1.")
    ] = False,
    prefix: Annotated[str, typer.Option(help="Put before the names of the added columns.")] = "",
    false_alarm_rate: Annotated[
        float | None, typer.Option(help="Another threshold for this table: the share of new normal rows that may be flagged.")
    ] = None,
    explain: Annotated[
        int, typer.Option(min=0, help="Add this many reasons of each flagged row: columns that speak against it, with their normal range.")
    ] = 0,
    worst: Annotated[int, typer.Option(min=0, help="Show this many rows with the lowest scores, the worst first.")] = 0,
    target_column: Annotated[str | None, typer.Option(help="Column that labels the rows; by default that of fit, if it is there.")] = None,
    target: Annotated[str | None, typer.Option(help="Its value for normal rows.")] = None,
    summary_json: Annotated[Path | None, typer.Option(help="Write the summary (labels, drift, columns, worst rows) to this file.")] = None,
    defuse: Annotated[
        bool,
        typer.Option(
            "--defuse-formulas/--keep-formulas",
            help="In CSV files, put an apostrophe before texts that a spreadsheet would run as formulas (=, +, -, @ first), or keep them.",
        ),
    ] = True,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    header: Header = None,
) -> None:
    """Score a table of any size: adds score, decision (score - threshold) and label (1 target, -1 outlier)."""
    with clear_errors():
        from ..tables import load_table_model, open_table, score_file
        from ..tables.summary import Watch, labels_for
        from ..tables.writing import check_writable
        from .explaining import print_reasons
        from .summary import print_summary, summary_of, write_summary

        saved = load_table_model(model)
        if false_alarm_rate is not None:
            saved = saved.with_false_alarm_rate(false_alarm_rate)
        form = _form(delimiter, decimal, encoding, header)
        if summary_json is not None:
            check_writable(summary_json, data, out, model)
        watch = Watch(saved, labels_for(saved, open_table(data, form).names, target_column, target), worst)
        with share_bar("score") as progress:
            result = score_file(
                saved,
                data,
                out,
                form=form,
                proba_like=proba_like,
                prefix=prefix,
                defuse=defuse,
                explain=explain,
                progress=progress,
                watch=watch.add,
            )
        _notes(_score_notes(result))
        share = 100.0 * result.outliers / result.rows
        kinds = f"{_counted(result.rows - result.outliers, 'target')}, {_counted(result.outliers, 'outlier')} ({share:.1f} %)"
        _say(f"{_counted(result.rows, 'row')}: {kinds}.")
        print_reasons(result)
        summary = summary_of(watch, data)
        print_summary(summary)
        _say(f"Scores: {out}")
        if summary_json is not None:
            write_summary(summary_json, summary)
            _say(f"Summary: {summary_json}")


@app.command()
def inspect(model: ModelFile) -> None:
    """Say what a model is and what it was trained on."""
    with clear_errors():
        from ..tables import load_table_model
        from ..tables.wording import named

        saved = load_table_model(model)
        _print_pairs(_identity(saved))
        table = Table("feature", "type", "categories")
        for feature in saved.features:
            kind = ("number", "") if feature.categories is None else ("category", f"{len(feature.categories)}: {named(feature.categories)}")
            table.add_row(shown(feature.name), kind[0], shown(kind[1]))
        console.print(table)


@app.command()
def plot(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file with the model's columns: best the training table.")],
    out: Annotated[Path, typer.Option(help="Picture: .png, .svg, or .html (one file that stands alone).")],
    features: Annotated[str, typer.Option(help="Two numeric features, separated by a comma; principal components by default.")] = "",
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    header: Header = None,
) -> None:
    """Draw decision values, the decision region, and the spectrum of the references."""
    with clear_errors():
        from ..tables import load_table_model
        from ..tables.drawing import plot_file

        drawn = plot_file(load_table_model(model), data, out, features=names(features), form=_form(delimiter, decimal, encoding, header))
        _say(f"{_counted(drawn, 'row')} drawn: {out}")


def _write_report(model, data, out, form):
    from ..report import report_file
    from ..tables import load_table_model

    report_file(load_table_model(model), data, out, form=form)
    _say(f"Page: {out}")


@contextmanager
def share_bar(name):
    """A bar that the yielded function moves to a share from 0 to 1; nothing is shown where there is no terminal."""
    columns = (TextColumn(name), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=not errors.is_terminal, transient=True) as bar:
        shown = bar.add_task(name, total=1.0)
        yield lambda share: bar.update(shown, completed=share)


def _form(delimiter, decimal, encoding, header):
    from ..tables.reading import CsvFormat

    return CsvFormat("\t" if delimiter in ("tab", "\\t") else delimiter, decimal, encoding, header)


def _say(text, to: Console = console):
    to.print(shown(text), highlight=False, soft_wrap=True)


def _notes(notes):
    for note in notes:
        errors.print(f"[yellow]Note:[/] {shown(note)}", highlight=False, soft_wrap=True)


def _counted(count: int, thing: str, things: str | None = None) -> str:
    from ..tables.wording import counted

    return counted(count, thing, things)


def _score_notes(result) -> list[str]:
    from ..tables.wording import named

    notes = list(result.notes)
    if result.defused:
        verb = "begins" if result.defused == 1 else "begin"
        notes.append(
            f"{_counted(result.defused, 'text')} {verb} like a formula, and an apostrophe now stands before it: no spreadsheet runs it. "
            "--keep-formulas leaves such texts unchanged."
        )
    if result.extra:
        notes.append(f"Not used by the model, and kept: {named(result.extra)}.")
    if result.reordered:
        notes.append("The columns are in another order than in training: they are matched by name.")
    if result.filled:
        counts = Counter(result.filled).most_common()
        notes.append("Missing values were filled as in training: " + named(f"{name} ({count:,})" for name, count in counts) + ".")
    for name, counts in result.unseen.items():
        seen = named(f"{value} ({count:,})" for value, count in counts.most_common())
        notes.append(f"Categories of {name} that training did not see count as none of the known ones: {seen}.")
    return notes


def _print_fit(about, out):
    data, training, features = about["data"], about["training"], about["features"]
    left_out = data["rows"] - data["targets"] - data["outliers"]
    categories = sum(feature["categories"] is not None for feature in features)
    pairs = {
        "rows": _trained_rows(data) + (f", {left_out:,} left out" if left_out else ""),
        "features": _counted(len(features) - categories, "number")
        + (f", {_counted(categories, 'category', 'categories')}" if categories else ""),
        "model": _recipe(about),
        **_what_to_expect(training),
        **_rejected(training),
        **_certificate(training),
        "file": str(out),
    }
    _print_pairs(pairs)


def _what_to_expect(training) -> dict[str, str]:
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


def _false_alarms(training) -> dict[str, str]:
    if training.get("false_alarm_rate") is None:
        return {}
    low, high = (100 * bound for bound in training["false_alarm_interval"])
    text = f"{100 * training['false_alarm_rate']:.2g} % of new normal rows expected (90 % interval {low:.2g} to {high:.2g} %)"
    held_out = training.get("held_out_rows")
    return {"false alarms": text if held_out is None else f"{text}, measured on {_counted(held_out, 'held-out row')}"}


def _made_up(training) -> dict[str, str]:
    caught, auc = training.get("made_up_caught"), training.get("made_up_auc")
    texts = [] if caught is None else [f"{100 * caught:.0f} % are caught"]
    texts += [] if auc is None else [f"told apart with an AUROC of {auc:.3f}"]
    return {"made-up outliers": ", ".join(texts)} if texts else {}


def _certificate(training) -> dict[str, str]:
    return {"duality gap": f"{training['duality_gap']:.1e}"} if "duality_gap" in training else {}


def _trained_rows(data) -> str:
    return f"{_counted(data['targets'], 'target')}, {_counted(data['outliers'], 'known outlier')}"


def _identity(saved) -> dict[str, Any]:
    """What is known of a saved model, by name."""
    about, detector = saved.about, saved.detector
    pairs = {"file": str(saved.path), "model": type(detector).__name__}
    if "recipe" in about:
        data, training = about["data"], about["training"]
        rule = "" if data["target_column"] is None else f" (targets: {data['target_column']} = {data['target']})"
        pairs |= {
            "model": _recipe(about),
            "trained on": f"{data['file']}: {_trained_rows(data)}{rule}",
            "missing values": f"filled with the {about['recipe']['impute']}" if saved.imputes else "refused",
            **{name: text for name, text in _what_to_expect(training).items() if name != "support vectors"},
            **_rejected(training),
        }
    return {
        **pairs,
        **_facts(detector),
        "made": saved.metadata["created"],
        "versions": ", ".join(f"{name} {version}" for name, version in saved.metadata["versions"].items()),
    }


def _facts(detector) -> dict[str, str]:
    """What a detector knows of itself; not every kind has all of it."""
    texts = {
        "support vectors": ("support_", lambda rows: f"{rows.size:,}"),
        "threshold": ("offset_", lambda offset: f"score >= {offset:.6g}"),
        "duality gap": ("duality_gap_", lambda gap: f"{gap:.1e}"),
    }
    return {name: text(getattr(detector, attribute)) for name, (attribute, text) in texts.items() if hasattr(detector, attribute)}


def _recipe(about):
    from ..tables.recipe import AUTO, AUTO_REFERENCES

    recipe, training, found = about["recipe"], about["training"], about["search"]
    if "choice" in training:
        return f"auto: {training['choice']}"
    name = {"svdd": "SVDD", "ocsvm": "one-class SVM"}.get(recipe["model"], recipe["model"])
    references = f"{AUTO} ({AUTO_REFERENCES})" if recipe["references"] == AUTO else recipe["references"]
    text = f"{name}, nu = {training['nu']:g}, scale = {training['scale']:g}, references: {references}"
    return text if found is None else f"{text}; best of {found['candidates']}, Gmean {100 * found['gmean']:.1f} % in validation"


def _rank(training):
    return (
        {}
        if training["rank"] is None or training["references"] is None
        else {"rank": f"{training['rank']:,} of {training['references']:,} references"}
    )


def _rejected(training):
    share = training["rejected_outliers"]
    return {} if share is None else {"outliers rejected": f"{100 * share:.1f} % (of those in the table)"}


def _print_pairs(pairs):
    width = max(map(len, pairs)) + 2
    for name, value in pairs.items():
        console.print(f"[bold]{name:<{width}}[/]{shown(value)}", highlight=False, soft_wrap=True)
