"""HTML pages that are one file and fetch nothing: the frame, the style, sortable tables, and a policy that lets no other script run.

Needs the extra ``report`` (jinja2).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from .._files import write_text

SORTING = "sorting.js"
STYLE = "style.css"


def write_page(
    path: Path,
    packages: Sequence[str],
    template: str,
    *,
    styles: Sequence[str] = (STYLE,),
    scripts: Sequence[str] = (SORTING,),
    converters: dict[str, Callable[[Any], Any]] | None = None,
    **values: Any,
) -> Path:
    """Fill a template with values, write the page whole or not at all, and return its path.

    Templates, styles and scripts are looked up in the packages (or below them), and then here. Values are escaped. Only these very scripts
    run: the page's policy names their hashes, so that a script in a value would not run even if it were not escaped.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: source(name, packages)),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"sentence": lambda text: text[:1].upper() + text[1:], "json": as_json, **(converters or {})}
    codes = [_script(name, packages) for name in scripts]
    page = environment.get_template(template).render(
        **values,
        style=Markup("\n".join(_found(name, packages) for name in styles)),
        scripts=[Markup(code) for code in codes],
        script_hashes=Markup(" ".join(f"'sha256-{_hash(code)}'" for code in codes)),
    )
    return write_text(path, page, "The page")


def source(name: str, packages: Sequence[str]) -> str | None:
    """The text of a file of one of the packages or of this one; None where there is none."""
    folders = [files(package) for package in (*packages, __package__)]
    return next((file.read_text(encoding="utf-8") for folder in folders if (file := folder.joinpath(name)).is_file()), None)


def as_json(value: Any) -> Markup:
    """JSON for a script element: no text in it can end the element, or begin another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _found(name: str, packages: Sequence[str]) -> str:
    text = source(name, packages)
    if text is None:
        raise FileNotFoundError(f"{name} is missing from the installed package: install refkernel again.")
    return text


def _script(name: str, packages: Sequence[str]) -> str:
    """A script without the address of its source map, which a browser's tools would ask for."""
    lines = _found(name, packages).splitlines()
    return "\n".join(line for line in lines if not line.startswith("//# sourceMappingURL="))


def _hash(code: str) -> str:
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
