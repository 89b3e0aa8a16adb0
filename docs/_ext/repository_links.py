"""Links between the repository's pages stay links in the site: pages outside of docs/ have a page here that includes them."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = {"CHANGELOG": "changelog", "CONTRIBUTING": "contributing", "SECURITY": "security", "CODE_OF_CONDUCT": "conduct"}
"""Files of the repository's root by the page that includes them."""

OPTIONAL = re.compile(r"^(\S+) \?\n", flags=re.MULTILINE)
"""A line of a table of contents: the page, if there is one."""


def to_site(app, docname, source):
    """``../CONTRIBUTING.md`` becomes ``contributing.md``; ``page ?`` becomes ``page`` where there is such a page."""
    folder = (Path(app.srcdir) / docname).parent
    source[0] = OPTIONAL.sub(lambda line: f"{line[1]}\n" if (folder / f"{line[1]}.md").is_file() else "", source[0])
    for file, page in PAGES.items():
        source[0] = re.sub(rf"\]\((?:\.\./)*{file}\.md", f"](/{page}.md", source[0])


def included_to_site(app, relative_path, parent_docname, content):
    """``docs/glossary.md`` of an included page becomes ``glossary.md``."""
    content[0] = re.sub(r"\]\(docs/", "](/", content[0])
    to_site(app, parent_docname, content)


def setup(app):
    app.connect("source-read", to_site)
    app.connect("include-read", included_to_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
