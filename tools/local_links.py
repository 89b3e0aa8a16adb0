"""Checks a built site without a network: every link inside it leads somewhere, and no page loads anything from elsewhere.

python tools/local_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
"""Tags whose contents a browser fetches to show a page; of ``link`` it fetches these kinds:"""
FETCHED = {"stylesheet", "preload", "icon", "modulepreload"}


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = {name: value for name, value in attributes if value is not None}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loaded.append(given[LOADED[tag]])
        if tag == "link" and "href" in given and FETCHED & set(given.get("rel", "").split()):
            self.loaded.append(given["href"])


def problems(folder: Path) -> tuple[list[str], int]:
    """Every broken or foreign address of a site, and the number of addresses that were checked."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html") if "_static" not in path.parts}
    found, checked = [], 0
    for path, page in pages.items():
        for address in dict.fromkeys([*page.links, *page.loaded]):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loaded and parts.scheme != "data":
                    found.append(f"{path.relative_to(folder.resolve())}: loads {address}")
                continue
            checked += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            if not target.is_file():
                found.append(f"{path.relative_to(folder.resolve())}: {address} does not exist")
            elif target in pages and place not in pages[target].places:
                found.append(f"{path.relative_to(folder.resolve())}: {address} names no place of that page")
    return found, checked


def main() -> int:
    """Print what is wrong, and tell the shell whether anything is."""
    folder = Path(sys.argv[1])
    found, checked = problems(folder)
    print("\n".join(found) if found else f"{checked:,} links inside {folder}: all lead somewhere, and nothing is loaded from elsewhere.")
    return 1 if found or not checked else 0


if __name__ == "__main__":
    raise SystemExit(main())
