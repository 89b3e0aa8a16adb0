"""What the pages of all experiments share: the frame, the style, figures as SVG, and numbers as text.

Needs the extra ``report`` (pandas, matplotlib, jinja2). A page is one file
that fetches nothing, when it is built or when it is opened.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ..._files import write_text

ASSETS = {"style": "style.css", "script": "script.js"}


def write_page(path: Path, package: str, template: str, **values: Any) -> Path:
    """Fill a template of a package (or of this one) with values, write the page whole or not at all, and return its path."""
    folders = (files(package), files(__package__))

    def source(name: str) -> str | None:
        return next((file.read_text(encoding="utf-8") for folder in folders if (file := folder.joinpath(name)).is_file()), None)

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(source), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["svg"] = lambda drawing: Markup(drawing.svg)  # made by svg.py, which escapes its texts
    environment.filters["sentence"] = lambda text: text[:1].upper() + text[1:]
    assets = {name: Markup(source(file)) for name, file in ASSETS.items()}
    return write_text(path, environment.get_template(template).render(**values, **assets))
