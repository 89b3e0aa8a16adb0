"""Links to other projects without a network: the few names that pages mention, from a list that is kept beside them.

``inventories/NAME.txt`` holds the address of a project's site, and one name a line; ``intersphinx`` gets them as it would from the site.
"""

from __future__ import annotations

import zlib
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "inventories"


def add_inventories(app, config):
    """Write an inventory for each list, and name it to intersphinx."""
    built = Path(app.doctreedir) / "inventories"
    built.mkdir(parents=True, exist_ok=True)
    for listed in sorted(FOLDER.glob("*.txt")):
        address, pages, *names = (line.strip() for line in listed.read_text(encoding="utf-8").splitlines() if line.strip())
        path = built / f"{listed.stem}.inv"
        path.write_bytes(_inventory(listed.stem, pages, names))
        config.intersphinx_mapping[listed.stem] = (address, str(path))


def setup(app):
    app.connect("config-inited", add_inventories)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inventory(project: str, pages: str, names: list[str]) -> bytes:
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n# The remainder of this file is compressed using zlib.\n"
    lines = (f"{name} py:{_role(name)} 1 {pages.format(name=name)} -\n" for name in names)
    return head.encode() + zlib.compress("".join(lines).encode())


def _role(name: str) -> str:
    last = name.rpartition(".")[2]
    return "class" if last[:1].isupper() or last in ("ndarray",) else "function"
