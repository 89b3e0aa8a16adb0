"""HTML pages that are one file and fetch nothing: the frame, the style, sortable tables, and a policy that lets no other script run.

Needs the extra ``report`` (jinja2).
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from .._core.files import write_text


def page(
    package: str, template: str, *, styles: Sequence[str] = ("style.css",), scripts: Sequence[str] = ("sorting.js",), **values: Any
) -> str:
    """Fill a template with values.

    Templates, styles and scripts are looked up in the package (or below it), and then here. Values are escaped. Only these very scripts
    run: the page's policy names their hashes, so that a script in a value would not run even if it were not escaped.
    """
    # without the address of a source map, which a browser's tools would ask for
    codes = [source(name, package).partition("//# sourceMappingURL=")[0] for name in scripts]
    hashes = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes]
    return _filled(
        package,
        template,
        True,
        **values,
        style=Markup("\n".join(source(name, package) for name in styles)),
        scripts=[Markup(code) for code in codes],
        script_hashes=Markup(" ".join(f"'sha256-{text}'" for text in hashes)),
    )


def write_page(path: Path, package: str, template: str, **values: Any) -> Path:
    """Write a page whole or not at all, and return its path."""
    return write_text(path, page(package, template, **values), "The page")


def write_markdown(path: Path, package: str, template: str, **values: Any) -> Path:
    """Fill a Markdown template of a package with values, write the page whole or not at all, and return its path."""
    return write_text(path, _filled(package, template, False, **values) + "\n", "The page")


def _filled(package: str, template: str, autoescape: bool, **values: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: source(name, package)),
        autoescape=autoescape,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["json"] = as_json
    return environment.get_template(template).render(**values)


def source(name: str, package: str) -> str:
    """The text of a file of the package or of this one."""
    for folder in (package, __package__):
        if (file := files(folder).joinpath(name)).is_file():
            return file.read_text(encoding="utf-8")
    raise FileNotFoundError(f"{name} is missing from the installed package: install refkernel again.")


def as_json(value: Any) -> Markup:
    """JSON for a script element: no text in it can end the element, or begin another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
