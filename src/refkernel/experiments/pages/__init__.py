"""What the pages of all experiments share: their filters, figures as SVG, and numbers as text.

Needs the extra ``report`` (pandas, matplotlib, jinja2). A page is one file
that fetches nothing, when it is built or when it is opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from ... import _pages

SCRIPTS = (_pages.SORTING, "script.js")


def write_page(path: Path, package: str, template: str, **values: Any) -> Path:
    """Fill a template of a package (or of this one) with values, write the page whole or not at all, and return its path."""
    converters = {"svg": lambda drawing: Markup(drawing.svg)}  # made by svg.py, which escapes its texts
    return _pages.write_page(path, (package, __package__), template, scripts=SCRIPTS, converters=converters, **values)
