"""Matplotlib figures as SVG that lives inside an HTML page: alternative text, unique ids, the page's text colour."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib
from matplotlib.figure import Figure

INK = "#010203"
"""Replaced by the page's text colour; no palette uses it."""
FAINT = "#030201"
"""Replaced by the page's line colour."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "refkernel",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    **dict.fromkeys(["text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"], INK),
}
EXTRA_DECIMALS = re.compile(r"(\.\d\d)\d+")
"""Digits beyond a hundredth of a point are invisible; dropping them makes the file a third smaller."""
WIDTH = 4.7
"""Inches; 338 pt, so that a figure shown at phone width keeps its letters at about their size."""


@dataclass(frozen=True)
class Drawing:
    """A figure ready for the page: the svg element, and a caption that is shown."""

    svg: str
    caption: str = ""


def canvas(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure of the standard width and its axes."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def styled() -> AbstractContextManager[None]:
    """The context in which figures must be drawn and converted."""
    return matplotlib.rc_context(STYLE)


def to_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """The figure as an svg element whose ids all begin with `name`."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.S)
    text = re.sub(r'\b(d|x|y|transform)="[^"]*"', lambda m: EXTRA_DECIMALS.sub(r"\1", m[0]), text)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
    text = text.replace(INK, "currentColor").replace(FAINT, "var(--line)")
    view = re.search(r'viewBox="[^"]+"', text)
    assert view is not None  # matplotlib always writes one
    head = (
        f'<svg {view[0]} xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
    )
    text = re.sub(r"<svg[^>]*>", lambda _: head, text, count=1)
    return re.sub(r"\n\s*", "\n", text).strip()
