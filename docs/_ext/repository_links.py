"""Links between the repository's pages stay links in the site: pages outside of docs/ have a page here that includes them."""

from __future__ import annotations

import re

PAGES = {"CHANGELOG": "changelog", "CONTRIBUTING": "contributing", "SECURITY": "security", "CODE_OF_CONDUCT": "conduct"}
"""Files of the repository's root by the page that includes them."""


def to_site(app, docname, source):
    """``../CONTRIBUTING.md`` becomes ``contributing.md``."""
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
