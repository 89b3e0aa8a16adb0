"""A flowchart of the repository as boxes in HTML: what a forge draws from ``mermaid`` needs a script that the site does not load."""

from __future__ import annotations

import re
from html import escape
from itertools import pairwise, product

from docutils import nodes
from docutils.parsers.rst import Directive

NODE = re.compile(r'^\s*(\w+)\["(.*?)"\]\s*$', flags=re.MULTILINE)


class Mermaid(Directive):
    """Draws every node of a flowchart once, in a layer above all nodes that it points to."""

    has_content = True

    def run(self):
        text = "\n".join(self.content)
        label = dict(NODE.findall(text))
        height = _heights(label, _edges(text))
        layers = [[label[name] for name in label if height[name] == layer] for layer in sorted(set(height.values()), reverse=True)]
        return [nodes.raw("", _html(layers), format="html")]


def _edges(text: str) -> list[tuple[str, str]]:
    chains = [[re.findall(r"\w+", group) for group in line.split("-->")] for line in text.splitlines() if "-->" in line]
    return [edge for chain in chains for upper, lower in pairwise(chain) for edge in product(upper, lower)]


def _heights(names, edges: list[tuple[str, str]]) -> dict[str, int]:
    """The length of the longest chain of arrows from each node."""
    height = dict.fromkeys(names, 0)
    for _ in names:
        for above, below in edges:
            height[above] = max(height[above], height[below] + 1)
    return height


def _html(layers: list[list[str]]) -> str:
    rows = ("".join(f'<div class="room">{_box(label)}</div>' for label in layer) for layer in layers)
    return '<div class="rooms">' + "".join(f'<div class="layer">{row}</div>' for row in rows) + "</div>"


def _box(label: str) -> str:
    name, _, what = label.partition("<br/>")
    return f"<b>{escape(name)}</b>" + (f"<span>{escape(what)}</span>" if what else "")


def setup(app):
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
