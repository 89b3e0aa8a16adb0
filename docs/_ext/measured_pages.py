"""Pages that commands wrote, inside the site: ``{measured} study`` shows the answer of measured/pages/study.html.gz, a link to it and the page.

The pages are kept compressed, since some have a megabyte of drawings. ``tools/measured.py`` puts a new run in their place.
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
ANSWER = re.compile(r"<p><strong>.*?</strong></p>", flags=re.DOTALL)
"""The sentences that a page opens with."""
HEADER = re.compile(r"<header>.*?</header>", flags=re.DOTALL)


class Measured(Directive):
    """The answer of a page, a link to the page, and the page itself in a frame."""

    required_arguments = 1

    def run(self):
        name, depth = self.arguments[0], self.state.document.settings.env.docname.count("/")
        header = HEADER.search(text_of(name))[0]
        title, address = TITLE.search(header)[1], f"{'../' * depth}{SHOWN}/{name}.html"
        return [nodes.raw("", "".join(ANSWER.findall(header)) + _frame(title, address), format="html")]


def _frame(title: str, address: str) -> str:
    link = f'<p><a href="{address}">Open the whole page: {title}</a></p>'
    return f'{link}<iframe src="{address}" title="{title}" class="measured" loading="lazy"></iframe>'


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
