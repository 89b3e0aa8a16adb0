"""HTML pages that commands wrote, inside the site: ``{measured} article`` shows measured/pages/article.html.gz in a frame.

The pages are kept compressed, since they have a megabyte of drawings. ``tools/measured.py`` puts a new run in their place.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

FOLDER = Path(__file__).parent.parent / "measured" / "pages"
SHOWN = "_static/measured"
TITLE = re.compile(r"<h1>(.*?)</h1>", flags=re.DOTALL)


class Measured(Directive):
    """A link to a page, and the page itself in a frame."""

    required_arguments = 1

    def run(self):
        name, depth = self.arguments[0], self.state.document.settings.env.docname.count("/")
        title, address = TITLE.search(text_of(name))[1], f"{'../' * depth}{SHOWN}/{name}.html"
        link = f'<p><a href="{address}">Open the page on its own: {title}</a></p>'
        frame = f'<iframe src="{address}" title="{title}" class="measured" loading="lazy"></iframe>'
        return [nodes.raw("", link + frame, format="html")]


def text_of(name: str) -> str:
    """The HTML of a page."""
    return gzip.decompress((FOLDER / f"{name}.html.gz").read_bytes()).decode()


def write_pages(app, exception):
    """Put the pages beside the site's other static files."""
    if exception is None and app.builder.format == "html":
        (Path(app.outdir) / SHOWN).mkdir(parents=True, exist_ok=True)
        for path in FOLDER.glob("*.html.gz"):
            name = path.name.removesuffix(".html.gz")
            (Path(app.outdir) / SHOWN / f"{name}.html").write_text(text_of(name), encoding="utf-8")


def setup(app):
    app.add_directive("measured", Measured)
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
