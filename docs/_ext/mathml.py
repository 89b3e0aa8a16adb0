"""Formulas as MathML, which browsers draw themselves: no script is loaded, from here or elsewhere."""

from __future__ import annotations

from html import escape

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.math import get_node_equation_number


def inline(self, node):
    self.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def display(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({escape(get_node_equation_number(self, node))})</span>')
    self.body.append(_mathml(node.astext(), "block") + "</div>\n")
    raise nodes.SkipNode


def _mathml(tex: str, how: str) -> str:
    return convert(tex, display=how)


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
