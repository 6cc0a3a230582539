"""The built site holds together: every link leads to a page, a file, a heading that is there, and
nothing comes from the network.

    python -m website.check build/site
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {
    ("link", "href"),
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("use", "href"),
    ("object", "data"),
}
OUTSIDE = re.compile(r"^(https?:)?//")
STYLE_LOADS = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")


class Links(HTMLParser):
    """What a page links to, what it loads, which of its places have a name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set(STYLE_LOADS.findall(text))
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag == "iframe" and "srcdoc" in given:
            self.loads |= {load for load in Links(given["srcdoc"]).loads if OUTSIDE.match(load)}
        if tag == "link" and given.get("rel") in ("canonical", "prev", "next"):
            self.links.add(given["href"])  # said, not loaded
            return
        self.loads.update(given[name] for of, name in LOADS if of == tag and name in given)


def faults(site: Path) -> Iterator[str]:
    """A sentence for everything that is wrong."""
    pages = {path: Links(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        here = path.relative_to(site)
        if path.name == "404.html":
            continue  # is shown under any address, so its links begin at the root
        for link in sorted(page.links | page.loads):
            if link in page.loads and OUTSIDE.match(link):
                yield f"{here} loads {link} from the network"
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{here} links to {link}, which is not there"
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].names
            ):
                yield f"{here} links to {link}, but that page has no such heading"
    for path in sorted(site.rglob("*.css")):
        yield from (
            f"{path.relative_to(site)} loads {url} from the network"
            for url in STYLE_LOADS.findall(path.read_text())
        )


def main(folder: str) -> int:
    """Print what is wrong; 1 if anything is."""
    found = list(faults(Path(folder).resolve()))
    print(
        "\n".join(found)
        or f"{folder}: every link leads somewhere, and nothing comes from the network"
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
