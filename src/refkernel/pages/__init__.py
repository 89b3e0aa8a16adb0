"""The page of a model and a table: one HTML file that opens anywhere and fetches nothing.

Needs the extra ``report`` (jinja2). The charts are drawn by Chart.js (MIT licence), which is kept under ``vendor`` and put into each page.
"""

import tempfile
import webbrowser
from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .._core.files import write_text
from .._core.types import StrPath
from ..exceptions import TableError
from ..tabular.detector import TableDetector

__all__ = ["Report", "check_page", "report"]

PAGES = (".html", ".htm")
HEIGHT = "48rem"  # the height of the page in a cell of a notebook


class Report:
    """A page in memory, which a notebook shows; ``html`` is its text."""

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: StrPath) -> Path:
        """Write the page to a file whose name ends in .html, and return its path; a file that exists is replaced."""
        check_page(Path(path))
        return write_text(path, self.html, "The page")

    def open(self) -> Path:
        """Show the page in the browser, and return the path of the temporary file that it was written to."""
        path = self.save(Path(tempfile.mkdtemp(prefix="refkernel-")) / "report.html")
        webbrowser.open(path.as_uri())
        return path

    def __repr__(self) -> str:
        return f'Report of {len(self.html):,} characters: show it in a notebook, save("page.html") or open() it'

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{HEIGHT};border:0"
        return f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" style="{style}" title="Report"></iframe>'


def report(model: TableDetector, X: Any = None, *, features: Sequence[str] = ()) -> Report:
    """Make the page of a table detector and of rows that it scores: what ``refkernel report`` writes.

    The page shows the scores with a threshold to drag, the worst rows and why they are, a plane of the data, rows over time if the model
    has a time column, and drift. It needs the extra ``report``: ``pip install "refkernel[report]"``.

    Parameters
    ----------
    model : TableDetector
        A fitted detector.
    X : DataFrame of shape (n_samples, n_columns), optional
        Rows to score: the columns of ``fit``, by name. Other columns are shown with the worst rows. Without rows the page is about the
        model alone.
    features : sequence of str, optional
        Two columns of numbers for the plane; otherwise it is that of two principal components.

    Returns
    -------
    Report
        The page: a notebook shows it, ``save(path)`` writes it to one file that stands alone, ``open()`` shows it in the browser.

    See Also
    --------
    TableDetector.reasons : The reasons alone.
    TableDetector.drift : The tests for drift alone.

    Examples
    --------
    >>> import numpy as np, pandas as pd, refkernel as rk
    >>> table = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])
    >>> model = rk.TableDetector().fit(table)
    >>> page = rk.report(model, table.assign(a=9.0))  # doctest: +SKIP
    >>> page.save("report.html")  # doctest: +SKIP
    """
    if not isinstance(model, TableDetector):
        kind = type(model).__name__
        raise TypeError(f"{kind} is not a TableDetector. Fit one to a data frame: rk.TableDetector(rk.SVDD()).fit(pd.DataFrame(X)).")
    check_is_fitted(model)
    check_page()
    from .page import report_text

    return Report(report_text(model, X, features))


def check_page(out: Path | None = None, *inputs: Path) -> None:
    """An error if no page can be made, or written there, before work is done for it."""
    if find_spec("jinja2") is None:
        raise ImportError('The page needs jinja2: pip install "refkernel[report]".')
    if out is not None and out.suffix.lower() not in PAGES:
        raise TableError(f"{out}: the name of the page must end in {PAGES[0]}.")
    if out is not None:
        from ..tabular.writing import check_writable

        check_writable(out, *inputs)
