"""The page of a model in operation: what was flagged beside the promise, evidence, episodes, columns that drifted, and reviews."""

from pathlib import Path
from typing import Any

import numpy as np

from .._core.text import percent
from ..detectors.explain.normal import Normal
from ..exceptions import _printable
from ..tabular.monitor import _power, load_state
from . import check_page

MOST_EPISODES = 200  # episodes that the page lists, the worst first
WIDTH, HEIGHT = 640.0, 200.0  # of a chart


def operation_page(state: Path, out: Path) -> Path:
    """Write the page of a state of ``refkernel watch``."""
    check_page(out, state)
    from .html import write_page

    monitor = load_state(state)
    updates, reviews, dated = monitor.history_, monitor.reviews_, bool(np.isfinite(monitor.history_[:, 4]).all())
    x, written = updates[:, 4 if dated else 3], Normal(is_date=dated and monitor.dated_).written
    left = WIDTH * (x - x[:1]) / (np.ptp(x) or 1.0) if len(x) else x
    when = {int(row): written(time) if dated else f"row {row:,.0f}" for row, time in zip(updates[:, 3], x, strict=True)}
    promised = np.append(monitor.detector.false_alarm_rate_, reviews[:, 3])[np.searchsorted(reviews[:, 0], updates[:, 3])]
    share, alarm = updates[:, 1] / np.maximum(updates[:, 0], 1), np.full(len(x), -np.log10(monitor.level))
    unlike, power = _chart(left, 100 * share, 100 * promised, 0.0), _chart(left, updates[:, 2] / np.log(10), alarm, -1.0)
    charts = [
        {"name": "Rows flagged since the last review", "unit": " %", **unlike, "line": "promised"},
        {"name": "Evidence, as a power of ten", "unit": "", **power, "line": "alarm"},
    ]
    ends, marks = [written(end) for end in x[[0, -1]]] if len(x) else [], left[np.isin(updates[:, 3], reviews[:, 0])].tolist()
    worst = sorted(monitor.episodes_, key=lambda episode: (episode.p_value, -episode.flagged))[:MOST_EPISODES]
    shown = {"monitor": monitor, "charts": charts if len(x) else [], "marks": marks, "ends": ends, "episodes": worst, "when": when}
    shown |= {"written": Normal(is_date=monitor.dated_).written, "percent": percent, "peak": _power(monitor._peak)}
    shown["interval"] = lambda ends: f"90 % interval {100 * ends[0]:.2g} to {100 * ends[1]:.2g} %"
    return write_page(out, __package__, "operation.html", styles=("style.css", "report.css"), name=_printable(state.name), **shown)


def _chart(left: np.ndarray, y: np.ndarray, level: np.ndarray, lowest: float) -> dict[str, Any]:
    """A line in a box, and the steps of a level across it: the points of both, and the values at the top and the bottom."""
    low, high = min(lowest, float(y.min(initial=0.0))), 1.15 * max(level.max(initial=0.0), float(y.max(initial=0.0)))
    steps = np.append(0.0, np.repeat(left, 2))[: 2 * len(left)], np.repeat(level, 2)
    lines = [zip(along, HEIGHT * (high - values) / (high - low), strict=True) for along, values in ((left, y), steps)]
    points, step_points = (" ".join(f"{along:.1f},{down:.1f}" for along, down in line) for line in lines)
    return {"points": points, "level": step_points, "top": f"{high:.2g}", "bottom": f"{low:.2g}"}
