"""Pictures of a saved model and a table: a plane through the rows with the scores on it, decision values over time, and the spectrum."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._core.files import replacing
from .._core.threads import one_blas_thread
from .._core.validation import OUTLIER
from ..exceptions import TableError, _printable
from ..plot.regions import Plane, grid_over
from .columns import DATE, NUMBER
from .encoder import Rows, TableEncoder
from .readers import ReadOptions, read_whole
from .readers.values import Marks
from .scoring import SavedModel, check_names
from .summary import label_kinds, labels_for
from .typed import learn
from .writing import check_writable

GRID = 72  # points of the plane along each axis; pictures interpolate between them
MARGIN = 0.08  # the share of the points' range added on each side
BULK, REACH = 0.05, 1.0  # points further from the middle 90 % than these are wide stand at the edge of the plane
FLAT = 1e-9  # rows whose second direction is shorter than this share of the first lie on a line
PICTURES = (".png", ".svg", ".html")
PANEL = (6.4, 4.4)  # width and height of one panel, in inches: room for the legend beside the axes
DPI = 150
MOST_POINTS = 5_000  # rows that are drawn, evenly spread over the table: more cover each other, and vector files grow with each

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>body {{ font-family: sans-serif; margin: 2em }} svg {{ max-width: 100%; height: auto }}</style></head>
<body><h1>{title}</h1><p>{caption}</p>
{svg}
</body></html>
"""


@dataclass(frozen=True)
class Region:
    """Rows on a plane, and the scores of a grid of GRID × GRID points around them."""

    labels: tuple[str, str]
    rows: np.ndarray  # the numbers of the rows that are on it: all but those without a value in a column that was asked for
    points: np.ndarray  # where they are (n × 2)
    x: np.ndarray
    y: np.ndarray
    scores: np.ndarray  # row by row of the grid, from the lowest y
    is_slice: bool  # whether the model has further columns
    is_beyond: np.ndarray  # points that lie further out than the picture reaches, and stand at its edge


def region_of(saved: SavedModel, rows: Rows, features: tuple[str, ...] = ()) -> Region | None:
    """Rows and a grid of scores on a plane through them, other columns as typical of training; None where the rows do not span one."""
    X = rows.frame()
    typical = {column.name: X[column.name].median() if column.typical is None else column.typical for column in saved.columns}
    columns, plane = _named(saved, features) if features else _principal(saved, X, typical)
    V = X[columns].to_numpy(dtype=np.float64)
    known = ~np.isnan(V).any(axis=1) if features else np.ones(len(V), dtype=bool)
    if plane is None or not known.any():
        return None
    projected = plane.project(np.where(np.isnan(V), plane.origin, V)[known])
    P = _within(projected)
    x, y, points = grid_over(P, GRID, MARGIN)
    on_plane = pd.DataFrame({name: np.full(len(points), value, dtype=X[name].dtype) for name, value in typical.items()})
    on_plane[columns] = plane.lift(points)
    with one_blas_thread():
        scores = saved.model.score_samples([on_plane[name].to_numpy() for name in typical])
    return Region(plane.labels, np.flatnonzero(known), P, x, y, scores, len(saved.columns) > 2, (projected != P).any(axis=1))


def _named(saved: SavedModel, features: Sequence[str]) -> tuple[list[str], Plane]:
    numeric = [column.name for column in saved.columns if column.kind == NUMBER]
    if len(features) != 2 or features[0] == features[1] or not set(features) <= set(numeric):
        raise TableError(f"--features {','.join(features)} must be two different numeric columns of the model: {', '.join(numeric)}.")
    return list(features), Plane(np.zeros(2), np.eye(2), (features[0], features[1]))


def _principal(saved: SavedModel, X: pd.DataFrame, typical: dict[str, Any]) -> tuple[list[str], Plane | None]:
    """Two principal components of the columns of numbers that vary, in training and here, in units of their standard deviations."""
    varying = [column.name for column in saved.columns if column.kind == NUMBER and not column.is_constant]
    if len(columns := [name for name in varying if X[name].nunique() > 1]) == 2:
        return _named(saved, columns)
    center = np.array([typical[name] for name in columns], dtype=np.float64)
    V = X[columns].to_numpy(dtype=np.float64)
    Z = _within(np.where(np.isnan(V), center, V) - center)  # a few wild rows must not choose the plane
    unit = Z.std(axis=0)
    _, sizes, directions = np.linalg.svd((Z - Z.mean(axis=0)) / unit, full_matrices=False)
    if sizes.size < 2 or not sizes[1] > FLAT * sizes[0]:
        return columns, None
    first, second = (f"component {k} ({100 * size**2 / sizes.dot(sizes):.0f} % of the variance)" for k, size in enumerate(sizes[:2], 1))
    return columns, Plane(center, directions[:2], (first, second), unit=unit)


def _within(values: np.ndarray) -> np.ndarray:
    """Columns without their wild values: those far from the bulk are moved to its edge."""
    low, high = np.quantile(values, [BULK, 1.0 - BULK], axis=0)
    room = REACH * np.where(high > low, high - low, np.ptp(values, axis=0))
    return np.clip(values, low - room, high + room)


def plot_file(saved: SavedModel, data: Path, out: Path, *, features: tuple[str, ...] = (), options: ReadOptions = ReadOptions()) -> int:  # noqa: B008 (frozen)
    """Draw a model on the rows of a table, and return how many rows were drawn."""
    if out.suffix.lower() not in PICTURES:
        raise TableError(f"--out {out} must end in one of {', '.join(PICTURES)}.")
    check_writable(out, data, saved.path)
    if not isinstance(saved.model.encoder_, TableEncoder):
        raise TableError(f"{saved.path} was not made by refkernel fit: draw it with refkernel.plot in Python.")
    table = saved.open(data, options)
    check_names(table, saved)
    frame = read_whole(table)
    rows = np.unique(np.linspace(0, len(frame) - 1, min(len(frame), MOST_POINTS)).astype(int))
    frame = frame.iloc[rows].reset_index(drop=True)
    X, labels = saved.rows_of(frame, table.marks), labels_for(saved, list(frame.columns))
    y = None if labels is None else label_kinds(frame[labels.column], labels.target)
    y = None if y is None or not (y == 1).any() else np.where(y == 1, 1, OUTLIER)
    with replacing(out) as temporary:
        figure = draw(saved, X, y, times(frame, saved, table.marks), features)
        if out.suffix.lower() != ".html":
            figure.savefig(temporary, format=out.suffix.lower()[1:], dpi=DPI)
        else:
            figure.savefig(text := StringIO(), format="svg")
            title, svg = escape(_printable(f"{saved.path.name} on {data.name}")), text.getvalue()
            page = PAGE.format(title=title, caption=f"{len(X):,} of {rows[-1] + 1:,} rows", svg=svg[svg.index("<svg") :])
            temporary.write_text(page, encoding="utf-8")
    return len(X)


def times(frame: pd.DataFrame, saved: SavedModel, marks: Marks, name: str | None = None) -> tuple[str, np.ndarray] | None:
    """A time column, by default the model's, where the table has it: its name and its moments (or numbers, where they are no dates)."""
    name = name or saved.model.time_column
    if name is None or name not in frame.columns:
        return None
    (profile,), X = learn(frame[[name]], marks, (), [])
    return name, pd.to_datetime(X[name], unit="s").to_numpy() if profile.kind == DATE else X[name].to_numpy()


def draw(
    saved: SavedModel, X: Rows, y: np.ndarray | None, when: tuple[str, np.ndarray] | None = None, features: tuple[str, ...] = ()
) -> Any:
    """A figure with a panel for each picture that there is."""
    from ..plot import ScoreDistributionDisplay, SpectrumDisplay
    from ..plot.style import BLUE, ORANGE, pyplot

    model = saved.model
    region, decisions = region_of(saved, X, features), model.decision_function(X)
    has_spectrum = hasattr(getattr(model._final, "kernel_", None), "eigenvalues_")
    count = 1 + (region is not None) + has_spectrum + (when is not None)
    figure = pyplot().Figure(figsize=(PANEL[0] * count, PANEL[1]), layout="constrained")  # none that a window would show
    panels = figure.subplots(1, count, squeeze=False)
    free = iter(panels[0])
    ScoreDistributionDisplay.from_estimator(model.detector_, X.encoded, y, ax=next(free))
    if when is not None:
        ax = next(free)
        ax.scatter(when[1], decisions, s=6, c=np.where(decisions >= 0, BLUE, ORANGE), linewidths=0)
        ax.axhline(0.0, color="0.4", linewidth=0.8)
        ax.set(xlabel=when[0], ylabel="decision value", title="Decision values over time")
        ax.tick_params(axis="x", labelrotation=30)
    if region is not None:
        _draw_region(next(free), region, model.offset_, decisions, y)
    if has_spectrum:
        SpectrumDisplay.from_estimator(model.detector_, ax=next(free))
    if y is None:  # rows without a label may be anything
        for text in (text for ax in panels[0] if ax.get_legend() for text in ax.get_legend().get_texts()):
            text.set_text(text.get_text().replace("targets", "rows"))
    return figure


def _draw_region(ax: Any, region: Region, offset: float, decisions: np.ndarray, y: np.ndarray | None) -> None:
    """The accepted region, and the rows by their decision and kind."""
    from ..plot import DecisionRegionDisplay

    accepted = decisions[region.rows] >= 0
    known = np.zeros(len(region.rows), dtype=bool) if y is None else y[region.rows] == OUTLIER
    kinds = {
        "accepted rows": accepted & ~known,
        "flagged rows": ~accepted & ~known,
        "known outliers": known,
        "beyond the edge": region.is_beyond,
    }
    marks = {kind: region.points[chosen] for kind, chosen in kinds.items() if chosen.any()}
    grid = region.scores.reshape(len(region.y), len(region.x)) - offset
    title = "Accepted region, other columns as typical of training"
    DecisionRegionDisplay(x1=region.x, x2=region.y, decisions=grid, marks=marks, labels=region.labels, title=title).plot(ax)
