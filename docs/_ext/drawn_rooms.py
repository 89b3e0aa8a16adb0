"""A flowchart of the repository as boxes in HTML: what a forge draws from ``mermaid`` needs a script that the site does not load."""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from docutils.parsers.rst import Directive

NODE = re.compile(r'^\s*(\w+)\["(.*?)"\]\s*$', flags=re.MULTILINE)


class Mermaid(Directive):
    """Draws the nodes of a layered flowchart in their order, one box a layer."""

    has_content = True

    def run(self):
        text = "\n".join(self.content)
        label = dict(NODE.findall(text))
        chains = [[re.findall(r"\w+", layer) for layer in line.split("-->")] for line in text.splitlines() if "-->" in line]
        layers = list({tuple(layer): None for chain in chains for layer in chain})
        return [nodes.raw("", _html([[label[name] for name in layer] for layer in layers]), format="html")]


def _html(layers: list[list[str]]) -> str:
    rows = ("".join(f'<div class="room">{_box(label)}</div>' for label in layer) for layer in layers)
    return '<div class="rooms">' + "".join(f'<div class="layer">{row}</div>' for row in rows) + "</div>"


def _box(label: str) -> str:
    name, _, what = label.partition("<br/>")
    return f"<b>{escape(name)}</b>" + (f"<span>{escape(what)}</span>" if what else "")


def setup(app):
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
