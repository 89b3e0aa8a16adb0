"""The report's figures, drawn from plot data. Marks differ in shape or line as well as in colour (Okabe and Ito's palette)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from ....plot.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from ...pages.svg import FAINT, INK, Drawing, canvas, styled, to_svg
from ..protocol import EIGENVALUE_FLOOR, VARIANTS, classifier_name, table_title, variant_name
from .plot_data import Regions

DARK_YELLOW = "#B8A800"
"""A darker version of the palette's yellow, which cannot be seen on white."""
COLOURS = dict(zip(VARIANTS, [INK, BLUE, ORANGE, SKY, VERMILION, GREEN, PURPLE, DARK_YELLOW], strict=True))
LINES = dict(zip(VARIANTS, ["-", "-", "-", "--", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))], strict=True))
PANEL_COLUMNS = 2
DARK_CELL = 0.6
"""Heat-map cells above this share of the largest value have white letters."""


def draw_averages(averages: pd.DataFrame, classifier: str, route: str) -> Drawing:
    """Column averages of one table: ours and the article's, with a line between them; all tables share one axis."""
    shown = averages[["gmean", "printed_gmean"]].stack()
    part = averages[(averages["classifier"] == classifier) & (averages["route"] == route)]
    title = table_title(classifier, route)
    y = np.arange(len(part))
    with styled():
        figure, axes = canvas(0.9 + 0.24 * len(part))
        axes.hlines(y, part["gmean"], part["printed_gmean"], color=INK, lw=1.2)
        axes.plot(part["printed_gmean"], y, "D", mfc="none", mec=ORANGE, mew=1.8, ms=8, label="article")
        axes.plot(part["gmean"], y, "o", color=BLUE, ms=5, label="here")
        axes.set(yticks=y, yticklabels=[variant_name(v) for v in part["variant"]], xlabel="average Gmean (%)")
        axes.set_title(title, loc="left")
        axes.set_ylim(len(part) - 0.5, -0.5)
        axes.grid(axis="x")
        axes.set_xlim(shown.min() - 2, shown.max() + 2)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=2, handletextpad=0.2, columnspacing=1.0)
        numbers = "; ".join(
            f"{variant_name(r.variant)}: here {r.gmean:.1f}, article {_or_none(r.printed_gmean)}" for r in part.itertuples()
        )
        return Drawing(to_svg(figure, f"averages-{classifier}-{route}", f"Average Gmean, {title}", numbers))


def draw_spectrum(scale: float, spectrum: dict[str, np.ndarray]) -> Drawing:
    """Eigenvalues of the references' kernel matrix by variant, for one scale."""
    with styled():
        figure, axes = canvas(3.2)
        for variant, values in spectrum.items():
            axes.semilogy(
                np.arange(1, values.size + 1), values, ls=LINES[variant], color=COLOURS[variant], lw=1.5, label=variant_name(variant)
            )
        axes.axhline(EIGENVALUE_FLOOR, color=FAINT, lw=1)
        axes.set(xlabel="number of the eigenvalue", ylabel="eigenvalue", ylim=(EIGENVALUE_FLOOR / 3, None))
        axes.set_title(f"scale {scale:g}", loc="left")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}".replace("e-0", "e−").replace("e+0", "e"))
        axes.yaxis.set_minor_locator(NullLocator())
        figure.legend(loc="outside lower center", ncols=4, fontsize=8, handlelength=2.2, columnspacing=1.2)
        ranks = ", ".join(f"{variant_name(v)} {values.size}" for v, values in spectrum.items())
        text = f"Eigenvalues, largest first, on a logarithmic axis. Numbers of eigenvalues above {EIGENVALUE_FLOOR:g}: {ranks}."
        return Drawing(to_svg(figure, f"spectrum-{scale:g}".replace(".", "_"), f"Kernel spectra, scale {scale:g}", text))


def draw_regions(regions: Regions) -> Drawing:
    """Where each variant accepts (shaded), the targets (dots) and the others (crosses)."""
    rows = -(-len(regions.values) // PANEL_COLUMNS)
    name = classifier_name(regions.classifier)
    with styled():
        figure, grid = canvas(0.2 + 1.45 * rows, rows, PANEL_COLUMNS, sharex=True, sharey=True, squeeze=False)
        for axes, (variant, values) in zip(grid.ravel(), regions.values.items(), strict=False):
            accepted = np.where(values >= 0, 1.0, -1.0) if np.ptp(values) < EIGENVALUE_FLOOR else values
            axes.contourf(regions.x1, regions.x2, accepted, levels=[0.0, np.inf], colors=[BLUE], alpha=0.3)
            if accepted.min() < 0 < accepted.max():
                axes.contour(regions.x1, regions.x2, accepted, levels=[0.0], colors=[BLUE], linewidths=1.3)
            axes.plot(*regions.X[~regions.is_target].T, "x", color=ORANGE, ms=3, mew=0.9)
            axes.plot(*regions.X[regions.is_target].T, "o", color=INK, ms=2)
            axes.set_title(variant_name(variant), loc="left", fontsize=9, fontweight="normal")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(visible=True, edgecolor=FAINT)
        shares = ", ".join(f"{variant_name(v)} {100 * np.mean(values >= 0):.0f} %" for v, values in regions.values.items())
        text = f"Share of the shown plane that is accepted: {shares}."
        _headline(figure, name)
        return Drawing(to_svg(figure, f"regions-{regions.classifier}", f"Decision regions of {name} by variant", text))


def draw_choices(classifier: str, route: str, shares: dict[str, pd.DataFrame]) -> Drawing:
    """How often validation chose each scale and parameter, one small heat map for each variant, all in one pair of axes."""
    rows = -(-len(shares) // PANEL_COLUMNS)
    title = table_title(classifier, route)
    scales, parameters = next(iter(shares.values())).axes
    wide, high = len(parameters) + 0.7, len(scales) + 1.6
    highest = max(share.to_numpy().max() for share in shares.values())
    with styled():
        figure, axes = canvas(0.5 + 1.35 * rows)
        for number, (variant, share) in enumerate(shares.items()):
            x, y = wide * (number % PANEL_COLUMNS), high * (rows - 1 - number // PANEL_COLUMNS)
            _heat_map(axes, x, y, share.to_numpy(), highest)
            axes.text(x, y + len(scales) + 0.3, variant_name(variant), fontsize=9, in_layout=False)
        at_x = [wide * column + 0.5 + k for column in range(min(PANEL_COLUMNS, len(shares))) for k in range(len(parameters))]
        at_y = [high * row + 0.5 + k for row in range(rows) for k in range(len(scales))]
        axes.set_xticks(at_x, [f"{parameters[k % len(parameters)]:g}" for k in range(len(at_x))], fontsize=7.5)
        axes.set_yticks(at_y, [f"{scales[k % len(scales)]:g}" for k in range(len(at_y))], fontsize=7.5)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set(xlim=(-0.1, PANEL_COLUMNS * wide - 0.6), ylim=(-0.1, rows * high - 0.3), xlabel="nu or C", ylabel="scale")
        text = "; ".join(f"{variant_name(v)}: {_favourite(share)}" for v, share in shares.items())
        _headline(figure, title)
        return Drawing(to_svg(figure, f"choices-{classifier}-{route}", f"Chosen parameters, {title}", f"Most frequent choices: {text}."))


def _headline(figure: Figure, text: str) -> None:
    figure.suptitle(text, x=0.01, ha="left", fontsize=10, fontweight="bold")


def _heat_map(axes: Axes, x: float, y: float, share: np.ndarray, highest: float) -> None:
    """Shares in percent as shaded cells of size 1, the first at (x, y)."""
    across, up = x + np.arange(share.shape[1] + 1), y + np.arange(share.shape[0] + 1)
    axes.pcolormesh(across, up, share, cmap="Blues", vmin=0, vmax=highest, edgecolors=FAINT, linewidth=0.4)
    for (i, j), value in np.ndenumerate(share):
        if value >= 0.005:
            colour = "white" if value > DARK_CELL * highest else "black"
            axes.text(x + j + 0.5, y + i + 0.5, f"{100 * value:.0f}", ha="center", va="center", fontsize=7, color=colour, in_layout=False)


def _favourite(share: pd.DataFrame) -> str:
    i, j = np.unravel_index(share.to_numpy().argmax(), share.shape)
    return f"scale {share.index[i]:g} with {share.columns[j]:g} ({100 * share.iat[i, j]:.0f} %)"


def draw_stages(stages: dict[str, float]) -> Drawing:
    """Seconds by stage, as bars."""
    names, seconds = list(stages), np.array(list(stages.values()), dtype=float)
    y = np.arange(len(names))
    with styled():
        figure, axes = canvas(0.6 + 0.28 * len(names))
        axes.barh(y, seconds, color=BLUE, height=0.65)
        for i, value in enumerate(seconds):
            axes.annotate(f"{value:.1f} s", (value, i), xytext=(4, 0), textcoords="offset points", va="center")
        axes.set(yticks=y, yticklabels=names, xlabel="seconds")
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.margins(x=0.15)
        text = "; ".join(f"{name} {value:.1f} s" for name, value in stages.items())
        return Drawing(to_svg(figure, "stages", "Time by stage", text))


def _or_none(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.1f}"
