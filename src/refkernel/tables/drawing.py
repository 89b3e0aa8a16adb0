"""A picture of a saved model and a table: decision values (over time, if there is a time column), decision region and spectrum."""

from __future__ import annotations

from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._encoding import DATE, NUMBER
from .._files import replacing
from .._validation import OUTLIER
from ..auto import AutoDetector
from ..exceptions import TableError
from .cells import dates, find_format, numbers, texts, typed_seconds
from .form import CsvFormat
from .planes import Region, region_of
from .reading import open_table, read_whole
from .scoring import Scored, TableModel, check_names, checked_input
from .writing import check_writable

PICTURES = (".png", ".svg", ".html")
PANEL = (6.4, 4.4)
"""Width and height of one panel, in inches: room for the legend beside the axes."""

DPI = 150

OLD_STEPS = 3
"""Steps of a pipeline of version 0.1: columns, scale, model."""

MOST_POINTS = 5_000
"""Rows that are drawn, evenly spread over the table: more cover each other, and vector files grow with each."""

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>body {{ font-family: sans-serif; margin: 2em }} svg {{ max-width: 100%; height: auto }}</style></head>
<body><h1>{title}</h1><p>{caption}</p>
{svg}
</body></html>
"""


def plot_file(saved: TableModel, data: Path, out: Path, *, features: tuple[str, ...] = (), form: CsvFormat = CsvFormat()) -> int:  # noqa: B008 (frozen)
    """Draw a model on the rows of a table, and return how many rows were drawn."""
    if out.suffix.lower() not in PICTURES:
        raise TableError(f"--out {out} must end in one of {', '.join(PICTURES)}.")
    check_writable(out, data, saved.path)
    axes = _chosen(saved, features)
    table = open_table(data, form)
    check_names(table, saved, [])
    frame = read_whole(table)
    rows = np.unique(np.linspace(0, len(frame) - 1, min(len(frame), MOST_POINTS)).astype(int))
    frame = frame.iloc[rows].reset_index(drop=True)
    X = checked_input(frame, saved, table, Scored())
    with replacing(out) as temporary:
        figure = draw(saved, X, kinds(frame, saved), axes, times(frame, saved), features)
        _write(figure, temporary, out, f"{saved.path.name} on {data.name}", f"{len(X):,} of {rows[-1] + 1:,} rows")
    return len(X)


def kinds(frame: pd.DataFrame, saved: TableModel) -> np.ndarray | None:
    """-1 for rows whose target column holds another value than the model's target; None where the table has no such column."""
    trained = saved.about.get("data") or {}
    column = trained.get("target_column")
    if column is None or column not in frame.columns:
        return None
    y = np.where(texts(frame[column]) == trained["target"], 1, OUTLIER)
    return y if (y != OUTLIER).any() else None


def times(frame: pd.DataFrame, saved: TableModel) -> tuple[str, np.ndarray] | None:
    """The model's time column, where the table has it: its name and its moments (or numbers, where they are no dates)."""
    name = (saved.about.get("data") or {}).get("time_column")
    if name is None or name not in frame.columns:
        return None
    column = frame[name]
    seconds = typed_seconds(column)
    if seconds is None:
        form, _ = find_format(texts(column))
        if form is None:
            return name, numbers(column).values
        seconds, _ = dates(texts(column), form)
    return name, pd.to_datetime(pd.Series(seconds), unit="s").to_numpy()


def draw(
    saved: TableModel,
    X: pd.DataFrame,
    y: np.ndarray | None,
    axes: tuple[int, int] | None,
    when: tuple[str, np.ndarray] | None = None,
    features: tuple[str, ...] = (),
) -> Any:
    """A figure with a panel for each picture that there is."""
    from ..plot import DecisionRegionDisplay, ScoreDistributionDisplay, SpectrumDisplay

    pyplot = _pyplot()
    model = saved.model
    before = len(model.steps) - 1 - (bool(axes) and len(model.steps) == OLD_STEPS)  # files of version 0.1 have a scaler of their own
    encoded = model[:before].transform(X)
    region = _region(saved, X, features)
    has_plane, has_spectrum = encoded.shape[1] > 1 and len(X) > 1, hasattr(getattr(model[-1], "kernel_", None), "eigenvalues_")
    count = 1 + has_plane + has_spectrum + (when is not None)
    figure, panels = pyplot.subplots(1, count, figsize=(PANEL[0] * count, PANEL[1]), layout="constrained", squeeze=False)
    free = iter(panels[0])
    ScoreDistributionDisplay.from_estimator(model, X, y, ax=next(free))
    if when is not None:
        _draw_over_time(next(free), *when, model.decision_function(X))
    if region is not None:
        _draw_region(next(free), region, model[-1].offset_, model.decision_function(X), y)
    elif has_plane:
        display = DecisionRegionDisplay.from_estimator(model[before:], encoded, y, features=axes, ax=next(free))
        if axes:
            display.ax_.set(xlabel=saved.features[axes[0]].name, ylabel=saved.features[axes[1]].name)
    if has_spectrum:
        SpectrumDisplay.from_estimator(model, ax=next(free))
    if y is None:
        _call_them_rows(panels[0])
    return figure


def _region(saved: TableModel, X: pd.DataFrame, features: tuple[str, ...]) -> Region | None:
    """The plane of an AutoDetector, whose encoded columns have units of their own; other models are drawn by their kernel's."""
    dates = {feature.name for feature in saved.features if feature.kind != NUMBER}
    return None if not isinstance(saved.detector, AutoDetector) or dates & set(features) else region_of(saved, X, features)


def _draw_region(ax: Any, region: Region, offset: float, decisions: np.ndarray, y: np.ndarray | None) -> None:
    """The accepted region, and the rows by their decision and kind."""
    from matplotlib.patches import Patch

    from ..plot.style import BLUE, ORANGE, PALE

    grid = region.scores.reshape(len(region.y), len(region.x)) - offset
    if (grid >= 0).any():
        ax.contourf(region.x, region.y, grid, levels=[0.0, np.inf], colors=[PALE])
    accepted = decisions[region.rows] >= 0
    known = np.zeros(len(region.rows), dtype=bool) if y is None else y[region.rows] == OUTLIER
    drawn = []
    for text, chosen, style in (
        ("accepted", accepted & ~known, {"color": BLUE, "marker": "o"}),
        ("flagged", ~accepted & ~known, {"color": ORANGE, "marker": "o"}),
        ("known outliers", known, {"color": ORANGE, "marker": "x"}),
    ):
        if chosen.any():
            drawn.append(ax.scatter(*region.points[chosen].T, s=11, label=f"{text} ({int(chosen.sum()):,})", **style))
    ax.set(xlabel=region.labels[0], ylabel=region.labels[1], title="Accepted region, other columns as typical of training")
    handles = [Patch(facecolor=PALE, label="accepted region"), *drawn]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)


def _call_them_rows(panels: np.ndarray) -> None:
    """Rows without a label may be anything: legends do not call them targets."""
    for legend in filter(None, (ax.get_legend() for ax in panels)):
        for text in legend.get_texts():
            text.set_text(text.get_text().replace("targets", "rows"))


def _draw_over_time(ax: Any, name: str, moments: np.ndarray, decisions: np.ndarray) -> None:
    """Decision values in the order of time; those of outliers in another colour."""
    ax.scatter(moments, decisions, s=6, c=np.where(decisions >= 0, "tab:blue", "tab:red"), linewidths=0)
    ax.axhline(0.0, color="0.4", linewidth=0.8)
    ax.set(xlabel=name, ylabel="decision value", title="Decision values over time")
    ax.tick_params(axis="x", labelrotation=30)


def _chosen(saved: TableModel, names: tuple[str, ...]) -> tuple[int, int] | None:
    """The places of two numeric features among the encoded ones; None for principal components."""
    if "made_by" not in saved.about or not hasattr(saved.model, "steps"):
        raise TableError(f"{saved.path} was not made by refkernel fit: draw it with refkernel.plot in Python.")
    if not names:
        return None
    numeric = [feature.name for feature in saved.features if feature.categories is None]  # they came first in version 0.1
    places = dict(zip(numeric, range(len(numeric)), strict=True))
    if saved.encoder is not None:
        places = {column.name: column.encoded[0] for column in saved.columns if column.kind in (NUMBER, DATE)}
    if len(names) != 2 or names[0] == names[1] or not set(names) <= set(places):
        raise TableError(f"--features {','.join(names)} must be two different numeric features of the model: {', '.join(places)}.")
    return places[names[0]], places[names[1]]


def _write(figure: Any, temporary: Path, out: Path, title: str, caption: str) -> None:
    if out.suffix.lower() != ".html":
        figure.savefig(temporary, format=out.suffix.lower()[1:], dpi=DPI)
    else:
        text = StringIO()
        figure.savefig(text, format="svg")
        svg = text.getvalue()
        temporary.write_text(PAGE.format(title=escape(title), caption=escape(caption), svg=svg[svg.index("<svg") :]), encoding="utf-8")
    _pyplot().close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install refkernel[plot].") from error
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    return plt
