"""The page of a model and a table: one HTML file that opens anywhere and fetches nothing.

Needs the extra ``report`` (jinja2). The charts are drawn by Chart.js (MIT licence), which is kept under ``vendor`` and put into each page.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from .._threads import one_blas_thread
from ..exceptions import TableError
from ..tables import CsvFormat, Scored, TableModel
from ..tables.reading import open_table
from ..tables.scoring import check_names, checked_input, decide
from ..tables.summary import Watch, labels_for
from ..tables.writing import check_writable

__all__ = ["check_page", "report_file"]

PAGES = (".html", ".htm")

MOST_WORST = 200
"""Rows that the page lists, the worst first."""

MOST_POINTS = 1_500
"""Rows that the plane shows, spread evenly over the table."""

STYLES = ("style.css", "report.css")
SCRIPTS = ("sorting.js", "vendor/chart.umd.min.js", "report.js")


def report_file(
    saved: TableModel,
    data: Path | None,
    out: Path,
    *,
    form: CsvFormat = CsvFormat(),  # noqa: B008 (frozen)
    features: tuple[str, ...] = (),
    target_column: str | None = None,
    target: str | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Watch:
    """Write the page of a model, and of a table if there is one, and return what was seen of the table."""
    check_page(out, saved.path, *([data] if data else []))
    from .._pages import write_page
    from .views import page_values

    watch = (
        Watch(saved, worst=MOST_WORST, spread=MOST_POINTS) if data is None else _watched(saved, data, form, target_column, target, progress)
    )
    write_page(out, (__package__,), "report.html", styles=STYLES, scripts=SCRIPTS, **page_values(watch, data, features))
    return watch


def check_page(out: Path, *inputs: Path) -> None:
    """An error if no page can be written there, before work is done for it."""
    if find_spec("jinja2") is None:
        raise ImportError('The page needs jinja2: pip install "refkernel[report]".')
    if out.suffix.lower() not in PAGES:
        raise TableError(f"{out}: the name of the page must end in {PAGES[0]}.")
    check_writable(out, *inputs)


def _watched(
    saved: TableModel, data: Path, form: CsvFormat, target_column: str | None, target: str | None, progress: Callable[[float], None]
) -> Watch:
    """Score the rows of a table, block by block, and keep what the page shows."""
    table = open_table(data, form)
    check_names(table, saved, [])
    watch = Watch(saved, labels_for(saved, table.names, target_column, target), MOST_WORST, MOST_POINTS)
    seen = Scored()
    with one_blas_thread():
        for block in table.blocks():
            X = checked_input(block, saved, table, seen)
            watch.add(block, X, decide(saved, X))
            seen.rows += len(block)
            progress(table.share_read())
    return watch
