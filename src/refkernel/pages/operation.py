"""The page of a model in operation: what was flagged beside the promise, evidence, episodes, columns that drifted, and reviews."""

from pathlib import Path
from typing import Any

import numpy as np

from .._core.text import percent
from ..detectors.explain.normal import Normal
from ..exceptions import _printable
from ..tabular.monitor import load_state
from . import check_page

MOST_EPISODES = 200  # episodes that the page lists, the worst first
WIDTH, HEIGHT = 640.0, 200.0  # of a chart


def operation_page(state: Path, out: Path) -> Path:
    """Write the page of a state of ``refkernel watch``."""
    check_page(out, state)
    from .html import write_page

    monitor = load_state(state)
    updates, dated = monitor.history_, bool(np.isfinite(monitor.history_[:, 4]).all())
    x, written = updates[:, 4 if dated else 3], Normal(is_date=dated and monitor.dated_).written
    left = WIDTH * (x - x[:1]) / (np.ptp(x) or 1.0) if len(x) else x
    share, rate = 100 * updates[:, 1] / np.maximum(updates[:, 0], 1), 100 * monitor.detector_.false_alarm_rate_
    alarm = -float(np.log10(monitor.level))
    charts = [
        {"name": "Rows flagged since the last review", "unit": " %", **_chart(left, share, rate, 0.0), "line": f"promised, {rate:.2g} %"},
        {"name": "Evidence, as a power of ten", "unit": "", **_chart(left, updates[:, 2] / np.log(10), alarm, -1.0), "line": "alarm"},
    ]
    return write_page(
        out,
        __package__,
        "operation.html",
        styles=("style.css", "report.css"),
        name=_printable(state.name),
        monitor=monitor,
        charts=charts if len(x) else [],
        marks=left[np.isin(updates[:, 3], monitor.reviews_[:, 0])].tolist(),
        ends=[written(end) for end in x[[0, -1]]] if len(x) else [],
        episodes=sorted(monitor.episodes_, key=lambda episode: (episode.p_value, -episode.flagged))[:MOST_EPISODES],
        written=Normal(is_date=monitor.dated_).written,
        percent=percent,
        interval=lambda ends: f"90 % interval {100 * ends[0]:.2g} to {100 * ends[1]:.2g} %",
    )


def _chart(left: np.ndarray, y: np.ndarray, level: float, lowest: float) -> dict[str, Any]:
    """A line in a box, and a level across it: the points, the height of the level, and the values at the top and the bottom."""
    low, high = min(lowest, float(y.min(initial=0.0))), 1.15 * max(level, float(y.max(initial=0.0)))
    top = HEIGHT * (high - np.append(y, level)) / (high - low)
    points = " ".join(f"{along:.1f},{down:.1f}" for along, down in zip(left, top[:-1], strict=True))
    return {"points": points, "level": float(top[-1]), "top": f"{high:.2g}", "bottom": f"{low:.2g}"}
